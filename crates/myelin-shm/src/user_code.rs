//! Threads that run user code, called by the library. User code in one such thread may end the
//! calls of another, and the other way round. So a thread inside user code waits for no such
//! thread.

use std::cell::Cell;

/// Marks this thread as running user code.
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

/// Whether the caller is user code that the library has called. It must not wait for a thread that
/// runs user code.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}
