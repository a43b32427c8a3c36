//! Streams between several processes: the pings and pongs of one run, and the daemon if the system
//! has one. Tests that need it include it (`#[path] mod many;`).

use std::path::Path;

use myelin_bench_kit::protocol::{Command, Done, Prepare, Reliability, Role};

use crate::support::{Process, Samples, describe, unique_run};

/// All processes of a run, ready.
pub struct Many {
    pub pings: Vec<Process>,
    pub pongs: Vec<Process>,
    /// Sample files of the pings, then of the pongs.
    pub samples: Vec<Samples>,
    daemon: Option<Process>,
}

impl Many {
    /// Starts `prepare.publishers` pings and `prepare.subscribers` pongs.
    pub fn open(executable: &Path, prepare: &Prepare) -> Self {
        let run = unique_run();
        let of_run = Prepare { run, ..prepare.clone() };
        let daemon = start_daemon(executable, &of_run);
        let mut samples = Vec::new();
        let mut start = |role, index| {
            samples.push(Samples::new(prepare.messages * u64::from(prepare.publishers)));
            let path = samples.last().map(Samples::path);
            let of_role = Prepare { role, index, samples: path, ..of_run.clone() };
            Process::start(executable, &of_role)
        };
        let pings = Vec::from_iter((0..prepare.publishers).map(|index| start(Role::Ping, index)));
        let pongs = Vec::from_iter((0..prepare.subscribers).map(|index| start(Role::Pong, index)));
        for process in pings.iter().chain(&pongs) {
            process.expect_ready();
        }
        Many { pings, pongs, samples, daemon }
    }

    /// Runs to the end; returns the counts of the pings and of the pongs.
    pub fn finish(mut self) -> (Vec<Done>, Vec<Done>) {
        self.pongs.iter_mut().chain(&mut self.pings).for_each(Process::go);
        let (pings, pongs) = (self.end_pings(), self.end_pongs());
        self.end_daemon();
        (pings, pongs)
    }

    /// Waits until the pings are done, and ends them.
    pub fn end_pings(&mut self) -> Vec<Done> {
        end(&mut self.pings, |ping| ping.expect_done())
    }

    /// Stops the pongs, and waits for their end.
    pub fn end_pongs(&mut self) -> Vec<Done> {
        self.pongs.iter_mut().for_each(|pong| pong.say(&Command::Stop));
        end(&mut self.pongs, |pong| pong.expect_done())
    }

    /// Stops the daemon, if there is one.
    pub fn end_daemon(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.say(&Command::Stop);
            daemon.expect_done();
            assert!(daemon.expect_end().success());
        }
    }
}

fn end(processes: &mut [Process], done: impl Fn(&Process) -> Done) -> Vec<Done> {
    let all = processes.iter_mut().map(|process| {
        let done = done(process);
        process.say(&Command::Stop);
        assert!(process.expect_end().success());
        done
    });
    all.collect()
}

/// The daemon of `prepare.system`, ready; `None` if it has none.
pub fn start_daemon(executable: &Path, prepare: &Prepare) -> Option<Process> {
    let systems = describe(executable).systems;
    let system = systems.iter().find(|system| system.name == prepare.system).expect("it is ours");
    system.daemon.then(|| {
        let daemon = Prepare { role: Role::Daemon, ..prepare.clone() };
        let daemon = Process::start(executable, &daemon);
        daemon.expect_ready();
        daemon
    })
}

/// One ping and several pongs, each of which receives everything; reliable if the system supports
/// that.
pub fn reach_every_subscriber(executable: &Path, prepare: &Prepare) {
    let prepare = Prepare { subscribers: 3, ..prepare.clone() };
    let (pings, pongs) = Many::open(executable, &prepare).finish();
    assert_eq!(pings[0].sent, prepare.messages);
    assert_eq!(pongs.len(), 3);
    pongs.iter().for_each(|pong| check_taken(&prepare, pong));
}

/// Two pings, and a pong that receives from both.
pub fn hear_every_publisher(executable: &Path, prepare: &Prepare) {
    let prepare = Prepare { publishers: 2, ..prepare.clone() };
    let (pings, pongs) = Many::open(executable, &prepare).finish();
    assert!(pings.iter().all(|ping| ping.sent == prepare.messages));
    check_taken(&prepare, &pongs[0]);
}

/// `topics` topics between one ping and one pong.
pub fn serve_every_topic(executable: &Path, prepare: &Prepare, topics: u32) {
    let prepare = Prepare { topics, ..prepare.clone() };
    let (_, pongs) = Many::open(executable, &prepare).finish();
    check_taken(&prepare, &pongs[0]);
}

/// A pong that begins to take only after ping has begun to publish far more than is kept for it.
/// Reliable: nothing is lost. Best effort: ping does not wait for it, and some messages are lost.
pub fn face_a_slow_subscriber(executable: &Path, prepare: &Prepare) {
    let (payload_bytes, messages, depth) = (65_536, 1500, 4);
    let prepare = Prepare { payload_bytes, messages, depth, ..prepare.clone() };
    let (system, reliability) = (&prepare.system, prepare.reliability);
    let mut many = Many::open(executable, &prepare);
    many.pings[0].go();
    let pongs = match reliability {
        Reliability::Reliable => {
            many.samples[0].await_first();
            many.pongs[0].go();
            assert_eq!(many.end_pings()[0].sent, messages);
            many.end_pongs()
        }
        Reliability::BestEffort => {
            assert_eq!(many.end_pings()[0].sent, messages);
            many.pongs[0].go();
            many.end_pongs()
        }
    };
    many.end_daemon();
    match reliability {
        Reliability::Reliable => check_taken(&prepare, &pongs[0]),
        Reliability::BestEffort => {
            let taken = pongs[0].received;
            assert!(taken < messages, "{system}: {taken} of {messages} for {depth} kept");
            assert_eq!(pongs[0].corrupt, 0, "{system}");
        }
    }
}

/// Checks that no message is damaged, duplicated or, within a topic, out of order, and that a
/// reliable stream lost none.
fn check_taken(prepare: &Prepare, pong: &Done) {
    let what = format!("{} {:?}: {pong:?}", prepare.system, prepare.reliability);
    let messages = u64::from(prepare.publishers) * prepare.messages;
    assert_eq!((pong.duplicates, pong.corrupt), (0, 0), "{what}");
    assert!(pong.out_of_order == 0 || prepare.topics > 1, "{what}");
    assert!(pong.received > 0 && pong.received <= messages, "{what}");
    if prepare.reliability == Reliability::Reliable {
        assert_eq!((pong.received, pong.lost), (messages, 0), "{what}");
    }
}
