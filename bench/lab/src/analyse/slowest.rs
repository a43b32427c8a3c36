//! The slowest messages of a cell, with what was seen around them.

use super::cell::JudgedRun;
use super::course::Span;
use super::distribution::us;
use super::messages::Message;
use super::observed;
use crate::summary::{Around, ObservedColumns, SlowMessage, Stage};

/// The slowest of all runs, the slowest first.
pub(super) fn of(runs: &[&JudgedRun]) -> Vec<SlowMessage> {
    let messages: Vec<&[Message]> = runs.iter().map(|run| run.messages.all.as_slice()).collect();
    let slowest = slowest(&messages).into_iter();
    slowest.filter_map(|(place, message)| slow(runs[place], &message)).collect()
}

/// Of the kind that percentiles are of, with the place of its run.
fn slowest(runs: &[&[Message]]) -> Vec<(usize, Message)> {
    let mut found: Vec<(usize, Message)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let counted = run.iter().filter(|message| message.is_counted);
        found.extend(counted.map(|message| (place, *message)));
        found.sort_by_key(|(_, message)| std::cmp::Reverse(message.latency_ns));
        found.truncate(NUMBER);
    }
    found
}

fn slow(run: &JudgedRun, message: &Message) -> Option<SlowMessage> {
    let span = Span::of(&run.messages.all)?;
    let parts = message.parts.iter().flat_map(|parts| Stage::ALL.into_iter().zip(parts));
    let is_measured = |stage: Stage| {
        run.messages.measured.is_some_and(|measured| measured[stage as usize].is_some())
    };
    let parts = parts.filter(|(stage, _)| is_measured(*stage));
    Some(SlowMessage {
        run: run.record.plan.repeat + 1,
        id: message.id,
        at_s: span.seconds_at(message.begin_ns),
        us: us(message.latency_ns),
        cpus: message.cpus.into_iter().flatten().collect(),
        parts: parts.map(|(stage, ns)| (stage, f64::from(*ns) / 1e3)).collect(),
        around: around(run, message),
    })
}

fn around(run: &JudgedRun, message: &Message) -> Option<Around> {
    let begin_ns = run.record.observation.as_ref()?.series.as_ref()?.begin_ns;
    let end_ns = message.begin_ns as i64 + message.latency_ns;
    row_at(&observed::columns(run)?, (end_ns - begin_ns as i64) as f64 * 1e-9)
}

/// The row in which a time lies, in seconds from the beginning of the columns; the last may have
/// been left out.
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

/// As many as a person looks through.
const NUMBER: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_are_of_the_kind_that_the_largest_is_of() {
        let message = |id: u64| Message {
            id,
            begin_ns: id,
            latency_ns: 1_000 - id as i64,
            is_counted: !id.is_multiple_of(16),
            parts: None,
            cpus: [None; 3],
        };
        let runs: Vec<Vec<Message>> = vec![(0..40).map(message).collect(); 2];
        let found = slowest(&[&runs[0], &runs[1]]);
        let ids: Vec<(usize, u64)> = found.iter().map(|(place, it)| (*place, it.id)).collect();
        assert_eq!(ids[..4], [(0, 1), (1, 1), (0, 2), (1, 2)]);
        assert!(found.len() == NUMBER && found.iter().all(|(_, it)| it.is_counted));
    }

    #[test]
    fn the_row_is_the_one_that_ends_next() {
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
