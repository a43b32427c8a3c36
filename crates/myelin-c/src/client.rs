//! Clients of services, and their calls.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_void};

use myelin::{Client, Error, Node, Pending, Reply, RequestLoan};

use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::event::{Events, myelin_event};
use crate::node::{self, myelin_node};
use crate::payload::{self, myelin_payload};
use crate::publisher::{end, myelin_loan};
use crate::server::Types;
use crate::sized::{self, sized};
use crate::slots::Slots;
use crate::{handle, text};

/// A client of a service: sends requests and gets a reply to each. One thread at a time uses it.
pub enum myelin_client {}

pub struct ClientHandle {
    /// Both are borrowed from `client`, so they are dropped first. Not borrowed while a request is
    /// sent, which may run callbacks.
    loans: RefCell<Slots<RequestLoan<'static, [u8], [u8]>>>,
    calls: RefCell<Slots<Pending<'static, [u8], [u8]>>>,
    events: RefCell<Events>,
    /// A callback inside a call must not close the client.
    is_calling: Cell<bool>,
    types: Types,
    client: Client<[u8], [u8]>,
}

impl ClientHandle {
    /// Fails if a callback inside a call of the same client makes this call.
    fn calling<R, E: From<Error>>(&self, act: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        if self.is_calling.replace(true) {
            return Err(Error::Reentered.into());
        }
        let result = act();
        self.is_calling.set(false);
        result
    }

    /// # Safety
    /// The handle outlives everything that is borrowed.
    unsafe fn client(&self) -> &'static Client<[u8], [u8]> {
        // SAFETY: it is in a box, and as the caller promises.
        unsafe { &*std::ptr::from_ref(&self.client) }
    }
}

/// A reply where its server wrote it. Release each once, in any thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_reply {
    /// sizeof(struct myelin_reply): MYELIN_INIT(myelin_reply).
    pub size: usize,
    /// The reply's id. Do not change it.
    pub id: u64,
    /// The reply, read-only; valid until it is released.
    pub data: *const c_void,
    /// How many bytes.
    pub bytes: usize,
}

sized! { myelin_reply up to bytes: usize; }

/// Makes a client of a service with requests and replies of these types; NULL is any number of
/// bytes. It finds the server, now or when the server starts. The types' alignment is at most 16.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_open(
    node: *mut myelin_node,
    name: *const c_char,
    request: *const myelin_payload,
    reply: *const myelin_payload,
    client: *mut *mut myelin_client,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(client, std::ptr::null_mut(), "client")?;
        let node: &Node = handle::get(handle::of_pointer(node))?;
        let types = Types::read(request, reply)?;
        let name = text::required(name, "name")?;
        let made = node.dynamic_client(name, &types.request, &types.reply)?;
        let made = Box::new(ClientHandle {
            loans: RefCell::default(),
            calls: RefCell::default(),
            events: RefCell::default(),
            is_calling: Cell::new(false),
            types,
            client: made,
        });
        client.write(handle::to_pointer(handle::insert(made)?));
        Ok(MYELIN_OK)
    })
}

/// Closes it, with its loans and calls. An error from a callback inside a call of the same client.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_close(client: *mut myelin_client) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        if of(client)?.is_calling.get() {
            return Err(Failure::handle(
                "this thread is inside a call of this client; close it after the call",
            ));
        }
        drop(handle::remove::<ClientHandle>(handle::of_pointer(client))?);
        Ok(MYELIN_OK)
    })
}

/// Sends a copy of `bytes` bytes, a whole payload of the request's type, and waits for the reply,
/// for at most `limit_ns` (MYELIN_FOREVER: no limit). The server may also start within this time.
/// MYELIN_ERROR_NO_SERVER, MYELIN_ERROR_REPLY_TIMEOUT, MYELIN_ERROR_SERVER_GONE and
/// MYELIN_ERROR_NO_REPLY say why there is no reply.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_call(
    client: *mut myelin_client,
    data: *const c_void,
    bytes: usize,
    limit_ns: u64,
    reply: *mut myelin_reply,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let client = of(client)?;
        payload::check(&client.types.request, bytes)?;
        let request = text::bytes(data, bytes)?;
        sized::check(reply)?;
        let limit = text::duration(limit_ns);
        give(client, client.calling(|| client.client.call(request, limit))?, reply)
    })
}

/// Sends a copy of a request and does not wait: pass `call` to `myelin_client_receive`. Up to 64
/// calls may be open at once.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_send(
    client: *mut myelin_client,
    data: *const c_void,
    bytes: usize,
    call: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let client = of(client)?;
        payload::check(&client.types.request, bytes)?;
        let request = text::bytes(data, bytes)?;
        text::put(call, 0, "call")?;
        let pending = client.calling(|| client.client().send(request))?;
        call.write(client.calls.borrow_mut().put(pending));
        Ok(MYELIN_OK)
    })
}

/// Lends memory for a request of `bytes` bytes.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_loan(
    client: *mut myelin_client,
    bytes: usize,
    loan: *mut myelin_loan,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let client = of(client)?;
        payload::check(&client.types.request, bytes)?;
        sized::check(loan)?;
        let mut lent = client.client().loan(bytes)?;
        let data = lent.as_mut_ptr().cast();
        let id = client.loans.borrow_mut().put(lent);
        sized::write(loan, myelin_loan { size: 0, id, data, bytes })?;
        Ok(MYELIN_OK)
    })
}

/// Sends a loan without a copy, and does not wait.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_send_loan(
    client: *mut myelin_client,
    loan: *mut myelin_loan,
    call: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let client = of(client)?;
        text::put(call, 0, "call")?;
        let lent = client.loans.borrow_mut().take(end(loan)?)?;
        let pending = client.calling(|| lent.send())?;
        call.write(client.calls.borrow_mut().put(pending));
        Ok(MYELIN_OK)
    })
}

/// Gives a loan back without sending it.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_discard(
    client: *mut myelin_client,
    loan: *mut myelin_loan,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let lent = of(client)?.loans.borrow_mut().take(end(loan)?)?;
        drop(lent);
        Ok(MYELIN_OK)
    })
}

/// The reply to a call; waits for it for at most `limit_ns` (0: not at all). MYELIN_NOTHING if the
/// time is over: you can wait again. A reply, or an error that says why there will be none, ends
/// the call.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_receive(
    client: *mut myelin_client,
    call: u64,
    limit_ns: u64,
    reply: *mut myelin_reply,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let client = of(client)?;
        sized::check(reply)?;
        let limit = text::duration(limit_ns);
        let came = client.calling(|| {
            let mut calls = client.calls.borrow_mut();
            let came = calls.get_mut(call)?.receive(limit);
            if !matches!(came, Ok(None)) {
                drop(calls.take(call)?);
            }
            came.map_err(Failure::from)
        })?;
        came.map_or(Ok(MYELIN_NOTHING), |came| give(client, came, reply))
    })
}

/// Stops waiting for a call. The call goes on at the server, and its reply is dropped.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_abandon(
    client: *mut myelin_client,
    call: u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let over = of(client)?.calls.borrow_mut().take(call)?;
        drop(over);
        Ok(MYELIN_OK)
    })
}

/// Waits until there is a server that takes requests, for at most `limit_ns`; MYELIN_NOTHING if the
/// time is over.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_wait_for_service(
    client: *mut myelin_client,
    limit_ns: u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let client = of(client)?;
        let limit = text::duration(limit_ns);
        let is_there = client.calling(|| client.client.wait_for_service(limit))?;
        Ok(if is_there { MYELIN_OK } else { MYELIN_NOTHING })
    })
}

/// How many servers there are now: more than one is a mistake.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_servers(
    client: *mut myelin_client,
    servers: *mut usize,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(servers, of(client)?.client.servers(), "servers")?;
        Ok(MYELIN_OK)
    })
}

/// How many replies came too late, and were dropped.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_late(
    client: *mut myelin_client,
    replies: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(replies, of(client)?.client.late(), "replies")?;
        Ok(MYELIN_OK)
    })
}

/// How it waits: `enum myelin_wait`.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_set_wait(
    client: *mut myelin_client,
    wait: i32,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        of(client)?.client.set_wait(node::wait(wait)?);
        Ok(MYELIN_OK)
    })
}

/// The next event of its matches with servers; MYELIN_NOTHING if there is none.
///
/// # Safety
/// As `myelin_client_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_client_event(
    client: *mut myelin_client,
    event: *mut myelin_event,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let client = of(client)?;
        client.events.borrow_mut().next(|| client.client.events(), event)
    })
}

/// Releases a reply. `data` becomes NULL; a second time gives MYELIN_ERROR_HANDLE. Any thread, also
/// after its client is closed.
///
/// # Safety
/// `reply` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_reply_release(reply: *mut myelin_reply) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        sized::check(reply)?;
        drop(handle::remove::<Reply<[u8]>>((*reply).id)?);
        ((*reply).data, (*reply).bytes) = (std::ptr::null(), 0);
        Ok(MYELIN_OK)
    })
}

/// Gives the program a reply.
unsafe fn give(
    client: &ClientHandle,
    reply: Reply<[u8]>,
    to: *mut myelin_reply,
) -> Result<myelin_code, Failure> {
    if !client.types.reply.fits(reply.len()) {
        let what = "a reply's length does not fit its type";
        return Err(Error::PeerCorrupt { what }.into());
    }
    let id = handle::insert(Box::new(reply))?;
    // A small payload lies in the reply itself, so its address is taken from the final place.
    // SAFETY: the reply is this thread's.
    let reply = unsafe { handle::get::<Reply<[u8]>>(id)? };
    let (data, bytes) = (reply.as_ptr().cast(), reply.len());
    // SAFETY: as the caller promises.
    unsafe { sized::write(to, myelin_reply { size: 0, id, data, bytes })? };
    Ok(MYELIN_OK)
}

unsafe fn of<'a>(client: *mut myelin_client) -> Result<&'a ClientHandle, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle::get::<ClientHandle>(handle::of_pointer(client)) }
}
