//! Events that make a ring write out what it has.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::recorded_losses::RecordedLosses;
use crate::recorder::{Message, RecordedTopic};

/// An event that makes a ring write out what it has. It fires when it becomes true; then it has to
/// become false before it fires again.
pub struct Trigger {
    /// What is said of it in the file, and to people.
    reason: String,
    cause: Cause,
    was_true: bool,
}

enum Cause {
    Message { topic: String, is_true: Box<Condition> },
    RateBelow(Rate),
    Loss { topic: Option<String>, before: BTreeMap<Vec<u8>, u64> },
    Looks(Box<dyn FnMut() -> bool + Send>),
}

/// Of a message: its topic, and the parts of it one after the other.
type Condition = dyn FnMut(&RecordedTopic, &[&[u8]]) -> bool + Send;

impl Trigger {
    /// A message of a topic for which this is true. It gets the message in parts, as it is written.
    pub fn on_message(
        reason: impl Into<String>,
        topic: impl Into<String>,
        is_true: impl FnMut(&RecordedTopic, &[&[u8]]) -> bool + Send + 'static,
    ) -> Trigger {
        let topic = topic.into();
        Trigger::new(reason.into(), Cause::Message { topic, is_true: Box::new(is_true) })
    }

    /// A topic that had this rate, in messages a second, and has it no more.
    pub fn rate_below(topic: impl Into<String>, rate_hz: f64) -> Trigger {
        let topic = topic.into();
        let reason = format!("{topic} is below {rate_hz} Hz");
        Trigger::new(reason, Cause::RateBelow(Rate::new(topic, rate_hz)))
    }

    /// Messages of a topic, or without a name of any topic, that are lost to the recording.
    pub fn on_loss(topic: Option<String>) -> Trigger {
        let of = topic.as_deref().map(|topic| format!(" of {topic}")).unwrap_or_default();
        Trigger::new(
            format!("messages{of} were lost"),
            Cause::Loss { topic, before: BTreeMap::new() },
        )
    }

    /// The end of a process, for any reason.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn on_end_of_process(reason: impl Into<String>, pid: u32) -> std::io::Result<Trigger> {
        let no_such = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(no_such)?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Trigger::when(reason, move || has_ended(&process)))
    }

    /// Anything else: it is looked at some times a second.
    pub fn when(
        reason: impl Into<String>,
        is_true: impl FnMut() -> bool + Send + 'static,
    ) -> Trigger {
        Trigger::new(reason.into(), Cause::Looks(Box::new(is_true)))
    }

    fn new(reason: String, cause: Cause) -> Trigger {
        Trigger { reason, cause, was_true: false }
    }

    /// What is said of it.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Looks at a message. Whether it fires.
    pub(super) fn see(&mut self, topic: &RecordedTopic, message: &Message<'_>) -> bool {
        let is_true = match &mut self.cause {
            Cause::Message { topic: name, is_true } if *name == topic.name => {
                is_true(topic, message.data)
            }
            Cause::RateBelow(rate) if rate.topic == topic.name => {
                rate.count(Instant::now());
                return false;
            }
            Cause::Loss { topic: wanted, before } if topic.name == RecordedLosses::TOPIC => {
                return loss(message.data, wanted.as_deref(), before);
            }
            _ => return false,
        };
        self.becomes(is_true)
    }

    /// Looks at the time. Whether it fires.
    pub(super) fn look(&mut self) -> bool {
        let is_true = match &mut self.cause {
            Cause::RateBelow(rate) => match rate.is_below(Instant::now()) {
                Some(is_below) => is_below,
                None => return false,
            },
            Cause::Looks(is_true) => is_true(),
            _ => return false,
        };
        self.becomes(is_true)
    }

    fn becomes(&mut self, is_true: bool) -> bool {
        let was_true = std::mem::replace(&mut self.was_true, is_true);
        is_true && !was_true
    }
}

impl fmt::Debug for Trigger {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Trigger").field(&self.reason).finish()
    }
}

/// Whether a topic has a rate, by the time that its newest messages took.
pub(super) struct Rate {
    topic: String,
    window: Duration,
    /// Of so many messages.
    arrivals: VecDeque<Instant>,
    arrivals_max: usize,
    /// Whether it had the rate.
    is_armed: bool,
}

impl Rate {
    pub(super) fn new(topic: String, rate_hz: f64) -> Rate {
        // Half a second more or less, but enough messages that one late one is no fall.
        let arrivals_max = ((rate_hz * RATE_WINDOW_S).ceil() as usize).clamp(4, ARRIVALS_MAX);
        let window = Duration::try_from_secs_f64(arrivals_max as f64 / rate_hz.max(1e-6));
        let window = window.unwrap_or(Duration::MAX);
        Rate { topic, window, arrivals: VecDeque::new(), arrivals_max, is_armed: false }
    }

    pub(super) fn count(&mut self, now: Instant) {
        if self.arrivals.len() == self.arrivals_max {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(now);
        self.is_armed |= self.is_slower(now) == Some(false);
    }

    /// `None` until it had the rate.
    pub(super) fn is_below(&self, now: Instant) -> Option<bool> {
        if self.is_armed { self.is_slower(now) } else { None }
    }

    fn is_slower(&self, now: Instant) -> Option<bool> {
        let first = self.arrivals.front().filter(|_| self.arrivals.len() == self.arrivals_max)?;
        Some(now.saturating_duration_since(*first) > self.window)
    }
}

/// Whether the total of a topic in a message of losses is larger than before.
fn loss(data: &[&[u8]], wanted: Option<&str>, before: &mut BTreeMap<Vec<u8>, u64>) -> bool {
    let data = data.concat();
    let Some((topic, total)) = total_of(&data) else { return false };
    if wanted.is_some_and(|wanted| wanted.as_bytes() != topic) {
        return false;
    }
    let known = before.insert(topic.to_owned(), total).unwrap_or(0);
    total > known
}

/// The topic and the sum of a message of losses.
fn total_of(message: &[u8]) -> Option<(&[u8], u64)> {
    let body = message.get(crate::CDR_HEADER.len()..)?;
    let (length, rest) = body.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let topic = rest.get(..length.checked_sub(1)?)?;
    let counts = body.get((4 + length).next_multiple_of(8)..)?.as_chunks::<8>().0;
    Some((topic, counts.iter().map(|count| u64::from_le_bytes(*count)).sum()))
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// A rate is that of about so long a time.
const RATE_WINDOW_S: f64 = 1.0;
/// Arrivals that are remembered.
const ARRIVALS_MAX: usize = 1_024;
