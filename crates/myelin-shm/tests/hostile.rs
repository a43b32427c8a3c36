//! Whatever bytes a peer writes into its memory, the result is a value or an error: no panic, no
//! fault, no wait beyond its limit. The fuzz targets in `fuzz/` have the same handler.

mod hostile_peer;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hostile_peer::{
    Memory, SUBSCRIBER, TYPE_HASH, is_asleep, observed, publishers, reader, subscriber, topic,
    wake_descriptors, wake_word_of,
};
use myelin_shm::Error;
use myelin_shm::data_plane::publication::{RemoteSubscriber, Writer};
use myelin_shm::data_plane::remote_publisher::RemotePublisher;
use myelin_shm::data_plane::subscription::Reader;
use myelin_shm::layout::{
    PUBLICATION_HEAD_BYTES, SUBSCRIPTION_HEAD_BYTES, VERSION, connections_offset, held_of,
};
use myelin_shm::limits::SEQUENCE_BITS;
use myelin_shm::os::segment::{Segment, Writers};
use myelin_shm::topic::{Late, PublisherQos, Reliability, SubscriberQos};
use myelin_shm::wait_set::WaitSet;
use myelin_shm::waiting::remote_wake_table::RemoteWakeTables;
use myelin_shm::waiting::sleep::Sleep;
use myelin_shm::waiting::wait::{NEVER, Wait, now_ns};
use myelin_shm::waiting::wake_table::WakeTable;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_reader_survives_any_publisher(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        publishers(&bytes);
    }

    #[test]
    fn an_observer_survives_any_publisher(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        observed(&bytes);
    }

    #[test]
    fn a_writer_survives_any_subscriber(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        subscriber(&bytes);
    }
}

const PUBLISHED: usize = 16;
const ASLEEP: usize = 16;
const CELLS: usize = PUBLICATION_HEAD_BYTES as usize / 8;

fn what(error: Error) -> &'static str {
    match error {
        Error::PeerCorrupt { what } => what,
        other => panic!("{other}"),
    }
}

fn map_publication(change: impl FnOnce(&Memory)) -> Result<RemotePublisher, Error> {
    let memory = Memory::publication(1, 4);
    change(&memory);
    RemotePublisher::map(1, &topic(), 0, memory.descriptor())
}

fn map_subscription(
    connection: u32,
    change: impl FnOnce(&Memory),
) -> Result<RemoteSubscriber, Error> {
    let memory = Memory::subscription();
    change(&memory);
    view(&memory, &Memory::new(Writers::Everyone), connection, false)
}

fn view(
    memory: &Memory,
    wake_word: &Memory,
    connection: u32,
    reliable: bool,
) -> Result<RemoteSubscriber, Error> {
    let tables = &mut RemoteWakeTables::default();
    let (memory, wake_descriptors) = (memory.descriptor(), wake_descriptors(wake_word, None));
    RemoteSubscriber::map(
        SUBSCRIBER,
        1,
        &topic(),
        reliable,
        0,
        connection,
        1,
        memory,
        wake_descriptors,
        tables,
    )
}

#[test]
fn a_wrong_publication_head_is_an_error_with_the_cause() {
    assert!(map_publication(|_| ()).is_ok());
    let no_publication = map_publication(|memory| memory.set(0, 0)).unwrap_err();
    assert_eq!(what(no_publication), "a segment that is no publication");
    let other_version = map_publication(|memory| memory.set(1, VERSION + 1)).unwrap_err();
    let theirs = VERSION + 1;
    assert!(
        matches!(other_version, Error::LayoutVersion { theirs: it, .. } if it == theirs),
        "{other_version}"
    );
    for (at, value) in [
        (3, 5),
        (4, TYPE_HASH + 1),
        (5, 1),
        (5, 30),
        (5, u64::MAX),
        (6, 0),
        (6, 4),
        (6, u64::MAX),
        (7, 4),
    ] {
        let error = map_publication(|memory| memory.set(at, value)).unwrap_err();
        assert_eq!(what(error), "a publication's head", "word {at} is {value}");
    }
}

#[test]
fn a_wrong_subscription_head_is_an_error_with_the_cause() {
    assert!(map_subscription(0, |_| ()).is_ok());
    let no_subscription = map_subscription(0, |memory| memory.set(0, 0)).unwrap_err();
    assert_eq!(what(no_subscription), "a segment that is no subscription");
    let other_version = map_subscription(0, |memory| memory.set(1, VERSION + 1)).unwrap_err();
    let theirs = VERSION + 1;
    assert!(
        matches!(other_version, Error::LayoutVersion { theirs: it, .. } if it == theirs),
        "{other_version}"
    );
    for (at, value) in [
        (3, 5),
        (4, TYPE_HASH + 1),
        (5, 0),
        (5, 4_097),
        (5, u64::MAX),
        (6, 0),
        (6, 500),
        (6, 4_097),
        (6, u64::MAX),
    ] {
        let error = map_subscription(0, |memory| memory.set(at, value)).unwrap_err();
        assert_eq!(what(error), "a subscription's head", "word {at} is {value}");
    }
    assert_eq!(what(map_subscription(2, |_| ()).unwrap_err()), "a subscription's head");
    // There are that many connections, and this one has no memory.
    let beyond = map_subscription(64, |memory| memory.set(5, 65)).unwrap_err();
    assert_eq!(what(beyond), "a subscription's head");
    let other = map_subscription(1, |_| ()).unwrap_err();
    assert_eq!(what(other), "a connection with another publisher");
}

#[test]
fn an_unsealed_or_short_segment_is_refused() {
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let unsealed = || -> OwnedFd {
        let fd = rustix::fs::memfd_create("loose", flags).unwrap();
        rustix::fs::ftruncate(&fd, 4096).unwrap();
        fd
    };
    let error = RemotePublisher::map(1, &topic(), 0, unsealed()).unwrap_err();
    assert_eq!(what(error), "a segment that is not sealed");
    let source = map_publication(|_| ()).unwrap();
    let error = source.add_segment(0, 256, 16, unsealed()).unwrap_err();
    assert_eq!(what(error), "a segment that is not sealed");
    let slots = Memory::new(Writers::Owner);
    let error = source.add_segment(0, 256, 17, slots.descriptor()).unwrap_err();
    assert_eq!(what(error), "a segment shorter than its content");
    for (slot_bytes, slots) in [(0, 1), (64, 0), (100, 1), (u64::MAX / 2 + 1, 2)] {
        let memory = Memory::new(Writers::Owner);
        let error = source.add_segment(0, slot_bytes, slots, memory.descriptor()).unwrap_err();
        assert_eq!(what(error), "the size of a slot segment");
    }
    let file: OwnedFd = tempfile::tempfile().unwrap().into();
    assert_eq!(
        what(RemotePublisher::map(1, &topic(), 0, file).unwrap_err()),
        "a segment that is not sealed"
    );
}

/// A reader would fill a hole with its own memory, or get a SIGBUS if there is none.
#[test]
fn a_segment_without_memory_is_refused() {
    use rustix::fs::{MemfdFlags, SealFlags};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create("hole", flags).unwrap();
    rustix::fs::ftruncate(&fd, 32 << 20).unwrap();
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    let mapped = Segment::map_theirs(fd.as_fd(), 4096).is_ok();
    let kib = rustix::fs::fstat(&fd).unwrap().st_blocks / 2;
    assert!(!mapped, "mapped, and now takes {kib} KiB");
}

/// Each publisher claims that 2^63 samples were lost.
#[test]
fn impossible_losses_do_not_overflow() {
    let (mut reader, shared) = reader(SubscriberQos::default());
    let _peers = [1, 2].map(|id| {
        let memory = Memory::publication(id, 4);
        let next: u64 = (1 << 63) + 1000;
        memory.set(PUBLISHED, next);
        for sequence in next - 3..next {
            let cell = CELLS + sequence as usize % 4 * 16;
            memory.set(cell, sequence + 1);
            memory.set(cell + 2, u64::MAX);
        }
        memory.set(CELLS, u64::MAX - 8);
        shared.reserve(id, memory.descriptor(), Vec::new()).unwrap();
        shared.start(id, 0);
        memory
    });
    for _ in 0..8 {
        let _ = reader.take();
    }
}

/// A sequence of 2^52 and more does not fit into a hold: it must not spill into the connection.
#[test]
fn a_hold_never_names_another_connection() {
    let (mut reader, shared) = reader(SubscriberQos::default());
    let memory = Memory::publication(1, 4);
    let slots = Memory::new(Writers::Owner);
    let sequence: u64 = (3 << SEQUENCE_BITS) + 41;
    let cell = CELLS + (sequence % 4) as usize * 16;
    for (at, value) in [(1, 200), (2, 0), (0, sequence + 1)] {
        memory.set(cell + at, value);
    }
    memory.set(PUBLISHED, sequence + 1);
    let segments = vec![(0, 256, 16, slots.descriptor())];
    let connection = shared.reserve(1, memory.descriptor(), segments).unwrap();
    shared.start(1, sequence);
    let taken = reader.take();
    let (fd, _) = shared.descriptors();
    let announced = Segment::map_theirs(fd, 4096).unwrap();
    // SAFETY: atomics, and only loaded.
    let holds = unsafe { announced.array::<AtomicU64>(SUBSCRIPTION_HEAD_BYTES, 16) };
    for hold in holds.iter().map(|hold| hold.load(Ordering::Relaxed)).filter(|hold| *hold != 0) {
        assert_eq!(held_of(hold), connection, "a hold of a stranger's sample");
    }
    drop(taken);
}

/// Calls `storm` again and again in a thread of its own while `handler` runs.
fn during(storm: impl Fn() + Sync, handler: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let storming = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                storm();
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(handler));
        done.store(true, Ordering::Relaxed);
        storming.join().unwrap();
        ended.unwrap();
    });
}

const LIMIT: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(2);

#[test]
fn endless_wake_ups_do_not_extend_a_wait() {
    let (mut reader, shared) = reader(SubscriberQos::default());
    let (_, wake_word) = shared.descriptors();
    let wake_word = Segment::map_shared(wake_word, 64).unwrap();
    // SAFETY: a wake word is an atomic.
    let wake_word: &myelin_shm::layout::WakeWord = unsafe { wake_word.at(0) };
    let storm = || {
        wake_word.wakes.fetch_add(1, Ordering::Relaxed);
    };
    during(storm, || {
        for _ in 0..10 {
            let began = Instant::now();
            assert!(!reader.wait(Wait::Block, now_ns() + LIMIT.as_nanos() as u64).unwrap());
            assert!(began.elapsed() < PATIENCE, "waited {:?}", began.elapsed());
        }
    });
}

#[test]
fn a_reading_that_never_stops_does_not_extend_a_publish() {
    let qos = PublisherQos {
        depth: 2,
        reliability: Reliability::Reliable,
        block_max: LIMIT,
        late: Late::Fail,
        ..PublisherQos::default()
    };
    let (mut writer, shared) = Writer::create(1, &topic(), qos).unwrap();
    let (memory, wake_word) = (Memory::subscription(), Memory::new(Writers::Everyone));
    let reading = connections_offset(4) as usize / 8 + 1;
    shared.attach(view(&memory, &wake_word, 0, true).unwrap()).unwrap();
    for next in 0..6 {
        memory.set(reading, next.min(4));
        writer.publish_copy(&[0; 8]).unwrap();
    }
    memory.set(reading, 0);
    let storm = || {
        for low in 0..1024 {
            memory.set(reading, low % 2);
        }
    };
    during(storm, || {
        for _ in 0..10 {
            let began = Instant::now();
            let error = writer.publish_copy(&[0; 8]).unwrap_err();
            assert!(matches!(error, Error::ReliableTimeout { .. }), "{error}");
            assert!(began.elapsed() < PATIENCE, "waited {:?}", began.elapsed());
        }
    });
    wake_word_of(&wake_word).wakes.store(0, Ordering::Relaxed);
}

/// While its cells change all the time, under a reader that takes and waits.
#[test]
fn a_ring_that_changes_under_the_reader_ends_no_take() {
    let qos = SubscriberQos { held_max: 4, ..SubscriberQos::default() };
    let (mut reader, shared) = reader(qos);
    let memory = Memory::publication(1, 4);
    let segments = vec![(0, 256, 16, Memory::new(Writers::Owner).descriptor())];
    shared.reserve(1, memory.descriptor(), segments).unwrap();
    shared.start(1, 0);
    let turn = AtomicU64::new(0);
    let storm = || {
        let turn = turn.fetch_add(1, Ordering::Relaxed);
        let cell = CELLS + (turn % 4) as usize * 16;
        memory.set(cell + 2, if turn.is_multiple_of(3) { u64::MAX } else { turn % 16 });
        memory.set(cell + 1, turn % 200);
        memory.set(cell, turn + turn % 2);
        memory.set(PUBLISHED, turn - (turn % 5).min(turn));
    };
    during(storm, || {
        let began = Instant::now();
        let mut held = Vec::new();
        while began.elapsed() < Duration::from_millis(200) {
            match reader.take() {
                Ok(Some(taken)) => held.push(taken),
                Ok(None) => drop(reader.wait(Wait::Adaptive, now_ns() + 10_000)),
                Err(_) => held.clear(),
            }
            if held.len() == 4 {
                held.clear();
            }
        }
    });
}

/// A reader, matched with a publication of four cells that a test can write.
fn matched() -> (Reader, Memory) {
    let (reader, shared) = reader(SubscriberQos::default());
    let memory = Memory::publication(1, 4);
    shared.reserve(1, memory.descriptor(), Vec::new()).unwrap();
    shared.start(1, 0);
    (reader, memory)
}

/// Sample 4 is there according to its cell, sample 1 according to the count: the reader must not
/// look for ever.
#[test]
fn an_unpublished_sample_ends_the_match() {
    let (mut reader, memory) = matched();
    memory.set(CELLS, 5);
    memory.set(PUBLISHED, 1);
    assert!(reader.wait(Wait::Block, now_ns() + 1_000_000_000).unwrap());
    let error = reader.take().map(|taken| taken.map(|taken| taken.sequence)).unwrap_err();
    assert_eq!(what(error), "a sample that was never published");
    assert!(!reader.wait(Wait::Block, now_ns() + 1_000_000).unwrap(), "it is disconnected");
}

/// A cell that is being written for ever, while its publisher counts on.
#[test]
fn a_cell_that_is_never_finished_ends_the_match() {
    let (mut reader, memory) = matched();
    memory.set(CELLS, u64::MAX);
    memory.set(PUBLISHED, 2);
    let taken = reader.take().map(|taken| taken.map(|taken| taken.sequence));
    assert_eq!(what(taken.unwrap_err()), "a sample that was never published");
}

/// A slot segment that was missing for a sample that has been overwritten since says nothing about
/// the next.
#[test]
fn a_segment_that_was_missing_is_forgotten_with_its_sample() {
    let (mut reader, memory) = matched();
    let write = |sequence: u64, length: u64, place: u64| {
        let cell = CELLS + (sequence % 4) as usize * 16;
        for (at, value) in [(1, length), (2, place), (0, sequence + 1)] {
            memory.set(cell + at, value);
        }
        memory.set(PUBLISHED, sequence + 1);
    };
    write(0, 200, 7 << 32);
    assert!(reader.take().unwrap().is_none(), "its segment has not come");
    (1..9).for_each(|sequence| write(sequence, 8, u64::MAX));
    for sequence in 6..9 {
        assert!(
            reader.wait(Wait::Block, now_ns() + 10_000_000_000).unwrap(),
            "{sequence} is there"
        );
        assert_eq!(reader.take().unwrap().unwrap().sequence, sequence);
    }
}

/// A wait set does not report it either: the waiting thread would not sleep, and could starve the
/// thread that brings the segment.
#[test]
fn a_wait_set_sleeps_until_the_segment_of_a_sample_has_come() {
    let table = WakeTable::create().unwrap();
    let (mut reader, shared) =
        Reader::create(SUBSCRIBER, &topic(), SubscriberQos::default(), &table).unwrap();
    let memory = Memory::publication(1, 4);
    shared.reserve(1, memory.descriptor(), Vec::new()).unwrap();
    shared.start(1, 0);
    let mut set = WaitSet::of(&table).unwrap();
    let key = set.add(&reader).unwrap();
    // In slot 0 of segment 0.
    for (at, value) in [(CELLS + 1, 200), (CELLS + 2, 0), (CELLS, 1), (PUBLISHED, 1)] {
        memory.set(at, value);
    }
    assert_eq!(set.wait(Wait::Block, 0).unwrap(), [key]);
    assert!(reader.take().unwrap().is_none(), "its segment has not come");
    for how in [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive] {
        assert!(set.wait(how, now_ns() + 1_000_000).unwrap().is_empty(), "{how:?}");
    }
    let slots = Memory::new(Writers::Owner);
    std::thread::scope(|scope| {
        scope.spawn(|| shared.add_segment(1, 0, 256, 16, slots.descriptor()).unwrap());
        assert_eq!(set.wait(Wait::Block, now_ns() + 60_000_000_000).unwrap(), [key]);
    });
    assert_eq!(reader.take().unwrap().unwrap().sequence, 0);
}

/// Another publisher has reset the wake word, so that no thread was woken: a publisher that has
/// published does not assume that the sleeper is awake, and notifies again at its next sample.
#[test]
fn a_wake_word_that_is_reset_does_not_silence_others() {
    let (memory, wake_word) = (Memory::subscription(), Memory::new(Writers::Everyone));
    let (mut writer, publication) = Writer::create(1, &topic(), PublisherQos::default()).unwrap();
    publication.attach(view(&memory, &wake_word, 0, false).unwrap()).unwrap();
    memory.set(ASLEEP, Sleep::new(1, None).0);
    for sample in 0..3 {
        writer.publish_copy(&[0; 8]).unwrap();
        let wakes = wake_word_of(&wake_word).wakes.swap(0, Ordering::Relaxed);
        assert_eq!(wakes, 1, "at sample {sample}");
    }
}

/// The last sample before a silence is not left either: a sleeper on the word of several publishers
/// looks without a wake-up. Here each wake-up is lost, because it goes to a word without sleepers.
#[test]
fn a_subscriber_of_several_publishers_takes_every_sample_without_wake_ups() {
    let (mut writer, publication) = Writer::create(1, &topic(), PublisherQos::default()).unwrap();
    let (mut reader, shared) = reader(SubscriberQos::default());
    let own = publication.descriptor().try_clone_to_owned().unwrap();
    let connection = shared.reserve(1, own, Vec::new()).unwrap();
    let (segment, _) = shared.passed_to(connection).unwrap();
    let wake_descriptors = wake_descriptors(&Memory::new(Writers::Everyone), None);
    let (id, tables) = (SUBSCRIBER, &mut RemoteWakeTables::default());
    let view = RemoteSubscriber::map(
        id,
        1,
        &topic(),
        false,
        0,
        connection,
        1,
        segment,
        wake_descriptors,
        tables,
    );
    shared.start(1, publication.attach(view.unwrap()).unwrap());
    let other = Memory::publication(2, 4);
    shared.reserve(2, other.descriptor(), Vec::new()).unwrap();
    shared.start(2, 0);
    let (taking, taken) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..SAMPLES {
            assert!(reader.wait(Wait::Block, NEVER).unwrap());
            taking.send(reader.take().unwrap().unwrap().sequence).unwrap();
        }
    });
    for sample in 0..SAMPLES {
        let begin = Instant::now();
        while !is_asleep(&shared) {
            assert!(begin.elapsed() < WATCHDOG, "it does not sleep");
            std::thread::yield_now();
        }
        writer.publish_copy(&[0; 8]).unwrap();
        let sequence = taken.recv_timeout(WATCHDOG);
        assert_eq!(sequence, Ok(sample), "it lies there and its subscriber sleeps");
    }
}

/// Enough that some are published while the subscriber is in the kernel already, and not on its way
/// there.
const SAMPLES: u64 = 5;
const WATCHDOG: Duration = Duration::from_secs(60);

/// No descriptor from a subscriber can stop or kill a publisher.
#[test]
fn a_descriptor_that_is_not_a_pipe_is_refused() {
    let memory = Memory::subscription();
    let (wake_word, event) = (Memory::new(Writers::Everyone), rustix::event::EventfdFlags::CLOEXEC);
    let eventfd = rustix::event::eventfd(u32::MAX, event).unwrap();
    let file: OwnedFd = tempfile::tempfile().unwrap().into();
    for passed in [eventfd, file] {
        let error = view_with(&memory, &wake_word, passed).unwrap_err();
        assert_eq!(what(error), "a subscriber's descriptor");
    }
}

fn view_with(
    memory: &Memory,
    wake_word: &Memory,
    passed: OwnedFd,
) -> Result<RemoteSubscriber, Error> {
    let (fd, wake_descriptors) = (memory.descriptor(), wake_descriptors(wake_word, Some(passed)));
    let tables = &mut RemoteWakeTables::default();
    RemoteSubscriber::map(SUBSCRIBER, 1, &topic(), false, 0, 0, 1, fd, wake_descriptors, tables)
}

/// A subscriber that never reads its descriptor, and claims all the time that it sleeps: an honest
/// descriptor, a pipe that blocks and is full, and a pipe whose reader has gone.
#[test]
fn a_descriptor_that_is_never_read_does_not_hold_up_a_publish() {
    let qos = SubscriberQos { descriptor: true, ..SubscriberQos::default() };
    let (_reader, shared) = reader(qos);
    let (_kept, full) = rustix::pipe::pipe().unwrap();
    let bytes = rustix::pipe::fcntl_getpipe_size(&full).unwrap();
    rustix::io::write(&full, &vec![0; bytes]).unwrap();
    let (gone, closed) = rustix::pipe::pipe().unwrap();
    drop(gone);
    // SAFETY: no handler runs code of ours; a signal would now end the process, as in a C program.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    for passed in [shared.passed_to(0).unwrap().1.wake_pipe.unwrap(), full, closed] {
        let (mut writer, publication) =
            Writer::create(1, &topic(), PublisherQos::default()).unwrap();
        let (memory, wake_word) = (Memory::subscription(), Memory::new(Writers::Everyone));
        publication.attach(view_with(&memory, &wake_word, passed).unwrap()).unwrap();
        for sleep in 1..5_000 {
            memory.set(ASLEEP, sleep);
            writer.publish_copy(&[0; 8]).unwrap();
        }
    }
}
