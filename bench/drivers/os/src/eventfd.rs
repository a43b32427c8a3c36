//! Waits in `read(2)` on an eventfd that counts the passed messages.
//!
//! Happens-before: the release that passes the turn pairs with the acquire that sees it. The turn
//! is passed before the eventfd is written, and the write happens before the read that it wakes. So
//! a reader whose read returns always finds its message.

use std::os::fd::OwnedFd;

use myelin_bench_kit::{Error, clock};
use rustix::event::EventfdFlags;
use rustix::io::Errno;

use crate::handover::Turn;
use crate::limit::TimeLimit;
use crate::slots::{Wait, Wake};

/// An eventfd from which each read takes one.
pub fn create() -> Result<OwnedFd, Error> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
    Ok(rustix::event::eventfd(0, flags).map_err(std::io::Error::from)?)
}

/// Adds one to the eventfd for each message.
pub struct Signal(pub OwnedFd);

impl Wake for Signal {
    fn pass(&mut self, turn: &Turn, count: u32) -> Result<(), Error> {
        turn.pass(count);
        loop {
            match rustix::io::write(&self.0, &1u64.to_ne_bytes()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::new(format!("eventfd: {error}"))),
            }
        }
    }
}

/// Takes one from the eventfd for each message.
pub struct Listen {
    /// Written by the other side.
    pub eventfd: OwnedFd,
    /// Limits the time of the read.
    pub limit: TimeLimit,
}

impl Wait for Listen {
    fn wait(&mut self, turn: &Turn, count: u32, until_ns: u64) -> Result<bool, Error> {
        loop {
            self.limit.arm(&self.eventfd, until_ns)?;
            match rustix::io::read(&self.eventfd, &mut [0; 8]) {
                Ok(_) if turn.has_come(count) => return Ok(true),
                Ok(_) => {}
                Err(Errno::INTR) if clock::monotonic_ns() >= until_ns => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::new(format!("eventfd: {error}"))),
            }
        }
    }
}
