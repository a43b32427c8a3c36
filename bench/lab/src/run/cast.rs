//! The processes of a run and what they have said: daemons, clocks, pongs, pings, on one host or two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use myelin_bench_kit::Reason;
use myelin_bench_kit::protocol::{
    Command, Done, Event, Exchange, Keeping, Prepare, Ready, Role, Workload,
};
use myelin_bench_kit::samples::{Record, SampleFile};

use super::execute::Failure;
use super::order::Order;
use super::watch::Running;
use crate::observe::Observation;
use crate::place::{Begin, Place, Player, Said, Start};
use crate::scenario::Tuning;
use crate::tuning::Settings;

/// All processes of a run. When it is dropped, none is left.
pub(super) struct Cast<'a> {
    order: &'a Order<'a>,
    /// The host of all; or that of ping, then that of pong.
    places: &'a mut [Box<dyn Place>],
    /// In the order in which they were started.
    started: Vec<Player>,
    said: Receiver<Said>,
    ready: BTreeMap<Player, Ready>,
    done: BTreeMap<Player, Done>,
}

impl Drop for Cast<'_> {
    fn drop(&mut self) {
        self.places.iter_mut().rev().for_each(|place| place.end());
    }
}

impl<'a> Cast<'a> {
    /// Nobody yet.
    pub(super) fn new(
        order: &'a Order<'a>,
        places: &'a mut [Box<dyn Place>],
    ) -> Result<Self, Failure> {
        let (sender, said) = mpsc::channel();
        let (started, ready, done) = Default::default();
        let cast = Cast { order, places, started, said, ready, done };
        for (host, place) in cast.places.iter_mut().enumerate() {
            let begin = Begin {
                run: order.prepare.run.clone(),
                directory: order.directory.clone(),
                awake: order.tuning == Tuning::Awake,
                interface: order.interface(host).to_owned(),
            };
            place.begin(&begin, sender.clone())?;
        }
        Ok(cast)
    }

    /// Where `player` is: which of the places.
    fn host_of(&self, player: Player) -> usize {
        match (self.places.len(), player.role) {
            (1, _) | (_, Role::Ping) => 0,
            (_, Role::Pong) => 1,
            (_, Role::Daemon | Role::Clock) => player.index as usize,
        }
    }

    /// Starts the process of `player` and tells it what to prepare; yields when, in ns of its host's
    /// CLOCK_MONOTONIC.
    pub(super) fn start(&mut self, player: Player) -> Result<u64, Failure> {
        let order = self.order;
        let host = self.host_of(player);
        // Where there is no pong, its records are ping's to write and its thread ping's to place.
        let (pong_capacity, pong) = match order.is_one_process() {
            true => (Some(order.capacity_of(Role::Pong)), order.settings(Role::Pong)),
            false => (None, Settings::default()),
        };
        let looks = matches!(order.prepare.workload, Workload::Flood | Workload::Startup);
        let measures = matches!(player.role, Role::Ping | Role::Pong);
        let prepare = Prepare {
            role: player.role,
            index: player.index,
            pong_cpu: pong.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            pong_fifo: pong.priority,
            network: order.network(host),
            ..order.prepare.clone()
        };
        let begin_ns = self.places[host].start(Start {
            player,
            executable: order.entry.executable.clone(),
            settings: order.settings(player.role),
            capacity: measures.then(|| order.capacity_of(player.role)),
            pong_capacity: pong_capacity.filter(|_| player.role == Role::Ping),
            hears: looks && player.role == Role::Ping,
            prepare,
        })?;
        self.started.push(player);
        Ok(begin_ns)
    }

    /// Begins to observe all processes that measure, and those of daemons.
    pub(super) fn observe(&mut self) -> Result<(), Failure> {
        let daemons = (0..self.places.len()).map(|host| self.daemons(host)).collect::<Vec<_>>();
        together(self.places, |host, place| place.observe(&daemons[host]))?;
        Ok(())
    }

    /// What has happened since, on all hosts.
    pub(super) fn observed(&mut self) -> Result<Observation, Failure> {
        let mut seen = together(self.places, |_, place| place.observed())?;
        let pong = (seen.len() > 1).then(|| seen.pop()).flatten();
        let ping = seen.pop().unwrap_or_default();
        Ok(match (pong, &self.order.across) {
            (Some(pong), Some(across)) => {
                ping.and_on(pong, &across.names, &across.network[0].interface, across.one_machine)
            }
            _ => ping,
        })
    }

    /// Processes of the daemons on a host.
    fn daemons(&self, host: usize) -> Vec<u32> {
        let is_daemon =
            |player: &Player| player.role == Role::Daemon && self.host_of(*player) == host;
        let daemons = self.ready.iter().filter(|(player, _)| is_daemon(player));
        daemons.flat_map(|(_, ready)| &ready.pids).copied().collect()
    }

    /// What each has said on being ready.
    pub(super) fn ready(&self) -> &BTreeMap<Player, Ready> {
        &self.ready
    }

    /// The counts of all of `role`, put together; none said is no count.
    pub(super) fn counts(&self, role: Role) -> Done {
        let said = self.done.iter().filter(|(player, _)| player.role == role);
        let mut all = Done::default();
        for (_, done) in said {
            add(&mut all, done);
        }
        all
    }

    /// What the clocks have asked of each other.
    pub(super) fn asked(&self) -> Vec<Exchange> {
        let clocks = self.done.iter().filter(|(player, _)| player.role == Role::Clock);
        clocks.flat_map(|(_, done)| &done.exchanges).copied().collect()
    }

    /// How the clocks of ping's host and of pong's were kept.
    pub(super) fn keeping(&self) -> Vec<[Keeping; 2]> {
        let of = |player: &Player| player.role == Role::Clock;
        let mut sides = self.done.iter().filter(|(player, _)| of(player)).map(|(_, done)| done);
        let (Some(ping), Some(pong)) = (sides.next(), sides.next()) else {
            return Vec::new();
        };
        let both = ping.keeping.iter().zip(&pong.keeping);
        both.map(|(ping, pong)| [ping.clone(), pong.clone()]).collect()
    }

    /// What the processes have to say to the report, each remark once.
    pub(super) fn notes(&self) -> Vec<String> {
        let at_start = self.ready.values().flat_map(|ready| &ready.notes);
        let at_end = self.done.values().flat_map(|done| &done.notes);
        let mut notes: Vec<String> = Vec::new();
        for note in at_start.chain(at_end) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        notes
    }

    /// What all of `role` write.
    fn files(&self, role: Role) -> impl Iterator<Item = Arc<SampleFile>> {
        let files = self.places.iter().flat_map(|place| place.files());
        files.filter(move |(player, _)| player.role == role).map(|(_, file)| file)
    }

    /// What all of `role` have recorded, one process after the other.
    pub(super) fn records(&mut self, role: Role) -> Result<Vec<Record>, Failure> {
        let mut records = Vec::new();
        for player in self.order.players(role) {
            let host = self.host_of(player);
            records.append(&mut self.places[host].records(player)?);
        }
        Ok(records)
    }

    /// Messages that the pings have exchanged so far.
    pub(super) fn exchanges(&self) -> u64 {
        self.files(Role::Ping).map(|file| file.exchanges()).sum()
    }

    /// What can be seen of the run while it lasts.
    pub(super) fn running(&self) -> Running {
        let processes = (self.places.iter().enumerate())
            .flat_map(|(host, place)| place.processes(&self.daemons(host)))
            .collect();
        Running {
            prepare: Prepare { network: self.order.network(0), ..self.order.prepare.clone() },
            pings: self.files(Role::Ping).collect(),
            processes,
        }
    }

    /// Says `command` to all of `role`.
    pub(super) fn say(&mut self, role: Role, command: &Command) -> Result<(), Failure> {
        Ok(self.places.iter_mut().try_for_each(|place| place.say(role, command))?)
    }

    /// Tells all of `roles` to start after `delay`; yields when that is, on the first host's clock.
    /// Pong's host comes first: when ping is told, pong has been.
    pub(super) fn go(&mut self, roles: &[Role], delay: Duration) -> Result<u64, Failure> {
        let mut at_ns = 0;
        for place in self.places.iter_mut().rev() {
            at_ns = place.go(roles, delay)?;
        }
        Ok(at_ns)
    }

    /// Waits for the end of all processes of `role`.
    pub(super) fn wait_ended(&mut self, role: Role, limit: Duration) -> Result<(), Failure> {
        Ok(self.places.iter_mut().try_for_each(|place| place.wait_ended(role, limit))?)
    }

    /// Waits until all of `role` that were started are ready.
    pub(super) fn wait_ready(&mut self, role: Role) -> Result<(), Failure> {
        let limit = Duration::from_nanos(self.order.prepare.match_timeout_ns) + READY_SLACK;
        let deadline = Instant::now() + limit;
        while let Some(player) = self.first_without(role, |cast, it| cast.ready.contains_key(it)) {
            if Instant::now() >= deadline {
                let text = format!("{player} was not ready after {} s", limit.as_secs());
                return Err(Failure::Run(text));
            }
            self.listen()?;
        }
        Ok(())
    }

    /// Whether all of `role` that were started are done.
    pub(super) fn are_done(&self, role: Role) -> bool {
        self.first_without(role, |cast, player| cast.done.contains_key(player)).is_none()
    }

    /// Waits until all of `role` are done.
    pub(super) fn collect(
        &mut self,
        role: Role,
        limit: Duration,
        complaint: &str,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + limit;
        while let Some(player) = self.first_without(role, |cast, it| cast.done.contains_key(it)) {
            if Instant::now() >= deadline {
                return Err(Failure::Run(format!("{player} {complaint}")));
            }
            self.listen()?;
        }
        Ok(())
    }

    fn first_without(&self, role: Role, has: impl Fn(&Self, &Player) -> bool) -> Option<Player> {
        let players = self.started.iter().copied().filter(|player| player.role == role);
        players.into_iter().find(|player| !has(self, player))
    }

    /// Takes in what a driver says next, or returns after a while.
    pub(super) fn listen(&mut self) -> Result<(), Failure> {
        if self.order.interrupted.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        match self.said.recv_timeout(TICK) {
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                Ok(self.places.iter().try_for_each(|place| place.check())?)
            }
            Ok(said) => self.hear(said),
        }
    }

    fn hear(&mut self, said: Said) -> Result<(), Failure> {
        match said {
            Said::Event(player, Event::Ready(ready)) => {
                self.ready.insert(player, ready);
            }
            Said::Event(player, Event::Done(done)) => {
                self.done.insert(player, done);
            }
            Said::Event(player, Event::Error(Reason { message, remedy, .. })) => {
                let remedy = if remedy.is_empty() { remedy } else { format!("; {remedy}") };
                return Err(Failure::Run(format!("{player}: {message}{remedy}")));
            }
            Said::Nonsense(player, line) => {
                return Err(Failure::Run(format!("{player} does not speak the protocol: {line}")));
            }
            Said::Gone(reason) => return Err(Failure::Gone(reason)),
            Said::Closed(player) if self.done.contains_key(&player) => {}
            Said::Closed(player) => {
                let host = self.host_of(player);
                let ending = self.places[host].ending(player)?;
                return Err(Failure::Run(format!("{player} {ending}")));
            }
        }
        Ok(())
    }

    /// Adds to a failure what the other processes say in the next moment: a dead daemon takes its
    /// clients with it, and the first to complain need not be the first to die.
    pub(super) fn explain(&mut self, failure: Failure) -> Failure {
        let mut reasons = match failure {
            Failure::Run(first) => vec![first],
            Failure::Gone(reason) => return Failure::Run(reason),
            Failure::Interrupted => return failure,
        };
        let deadline = Instant::now() + EXPLAIN_TIME;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            let Ok(said) = self.said.recv_timeout(left) else {
                break;
            };
            match self.hear(said) {
                Err(Failure::Run(reason)) if !reasons.contains(&reason) => reasons.push(reason),
                // Whatever else went wrong is because of it.
                Err(Failure::Gone(reason)) => return Failure::Run(reason),
                _ => {}
            }
        }
        reasons.sort_by_key(|reason| !reason.starts_with("daemon"));
        Failure::Run(reasons.join(" | "))
    }
}

/// Adds the counts of one process to those of its like; times span all of them.
fn add(all: &mut Done, one: &Done) {
    let is_first = all.begin_ns == 0 && all.end_ns == 0;
    all.sent += one.sent;
    all.received += one.received;
    all.lost += one.lost;
    all.duplicates += one.duplicates;
    all.out_of_order += one.out_of_order;
    all.corrupt += one.corrupt;
    all.begin_ns = if is_first { one.begin_ns } else { all.begin_ns.min(one.begin_ns) };
    all.end_ns = all.end_ns.max(one.end_ns);
    all.cpu_ns = match (all.cpu_ns, one.cpu_ns) {
        (Some(all), Some(one)) => Some(all + one),
        (all, one) => all.or(one),
    };
    all.warmed_up = match (all.warmed_up, one.warmed_up) {
        (Some(all), Some(one)) => Some(all + one),
        (all, one) => all.or(one),
    };
    for (name, count) in &one.more {
        *all.more.entry(name.clone()).or_default() += count;
    }
    if let Some(pong) = &one.pong {
        all.pong = Some(pong.clone());
    }
}

/// Asks all places at the same time, and yields their answers in order.
fn together<T: Send>(
    places: &mut [Box<dyn Place>],
    ask: impl Fn(usize, &mut dyn Place) -> Result<T, String> + Sync,
) -> Result<Vec<T>, Failure> {
    if let [place] = places {
        return Ok(vec![ask(0, place.as_mut())?]);
    }
    let ask = &ask;
    std::thread::scope(|scope| {
        let asking: Vec<_> = (places.iter_mut().enumerate())
            .map(|(host, place)| scope.spawn(move || ask(host, place.as_mut())))
            .collect();
        let answers = asking.into_iter().map(|thread| match thread.join() {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure::Run("a thread of the lab has died".into())),
        });
        answers.collect()
    })
}

/// How often the lab looks around while a run lasts. Each look costs the run a wake-up.
const TICK: Duration = Duration::from_millis(250);
/// What opening may take beyond the time limit for matching.
const READY_SLACK: Duration = Duration::from_secs(5);
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
