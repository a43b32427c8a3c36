//! The links to other nodes: calling and being called, greeting, ending.
//!
//! The caller greets first. The called answers with its own greeting, or closes the link if there is
//! to be another one: of two links between two nodes the one that the lower id has called stays.
//! Nothing but greetings passes before that is decided, so nothing is said twice or lost.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::control_plane::link::{Link, Received, Sent};
use crate::control_plane::message::Message;
use crate::control_plane::registry::Call;
use crate::control_plane::state::State;
use crate::error::Error;
use crate::event::Event;
use crate::limits::{LINKS_MAX, REFUSED_MAX};
use crate::os::descriptor::with_more_files;
use crate::waiting::wait::now_ns;

/// A link to another node, and what we know of that.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) link: Link,
    /// Its id, as soon as it is known.
    pub(crate) node: Option<u64>,
    pub(crate) name: String,
    pub(crate) pid: u32,
    uid: u32,
    /// We have called it.
    called: bool,
    /// Both sides have greeted, and this link stays.
    pub(crate) greeted: bool,
    /// It has told its endpoints.
    told: bool,
    /// It has said that it leaves.
    leaving: bool,
    /// The poll reports when it makes room for what waits.
    awaits_room: bool,
    /// When to try to send what waits.
    pub(crate) send_again_ns: Option<u64>,
}

/// A node that was too busy to be called.
#[derive(Debug)]
pub(crate) struct Redial {
    node: u64,
    pub(crate) due_ns: u64,
    calls: u32,
}

/// A peer that could not be taken on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPeer {
    /// Its process; 0 if that is in a process namespace we cannot see.
    pub pid: u32,
    /// Why, and what to do.
    pub reason: String,
}

impl State {
    /// Calls all nodes that have a socket.
    pub(crate) fn call_all(&mut self) -> Result<(), Error> {
        for node in self.registry.nodes()? {
            self.call(node, 0)?;
        }
        Ok(())
    }

    /// Whether all that answer have told their endpoints.
    pub(crate) fn is_settled(&self) -> bool {
        self.peers.values().all(|peer| peer.told)
    }

    /// Calls again who was busy, and sends again what the kernel could not take.
    pub(crate) fn try_again(&mut self) {
        let now_ns = now_ns();
        let due = |due_ns: u64| due_ns <= now_ns;
        for redial in self.redials.extract_if(.., |redial| due(redial.due_ns)).collect::<Vec<_>>() {
            // Its error, no descriptors, may pass too.
            if self.call(redial.node, redial.calls).is_err() {
                self.call_later(redial.node, redial.calls);
            }
        }
        let sends = self.peers.iter().filter(|(_, peer)| peer.send_again_ns.is_some_and(due));
        for key in sends.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.flush(key);
        }
        if self.paused_until_ns.is_some_and(due) {
            self.pause_listening(None);
        }
        self.match_again();
    }

    /// Takes all calls that wait.
    pub(crate) fn answer_calls(&mut self) {
        while let Some(listener) = &self.listener {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let accepted = with_more_files(|| rustix::net::accept_with(listener, flags));
            match accepted {
                // If it cannot be taken on, closing the socket tells it.
                Ok(socket) => drop(self.take_on(socket, None)),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::CONNABORTED | Errno::INTR) => {}
                    Some(Errno::AGAIN) => return,
                    _ => return self.pause_listening(Some(now_ns() + PAUSE_NS)),
                },
            }
        }
    }

    /// Reads what a peer has sent, and sends it what waits.
    pub(crate) fn serve(&mut self, key: u64) {
        self.flush(key);
        for _ in 0..MESSAGES_A_TURN {
            let Some(peer) = self.peers.get_mut(&key) else { return };
            match peer.link.receive() {
                Received::Nothing => return,
                Received::Message(message, descriptors) => {
                    if self.hear(key, message, descriptors).is_err() {
                        return self.expel(key);
                    }
                    self.apply_pending();
                }
                Received::End => {
                    let died = !peer.leaving;
                    return self.end_link(key, died);
                }
                Received::Nonsense(error @ Error::LayoutVersion { .. }) => {
                    return self.refuse(key, &error);
                }
                Received::Nonsense(_) => return self.expel(key),
            }
        }
    }

    /// What follows from an attempt to send.
    pub(crate) fn after_send(&mut self, key: u64, sent: Sent) {
        let Some(peer) = self.peers.get_mut(&key) else { return };
        let awaits_room = sent == Sent::Queued;
        if awaits_room != peer.awaits_room {
            peer.awaits_room = awaits_room;
            self.poll.watch_writable(peer.link.as_fd(), key, awaits_room);
        }
        peer.send_again_ns = (sent == Sent::Later).then(|| now_ns() + SEND_AGAIN_NS);
        match sent {
            Sent::Later => self.poll.wake(),
            Sent::Full => self.closing.push(key),
            // Of one that is gone the thread reads what is left, and then its end.
            Sent::Done | Sent::Queued | Sent::Gone => {}
        }
    }

    /// Ends a link and all that came by it.
    pub(crate) fn end_link(&mut self, key: u64, died: bool) {
        let Some(peer) = self.peers.remove(&key) else { return };
        self.poll.remove(peer.link.as_fd());
        let theirs = self.known.iter().filter(|(_, known)| known.via == key);
        for endpoint in theirs.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.forget(endpoint, died);
        }
    }

    /// Says farewell to all and closes all links.
    pub(crate) fn leave_all(&mut self) {
        for (_, mut peer) in std::mem::take(&mut self.peers) {
            peer.link.send(&Message::Leaving, Vec::new());
        }
    }

    fn call(&mut self, node: u64, calls: u32) -> Result<(), Error> {
        let is_linked = self.peers.values().any(|peer| peer.node == Some(node));
        if node == self.node || is_linked {
            return Ok(());
        }
        match self.registry.call(node)? {
            Call::Connected(socket) => self.take_on(socket, Some(node)),
            Call::Busy => {
                self.call_later(node, calls);
                Ok(())
            }
            Call::Gone | Call::Forbidden => Ok(()),
        }
    }

    fn call_later(&mut self, node: u64, calls: u32) {
        // For as long as it has a socket: it may be stopped, or descriptors may be short.
        if self.redials.len() < LINKS_MAX {
            let pause_ns = (REDIAL_NS_MIN << calls.min(16)).min(REDIAL_NS_MAX);
            let calls = calls.saturating_add(1);
            self.redials.push(Redial { node, due_ns: now_ns() + pause_ns, calls });
            self.poll.wake();
        }
    }

    /// A new link, by us to `node`, or by an unknown to us.
    fn take_on(&mut self, socket: OwnedFd, node: Option<u64>) -> Result<(), Error> {
        let link = Link::new(socket);
        let who = link.credentials()?;
        // In a group's domain the modes of folder and socket have let in members alone.
        let ours = who.uid == rustix::process::geteuid().as_raw();
        if self.peers.len() >= LINKS_MAX || !(ours || self.registry.is_groups()) {
            return Ok(());
        }
        let key = self.next_key;
        self.next_key += 1;
        self.poll.add(link.as_fd(), key)?;
        let called = node.is_some();
        let peer = Peer {
            link,
            node,
            name: String::new(),
            pid: who.pid,
            uid: who.uid,
            called,
            greeted: false,
            told: false,
            leaving: false,
            awaits_room: false,
            send_again_ns: None,
        };
        self.peers.insert(key, peer);
        if called {
            self.greet(key);
        }
        Ok(())
    }

    fn greet(&mut self, key: u64) {
        let hello = Message::Hello { node: self.node, name: self.name.clone() };
        self.post(key, hello, Vec::new());
    }

    fn hear(&mut self, key: u64, message: Message, descriptors: Vec<OwnedFd>) -> Result<(), Error> {
        let peer = self.peers.get_mut(&key).expect("it has just spoken");
        match message {
            Message::Hello { node, name } if !peer.greeted => self.greeted(key, node, name)?,
            Message::Ready if peer.greeted => peer.told = true,
            Message::Leaving => peer.leaving = true,
            message if peer.greeted => self.handle(key, message, descriptors)?,
            _ => return Err(Error::PeerCorrupt { what: "a message before the greeting" }),
        }
        Ok(())
    }

    fn greeted(&mut self, key: u64, node: u64, name: String) -> Result<(), Error> {
        let peer = &self.peers[&key];
        let is_node = node != self.node && node != 0 && node.trailing_zeros() >= 24;
        if !is_node || (peer.called && peer.node != Some(node)) {
            return Err(Error::PeerCorrupt { what: "the greeting of another node" });
        }
        if !peer.called {
            if self.is_impostor(key, node) {
                return Err(Error::PeerCorrupt { what: "the greeting of another process's node" });
            }
            if !self.shall_stay(node) {
                self.end_link(key, false);
                return Ok(());
            }
            self.greet(key);
        }
        let peer = self.peers.get_mut(&key).expect("it was there");
        (peer.node, peer.name, peer.greeted) = (Some(node), name, true);
        for message in self.own_endpoints() {
            self.post(key, message, Vec::new());
        }
        self.post(key, Message::Ready, Vec::new());
        Ok(())
    }

    /// Whether the process at the other end of a link has not the node it says it is. Ids are no
    /// secret, and who is taken for a node has that node's link ended.
    fn is_impostor(&self, key: u64, node: u64) -> bool {
        let who = |peer: &Peer| (peer.uid, peer.pid);
        let speaker = who(&self.peers[&key]);
        let mut others = self.peers.iter().filter(|(other, _)| **other != key);
        others.any(|(_, peer)| peer.node == Some(node) && who(peer) != speaker)
            || self.registry.owner(node).is_some_and(|owner| owner != speaker.0)
    }

    /// Whether a call by `node` is to be answered; if so, ends the link there was before.
    fn shall_stay(&mut self, node: u64) -> bool {
        let before = self.peers.iter().find(|(_, peer)| peer.node == Some(node));
        let Some((&before, peer)) = before else { return true };
        if peer.called && self.node < node {
            return false;
        }
        // Ours gives way; or it has called before, and then its end is on its way.
        self.end_link(before, true);
        true
    }

    fn flush(&mut self, key: u64) {
        if let Some(peer) = self.peers.get_mut(&key)
            && peer.link.has_waiting()
        {
            let sent = peer.link.flush();
            self.after_send(key, sent);
        }
    }

    /// Ends the link to a peer that sends nonsense.
    fn expel(&mut self, key: u64) {
        let theirs = |via: u64| via == key;
        for publication in self.publications.values() {
            for (id, _) in publication.matches.iter().filter(|(_, each)| theirs(each.via)) {
                publication.shared.inbox().push(Event::Corrupt { endpoint: *id });
            }
        }
        for subscription in self.subscriptions.values() {
            for (id, _) in subscription.matches.iter().filter(|(_, each)| theirs(each.via)) {
                subscription.inbox.push(Event::Corrupt { endpoint: *id });
            }
        }
        self.end_link(key, false);
    }

    /// Ends the link to a peer of another version and lets everybody here know.
    fn refuse(&mut self, key: u64, error: &Error) {
        let Some(peer) = self.peers.get(&key) else { return };
        let (pid, endpoint) = (peer.pid, peer.node.unwrap_or_default());
        if !peer.called {
            self.greet(key); // so that the other side learns our version
        }
        let reason = error.to_string();
        let publishers = self.publications.values().map(|it| it.shared.inbox());
        for inbox in publishers.chain(self.subscriptions.values().map(|it| &it.inbox)) {
            inbox.push(Event::Incompatible { endpoint, pid, reason: reason.clone() });
        }
        if self.refused.len() == REFUSED_MAX {
            self.refused.pop_front();
        }
        self.refused.push_back(RefusedPeer { pid, reason });
        self.end_link(key, false);
    }
}

/// Messages read from one peer before it is another's turn.
const MESSAGES_A_TURN: usize = 64;
const SEND_AGAIN_NS: u64 = 10_000_000;
/// How long no calls are taken when there are no descriptors.
const PAUSE_NS: u64 = 100_000_000;
const REDIAL_NS_MIN: u64 = 1_000_000;
const REDIAL_NS_MAX: u64 = 1_000_000_000;

#[cfg(test)]
mod tests;
