//! Published figures of camera frames beside the measured ones: ROS 2 and LibXR.
//!
//! They were published as means of the whole way, one way; a mean says little, and is printed here
//! because there is nothing else to compare.

use serde::Deserialize;

use super::super::view::{Entry, Group, View, distinct};
use super::super::words;
use super::{Beside, Comparison, ComparisonRow, Published, dash, struck};

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
        toml::from_str(include_str!("../../../../published/image-ros2-libxr.toml"))
            .expect("a test reads the published figures")
    }
}

/// The tables beside the first group of frames, if there is one.
pub(super) fn beside(view: &View) -> Beside {
    let published = Images::load();
    let Images { title, platform, doubts, notes, .. } = &published;
    let mut beside = Beside::new(format!("{title}, on {platform}"), doubts, notes);
    let is_image =
        |group: &&Group| group.entries.iter().any(|entry| entry.cell.params.frame.is_some());
    match view.groups.iter().find(is_image) {
        Some(group) => {
            beside.tables.extend([ways(&published, group), copies(&published, group)]);
            let rows = published.one_way.rows.iter();
            let systems = rows.flat_map(|(system, path, ..)| counterparts(system, path));
            let systems: Vec<_> = distinct(systems).into_iter().map(|name| (*name, None)).collect();
            beside.expect(view, group, &systems);
        }
        None => beside.not_measured("camera frames: their way, and copies of them", "image-30hz"),
    }
    beside
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
                    here.map_or_else(|| NOT_MEASURED.to_owned(), Entry::configuration),
                ],
                pairs: vec![
                    (words::us(*mean), us(here, way.map(|way| way.mean))),
                    (words::us(*min), us(here, way.map(|way| way.min))),
                    (words::us(*max), us(here, way.map(|way| way.max))),
                    (words::cpu_percent(*cpu), struck(here, cpu_here.unwrap_or_else(dash))),
                ],
                alone: vec![],
            }
        })
    });
    Comparison {
        caption: format!("Frames one way: callback and sync ({})", group.scenario),
        remark: REMARK,
        labels: vec!["published", "path", "frame", "here"],
        pairs: ["mean", "min", "max", "CPU %"].map(str::to_owned).into(),
        rows: rows.collect(),
        ..Comparison::default()
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
            labels: vec![
                copy.clone(),
                frame.clone(),
                ours.unwrap_or_else(|| NOT_MEASURED.to_owned()),
            ],
            pairs: vec![
                (words::us(*mean), us(here, copied.map(|copied| copied.mean))),
                (words::us(*min), us(here, copied.map(|copied| copied.min))),
                (words::us(*max), us(here, copied.map(|copied| copied.max))),
            ],
            alone: vec![],
        }
    });
    Comparison {
        caption: format!("The user's copies in the callback ({})", group.scenario),
        remark: COPIES,
        labels: vec!["published", "frame", "here"],
        pairs: ["mean", "min", "max"].map(str::to_owned).into(),
        rows: rows.collect(),
        ..Comparison::default()
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

fn us(here: Option<&Entry>, value: Option<f64>) -> String {
    struck(here, value.map_or_else(dash, words::us))
}

/// Those whose copies stand beside the published ones, the likest first.
const COPIERS: &[&str] =
    &["libxr.callback", "myelin.local-callback", "os.call", "myelin.shm-block"];

const NOT_MEASURED: &str = "not measured";

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
