//! Predicting loses nothing, at any rate: a changing one, one with pauses, several publishers.

mod support;

use std::time::{Duration, Instant};

use myelin_shm::data_plane::publication::Writer;
use myelin_shm::data_plane::subscription::Reader;
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos};
use myelin_shm::waiting::wait::{NEVER, Wait, now_ns};
use myelin_shm::waiting::wake_table::WakeTable;
use support::{matched, topic};

#[test]
fn nothing_is_lost_at_mixed_rates() {
    let subscriber =
        SubscriberQos { reliability: Reliability::Reliable, ..SubscriberQos::default() };
    let (mut reader, subscription) =
        Reader::create(9, &topic(), subscriber, &WakeTable::create().unwrap()).unwrap();
    let writers: Vec<Writer> = (1..=2)
        .map(|id| {
            let qos = PublisherQos {
                reliability: Reliability::Reliable,
                block_max: WATCHDOG,
                ..PublisherQos::default()
            };
            let (writer, publication) = Writer::create(id, &topic(), qos).unwrap();
            matched(&publication, &subscription);
            writer
        })
        .collect();
    std::thread::scope(|scope| {
        for (writer, paces) in writers.into_iter().zip([STEADY, UNSTEADY]) {
            scope.spawn(move || publish(writer, paces));
        }
        let mut next = [0, 0];
        while next != [SAMPLES, SAMPLES] {
            let limit_ns = [NEVER, now_ns() + 700_000][usize::from(next[0] % 8 == 0)];
            if !reader.wait(Wait::Predictive, limit_ns).unwrap() {
                continue;
            }
            let taken = reader.take().unwrap().expect("the wait said so");
            let next = &mut next[taken.publisher as usize - 1];
            assert_eq!((taken.sequence, taken.lost_before), (*next, 0));
            *next += 1;
        }
    });
}

/// A while at each pace.
fn publish(mut writer: Writer, paces: &[Duration]) {
    let mut due = Instant::now();
    for sequence in 0..SAMPLES {
        due += paces[(sequence / 50) as usize % paces.len()];
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        writer.publish_copy(&[sequence as u8; 500]).unwrap();
    }
}

const SAMPLES: u64 = 600;
const STEADY: &[Duration] = &[Duration::from_millis(2)];
const UNSTEADY: &[Duration] = &[
    Duration::from_millis(1),
    Duration::ZERO,
    Duration::from_micros(1_300),
    Duration::from_micros(100),
    Duration::from_millis(5),
];
const WATCHDOG: Duration = Duration::from_secs(60);
