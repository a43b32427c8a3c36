//! Waits by polling the turn without limit: the cache line moves back and forth without the kernel.
//! This is the lowest latency between two cores, and it uses both of them fully.

use myelin_bench_kit::{Error, clock};

use crate::handover::Turn;
use crate::slots::{Wait, Wake};

/// Happens-before: the release store and acquire load of the turn, nothing else.
pub struct Spin;

impl Wake for Spin {
    const SPINS: bool = true;

    #[inline(always)]
    fn pass(&mut self, turn: &Turn, count: u32) -> Result<(), Error> {
        turn.pass(count);
        Ok(())
    }
}

impl Wait for Spin {
    #[inline(always)]
    fn wait(&mut self, turn: &Turn, count: u32, until_ns: u64) -> Result<bool, Error> {
        while !looks(turn, count, LOOKS_PER_CLOCK_READ) {
            if clock::monotonic_ns() >= until_ns {
                return Ok(turn.has_come(count));
            }
        }
        Ok(true)
    }
}

/// Polls up to `times` times whether message `count` has arrived.
#[inline(always)]
pub fn looks(turn: &Turn, count: u32, times: u32) -> bool {
    for _ in 0..times {
        if turn.has_come(count) {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

const LOOKS_PER_CLOCK_READ: u32 = 1024;
