//! HORUS's topics behind a C interface, for `src/bridge.rs`. What a topic carries is an object of one Rust
//! type, so there is a type for each size, compiled in.

mod message;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::ptr;

use horus_core::communication::Topic;

use message::Message;

/// A topic of a size.
pub trait Carrier {
    /// Sends a copy of the object at `message`.
    ///
    /// # Safety
    /// `message` has the size that the topic was opened with.
    unsafe fn send(&self, message: *const u8);
    /// The next object, which stays until the next call; null if there is none.
    fn receive(&mut self) -> *const u8;
    /// Subscribers that HORUS has registered.
    fn subscribers(&self) -> u32;
}

struct Typed<const BYTES: usize> {
    topic: Topic<Message<BYTES>>,
    taken: Box<Message<BYTES>>,
}

impl<const BYTES: usize> Carrier for Typed<BYTES> {
    #[inline]
    unsafe fn send(&self, message: *const u8) {
        // SAFETY: by the contract of the trait; the bench's memory may be anywhere.
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
    // On the heap from the beginning: the largest does not fit into a stack twice.
    let taken = Box::<Message<BYTES>>::new_uninit();
    // SAFETY: bytes, of which any value will do; all are zero.
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

// Payloads of the scenarios in bench/scenarios. One that is missing is added here, in order.
sizes![
    0, 5, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 70_000,
    131_072, 230_400, 262_144, 524_288, 921_600, 1_000_000, 1_048_576,
];

const HEADER_BYTES: usize = 8;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The payloads for which there is a type, in order; `count` says how many.
///
/// # Safety
/// `count` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_sizes(count: *mut usize) -> *const u64 {
    // SAFETY: by the contract.
    unsafe { count.write(SIZES.len()) };
    SIZES.as_ptr()
}

/// Opens a topic; `capacity` 0 is HORUS's own choice. Null if that fails: [`myelin_horus_error`] says why.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_open(
    name: *const c_char,
    payload_bytes: u64,
    capacity: u32,
) -> *mut Box<dyn Carrier> {
    // SAFETY: by the contract.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    match open_size(payload_bytes, &name, capacity) {
        Ok(carrier) => Box::into_raw(Box::new(carrier)),
        Err(error) => {
            ERROR.set(CString::new(error.replace('\0', " ")).unwrap_or_default());
            ptr::null_mut()
        }
    }
}

/// Why this thread's last call to open failed; until its next.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_horus_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// [`Carrier::send`].
///
/// # Safety
/// `topic` is open, and this its only thread; `message` as the trait says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_send(topic: *mut Box<dyn Carrier>, message: *const u8) {
    // SAFETY: by the contract.
    unsafe { (*topic).send(message) }
}

/// [`Carrier::receive`].
///
/// # Safety
/// `topic` is open, and this its only thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_receive(topic: *mut Box<dyn Carrier>) -> *const u8 {
    // SAFETY: by the contract.
    unsafe { (*topic).receive() }
}

/// [`Carrier::subscribers`].
///
/// # Safety
/// `topic` is open, and this its only thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_subscribers(topic: *const Box<dyn Carrier>) -> u32 {
    // SAFETY: by the contract.
    unsafe { (*topic).subscribers() }
}

/// Closes a topic.
///
/// # Safety
/// `topic` came from open and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_horus_close(topic: *mut Box<dyn Carrier>) {
    // SAFETY: by the contract.
    drop(unsafe { Box::from_raw(topic) });
}
