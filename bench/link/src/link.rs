//! A link between two interfaces: a thread carries frames from each to the other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::time::{ClockId, clock_gettime};

use crate::tap::Tap;
use crate::{Conditions, Counts, Direction, Namespace};

/// One end of a link: an interface with this name that is made in the namespace.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The namespace.
    pub namespace: &'a Namespace,
    /// The name of the interface.
    pub interface: &'a str,
}

/// A link between two namespaces. Dropping it removes both interfaces.
///
/// At first it does nothing to frames. The thread that carries them has a real-time priority above
/// those that a program usually takes (SCHED_FIFO 90), where it is permitted: a cable does not wait
/// for a CPU. Any thread may change the link.
pub struct EmulatedLink {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    taps: [Tap; 2],
    state: Mutex<State>,
    /// Becomes readable when the thread is to end.
    end: OwnedFd,
}

struct State {
    /// From the first end, and from the second.
    directions: [Direction; 2],
    is_up: bool,
    /// CPU time of the thread: until now, and until the link was shaped.
    cpu_ns: u64,
    cpu_ns_before: u64,
}

impl EmulatedLink {
    /// Makes an interface at each end. They are down and have no address.
    ///
    /// # Errors
    /// The kernel's: no permission, no `/dev/net/tun`, a name that is taken.
    pub fn between(ends: [End<'_>; 2]) -> io::Result<Self> {
        let tap = |end: End<'_>| Tap::new(end.namespace, end.interface);
        let directions = [0, 1].map(|seed| Direction::new(Conditions::default(), seed));
        let shared = Arc::new(Shared {
            taps: [tap(ends[0])?, tap(ends[1])?],
            state: Mutex::new(State { directions, is_up: true, cpu_ns: 0, cpu_ns_before: 0 }),
            end: rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?,
        });
        let carried = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("link".into());
        let thread = Some(thread.spawn(move || carried.carry())?);
        Ok(EmulatedLink { shared, thread })
    }

    /// Sets the conditions of both directions, and counts from zero. Frames on their way are gone.
    ///
    /// # Errors
    /// A condition that makes no sense; see [`Conditions::check`].
    pub fn shape(&self, conditions: Conditions, seed: u64) -> Result<(), (&'static str, String)> {
        conditions.check()?;
        let seeds = [seed.wrapping_mul(2), seed.wrapping_mul(2).wrapping_add(1)];
        let mut state = self.shared.state();
        state.directions = seeds.map(|seed| Direction::new(conditions, seed));
        state.cpu_ns_before = state.cpu_ns;
        Ok(())
    }

    /// Cuts the link, or mends it. Frames on their way are lost; both hosts see that no cable is
    /// plugged in.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_up(&self, up: bool) -> io::Result<()> {
        let mut state = self.shared.state();
        if !up {
            state.directions.iter_mut().for_each(Direction::cut);
        }
        state.is_up = up;
        self.shared.taps.iter().try_for_each(|tap| tap.set_carrier(up))
    }

    /// What became of the frames from the first end, and of those from the second, since the last
    /// [`shape`](Self::shape).
    pub fn counts(&self) -> [Counts; 2] {
        self.shared.state().directions.each_ref().map(Direction::counts)
    }

    /// CPU time that carrying has taken since the last [`shape`](Self::shape), in ns.
    pub fn cpu_ns(&self) -> u64 {
        let state = self.shared.state();
        state.cpu_ns - state.cpu_ns_before
    }
}

impl Drop for EmulatedLink {
    fn drop(&mut self) {
        let ended = rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take().filter(|_| ended.is_ok()) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Carries frames until the link is dropped.
    fn carry(&self) {
        have_priority();
        let mut buffer = vec![0; FRAME_BYTES_MAX];
        loop {
            let next_ns = {
                let mut state = self.state();
                if !self.carry_once(&mut state, &mut buffer) {
                    return; // an interface has gone
                }
                state.cpu_ns = now_ns(ClockId::ThreadCPUTime);
                state.directions.iter().filter_map(Direction::next_ns).min()
            };
            let left_ns = next_ns.map(|next_ns| next_ns.saturating_sub(monotonic_ns()));
            let limit = left_ns.map(|ns| Timespec {
                tv_sec: (ns / NS_PER_S) as i64,
                tv_nsec: (ns % NS_PER_S) as _,
            });
            let ready = [self.taps[0].as_fd(), self.taps[1].as_fd(), self.end.as_fd()];
            let mut ready = ready.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            // A signal may interrupt it.
            let _ = rustix::event::poll(&mut ready, limit.as_ref());
            if !ready[2].revents().is_empty() {
                return;
            }
        }
    }

    /// Takes frames from both ends, a limited number at a time, and delivers those that are due.
    /// Returns whether both interfaces are there.
    fn carry_once(&self, state: &mut State, buffer: &mut [u8]) -> bool {
        for (from, direction) in state.directions.iter_mut().enumerate() {
            for _ in 0..FRAMES_AT_A_TIME {
                match self.taps[from].receive(buffer) {
                    Ok(None) => break,
                    Ok(Some(bytes)) if state.is_up => {
                        direction.send(monotonic_ns(), buffer[..bytes].to_vec());
                    }
                    Ok(Some(_)) => direction.send_into_cut(),
                    Err(_) => return false,
                }
            }
            while let Some(frame) = direction.due(monotonic_ns()) {
                if self.taps[1 - from].send(&frame).is_err() {
                    direction.refused();
                }
            }
        }
        true
    }

    /// No code leaves it half changed when it panics, so a poisoned lock is usable.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where it is not permitted, the thread is one as any other, with exact timers.
fn have_priority() {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: both calls concern the calling thread; the parameters are valid for the call.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters);
    }
}

fn monotonic_ns() -> u64 {
    now_ns(ClockId::Monotonic)
}

fn now_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

const NS_PER_S: u64 = 1_000_000_000;
/// The largest packet, with the header of Ethernet.
const FRAME_BYTES_MAX: usize = 65_535 + 14;
const FRAMES_AT_A_TIME: usize = 32;
const PRIORITY: libc::c_int = 90;
