//! Codes, the message of the latest error of a thread, and the border that no panic crosses.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use myelin::Error;

/// What a function returns: 0 (`MYELIN_OK`), 1 (`MYELIN_NOTHING`: there is nothing there, or not in time,
/// which is no error), or a negative code. `myelin_error_message()` then says what to do.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "some are for the header alone")]
pub enum myelin_code {
    /// Done.
    MYELIN_OK = 0,
    /// There is nothing to take, or nothing came within the limit.
    MYELIN_NOTHING = 1,
    /// A handle is NULL, closed, of another kind, or in use further up in this thread.
    MYELIN_ERROR_HANDLE = -1,
    /// A name, an option or another argument cannot be; the message names it.
    MYELIN_ERROR_SETTING = -2,
    /// The other side has another type.
    MYELIN_ERROR_TYPE = -3,
    /// A limit on memory, or the machine's memory or shared-memory space, is used up.
    MYELIN_ERROR_MEMORY = -4,
    /// A payload is larger than the publisher allows.
    MYELIN_ERROR_PAYLOAD_SIZE = -5,
    /// Too many loans, samples, calls, handles, files: the message says of what.
    MYELIN_ERROR_TOO_MANY = -6,
    /// A loan has been published or discarded already, or is another publisher's.
    MYELIN_ERROR_LOAN = -7,
    /// A reliable subscriber has not read in time; nothing was published.
    MYELIN_ERROR_RELIABLE_TIMEOUT = -8,
    /// No server came within the limit.
    MYELIN_ERROR_NO_SERVER = -9,
    /// The server has ended before it replied.
    MYELIN_ERROR_SERVER_GONE = -10,
    /// The server has dropped the request.
    MYELIN_ERROR_NO_REPLY = -11,
    /// No reply came within the limit.
    MYELIN_ERROR_REPLY_TIMEOUT = -12,
    /// A peer wrote what cannot be; it has been disconnected, others go on.
    MYELIN_ERROR_PEER_CORRUPT = -13,
    /// The other side has another version of the shared-memory layout.
    MYELIN_ERROR_VERSION = -14,
    /// The file system or the system's settings forbid it.
    MYELIN_ERROR_PERMISSION = -15,
    /// The handle is the parent process's: open a node after fork.
    MYELIN_ERROR_FORKED = -16,
    /// A callback inside a publish uses the publisher that is publishing.
    MYELIN_ERROR_REENTERED = -17,
    /// The network cannot be had.
    MYELIN_ERROR_NETWORK = -18,
    /// A system call failed.
    MYELIN_ERROR_SYSTEM = -19,
    /// A defect of this library: please report the message.
    MYELIN_ERROR_BUG = -20,
    /// Another thread has closed it meanwhile.
    MYELIN_ERROR_CLOSED = -21,
    /// Another thread is inside a call that one thread at a time may make.
    MYELIN_ERROR_BUSY = -22,
}

pub use myelin_code::{MYELIN_NOTHING, MYELIN_OK};

/// Why a function fails. A pointer, so that a result has room in registers.
#[derive(Debug)]
pub struct Failure(Box<(myelin_code, String)>);

impl Failure {
    fn new(code: myelin_code, message: String) -> Failure {
        Failure(Box::new((code, message)))
    }

    pub fn handle(message: String) -> Failure {
        Failure::new(myelin_code::MYELIN_ERROR_HANDLE, message)
    }

    pub fn loan() -> Failure {
        let message = "this loan has been published or discarded already, or is of another owner; \
                       take a new one"
            .to_string();
        Failure::new(myelin_code::MYELIN_ERROR_LOAN, message)
    }

    /// An argument that cannot be, and what to do.
    pub fn setting(what: impl Into<String>) -> Failure {
        Failure::new(myelin_code::MYELIN_ERROR_SETTING, what.into())
    }

    /// Another thread is in a call with it.
    pub fn busy(message: &str) -> Failure {
        Failure::new(myelin_code::MYELIN_ERROR_BUSY, message.to_owned())
    }

    /// A payload that is not of its topic's type.
    pub fn length(bytes: usize, told: &str) -> Failure {
        let message = format!(
            "a payload of {bytes} B is none of type {told}; pass a whole value, or whole elements"
        );
        Failure::new(myelin_code::MYELIN_ERROR_TYPE, message)
    }
}

impl From<Error> for Failure {
    #[cold]
    #[inline(never)]
    fn from(error: Error) -> Failure {
        use myelin_code::*;
        let code = match &error {
            Error::PayloadTooLarge { .. } => MYELIN_ERROR_PAYLOAD_SIZE,
            Error::MemoryLimit { .. } | Error::NoMemory { .. } | Error::NoSpace { .. } => {
                MYELIN_ERROR_MEMORY
            }
            Error::Reentered => MYELIN_ERROR_REENTERED,
            Error::NoPermission { .. } | Error::LatencyGuard { .. } => MYELIN_ERROR_PERMISSION,
            Error::TypeMismatch { .. } => MYELIN_ERROR_TYPE,
            Error::LayoutVersion { .. } => MYELIN_ERROR_VERSION,
            Error::PeerCorrupt { .. } => MYELIN_ERROR_PEER_CORRUPT,
            Error::TooManyHeld { .. }
            | Error::TooManyLoans { .. }
            | Error::TooMany { .. }
            | Error::TooManyFiles => MYELIN_ERROR_TOO_MANY,
            Error::ReliableTimeout { .. } => MYELIN_ERROR_RELIABLE_TIMEOUT,
            Error::NoServer { .. } => MYELIN_ERROR_NO_SERVER,
            Error::ServerGone { .. } => MYELIN_ERROR_SERVER_GONE,
            Error::NoReply { .. } => MYELIN_ERROR_NO_REPLY,
            Error::ReplyTimeout { .. } => MYELIN_ERROR_REPLY_TIMEOUT,
            Error::Setting { .. } => MYELIN_ERROR_SETTING,
            Error::Forked => MYELIN_ERROR_FORKED,
            Error::Closed { .. } => MYELIN_ERROR_CLOSED,
            Error::Network { .. } => MYELIN_ERROR_NETWORK,
            _ => MYELIN_ERROR_SYSTEM,
        };
        Failure::new(code, error.to_string())
    }
}

/// Runs what a function of the ABI does. What it returns, and no panic, is for the program.
#[inline(always)]
pub fn enter(act: impl FnOnce() -> Result<myelin_code, Failure>) -> myelin_code {
    // What crosses `catch_unwind` does so through memory: the code alone is read as it was written. A result,
    // read in one piece after its parts were written, is waited for until they have reached the cache.
    catch_unwind(AssertUnwindSafe(|| act().unwrap_or_else(keep))).unwrap_or_else(is_bug)
}

#[cold]
#[inline(never)]
fn is_bug(panic: Box<dyn Any + Send>) -> myelin_code {
    let said = panic.downcast_ref::<&str>().map(ToString::to_string);
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    let message = format!("a defect of Myelin, please report it: {}", said.unwrap_or_default());
    keep(Failure::new(myelin_code::MYELIN_ERROR_BUG, message))
}

/// Keeps the message for this thread.
#[cold]
#[inline(never)]
fn keep(failure: Failure) -> myelin_code {
    let (code, message) = *failure.0;
    let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
    // A thread that ends has no message any more.
    let _ = LATEST.try_with(|latest| *latest.borrow_mut() = message);
    code
}

/// What the latest function of this thread that returned a negative code had to say: one sentence for
/// people, with the remedy. UTF-8; never NULL; empty if there was none. It stays until the next error of
/// the same thread. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_error_message() -> *const c_char {
    let latest = LATEST.try_with(|latest| latest.borrow().as_ptr());
    latest.unwrap_or(c"".as_ptr())
}

/// The version of the library that runs: 65,536 × major + 256 × minor + patch. Compare it with
/// `MYELIN_VERSION`, that of the header. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_version() -> u32 {
    VERSION
}

/// `CLOCK_MONOTONIC` in nanoseconds, the clock of all stamps: one for all processes of a host. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_now() -> u64 {
    myelin::now()
}

thread_local! {
    static LATEST: RefCell<CString> = RefCell::default();
}

const VERSION: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
    | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
    | number(env!("CARGO_PKG_VERSION_PATCH"));

const fn number(text: &str) -> u32 {
    let (mut at, mut number) = (0, 0);
    while at < text.len() {
        number = number * 10 + (text.as_bytes()[at] - b'0') as u32;
        at += 1;
    }
    number
}
