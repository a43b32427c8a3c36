//! Memory of samples on their way: a slot of the subscriber's queue, or a buffer. Buffers are reused:
//! fresh memory of several megabytes costs as much as the copy into it.

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use myelin_shm::data_plane::publication::SlotLoan;

use crate::network::lock;

/// The bytes of a sample that has arrived.
#[derive(Debug)]
pub(in crate::network) enum Arrived {
    /// In a slot of the only subscriber.
    Slot(SlotLoan),
    /// For several subscribers, or for one without a free slot.
    Buffer(Arc<Buffer>),
}

impl Deref for Arrived {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Arrived::Slot(slot) => slot.bytes(),
            Arrived::Buffer(buffer) => buffer,
        }
    }
}

/// Keeps the memory of a few samples that have gone.
#[derive(Debug, Default)]
pub(in crate::network) struct Pool(Mutex<Vec<Vec<u8>>>);

/// The bytes of a sample. Its memory goes back to the pool when it is dropped.
#[derive(Debug)]
pub(in crate::network) struct Buffer {
    memory: Vec<u8>,
    pool: Arc<Pool>,
}

impl Buffer {
    /// An empty one with room for so many bytes; `None` if memory is short. The memory is taken as it
    /// is filled.
    pub(in crate::network) fn new(pool: &Arc<Pool>, bytes: usize) -> Option<Buffer> {
        let mut memory = lock(&pool.0).pop().unwrap_or_default();
        memory.clear();
        memory.try_reserve_exact(bytes).ok()?;
        Some(Buffer { memory, pool: pool.clone() })
    }

    /// A copy of these parts.
    pub(in crate::network) fn of(pool: &Arc<Pool>, parts: &[&[u8]]) -> Option<Buffer> {
        let mut buffer = Buffer::new(pool, parts.iter().map(|part| part.len()).sum())?;
        parts.iter().for_each(|part| buffer.memory.extend_from_slice(part));
        Some(buffer)
    }

    /// Calls `fill` with room for at most `bytes` more, which says how many it has filled.
    pub(super) fn fill<E>(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let room = self.memory.spare_capacity_mut();
        let most = bytes.min(room.len());
        let filled = fill(&mut room[..most])?;
        assert!(filled <= most);
        // SAFETY: `fill` has initialised that many bytes behind the current ones.
        unsafe { self.memory.set_len(self.memory.len() + filled) };
        Ok(filled)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut kept = lock(&self.pool.0);
        if kept.len() < KEPT_MAX {
            kept.push(std::mem::take(&mut self.memory));
        }
    }
}

/// One that fills while another is read.
const KEPT_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_only_two_are_kept() {
        let pool = Arc::new(Pool::default());
        let first = Buffer::of(&pool, &[&[1; 1_000], &[2; 24]]).unwrap();
        assert_eq!((first.len(), first[1_023]), (1_024, 2));
        let place = first.as_ptr();
        drop(first);
        let second = Buffer::of(&pool, &[&[3; 8]]).unwrap();
        assert_eq!((second.as_ptr(), &second[..]), (place, &[3; 8][..]));
        let many: Vec<_> = (0..9).map(|_| Buffer::new(&pool, 8).unwrap()).collect();
        drop(many);
        assert_eq!(lock(&pool.0).len(), KEPT_MAX);
        assert!(Buffer::new(&pool, usize::MAX).is_none());
    }
}
