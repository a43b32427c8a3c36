//! A run over time: windows with their percentiles, and a heat map of time and latency.

use super::distribution::{Unsorted, us};
use super::judged::JudgedRun;
use super::messages::{Message, Messages};
use crate::summary::{Bin, HeatMap, Timeline, Window};

/// The timeline of one run; a record stands for `record_every` messages. `None` without messages.
pub(super) fn of(run: &JudgedRun<'_>, record_every: u64) -> Option<Timeline> {
    let moments = moments(&run.messages);
    let span = Span::of(&moments)?;
    let series = run.record.observation.as_ref().and_then(|seen| seen.series.as_ref());
    Some(Timeline {
        run: run.number(),
        duration_s: span.duration_ns as f64 * 1e-9,
        observed_from_s: series.map(|series| span.seconds_at(series.begin_ns)),
        windows: windows(&moments, span, record_every),
        map: map(&moments, span),
        cut_s: run
            .record
            .cut
            .map(|cut| [cut.at_ns, cut.at_ns + cut.for_ns].map(|at_ns| span.seconds_at(at_ns))),
    })
}

/// A message and its taking by one subscriber.
#[derive(Clone, Copy)]
struct Moment {
    /// When the message began.
    begin_ns: u64,
    /// Its latency if it counts for percentiles.
    latency_ns: Option<i64>,
    /// Whether it is the first taking of the message; rates count only these.
    is_first: bool,
}

fn moments(messages: &Messages<'_>) -> Vec<Moment> {
    let moment = |(message, latency_ns): (&Message<'_>, i64)| Moment {
        begin_ns: message.begin_ns(&messages.measured),
        latency_ns: message.is_counted.then_some(latency_ns),
        is_first: message.is_first,
    };
    messages.ended().map(moment).collect()
}

/// From the beginning of the first message to that of the last.
#[derive(Clone, Copy)]
pub(super) struct Span {
    begin_ns: u64,
    duration_ns: u64,
}

impl Span {
    /// The span of a run; `None` without messages.
    pub(super) fn of_run(messages: &Messages<'_>) -> Option<Self> {
        Span::of(&moments(messages))
    }

    fn of(moments: &[Moment]) -> Option<Self> {
        let begins = || moments.iter().map(|moment| moment.begin_ns);
        let begin_ns = begins().min()?;
        Some(Span { begin_ns, duration_ns: begins().max()?.saturating_sub(begin_ns).max(1) })
    }

    /// Converts a time of the run's clock to seconds from the beginning of the first message.
    pub(super) fn seconds_at(self, at_ns: u64) -> f64 {
        (at_ns as i64 - self.begin_ns as i64) as f64 * 1e-9
    }

    /// The index of the part, of `parts` equal ones, in which a message began.
    fn part(self, begin_ns: u64, parts: usize) -> usize {
        let share = (begin_ns - self.begin_ns) as f64 / self.duration_ns as f64;
        ((share * parts as f64) as usize).min(parts - 1)
    }
}

fn windows(moments: &[Moment], span: Span, record_every: u64) -> Vec<Window> {
    let number = (moments.len() / WINDOW_MESSAGES_MIN).clamp(1, PARTS);
    // For each window, the number of all messages and the latencies that count for percentiles.
    let mut parts: Vec<(u64, Vec<i64>)> = vec![(0, Vec::new()); number];
    for &Moment { begin_ns, latency_ns, is_first } in moments {
        let (all, latencies) = &mut parts[span.part(begin_ns, number)];
        *all += u64::from(is_first);
        latencies.extend(latency_ns);
    }
    let seconds = span.duration_ns as f64 * 1e-9 / number as f64;
    let window = |(all, latencies): (u64, Vec<i64>)| {
        let [p50, p99] = Unsorted::of([&latencies].into_iter()).supported([0.5, 0.99]);
        Window {
            rate_per_s: (all * record_every) as f64 / seconds,
            p50_us: p50.map(us),
            p99_us: p99.map(us),
            max_us: latencies.into_iter().max().map(us),
        }
    };
    parts.into_iter().map(window).collect()
}

fn map(moments: &[Moment], span: Span) -> HeatMap {
    let mut counts = vec![[0u32; PARTS]; usize::from(row(i64::MAX)) + 1];
    for &Moment { begin_ns, latency_ns, .. } in moments {
        let Some(latency_ns) = latency_ns else { continue };
        counts[usize::from(row(latency_ns))][span.part(begin_ns, PARTS)] += 1;
    }
    let field = |column: usize, (row, counts): (usize, &[u32; PARTS])| {
        let count = counts[column];
        (count > 0).then_some(Bin { column: column as u16, row: row as u16, count })
    };
    let of_column = |column| counts.iter().enumerate().filter_map(move |it| field(column, it));
    HeatMap { columns: PARTS as u32, fields: (0..PARTS).flat_map(of_column).collect() }
}

/// The row of a latency; row 0 has everything up to 1 ns.
fn row(latency_ns: i64) -> u16 {
    let rows = f64::from(HeatMap::ROWS_PER_DECADE) * (latency_ns.max(1) as f64).log10();
    // Rounding may put an exact power of ten just below its row.
    (rows + 1e-9) as u16
}

/// A page can show this many parts of a run separately.
const PARTS: usize = 60;
/// On average: messages do not come evenly, and a 99th percentile needs a thousand.
const WINDOW_MESSAGES_MIN: usize = 40;

#[cfg(test)]
mod tests {
    use myelin_bench_kit::samples::{LEAN, Record};

    use super::super::messages::Measured;
    use super::*;
    use crate::record::RunSamples;
    use crate::scenario::Kind;

    fn message(begin_ns: u64, latency_ns: i64) -> Moment {
        Moment { begin_ns, latency_ns: Some(latency_ns), is_first: true }
    }

    fn made(messages: &[Moment]) -> (Vec<Window>, HeatMap) {
        let span = Span::of(messages).unwrap();
        (windows(messages, span, 2), map(messages, span))
    }

    #[test]
    fn every_message_is_in_a_window_and_in_a_field() {
        let messages: Vec<Moment> = (0..6000u64)
            .map(|n| message(1_000_000 + n * 1_000_000, 1000 + 9 * (n as i64 % 7000)))
            .collect();
        let (windows, map) = made(&messages);
        assert_eq!(windows.len(), 60);
        assert!(windows.iter().all(|it| it.p50_us.is_some() && it.p99_us.is_none()));
        assert!((windows[7].rate_per_s - 2000.0).abs() < 40.0, "{:?}", windows[7]);
        assert_eq!(map.fields.iter().map(|field| field.count).sum::<u32>(), 6000);
        assert!(map.fields.iter().all(|field| field.column < 60));
        let halved = map.coarser();
        assert_eq!(halved.fields.iter().map(|field| field.count).sum::<u32>(), 6000);
        assert!(halved.columns == 30 && halved.fields.len() < map.fields.len());
    }

    #[test]
    fn a_stall_appears_at_its_time() {
        let mut messages: Vec<Moment> =
            (0..2400u64).map(|n| message(n * 5_000_000, 20_000)).collect();
        messages[1200].latency_ns = Some(50_000_000);
        let (windows, map) = made(&messages);
        let slow: Vec<usize> = (0..PARTS).filter(|&at| windows[at].max_us > Some(1000.0)).collect();
        assert_eq!(slow, [30]);
        let above = map.fields.iter().filter(|field| field.row > row(1_000_000));
        assert_eq!(
            above.copied().collect::<Vec<_>>(),
            [Bin { column: 30, row: row(50_000_000), count: 1 }]
        );
    }

    #[test]
    fn percentiles_over_time_use_lean_messages_and_the_rate_all() {
        let ends = |id: u64| {
            let (flags, latency_ns) =
                if id.is_multiple_of(4) { (0, 50_000) } else { (LEAN, 20_000) };
            let begin_ns = 1 + id * 1_000_000;
            let (publish_entry_ns, take_return_ns) = (begin_ns, begin_ns + latency_ns);
            let ping = Record { id, publish_entry_ns, take_return_ns, flags, ..Record::default() };
            (ping, Record { publish_return_ns: begin_ns, ..ping })
        };
        let (ping, pong) = (0..160).map(ends).unzip();
        let samples = RunSamples { ping, pong, ..RunSamples::default() };
        let run = Messages::of(&samples, Measured::new(Kind::Roundtrip, false, false));
        let (windows, map) = made(&moments(&run));
        assert!(windows.iter().all(|it| it.max_us == Some(20.0)), "{windows:?}");
        assert!((windows[0].rate_per_s - 2000.0).abs() < 60.0, "{:?}", windows[0]);
        assert_eq!(map.fields.iter().map(|field| field.count).sum::<u32>(), 120);
    }

    #[test]
    fn a_rate_counts_a_message_once_for_all_its_subscribers() {
        let sent = |id: u64| Record {
            id,
            intended_ns: 1 + id * 1_000_000,
            publish_entry_ns: 1 + id * 1_000_000,
            ..Record::default()
        };
        let taken = |id: u64| Record {
            take_return_ns: sent(id).publish_entry_ns + 20_000,
            ..Record { id, ..Record::default() }
        };
        let ping = (0..160).map(sent).collect();
        let pong = (0..480).map(|place| taken(place % 160)).collect();
        let samples = RunSamples { ping, pong, ..RunSamples::default() };
        let run = Messages::of(&samples, Measured::new(Kind::Stream, true, false));
        let (windows, map) = made(&moments(&run));
        assert!(windows.iter().all(|it| (it.rate_per_s - 2000.0).abs() < 200.0), "{windows:?}");
        assert_eq!(map.fields.iter().map(|field| field.count).sum::<u32>(), 480);
    }

    #[test]
    fn few_messages_make_few_windows() {
        let (windows, _) = made(&(0..79).map(|n| message(n, 5)).collect::<Vec<_>>());
        assert_eq!(windows.len(), 1);
        assert_eq!(windows[0].p50_us, Some(0.005));
        let (windows, map) = made(&[message(7, -3)]);
        assert_eq!((windows.len(), map.fields[0].row), (1, 0));
    }

    #[test]
    fn rows_begin_at_powers_of_ten() {
        for power in 0..9u32 {
            assert_eq!(row(10i64.pow(power)), (12 * power) as u16);
        }
    }
}
