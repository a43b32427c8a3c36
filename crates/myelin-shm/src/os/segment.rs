//! Memory shared by processes: a sealed memfd and its mapping.
//!
//! Memory that only its owner may write is sealed so that no other process ever can; a wake word is
//! sealed only against a change of size. Pages are allocated when the segment is made
//! (`fallocate`): missing memory is an error there, not a signal later. A growing segment has its
//! address range from the beginning, and gets memory for the next part when it is needed.

#![cfg_attr(any(miri, loom), allow(dead_code, unused_imports))]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::os::fork;
use crate::os::memory;
use crate::sync::{AtomicU32, AtomicU64};

/// A mapping; unmapped when dropped. The memory lives until the last process has unmapped it.
#[derive(Debug)]
pub struct Segment {
    pointer: NonNull<u8>,
    bytes: usize,
    /// The offset at which the content begins.
    begin: u64,
    fork: u32,
    /// Miri and models support neither memfds nor shared mappings.
    #[cfg(any(miri, loom))]
    memory: std::sync::Arc<heap::Memory>,
}

// SAFETY: a mapping belongs to the process, not to a thread; the types that borrow from it govern
// all reads and writes through it.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

/// The processes that may write a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Only the process that made it, for ever.
    Owner,
    /// Every process that has been given the descriptor.
    Everyone,
}

impl Writers {
    /// The minimum seals of a segment.
    fn seals(self) -> SealFlags {
        self.seals_of_one_size().difference(SealFlags::GROW)
    }

    fn seals_of_one_size(self) -> SealFlags {
        let size = SealFlags::SHRINK | SealFlags::GROW;
        match self {
            Writers::Owner => size | SealFlags::FUTURE_WRITE,
            Writers::Everyone => size,
        }
    }
}

/// Types that may lie in a segment.
///
/// # Safety
/// The type must consist only of atomics and padding, so that any bytes are a valid value and other
/// processes may write them.
pub unsafe trait Shared: Zeroed + 'static {}

/// A value whose bytes are all zero. A model's atomics cannot be made from bytes.
pub trait Zeroed: Sized {
    /// Such a value.
    #[cfg(loom)]
    fn zeroed() -> Self;
}

/// Padding.
impl Zeroed for u8 {
    #[cfg(loom)]
    fn zeroed() -> Self {
        0
    }
}

impl<T: Zeroed, const N: usize> Zeroed for [T; N] {
    #[cfg(loom)]
    fn zeroed() -> Self {
        std::array::from_fn(|_| T::zeroed())
    }
}

/// Implements [`Shared`] for structs; the macro names all of their fields.
macro_rules! shared {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl crate::os::segment::Zeroed for $name {
            #[cfg(loom)]
            fn zeroed() -> Self {
                $name { $($field: crate::os::segment::Zeroed::zeroed()),* }
            }
        }
        // SAFETY: atomics, and padding that is never read.
        unsafe impl crate::os::segment::Shared for $name {}
    )*};
}
pub(crate) use shared;

/// The same for a single word.
macro_rules! shared_word {
    ($name:ident) => {
        impl Zeroed for $name {
            #[cfg(loom)]
            fn zeroed() -> Self {
                $name::new(0)
            }
        }
        // SAFETY: an atomic.
        unsafe impl Shared for $name {}
    };
}
shared_word!(AtomicU32);
shared_word!(AtomicU64);

impl Segment {
    /// Makes a zeroed segment of at least `bytes` and maps it writable. The descriptor can be
    /// passed on.
    pub fn create(name: &str, bytes: u64, writers: Writers) -> Result<(Segment, OwnedFd), Error> {
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let shortage = (bytes > UNCHECKED_BYTES_MAX).then(|| memory::shortage(bytes)).flatten();
        if let Some(reason) = shortage {
            return Err(Error::NoMemory { bytes, reason });
        }
        #[cfg(any(miri, loom))]
        return {
            let _ = (name, writers);
            Ok(heap::create(bytes))
        };
        #[cfg(not(any(miri, loom)))]
        Self::create_sealed(name, bytes, bytes, writers.seals_of_one_size())
    }

    /// Makes a segment that only its owner may write, with memory for at least `bytes`, that can
    /// grow up to `bytes_max`. Returns how much has memory. The rest must not be accessed.
    pub fn create_growing(
        name: &str,
        bytes: u64,
        bytes_max: u64,
    ) -> Result<(Segment, OwnedFd, u64), Error> {
        let [bytes, bytes_max] =
            [bytes, bytes_max].map(|bytes| bytes.max(1).next_multiple_of(PAGE_BYTES));
        #[cfg(any(miri, loom))]
        let (segment, fd) = {
            let _ = name;
            heap::create(bytes_max)
        };
        #[cfg(not(any(miri, loom)))]
        let (segment, fd) = Self::create_sealed(name, bytes, bytes_max, Writers::Owner.seals())?;
        Ok((segment, fd, bytes))
    }

    /// Gives memory to at least `bytes` of a growing segment, of which `before` have memory
    /// already. Returns how much has memory then.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn grow(&self, fd: BorrowedFd<'_>, before: u64, bytes: u64) -> Result<u64, Error> {
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        assert!(bytes <= self.bytes());
        #[cfg(any(miri, loom))]
        let _ = (fd, before);
        #[cfg(not(any(miri, loom)))]
        {
            allocate(fd, before, bytes)?;
            // SAFETY: the range lies in the mapping; the call is a hint.
            let _ = unsafe {
                let part = self.pointer().add(before as usize).cast();
                rustix::mm::madvise(part, (bytes - before) as usize, Advice::LinuxPopulateWrite)
            };
        }
        Ok(bytes)
    }

    /// With an address range of `bytes_max`.
    #[cfg(not(any(miri, loom)))]
    fn create_sealed(
        name: &str,
        bytes: u64,
        bytes_max: u64,
        seals: SealFlags,
    ) -> Result<(Segment, OwnedFd), Error> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let doing = "making a shared segment";
        let fd = rustix::fs::memfd_create(name, flags).map_err(|error| match error {
            Errno::PERM | Errno::NOSYS | Errno::ACCESS => Error::Host {
                doing,
                reason: format!(
                    "memfd_create is forbidden ({error}); allow it in the filter of system calls \
                     (docker: --security-opt seccomp=…, systemd: SystemCallFilter=memfd_create)"
                ),
            },
            error => Error::system("making a shared segment (memfd_create)", error),
        })?;
        rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)
            .map_err(|error| Error::system(doing, error))?;
        allocate(fd.as_fd(), 0, bytes)?;
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        let segment = Self::map(fd.as_fd(), bytes, bytes_max, writable)?;
        rustix::fs::fcntl_add_seals(&fd, seals | SealFlags::SEAL).map_err(|error| {
            Error::system("sealing a shared segment (needs Linux 5.1 or newer)", error)
        })?;
        Ok((segment, fd))
    }

    /// Maps a segment that another process made and that only the other process can write. Fails if
    /// it is not sealed so or smaller than `bytes`.
    pub fn map_theirs(fd: BorrowedFd<'_>, bytes: u64) -> Result<Segment, Error> {
        #[cfg(any(miri, loom))]
        return heap::find(fd, bytes);
        #[cfg(not(any(miri, loom)))]
        {
            let size = check(fd, bytes, Writers::Owner)?;
            Self::map(fd, size, size, ProtFlags::READ)
        }
    }

    /// Like [`map_theirs`](Self::map_theirs), but maps only the beginning: at least the first number
    /// of bytes, and up to the second one as far as the segment has them. Pages are mapped when they
    /// are touched.
    pub fn map_beginning(fd: BorrowedFd<'_>, bytes: [u64; 2]) -> Result<Segment, Error> {
        let [at_least, at_most] = bytes;
        #[cfg(any(miri, loom))]
        {
            let _ = at_most;
            heap::find(fd, at_least)
        }
        #[cfg(not(any(miri, loom)))]
        {
            let size = check(fd, at_least, Writers::Owner)?;
            let bytes = size.min(at_most.next_multiple_of(PAGE_BYTES));
            Self::map(fd, 0, bytes, ProtFlags::READ)
        }
    }

    /// Maps, writable, a segment that every process with its descriptor may write.
    pub fn map_shared(fd: BorrowedFd<'_>, bytes: u64) -> Result<Segment, Error> {
        #[cfg(any(miri, loom))]
        return heap::find(fd, bytes);
        #[cfg(not(any(miri, loom)))]
        {
            let size = check(fd, bytes, Writers::Everyone)?;
            Self::map(fd, size, size, ProtFlags::READ | ProtFlags::WRITE)
        }
    }

    /// `there`: how much of it has memory.
    #[cfg(not(any(miri, loom)))]
    fn map(
        fd: BorrowedFd<'_>,
        there: u64,
        bytes: u64,
        protection: ProtFlags,
    ) -> Result<Segment, Error> {
        let (there, bytes) = (there as usize, bytes as usize);
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let pointer = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0)
        };
        let pointer = pointer.map_err(|error| match unmapped_reason(error) {
            Some(reason) => Error::NoMemory { bytes: bytes as u64, reason },
            None => Error::system("mapping a shared segment", error),
        })?;
        let pointer = NonNull::new(pointer.cast()).expect("mmap never returns null");
        let segment = Segment { pointer, bytes, begin: 0, fork: fork::mark() };
        fork::not_inherited(pointer.addr().get(), bytes);
        // SAFETY: the range is the mapping just made. Both calls are hints: on a kernel without
        // them a child inherits the mapping (its handles still refuse), and faults come later.
        unsafe {
            let _ = rustix::mm::madvise(pointer.as_ptr().cast(), bytes, Advice::LinuxDontFork);
            if there <= POPULATE_BYTES_MAX {
                let populate = match protection.contains(ProtFlags::WRITE) {
                    true => Advice::LinuxPopulateWrite,
                    false => Advice::LinuxPopulateRead,
                };
                let _ = rustix::mm::madvise(pointer.as_ptr().cast(), there, populate);
            }
        }
        Ok(segment)
    }

    /// Makes the content begin `begin` bytes later: offsets count from there. `begin` is a multiple
    /// of the largest alignment in use.
    ///
    /// # Errors
    /// [`Error::PeerCorrupt`] if the segment ends before.
    pub fn beginning_at(mut self, begin: u64) -> Result<Segment, Error> {
        if begin > self.bytes as u64 {
            return Err(Error::PeerCorrupt { what: "a segment shorter than its content" });
        }
        self.begin = begin;
        Ok(self)
    }

    /// Bytes of the mapping.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The mapping's first byte.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// `count` objects of type `T` at `offset`.
    ///
    /// # Safety
    /// Objects in a read-only mapping may only be loaded from.
    ///
    /// # Panics
    /// If they do not lie within the segment, or not at a multiple of `T`'s alignment.
    #[cfg(not(loom))]
    pub unsafe fn array<T: Shared>(&self, offset: u64, count: u64) -> &[T] {
        let bytes = count.checked_mul(size_of::<T>() as u64).expect("count is checked");
        let offset = offset.checked_add(self.begin).expect("offset is checked");
        let end = offset.checked_add(bytes).expect("offset is checked");
        assert!(end <= self.bytes as u64, "beyond the segment");
        assert!(offset.is_multiple_of(align_of::<T>() as u64) && align_of::<T>() <= 4096);
        // SAFETY: within the mapping and aligned (asserted; mappings are page-aligned); valid for
        // any bytes and for concurrent writers, as `T` is `Shared`; lives as long as `self`.
        unsafe {
            std::slice::from_raw_parts(
                self.pointer.as_ptr().add(offset as usize).cast(),
                count as usize,
            )
        }
    }

    /// The same in a model.
    ///
    /// # Safety
    /// None is needed.
    #[cfg(loom)]
    pub unsafe fn array<T: Shared>(&self, offset: u64, count: u64) -> &[T] {
        self.memory.objects(offset + self.begin, count as usize)
    }

    /// One object of type `T` at `offset`.
    ///
    /// # Safety
    /// As for [`array`](Self::array).
    pub unsafe fn at<T: Shared>(&self, offset: u64) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &self.array(offset, 1)[0] }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        #[cfg(not(any(miri, loom)))]
        {
            if !fork::is_to_be_unmapped(self.pointer.addr().get(), self.fork) {
                return; // in a child it is not mapped; another mapping may be there
            }
            // SAFETY: the mapping is ours and nothing borrows from it any more.
            let unmapped = unsafe { rustix::mm::munmap(self.pointer.as_ptr().cast(), self.bytes) };
            debug_assert!(unmapped.is_ok());
        }
    }
}

/// Gives a segment memory from `before` to `bytes`.
#[cfg(not(any(miri, loom)))]
fn allocate(fd: BorrowedFd<'_>, before: u64, bytes: u64) -> Result<(), Error> {
    // Beyond this limit the kernel sends SIGXFSZ, which ends a program.
    let limit = getrlimit(Resource::Fsize).current.filter(|limit| *limit < bytes);
    if let Some(limit) = limit {
        return Err(Error::NoMemory { bytes, reason: file_size_reason(limit) });
    }
    let made = rustix::fs::fallocate(fd, FallocateFlags::empty(), before, bytes - before);
    made.map_err(|error| match error {
        Errno::NOSPC | Errno::NOMEM => Error::NoMemory {
            bytes,
            reason: memory::shortage(bytes).unwrap_or_else(|| NO_REASON.to_owned()),
        },
        error => Error::system("allocating a shared segment", error),
    })
}

fn file_size_reason(limit: u64) -> String {
    format!(
        "a file of process {} may have {limit} B (RLIMIT_FSIZE), and a segment counts as one; raise it \
         (ulimit -f unlimited, LimitFSIZE=infinity)",
        std::process::id()
    )
}

/// The limit that made a mapping fail.
fn unmapped_reason(error: Errno) -> Option<String> {
    let [locked, space] = [Resource::Memlock, Resource::As].map(|of| getrlimit(of).current);
    let process = std::process::id();
    Some(match (error, locked, space) {
        (Errno::AGAIN, Some(limit), _) => format!(
            "process {process} locks its memory (mlockall), and may lock {limit} B (RLIMIT_MEMLOCK); \
             raise it (ulimit -l, LimitMEMLOCK=)"
        ),
        (Errno::NOMEM, _, Some(limit)) => format!(
            "the address space of process {process} may have {limit} B (RLIMIT_AS); raise it (ulimit \
             -v, LimitAS=)"
        ),
        (Errno::NOMEM, ..) => format!(
            "process {process} has as many mappings as it may have; raise vm.max_map_count (sysctl)"
        ),
        _ => return None,
    })
}

#[cfg(not(any(miri, loom)))]
fn check(fd: BorrowedFd<'_>, bytes: u64, writers: Writers) -> Result<u64, Error> {
    let seals = rustix::fs::fcntl_get_seals(fd);
    let wanted = writers.seals() | SealFlags::SEAL;
    if !seals.is_ok_and(|seals| seals.contains(wanted)) {
        return Err(Error::PeerCorrupt { what: "a segment that is not sealed" });
    }
    let file =
        rustix::fs::fstat(fd).map_err(|error| Error::system("looking at a segment", error))?;
    let (size, allocated) = (file.st_size as u64, file.st_blocks as u64 * 512);
    if size < bytes || size == 0 {
        return Err(Error::PeerCorrupt { what: "a segment shorter than its content" });
    }
    if allocated < size {
        // We would have to pay for its pages, and get a SIGBUS where there are none.
        return Err(Error::PeerCorrupt { what: "a segment without memory" });
    }
    Ok(size)
}

/// Under Miri and in models, which support neither memfds nor shared mappings, a segment is memory
/// of this process, and its descriptor, an eventfd, counts its number.
#[cfg(any(miri, loom))]
mod heap {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::sync::{Arc, Mutex, Weak};

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[derive(Debug)]
    pub(super) struct Memory {
        pointer: NonNull<u8>,
        layout: Layout,
        /// The objects by offset, made at the first look. loom's objects are larger than the memory
        /// they represent.
        #[cfg(loom)]
        objects: Mutex<std::collections::BTreeMap<u64, Box<dyn std::any::Any>>>,
    }

    // SAFETY: see `Segment`; the objects are `Shared`.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: from `create`, with this layout; no segment is left.
            unsafe { dealloc(self.pointer.as_ptr(), self.layout) };
        }
    }

    #[cfg(loom)]
    impl Memory {
        pub(super) fn objects<T: Shared>(&self, offset: u64, count: usize) -> &[T] {
            let mut objects = self.objects.lock().unwrap();
            let new = || Box::new((0..count).map(|_| T::zeroed()).collect::<Vec<T>>()) as _;
            let found = objects.entry(offset).or_insert_with(new);
            let found = found.downcast_ref::<Vec<T>>().expect("an offset has objects of one type");
            assert!(count <= found.len(), "an array keeps its first length");
            // SAFETY: nothing is removed or changes its size before all segments have been dropped,
            // and with them all borrows.
            unsafe { std::slice::from_raw_parts(found.as_ptr(), count) }
        }
    }

    pub(super) fn create(bytes: u64) -> (Segment, OwnedFd) {
        let layout = Layout::from_size_align(bytes as usize, PAGE_BYTES as usize).unwrap();
        // SAFETY: at least a page.
        let pointer = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory");
        let memory = Memory {
            pointer,
            layout,
            #[cfg(loom)]
            objects: Mutex::default(),
        };
        let memory = Arc::new(memory);
        let mut all = ALL.lock().unwrap();
        all.push(Arc::downgrade(&memory));
        let number = all.len() as u32;
        drop(all);
        (segment(memory), eventfd(number, EventfdFlags::CLOEXEC).unwrap())
    }

    pub(super) fn find(fd: BorrowedFd<'_>, bytes: u64) -> Result<Segment, Error> {
        let mut number = [0; 8];
        rustix::io::read(fd, &mut number).unwrap();
        rustix::io::write(fd, &number).unwrap();
        let found = ALL.lock().unwrap()[u64::from_ne_bytes(number) as usize - 1].upgrade();
        match found {
            Some(memory) if bytes <= memory.layout.size() as u64 => Ok(segment(memory)),
            _ => Err(Error::PeerCorrupt { what: "a segment shorter than its content" }),
        }
    }

    fn segment(memory: Arc<Memory>) -> Segment {
        let (pointer, bytes) = (memory.pointer, memory.layout.size());
        Segment { pointer, bytes, begin: 0, fork: fork::mark(), memory }
    }

    static ALL: Mutex<Vec<Weak<Memory>>> = Mutex::new(Vec::new());
}

const PAGE_BYTES: u64 = 4096;
/// Segments up to this size are made without checking how much memory is left.
const UNCHECKED_BYTES_MAX: u64 = 1 << 20;
const NO_REASON: &str = "the kernel has no free memory; end other programs, give this container \
                         more (--memory, MemoryMax=), or lower payload or depth";
/// Segments up to this size are mapped at once; pages of larger ones are mapped when they are
/// touched.
const POPULATE_BYTES_MAX: usize = 64 << 20;

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn a_segment_is_read_only_and_of_fixed_size_for_others() {
        let (ours, fd) = Segment::create("test", 100, Writers::Owner).unwrap();
        // SAFETY: AtomicU64 is valid for any bytes.
        unsafe { ours.at::<AtomicU64>(8) }.store(7, Ordering::Relaxed);
        let theirs = Segment::map_theirs(fd.as_fd(), 100).unwrap();
        // SAFETY: as above, and only loaded.
        assert_eq!(unsafe { theirs.at::<AtomicU64>(8) }.load(Ordering::Relaxed), 7);
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        assert!(Segment::map(fd.as_fd(), 4096, 4096, writable).is_err());
        assert!(rustix::fs::ftruncate(&fd, 0).is_err());
        assert!(rustix::fs::ftruncate(&fd, 8192).is_err());
        assert!(rustix::io::write(&fd, b"x").is_err());
        // SAFETY: the range is our mapping; making it writable must fail.
        let made =
            unsafe { rustix::mm::mprotect(theirs.pointer().cast(), 4096, mprotect_writable()) };
        assert!(made.is_err());
    }

    #[test]
    fn a_mapping_with_an_offset_has_the_right_content_and_end() {
        let (ours, fd) = Segment::create("test", 4096, Writers::Owner).unwrap();
        let theirs = Segment::map_theirs(fd.as_fd(), 4096).unwrap().beginning_at(384).unwrap();
        // SAFETY: AtomicU64 is valid for any bytes, and the second is only loaded.
        let [there, here] = unsafe { [ours.at::<AtomicU64>(392), theirs.at::<AtomicU64>(8)] };
        there.store(7, Ordering::Relaxed);
        assert_eq!(here.load(Ordering::Relaxed), 7);
        // SAFETY: as above.
        let beyond = || unsafe { theirs.at::<AtomicU64>(4096 - 384) }.load(Ordering::Relaxed);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(beyond)).is_err());
        assert!(theirs.beginning_at(4097).is_err());
    }

    #[test]
    fn unsealed_and_short_segments_are_refused() {
        let fd = rustix::fs::memfd_create("loose", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, 4096).unwrap();
        assert!(matches!(Segment::map_theirs(fd.as_fd(), 1), Err(Error::PeerCorrupt { .. })));
        let (_, fd) = Segment::create("short", 4096, Writers::Owner).unwrap();
        assert!(matches!(Segment::map_theirs(fd.as_fd(), 4097), Err(Error::PeerCorrupt { .. })));
        let (_, wake_word) = Segment::create("wake-word", 64, Writers::Everyone).unwrap();
        assert!(matches!(
            Segment::map_theirs(wake_word.as_fd(), 1),
            Err(Error::PeerCorrupt { .. })
        ));
    }

    fn mprotect_writable() -> rustix::mm::MprotectFlags {
        rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE
    }
}
