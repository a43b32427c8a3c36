//! Real threads: two writers, three readers each, random lengths, holds and drops. Every payload
//! carries its checksum, and every sample is either taken or counted as lost, exactly.
//!
//! `MYELIN_STRESS` multiplies the number of samples.

mod hub;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use hub::{Hub, topic};
use myelin_shm::Error;
use myelin_shm::data_plane::publication::{Published, Writer};
use myelin_shm::data_plane::subscription::{RawSample, Reader};
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos};
use myelin_shm::waiting::wait::{Wait, now_ns};
use myelin_shm::waiting::wake_table::WakeTable;

const WRITERS: u64 = 2;
const READERS: u64 = 3;
const SAMPLES: u64 = 4_000;

/// xorshift64*; a seed other than 0.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

fn samples() -> u64 {
    let factor = std::env::var("MYELIN_STRESS").ok().and_then(|factor| factor.parse().ok());
    SAMPLES * factor.unwrap_or(1)
}

/// Sequence and publisher, filler, and the sum of all words before.
fn fill(words: &mut [u8], publisher: u64, sequence: u64) {
    let count = words.len() / 8;
    let mut sum = 0u64;
    for (at, word) in words.chunks_exact_mut(8).enumerate() {
        let value = match at {
            0 => sequence,
            1 => publisher,
            last if last + 1 == count => sum,
            _ => sequence.wrapping_mul(at as u64).wrapping_add(publisher),
        };
        sum = sum.wrapping_add(value);
        word.copy_from_slice(&value.to_ne_bytes());
    }
}

fn check(taken: &RawSample) {
    let words: Vec<u64> = taken
        .bytes()
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    let (last, rest) = words.split_last().unwrap();
    assert_eq!((rest[0], rest[1]), (taken.sequence, taken.publisher));
    assert_eq!(*last, rest.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)), "torn");
}

fn write(mut writer: Writer, id: u64, published: &AtomicU64, reliable: bool) -> Writer {
    let mut random = Random(id * 77 + 1);
    let mut count = 0;
    while count < samples() {
        let words = match random.below(4) {
            0 => 3 + random.below(11),
            1 => 14 + random.below(100),
            2 => 14 + random.below(2_000),
            _ => 20,
        };
        let mut loan = writer.loan(words * 8).unwrap();
        // SAFETY: the loan's writer exists.
        fill(unsafe { loan.bytes_mut() }, id, count);
        if random.below(16) == 0 {
            // SAFETY: the loan is this writer's.
            unsafe { writer.discard(loan) };
            continue;
        }
        // SAFETY: the loan is this writer's.
        let done = unsafe { writer.publish(loan) }.unwrap();
        assert_eq!(done, Published { sequence: count, passed_over: 0 }, "none stands still");
        count += 1;
        published.store(count, Ordering::Release);
        if !reliable && random.below(64) == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    writer
}

/// Takes until all writers are done and nothing is left; passes some samples to `elsewhere`.
fn read(
    mut reader: Reader,
    id: u64,
    done: &AtomicBool,
    elsewhere: &mpsc::Sender<RawSample>,
) -> (u64, Vec<u64>) {
    let mut random = Random(id * 1_234_567 + 1);
    let mut held: Vec<RawSample> = Vec::new();
    let mut next = vec![0; WRITERS as usize + 1];
    let mut taken_in_all = 0;
    loop {
        let was_done = done.load(Ordering::Acquire);
        match reader.take() {
            Ok(Some(taken)) => {
                check(&taken);
                let next = &mut next[taken.publisher as usize];
                assert_eq!(taken.sequence, *next + taken.lost_before, "the loss is not exact");
                *next = taken.sequence + 1;
                taken_in_all += 1;
                match random.below(8) {
                    0 => held.push(taken.clone()),
                    1 => drop(elsewhere.send(taken)),
                    _ => {}
                }
            }
            Ok(None) if was_done => break,
            Ok(None) => {
                let how = [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive];
                let how = how[random.below(4) as usize];
                reader.wait(how, now_ns() + 1_000_000).unwrap();
            }
            Err(Error::TooManyHeld { .. }) => {
                held.clear();
                std::thread::yield_now(); // the other thread holds the rest
            }
            Err(error) => panic!("{error}"),
        }
        if held.len() > 8 {
            let taken = held.swap_remove(random.below(9) as usize);
            check(&taken);
        }
    }
    held.iter().for_each(check);
    assert_eq!(next.iter().sum::<u64>(), taken_in_all + reader.lost());
    (reader.lost(), next)
}

fn run(reliability: Reliability) {
    let reliable = reliability == Reliability::Reliable;
    let publisher = PublisherQos {
        depth: 16,
        reliability,
        block_max: Duration::from_secs(60),
        ..PublisherQos::default()
    };
    let (writers, hubs): (Vec<_>, Vec<_>) =
        (1..=WRITERS).map(|id| Hub::create(id, publisher)).unzip();
    let subscriber = SubscriberQos { depth: 16, reliability, held_max: 24, ..Default::default() };
    let readers: Vec<_> = (0..READERS)
        .map(|number| {
            let (reader, shared) =
                Reader::create(100 + number, &topic(), subscriber, &WakeTable::create().unwrap())
                    .unwrap();
            hubs.iter().for_each(|hub| hub.connect(&shared));
            reader
        })
        .collect();
    let done = &AtomicBool::new(false);
    let published = &[const { AtomicU64::new(0) }; WRITERS as usize];
    let (elsewhere, passed) = mpsc::channel::<RawSample>();
    let (writers, read) = std::thread::scope(|scope| {
        let dropping = scope.spawn(move || passed.iter().inspect(check).count());
        let reading: Vec<_> = (0..)
            .zip(readers)
            .map(|(id, reader)| {
                let elsewhere = elsewhere.clone();
                scope.spawn(move || read(reader, id, done, &elsewhere))
            })
            .collect();
        drop(elsewhere);
        let writing: Vec<_> = (1..)
            .zip(writers)
            .zip(published)
            .map(|((id, writer), count)| scope.spawn(move || write(writer, id, count, reliable)))
            .collect();
        // Other subscribers come and go all the time.
        let coming = scope.spawn(|| come_and_go(&hubs, done));
        let writers: Vec<_> = writing.into_iter().map(|thread| thread.join().unwrap()).collect();
        done.store(true, Ordering::Release);
        let read: Vec<_> = reading.into_iter().map(|thread| thread.join().unwrap()).collect();
        coming.join().unwrap();
        dropping.join().unwrap();
        (writers, read)
    });
    for (lost, next) in read {
        assert!(next[1..].iter().all(|next| *next == samples()), "the newest is never lost");
        assert!(!reliable || lost == 0);
    }
    for mut writer in writers {
        let counts = writer.slot_counts();
        assert_eq!(counts.free, counts.total, "every slot is back");
        assert!(counts.bytes < 16 << 20, "{counts:?}");
    }
}

/// Best-effort subscribers that attach, take a little and leave, holding something at the end.
fn come_and_go(hubs: &[Hub], done: &AtomicBool) {
    let mut id = 1_000;
    while !done.load(Ordering::Acquire) {
        id += 1;
        let (mut reader, shared) =
            Reader::create(id, &topic(), SubscriberQos::default(), &WakeTable::create().unwrap())
                .unwrap();
        hubs.iter().for_each(|hub| hub.connect(&shared));
        let mut last = None;
        for _ in 0..50 {
            if let Some(taken) = reader.take().unwrap() {
                check(&taken);
                last = Some(taken);
            }
        }
        drop(reader);
        last.iter().for_each(check);
        drop(last);
        hubs.iter().for_each(|hub| hub.disconnect(id));
    }
}

#[test]
fn best_effort_losses_are_counted_exactly() {
    run(Reliability::BestEffort);
}

#[test]
fn reliable_loses_nothing() {
    run(Reliability::Reliable);
}
