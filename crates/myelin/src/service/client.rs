//! The client's side of a service.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::calls::{Calls, Failure};
use super::events::Events;
use super::server::left;
use super::wire::{
    HEADER_BYTES, HELLO, REPLIED, ReplyOf, RequestOf, has_payload, header, header_bytes, offset,
};
use super::{CALLS_MAX, ServiceTypes, TAKEN_MAX, publisher, replies_of, requests_of, subscriber};
use crate::header_slice::HeaderSlice;
use crate::loan::Loan;
use crate::node::Node;
use crate::payload::Payload;
use crate::plain_data::PlainData;
use crate::publisher::Publisher;
use crate::sample::Sample;
use crate::subscriber::{Interrupter, Subscriber, until_ns};
use crate::{EndpointId, Error, Event, Wait, cancel};

/// A client of a service: sends requests and gets a reply to each. Made by
/// [`Node::client`](crate::Node::client).
///
/// [`call`](Client::call) waits for the reply. [`send`](Client::send) returns a [`Pending`] reply,
/// to poll or to wait for; up to [`CALLS_MAX`] calls may be open at once. One thread at a time uses
/// a client, and it can be sent to another; make a client for each thread.
///
/// The server gets a request once or not at all. If a server leaves or dies, all its open calls end
/// at once, with [`Error::ServerGone`]. A stopped server is noticed only by the time limit. A
/// server that comes back is found again.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// # let service = node.service::<[u64; 2], u64>("add")?;
/// # let _serving = service.on_request(|request| {
/// #     request.reply(&(request[0] + request[1])).unwrap();
/// # })?;
/// let client = node.client::<[u64; 2], u64>("add")?;
/// let sum = client.call(&[3, 4], Duration::from_secs(60))?; // the server may come within this time
/// assert_eq!(*sum, 7);
///
/// let mut pending = client.send(&[5, 6])?;
/// // … something else …
/// if let Some(sum) = pending.receive(Duration::from_secs(60))? {
///     assert_eq!(*sum, 11);
/// }
/// # Ok(()) }
/// ```
pub struct Client<Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    service: String,
    id: u64,
    requests: Publisher<RequestOf<Req, Rep>>,
    /// Not borrowed while a request is published, which may run a callback.
    state: RefCell<State<Req, Rep>>,
}

/// The state of a client: its calls and its side of the replies.
struct State<Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    replies: Subscriber<ReplyOf<Req, Rep>>,
    of_requests: Events,
    of_replies: Events,
    calls: Calls<Sample<[u8]>>,
    /// Servers that have left or died, whose last replies may not have been taken yet.
    gone: Vec<EndpointId>,
    /// A server has come to which this client has not sent a hello yet.
    owes_hello: bool,
    /// Why an existing server cannot be used.
    refusal: String,
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Client<Req, Rep> {
    pub(crate) fn create(
        node: &Node,
        service: &str,
        types: Option<&ServiceTypes>,
    ) -> Result<Self, Error> {
        let requests_type = types.map(|types| &types.requests);
        let requests =
            publisher::<RequestOf<Req, Rep>>(node, &requests_of(service)?, requests_type)?;
        // An endpoint's id is unique on its host only; hashed with a random key it is unique
        // everywhere.
        let id = RandomState::new().hash_one(requests.handle().id());
        let replies_type = types.map(|types| &types.replies);
        let replies =
            subscriber::<ReplyOf<Req, Rep>>(node, &replies_of(service, id), replies_type)?;
        let waiting = replies.reader().shared();
        let state = State {
            of_requests: Events::new(requests.handle(), waiting),
            of_replies: Events::new(replies.handle(), waiting),
            replies,
            calls: Calls::new(),
            gone: Vec::new(),
            owes_hello: false,
            refusal: String::new(),
        };
        Ok(Client { service: service.to_string(), id, requests, state: RefCell::new(state) })
    }

    /// Sends a copy of `request` and waits for the reply, for at most `limit` (`Duration::MAX`: for
    /// ever). The server may also start within this time.
    ///
    /// # Errors
    /// [`Error::NoServer`]: none has come. [`Error::ReplyTimeout`]: there is one, and no reply. A
    /// reply that comes later is dropped, and [counted](Client::late). [`Error::ServerGone`], at
    /// once, when the server leaves or dies. [`Error::NoReply`]: the server has dropped the
    /// request. [`Error::TooMany`]: more than [`CALLS_MAX`] calls have no reply yet, including
    /// those whose client has stopped waiting. As for
    /// [`Publisher::publish_copy`](Publisher::publish_copy) and
    /// [`Subscriber::take`](Subscriber::take).
    pub fn call(&self, request: &Req::View, limit: Duration) -> Result<Reply<Rep>, Error> {
        let until_ns = until_ns(limit);
        let timeout = || Error::ReplyTimeout { service: self.service.clone(), waited: limit };
        if !self
            .wait_until(until_ns, |state| state.is_ready().then_some(()))
            .map(|it| it.is_some())?
        {
            let is_there = self.state.borrow().calls.servers() > 0;
            return Err(if is_there { timeout() } else { self.no_server(limit) });
        }
        let mut pending = self.send(request)?;
        pending.receive_until(until_ns)?.ok_or_else(timeout)
    }

    /// Sends a copy of `request`, and does not wait. For a large request, [`loan`](Client::loan)
    /// its memory.
    ///
    /// # Errors
    /// [`Error::NoServer`] if there is none now: see
    /// [`wait_for_service`](Client::wait_for_service). Otherwise as for [`call`](Client::call).
    pub fn send(&self, request: &Req::View) -> Result<Pending<'_, Req, Rep>, Error> {
        let payload = Req::as_bytes(request);
        let mut loan = self.loan_bytes(payload.len())?;
        loan.loan.as_bytes_mut()[offset::<Req>()..].copy_from_slice(payload);
        loan.send()
    }

    /// Waits until there is a server, for at most `limit`. False if the time is over.
    ///
    /// # Errors
    /// As for [`Subscriber::take`](Subscriber::take).
    pub fn wait_for_service(&self, limit: Duration) -> Result<bool, Error> {
        let is_there = |state: &mut State<Req, Rep>| (state.calls.servers() > 0).then_some(());
        self.wait_until(until_ns(limit), is_there).map(|is_there| is_there.is_some())
    }

    /// Waits until a reply or a server may have come, for at most `limit`; it may also end for no
    /// reason. Use it to wait for more than [`call`](Client::call) can: check [`Pending::take`] or
    /// [`servers`](Client::servers), then wait again.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn wait(&self, limit: Duration) -> Result<(), Error> {
        self.state.borrow_mut().replies.wait(limit).map(|_| ())
    }

    /// Ends a [`wait`](Client::wait) from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.state.borrow().replies.interrupter()
    }

    /// How many servers there are now: more than one is a mistake.
    pub fn servers(&self) -> usize {
        self.requests.matched()
    }

    /// How it waits for replies; by default [`Wait::Adaptive`].
    pub fn set_wait(&self, wait: Wait) {
        self.state.borrow_mut().replies.set_wait(wait);
    }

    /// How many replies came after their call's time limit, or a second time, from a second server.
    /// They were dropped.
    pub fn late(&self) -> u64 {
        self.state.borrow().calls.late()
    }

    /// The events of its matches with servers since the last call, oldest first. At most 1,024 are
    /// kept; beyond that the oldest are dropped.
    pub fn events(&self) -> Vec<Event> {
        self.state.borrow_mut().of_requests.take()
    }

    /// The id after which its topic of replies is named.
    #[cfg(test)]
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    fn loan_bytes(&self, bytes: usize) -> Result<RequestLoan<'_, Req, Rep>, Error> {
        let loan = self.requests.loan_bytes(offset::<Req>().saturating_add(bytes))?;
        Ok(RequestLoan { client: self, loan })
    }

    /// Takes events and replies that have come.
    fn update(&self) -> Result<RefMut<'_, State<Req, Rep>>, Error> {
        let mut state = self.state.borrow_mut();
        state.update()?;
        if std::mem::take(&mut state.owes_hello) {
            drop(state);
            let hello = header_bytes([self.id, HELLO]);
            let published = self.requests.publish_copy(&hello);
            state = self.state.borrow_mut();
            state.owes_hello = published.is_err();
            published?;
        }
        Ok(state)
    }

    /// Waits until `find` finds something.
    fn wait_until<R>(
        &self,
        until_ns: u64,
        mut find: impl FnMut(&mut State<Req, Rep>) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        loop {
            let mut state = self.update()?;
            if let Some(found) = find(&mut state) {
                return Ok(Some(found));
            }
            let left = left(until_ns);
            if left.is_zero() {
                return Ok(None);
            }
            if !state.replies.wait(left)? && cancel::is_cancelled() {
                return Ok(None);
            }
        }
    }

    fn no_server(&self, waited: Duration) -> Error {
        let reason = self.state.borrow().refusal.clone();
        Error::NoServer { service: self.service.clone(), waited, reason }
    }

    fn failed(&self, failure: Failure) -> Error {
        let service = self.service.clone();
        match failure {
            Failure::ServerGone => Error::ServerGone { service },
            Failure::NoReply => Error::NoReply { service },
        }
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> State<Req, Rep> {
    fn update(&mut self) -> Result<(), Error> {
        self.of_replies.fresh();
        for event in self.of_requests.fresh() {
            match event {
                Event::Matched { endpoint, .. } => {
                    self.calls.server_came(endpoint);
                    self.owes_hello = true;
                }
                Event::Unmatched { endpoint, .. } => self.gone.push(endpoint),
                Event::Incompatible { reason, .. } | Event::Refused { reason, .. } => {
                    self.refusal = format!(" ({reason})");
                }
                _ => {}
            }
        }
        self.take_replies()
    }

    /// Takes at most as many replies as calls can be open; the caller then checks its clock and
    /// comes again.
    fn take_replies(&mut self) -> Result<(), Error> {
        for _ in 0..TAKEN_MAX {
            let Some(sample) = self.replies.take()? else {
                // All replies that a server sent before its end were there when the end was
                // reported.
                self.gone.drain(..).for_each(|server| self.calls.server_gone(server));
                return Ok(());
            };
            let [number, status] = header(sample.as_bytes());
            let is_reply = status == REPLIED && has_payload::<Rep>(sample.as_bytes().len());
            let reply = if is_reply { Ok(sample.into_bytes()) } else { Err(Failure::NoReply) };
            self.calls.reply(number, reply);
        }
        Ok(())
    }

    /// Whether requests reach a server, and its replies reach this client.
    fn is_ready(&self) -> bool {
        self.calls.servers() > 0 && self.replies.matched() > 0
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> fmt::Debug for Client<Req, Rep> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = (Req::type_name(), Rep::type_name());
        to.debug_struct("Client").field("name", &self.service).field("types", &types).finish()
    }
}

/// A reply that is still to come. Made by [`Client::send`] and [`RequestLoan::send`]. If it is
/// dropped, the call goes on at the server, and its reply is dropped, too.
#[must_use = "the reply comes here"]
pub struct Pending<'c, Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    client: &'c Client<Req, Rep>,
    number: u64,
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Pending<'_, Req, Rep> {
    /// The reply, if it has come; once. Never waits.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn take(&mut self) -> Result<Option<Reply<Rep>>, Error> {
        self.receive_until(0)
    }

    /// Waits for the reply, for at most `limit`. `None` if the time is over: you can wait again.
    ///
    /// # Errors
    /// As for [`Client::call`].
    pub fn receive(&mut self, limit: Duration) -> Result<Option<Reply<Rep>>, Error> {
        self.receive_until(until_ns(limit))
    }

    fn receive_until(&mut self, until_ns: u64) -> Result<Option<Reply<Rep>>, Error> {
        let reply = self.client.wait_until(until_ns, |state| state.calls.take(self.number))?;
        let reply = reply.transpose().map_err(|failure| self.client.failed(failure))?;
        Ok(reply.map(|sample| Reply { sample, payload: PhantomData }))
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Drop for Pending<'_, Req, Rep> {
    fn drop(&mut self) {
        self.client.state.borrow_mut().calls.abandon(self.number);
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> fmt::Debug for Pending<'_, Req, Rep> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Pending").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A reply where its server wrote it: dereferences to the payload. Like a [`Sample`], it does not
/// change until its last clone is dropped; any thread may hold it, also after its client has gone.
pub struct Reply<Rep: Payload + ?Sized> {
    sample: Sample<[u8]>,
    payload: PhantomData<fn() -> PhantomData<Rep>>,
}

impl<Rep: Payload + ?Sized> Deref for Reply<Rep> {
    type Target = Rep::View;

    fn deref(&self) -> &Rep::View {
        let bytes = &self.sample.as_bytes()[offset::<Rep>()..];
        // SAFETY: `State::take_replies` has checked the length; a sample is aligned to 64, and what
        // follows the offset as `Rep` demands; any bytes are a value of it; nobody writes to them while
        // the sample lives.
        unsafe { &*Rep::view(bytes.as_ptr(), bytes.len()) }
    }
}

impl<Rep: Payload + ?Sized> Clone for Reply<Rep> {
    fn clone(&self) -> Self {
        Reply { sample: self.sample.clone(), payload: PhantomData }
    }
}

impl<Rep: Payload<View: fmt::Debug> + ?Sized> fmt::Debug for Reply<Rep> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Reply").field(&&**self).finish()
    }
}

/// Memory for a request: dereferences to its payload. Made by [`Client::loan`]. If it is dropped
/// instead of [sent](RequestLoan::send), it is discarded.
pub struct RequestLoan<'c, Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    client: &'c Client<Req, Rep>,
    loan: Loan<'c, RequestOf<Req, Rep>>,
}

impl<'c, Req: Payload + ?Sized, Rep: Payload + ?Sized> RequestLoan<'c, Req, Rep> {
    /// Sends it to the server, without a copy if it has more than 88 bytes.
    ///
    /// # Errors
    /// As for [`Client::send`].
    pub fn send(mut self) -> Result<Pending<'c, Req, Rep>, Error> {
        let client = self.client;
        let mut state = client.update()?;
        if state.calls.servers() == 0 {
            drop(state);
            return Err(client.no_server(Duration::ZERO));
        }
        let number = state.calls.begin().ok_or_else(|| Error::TooMany {
            topic: Some(client.service.clone()),
            what: "calls of one client without a reply",
            limit: CALLS_MAX as u64,
        })?;
        drop(state);
        let header = header_bytes([client.id, number]);
        self.loan.as_bytes_mut()[..HEADER_BYTES].copy_from_slice(&header);
        match self.loan.publish() {
            Ok(_) => Ok(Pending { client, number }),
            Err(error) => {
                client.state.borrow_mut().calls.withdraw(number);
                Err(error)
            }
        }
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Deref for RequestLoan<'_, Req, Rep> {
    type Target = Req::View;

    fn deref(&self) -> &Req::View {
        self.loan.memory().view::<Req>(offset::<Req>())
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> DerefMut for RequestLoan<'_, Req, Rep> {
    fn deref_mut(&mut self) -> &mut Req::View {
        self.loan.memory_mut().view_mut::<Req>(offset::<Req>())
    }
}

impl<Req: Payload<View: fmt::Debug> + ?Sized, Rep: Payload + ?Sized> fmt::Debug
    for RequestLoan<'_, Req, Rep>
{
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("RequestLoan").field(&&**self).finish()
    }
}

impl<Req: PlainData, Rep: Payload + ?Sized> Client<Req, Rep> {
    /// Memory for a request, in place: zeros, or bytes of an earlier request.
    ///
    /// # Errors
    /// As for [`Publisher::loan`](Publisher#method.loan).
    pub fn loan(&self) -> Result<RequestLoan<'_, Req, Rep>, Error> {
        self.loan_bytes(size_of::<Req>())
    }
}

impl<Req: PlainData, Rep: Payload + ?Sized> Client<[Req], Rep> {
    /// Memory for a request of `len` elements, in place: zeros, or bytes of an earlier request.
    ///
    /// # Errors
    /// As for [`Publisher::loan`](Publisher#method.loan).
    pub fn loan(&self, len: usize) -> Result<RequestLoan<'_, [Req], Rep>, Error> {
        self.loan_bytes(len.saturating_mul(size_of::<Req>()))
    }
}

impl<H: PlainData, Req: PlainData, Rep: Payload + ?Sized> Client<(H, [Req]), Rep> {
    /// Memory for a request of a header and `len` elements, in place: zeros, or bytes of an earlier
    /// request.
    ///
    /// # Errors
    /// As for [`Publisher::loan`](Publisher#method.loan).
    pub fn loan(&self, len: usize) -> Result<RequestLoan<'_, (H, [Req]), Rep>, Error> {
        self.loan_bytes(HeaderSlice::<H, Req>::bytes_of(len))
    }
}
