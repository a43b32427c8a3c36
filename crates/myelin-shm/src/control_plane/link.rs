//! A link to another node: a `SOCK_SEQPACKET` socket that never blocks, with a bounded queue of
//! messages for which the other side has no room yet.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::control_plane::message::{ControlMessage, MESSAGE_BYTES_MAX};
use crate::error::Error;
use crate::limits::{LINK_QUEUE_MAX, MESSAGE_SEGMENTS_MAX};
use crate::os::descriptor::NodeFd;

/// Descriptors of a message: shared by its copies for several peers.
pub(crate) type Descriptors = Vec<Arc<OwnedFd>>;

/// One end of a link.
#[derive(Debug)]
pub(crate) struct Link {
    fd: NodeFd,
    queue: VecDeque<(Vec<u8>, Descriptors)>,
}

/// The result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The kernel has the message, and all earlier ones.
    Done,
    /// The message waits until the other side reads; request a wake-up when the socket is writable.
    Queued,
    /// The message waits until the kernel can pass more descriptors; try again after a while.
    Later,
    /// The other side has gone. Its messages can still be read.
    Gone,
    /// The other side does not read: the queue is full.
    Full,
}

/// The result of receiving.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message with its descriptors; without any if this process could open no more files.
    Message(ControlMessage, Vec<OwnedFd>),
    /// Nothing more for now.
    Nothing,
    /// The other side has gone and all its messages have been read.
    End,
    /// Not a message of this protocol, or of another version of it.
    Nonsense(Error),
}

/// The process at the other end, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// Its process when it connected or listened; 0 if that process is not visible here.
    pub(crate) pid: u32,
    /// Its effective user at that time.
    pub(crate) uid: u32,
}

impl Link {
    pub(crate) fn new(fd: OwnedFd) -> Link {
        Link { fd: NodeFd::new(fd), queue: VecDeque::new() }
    }

    /// Sends a message, or queues it behind waiting ones.
    pub(crate) fn send(&mut self, message: &ControlMessage, descriptors: Descriptors) -> Sent {
        debug_assert_eq!(message.descriptors(), descriptors.len());
        if self.queue.len() == LINK_QUEUE_MAX {
            return Sent::Full;
        }
        self.queue.push_back((message.encode(), descriptors));
        self.flush()
    }

    /// Sends waiting messages, as far as there is room.
    pub(crate) fn flush(&mut self) -> Sent {
        while let Some((bytes, descriptors)) = self.queue.front() {
            match send(self.fd.as_fd(), bytes, descriptors) {
                Ok(()) => drop(self.queue.pop_front()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Sent::Queued,
                Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => return Sent::Later,
                Err(_) => {
                    self.queue.clear();
                    return Sent::Gone;
                }
            }
        }
        Sent::Done
    }

    /// Whether messages wait to be sent.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The next message.
    pub(crate) fn receive(&mut self) -> Received {
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_SEGMENTS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = match net::recvmsg(&self.fd, &mut into, &mut control, flags) {
            Ok(received) => received,
            // A reset is reported once, before the messages that are still there.
            Err(Errno::INTR | Errno::CONNRESET) => return self.receive(),
            Err(Errno::AGAIN) => return Received::Nothing,
            Err(_) => return Received::End,
        };
        let descriptors: Vec<OwnedFd> = control
            .drain()
            .filter_map(|part| match part {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        if received.bytes == 0 {
            return Received::End;
        }
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Received::Nonsense(Error::PeerCorrupt {
                what: "a message of excessive length",
            });
        }
        let lacks = received.flags.contains(ReturnFlags::CTRUNC);
        check(&bytes[..received.bytes], descriptors, lacks)
    }

    /// The process at the other end.
    pub(crate) fn credentials(&self) -> Result<Credentials, Error> {
        credentials(self.fd.as_fd())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The process at the other end of a connected socket.
pub(crate) fn credentials(socket: BorrowedFd<'_>) -> Result<Credentials, Error> {
    // rustix's type has no room for the process 0, which means an unknown process.
    let mut who = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `who`, plain data.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut who).cast(),
            &mut length,
        )
    };
    match answer {
        0 => Ok(Credentials { pid: who.pid.max(0) as u32, uid: who.uid }),
        _ => Err(Error::system(
            "reading the credentials of the other end",
            std::io::Error::last_os_error(),
        )),
    }
}

fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &Descriptors) -> Result<(), Errno> {
    let borrowed: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_SEGMENTS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&borrowed)), "bounded by the message");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags).map(|_| ())
}

/// `lacks`: the kernel could not give us all descriptors, because our table was full.
fn check(bytes: &[u8], descriptors: Vec<OwnedFd>, lacks: bool) -> Received {
    let message = match ControlMessage::decode(bytes) {
        Ok(message) => message,
        Err(error) => return Received::Nonsense(error),
    };
    let (came, due) = (descriptors.len(), message.descriptors());
    if lacks && came < due {
        return Received::Message(message, Vec::new());
    }
    match came == due && !lacks {
        true => Received::Message(message, descriptors),
        false => Received::Nonsense(Error::PeerCorrupt { what: "a message's descriptors" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane::protocol::Pair;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    const PAIR: Pair = Pair { publisher: 1, subscriber: 2 };

    fn pair() -> (Link, Link) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (one, other) = socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        (Link::new(one), Link::new(other))
    }

    fn offer() -> (ControlMessage, Descriptors) {
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        (ControlMessage::Offer { pair: PAIR }, vec![Arc::new(fd)])
    }

    #[test]
    fn messages_pass_with_their_descriptors() {
        let (mut one, mut other) = pair();
        let (message, descriptors) = offer();
        assert_eq!(one.send(&message, descriptors), Sent::Done);
        let Received::Message(came, fds) = other.receive() else { panic!("sent") };
        assert_eq!((came, fds.len()), (message, 1));
        assert!(matches!(other.receive(), Received::Nothing));
        assert_eq!(other.credentials().unwrap().pid, std::process::id());
    }

    #[test]
    fn all_messages_are_read_before_the_end_of_a_link() {
        let (mut one, mut other) = pair();
        assert_eq!(other.send(&ControlMessage::Ready, Vec::new()), Sent::Done); // never read: a reset
        assert_eq!(one.send(&ControlMessage::Ready, Vec::new()), Sent::Done);
        assert_eq!(one.send(&ControlMessage::Leaving, Vec::new()), Sent::Done);
        drop(one);
        assert!(matches!(other.receive(), Received::Message(ControlMessage::Ready, _)));
        assert!(matches!(other.receive(), Received::Message(ControlMessage::Leaving, _)));
        assert!(matches!(other.receive(), Received::End));
        assert_eq!(other.send(&ControlMessage::Ready, Vec::new()), Sent::Gone);
    }

    #[test]
    fn a_slow_peer_fills_a_bounded_queue_and_loses_nothing() {
        let (mut one, mut other) = pair();
        let mut sent = 0u64;
        let message = |start| ControlMessage::Matched { pair: PAIR, start };
        while one.send(&message(sent), Vec::new()) != Sent::Full {
            sent += 1;
            assert!(sent < 1 << 20);
        }
        for expected in 0..sent {
            let came = loop {
                match other.receive() {
                    Received::Message(came, _) => break came,
                    _ => assert_ne!(one.flush(), Sent::Gone),
                }
            };
            assert_eq!(came, message(expected));
        }
        assert_eq!(one.flush(), Sent::Done);
    }

    #[test]
    fn invalid_bytes_are_not_taken_for_messages() {
        let (one, mut other) = pair();
        let long = [7; MESSAGE_BYTES_MAX + 1];
        let (_, descriptors) = offer();
        send(one.as_fd(), &long, &Vec::new()).unwrap();
        send(one.as_fd(), b"\xff", &Vec::new()).unwrap();
        send(one.as_fd(), &ControlMessage::Ready.encode(), &descriptors).unwrap();
        send(one.as_fd(), &offer().0.encode(), &Vec::new()).unwrap();
        for _ in 0..4 {
            assert!(matches!(other.receive(), Received::Nonsense(_)));
        }
    }
}
