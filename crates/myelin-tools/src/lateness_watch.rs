//! How late the subscribers of some topics take samples, by their own counters: they measure it
//! themselves, about ten times a second, so looking at it costs them nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use myelin::{Counters, EndpointId, EndpointInfo, Graph, Lateness};
use serde_json::{Value, json};

use crate::duration::nanoseconds;
use crate::follow::{Owner, owner};
use crate::numbers::{or_dash, rate, time};
use crate::session::{Place, Session};
use crate::table::Table;
use crate::timestamps::VARIABLE;
use crate::watch::{Options, Output, Watch, finish, us};
use crate::{Error, select};

/// Reads the counters of subscribers.
pub struct LatenessWatch {
    session: Session,
    patterns: Vec<String>,
    window_ns: u64,
    graph: Graph,
    subscribers: BTreeMap<EndpointId, Subscriber>,
    has_topics: bool,
    due_ns: u64,
    problem: Option<String>,
}

/// A subscriber, with its counters at some times in the window. The first is that of its beginning.
struct Subscriber {
    topic: String,
    owner: Owner,
    begin: Count,
    counts: VecDeque<Count>,
    is_there: bool,
}

#[derive(Clone, Copy, Default)]
struct Count {
    at_ns: u64,
    taken: u64,
    lost: u64,
    /// The publication of the sample that it took last.
    newest_ns: u64,
    lateness: Lateness,
}

impl LatenessWatch {
    /// Watches the subscribers of topics.
    ///
    /// # Errors
    /// [`Error::NotFound`]: a name or pattern names nothing, unless it waits.
    pub fn new(session: Session, place: &Place, options: &Options) -> Result<LatenessWatch, Error> {
        let graph = session.graph(ANSWER_LIMIT)?;
        if !options.wait {
            select::topics(&graph, &options.topics, &session, place)?;
        }
        let mut watch = LatenessWatch {
            session,
            patterns: options.topics.clone(),
            window_ns: nanoseconds(options.window),
            graph,
            subscribers: BTreeMap::new(),
            has_topics: false,
            due_ns: 0,
            problem: None,
        };
        watch.count();
        Ok(watch)
    }

    fn ask(&mut self) {
        match self.session.graph(ANSWER_LIMIT) {
            Ok(graph) => self.graph = graph,
            Err(error) => self.problem = Some(error.to_string()),
        }
        self.count();
    }

    /// Adds the counters of the graph.
    fn count(&mut self) {
        let now_ns = myelin::now();
        self.subscribers.values_mut().for_each(|it| it.is_there = false);
        let all = select::all(&self.graph);
        for (names, endpoints) in &all {
            if !self.patterns.iter().any(|it| select::is_meant(it, *names, &all)) {
                continue;
            }
            self.has_topics = true;
            for endpoint in endpoints {
                let Some(count) = Count::of(endpoint, now_ns) else { continue };
                let known = self.subscribers.entry(endpoint.id).or_insert_with(|| Subscriber {
                    topic: names.0.to_owned(),
                    owner: owner(&self.graph, endpoint.id),
                    begin: count,
                    counts: VecDeque::new(),
                    is_there: true,
                });
                known.is_there = true;
                known.add(count, self.window_ns);
            }
        }
        let gone = self.subscribers.iter().filter(|(_, it)| !it.is_there).map(|(id, _)| *id);
        let gone: Vec<_> = gone.collect();
        for id in gone.iter().take(gone.len().saturating_sub(GONE_MAX)) {
            self.subscribers.remove(id);
        }
    }

    fn output(&mut self, is_total: bool) -> Output {
        let columns = ["topic", "p50", "p99", "max", "taken Hz", "lost", "newest", "measured"];
        let mut output = Output { table: Table::new(&columns), ..Output::default() };
        let now_ns = myelin::now();
        let mut topic = None;
        let mut subscribers: Vec<_> =
            self.subscribers.iter().filter(|(_, it)| is_total || it.is_there).collect();
        subscribers.sort_by_key(|(id, it)| (it.topic.clone(), **id));
        for (id, subscriber) in subscribers {
            if topic != Some(&subscriber.topic) {
                topic = Some(&subscriber.topic);
                let empty = columns[1..].iter().map(|_| String::new());
                output.table.row(std::iter::once(subscriber.topic.clone()).chain(empty));
            }
            let report = subscriber.report(is_total);
            output.table.row(report.cells(&subscriber.owner, now_ns));
            if report.lateness.measured() == 0 && report.taken > 0 {
                let note =
                    format!("no delay without timestamps: start its publisher with {VARIABLE}");
                output.table.note(note);
            }
            output.objects.push(report.object(*id, subscriber, now_ns, is_total));
        }
        if topic.is_none() {
            output.table.note("no subscriber; --subscribe measures with one of the tool's own");
        }
        output.problems(&mut self.problem.take().into_iter().collect());
        output
    }
}

impl Watch for LatenessWatch {
    fn look(&mut self, until_ns: u64) -> Result<(), Error> {
        let now_ns = myelin::now();
        if !self.has_samples() && self.due_ns <= now_ns {
            self.ask();
            self.due_ns = myelin::now() + ASK_INTERVAL_NS;
        }
        std::thread::sleep(Duration::from_nanos(until_ns.saturating_sub(myelin::now())));
        Ok(())
    }

    fn has_topics(&self) -> bool {
        self.has_topics
    }

    fn has_samples(&self) -> bool {
        self.subscribers.values().any(|it| it.counts.back().is_some_and(|it| it.taken > 0))
    }

    fn report(&mut self) -> Output {
        self.ask();
        self.output(false)
    }

    fn total(&mut self) -> Output {
        self.ask();
        self.output(true)
    }
}

impl Subscriber {
    /// Adds a count. Few are kept, at even distances.
    fn add(&mut self, count: Count, window_ns: u64) {
        let from_ns = count.at_ns.saturating_sub(window_ns);
        while self.counts.len() > 1 && self.counts[1].at_ns <= from_ns {
            self.counts.pop_front();
        }
        // The last one is replaced until the one before is old enough.
        let before = self.counts.len().checked_sub(2).map(|at| self.counts[at].at_ns);
        if before.is_some_and(|at_ns| count.at_ns - at_ns < window_ns / COUNTS_MAX) {
            self.counts.pop_back();
        }
        self.counts.push_back(count);
    }

    fn report(&self, is_total: bool) -> Report {
        let newest = self.counts.back().copied().unwrap_or(self.begin);
        let first = if is_total { Some(&self.begin) } else { self.counts.front() };
        let oldest = first.copied().unwrap_or(self.begin);
        Report {
            span_ns: newest.at_ns - oldest.at_ns,
            taken: newest.taken.saturating_sub(oldest.taken),
            lost: newest.lost.saturating_sub(oldest.lost),
            newest_ns: newest.newest_ns,
            lateness: newest.lateness.since(&oldest.lateness),
        }
    }
}

impl Count {
    fn of(endpoint: &EndpointInfo, at_ns: u64) -> Option<Count> {
        match endpoint.counters? {
            Counters::Subscriber { taken, lost, last_taken_ns, lateness, .. } => {
                Some(Count { at_ns, taken, lost, newest_ns: last_taken_ns, lateness })
            }
            Counters::Publisher { .. } => None,
        }
    }
}

/// What a subscriber did in a span of time.
struct Report {
    span_ns: u64,
    taken: u64,
    lost: u64,
    newest_ns: u64,
    lateness: Lateness,
}

impl Report {
    fn taken_hz(&self) -> Option<f64> {
        (self.span_ns > 0).then(|| self.taken as f64 * 1e9 / self.span_ns as f64)
    }

    /// The age of the sample that was taken last.
    fn age_ns(&self, now_ns: u64) -> Option<u64> {
        (self.newest_ns > 0).then(|| now_ns.saturating_sub(self.newest_ns))
    }

    fn max_ns(&self) -> Option<u64> {
        (self.lateness.measured() > 0).then_some(self.lateness.max_ns)
    }

    fn cells(&self, owner: &Owner, now_ns: u64) -> Vec<String> {
        vec![
            format!("  {}", owner.label()),
            or_dash(self.lateness.percentile_ns(50.0), time),
            or_dash(self.lateness.percentile_ns(99.0), time),
            or_dash(self.max_ns(), time),
            or_dash(self.taken_hz(), rate),
            self.lost.to_string(),
            or_dash(self.age_ns(now_ns), time),
            self.lateness.measured().to_string(),
        ]
    }

    fn object(&self, id: EndpointId, of: &Subscriber, now_ns: u64, is_total: bool) -> Value {
        let us = |ns: Option<u64>| ns.map(|ns| us(ns as f64));
        let Value::Object(object) = json!({
            "topic": of.topic,
            "subscriber": format!("{id:x}"),
            "node": of.owner.node,
            "pid": of.owner.pid,
            "host": of.owner.host,
            "delay_p50_us": us(self.lateness.percentile_ns(50.0)),
            "delay_p99_us": us(self.lateness.percentile_ns(99.0)),
            "delay_max_us": us(self.max_ns()),
            "measured": self.lateness.measured(),
            "taken": self.taken,
            "taken_hz": self.taken_hz(),
            "lost": self.lost,
            "newest_age_us": us(self.age_ns(now_ns)),
            "window_s": self.span_ns as f64 / 1e9,
            "has_gone": !of.is_there,
        }) else {
            unreachable!("an object")
        };
        finish(object, is_total)
    }
}

/// How long to wait for nodes that do not answer.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// How often it asks before the first report.
const ASK_INTERVAL_NS: u64 = 500_000_000;
/// How many counts of a window it keeps, and one more at each end.
const COUNTS_MAX: u64 = 16;
/// How many subscribers that have gone the summary names.
const GONE_MAX: usize = 16;
