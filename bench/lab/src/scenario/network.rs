//! `[network]`: the properties of the link between two hosts.

use std::time::Duration;

use myelin_bench_link::Conditions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::input_error::InputError;

/// The link between the two namespaces of a session; the same in both directions. With a router
/// there are two such links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Link {
    /// Millions of bits per second at which frames leave; 0 for no limit.
    pub rate_mbit: f64,
    /// Added delay of a packet, each way.
    pub delay_ms: f64,
    /// How much that delay varies, up and down.
    pub jitter_ms: f64,
    /// Share of packets lost, each way.
    pub loss_percent: f64,
    /// Share of packets without that delay, which overtake others.
    pub reorder_percent: f64,
    /// Largest IP packet that is not fragmented, in bytes.
    pub mtu: u32,
    /// Whether a router is between the hosts. It forwards no multicast.
    pub routed: bool,
    /// An interruption of the link, once in a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

impl Default for Link {
    fn default() -> Self {
        let [rate_mbit, delay_ms, jitter_ms, loss_percent, reorder_percent] = [0.0; 5];
        let (mtu, routed, cut) = (MTU, false, None);
        Link { rate_mbit, delay_ms, jitter_ms, loss_percent, reorder_percent, mtu, routed, cut }
    }
}

impl Link {
    /// The given keys that the kernel's veth and tbf do not serve.
    pub(crate) fn emulated_keys(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            ("delay_ms", self.delay_ms),
            ("jitter_ms", self.jitter_ms),
            ("loss_percent", self.loss_percent),
            ("reorder_percent", self.reorder_percent),
        ];
        keys.into_iter().filter(|(_, value)| *value > 0.0).map(|(key, _)| key)
    }

    /// Whether this program carries the packets, and not the kernel.
    pub(crate) fn is_emulated(&self) -> bool {
        self.emulated_keys().next().is_some()
    }

    /// What an emulated link does to packets.
    pub(crate) fn conditions(&self) -> Conditions {
        let time = |ms: f64| Duration::from_secs_f64(ms * 1e-3);
        Conditions {
            delay: time(self.delay_ms),
            jitter: time(self.jitter_ms),
            loss_percent: self.loss_percent,
            reorder_percent: self.reorder_percent,
            rate_mbit: self.rate_mbit,
        }
    }
}

/// An interruption of the link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cut {
    /// Seconds from the start of a run, including its warm-up.
    pub at_s: f64,
    /// Duration in seconds.
    pub for_s: f64,
}

/// Millions of bits per second of the link with this name; 0 for no limit.
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

/// Named links and their rates.
const LINKS: [(&str, f64); 4] =
    [("unlimited", 0.0), ("10gbit", 10_000.0), ("1gbit", 1_000.0), ("100mbit", 100.0)];
/// The MTU of Ethernet.
const MTU: u32 = 1_500;
