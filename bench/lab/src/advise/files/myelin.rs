//! Myelin needs no file of configuration: the lines that a program has to have.

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::{Reliability, Wait};

use super::{Advised, File, MARK, points};

/// How a topic behaves and how its subscriber waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Qos {
    /// Place in [`WAITS`].
    wait: usize,
    depth: Option<u32>,
    is_reliable: bool,
}

/// A manner of waiting, its name in a function's name, and what is written for it.
const WAITS: [(Wait, &str, &str); 4] = [
    (Wait::Poll, "polls", "Wait::Poll"),
    (Wait::Block, "sleeps", "Wait::Block"),
    (Wait::Adaptive, "spins_first", "Wait::Adaptive"),
    (Wait::Predictive, "predicts", "Wait::Predictive"),
];

/// The file; `None` if nothing of Myelin's is advised.
pub(super) fn file(advised: &[Advised]) -> Option<File> {
    let ours = || advised.iter().filter(|one| one.system.starts_with("myelin."));
    let mut kinds: BTreeMap<Option<Qos>, Vec<&Advised>> = BTreeMap::new();
    for one in ours() {
        kinds.entry(Qos::of(one)).or_default().push(one);
    }
    if kinds.is_empty() {
        return None;
    }
    let mut text = format!("//! {MARK}: Myelin as it was measured.\n\n");
    text += &imports(&kinds);
    text += &node(ours().any(|one| one.tuning == "awake"));
    for (qos, of) in &kinds {
        let points = points(of.iter().copied());
        text += &qos.map_or_else(|| callback(&points), |qos| qos.lines(&points));
    }
    Some(File {
        name: "myelin.rs".to_owned(),
        about: format!("Myelin for: {}", points(ours())),
        usage: "lines to copy; there is no daemon and no file of configuration".to_owned(),
        text,
    })
}

impl Qos {
    /// `None` of what is called.
    fn of(advised: &Advised) -> Option<Self> {
        let wait = WAITS.iter().position(|(wait, ..)| *wait == advised.wait())?;
        let params = advised.params;
        let is_reliable = params.reliability == Some(Reliability::Reliable);
        Some(Qos { wait, depth: params.depth, is_reliable })
    }

    fn lines(self, points: &str) -> String {
        let (_, manner, wait) = WAITS[self.wait];
        let kind = if self.is_reliable { "reliable" } else { "best_effort" };
        let mut topic = "node.topic::<[u8]>(topic)".to_owned();
        let mut name = format!("{manner}_{kind}");
        if let Some(depth) = self.depth {
            topic += &format!(".depth({depth})");
            name += &format!("_{depth}");
        }
        topic += match self.is_reliable {
            true => ".reliable(Duration::from_secs(1))",
            false => ".best_effort()",
        };
        format!(
            "
/// Of {points}.
pub fn publisher_{name}(node: &Node, topic: &str) -> Result<Publisher<[u8]>, Error> {{
    {topic}.publisher()
}}

/// Of {points}.
pub fn subscriber_{name}(node: &Node, topic: &str) -> Result<Subscriber<[u8]>, Error> {{
    let topic = {topic};
    let mut subscriber = topic.subscriber()?;
    subscriber.set_wait({wait});
    Ok(subscriber)
}}
"
        )
    }
}

fn imports(kinds: &BTreeMap<Option<Qos>, Vec<&Advised>>) -> String {
    let mut names = vec!["Error", "Node"];
    if kinds.contains_key(&None) {
        names.push("Callback");
    }
    if kinds.keys().any(Option::is_some) {
        names.extend(["Publisher", "Subscriber", "Wait"]);
    }
    names.sort_unstable();
    let is_timed = kinds.keys().flatten().any(|qos| qos.is_reliable);
    let duration = if is_timed { "use std::time::Duration;\n\n" } else { "" };
    format!("{duration}use myelin::{{{}}};\n", names.join(", "))
}

fn node(is_awake: bool) -> String {
    let (remark, guard) = match is_awake {
        true => (", which keeps idle CPUs awake", ".latency_guard(true)"),
        false => ("", ""),
    };
    format!(
        "
/// A process's part in the domain{remark}.
pub fn node(name: &str) -> Result<Node, Error> {{
    Node::builder(name){guard}.open()
}}
"
    )
}

fn callback(points: &str) -> String {
    format!(
        "
/// A function that is called with each sample, of {points}.
pub fn is_called(
    node: &Node,
    topic: &str,
    mut call: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Callback, Error> {{
    node.topic::<[u8]>(topic).subscriber()?.on_sample(move |sample| call(sample))
}}
"
    )
}
