//! `[network]`: what the link between two hosts is made to be.

use myelin_bench_kit::pingpong::LOST_IN_A_ROW_MAX;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::limits::Limits;
use super::{Kind, Topology, Workload};
use crate::input_error::InputError;

/// The link between the two namespaces of a session, in both directions alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// From the start of a run, its warm-up included.
    pub at_s: f64,
    /// How long.
    pub for_s: f64,
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkFile {
    link: Option<Spanned<String>>,
    rate_mbit: Option<Spanned<f64>>,
    delay_ms: Option<Spanned<f64>>,
    jitter_ms: Option<Spanned<f64>>,
    loss_percent: Option<Spanned<f64>>,
    mtu: Option<Spanned<i64>>,
    cut: Option<Spanned<CutFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CutFile {
    at_s: Spanned<f64>,
    for_s: Spanned<f64>,
}

/// Checks the table against the rest of the scenario; `None` where there is none.
pub(super) fn check(
    limits: &Limits<'_>,
    table: Option<Spanned<NetworkFile>>,
    topologies: &[Topology],
    workload: &Workload,
) -> Result<Option<Link>, InputError> {
    let Some(table) = table else {
        return Ok(None);
    };
    let span = table.span();
    if topologies != [Topology::TwoHosts] {
        let text = "[network]: there is no link where all processes are on one host";
        let remedy = "leave it out, or use plan.topology = \"two-hosts\"";
        return Err(limits.source.error(span, text).remedy(remedy));
    }
    let table = table.into_inner();
    let mut link = Link::default();
    if let (Some(preset), Some(rate)) = (&table.link, &table.rate_mbit) {
        let text = format!("rate_mbit: link = {:?} is given as well", preset.get_ref());
        return Err(limits.source.error(rate.span(), text).remedy("leave one out"));
    }
    if let Some(preset) = table.link {
        link.rate_mbit = rate_of(limits, &preset)?;
    }
    let real = |key, value: Option<Spanned<f64>>, low, high| {
        value.map_or(Ok(0.0), |value| limits.real(key, value, low, high))
    };
    if let Some(rate) = table.rate_mbit {
        link.rate_mbit = limits.real("rate_mbit", rate, RATE_MBIT_MIN, RATE_MBIT_MAX)?;
    }
    link.delay_ms = real("delay_ms", table.delay_ms, 0.0, DELAY_MS_MAX)?;
    let jitter = table.jitter_ms.as_ref().map(Spanned::span).unwrap_or_default();
    link.jitter_ms = real("jitter_ms", table.jitter_ms, 0.0, DELAY_MS_MAX)?;
    if link.jitter_ms > link.delay_ms {
        let text =
            format!("jitter_ms: {} is more than delay_ms, {}", link.jitter_ms, link.delay_ms);
        let remedy = "a packet cannot arrive before it is sent: raise delay_ms";
        return Err(limits.source.error(jitter, text).remedy(remedy));
    }
    link.loss_percent = real("loss_percent", table.loss_percent, 0.0, 100.0)?;
    link.mtu = limits.optional("mtu", table.mtu, MTU_MIN, MTU_MAX, MTU.into())? as u32;
    link.cut = table.cut.map(|cut| self::cut(limits, cut, workload)).transpose()?;
    Ok(Some(link))
}

fn rate_of(limits: &Limits<'_>, preset: &Spanned<String>) -> Result<f64, InputError> {
    let known = PRESETS.iter().find(|(name, _)| name == preset.get_ref());
    known.map(|(_, rate)| *rate).ok_or_else(|| {
        let names = PRESETS.map(|(name, _)| name);
        InputError::unknown("link", preset.get_ref(), names.into_iter())
            .at(limits.source, preset.span())
            .remedy(format!("use {}, or rate_mbit", names.join(", ")))
    })
}

fn cut(limits: &Limits<'_>, cut: Spanned<CutFile>, workload: &Workload) -> Result<Cut, InputError> {
    let span = cut.span();
    let CutFile { at_s, for_s } = cut.into_inner();
    let cut = Cut {
        at_s: limits.seconds("at_s", Some(at_s))?,
        for_s: limits.real("for_s", for_s, CUT_S_MIN, CUT_S_MAX)?,
    };
    // Of several rates the run is shortest at the highest.
    let shortest = (workload.rate_hz.iter())
        .filter_map(|rate| workload.seconds_at_most(*rate))
        .fold(f64::INFINITY, f64::min);
    if cut.at_s + cut.for_s > shortest {
        let text =
            format!("cut: it ends after {} s, the run after {shortest}", cut.at_s + cut.for_s);
        let remedy = "have the run last longer: what a system does afterwards belongs to it";
        return Err(limits.source.error(span, text).remedy(remedy));
    }
    // Ping gives up when so many answers in a row are lost.
    let patience_s = workload.reply_timeout_ms as f64 * 1e-3 * f64::from(LOST_IN_A_ROW_MAX);
    if workload.kind == Kind::Roundtrip && cut.for_s >= patience_s {
        let least = (cut.for_s * 1e3 / f64::from(LOST_IN_A_ROW_MAX)) as u64 + 1;
        let text = format!(
            "cut: in {} s ping loses more than {LOST_IN_A_ROW_MAX} answers in a row and gives up",
            cut.for_s
        );
        let remedy = format!("set workload.reply_timeout_ms to {least} or more");
        return Err(limits.source.error(span, text).remedy(remedy));
    }
    Ok(cut)
}

/// Names of links and their rates, in Mbit/s.
const PRESETS: [(&str, f64); 4] =
    [("unlimited", 0.0), ("10gbit", 10_000.0), ("1gbit", 1_000.0), ("100mbit", 100.0)];
const RATE_MBIT_MIN: f64 = 0.01;
const RATE_MBIT_MAX: f64 = 400_000.0;
const DELAY_MS_MAX: f64 = 10_000.0;
/// Of Ethernet.
const MTU: u32 = 1_500;
/// What every IPv6 link must carry, and every IPv4 host take in parts (RFC 8200, RFC 791).
const MTU_MIN: i64 = 576;
/// As much as a packet may hold.
const MTU_MAX: i64 = 65_535;
const CUT_S_MIN: f64 = 0.01;
const CUT_S_MAX: f64 = 3_600.0;

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use crate::input_error::Source;

    const GOOD: &str = "name = \"x\"\n\n[workload]\nkind = \"stream\"\npayload_bytes = [64]\n\
        rate_hz = [100]\nduration_s = 10.0\n\n[plan]\nsystems = [\"os.*\"]\n\
        tunings = [\"default\"]\ntopology = \"two-hosts\"\nruns = 3\n\n[network]\n";

    fn parse(network: &str) -> Result<Scenario, String> {
        let text = format!("{GOOD}{network}");
        Scenario::parse(Source::new("x.toml", &text)).map_err(|error| error.to_string())
    }

    fn link(network: &str) -> Link {
        parse(network).unwrap().network.unwrap()
    }

    #[test]
    fn a_link_is_a_cable_unless_said() {
        assert_eq!(link(""), Link::default());
        assert_eq!(link("link = \"1gbit\"").rate_mbit, 1_000.0);
        let slow = link("rate_mbit = 50\ndelay_ms = 4\njitter_ms = 1\nloss_percent = 0.5");
        assert_eq!((slow.rate_mbit, slow.delay_ms, slow.jitter_ms), (50.0, 4.0, 1.0));
        assert_eq!(
            slow.netem_keys().collect::<Vec<_>>(),
            ["delay_ms", "jitter_ms", "loss_percent"]
        );
        let cut = link("cut = { at_s = 2, for_s = 5 }").cut.unwrap();
        assert_eq!((cut.at_s, cut.for_s), (2.0, 5.0));
        let scenario = parse("mtu = 9000").unwrap();
        let again: Scenario =
            serde_json::from_value(serde_json::to_value(&scenario).unwrap()).unwrap();
        assert_eq!(again.network, scenario.network);
    }

    #[test]
    fn mistakes_name_line_key_and_remedy() {
        for (network, expected) in [
            ("lnk = \"1gbit\"", "x.toml:16: unknown field `lnk`; did you mean `link`?"),
            (
                "link = \"1gibt\"",
                "x.toml:16: no link `1gibt`; did you mean `1gbit`?; use unlimited",
            ),
            ("link = \"1gbit\"\nrate_mbit = 5", "x.toml:17: rate_mbit: link = \"1gbit\" is given"),
            ("rate_mbit = 0", "x.toml:16: rate_mbit: 0 is out of range; use 0.01 to"),
            ("delay_ms = -1", "x.toml:16: delay_ms: -1 is out of range; use 0 to"),
            ("jitter_ms = 1", "x.toml:16: jitter_ms: 1 is more than delay_ms, 0; "),
            ("loss_percent = 101", "x.toml:16: loss_percent: 101 is out"),
            ("mtu = 100", "x.toml:16: mtu: 100 is out of range; use 576 to 65535"),
            ("cut = { at_s = 2 }", "x.toml:16: missing field `for_s`"),
            ("cut = { at_s = 2, for_s = 0 }", "x.toml:16: for_s: 0 is out of range"),
            (
                "cut = { at_s = 11, for_s = 5 }",
                "x.toml:16: cut: it ends after 16 s, the run after 11",
            ),
        ] {
            let error = parse(network).unwrap_err();
            assert!(error.starts_with(expected), "{error:?} does not start with {expected:?}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn a_round_trip_outlives_its_cut() {
        let text =
            format!("{GOOD}cut = {{ at_s = 2, for_s = 5 }}").replace("\"stream\"", "\"roundtrip\"");
        let error = |text: &str| {
            Scenario::parse(Source::new("x.toml", text)).map(|_| ()).map_err(|it| it.to_string())
        };
        let complaint = error(&text).unwrap_err();
        assert!(complaint.contains("x.toml:16: cut: in 5 s ping loses more than"), "{complaint}");
        assert!(complaint.contains("reply_timeout_ms to 1001"), "{complaint}");
        let patient = text.replace("duration_s", "reply_timeout_ms = 1001\nduration_s");
        assert_eq!(error(&patient), Ok(()));
    }

    #[test]
    fn two_hosts_stand_alone_and_only_they_have_a_link() {
        let with = |topology: &str, network: &str| {
            let text = format!("{GOOD}{network}").replace("\"two-hosts\"", topology);
            Scenario::parse(Source::new("x.toml", &text)).map(|_| ()).map_err(|it| it.to_string())
        };
        let error = with("\"two-processes\"", "").unwrap_err();
        assert!(error.starts_with("x.toml:15: [network]: there is no link where"), "{error}");
        let error = with("[\"two-hosts\", \"one-process\"]", "").unwrap_err();
        assert!(error.starts_with("x.toml:12: topology: \"two-hosts\" stands alone"), "{error}");
        let flood = GOOD.replace("\"stream\"", "\"flood\"").replace("rate_hz = [100]\n", "");
        let error = Scenario::parse(Source::new("x.toml", &flood)).unwrap_err().to_string();
        assert!(error.starts_with("x.toml:11: topology: kind \"flood\" cannot be"), "{error}");
    }
}
