//! Waits in the kernel on the turn itself: always ([`Futex`]), or after a short spin
//! ([`SpinFutex`]).
//!
//! Happens-before: the release that passes the turn pairs with the acquire that sees it; the
//! kernel only ends the sleep. The memory is shared between processes, so the futex is too.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;

use myelin_bench_kit::{Error, clock};
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};

use crate::handover::Turn;
use crate::slots::{Wait, Wake};
use crate::spin;

/// Makes one system call for each message on either side, whether or not it is needed.
pub struct Futex;

impl Wake for Futex {
    fn pass(&mut self, turn: &Turn, count: u32) -> Result<(), Error> {
        turn.pass(count);
        wake(turn.futex())
    }
}

impl Wait for Futex {
    fn wait(&mut self, turn: &Turn, count: u32, until_ns: u64) -> Result<bool, Error> {
        loop {
            let in_time = sleep(turn.futex(), turn.word_before(count), until_ns)?;
            if turn.has_come(count) {
                return Ok(true);
            }
            if !in_time {
                return Ok(false);
            }
        }
    }
}

/// Spins for [`SPIN_NS`], then sleeps; wakes only a sleeping reader.
pub struct SpinFutex;

impl Wake for SpinFutex {
    #[inline(always)]
    fn pass(&mut self, turn: &Turn, count: u32) -> Result<(), Error> {
        if turn.pass_and_look(count) {
            return wake(turn.futex());
        }
        Ok(())
    }
}

impl Wait for SpinFutex {
    #[inline(always)]
    fn wait(&mut self, turn: &Turn, count: u32, until_ns: u64) -> Result<bool, Error> {
        let spin_until_ns = until_ns.min(clock::monotonic_ns() + SPIN_NS);
        while !spin::looks(turn, count, LOOKS_PER_CLOCK_READ) {
            if clock::monotonic_ns() >= spin_until_ns {
                return wait_asleep(turn, count, until_ns);
            }
        }
        Ok(true)
    }
}

#[cold]
fn wait_asleep(turn: &Turn, count: u32, until_ns: u64) -> Result<bool, Error> {
    while let Some(word) = turn.fall_asleep(count) {
        if !sleep(turn.futex(), word, until_ns)? {
            return Ok(turn.has_come(count));
        }
    }
    Ok(true)
}

/// Sleeps while the futex contains `word`; false once `CLOCK_MONOTONIC` reads `until_ns`.
fn sleep(futex: &AtomicU32, word: u32, until_ns: u64) -> Result<bool, Error> {
    let until = Timespec {
        tv_sec: (until_ns / 1_000_000_000) as i64,
        tv_nsec: (until_ns % 1_000_000_000) as _,
    };
    match futex::wait_bitset(futex, Flags::empty(), word, Some(&until), NonZeroU32::MAX) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(true),
        Err(Errno::TIMEDOUT) => Ok(false),
        Err(error) => Err(Error::new(format!("futex: {error}"))),
    }
}

fn wake(futex: &AtomicU32) -> Result<(), Error> {
    match futex::wake(futex, Flags::empty(), 1) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::new(format!("futex: {error}"))),
    }
}

/// How long [`SpinFutex`] spins: about the time to sleep and be woken on cores that halt.
const SPIN_NS: u64 = 50_000;
const LOOKS_PER_CLOCK_READ: u32 = 128;
