//! From the records of one run to the quantities of the report, in nanoseconds.

use myelin_bench_kit::samples::Record;

use super::distribution::Sorted;
use crate::record::RunSamples;
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
        for (index, ping) in samples.ping.iter().enumerate() {
            write.push(span(ping.publish_entry_ns, ping.publish_return_ns));
            if has_loans {
                series.loan.push(i64::from(ping.loan_ns));
                series.fill.push(i64::from(ping.fill_ns));
            }
            if has_rate {
                series.lateness.push(span(ping.intended_ns, ping.publish_entry_ns));
            }
            if ping.take_return_ns == 0 {
                continue;
            }
            round_trip.push(span(ping.publish_entry_ns, ping.take_return_ns));
            if ping.wake_ns != 0 {
                series.read.push(span(ping.wake_ns, ping.take_return_ns));
            }
            if let Some(pong) = samples.pong.get(index).filter(|pong| pong.take_return_ns != 0) {
                one_way.push(span(ping.publish_entry_ns, pong.take_return_ns));
                series.join(ping, pong);
            }
        }
        series.round_trip = Sorted::new(round_trip);
        series.write = Sorted::new(write);
        series.one_way = Sorted::new(one_way);
        series
    }

    fn join(&mut self, ping: &Record, pong: &Record) {
        if ping.wake_ns != 0 {
            self.wake.push(span(pong.publish_return_ns, ping.wake_ns));
        }
        let side =
            if ping.take_cpu == pong.take_cpu { &mut self.same_cpu } else { &mut self.cross_cpu };
        side.push(span(ping.publish_entry_ns, ping.take_return_ns));
    }
}

/// One row for each second of a run, as RoundtripPing prints them.
pub fn seconds(records: &[Record], record_every: u64) -> Vec<Second> {
    let Some(begin) = records.first().map(|record| record.publish_entry_ns) else {
        return Vec::new();
    };
    let second_of = |record: &&Record| (record.publish_entry_ns - begin) / 1_000_000_000;
    let answered: Vec<&Record> =
        records.iter().filter(|record| record.take_return_ns != 0).collect();
    answered
        .chunk_by(|a, b| second_of(a) == second_of(b))
        .filter_map(|rows| row(second_of(&rows[0]) as u32 + 1, rows, record_every))
        .collect()
}

fn row(second: u32, records: &[&Record], record_every: u64) -> Option<Second> {
    let of = |value: &dyn Fn(&Record) -> i64| {
        Sorted::new(records.iter().map(|record| value(record)).collect()).distribution()
    };
    let waits_apart = records.iter().all(|record| record.wake_ns != 0);
    let read = of(&|record| span(record.wake_ns, record.take_return_ns));
    Some(Second {
        second,
        count: records.len() as u64 * record_every,
        round_trip_us: of(&|record| span(record.publish_entry_ns, record.take_return_ns))?,
        write_us: of(&|record| span(record.publish_entry_ns, record.publish_return_ns))?,
        read_us: read.filter(|_| waits_apart),
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
