//! Codes, the message of a thread's latest error, and the border that stops panics.

use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::fmt::{Display, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use myelin::Error;

/// The result of a function: 0 (`MYELIN_OK`), 1 (`MYELIN_NOTHING`: there is nothing, or nothing in
/// time; this is no error), or a negative code. `myelin_error_message()` then says what to do.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "some are for the header alone")]
pub enum myelin_code {
    /// Success.
    MYELIN_OK = 0,
    /// There is nothing to take, or nothing came within the limit.
    MYELIN_NOTHING = 1,
    /// A handle is NULL, closed, of another kind, or in use by an outer call of this thread.
    MYELIN_ERROR_HANDLE = -1,
    /// A name, an option or another argument is not valid; the message names it.
    MYELIN_ERROR_SETTING = -2,
    /// The other side has another type.
    MYELIN_ERROR_TYPE = -3,
    /// A limit on memory, or the machine's memory or shared-memory space, is used up.
    MYELIN_ERROR_MEMORY = -4,
    /// A payload is larger than the publisher allows.
    MYELIN_ERROR_PAYLOAD_SIZE = -5,
    /// Too many loans, samples, calls, handles or files: the message says which.
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
    /// A peer wrote invalid data; it has been disconnected, others go on.
    MYELIN_ERROR_PEER_CORRUPT = -13,
    /// The other side has another version of the shared-memory layout.
    MYELIN_ERROR_VERSION = -14,
    /// The file system or the system's settings forbid it.
    MYELIN_ERROR_PERMISSION = -15,
    /// The handle belongs to the parent process: open a node after fork.
    MYELIN_ERROR_FORKED = -16,
    /// A callback inside a publish uses the publisher that is publishing.
    MYELIN_ERROR_REENTERED = -17,
    /// The network is not available.
    MYELIN_ERROR_NETWORK = -18,
    /// A system call failed.
    MYELIN_ERROR_SYSTEM = -19,
    /// A defect in this library: please report the message.
    MYELIN_ERROR_BUG = -20,
    /// Another thread has closed the object meanwhile.
    MYELIN_ERROR_CLOSED = -21,
    /// Another thread is inside a call that one thread at a time may make.
    MYELIN_ERROR_BUSY = -22,
}

pub use myelin_code::{MYELIN_NOTHING, MYELIN_OK};

/// The failure of a function. Its message is in [`LATEST`] already: without an allocation, for
/// functions that a signal handler calls.
#[derive(Debug)]
pub struct Failure(myelin_code);

impl Failure {
    fn new(code: myelin_code, message: impl Display) -> Failure {
        LATEST.with(|latest| {
            let mut writer = Writer { to: latest.0.get().cast(), at: 0 };
            let _ = write!(writer, "{message}"); // text that does not fit is cut off
        });
        Failure(code)
    }

    pub fn handle(message: impl Display) -> Failure {
        Failure::new(myelin_code::MYELIN_ERROR_HANDLE, message)
    }

    pub fn loan() -> Failure {
        let message = "this loan is already published or discarded, or it belongs to another \
                       owner; take a new one";
        Failure::new(myelin_code::MYELIN_ERROR_LOAN, message)
    }

    /// An invalid argument, and what to do.
    pub fn setting(what: impl Display) -> Failure {
        Failure::new(myelin_code::MYELIN_ERROR_SETTING, what)
    }

    /// Another thread is in a call with the same object.
    pub fn busy(message: &str) -> Failure {
        Failure::new(myelin_code::MYELIN_ERROR_BUSY, message.to_owned())
    }

    /// A payload that is not of its topic's type.
    pub fn length(bytes: usize, type_name: &str) -> Failure {
        let message = format_args!(
            "a payload of {bytes} B does not fit type {type_name}; pass a whole value, or whole elements"
        );
        Failure::new(myelin_code::MYELIN_ERROR_TYPE, message)
    }
}

/// A thread's message, ended by a zero. A signal handler may write another message while one is
/// written or read. Then the text is a mixture, but it still ends, because the last byte is always
/// zero.
struct Latest(UnsafeCell<[u8; MESSAGE_BYTES_MAX]>);

struct Writer {
    to: *mut u8,
    at: usize,
}

impl Writer {
    /// An error if the text is cut off.
    fn push(&mut self, text: &str) -> std::fmt::Result {
        let kept = &text[..text.floor_char_boundary(MESSAGE_BYTES_MAX - 1 - self.at)];
        // SAFETY: there is room for the kept text and a zero; they are this thread's, and no
        // reference to them is left anywhere.
        unsafe {
            self.to.add(self.at).copy_from_nonoverlapping(kept.as_ptr(), kept.len());
            self.at += kept.len();
            self.to.add(self.at).write(0);
        }
        if kept.len() == text.len() { Ok(()) } else { Err(std::fmt::Error) }
    }
}

impl Write for Writer {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let mut pieces = text.split('\0');
        self.push(pieces.next().unwrap_or_default())?;
        pieces.try_for_each(|piece| self.push("\\0").and_then(|()| self.push(piece)))
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
        Failure::new(code, error)
    }
}

/// Runs the body of a function of the ABI. The program gets its result, and never a panic.
#[inline(always)]
pub fn enter(act: impl FnOnce() -> Result<myelin_code, Failure>) -> myelin_code {
    // A value crosses `catch_unwind` through memory, and a code alone is read as it was written. A
    // whole result would be read in one piece after its parts were written, and the read would wait
    // until they have reached the cache.
    catch_unwind(AssertUnwindSafe(|| act().unwrap_or_else(|it| it.0))).unwrap_or_else(is_bug)
}

#[cold]
#[inline(never)]
fn is_bug(panic: Box<dyn Any + Send>) -> myelin_code {
    let message = panic.downcast_ref::<&str>().map(ToString::to_string);
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let message = format_args!("a bug in Myelin, please report it: {message}");
    Failure::new(myelin_code::MYELIN_ERROR_BUG, message).0
}

/// The message of this thread's latest function that returned a negative code: one sentence for
/// people, with the remedy. UTF-8; never NULL; empty if there was none; at most 2,047 bytes. Valid
/// until the next error of the same thread. Any thread, and a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_error_message() -> *const c_char {
    LATEST.with(|latest| latest.0.get().cast())
}

/// The version of the running library: 65,536 × major + 256 × minor + patch. Compare it with
/// `MYELIN_VERSION`, the version of the header. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_version() -> u32 {
    VERSION
}

/// `CLOCK_MONOTONIC` in nanoseconds, the clock of all timestamps: the same for all processes of a
/// host. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_now() -> u64 {
    myelin::now()
}

thread_local! {
    /// Needs neither a constructor nor a destructor: it lives as long as its thread.
    static LATEST: Latest = const { Latest(UnsafeCell::new([0; MESSAGE_BYTES_MAX])) };
}
/// Including the zero.
const MESSAGE_BYTES_MAX: usize = 2_048;

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

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn message() -> String {
        // SAFETY: it ends with a zero, and no error follows before it is copied.
        unsafe { CStr::from_ptr(myelin_error_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn an_error_message_is_cut_only_between_characters() {
        assert_eq!(message(), "");
        Failure::setting("first, and longer");
        Failure::setting("ü\0b\0");
        assert_eq!(message(), "ü\\0b\\0");
        for length in [2_000, 2_046, 2_047, 2_048, 5_000] {
            Failure::setting(format_args!("{}ü{}", "x".repeat(length), "more".repeat(20)));
            let kept = message();
            assert!(kept.starts_with(&"x".repeat(length.min(2_047))));
            assert!(kept.len() <= 2_047);
        }
    }
}
