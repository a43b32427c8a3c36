//! The time in which a program lives: that of its host, or that of a recording or a simulator.
//!
//! The time is published on ROS 2's topic `/clock`, as `rosgraph_msgs/msg/Clock`, so that nodes of
//! ROS 2 with `use_sim_time` follow it too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Callback, Error, Node, Publisher, Topic};

/// A clock that a program reads instead of its host's, so that it also runs in the time of a
/// recording: [`system`](Clock::system), or [`Node::simulated_clock`].
///
/// [`now`](crate::now) and all time limits of the library stay with `CLOCK_MONOTONIC` of the host.
///
/// ```
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// use myelin::Clock;
///
/// let is_simulated = true; // an argument of the program
/// let clock = if is_simulated { node.simulated_clock()? } else { Clock::system() };
///
/// // `myelin play --clock 100`, or a simulator:
/// let time = node.clock_publisher()?;
/// time.publish(1_700_000_000_500_000_000)?;
///
/// assert!(clock.wait_until(1_700_000_000_000_000_000, Duration::from_secs(60)));
/// assert_eq!(clock.now(), 1_700_000_000_500_000_000);
/// # Ok::<(), myelin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Clock(Option<Arc<Simulated>>);

/// Publishes the time on `/clock`. Made by [`Node::clock_publisher`].
#[derive(Debug)]
pub struct ClockPublisher(Publisher<[u8]>);

#[derive(Debug)]
struct Simulated {
    time: Arc<Time>,
    callback: Callback,
}

#[derive(Debug, Default)]
struct Time {
    ns: AtomicU64,
    /// Held while the time changes, so that no waiter misses it.
    change: Mutex<()>,
    changed: Condvar,
}

impl Node {
    /// A clock that follows the time on the topic `/clock`. It reads 0 until the first time has come,
    /// stands still between two times, and is set back when a recording is played from an earlier
    /// place.
    ///
    /// # Errors
    /// As for [`Topic::subscriber`](crate::Topic::subscriber).
    pub fn simulated_clock(&self) -> Result<Clock, Error> {
        let subscriber = topic(self).depth(1).best_effort().subscriber()?;
        let time = Arc::new(Time::default());
        let to = Arc::clone(&time);
        let callback = subscriber.on_sample(move |sample| {
            if let Some(ns) = decode(sample) {
                to.set(ns);
            }
        })?;
        Ok(Clock(Some(Arc::new(Simulated { time, callback }))))
    }

    /// Publishes the time for simulated clocks, as `myelin play --clock` does.
    ///
    /// # Errors
    /// As for [`Topic::publisher`](crate::Topic::publisher).
    pub fn clock_publisher(&self) -> Result<ClockPublisher, Error> {
        // It matches subscribers that ask for a reliable one, too.
        topic(self).reliable_keep_last().publisher().map(ClockPublisher)
    }
}

impl Clock {
    /// The host's clock.
    pub fn system() -> Clock {
        Clock(None)
    }

    /// Whether it follows `/clock`.
    pub fn is_simulated(&self) -> bool {
        self.0.is_some()
    }

    /// The time now, in nanoseconds since 1970. Of a simulated clock it is the last that came.
    pub fn now(&self) -> u64 {
        match &self.0 {
            // ORDER: Relaxed: the number stands for itself.
            Some(simulated) => simulated.time.ns.load(Ordering::Relaxed),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
            }
        }
    }

    /// Waits until the clock reads `at_ns` or more, for at most `limit` of the host's time
    /// (`Duration::MAX`: for ever). False if that is over.
    pub fn wait_until(&self, at_ns: u64, limit: Duration) -> bool {
        let begin = Instant::now();
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let missing_ns = at_ns.saturating_sub(self.now());
            if missing_ns == 0 || left.is_zero() {
                return missing_ns == 0;
            }
            match &self.0 {
                Some(simulated) => simulated.time.wait(at_ns, left),
                // The clock may be set meanwhile.
                None => std::thread::sleep(left.min(Duration::from_nanos(missing_ns)).min(LOOK)),
            }
        }
    }

    /// How many publishers of the time it is matched with now; none for the host's clock.
    pub fn matched(&self) -> usize {
        self.0.as_ref().map_or(0, |simulated| simulated.callback.matched())
    }
}

impl Time {
    fn set(&self, ns: u64) {
        let _change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        // ORDER: Relaxed: as in `now`; waiters see it through the lock.
        self.ns.store(ns, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Waits for a change, unless it is already late enough.
    fn wait(&self, at_ns: u64, limit: Duration) {
        let change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        // ORDER: Relaxed: it changes under the lock.
        if self.ns.load(Ordering::Relaxed) < at_ns {
            // A wait that is too long for the system ends early, and the caller waits again.
            let _ = self.changed.wait_timeout(change, limit.min(LONG));
        }
    }
}

impl ClockPublisher {
    /// Publishes a time, in nanoseconds since 1970.
    ///
    /// # Errors
    /// As for [`Publisher::publish_copy`].
    pub fn publish(&self, ns: u64) -> Result<(), Error> {
        self.0.publish_copy(&encode(ns)).map(|_| ())
    }

    /// How many subscribers it is matched with now.
    pub fn matched(&self) -> usize {
        self.0.matched()
    }
}

fn topic(node: &Node) -> Topic<[u8]> {
    node.topic::<[u8]>(TOPIC).dds_cdr(TYPE).schema("ros2msg", DEFINITION.as_bytes())
}

/// The message, in CDR.
fn encode(ns: u64) -> [u8; MESSAGE_BYTES] {
    let mut message = [0; MESSAGE_BYTES];
    message[1] = 1; // little-endian
    // ROS 2's seconds end in 2038; a later time is the last one.
    let seconds = i32::try_from(ns / SECOND_NS).unwrap_or(i32::MAX);
    message[4..8].copy_from_slice(&seconds.to_le_bytes());
    message[8..].copy_from_slice(&((ns % SECOND_NS) as u32).to_le_bytes());
    message
}

/// `None` for what is no time.
fn decode(message: &[u8]) -> Option<u64> {
    let message: &[u8; MESSAGE_BYTES] = message.try_into().ok()?;
    let numbers = [4, 8].map(|at| message[at..].first_chunk().copied().unwrap_or_default());
    let [seconds, nanoseconds] = match message[..2] {
        [0, 0] => numbers.map(u32::from_be_bytes),
        [0, 1] => numbers.map(u32::from_le_bytes),
        _ => return None,
    };
    let is_time = i32::try_from(seconds).is_ok() && u64::from(nanoseconds) < SECOND_NS;
    is_time.then(|| u64::from(seconds) * SECOND_NS + u64::from(nanoseconds))
}

const TOPIC: &str = "rt/clock";
const TYPE: &str = "rosgraph_msgs::msg::dds_::Clock_";
const DEFINITION: &str = "builtin_interfaces/Time clock\n\
    ================================================================================\n\
    MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n";
/// The header, and two numbers.
const MESSAGE_BYTES: usize = 12;
const SECOND_NS: u64 = 1_000_000_000;
const LOOK: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_message_of_ros_2() {
        let ns = 1_700_000_001_000_000_002;
        assert_eq!(encode(ns), [0, 1, 0, 0, 0x01, 0xf1, 0x53, 0x65, 2, 0, 0, 0]);
        assert_eq!(decode(&encode(ns)), Some(ns));
        assert_eq!(decode(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5]), Some(SECOND_NS + 5));
        assert_eq!(decode(&encode(u64::MAX)).map(|ns| ns / SECOND_NS), Some(i32::MAX as u64));
    }

    #[test]
    fn what_is_no_time_is_ignored() {
        for message in [
            &[][..],
            &[0, 1, 0, 0],
            &[9, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0],
            &[0, 1, 0, 0, 1, 0, 0, 128, 2, 0, 0, 0],
            &[0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 255],
        ] {
            assert_eq!(decode(message), None, "{message:?}");
        }
    }

    #[test]
    fn a_clock_follows_and_its_waiters_wake() {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::builder("test").runtime_dir(folder.path()).open().unwrap();
        let clock = node.simulated_clock().unwrap();
        let publisher = node.clock_publisher().unwrap();
        assert_eq!((clock.now(), clock.is_simulated(), clock.matched()), (0, true, 1));
        assert!(!clock.wait_until(1, Duration::ZERO));
        let waiter = clock.clone();
        let waits = std::thread::spawn(move || waiter.wait_until(30, Duration::from_secs(60)));
        for ns in [10, 20, 30] {
            publisher.publish(ns).unwrap();
        }
        assert!(waits.join().unwrap());
        publisher.publish(5).unwrap();
        assert!(clock.wait_until(5, Duration::from_secs(60)));
        assert_eq!(clock.now(), 5, "a recording that is played again sets it back");
    }

    #[test]
    fn the_clock_of_the_host_needs_no_publisher() {
        let clock = Clock::system();
        let begin = clock.now();
        assert!(clock.wait_until(begin + 1_000_000, Duration::MAX) && clock.now() > begin);
        assert!(!clock.wait_until(u64::MAX, Duration::from_millis(1)));
    }
}
