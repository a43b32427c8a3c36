//! Samples: those that the program holds, and those that a callback is lent.

use std::cell::Cell;
use std::ffi::c_void;

use myelin::{Sample, SampleBuffer};

use crate::error::{Failure, MYELIN_OK, enter, myelin_code};
use crate::handle;
use crate::sized::{self, sized};

/// A sample where its publisher wrote it. Release each once, in any thread. Held samples keep their
/// memory: a subscriber's `held_max` bounds them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_sample {
    /// sizeof(struct myelin_sample): MYELIN_INIT(myelin_sample).
    pub size: usize,
    /// The sample's id. Do not change it.
    pub id: u64,
    /// The payload, read-only, aligned to 64 (with `dds_cdr` as in `myelin_loan.data`); valid until
    /// it is released. NULL if there is none.
    pub data: *const c_void,
    /// How many bytes.
    pub bytes: usize,
    /// How many samples its publisher published before it.
    pub sequence: u64,
    /// How many samples of the same publisher were lost between the previously taken one and this
    /// one.
    pub lost_before: u64,
    /// When it was published, by `myelin_now`; 0 if its publisher adds no timestamps.
    pub published_ns: u64,
    /// Its publisher's endpoint id, as in events.
    pub publisher: u64,
}

sized! { myelin_sample up to bytes: usize; }

/// The program's view of a sample.
#[inline]
pub fn fields_of(sample: &Sample<[u8]>, id: u64) -> myelin_sample {
    let bytes = sample.as_bytes();
    myelin_sample {
        size: size_of::<myelin_sample>(),
        id,
        data: bytes.as_ptr().cast(),
        bytes: bytes.len(),
        sequence: sample.sequence(),
        lost_before: sample.lost_before(),
        published_ns: sample.published_at().unwrap_or(0),
        publisher: sample.publisher(),
    }
}

/// Calls `call` with a sample that is lent for the length of the call.
pub fn lend(sample: &Sample<[u8]>, call: impl FnOnce(&myelin_sample)) {
    // One access to the thread's memory, which takes a call in a shared library.
    LENT.with(|lent| {
        let before = lent.replace(sample);
        call(&fields_of(sample, LENT_ID));
        lent.set(before);
    });
}

/// Releases a sample: its memory may be used again. `data` becomes NULL; a second time gives
/// MYELIN_ERROR_HANDLE. Do not release a sample that a callback is lent. Any thread.
///
/// # Safety
/// `sample` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_sample_release(sample: *mut myelin_sample) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        sized::check(sample)?;
        if (*sample).id == LENT_ID {
            return Err(is_lent());
        }
        handle::release((*sample).id)?;
        ((*sample).data, (*sample).bytes) = (std::ptr::null(), 0);
        Ok(MYELIN_OK)
    })
}

#[cold]
#[inline(never)]
fn is_lent() -> Failure {
    Failure::handle("this sample is lent to the callback; return from it")
}

/// Makes another reference to the same sample, to be released, too. A callback keeps its lent
/// sample this way. Any thread that has the sample.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_sample_clone(
    sample: *const myelin_sample,
    clone: *mut myelin_sample,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        sized::check(sample.cast_mut())?;
        sized::check(clone)?;
        let held = if (*sample).id == LENT_ID {
            let lent = LENT.get().as_ref(); // while the callback runs
            let lent = lent.filter(|lent| lent.as_bytes().as_ptr().cast() == (*sample).data);
            lent.ok_or_else(|| {
                Failure::handle(
                    "this sample was lent to a callback that has \
                                                returned",
                )
            })?
        } else {
            held((*sample).id)?
        };
        let id = handle::insert(Box::new(SampleBuffer::from(held.clone())))?;
        // A small payload lies in the sample itself, so its address is taken from the final place.
        sized::write(clone, fields_of(self::held(id)?, id))?;
        Ok(MYELIN_OK)
    })
}

/// # Safety
/// As [`handle::get`].
unsafe fn held<'a>(id: u64) -> Result<&'a Sample<[u8]>, Failure> {
    // SAFETY: as the caller promises.
    let buffer = unsafe { handle::get::<SampleBuffer<[u8]>>(id)? };
    Ok(buffer.sample().expect("empty ones have no handle"))
}

thread_local! {
    /// The sample lent to the innermost callback of this thread.
    static LENT: Cell<*const Sample<[u8]>> = const { Cell::new(std::ptr::null()) };
}

/// No handle has this number: it has no kind.
const LENT_ID: u64 = 1;
