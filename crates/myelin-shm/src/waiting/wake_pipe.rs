//! The pipe by which publishers make a descriptor of another process readable.
//!
//! Flags of a descriptor (`O_NONBLOCK`) belong to the open file and not to its holder, so no two
//! processes use the same open file: each opens the pipe again for itself, to read and to write.
//! Then no call on it waits, whatever the other side does; it never becomes readable because the
//! other side has ended; and a write to a pipe without another reader raises no SIGPIPE, because
//! the writer itself could read. A hostile publisher can fill its own pipe, and no other.
//!
//! A process without `/proc` cannot open a pipe again. It uses the open file that it was passed, or
//! passes its own. Then a hostile process among those that share the file can make the others wait,
//! and each write suppresses SIGPIPE.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::EventfdFlags;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::error::Error;
use crate::os::descriptor::duplicate;

/// The writer's side.
#[derive(Debug)]
pub(crate) struct WakePipeWriter {
    fd: OwnedFd,
    /// Whether other processes write to the same open file, so that it cannot be read.
    is_shared: bool,
}

impl WakePipeWriter {
    /// A descriptor that a subscriber has passed.
    ///
    /// # Errors
    /// It is not a pipe.
    pub(crate) fn check(fd: OwnedFd) -> Result<WakePipeWriter, Error> {
        // This asks the kernel about the pipe, and no file system.
        if !cfg!(miri) && rustix::pipe::fcntl_getpipe_size(&fd).is_err() {
            return Err(Error::PeerCorrupt { what: "a subscriber's descriptor" });
        }
        let failed = |error| Error::system("opening a subscriber's pipe", error);
        match reopen(&fd).map_err(failed)? {
            Some(own) => Ok(WakePipeWriter { fd: own, is_shared: false }),
            None => {
                rustix::fs::fcntl_setfl(&fd, OFlags::NONBLOCK).map_err(failed)?;
                Ok(WakePipeWriter { fd, is_shared: true })
            }
        }
    }

    /// Makes the subscriber's descriptor readable; never waits. False if it cannot.
    pub(crate) fn wake(&self) -> bool {
        let write = || rustix::io::write(&self.fd, &[1]);
        let written = if self.is_shared { without_sigpipe(write) } else { write() };
        // A full pipe is readable already.
        matches!(written, Ok(_) | Err(Errno::AGAIN))
    }
}

/// A pipe that other processes and this one write to.
#[derive(Debug)]
pub(crate) struct WakePipe {
    /// Also kept so that the pipe does not end with the last of the others.
    end: WakePipeWriter,
    /// The descriptor for reading, if it is a different open file.
    read: Option<OwnedFd>,
}

impl WakePipe {
    /// A new pipe, and the descriptor to pass to others.
    pub(crate) fn new() -> Result<(WakePipe, OwnedFd), Error> {
        let failed = |error| Error::system("making a pipe for publishers", error);
        if cfg!(miri) {
            let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
            let theirs = event.map_err(failed)?;
            let fd = rustix::io::fcntl_dupfd_cloexec(&theirs, 0).map_err(failed)?;
            return Ok((
                WakePipe { end: WakePipeWriter { fd, is_shared: false }, read: None },
                theirs,
            ));
        }
        let pipe = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (ours, theirs) = pipe.map_err(failed)?;
        // Only a process that gets the descriptor can open it again; in a group's domain it may be
        // another user's.
        rustix::fs::fchmod(&theirs, Mode::from_raw_mode(0o666)).map_err(failed)?;
        let (fd, read) = match reopen(&ours).map_err(failed)? {
            Some(both) => (both, None),
            None => (duplicate(theirs.as_fd(), "making a pipe for publishers")?, Some(ours)),
        };
        Ok((WakePipe { end: WakePipeWriter { fd, is_shared: read.is_some() }, read }, theirs))
    }

    /// Readable after a write.
    pub(crate) fn fd(&self) -> &OwnedFd {
        self.read.as_ref().unwrap_or(&self.end.fd)
    }

    /// The end that this process writes to.
    pub(crate) fn end(&self) -> &WakePipeWriter {
        &self.end
    }

    /// Reads everything. A process that never stops writing cannot keep the caller here.
    pub(crate) fn empty(&self) {
        let mut bytes = [0; BYTES_A_READ];
        let mut reads = 0..READS_A_TURN;
        while reads.next().is_some() && rustix::io::read(self.fd(), &mut bytes) == Ok(BYTES_A_READ)
        {
        }
    }
}

/// Opens a pipe again, to read and to write; `None` without `/proc`.
fn reopen(pipe: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    if cfg!(miri) {
        return rustix::io::fcntl_dupfd_cloexec(pipe, 0).map(Some);
    }
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(&path, flags, Mode::empty()) {
        // A peer cannot cause this for an open descriptor.
        Err(Errno::NOENT) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Calls `write` and hides from the program the signal that a pipe without a reader raises.
fn without_sigpipe<T>(write: impl FnOnce() -> T) -> T {
    // SAFETY: plain data that the calls fill in before it is read. The signal belongs to the
    // calling thread: if it was not pending before the write and is pending afterwards, the write
    // has raised it.
    unsafe {
        let [mut pipe, mut waiting, mut before]: [libc::sigset_t; 3] = std::mem::zeroed();
        libc::sigemptyset(&mut pipe);
        libc::sigaddset(&mut pipe, libc::SIGPIPE);
        libc::sigpending(&mut waiting);
        libc::pthread_sigmask(libc::SIG_BLOCK, &pipe, &mut before);
        let result = write();
        if libc::sigismember(&waiting, libc::SIGPIPE) == 0 {
            let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&pipe, std::ptr::null_mut(), &now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

/// A pipe holds 64 KiB.
const BYTES_A_READ: usize = 512;
const READS_A_TURN: u32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// The case without `/proc`. The program's handling of the signal must not matter, so this
    /// program counts it.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn a_shared_end_wakes_and_raises_no_signal_when_nobody_reads() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static RAISED: AtomicU32 = AtomicU32::new(0);
        extern "C" fn count(_: i32) {
            RAISED.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the handler is async-signal-safe.
        unsafe { libc::signal(libc::SIGPIPE, count as *const () as libc::sighandler_t) };
        let (read, fd) = rustix::pipe::pipe_with(PipeFlags::NONBLOCK).unwrap();
        let end = WakePipeWriter { fd, is_shared: true };
        let pipe = WakePipe { end, read: Some(read) };
        for _ in 0..100_000 {
            assert!(pipe.end().wake(), "a full pipe is readable");
        }
        pipe.empty();
        let WakePipe { end, read } = pipe;
        drop(read);
        assert!(!end.wake() && !end.wake());
        assert_eq!(RAISED.load(Ordering::Relaxed), 0);
        assert_eq!(rustix::io::write(&end.fd, &[1]), Err(Errno::PIPE));
        assert_eq!(RAISED.load(Ordering::Relaxed), 1, "it is the program's again");
        // SAFETY: the same setting as Rust's runtime makes.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    }

    #[test]
    fn a_publisher_takes_no_other_kind_of_descriptor() {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
        let (stream, _) = socketpair(family, SocketType::STREAM, flags, None).unwrap();
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let file = std::fs::File::open("/dev/null").unwrap().into();
        for other in [stream, event, file] {
            assert!(matches!(WakePipeWriter::check(other), Err(Error::PeerCorrupt { .. })));
        }
    }
}
