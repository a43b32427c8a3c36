//! Each recorded message of a run: when it began, how long it took, and what its time went to.
//!
//! ```text
//! round trip   [lateness]  loan ─ fill ─ publish ─ wake ─ take ─ publish back ─ wake back ─ take back
//! stream        lateness ─ loan ─ fill ─ publish ─ wake ─ take
//! image        [lateness ─ loan ─ fill]  publish ─ wake ─ take
//! ```
//! What stands in brackets passes before the latency begins. The others add up to it: stamps that
//! overlap (a receiver may be awake before publish returns) are cut where the next part begins. Lean
//! messages have no parts. Of two hosts' clocks, which agree within an error alone, a receiver may
//! seem to be awake before anything was sent: its wake is then negative, and so may the latency be.

use myelin_bench_kit::samples::Record;

use super::series::{counted, has_parts, span};
use super::stream::joined;
use crate::run::RunSamples;
use crate::scenario::Kind;
use crate::summary::Stage;

/// The messages of one run, in the order of their records.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    pub all: Vec<Message>,
    /// Which parts are measured, by [`Stage::ALL`]; `None` where the time is not divided.
    pub measured: Option<[Option<Part>; STAGES]>,
}

/// How a part stands to the latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Before,
    Within,
}

/// One message that came to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub id: u64,
    /// On the clock of the run.
    pub begin_ns: u64,
    pub latency_ns: i64,
    /// Whether it is of the kind that the run's latencies are of: lean, where any message is.
    pub is_counted: bool,
    /// By [`Stage::ALL`], in ns; `None` where stamps are missing.
    pub parts: Option<[f32; STAGES]>,
    /// Where publish returned, where it was taken, where the answer was; the latter two may fail.
    pub cpus: [Option<u16>; 3],
}

/// Kinds of parts.
pub(super) const STAGES: usize = Stage::ALL.len();

impl Messages {
    /// Of a run's records; none of floods, whose latency is the depth of a queue, and of start-ups.
    pub(super) fn of(samples: &RunSamples, kind: Kind, has_loans: bool, has_rate: bool) -> Self {
        let all: Vec<Message> = match kind {
            Kind::Roundtrip => round_trips(samples, has_loans).collect(),
            Kind::Publish => samples.ping.iter().map(publish_call).collect(),
            Kind::Stream => joined(samples).map(|ends| one_way(ends, has_rate)).collect(),
            Kind::Image => joined(samples).map(|ends| one_way(ends, false)).collect(),
            Kind::Flood | Kind::Startup => Vec::new(),
        };
        let measured = match kind {
            Kind::Roundtrip | Kind::Stream | Kind::Image => {
                Some(measured(&all, samples, kind, has_rate))
            }
            _ => None,
        };
        Messages { all, measured }
    }

    /// Leaves out what crosses two clocks of which nothing is known: of a round trip what its time
    /// went to, of what goes one way all.
    pub(super) fn without_other_clock(self, kind: Kind) -> Self {
        let whole = |message| Message { parts: None, ..message };
        match kind {
            Kind::Roundtrip => {
                Messages { all: self.all.into_iter().map(whole).collect(), measured: None }
            }
            Kind::Publish => self,
            _ => Messages::default(),
        }
    }
}

fn round_trips(samples: &RunSamples, has_loans: bool) -> impl Iterator<Item = Message> + '_ {
    let is_counted = counted(&samples.ping);
    let answered = samples.ping.iter().enumerate().filter(|(_, ping)| ping.take_return_ns != 0);
    answered.map(move |(index, ping)| {
        let pong = samples.pong.get(index).filter(|pong| pong.take_return_ns != 0);
        Message {
            id: ping.id,
            begin_ns: ping.publish_entry_ns,
            latency_ns: ping.take_return_ns as i64 - ping.publish_entry_ns as i64,
            is_counted: is_counted(ping),
            parts: pong
                .filter(|pong| has_parts(ping) && has_parts(pong))
                .map(|pong| round_trip(ping, pong, has_loans)),
            cpus: [Some(ping.publish_cpu), pong.map(|pong| pong.take_cpu), Some(ping.take_cpu)],
        }
    })
}

fn round_trip(ping: &Record, pong: &Record, has_loans: bool) -> [f32; STAGES] {
    let mut way = Way::new(ping.publish_entry_ns);
    way.before(Stage::Lateness, ping.intended_ns, ping.publish_entry_ns);
    if has_loans {
        let loaned_ns = ping.publish_entry_ns + u64::from(ping.loan_ns);
        way.until(Stage::Loan, loaned_ns);
        way.until(Stage::Fill, loaned_ns + u64::from(ping.fill_ns));
    }
    way.travel(ping.publish_return_ns, pong, [Stage::Publish, Stage::Wake, Stage::Take]);
    let back = [Stage::PublishBack, Stage::WakeBack, Stage::TakeBack];
    way.travel(pong.publish_return_ns, ping, back);
    way.parts
}

/// A publish call is not timed in parts.
fn publish_call(ping: &Record) -> Message {
    Message {
        id: ping.id,
        begin_ns: ping.publish_entry_ns,
        latency_ns: ping.publish_return_ns as i64 - ping.publish_entry_ns as i64,
        is_counted: true,
        parts: None,
        cpus: [Some(ping.publish_cpu), None, None],
    }
}

/// `is_due`: it begins when it was due; else at its stamp.
fn one_way((ping, pong): (&Record, &Record), is_due: bool) -> Message {
    let stamp_ns = ping.publish_entry_ns;
    let filling_ns = stamp_ns.saturating_sub(u64::from(ping.fill_ns));
    let loaning_ns = filling_ns.saturating_sub(u64::from(ping.loan_ns));
    let begin_ns = if is_due { ping.intended_ns } else { stamp_ns };
    let mut way = Way::new(begin_ns);
    if is_due {
        way.until(Stage::Lateness, loaning_ns);
        way.until(Stage::Loan, filling_ns);
        way.until(Stage::Fill, stamp_ns);
    } else {
        way.before(Stage::Lateness, ping.intended_ns, loaning_ns);
        way.before(Stage::Loan, loaning_ns, filling_ns);
        way.before(Stage::Fill, filling_ns, stamp_ns);
    }
    way.travel(ping.publish_return_ns, pong, [Stage::Publish, Stage::Wake, Stage::Take]);
    Message {
        id: ping.id,
        begin_ns,
        latency_ns: pong.take_return_ns as i64 - begin_ns as i64,
        is_counted: true,
        parts: Some(way.parts),
        cpus: [Some(ping.publish_cpu), Some(pong.take_cpu), None],
    }
}

/// Divides the time from one stamp to another.
struct Way {
    at_ns: u64,
    parts: [f32; STAGES],
}

impl Way {
    fn new(begin_ns: u64) -> Self {
        Way { at_ns: begin_ns, parts: [0.0; STAGES] }
    }

    fn before(&mut self, stage: Stage, from_ns: u64, until_ns: u64) {
        self.parts[stage as usize] = until_ns.saturating_sub(from_ns) as f32;
    }

    /// Of stamps of one clock, which may overlap.
    fn until(&mut self, stage: Stage, until_ns: u64) {
        self.across(stage, until_ns.max(self.at_ns));
    }

    /// Of stamps of two clocks: nothing is cut off.
    fn across(&mut self, stage: Stage, until_ns: u64) {
        self.parts[stage as usize] = span(self.at_ns, until_ns) as f32;
        self.at_ns = until_ns;
    }

    /// Publish call, wake and take of one direction.
    fn travel(&mut self, published_ns: u64, taken: &Record, [publish, wake, take]: [Stage; 3]) {
        let waits_apart = taken.wake_ns != 0;
        let awake_ns = if waits_apart { taken.wake_ns } else { taken.take_return_ns };
        self.until(publish, published_ns.min(awake_ns));
        if waits_apart {
            self.across(wake, awake_ns);
            self.across(take, taken.take_return_ns);
        } else {
            let both =
                if take == Stage::Take { Stage::WakeAndTake } else { Stage::WakeAndTakeBack };
            self.across(both, taken.take_return_ns);
        }
    }
}

/// What no message has any of was not measured, except what every message goes through.
fn measured(
    all: &[Message],
    samples: &RunSamples,
    kind: Kind,
    has_rate: bool,
) -> [Option<Part>; STAGES] {
    let is_waited = |records: &[Record]| records.iter().any(|record| record.wake_ns != 0);
    let is_taken_at_once = |records: &[Record]| {
        let mut taken = records.iter().filter(|record| record.take_return_ns != 0);
        taken.any(|record| record.wake_ns == 0 && has_parts(record))
    };
    let answers: &[Record] = if kind == Kind::Roundtrip { &samples.ping } else { &[] };
    let any = |stage: Stage| {
        let parts = || all.iter().filter_map(|message| message.parts);
        parts().any(|parts| parts[stage as usize] > 0.0)
    };
    Stage::ALL.map(|stage| {
        let is_measured = match stage {
            Stage::Lateness => has_rate,
            Stage::Loan | Stage::Fill => any(stage),
            Stage::Publish => true,
            Stage::Wake | Stage::Take => is_waited(&samples.pong),
            Stage::WakeAndTake => is_taken_at_once(&samples.pong),
            Stage::PublishBack => kind == Kind::Roundtrip,
            Stage::WakeBack | Stage::TakeBack => is_waited(answers),
            Stage::WakeAndTakeBack => is_taken_at_once(answers),
        };
        let is_before = match kind {
            Kind::Image => stage <= Stage::Fill,
            Kind::Stream => !has_rate && stage <= Stage::Fill,
            _ => stage == Stage::Lateness,
        };
        is_measured.then_some(if is_before { Part::Before } else { Part::Within })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use myelin_bench_kit::samples::LEAN;
    use proptest::prelude::*;

    fn ping(stamps: [u64; 5]) -> Record {
        let [intended_ns, publish_entry_ns, publish_return_ns, wake_ns, take_return_ns] = stamps;
        Record {
            intended_ns,
            publish_entry_ns,
            publish_return_ns,
            wake_ns,
            take_return_ns,
            loan_ns: 20,
            fill_ns: 30,
            ..Record::default()
        }
    }

    fn part(message: &Message, stage: Stage) -> f32 {
        message.parts.unwrap()[stage as usize]
    }

    #[test]
    fn a_round_trip_is_divided_at_its_stamps() {
        let sent = ping([900, 1000, 1100, 1500, 1520]);
        let pong = Record {
            wake_ns: 1250,
            take_return_ns: 1260,
            publish_return_ns: 1400,
            ..Record::default()
        };
        let samples = RunSamples { ping: vec![sent], pong: vec![pong], ..RunSamples::default() };
        let messages = Messages::of(&samples, Kind::Roundtrip, true, true);
        let expected = [100.0, 20.0, 30.0, 50.0, 150.0, 10.0, 0.0, 140.0, 100.0, 20.0, 0.0];
        assert_eq!(messages.all[0].parts, Some(expected));
        let measured = messages.measured.unwrap();
        assert_eq!(measured[0], Some(Part::Before), "it counts from the actual sending");
        assert_eq!(measured.iter().filter(|part| part.is_none()).count(), 2, "{measured:?}");
    }

    #[test]
    fn a_lean_round_trip_has_no_parts_and_hides_none() {
        let lean = |record: Record| Record { flags: LEAN, wake_ns: 0, ..record };
        let sent = ping([1000, 1000, 1100, 1500, 1520]);
        let pong = Record { wake_ns: 1250, take_return_ns: 1260, ..ping([0, 0, 1400, 0, 0]) };
        let samples = RunSamples {
            ping: vec![sent, lean(sent)],
            pong: vec![pong, lean(pong)],
            ..RunSamples::default()
        };
        let messages = Messages::of(&samples, Kind::Roundtrip, true, false);
        let has: Vec<bool> = messages.all.iter().map(|message| message.parts.is_some()).collect();
        assert_eq!(has, [true, false]);
        let measured = messages.measured.unwrap();
        assert_eq!(measured[Stage::WakeAndTake as usize], None, "they wait apart");
        assert!(measured[Stage::WakeBack as usize].is_some());
    }

    #[test]
    fn who_is_awake_before_publish_returns_cuts_it_short() {
        let sent = ping([1000, 1000, 1300, 0, 0]);
        let pong = Record { wake_ns: 1200, take_return_ns: 1210, ..Record::default() };
        let samples = RunSamples { ping: vec![sent], pong: vec![pong], ..RunSamples::default() };
        let messages = Messages::of(&samples, Kind::Image, true, true);
        let message = &messages.all[0];
        assert_eq!((message.begin_ns, message.latency_ns), (1000, 210));
        assert_eq!(
            [Stage::Publish, Stage::Wake, Stage::Take].map(|it| part(message, it)),
            [200.0, 0.0, 10.0]
        );
        assert_eq!(part(message, Stage::Fill), 30.0, "before the stamp");
        assert_eq!(messages.measured.unwrap()[Stage::Fill as usize], Some(Part::Before));
        assert_eq!(messages.measured.unwrap()[Stage::Wake as usize], Some(Part::Within));
    }

    /// Seen from clocks that agree within an error alone.
    #[test]
    fn what_came_before_it_was_sent_is_shown_so() {
        let sent = Record { loan_ns: 0, fill_ns: 0, ..ping([1000, 1000, 1100, 0, 0]) };
        let pong = Record { wake_ns: 980, take_return_ns: 990, ..Record::default() };
        let samples = RunSamples { ping: vec![sent], pong: vec![pong], ..RunSamples::default() };
        let messages = Messages::of(&samples, Kind::Stream, false, true);
        let message = &messages.all[0];
        assert_eq!(message.latency_ns, -10);
        assert_eq!(
            [Stage::Publish, Stage::Wake, Stage::Take].map(|it| part(message, it)),
            [0.0, -20.0, 10.0]
        );
        let unknown = messages.clone().without_other_clock(Kind::Stream);
        assert!(unknown.all.is_empty());
        let round_trip = messages.without_other_clock(Kind::Roundtrip);
        assert_eq!((round_trip.all.len(), round_trip.all[0].parts), (1, None));
    }

    #[test]
    fn a_wait_inside_the_take_is_not_told_apart() {
        let sent = Record { loan_ns: 0, fill_ns: 0, ..ping([1000, 1040, 1100, 0, 0]) };
        let pong = Record { take_return_ns: 1210, ..Record::default() };
        let samples = RunSamples { ping: vec![sent], pong: vec![pong], ..RunSamples::default() };
        let messages = Messages::of(&samples, Kind::Stream, false, true);
        assert_eq!(part(&messages.all[0], Stage::WakeAndTake), 110.0);
        let measured = messages.measured.unwrap();
        for stage in [Stage::Loan, Stage::Fill, Stage::Wake, Stage::Take, Stage::PublishBack] {
            assert_eq!(measured[stage as usize], None, "{stage:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_within_add_up_to_the_latency(
            stamps in prop::array::uniform9(1u64..1_000_000),
            image in any::<bool>(),
        ) {
            let [intended, entry, returned, wake, taken, pong_wake, pong_taken, pong_return, _] =
                stamps;
            let taken = taken.max(entry).max(pong_taken);
            let sent = ping([intended, entry, returned, wake, taken]);
            let pong = Record {
                wake_ns: if image { 0 } else { pong_wake },
                take_return_ns: pong_taken.max(entry).max(intended),
                publish_return_ns: pong_return,
                ..Record::default()
            };
            let samples = RunSamples { ping: vec![sent], pong: vec![pong], ..RunSamples::default() };
            for kind in [Kind::Roundtrip, Kind::Stream, Kind::Image] {
                let messages = Messages::of(&samples, kind, true, true);
                let measured = messages.measured.unwrap();
                let message = &messages.all[0];
                let within = message.parts.unwrap().into_iter().zip(measured);
                let sum: f32 = within
                    .filter(|(_, part)| *part == Some(Part::Within))
                    .map(|(ns, _)| ns)
                    .sum();
                prop_assert!((sum - message.latency_ns as f32).abs() < 1.0, "{kind:?} {message:?}");
            }
        }
    }
}
