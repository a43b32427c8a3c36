//! Published figures of camera frames beside the measured ones: ROS 2 and LibXR.
//!
//! They were published as means of the whole way, one way; a mean says little, and is printed here
//! because there is nothing else to compare.

use serde::Deserialize;

use super::published::{Comparison, ComparisonRow, Published};
use super::view::{Entry, Group, View};
use super::words;

/// `bench/published/image-ros2-libxr.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// Short name of the report.
    pub id: String,
    /// What was published.
    pub title: String,
    /// What it was measured on.
    pub platform: String,
    /// What was measured.
    pub systems: Vec<String>,
    /// What we found on reading or repeating the experiment.
    pub doubts: Vec<String>,
    /// Circumstances.
    pub notes: String,
    /// System, path, frame; mean, smallest and largest in µs; CPU in per cent of a core.
    pub one_way: Published<(String, String, String, f64, f64, f64, f64)>,
    /// Copy, frame; mean, smallest and largest in µs.
    pub copy_in_callback: Published<(String, String, f64, f64, f64)>,
}

impl Images {
    /// The figures this program was built with.
    pub fn load() -> Self {
        toml::from_str(include_str!("../../../published/image-ros2-libxr.toml"))
            .expect("a test reads the published figures")
    }
}

/// The tables beside the first group of frames, if there is one.
pub(super) fn comparisons(view: &View) -> Vec<Comparison> {
    let is_image =
        |group: &&Group| group.entries.iter().any(|entry| entry.cell.params.frame.is_some());
    let Some(group) = view.groups.iter().find(is_image) else {
        return Vec::new();
    };
    let published = Images::load();
    vec![ways(&published, group), copies(&published, group)]
}

fn ways(published: &Images, group: &Group) -> Comparison {
    let rows = published.one_way.rows.iter().flat_map(|row| {
        let (theirs, path, frame, mean, min, max, cpu) = row;
        let beside = counterparts(theirs, path).iter().filter_map(|name| find(group, name, frame));
        let mut beside: Vec<Option<&Entry>> = beside.map(Some).collect();
        if beside.is_empty() {
            beside.push(None);
        }
        beside.into_iter().map(|here| {
            let way = here.and_then(|entry| entry.latency());
            let cpu_here = here.map(|entry| words::cpu_percent(entry.cell.cpu_percent));
            ComparisonRow {
                labels: vec![
                    theirs.clone(),
                    path.clone(),
                    frame.clone(),
                    here.map_or_else(dash, Entry::configuration),
                ],
                pairs: vec![
                    (words::us(*mean), way.map_or_else(dash, |way| words::us(way.mean))),
                    (words::us(*min), way.map_or_else(dash, |way| words::us(way.min))),
                    (words::us(*max), way.map_or_else(dash, |way| words::us(way.max))),
                    (words::cpu_percent(*cpu), cpu_here.unwrap_or_else(dash)),
                ],
            }
        })
    });
    Comparison {
        caption: format!("{}, one way", title(published)),
        labels: vec!["published", "path", "frame", "here"],
        pairs: vec!["mean", "min", "max", "CPU %"],
        rows: rows.collect(),
        remark: REMARK,
        doubts: doubts(published),
    }
}

fn copies(published: &Images, group: &Group) -> Comparison {
    let rows = published.copy_in_callback.rows.iter().map(|(copy, frame, mean, min, max)| {
        let here = COPIERS.iter().find_map(|name| find(group, name, frame));
        let copied = here.and_then(|entry| match copy.as_str() {
            "memcpy" => entry.cell.memcpy_us,
            _ => entry.cell.stream_copy_us,
        });
        let label = |kind: &str| here.map(|entry| format!("{kind}, {}", entry.configuration()));
        let ours = label(if copy == "memcpy" { "memcpy" } else { "streaming copy" });
        ComparisonRow {
            labels: vec![copy.clone(), frame.clone(), ours.unwrap_or_else(dash)],
            pairs: vec![
                (words::us(*mean), copied.map_or_else(dash, |copied| words::us(copied.mean))),
                (words::us(*min), copied.map_or_else(dash, |copied| words::us(copied.min))),
                (words::us(*max), copied.map_or_else(dash, |copied| words::us(copied.max))),
            ],
        }
    });
    Comparison {
        caption: format!("{}, the user's copies in the callback", title(published)),
        labels: vec!["published", "frame", "here"],
        pairs: vec!["mean", "min", "max"],
        rows: rows.collect(),
        remark: COPIES,
        doubts: doubts(published),
    }
}

/// The same system, then ours that does the same work.
fn counterparts(system: &str, path: &str) -> &'static [&'static str] {
    match (system, path) {
        ("ros2", "two processes") => &["cyclonedds.udp", "myelin.shm-block"],
        ("ros2", "intra-process") => &["myelin.local-wait"],
        ("libxr", "callback entry") => &["libxr.callback", "myelin.local-callback"],
        ("libxr", "sync wait") => &["libxr.sync", "myelin.local-wait"],
        _ => &[],
    }
}

/// The entry of a system and a frame, at the first of the group's tunings.
fn find<'v, 'a>(group: &'v Group<'a>, system: &str, frame: &str) -> Option<&'v Entry<'a>> {
    let is_it = |entry: &&Entry| {
        entry.system.name == system && entry.cell.params.frame.as_deref() == Some(frame)
    };
    group.tunings.iter().find_map(|tuning| {
        group.entries.iter().filter(is_it).find(|entry| entry.cell.tuning == **tuning)
    })
}

fn title(published: &Images) -> String {
    format!("{}, on {}", published.title, published.platform)
}

fn doubts(published: &Images) -> Vec<String> {
    published.doubts.iter().chain([&published.notes]).cloned().collect()
}

fn dash() -> String {
    words::WITHHELD.to_owned()
}

/// Those whose copies stand beside the published ones, the likest first.
const COPIERS: &[&str] =
    &["libxr.callback", "myelin.local-callback", "os.call", "myelin.shm-block"];

const REMARK: &str = "One way, from the stamp of a frame that is filled; means, for nothing else \
was published.";

const COPIES: &str = "What a user does with a frame once it was taken: no part of its way; means.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_frames_are_read_and_have_counterparts() {
        let published = Images::load();
        assert_eq!(published.one_way.rows.len(), 8);
        assert_eq!(published.copy_in_callback.rows.len(), 4);
        for (system, path, ..) in &published.one_way.rows {
            assert!(!counterparts(system, path).is_empty(), "{system} {path}");
        }
    }
}
