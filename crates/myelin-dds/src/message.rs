//! The messages of a reader.

use crate::ffi;

/// A received message.
pub struct Message(ffi::Received);

// SAFETY: a reference to a sample that does not change; its count is atomic.
unsafe impl Send for Message {}

impl Message {
    /// # Safety
    /// The caller owns the reference to the sample and gives it away; the message belongs to the
    /// sample.
    pub(crate) unsafe fn of(received: ffi::Received) -> Message {
        Message(received)
    }

    /// Another reference to it.
    pub fn another(&self) -> Message {
        // SAFETY: the sample lives, and the new reference is released with the new message.
        unsafe { ffi::myelin_dds_hold(self.0.sample) };
        Message(self.0)
    }

    /// Its bytes, from the encapsulation header on.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the sample is this long and lives until it is released.
        unsafe { std::slice::from_raw_parts(self.0.message.cast(), self.0.bytes) }
    }

    /// Handle of its writer.
    pub fn writer(&self) -> u64 {
        self.0.writer
    }

    /// Its number in the writer's count, from 1; 0 if unknown.
    pub fn sequence(&self) -> u64 {
        self.0.sequence
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: the only reference that is ours.
        unsafe { ffi::myelin_dds_release(self.0.sample) };
    }
}
