//! The delays of many topics: seen through observers against the stamps in samples, or measured by
//! subscribers of the tool's own.

use std::time::Duration;

use myelin::value::{ReadError, Value};
use myelin::{AnyTopic, Key, ObservedSample, Observer, Subscriber, WaitSet};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, json};

use crate::Error;
use crate::delay::{DelayReport, Delays, Parts, StampClock};
use crate::duration::nanoseconds;
use crate::follow::{Follower, Found};
use crate::numbers::{or_dash, time};
use crate::session::{Place, Session};
use crate::spread::Spread;
use crate::table::Table;
use crate::watch::{Options, Output, Watch, finish, us};

/// Takes the samples of some topics, and compares times.
pub struct DelayWatch {
    follower: Follower,
    window_ns: u64,
    /// The path of the stamp in a sample.
    stamp: Option<String>,
    /// For subscribers; otherwise it observes.
    wait_set: Option<WaitSet>,
    topics: Vec<Watched>,
    sample: ObservedSample<[u8]>,
    problems: Vec<String>,
    has_samples: bool,
}

struct Watched {
    found: Found,
    source: Source,
    due_ns: u64,
    delays: Delays,
    clock: Option<StampClock>,
    counts: Counts,
}

enum Source {
    Subscriber(Subscriber<[u8]>, Key),
    Observer(Observer<[u8]>),
}

/// Samples that say less than the others.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// The payload was gone, so the stamp, too.
    without_payload: u64,
    /// The publisher adds no timestamps.
    without_time: u64,
    /// The stamp is of no clock of this host.
    of_other_clock: u64,
    /// Lost by the tool's own subscriber.
    lost: u64,
}

impl DelayWatch {
    /// Watches topics, by subscribers if `subscribes`, otherwise by observers.
    ///
    /// # Errors
    /// [`Error::NotFound`]: a name or pattern names nothing, unless it waits. Those of subscribers and
    /// observers.
    pub fn new(
        session: Session,
        place: &Place,
        options: &Options,
        stamp: Option<String>,
        subscribes: bool,
    ) -> Result<DelayWatch, Error> {
        let wait_set = subscribes.then(|| session.node().wait_set()).transpose()?;
        let mut watch = DelayWatch {
            follower: Follower::with_schemas(session, place, &options.topics, options.wait)?,
            window_ns: nanoseconds(options.window),
            stamp,
            wait_set,
            topics: Vec::new(),
            sample: ObservedSample::new(),
            problems: Vec::new(),
            has_samples: false,
        };
        watch.follow()?;
        Ok(watch)
    }

    fn follow(&mut self) -> Result<(), Error> {
        for found in self.follower.found(&mut self.problems)? {
            match self.source(&found) {
                Ok(source) => self.topics.push(Watched {
                    found,
                    source,
                    due_ns: 0,
                    delays: Delays::new(self.window_ns, SAMPLES_MAX),
                    clock: None,
                    counts: Counts::default(),
                }),
                Err(error) => self.problems.push(format!("{}: {error}", found.name)),
            }
        }
        self.topics.sort_by(|a, b| a.found.name.cmp(&b.found.name));
        Ok(())
    }

    fn source(&self, found: &Found) -> Result<Source, Error> {
        let topic = found.topic.topic();
        let Some(wait_set) = &self.wait_set else {
            return Ok(Source::Observer(topic.observer()?));
        };
        let publishers = self.follower.endpoints(found).filter(|it| it.is_publisher);
        let depth = publishers.map(|it| it.depth).max().unwrap_or(DEPTH_MAX);
        let subscriber = topic.depth(depth.clamp(1, DEPTH_MAX)).subscriber()?;
        let key = wait_set.handle().add(&subscriber)?;
        Ok(Source::Subscriber(subscriber, key))
    }

    /// Waits as a subscriber does, and takes what has come.
    fn take(&mut self, until_ns: u64) -> Result<(), Error> {
        let Some(wait_set) = &mut self.wait_set else { return Ok(()) };
        let ready = wait_set.wait_until(until_ns)?.to_vec();
        let wake_ns = myelin::now();
        let clocks = Clocks::now();
        for topic in &mut self.topics {
            let Watched { found, source, delays, clock, counts, .. } = topic;
            let Source::Subscriber(subscriber, key) = source else { continue };
            if !ready.contains(key) {
                continue;
            }
            for _ in 0..TAKEN_MAX {
                match subscriber.take() {
                    Ok(Some(sample)) => {
                        let now_ns = myelin::now();
                        let published_ns = sample.published_at();
                        let mut parts = Parts::of_take(published_ns, wake_ns, now_ns);
                        counts.without_time += u64::from(published_ns.is_none());
                        if let Some(path) = &self.stamp {
                            let stamp_ns = stamp_of(&found.topic, &sample, path)?;
                            let at_ns = published_ns.unwrap_or(now_ns);
                            parts.stamp_to_publish = clocks.since(stamp_ns, at_ns, clock, counts);
                        }
                        self.has_samples = true;
                        delays.add(parts, now_ns);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.problems.push(format!("{}: {error}", found.name));
                        break;
                    }
                }
            }
            counts.lost = subscriber.lost();
        }
        Ok(())
    }

    /// Looks at the stamps of the topics that are due.
    fn look_once(&mut self, now_ns: u64) -> Result<(), Error> {
        let Some(path) = &self.stamp else { return Ok(()) };
        let clocks = Clocks::now();
        for topic in self.topics.iter_mut().filter(|it| it.due_ns <= now_ns) {
            let Watched { found, source, delays, clock, counts, due_ns } = topic;
            let Source::Observer(observer) = source else { continue };
            for _ in 0..TAKEN_MAX {
                match observer.take_into(&mut self.sample) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        self.problems.push(format!("{}: {error}", found.name));
                        break;
                    }
                }
                self.has_samples = true;
                let published_ns = self.sample.header().published_ns;
                counts.without_time += u64::from(published_ns == 0);
                let Some(bytes) = self.sample.as_bytes() else {
                    counts.without_payload += 1;
                    continue;
                };
                let at_ns = if published_ns == 0 { now_ns } else { published_ns };
                let stamp_ns = stamp_of(&found.topic, bytes, path)?;
                let stamp_to_publish = clocks.since(stamp_ns, at_ns, clock, counts);
                delays.add(Parts { stamp_to_publish, ..Parts::default() }, now_ns);
            }
            *due_ns = now_ns + observer.interval().as_nanos() as u64;
        }
        Ok(())
    }

    fn output(&mut self, is_total: bool) -> Output {
        let now_ns = myelin::now();
        let mut output = Output { table: Table::new(&self.columns()), ..Output::default() };
        for topic in &mut self.topics {
            let report = match is_total {
                true => topic.delays.total(),
                false => topic.delays.report(now_ns),
            };
            let time_of =
                |spread: Option<Spread>, of: fn(Spread) -> u64| or_dash(spread, |it| time(of(it)));
            let mut cells = vec![topic.found.name.clone()];
            let whole = report.whole;
            for of in [|it: Spread| it.p50, |it: Spread| it.p99, |it: Spread| it.max] {
                cells.push(time_of(whole, of));
            }
            if self.wait_set.is_some() {
                for part in [report.publish_to_wake, report.wake_to_take] {
                    cells.push(time_of(part, |it| it.p50));
                    cells.push(time_of(part, |it| it.p99));
                }
                if self.stamp.is_some() {
                    cells.push(time_of(report.stamp_to_publish, |it| it.p50));
                    cells.push(time_of(report.stamp_to_publish, |it| it.p99));
                }
            }
            cells.push(report.samples.to_string());
            output.table.row(cells);
            topic.notes(&report, self.stamp.is_some(), &mut output.table);
            output.objects.push(topic.object(&report, is_total));
        }
        output.problems(&mut self.problems);
        output
    }

    fn columns(&self) -> Vec<&'static str> {
        let mut columns = vec!["topic", "p50", "p99", "max"];
        if self.wait_set.is_some() {
            columns.extend(["wake p50", "wake p99", "take p50", "take p99"]);
            if self.stamp.is_some() {
                columns.extend(["stamp p50", "stamp p99"]);
            }
        }
        columns.push("samples");
        columns
    }
}

impl Watch for DelayWatch {
    fn look(&mut self, until_ns: u64) -> Result<(), Error> {
        loop {
            self.follow()?;
            if self.wait_set.is_some() {
                self.take(until_ns.min(self.follower.due_ns()))?;
            }
            let now_ns = myelin::now();
            if self.wait_set.is_none() {
                self.look_once(now_ns)?;
                let due_ns = self.topics.iter().map(|it| it.due_ns).min();
                let due_ns = due_ns.unwrap_or(u64::MAX).min(until_ns).min(self.follower.due_ns());
                std::thread::sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns)));
            }
            if until_ns <= myelin::now() {
                return Ok(());
            }
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
    fn notes(&self, report: &DelayReport, with_stamp: bool, table: &mut Table) {
        let Counts { without_payload, without_time, of_other_clock, lost } = self.counts;
        if report.samples == 0 {
            table.note("no sample");
        }
        if without_time > 0 && with_stamp {
            table.note("its publisher adds no timestamps: until the tool saw the sample");
        } else if without_time > 0 {
            table.note(
                "not known: its publisher adds no timestamps (start it with MYELIN_TIMESTAMPS=1), or is \
                 on another host; try --stamp",
            );
        }
        if of_other_clock > 0 {
            table.note(format!(
                "{of_other_clock} stamps are of no clock of this host: simulated or recorded?"
            ));
        }
        if report.early > 0 {
            table.note(format!(
                "{} stamps are later than their publication: two clocks?",
                report.early
            ));
        }
        if without_payload > 0 {
            table.note(format!(
                "{without_payload} stamps were gone before the tool looked; --subscribe sees all"
            ));
        }
        if lost > 0 {
            table.note(format!("lost by this tool: {lost}"));
        }
    }

    fn object(&self, report: &DelayReport, is_total: bool) -> serde_json::Value {
        let Counts { without_payload, without_time, of_other_clock, lost } = self.counts;
        let mut object = Map::new();
        object.insert("topic".to_owned(), self.found.name.clone().into());
        object.insert("type".to_owned(), self.found.type_name.clone().into());
        let parts = [
            ("delay", report.whole),
            ("stamp_to_publish", report.stamp_to_publish),
            ("publish_to_wake", report.publish_to_wake),
            ("wake_to_take", report.wake_to_take),
        ];
        for (name, spread) in parts {
            let of = |get: fn(Spread) -> u64| json!(spread.map(|it| us(get(it) as f64)));
            object.insert(format!("{name}_p50_us"), of(|it| it.p50));
            object.insert(format!("{name}_p99_us"), of(|it| it.p99));
            object.insert(format!("{name}_max_us"), of(|it| it.max));
        }
        object.insert("samples".to_owned(), report.samples.into());
        object.insert("stamp_clock".to_owned(), json!(self.clock.map(StampClock::name)));
        object.insert("stamps_of_future".to_owned(), report.early.into());
        object.insert("stamps_of_other_clock".to_owned(), of_other_clock.into());
        object.insert("without_timestamp".to_owned(), without_time.into());
        object.insert("missed_by_tool".to_owned(), (without_payload + lost).into());
        finish(object, is_total)
    }
}

/// The time by two clocks.
struct Clocks {
    date_ns: u64,
    monotonic_ns: u64,
}

impl Clocks {
    fn now() -> Clocks {
        let date = clock_gettime(ClockId::Realtime);
        let monotonic_ns = myelin::now();
        let date_ns = date.tv_sec.max(0) as u64 * 1_000_000_000 + date.tv_nsec as u64;
        Clocks { date_ns, monotonic_ns }
    }

    /// From a stamp to `at_ns` of the monotonic clock.
    fn since(
        &self,
        stamp_ns: i64,
        at_ns: u64,
        clock: &mut Option<StampClock>,
        counts: &mut Counts,
    ) -> Option<i64> {
        *clock = StampClock::of(stamp_ns, self.date_ns, self.monotonic_ns);
        let offset_ns = match *clock {
            Some(StampClock::Date) => self.date_ns as i64 - self.monotonic_ns as i64,
            Some(StampClock::Monotonic) => 0,
            None => {
                counts.of_other_clock += 1;
                return None;
            }
        };
        Some((at_ns as i64).saturating_add(offset_ns).saturating_sub(stamp_ns))
    }
}

/// The stamp in a sample, in nanoseconds: a whole number, or a ROS 2 time.
fn stamp_of(topic: &AnyTopic, sample: &[u8], path: &str) -> Result<i64, ReadError> {
    let stamp: Value<'_> = topic.value(sample)?.get(path)?;
    let part = |name: &str| stamp.field(name).and_then(|it| it.as_i64());
    match (part("sec"), part("nanosec")) {
        (Ok(sec), Ok(nanosec)) => Ok(sec.saturating_mul(1_000_000_000).saturating_add(nanosec)),
        _ => stamp.as_i64(),
    }
}

/// How many samples the window of a topic holds.
const SAMPLES_MAX: usize = 1 << 14;
/// How many samples one look at a topic takes.
const TAKEN_MAX: usize = 1 << 10;
/// Enough for a thread that wakes late.
const DEPTH_MAX: u32 = 64;
