//! The functions of the receivers of a system that calls them in the publishing thread.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use crate::driver::{Call, CallSource, Receiver};
use crate::error::Error;

/// A function for each receiver, once it is set; all of it is in one thread.
pub struct CallSlots(Vec<Slot>);

type Slot = Rc<RefCell<Option<Call>>>;

impl CallSlots {
    /// Empty slots, and the receivers that fill them.
    pub fn new(receivers: u32) -> (Self, Vec<Receiver>) {
        let slots: Vec<Slot> = (0..receivers).map(|_| Slot::default()).collect();
        let receiver = |slot: &Slot| Receiver::Calls(Box::new(Source(Rc::clone(slot))));
        let receivers = slots.iter().map(receiver).collect();
        (CallSlots(slots), receivers)
    }

    /// Calls each function with `message`, one after the other.
    #[inline]
    pub fn call(&self, message: &[u8]) {
        for slot in &self.0 {
            if let Some(call) = &mut *slot.borrow_mut() {
                call(message);
            }
        }
    }
}

struct Source(Slot);

impl CallSource for Source {
    fn start(self: Box<Self>, call: Call) -> Result<Box<dyn Any>, Error> {
        *self.0.borrow_mut() = Some(call);
        Ok(Box::new(ClearOnDrop(self.0)))
    }
}

/// Empties the slot when it is dropped.
struct ClearOnDrop(Slot);

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        *self.0.borrow_mut() = None;
    }
}
