//! `[network]`: what the link between two hosts is made to be.

use serde::{Deserialize, Serialize};

use crate::input_error::InputError;

/// The link between the two namespaces of a session, in both directions alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// Bits a second at which frames leave, in millions; 0 for as fast as the kernel is.
    pub rate_mbit: f64,
    /// What a packet takes longer, each way.
    pub delay_ms: f64,
    /// How far that varies.
    pub jitter_ms: f64,
    /// Packets that are lost, each way.
    pub loss_percent: f64,
    /// Bytes of an IP packet that is not cut up.
    pub mtu: u32,
    /// Once in a run it is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

impl Default for Link {
    fn default() -> Self {
        let (rate_mbit, delay_ms, jitter_ms, loss_percent) = Default::default();
        Link { rate_mbit, delay_ms, jitter_ms, loss_percent, mtu: MTU, cut: None }
    }
}

impl Link {
    /// The keys that are given and need the kernel's netem.
    pub(crate) fn netem_keys(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            ("delay_ms", self.delay_ms),
            ("jitter_ms", self.jitter_ms),
            ("loss_percent", self.loss_percent),
        ];
        keys.into_iter().filter(|(_, value)| *value > 0.0).map(|(key, _)| key)
    }
}

/// The link is down for a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// From the start of a run, its warm-up included.
    pub at_s: f64,
    /// How long.
    pub for_s: f64,
}

/// Bits a second of a link with this name, in millions; 0 for as fast as the kernel is.
pub(super) fn rate_of(name: &str) -> Result<f64, InputError> {
    let known = LINKS.iter().find(|(known, _)| *known == name);
    known.map(|(_, rate)| *rate).ok_or_else(|| {
        let error = InputError::unknown("link", name, LINKS.into_iter().map(|(name, _)| name));
        error.remedy(format!("use {}, or rate_mbit", names()))
    })
}

pub(super) fn names() -> String {
    LINKS.map(|(name, _)| name).join(", ")
}

/// Names of links and their rates.
const LINKS: [(&str, f64); 4] =
    [("unlimited", 0.0), ("10gbit", 10_000.0), ("1gbit", 1_000.0), ("100mbit", 100.0)];
/// Of Ethernet.
const MTU: u32 = 1_500;
