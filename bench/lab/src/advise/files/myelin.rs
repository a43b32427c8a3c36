//! Lines of code for Myelin, which needs no configuration file.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use myelin_bench_kit::protocol::{Reliability, Wait};

use super::{Advised, File, points, rendered};
use crate::scenario::Tuning;

/// Quality of service of a topic, and the wait of its subscriber.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Qos {
    /// Index in [`WAITS`].
    wait: usize,
    depth: Option<u32>,
    is_reliable: bool,
}

/// A way of waiting, its name in a function's name, and the code for it.
const WAITS: [(Wait, &str, &str); 4] = [
    (Wait::Poll, "polls", "Wait::Poll"),
    (Wait::Block, "sleeps", "Wait::Block"),
    (Wait::Adaptive, "spins_first", "Wait::Adaptive"),
    (Wait::Predictive, "predicts", "Wait::Predictive"),
];

/// The file; `None` if no system of Myelin is advised.
pub(super) fn file(advised: &[Advised]) -> Option<File> {
    let ours = || advised.iter().filter(|one| one.system.starts_with("myelin."));
    let mut kinds: BTreeMap<Option<Qos>, Vec<&Advised>> = BTreeMap::new();
    for one in ours() {
        kinds.entry(Qos::of(one)).or_default().push(one);
    }
    if kinds.is_empty() {
        return None;
    }
    let called = kinds.contains_key(&None).then_some("Callback");
    let waiting = kinds.keys().any(Option::is_some);
    let waiting = ["Publisher", "Subscriber", "Wait"].into_iter().filter(|_| waiting);
    let names = called.into_iter().chain(["Error", "Node"]).chain(waiting);
    let topics = kinds.iter().map(|(qos, of)| topic(*qos, points(of.iter().copied())));
    let values = context! {
        names => names.collect::<Vec<_>>(),
        is_timed => kinds.keys().flatten().any(|qos| qos.is_reliable),
        is_awake => ours().any(|one| one.tuning == Tuning::Awake),
        topics => topics.collect::<Vec<_>>(),
    };
    Some(File {
        name: "myelin.rs".to_owned(),
        about: format!("Myelin for: {}", points(ours())),
        usage: "lines to copy; Myelin needs no daemon and no configuration file".to_owned(),
        text: rendered(include_str!("templates/myelin.rs.txt"), values),
    })
}

impl Qos {
    /// `None` for a callback.
    fn of(advised: &Advised) -> Option<Self> {
        let wait = WAITS.iter().position(|(wait, ..)| *wait == advised.wait())?;
        let params = advised.params;
        let is_reliable = params.reliability == Some(Reliability::Reliable);
        Some(Qos { wait, depth: params.depth, is_reliable })
    }
}

/// The values of the template for a topic.
fn topic(qos: Option<Qos>, points: String) -> Value {
    let Some(Qos { wait, depth, is_reliable }) = qos else {
        return context! { points, is_called => true };
    };
    let (_, manner, wait) = WAITS[wait];
    let (kind, promise) = match is_reliable {
        true => ("reliable", ".reliable(Duration::from_secs(1))"),
        false => ("best_effort", ".best_effort()"),
    };
    let kept = depth.map(|depth| format!(".depth({depth})")).unwrap_or_default();
    let number = depth.map(|depth| format!("_{depth}")).unwrap_or_default();
    context! {
        points,
        is_called => false,
        // The name is part of a function's name.
        name => format!("{manner}_{kind}{number}"),
        topic => format!("node.topic::<[u8]>(topic){kept}{promise}"),
        wait,
    }
}
