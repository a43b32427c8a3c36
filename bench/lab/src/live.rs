//! The messages of a run while they come: a line of figures for each second, and the first message
//! that exceeds a limit.
//!
//! A thread of the lab reads the records that drivers have written, in memory that both have mapped.
//! The drivers do the same work with it as without it. At most [`LOOK_MAX`] records are read at a
//! time; older ones are only counted.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::Workload;
use myelin_bench_kit::samples::{Record, SampleFile};

use crate::ftrace::KernelTrace;
use crate::observe::sampler::{come_last, stay_off_real_time_cpus, thread_cpu_ns};
use crate::observe::{Snapshot, cpu_ns};
use crate::report::format::{WITHHELD, amount, count, cpu_percent, us, us_or_dash};
use crate::run::Running;
use crate::summary::Distribution;

/// Where the records of messages appear.
#[derive(Clone)]
pub(crate) enum Records {
    /// Of round trips: all in ping's file.
    RoundTrips(Arc<SampleFile>),
    /// Of publish calls alone.
    Published(Arc<SampleFile>),
    /// Of messages one way: the publisher's file, if it can be read here, and the subscriber's.
    OneWay(Option<Arc<SampleFile>>, Arc<SampleFile>),
}

/// A message that arrived, or a publish call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub id: u64,
    /// When it was sent, or due; `None` if that is not known here.
    pub sent_ns: Option<u64>,
    /// When it was taken, or the call returned.
    pub taken_ns: u64,
    pub sent_cpu: Option<u16>,
    pub taken_cpu: u16,
}

impl Message {
    /// From sending to taking.
    pub fn latency_ns(&self) -> Option<u64> {
        Some(self.taken_ns.saturating_sub(self.sent_ns?))
    }
}

/// Follows the records of one publisher and one subscriber.
pub(crate) struct Tail {
    records: Records,
    record_every: u64,
    /// Place of the next record; `None` until there is one.
    next: Option<u64>,
    /// Messages that have not arrived yet, since when.
    missing: VecDeque<(u64, Instant)>,
}

/// A message, or its absence.
pub(crate) enum Seen {
    Arrived(Message),
    Lost,
    /// So many arrived and were not looked at.
    Skipped(u64),
}

impl Tail {
    pub fn new(records: Records, record_every: u64) -> Self {
        Tail { records, record_every, next: None, missing: VecDeque::new() }
    }

    /// Goes on with other files of the same messages.
    pub fn follow(&mut self, records: Records) {
        self.records = records;
    }

    /// Calls `see` with everything new. A message that was sent counts as lost if it has not arrived
    /// within [`LOST_AFTER`].
    pub fn look(&mut self, mut see: impl FnMut(Seen)) {
        let end = self.end();
        let Some(begin) = self.next.or_else(|| self.first(end)) else { return };
        let from = begin.max(end.saturating_sub(LOOK_MAX));
        if from > begin {
            see(Seen::Skipped(from - begin));
        }
        let now = Instant::now();
        for _ in 0..self.missing.len() {
            let Some((place, since)) = self.missing.pop_front() else { break };
            match self.arrived(place) {
                Some(message) => see(Seen::Arrived(message)),
                None if now.duration_since(since) >= LOST_AFTER => see(Seen::Lost),
                None => self.missing.push_back((place, since)),
            }
        }
        for place in from..end {
            match (self.arrived(place), &self.records) {
                (Some(message), _) => see(Seen::Arrived(message)),
                // A message one way may still be on its way.
                (None, Records::OneWay(..)) => self.missing.push_back((place, now)),
                (None, _) => see(Seen::Lost),
            }
        }
        let most = self.missing.len().saturating_sub(LOOK_MAX as usize);
        self.missing.drain(..most).for_each(|_| see(Seen::Lost));
        self.next = Some(end);
    }

    /// Counts as lost what has not arrived and was overtaken; the rest may be on its way. For the end,
    /// when nothing more is taken.
    pub fn finish(&mut self, mut see: impl FnMut(Seen)) {
        let Records::OneWay(_, taken) = &self.records else { return };
        let end = taken.position();
        let missing = self.missing.drain(..).filter(|(place, _)| *place < end);
        missing.for_each(|_| see(Seen::Lost));
    }

    /// The place after the last record.
    fn end(&self) -> u64 {
        match &self.records {
            Records::RoundTrips(file) | Records::Published(file) => file.position(),
            Records::OneWay(Some(sent), _) => sent.position(),
            Records::OneWay(None, taken) => taken.position(),
        }
    }

    /// The first message that a subscriber has taken; what was sent before did not concern it.
    fn first(&self, end: u64) -> Option<u64> {
        match &self.records {
            Records::OneWay(..) => {
                (end.saturating_sub(LOOK_MAX)..end).find(|place| self.arrived(*place).is_some())
            }
            _ => (end > 0).then_some(0),
        }
    }

    fn arrived(&self, place: u64) -> Option<Message> {
        let message =
            |sent: Option<Record>, sent_ns: fn(&Record) -> u64, taken: Record, at_ns| Message {
                id: taken.id,
                sent_ns: sent.as_ref().map(sent_ns),
                taken_ns: at_ns,
                sent_cpu: sent.map(|sent| sent.publish_cpu),
                taken_cpu: taken.take_cpu,
            };
        match &self.records {
            Records::RoundTrips(file) => {
                let record = file.at(place).filter(|record| record.take_return_ns != 0)?;
                let entry = |record: &Record| record.publish_entry_ns;
                Some(message(Some(record), entry, record, record.take_return_ns))
            }
            Records::Published(file) => {
                let record = file.at(place)?;
                let entry = |record: &Record| record.publish_entry_ns;
                let call = message(Some(record), entry, record, record.publish_return_ns);
                Some(Message { taken_cpu: record.publish_cpu, ..call })
            }
            Records::OneWay(sent, taken) => {
                let id = place * self.record_every;
                let is_it = |record: &Record| record.id == id;
                let is_taken = |record: &Record| is_it(record) && record.take_return_ns != 0;
                let record = taken.at(place).filter(is_taken)?;
                let is_sent = |sent: &Record| is_it(sent) && sent.publish_entry_ns != 0;
                let sent = sent.as_ref().and_then(|sent| sent.at(place)).filter(is_sent);
                Some(message(sent, |sent| sent.intended_ns, record, record.take_return_ns))
            }
        }
    }
}

/// The figures of a span of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub arrived: u64,
    pub lost: u64,
    pub latencies_ns: Vec<u64>,
}

impl Figures {
    pub fn see(&mut self, seen: &Seen) {
        match seen {
            Seen::Arrived(message) => {
                self.arrived += 1;
                self.latencies_ns.extend(message.latency_ns());
            }
            Seen::Lost => self.lost += 1,
            Seen::Skipped(number) => self.arrived += number,
        }
    }

    /// p50, p99 and maximum in µs. As in reports, p99 needs ten messages beyond it; the median of
    /// the span is its middle message.
    pub fn percentiles_us(&mut self) -> [Option<f64>; 3] {
        let values = &mut self.latencies_ns;
        values.sort_unstable();
        let number = values.len();
        let rank = |quantile: f64| ((quantile * number as f64).ceil() as usize).max(1) - 1;
        let at = |place: usize| values.get(place).map(|ns| *ns as f64 * 1e-3);
        let p99 = at(rank(0.99)).filter(|_| number - 1 - rank(0.99) >= BEYOND_MIN);
        [at(rank(0.5)), p99, at(number.wrapping_sub(1))]
    }
}

/// A distribution in one line, in µs.
pub fn in_a_line(of: &Distribution) -> String {
    let named = [
        ("min", Some(of.min)),
        ("p50", of.p50),
        ("p90", of.p90),
        ("p99", of.p99),
        ("p99.9", of.p999),
        ("max", Some(of.max)),
    ];
    named.map(|(name, value)| format!("{name} {}", us_or_dash(value))).join("  ")
}

/// A table that grows by a line a second.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    title: String,
    payload_bytes: u64,
    printed: u32,
}

impl Lines {
    /// Lines below a title, of messages with so many bytes.
    pub fn new(title: &str, payload_bytes: u64) -> Self {
        let title = if title.is_empty() { String::new() } else { format!("{title}\n") };
        Lines { title, payload_bytes, printed: 0 }
    }

    /// Prints the figures of `seconds` that end `at_s` after the beginning; false if nobody reads
    /// standard output any more.
    pub fn print(
        &mut self,
        at_s: f64,
        seconds: f64,
        figures: &mut Figures,
        cpu_ns: Option<u64>,
    ) -> bool {
        let mut text = String::new();
        if self.printed.is_multiple_of(HEAD_EVERY) {
            text += &self.title;
            text += "     s   messages/s      MB/s     lost   p50 µs   p99 µs   max µs  CPU %\n";
        }
        self.printed += 1;
        text += &self.line(at_s, seconds, figures, cpu_ns);
        let mut output = std::io::stdout().lock();
        output.write_all(text.as_bytes()).and_then(|()| output.flush()).is_ok()
    }

    fn line(&self, at_s: f64, seconds: f64, figures: &mut Figures, cpu_ns: Option<u64>) -> String {
        let rate = figures.arrived as f64 / seconds;
        let [p50, p99, max] = figures.percentiles_us().map(us_or_dash);
        format!(
            "{at_s:>6.0} {:>12} {:>9} {:>8} {p50:>8} {p99:>8} {max:>8} {:>6}\n",
            amount(rate),
            us(rate * self.payload_bytes as f64 * 1e-6),
            count(figures.lost),
            cpu_ns
                .map_or_else(|| WITHHELD.to_owned(), |ns| cpu_percent(ns as f64 * 1e-7 / seconds)),
        )
    }
}

/// Waits for a message whose latency exceeds a limit.
pub struct Trigger {
    limit_ns: u64,
    trace: Option<KernelTrace>,
    /// Set to end the run.
    interrupted: Arc<AtomicBool>,
    hit: Mutex<Option<String>>,
}

impl Trigger {
    /// A limit in nanoseconds; `trace` is what the kernel traces meanwhile, if it does.
    pub fn new(limit_ns: u64, trace: Option<KernelTrace>, interrupted: Arc<AtomicBool>) -> Self {
        Trigger { limit_ns, trace, interrupted, hit: Mutex::new(None) }
    }

    /// What the kernel traced.
    pub fn trace(&self) -> Option<&KernelTrace> {
        self.trace.as_ref()
    }

    /// The message that exceeded the limit, in words.
    pub fn hit(&self) -> Option<String> {
        self.hit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first message beyond the limit stops the trace and the run.
    pub(crate) fn see(&self, seen: &Seen, before: &Snapshot, processes: &[(String, u32)]) {
        let Seen::Arrived(message) = seen else { return };
        let Some(latency_ns) = message.latency_ns().filter(|it| *it > self.limit_ns) else {
            return;
        };
        let mut hit = self.hit.lock().unwrap_or_else(PoisonError::into_inner);
        if hit.is_some() {
            return;
        }
        if let Some(trace) = &self.trace {
            trace.stop();
        }
        // ORDER: Relaxed, the flag carries nothing else.
        self.interrupted.store(true, Ordering::Relaxed);
        let switches = before.involuntary_until(&Snapshot::take(processes));
        let switches: Vec<String> =
            switches.iter().map(|(name, number)| format!("{name} {number}")).collect();
        *hit = Some(in_words(message, latency_ns, self.limit_ns, &switches.join(", ")));
    }
}

fn in_words(message: &Message, latency_ns: u64, limit_ns: u64, switches: &str) -> String {
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let [latency, limit] = [latency_ns, limit_ns].map(|ns| us(ns as f64 * 1e-3));
    let sent = message.sent_ns.map_or_else(|| WITHHELD.to_owned(), seconds);
    let sent_cpu = message.sent_cpu.map_or_else(|| WITHHELD.to_owned(), |cpu| cpu.to_string());
    format!(
        "message {} took {latency} µs, more than {limit}: sent at {sent} s on CPU {sent_cpu}, taken \
         at {} s on CPU {} (CLOCK_MONOTONIC); involuntary switches since the start: {switches}",
        message.id,
        seconds(message.taken_ns),
        message.taken_cpu,
    )
}

/// A thread that looks at a run in progress.
pub(crate) struct Monitor {
    stop: Sender<()>,
    thread: JoinHandle<u64>,
}

impl Monitor {
    /// Prints a line a second if `lines` are wanted, and watches for `trigger`. `None` if nothing is
    /// to be seen (the records are on another host), or there is no memory for a thread.
    pub fn start(
        running: Running,
        lines: Option<Lines>,
        trigger: Option<Arc<Trigger>>,
    ) -> Option<Self> {
        let tail = tail_of(&running)?;
        let (stop, stopped) = mpsc::channel();
        let (ready, readiness) = mpsc::channel();
        let watch = move || {
            stay_off_real_time_cpus(running.processes.iter().map(|(_, pid)| *pid));
            // A trace has to be stopped before the kernel overwrites it.
            if trigger.is_none() {
                come_last();
            }
            let before = Snapshot::take(&running.processes);
            let _ = ready.send(());
            let watched = Watched { tail, lines, trigger, processes: running.processes, before };
            watched.watch(&stopped)
        };
        let thread = std::thread::Builder::new().name("monitor".into()).spawn(watch).ok()?;
        // Fails at once if it has panicked.
        let _ = readiness.recv();
        Some(Monitor { stop, thread })
    }

    /// Prints the rest; returns the CPU time of watching, in ns.
    pub fn stop(self) -> Option<u64> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

/// Of several publishers and subscribers the first ones.
fn tail_of(running: &Running) -> Option<Tail> {
    let sent = Arc::clone(running.pings.first()?);
    let records = match running.prepare.workload {
        Workload::Roundtrip => Records::RoundTrips(sent),
        Workload::Publish | Workload::Flood | Workload::Startup => Records::Published(sent),
        _ => Records::OneWay(Some(sent), Arc::clone(running.pongs.first()?)),
    };
    Some(Tail::new(records, running.prepare.record_every))
}

struct Watched {
    tail: Tail,
    lines: Option<Lines>,
    trigger: Option<Arc<Trigger>>,
    processes: Vec<(String, u32)>,
    before: Snapshot,
}

impl Watched {
    fn watch(mut self, stopped: &Receiver<()>) -> u64 {
        let begin_cpu_ns = thread_cpu_ns();
        let (mut begin, mut last) = (None, Instant::now());
        let (mut figures, mut cpu_before_ns) = (Figures::default(), self.cpu_ns());
        loop {
            let pause = match self.trigger {
                Some(_) => TRIGGER_PAUSE,
                None => SECOND.saturating_sub(last.elapsed()),
            };
            let is_over = stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
            let Watched { tail, trigger, before, processes, lines, .. } = &mut self;
            tail.look(|seen| {
                match lines {
                    Some(_) => figures.see(&seen),
                    None => figures.arrived += 1,
                }
                if let Some(trigger) = trigger {
                    trigger.see(&seen, before, processes);
                }
            });
            let (now, seconds) = (Instant::now(), last.elapsed().as_secs_f64());
            if begin.is_none() && figures.arrived == 0 {
                // The run warms up.
                (last, cpu_before_ns) = (now, self.cpu_ns());
            } else if last.elapsed() >= SECOND || is_over && seconds >= PART_MIN_S {
                let begin = *begin.get_or_insert(last);
                let cpu_now_ns = self.cpu_ns();
                let used_ns = cpu_now_ns.saturating_sub(cpu_before_ns);
                let at_s = (now - begin).as_secs_f64();
                let lines = self.lines.as_mut();
                let has_reader =
                    lines.is_none_or(|it| it.print(at_s, seconds, &mut figures, Some(used_ns)));
                self.lines = self.lines.filter(|_| has_reader);
                (figures, last, cpu_before_ns) = (Figures::default(), now, cpu_now_ns);
            }
            if is_over {
                return thread_cpu_ns() - begin_cpu_ns;
            }
        }
    }

    /// Of the processes whose work is the system's: a publisher stays awake before a message is due.
    fn cpu_ns(&self) -> u64 {
        let is_pong = |(name, _): &&(String, u32)| name.starts_with("pong");
        let has_pong = self.processes.iter().any(|it| is_pong(&it));
        let takes_alone = has_pong && matches!(self.tail.records, Records::OneWay(..));
        let counted = self.processes.iter().filter(|it| !takes_alone || is_pong(it));
        counted.filter_map(|(_, pid)| cpu_ns(*pid)).sum()
    }
}

/// Records read at a time.
const LOOK_MAX: u64 = 1 << 17;
/// Later messages are rare, and nobody waits for the line of a second for longer.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// Samples that must lie at or beyond a percentile.
const BEYOND_MIN: usize = 10;
const SECOND: Duration = Duration::from_secs(1);
/// The last line may be of a shorter time than a second, but not of one in which nothing can be seen.
const PART_MIN_S: f64 = 0.1;
/// Far shorter than the time that a trace holds.
const TRIGGER_PAUSE: Duration = Duration::from_millis(5);
/// Lines below a heading.
const HEAD_EVERY: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample file with records of these times: sent and taken.
    fn file(records: &[Record]) -> Arc<SampleFile> {
        let memory = tempfile::tempfile().unwrap();
        let mut file = SampleFile::create(&memory, 64).unwrap();
        for (place, record) in records.iter().enumerate() {
            *file.record(place).unwrap() = *record;
        }
        file.finish(records.len());
        Arc::new(file)
    }

    fn sent(id: u64, at_ns: u64) -> Record {
        Record { id, intended_ns: at_ns, publish_entry_ns: at_ns, publish_cpu: 1, ..taken(0, 0) }
    }

    fn taken(id: u64, at_ns: u64) -> Record {
        Record { id, take_return_ns: at_ns, take_cpu: 2, ..Record::default() }
    }

    fn look(tail: &mut Tail) -> (Figures, Vec<Message>) {
        let (mut figures, mut messages) = (Figures::default(), Vec::new());
        tail.look(|seen| {
            figures.see(&seen);
            if let Seen::Arrived(message) = seen {
                messages.push(message);
            }
        });
        (figures, messages)
    }

    #[test]
    fn a_round_trip_without_an_answer_is_lost_at_once() {
        let answered = Record { take_return_ns: 130, ..sent(0, 100) };
        let mut tail = Tail::new(Records::RoundTrips(file(&[answered, sent(1, 200)])), 1);
        let (figures, messages) = look(&mut tail);
        assert_eq!((figures.arrived, figures.lost, figures.latencies_ns), (1, 1, vec![30]));
        assert_eq!(messages[0].latency_ns(), Some(30));
        let (again, _) = look(&mut tail);
        assert_eq!((again.arrived, again.lost), (0, 0), "each is seen once");
    }

    #[test]
    fn a_message_one_way_may_arrive_later_and_those_before_the_first_do_not_count() {
        let publisher = file(&[0, 1, 2, 3].map(|id| sent(id, 100 * (id + 1))));
        let subscriber = file(&[taken(0, 0), taken(1, 207), taken(0, 0), taken(3, 450)]);
        let mut tail = Tail::new(Records::OneWay(Some(publisher), Arc::clone(&subscriber)), 1);
        let (figures, messages) = look(&mut tail);
        assert_eq!((figures.latencies_ns, figures.lost), (vec![7, 50], 0), "2 is on its way");
        assert_eq!((messages[0].sent_cpu, messages[0].taken_cpu), (Some(1), 2));
        assert_eq!(tail.missing.len(), 1);
        tail.missing[0].1 -= LOST_AFTER;
        assert_eq!(look(&mut tail).0.lost, 1);
        let publisher = file(&[0, 1, 2].map(|id| sent(id, 100 * (id + 1))));
        let overtaken = file(&[taken(0, 107), taken(0, 0), taken(2, 307), taken(0, 0)][..3]);
        let mut tail = Tail::new(Records::OneWay(Some(publisher), overtaken), 1);
        let (mut all, _) = look(&mut tail);
        tail.finish(|seen| all.see(&seen));
        assert_eq!((all.arrived, all.lost), (2, 1), "nothing more comes");
        // The other host's records cannot be read.
        let mut tail = Tail::new(Records::OneWay(None, subscriber), 1);
        let (figures, messages) = look(&mut tail);
        assert_eq!((figures.arrived, figures.latencies_ns.len()), (2, 0));
        assert_eq!((messages[0].id, messages[0].sent_ns), (1, None));
    }

    #[test]
    fn a_line_has_the_figures_of_its_span() {
        let values = |number: u64| Figures {
            arrived: number,
            lost: 3,
            latencies_ns: (1..=number).map(|value| value * 1_000).collect(),
        };
        let line = Lines::new("", 64).line(7.2, 2.0, &mut values(2_000), Some(1_000_000_000));
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["7", "1000", "0.064", "3", "1000", "1980", "2000", "50.0"], "{line}");
        assert_eq!(values(900).percentiles_us(), [Some(450.0), None, Some(900.0)]);
        assert_eq!(values(0).percentiles_us(), [None; 3]);
    }

    #[test]
    fn the_first_message_beyond_the_limit_ends_the_run_and_is_described() {
        let interrupted = Arc::new(AtomicBool::new(false));
        let trigger = Trigger::new(1_000_000, None, Arc::clone(&interrupted));
        let before = Snapshot::take(&[]);
        let message = |id, latency_ns: u64| {
            Seen::Arrived(Message {
                id,
                sent_ns: Some(5_000_000_001),
                taken_ns: 5_000_000_001 + latency_ns,
                sent_cpu: Some(0),
                taken_cpu: 1,
            })
        };
        trigger.see(&message(6, 1_000_000), &before, &[]);
        assert!(trigger.hit().is_none() && !interrupted.load(Ordering::Relaxed));
        trigger.see(&message(7, 1_830_000), &before, &[]);
        trigger.see(&message(8, 9_000_000), &before, &[]);
        assert!(interrupted.load(Ordering::Relaxed));
        let text = trigger.hit().unwrap();
        let begin = "message 7 took 1830 µs, more than 1000: sent at 5.000000001 s on CPU 0, taken \
                     at 5.001830001 s on CPU 1";
        assert!(text.starts_with(begin), "{text}");
    }
}
