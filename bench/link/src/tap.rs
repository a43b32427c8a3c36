//! An interface whose frames this process sends and receives.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::Namespace;

/// A TAP interface. It vanishes with this value.
pub struct Tap(File);

impl Tap {
    /// Makes an interface of this name, which is down.
    pub fn new(namespace: &Namespace, name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            let text = format!("{name:?} is not the name of an interface");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        namespace.enter(|| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
            let file = options.open(DEVICE).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    io::Error::new(error.kind(), format!("no {DEVICE}: modprobe tun"))
                }
                kind => io::Error::new(kind, format!("{DEVICE}: {error}")),
            })?;
            // SAFETY: all zeros is a request without a name or flags.
            let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
            for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
                *to = from as libc::c_char;
            }
            request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
            // SAFETY: the descriptor is open, the request is valid for the call.
            check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
            Ok(Tap(file))
        })
    }

    /// Sets whether a cable is plugged in, as the host sees it.
    pub fn set_carrier(&self, on: bool) -> io::Result<()> {
        let on = libc::c_int::from(on);
        // SAFETY: the descriptor is open, the number is valid for the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), TUNSETCARRIER, &raw const on) })
    }

    /// The next frame that the host sends; `None` if there is none now.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.0).read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the host a frame. Fails if the interface is down.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.0).write(frame).map(drop)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const DEVICE: &str = "/dev/net/tun";
/// `_IOW('T', 226, int)`, of linux/if_tun.h.
const TUNSETCARRIER: libc::Ioctl = 0x4004_54e2;
