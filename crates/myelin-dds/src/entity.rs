//! The common part of a writer, a reader and a discovery: CycloneDDS's entity, its listener, and its
//! information about the other side.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, check};
use crate::message::Message;
use crate::participant::{Participant, delete};
use crate::{exit, ffi};

/// The name of an endpoint in DDS.
pub type Guid = [u8; 16];

/// An endpoint of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Identifies it in this process; 0 if it is only discovered.
    pub handle: u64,
    /// Identifies it everywhere.
    pub guid: Guid,
    /// The topic's name.
    pub topic: String,
    /// The type's name.
    pub type_name: String,
    /// Its user data.
    pub user_data: Vec<u8>,
    /// Whether it is reliable, if known.
    pub reliable: Option<bool>,
    /// Whether it keeps, or requests, samples from before the match, if known.
    pub transient_local: Option<bool>,
    /// Whether it is alive only while its program asserts it for this endpoint, if known.
    pub by_topic: Option<bool>,
    /// Its deadline, if it has one.
    pub deadline: Option<Duration>,
    /// How long its samples are valid, if not for ever.
    pub lifespan: Option<Duration>,
    /// Its liveliness lease, if it has one.
    pub lease: Option<Duration>,
}

/// A participant of another process, as it announces itself before it has proved anything. The texts are
/// what it wants them to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Identifies it everywhere.
    pub guid: Guid,
    /// The name of its host.
    pub host: String,
    /// The name of its process.
    pub process: String,
    /// The number of its process.
    pub pid: String,
    /// The addresses of its host.
    pub addresses: String,
    /// Its user data.
    pub user_data: Vec<u8>,
    /// Whether it has DDS Security.
    pub has_identity: bool,
    /// Whether this process talks to it under DDS Security: a handshake has proved its identity.
    pub is_admitted: bool,
}

/// The calls of CycloneDDS's threads for an endpoint. They come until it is dropped. The drop waits
/// for a running call, so do not drop the endpoint in one. A call must be short, because it delays
/// everything that comes from the network.
pub trait Listener: Send + Sync {
    /// For a reader: a message has come. False if it must be kept back, which only reliable readers
    /// may do: CycloneDDS then stops receiving, for all topics, and repeats the call some time
    /// later.
    fn received(&self, _message: Message) -> bool {
        true
    }

    /// For a discovery: an endpoint has come, or its settings have changed.
    fn appeared(&self, _endpoint: Endpoint) {}

    /// For a discovery: an endpoint has gone.
    fn disappeared(&self, _guid: Guid) {}

    /// For participants: one has come, has changed, or has gone.
    fn changed(&self) {}

    /// The number of matched endpoints of the other side has changed.
    fn matched(&self, _count: u32) {}

    /// An endpoint of the other side is on the topic and its settings do not fit: the number of the
    /// policy.
    fn incompatible(&self, _policy: u32) {}
}

/// An entity with its listener, which outlives it.
pub(crate) struct Entity {
    /// CycloneDDS's handle.
    pub(crate) number: i32,
    process: u32,
    /// In boxes that are ours; the context of the first is the second.
    c_listener: *mut ffi::Listener,
    listener: *mut Box<dyn Listener>,
    _participant: Arc<Participant>,
}

// SAFETY: the pointers lead to objects of ours, and any thread may use the listener.
unsafe impl Send for Entity {}
// SAFETY: as above.
unsafe impl Sync for Entity {}

impl Entity {
    /// `create` makes the entity, with the listener that leads to `listener`.
    pub(crate) fn create(
        participant: &Arc<Participant>,
        listener: Box<dyn Listener>,
        create: impl FnOnce(*const ffi::Listener) -> i32,
    ) -> Result<Entity, Error> {
        let listener = Box::into_raw(Box::new(listener));
        let context = listener.cast();
        let c_listener = ffi::Listener {
            context,
            received,
            appeared,
            disappeared,
            changed,
            matched,
            incompatible,
        };
        let c_listener = Box::into_raw(Box::new(c_listener));
        let number = create(c_listener);
        let (process, _participant) = (std::process::id(), participant.clone());
        // If making the entity fails, dropping this frees the listeners.
        let entity = Entity { number, process, c_listener, listener, _participant };
        check("creating an endpoint", number).map(|_| entity)
    }

    /// Its GUID in DDS.
    pub(crate) fn guid(&self) -> Result<Guid, Error> {
        let mut guid = [0; 16];
        // SAFETY: 16 bytes, as it requires.
        let code = unsafe { ffi::myelin_dds_guid(self.number, guid.as_mut_ptr()) };
        check("asking for an endpoint's id", code).map(|_| guid)
    }

    /// Whether this is a child of `fork`, where no thread would answer.
    pub(crate) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Calls `visit` with every endpoint it is matched with.
    pub(crate) fn visit_matched(
        &self,
        is_writer: bool,
        mut visit: &mut dyn FnMut(Endpoint),
    ) -> Result<(), Error> {
        // SAFETY: `visited` takes the context for what it is.
        let code = unsafe {
            let context = (&raw mut visit).cast();
            ffi::myelin_dds_visit_matched(self.number, u8::from(is_writer), visited, context)
        };
        check("looking at the matches", code).map(drop)
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        // At the end of the process another thread deletes it, and it may call meanwhile.
        if !self.is_forked() && !exit::has_ended() {
            // Waits for running calls.
            delete(self.number);
            // SAFETY: made by `create`, and no calls come any more.
            unsafe {
                drop(Box::from_raw(self.c_listener));
                drop(Box::from_raw(self.listener));
            }
        }
    }
}

/// # Safety
/// The context is the listener of an entity.
unsafe fn listener<'a>(context: *mut c_void) -> &'a dyn Listener {
    // SAFETY: as required; it lives until after the entity is deleted.
    unsafe { &**context.cast::<Box<dyn Listener>>() }
}

/// Runs a function that CycloneDDS calls. No panic crosses CycloneDDS's frames: the panic's hook
/// has reported it, and CycloneDDS goes on with `otherwise`.
pub(crate) fn contained<R>(otherwise: R, act: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        std::mem::forget(panic); // its drop may panic, too
        otherwise
    })
}

unsafe extern "C" fn received(context: *mut c_void, received: *const ffi::Received) -> u8 {
    // SAFETY: the context comes from the listener of an entity; the received sample is there, and
    // the reference to it is ours from now on.
    let (listener, message) = unsafe { (listener(context), Message::of(received.read())) };
    contained(1, || u8::from(listener.received(message)))
}

unsafe extern "C" fn appeared(context: *mut c_void, endpoint: *const ffi::Endpoint) {
    // SAFETY: as in `received`; the endpoint is valid for the call.
    let (listener, endpoint) = unsafe { (listener(context), endpoint_of(&*endpoint)) };
    contained((), || listener.appeared(endpoint));
}

unsafe extern "C" fn disappeared(context: *mut c_void, endpoint: *const ffi::Endpoint) {
    // SAFETY: as in `appeared`; a GUID has 16 bytes.
    let (listener, guid) = unsafe { (listener(context), *(*endpoint).guid.cast::<Guid>()) };
    contained((), || listener.disappeared(guid));
}

unsafe extern "C" fn changed(context: *mut c_void) {
    // SAFETY: as in `received`.
    let listener = unsafe { listener(context) };
    contained((), || listener.changed());
}

unsafe extern "C" fn matched(context: *mut c_void, _endpoint: i32, count: u32) {
    // SAFETY: as in `received`.
    let listener = unsafe { listener(context) };
    contained((), || listener.matched(count));
}

unsafe extern "C" fn incompatible(context: *mut c_void, _endpoint: i32, policy: u32) {
    // SAFETY: as in `received`.
    let listener = unsafe { listener(context) };
    contained((), || listener.incompatible(policy));
}

/// # Safety
/// NULL, or a text that ends with a zero.
unsafe fn text(text: *const c_char) -> String {
    match text.is_null() {
        true => String::new(),
        // SAFETY: as required.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}

/// # Safety
/// So many bytes; NULL if there are none.
unsafe fn bytes(data: *const c_void, count: usize) -> Vec<u8> {
    match count {
        0 => Vec::new(),
        // SAFETY: as required.
        count => unsafe { std::slice::from_raw_parts(data.cast(), count) }.to_vec(),
    }
}

/// Calls the `&mut dyn FnMut(Remote)` in the context.
pub(crate) unsafe extern "C" fn visited_remote(context: *mut c_void, remote: *const ffi::Remote) {
    // SAFETY: the context is the one that the caller passes; the participant is valid for the call,
    // its strings end with a zero, and its user data have the given length.
    let (visit, remote) = unsafe {
        let (visit, remote) = (&mut *context.cast::<&mut dyn FnMut(Remote)>(), &*remote);
        let found = Remote {
            guid: *remote.guid.cast::<Guid>(),
            host: text(remote.host),
            process: text(remote.process),
            pid: text(remote.pid),
            addresses: text(remote.addresses),
            user_data: bytes(remote.user_data, remote.user_data_bytes),
            has_identity: remote.has_identity != 0,
            is_admitted: remote.is_admitted != 0,
        };
        (visit, found)
    };
    contained((), || visit(remote));
}

/// Calls the `&mut dyn FnMut(Endpoint)` in the context.
unsafe extern "C" fn visited(context: *mut c_void, endpoint: *const ffi::Endpoint) {
    // SAFETY: the context is the one that `visit_matched` passes; the endpoint is valid for the call.
    let (visit, endpoint) =
        unsafe { (&mut *context.cast::<&mut dyn FnMut(Endpoint)>(), endpoint_of(&*endpoint)) };
    contained((), || visit(endpoint));
}

/// # Safety
/// Its strings end with a zero or are null, its GUID has 16 bytes, and its user data have the given
/// length.
unsafe fn endpoint_of(endpoint: &ffi::Endpoint) -> Endpoint {
    let flag = |flag: i8| (flag >= 0).then_some(flag > 0);
    let span = |ns: i64| (ns != i64::MAX).then(|| Duration::from_nanos(ns.max(0) as u64));
    // SAFETY: as required.
    let (guid, topic, type_name, user_data) = unsafe {
        (
            *endpoint.guid.cast::<Guid>(),
            text(endpoint.topic),
            text(endpoint.type_name),
            bytes(endpoint.user_data, endpoint.user_data_bytes),
        )
    };
    Endpoint {
        handle: endpoint.handle,
        guid,
        topic,
        type_name,
        user_data,
        reliable: flag(endpoint.reliable),
        transient_local: flag(endpoint.transient_local),
        by_topic: flag(endpoint.by_topic),
        deadline: span(endpoint.deadline_ns),
        lifespan: span(endpoint.lifespan_ns),
        lease: span(endpoint.lease_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panics;

    impl Listener for Panics {
        fn appeared(&self, _endpoint: Endpoint) {
            std::panic::resume_unwind(Box::new("appeared"));
        }

        fn disappeared(&self, _guid: Guid) {
            std::panic::resume_unwind(Box::new("disappeared"));
        }

        fn matched(&self, _count: u32) {
            std::panic::resume_unwind(Box::new("matched"));
        }

        fn incompatible(&self, _policy: u32) {
            std::panic::resume_unwind(Box::new("incompatible"));
        }
    }

    /// A panic that left one of these would abort the process.
    #[test]
    fn no_panic_crosses_the_frames_of_cyclonedds() {
        let mut listener: Box<dyn Listener> = Box::new(Panics);
        let context = (&raw mut listener).cast();
        let guid: Guid = [7; 16];
        let endpoint = ffi::Endpoint {
            handle: 0,
            guid: guid.as_ptr(),
            topic: std::ptr::null(),
            type_name: std::ptr::null(),
            user_data: std::ptr::null(),
            user_data_bytes: 0,
            reliable: -1,
            transient_local: -1,
            by_topic: -1,
            deadline_ns: i64::MAX,
            lifespan_ns: i64::MAX,
            lease_ns: i64::MAX,
        };
        // SAFETY: the context is this listener; the endpoint has a GUID and no more.
        unsafe {
            appeared(context, &raw const endpoint);
            disappeared(context, &raw const endpoint);
            matched(context, 1, 1);
            incompatible(context, 1, 1);
        }
        assert_eq!(contained(1, || std::panic::resume_unwind(Box::new("received"))), 1);
    }
}
