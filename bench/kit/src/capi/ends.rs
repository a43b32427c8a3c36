//! The ends of a link that consists of C functions.
//!
//! An end itself holds the function and the context of a call between two stamps. After the sleep
//! of a period, each further cache line would be a miss, and would be measured.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::checked;
use super::tables::{CLink, CPrepare};
use crate::driver::{Call, CallSource, Publisher, Subscriber};
use crate::error::Error;

/// The context that a driver has opened; closed with the last of its ends.
pub(super) struct COpened {
    functions: CLink,
    close: extern "C" fn(*mut c_void),
    context: *mut c_void,
}

// SAFETY: another thread only closes it, once, when nobody uses it. A publisher that moves to
// another thread is used by one thread at a time (`&mut`), as the header says.
unsafe impl Send for COpened {}
// SAFETY: as above; a shared reference only gives copies of the functions.
unsafe impl Sync for COpened {}

impl Drop for COpened {
    fn drop(&mut self) {
        (self.close)(self.context);
    }
}

impl COpened {
    pub(super) fn open(functions: CLink, prepare: &CPrepare) -> Result<Arc<Self>, Error> {
        let open = functions.open.ok_or_else(|| owes("open"))?;
        let close = functions.close.ok_or_else(|| owes("close"))?;
        let mut context = std::ptr::null_mut();
        checked(open(prepare, &mut context), "open")?;
        Ok(Arc::new(COpened { functions, close, context }))
    }

    /// The publisher; `loans` says whether this system writes into loaned memory.
    pub(super) fn publisher(self: &Arc<Self>, loans: bool) -> Result<CPublisher, Error> {
        let CLink { loan, publish_loan, publish, select, .. } = self.functions;
        let loans = match loans {
            true => Some(loan.zip(publish_loan).ok_or_else(|| owes("loan"))?),
            false => None,
        };
        let publish = publish.ok_or_else(|| owes("publish"))?;
        Ok(CPublisher { context: self.context, loans, publish, select, _opened: Arc::clone(self) })
    }

    /// The receiving end of the link itself.
    pub(super) fn subscriber(self: &Arc<Self>) -> Result<CSubscriber, Error> {
        CSubscriber::new(self.receiver())
    }

    /// An additional receiving end, opened separately.
    pub(super) fn subscribe(self: &Arc<Self>, index: u32) -> Result<CReceiver, Error> {
        let subscribe = self.functions.subscribe.ok_or_else(|| owes("subscribe"))?;
        let mut context = std::ptr::null_mut();
        checked(subscribe(self.context, index, &mut context), "subscribe")?;
        Ok(CReceiver { context, apart: true, opened: Arc::clone(self) })
    }

    /// The receiving end of the link itself, for a function to be called.
    pub(super) fn receiver(self: &Arc<Self>) -> CReceiver {
        CReceiver { context: self.context, apart: false, opened: Arc::clone(self) }
    }
}

pub(super) struct CPublisher {
    context: *mut c_void,
    loans: Option<(
        extern "C" fn(*mut c_void, usize, *mut *mut c_void) -> c_int,
        extern "C" fn(*mut c_void) -> c_int,
    )>,
    publish: extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    select: Option<extern "C" fn(*mut c_void, u32)>,
    _opened: Arc<COpened>,
}

// SAFETY: used by one thread at a time (`&mut`); the header says that in a system that calls this
// may be any thread.
unsafe impl Send for CPublisher {}

impl Publisher for CPublisher {
    #[inline]
    fn has_loans(&self) -> bool {
        self.loans.is_some()
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let (loan, _) = self.loans.ok_or_else(|| owes("loan"))?;
        let mut memory = std::ptr::null_mut();
        checked(loan(self.context, len, &mut memory), "loan")?;
        // SAFETY: the header requires `len` writable bytes that belong to the caller until
        // publish_loan; the kit writes to them and never reads them.
        Ok(unsafe { std::slice::from_raw_parts_mut(memory.cast(), len) })
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        let (_, publish_loan) = self.loans.ok_or_else(|| owes("publish_loan"))?;
        checked(publish_loan(self.context), "publish_loan").map(drop)
    }

    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let (bytes, len) = (message.as_ptr().cast(), message.len());
        checked((self.publish)(self.context, bytes, len), "publish").map(drop)
    }

    fn select(&mut self, topic: u32) {
        if let Some(select) = self.select {
            select(self.context, topic);
        }
    }
}

/// A receiving end: that of the link itself, or an additional one (`apart`) opened by `subscribe`.
pub(super) struct CReceiver {
    context: *mut c_void,
    apart: bool,
    opened: Arc<COpened>,
}

// SAFETY: the header allows each subscriber of one process its own thread; it is used by one thread
// at a time (`&mut` of its owner).
unsafe impl Send for CReceiver {}

impl Drop for CReceiver {
    fn drop(&mut self) {
        if let Some(unsubscribe) = self.opened.functions.unsubscribe.filter(|_| self.apart) {
            unsubscribe(self.context);
        }
    }
}

impl CallSource for CReceiver {
    fn start(self: Box<Self>, call: Call) -> Result<Box<dyn Any>, Error> {
        let listen = self.opened.functions.listen.ok_or_else(|| owes("listen"))?;
        let unlisten = self.opened.functions.unlisten.ok_or_else(|| owes("unlisten"))?;
        let call = Box::into_raw(Box::new(call));
        let context = self.context;
        let mut listening = Listening { call, receiver: *self, unlisten: None };
        checked(listen(context, enter, call.cast()), "listen")?;
        listening.unlisten = Some(unlisten);
        Ok(Box::new(listening))
    }
}

/// Keeps a function registered with the driver.
struct Listening {
    call: *mut Call,
    receiver: CReceiver,
    /// Set once the driver listens.
    unlisten: Option<extern "C" fn(*mut c_void)>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(unlisten) = self.unlisten {
            unlisten(self.receiver.context);
        }
        // SAFETY: from `Box::into_raw`; the driver no longer calls it, or never did.
        drop(unsafe { Box::from_raw(self.call) });
    }
}

/// The function that the driver calls.
unsafe extern "C" fn enter(call: *mut c_void, bytes: *const c_void, len: usize) {
    // SAFETY: `listen` got this function together with this call, which lives until `unlisten` has
    // returned; the header requires that calls never overlap.
    let call = unsafe { &mut *call.cast::<Call>() };
    // SAFETY: the header requires `len` readable bytes that are valid during this call.
    call(unsafe { std::slice::from_raw_parts(bytes.cast(), len) });
}

/// A subscriber that waits, takes and releases.
pub(super) struct CSubscriber {
    context: *mut c_void,
    wait: Option<extern "C" fn(*mut c_void, u64) -> c_int>,
    take: extern "C" fn(*mut c_void, u64, *mut *const c_void, *mut usize) -> c_int,
    release: Option<extern "C" fn(*mut c_void)>,
    _receiver: CReceiver,
}

// SAFETY: see its receiver.
unsafe impl Send for CSubscriber {}

impl CSubscriber {
    pub(super) fn new(receiver: CReceiver) -> Result<Self, Error> {
        let CLink { wait, take, release, .. } = receiver.opened.functions;
        let take = take.ok_or_else(|| owes("take"))?;
        Ok(CSubscriber { context: receiver.context, wait, take, release, _receiver: receiver })
    }
}

impl Subscriber for CSubscriber {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let Some(wait) = self.wait else {
            return Ok(None);
        };
        Ok(Some(checked(wait(self.context, until_ns), "wait")? > 0))
    }

    #[inline]
    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let (mut bytes, mut len) = (std::ptr::null(), 0);
        let taken = (self.take)(self.context, until_ns, &mut bytes, &mut len);
        if checked(taken, "take")? == 0 {
            return Ok(None);
        }
        // SAFETY: the header requires `len` readable bytes that stay valid until release.
        Ok(Some(unsafe { std::slice::from_raw_parts(bytes.cast(), len) }))
    }

    #[inline]
    fn release(&mut self) {
        if let Some(release) = self.release {
            release(self.context);
        }
    }
}

#[cold]
fn owes(function: &str) -> Error {
    Error::new(format!("this driver has no function `{function}`"))
        .remedy("the header says which systems need it")
}
