//! The handles of publishers and subscribers: the hot path first, then the node's knowledge of
//! them.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::control_plane::event_loop::Notice;
use crate::control_plane::protocol::observe::ObserverId;
use crate::data_plane::observer::ObserverReader;
use crate::data_plane::publication::Writer;
use crate::data_plane::subscription::Reader;
use crate::error::Error;
use crate::event::{Event, Inbox};
use crate::node::Node;
use crate::topic::EndpointId;
use crate::waiting::interrupt::Interrupter;
use crate::warnings::Warning;

/// The node's knowledge of a publisher or subscriber: its matches and its events. Clones belong to
/// the same endpoint, also after it has gone. Any thread may use it.
///
/// In a child of `fork` there are no matches and no events.
#[derive(Clone)]
pub struct EndpointHandle {
    id: EndpointId,
    node: Node,
    inbox: Arc<Inbox>,
}

impl EndpointHandle {
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

    /// Adds an event that another route has for this endpoint. A match and its end are counted as
    /// usual; a match must be added before its end.
    pub fn report(&self, event: Event) {
        if let Some(inbox) = self.inbox() {
            inbox.push(event);
        }
    }

    /// Warns people, once, that another route cannot match it with an endpoint: on stderr or, if
    /// the program has set one, to its `tracing` subscriber. `sides` names the endpoints, `reason`
    /// gives the cause and the remedy. The node's thread writes it.
    pub fn warn(&self, other: EndpointId, topic: &str, sides: String, reason: String) {
        if !self.is_forked() {
            let (pair, topic) = ((self.id, other), topic.to_owned());
            self.node.core().notify(Notice::Warn(Warning { pair, topic, sides, reason }));
        }
    }

    /// Calls `call` from now on whenever there is an event to take, and once soon if there are
    /// events already. A thread of the node with no other work calls it, so `call` may call
    /// anything of this library. A panic is reported once. The newest call counts. When this
    /// returns, the previous function is not running any more, unless this is called inside a
    /// user's function. The calls end with the endpoint.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::System`] if no further thread can be started.
    pub fn listen(&self, topic: &str, call: Box<dyn Fn() + Send + Sync>) -> Result<(), Error> {
        let listener = self.node.listener(topic.to_owned(), "on_event", call)?;
        self.inbox.listen(Some(listener));
        Ok(())
    }

    /// Ends the calls that [`listen`](Self::listen) has begun.
    pub(crate) fn end_listening(&self) {
        if let Some(inbox) = self.inbox() {
            inbox.listen(None);
        }
    }

    /// Calls `call` with every event from now on, as soon as it can be taken: for code that wakes a
    /// thread. Locks of the library are held, so `call` must call no function of the library that
    /// locks. The newest call counts.
    pub fn on_event(&self, call: Box<dyn Fn(&Event) + Send + Sync>) {
        if let Some(inbox) = self.inbox() {
            inbox.on_event(call);
        }
    }

    /// Whether this is a child of `fork` and the endpoint belongs to the parent.
    pub fn is_forked(&self) -> bool {
        self.node.core().is_forked()
    }

    /// How many events were dropped untaken: beyond 1,024 the oldest are dropped, and beyond 32 as
    /// long as none has been taken or awaited.
    pub fn events_lost(&self) -> u64 {
        self.inbox().map_or(0, Inbox::lost)
    }

    /// Its node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The inbox; none in a child of `fork`, because its lock may have been held when the process
    /// forked.
    fn inbox(&self) -> Option<&Inbox> {
        (!self.node.core().is_forked()).then_some(&self.inbox)
    }
}

impl std::fmt::Debug for EndpointHandle {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("EndpointHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A publisher of a node. Dropping it ends its matches.
#[derive(Debug)]
pub struct Publisher {
    /// The hot path.
    pub writer: Writer,
    handle: EndpointHandle,
}

/// A subscriber of a node. Dropping it ends its matches when its last sample has been dropped too.
#[derive(Debug)]
pub struct Subscriber {
    /// The hot path.
    pub reader: Reader,
    pub(crate) after: AfterReader,
}

/// An observer of a node: see [`ObserverReader`]. No publisher knows it.
#[derive(Debug)]
pub struct Observer {
    /// The hot path.
    pub reader: ObserverReader,
    id: ObserverId,
    node: Node,
}

impl Observer {
    pub(crate) fn new(reader: ObserverReader, id: ObserverId, node: Node) -> Observer {
        Observer { reader, id, node }
    }

    /// What ends its waits from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.reader.state().interrupter()
    }
}

/// The parts of a subscriber that are dropped after its reader.
#[derive(Debug)]
pub(crate) struct AfterReader {
    // Dropped before the handle, which has the node.
    _settled: Settled,
    handle: EndpointHandle,
}

impl Publisher {
    pub(crate) fn new(writer: Writer, id: EndpointId, node: Node, inbox: Arc<Inbox>) -> Self {
        Publisher { writer, handle: EndpointHandle { id, node, inbox } }
    }
}

impl Subscriber {
    pub(crate) fn new(reader: Reader, id: EndpointId, node: Node, inbox: Arc<Inbox>) -> Self {
        let _settled = Settled(node.clone());
        let handle = EndpointHandle { id, node, inbox };
        Subscriber { reader, after: AfterReader { _settled, handle } }
    }
}

impl Deref for Publisher {
    type Target = EndpointHandle;

    fn deref(&self) -> &EndpointHandle {
        &self.handle
    }
}

impl Deref for Subscriber {
    type Target = EndpointHandle;

    fn deref(&self) -> &EndpointHandle {
        &self.after.handle
    }
}

/// Waits until the node's thread has released a subscriber that it may have been using. Otherwise
/// that thread could drop the node's last handle, and a process that ends now would leave its
/// socket behind.
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
        self.handle.end_listening();
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if !self.node.core().is_forked() {
            self.node.core().change(|reactor| reactor.remove_observer(self.id));
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.handle.end_listening();
        let EndpointHandle { id, node, .. } = &self.handle;
        if !node.core().is_forked() {
            node.core().change(|reactor| reactor.remove_endpoint(*id));
        }
    }
}
