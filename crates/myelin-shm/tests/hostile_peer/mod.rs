//! A peer that writes anything into its own memory. The handler of `hostile.rs` and of the fuzz
//! targets: any input must end in `Ok` or `Err`.
#![allow(dead_code, reason = "each user has its own part")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use myelin_shm::Error;
use myelin_shm::data_plane::observer::{ObservedSample, ObserverReader, ObserverState};
use myelin_shm::data_plane::publication::{RemoteSubscriber, WakeDescriptors, Writer};
use myelin_shm::data_plane::subscription::{Reader, SubscriptionState};
use myelin_shm::layout::{
    INLINE, PUBLICATION_HEAD_BYTES, PUBLICATION_MAGIC, READY_TABLE_BYTES, SET_HEADS_BYTES,
    SUBSCRIPTION_MAGIC, VERSION, WAKE_SEGMENT_BYTES, WakeSegment, WakeWord, connections_offset,
    subscription_begin,
};
use myelin_shm::limits::SEQUENCE_MAX;
use myelin_shm::os::segment::{Segment, Writers};
use myelin_shm::topic::{Late, PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::waiting::remote_wake_table::{RemoteWakeTables, WakeTableDescriptors};
use myelin_shm::waiting::wait::{Wait, now_ns};
use myelin_shm::waiting::wake_table::WakeTable;

pub const SEGMENT_BYTES: u64 = 4096;
pub const TYPE_HASH: u64 = 7;
/// Its segment begins at the page's first byte.
pub const SUBSCRIBER: u64 = 96;
const WORDS: u64 = SEGMENT_BYTES / 8;
/// More than a reader looks at one by one.
const PUBLISHERS: usize = 6;
const CELL_WORDS: u64 = 16;
const HEAD_WORDS: u64 = PUBLICATION_HEAD_BYTES / 8;
const PUBLISHED: usize = 16;

pub fn topic() -> Topic {
    Topic { name: "test".into(), type_name: "bytes".into(), type_hash: TYPE_HASH }
}

/// A segment of the peer's, and its words.
pub struct Memory {
    pub segment: Segment,
    pub fd: OwnedFd,
}

impl Memory {
    pub fn new(writers: Writers) -> Self {
        let (segment, fd) = Segment::create("hostile", SEGMENT_BYTES, writers).unwrap();
        Memory { segment, fd }
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: atomics, valid for any bytes; the mapping is ours.
        unsafe { self.segment.array(0, WORDS) }
    }

    pub fn set(&self, at: usize, value: u64) {
        self.words()[at].store(value, Ordering::Relaxed);
    }

    pub fn descriptor(&self) -> OwnedFd {
        self.fd.as_fd().try_clone_to_owned().unwrap()
    }

    /// An honest publisher's initial state.
    pub fn publication(id: u64, cells: u64) -> Self {
        let memory = Memory::new(Writers::Owner);
        let head = [PUBLICATION_MAGIC, VERSION, SEGMENT_BYTES, id, TYPE_HASH, cells, cells - 1, 0];
        for (at, value) in head.into_iter().enumerate() {
            memory.set(at, value);
        }
        memory
    }

    /// An honest subscriber's initial state: 4 holds, 2 connections, the first with publisher 1.
    pub fn subscription() -> Self {
        let memory = Memory::new(Writers::Owner);
        let head = [SUBSCRIPTION_MAGIC, VERSION, SEGMENT_BYTES, SUBSCRIBER, TYPE_HASH, 2, 4];
        for (at, value) in head.into_iter().enumerate() {
            memory.set(at, value);
        }
        memory.set(connections_offset(4) as usize / 8, 1);
        memory
    }
}

/// Choices made by the input; zeros when it is used up.
pub struct Input<'a>(pub &'a [u8]);

impl Input<'_> {
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, limit: u64) -> u64 {
        (u64::from(self.byte()) << 8 | u64::from(self.byte())) % limit
    }

    /// A word, more often a significant one.
    fn word(&mut self) -> u64 {
        let small = u64::from(self.byte() % 16);
        match self.byte() % 10 {
            0 => u64::MAX - small,
            1 => SEQUENCE_MAX - 1 + small,
            2 => (1 << 32) * small + small,
            3 => (1 << 63) - 8 + small,
            4 => INLINE,
            5 => (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte())),
            6 => 100 + small,
            _ => small,
        }
    }

    fn is_done(&self) -> bool {
        self.0.is_empty()
    }
}

/// One hostile write: most often to a place where a reader looks.
fn mutate(memory: &Memory, cells: u64, input: &mut Input<'_>) {
    let value = input.word();
    match input.byte() % 8 {
        0 => memory.set(PUBLISHED, value),
        1 => memory.set(input.below(WORDS) as usize, value),
        // A valid sample, except for its length and place.
        2 | 3 => {
            let sequence = memory.words()[PUBLISHED].load(Ordering::Relaxed);
            let cell = (HEAD_WORDS + sequence % cells * CELL_WORDS) as usize;
            memory.set(cell + 1, value);
            memory.set(cell + 2, input.word());
            memory.set(cell, sequence.wrapping_add(1));
            memory.set(PUBLISHED, sequence.wrapping_add(1));
        }
        kind => {
            let cell = HEAD_WORDS + input.below(cells) * CELL_WORDS;
            memory.set((cell + u64::from(kind - 4) % 3) as usize, value);
        }
    }
}

/// Two hostile publishers against a reader, or so many that they set their ready bits.
pub fn publishers(bytes: &[u8]) {
    let input = &mut Input(bytes);
    let held_max = 1 + u32::from(input.byte() % 3);
    let reliability = match input.byte() % 2 {
        0 => Reliability::BestEffort,
        _ => Reliability::Reliable,
    };
    let descriptor = input.byte().is_multiple_of(4);
    let qos = SubscriberQos {
        held_max,
        publishers_max: PUBLISHERS as u32,
        transient_local: u32::from(input.byte() % 4),
        depth: 1 + u32::from(input.byte() % 12),
        reliability,
        descriptor,
        ..SubscriberQos::default()
    };
    let (mut reader, shared) = reader(qos);
    let cells = 2 + input.below(8);
    let count = if input.byte().is_multiple_of(2) { 2 } else { PUBLISHERS };
    let peers = Vec::from_iter((1..=count as u64).map(|id| {
        let memory = Memory::publication(id, cells);
        for _ in 0..input.byte() % 4 {
            // The head, wrong half of the time.
            if input.byte().is_multiple_of(2) {
                memory.set(usize::from(input.byte() % 8), input.word());
            }
        }
        for _ in 0..input.byte() % 8 {
            mutate(&memory, cells, input);
        }
        let slots = (0..input.byte() % 3).map(|number| slots(number, input)).collect();
        if shared.reserve(id, memory.descriptor(), slots).is_ok() {
            shared.start(id, input.word());
        }
        memory
    }));
    let wake = Segment::map_shared(shared.descriptors().1, WAKE_SEGMENT_BYTES).unwrap();
    // SAFETY: atomics, valid for any bytes; the mapping is ours.
    let ready = unsafe { &wake.at::<WakeSegment>(0).ready };
    let mut held = Vec::new();
    while !input.is_done() {
        let peer = &peers[usize::from(input.byte()) % count];
        match input.byte() % 16 {
            0 => {
                let (number, slot_bytes, slots, fd) = slots(input.byte(), input);
                let _ = shared.add_segment(1, number, slot_bytes, slots, fd);
            }
            1 if input.byte().is_multiple_of(8) => shared.publisher_gone(1),
            2 => {
                let how = [Wait::Poll, Wait::Block, Wait::Adaptive][usize::from(input.byte() % 3)];
                let _ = reader.wait(how, now_ns() + 1_000);
            }
            3 if input.byte().is_multiple_of(2) => {
                ready[usize::from(input.byte() % 4)].store(input.word(), Ordering::Relaxed);
            }
            3 => held.clear(),
            4 => held.extend(held.last().cloned()),
            5..9 => mutate(peer, cells, input),
            _ => match reader.take() {
                Ok(Some(taken)) => {
                    std::hint::black_box(
                        taken.bytes().iter().map(|byte| *byte as u64).sum::<u64>(),
                    );
                    if input.byte().is_multiple_of(2) {
                        held.push(taken);
                    }
                }
                Ok(None) | Err(Error::PeerCorrupt { .. } | Error::TooManyHeld { .. }) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }
    let _ = (shared.progress(1), shared.borrowed(), reader.lost());
}

/// Two hostile publishers against an observer.
pub fn observed(bytes: &[u8]) {
    let input = &mut Input(bytes);
    let state = ObserverState::new(topic(), u32::from(input.byte() % 4), input.word());
    let cells = 2 + input.below(8);
    let peers = [1, 2].map(|id| {
        let memory = Memory::publication(id, cells);
        for _ in 0..input.byte() % 4 {
            // The head, wrong half of the time.
            if input.byte().is_multiple_of(2) {
                memory.set(usize::from(input.byte() % 8), input.word());
            }
        }
        let _ = state.map_ring(id, input.word(), memory.descriptor());
        memory
    });
    let mut reader = ObserverReader::new(state.clone());
    let mut sample = ObservedSample::new();
    while !input.is_done() {
        match input.byte() % 16 {
            0 | 1 => {
                let (number, slot_bytes, slots, fd) = slots(input.byte(), input);
                let _ = state.map_segment(1, number, slot_bytes, slots, fd);
            }
            2 => state.answered(1),
            3 if input.byte().is_multiple_of(8) => state.unobserve(1),
            4 => _ = reader.wait(now_ns() + 1_000),
            5 => _ = reader.publishers(),
            6..10 => mutate(&peers[usize::from(input.byte()) % 2], cells, input),
            10 | 11 => match reader.take_header() {
                Ok(_) | Err(Error::PeerCorrupt { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            _ => match reader.take_into(&mut sample) {
                Ok(true) if sample.missing.is_some() => assert!(sample.bytes().is_empty()),
                Ok(true) => assert_eq!(sample.bytes().len() as u64, sample.header.length),
                Ok(false) | Err(Error::PeerCorrupt { .. }) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }
    for it in reader.publishers() {
        assert!(
            it.without_payload <= it.seen && it.first + it.seen + it.overwritten <= it.published
        );
    }
}

/// Right half of the time.
fn slots(number: u8, input: &mut Input<'_>) -> (u32, u64, u32, OwnedFd) {
    let memory = Memory::new(Writers::Owner);
    match input.byte() % 4 {
        0 => (u32::from(number), input.word(), input.word() as u32, memory.descriptor()),
        1 => (input.word() as u32, 256, 16, memory.descriptor()),
        _ => (u32::from(number), 256, 16, memory.descriptor()),
    }
}

/// A hostile subscriber against a writer.
pub fn subscriber(bytes: &[u8]) {
    let input = &mut Input(bytes);
    let reliability = match input.byte() % 4 {
        0 => Reliability::Reliable,
        _ => Reliability::BestEffort,
    };
    let qos = PublisherQos {
        depth: 1 + u32::from(input.byte() % 4),
        transient_local: u32::from(input.byte() % 2),
        reliability,
        block_max: Duration::from_micros(20),
        late: if input.byte().is_multiple_of(2) { Late::PassOver } else { Late::Fail },
        memory_max: 4 << 20,
        ..PublisherQos::default()
    };
    let (mut writer, shared) = Writer::create(1, &topic(), qos).unwrap();
    let memory = Memory::subscription();
    for _ in 0..input.byte() % 3 {
        memory.set(usize::from(input.byte() % 8), input.word());
    }
    let wake_word = Memory::new(if input.byte() == 1 { Writers::Owner } else { Writers::Everyone });
    let connection = if input.byte().is_multiple_of(4) { input.word() as u32 } else { 0 };
    let view = RemoteSubscriber::map(
        SUBSCRIBER,
        1,
        &topic(),
        input.byte().is_multiple_of(2),
        input.word() as u32,
        connection,
        1,
        memory.descriptor(),
        wake_descriptors(&wake_word, None),
        &mut RemoteWakeTables::default(),
    );
    let Ok(view) = view else { return };
    shared.attach(view).unwrap();
    while !input.is_done() {
        match input.byte() % 8 {
            0 => memory.set(input.below(WORDS) as usize, input.word()),
            // Holds, connections and `asleep`.
            1 | 2 => memory.set(16 + input.below(64) as usize, input.word()),
            3 => wake_word.set(0, input.word()),
            4 => drop(writer.slot_counts()),
            5 if input.byte().is_multiple_of(16) => _ = shared.detach(SUBSCRIBER),
            _ => {
                let length = input.below(4096) as usize;
                match writer.publish_copy(&vec![1; length]) {
                    Ok(_) | Err(Error::MemoryLimit { .. } | Error::ReliableTimeout { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    _ = shared.detach(SUBSCRIBER);
    let counts = writer.slot_counts();
    let kept = qos.transient_local as usize;
    assert!(counts.free + kept >= counts.total, "what a subscriber held comes back without it");
}

/// An honest subscriber without publishers.
pub fn reader(qos: SubscriberQos) -> (Reader, Arc<SubscriptionState>) {
    Reader::create(SUBSCRIBER, &topic(), qos, &WakeTable::create().unwrap()).unwrap()
}

/// A wake word with the wake table of no node.
pub fn wake_descriptors(wake_word: &Memory, wake_pipe: Option<OwnedFd>) -> WakeDescriptors {
    let of = |bytes, writers| Segment::create("hostile", bytes, writers).unwrap().1;
    let table = WakeTableDescriptors {
        heads: of(SET_HEADS_BYTES, Writers::Owner),
        ready: of(READY_TABLE_BYTES, Writers::Everyone),
        pipe: std::io::pipe().unwrap().1.into(),
    };
    WakeDescriptors { wake_word: wake_word.descriptor(), table, wake_pipe }
}

/// The futex word of a wake word.
pub fn wake_word_of(memory: &Memory) -> &WakeWord {
    const { assert!(WAKE_SEGMENT_BYTES <= SEGMENT_BYTES) };
    // SAFETY: as for the words.
    unsafe { memory.segment.at(0) }
}

/// Whether the subscriber has said that it sleeps.
pub fn is_asleep(subscription: &SubscriptionState) -> bool {
    let segment = Segment::map_theirs(subscription.descriptors().0, 256).unwrap();
    let segment = segment.beginning_at(subscription_begin(subscription.id())).unwrap();
    // SAFETY: an atomic, valid for any bytes, that is only loaded.
    unsafe { segment.at::<AtomicU64>(128) }.load(Ordering::Relaxed) != 0
}
