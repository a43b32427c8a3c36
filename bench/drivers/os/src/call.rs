//! The floor of all callbacks: publishing calls the receivers' functions, one after the other, in
//! the publishing thread. Nothing is copied, queued or locked.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use myelin_bench_kit::{Call, CallSource, Error, Publisher, Receiver, Stream};

/// A publisher, and `receivers` subscribers for functions.
pub fn open(receivers: u32) -> Stream {
    let slots: Vec<Slot> = (0..receivers).map(|_| Slot::default()).collect();
    let source = |slot: &Slot| Receiver::Calls(Box::new(Source(Rc::clone(slot))));
    let sources = slots.iter().map(source).collect();
    Stream::one_process(Box::new(Caller(slots)), sources)
}

/// A receiver's function, once it is set; all of it is in one thread.
type Slot = Rc<RefCell<Option<Call>>>;

struct Caller(Vec<Slot>);

impl Publisher for Caller {
    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        for slot in &self.0 {
            if let Some(call) = &mut *slot.borrow_mut() {
                call(message);
            }
        }
        Ok(())
    }
}

struct Source(Slot);

impl CallSource for Source {
    fn start(self: Box<Self>, call: Call) -> Result<Box<dyn Any>, Error> {
        *self.0.borrow_mut() = Some(call);
        Ok(Box::new(Calling(self.0)))
    }
}

/// Empties the slot when it is dropped.
struct Calling(Slot);

impl Drop for Calling {
    fn drop(&mut self) {
        *self.0.borrow_mut() = None;
    }
}
