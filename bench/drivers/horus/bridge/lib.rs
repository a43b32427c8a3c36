//! HORUS's topics behind a C interface, for `src/bridge.rs`. A topic carries objects of one Rust
//! type, so there is a compiled type for each size.

mod message;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::ptr;

use horus_core::communication::Topic;

use message::Message;

/// A topic for messages of one size.
pub trait Carrier {
    /// Sends a copy of the object at `message`.
    ///
    /// # Safety
    /// `message` has the size with which the topic was opened.
    unsafe fn send(&self, message: *const u8);
    /// The next object, which stays valid until the next call; null if there is none.
    fn receive(&mut self) -> *const u8;
    /// Number of subscribers that HORUS has registered.
    fn subscribers(&self) -> u32;
}

struct Typed<const BYTES: usize> {
    topic: Topic<Message<BYTES>>,
    taken: Box<Message<BYTES>>,
}

impl<const BYTES: usize> Carrier for Typed<BYTES> {
    #[inline]
    unsafe fn send(&self, message: *const u8) {
        // SAFETY: required of the caller; the bench's memory may be unaligned.
        self.topic.send(unsafe { message.cast::<Message<BYTES>>().read_unaligned() });
    }

    #[inline]
    fn receive(&mut self) -> *const u8 {
        match self.topic.recv() {
            Some(message) => {
                *self.taken = message;
                self.taken.0.as_ptr()
            }
            None => ptr::null(),
        }
    }

    fn subscribers(&self) -> u32 {
        self.topic.sub_count()
    }
}

fn open<const BYTES: usize>(name: &str, capacity: u32) -> Result<Box<dyn Carrier>, String> {
    let topic = match capacity {
        0 => Topic::new(name),
        _ => Topic::with_capacity(name, capacity, None),
    };
    let topic = topic.map_err(|error| error.to_string())?;
    // Allocated on the heap at once, because the largest does not fit twice into a stack.
    let taken = Box::<Message<BYTES>>::new_uninit();
    // SAFETY: bytes, for which any value is valid; all are zero.
    let taken = unsafe {
        let taken = Box::into_raw(taken).cast::<Message<BYTES>>();
        taken.write_bytes(0, 1);
        Box::from_raw(taken)
    };
    Ok(Box::new(Typed { topic, taken }))
}

macro_rules! sizes {
    ($($payload_bytes:expr),+ $(,)?) => {
        const SIZES: &[u64] = &[$($payload_bytes),+];

        fn open_size(payload_bytes: u64, name: &str, capacity: u32) -> Result<Box<dyn Carrier>, String> {
            $(if payload_bytes == $payload_bytes {
                return open::<{ HEADER_BYTES + $payload_bytes }>(name, capacity);
            })+
            Err(format!("no type of {payload_bytes} B"))
        }
    };
}

// Payloads of the scenarios in bench/scenarios. Add a missing one here, in order.
sizes![
    0, 5, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 70_000,
    131_072, 230_400, 262_144, 524_288, 921_600, 1_000_000, 1_048_576,
];

const HEADER_BYTES: usize = 8;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The payloads for which there is a type, in order; stores their number in `count`.
///
/// # Safety
/// `count` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_sizes(count: *mut usize) -> *const u64 {
    // SAFETY: required of the caller.
    unsafe { count.write(SIZES.len()) };
    SIZES.as_ptr()
}

/// Opens a topic; with `capacity` 0 HORUS chooses it. Null on failure; [`myelin_horus_error`] says
/// why.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_open(
    name: *const c_char,
    payload_bytes: u64,
    capacity: u32,
) -> *mut Box<dyn Carrier> {
    // SAFETY: required of the caller.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    match open_size(payload_bytes, &name, capacity) {
        Ok(carrier) => Box::into_raw(Box::new(carrier)),
        Err(error) => {
            ERROR.set(CString::new(error.replace('\0', " ")).unwrap_or_default());
            ptr::null_mut()
        }
    }
}

/// Why this thread's last call to open failed; valid until its next call.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_horus_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// See [`Carrier::send`].
///
/// # Safety
/// `topic` is open and used only by this thread; `message` as the trait requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_send(topic: *mut Box<dyn Carrier>, message: *const u8) {
    // SAFETY: required of the caller.
    unsafe { (*topic).send(message) }
}

/// See [`Carrier::receive`].
///
/// # Safety
/// `topic` is open and used only by this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_receive(topic: *mut Box<dyn Carrier>) -> *const u8 {
    // SAFETY: required of the caller.
    unsafe { (*topic).receive() }
}

/// See [`Carrier::subscribers`].
///
/// # Safety
/// `topic` is open and used only by this thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_subscribers(topic: *const Box<dyn Carrier>) -> u32 {
    // SAFETY: required of the caller.
    unsafe { (*topic).subscribers() }
}

/// Closes a topic.
///
/// # Safety
/// `topic` came from open and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_close(topic: *mut Box<dyn Carrier>) {
    // SAFETY: required of the caller.
    drop(unsafe { Box::from_raw(topic) });
}
