//! Threads that compress chunks, while the writer goes on. What they return keeps the order in
//! which it was given to them, and the bytes that they have are limited.

use std::collections::VecDeque;
use std::io;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism};

use crate::chunk::Chunk;
use crate::compression::{Compression, Packer};
use crate::low_priority::run_when_idle;
use crate::writer::Options;

/// A chunk that a thread compressed.
pub(crate) struct Packed {
    pub chunk: Chunk,
    /// Its records, compressed; `None` if they did not become smaller, or could not be.
    pub records: Option<Vec<u8>>,
    /// Of the records before compression; 0 if none was wanted.
    pub crc: u32,
}

struct Job {
    chunk: Chunk,
    to: Sender<Packed>,
}

/// What a thread has or had.
struct Pending {
    packed: Receiver<Packed>,
    bytes: usize,
    /// How many messages each channel has in it.
    counts: Vec<(u16, u64)>,
}

/// The threads, and what they have.
pub(crate) struct Packing {
    /// `None` when the threads are to end.
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    /// In the order of the file.
    pending: VecDeque<Pending>,
    bytes: usize,
    bytes_max: usize,
    /// Chunks that were written, to be used again.
    spare: Vec<Chunk>,
}

impl Packing {
    /// Starts the threads.
    pub(crate) fn start(options: &Options) -> io::Result<Packing> {
        let &Options { compression, has_checksums, drops_when_behind, .. } = options;
        let bytes_max = options.compression_bytes_max;
        let threads = match options.compression_threads {
            0 => threads_by_default(),
            threads => threads,
        };
        let (jobs, jobs_to_take) = channel();
        let jobs_to_take = Arc::new(Mutex::new(jobs_to_take));
        let start = |number| {
            let jobs = Arc::clone(&jobs_to_take);
            let name = format!("bag-pack-{number}");
            Builder::new().name(name).spawn(move || {
                // Where the writer waits for the threads, its priority is theirs.
                if drops_when_behind {
                    run_when_idle();
                }
                work(compression, has_checksums, &jobs);
            })
        };
        let threads = (0..threads).map(start).collect::<io::Result<_>>()?;
        let (pending, spare) = (VecDeque::new(), Vec::new());
        Ok(Packing { jobs: Some(jobs), threads, pending, bytes: 0, bytes_max, spare })
    }

    /// Whether the threads may have so many bytes more.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.pending.is_empty() || self.bytes + bytes <= self.bytes_max
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// An empty chunk.
    pub(crate) fn chunk(&mut self) -> Chunk {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a chunk back that is written.
    pub(crate) fn recycle(&mut self, mut chunk: Chunk) {
        // Those of large messages would be kept for nothing.
        if self.spare.len() <= self.threads.len() && chunk.records.capacity() <= SPARE_BYTES_MAX {
            chunk.clear();
            self.spare.push(chunk);
        }
    }

    pub(crate) fn push(&mut self, chunk: Chunk) {
        let (bytes, counts) = (chunk.records.len(), chunk.index.counts().collect());
        let (to, packed) = channel();
        if let Some(jobs) = &self.jobs {
            // If no thread is left, the sender is dropped with the job, and `next` notices.
            let _ = jobs.send(Job { chunk, to });
        }
        self.pending.push_back(Pending { packed, bytes, counts });
        self.bytes += bytes;
    }

    /// The chunk that is next in the file, if it is compressed, or waits for it. `None` if there is
    /// none, or not yet; the counts of its messages if its thread failed.
    pub(crate) fn next(&mut self, waits: bool) -> Option<Result<Packed, Vec<(u16, u64)>>> {
        let first = self.pending.front()?;
        let packed = if waits {
            first.packed.recv().ok()
        } else {
            match first.packed.try_recv() {
                Err(TryRecvError::Empty) => return None,
                packed => packed.ok(),
            }
        };
        let first = self.pending.pop_front()?;
        self.bytes -= first.bytes;
        Some(packed.ok_or(first.counts))
    }

    /// Gives up all that is not yet written, and returns the counts of its messages.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = (u16, u64)> {
        self.bytes = 0;
        self.pending.drain(..).flat_map(|pending| pending.counts)
    }
}

impl Drop for Packing {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(compression: Compression, has_checksums: bool, jobs: &Mutex<Receiver<Job>>) {
    // Without one the chunks are written as they are.
    let mut packer = Packer::new(compression).ok().flatten();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { chunk, to }) = job else { return };
        let crc = if has_checksums { crc32fast::hash(&chunk.records) } else { 0 };
        let packed = match &mut packer {
            // Definitions alone are written as they are.
            Some(packer) if chunk.index.messages() > 0 => packer.pack(&chunk.records).ok(),
            _ => None,
        };
        let records = packed.filter(|packed| packed.len() < chunk.records.len());
        let _ = to.send(Packed { chunk, records, crc });
    }
}

/// Half of the CPUs, at most four.
fn threads_by_default() -> usize {
    (available_parallelism().map_or(1, NonZero::get) / 2).clamp(1, 4)
}

/// Of a chunk that is used again.
const SPARE_BYTES_MAX: usize = 4 << 20;
