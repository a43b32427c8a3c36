//! CycloneDDS with and without iceoryx: what was published, and its counterparts among ours.
//!
//! RoundtripPing and ddsperf print half round trips; those are doubled here, and minimum and
//! percentiles are therefore exact to 2 µs only.

use serde::Deserialize;

use super::super::view::{Metric, View, distinct};
use super::super::words;
use super::{Beside, Published, resources, roundtrips, sanity, shape};

/// `bench/published/cyclonedds-orin.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycloneddsOrin {
    /// Short name of the report.
    pub id: String,
    /// What was published.
    pub title: String,
    /// What it was measured on.
    pub platform: String,
    /// Year and month.
    pub date: String,
    /// What was measured.
    pub systems: Vec<String>,
    /// What we found on reading or repeating the experiment.
    pub doubts: Vec<String>,
    /// Circumstances.
    pub notes: String,
    /// ddsperf at one ping a second: metric, with and without shared memory.
    #[serde(rename = "sanity_12B_1Hz")]
    pub sanity: Published<(String, f64, f64)>,
    /// Criterion, weight, score with and without shared memory.
    pub scorecard: Published<(String, f64, f64, f64)>,
    /// RoundtripPing for 60 s.
    #[serde(rename = "roundtrip_60s_0B_shm")]
    pub minute: Published<Minute>,
    /// RoundtripPing by size.
    #[serde(rename = "roundtrip_by_size")]
    pub by_size: Published<BySize>,
}

/// A row of RoundtripPing over 60 s without payload. Latencies are half round trips.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)] // The names say it all, units included.
pub struct Minute {
    pub tuning: String,
    pub samples: u64,
    pub median_us: f64,
    pub min_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    pub write_median_us: f64,
    pub read_median_us: f64,
}

/// A row of RoundtripPing by size. Latencies are half round trips.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)] // The names say it all, units included.
pub struct BySize {
    pub transport: String,
    pub tuning: String,
    pub payload_bytes: u64,
    pub median_us: f64,
    pub min_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    pub write_median_us: f64,
    pub read_median_us: f64,
}

impl CycloneddsOrin {
    /// The figures this program was built with.
    pub fn load() -> Self {
        toml::from_str(include_str!("../../../../published/cyclonedds-orin.toml"))
            .expect("a test reads the published figures")
    }

    pub(super) fn row(&self, of: Configuration, payload: u64) -> Option<&BySize> {
        self.by_size.rows.iter().find(|row| {
            row.transport == of.transport && row.tuning == of.tuning && row.payload_bytes == payload
        })
    }

    /// The median of the whole round trip, in µs.
    pub(super) fn median(&self, of: Configuration, payload: u64) -> Option<f64> {
        Some(2.0 * self.row(of, payload)?.median_us)
    }

    /// Sizes of the rows, ascending.
    pub(super) fn payloads(&self) -> Vec<u64> {
        let mut payloads = distinct(self.by_size.rows.iter().map(|row| row.payload_bytes));
        payloads.sort_unstable();
        payloads
    }
}

/// One of the four that were published by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    pub transport: &'static str,
    pub tuning: &'static str,
}

impl Configuration {
    pub(super) const ALL: [Self; 4] = [
        Self { transport: "udp", tuning: "default" },
        Self { transport: "udp", tuning: "tuned" },
        Self { transport: "shm", tuning: "default" },
        Self { transport: "shm", tuning: "tuned" },
    ];

    /// What we call it.
    pub(super) fn system(self) -> &'static str {
        system(self.transport == "shm")
    }

    /// `shm tuned`.
    pub(super) fn name(self) -> String {
        format!("{} {}", self.transport, self.tuning)
    }
}

pub(super) fn system(shared_memory: bool) -> &'static str {
    if shared_memory { "cyclonedds.iceoryx" } else { "cyclonedds.udp" }
}

/// Every table whose scenario was measured.
pub(super) fn beside(view: &View) -> Beside {
    let published = CycloneddsOrin::load();
    let CycloneddsOrin { title, platform, date, doubts, notes, .. } = &published;
    let mut beside = Beside::new(format!("{title}: {platform}, {date}"), doubts, notes);
    let find = |scenario: &str, is_paced: bool| {
        view.groups.iter().find(|group| {
            group.metric == Metric::RoundTrip
                && group.scenario == scenario
                && group.params().rate_hz.is_some() == is_paced
        })
    };
    match find("roundtrip-sizes", false).or_else(|| find("quick", false)) {
        Some(group) => {
            let is_there = |payload: &u64| group.payloads.contains(payload);
            let (payloads, others): (Vec<_>, Vec<_>) =
                published.payloads().into_iter().partition(is_there);
            beside.tables.push(roundtrips::by_size(&published, group, &payloads));
            beside.tables.extend(shape::comparisons(&published, group, &payloads));
            beside.tables.push(resources::comparison(group, &payloads));
            beside.expect(view, group, &four());
            if !others.is_empty() {
                let sizes: Vec<_> = others.into_iter().map(words::bytes).collect();
                let what = format!("round trips of {}", sizes.join(", "));
                beside.not_measured(&what, "roundtrip-sizes");
            }
        }
        None => beside.not_measured(
            "round trips by size, gains, growth, best configurations, what they cost",
            "roundtrip-sizes",
        ),
    }
    match find("roundtrip-60s", false) {
        Some(group) => {
            beside.tables.push(roundtrips::minute(&published, group));
            beside.expect(view, group, &four()[2..]);
        }
        None => beside.not_measured("round trips for a minute", "roundtrip-60s"),
    }
    match find("sanity", true) {
        Some(group) => {
            beside.tables.push(sanity::comparison(&published, group));
            beside.tables.push(resources::comparison(group, &group.payloads));
            beside.tables.push(sanity::scorecard(&published, view, group));
            beside.expect(view, group, &[false, true].map(|shared| (system(shared), None)));
        }
        None => beside.not_measured("one ping a second, and the scorecard", "sanity"),
    }
    beside
}

fn four() -> [(&'static str, Option<&'static str>); 4] {
    Configuration::ALL.map(|it| (it.system(), Some(it.tuning)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_read() {
        let published = CycloneddsOrin::load();
        assert_eq!(published.by_size.rows.len(), 27, "of 28, one did not complete");
        assert_eq!(published.minute.rows.len(), 2);
        assert_eq!(published.scorecard.rows.len(), 6);
        assert_eq!(published.payloads(), [0, 64, 256, 1024, 4096, 16384, 65536]);
        let [udp_default, .., shm_tuned] = Configuration::ALL;
        assert_eq!(published.median(shm_tuned, 65536), Some(66.0), "a half, doubled");
        assert!(published.row(udp_default, 65536).is_none());
    }
}
