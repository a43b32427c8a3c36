//! From the records of the two ends of a stream to the quantities of the report.
//!
//! ```text
//!  ping                                                   receiving end
//!  intended ─ lateness ─ loan ─ fill ─ stamp ─ write ─┐
//!  │                                     │            └ wake ─ wait returns
//!  │                                     └── service ───────── payload in hand ─ memcpy ─ copy
//!  └── one way ─────────────────────────────────────────────── payload in hand
//! ```
//! One way counts from when the message was due, so that a stall counts for every message that had
//! to wait for its end, not for the one alone that met it (the coordinated omission of closed loops;
//! Tene, "How NOT to Measure Latency", 2013). The ends are joined by the message's number: either may
//! lack records that the other has.

use myelin_bench_kit::samples::Record;

use super::distribution::Sorted;
use super::series::{Series, span};
use crate::run::RunSamples;

/// Derives everything from a run's records. `has_rate` says whether there was a schedule, `copies`
/// whether messages are frames: the receiving end has copied each, and a frame is not due before it
/// is filled, so one way counts from its stamp.
pub fn series(samples: &RunSamples, has_rate: bool, copies: bool) -> Series {
    let mut series = Series::default();
    let has_loans = samples.ping.iter().any(|ping| ping.loan_ns != 0);
    let has_fills = samples.ping.iter().any(|ping| ping.fill_ns != 0);
    for ping in &samples.ping {
        if has_loans {
            series.loan.push(i64::from(ping.loan_ns));
        }
        if has_fills {
            series.fill.push(i64::from(ping.fill_ns));
        }
        if has_rate {
            series.lateness.push(lateness(ping));
        }
    }
    let mut one_way = Vec::with_capacity(samples.pong.len());
    let mut service = Vec::with_capacity(samples.pong.len());
    for (ping, pong) in joined(samples) {
        let way = way(ping, pong, has_rate && !copies);
        one_way.push(way);
        service.push(span(ping.publish_entry_ns, pong.take_return_ns));
        if pong.wake_ns != 0 {
            series.wake.push(span(ping.publish_return_ns, pong.wake_ns));
            series.read.push(span(pong.wake_ns, pong.take_return_ns));
        }
        if copies {
            let copies = pong.as_taken();
            series.memcpy.push(i64::from(copies.memcpy_ns));
            series.stream_copy.push(i64::from(copies.stream_copy_ns));
        }
        let is_same = ping.publish_cpu == pong.take_cpu;
        let side = if is_same { &mut series.same_cpu } else { &mut series.cross_cpu };
        side.push(way);
    }
    series.one_way = Sorted::new(one_way);
    series.service = Sorted::new(service);
    let write = |ping: &Record| span(ping.publish_entry_ns, ping.publish_return_ns);
    series.write = Sorted::new(samples.ping.iter().map(write).collect());
    series
}

/// From when a message was due, or from its stamp, until its payload is in hand.
pub(crate) fn way(ping: &Record, pong: &Record, from_due: bool) -> i64 {
    let from_ns = if from_due { ping.intended_ns } else { ping.publish_entry_ns };
    span(from_ns, pong.take_return_ns)
}

/// Behind the schedule. The stamp is taken after loan and fill, which are no lateness of the
/// schedule's.
pub(crate) fn lateness(ping: &Record) -> i64 {
    let before = i64::from(ping.loan_ns) + i64::from(ping.fill_ns);
    span(ping.intended_ns, ping.publish_entry_ns) - before
}

/// Each message that was taken, at both ends, once for each pong that took it. Ping's records are in
/// the order of their ids.
pub fn joined(samples: &RunSamples) -> impl Iterator<Item = (&Record, &Record)> {
    let taken = samples.pong.iter().filter(|pong| pong.take_return_ns != 0);
    taken.filter_map(|pong| {
        let place = samples.ping.binary_search_by_key(&pong.id, |ping| ping.id).ok()?;
        Some((&samples.ping[place], pong))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use myelin_bench_kit::samples::Taken;
    use proptest::prelude::*;

    fn sent(id: u64, entry_ns: u64) -> Record {
        Record {
            id,
            intended_ns: entry_ns - 100,
            publish_entry_ns: entry_ns,
            publish_return_ns: entry_ns + 10,
            loan_ns: 20,
            fill_ns: 50,
            publish_cpu: 1,
            ..Record::default()
        }
    }

    fn taken(id: u64, at_ns: u64) -> Record {
        let wake_ns = at_ns - 3;
        let (memcpy_ns, stream_copy_ns) = (700, 900);
        Taken { id, wake_ns, take_return_ns: at_ns, memcpy_ns, stream_copy_ns, ..Taken::default() }
            .into()
    }

    #[test]
    fn stamp_wake_copies_and_lateness_are_apart() {
        let samples = RunSamples {
            ping: vec![sent(0, 1000), sent(1, 2000), sent(2, 3000)],
            pong: vec![taken(2, 3050), taken(0, 1040), Record::default()],
            ..RunSamples::default()
        };
        let series = series(&samples, true, true);
        assert_eq!((series.one_way.len(), series.one_way.range()), (2, Some((40, 50))));
        assert_eq!(series.write.range(), Some((10, 10)));
        assert_eq!(series.lateness, [30, 30, 30], "100 ns less loan and fill");
        assert_eq!(series.service.range(), Some((40, 50)));
        assert_eq!(series.wake, [3047 - 3010, 1037 - 1010], "in the order of taking");
        assert_eq!(series.read, [3, 3]);
        assert_eq!((series.memcpy, series.stream_copy), (vec![700; 2], vec![900; 2]));
        assert_eq!((series.same_cpu.len(), series.cross_cpu.len()), (0, 2));
        assert_eq!(series.round_trip.len(), 0);
    }

    #[test]
    fn what_is_not_measured_is_absent() {
        let bare = |record: Record| Record { loan_ns: 0, fill_ns: 0, wake_ns: 0, ..record };
        let samples = RunSamples {
            ping: vec![bare(sent(0, 1000))],
            pong: vec![bare(taken(0, 1040)), bare(taken(0, 1090))],
            ..RunSamples::default()
        };
        let series = series(&samples, false, false);
        assert_eq!(series.one_way.range(), Some((40, 90)), "taken by two");
        let absent = [&series.loan, &series.fill, &series.wake, &series.memcpy, &series.lateness];
        assert!(absent.into_iter().all(Vec::is_empty));
    }

    #[test]
    fn a_stream_counts_from_when_its_messages_were_due() {
        let samples = RunSamples {
            ping: vec![sent(0, 1000)],
            pong: vec![taken(0, 1040)],
            ..RunSamples::default()
        };
        let series = series(&samples, true, false);
        assert_eq!(series.one_way.range(), Some((140, 140)));
        assert_eq!(series.service.range(), Some((40, 40)));
    }

    proptest! {
        #[test]
        fn the_order_of_taking_and_what_was_lost_change_nothing(
            ways in prop::collection::vec(1u64..1_000_000, 1..200),
            lost in prop::collection::vec(any::<bool>(), 200),
            seed in any::<u64>(),
        ) {
            let ping: Vec<Record> =
                (0..ways.len() as u64).map(|id| sent(id, 1_000_000 + id * 1000)).collect();
            let mut pong: Vec<Record> = (ping.iter().zip(&ways).zip(&lost))
                .filter(|(_, lost)| !**lost)
                .map(|((ping, way), _)| taken(ping.id, ping.publish_entry_ns + way))
                .collect();
            let mut expected: Vec<i64> = (ways.iter().zip(&lost))
                .filter(|(_, lost)| !**lost)
                .map(|(way, _)| *way as i64)
                .collect();
            pong.sort_by_key(|record| (record.id ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let found = series(&RunSamples { ping, pong, ..RunSamples::default() }, true, true);
            expected.sort_unstable();
            let values: Vec<i64> = (0..expected.len())
                .map(|at| found.one_way.quantile((at as f64 + 0.5) / expected.len() as f64).unwrap())
                .collect();
            prop_assert_eq!(values, expected);
            prop_assert_eq!(found.write.len(), ways.len());
        }
    }
}
