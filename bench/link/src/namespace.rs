//! A network namespace of this machine.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, UnshareFlags};

/// A network namespace. It lasts at least as long as this value.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// A new namespace without a name and without a process.
    ///
    /// # Errors
    /// The kernel's; without CAP_SYS_ADMIN `PermissionDenied`.
    pub fn new() -> io::Result<Self> {
        in_thread(|| {
            // SAFETY: it leaves the network alone, and shares all else with the other threads.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
            File::open("/proc/thread-self/ns/net").map(Namespace)
        })
    }

    /// The network of a process.
    ///
    /// # Errors
    /// The kernel's, if there is no such process.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/ns/net")).map(Namespace)
    }

    /// Calls a function in a thread that is in the namespace.
    ///
    /// # Errors
    /// The kernel's, and those of the function.
    pub fn enter<T: Send>(&self, call: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_thread(|| {
            let network = Some(LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(self.as_fd(), network)?;
            call()
        })
    }

    /// Makes a command run in the namespace.
    ///
    /// The namespace must last until the command has started.
    pub fn host<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let space = self.0.as_raw_fd();
        // SAFETY: an async-signal-safe system call between fork and exec.
        unsafe {
            command.pre_exec(move || match libc::setns(space, libc::CLONE_NEWNET) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            })
        }
    }

    /// Runs a program in the namespace. Spaces separate its arguments.
    ///
    /// # Errors
    /// A text that contains the command: the program is missing, or its first line of complaint.
    pub fn run(&self, words: &str) -> Result<(), String> {
        let (program, arguments) = words.split_once(' ').unwrap_or((words, ""));
        let mut command = Command::new(program);
        let output = self.host(command.args(arguments.split(' '))).output();
        let output = output.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("{program} is not installed: apt-get install iproute2")
            }
            _ => format!("{program}: {error}"),
        })?;
        if output.status.success() {
            return Ok(());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = complaint.lines().next().unwrap_or("no reason given");
        Err(format!("{words}: {complaint}"))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A thread can change its namespace without the others.
fn in_thread<T: Send>(call: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let joined = scope.spawn(call).join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
