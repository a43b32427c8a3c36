//! The slowest messages of a cell, with the observations around them.

use super::distribution::{Sorted, us};
use super::judged::JudgedRun;
use super::messages::{Measured, Message, Messages, STAGES};
use super::observed;
use super::timeline::Span;
use crate::summary::{Around, ObservedColumns, SlowMessage, Stage};

/// The slowest messages of all runs, slowest first; `latencies` are those that count.
pub(super) fn of(runs: &[&JudgedRun<'_>], latencies: &Sorted) -> Vec<SlowMessage> {
    let slowest = slowest(runs.iter().map(|run| &run.messages), latencies);
    let known = |place: usize| {
        let has_any = slowest.iter().any(|(its_place, _)| *its_place == place);
        has_any.then(|| Known::of(runs[place])).flatten()
    };
    let known: Vec<Option<Known<'_>>> = (0..runs.len()).map(known).collect();
    slowest.iter().filter_map(|(place, message)| known[*place].as_ref()?.slow(message)).collect()
}

/// Details of a run that has some of the slowest messages.
struct Known<'a> {
    number: u32,
    measured: &'a Measured,
    span: Span,
    parts: [Option<bool>; STAGES],
    /// When observing began, and the observations from then on.
    observed: Option<(u64, ObservedColumns)>,
}

impl<'a> Known<'a> {
    fn of(run: &'a JudgedRun<'_>) -> Option<Self> {
        let seen = || {
            let begin_ns = run.record.observation.as_ref()?.series.as_ref()?.begin_ns;
            Some((begin_ns, observed::columns(run)?))
        };
        Some(Known {
            number: run.number(),
            measured: &run.messages.measured,
            span: Span::of_run(&run.messages)?,
            parts: run.messages.parts().unwrap_or_default(),
            observed: seen(),
        })
    }

    fn slow(&self, message: &Message<'_>) -> Option<SlowMessage> {
        let parts = message.parts(self.measured).into_iter().flatten().zip(Stage::ALL);
        let parts = parts.filter(|(_, stage)| self.parts[*stage as usize].is_some());
        Some(SlowMessage {
            run: self.number,
            id: message.ping.id,
            at_s: self.span.seconds_at(message.begin_ns(self.measured)),
            us: us(message.latency(self.measured)?),
            cpus: message.cpus(self.measured),
            parts: parts.map(|(ns, stage)| (stage, us(ns))).collect(),
            around: self.around(message.end_ns(self.measured)?),
        })
    }

    fn around(&self, end_ns: u64) -> Option<Around> {
        let (begin_ns, columns) = self.observed.as_ref()?;
        row_at(columns, (end_ns as i64 - *begin_ns as i64) as f64 * 1e-9)
    }
}

/// The slowest messages whose latencies count, each with the index of its run.
fn slowest<'a, 's: 'a>(
    runs: impl Iterator<Item = &'a Messages<'s>>,
    latencies: &Sorted,
) -> Vec<(usize, &'a Message<'s>)> {
    let arrived = latencies.arrived();
    let Some(least_ns) = arrived.get(arrived.len().saturating_sub(NUMBER)) else {
        return Vec::new();
    };
    let of_run = |(place, run): (usize, &'a Messages<'s>)| {
        let slow = move |(message, ns): &(&Message<'_>, i64)| ns >= least_ns && message.is_counted;
        run.ended().filter(slow).map(move |(message, ns)| (place, message, ns))
    };
    let mut found: Vec<(usize, &Message<'_>, i64)> = runs.enumerate().flat_map(of_run).collect();
    // Of equal ones the first stays first.
    found.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
    found.into_iter().take(NUMBER).map(|(place, message, _)| (place, message)).collect()
}

/// The row that contains a time, in seconds from the beginning of the columns. The last row may
/// have been dropped.
fn row_at(columns: &ObservedColumns, at_s: f64) -> Option<Around> {
    let place = columns.t_s.partition_point(|end_s| *end_s < at_s);
    let end_s = columns.t_s.get(place).filter(|_| at_s >= 0.0)?;
    let begin_s = if place == 0 { 0.0 } else { columns.t_s[place - 1] };
    let known = |column: &[Option<f64>]| column.get(place).copied().flatten();
    Some(Around {
        span_s: end_s - begin_s,
        cpu_percent: columns.cpu_percent[place],
        runqueue_wait_percent: columns.runqueue_wait_percent[place],
        switches_per_s: columns.switches_per_s[place],
        faults_per_s: columns.faults_per_s[place],
        migrations_per_s: known(&columns.migrations_per_s),
        steal_percent: known(&columns.steal_percent),
    })
}

/// As many as a person will look through.
const NUMBER: usize = 10;

#[cfg(test)]
mod tests {
    use myelin_bench_kit::samples::{LEAN, Record};

    use super::*;
    use crate::record::RunSamples;
    use crate::scenario::Kind;

    #[test]
    fn the_slowest_messages_come_from_the_counted_ones() {
        let record = |id: u64| Record {
            id,
            publish_entry_ns: id,
            take_return_ns: 1_000,
            flags: if id.is_multiple_of(16) { 0 } else { LEAN },
            ..Record::default()
        };
        let ping = (0..40).map(record).collect();
        let samples = RunSamples { ping, ..RunSamples::default() };
        let run = Messages::of(&samples, Measured::new(Kind::Roundtrip, false, false));
        let latencies = Sorted::new(run.quantities().latency.repeat(2));
        let found = slowest([&run, &run].into_iter(), &latencies);
        let ids: Vec<(usize, u64)> = found.iter().map(|(place, it)| (*place, it.ping.id)).collect();
        assert_eq!(ids[..4], [(0, 1), (1, 1), (0, 2), (1, 2)]);
        assert!(found.len() == NUMBER && found.iter().all(|(_, it)| it.is_counted));
    }

    #[test]
    fn a_message_gets_the_observation_that_ends_next() {
        let column = |values: [f64; 3]| values.to_vec();
        let columns = ObservedColumns {
            t_s: column([0.1, 0.2, 0.4]),
            cpu_percent: column([1.0, 2.0, 3.0]),
            runqueue_wait_percent: column([0.0; 3]),
            switches_per_s: column([10.0, 20.0, 30.0]),
            faults_per_s: column([0.0; 3]),
            migrations_per_s: vec![None, Some(4.0), None],
            ..ObservedColumns::default()
        };
        let row = row_at(&columns, 0.15).unwrap();
        assert_eq!((row.cpu_percent, row.switches_per_s), (2.0, 20.0));
        assert!((row.span_s - 0.1).abs() < 1e-9);
        assert_eq!((row.migrations_per_s, row.steal_percent), (Some(4.0), None));
        assert_eq!(row_at(&columns, 0.0).unwrap().cpu_percent, 1.0);
        assert_eq!((row_at(&columns, 0.41), row_at(&columns, -0.1)), (None, None));
    }
}
