//! Requests and replies.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use myelin::cancel;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};

use crate::call::{Target, call, call_until_closed, wait_until_closed};
use crate::callback::{Callback, call_with};
use crate::errors::{closed, exception};
use crate::exclusive::{Exclusive, Used};
use crate::info::{Event, events};
use crate::memory::{Exports, Held, Memory};
use crate::node::{left, limit};
use crate::publisher::elements;
use crate::subscriber::wait_of;
use crate::types::Carried;
use crate::{readable, writable};

type Server = myelin::Service<[u8], [u8]>;
type RawClient = myelin::Client<[u8], [u8]>;
type RawRequest = myelin::Request<[u8], [u8]>;
type Filled = myelin::ReplyLoan<'static, [u8], [u8]>;

/// The server of a service: takes requests and replies to them. One thread at a time uses it.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Service {
    server: Exclusive<Server>,
    is_interrupted: AtomicBool,
    request: Arc<Carried>,
    reply: Arc<Carried>,
}

impl Service {
    pub fn new(service: Server, request: Arc<Carried>, reply: Arc<Carried>) -> Service {
        let interrupter = service.interrupter();
        let server = Exclusive::new(service, interrupter, "service");
        Service { server, is_interrupted: AtomicBool::new(false), request, reply }
    }

    pub fn with<R>(&self, act: impl FnOnce(&mut Server) -> R) -> PyResult<R> {
        self.server.with(act)
    }

    /// Gives the service to a caller of functions; it is used up.
    pub fn hand_over(&self) -> PyResult<(Server, Arc<Carried>, Arc<Carried>)> {
        Ok((self.server.lock()?.take(), self.request.clone(), self.reply.clone()))
    }

    fn received(&self, py: Python<'_>, limit: Duration) -> PyResult<Option<Request>> {
        let begun = Instant::now();
        let received = self.server.wait(py, |service| {
            loop {
                while let Some(received) = service.take()? {
                    if self.request.of_type().dynamic_type.fits(received.len()) {
                        return Ok(Some(received));
                    } // if its length is wrong, its client gets an error
                }
                let left = left(limit, begun);
                if left.is_zero() {
                    return Ok(None);
                }
                // It also ends for clients that come and go.
                service.wait(left)?;
                if self.is_interrupted.swap(false, Ordering::Relaxed) || cancel::is_cancelled() {
                    return service.take();
                }
            }
        })?;
        Ok(received.and_then(|received| Request::new(received, &self.request, &self.reply)))
    }
}

#[pymethods]
impl Service {
    /// The next request, if there is one. Never waits.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Request>> {
        self.received(py, Duration::ZERO)
    }

    /// Takes the next request; waits for it for at most `timeout` seconds (None: for ever). None if
    /// the time is over, or if it was interrupted.
    #[pyo3(signature = (timeout=None))]
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Request>> {
        self.received(py, limit(timeout)?)
    }

    /// Ends the running `receive` in another thread, or else the next one.
    fn interrupt(&self) -> PyResult<()> {
        self.is_interrupted.store(true, Ordering::Relaxed);
        self.server.interrupt()
    }

    /// Calls `function` with every request from now on, until the returned callback is closed. The
    /// service itself is used up.
    fn on_request(&self, py: Python<'_>, function: Py<PyAny>) -> PyResult<Py<Callback>> {
        let (service, request, reply) = self.hand_over()?;
        Callback::of(py, function, |function| {
            service.on_request(move |received: RawRequest| {
                if let Some(received) = Request::new(received, &request, &reply) {
                    call_with(&function, received);
                }
            })
        })
    }

    /// How many clients there are now.
    #[getter]
    fn clients(&self) -> PyResult<usize> {
        self.with(|service| service.clients())
    }

    /// How it waits: `adaptive`, `block`, `poll`, `predictive`.
    #[pyo3(signature = (how, *, cpu_permille=None))]
    fn set_wait(&self, how: &str, cpu_permille: Option<u16>) -> PyResult<()> {
        let wait = wait_of(how, cpu_permille)?;
        self.with(|service| service.set_wait(wait))
    }

    /// The events of its matches with clients since the last call.
    fn events(&self) -> PyResult<Vec<Event>> {
        Ok(events(self.with(|service| service.events())?))
    }

    /// Closes it, and ends a running wait in any thread.
    fn close(&self) {
        self.server.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close();
    }
}

/// A client's request: a read-only buffer. Any thread may reply, at once or later. If it is dropped
/// without a reply, its client gets a `NoReply`.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Request(Held<Arc<RawRequest>>, Arc<Carried>);

impl Memory for Arc<RawRequest> {
    const IS_WRITABLE: bool = false;
    const ENDS_AT_ONCE: bool = false;

    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.as_ptr().cast_mut(), self.len())
    }
}

impl Exports for Request {
    type Of = Arc<RawRequest>;

    fn held(&self) -> &Held<Self::Of> {
        &self.0
    }
}

impl Request {
    /// `None` if its length does not fit its type: a faulty client sent it.
    pub fn new(
        received: RawRequest,
        request: &Arc<Carried>,
        reply: &Arc<Carried>,
    ) -> Option<Request> {
        let fits = request.of_type().dynamic_type.fits(received.len());
        fits.then(|| Request(Held::new(Arc::new(received), request.clone()), reply.clone()))
    }
}

readable!(Request);

#[pymethods]
impl Request {
    /// Replies with a copy of `value`.
    fn reply(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = self.1.pack(value)?;
        let received = self.0.with(|received| received.clone())?;
        let (from, length) = (bytes.pointer(), bytes.length());
        call(py, move || {
            let mut loan = received.loan(length)?;
            // SAFETY: so many bytes lie there, held by the view; the loan is ours and as long.
            unsafe { from.copy_to_nonoverlapping(loan.as_mut_ptr(), length) };
            loan.send()
        })
    }

    /// Memory for the reply, in place: give a number of elements, or their shape, or nothing for
    /// one value.
    #[pyo3(signature = (*shape))]
    fn loan(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<ReplyLoan> {
        let bytes = self.1.of_type().bytes_of(elements(shape)?)?;
        let received = self.0.with(|received| received.clone())?;
        let filling = call(py, || Filling::new(received, bytes))?;
        Ok(ReplyLoan(Held::new(filling, self.1.clone())))
    }

    /// The endpoint id of the client's publisher, as in events.
    #[getter]
    fn client(&self) -> PyResult<u64> {
        self.0.with(|received| received.client())
    }

    /// Releases it; without a reply, its client gets a `NoReply`.
    fn release(&self) {
        self.0.release("released");
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.release();
    }
}

/// Memory for a reply: a writable buffer. `send` it; otherwise it is discarded.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct ReplyLoan(Held<Filling>);

/// A loan that keeps the request that it borrows.
pub struct Filling {
    loan: ManuallyDrop<Filled>,
    received: Arc<RawRequest>,
}

// SAFETY: a loan of a shared publisher is exclusive memory, and the request it borrows may be
// shared.
unsafe impl Send for Filling {}

impl Filling {
    fn new(received: Arc<RawRequest>, bytes: usize) -> Result<Filling, myelin::Error> {
        let loan = received.loan(bytes)?;
        // SAFETY: the request lies behind an `Arc` that outlives the loan (`drop`, `send`).
        let loan =
            unsafe { std::mem::transmute::<myelin::ReplyLoan<'_, [u8], [u8]>, Filled>(loan) };
        Ok(Filling { loan: ManuallyDrop::new(loan), received })
    }

    fn send(self) -> Result<(), myelin::Error> {
        let mut filling = ManuallyDrop::new(self);
        // SAFETY: `filling` is not dropped, so both are taken once; the request goes last.
        let (loan, received) = unsafe {
            (ManuallyDrop::take(&mut filling.loan), std::ptr::read(&raw const filling.received))
        };
        let sent = loan.send();
        drop(received);
        sent
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        // SAFETY: once; the request is a field and goes after it.
        unsafe { ManuallyDrop::drop(&mut self.loan) };
    }
}

impl Memory for Filling {
    const IS_WRITABLE: bool = true;
    const ENDS_AT_ONCE: bool = false;

    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.loan.as_mut_ptr(), self.loan.len())
    }
}

impl Exports for ReplyLoan {
    type Of = Filling;

    fn held(&self) -> &Held<Self::Of> {
        &self.0
    }
}

readable!(ReplyLoan);
writable!(ReplyLoan);

#[pymethods]
impl ReplyLoan {
    /// Sends it to the client, without a copy.
    fn send(&self, py: Python<'_>) -> PyResult<()> {
        let filling = self.0.take("sent")?;
        call(py, || filling.send())
    }
}

/// A client of a service. One thread at a time uses it, with its calls.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Client {
    calls: Exclusive<Calls>,
    /// Calls that were abandoned while another thread used the client.
    abandoned: Mutex<Vec<u64>>,
    request: Arc<Carried>,
    reply: Arc<Carried>,
}

/// A client and its open calls, by number.
struct Calls {
    pending: HashMap<u64, myelin::Pending<'static, [u8], [u8]>>,
    number: u64,
    /// In a box, and last, because the calls borrow from it.
    client: Box<RawClient>,
}

// SAFETY: the calls borrow from the client beside them, and move with it.
unsafe impl Send for Calls {}

impl Client {
    pub fn new(client: RawClient, request: Arc<Carried>, reply: Arc<Carried>) -> Client {
        let interrupter = client.interrupter();
        let calls = Calls { pending: HashMap::new(), number: 0, client: Box::new(client) };
        let calls = Exclusive::new(calls, interrupter, "client");
        Client { calls, abandoned: Mutex::default(), request, reply }
    }

    fn lock(&self) -> PyResult<Used<'_, Calls>> {
        let mut calls = self.calls.lock()?;
        for number in self.abandoned().drain(..) {
            calls.pending.remove(&number);
        }
        Ok(calls)
    }

    fn with<R>(&self, act: impl FnOnce(&RawClient) -> R) -> PyResult<R> {
        Ok(act(&self.lock()?.client))
    }

    fn abandoned(&self) -> MutexGuard<'_, Vec<u64>> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abandon(&self, number: u64) {
        if self.calls.with(|calls| calls.pending.remove(&number)).is_err() {
            self.abandoned().push(number);
        }
    }

    /// The reply to a call, after a wait of at most `limit`. The call ends with a reply or an
    /// error.
    fn reply(&self, py: Python<'_>, number: u64, limit: Duration) -> PyResult<Option<Reply>> {
        let mut calls = self.lock()?;
        let pending = &mut calls.pending;
        let call = pending.get_mut(&number).ok_or_else(|| closed("call"))?;
        let mut is_over = true;
        let got = wait_until_closed(py, &self.calls.target(), || {
            let got = call.receive(limit);
            is_over = !matches!(got, Ok(None));
            got
        });
        if is_over {
            pending.remove(&number);
        }
        drop(calls);
        got?.map(|reply| self.checked(reply)).transpose()
    }

    fn checked(&self, reply: myelin::Reply<[u8]>) -> PyResult<Reply> {
        if !self.reply.of_type().dynamic_type.fits(reply.len()) {
            let message = "a reply's length does not fit its type; look at the server";
            return Err(exception("PeerCorrupt", message.to_string()));
        }
        Ok(Reply(Held::new(reply, self.reply.clone())))
    }
}

#[pymethods]
impl Client {
    /// Sends a copy of `value` and waits for the reply, for at most `timeout` seconds (None: for
    /// ever). The server may also start within this time.
    #[pyo3(signature = (value, timeout=None))]
    fn call(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Reply> {
        let limit = limit(timeout)?;
        let bytes = self.request.pack(value)?;
        // SAFETY: so many bytes lie there, held by the view. If another thread writes to them
        // meanwhile, a torn copy is sent, like any copy in Python.
        let request = unsafe { std::slice::from_raw_parts(bytes.pointer(), bytes.length()) };
        let calls = self.lock()?;
        let client = &*calls.client;
        let reply = call_until_closed(py, &self.calls.target(), || client.call(request, limit))?;
        drop(calls);
        self.checked(reply)
    }

    /// Sends a copy of `value` and does not wait: the returned object gets the reply. Up to 64
    /// calls may be open at once.
    fn send(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let client = slf.get();
        let bytes = client.request.pack(value)?;
        // SAFETY: as in `call`.
        let request = unsafe { std::slice::from_raw_parts(bytes.pointer(), bytes.length()) };
        let mut calls = client.lock()?;
        // SAFETY: the client lies in a box that outlives the calls, its neighbours.
        let asking: &'static RawClient = unsafe { &*std::ptr::from_ref(&*calls.client) };
        let target = Target { is_woken: false, ..client.calls.target() };
        let pending = call_until_closed(slf.py(), &target, || asking.send(request))?;
        calls.number += 1;
        let number = calls.number;
        calls.pending.insert(number, pending);
        drop(calls);
        Ok(Pending { client: slf.clone().unbind(), number })
    }

    /// Waits until there is a server, for at most `timeout` seconds (None: for ever).
    #[pyo3(signature = (timeout=None))]
    fn wait_for_service(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = limit(timeout)?;
        let calls = self.lock()?;
        let client = &*calls.client;
        let is_there = wait_until_closed(py, &self.calls.target(), || {
            client.wait_for_service(limit).map(|is_there| is_there.then_some(()))
        })?;
        Ok(is_there.is_some())
    }

    /// How many servers there are now: more than one is a mistake.
    #[getter]
    fn servers(&self) -> PyResult<usize> {
        self.with(RawClient::servers)
    }

    /// How many replies came after their call's time limit.
    #[getter]
    fn late(&self) -> PyResult<u64> {
        self.with(RawClient::late)
    }

    /// How it waits: `adaptive`, `block`, `poll`, `predictive`.
    #[pyo3(signature = (how, *, cpu_permille=None))]
    fn set_wait(&self, how: &str, cpu_permille: Option<u16>) -> PyResult<()> {
        let wait = wait_of(how, cpu_permille)?;
        self.with(|client| client.set_wait(wait))
    }

    /// The events of its matches with servers since the last call.
    fn events(&self) -> PyResult<Vec<Event>> {
        Ok(events(self.with(RawClient::events)?))
    }

    /// Closes it, and ends a running call in any thread. Replies that are held stay valid.
    fn close(&self) {
        self.calls.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close();
    }
}

/// A reply that is still to come. If it is dropped, the call goes on at the server, and its reply
/// is dropped.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Pending {
    client: Py<Client>,
    number: u64,
}

#[pymethods]
impl Pending {
    /// The reply, if it has come; once. Never waits.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Reply>> {
        self.client.get().reply(py, self.number, Duration::ZERO)
    }

    /// Waits for the reply, for at most `timeout` seconds (None: for ever). None if the time is
    /// over: you can wait again.
    #[pyo3(signature = (timeout=None))]
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Reply>> {
        self.client.get().reply(py, self.number, limit(timeout)?)
    }
}

#[pymethods]
impl Pending {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.client.get().abandon(self.number);
    }
}

/// A reply where its server wrote it: a read-only buffer.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Reply(Held<myelin::Reply<[u8]>>);

impl Memory for myelin::Reply<[u8]> {
    const IS_WRITABLE: bool = false;
    const ENDS_AT_ONCE: bool = true;

    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.as_ptr().cast_mut(), self.len())
    }
}

impl Exports for Reply {
    type Of = myelin::Reply<[u8]>;

    fn held(&self) -> &Held<Self::Of> {
        &self.0
    }
}

readable!(Reply);

#[pymethods]
impl Reply {
    /// Releases the memory now; if it is viewed, with the last view.
    fn release(&self) {
        self.0.release("released");
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.release();
    }
}
