//! What belongs to one handle, loans and calls, by numbers of which each is used once.

use crate::error::Failure;

/// A number is the place and, above, how often it was used before.
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
    /// The number of what is kept.
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

    /// What has this number, once.
    ///
    /// # Errors
    /// There is none any more, or there never was.
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

    /// What has this number, to be used.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn get_mut(&mut self, number: u64) -> Result<&mut T, Failure> {
        let slot = self.slots.get_mut((number as u32).wrapping_sub(1) as usize);
        let slot = slot.filter(|slot| u64::from(slot.0) == number >> 32);
        slot.and_then(|slot| slot.1.as_mut()).ok_or_else(Failure::loan)
    }
}
