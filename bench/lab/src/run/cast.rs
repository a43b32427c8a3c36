//! The processes of a run and what they have said: daemon, pongs, pings.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{Command, Done, Event, Prepare, Ready, Role, Workload};
use myelin_bench_kit::samples::SampleFile;

use super::child::{Child, Player, Said, sample_memory};
use super::execute::Failure;
use super::order::Order;
use super::tuning::Settings;
use super::watch::Running;

/// All processes of a run. When it is dropped, none is left.
pub(super) struct Cast<'a> {
    order: &'a Order<'a>,
    // Dropped from the last to the first: the daemon goes last.
    children: Vec<Child>,
    said: Receiver<(Player, Said)>,
    sender: Sender<(Player, Said)>,
    ready: BTreeMap<Player, Ready>,
    done: BTreeMap<Player, Done>,
    samples: BTreeMap<Player, (OwnedFd, Arc<SampleFile>)>,
}

impl Drop for Cast<'_> {
    fn drop(&mut self) {
        while self.children.pop().is_some() {}
    }
}

impl<'a> Cast<'a> {
    /// Nobody yet, but the memory that each will write to.
    pub(super) fn new(order: &'a Order<'a>) -> Result<Self, Failure> {
        let (sender, said) = mpsc::channel();
        let mut samples = BTreeMap::new();
        for player in order.players(Role::Ping).chain(order.players(Role::Pong)) {
            let memory = sample_memory()?;
            let file = std::fs::File::from(memory.try_clone()?);
            let mapped = SampleFile::create(&file, order.capacity_of(player.role))
                .map_err(|error| Failure::Run(format!("sample memory: {error}")))?;
            samples.insert(player, (memory, Arc::new(mapped)));
        }
        Ok(Cast {
            order,
            children: Vec::new(),
            said,
            sender,
            ready: BTreeMap::new(),
            done: BTreeMap::new(),
            samples,
        })
    }

    /// Starts the process of `player` and tells it what to prepare.
    pub(super) fn start(&mut self, player: Player) -> Result<(), Failure> {
        let order = self.order;
        let memory = |player: Player| self.samples.get(&player).map(|(memory, _)| memory);
        let path = |memory: &OwnedFd| -> PathBuf {
            format!("/proc/self/fd/{}", memory.as_raw_fd()).into()
        };
        let first_pong = Player { role: Role::Pong, index: 0 };
        // Where there is no pong, its records are ping's to write and its thread ping's to place.
        let other = order.is_one_process().then(|| memory(first_pong)).flatten();
        let looks = matches!(order.prepare.workload, Workload::Flood | Workload::Startup);
        let heard = (looks && player.role == Role::Ping).then(|| memory(first_pong)).flatten();
        let pong = match order.is_one_process() {
            true => order.settings(Role::Pong),
            false => Settings::default(),
        };
        let log = order.directory.join(format!("{player}.log"));
        let executable = &order.entry.executable;
        let own: Vec<&OwnedFd> = memory(player).into_iter().chain(other).chain(heard).collect();
        let settings = order.settings(player.role);
        let sender = self.sender.clone();
        let mut child = Child::start(executable, player, settings, &log, &own, sender)
            .map_err(|error| Failure::Run(format!("{}: {error}", executable.display())))?;
        let prepare = Prepare {
            role: player.role,
            index: player.index,
            samples: memory(player).map(path),
            pong_samples: other.map(path),
            heard: heard.map(path),
            pong_cpu: pong.cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            pong_fifo: pong.priority,
            directory: order.directory.clone(),
            ..order.prepare.clone()
        };
        child.say(&Command::Prepare(Box::new(prepare)));
        self.children.push(child);
        Ok(())
    }

    /// Names and ids of all processes to be observed, those of the daemon included.
    pub(super) fn observed(&self) -> Vec<(String, u32)> {
        let measuring = self.children.iter().filter(|child| child.player.role != Role::Daemon);
        let mut all: Vec<(String, u32)> =
            measuring.map(|child| (child.player.to_string(), child.pid())).collect();
        // Pings first, as reports have them.
        all.sort_by_key(|(name, _)| !name.starts_with("ping"));
        let daemons = self.ready.iter().filter(|(player, _)| player.role == Role::Daemon);
        let pids = daemons.flat_map(|(_, ready)| &ready.pids);
        all.extend(pids.map(|pid| (daemon_name(*pid), *pid)));
        all
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
    fn files(&self, role: Role) -> impl Iterator<Item = &Arc<SampleFile>> {
        let files = self.samples.iter().filter(move |(player, _)| player.role == role);
        files.map(|(_, (_, file))| file)
    }

    /// What all of `role` have recorded, one process after the other.
    pub(super) fn records(&self, role: Role) -> Vec<myelin_bench_kit::samples::Record> {
        self.files(role).flat_map(|file| file.records()).collect()
    }

    /// Messages that the pings have exchanged so far.
    pub(super) fn exchanges(&self) -> u64 {
        self.files(Role::Ping).map(|file| file.exchanges()).sum()
    }

    /// What can be seen of the run while it lasts.
    pub(super) fn running(&self) -> Running {
        Running {
            prepare: self.order.prepare.clone(),
            pings: self.files(Role::Ping).cloned().collect(),
            pongs: self.files(Role::Pong).cloned().collect(),
            processes: self.observed(),
        }
    }

    /// Says `command` to all of `role`.
    pub(super) fn say(&mut self, role: Role, command: &Command) {
        for child in self.children.iter_mut().filter(|child| child.player.role == role) {
            child.say(command);
        }
    }

    /// Waits for the end of all processes of `role`.
    pub(super) fn wait_ended(&mut self, role: Role, limit: Duration) {
        for child in self.children.iter_mut().filter(|child| child.player.role == role) {
            child.wait(limit);
        }
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
        let players = self.children.iter().map(|child| child.player);
        players.filter(|player| player.role == role).find(|player| !has(self, player))
    }

    /// Takes in what a driver says next, or returns after a while.
    pub(super) fn listen(&mut self) -> Result<(), Failure> {
        if self.order.interrupted.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        match self.said.recv_timeout(TICK) {
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
            Ok((player, said)) => self.hear(player, said),
        }
    }

    fn hear(&mut self, player: Player, said: Said) -> Result<(), Failure> {
        match said {
            Said::Event(Event::Ready(ready)) => {
                self.ready.insert(player, ready);
            }
            Said::Event(Event::Done(done)) => {
                self.done.insert(player, done);
            }
            Said::Event(Event::Error { message, remedy, .. }) => {
                let remedy = if remedy.is_empty() { remedy } else { format!("; {remedy}") };
                return Err(Failure::Run(format!("{player}: {message}{remedy}")));
            }
            Said::Nonsense(line) => {
                return Err(Failure::Run(format!("{player} does not speak the protocol: {line}")));
            }
            Said::Closed if self.done.contains_key(&player) => {}
            Said::Closed => {
                let child = self.children.iter_mut().find(|child| child.player == player);
                let ending = child.map(Child::ending).unwrap_or_default();
                return Err(Failure::Run(format!("{player} {ending}")));
            }
        }
        Ok(())
    }

    /// Adds to a failure what the other processes say in the next moment: a dead daemon takes its
    /// clients with it, and the first to complain need not be the first to die.
    pub(super) fn explain(&mut self, failure: Failure) -> Failure {
        let Failure::Run(first) = failure else {
            return failure;
        };
        let mut reasons = vec![first];
        let deadline = Instant::now() + EXPLAIN_TIME;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            let Ok((player, said)) = self.said.recv_timeout(left) else {
                break;
            };
            match self.hear(player, said) {
                Err(Failure::Run(reason)) if !reasons.contains(&reason) => reasons.push(reason),
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
    for (name, count) in &one.more {
        *all.more.entry(name.clone()).or_default() += count;
    }
    if let Some(pong) = &one.pong {
        all.pong = Some(pong.clone());
    }
}

fn daemon_name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "daemon".into(), |name| name.trim().into())
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
