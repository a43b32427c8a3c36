//! What a cut of the link between two hosts did: how long nothing was taken, and what became of the
//! messages that were sent meanwhile.

use myelin_bench_kit::samples::Record;

use super::stream::joined;
use crate::observe::CutRecord;
use crate::run::RunSamples;
use crate::scenario::Kind;
use crate::summary::CutFigures;

/// Of one run, pong's stamps on ping's clock; `None` where no message was sent.
pub(super) fn figures(
    cut: CutRecord,
    samples: &RunSamples,
    kind: Kind,
    record_every: u64,
) -> Option<CutFigures> {
    let begin_ns = samples.ping.first()?.publish_entry_ns;
    let back_ns = cut.at_ns + cut.for_ns;
    let taken: Vec<(&Record, u64)> = match kind {
        Kind::Roundtrip => samples.ping.iter().map(|ping| (ping, ping.take_return_ns)).collect(),
        _ => joined(samples).map(|(ping, pong)| (ping, pong.take_return_ns)).collect(),
    };
    let mut times: Vec<u64> = taken.iter().map(|(_, at_ns)| *at_ns).filter(|at| *at > 0).collect();
    times.sort_unstable();
    // The longest silence of those that the cut is a part of.
    let touches = |pair: &&[u64]| pair[0] < back_ns && pair[1] > cut.at_ns;
    let silence = times.windows(2).filter(touches).map(|pair| pair[1] - pair[0]).max();
    let is_meanwhile = |ping: &Record| (cut.at_ns..back_ns).contains(&ping.publish_entry_ns);
    let sent: Vec<u64> =
        samples.ping.iter().filter(|ping| is_meanwhile(ping)).map(|ping| ping.id).collect();
    let meanwhile = taken.iter().filter(|(ping, at_ns)| is_meanwhile(ping) && *at_ns > 0);
    let mut came: Vec<(u64, bool)> =
        meanwhile.map(|(ping, at_ns)| (ping.id, *at_ns >= back_ns)).collect();
    came.sort_unstable();
    came.dedup_by_key(|(id, _)| *id);
    let late = came.iter().filter(|(_, is_late)| *is_late).count();
    Some(CutFigures {
        at_s: (cut.at_ns as i64 - begin_ns as i64) as f64 * 1e-9,
        for_s: cut.for_ns as f64 * 1e-9,
        silent_s: silence.map(|ns| ns as f64 * 1e-9),
        sent: sent.len() as u64 * record_every,
        lost: (sent.len() - came.len()) as u64 * record_every,
        late: late as u64 * record_every,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sent every millisecond; taken 100 ns later, but for those of the cut, from 3 to 6 ms.
    fn samples(kept: impl Fn(u64) -> Option<u64>) -> RunSamples {
        let sent =
            |id: u64| Record { id, publish_entry_ns: 1_000_000 * (id + 1), ..Record::default() };
        let ping: Vec<Record> = (0..10).map(sent).collect();
        let taken = |ping: &Record| {
            let take_return_ns = match ping.id {
                2..5 => kept(ping.id)?,
                _ => ping.publish_entry_ns + 100,
            };
            Some(Record { id: ping.id, take_return_ns, ..Record::default() })
        };
        let pong = ping.iter().filter_map(taken).collect();
        RunSamples { ping, pong, ..RunSamples::default() }
    }

    const CUT: CutRecord = CutRecord { at_ns: 2_900_000, for_ns: 3_000_000 };

    fn figures_of(samples: &RunSamples) -> CutFigures {
        figures(CUT, samples, Kind::Stream, 1).unwrap()
    }

    #[test]
    fn what_is_kept_comes_late() {
        let figures = figures_of(&samples(|id| Some(5_950_000 + id)));
        assert_eq!((figures.sent, figures.lost, figures.late), (3, 0, 3));
        let ms = |s: f64| (s * 1e6).round() / 1e3;
        assert_eq!((ms(figures.at_s), ms(figures.for_s)), (1.9, 3.0));
        assert_eq!(figures.silent_s.map(ms), Some(3.95), "from 2.0001 to 5.950002 ms");
    }

    #[test]
    fn what_is_not_kept_is_lost() {
        let figures = figures_of(&samples(|_| None));
        assert_eq!((figures.sent, figures.lost, figures.late), (3, 3, 0));
        assert_eq!(figures.silent_s, Some(0.004));
        assert_eq!(super::figures(CUT, &RunSamples::default(), Kind::Stream, 1), None);
    }

    #[test]
    fn a_round_trip_is_taken_where_it_began() {
        let mut samples = samples(|_| None);
        for (ping, at_ns) in samples.ping.iter_mut().zip([1, 2, 0, 6, 7]) {
            ping.take_return_ns = at_ns * 1_000_000 + 50_000;
        }
        samples.ping[2].take_return_ns = 0;
        samples.ping.truncate(5);
        let figures = figures(CUT, &samples, Kind::Roundtrip, 2).unwrap();
        assert_eq!((figures.sent, figures.lost, figures.late), (6, 2, 4));
    }
}
