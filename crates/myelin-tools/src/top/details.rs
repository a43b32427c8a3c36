//! The details of a topic or a node, as lines of text; and what has been observed of a topic.

use std::collections::{HashMap, VecDeque};

use hdrhistogram::Histogram;
use myelin::{EndpointId, ObservedHeader};

use super::snapshot::{EndpointRow, Losses, MatchRow, NodeRow, Snapshot, TopicRow};
use super::text::{self, duration, number, number_or_dash};
use crate::text::counted;
use crate::timestamps::VARIABLE;

/// How a line is to be noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As others.
    #[default]
    Plain,
    /// Above others.
    Heading,
    /// Less than others.
    Dim,
    /// Something is lost.
    Warning,
    /// Something is wrong.
    Bad,
}

/// A line and its tone.
pub type ToneLine = (String, Tone);

/// What an observer has seen of a topic since its details were opened.
#[derive(Clone, Debug)]
pub struct Observed {
    /// How many samples it has seen.
    pub seen: u64,
    /// How many were overwritten before it looked.
    pub overwritten: u64,
    /// How many of the samples that it wanted to show had lost their payload.
    pub without_payload: u64,
    /// Times between samples of one publisher that follow each other, in nanoseconds.
    pub periods_ns: Histogram<u64>,
    /// The newest samples, the newest one first.
    pub samples: VecDeque<ObservedText>,
    /// Whether there are timestamps: without them there are no periods.
    pub has_times: bool,
    /// Why it sees nothing, or no fields.
    pub problem: Option<String>,
    /// Sequence and time of the last sample, by publisher.
    last: HashMap<EndpointId, (u64, u64)>,
}

/// A sample as text.
#[derive(Clone, Debug)]
pub struct ObservedText {
    /// Its publisher's count of samples before it.
    pub sequence: u64,
    /// Bytes of its payload.
    pub bytes: u64,
    /// Its fields.
    pub value: String,
}

impl Default for Observed {
    fn default() -> Self {
        let bounds = Histogram::new_with_bounds(1, PERIOD_NS_MAX, 3);
        Observed {
            seen: 0,
            overwritten: 0,
            without_payload: 0,
            periods_ns: bounds.expect("the bounds are constant"),
            samples: VecDeque::new(),
            has_times: false,
            problem: None,
            last: HashMap::new(),
        }
    }
}

impl Observed {
    /// Counts a sample.
    pub fn count(&mut self, header: &ObservedHeader) {
        self.seen += 1;
        self.overwritten += header.overwritten_before;
        self.count_period(header.publisher, header.sequence, header.published_ns);
    }

    /// A period counts between two samples that follow each other, both with a timestamp.
    fn count_period(&mut self, publisher: EndpointId, sequence: u64, published_ns: u64) {
        if self.last.len() >= PUBLISHERS_MAX && !self.last.contains_key(&publisher) {
            self.last.clear(); // Most of them have gone.
        }
        self.has_times |= published_ns > 0;
        let before = self.last.insert(publisher, (sequence, published_ns));
        if let Some((before, before_ns)) = before
            && before.checked_add(1) == Some(sequence)
            && before_ns > 0
            && published_ns > 0
        {
            self.periods_ns.saturating_record(published_ns.saturating_sub(before_ns).max(1));
        }
    }

    /// Keeps a sample as text.
    pub fn keep(&mut self, sample: ObservedText) {
        self.samples.truncate(SAMPLES_MAX - 1);
        self.samples.push_front(sample);
    }
}

/// The details of a topic, in lines of at most `width` columns where nothing else has to be cut;
/// `None`: it has gone. `block` is what bars are made of.
pub fn of_topic(
    name: &str,
    topic: Option<&TopicRow>,
    observed: Option<&Observed>,
    width: usize,
    block: char,
) -> Vec<ToneLine> {
    let mut lines = vec![(name.to_owned(), Tone::Heading)];
    match topic {
        Some(topic) => about(&mut lines, topic),
        None => lines.push(("has gone: no publisher, and no subscriber".to_owned(), Tone::Bad)),
    }
    if let Some(topic) = topic {
        lines.push(Default::default());
        matches(&mut lines, topic);
    }
    lines.push(Default::default());
    periods(&mut lines, observed, width, block);
    lines.push(Default::default());
    samples(&mut lines, observed);
    lines
}

fn about(lines: &mut Vec<ToneLine>, topic: &TopicRow) {
    lines.push((format!("type {}", topic.type_name), Tone::Dim));
    let rate = number_or_dash(topic.rate_hz);
    let bytes = number_or_dash(topic.bytes_per_s);
    let memory = number(topic.memory_bytes as f64);
    lines.push((format!("{rate} samples/s, {bytes}B/s, {memory}B of memory"), Tone::Plain));
    let latency = topic.latency_us.map_or_else(
        || format!("latency from publication to take: not known without timestamps: {VARIABLE}"),
        |it| {
            let (p50, p99) = (duration(it.p50 * 1e3), duration(it.p99 * 1e3));
            format!("latency from publication to take: p50 {p50}, p99 {p99}")
        },
    );
    lines.push((latency, Tone::Plain));
}

/// Each endpoint, and below it those that it does not match.
fn matches(lines: &mut Vec<ToneLine>, topic: &TopicRow) {
    let groups = [("Publishers", &topic.publishers), ("Subscribers", &topic.subscribers)];
    for (title, endpoints) in groups {
        lines.push((format!("{title}: {}", endpoints.len()), Tone::Heading));
        for endpoint in endpoints.iter().take(ENDPOINTS_MAX) {
            let is_publisher = title == "Publishers";
            let (mut line, tone) = endpoint_line(endpoint, is_publisher);
            let to = names(endpoint.matches.iter().filter(|it| it.is_matched));
            let arrow = if is_publisher { "->" } else { "<-" };
            line += &format!(" {arrow} {}", if to.is_empty() { "nobody" } else { &to });
            lines.push((line, tone));
            for other in endpoint.matches.iter().filter(|it| !it.is_matched) {
                let reason = other.refusal.as_deref().unwrap_or("it is being connected");
                let text = format!("    not {}: {reason}", other.node_name);
                lines.push((text, if other.refusal.is_some() { Tone::Bad } else { Tone::Dim }));
            }
        }
        if endpoints.len() > ENDPOINTS_MAX {
            let more = format!("  and {} more", endpoints.len() - ENDPOINTS_MAX);
            lines.push((more, Tone::Dim));
        }
    }
}

fn endpoint_line(endpoint: &EndpointRow, is_publisher: bool) -> ToneLine {
    let EndpointRow { node_name, lost, lost_total, held, .. } = endpoint;
    let mut line = format!("  {node_name}");
    if let Some(place) = &endpoint.elsewhere {
        line += &format!(" ({place})");
    }
    if let Some(rate) = endpoint.rate_hz {
        line += &format!(", {}/s", number(rate));
    }
    if !is_publisher {
        line += &format!(", lost {lost} (of {lost_total}{}), holds {held}", causes(endpoint));
    } else if endpoint.refused_loans > 0 {
        line += &format!(", {} loans refused for lack of memory", endpoint.refused_loans);
    }
    if let Some(latency) = endpoint.latency_us {
        let (p50, p99) = (duration(latency.p50 * 1e3), duration(latency.p99 * 1e3));
        line += &format!(", p50 {p50}, p99 {p99}");
    }
    line += &format!(", {}", endpoint.qos);
    (line, if *lost > 0 { Tone::Warning } else { Tone::Plain })
}

/// Why samples are lost, if not only because the subscriber is too slow.
fn causes(endpoint: &EndpointRow) -> String {
    let Losses { overwritten, passed_over, network, memory } = endpoint.losses;
    let others = [(passed_over, "passed over"), (network, "network"), (memory, "memory")];
    if others.iter().all(|(count, _)| *count == 0) {
        return String::new();
    }
    let all = std::iter::once((overwritten, "overwritten")).chain(others);
    let all = all.filter(|(count, _)| *count > 0).map(|(count, why)| format!("{why} {count}"));
    format!(": {}", all.collect::<Vec<_>>().join(", "))
}

/// Up to four names.
fn names<'a>(of: impl Iterator<Item = &'a MatchRow>) -> String {
    let all: Vec<_> = of.map(|it| it.node_name.as_str()).collect();
    let shown = &all[..all.len().min(NAMES_MAX)];
    let more = all.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

fn periods(lines: &mut Vec<ToneLine>, observed: Option<&Observed>, width: usize, block: char) {
    lines.push(("Periods".to_owned(), Tone::Heading));
    let Some(observed) = observed else {
        lines.push(("  begins to look".to_owned(), Tone::Dim));
        return;
    };
    let periods = &observed.periods_ns;
    if let Some(problem) = &observed.problem {
        lines.push((format!("  {problem}"), Tone::Bad));
    }
    if periods.is_empty() {
        let text = match observed.seen {
            0 | 1 => "  waits for two samples",
            _ if observed.has_times => "  waits for two samples that follow each other",
            _ => &format!("  not known without timestamps: start the publisher with {VARIABLE}"),
        };
        lines.push((text.to_owned(), Tone::Dim));
        return;
    }
    let at = |quantile| duration(periods.value_at_quantile(quantile) as f64);
    let (p50, p99) = (at(0.5), at(0.99));
    let (min, max) = (duration(periods.min() as f64), duration(periods.max() as f64));
    let count = number(periods.len() as f64);
    lines.push((format!("  min {min}  p50 {p50}  p99 {p99}  max {max}  of {count}"), Tone::Plain));
    lines.extend(bars(periods, width, block).into_iter().map(|it| (it, Tone::Plain)));
    if observed.overwritten > 0 {
        let missed = counted(observed.overwritten, "sample");
        lines.push((format!("  {missed} overwritten before top looked"), Tone::Dim));
    }
}

/// A bar for each of equal steps between the percentiles 1 and 99; the first and last one have what
/// is beyond.
fn bars(periods: &Histogram<u64>, width: usize, block: char) -> Vec<String> {
    let low = periods.value_at_quantile(0.01) as f64;
    let high = periods.value_at_quantile(0.99) as f64;
    let step = ((high - low) / BARS as f64).max(low * 0.01).max(1.0);
    let mut counts = [0u64; BARS];
    for recorded in periods.iter_recorded() {
        let at = (recorded.value_iterated_to() as f64 - low) / step;
        counts[(at.max(0.0) as usize).min(BARS - 1)] += recorded.count_at_value();
    }
    let used = counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
    let most = counts.iter().max().copied().unwrap_or(1).max(1);
    let columns = width.saturating_sub(LABEL_COLUMNS).max(4);
    let bar = |(index, &count): (usize, &u64)| {
        let from = duration(low + step * index as f64);
        let length = (count as f64 / most as f64 * columns as f64).ceil() as usize;
        let part = 100.0 * count as f64 / periods.len() as f64;
        let bar: String = std::iter::repeat_n(block, length.min(columns)).collect();
        format!("  {from:>7} {part:>5.1}% {bar}")
    };
    counts[..used].iter().enumerate().map(bar).collect()
}

fn samples(lines: &mut Vec<ToneLine>, observed: Option<&Observed>) {
    lines.push(("Last samples".to_owned(), Tone::Heading));
    let Some(observed) = observed else { return };
    for sample in &observed.samples {
        let ObservedText { sequence, bytes, value } = sample;
        lines.push((format!("  {sequence}: {bytes} B: {value}"), Tone::Plain));
    }
    if observed.samples.is_empty() {
        lines.push(("  none yet".to_owned(), Tone::Dim));
    }
    if observed.without_payload > 0 {
        let missed = observed.without_payload;
        let text =
            format!("  {missed} payloads were gone before top looked; those have headers only");
        lines.push((text, Tone::Dim));
    }
}

/// The details of a node; `None`: it has gone.
pub fn of_node(node: Option<&NodeRow>, snapshot: &Snapshot) -> Vec<ToneLine> {
    let Some(node) = node else {
        return vec![("The node has gone.".to_owned(), Tone::Bad)];
    };
    let mut lines = vec![(node.name.clone(), Tone::Heading)];
    let NodeRow { program, host, library, user, pid, .. } = node;
    lines
        .push((format!("{program}, process {pid} of user {user} on {host}, {library}"), Tone::Dim));
    let (cpu, memory) = (number_or_dash(node.cpu_percent), node.memory_bytes.map(|it| it as f64));
    let threads = node.threads.map_or_else(|| "- threads".to_owned(), |it| counted(it, "thread"));
    let memory = number_or_dash(memory);
    lines.push((format!("CPU {cpu} %, {memory}B of memory (RSS), {threads}"), Tone::Plain));
    if node.is_stopped {
        lines.push(("stopped by a signal or a debugger".to_owned(), Tone::Bad));
    } else if node.is_silent {
        lines.push(("does not answer".to_owned(), Tone::Bad));
    }
    for (title, is_publisher) in [("Publishes", true), ("Subscribes to", false)] {
        lines.push(Default::default());
        lines.push((title.to_owned(), Tone::Heading));
        for topic in &snapshot.topics {
            let all = if is_publisher { &topic.publishers } else { &topic.subscribers };
            for endpoint in
                all.iter().filter(|it| it.node == node.node && it.node_name == node.name)
            {
                let (line, tone) = endpoint_line(endpoint, is_publisher);
                let about = line.trim_start().strip_prefix(&node.name).unwrap_or(&line);
                lines.push((format!("  {}{about}", topic.name), tone));
            }
        }
    }
    lines
}

/// Cuts or wraps nothing: a line that is too long ends in `~`.
pub fn fit((line, tone): &ToneLine, width: usize) -> ToneLine {
    (text::cut(line, width), *tone)
}

/// The longest period.
const PERIOD_NS_MAX: u64 = 3600 * 1_000_000_000;
/// An observer observes no more.
const PUBLISHERS_MAX: usize = 4096;
/// Samples that are kept as text.
const SAMPLES_MAX: usize = 16;
/// Endpoints of a side with lines of their own.
const ENDPOINTS_MAX: usize = 100;
const NAMES_MAX: usize = 4;
const BARS: usize = 8;
/// In front of a bar.
const LABEL_COLUMNS: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_those_of_samples_that_follow_each_other() {
        let mut observed = Observed::default();
        for (publisher, sequence, ns) in
            [(1, 0, 1000), (2, 7, 1500), (1, 1, 2000), (1, 3, 9000), (2, 8, 0), (2, 9, 9000)]
        {
            observed.count_period(publisher, sequence, ns);
        }
        assert_eq!(observed.periods_ns.len(), 1);
        assert!(observed.periods_ns.max().abs_diff(1000) < 10);
    }

    #[test]
    fn bars_show_where_periods_are() {
        let mut observed = Observed::default();
        for index in 0..1000 {
            let late = if index % 10 == 0 { 500_000 } else { 0 };
            observed.periods_ns.saturating_record(1_000_000 + late);
        }
        let mut lines = Vec::new();
        periods(&mut lines, Some(&observed), 57, '#');
        let text: Vec<_> = lines.iter().map(|(line, _)| line.as_str()).collect();
        assert_eq!(text[0], "Periods");
        assert!(
            text[1].starts_with("  min 1.00ms  p50 1.00ms  p99 1.50ms  max 1.50ms"),
            "{}",
            text[1]
        );
        assert!(text[2].ends_with(&format!("90.0% {}", "#".repeat(40))), "{}", text[2]);
        assert!(text.last().unwrap().ends_with(&format!("10.0% {}", "#".repeat(5))), "{text:?}");
    }

    #[test]
    fn one_period_is_one_bar() {
        let mut observed = Observed::default();
        observed.periods_ns.saturating_record(20_000_000);
        assert_eq!(bars(&observed.periods_ns, 0, '#').len(), 1);
    }

    #[test]
    fn the_newest_samples_are_kept() {
        let mut observed = Observed::default();
        for sequence in 0..100 {
            observed.keep(ObservedText { sequence, bytes: 8, value: String::new() });
        }
        assert_eq!(observed.samples.len(), SAMPLES_MAX);
        assert_eq!(observed.samples[0].sequence, 99);
    }

    #[test]
    fn details_name_each_match_and_each_reason() {
        let endpoint =
            |name: &str| EndpointRow { node_name: name.to_owned(), ..Default::default() };
        let other = |name: &str, refusal: Option<&str>| MatchRow {
            node_name: name.to_owned(),
            is_matched: refusal.is_none(),
            refusal: refusal.map(str::to_owned),
            ..MatchRow::default()
        };
        let mut camera = endpoint("camera");
        camera.matches = vec![other("logger", None), other("planner", Some("reliability differs"))];
        let topic = TopicRow {
            publishers: vec![camera],
            subscribers: vec![endpoint("logger")],
            ..Default::default()
        };
        let lines = of_topic("image", Some(&topic), None, 80, '#');
        let has = |text: &str| lines.iter().any(|(line, _)| line.contains(text));
        assert!(has("camera") && has("-> logger") && has("not planner: reliability differs"));
        assert!(has("<- nobody"));
        let gone = of_topic("image", None, None, 80, '#');
        assert!(gone.iter().any(|(line, tone)| line.contains("has gone") && *tone == Tone::Bad));
    }
}
