//! From the records of one run to the quantities of the report, in nanoseconds.

use myelin_bench_kit::samples::{LEAN, Record};

use super::distribution::Sorted;
use crate::run::RunSamples;
use crate::summary::Second;

/// The quantities of one run. Those that a system cannot measure are empty.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Publish entry until the answer is taken; ascending.
    pub round_trip: Sorted,
    /// Publish entry until pong has taken the message; of streams with a rate from when it was due;
    /// of a start-up until the first message was taken; ascending.
    pub one_way: Sorted,
    /// Of what goes one way: from the stamp, whenever it was due; ascending.
    pub service: Sorted,
    /// The publish call; ascending.
    pub write: Sorted,
    /// The take, apart from the wait.
    pub read: Vec<i64>,
    /// Pong's publish return until ping's wait returns; negative where ping was faster.
    pub wake: Vec<i64>,
    /// Behind the schedule.
    pub lateness: Vec<i64>,
    /// Getting a loan.
    pub loan: Vec<i64>,
    /// Filling it.
    pub fill: Vec<i64>,
    /// At the receiving end of images: `memcpy` of the frame.
    pub memcpy: Vec<i64>,
    /// At the receiving end of images: the streaming copy of the frame.
    pub stream_copy: Vec<i64>,
    /// Round trips, or one-way latencies, with both sides on one CPU, and on two.
    pub same_cpu: Vec<i64>,
    /// See `same_cpu`.
    pub cross_cpu: Vec<i64>,
}

impl Series {
    /// Derives everything from a run's records; `has_loans` and `has_rate` say what is measured.
    pub fn of(samples: &RunSamples, has_loans: bool, has_rate: bool) -> Self {
        let mut series = Series::default();
        // A system with loans may do without them for small messages.
        let has_loans =
            has_loans && samples.ping.iter().any(|it| it.loan_ns != 0 || it.fill_ns != 0);
        let mut round_trip = Vec::with_capacity(samples.ping.len());
        let mut write = Vec::with_capacity(samples.ping.len());
        let mut one_way = Vec::with_capacity(samples.ping.len());
        let counted = counted(&samples.ping);
        for (index, ping) in samples.ping.iter().enumerate() {
            let is_counted = counted(ping);
            if is_counted {
                write.push(span(ping.publish_entry_ns, ping.publish_return_ns));
            }
            if has_loans && has_parts(ping) {
                series.loan.push(i64::from(ping.loan_ns));
                series.fill.push(i64::from(ping.fill_ns));
            }
            if has_rate {
                series.lateness.push(span(ping.intended_ns, ping.publish_entry_ns));
            }
            if ping.take_return_ns == 0 {
                continue;
            }
            let whole = span(ping.publish_entry_ns, ping.take_return_ns);
            if is_counted {
                round_trip.push(whole);
            }
            if ping.wake_ns != 0 {
                series.read.push(span(ping.wake_ns, ping.take_return_ns));
            }
            let Some(pong) = samples.pong.get(index).filter(|pong| pong.take_return_ns != 0) else {
                continue;
            };
            if has_parts(pong) {
                one_way.push(span(ping.publish_entry_ns, pong.take_return_ns));
            }
            if ping.wake_ns != 0 {
                series.wake.push(span(pong.publish_return_ns, ping.wake_ns));
            }
            if is_counted {
                let is_same = ping.take_cpu == pong.take_cpu;
                let side = if is_same { &mut series.same_cpu } else { &mut series.cross_cpu };
                side.push(whole);
            }
        }
        series.round_trip = Sorted::new(round_trip);
        series.write = Sorted::new(write);
        series.one_way = Sorted::new(one_way);
        series
    }
}

impl Series {
    /// Leaves out what crosses two clocks of which nothing is known.
    pub(super) fn without_other_clock(self) -> Self {
        let (one_way, service) = Default::default();
        Series { one_way, service, wake: Vec::new(), ..self }
    }

    /// Of two hosts the numbers of CPUs say nothing.
    pub(super) fn without_placements(self) -> Self {
        Series { same_cpu: Vec::new(), cross_cpu: Vec::new(), ..self }
    }
}

/// Whether the parts of a message were stamped, at its end.
pub(crate) fn has_parts(record: &Record) -> bool {
    record.flags & LEAN == 0
}

/// Which messages a run's latencies are of: where most have no stamps in their path, those alone.
pub(crate) fn counted(records: &[Record]) -> impl Fn(&Record) -> bool + use<> {
    let any_lean = records.iter().any(|record| !has_parts(record));
    move |record| !(any_lean && has_parts(record))
}

/// One row for each second of a run, as RoundtripPing prints them.
pub fn seconds(records: &[Record], record_every: u64) -> Vec<Second> {
    let Some(begin) = records.first().map(|record| record.publish_entry_ns) else {
        return Vec::new();
    };
    let second_of = |record: &&Record| (record.publish_entry_ns - begin) / 1_000_000_000;
    let counted = counted(records);
    let answered: Vec<&Record> =
        records.iter().filter(|record| record.take_return_ns != 0).collect();
    answered
        .chunk_by(|a, b| second_of(a) == second_of(b))
        .filter_map(|rows| row(second_of(&rows[0]) as u32 + 1, rows, &counted, record_every))
        .collect()
}

fn row(
    second: u32,
    records: &[&Record],
    counted: impl Fn(&Record) -> bool,
    record_every: u64,
) -> Option<Second> {
    let of = |value: &dyn Fn(&Record) -> i64| {
        let counted = records.iter().filter(|record| counted(record));
        Sorted::new(counted.map(|record| value(record)).collect()).distribution()
    };
    let read = records.iter().filter(|record| record.wake_ns != 0);
    let read = read.map(|record| span(record.wake_ns, record.take_return_ns)).collect();
    Some(Second {
        second,
        count: records.len() as u64 * record_every,
        round_trip_us: of(&|record| span(record.publish_entry_ns, record.take_return_ns))?,
        write_us: of(&|record| span(record.publish_entry_ns, record.publish_return_ns))?,
        read_us: Sorted::new(read).distribution(),
    })
}

pub(crate) fn span(from_ns: u64, until_ns: u64) -> i64 {
    until_ns as i64 - from_ns as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64, entry: u64, taken: u64, cpu: u16) -> Record {
        Record {
            id,
            intended_ns: entry - 5,
            publish_entry_ns: entry,
            publish_return_ns: entry + 10,
            wake_ns: if taken == 0 { 0 } else { taken - 3 },
            take_return_ns: taken,
            take_cpu: cpu,
            ..Record::default()
        }
    }

    #[test]
    fn lost_messages_have_a_write_time_but_no_round_trip() {
        let samples = RunSamples {
            ping: vec![record(0, 1000, 1100, 0), record(1, 2000, 0, 0)],
            pong: vec![record(0, 1050, 1040, 0)],
            ..RunSamples::default()
        };
        let series = Series::of(&samples, false, true);
        assert_eq!(series.round_trip.quantile(1.0), Some(100));
        assert_eq!(series.round_trip.len(), 1);
        assert_eq!((series.write.len(), series.write.range()), (2, Some((10, 10))));
        assert_eq!(series.lateness, [5, 5]);
        assert_eq!(series.one_way.range(), Some((40, 40)));
        assert_eq!(series.wake, [1097 - 1060]);
        assert_eq!((series.same_cpu.len(), series.cross_cpu.len()), (1, 0));
        assert!(series.loan.is_empty());
    }

    #[test]
    fn latencies_are_of_lean_messages_and_parts_of_the_others() {
        let lean = |record: Record| Record { flags: LEAN, wake_ns: 0, ..record };
        let with_loan = Record { loan_ns: 3, fill_ns: 4, ..record(0, 1000, 1900, 0) };
        let samples = RunSamples {
            ping: vec![with_loan, lean(record(1, 2000, 2100, 0)), lean(record(2, 3000, 3120, 1))],
            pong: vec![
                record(0, 1050, 1500, 0),
                lean(record(1, 2050, 2060, 0)),
                // One that was lost made the two ends disagree on which are lean.
                record(2, 3050, 3055, 0),
            ],
            ..RunSamples::default()
        };
        let series = Series::of(&samples, true, false);
        assert_eq!((series.round_trip.len(), series.round_trip.range()), (2, Some((100, 120))));
        assert_eq!((&series.same_cpu, &series.cross_cpu), (&vec![100], &vec![120]));
        assert_eq!(series.write.len(), 2);
        assert_eq!((series.loan, series.fill, series.read), (vec![3], vec![4], vec![3]));
        assert_eq!((series.one_way.len(), series.one_way.range()), (2, Some((55, 500))));
        let row = seconds(&samples.ping, 1)[0];
        assert_eq!((row.count, row.read_us.map(|read| read.max)), (3, Some(0.003)));
        assert_eq!((row.round_trip_us.min, row.round_trip_us.max), (0.1, 0.12), "of lean ones");
    }

    #[test]
    fn rows_are_by_second_of_the_run() {
        let second = 1_000_000_000;
        let records = [
            record(0, 7, 107, 0),
            record(1, second - 1, second + 9, 0),
            record(2, second + 7, second + 107, 0),
            record(3, 3 * second + 7, 3 * second + 9, 0),
        ];
        let rows = seconds(&records, 4);
        let seen: Vec<(u32, u64)> = rows.iter().map(|row| (row.second, row.count)).collect();
        assert_eq!(seen, [(1, 8), (2, 4), (4, 4)]);
    }
}
