//! Requirements on the streams and frames of every driver. On a busy machine a system may lose
//! messages, but none may be damaged, come twice, or come before it was sent.

use std::path::Path;

use myelin_bench_kit::protocol::{
    Done, Frame, Prepare, Recording, Role, System, Topology, Workload,
};
use myelin_bench_kit::samples::Record;
use myelin_bench_kit::trace::{Trace, TraceMessage};

use super::{Pair, Solo, describe, prepare};

/// The counts of both ends, and the records of the received messages.
pub struct Ran {
    pub ping: Done,
    pub pong: Done,
    pub pings: Vec<Record>,
    pub pongs: Vec<Record>,
}

/// A stream of 64 B at 2 kHz.
pub fn at_rate(system: &str) -> Prepare {
    let (workload, rate_hz, warmup_messages) = (Workload::Stream, Some(2000.0), 3);
    Prepare { workload, rate_hz, warmup_messages, ..prepare(system, Role::Ping) }
}

/// Small frames at 200 Hz.
pub fn frames(system: &str) -> Prepare {
    let frame = Frame { width: 320, height: 240 };
    let (payload_bytes, rate_hz, messages) = (frame.bytes(), Some(200.0), 20);
    let (workload, frame) = (Workload::Image, Some(frame));
    Prepare { workload, frame, payload_bytes, rate_hz, messages, ..at_rate(system) }
}

/// The systems that can run here and have both workloads; a system has both or neither. Without those that need an
/// identity.
pub fn one_way_systems(executable: &Path, topology: Topology) -> Vec<System> {
    let has = |system: &System| {
        let streams = system.workloads.contains(&Workload::Stream);
        assert_eq!(streams, system.workloads.contains(&Workload::Image));
        streams && system.topology == topology && !system.secure && system.missing.is_none()
    };
    describe(executable).systems.into_iter().filter(has).collect()
}

/// A run between two processes.
pub fn across(executable: &Path, prepare: &Prepare) -> Ran {
    finish(Pair::open(executable, prepare, prepare.messages), prepare)
}

/// Runs `pair`, which is ready, to the end.
pub fn finish(mut pair: Pair, prepare: &Prepare) -> Ran {
    pair.go();
    let (ping, pong) = pair.end(prepare.reliability);
    assert!(ping.pong.is_none() && pong.cpu_ns.is_some());
    checked(prepare, ping, pong, pair.ping_samples.records(), pair.pong_samples.records())
}

/// A run in one process.
pub fn within(executable: &Path, prepare: &Prepare) -> Ran {
    let mut solo = Solo::open(executable, prepare, prepare.messages);
    let (ping, pong) = solo.finish();
    assert!(ping.cpu_ns.is_some() && pong.cpu_ns.is_none());
    assert_eq!(pong.lost, ping.sent - pong.received);
    checked(prepare, ping, pong, solo.ping_samples.records(), solo.pong_samples.records())
}

fn checked(
    prepare: &Prepare,
    ping: Done,
    pong: Done,
    pings: Vec<Record>,
    pongs: Vec<Record>,
) -> Ran {
    let (messages, is_image) = (prepare.messages, prepare.workload == Workload::Image);
    let what = format!("{} with {} B: {pong:?}", prepare.system, prepare.payload_bytes);
    assert_eq!((ping.sent, ping.received, pings.len() as u64), (messages, 0, messages), "{what}");
    assert!(pong.received > 0 && pong.received <= messages, "{what}");
    assert_eq!((pong.duplicates, pong.out_of_order, pong.corrupt), (0, 0, 0), "{what}");
    let both = pings.into_iter().zip(pongs).filter(|(_, pong)| pong.take_return_ns != 0);
    let (pings, pongs): (Vec<_>, Vec<_>) = both.unzip();
    assert_eq!(pongs.len() as u64, pong.received, "{what}");
    for (ping, pong) in pings.iter().zip(&pongs) {
        let arrived_ns = if pong.wake_ns == 0 { pong.take_return_ns } else { pong.wake_ns };
        let times = [ping.intended_ns, ping.publish_entry_ns, arrived_ns, pong.take_return_ns];
        assert!(times.is_sorted(), "{what}: {ping:?} {pong:?}");
        assert!(ping.publish_entry_ns <= ping.publish_return_ns, "{what}");
        assert_eq!((ping.id, pong.flags, pong.duplicates), (pong.id, 0, 0), "{what}");
        let copies = pong.as_taken();
        let is_copied = copies.memcpy_ns > 0 && copies.stream_copy_ns > 0;
        assert_eq!(is_image, is_copied, "{what}: {pong:?}");
        assert!(!is_image || ping.fill_ns > 0, "{what}: {ping:?}");
    }
    Ran { ping, pong, pings, pongs }
}

/// 240 messages of three topics within 0.2 s, with sizes up to 70,000 B. The trace is in `folder`.
pub fn replay(system: &str, folder: &Path) -> Prepare {
    const SIZES: [u32; 5] = [0, 3, 1024, 1029, 70_000];
    let message = |index: u32, due_ns| {
        let bytes = SIZES[index as usize % SIZES.len()];
        // Topic 0 has no room for the largest ones, of which one is the last.
        let topic = if bytes == 70_000 { 1 } else { index % 3 };
        TraceMessage { due_ns, topic, bytes, ..TraceMessage::default() }
    };
    let (warm_ups, messages) = (15, 240);
    // Bursts of four.
    let due_ns = |index: u32| u64::from(index / 4) * 4_000_000;
    let all = (0..warm_ups + messages).map(|index| message(index, due_ns(index))).collect();
    let trace = Trace::new(3, warm_ups as usize, due_ns(warm_ups), all).unwrap();
    let path = folder.join("trace");
    std::fs::write(&path, trace.to_bytes()).unwrap();
    let recording = Some(Recording { trace: path, payload_bytes: trace.largest() });
    let (workload, topics, rate_hz) = (Workload::Replay, 3, Some(1000.0));
    Prepare {
        workload,
        recording,
        topics,
        rate_hz,
        directory: folder.into(),
        payload_bytes: 70_000,
        warmup_messages: warm_ups.into(),
        messages: messages.into(),
        ..prepare(system, Role::Ping)
    }
}

/// Every system that can replay a recording delivers its messages as they were sent.
pub fn replays_arrive(executable: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let systems = describe(executable).systems.into_iter();
    let able = systems.filter(|it| {
        it.missing.is_none() && !it.secure && it.workloads.contains(&Workload::Replay)
    });
    for system in able.filter(|it| it.streams.topics_max != 1 || it.floor) {
        let reliability = system.streams.reliability[0];
        let ran =
            across(executable, &Prepare { reliability, ..replay(&system.name, folder.path()) });
        let name = &system.name;
        assert!(ran.pong.lost <= ran.ping.sent - ran.pong.received, "{name}: {:?}", ran.pong);
        assert!(ran.pongs.len() > 100, "{name}: most arrive: {:?}", ran.pong);
    }
}
