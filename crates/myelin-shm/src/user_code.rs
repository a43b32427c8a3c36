//! Threads that run code of the user's, called by the library. Such code may end what another such thread
//! runs, and that the other way round: so who is inside waits for nobody.

use std::cell::Cell;

/// Marks this thread as one that runs code of the user's.
pub(crate) struct Inside;

impl Inside {
    #[inline(always)]
    pub(crate) fn new() -> Inside {
        DEPTH.set(DEPTH.get() + 1);
        Inside
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Whether the caller is code of the user's that the library has called. It must not wait for a thread that
/// runs such code.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}
