//! Objects that belong to one handle, loans and calls, by numbers; each number is used once.

use crate::error::Failure;

/// A number is the place and, above it, how often the place was used before.
pub struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Keeps an object and returns its number.
    pub fn put(&mut self, it: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.free.reserve(1);
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.1 = Some(it);
        u64::from(slot.0) << 32 | u64::from(index + 1)
    }

    /// Takes the object with this number, once.
    ///
    /// # Errors
    /// It was taken already, or never existed.
    pub fn take(&mut self, number: u64) -> Result<T, Failure> {
        let index = (number as u32).wrapping_sub(1);
        let slot = self.slots.get_mut(index as usize);
        let slot = slot.filter(|slot| u64::from(slot.0) == number >> 32);
        let slot = slot.ok_or_else(Failure::loan)?;
        let it = slot.1.take().ok_or_else(Failure::loan)?;
        slot.0 = slot.0.wrapping_add(1);
        self.free.push(index);
        Ok(it)
    }

    /// The object with this number.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn get_mut(&mut self, number: u64) -> Result<&mut T, Failure> {
        let slot = self.slots.get_mut((number as u32).wrapping_sub(1) as usize);
        let slot = slot.filter(|slot| u64::from(slot.0) == number >> 32);
        slot.and_then(|slot| slot.1.as_mut()).ok_or_else(Failure::loan)
    }
}
