//! Streams of several publishers, subscribers and topics, and slow subscribers: what must hold for
//! every system.

use std::path::Path;
use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{Command, Done, Prepare, Reliability, Role};

use super::{Process, Samples, WATCHDOG, unique_run};

/// All processes of one run, ready.
pub struct Processes {
    pub pings: Vec<Process>,
    pub pongs: Vec<Process>,
    pub ping_samples: Vec<Samples>,
    /// Kept, because pongs write into them.
    pub pong_samples: Vec<Samples>,
}

impl Processes {
    /// Starts `prepare.publishers` pings and `prepare.subscribers` pongs.
    pub fn open(executable: &Path, prepare: &Prepare) -> Self {
        let run = unique_run();
        let start = |role: Role, count: u32, capacity: u64| {
            let start = |index| {
                let samples = Samples::new(capacity);
                let (run, path) = (run.clone(), Some(samples.path()));
                let prepare = Prepare { role, run, index, samples: path, ..prepare.clone() };
                (Process::start(executable, &prepare), samples)
            };
            (0..count).map(start).collect::<Vec<_>>()
        };
        let pings = start(Role::Ping, prepare.publishers, prepare.messages);
        let all = prepare.messages * u64::from(prepare.publishers);
        let pongs = start(Role::Pong, prepare.subscribers, all);
        let (pings, ping_samples) = pings.into_iter().unzip();
        let (pongs, pong_samples) = pongs.into_iter().unzip();
        let processes = Processes { pings, pongs, ping_samples, pong_samples };
        processes.pings.iter().chain(&processes.pongs).for_each(Process::expect_ready);
        processes
    }

    pub fn go(&mut self) {
        // Receiving ends start before anything is sent.
        self.pongs.iter_mut().chain(&mut self.pings).for_each(Process::go);
    }

    /// Waits for all pings, then stops all processes as the lab does, publishers last. Returns the
    /// counts of both sides.
    pub fn finish(&mut self) -> (Vec<Done>, Vec<Done>) {
        let pings = self.pings.iter().map(Process::expect_done).collect();
        let pongs = self.pongs.iter_mut().map(Process::stop_at_goodbye).collect();
        self.stop_pings();
        (pings, pongs)
    }

    fn stop_pings(&mut self) {
        self.pings.iter_mut().for_each(Process::stop_and_expect_end);
    }
}

/// Waits until a ping publishes no more.
pub fn await_standstill(samples: &Samples) {
    let (mut written, mut since) = (samples.written(), Instant::now());
    let give_up = Instant::now() + WATCHDOG;
    while since.elapsed() < STANDSTILL {
        assert!(Instant::now() < give_up, "ping goes on and on");
        std::thread::sleep(Duration::from_millis(5));
        let now = samples.written();
        if now != written {
            (written, since) = (now, Instant::now());
        }
    }
}

/// Every subscriber gets every message of every publisher once, undamaged.
pub fn every_message_arrives(executable: &Path, prepare: &Prepare) {
    let mut processes = Processes::open(executable, prepare);
    processes.go();
    let (pings, pongs) = processes.finish();
    assert_complete(prepare, &pings, &pongs);
}

/// All processes have started, and the first subscriber is paused.
fn with_a_paused_subscriber(executable: &Path, prepare: &Prepare) -> Processes {
    let mut processes = Processes::open(executable, prepare);
    processes.pongs.iter_mut().for_each(Process::go);
    processes.pongs[0].pause();
    processes.pings.iter_mut().for_each(Process::go);
    processes
}

/// A paused subscriber blocks a reliable publisher, and loses nothing.
pub fn a_reliable_publisher_waits(executable: &Path, prepare: &Prepare) {
    let prepare = Prepare { reliability: Reliability::Reliable, ..prepare.clone() };
    let mut processes = with_a_paused_subscriber(executable, &prepare);
    await_standstill(&processes.ping_samples[0]);
    let published = processes.ping_samples[0].written();
    processes.pongs[0].resume();
    let (pings, pongs) = processes.finish();
    assert_complete(&prepare, &pings, &pongs);
    let (name, messages) = (&prepare.system, prepare.messages);
    assert!(published < messages, "{name}: published {published} of {messages} to nobody");
}

/// A paused subscriber does not block a best-effort publisher.
pub fn a_best_effort_publisher_goes_on(executable: &Path, prepare: &Prepare) {
    let prepare = Prepare { reliability: Reliability::BestEffort, ..prepare.clone() };
    let mut processes = with_a_paused_subscriber(executable, &prepare);
    for ping in &processes.pings {
        assert_eq!(ping.expect_done().sent, prepare.messages, "{}", prepare.system);
    }
    processes.pongs[0].resume();
    processes.stop_pings();
    for pong in &mut processes.pongs {
        // Stopped at once, because the publishers' last message may be lost; it still takes the messages
        // that are there.
        pong.say(&Command::Stop);
        let done = pong.expect_done();
        assert_eq!(done.corrupt, 0, "{}: {done:?}", prepare.system);
        assert!(pong.expect_end().success());
    }
}

fn assert_complete(prepare: &Prepare, pings: &[Done], pongs: &[Done]) {
    let all = prepare.messages * u64::from(prepare.publishers);
    let Prepare { system, payload_bytes, publishers, subscribers, topics, .. } = prepare;
    let what = format!("{system}, {payload_bytes} B, {publishers}:{subscribers}, {topics} topics");
    for ping in pings {
        assert_eq!(ping.sent, prepare.messages, "{what}");
    }
    for pong in pongs {
        assert_eq!(pong.received + pong.duplicates, all, "{what}: {pong:?}");
        assert_eq!((pong.lost, pong.corrupt), (0, 0), "{what}: {pong:?}");
    }
}

/// After this time without publishing, ping is waiting. If instead the busy machine does not run
/// it, the test only becomes weaker.
const STANDSTILL: Duration = Duration::from_millis(500);
