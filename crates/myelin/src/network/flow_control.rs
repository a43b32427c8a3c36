//! How many samples of a publisher may be under way to other hosts, and the wait for room.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use myelin_dds::{Guid, Release};

use super::lock;

/// A publisher's limit of samples under way, and when it requests acknowledgements. Only its thread
/// uses it.
#[derive(Debug)]
pub(super) struct Window {
    limits: Limits,
    /// How many of the newest samples are kept even when all have been acknowledged.
    history: usize,
    /// The bytes of each, the oldest first, and their sum.
    kept: RefCell<VecDeque<u64>>,
    kept_bytes: Cell<u64>,
    /// How much the readers' hosts receive at once. More is sent only after a wait without success,
    /// at this count of releases: the link is cut then, and waiting gains nothing.
    pace_bytes: Cell<u64>,
    unpaced: Cell<Option<u64>>,
    /// How many samples since the last question.
    samples: Cell<u32>,
    bytes: Cell<u64>,
    requested: Cell<Option<Instant>>,
}

/// The limit of what is under way.
#[derive(Clone, Copy, Debug)]
struct Limits {
    depth: u32,
    bytes_max: u64,
}

impl Limits {
    /// Whether one more sample fits in addition to so many samples and bytes that are not
    /// acknowledged. A single sample always fits, however large.
    fn fits(&self, samples: u32, bytes: u64) -> bool {
        let depth = samples < self.depth && bytes < self.bytes_max;
        let burst = samples < BURST_SAMPLES && bytes < BURST_BYTES.min(self.bytes_max);
        samples == 0 || depth || burst
    }

    /// Whether so many fill less than half of it.
    fn fits_twice(&self, samples: u32, bytes: u64) -> bool {
        self.fits(samples.saturating_mul(2), bytes.saturating_mul(2))
    }
}

/// When a publisher that waits for acknowledgements is woken: once half of its window is free. One
/// acknowledgement releases many samples, so waking it for each sample would cost two thread
/// switches for each.
#[derive(Clone, Copy, Debug)]
pub(super) struct WakeThreshold {
    limits: Limits,
    kept: u32,
    kept_bytes: u64,
}

impl WakeThreshold {
    /// Whether one more sample fits in addition to so many samples and bytes that CycloneDDS has.
    fn fits(&self, samples: u32, bytes: u64) -> bool {
        let bytes = bytes.saturating_sub(self.kept_bytes);
        self.limits.fits(samples.saturating_sub(self.kept), bytes)
    }

    fn is_free(&self, samples: u32, bytes: u64) -> bool {
        let bytes = bytes.saturating_sub(self.kept_bytes);
        self.limits.fits_twice(samples.saturating_sub(self.kept), bytes)
    }
}

impl Window {
    /// For a topic's depth and history.
    pub(super) fn new(depth: u32, history: u32, bytes_max: u64) -> Window {
        Window {
            limits: Limits { depth, bytes_max: bytes_max.min(WINDOW_BYTES_MAX) },
            history: history as usize,
            kept: RefCell::default(),
            kept_bytes: Cell::new(0),
            pace_bytes: Cell::new(u64::MAX),
            unpaced: Cell::new(None),
            samples: Cell::new(0),
            bytes: Cell::new(0),
            requested: Cell::new(None),
        }
    }

    /// Sets the smallest socket buffer of the readers' hosts.
    pub(super) fn set_buffer(&self, bytes: u64) {
        self.pace_bytes.set((bytes / 2).max(PACE_BYTES_MIN));
    }

    /// The state to wait for.
    pub(super) fn threshold(&self) -> WakeThreshold {
        let kept = self.kept.borrow().len() as u32;
        WakeThreshold { limits: self.limits, kept, kept_bytes: self.kept_bytes.get() }
    }

    /// A sample of so many bytes is written now; returns whether it requests acknowledgements. Each
    /// sample that fills half of the window does, by samples or by bytes, and so does the first one
    /// after some time, so that the answer comes before the window is full, and nothing is kept for
    /// long. The samples without a request are less than half: once all questions are answered, the
    /// publisher is woken.
    pub(super) fn enter(&self, bytes: u64, now: Instant) -> bool {
        if self.history > 0 {
            self.keep(bytes);
        }
        self.samples.set(self.samples.get() + 1);
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        let requests = !self.limits.fits_twice(self.samples.get(), self.bytes.get())
            || self.bytes.get().saturating_mul(2) >= self.pace_bytes.get()
            || self.requested.get().is_none_or(|requested| now - requested >= REQUEST_AGAIN);
        if requests {
            self.samples.set(0);
            self.bytes.set(0);
            self.requested.set(Some(now));
        }
        requests
    }

    fn keep(&self, bytes: u64) {
        let mut kept = self.kept.borrow_mut();
        let gone = if kept.len() == self.history { kept.pop_front() } else { None };
        kept.push_back(bytes);
        self.kept_bytes.set(self.kept_bytes.get() + bytes - gone.unwrap_or(0));
    }
}

/// Samples that CycloneDDS has not released, and subscribers without room. CycloneDDS 0.10 ignores
/// limits at a writer that keeps all samples, so the limit is kept here.
///
/// ORDER: all of it is SeqCst: a waiter announces itself before it looks, and a thread that changes
/// something looks for a waiter after that; so one sees the other.
#[derive(Debug, Default)]
pub(super) struct FlowControl {
    samples: AtomicU32,
    bytes: AtomicU64,
    /// How many samples were released in total.
    releases: AtomicU64,
    readers: Mutex<Readers>,
    full_count: AtomicU32,
    late_count: AtomicU32,
    /// How many threads wait.
    waiting: AtomicU32,
    waiters: Mutex<Waiters>,
    changed: Condvar,
}

/// The releases for which waiting threads are woken, besides other changes.
#[derive(Clone, Copy, Debug, Default)]
struct Waiters {
    /// How many are woken for each release.
    eager: u32,
    /// One is woken when half of the window is free.
    patient: Option<WakeThreshold>,
}

/// Readers that are behind.
#[derive(Debug, Default)]
struct Readers {
    /// Readers whose subscribers are full, with the count that they announced; the publisher waits
    /// for them.
    full: BTreeMap<Guid, u8>,
    /// Readers passed over because their subscribers are full. They announce when they have room.
    late: BTreeSet<Guid>,
    /// Readers passed over because they do not acknowledge.
    silent: BTreeSet<Guid>,
}

impl Readers {
    fn is_passed_over(&self, reader: &Guid) -> bool {
        self.late.contains(reader) || self.silent.contains(reader)
    }
}

impl FlowControl {
    /// Whether one more sample may be under way.
    pub(super) fn has(&self, window: &Window) -> bool {
        self.has_in(&window.threshold())
    }

    /// The same, for a thread that waits while another thread has the window.
    pub(super) fn has_in(&self, threshold: &WakeThreshold) -> bool {
        let (samples, bytes) =
            (self.samples.load(Ordering::SeqCst), self.bytes.load(Ordering::SeqCst));
        threshold.fits(samples, bytes) && self.full_count.load(Ordering::SeqCst) == 0
    }

    /// Whether an entered sample of so many bytes can be sent without overrunning the readers'
    /// hosts.
    fn is_paced(&self, window: &Window, own: u64) -> bool {
        let bytes = self.bytes.load(Ordering::SeqCst);
        bytes.saturating_sub(own + window.kept_bytes.get()) < window.pace_bytes.get()
            || window.unpaced.get() == Some(self.releases.load(Ordering::SeqCst))
    }

    /// Waits for that, for a short time and at most `limit`; after that there is no pacing until
    /// something is acknowledged.
    pub(super) fn pace(&self, window: &Window, own: u64, limit: Duration) {
        if self.is_paced(window, own) {
            return;
        }
        let releases = self.releases.load(Ordering::SeqCst);
        if !self.wait(PACE_LIMIT.min(limit), None, || self.is_paced(window, own))
            && self.releases.load(Ordering::SeqCst) == releases
        {
            window.unpaced.set(Some(releases));
        }
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.samples.load(Ordering::SeqCst) == 0
    }

    /// A sample of so many bytes is written.
    pub(super) fn enter(&self, bytes: u64) {
        self.samples.fetch_add(1, Ordering::SeqCst);
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Waits until `is_there`, for at most `limit`; false then. It checks releases once `threshold` is
    /// free; one thread at a time waits so.
    pub(super) fn wait(
        &self,
        limit: Duration,
        threshold: Option<WakeThreshold>,
        is_there: impl Fn() -> bool,
    ) -> bool {
        let begin = Instant::now();
        let mut waiters = lock(&self.waiters);
        match threshold {
            Some(threshold) => waiters.patient = Some(threshold),
            None => waiters.eager += 1,
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let came = loop {
            if is_there() {
                break true;
            }
            let Some(left) = limit.checked_sub(begin.elapsed()) else { break false };
            let woken = self.changed.wait_timeout(waiters, left);
            waiters = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        match threshold {
            Some(_) => waiters.patient = None,
            None => waiters.eager -= 1,
        }
        came
    }

    /// Wakes the publisher after a change that it may wait for.
    pub(super) fn stir(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(lock(&self.waiters));
            self.changed.notify_all();
        }
    }

    /// A reader's subscriber is full, and has announced it so many times. If it was passed over for
    /// that, the publisher does not wait for it until it has had room.
    pub(super) fn set_full(&self, reader: Guid, count: u8) {
        self.change(|readers| {
            if !readers.late.contains(&reader) {
                readers.full.insert(reader, count);
            }
        });
    }

    /// A reader's subscriber has room. True if it was passed over until now.
    pub(super) fn set_room(&self, reader: &Guid) -> bool {
        self.change(|readers| {
            readers.full.remove(reader);
            readers.late.remove(reader) && !readers.is_passed_over(reader)
        })
    }

    /// Passes over the full readers. Returns them with their counts, and whether each was not
    /// passed over before.
    pub(super) fn pass_over_full(&self) -> Vec<(Guid, u8, bool)> {
        self.change(|readers| {
            let full = std::mem::take(&mut readers.full).into_iter();
            let full = full.map(|(reader, count)| {
                let is_new = !readers.is_passed_over(&reader);
                readers.late.insert(reader);
                (reader, count, is_new)
            });
            full.collect()
        })
    }

    /// A reader that does not acknowledge is passed over. True if it was not before.
    pub(super) fn pass_over_silent(&self, reader: Guid) -> bool {
        self.change(|readers| {
            let is_new = !readers.is_passed_over(&reader);
            readers.silent.insert(reader);
            is_new
        })
    }

    /// Whether a reader is passed over because it did not acknowledge.
    pub(super) fn is_silent(&self, reader: &Guid) -> bool {
        lock(&self.readers).silent.contains(reader)
    }

    /// The readers that did not acknowledge and now do: the publisher waits for them again.
    pub(super) fn take_answering(&self, answers: impl Fn(&Guid) -> bool) -> Vec<Guid> {
        self.change(|readers| {
            let back = readers.silent.extract_if(.., |reader| answers(reader));
            let mut back: Vec<Guid> = back.collect();
            back.retain(|reader| !readers.is_passed_over(reader));
            back
        })
    }

    /// Removes readers that have gone.
    pub(super) fn retain(&self, is_there: impl Fn(&Guid) -> bool) {
        self.change(|readers| {
            readers.full.retain(|reader, _| is_there(reader));
            readers.late.retain(&is_there);
            readers.silent.retain(&is_there);
        });
    }

    /// Readers that are passed over.
    #[inline]
    pub(super) fn late(&self) -> u32 {
        self.late_count.load(Ordering::SeqCst)
    }

    /// Whether this reader's subscriber is full.
    pub(super) fn is_full(&self, reader: &Guid) -> bool {
        lock(&self.readers).full.contains_key(reader)
    }

    fn change<R>(&self, change: impl FnOnce(&mut Readers) -> R) -> R {
        let mut readers = lock(&self.readers);
        let result = change(&mut readers);
        self.full_count.store(readers.full.len() as u32, Ordering::SeqCst);
        let late = readers.late.union(&readers.silent).count();
        self.late_count.store(late as u32, Ordering::SeqCst);
        drop(readers);
        self.stir();
        result
    }
}

impl Release for FlowControl {
    fn released(&self, bytes: usize) {
        self.samples.fetch_sub(1, Ordering::SeqCst);
        self.bytes.fetch_sub(bytes as u64, Ordering::SeqCst);
        self.releases.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        // Both are read after both were changed, so the last of several threads sees the changes of
        // all.
        let samples = self.samples.load(Ordering::SeqCst);
        let bytes = self.bytes.load(Ordering::SeqCst);
        let Waiters { eager, patient } = *lock(&self.waiters);
        if eager > 0 || patient.is_some_and(|threshold| threshold.is_free(samples, bytes)) {
            self.changed.notify_all();
        }
    }
}

/// So many small samples may be under way at any depth: waiting for an answer after a few of them
/// costs more than they do. The subscriber's `Full` bounds its queue.
const BURST_SAMPLES: u32 = 64;
const BURST_BYTES: u64 = 4 << 20;
/// For a host that has smaller sockets, or does not announce their size.
const PACE_BYTES_MIN: u64 = 128 << 10;
/// On any link that carries so much, an acknowledgement takes less time.
const PACE_LIMIT: Duration = Duration::from_millis(20);
/// The maximum kept for readers that have not acknowledged it, whatever the depth.
const WINDOW_BYTES_MAX: u64 = 64 << 20;
/// CycloneDDS requests them by itself as often, once nothing is written any more (`myelin_dds::Config`).
const REQUEST_AGAIN: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_room_counts_samples_under_way_and_unread_ones() {
        let (room, window) = (FlowControl::default(), window(100));
        for _ in 0..100 {
            assert!(room.has(&window));
            room.enter(10);
        }
        assert!(!room.has(&window));
        room.released(10);
        assert!(room.has(&window));
        room.set_full([1; 16], 1);
        room.set_full([2; 16], 1);
        assert!(!room.set_room(&[1; 16]));
        assert!(!room.has(&window) && room.is_full(&[2; 16]));
        room.retain(|reader| *reader != [2; 16]);
        assert!(room.has(&window));
        assert!(!room.wait(Duration::ZERO, None, || false));
    }

    #[test]
    fn a_late_reader_is_waited_for_again_when_it_has_room() {
        let (room, window) = (FlowControl::default(), window(4));
        let [one, two] = [[1; 16], [2; 16]];
        room.set_full(one, 7);
        assert_eq!(room.pass_over_full(), [(one, 7, true)]);
        assert!(room.has(&window) && room.late() == 1);
        room.set_full(one, 8);
        assert!(room.has(&window), "the publisher passed it over before this message");
        assert!(room.pass_over_silent(two) && !room.pass_over_silent(two));
        assert_eq!(room.late(), 2);
        assert_eq!(room.take_answering(|_| true), [two], "the other one has room first");
        assert!(room.set_room(&one) && !room.set_room(&one));
        assert_eq!(room.late(), 0);
        room.set_full(one, 9);
        assert!(!room.has(&window));
        assert!(room.pass_over_silent(one));
        assert_eq!(room.pass_over_full(), [(one, 9, false)]);
        assert_eq!((room.late(), room.take_answering(|_| true)), (1, vec![]), "it is full, too");
        assert!(room.set_room(&one));
    }

    #[test]
    fn the_room_has_a_byte_limit_but_takes_one_sample_of_any_size() {
        let (room, window) = (FlowControl::default(), Window::new(100, 0, 1_000));
        room.enter(999);
        assert!(room.has(&window));
        room.enter(5_000);
        assert!(!room.has(&window));
        room.released(999);
        assert!(!room.has(&window));
        room.released(5_000);
        assert!(room.has(&window));
    }

    #[test]
    fn a_host_is_paced_by_its_receive_buffer_until_a_wait_fails() {
        let (room, window) = (FlowControl::default(), window(100));
        window.set_buffer(4 << 20);
        let next_is_paced = || {
            room.enter(1 << 20);
            let is_paced = room.is_paced(&window, 1 << 20);
            room.released(1 << 20);
            is_paced
        };
        for _ in 0..2 {
            assert!(next_is_paced());
            room.enter(1 << 20);
            assert!(window.enter(1 << 20, Instant::now()), "half of it requests one");
        }
        assert!(room.has(&window) && !next_is_paced());
        room.enter(1 << 20);
        room.pace(&window, 1 << 20, Duration::MAX);
        assert!(room.is_paced(&window, 1 << 20), "nobody answers");
        room.enter(1 << 20);
        assert!(room.is_paced(&window, 1 << 20));
        room.released(1 << 20);
        assert!(!room.is_paced(&window, 1 << 20), "somebody does");
        room.released(1 << 20);
        assert!(room.is_paced(&window, 1 << 20));
    }

    /// Also if all are acknowledged, and the last is kept until the next is written.
    #[test]
    fn a_single_sample_larger_than_the_buffer_is_sent() {
        for history in [0, 1] {
            let (room, window) = (FlowControl::default(), Window::new(100, history, u64::MAX));
            window.set_buffer(0);
            for _ in 0..3 {
                room.enter(10 << 20);
                assert!(room.is_paced(&window, 10 << 20), "with a history of {history}");
                window.enter(10 << 20, Instant::now());
                if history == 0 || room.samples.load(Ordering::SeqCst) > 1 {
                    room.released(10 << 20);
                }
            }
        }
    }

    #[test]
    fn a_burst_of_small_samples_is_under_way_at_any_depth() {
        let fit = |depth: u32, bytes: u64| {
            let (room, window) = (FlowControl::default(), window(depth));
            (0..1_000).take_while(|_| room.has(&window)).map(|_| room.enter(bytes)).count()
        };
        assert_eq!([1, 64, 500].map(|depth| fit(depth, 1_000)), [64, 64, 500]);
        assert_eq!([1, 8].map(|depth| fit(depth, 1 << 20)), [4, 8]);
        assert_eq!([1, 8, 500].map(|depth| fit(depth, 10 << 20)), [1, 7, 7]);
    }

    #[test]
    fn kept_samples_do_not_count_as_under_way() {
        let (room, window) = (FlowControl::default(), Window::new(2, 3, 1_000));
        let write = || {
            window.enter(500, Instant::now());
            room.enter(500);
        };
        for _ in 0..5 {
            assert!(room.has(&window), "three are kept in any case");
            write();
        }
        assert!(!room.has(&window));
        room.released(500);
        room.released(500);
        for _ in 0..10 {
            assert!(room.has(&window), "all are acknowledged, three are kept");
            write();
            room.released(500);
        }
    }

    #[test]
    fn each_half_window_and_a_timeout_request_an_acknowledgement() {
        let begin = Instant::now();
        let requested = |window: &Window, bytes: u64, count: u64| {
            (0..count).filter(|_| window.enter(bytes, begin)).count()
        };
        let by_samples = window(100);
        assert_eq!(requested(&by_samples, 1, 1), 1, "the first, as nothing is known yet");
        assert_eq!(requested(&by_samples, 1, 49), 0);
        assert_eq!(requested(&by_samples, 1, 1), 1);
        assert_eq!(requested(&by_samples, 1, 5_000), 100);
        assert_eq!(requested(&window(1), 1, 65), 1 + 2, "as many as may be under way");
        assert_eq!(requested(&Window::new(1_000, 0, 1_000), 50, 101), 1 + 10);
        assert_eq!(requested(&window(1), 10 << 20, 10), 10);
        let by_time = window(1_000);
        let requests = |at: Duration| by_time.enter(1, begin + at);
        assert!(
            requests(Duration::ZERO) && !requests(REQUEST_AGAIN / 2) && requests(REQUEST_AGAIN)
        );
        assert!(
            !requests(REQUEST_AGAIN)
                && !requests(REQUEST_AGAIN * 3 / 2)
                && requests(REQUEST_AGAIN * 2)
        );
    }

    #[test]
    fn a_waiting_publisher_is_woken() {
        let (room, window) = (Arc::new(FlowControl::default()), window(1));
        for _ in 0..1_000 {
            room.enter(BURST_BYTES);
            let other = room.clone();
            let thread = std::thread::spawn(move || other.released(BURST_BYTES as usize));
            let threshold = Some(window.threshold());
            assert!(room.wait(Duration::from_secs(60), threshold, || room.has(&window)));
            thread.join().unwrap();
        }
    }

    /// The samples without a request when the window is full are less than half, so the
    /// answer to the last question wakes.
    #[test]
    fn a_waiting_publisher_is_woken_when_half_of_the_window_is_free() {
        let free_at = |depth: u32, bytes: u64| {
            let (room, window, now) = (FlowControl::default(), window(depth), Instant::now());
            let mut requested = 0;
            while room.has(&window) {
                room.enter(bytes);
                if window.enter(bytes, now) {
                    requested = room.samples.load(Ordering::SeqCst);
                }
            }
            let full = room.samples.load(Ordering::SeqCst);
            let left = (0..=full).rev();
            let free = left
                .take_while(|left| !window.threshold().is_free(*left, u64::from(*left) * bytes));
            (full, free.last().unwrap() - 1, full - requested)
        };
        assert_eq!(
            free_at(64, 100),
            (64, 31, 31),
            "the first sample requests one, and each 32nd after it"
        );
        assert_eq!(free_at(1, 100), (64, 31, 31), "as many as may be under way");
        assert_eq!(free_at(8, 1 << 20), (8, 3, 3));
        for (depth, bytes) in [(1, 10 << 20), (7, 1 << 20), (100, 1 << 20), (999, 3), (3, 5 << 20)]
        {
            let (_, free, unrequested) = free_at(depth, bytes);
            assert!(unrequested <= free, "{unrequested} of {free} at {depth} of {bytes} B");
        }
    }

    fn window(depth: u32) -> Window {
        Window::new(depth, 0, u64::MAX)
    }
}
