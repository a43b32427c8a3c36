//! Rates and bandwidths of many topics, seen through observers.

use std::collections::BTreeMap;
use std::time::Duration;

use myelin::{EndpointId, Location, Observer};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::duration::nanoseconds;
use crate::follow::{Follower, Found, Owner};
use crate::numbers::{self, or_dash};
use crate::rate::{Rate, Report};
use crate::session::{Place, Session};
use crate::spread::Spread;
use crate::table::Table;
use crate::text::counted;
use crate::timestamps::VARIABLE;
use crate::watch::{Options, Output, Watch, finish, us};

/// What to show of the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Samples a second, and the periods.
    Hz,
    /// Bytes a second, and the sizes.
    Bandwidth,
}

/// Looks at the headers of all samples of some topics.
pub struct RateWatch {
    follower: Follower,
    window_ns: u64,
    show: Show,
    topics: Vec<Watched>,
    problems: Vec<String>,
    has_samples: bool,
}

/// A topic of one type.
struct Watched {
    found: Found,
    observer: Observer<[u8]>,
    due_ns: u64,
    publishers: BTreeMap<EndpointId, Watching>,
    /// Publishers of the past that the summary leaves out.
    forgotten: u64,
}

struct Watching {
    owner: Owner,
    rate: Rate,
    published: u64,
    has_gone: bool,
    /// Whether a report has said so.
    is_gone_reported: bool,
}

impl RateWatch {
    /// Watches topics.
    ///
    /// # Errors
    /// [`Error::NotFound`]: a name or pattern names nothing, unless it waits. Those of observers.
    pub fn new(
        session: Session,
        place: &Place,
        options: &Options,
        show: Show,
    ) -> Result<RateWatch, Error> {
        let mut watch = RateWatch {
            follower: Follower::new(session, place, &options.topics, options.wait)?,
            window_ns: nanoseconds(options.window),
            show,
            topics: Vec::new(),
            problems: Vec::new(),
            has_samples: false,
        };
        watch.follow()?;
        Ok(watch)
    }

    /// Observes the topics that have come.
    fn follow(&mut self) -> Result<(), Error> {
        for found in self.follower.found(&mut self.problems)? {
            match found.topic.topic().observer() {
                Ok(observer) => self.topics.push(Watched {
                    found,
                    observer,
                    due_ns: 0,
                    publishers: BTreeMap::new(),
                    forgotten: 0,
                }),
                Err(error) => self.problems.push(error.to_string()),
            }
        }
        self.topics.sort_by(|a, b| a.found.name.cmp(&b.found.name));
        Ok(())
    }

    /// Takes all headers of the topics that are due.
    fn take(&mut self, now_ns: u64) {
        let publishers: usize = self.topics.iter().map(|it| it.publishers.len()).sum();
        let room = (SAMPLES_MAX / publishers.max(1)).clamp(2, SAMPLES_EACH_MAX);
        for topic in self.topics.iter_mut().filter(|it| it.due_ns <= now_ns) {
            for _ in 0..TAKEN_MAX {
                match topic.observer.take_header() {
                    Ok(Some(header)) => {
                        self.has_samples = true;
                        let known = topic.publishers.entry(header.publisher);
                        let known = known.or_insert_with(|| {
                            let owner = self.follower.owner(header.publisher);
                            Watching::new(owner, self.window_ns, room, now_ns, header.sequence)
                        });
                        known.rate.add(&header, now_ns);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.problems.push(format!("{}: {error}", topic.found.name));
                        break;
                    }
                }
            }
            let interval = topic.observer.interval();
            topic.due_ns = now_ns + interval.as_nanos() as u64;
        }
    }

    /// Reads how many samples each publisher has published, and whether it has gone.
    fn count(&mut self, now_ns: u64) {
        let mut publishers = 0;
        for topic in &mut self.topics {
            for counts in topic.observer.publishers() {
                let owner = || self.follower.owner(counts.publisher);
                let known = topic.publishers.entry(counts.publisher).or_insert_with(|| {
                    let room = SAMPLES_EACH_MAX;
                    Watching::new(owner(), self.window_ns, room, now_ns, counts.published)
                });
                known.published = counts.published;
                known.has_gone = counts.has_gone;
                if known.owner == Owner::default() {
                    known.owner = owner();
                }
            }
            publishers += topic.publishers.len();
        }
        let room = (SAMPLES_MAX / publishers.max(1)).clamp(2, SAMPLES_EACH_MAX);
        for watching in self.topics.iter_mut().flat_map(|it| it.publishers.values_mut()) {
            watching.rate.set_room(room);
        }
    }

    fn output(&mut self, is_total: bool) -> Output {
        let now_ns = myelin::now();
        self.count(now_ns);
        let mut output = Output { table: new_table(self.show), ..Output::default() };
        let names: Vec<_> = self.topics.iter().map(|it| it.found.name.clone()).collect();
        let is_single = |name: &String| names.iter().filter(|it| *it == name).count() == 1;
        for topic in &mut self.topics {
            let reports =
                topic.publishers.iter_mut().filter(|(_, it)| is_total || !it.is_gone_reported);
            let reports = reports.map(|(id, it)| {
                let report = match is_total {
                    true => it.rate.total(now_ns, it.published),
                    false => it.rate.report(now_ns, it.published),
                };
                (*id, &it.owner, it.has_gone, report)
            });
            let reports: Vec<_> = reports.collect();
            let away = self.follower.endpoints(&topic.found);
            let away = away.filter(|it| it.is_publisher && it.location != Location::ThisHost);
            // The type of a topic may have changed.
            if !reports.is_empty() || is_single(&topic.found.name) {
                topic_rows(&mut output, &topic.found, &reports, self.show, is_total);
            }
            if is_total && topic.forgotten > 0 {
                output.table.note(format!("{} gone", counted(topic.forgotten, "more publisher")));
            }
            let away = away.count();
            if away > 0 {
                let away = counted(away, "publisher");
                output.table.note(format!(
                    "{away} elsewhere cannot be observed: on other hosts, or in DDS programs"
                ));
            }
            topic.forget();
        }
        output.problems(&mut self.problems);
        output
    }
}

impl Watch for RateWatch {
    fn look(&mut self, until_ns: u64) -> Result<(), Error> {
        loop {
            let now_ns = myelin::now();
            self.follow()?;
            self.take(now_ns);
            let due_ns = self.topics.iter().map(|it| it.due_ns).min();
            let due_ns = due_ns.unwrap_or(u64::MAX).min(until_ns);
            let now_ns = myelin::now();
            if until_ns <= now_ns {
                return Ok(());
            }
            std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns)));
        }
    }

    fn has_topics(&self) -> bool {
        !self.topics.is_empty()
    }

    fn has_samples(&self) -> bool {
        self.has_samples
    }

    fn report(&mut self) -> Output {
        self.output(false)
    }

    fn total(&mut self) -> Output {
        self.output(true)
    }
}

impl Watched {
    /// Remembers that departures were reported, and only the newest ones for the summary.
    fn forget(&mut self) {
        self.publishers.values_mut().for_each(|it| it.is_gone_reported = it.has_gone);
        let gone: Vec<_> =
            self.publishers.iter().filter(|(_, it)| it.has_gone).map(|(id, _)| *id).collect();
        for id in gone.iter().take(gone.len().saturating_sub(GONE_MAX)) {
            self.publishers.remove(id);
            self.forgotten += 1;
        }
    }
}

impl Watching {
    fn new(owner: Owner, window_ns: u64, room: usize, now_ns: u64, published: u64) -> Watching {
        let rate = Rate::new(window_ns, room, now_ns, published);
        Watching { owner, rate, published, has_gone: false, is_gone_reported: false }
    }
}

type Reported<'a> = (EndpointId, &'a Owner, bool, Report);

/// The rows of a topic: one, or one for each of several publishers.
fn topic_rows(
    output: &mut Output,
    found: &Found,
    reports: &[Reported<'_>],
    show: Show,
    is_total: bool,
) {
    let table = &mut output.table;
    match reports {
        [] => {
            table.row(std::iter::once(found.name.clone()).chain(columns(show).map(|_| "-".into())));
            table.note("nobody publishes");
            let mut object = Map::from_iter([("topic".into(), found.name.clone().into())]);
            object.insert("publishers".into(), 0.into());
            output.objects.push(finish(object, is_total));
        }
        [(_, owner, has_gone, report)] => {
            table.row(cells(found.name.clone(), report, show, is_total));
            notes(table, owner, *has_gone, report, is_total);
        }
        several => {
            let sum: f64 = several.iter().filter_map(|(.., it)| rate_of(it, show, is_total)).sum();
            let sum = show_rate(sum, show);
            let name = format!("{} ({} publishers)", found.name, several.len());
            let rest = columns(show).skip(1).map(|_| String::new());
            table.row([name, sum].into_iter().chain(rest));
            for (_, owner, has_gone, report) in several {
                table.row(cells(format!("  {}", owner.label()), report, show, is_total));
                notes(table, owner, *has_gone, report, is_total);
            }
        }
    }
    for (id, owner, has_gone, report) in reports {
        output.objects.push(object(found, *id, owner, *has_gone, report, is_total));
    }
}

fn columns(show: Show) -> impl Iterator<Item = &'static str> {
    let columns: &[_] = match show {
        Show::Hz => &["Hz", "p50", "p99", "max", "jitter", "gaps", "samples"],
        Show::Bandwidth => &["bytes/s", "size p50", "min", "max", "Hz", "samples"],
    };
    columns.iter().copied()
}

fn new_table(show: Show) -> Table {
    Table::new(&std::iter::once("topic").chain(columns(show)).collect::<Vec<_>>())
}

/// The rate to show: an old one is none.
fn rate_of(report: &Report, show: Show, is_total: bool) -> Option<f64> {
    let rate = match show {
        Show::Hz => report.rate_hz,
        Show::Bandwidth => report.bytes_per_s,
    };
    rate.filter(|_| is_total || report.silent_ns.is_none())
}

fn show_rate(rate: f64, show: Show) -> String {
    match show {
        Show::Hz => numbers::rate(rate),
        Show::Bandwidth => numbers::bytes(rate),
    }
}

fn cells(name: String, report: &Report, show: Show, is_total: bool) -> Vec<String> {
    let is_silent = !is_total && report.silent_ns.is_some();
    let rate = or_dash(rate_of(report, show, is_total), |it| show_rate(it, show));
    let period = report.period.filter(|_| !is_silent);
    let of_period = |of: fn(Spread) -> u64| or_dash(period, |it| numbers::time(of(it)));
    let of_size = |of: fn(Spread) -> u64| or_dash(report.size, |it| numbers::bytes(of(it) as f64));
    match show {
        Show::Hz => vec![
            name,
            rate,
            of_period(|it| it.p50),
            of_period(|it| it.p99),
            of_period(|it| it.max),
            of_period(|it| it.deviation as u64),
            or_dash(period, |_| report.gaps.to_string()),
            report.samples.to_string(),
        ],
        Show::Bandwidth => vec![
            name,
            rate,
            of_size(|it| it.p50),
            of_size(|it| it.min),
            of_size(|it| it.max),
            or_dash(rate_of(report, Show::Hz, is_total), numbers::rate),
            report.samples.to_string(),
        ],
    }
}

fn notes(table: &mut Table, owner: &Owner, has_gone: bool, report: &Report, is_total: bool) {
    if has_gone {
        table.note(format!("its publisher has gone: {}", owner.label()));
    } else if let Some(silent_ns) = report.silent_ns.filter(|_| !is_total) {
        let seconds = silent_ns / 1_000_000_000;
        table.note(format!("no sample for {seconds} s from {}", owner.label()));
    }
    if report.missed > 0 {
        table.note(format!("missed by this tool: {}, counted in the rate", report.missed));
    }
    if !report.has_times && report.samples > 0 {
        table.note(format!("no periods without timestamps: start its publisher with {VARIABLE}"));
    }
}

fn object(
    found: &Found,
    id: EndpointId,
    owner: &Owner,
    has_gone: bool,
    report: &Report,
    is_total: bool,
) -> Value {
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let is_silent = !is_total && report.silent_ns.is_some();
    let period = report.period.filter(|_| !is_silent);
    let of_period = |of: fn(Spread) -> f64| period.map(|it| us(of(it)));
    let Value::Object(object) = json!({
        "topic": found.name,
        "type": found.type_name,
        "publisher": format!("{id:x}"),
        "node": owner.node,
        "pid": owner.pid,
        "host": owner.host,
        "rate_hz": rate_of(report, Show::Hz, is_total).map(rounded),
        "bytes_per_s": rate_of(report, Show::Bandwidth, is_total).map(rounded),
        "window_s": rounded(report.span_ns as f64 / 1e9),
        "samples": report.samples,
        "missed_by_tool": report.missed,
        "period_p50_us": of_period(|it| it.p50 as f64),
        "period_p99_us": of_period(|it| it.p99 as f64),
        "period_max_us": of_period(|it| it.max as f64),
        "period_jitter_us": of_period(|it| it.deviation),
        "gaps": period.map(|_| report.gaps),
        "size_min_bytes": report.size.map(|it| it.min),
        "size_p50_bytes": report.size.map(|it| it.p50),
        "size_max_bytes": report.size.map(|it| it.max),
        "silent_s": report.silent_ns.filter(|_| !is_total).map(|ns| rounded(ns as f64 / 1e9)),
        "has_timestamps": report.has_times,
        "has_gone": has_gone,
    }) else {
        unreachable!("an object")
    };
    finish(object, is_total)
}

/// How many samples the windows of all publishers hold together, and that of one publisher.
const SAMPLES_MAX: usize = 1 << 20;
const SAMPLES_EACH_MAX: usize = 1 << 14;
/// How many headers one look at a topic takes.
const TAKEN_MAX: usize = 1 << 14;
/// How many publishers that have gone the summary names for each topic.
const GONE_MAX: usize = 16;
