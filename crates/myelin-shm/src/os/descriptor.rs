//! Descriptors of a node: closed in a child of `fork`, so that the child does not speak for its
//! parent or keep its links alive; and the limit on their number.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::os::fork;

/// A descriptor that a child of `fork` does not have.
#[derive(Debug)]
pub(crate) struct NodeFd {
    fd: ManuallyDrop<OwnedFd>,
    mark: u32,
}

impl NodeFd {
    pub(crate) fn new(fd: OwnedFd) -> NodeFd {
        let mark = fork::mark();
        // If the table is full the child merely keeps the descriptor until it ends or executes a
        // program.
        fork::close_in_child(fd.as_raw_fd());
        NodeFd { fd: ManuallyDrop::new(fd), mark }
    }
}

impl AsFd for NodeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for NodeFd {
    fn drop(&mut self) {
        if fork::is_forked(self.mark) {
            return; // closed already; the number may be another's by now
        }
        fork::keep_in_child(self.fd.as_raw_fd());
        // SAFETY: it is dropped here only, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.fd) };
    }
}

/// Another descriptor of the same open file, to be passed on or kept. `doing` is for the error.
pub(crate) fn duplicate(fd: BorrowedFd<'_>, doing: &'static str) -> Result<OwnedFd, Error> {
    fd.try_clone_to_owned().map_err(|error| Error::system(doing, error))
}

/// How many files this process may have open.
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
