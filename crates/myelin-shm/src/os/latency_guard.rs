//! A request to the kernel that no CPU sleeps so deeply that waking it takes time.
//!
//! The kernel keeps the smallest of all requests for as long as their descriptors are open
//! (Documentation/power/pm_qos_interface.rst), so the request ends when the process ends, for any
//! reason. It holds for all CPUs.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use crate::error::Error;
use crate::os::descriptor::NodeFd;

/// Holds the request. It is not inherited: a child of `fork` closes its copy, and so does a child
/// that executes another program (`O_CLOEXEC`).
#[derive(Debug)]
pub(crate) struct LatencyGuard {
    _fd: NodeFd,
}

impl LatencyGuard {
    /// Requests a wake-up latency of 0 µs.
    pub(crate) fn hold() -> Result<LatencyGuard, Error> {
        let request = || -> io::Result<OwnedFd> {
            let mut file = OpenOptions::new().write(true).open(LATENCY_DEVICE)?;
            file.write_all(&LATENCY_US.to_ne_bytes())?;
            Ok(file.into())
        };
        match request() {
            Ok(fd) => Ok(LatencyGuard { _fd: NodeFd::new(fd) }),
            Err(source) if source.raw_os_error() == Some(libc::EMFILE) => Err(Error::TooManyFiles),
            Err(source) => Err(Error::LatencyGuard { remedy: remedy(&source), source }),
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "give your group the right to write it, by a udev rule (KERNEL==\"cpu_dma_latency\", \
             GROUP=\"realtime\", MODE=\"0660\"), run as root, or open the node without the guard"
        }
        io::ErrorKind::NotFound => {
            "a container needs the device passed in (--device /dev/cpu_dma_latency); a kernel \
             without CONFIG_CPU_IDLE has none: open the node without the guard"
        }
        _ => "open the node without the guard",
    }
}

/// The device of the kernel's request list.
pub const LATENCY_DEVICE: &str = "/dev/cpu_dma_latency";
/// The greatest exit latency allowed, a signed 32-bit number in the machine's byte order.
const LATENCY_US: i32 = 0;
