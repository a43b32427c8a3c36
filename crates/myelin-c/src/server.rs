//! Servers of services, and their requests.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

use myelin::{DynamicType, Interrupter, Node, ReplyLoan, Request, Service};

use crate::callback::{self, Context, myelin_callback};
use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::event::{Events, myelin_event};
use crate::node::{self, myelin_node};
use crate::payload::{self, myelin_payload};
use crate::publisher::{end, myelin_loan};
use crate::sized::{self, sized};
use crate::slots::Slots;
use crate::{handle, text};

/// The server of a service: takes requests. One thread at a time uses it; any thread may interrupt
/// it.
pub enum myelin_server {}

pub struct ServerHandle {
    service: UnsafeCell<Service<[u8], [u8]>>,
    events: RefCell<Events>,
    interrupter: Interrupter,
    types: Types,
}

/// The types of request and reply.
#[derive(Clone)]
pub struct Types {
    pub request: Arc<DynamicType>,
    pub reply: Arc<DynamicType>,
}

impl Types {
    /// # Safety
    /// As [`payload::dynamic_type`].
    pub unsafe fn read(
        request: *const myelin_payload,
        reply: *const myelin_payload,
    ) -> Result<Types, Failure> {
        // SAFETY: as the caller promises.
        let (request, reply) =
            unsafe { (payload::dynamic_type(request)?, payload::dynamic_type(reply)?) };
        Ok(Types { request: Arc::new(request), reply: Arc::new(reply) })
    }
}

pub struct RequestHandle {
    /// Borrowed from `request`, so they are dropped first.
    loans: RefCell<Slots<ReplyLoan<'static, [u8], [u8]>>>,
    request: Request<[u8], [u8]>,
    types: Types,
}

impl ServerHandle {
    /// # Safety
    /// One thread at a time uses it, and no reference of an earlier call is left.
    #[allow(clippy::mut_from_ref, reason = "the caller sees to it")]
    unsafe fn service(&self) -> &mut Service<[u8], [u8]> {
        // SAFETY: as the caller promises.
        unsafe { &mut *self.service.get() }
    }

    /// # Safety
    /// As [`service`](Self::service).
    pub unsafe fn watch(&self, set: &myelin::WaitSetHandle) -> Result<myelin::Key, myelin::Error> {
        // SAFETY: as the caller promises.
        set.add_service(unsafe { self.service() })
    }
}

/// A client's request. Reply to it, then release it, once; any thread may, at once or later. If it
/// is released without a reply, its client gets MYELIN_ERROR_NO_REPLY.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_request {
    /// sizeof(struct myelin_request): MYELIN_INIT(myelin_request).
    pub size: usize,
    /// The request's id. Do not change it.
    pub id: u64,
    /// The request, read-only; valid until it is released.
    pub data: *const c_void,
    /// How many bytes.
    pub bytes: usize,
    /// The client's endpoint id, as in events.
    pub client: u64,
}

sized! { myelin_request up to bytes: usize; }

/// Serves a service with requests and replies of these types; NULL is any number of bytes. Their
/// alignment is at most 16.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_server_open(
    node: *mut myelin_node,
    name: *const c_char,
    request: *const myelin_payload,
    reply: *const myelin_payload,
    server: *mut *mut myelin_server,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(server, std::ptr::null_mut(), "server")?;
        let node: &Node = handle::get(handle::of_pointer(node))?;
        let types = Types::read(request, reply)?;
        let name = text::required(name, "name")?;
        let service = node.dynamic_service(name, &types.request, &types.reply)?;
        let interrupter = service.interrupter();
        let (service, events) = (UnsafeCell::new(service), RefCell::default());
        let made = Box::new(ServerHandle { service, events, interrupter, types });
        server.write(handle::to_pointer(handle::insert(made)?));
        Ok(MYELIN_OK)
    })
}

/// Closes it. The program can still reply to requests that it holds.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_server_close(server: *mut myelin_server) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<ServerHandle>(handle::of_pointer(server))?);
        Ok(MYELIN_OK)
    })
}

/// Takes the next request; waits for it for at most `limit_ns` (0: not at all, MYELIN_FOREVER: no
/// limit). MYELIN_NOTHING if the time is over, or if the wait was interrupted.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_server_receive(
    server: *mut myelin_server,
    limit_ns: u64,
    request: *mut myelin_request,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let server = of(server)?;
        sized::check(request)?;
        match server.service().receive(text::duration(limit_ns))? {
            Some(taken) => hold(taken, server.types.clone(), request),
            None => Ok(MYELIN_NOTHING),
        }
    })
}

/// Ends the running wait, or else the next one. Any thread, and a signal handler.
///
/// # Safety
/// No other thread closes it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_server_interrupt(server: *mut myelin_server) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        of(server)?.interrupter.interrupt();
        Ok(MYELIN_OK)
    })
}

/// How it waits: `enum myelin_wait`.
///
/// # Safety
/// As `myelin_server_receive`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_server_set_wait(
    server: *mut myelin_server,
    wait: i32,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        of(server)?.service().set_wait(node::wait(wait)?);
        Ok(MYELIN_OK)
    })
}

/// How many clients there are now.
///
/// # Safety
/// As `myelin_server_receive`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_server_clients(
    server: *mut myelin_server,
    clients: *mut usize,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(clients, of(server)?.service().clients(), "clients")?;
        Ok(MYELIN_OK)
    })
}

/// The next event of its matches with clients; MYELIN_NOTHING if there is none.
///
/// # Safety
/// As `myelin_server_receive`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_server_event(
    server: *mut myelin_server,
    event: *mut myelin_event,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let server = of(server)?;
        server.events.borrow_mut().next(|| server.service().events(), event)
    })
}

/// A function that is called with each request. The program owns the request: it replies at once or
/// later, and releases it. The struct itself is valid during the call: copy it to keep it. The
/// function must not throw or longjmp.
pub type myelin_on_request =
    Option<unsafe extern "C" fn(request: *mut myelin_request, context: *mut c_void)>;

/// Calls `call` with each request from now on, until the callback is closed: like
/// `myelin_subscriber_on_sample`. The server is used up.
///
/// # Safety
/// Pointers are NULL or valid; `call` and `release` may run in any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_server_on_request(
    server: *mut myelin_server,
    call: myelin_on_request,
    context: *mut c_void,
    release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    callback: *mut *mut myelin_callback,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let context = Context::new(context, release);
        let call = callback::prepare(call, callback)?;
        let taken = handle::remove::<ServerHandle>(handle::of_pointer(server))?;
        let ServerHandle { service, types, .. } = *taken;
        let made = service.into_inner().on_request(move |request| {
            let mut received: myelin_request = std::mem::zeroed();
            received.size = size_of::<myelin_request>();
            // Without a place in the table it is dropped, and its client gets an error.
            if hold(request, types.clone(), &raw mut received).is_ok() {
                call(&raw mut received, context.pointer());
            }
        })?;
        callback::give(made, callback)
    })
}

/// Replies with a copy of `bytes` bytes, a whole payload of the reply's type. A second reply is an error.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time uses a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_request_reply(
    request: *const myelin_request,
    data: *const c_void,
    bytes: usize,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let request = request_of(request)?;
        payload::check(&request.types.reply, bytes)?;
        request.request.reply(text::bytes(data, bytes)?)?;
        Ok(MYELIN_OK)
    })
}

/// Lends memory for a reply of `bytes` bytes. `myelin_request_send` sends it; it is discarded with
/// the request.
///
/// # Safety
/// As `myelin_request_reply`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_request_loan(
    request: *const myelin_request,
    bytes: usize,
    loan: *mut myelin_loan,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let request = request_of(request)?;
        payload::check(&request.types.reply, bytes)?;
        sized::check(loan)?;
        // The request is in a box, and its loans are dropped before it.
        let its: &'static Request<[u8], [u8]> = &*std::ptr::from_ref(&request.request);
        let mut lent = its.loan(bytes)?;
        let data = lent.as_mut_ptr().cast();
        let id = request.loans.borrow_mut().put(lent);
        sized::write(loan, myelin_loan { size: 0, id, data, bytes })?;
        Ok(MYELIN_OK)
    })
}

/// Replies with a loan of the request, without a copy.
///
/// # Safety
/// As `myelin_request_reply`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_request_send(
    request: *const myelin_request,
    loan: *mut myelin_loan,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let request = request_of(request)?;
        let lent = request.loans.borrow_mut().take(end(loan)?)?;
        lent.send()?;
        Ok(MYELIN_OK)
    })
}

/// Releases a request, with or without a reply. `data` becomes NULL; a second time gives
/// MYELIN_ERROR_HANDLE.
///
/// # Safety
/// `request` is NULL or valid; no other thread uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_request_release(request: *mut myelin_request) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        sized::check(request)?;
        drop(handle::remove::<RequestHandle>((*request).id)?);
        ((*request).data, (*request).bytes) = (std::ptr::null(), 0);
        Ok(MYELIN_OK)
    })
}

/// Gives the program a request.
unsafe fn hold(
    request: Request<[u8], [u8]>,
    types: Types,
    to: *mut myelin_request,
) -> Result<myelin_code, Failure> {
    let held = Box::new(RequestHandle { loans: RefCell::default(), request, types });
    // A small payload lies in the request itself, so its address is taken from the final place.
    let request = &held.request;
    let (data, bytes, client) = (request.as_ptr().cast(), request.len(), request.client());
    let id = handle::insert(held)?;
    // SAFETY: as the caller promises.
    unsafe { sized::write(to, myelin_request { size: 0, id, data, bytes, client })? };
    Ok(MYELIN_OK)
}

unsafe fn of<'a>(server: *mut myelin_server) -> Result<&'a ServerHandle, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle::get::<ServerHandle>(handle::of_pointer(server)) }
}

unsafe fn request_of<'a>(request: *const myelin_request) -> Result<&'a RequestHandle, Failure> {
    // SAFETY: as the caller promises.
    unsafe { sized::check(request.cast_mut())? };
    // SAFETY: the first version has an id.
    unsafe { handle::get::<RequestHandle>((*request).id) }
}
