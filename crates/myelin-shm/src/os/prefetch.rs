//! Hints that fetch a cache line to this core before it is needed. They never fault, whatever the
//! address is.

macro_rules! hint {
    ($(#[$attribute:meta])* $name:ident: $x86_64:literal, $aarch64:literal) => {
        $(#[$attribute])*
        #[inline(always)]
        pub(crate) fn $name(pointer: *const u8) {
            let _ = pointer;
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: a hint.
            unsafe {
                std::arch::asm!($x86_64, in(reg) pointer, options(nostack, readonly, preserves_flags));
            }
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            // SAFETY: a hint.
            unsafe {
                std::arch::asm!($aarch64, in(reg) pointer, options(nostack, readonly, preserves_flags));
            }
        }
    };
}

hint! {
    /// The line will be read.
    to_read: "prefetcht0 [{0}]", "prfm pldl1keep, [{0}]"
}
hint! {
    /// The line will be written: other cores lose it.
    to_write: "prefetchw [{0}]", "prfm pstl1keep, [{0}]"
}

/// So many lines from here on will be read.
#[inline(always)]
pub(crate) fn lines_to_read(pointer: *const u8, lines: usize) {
    (0..lines).for_each(|line| to_read(pointer.wrapping_add(64 * line)));
}
