//! The rows of a run: both ends of each message beside each other.

use myelin_bench_kit::samples::Record;

use crate::analyse::series::counted;
use crate::run::RunSamples;
use crate::scenario::Kind;

/// A message, and its taking by one subscriber.
pub(super) struct Row {
    /// Of the publisher; of round trips with the taking of the answer.
    pub ping: Record,
    /// Of the subscriber; `None` if it took nothing.
    pub pong: Option<Record>,
    /// Whether the report's latencies have it.
    pub is_counted: bool,
}

/// In the order of sending. What was taken without having been sent, which no valid run has, is left
/// out.
pub(super) fn rows_of(kind: Kind, samples: RunSamples) -> Vec<Row> {
    match kind {
        Kind::Roundtrip => by_index(samples),
        _ => by_id(samples),
    }
}

fn by_index(samples: RunSamples) -> Vec<Row> {
    let counted = counted(&samples.ping);
    let pong = samples.pong.into_iter().map(taken).chain(std::iter::repeat(None));
    let row = |(ping, pong)| Row { ping, pong, is_counted: counted(&ping) };
    samples.ping.into_iter().zip(pong).map(row).collect()
}

fn by_id(samples: RunSamples) -> Vec<Row> {
    let mut taken: Vec<Record> = samples.pong.into_iter().filter_map(taken).collect();
    taken.sort_by_key(|pong| pong.id);
    let mut rows = Vec::with_capacity(taken.len().max(samples.ping.len()));
    let mut rest = taken.as_slice();
    for ping in samples.ping {
        let before = rest.partition_point(|pong| pong.id < ping.id);
        let own = rest[before..].partition_point(|pong| pong.id == ping.id);
        let (pongs, later) = rest[before..].split_at(own);
        let row = |pong| Row { ping, pong, is_counted: true };
        rows.extend(pongs.iter().copied().map(Some).map(row));
        if pongs.is_empty() {
            rows.push(row(None));
        }
        rest = later;
    }
    rows
}

fn taken(pong: Record) -> Option<Record> {
    (pong.take_return_ns != 0).then_some(pong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64, take_return_ns: u64) -> Record {
        Record { id, take_return_ns, ..Record::default() }
    }

    fn seen(kind: Kind, ping: &[u64], pong: &[(u64, u64)]) -> Vec<(u64, Option<u64>)> {
        let ping = ping.iter().map(|id| record(*id, 1)).collect();
        let pong = pong.iter().map(|(id, at)| record(*id, *at)).collect();
        let rows = rows_of(kind, RunSamples { ping, pong, ..RunSamples::default() });
        let at = |row: &Row| row.pong.map(|pong| pong.take_return_ns);
        rows.iter().map(|row| (row.ping.id, at(row))).collect()
    }

    #[test]
    fn a_message_has_a_row_for_each_that_took_it_and_one_if_nobody_did() {
        let taken = [(4, 40), (0, 10), (4, 41), (3, 30), (9, 90), (2, 0)];
        let rows = seen(Kind::Stream, &[0, 2, 4], &taken);
        assert_eq!(rows, [(0, Some(10)), (2, None), (4, Some(40)), (4, Some(41))]);
    }

    #[test]
    fn round_trips_are_joined_by_their_place() {
        let rows = seen(Kind::Roundtrip, &[0, 2, 4], &[(0, 10), (0, 0)]);
        assert_eq!(rows, [(0, Some(10)), (2, None), (4, None)]);
    }
}
