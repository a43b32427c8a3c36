//! The link between two hosts: the time without messages when it was cut, the fate of the messages
//! sent meanwhile, and whether it is too slow for the load.

use super::messages::{Message, Messages};
use crate::observe::CutRecord;
use crate::plan::CellPlan;
use crate::scenario::Scenario;
use crate::summary::CutFigures;

/// Figures of a cut in one run; `None` if no message was sent.
pub(super) fn figures(
    cut: CutRecord,
    messages: &Messages<'_>,
    record_every: u64,
) -> Option<CutFigures> {
    let begin_ns = messages.all.first()?.ping.publish_entry_ns;
    let back_ns = cut.at_ns + cut.for_ns;
    let end_ns = |message: &Message<'_>| message.end_ns(&messages.measured);
    let mut times: Vec<u64> = messages.all.iter().filter_map(end_ns).collect();
    times.sort_unstable();
    // The longest silence that overlaps the cut.
    let touches = |pair: &&[u64]| pair[0] < back_ns && pair[1] > cut.at_ns;
    let silence = times.windows(2).filter(touches).map(|pair| pair[1] - pair[0]).max();
    let is_meanwhile =
        |message: &Message<'_>| (cut.at_ns..back_ns).contains(&message.ping.publish_entry_ns);
    // If several subscribers took a message, the first one counts.
    let sent = messages.all.chunk_by(|one, other| one.ping.id == other.ping.id);
    let sent: Vec<Option<u64>> = sent
        .filter(|them| is_meanwhile(&them[0]))
        .map(|them| them.iter().filter_map(end_ns).min())
        .collect();
    let lost = sent.iter().filter(|at_ns| at_ns.is_none()).count();
    let late = sent.iter().flatten().filter(|at_ns| **at_ns >= back_ns).count();
    Some(CutFigures {
        at_s: (cut.at_ns as i64 - begin_ns as i64) as f64 * 1e-9,
        for_s: cut.for_ns as f64 * 1e-9,
        silent_s: silence.map(|ns| ns as f64 * 1e-9),
        sent: sent.len() as u64 * record_every,
        lost: lost as u64 * record_every,
        late: late as u64 * record_every,
    })
}

/// A remark on the run with this number.
pub(super) fn remark(number: u32, cut: &CutFigures) -> String {
    let silence = match cut.silent_s {
        Some(seconds) => format!("nothing was taken for {seconds:.3} s"),
        None => "nothing was taken before or after".to_owned(),
    };
    format!(
        "run {number}: the link was down for {:.3} s, {:.3} s into the run; {silence}; of {} \
         messages sent meanwhile, {} were lost and {} were late",
        cut.for_s, cut.at_s, cut.sent, cut.lost, cut.late
    )
}

/// Says so if the messages alone exceed the rate of the link; also if they come near to it and some
/// were lost. The overhead of the protocols is not counted.
pub(super) fn too_much(lost: u64, plan: &CellPlan, scenario: &Scenario) -> Option<String> {
    let rate_mbit = scenario.network.as_ref()?.rate_mbit;
    let bits = |payload_bytes: u64| 8.0 * (payload_bytes + 8) as f64;
    let own = bits(plan.payload_bytes) * plan.rate_hz? * f64::from(plan.publishers);
    let load = plan.load.as_ref().map_or(0.0, |load| bits(load.payload_bytes) * load.rate_hz);
    let offered_mbit = (own + load) * 1e-6;
    let share = offered_mbit / rate_mbit;
    let is_too_much = share > 1.0 || lost > 0 && share > NEARLY_ALL;
    (rate_mbit > 0.0 && is_too_much).then(|| {
        format!(
            "the messages alone take {offered_mbit:.0} Mbit/s, {:.0} % of the link's {rate_mbit} \
             Mbit/s; headers add to that{}",
            100.0 * share,
            if lost > 0 { ", and messages that do not fit are late or lost" } else { "" }
        )
    })
}

/// The headers of Ethernet, IP and UDP take 5 % of a link with packets of 1500 bytes; a
/// middleware's protocol adds to that.
const NEARLY_ALL: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::super::messages::Measured;
    use super::*;
    use crate::record::RunSamples;
    use crate::scenario::Kind;
    use myelin_bench_kit::samples::Record;

    /// Messages sent every millisecond and taken 100 ns later, except during the cut from 3 to 6
    /// ms.
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

    fn figures_of(samples: &RunSamples, kind: Kind, record_every: u64) -> Option<CutFigures> {
        figures(CUT, &Messages::of(samples, Measured::new(kind, false, false)), record_every)
    }

    #[test]
    fn messages_kept_during_a_cut_are_late() {
        let figures = figures_of(&samples(|id| Some(5_950_000 + id)), Kind::Stream, 1).unwrap();
        assert_eq!((figures.sent, figures.lost, figures.late), (3, 0, 3));
        let ms = |s: f64| (s * 1e6).round() / 1e3;
        assert_eq!((ms(figures.at_s), ms(figures.for_s)), (1.9, 3.0));
        assert_eq!(figures.silent_s.map(ms), Some(3.95), "from 2.0001 to 5.950002 ms");
    }

    #[test]
    fn messages_not_kept_during_a_cut_are_lost() {
        let figures = figures_of(&samples(|_| None), Kind::Stream, 1).unwrap();
        assert_eq!((figures.sent, figures.lost, figures.late), (3, 3, 0));
        assert_eq!(figures.silent_s, Some(0.004));
        assert_eq!(figures_of(&RunSamples::default(), Kind::Stream, 1), None);
    }

    #[test]
    fn a_round_trip_is_taken_at_ping() {
        let mut samples = samples(|_| None);
        for (ping, at_ns) in samples.ping.iter_mut().zip([1, 2, 0, 6, 7]) {
            ping.take_return_ns = at_ns * 1_000_000 + 50_000;
        }
        samples.ping[2].take_return_ns = 0;
        samples.ping.truncate(5);
        let figures = figures_of(&samples, Kind::Roundtrip, 2).unwrap();
        assert_eq!((figures.sent, figures.lost, figures.late), (6, 2, 4));
    }
}
