//! Requests and replies.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::callback::{Callback, call_with};
use crate::errors::{closed, exception, raised};
use crate::exclusive::{Exclusive, alone};
use crate::info::{Event, events};
use crate::memory::{Exports, Held, Memory};
use crate::node::{left, limit};
use crate::publisher::elements;
use crate::released::{Released, released};
use crate::signals::{Scope, Wakes};
use crate::subscriber::wait_of;
use crate::types::Carried;
use crate::{readable, writable};

type Server = myelin::Service<[u8], [u8]>;
type Asking = myelin::Client<[u8], [u8]>;
type Asked = myelin::Request<[u8], [u8]>;
type Filled = myelin::ReplyLoan<'static, [u8], [u8]>;

/// The server of a service: takes requests and replies to them. One thread at a time uses it.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Service {
    server: Exclusive<Server>,
    request: Arc<Carried>,
    reply: Arc<Carried>,
}

impl Service {
    pub fn new(service: Server, request: Arc<Carried>, reply: Arc<Carried>) -> Service {
        let wakes = Wakes::Interrupter(service.interrupter());
        Service { server: Exclusive::new(service, wakes, "service"), request, reply }
    }

    pub fn with<R>(&self, act: impl FnOnce(&mut Server) -> R) -> PyResult<R> {
        self.server.with(act)
    }

    /// For whoever calls a function with its requests; it is used up.
    pub fn hand_over(&self) -> PyResult<(Server, Arc<Carried>, Arc<Carried>)> {
        let server = self.server.take(self.server.lock()?)?;
        Ok((server, self.request.clone(), self.reply.clone()))
    }

    fn request(&self, asked: Asked) -> Option<Request> {
        Request::new(asked, &self.request, &self.reply)
    }
}

#[pymethods]
impl Service {
    /// The next request, if there is one. Never waits.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Request>> {
        loop {
            let taken = self.with(|service| released(py, || service.take()))?.map_err(raised)?;
            match taken.map(|asked| self.request(asked)) {
                None => return Ok(None),
                Some(Some(request)) => return Ok(Some(request)),
                Some(None) => {} // its client is told that there is no reply
            }
        }
    }

    /// Takes the next request; waits for it for `timeout` seconds at most (None: for ever). None if there is
    /// none by then, or if it was interrupted.
    #[pyo3(signature = (timeout=None))]
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Request>> {
        let limit = limit(timeout)?;
        let begun = Instant::now();
        loop {
            if let Some(request) = self.take(py)? {
                return Ok(Some(request));
            }
            let left = left(limit, begun);
            if left.is_zero() || self.server.take_interrupt() {
                return Ok(None);
            }
            let mut guard = self.server.lock()?;
            let service = guard.as_mut().ok_or_else(|| self.server.closed())?;
            let scope = Scope::enter(&self.server.wakes);
            py.check_signals()?;
            let waited = released(py, || service.wait(left));
            drop(scope);
            drop(guard);
            waited.map_err(raised)?;
            py.check_signals()?;
        }
    }

    /// Ends the `receive` that is under way in another thread, or else the next one.
    fn interrupt(&self) -> PyResult<()> {
        self.server.interrupt()
    }

    /// From now on calls `function` with every request, until what is returned is closed. The service
    /// itself is used up.
    fn on_request(&self, py: Python<'_>, function: Py<PyAny>) -> PyResult<Py<Callback>> {
        let (service, request, reply) = self.hand_over()?;
        let call = move |asked: Asked| {
            if let Some(asked) = Request::new(asked, &request, &reply) {
                call_with(&function, |_| Ok(asked));
            }
        };
        Callback::of(py, released(py, || service.on_request(call)).map_err(raised)?)
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

    /// What has happened to its matches with clients since the last call.
    fn events(&self) -> PyResult<Vec<Event>> {
        Ok(events(self.with(|service| service.events())?))
    }

    /// Ends it, and a wait that is under way in another thread.
    fn close(&self, py: Python<'_>) {
        self.server.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }
}

/// What a client asks: a read-only buffer. Any thread may reply, at once or later. Dropped without a reply,
/// its client gets a `NoReply`.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Request(Held<Arc<Asked>>, Arc<Carried>);

impl Memory for Arc<Asked> {
    const IS_WRITABLE: bool = false;
    const ENDS_AT_ONCE: bool = false;

    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.as_ptr().cast_mut(), self.len())
    }
}

impl Exports for Request {
    type Of = Arc<Asked>;

    fn held(&self) -> &Held<Self::Of> {
        &self.0
    }
}

impl Request {
    /// `None` if it has a length that its type has not: a faulty client's.
    pub fn new(asked: Asked, request: &Arc<Carried>, reply: &Arc<Carried>) -> Option<Request> {
        let fits = request.of_type().told.fits(asked.len());
        fits.then(|| Request(Held::new(Arc::new(asked), request.clone()), reply.clone()))
    }
}

readable!(Request);

#[pymethods]
impl Request {
    /// Replies with a copy of `value`.
    fn reply(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = self.1.pack(value)?;
        let asked = self.0.with(|asked| asked.clone())?;
        let (from, length) = (bytes.pointer(), bytes.length());
        let sent = released(py, move || {
            let mut loan = asked.loan(length)?;
            // SAFETY: so many bytes lie there, held by the view; the loan is ours and as long.
            unsafe { from.copy_to_nonoverlapping(loan.as_mut_ptr(), length) };
            loan.send()
        });
        sent.map_err(raised)
    }

    /// Memory for the reply, in place: a number of elements, or a shape of them, or nothing for one value.
    #[pyo3(signature = (*shape))]
    fn loan(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<ReplyLoan> {
        let bytes = self.1.of_type().bytes_of(elements(shape)?)?;
        let asked = self.0.with(|asked| asked.clone())?;
        let filling = released(py, || Filling::new(asked, bytes)).map_err(raised)?;
        Ok(ReplyLoan(Held::new(filling, self.1.clone())))
    }

    /// The endpoint id of the client's publisher, as in events.
    #[getter]
    fn client(&self) -> PyResult<u64> {
        self.0.with(|asked| asked.client())
    }

    /// Lets go of it; without a reply, its client gets a `NoReply`.
    fn release(&self) {
        self.0.release("released");
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.release();
    }
}

/// Memory for a reply: a writable buffer. `send` it; else it is discarded.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct ReplyLoan(Held<Filling>);

/// A loan that keeps the request that it borrows.
pub struct Filling {
    loan: ManuallyDrop<Filled>,
    asked: Arc<Asked>,
}

// SAFETY: a loan of a shared publisher is exclusive memory, and the request it borrows may be shared.
unsafe impl Send for Filling {}

impl Filling {
    fn new(asked: Arc<Asked>, bytes: usize) -> Result<Filling, myelin::Error> {
        let loan = asked.loan(bytes)?;
        // SAFETY: the request lies behind an `Arc` that outlives the loan (`drop`, `send`).
        let loan =
            unsafe { std::mem::transmute::<myelin::ReplyLoan<'_, [u8], [u8]>, Filled>(loan) };
        Ok(Filling { loan: ManuallyDrop::new(loan), asked })
    }

    fn send(self) -> Result<(), myelin::Error> {
        let mut filling = ManuallyDrop::new(self);
        // SAFETY: `filling` is not dropped, so both are taken once; the request goes last.
        let (loan, asked) = unsafe {
            (ManuallyDrop::take(&mut filling.loan), std::ptr::read(&raw const filling.asked))
        };
        let sent = loan.send();
        drop(asked);
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
    /// Sends it to the client, as it is.
    fn send(&self, py: Python<'_>) -> PyResult<()> {
        let filling = self.0.take("sent")?;
        released(py, || filling.send()).map_err(raised)
    }
}

/// A client of a service. One thread at a time uses it, with its calls.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Client {
    inner: Mutex<Option<Released<Calls>>>,
    /// Those that nobody waits for any more, while another thread was in the client.
    abandoned: Mutex<Vec<u64>>,
    wakes: Wakes,
    request: Arc<Carried>,
    reply: Arc<Carried>,
}

/// A client and the calls that are under way, by number.
struct Calls {
    pending: HashMap<u64, myelin::Pending<'static, [u8], [u8]>>,
    number: u64,
    /// In a box, and last, for the calls borrow from it.
    client: Box<Asking>,
}

// SAFETY: the calls borrow from the client beside them, and go where it goes.
unsafe impl Send for Calls {}

impl Client {
    pub fn new(client: Asking, request: Arc<Carried>, reply: Arc<Carried>) -> Client {
        let wakes = Wakes::Interrupter(client.interrupter());
        let calls = Calls { pending: HashMap::new(), number: 0, client: Box::new(client) };
        let inner = Mutex::new(Some(Released::new(calls)));
        Client { inner, abandoned: Mutex::default(), wakes, request, reply }
    }

    fn with_calls<R>(&self, act: impl FnOnce(&mut Calls) -> PyResult<R>) -> PyResult<R> {
        let mut guard = alone(&self.inner, "client")?;
        let calls = guard.as_mut().ok_or_else(|| closed("client"))?;
        for number in self.abandoned().drain(..) {
            calls.pending.remove(&number);
        }
        act(calls)
    }

    fn with<R>(&self, act: impl FnOnce(&Asking) -> PyResult<R>) -> PyResult<R> {
        self.with_calls(|calls| act(&calls.client))
    }

    fn abandoned(&self) -> MutexGuard<'_, Vec<u64>> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abandon(&self, number: u64) {
        match self.inner.try_lock() {
            Ok(mut guard) => drop(guard.as_mut().and_then(|calls| calls.pending.remove(&number))),
            Err(_) => self.abandoned().push(number),
        }
    }

    /// What a call waits for, for `limit` at most; then, or if there will be none, the call is over.
    fn reply(&self, py: Python<'_>, number: u64, limit: Duration) -> PyResult<Option<Reply>> {
        let got = self.with_calls(|calls| {
            let Calls { pending, client, .. } = calls;
            let call = pending.get_mut(&number).ok_or_else(|| closed("call"))?;
            let got = self.until(py, client, limit, || call.take());
            if !matches!(got, Ok(None)) {
                pending.remove(&number);
            }
            got
        })?;
        got.map(|reply| self.checked(reply)).transpose()
    }

    fn checked(&self, reply: myelin::Reply<[u8]>) -> PyResult<Reply> {
        if !self.reply.of_type().told.fits(reply.len()) {
            let message = "a reply's length does not fit its type; look at the server";
            return Err(exception("PeerCorrupt", message.to_string()));
        }
        Ok(Reply(Held::new(reply, self.reply.clone())))
    }

    /// Waits until `find` finds something, for `limit` at most.
    fn until<R>(
        &self,
        py: Python<'_>,
        client: &Asking,
        limit: Duration,
        mut find: impl FnMut() -> Result<Option<R>, myelin::Error>,
    ) -> PyResult<Option<R>> {
        let begun = Instant::now();
        loop {
            let found = released(py, &mut find).map_err(raised)?;
            let left = left(limit, begun);
            if found.is_some() || left.is_zero() {
                return Ok(found);
            }
            let scope = Scope::enter(&self.wakes);
            py.check_signals()?;
            let waited = released(py, || client.wait(left));
            drop(scope);
            waited.map_err(raised)?;
            py.check_signals()?;
        }
    }
}

#[pymethods]
impl Client {
    /// Sends a copy of `value` and waits for the reply, for `timeout` seconds at most (None: for ever), in
    /// which time the server may yet come.
    #[pyo3(signature = (value, timeout=None))]
    fn call(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Reply> {
        let limit = limit(timeout)?;
        let bytes = self.request.pack(value)?;
        // SAFETY: so many bytes lie there, held by the view; whoever writes to them meanwhile has a torn
        // copy sent, as with any copy of Python's.
        let request = unsafe { std::slice::from_raw_parts(bytes.pointer(), bytes.length()) };
        let begun = Instant::now();
        let reply = self.with(|client| {
            let is_there = || client.wait_for_service(Duration::ZERO).map(|is| is.then_some(()));
            if self.until(py, client, limit, is_there)?.is_none() {
                // It knows the reason.
                return released(py, || client.call(request, Duration::ZERO)).map_err(raised);
            }
            let mut pending = released(py, || client.send(request)).map_err(raised)?;
            let got = self.until(py, client, left(limit, begun), || pending.take())?;
            got.ok_or_else(|| {
                let waited = limit.as_secs_f64();
                exception(
                    "ReplyTimeout",
                    format!(
                        "no reply within {waited} s; the server is slow or stopped: allow more time, or \
                         look at it"
                    ),
                )
            })
        })?;
        self.checked(reply)
    }

    /// Sends a copy of `value` and does not wait: the reply comes to what is returned. Up to 64 calls may be
    /// out at once.
    fn send(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let client = slf.get();
        let bytes = client.request.pack(value)?;
        // SAFETY: as in `call`.
        let request = unsafe { std::slice::from_raw_parts(bytes.pointer(), bytes.length()) };
        let number = client.with_calls(|calls| {
            // SAFETY: the client lies in a box that outlives the calls, its neighbours.
            let asking: &'static Asking = unsafe { &*std::ptr::from_ref(&*calls.client) };
            let pending = released(slf.py(), || asking.send(request)).map_err(raised)?;
            calls.number += 1;
            calls.pending.insert(calls.number, pending);
            Ok(calls.number)
        })?;
        Ok(Pending { client: slf.clone().unbind(), number })
    }

    /// Waits until there is a server, for `timeout` seconds at most (None: for ever).
    #[pyo3(signature = (timeout=None))]
    fn wait_for_service(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = limit(timeout)?;
        self.with(|client| {
            let is_there = || client.wait_for_service(Duration::ZERO).map(|is| is.then_some(()));
            Ok(self.until(py, client, limit, is_there)?.is_some())
        })
    }

    /// How many servers there are now: more than one is a mistake.
    #[getter]
    fn servers(&self) -> PyResult<usize> {
        self.with(|client| Ok(client.servers()))
    }

    /// Replies that came after their call's time limit.
    #[getter]
    fn late(&self) -> PyResult<u64> {
        self.with(|client| Ok(client.late()))
    }

    /// How it waits: `adaptive`, `block`, `poll`, `predictive`.
    #[pyo3(signature = (how, *, cpu_permille=None))]
    fn set_wait(&self, how: &str, cpu_permille: Option<u16>) -> PyResult<()> {
        let wait = wait_of(how, cpu_permille)?;
        self.with(|client| {
            client.set_wait(wait);
            Ok(())
        })
    }

    /// What has happened to its matches with servers since the last call.
    fn events(&self) -> PyResult<Vec<Event>> {
        self.with(|client| Ok(events(client.events())))
    }

    /// Ends it. Replies that are held stay.
    fn close(&self) -> PyResult<()> {
        let inner = alone(&self.inner, "client")?.take();
        drop(inner);
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) -> PyResult<()> {
        self.close()
    }
}

/// A reply that is still to come. Left to itself, the call goes on at the server, and its reply is dropped.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Pending {
    client: Py<Client>,
    number: u64,
}

#[pymethods]
impl Pending {
    /// The reply, if it is there; once. Never waits.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Reply>> {
        self.client.get().reply(py, self.number, Duration::ZERO)
    }

    /// Waits for the reply, for `timeout` seconds at most (None: for ever). None if it is not there by
    /// then: it can be waited for again.
    #[pyo3(signature = (timeout=None))]
    fn receive(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Reply>> {
        self.client.get().reply(py, self.number, limit(timeout)?)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.client.get().abandon(self.number);
    }
}

/// What a server has replied, where it was written: a read-only buffer.
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
    /// Lets go of the memory now; of what is viewed, with the last view.
    fn release(&self) {
        self.0.release("released");
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.release();
    }
}
