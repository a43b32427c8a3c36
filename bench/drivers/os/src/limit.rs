//! Limits the time of a blocking read or write without a system call per message.
//!
//! A time limit for one call would need a second call each time (`poll` or `setsockopt` before it).
//! Instead a blocking call returns after a *slice* of time by itself; the caller reads the clock
//! and calls again. The slice is set again only if the remaining time falls into another power of
//! two, which never happens in a run without losses.
//!
//! Sockets have their own timer (`SO_RCVTIMEO`). Pipes and eventfds have none. For them a periodic
//! timer sends this thread a signal with an empty handler, and the call returns `EINTR`. That costs
//! two signals per second, of some microseconds each; a `poll` would add to each message. A signal
//! that comes just before the call is harmless, because another one follows.

use std::os::fd::AsFd;
use std::time::Duration;

use myelin_bench_kit::{Error, clock};
use rustix::net::sockopt::{self, Timeout};

/// The time limit of blocking calls; see the module.
pub struct TimeLimit {
    slice_ns: u64,
    timer: Option<Timer>,
}

impl TimeLimit {
    /// For reads from sockets.
    pub fn of_socket() -> Self {
        TimeLimit { slice_ns: 0, timer: None }
    }

    /// For every blocking call of this thread, from now on.
    pub fn of_thread() -> Result<Self, Error> {
        let timer = Timer::new()?;
        timer.set(SLICE_NS_MAX)?;
        Ok(TimeLimit { slice_ns: SLICE_NS_MAX, timer: Some(timer) })
    }

    /// Ensures that a read from `fd` that begins now ends before the clock reads `until_ns`, or at
    /// most [`SLICE_NS_MIN`] later.
    #[inline]
    pub fn arm(&mut self, fd: impl AsFd, until_ns: u64) -> Result<(), Error> {
        let slice_ns = slice_ns(until_ns.saturating_sub(clock::monotonic_ns()));
        if slice_ns == self.slice_ns {
            return Ok(());
        }
        self.slice_ns = slice_ns;
        match &self.timer {
            Some(timer) => timer.set(slice_ns),
            None => set_timeout(fd, Timeout::Recv, slice_ns),
        }
    }
}

/// Makes every write to socket `fd` return after a slice of time.
pub fn limit_writes(fd: impl AsFd) -> Result<(), Error> {
    set_timeout(fd, Timeout::Send, SLICE_NS_MAX)
}

/// Makes every read from socket `fd` return after a slice of time.
pub fn limit_reads(fd: impl AsFd, slice_ns: u64) -> Result<(), Error> {
    set_timeout(fd, Timeout::Recv, slice_ns)
}

fn set_timeout(fd: impl AsFd, id: Timeout, slice_ns: u64) -> Result<(), Error> {
    let slice = Duration::from_nanos(slice_ns);
    Ok(sockopt::set_socket_timeout(fd, id, Some(slice)).map_err(std::io::Error::from)?)
}

/// How long the other side may block a writer; the time starts with the first check.
pub struct Patience {
    limit_ns: u64,
    until_ns: Option<u64>,
}

impl Patience {
    /// Patience for `limit_ns`.
    pub fn new(limit_ns: u64) -> Self {
        Patience { limit_ns, until_ns: None }
    }

    /// Whether the time is over. Called only after a slice has passed without success.
    #[cold]
    pub fn has_run_out(&mut self) -> bool {
        let now_ns = clock::monotonic_ns();
        now_ns >= *self.until_ns.get_or_insert(now_ns.saturating_add(self.limit_ns))
    }
}

/// The largest power of two that fits, within limits.
fn slice_ns(remaining_ns: u64) -> u64 {
    let remaining_ns = remaining_ns.clamp(SLICE_NS_MIN, SLICE_NS_MAX);
    1 << remaining_ns.ilog2()
}

/// A timer that interrupts the thread that made it.
struct Timer(libc::timer_t);

impl Timer {
    fn new() -> Result<Self, Error> {
        install_handler()?;
        // SAFETY: all-zero bytes are a valid sigevent and a valid timer_t.
        let (mut event, mut timer): (libc::sigevent, libc::timer_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        // SAFETY: both point to valid values of their types.
        check(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) })?;
        Ok(Timer(timer))
    }

    fn set(&self, period_ns: u64) -> Result<(), Error> {
        let period = libc::timespec {
            tv_sec: (period_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (period_ns % 1_000_000_000) as libc::c_long,
        };
        let times = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: the timer exists until drop, `times` is valid, and the old times may be null.
        check(unsafe { libc::timer_settime(self.0, 0, &times, std::ptr::null_mut()) })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer exists and is not used after this.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Without SA_RESTART, so that the signal interrupts system calls.
fn install_handler() -> Result<(), Error> {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    // SAFETY: the handler does nothing and is thus safe at any time; the old action may be null.
    check(unsafe { libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()) })
}

fn check(status: libc::c_int) -> Result<(), Error> {
    if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

/// About half a second; each slice wakes a core that sleeps in a slow schedule.
pub const SLICE_NS_MAX: u64 = 1 << 29;
/// About 1 ms.
const SLICE_NS_MIN: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_slice_is_at_most_the_remaining_time() {
        assert_eq!(slice_ns(0), SLICE_NS_MIN);
        assert_eq!(slice_ns(u64::MAX), SLICE_NS_MAX);
        for remaining_ns in [1 << 20, 3_000_000, 10_000_000, 1 << 29, 1_000_000_000] {
            assert!(slice_ns(remaining_ns) <= remaining_ns);
            assert!(slice_ns(remaining_ns) * 2 > remaining_ns.min(SLICE_NS_MAX));
        }
    }

    #[test]
    fn a_blocking_read_of_a_pipe_ends() {
        let (reading, _writing) = rustix::pipe::pipe().unwrap();
        let mut limit = TimeLimit::of_thread().unwrap();
        limit.arm(&reading, clock::monotonic_ns() + 2_000_000).unwrap();
        assert_eq!(rustix::io::read(&reading, &mut [0; 8]), Err(rustix::io::Errno::INTR));
    }
}
