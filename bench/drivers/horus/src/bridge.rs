//! HORUS, through the interface of `bridge/lib.rs`.

use std::ffi::{CStr, CString, c_char};
use std::ptr::NonNull;

use myelin_bench_kit::Error;

/// A topic of objects of one size. HORUS requires that only one thread uses it.
pub struct Topic {
    topic: NonNull<Opaque>,
    message_bytes: usize,
}

impl Topic {
    /// Opens `name` for messages with this many bytes of payload and room for `capacity` messages;
    /// with 0 HORUS chooses it.
    pub fn open(name: &str, payload_bytes: u64, capacity: u32) -> Result<Self, Error> {
        let text = CString::new(name).map_err(|_| Error::new(format!("{name:?} is not a name")))?;
        // SAFETY: a C string that outlives the call.
        let topic = unsafe { myelin_horus_open(text.as_ptr(), payload_bytes, capacity) };
        let message_bytes = HEADER_BYTES + payload_bytes as usize;
        match NonNull::new(topic) {
            Some(topic) => Ok(Topic { topic, message_bytes }),
            None => {
                // SAFETY: a C string, valid until this thread's next call to open.
                let error = unsafe { CStr::from_ptr(myelin_horus_error()) }.to_string_lossy();
                Err(Error::new(format!("HORUS: topic {name}: {error}")))
            }
        }
    }

    /// Sends a copy of `message`, which has the length of the topic's messages.
    #[inline]
    pub fn send(&mut self, message: &[u8]) {
        assert_eq!(message.len(), self.message_bytes);
        // SAFETY: open, used by this thread, and of the topic's size.
        unsafe { myelin_horus_send(self.topic.as_ptr(), message.as_ptr()) }
    }

    /// The next message.
    #[inline]
    pub fn receive(&mut self) -> Option<&[u8]> {
        // SAFETY: open, and used by this thread.
        let message = unsafe { myelin_horus_receive(self.topic.as_ptr()) };
        // SAFETY: an object of the topic's size, which the next call to receive replaces; that call
        // needs another `&mut self`.
        (!message.is_null())
            .then(|| unsafe { std::slice::from_raw_parts(message, self.message_bytes) })
    }

    /// Number of subscribers that HORUS has registered.
    pub fn subscribers(&self) -> u32 {
        // SAFETY: open, and used by this thread.
        unsafe { myelin_horus_subscribers(self.topic.as_ptr()) }
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: open, and not used again.
        unsafe { myelin_horus_close(self.topic.as_ptr()) }
    }
}

/// Fails for a size without a compiled type.
pub fn check_size(payload_bytes: u64) -> Result<(), Error> {
    let mut count = 0;
    // SAFETY: a constant table, whose length the call returns.
    let sizes = unsafe { std::slice::from_raw_parts(myelin_horus_sizes(&raw mut count), count) };
    if sizes.contains(&payload_bytes) {
        return Ok(());
    }
    let sizes: Vec<_> = sizes.iter().map(u64::to_string).collect();
    Err(Error::new(format!(
        "payload of {payload_bytes} B: HORUS's messages have types of fixed size"
    ))
    .remedy(format!(
        "use one of {}, or add it to `sizes` in bench/drivers/horus/bridge/lib.rs",
        sizes.join(", ")
    )))
}

/// A topic of the bridge.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn myelin_horus_sizes(count: *mut usize) -> *const u64;
    fn myelin_horus_open(name: *const c_char, payload_bytes: u64, capacity: u32) -> *mut Opaque;
    fn myelin_horus_error() -> *const c_char;
    fn myelin_horus_send(topic: *mut Opaque, message: *const u8);
    fn myelin_horus_receive(topic: *mut Opaque) -> *const u8;
    fn myelin_horus_subscribers(topic: *const Opaque) -> u32;
    fn myelin_horus_close(topic: *mut Opaque);
}

const HEADER_BYTES: usize = myelin_bench_kit::message::HEADER_BYTES;
