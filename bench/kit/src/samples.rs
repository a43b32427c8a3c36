//! The sample file: one fixed-size record per message, written by the driver, read by the lab.
//!
//! ```text
//! offset 0      FileHeader, padded to HEADER_BYTES   `written` by the driver, the rest by the lab
//! offset 4096   Record 0 │ Record 1 │ …              by the driver; the lab reads below `written`
//! ```
//! The file is memory that both map (a memfd: it has no name, so nothing can be left behind). The
//! driver faults in every page before the run, so that recording never enters the kernel. Record n
//! belongs to message n × `record_every`, counted from the first after the warm-up, whether or not
//! it was answered. A record is complete once `written` exceeds its index; a late answer may still
//! fill in `wake_ns` and `take_return_ns`.

use std::fs::File;
use std::mem::offset_of;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;

use crate::error::Error;

/// The life of one message, in nanoseconds on the clock of the run. 64 bytes, one cache line.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Sequence number, counted from 0 after the warm-up.
    pub id: u64,
    /// When the message was due by the schedule; equals `publish_entry_ns` without a rate.
    pub intended_ns: u64,
    /// Before loan, fill and publish. For pong: before it publishes the answer, or 0 if that was
    /// not stamped separately from `take_return_ns`.
    pub publish_entry_ns: u64,
    /// After publish.
    pub publish_return_ns: u64,
    /// After the wait; 0 if this system waits inside its take.
    pub wake_ns: u64,
    /// After the take; 0 if nothing arrived.
    pub take_return_ns: u64,
    /// From `publish_entry_ns` to the end of the loan call; 0 without loans. Saturates. For streams
    /// and images it precedes `publish_entry_ns`, which is the message's stamp. 0 at the receiving
    /// end; that of images writes [`Taken`].
    pub loan_ns: u32,
    /// From the loan until it was filled; 0 without loans, except that a frame is always filled.
    /// Saturates. See `loan_ns`.
    pub fill_ns: u32,
    /// CPU on which publish returned.
    pub publish_cpu: u16,
    /// CPU on which take returned.
    pub take_cpu: u16,
    /// [`CORRUPT`], [`OUT_OF_ORDER`], [`LATE`], [`LEAN`].
    pub flags: u16,
    /// Additional answers. Saturates.
    pub duplicates: u16,
}

/// A [`Record`] of the receiving end of images. It has the same size and layout, but instead of
/// loan, fill and publish it has the copies of the frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// See [`Record::id`].
    pub id: u64,
    /// 0, because nothing was published.
    pub unused: [u64; 3],
    /// See [`Record::wake_ns`].
    pub wake_ns: u64,
    /// See [`Record::take_return_ns`].
    pub take_return_ns: u64,
    /// Duration of the frame's `memcpy`. Saturates.
    pub memcpy_ns: u32,
    /// Duration of its copy with streaming stores. Saturates.
    pub stream_copy_ns: u32,
    /// 0, because nothing was published.
    pub unused_cpu: u16,
    /// See [`Record::take_cpu`].
    pub take_cpu: u16,
    /// See [`Record::flags`].
    pub flags: u16,
    /// See [`Record::duplicates`].
    pub duplicates: u16,
}

impl Record {
    /// The record as the receiving end of images wrote it.
    pub fn as_taken(&self) -> Taken {
        // SAFETY: both are 64 bytes of integers without padding (asserted below).
        unsafe { std::mem::transmute(*self) }
    }
}

impl From<Taken> for Record {
    fn from(taken: Taken) -> Self {
        // SAFETY: as above.
        unsafe { std::mem::transmute(taken) }
    }
}

const _: () = {
    assert!(size_of::<Taken>() == RECORD_BYTES && align_of::<Taken>() == align_of::<Record>());
    assert!(offset_of!(Taken, wake_ns) == offset_of!(Record, wake_ns));
    assert!(offset_of!(Taken, take_return_ns) == offset_of!(Record, take_return_ns));
    assert!(offset_of!(Taken, memcpy_ns) == 48 && offset_of!(Taken, stream_copy_ns) == 52);
    assert!(offset_of!(Taken, take_cpu) == offset_of!(Record, take_cpu));
    assert!(offset_of!(Taken, flags) == offset_of!(Record, flags));
    assert!(offset_of!(Taken, duplicates) == offset_of!(Record, duplicates));
};

/// The payload was damaged.
pub const CORRUPT: u16 = 1;
/// Answered after a later message.
pub const OUT_OF_ORDER: u16 = 2;
/// Answered after its time limit.
pub const LATE: u16 = 4;
/// The parts of this message were not stamped: `wake_ns`, `loan_ns` and `fill_ns` are 0, and pong's
/// `take_return_ns` is its `publish_return_ns`. So nothing of the kit is in its path.
pub const LEAN: u16 = 8;

const _: () = assert!(size_of::<Record>() == RECORD_BYTES);
const _: () = assert!(align_of::<Record>() == 8);

/// Bytes of a [`Record`].
pub const RECORD_BYTES: usize = 64;
/// Offset of the first record.
pub const HEADER_BYTES: usize = 4096;
/// First word of the file: "myelinS1" in memory order.
pub const MAGIC: u64 = u64::from_le_bytes(*b"myelinS1");

/// Start of the file. The lab writes it when it makes the file, except for `written` and
/// `exchanges`.
#[repr(C)]
struct FileHeader {
    magic: u64,
    capacity: u64,
    /// Number of complete records. Written only by the driver.
    written: AtomicU64,
    /// Messages exchanged so far, recorded or not, including the warm-up; shows that the driver is
    /// alive. Written only by the driver.
    exchanges: AtomicU64,
}

const _: () = assert!(size_of::<FileHeader>() <= HEADER_BYTES);

/// Size of a file for `capacity` records, in bytes.
pub fn file_bytes(capacity: u64) -> u64 {
    HEADER_BYTES as u64 + capacity * RECORD_BYTES as u64
}

/// A mapped sample file. One process writes it; the lab reads it at any time.
pub struct SampleFile {
    map: MmapMut,
    capacity: usize,
    /// Bits of an index that select a record: all, unless the file is a ring.
    mask: usize,
}

impl SampleFile {
    /// Resizes `file` for a header and `capacity` records. Used by the lab.
    pub fn create(file: &File, capacity: u64) -> Result<Self, Error> {
        file.set_len(file_bytes(capacity))?;
        let map = map(file)?;
        let this = SampleFile { map, capacity: capacity as usize, mask: usize::MAX };
        let header = this.map.as_ptr().cast_mut().cast::<FileHeader>();
        // SAFETY: the map is page-aligned and at least HEADER_BYTES long; nobody else has the
        // file yet.
        unsafe {
            (*header).capacity = capacity;
            (*header).magic = MAGIC;
        }
        Ok(this)
    }

    /// Opens the lab's file and faults in every page. Used by the driver.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut this = SampleFile::look(path)?;
        this.fault_in();
        Ok(this)
    }

    /// Opens the file of another driver process, to read its progress.
    pub fn look(path: &Path) -> Result<Self, Error> {
        let file = File::options().read(true).write(true).open(path)?;
        let map = map(&file)?;
        let bytes = map.len() as u64;
        if bytes < HEADER_BYTES as u64 {
            return Err(Error::new(format!("{}: not a sample file: too short", path.display())));
        }
        let this = SampleFile { map, capacity: 0, mask: usize::MAX };
        let (magic, capacity) = (this.header().magic, this.header().capacity);
        let fits = capacity
            .checked_mul(RECORD_BYTES as u64)
            .and_then(|records| records.checked_add(HEADER_BYTES as u64))
            .is_some_and(|needed| needed <= bytes);
        if magic != MAGIC || !fits {
            let text = format!("{}: not a sample file of this version", path.display());
            return Err(Error::new(text));
        }
        Ok(SampleFile { capacity: capacity as usize, ..this })
    }

    /// Number of records that fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// From now on the file is a ring: the record at an index beyond the capacity replaces the one
    /// that many before it. The capacity must be a power of two.
    pub fn wrap(&mut self) -> Result<(), Error> {
        if !self.capacity.is_power_of_two() {
            return Err(Error::new(format!("protocol: a ring of {} records", self.capacity))
                .remedy("use a power of two"));
        }
        self.mask = self.capacity - 1;
        Ok(())
    }

    /// Number of records for which there is room: those of a ring have no limit.
    pub fn room(&self) -> usize {
        if self.mask == usize::MAX { self.capacity } else { usize::MAX }
    }

    /// Number of records complete so far, including those that a ring has replaced.
    pub fn position(&self) -> u64 {
        // ORDER: acquire, as in `written`.
        self.header().written.load(Ordering::Acquire)
    }

    /// A copy of the record at `index` of a file or of a ring; `None` if there is no such record.
    /// Another process may be writing it: compare its id.
    pub fn at(&self, index: u64) -> Option<Record> {
        let capacity = self.capacity as u64;
        self.copy((index % capacity.max(1)) as usize)
    }

    /// Number of complete records.
    pub fn written(&self) -> usize {
        // ORDER: acquire pairs with the release in `finish`; makes the record's bytes visible.
        let written = self.header().written.load(Ordering::Acquire) as usize;
        written.min(self.capacity)
    }

    /// The record at `index`, for writing; `None` beyond the capacity.
    #[inline(always)]
    pub fn record(&mut self, index: usize) -> Option<&mut Record> {
        let index = index & self.mask;
        if index >= self.capacity {
            return None;
        }
        let at = HEADER_BYTES + index * RECORD_BYTES;
        // SAFETY: index < capacity, and `open`/`create` have checked that capacity records fit
        // into the map; the offset is a multiple of 64. Any bit pattern is a valid Record. `self`
        // is borrowed mutably, and no other process writes records.
        Some(unsafe { &mut *self.map.as_mut_ptr().add(at).cast::<Record>() })
    }

    /// Declares all records below `written` complete, and prefetches the line of the next one.
    /// Otherwise its store might miss the cache, and the next locked instruction, which belongs to
    /// the system under test, would wait for it.
    #[inline(always)]
    pub fn finish(&mut self, written: usize) {
        // ORDER: release pairs with the acquire in `written`.
        self.header().written.store(written as u64, Ordering::Release);
        if written < self.capacity {
            prefetch(self.map.as_ptr().wrapping_add(HEADER_BYTES + written * RECORD_BYTES));
        }
    }

    /// Shows the lab that messages are exchanged.
    #[inline(always)]
    pub fn beat(&self, exchanges: u64) {
        // ORDER: Relaxed, it publishes nothing else.
        self.header().exchanges.store(exchanges, Ordering::Relaxed);
    }

    /// Number of exchanged messages.
    pub fn exchanges(&self) -> u64 {
        // ORDER: Relaxed, as in `beat`.
        self.header().exchanges.load(Ordering::Relaxed)
    }

    /// A copy of the complete records. Used by the lab.
    pub fn records(&self) -> Vec<Record> {
        (0..self.written()).filter_map(|index| self.copy(index)).collect()
    }

    /// A copy of the record at `index`, complete or not; `None` beyond the capacity.
    fn copy(&self, index: usize) -> Option<Record> {
        if index >= self.capacity {
            return None;
        }
        let at = HEADER_BYTES + index * RECORD_BYTES;
        // SAFETY: index < capacity, and that many records fit into the map; the offset is a
        // multiple of 64. The driver may still add a late answer to a record; a torn read gives
        // wrong numbers, but no undefined behaviour. The lab reads the records it stores after the
        // driver has ended.
        Some(unsafe { self.map.as_ptr().add(at).cast::<Record>().read_volatile() })
    }

    fn header(&self) -> &FileHeader {
        // SAFETY: the map is page-aligned and at least HEADER_BYTES long; the only field that
        // changes while it is shared is atomic.
        unsafe { &*self.map.as_ptr().cast::<FileHeader>() }
    }

    fn fault_in(&mut self) {
        for page in self.map[HEADER_BYTES..].chunks_mut(4096) {
            // SAFETY: a valid, writable byte; volatile so that the store is not optimised out.
            unsafe { std::ptr::write_volatile(page.as_mut_ptr(), 0) };
        }
    }
}

/// Fetches a line in a state in which it can be written, if no other core has it.
#[inline(always)]
fn prefetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; it faults on no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint; it faults on no address.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{0}]", in(reg) line, options(nostack, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = line;
}

/// The bytes of records in memory.
pub fn bytes_of(records: &[Record]) -> &[u8] {
    // SAFETY: Record is repr(C) without padding (asserted by its size), so its bytes are all
    // initialised.
    unsafe { std::slice::from_raw_parts(records.as_ptr().cast::<u8>(), size_of_val(records)) }
}

/// The bytes of records in memory, to be filled.
pub fn bytes_of_mut(records: &mut [Record]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`, and any bytes are valid Records.
    unsafe { std::slice::from_raw_parts_mut(records.as_mut_ptr().cast(), size_of_val(records)) }
}

/// The reverse of [`bytes_of`]; `None` if the bytes are not whole records.
pub fn records_of(bytes: &[u8]) -> Option<Vec<Record>> {
    let mut records = vec![Record::default(); bytes.len() / RECORD_BYTES];
    let into = bytes_of_mut(&mut records);
    (into.len() == bytes.len()).then(|| into.copy_from_slice(bytes))?;
    Some(records)
}

fn map(file: &File) -> Result<MmapMut, Error> {
    // SAFETY: the file is memory shared with the other side of the protocol. It is never
    // truncated, and all accesses go through `SampleFile`, which checks indices and tolerates
    // any content.
    Ok(unsafe { MmapMut::map_mut(file)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_reads_the_samples_of_the_driver() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lab = SampleFile::create(file.as_file(), 3).unwrap();
        let mut driver = SampleFile::open(file.path()).unwrap();
        assert_eq!(driver.capacity(), 3);
        for index in 0..3 {
            driver.record(index).unwrap().id = 10 + index as u64;
        }
        assert_eq!(lab.records(), []);
        driver.finish(2);
        let ids: Vec<u64> = lab.records().iter().map(|record| record.id).collect();
        assert_eq!(ids, [10, 11]);
        assert!(driver.record(3).is_none());
    }

    #[test]
    fn a_ring_keeps_the_latest_records() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lab = SampleFile::create(file.as_file(), 4).unwrap();
        let mut driver = SampleFile::open(file.path()).unwrap();
        assert_eq!(driver.room(), 4);
        driver.wrap().unwrap();
        assert_eq!(driver.room(), usize::MAX);
        for index in 0..7 {
            driver.record(index).unwrap().id = index as u64;
            driver.finish(index + 1);
        }
        assert_eq!((lab.position(), lab.written()), (7, 4));
        let ids: Vec<u64> = (3..7).map(|index| lab.at(index).unwrap().id).collect();
        assert_eq!(ids, [3, 4, 5, 6]);
        let odd = tempfile::NamedTempFile::new().unwrap();
        assert!(SampleFile::create(odd.as_file(), 6).unwrap().wrap().is_err());
    }

    #[test]
    fn a_lying_header_is_refused_or_clamped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut lab = SampleFile::create(file.as_file(), 2).unwrap();
        lab.finish(u64::MAX as usize);
        assert_eq!(lab.records().len(), 2);
        lab.map[8..16].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert!(SampleFile::open(file.path()).is_err());
        lab.map[8..16].copy_from_slice(&2u64.to_ne_bytes());
        lab.map[0] ^= 1;
        assert!(SampleFile::open(file.path()).is_err());
    }
}
