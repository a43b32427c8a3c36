//! One run: daemon, pong, ping; ready, start, done, stop; two snapshots; the samples.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use myelin_bench_kit::clock;
use myelin_bench_kit::protocol::{Command, Done, Event, Prepare, Ready, Role};
use myelin_bench_kit::samples::SampleFile;

use super::child::{Child, Said, role_name, sample_memory};
use super::order::Order;
use super::tuning::{LatencyGuard, Settings};
use crate::observe::{Observation, Sampler, Snapshot};
use crate::record::RunSamples;
use crate::scenario::Tuning;

/// What a run that came to its end has yielded.
pub struct Outcome {
    /// Counts of ping.
    pub ping: Done,
    /// Counts of pong.
    pub pong: Done,
    /// What drivers remarked.
    pub notes: Vec<String>,
    /// From the start of the later process until both directions matched.
    pub startup_ms: f64,
    /// From start to done.
    pub observation: Observation,
    /// All records.
    pub samples: RunSamples,
}

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Ctrl-C or SIGTERM: the run is forgotten.
    #[error("interrupted")]
    Interrupted,
    /// The run is kept as failed.
    #[error("{0}")]
    Run(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Run(error.to_string())
    }
}

/// Executes one run. `watch` is called a few times a second with the part done, 0 to 1. When it
/// returns, no process of the run is left.
pub fn execute(order: &Order<'_>, watch: &mut dyn FnMut(f64)) -> Result<Outcome, Failure> {
    let guard = (order.tuning == Tuning::Awake).then(LatencyGuard::hold).transpose()?;
    let mut run = Run::new(order)?;
    let outcome = run.go(watch).map_err(|failure| run.explain(failure));
    let has_failed = outcome.is_err();
    drop(run);
    drop(guard);
    if has_failed {
        order.entry.clean();
    }
    outcome
}

struct Run<'a> {
    order: &'a Order<'a>,
    // Dropped in this order: the daemon goes last.
    ping: Option<Child>,
    pong: Option<Child>,
    daemon: Option<Child>,
    said: Receiver<(Role, Said)>,
    sender: Sender<(Role, Said)>,
    ready: BTreeMap<Role, Ready>,
    done: BTreeMap<Role, Done>,
    samples: BTreeMap<Role, (OwnedFd, SampleFile)>,
}

impl<'a> Run<'a> {
    fn new(order: &'a Order<'a>) -> Result<Self, Failure> {
        let (sender, said) = mpsc::channel();
        let mut samples = BTreeMap::new();
        // Who polls subscribers counts, and records nothing.
        let pongs = if order.is_publish() { 0 } else { order.capacity };
        for (role, capacity) in [(Role::Ping, order.capacity), (Role::Pong, pongs)] {
            let memory = sample_memory()?;
            let file = std::fs::File::from(memory.try_clone()?);
            let mapped = SampleFile::create(&file, capacity)
                .map_err(|error| Failure::Run(format!("sample memory: {error}")))?;
            samples.insert(role, (memory, mapped));
        }
        Ok(Run {
            order,
            ping: None,
            pong: None,
            daemon: None,
            said,
            sender,
            ready: BTreeMap::new(),
            done: BTreeMap::new(),
            samples,
        })
    }

    fn go(&mut self, watch: &mut dyn FnMut(f64)) -> Result<Outcome, Failure> {
        if self.order.entry.system.daemon {
            self.daemon = Some(self.start(Role::Daemon)?);
            self.wait_ready(Role::Daemon)?;
        }
        if !self.order.is_one_process() {
            self.pong = Some(self.start(Role::Pong)?);
        }
        let later_start_ns = clock::monotonic_ns();
        self.ping = Some(self.start(Role::Ping)?);
        if self.pong.is_some() {
            self.wait_ready(Role::Pong)?;
        }
        self.wait_ready(Role::Ping)?;
        let matched_ns = self.ready.values().map(|ready| ready.matched_ns).max().unwrap_or(0);
        let startup_ms = matched_ns.saturating_sub(later_start_ns) as f64 * 1e-6;

        let sampler = Sampler::start(self.observed());
        let before = Snapshot::take(&self.observed());
        let at_ns = clock::monotonic_ns() + START_DELAY_NS;
        self.say(Role::Pong, &Command::Start { at_ns });
        self.say(Role::Ping, &Command::Start { at_ns });
        self.wait_done(watch)?;
        let observation = before.until(&Snapshot::take(&self.observed())).with(sampler.stop());

        if self.pong.is_some() {
            self.await_goodbye()?;
            self.say(Role::Pong, &Command::Stop);
            self.collect(Role::Pong, DONE_LIMIT, "did not stop")?;
        }
        self.say(Role::Ping, &Command::Stop);
        for child in [&mut self.ping, &mut self.pong].into_iter().flatten() {
            child.wait(DONE_LIMIT);
        }
        self.stop_daemon()?;
        let mut ping = self.done.remove(&Role::Ping).unwrap_or_default();
        let pong = match ping.pong.take() {
            Some(pong) if self.order.is_one_process() => *pong,
            _ => self.done.remove(&Role::Pong).unwrap_or_default(),
        };
        Ok(Outcome {
            ping,
            pong,
            notes: self.ready.values().flat_map(|ready| ready.notes.clone()).collect(),
            startup_ms,
            observation,
            samples: RunSamples {
                ping: self.samples[&Role::Ping].1.records(),
                pong: self.samples[&Role::Pong].1.records(),
            },
        })
    }

    fn start(&self, role: Role) -> Result<Child, Failure> {
        let order = self.order;
        let memory = |role: Role| self.samples.get(&role).map(|(memory, _)| memory);
        let path = |memory: &OwnedFd| format!("/proc/self/fd/{}", memory.as_raw_fd()).into();
        // Where there is no pong, its records are ping's to write and its thread ping's to place.
        let other = if order.is_one_process() { memory(Role::Pong) } else { None };
        let pong = match order.is_one_process() {
            true => order.settings(Role::Pong),
            false => Settings::default(),
        };
        let log = order.directory.join(format!("{}.log", role_name(role)));
        let executable = &order.entry.executable;
        let own: Vec<&OwnedFd> = memory(role).into_iter().chain(other).collect();
        let settings = order.settings(role);
        let mut child =
            Child::start(executable, role, settings, &log, &own, self.sender.clone())
                .map_err(|error| Failure::Run(format!("{}: {error}", executable.display())))?;
        let prepare = Prepare {
            role,
            samples: memory(role).map(path),
            pong_samples: other.map(path),
            pong_cpu: pong.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            pong_fifo: pong.priority,
            directory: order.directory.clone(),
            ..order.prepare.clone()
        };
        child.say(&Command::Prepare(Box::new(prepare)));
        Ok(child)
    }

    fn observed(&self) -> Vec<(String, u32)> {
        let of = |child: &Option<Child>| {
            child.as_ref().map(|child| (role_name(child.role).into(), child.pid()))
        };
        let mut all: Vec<(String, u32)> =
            [of(&self.ping), of(&self.pong)].into_iter().flatten().collect();
        let daemons = self.ready.get(&Role::Daemon).into_iter().flat_map(|ready| &ready.pids);
        all.extend(daemons.map(|pid| (daemon_name(*pid), *pid)));
        all
    }

    fn child(&mut self, role: Role) -> Option<&mut Child> {
        match role {
            Role::Ping => self.ping.as_mut(),
            Role::Pong => self.pong.as_mut(),
            Role::Daemon => self.daemon.as_mut(),
        }
    }

    fn say(&mut self, role: Role, command: &Command) {
        if let Some(child) = self.child(role) {
            child.say(command);
        }
    }

    fn wait_ready(&mut self, role: Role) -> Result<(), Failure> {
        let limit = Duration::from_nanos(self.order.prepare.match_timeout_ns) + READY_SLACK;
        let deadline = Instant::now() + limit;
        while !self.ready.contains_key(&role) {
            if Instant::now() >= deadline {
                let text = format!("{} was not ready after {} s", role_name(role), limit.as_secs());
                return Err(Failure::Run(text));
            }
            self.listen()?;
        }
        Ok(())
    }

    /// Until ping is done; a ping that exchanges nothing for too long is given up.
    fn wait_done(&mut self, watch: &mut dyn FnMut(f64)) -> Result<(), Failure> {
        let prepare = &self.order.prepare;
        let period = Duration::from_secs_f64(prepare.rate_hz.map_or(0.0, |rate| 1.0 / rate));
        let answers = Duration::from_nanos(prepare.reply_timeout_ns);
        let patience = STALL_LIMIT + period * 2 + answers * LOST_LIMIT;
        let expected = Expected::new(prepare);
        let (mut exchanges, mut since) = (0, Instant::now());
        let begin = Instant::now();
        while !self.done.contains_key(&Role::Ping) {
            let now_exchanges = self.samples[&Role::Ping].1.exchanges();
            if now_exchanges != exchanges {
                (exchanges, since) = (now_exchanges, Instant::now());
            } else if since.elapsed() > patience {
                let text = format!("ping has exchanged nothing for {} s", patience.as_secs());
                return Err(Failure::Run(text));
            }
            watch(expected.part(exchanges, begin.elapsed()));
            self.listen()?;
        }
        Ok(())
    }

    /// The last thing ping publishes in a stream tells pong that it was the last. Until pong has
    /// heard it, what is on its way is not lost; but it may have been lost itself.
    fn await_goodbye(&mut self) -> Result<(), Failure> {
        let is_stream = self.order.prepare.workload.is_one_way();
        let deadline = Instant::now() + GOODBYE_LIMIT;
        while is_stream && !self.done.contains_key(&Role::Pong) && Instant::now() < deadline {
            self.listen()?;
        }
        Ok(())
    }

    fn collect(&mut self, role: Role, limit: Duration, complaint: &str) -> Result<(), Failure> {
        let deadline = Instant::now() + limit;
        while !self.done.contains_key(&role) {
            if Instant::now() >= deadline {
                return Err(Failure::Run(format!("{} {complaint}", role_name(role))));
            }
            self.listen()?;
        }
        Ok(())
    }

    fn stop_daemon(&mut self) -> Result<(), Failure> {
        if self.daemon.is_none() {
            return Ok(());
        }
        self.say(Role::Daemon, &Command::Stop);
        self.collect(Role::Daemon, DAEMON_LIMIT, "did not stop")?;
        if let Some(daemon) = &mut self.daemon {
            daemon.wait(DONE_LIMIT);
        }
        Ok(())
    }

    /// Takes in what a driver says next, or returns after a while.
    fn listen(&mut self) -> Result<(), Failure> {
        if self.order.interrupted.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        match self.said.recv_timeout(TICK) {
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
            Ok((role, said)) => self.hear(role, said),
        }
    }

    fn hear(&mut self, role: Role, said: Said) -> Result<(), Failure> {
        let who = role_name(role);
        match said {
            Said::Event(Event::Ready(ready)) => {
                self.ready.insert(role, ready);
            }
            Said::Event(Event::Done(done)) => {
                self.done.insert(role, done);
            }
            Said::Event(Event::Error { message, remedy, .. }) => {
                let remedy = if remedy.is_empty() { remedy } else { format!("; {remedy}") };
                return Err(Failure::Run(format!("{who}: {message}{remedy}")));
            }
            Said::Nonsense(line) => {
                return Err(Failure::Run(format!("{who} does not speak the protocol: {line}")));
            }
            Said::Closed if self.done.contains_key(&role) => {}
            Said::Closed => {
                let ending = self.child(role).map(Child::ending).unwrap_or_default();
                return Err(Failure::Run(format!("{who} {ending}")));
            }
        }
        Ok(())
    }

    /// Adds to a failure what the other processes say in the next moment: a dead daemon takes its
    /// clients with it, and the first to complain need not be the first to die.
    fn explain(&mut self, failure: Failure) -> Failure {
        let Failure::Run(first) = failure else {
            return failure;
        };
        let mut reasons = vec![first];
        let deadline = Instant::now() + EXPLAIN_TIME;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            let Ok((role, said)) = self.said.recv_timeout(left) else {
                break;
            };
            match self.hear(role, said) {
                Err(Failure::Run(reason)) if !reasons.contains(&reason) => reasons.push(reason),
                _ => {}
            }
        }
        reasons.sort_by_key(|reason| !reason.starts_with("daemon"));
        Failure::Run(reasons.join(" | "))
    }
}

/// How far a run is.
struct Expected {
    exchanges: Option<u64>,
    duration: Option<Duration>,
}

impl Expected {
    fn new(prepare: &Prepare) -> Self {
        let exchanges = prepare.warmup_messages + prepare.messages;
        Expected {
            exchanges: (prepare.messages > 0).then_some(exchanges),
            duration: (prepare.duration_ns > 0).then(|| Duration::from_nanos(prepare.duration_ns)),
        }
    }

    fn part(&self, exchanges: u64, elapsed: Duration) -> f64 {
        let by_count = self.exchanges.map_or(0.0, |all| exchanges as f64 / all as f64);
        let by_time = self.duration.map_or(0.0, |all| elapsed.as_secs_f64() / all.as_secs_f64());
        by_count.max(by_time).min(1.0)
    }
}

fn daemon_name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "daemon".into(), |name| name.trim().into())
}

/// How often the lab looks around while a run lasts. Each look costs the run a wake-up.
const TICK: Duration = Duration::from_millis(250);
/// Between the command and the first message, so that both have read theirs.
const START_DELAY_NS: u64 = 2_000_000;
/// What opening may take beyond the time limit for matching.
const READY_SLACK: Duration = Duration::from_secs(5);
/// Without an exchange for so long, beyond what lost answers take, ping is given up.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// As many answers in a row may be lost before ping gives up itself.
const LOST_LIMIT: u32 = myelin_bench_kit::pingpong::LOST_IN_A_ROW_MAX + 1;
/// How long a stream's last message may take to be heard.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
const DONE_LIMIT: Duration = Duration::from_secs(2);
const DAEMON_LIMIT: Duration = Duration::from_secs(10);
const EXPLAIN_TIME: Duration = Duration::from_millis(300);
