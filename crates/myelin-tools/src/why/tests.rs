//! The judgements, on snapshots that represent faults that are hard to make.

use std::collections::BTreeMap;
use std::path::PathBuf;

use myelin::{Location, MatchInfo, MatchState, Mismatch, NetworkState, Setting};

use super::judge;
use super::process::{Process, Thread, Throttled};
use super::snapshot::{Counts, Elsewhere, End, ForeignUser, OtherTopic, Place, Program, Snapshot};
use crate::rate::Report;
use crate::spread::Spread;

const PUBLISHER: u64 = 1 << 24 | 1;
const SUBSCRIBER: u64 = 2 << 24 | 1;

/// A lidar that publishes 100 samples in a second, and a planner that takes them.
fn robot() -> Snapshot {
    let process = |pid| Process { pid, state: 'S', files: Some((10, 1024)), ..Process::default() };
    let program = |name: &str, pid| Program {
        name: name.to_owned(),
        pid,
        language: "Rust".to_owned(),
        process: Some((process(pid), process(pid))),
        ..Program::default()
    };
    let mut lidar = End { program: program("lidar", 11), ..End::default() };
    (lidar.info.id, lidar.info.is_publisher, lidar.info.depth) = (PUBLISHER, true, 8);
    let published = |published| Counts { published, ..Counts::default() };
    lidar.counts = Some((published(100), published(200)));
    let mut planner = End { program: program("planner", 12), ..End::default() };
    (planner.info.id, planner.info.depth, planner.info.created_ns) = (SUBSCRIBER, 8, 1);
    planner.counts = Some((Counts::default(), Counts::default()));
    let matched = MatchInfo { endpoint: SUBSCRIBER, other: PUBLISHER, state: MatchState::Matched };
    Snapshot {
        topic: "scan".to_owned(),
        place: Place { runtime_dir: PathBuf::from("/dev/shm"), ..Place::default() },
        interval_s: 1.0,
        ends: vec![lidar, planner],
        matches: vec![matched],
        ..Snapshot::default()
    }
}

/// The robot with a fault: the first finding has this name, and the words are in it or its remedy.
fn expect(id: &str, words: &[&str], change: impl FnOnce(&mut Snapshot)) {
    check(false, id, words, change);
}

fn check(late: bool, id: &str, words: &[&str], change: impl FnOnce(&mut Snapshot)) {
    let mut seen = robot();
    change(&mut seen);
    let findings = judge(&seen, late);
    let first = findings.first().unwrap_or_else(|| panic!("nothing is found: {id}"));
    assert_eq!(first.id, id, "{findings:#?}");
    let text = format!("{} {}", first.found, serde_json::to_string(first).unwrap());
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
}

fn now(end: &mut End) -> &mut Process {
    &mut end.program.process.as_mut().unwrap().1
}

fn loses(end: &mut End, lost: u64) {
    end.counts.as_mut().unwrap().1.lost = lost;
}

#[test]
fn a_robot_that_works_has_no_finding() {
    assert_eq!(judge(&robot(), false), []);
    assert_eq!(judge(&robot(), true), []);
}

#[test]
fn a_side_that_is_missing_is_searched_for() {
    let without_lidar = |seen: &mut Snapshot| drop(seen.ends.remove(0));
    let there = |place: Place| Elsewhere {
        place,
        publishers: vec![Program { name: "lidar".into(), pid: 9, ..Program::default() }],
        subscribers: Vec::new(),
    };
    expect("no_publisher", &["planner (process 12)", "stderr"], without_lidar);
    expect("other_domain", &["process 9", "in domain 7", "MYELIN_DOMAIN=0"], |seen| {
        without_lidar(seen);
        seen.elsewhere.push(there(Place { domain: 7, ..seen.place.clone() }));
    });
    expect("other_folder", &["/run/robot", "MYELIN_RUNTIME_DIR=/dev/shm"], |seen| {
        without_lidar(seen);
        let runtime_dir = PathBuf::from("/run/robot");
        seen.elsewhere.push(there(Place { runtime_dir, ..seen.place.clone() }));
    });
    expect("other_group", &["group 29"], |seen| {
        without_lidar(seen);
        seen.elsewhere.push(there(Place { group: Some(29), ..seen.place.clone() }));
    });
    expect("other_user", &["user 1000", "group("], |seen| {
        without_lidar(seen);
        let path = PathBuf::from("/dev/shm/myelin-1000");
        seen.foreign.push(ForeignUser { uid: 1000, path });
    });
    expect("other_name", &["\"/scan\"", "lidar publishes"], |seen| {
        without_lidar(seen);
        let publishers = vec!["lidar".to_owned()];
        seen.others.push(OtherTopic { name: "/scan".into(), publishers, subscribers: vec![] });
    });
    for (name, id) in
        [("robot1/scan", "other_name"), ("scam", "other_name"), ("plan", "no_publisher")]
    {
        expect(id, &[], |seen| {
            without_lidar(seen);
            let publishers = vec!["lidar".to_owned()];
            seen.others.push(OtherTopic { name: name.into(), publishers, subscribers: vec![] });
        });
    }
    let works = |name: &str| OtherTopic {
        name: name.into(),
        publishers: vec!["lidar".to_owned()],
        subscribers: vec!["logger".to_owned()],
    };
    expect("no_publisher", &[], |seen| {
        without_lidar(seen);
        seen.others.push(works("scan2"));
    });
    expect("no_right", &["lidar (host base)", "publish", "--allow publish=scan"], |seen| {
        without_lidar(seen);
        let (name, host) = ("lidar".to_owned(), Some("base".to_owned()));
        seen.denied = vec![(true, Program { name, host, ..Program::default() })];
    });
    expect("no_other_host", &["MYELIN_NETWORK=1"], |seen| {
        without_lidar(seen);
        seen.network = Some((NetworkState::Up { interface: "eth0".into(), address: None }, 0));
    });
    expect("network_down", &["cable"], |seen| {
        without_lidar(seen);
        seen.network = Some((NetworkState::Waiting { reason: "cable".into() }, 0));
    });
}

#[test]
fn a_refusal_is_named_by_what_is_short() {
    let refused = |reason: &str, mismatch| MatchState::Refused { reason: reason.into(), mismatch };
    for (id, reason) in [
        ("files_short", "too many open files: process 12 may have 64 (RLIMIT_NOFILE); raise it"),
        ("memlock_short", "no memory for a segment: process 12 locks (RLIMIT_MEMLOCK); raise it"),
        ("memory_short", "no memory for a segment: 1 B of 2 B are free (memory.max); raise it"),
        ("match_refused", "there are 64 publishers; raise it"),
    ] {
        expect(id, &["raise it"], |seen| seen.matches[0].state = refused(reason, None));
    }
    let mismatch = Mismatch {
        setting: Setting::Deadline,
        offered: "none".into(),
        requested: "10ms".into(),
        is_refusal: true,
    };
    expect("qos_refused", &["deadline", "let lidar offer 10ms"], |seen| {
        seen.matches[0].state = refused("", Some(mismatch));
    });
    expect("network_off", &["planner (process 12)", "host base", "MYELIN_NETWORK=1"], |seen| {
        seen.matches.clear();
        seen.ends[0].info.location = Location::OtherHost(7);
        seen.ends[0].program.host = Some("base".into());
        now(&mut seen.ends[1]).has_network = Some(false);
    });
}

#[test]
fn a_publisher_that_publishes_nothing_may_wait_for_its_subscriber() {
    let stands = |seen: &mut Snapshot| {
        let (before, now) = seen.ends[0].counts.as_mut().unwrap();
        *now = *before;
    };
    expect("published_before_match", &["100 samples", "transient_local"], stands);
    expect("publisher_idle", &["100 samples before", "gdb -p 11"], |seen| {
        stands(seen);
        seen.ends[1].info.created_ns = 0;
    });
    // What the subscriber has taken was not published before it matched.
    expect("publisher_idle", &["100 samples before"], |seen| {
        stands(seen);
        let (before, now) = seen.ends[1].counts.as_mut().unwrap();
        (before.taken, now.taken) = (Some(90), Some(90));
    });
    expect("publisher_blocked", &["/proc/11/stack"], |seen| {
        stands(seen);
        let process = seen.ends[0].program.process.as_mut().unwrap();
        (process.0.state, process.1.state) = ('D', 'D');
    });
    expect("subscriber_stopped", &["kill -CONT 12"], |seen| {
        stands(seen);
        seen.ends.iter_mut().for_each(|end| end.info.reliable = true);
        seen.ends[1].info.created_ns = 0;
        now(&mut seen.ends[1]).state = 'T';
    });
}

#[test]
fn a_subscriber_that_takes_nothing_holds_all_or_is_idle() {
    let taken = |seen: &mut Snapshot, before, now| {
        let counts = seen.ends[1].counts.as_mut().unwrap();
        (counts.0.taken, counts.1.taken) = (Some(before), Some(now));
    };
    expect("subscriber_idle", &["5 samples before", "gdb -p 12"], |seen| taken(seen, 5, 5));
    let mut works = robot();
    taken(&mut works, 5, 105);
    assert_eq!(judge(&works, false), []);
    expect("subscriber_holds_all", &["keeps 8 samples"], |seen| {
        taken(seen, 8, 8);
        let counts = seen.ends[1].counts.as_mut().unwrap();
        (counts.0.held, counts.1.held) = (8, 8);
    });
    expect("subscriber_late", &["60 of 100", "computes 90 %", "why --late scan"], |seen| {
        loses(&mut seen.ends[1], 60);
        spent(seen, 1, 900, 10);
    });
}

/// A thread that ran and waited for a CPU so many milliseconds of the second.
fn spent(seen: &mut Snapshot, end: usize, runs_ms: u64, waits_ms: u64) {
    let thread = Thread {
        name: "worker".into(),
        cpu_ns: runs_ms * 1_000_000,
        run_delay_ns: waits_ms * 1_000_000,
        waits_in: Some("futex_wait".into()),
        ..Thread::default()
    };
    now(&mut seen.ends[end]).threads = BTreeMap::from([(1, thread)]);
}

#[test]
fn lateness_has_the_cause_that_took_the_time() {
    check(true, "subscriber_slow", &["60 of 100", "\"worker\" computes 95 %"], |seen| {
        loses(&mut seen.ends[1], 60);
        spent(seen, 1, 950, 10);
    });
    check(true, "subscriber_waits", &["futex_wait", "gdb -p 12"], |seen| {
        loses(&mut seen.ends[1], 60);
        spent(seen, 1, 50, 10);
    });
    let words = ["40 %", "stress (process 99) took 100 % of a core", "chrt --fifo", "--pid 50 12"];
    check(true, "cpu_starved", &words, |seen| {
        loses(&mut seen.ends[1], 60);
        spent(seen, 1, 500, 400);
        seen.busiest =
            Some((Program { name: "stress".into(), pid: 99, ..Program::default() }, 1.0));
    });
    check(true, "cpu_throttled", &["/sys/fs/cgroup/robot", "30 % of the time"], |seen| {
        loses(&mut seen.ends[1], 60);
        spent(seen, 1, 700, 10);
        let group = "/sys/fs/cgroup/robot".to_owned();
        now(&mut seen.ends[1]).throttled = Some(Throttled { group, ns: 300_000_000 });
    });
    let uneven = Spread {
        count: 90,
        p50: 10_000_000,
        p99: 30_000_000,
        max: 80_000_000,
        ..Spread::default()
    };
    let publishes = |seen: &mut Snapshot, period: Spread| {
        let rate = Report { period: Some(period), has_times: true, ..Report::default() };
        seen.rates.insert(PUBLISHER, rate);
    };
    check(true, "publisher_waits", &["80.0 ms", "10.0 ms at p50"], |seen| {
        spent(seen, 0, 50, 10);
        publishes(seen, uneven);
    });
    check(true, "cpu_starved", &["waited for a CPU 8 % of the time"], |seen| {
        spent(seen, 0, 5, 80);
        publishes(seen, uneven);
    });
    let mut even = robot();
    publishes(&mut even, Spread { max: 12_000_000, ..uneven });
    assert_eq!(judge(&even, true), []);
}
