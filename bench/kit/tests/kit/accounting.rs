//! Ping's counts and records, compared with a model. Time stands still unless the test advances it.
//!
//! A fake wire in this process decides the fate of each message; nothing here takes real time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use crate::support::{Samples, prepare};
use myelin_bench_kit::message::{HEADER_BYTES, sequence};
use myelin_bench_kit::pingpong::{END_OF_STREAM, LOST_IN_A_ROW_MAX};
use myelin_bench_kit::protocol::{Done, Prepare, Role};
use myelin_bench_kit::samples::{CORRUPT, LATE, LEAN, OUT_OF_ORDER, Record, SampleFile};
use myelin_bench_kit::{Clock, Error, Link, Publisher, RoundTrip, Subscriber};
use proptest::prelude::*;

/// The fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered {
        delay_ns: u64,
    },
    Twice,
    Corrupt,
    /// Answered just after the time limit.
    Late,
    /// Answered right after the answer to the next message that is answered in time.
    Overtaken,
    Lost,
}

impl Fate {
    fn delay_ns(self) -> Option<u64> {
        match self {
            Fate::Answered { delay_ns } => Some(delay_ns),
            Fate::Twice | Fate::Corrupt => Some(DELAY_NS),
            Fate::Late | Fate::Overtaken | Fate::Lost => None,
        }
    }
}

/// Both ends of ping: decides fates on publish and delivers due answers on take.
struct Wire {
    clock: Clock,
    warmup_messages: u64,
    script: Vec<Fate>,
    /// Due time and message, ascending.
    answers: Vec<(u64, Vec<u8>)>,
    overtaken: Vec<Vec<u8>>,
    published: Rc<Cell<u64>>,
}

impl Wire {
    fn deliver(&mut self, due_ns: u64, message: Vec<u8>) {
        let place = self.answers.partition_point(|(due, _)| *due <= due_ns);
        self.answers.insert(place, (due_ns, message));
    }
}

struct End(Rc<RefCell<Wire>>, Vec<u8>);

impl Publisher for End {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let mut wire = self.0.borrow_mut();
        if sequence(message) == Some(END_OF_STREAM) {
            return Ok(());
        }
        wire.published.set(wire.published.get() + 1);
        let id = sequence(message).unwrap().checked_sub(wire.warmup_messages);
        let fate = id.map(|id| wire.script[id as usize]);
        let fate = fate.unwrap_or(Fate::Answered { delay_ns: DELAY_NS });
        let (now_ns, mut message) = (wire.clock.now(), message.to_vec());
        match fate {
            Fate::Lost => {}
            Fate::Overtaken => wire.overtaken.push(message),
            Fate::Late => wire.deliver(now_ns + TIMEOUT_NS + 1, message),
            Fate::Answered { .. } | Fate::Twice | Fate::Corrupt => {
                let due_ns = now_ns + fate.delay_ns().unwrap();
                if fate == Fate::Corrupt {
                    message[HEADER_BYTES] ^= 0x80;
                }
                if fate == Fate::Twice {
                    wire.deliver(due_ns, message.clone());
                }
                wire.deliver(due_ns, message);
                for overtaken in std::mem::take(&mut wire.overtaken) {
                    wire.deliver(due_ns, overtaken);
                }
            }
        }
        Ok(())
    }
}

impl Subscriber for End {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let wire = self.0.borrow();
        let due_ns = wire.answers.first().map(|(due_ns, _)| *due_ns);
        let has_come = due_ns.is_some_and(|due_ns| due_ns <= until_ns);
        wire.clock.sleep_until(due_ns.unwrap_or(until_ns).min(until_ns));
        Ok(Some(has_come))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.1 = self.0.borrow_mut().answers.remove(0).1;
        Ok(Some(&self.1))
    }
}

struct Outcome {
    result: Result<Done, Error>,
    records: Vec<Record>,
    published: u64,
}

/// Runs ping over the fake wire with one message for each fate.
fn ping(script: &[Fate], prepare: Prepare, capacity: u64) -> Outcome {
    let messages = if prepare.duration_ns > 0 { 0 } else { script.len() as u64 };
    let prepare = Prepare { messages, reply_timeout_ns: TIMEOUT_NS, ..prepare };
    let published = Rc::new(Cell::new(0));
    let clock = Clock::virtual_at(BEGIN_NS);
    let wire = Rc::new(RefCell::new(Wire {
        clock: clock.clone(),
        warmup_messages: prepare.warmup_messages,
        script: script.to_vec(),
        answers: Vec::new(),
        overtaken: Vec::new(),
        published: Rc::clone(&published),
    }));
    let mut link = Link {
        publisher: Box::new(End(Rc::clone(&wire), Vec::new())),
        subscriber: Box::new(End(wire, Vec::new())),
        clock,
    };
    let samples = Samples::new(capacity);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    let result = link.ping(&prepare, &mut file, 0, &AtomicBool::new(false));
    Outcome { result, records: samples.records(), published: published.get() }
}

fn no_warmup() -> Prepare {
    Prepare { warmup_messages: 0, ..prepare("fake", Role::Ping) }
}

/// What ping must count and record, written down for each fate, not simulated.
#[derive(Debug, Default, PartialEq)]
struct Model {
    done: Done,
    records: Vec<Record>,
    gives_up: bool,
}

impl Model {
    fn new(script: &[Fate], rate_hz: Option<f64>, begin_ns: u64) -> Self {
        let mut this = Model::default();
        let (mut now_ns, mut unanswered_in_a_row) = (begin_ns, 0);
        for (id, fate) in script.iter().enumerate() {
            let scheduled_ns = rate_hz.map(|rate| begin_ns + (id as f64 * (1e9 / rate)) as u64);
            let entry_ns = now_ns.max(scheduled_ns.unwrap_or(0));
            let answered_later = script[id + 1..].iter().any(|fate| fate.delay_ns().is_some());
            this.add(id as u64, *fate, scheduled_ns.unwrap_or(entry_ns), entry_ns, answered_later);
            now_ns = entry_ns + fate.delay_ns().unwrap_or(TIMEOUT_NS);
            let late_one_came = id > 0 && script[id - 1] == Fate::Late;
            if fate.delay_ns().is_some() || late_one_came {
                unanswered_in_a_row = 0;
            }
            unanswered_in_a_row += u32::from(fate.delay_ns().is_none());
            this.gives_up |= unanswered_in_a_row == LOST_IN_A_ROW_MAX;
        }
        this.done.lost = this.done.sent - this.done.received;
        this.done.begin_ns = begin_ns;
        this.done.end_ns = now_ns;
        this
    }

    fn add(&mut self, id: u64, fate: Fate, intended_ns: u64, entry_ns: u64, answered_later: bool) {
        let flags = match fate {
            Fate::Corrupt => CORRUPT,
            Fate::Late => LATE,
            Fate::Overtaken if answered_later => LATE | OUT_OF_ORDER,
            _ => 0,
        };
        let answered = fate.delay_ns().is_some() || flags & LATE != 0;
        self.done.sent += 1;
        self.done.received += u64::from(answered);
        self.done.duplicates += u64::from(fate == Fate::Twice);
        self.done.corrupt += u64::from(fate == Fate::Corrupt);
        self.done.out_of_order += u64::from(flags & OUT_OF_ORDER != 0);
        let in_time_ns = fate.delay_ns().map(|delay_ns| entry_ns + delay_ns);
        self.records.push(Record {
            id,
            intended_ns,
            publish_entry_ns: entry_ns,
            publish_return_ns: entry_ns,
            take_return_ns: in_time_ns.unwrap_or(u64::from(answered) * LATER),
            flags,
            duplicates: u16::from(fate == Fate::Twice),
            ..Record::default()
        });
    }
}

/// A record with the fields that the model predicts: it leaves open when a late answer arrived.
fn as_modelled(record: &Record, parts_every: u64) -> Record {
    // A late answer is stamped like the message for which ping waits at that time.
    let may_be_lean = record.flags & (LEAN | LATE) != 0 && parts_every > 1;
    let is_woken = record.wake_ns == record.take_return_ns;
    assert!(is_woken || (may_be_lean && record.wake_ns == 0), "the fake wakes and takes at once");
    assert!(record.flags & (LEAN | LATE) != LEAN || record.wake_ns == 0, "a lean one has no wake");
    let late = record.flags & LATE != 0;
    assert!(!late || record.take_return_ns > record.publish_return_ns + TIMEOUT_NS);
    Record {
        wake_ns: 0,
        flags: record.flags & !LEAN,
        publish_cpu: 0,
        take_cpu: 0,
        take_return_ns: if late { LATER } else { record.take_return_ns },
        ..*record
    }
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => (DELAY_NS..TIMEOUT_NS).prop_map(|delay_ns| Fate::Answered { delay_ns }),
        1 => Just(Fate::Twice),
        1 => Just(Fate::Corrupt),
        1 => Just(Fate::Late),
        1 => Just(Fate::Overtaken),
        1 => Just(Fate::Lost),
    ];
    prop::collection::vec(fate, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ping_agrees_with_the_model(
        script in fates(),
        record_every in 1u64..5,
        capacity in 1u64..60,
        rate_hz in prop::option::of(100.0f64..1e6),
        warmup_messages in 0u64..4,
        parts_every in 1u64..4,
    ) {
        let prepare =
            Prepare { record_every, rate_hz, warmup_messages, parts_every, ..no_warmup() };
        let outcome = ping(&script, prepare, capacity);
        // The run ends with the message whose record fills the file.
        let sent = script.len().min(((capacity - 1) * record_every + 1) as usize);
        let begin_ns = BEGIN_NS + warmup_messages * DELAY_NS;
        let model = Model::new(&script[..sent], rate_hz, begin_ns);
        match outcome.result {
            Ok(done) => {
                prop_assert!(!model.gives_up);
                // Only CPU time is not simulated.
                prop_assert_eq!(Done { cpu_ns: None, ..done }, model.done);
                let kept: Vec<Record> =
                    model.records.into_iter().step_by(record_every as usize).collect();
                let found: Vec<Record> = outcome.records.iter().map(|it| as_modelled(it, parts_every)).collect();
                prop_assert_eq!(found, kept);
                for record in &outcome.records {
                    let place = (record.id + warmup_messages) / record_every;
                    prop_assert_eq!(
                        record.flags & LEAN != 0, !place.is_multiple_of(parts_every)
                    );
                }
            }
            Err(error) => prop_assert!(model.gives_up, "{error}"),
        }
    }
}

#[test]
fn ping_gives_up_after_so_many_losses_in_a_row() {
    let in_a_row = LOST_IN_A_ROW_MAX as usize;
    let mut script = vec![Fate::Lost; 3 * in_a_row];
    let outcome = ping(&script, no_warmup(), 100);
    let error = outcome.result.unwrap_err();
    assert!(error.message.contains("5 messages in a row"), "{error}");
    assert!(error.remedy.contains("pong's log"));
    assert_eq!(outcome.published, u64::from(LOST_IN_A_ROW_MAX));
    // One answer in between, even a late one, and ping continues.
    script[in_a_row - 2] = Fate::Twice;
    script[2 * in_a_row - 3] = Fate::Late;
    script[3 * in_a_row - 4] = Fate::Corrupt;
    assert_eq!(ping(&script, no_warmup(), 100).result.unwrap().received, 3);
}

#[test]
fn a_missed_schedule_is_caught_up_and_not_shifted() {
    let period_ns = 1_000_000;
    let mut script = vec![Fate::Twice; 12];
    script[2] = Fate::Answered { delay_ns: 5 * period_ns + period_ns / 2 };
    let prepare = Prepare { rate_hz: Some(1e3), ..no_warmup() };
    let records = ping(&script, prepare, 100).records;
    for (index, record) in (0u64..).zip(&records) {
        assert_eq!(record.intended_ns, BEGIN_NS + index * period_ns);
        let behind_ns = record.publish_entry_ns - record.intended_ns;
        let expected_ns = match index {
            // Sent as soon as answers arrive, each after the backlog before it.
            3..=7 => (8 - index) * period_ns - period_ns / 2 + (index - 3) * DELAY_NS,
            _ => 0,
        };
        assert_eq!(behind_ns, expected_ns, "message {index}");
    }
}

#[test]
fn a_run_of_a_duration_ends_in_time_with_or_without_a_rate() {
    let script = [Fate::Twice; 200];
    let duration_ns = 10 * DELAY_NS;
    let prepare = Prepare { duration_ns, ..no_warmup() };
    assert_eq!(ping(&script, prepare.clone(), 1000).result.unwrap().sent, 10);
    let rate_hz = Some(1e9 / (4 * DELAY_NS) as f64);
    let done = ping(&script, Prepare { rate_hz, ..prepare }, 1000).result.unwrap();
    assert_eq!(done.sent, 3, "at 0, 4 and 8 delays; the fourth would be after the end");
}

#[test]
fn a_warm_up_by_time_ends_in_time_and_measuring_begins_at_its_number() {
    let warmup_ns = 7 * DELAY_NS;
    let prepare = Prepare { warmup_messages: 1000, warmup_ns, parts_every: 3, ..no_warmup() };
    let outcome = ping(&[Fate::Answered { delay_ns: DELAY_NS }; 5], prepare.clone(), 100);
    let done = outcome.result.unwrap();
    assert_eq!((done.warmed_up, done.sent, done.begin_ns), (Some(7), 5, BEGIN_NS + warmup_ns));
    assert_eq!(outcome.published, 12);
    let ids: Vec<u64> = outcome.records.iter().map(|record| record.id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    let lean = outcome.records.iter().map(|record| record.flags & LEAN != 0);
    assert!(lean.eq((1000u64..1005).map(|sequence| !sequence.is_multiple_of(3))));
    // If the time limit is longer, the number of messages decides.
    let fast = Prepare { warmup_messages: 4, ..prepare };
    assert_eq!(ping(&[Fate::Lost; 1], fast, 100).result.unwrap().warmed_up, Some(4));
}

const BEGIN_NS: u64 = 1_000_000_000;
const DELAY_NS: u64 = 10_000;
const TIMEOUT_NS: u64 = 20_000_000;
/// Represents the time of a late answer.
const LATER: u64 = 1;
