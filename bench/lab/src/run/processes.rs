//! The processes of a run and their messages: daemons, clocks, pongs, pings, on one host or two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use myelin_bench_kit::Reason;
use myelin_bench_kit::protocol::{
    ClockDiscipline, Command, Done, Event, Exchange, Prepare, Ready, Role, Workload,
};
use myelin_bench_kit::samples::{Record, SampleFile};

use super::Failure;
use super::RunSpec;
use super::Running;
use super::identities::Identities;
use crate::host::{Host, ProcessId, ProcessMessage, ProcessSpec, RunOnHost};
use crate::lists::distinct;
use crate::observe::Observation;
use crate::scenario::Tuning;
use crate::tuning::Settings;

/// All processes of a run. Dropping it ends them all.
pub(super) struct Processes<'a, 'h> {
    spec: &'a RunSpec<'a>,
    /// One host for all processes; or ping's host, then pong's.
    hosts: &'a mut [&'h mut dyn Host],
    /// In the order of their start.
    started: Vec<ProcessId>,
    messages: Receiver<ProcessMessage>,
    ready: BTreeMap<ProcessId, Ready>,
    done: BTreeMap<ProcessId, Done>,
    /// Whether pings were told to end early; an interruption changes nothing more then.
    is_ending: bool,
    /// For a secure system.
    identities: Option<Identities>,
}

impl Drop for Processes<'_, '_> {
    fn drop(&mut self) {
        self.hosts.iter_mut().rev().for_each(|host| host.end());
    }
}

impl<'a, 'h> Processes<'a, 'h> {
    pub(super) fn new(
        spec: &'a RunSpec<'a>,
        hosts: &'a mut [&'h mut dyn Host],
    ) -> Result<Self, Failure> {
        let (sender, messages) = mpsc::channel();
        let (started, ready, done, is_ending) = Default::default();
        let identities = spec.entry.system.secure.then(Identities::make).transpose()?;
        let processes =
            Processes { spec, hosts, started, messages, ready, done, is_ending, identities };
        for (side, host) in processes.hosts.iter_mut().enumerate() {
            let begin = RunOnHost {
                run: spec.prepare.run.clone(),
                directory: spec.directory.clone(),
                awake: spec.tuning == Tuning::Awake,
                interface: spec.interface(side).to_owned(),
            };
            host.begin(&begin, sender.clone())?;
        }
        Ok(processes)
    }

    fn side_of(&self, id: ProcessId) -> usize {
        match (self.hosts.len(), id.role) {
            (1, _) | (_, Role::Ping) => 0,
            (_, Role::Pong) => 1,
            (_, Role::Daemon | Role::Clock) => id.index as usize,
        }
    }

    /// Starts the process `id` and sends it its order. Returns the time of the start, in ns of its
    /// host's CLOCK_MONOTONIC.
    pub(super) fn start(&mut self, id: ProcessId) -> Result<u64, Failure> {
        let spec = self.spec;
        let side = self.side_of(id);
        // Without a pong process, ping writes pong's records and places pong's thread.
        let (pong_capacity, pong) = if spec.is_one_process() {
            let pong = ProcessId::first(Role::Pong);
            (Some(spec.capacity_of(pong)), spec.settings(pong))
        } else {
            (None, Settings::default())
        };
        let order = spec.prepare_of(id);
        let looks = matches!(order.workload, Workload::Flood | Workload::Startup);
        let measures = matches!(id.role, Role::Ping | Role::Pong);
        let prepare = Prepare {
            role: id.role,
            index: id.index,
            pong_cpu: pong.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            pong_fifo: pong.priority,
            network: spec.network_of(id, side),
            identity: self.identities.as_ref().and_then(|identities| identities.of(id.role)),
            ..order.clone()
        };
        let begin_ns = self.hosts[side].start(ProcessSpec {
            id,
            executable: spec.entry.executable.clone(),
            settings: spec.settings(id),
            capacity: measures.then(|| spec.capacity_of(id)),
            pong_capacity: pong_capacity.filter(|_| id.role == Role::Ping),
            reads_taken_counter: looks && id.role == Role::Ping,
            prepare,
        })?;
        self.started.push(id);
        Ok(begin_ns)
    }

    /// Begins to observe the measuring processes and the daemons.
    pub(super) fn observe(&mut self) -> Result<(), Failure> {
        let daemons = (0..self.hosts.len()).map(|side| self.daemons(side)).collect::<Vec<_>>();
        for_all(self.hosts, |side, host| host.observe(&daemons[side]))?;
        Ok(())
    }

    /// What was observed since, on all hosts.
    pub(super) fn observed(&mut self) -> Result<Observation, Failure> {
        let mut seen = for_all(self.hosts, |_, host| host.observed())?;
        let pong = (seen.len() > 1).then(|| seen.pop()).flatten();
        let ping = seen.pop().unwrap_or_default();
        Ok(match (pong, &self.spec.across) {
            (Some(pong), Some(across)) => {
                ping.and_on(pong, &across.names, &across.network[0].interface, across.one_machine)
            }
            _ => ping,
        })
    }

    fn daemons(&self, side: usize) -> Vec<u32> {
        let is_daemon = |id: &ProcessId| id.role == Role::Daemon && self.side_of(*id) == side;
        let daemons = self.ready.iter().filter(|(id, _)| is_daemon(id));
        daemons.flat_map(|(_, ready)| &ready.pids).copied().collect()
    }

    pub(super) fn ready(&self) -> &BTreeMap<ProcessId, Ready> {
        &self.ready
    }

    /// Sum of the counts of all measuring processes of `role`, or of those of the load; a missing
    /// count is 0.
    pub(super) fn counts(&self, role: Role, is_load: bool) -> Done {
        let mut all = Done::default();
        let is_of = |id: &ProcessId| id.role == role && id.is_load == is_load;
        for (_, done) in self.done.iter().filter(|(id, _)| is_of(id)) {
            add(&mut all, done);
        }
        all
    }

    pub(super) fn clock_exchanges(&self) -> Vec<Exchange> {
        let clocks = self.done.iter().filter(|(id, _)| id.role == Role::Clock);
        clocks.flat_map(|(_, done)| &done.exchanges).copied().collect()
    }

    /// How the clocks of ping's host and pong's host were synchronised.
    pub(super) fn clock_discipline(&self) -> Vec<[ClockDiscipline; 2]> {
        let of = |id: &ProcessId| id.role == Role::Clock;
        let mut sides = self.done.iter().filter(|(id, _)| of(id)).map(|(_, done)| done);
        let (Some(ping), Some(pong)) = (sides.next(), sides.next()) else {
            return Vec::new();
        };
        let both = ping.clock_discipline.iter().zip(&pong.clock_discipline);
        both.map(|(ping, pong)| [ping.clone(), pong.clone()]).collect()
    }

    /// The remarks of the processes for the report, without repetitions.
    pub(super) fn notes(&self) -> Vec<String> {
        let at_start = self.ready.values().flat_map(|ready| &ready.notes);
        let at_end = self.done.values().flat_map(|done| &done.notes);
        distinct(at_start.chain(at_end).cloned())
    }

    fn files(&self, role: Role, is_load: bool) -> impl Iterator<Item = Arc<SampleFile>> {
        let files = self.hosts.iter().flat_map(|host| host.files());
        let is_of = move |id: &ProcessId| id.role == role && id.is_load == is_load;
        files.filter(move |(id, _)| is_of(id)).map(|(_, file)| file)
    }

    /// The records of these processes, one after the other.
    pub(super) fn records(
        &mut self,
        ids: impl IntoIterator<Item = ProcessId>,
    ) -> Result<Vec<Record>, Failure> {
        let mut records = Vec::new();
        for id in ids {
            let side = self.side_of(id);
            records.append(&mut self.hosts[side].records(id)?);
        }
        Ok(records)
    }

    /// Messages that the measuring pings, or that of the load, have exchanged so far.
    pub(super) fn exchanges(&self, is_load: bool) -> u64 {
        self.files(Role::Ping, is_load).map(|file| file.exchanges()).sum()
    }

    /// The view of the run for an observer.
    pub(super) fn running(&self) -> Running {
        let processes = (self.hosts.iter().enumerate())
            .flat_map(|(side, host)| host.processes(&self.daemons(side)))
            .collect();
        Running {
            prepare: Prepare { network: self.spec.network(0), ..self.spec.prepare.clone() },
            pings: self.files(Role::Ping, false).collect(),
            pongs: self.files(Role::Pong, false).collect(),
            processes,
        }
    }

    pub(super) fn send(&mut self, role: Role, command: &Command) -> Result<(), Failure> {
        Ok(self.hosts.iter_mut().try_for_each(|host| host.send(role, command))?)
    }

    /// Tells all processes of `roles` to start after `delay`. Returns that time on the first host's
    /// clock. Pong's host comes first, so that pong knows before ping starts.
    pub(super) fn go(&mut self, roles: &[Role], delay: Duration) -> Result<u64, Failure> {
        let mut at_ns = 0;
        for host in self.hosts.iter_mut().rev() {
            at_ns = host.go(roles, delay)?;
        }
        Ok(at_ns)
    }

    pub(super) fn wait_ended(&mut self, role: Role, limit: Duration) -> Result<(), Failure> {
        for id in self.started.iter().filter(|id| id.role == role) {
            self.hosts[self.side_of(*id)].ended(*id, limit)?;
        }
        Ok(())
    }

    /// Waits until all started processes of `role` are ready.
    pub(super) fn wait_ready(&mut self, role: Role) -> Result<(), Failure> {
        let limit = Duration::from_nanos(self.spec.prepare.match_timeout_ns) + READY_SLACK;
        let complaint = format!("was not ready after {} s", limit.as_secs());
        self.wait(limit, &complaint, |this| this.first_without(|id| id.role == role, &this.ready))
    }

    /// Whether the user has interrupted a run that can end early, and it has not been told so yet.
    pub(super) fn has_to_end(&self) -> bool {
        self.spec.ends_early && self.spec.interrupted.load(Ordering::Relaxed) && !self.is_ending
    }

    /// Tells the pings to end before their time.
    pub(super) fn end_early(&mut self) -> Result<(), Failure> {
        self.is_ending = true;
        self.send(Role::Ping, &Command::Stop)
    }

    /// Tells all of `role` to stop, and waits until they are done.
    pub(super) fn stop(&mut self, role: Role, limit: Duration) -> Result<(), Failure> {
        self.send(role, &Command::Stop)?;
        self.wait(limit, "did not stop", |this| {
            this.first_without(|id| id.role == role, &this.done)
        })
    }

    /// Whether all started processes that are `of` these have ended their part.
    pub(super) fn are_done(&self, of: impl Fn(&ProcessId) -> bool) -> bool {
        self.first_without(of, &self.done).is_none()
    }

    fn wait(
        &mut self,
        limit: Duration,
        complaint: &str,
        missing: impl Fn(&Self) -> Option<ProcessId>,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + limit;
        while let Some(id) = missing(self) {
            if Instant::now() >= deadline {
                return Err(Failure::Run(format!("{id} {complaint}")));
            }
            self.receive()?;
        }
        Ok(())
    }

    fn first_without<T>(
        &self,
        of: impl Fn(&ProcessId) -> bool,
        said: &BTreeMap<ProcessId, T>,
    ) -> Option<ProcessId> {
        let mut started = self.started.iter().copied();
        started.find(|id| of(id) && !said.contains_key(id))
    }

    /// Handles the next message of a process, or returns after a while.
    pub(super) fn receive(&mut self) -> Result<(), Failure> {
        if self.spec.interrupted.load(Ordering::Relaxed) && !self.is_ending {
            return Err(Failure::Interrupted);
        }
        match self.messages.recv_timeout(TICK) {
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Ok(self.hosts.iter().try_for_each(|host| host.check())?)
            }
            Ok(message) => self.handle(message),
        }
    }

    fn handle(&mut self, message: ProcessMessage) -> Result<(), Failure> {
        match message {
            ProcessMessage::Event(id, Event::Ready(ready)) => {
                self.ready.insert(id, ready);
            }
            ProcessMessage::Event(id, Event::Done(done)) => {
                self.done.insert(id, done);
            }
            ProcessMessage::Event(id, Event::Error(Reason { message, remedy, .. })) => {
                let remedy = if remedy.is_empty() { remedy } else { format!("; {remedy}") };
                return Err(Failure::Run(format!("{id}: {message}{remedy}")));
            }
            ProcessMessage::Nonsense(id, line) => {
                return Err(Failure::Run(format!("{id} does not follow the protocol: {line}")));
            }
            ProcessMessage::Gone(reason) => return Err(Failure::Gone(reason)),
            ProcessMessage::Closed(id) if self.done.contains_key(&id) => {}
            ProcessMessage::Closed(id) => {
                let ending = self.hosts[self.side_of(id)].ended(id, END_LIMIT)?;
                let ending = ending.unwrap_or_else(|| "closed its output but did not end".into());
                return Err(Failure::Run(format!("{id} {ending}")));
            }
        }
        Ok(())
    }

    /// Adds the messages of the other processes in the next moment to a failure. A daemon that ends
    /// takes its clients along, and a client may complain first.
    pub(super) fn explain(&mut self, failure: Failure) -> Failure {
        let mut reasons = match failure {
            Failure::Run(first) => vec![first],
            Failure::Gone(reason) => return Failure::Run(reason),
            Failure::Interrupted => return failure,
        };
        let deadline = Instant::now() + EXPLAIN_TIME;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            let Ok(message) = self.messages.recv_timeout(left) else {
                break;
            };
            match self.handle(message) {
                Err(Failure::Run(reason)) if !reasons.contains(&reason) => reasons.push(reason),
                // It explains all other errors.
                Err(Failure::Gone(reason)) => return Failure::Run(reason),
                _ => {}
            }
        }
        reasons.sort_by_key(|reason| !reason.starts_with("daemon"));
        Failure::Run(reasons.join(" | "))
    }
}

/// Adds the counts of one process or run to `all`; the time span covers all of them.
pub(crate) fn add(all: &mut Done, one: &Done) {
    let is_first = all.begin_ns == 0 && all.end_ns == 0;
    all.sent += one.sent;
    all.received += one.received;
    all.lost += one.lost;
    all.duplicates += one.duplicates;
    all.out_of_order += one.out_of_order;
    all.corrupt += one.corrupt;
    all.begin_ns = if is_first { one.begin_ns } else { all.begin_ns.min(one.begin_ns) };
    all.end_ns = all.end_ns.max(one.end_ns);
    let sum = |all: Option<u64>, one: Option<u64>| all.into_iter().chain(one).reduce(|a, b| a + b);
    all.cpu_ns = sum(all.cpu_ns, one.cpu_ns);
    all.warmed_up = sum(all.warmed_up, one.warmed_up);
    for (name, count) in &one.more {
        *all.more.entry(name.clone()).or_default() += count;
    }
    if let Some(pong) = &one.pong {
        all.pong = Some(pong.clone());
    }
}

/// Calls `ask` for all hosts at the same time; returns the answers in order.
fn for_all<T: Send>(
    hosts: &mut [&mut dyn Host],
    ask: impl Fn(usize, &mut dyn Host) -> Result<T, String> + Sync,
) -> Result<Vec<T>, Failure> {
    if let [host] = hosts {
        return Ok(vec![ask(0, *host)?]);
    }
    let ask = &ask;
    std::thread::scope(|scope| {
        let asking: Vec<_> = (hosts.iter_mut().enumerate())
            .map(|(side, host)| scope.spawn(move || ask(side, *host)))
            .collect();
        let answers = asking.into_iter().map(|thread| match thread.join() {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure::Run("a thread of the lab panicked".into())),
        });
        answers.collect()
    })
}

/// Interval at which the lab checks a run. Each check costs the run a wake-up.
const TICK: Duration = Duration::from_millis(250);
/// Time that opening may take beyond the time limit for matching.
const READY_SLACK: Duration = Duration::from_secs(5);
/// How long a process may run after its output has ended.
const END_LIMIT: Duration = Duration::from_millis(500);
const EXPLAIN_TIME: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_several_processes_are_one() {
        let one = |sent, begin_ns, end_ns, cpu_ns| Done {
            sent,
            begin_ns,
            end_ns,
            cpu_ns,
            more: [("silent".to_string(), 1)].into(),
            ..Done::default()
        };
        let mut all = Done::default();
        add(&mut all, &one(3, 500, 900, Some(7)));
        add(&mut all, &one(4, 400, 800, Some(8)));
        add(&mut all, &one(5, 600, 1000, None));
        assert_eq!((all.sent, all.begin_ns, all.end_ns), (12, 400, 1000));
        assert_eq!((all.cpu_ns, all.more["silent"]), (Some(15), 3));
    }
}
