//! The two ends of a stream or image run in separate processes: the publisher publishes by a schedule
//! without answers; the subscriber takes messages or is called.
//!
//! Each end is made, with all the memory it will need, before the lab hears that it is ready; then
//! it is run. `one_process` has both ends in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::accounting::{Accounted, Accounting};
use crate::arrivals;
use crate::calls::CallbackHandle;
use crate::clock::Clock;
use crate::driver::{Publisher, Receiver, Stream, Subscriber};
use crate::due::DueTimes;
use crate::error::Error;
use crate::fan::QUIET_NS;
use crate::numbers::{PUBLISHERS_MAX, number};
use crate::outgoing::Outgoing;
use crate::pace::Pace;
use crate::process;
use crate::protocol::{Done, Prepare, System, Workload};
use crate::samples::SampleFile;
use crate::trace::Trace;
use crate::transfer::{Limit, Sent, Stamps, receive};

/// Checks that `system` supports the stream of `prepare`.
pub fn check(prepare: &Prepare, system: &System) -> Result<(), Error> {
    arrivals::check(prepare)?;
    if prepare.publishers > PUBLISHERS_MAX {
        return Err(Error::new(format!("publishers: {} are too many", prepare.publishers))
            .remedy(format!("at most {PUBLISHERS_MAX}")));
    }
    if matches!(prepare.workload, Workload::Flood | Workload::Startup | Workload::Replay) {
        return Ok(());
    }
    check_rate(prepare, system.streams_back_to_back())
}

/// Checks the rate. A stream back to back is limited only by what the receiving end takes; just a
/// function call in the publishing thread has no such limit.
pub(crate) fn check_rate(prepare: &Prepare, is_called: bool) -> Result<(), Error> {
    if is_called || prepare.rate_hz.is_some() {
        return Ok(());
    }
    let system = &prepare.system;
    Err(Error::new(format!(
        "rate_hz: a subscriber of {system} takes its messages, so its stream needs a rate; only \
         callbacks in one process can run back to back"
    ))
    .remedy("set workload.rate_hz to a number, or leave the system out of plan.systems"))
}

/// The publisher's end.
pub struct StreamPublisher {
    outgoing: Outgoing,
    clock: Clock,
    due: Option<DueTimes>,
    pace: Pace,
}

impl StreamPublisher {
    /// The publishing end of `stream`.
    pub fn new(stream: Stream, prepare: &Prepare) -> Result<Self, Error> {
        check_rate(prepare, false)?;
        let publisher = stream.publisher;
        let publisher = publisher.ok_or_else(|| Error::new("this driver opened no publisher"))?;
        Ok(StreamPublisher::with(publisher, stream.clock, prepare, Trace::of(prepare)?))
    }

    pub(crate) fn with(
        publisher: Box<dyn Publisher>,
        clock: Clock,
        prepare: &Prepare,
        trace: Option<Arc<Trace>>,
    ) -> Self {
        let outgoing = Outgoing::new(publisher, prepare, trace.clone());
        // Of a recording this is the mean.
        let pace = Pace::new(clock.clone(), prepare.rate_hz.map_or(0.0, |rate| 1e9 / rate));
        StreamPublisher { outgoing, clock, due: DueTimes::new(prepare, trace), pace }
    }

    /// Publishes `prepare.messages` messages (or for `prepare.duration_ns`) from `start_ns` on, and
    /// records each. Ends early if `stop` is set, if the sample file is full, or if it is too far
    /// behind the schedule to catch up; the rest of the schedule is then not sent.
    pub fn run(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        start_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        self.clock.sleep_until(start_ns);
        let origin_ns = self.clock.now();
        self.warm_up(prepare, samples, origin_ns, stop)?;
        let (cpu_before_ns, awake_before_ns) = (process::cpu_ns(), self.pace.awake_cpu_ns());
        let now_ns = self.clock.now();
        let begin_ns = self.due.as_ref().map_or(now_ns, |due| origin_ns + due.begin_ns());
        let mut done = Done { begin_ns, ..Done::default() };
        let limit = Limit::new(prepare, begin_ns);
        let over_ns = match prepare.duration_ns {
            0 => u64::MAX,
            duration_ns => begin_ns + duration_ns + duration_ns / 10 + GRACE_NS,
        };
        let mut written = 0;
        // ORDER: Relaxed, the flag carries nothing else.
        while !stop.load(Ordering::Relaxed) && written < samples.room() {
            let Some(intended_ns) = self.next(origin_ns, done.sent, &limit) else {
                break;
            };
            let count = prepare.warmup_messages + done.sent;
            let sent = self.outgoing.publish(count, prepare.touch, &self.clock)?;
            keep(samples, &mut written, prepare, done.sent, &sent, intended_ns);
            done.sent += 1;
            samples.beat(count + 1);
            if sent.return_ns > over_ns {
                break;
            }
        }
        done.end_ns = self.clock.now();
        let awake_ns = self.pace.awake_cpu_ns() - awake_before_ns;
        done.cpu_ns = Some((process::cpu_ns() - cpu_before_ns).saturating_sub(awake_ns));
        self.outgoing.end_stream()?;
        Ok(done)
    }

    fn warm_up(
        &mut self,
        prepare: &Prepare,
        samples: &SampleFile,
        origin_ns: u64,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        for count in 0..prepare.warmup_messages {
            let due_ns = self.due.as_mut().and_then(Iterator::next);
            // ORDER: Relaxed, the flag carries nothing else.
            if stop.load(Ordering::Relaxed) {
                break;
            }
            self.pace.wait_until(origin_ns + due_ns.unwrap_or(0));
            self.outgoing.publish(count, Default::default(), &self.clock)?;
            samples.beat(count + 1);
        }
        Ok(())
    }

    /// Like [`Limit::next`], by the schedule if there is one.
    #[inline(always)]
    fn next(&mut self, origin_ns: u64, sent: u64, limit: &Limit) -> Option<Option<u64>> {
        let Some(due) = &mut self.due else {
            return limit.next(sent, &self.clock);
        };
        let intended_ns = origin_ns + due.next()?;
        self.pace.wait_until(intended_ns);
        Some(Some(intended_ns))
    }
}

/// Records message `id` of this publisher, if `record_every` selects it and there is room.
#[inline(always)]
pub(crate) fn keep(
    samples: &mut SampleFile,
    written: &mut usize,
    prepare: &Prepare,
    id: u64,
    sent: &Sent,
    intended_ns: Option<u64>,
) {
    if prepare.record_every > 1 && !id.is_multiple_of(prepare.record_every) {
        return;
    }
    if let Some(place) = samples.record(*written) {
        *place = sent.record(number(prepare.index, id));
        place.intended_ns = intended_ns.unwrap_or(sent.entry_ns);
        *written += 1;
        samples.finish(*written);
    }
}

/// The subscriber's end, in its own process.
pub struct StreamSubscriber {
    /// Set until it has to call; a taking one stays here until the process ends.
    receiver: Option<Receiver>,
    /// Set until the run.
    accounting: Option<Accounting>,
    clock: Clock,
}

impl StreamSubscriber {
    /// The receiving end of `stream`; `samples` is the subscriber's.
    pub fn new(stream: Stream, prepare: &Prepare, samples: SampleFile) -> Result<Self, Error> {
        let receiver = Some(the_one(stream.receivers)?);
        let trace = Trace::of(prepare)?;
        let accounting = Some(Accounting::new(prepare, trace, samples, stream.clock.clone()));
        Ok(StreamSubscriber { receiver, accounting, clock: stream.clock })
    }

    /// Takes messages until the publisher sends its last message or `stop` is set, and no more arrive. May be
    /// called only once.
    pub fn run(&mut self, start_ns: u64, stop: &AtomicBool) -> Result<Done, Error> {
        let Some(mut accounting) = self.accounting.take() else {
            return Err(Error::new("a receiving end runs once"));
        };
        self.clock.jump_to(start_ns);
        match self.receiver.take() {
            Some(Receiver::Calls(source)) => {
                let (call, handle) = CallbackHandle::listening(accounting, &self.clock);
                let calling = source.start(call)?;
                // ORDER: Relaxed, the flag carries nothing else.
                while !stop.load(Ordering::Relaxed) && !handle.is_over() {
                    std::thread::park_timeout(STOP_CHECK);
                }
                // Messages that are on their way when the lab stops the process still count.
                handle.await_last(&self.clock);
                self.clock.sleep_until(self.clock.now() + QUIET_NS);
                drop(calling);
                return handle.back().map(Accounting::close);
            }
            other => self.receiver = other,
        }
        match &mut self.receiver {
            Some(Receiver::Takes(taker)) => {
                listen(taker.as_mut(), &mut accounting, &self.clock, stop)?
            }
            Some(Receiver::TakesHere(taker)) => {
                listen(taker.as_mut(), &mut accounting, &self.clock, stop)?
            }
            _ => {}
        }
        Ok(accounting.close())
    }
}

pub(crate) fn the_one(mut receivers: Vec<Receiver>) -> Result<Receiver, Error> {
    let found = receivers.len();
    match (receivers.pop(), found) {
        (Some(receiver), 1) => Ok(receiver),
        _ => Err(Error::new(format!("this driver opened {found} receivers, not 1"))),
    }
}

/// Waits and takes until the publisher sends its last message or `stop` is set, then until no more messages
/// arrive.
pub(crate) fn listen(
    subscriber: &mut dyn Subscriber,
    accounting: &mut Accounting,
    clock: &Clock,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut accounted = None;
    // ORDER: Relaxed, the flag carries nothing else.
    while accounted != Some(Accounted::EndOfStream) && !stop.load(Ordering::Relaxed) {
        let until_ns = clock.now() + STOP_CHECK.as_nanos() as u64;
        accounted = account_next(subscriber, accounting, clock, until_ns)?;
    }
    let end_ns = clock.now() + DRAIN_NS_MAX;
    let mut quiet_ns =
        if accounted == Some(Accounted::EndOfStream) { QUIET_NS } else { DRAIN_NS_MAX };
    while clock.now() < end_ns {
        match account_next(subscriber, accounting, clock, clock.now() + quiet_ns)? {
            Some(Accounted::EndOfStream) => quiet_ns = QUIET_NS,
            Some(_) => {}
            None => break,
        }
    }
    Ok(())
}

#[inline(always)]
fn account_next(
    subscriber: &mut dyn Subscriber,
    accounting: &mut Accounting,
    clock: &Clock,
    until_ns: u64,
) -> Result<Option<Accounted>, Error> {
    let Some(arrival) = receive(subscriber, clock, until_ns, Stamps::All)? else {
        return Ok(None);
    };
    let accounted = accounting.account(arrival.message, arrival.wake_ns, arrival.return_ns);
    subscriber.release();
    Ok(Some(accounted))
}

/// The publisher gives up when it is this far behind the end of the schedule, plus a tenth of the run's
/// length.
const GRACE_NS: u64 = 100_000_000;
/// How often a receiving end without messages checks whether to stop; rarely, because each check
/// wakes a core that sleeps in a slow schedule.
const STOP_CHECK: Duration = Duration::from_secs(1);
/// Limit of taking after the end.
const DRAIN_NS_MAX: u64 = 1_000_000_000;
