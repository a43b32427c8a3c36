//! The floor of all callbacks: publishing calls the receivers' functions, one after the other, in
//! the publishing thread. Nothing is copied, queued or locked.

use myelin_bench_kit::{CallSlots, Error, Publisher, Stream};

/// A publisher, and `receivers` subscribers for functions.
pub fn open(receivers: u32) -> Stream {
    let (slots, receivers) = CallSlots::new(receivers);
    Stream::one_process(Box::new(Caller(slots)), receivers)
}

struct Caller(CallSlots);

impl Publisher for Caller {
    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.0.call(message);
        Ok(())
    }
}
