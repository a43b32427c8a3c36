//! The handles of publishers and subscribers: the hot path in front, and what the node knows.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::control_plane::event_loop::Notice;
use crate::control_plane::warnings::Warning;
use crate::data_plane::publication::Writer;
use crate::data_plane::subscription::Reader;
use crate::error::Error;
use crate::event::{Event, Inbox};
use crate::node::Node;
use crate::topic::EndpointId;

/// What the node knows of a publisher or subscriber: its matches, and what has happened to them.
/// Clones tell of the same endpoint, also after it is gone. Any thread may use it.
///
/// In a child of `fork` there are no matches and no events.
#[derive(Clone)]
pub struct Observer {
    id: EndpointId,
    node: Node,
    inbox: Arc<Inbox>,
}

impl Observer {
    /// The endpoint's id.
    pub fn id(&self) -> EndpointId {
        self.id
    }

    /// How many endpoints of the other side it is matched with.
    pub fn matched(&self) -> usize {
        self.inbox().map_or(0, Inbox::matched)
    }

    /// Waits until there are at least `count` matches. False if there are not after `limit`.
    pub fn wait_for_match(&self, count: usize, limit: Duration) -> bool {
        self.inbox().is_some_and(|inbox| inbox.wait_for_match(count, limit))
    }

    /// Takes all events since the last call, oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.inbox().map_or_else(Vec::new, Inbox::drain)
    }

    /// Adds what another route has to tell of its matches; a match or its end counts like any other.
    /// A match is told of before its end.
    pub fn tell(&self, event: Event) {
        if let Some(inbox) = self.inbox() {
            inbox.push(event);
        }
    }

    /// Says to people, once, that another route cannot match it with an endpoint: on stderr or, if the
    /// program has set one, to its `tracing` subscriber. `sides` says who they are, `reason` why and what
    /// to do. The node's thread does it.
    pub fn warn(&self, other: EndpointId, topic: &str, sides: String, reason: String) {
        if !self.is_forked() {
            let (pair, topic) = ((self.id, other), topic.to_owned());
            self.node.core().notify(Notice::Warn(Warning { pair, topic, sides, reason }));
        }
    }

    /// Calls `call` from now on whenever there is an event to take; once soon for those there are. A thread
    /// of the node calls it, which does nothing else: it may call anything of this library. What it panics
    /// with is said once. The newest call counts; the function before it is not running any more when this
    /// returns, unless a function of the user's calls this. It ends with the endpoint.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::System`] if there can be no further thread.
    pub fn listen(&self, topic: &str, call: Box<dyn Fn() + Send + Sync>) -> Result<(), Error> {
        let listener = self.node.listener(topic.to_owned(), "on_event", call)?;
        self.inbox.listen(Some(listener));
        Ok(())
    }

    /// Ends what [`listen`](Self::listen) has begun.
    pub(crate) fn end_listening(&self) {
        if let Some(inbox) = self.inbox() {
            inbox.listen(None);
        }
    }

    /// Calls `tell` with every event from now on, when it can be taken: for what wakes somebody. Locks of
    /// the library are held: it must call nothing of it that locks. The newest call counts.
    pub fn on_event(&self, tell: Box<dyn Fn(&Event) + Send + Sync>) {
        if let Some(inbox) = self.inbox() {
            inbox.on_event(tell);
        }
    }

    /// Whether this is a child of `fork`, and the endpoint the parent's.
    pub fn is_forked(&self) -> bool {
        self.node.core().is_forked()
    }

    /// Events that went because nobody took them: beyond 1,024 the oldest go.
    pub fn events_lost(&self) -> u64 {
        self.inbox().map_or(0, Inbox::lost)
    }

    /// Its node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The lock in it may have been held when the process forked.
    fn inbox(&self) -> Option<&Inbox> {
        (!self.node.core().is_forked()).then_some(&self.inbox)
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Observer").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A publisher of a node. Dropping it ends its matches.
#[derive(Debug)]
pub struct Publisher {
    /// The hot path.
    pub writer: Writer,
    observer: Observer,
}

/// A subscriber of a node. Dropping it ends its matches when its last sample has been dropped too.
#[derive(Debug)]
pub struct Subscriber {
    /// The hot path.
    pub reader: Reader,
    pub(crate) after: AfterReader,
}

/// What of a subscriber goes after its reader.
#[derive(Debug)]
pub(crate) struct AfterReader {
    // Dropped before the observer, which has the node.
    _settled: Settled,
    observer: Observer,
}

impl Publisher {
    pub(crate) fn new(writer: Writer, id: EndpointId, node: Node, inbox: Arc<Inbox>) -> Self {
        Publisher { writer, observer: Observer { id, node, inbox } }
    }
}

impl Subscriber {
    pub(crate) fn new(reader: Reader, id: EndpointId, node: Node, inbox: Arc<Inbox>) -> Self {
        let _settled = Settled(node.clone());
        let observer = Observer { id, node, inbox };
        Subscriber { reader, after: AfterReader { _settled, observer } }
    }
}

impl Deref for Publisher {
    type Target = Observer;

    fn deref(&self) -> &Observer {
        &self.observer
    }
}

impl Deref for Subscriber {
    type Target = Observer;

    fn deref(&self) -> &Observer {
        &self.after.observer
    }
}

/// Waits until the node's thread has let go of a subscriber it may have been looking at. Otherwise it
/// could be the one that drops the last handle of the node, and a process that ends now would leave
/// its socket behind.
#[derive(Debug)]
struct Settled(Node);

impl Drop for Settled {
    fn drop(&mut self) {
        if !self.0.core().is_forked() {
            drop(self.0.core().lock());
        }
    }
}

impl Drop for AfterReader {
    fn drop(&mut self) {
        self.observer.end_listening();
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.observer.end_listening();
        let Observer { id, node, .. } = &self.observer;
        if !node.core().is_forked() {
            node.core().change(|reactor| reactor.remove_endpoint(*id));
        }
    }
}
