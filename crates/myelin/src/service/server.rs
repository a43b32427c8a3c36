//! The server's side of a service: it takes requests where they were written; each knows its
//! client.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::events::{Events, Gone};
use super::wire::{
    HEADER_BYTES, HELLO, NO_REPLY, REPLIED, ReplyOf, RequestOf, has_payload, header, header_bytes,
    offset,
};
use super::{ServiceTypes, TAKEN_MAX, publisher, replies_of, requests_of, subscriber};
use crate::callback::Callback;
use crate::executor::ExecutorHandle;
use crate::header_slice::HeaderSlice;
use crate::node::Node;
use crate::payload::Payload;
use crate::plain_data::PlainData;
use crate::sample::Sample;
use crate::shared_publisher::{SharedLoan, SharedPublisher};
use crate::subscriber::{Interrupter, Subscriber, until_ns};
use crate::wait_set::{Key, WaitSetHandle};
use crate::{EndpointId, Error, Event, Wait, cancel, clock};

/// The server of a service: takes requests and replies to them. Made by
/// [`Node::service`](crate::Node::service).
///
/// It is used like a [`Subscriber`] of requests: poll it ([`take`](Service::take)), wait for
/// requests ([`receive`](Service::receive)), set a callback ([`on_request`](Service::on_request)),
/// or add it to a wait set ([`WaitSetHandle::add_service`]) or an executor
/// ([`ExecutorHandle::on_request`]). One thread at a time uses it. Any thread may reply to the
/// requests that it has returned, in any order.
///
/// A service has one server. If there are two, as in ROS 2, each gets every request, and the first
/// reply counts. A client that leaves or dies costs the server nothing; at most
/// [`SERVICE_CLIENTS_MAX`](crate::SERVICE_CLIENTS_MAX) clients can exist at once.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let mut service = node.service::<[f64; 2], [[f64; 2]]>("plan")?;
/// # let client_node = node.clone();
/// # let client = std::thread::spawn(move || -> Result<usize, myelin::Error> {
/// #     let client = client_node.client::<[f64; 2], [[f64; 2]]>("plan")?;
/// #     Ok(client.call(&[3.0, 4.0], Duration::from_secs(60))?.len())
/// # });
/// if let Some(request) = service.receive(Duration::from_secs(60))? {
///     let [x, y] = *request;
///     let mut path = request.loan(100)?; // the reply, in place
///     for (step, point) in path.iter_mut().enumerate() {
///         let part = step as f64 / 99.0;
///         *point = [x * part, y * part];
///     }
///     path.send()?;
/// }
/// # assert_eq!(client.join().unwrap()?, 100);
/// # Ok(()) }
/// ```
pub struct Service<Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    requests: Subscriber<RequestOf<Req, Rep>>,
    clients: Clients<Req, Rep>,
}

/// The clients that have sent a hello, each with the publisher of its replies.
struct Clients<Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    node: Node,
    service: String,
    types: Option<ServiceTypes>,
    events: Events,
    open: Vec<(EndpointId, ReplyChannel<Req, Rep>)>,
}

/// The publisher of the replies to one client.
struct ReplyChannel<Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    publisher: SharedPublisher<ReplyOf<Req, Rep>>,
    /// Whether the client is or was matched.
    has_met: Arc<AtomicBool>,
    client: EndpointId,
    gone: Gone,
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> ReplyChannel<Req, Rep> {
    fn open(clients: &Clients<Req, Rep>, client: EndpointId, replies: &str) -> Result<Self, Error> {
        let types = clients.types.as_ref().map(|types| &types.replies);
        let publisher = publisher::<ReplyOf<Req, Rep>>(&clients.node, replies, types)?;
        let has_met = Arc::new(AtomicBool::new(false));
        let met = has_met.clone();
        publisher.handle().on_event(Box::new(move |event| {
            // ORDER: Relaxed: the publisher itself orders the match.
            met.fetch_or(matches!(event, Event::Matched { .. }), Ordering::Relaxed);
        }));
        has_met.fetch_or(publisher.matched() > 0, Ordering::Relaxed);
        let gone = clients.events.gone().clone();
        Ok(ReplyChannel { publisher: publisher.shared(), has_met, client, gone })
    }

    fn send(&self, loan: SharedLoan<ReplyOf<Req, Rep>>) -> Result<(), Error> {
        // Most clients are matched when they send a request; one whose first message is a request
        // may not be yet.
        let until_ns = clock::now().saturating_add(MATCH_LIMIT.as_nanos() as u64);
        while !self.has_met.load(Ordering::Relaxed) && !self.publisher.wait_for_match(1, MATCH_LOOK)
        {
            if self.gone.contains(self.client) || clock::now() >= until_ns {
                return Ok(()); // it went before it was matched
            }
        }
        loan.publish().map(|_| ())
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Clone for ReplyChannel<Req, Rep> {
    fn clone(&self) -> Self {
        let ReplyChannel { publisher, has_met, client, gone } = self;
        let (publisher, has_met) = (publisher.clone(), has_met.clone());
        ReplyChannel { publisher, has_met, client: *client, gone: gone.clone() }
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Service<Req, Rep> {
    pub(crate) fn create(
        node: &Node,
        service: &str,
        types: Option<&ServiceTypes>,
    ) -> Result<Self, Error> {
        let requests_type = types.map(|types| &types.requests);
        let requests =
            subscriber::<RequestOf<Req, Rep>>(node, &requests_of(service)?, requests_type)?;
        let events = Events::new(requests.handle(), requests.reader().shared());
        let (node, service, types) = (node.clone(), service.to_string(), types.cloned());
        Ok(Service {
            requests,
            clients: Clients { node, service, types, events, open: Vec::new() },
        })
    }

    /// The next request, if there is one. Never waits. If a client sends endless other messages, it
    /// skips a few hundred of them and returns `None`; the next call finds what follows them.
    ///
    /// # Errors
    /// As for [`Subscriber::take`]. Errors of memory or of the limit of open files at the first
    /// request of a client: that request is lost, and its client gets no error.
    pub fn take(&mut self) -> Result<Option<Request<Req, Rep>>, Error> {
        for _ in 0..TAKEN_MAX {
            let Some(sample) = self.requests.take()? else { break };
            if let Some(request) = self.clients.request(sample)? {
                return Ok(Some(request));
            }
        }
        self.clients.update();
        Ok(None)
    }

    /// Takes the next request; waits for it for at most `limit` (`Duration::MAX`: for ever).
    ///
    /// # Errors
    /// As for [`take`](Service::take).
    pub fn receive(&mut self, limit: Duration) -> Result<Option<Request<Req, Rep>>, Error> {
        let until_ns = until_ns(limit);
        loop {
            if let Some(request) = self.take()? {
                return Ok(Some(request));
            }
            let left = left(until_ns);
            if left.is_zero() {
                return Ok(None);
            }
            if !self.requests.wait(left)? && cancel::is_cancelled() {
                return Ok(None);
            }
        }
    }

    /// Waits until there is a request to take, for at most `limit`. It may also end, with false,
    /// because clients come or go, or because it is [interrupted](Service::interrupter).
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn wait(&mut self, limit: Duration) -> Result<bool, Error> {
        self.requests.wait(limit)
    }

    /// Ends a [`wait`](Service::wait) from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.requests.interrupter()
    }

    /// How [`receive`](Service::receive) and callbacks wait; by default [`Wait::Adaptive`].
    pub fn set_wait(&mut self, wait: Wait) {
        self.requests.set_wait(wait);
    }

    /// Calls `call` with every request from now on, until the returned handle is dropped: like
    /// [`Subscriber::on_sample`]. A client of this process runs it inside its own call, in its own
    /// thread. It may reply at once, or keep the request and reply later. If a call panics, the
    /// client gets [`Error::NoReply`].
    ///
    /// # Errors
    /// [`Error::System`] if no further thread can be started.
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # use std::time::Duration;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let service = node.service::<[u64; 2], u64>("add")?;
    /// let _serving = service.on_request(|request| {
    ///     let sum = request[0] + request[1];
    ///     if let Err(error) = request.reply(&sum) {
    ///         eprintln!("{error}");
    ///     }
    /// })?;
    /// let client = node.client::<[u64; 2], u64>("add")?;
    /// assert_eq!(*client.call(&[3, 4], Duration::from_secs(60))?, 7);
    /// # Ok(()) }
    /// ```
    pub fn on_request<F>(self, call: F) -> Result<Callback, Error>
    where
        F: FnMut(Request<Req, Rep>) + Send + 'static,
        Req: 'static,
        Rep: 'static,
    {
        let Service { requests, clients } = self;
        requests.on_sample(clients.caller(call))
    }

    /// How many clients there are now.
    pub fn clients(&self) -> usize {
        self.requests.matched()
    }

    /// The events of its matches with clients since the last call, oldest first. At most 1,024 are
    /// kept; beyond that the oldest are dropped.
    pub fn events(&mut self) -> Vec<Event> {
        self.clients.update();
        self.clients.events.take()
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Clients<Req, Rep> {
    /// The request in a message; `None` if the message is only a hello.
    fn request(
        &mut self,
        sample: Sample<RequestOf<Req, Rep>>,
    ) -> Result<Option<Request<Req, Rep>>, Error> {
        self.update();
        if self.events.gone().contains(sample.publisher()) {
            return Ok(None); // its client does not wait for a reply
        }
        let [client, number] = header(sample.as_bytes());
        let to = self.way_back(sample.publisher(), client)?;
        if number == HELLO {
            return Ok(None);
        }
        let bytes = sample.as_bytes().len();
        let fits = |types: &ServiceTypes| types.request.fits(bytes - offset::<Req>());
        let fits = has_payload::<Req>(bytes) && self.types.as_ref().is_none_or(fits);
        let request = Request { sample, to, number, replied: AtomicBool::new(false) };
        Ok(fits.then_some(request)) // if it is dropped, its client gets an error
    }

    fn way_back(
        &mut self,
        endpoint: EndpointId,
        client: u64,
    ) -> Result<ReplyChannel<Req, Rep>, Error> {
        if let Some((_, to)) = self.open.iter().find(|(known, _)| *known == endpoint) {
            return Ok(to.clone());
        }
        let to = ReplyChannel::open(self, endpoint, &replies_of(&self.service, client))?;
        self.open.push((endpoint, to.clone()));
        Ok(to)
    }

    /// Closes the publishers for clients that have gone.
    fn update(&mut self) {
        for event in self.events.fresh() {
            if let Event::Unmatched { endpoint, .. } = event {
                self.open.retain(|(known, _)| *known != endpoint);
            }
        }
    }

    /// A function for a callback: it calls `call` with each request.
    fn caller<F>(mut self, mut call: F) -> impl FnMut(&Sample<RequestOf<Req, Rep>>) + Send
    where
        F: FnMut(Request<Req, Rep>) + Send,
    {
        move |sample| {
            // Without memory for the topic of replies, the client waits as it would for a stopped
            // server.
            if let Ok(Some(request)) = self.request(sample.clone()) {
                call(request);
            }
        }
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> fmt::Debug for Service<Req, Rep> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = (Req::type_name(), Rep::type_name());
        let service = &self.clients.service;
        to.debug_struct("Service").field("name", service).field("types", &types).finish()
    }
}

impl WaitSetHandle {
    /// Watches a service, like a subscriber with [`add`](WaitSetHandle::add): it is ready while
    /// there is a request to take.
    ///
    /// # Errors
    /// As for [`add`](WaitSetHandle::add).
    pub fn add_service<Req, Rep>(&self, service: &Service<Req, Rep>) -> Result<Key, Error>
    where
        Req: Payload + ?Sized,
        Rep: Payload + ?Sized,
    {
        self.add(&service.requests)
    }
}

impl ExecutorHandle {
    /// Calls `call` with each request, like [`on_sample`](ExecutorHandle::on_sample) with samples.
    ///
    /// # Errors
    /// As for [`WaitSetHandle::add`].
    pub fn on_request<Req, Rep, F>(&self, service: Service<Req, Rep>, call: F) -> Result<Key, Error>
    where
        Req: Payload + ?Sized + 'static,
        Rep: Payload + ?Sized + 'static,
        F: FnMut(Request<Req, Rep>) + Send + 'static,
    {
        let Service { requests, clients } = service;
        self.on_sample(requests, clients.caller(call))
    }
}

/// A client's request where it was written: dereferences to the payload. Any thread may hold it and
/// reply, at once or later. If it is dropped without a reply, its client gets an
/// [`Error::NoReply`].
pub struct Request<Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    sample: Sample<RequestOf<Req, Rep>>,
    to: ReplyChannel<Req, Rep>,
    number: u64,
    replied: AtomicBool,
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Request<Req, Rep> {
    /// Replies with a copy of `reply`; for a large reply, [`loan`](Request::loan) its memory. It is
    /// not an error if the client has gone.
    ///
    /// # Errors
    /// As for [`Publisher::publish_copy`](crate::Publisher::publish_copy); [`Error::Setting`] if it
    /// already has a reply.
    pub fn reply(&self, reply: &Rep::View) -> Result<(), Error> {
        let payload = Rep::as_bytes(reply);
        let mut loan = self.loan_bytes(payload.len())?;
        loan.loan.as_bytes_mut()[offset::<Rep>()..].copy_from_slice(payload);
        loan.send()
    }

    /// The endpoint id of the client's publisher, as in [`Service::events`].
    pub fn client(&self) -> EndpointId {
        self.sample.publisher()
    }

    fn loan_bytes(&self, bytes: usize) -> Result<ReplyLoan<'_, Req, Rep>, Error> {
        let loan = self.to.publisher.loan_bytes(offset::<Rep>().saturating_add(bytes))?;
        Ok(ReplyLoan { request: self, loan })
    }

    /// Sends the only reply.
    fn send(&self, loan: SharedLoan<ReplyOf<Req, Rep>>) -> Result<(), Error> {
        // ORDER: Relaxed: it only decides which thread is first.
        if self.replied.swap(true, Ordering::Relaxed) {
            return Err(Error::Setting {
                topic: None,
                field: "a reply",
                value: "the second one".to_string(),
                remedy: "a request is replied to once",
            });
        }
        let sent = self.to.send(loan);
        if sent.is_err() {
            self.replied.store(false, Ordering::Relaxed);
        }
        sent
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Deref for Request<Req, Rep> {
    type Target = Req::View;

    fn deref(&self) -> &Req::View {
        let bytes = &self.sample.as_bytes()[offset::<Req>()..];
        // SAFETY: `Clients::request` has checked the length; a sample and the bytes behind the
        // offset are aligned as their type demands; any bytes are a value of `Req`; nobody writes
        // to them while the sample lives.
        unsafe { &*Req::view(bytes.as_ptr(), bytes.len()) }
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Drop for Request<Req, Rep> {
    fn drop(&mut self) {
        if !*self.replied.get_mut() {
            let none = self.to.publisher.loan_bytes(HEADER_BYTES).and_then(|mut loan| {
                loan.as_bytes_mut().copy_from_slice(&header_bytes([self.number, NO_REPLY]));
                self.to.send(loan)
            });
            drop(none); // without this message the client waits until its limit
        }
    }
}

impl<Req: Payload<View: fmt::Debug> + ?Sized, Rep: Payload + ?Sized> fmt::Debug
    for Request<Req, Rep>
{
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Request").field("number", &self.number).field("payload", &&**self).finish()
    }
}

/// Memory for a reply: dereferences to its payload. Made by [`Request::loan`]; any thread may fill
/// and [send](ReplyLoan::send) it. If it is dropped instead, it is discarded.
pub struct ReplyLoan<'r, Req: Payload + ?Sized, Rep: Payload + ?Sized> {
    request: &'r Request<Req, Rep>,
    loan: SharedLoan<ReplyOf<Req, Rep>>,
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> ReplyLoan<'_, Req, Rep> {
    /// Sends it to the client, without a copy if it has more than 88 bytes.
    ///
    /// # Errors
    /// As for [`Request::reply`].
    pub fn send(mut self) -> Result<(), Error> {
        let header = header_bytes([self.request.number, REPLIED]);
        self.loan.as_bytes_mut()[..HEADER_BYTES].copy_from_slice(&header);
        self.request.send(self.loan)
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Deref for ReplyLoan<'_, Req, Rep> {
    type Target = Rep::View;

    fn deref(&self) -> &Rep::View {
        self.loan.memory().view::<Rep>(offset::<Rep>())
    }
}

impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> DerefMut for ReplyLoan<'_, Req, Rep> {
    fn deref_mut(&mut self) -> &mut Rep::View {
        self.loan.memory_mut().view_mut::<Rep>(offset::<Rep>())
    }
}

impl<Req: Payload + ?Sized, Rep: Payload<View: fmt::Debug> + ?Sized> fmt::Debug
    for ReplyLoan<'_, Req, Rep>
{
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("ReplyLoan").field(&&**self).finish()
    }
}

impl<Req: Payload + ?Sized, Rep: PlainData> Request<Req, Rep> {
    /// Memory for the reply, in place: zeros, or bytes of an earlier reply.
    ///
    /// # Errors
    /// As for [`Publisher::loan`](crate::Publisher::loan).
    pub fn loan(&self) -> Result<ReplyLoan<'_, Req, Rep>, Error> {
        self.loan_bytes(size_of::<Rep>())
    }
}

impl<Req: Payload + ?Sized, Rep: PlainData> Request<Req, [Rep]> {
    /// Memory for a reply of `len` elements, in place: zeros, or bytes of an earlier reply.
    ///
    /// # Errors
    /// As for [`Publisher::loan`](crate::Publisher::loan).
    pub fn loan(&self, len: usize) -> Result<ReplyLoan<'_, Req, [Rep]>, Error> {
        self.loan_bytes(len.saturating_mul(size_of::<Rep>()))
    }
}

impl<Req: Payload + ?Sized, H: PlainData, Rep: PlainData> Request<Req, (H, [Rep])> {
    /// Memory for a reply of a header and `len` elements, in place: zeros, or bytes of an earlier
    /// reply.
    ///
    /// # Errors
    /// As for [`Publisher::loan`](crate::Publisher::loan).
    pub fn loan(&self, len: usize) -> Result<ReplyLoan<'_, Req, (H, [Rep])>, Error> {
        self.loan_bytes(HeaderSlice::<H, Rep>::bytes_of(len))
    }
}

/// The time left until `until_ns`, by the clock of [`clock::now`].
pub(super) fn left(until_ns: u64) -> Duration {
    match until_ns {
        u64::MAX => Duration::MAX,
        until_ns => Duration::from_nanos(until_ns.saturating_sub(clock::now())),
    }
}

/// How long a reply waits for its client to be matched, and how often it checks whether the client
/// has gone.
const MATCH_LIMIT: Duration = Duration::from_secs(1);
const MATCH_LOOK: Duration = Duration::from_millis(5);
