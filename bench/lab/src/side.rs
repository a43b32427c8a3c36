//! One side of a stream, started by hand: `myelin bench pub` and `myelin bench sub`, in two terminals
//! or on two hosts. The drivers and their protocol are those of every run; what the lab would tell
//! both is agreed on in a [`rendezvous`], or given as options on both hosts.
//!
//! ```text
//! myelin bench pub ──▶ driver (ping) ── messages ──▶ driver (pong) ◀── myelin bench sub
//!        └──────── offer: settings, and where its records are ─────────────▲
//! ```
//! The subscriber's lab reads the publisher's records in memory. So it knows when each message was
//! sent, on the one clock of a host; on another host it does not, and says so.

mod rendezvous;

use std::fmt;
use std::net::{IpAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use myelin_bench_kit::protocol::{
    Arrivals, Command, DEPTH_DEFAULT, Done, Event, Network, PORTS, PROTOCOL, Prepare, Ready,
    Reliability, Role, System, Topology, Touch, Workload,
};
use myelin_bench_kit::samples::SampleFile;

use crate::ftrace::KernelTrace;
use crate::host::{Host, LocalHost, ProcessId, ProcessMessage, ProcessSpec, RunOnHost};
use crate::input_error::InputError;
use crate::live::{Figures, Lines, Records, Seen, Tail, Trigger, in_a_line};
use crate::observe::sampler::stay_off_real_time_cpus;
use crate::observe::{Snapshot, cpu_ns};
use crate::registry::{Registry, SystemDriver};
use crate::report::format::{amount, count, cpu_percent, plural, us};
use crate::root::Root;
use crate::scenario::{Tuning, TuningChoice};
use crate::stderr::print_line;
use crate::summary::Distribution;
use crate::tuning::{self, Cpus, Settings};
use rendezvous::{Offer, Rendezvous};

/// What to run.
#[derive(Clone, Debug)]
pub struct Side {
    /// [`Role::Ping`] publishes, [`Role::Pong`] subscribes.
    pub role: Role,
    /// The name of the system.
    pub system: String,
    /// Name of the topic, which sets it apart from others of this host and network.
    pub topic: String,
    /// What both sides must agree on.
    pub terms: Terms,
    /// Messages a second; only of a publisher.
    pub rate_hz: f64,
    /// When to end; `None`: with Ctrl-C, or a subscriber with its publisher.
    pub duration: Option<Duration>,
    /// The preparation for low latency.
    pub tuning: Tuning,
    /// The CPU of `tuned`.
    pub cpu: Option<usize>,
    /// Address of the other host.
    pub peer: Option<IpAddr>,
    /// A longer latency in nanoseconds ends it; only of a subscriber.
    pub trace_on_ns: Option<u64>,
}

/// What both sides must agree on; what is absent is as the other side has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// Bytes of payload.
    pub payload_bytes: Option<u64>,
    /// Subscribers of the topic.
    pub subscribers: Option<u32>,
    /// Which of them this is, from 0.
    pub index: Option<u32>,
    /// What happens to a message for which there is no room.
    pub reliability: Option<Reliability>,
    /// Messages kept for a slow subscriber.
    pub depth: Option<u32>,
}

/// How a side ended.
pub struct Ended {
    /// Its figures, in words.
    pub summary: String,
    /// The limit, and the message that exceeded it, if one did.
    pub trigger: Option<Arc<Trigger>>,
    /// Why it ended before its time: the driver's reason.
    pub failure: Option<String>,
}

/// Runs a side until its time is over, the publisher ends the stream, or `interrupted` is set. Prints a line a
/// second. `None` if it was set before the other side came.
///
/// # Errors
/// Options that do not fit the system or the other side.
pub fn run(side: &Side, interrupted: Arc<AtomicBool>) -> Result<Option<Ended>> {
    let entry = entry(side)?;
    let network = side.peer.map(|peer| network(peer, &side.topic)).transpose()?;
    let mut meeting = Rendezvous::enter(side, &entry.system)?;
    let offer = meeting.offer().clone();
    let prepare = prepare(side, &entry.system, &offer, network, meeting.folder().into());
    entry.check(&prepare).map_err(|reason| {
        InputError::new(format!("{}: {}", side.system, reason.message)).remedy(reason.remedy)
    })?;
    let trigger = side.trace_on_ns.map(|limit_ns| {
        let trace = KernelTrace::start(&Root::machine());
        if let Err(missing) = &trace {
            print_line(format_args!("note: the kernel traces nothing: {missing}"));
        }
        Arc::new(Trigger::new(limit_ns, trace.ok(), Arc::clone(&interrupted)))
    });
    let id = ProcessId { role: side.role, index: offer.index, is_load: false };
    let mut driver = Driver::start(&entry, id, prepare, settings(side, &entry.system)?)?;
    meeting.publish_records(driver.host.records_path(id))?;
    let other = if side.role == Role::Ping { "sub" } else { "pub" };
    let (system, topic) = (&side.system, &side.topic);
    print_line(format_args!(
        "{}, topic {topic}, {offer}: waiting for `myelin bench {other} {system} --topic {topic}`",
        side.system
    ));
    if !driver.wait_ready(&interrupted)? {
        return Ok(None);
    }
    meeting.agree()?;
    let running = Running { side, offer, meeting, interrupted, trigger };
    running.measure(driver).map(Some)
}

/// The driver of the system; an error if it cannot be run by hand.
fn entry(side: &Side) -> Result<SystemDriver, InputError> {
    let found = Registry::discover().matching(std::slice::from_ref(&side.system))?;
    let [entry] = &found[..] else {
        let number = found.len();
        return Err(InputError::new(format!("{}: {number} systems match", side.system))
            .remedy("name one: `myelin bench list systems`"));
    };
    let system = &entry.system;
    let refuse = |why: String| Err(InputError::new(format!("{}: {why}", system.name)));
    let by_ping = "`myelin bench ping --one-way` runs both sides";
    if let Some(missing) = &system.missing {
        return refuse(missing.clone());
    }
    if system.topology != Topology::TwoProcesses {
        return refuse("both ends are in one process".into()).map_err(|it| it.remedy(by_ping));
    }
    if !system.workloads.contains(&Workload::Stream) {
        return refuse("its driver has no messages one way".into());
    }
    if system.daemon {
        let why = "its daemon belongs to a run of both sides";
        return refuse(why.into()).map_err(|it| it.remedy(by_ping));
    }
    if side.peer.is_some() && !system.across_hosts {
        return refuse("--peer: its two sides must be on one host".into());
    }
    Ok(entry.clone())
}

/// This host's view of the network to `peer`.
fn network(peer: IpAddr, topic: &str) -> Result<Network> {
    let any: IpAddr = if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    // Nothing is sent: the kernel only looks for the way.
    let own = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((peer, 9))?;
        socket.local_addr()
    });
    let own = own.map_err(|error| {
        InputError::new(format!("--peer {peer}: {error}"))
            .remedy("name an address of the other host")
    })?;
    let all = if_addrs::get_if_addrs().context("the network interfaces cannot be listed")?;
    let interface = all.into_iter().find(|it| it.ip() == own.ip());
    let interface = interface.with_context(|| format!("no interface has {}", own.ip()))?;
    Ok(Network { interface: interface.name, own: own.ip(), peer, port: port_of(topic) })
}

/// The first port of a topic, the same on both hosts. Different topics may have the same one.
fn port_of(topic: &str) -> u16 {
    let sum: u32 = topic.bytes().map(u32::from).sum();
    FIRST_PORT + PORTS * (sum % TOPICS_OF_PORTS) as u16
}

fn settings(side: &Side, system: &System) -> Result<Settings> {
    if side.tuning == Tuning::Default {
        return Ok(Settings::default());
    }
    let (ping_cpu, pong_cpu) =
        if side.role == Role::Ping { (side.cpu, None) } else { (None, side.cpu) };
    let choice = TuningChoice { ping_cpu, pong_cpu, ..TuningChoice::default() };
    if let Some(reason) = tuning::unavailable(side.tuning, &choice) {
        return Err(InputError::new(format!("--tuning {}: {reason}", side.tuning)).into());
    }
    let cpus = Cpus::choose(&choice)?;
    Ok(Settings::of(side.tuning, side.role, system.wait, Some(cpus), choice.priority))
}

fn prepare(
    side: &Side,
    system: &System,
    offer: &Offer,
    network: Option<Network>,
    directory: PathBuf,
) -> Prepare {
    Prepare {
        protocol: PROTOCOL,
        system: system.name.clone(),
        role: side.role,
        run: format!("myelin-hand-{}", side.topic),
        domain: DOMAIN,
        payload_bytes: offer.payload_bytes,
        messages: 0,
        duration_ns: match side.role {
            Role::Ping => side.duration.map_or(0, |time| time.as_nanos() as u64),
            _ => 0,
        },
        warmup_messages: 0,
        warmup_ns: 0,
        rate_hz: Some(side.rate_hz),
        reply_timeout_ns: 1_000_000_000,
        match_timeout_ns: MATCH_TIMEOUT_NS,
        record_every: 1,
        parts_every: 1,
        samples: None,
        ring: true,
        directory,
        lock_memory: side.tuning != Tuning::Default,
        seed: 0,
        workload: Workload::Stream,
        touch: Touch::Stamps,
        arrivals: Arrivals::default(),
        frame: None,
        recording: None,
        pong_samples: None,
        pong_cpu: None,
        pong_fifo: None,
        subscribers: offer.subscribers,
        publishers: 1,
        index: offer.index,
        topics: 1,
        reliability: offer.reliability,
        depth: offer.depth,
        taken_counter: None,
        network,
        identity: None,
        enclave: None,
        options: serde_json::Map::new(),
    }
}

/// The driver's process. Dropping it ends it.
struct Driver {
    host: LocalHost,
    messages: Receiver<ProcessMessage>,
    log: PathBuf,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.host.end();
        let _ = std::fs::remove_file(&self.log);
    }
}

impl Driver {
    fn start(
        entry: &SystemDriver,
        id: ProcessId,
        prepare: Prepare,
        settings: Settings,
    ) -> Result<Self> {
        let mut host = LocalHost::default();
        host.clean(&entry.executable);
        let (sender, messages) = mpsc::channel();
        let directory = prepare.directory.clone();
        let run = RunOnHost {
            run: prepare.run.clone(),
            directory: directory.clone(),
            awake: false,
            interface: "lo".into(),
        };
        let spec = ProcessSpec {
            id,
            executable: entry.executable.clone(),
            settings,
            capacity: Some(RING_RECORDS),
            pong_capacity: None,
            reads_taken_counter: false,
            prepare,
        };
        let begun = host.begin(&run, sender).and_then(|()| host.start(spec));
        begun.map_err(anyhow::Error::msg)?;
        Ok(Driver { host, messages, log: directory.join(format!("{id}.log")) })
    }

    fn file(&self) -> Result<Arc<SampleFile>> {
        let (_, file) = self.host.files().pop().context("the driver has no sample memory")?;
        Ok(file)
    }

    fn processes(&self) -> Vec<(String, u32)> {
        self.host.processes(&[])
    }

    /// Waits until the other side has come; false if a signal came first.
    fn wait_ready(&mut self, interrupted: &AtomicBool) -> Result<bool> {
        loop {
            // ORDER: Relaxed, the flag carries nothing else.
            if interrupted.load(Ordering::Relaxed) {
                return Ok(false);
            }
            match self.next(TICK)? {
                Some(Event::Ready(Ready { notes, .. })) => {
                    notes.iter().for_each(|note| print_line(format_args!("note: {note}")));
                    return Ok(true);
                }
                Some(Event::Done(_)) => bail!("the driver ended before it began"),
                _ => {}
            }
        }
    }

    /// The next event of the driver; an error if it has failed or ended.
    fn next(&mut self, limit: Duration) -> Result<Option<Event>> {
        match self.messages.recv_timeout(limit) {
            Ok(ProcessMessage::Event(_, Event::Error(reason))) => match reason.remedy.is_empty() {
                true => bail!("{}", reason.message),
                false => bail!("{}; {}", reason.message, reason.remedy),
            },
            Ok(ProcessMessage::Event(_, event)) => Ok(Some(event)),
            Ok(ProcessMessage::Nonsense(_, line)) => {
                bail!("the driver does not follow the protocol: {line}")
            }
            Ok(ProcessMessage::Gone(reason)) => bail!(reason),
            Ok(ProcessMessage::Closed(id)) => {
                let ending = self.host.ended(id, END_LIMIT).ok().flatten();
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                let last = log.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                bail!("the driver {}: {last}", ending.as_deref().unwrap_or("closed its output"))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the driver has ended"),
        }
    }
}

/// A side whose other side has come.
struct Running<'a> {
    side: &'a Side,
    offer: Offer,
    meeting: Rendezvous,
    interrupted: Arc<AtomicBool>,
    trigger: Option<Arc<Trigger>>,
}

impl Running<'_> {
    fn measure(mut self, mut driver: Driver) -> Result<Ended> {
        let processes = driver.processes();
        stay_off_real_time_cpus(processes.iter().map(|(_, pid)| *pid));
        let before = Snapshot::take(&processes);
        let is_publisher = self.side.role == Role::Ping;
        let delay = if is_publisher { PUBLISHER_DELAY } else { Duration::ZERO };
        driver.host.go(&[self.side.role], delay).map_err(anyhow::Error::msg)?;
        let mut all = Whole::new();
        let mut tail = self.tail(driver.file()?);
        let mut lines = Lines::new("", self.offer.payload_bytes);
        let pid = processes.first().map_or(0, |(_, pid)| *pid);
        // A publisher stays awake before a message is due, which is no cost of the system.
        let cpu = || (!is_publisher).then(|| cpu_ns(pid)).flatten();
        let (begin, mut last, mut cpu_before_ns) = (Instant::now(), Instant::now(), cpu());
        let (mut figures, mut done, mut failure) = (Figures::default(), None, None);
        let (mut ending, mut alone): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            match driver.next(if self.trigger.is_some() { TRIGGER_TICK } else { TICK }) {
                Ok(Some(Event::Done(counts))) => done = Some(counts),
                Ok(_) => {}
                Err(error) => failure = Some(format!("{error:#}")),
            }
            if let Some(records) = self.records(&driver) {
                tail.follow(records);
            }
            let mut is_silent = true;
            tail.look(|seen| {
                is_silent = false;
                figures.see(&seen);
                all.see(&seen);
                if let Some(trigger) = &self.trigger {
                    trigger.see(&seen, &before, &processes);
                }
            });
            let is_over = done.is_some() || failure.is_some();
            let seconds = last.elapsed().as_secs_f64();
            if seconds >= 1.0 || is_over && seconds >= PART_MIN_S && figures.arrived > 0 {
                let cpu_now_ns = cpu();
                let used = cpu_now_ns.zip(cpu_before_ns).map(|(now, before)| now - before);
                let at_s = begin.elapsed().as_secs_f64();
                let has_reader = lines.print(at_s, seconds, &mut figures, used);
                if !has_reader {
                    self.interrupted.store(true, Ordering::Relaxed);
                }
                (figures, last, cpu_before_ns) = (Figures::default(), Instant::now(), cpu_now_ns);
            }
            if is_over {
                break;
            }
            // The last message says that it is the last, but may be lost like any other, and a killed
            // publisher sends none.
            let is_alone = !is_publisher && is_silent && self.meeting.has_lost_publisher();
            alone = alone.filter(|_| is_alone).or(is_alone.then(Instant::now));
            let is_left = alone.is_some_and(|since| since.elapsed() > LEFT_LIMIT);
            if ending.is_none() && (is_left || self.has_to_end(begin)) {
                driver.host.send(self.side.role, &Command::Stop).map_err(anyhow::Error::msg)?;
                ending = Some(Instant::now());
            }
            if ending.is_some_and(|since| since.elapsed() > STOP_LIMIT) {
                failure = Some(format!("the driver did not stop within {STOP_LIMIT:?}"));
            }
        }
        tail.finish(|seen| all.see(&seen));
        let summary = self.summary(&all, done.as_ref());
        Ok(Ended { summary, trigger: self.trigger.take(), failure })
    }

    fn has_to_end(&self, begin: Instant) -> bool {
        // A publisher's driver ends by itself.
        let limit = self.side.duration.filter(|_| self.side.role == Role::Pong);
        // ORDER: Relaxed, the flag carries nothing else.
        self.interrupted.load(Ordering::Relaxed)
            || limit.is_some_and(|limit| begin.elapsed() >= limit)
    }

    fn tail(&self, own: Arc<SampleFile>) -> Tail {
        let records = match self.side.role {
            Role::Ping => Records::Published(own),
            _ => Records::OneWay(None, own),
        };
        Tail::new(records, 1)
    }

    /// A subscriber's records with the publisher's, once that has said where they are.
    fn records(&mut self, driver: &Driver) -> Option<Records> {
        if self.side.role == Role::Ping {
            return None;
        }
        let sent = self.meeting.publishers_records()?;
        Some(Records::OneWay(Some(sent), driver.file().ok()?))
    }

    /// The figures of the whole, from its first message to its last.
    fn summary(&self, all: &Whole, done: Option<&Done>) -> String {
        let is_publisher = self.side.role == Role::Ping;
        let what = if is_publisher { "publish call" } else { "one way" };
        let number = done.map_or(all.arrived, |it| it.sent.max(it.received));
        let seconds = all.span_ns.map_or(0.0, |(first, last)| (last - first) as f64 * 1e-9);
        let rate = if seconds > 0.0 { number.saturating_sub(1) as f64 / seconds } else { 0.0 };
        let mut text = format!(
            "{}, topic {}, {}: {} in {seconds:.2} s, {} a second, {} MB/s",
            self.side.system,
            self.side.topic,
            self.offer,
            plural(number as usize, "message"),
            amount(rate),
            us(rate * self.offer.payload_bytes as f64 * 1e-6),
        );
        if let (Role::Pong, Some(done)) = (self.side.role, done) {
            text += &format!(
                "\nlost {}, duplicates {}, out of order {}, damaged {}",
                count(all.lost),
                count(done.duplicates),
                count(done.out_of_order),
                count(done.corrupt)
            );
        }
        text += &format!("\n{what} in µs: {}", all.latencies());
        if let Some(cpu_ns) = done.and_then(|done| done.cpu_ns).filter(|_| seconds > 0.0) {
            text += &format!(
                "\nCPU {} %, {} µs a message",
                cpu_percent(100.0 * cpu_ns as f64 * 1e-9 / seconds),
                us(cpu_ns as f64 * 1e-3 / (number as f64).max(1.0))
            );
        }
        text + "\n"
    }
}

/// The figures of all messages.
struct Whole {
    arrived: u64,
    lost: u64,
    latencies_ns: Histogram<u64>,
    /// When the first message was taken, or its call returned, and the last one.
    span_ns: Option<(u64, u64)>,
}

impl Whole {
    fn new() -> Self {
        let latencies_ns = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("valid bounds");
        Whole { arrived: 0, lost: 0, latencies_ns, span_ns: None }
    }

    fn see(&mut self, seen: &Seen) {
        match seen {
            Seen::Arrived(message) => {
                self.arrived += 1;
                let at_ns = message.taken_ns;
                let (first, last) = self.span_ns.unwrap_or((at_ns, at_ns));
                self.span_ns = Some((first.min(at_ns), last.max(at_ns)));
                if let Some(latency_ns) = message.latency_ns() {
                    self.latencies_ns.saturating_record(latency_ns);
                }
            }
            Seen::Lost => self.lost += 1,
            Seen::Skipped(number) => self.arrived += number,
        }
    }

    /// As in reports, a percentile needs ten messages beyond it, and a lost one is infinitely late.
    fn latencies(&self) -> String {
        let histogram = &self.latencies_ns;
        if histogram.is_empty() {
            return "not measured: the records of the publisher cannot be read here, for instance \
                    because it is on another host, whose clock is another"
                .into();
        }
        let (number, lost) = (histogram.len(), self.lost);
        let at = |quantile: f64| {
            let rank = (quantile * (number + lost) as f64).ceil();
            match (number + lost) as f64 - rank {
                beyond if beyond < BEYOND_MIN => None,
                _ if rank > number as f64 => Some(f64::INFINITY),
                _ => Some(histogram.value_at_quantile(rank / number as f64) as f64 * 1e-3),
            }
        };
        let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(at);
        let [min, max] = [histogram.min(), histogram.max()].map(|ns| ns as f64 * 1e-3);
        in_a_line(&Distribution { min, mean: histogram.mean() * 1e-3, p50, p90, p99, p999, max })
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, reliability) = (self.payload_bytes, self.reliability.name());
        write!(f, "{size} B, {reliability}, depth {}", self.depth)?;
        if self.subscribers > 1 {
            write!(f, ", {} subscribers", self.subscribers)?;
        }
        Ok(())
    }
}

/// The depth if neither side names one.
const DEPTH: u32 = DEPTH_DEFAULT;
/// Below the ports of sessions, which begin at 21,000.
const FIRST_PORT: u16 = 20_000;
const TOPICS_OF_PORTS: u32 = 60;
/// Above the domains of sessions, which are chosen at random.
const DOMAIN: u32 = 230;
/// A day: the other side comes when somebody starts it.
const MATCH_TIMEOUT_NS: u64 = 86_400_000_000_000;
/// Records of the last messages, 32 MB: more than arrive between two looks.
const RING_RECORDS: u64 = 1 << 19;
/// So that the subscriber's lab has started it, too.
const PUBLISHER_DELAY: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_millis(100);
/// Far shorter than the time that a trace holds.
const TRIGGER_TICK: Duration = Duration::from_millis(5);
/// How long a subscriber without a publisher waits for a message, or for another publisher.
const LEFT_LIMIT: Duration = Duration::from_secs(1);
const STOP_LIMIT: Duration = Duration::from_secs(5);
const END_LIMIT: Duration = Duration::from_millis(500);
const PART_MIN_S: f64 = 0.1;
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Messages that must lie beyond a percentile.
const BEYOND_MIN: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Message;

    fn whole(latencies_ns: impl Iterator<Item = u64>, lost: u64) -> Whole {
        let mut all = Whole::new();
        for latency_ns in latencies_ns {
            all.see(&Seen::Arrived(Message {
                id: 0,
                sent_ns: Some(0),
                taken_ns: latency_ns,
                sent_cpu: None,
                taken_cpu: 0,
            }));
        }
        (0..lost).for_each(|_| all.see(&Seen::Lost));
        all
    }

    #[test]
    fn percentiles_need_ten_messages_beyond_them_and_lost_ones_are_infinitely_late() {
        let text = whole((1..=1000).map(|us| us * 1_000), 0).latencies();
        assert!(
            text.starts_with("min 1.00  p50 500  p90 900  p99 990  p99.9 –  max 1000"),
            "{text}"
        );
        let text = whole((1..=980).map(|us| us * 1_000), 20).latencies();
        assert!(text.contains("p90 900  p99 ∞"), "{text}");
        assert!(whole([].into_iter(), 5).latencies().starts_with("not measured"));
    }

    #[test]
    fn the_way_to_a_peer_has_an_interface() {
        let network = network("127.0.0.1".parse().unwrap(), "hand").unwrap();
        assert_eq!((&*network.interface, network.own), ("lo", [127, 0, 0, 1].into()));
        assert_eq!(network.port, port_of("hand"), "both hosts have the same one");
        assert!(port_of("zzzzzzzz") < 21_000);
    }
}
