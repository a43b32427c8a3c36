//! One direction of a link: which frames arrive, and when. Without a clock, input or output.
//!
//! ```text
//! send ─▶ queue, up to 1000 frames ─▶ line at the rate ─▶ on its way: lost, delayed ─▶ due
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::Conditions;

/// One direction of a link. Times are in ns of any clock that does not go back.
pub struct Direction {
    conditions: Conditions,
    random: StdRng,
    /// When the line has sent all frames that wait for it.
    line_free_ns: u64,
    /// When each frame that waits for the line has left.
    line: VecDeque<u64>,
    /// When the last frame arrives, without those that overtake.
    last_ns: u64,
    /// Frames on their way: time of arrival, number, bytes. Frames that arrive at one time are in
    /// the order of their numbers.
    on_their_way: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    bytes: usize,
    counts: Counts,
}

/// What became of the frames of one direction:
/// `sent = delivered + lost + overflowed + cut + refused + waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Frames that an interface has sent.
    pub sent: u64,
    /// Frames given to the interface at the other end.
    pub delivered: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Frames for which the queue had no room.
    pub overflowed: u64,
    /// Frames that a cut of the link took.
    pub cut: u64,
    /// Frames that the interface at the other end refused; it was down.
    pub refused: u64,
    /// Frames that are still on their way.
    pub waiting: u64,
}

impl Direction {
    /// A direction. The same seed gives the same fates.
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Direction {
            conditions,
            random: StdRng::seed_from_u64(seed),
            line_free_ns: 0,
            line: VecDeque::new(),
            last_ns: 0,
            on_their_way: BinaryHeap::new(),
            bytes: 0,
            counts: Counts::default(),
        }
    }

    /// Takes a frame that was sent at `now_ns`.
    pub fn send(&mut self, now_ns: u64, frame: Vec<u8>) {
        let number = self.counts.sent;
        self.counts.sent += 1;
        // Always three draws, so that a frame's fate depends on its number alone.
        let [loss, reorder, jitter]: [f64; 3] = self.random.random();
        while self.line.front().is_some_and(|left_ns| *left_ns <= now_ns) {
            self.line.pop_front();
        }
        if self.line.len() >= QUEUE_FRAMES || self.bytes + frame.len() > BYTES_MAX {
            self.counts.overflowed += 1;
            return;
        }
        let left_ns = self.line_free_ns.max(now_ns) + self.conditions.line_ns(frame.len());
        if left_ns > now_ns {
            self.line.push_back(left_ns);
        }
        self.line_free_ns = left_ns;
        if loss * 100.0 < self.conditions.loss_percent {
            self.counts.lost += 1;
            return;
        }
        let arrival_ns = if reorder * 100.0 < self.conditions.reorder_percent {
            left_ns
        } else {
            let jitter_ns = (2.0 * jitter - 1.0) * self.conditions.jitter.as_nanos() as f64;
            let delay_ns = self.conditions.delay.as_nanos() as f64 + jitter_ns;
            self.last_ns = self.last_ns.max(left_ns + delay_ns as u64);
            self.last_ns
        };
        self.bytes += frame.len();
        self.on_their_way.push(Reverse((arrival_ns, number, frame)));
    }

    /// The next frame that has arrived at `now_ns`.
    pub fn due(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        self.next_ns().filter(|next_ns| *next_ns <= now_ns)?;
        let Reverse((_, _, frame)) = self.on_their_way.pop()?;
        self.bytes -= frame.len();
        self.counts.delivered += 1;
        Some(frame)
    }

    /// When the next frame arrives.
    pub fn next_ns(&self) -> Option<u64> {
        self.on_their_way.peek().map(|Reverse((arrival_ns, ..))| *arrival_ns)
    }

    /// The interface has refused the last frame of [`due`](Self::due).
    pub(crate) fn refused(&mut self) {
        self.counts.delivered -= 1;
        self.counts.refused += 1;
    }

    /// Loses all frames on their way, as when a cable is pulled.
    pub fn cut(&mut self) {
        self.counts.cut += self.on_their_way.len() as u64;
        self.on_their_way.clear();
        self.line.clear();
        (self.bytes, self.line_free_ns, self.last_ns) = (0, 0, 0);
    }

    /// Loses a frame that was sent while the link is cut. It has a number like all others.
    pub(crate) fn send_into_cut(&mut self) {
        let _: [f64; 3] = self.random.random();
        self.counts.sent += 1;
        self.counts.cut += 1;
    }

    /// What became of all frames until now.
    pub fn counts(&self) -> Counts {
        Counts { waiting: self.on_their_way.len() as u64, ..self.counts }
    }
}

/// Frames that wait for the line: the kernel's default for a network card (`txqueuelen`).
const QUEUE_FRAMES: usize = 1_000;
/// Bytes on their way. At 500 Mbit/s it is a delay of 1 s.
const BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Sends frames of 1,000 bytes that carry their number, one each `period_ns`; returns when each
    /// arrived, in the order of arrival.
    fn arrivals(direction: &mut Direction, frames: u32, period_ns: u64) -> Vec<(u32, u64)> {
        let (mut arrived, mut sent) = (Vec::new(), 0);
        loop {
            let due_ns = direction.next_ns();
            let send_ns = (sent < frames).then_some(u64::from(sent) * period_ns);
            match (due_ns, send_ns) {
                (Some(due_ns), send_ns) if send_ns.is_none_or(|send_ns| due_ns < send_ns) => {
                    let frame = direction.due(due_ns).unwrap();
                    let number = u32::from_ne_bytes(frame[..4].try_into().unwrap());
                    arrived.push((number, due_ns));
                }
                (_, Some(send_ns)) => {
                    let mut frame = vec![0; 1_000];
                    frame[..4].copy_from_slice(&sent.to_ne_bytes());
                    direction.send(send_ns, frame);
                    sent += 1;
                }
                (_, None) => return arrived,
            }
        }
    }

    fn lossy() -> Conditions {
        let ms = Duration::from_millis;
        Conditions { delay: ms(5), jitter: ms(2), loss_percent: 1.0, ..Conditions::default() }
    }

    fn numbers(arrived: &[(u32, u64)]) -> Vec<u32> {
        arrived.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_fates_and_another_seed_others() {
        let fates = |seed| arrivals(&mut Direction::new(lossy(), seed), 10_000, MS);
        assert_eq!(fates(7), fates(7));
        assert_ne!(numbers(&fates(7)), numbers(&fates(8)));
        // The fate depends on the number of a frame, not on its time.
        let slower = arrivals(&mut Direction::new(lossy(), 7), 10_000, 3 * MS);
        assert_eq!(numbers(&fates(7)), numbers(&slower));
    }

    #[test]
    fn the_share_of_lost_frames_is_the_requested_one() {
        for (percent, least, most) in [(0.0, 0, 0), (1.0, 900, 1_100), (100.0, 100_000, 100_000)] {
            let conditions = Conditions { loss_percent: percent, ..Conditions::default() };
            let mut direction = Direction::new(conditions, 1);
            let arrived = arrivals(&mut direction, 100_000, MS).len() as u64;
            let counts = direction.counts();
            assert!((least..=most).contains(&counts.lost), "{counts:?}");
            assert_eq!((counts.sent, counts.delivered), (100_000, 100_000 - counts.lost));
            assert_eq!(arrived, counts.delivered);
        }
    }

    #[test]
    fn delays_are_spread_evenly_around_the_mean_and_frames_stay_in_order() {
        let mut direction = Direction::new(Conditions { loss_percent: 0.0, ..lossy() }, 1);
        let arrived = arrivals(&mut direction, 20_000, 10 * MS);
        let mut delays: Vec<f64> =
            arrived.iter().map(|&(at, ns)| (ns - u64::from(at) * 10 * MS) as f64 / 1e6).collect();
        delays.sort_by(f64::total_cmp);
        let at = |share: f64| delays[(share * (delays.len() - 1) as f64) as usize];
        for (share, expected) in [(0.0, 3.0), (0.25, 4.0), (0.5, 5.0), (0.75, 6.0), (1.0, 7.0)] {
            assert!((at(share) - expected).abs() < 0.05, "{share}: {}", at(share));
        }
        // Frames closer than the jitter: none overtakes, and none is later than the jitter allows.
        let arrived = arrivals(&mut Direction::new(lossy(), 1), 20_000, MS / 10);
        assert!(numbers(&arrived).is_sorted());
        let is_late = |&(at, ns): &(u32, u64)| ns > u64::from(at) * MS / 10 + 7 * MS;
        assert!(!arrived.iter().any(is_late));
    }

    #[test]
    fn reordered_frames_overtake_and_all_others_stay_in_order() {
        let conditions = Conditions { reorder_percent: 10.0, loss_percent: 0.0, ..lossy() };
        let arrived = arrivals(&mut Direction::new(conditions, 1), 10_000, MS);
        assert_eq!(arrived.len(), 10_000);
        let overtakes = |&(at, ns): &(u32, u64)| ns == u64::from(at) * MS;
        let (ahead, others): (Vec<_>, Vec<_>) = arrived.into_iter().partition(overtakes);
        assert!((900..1_100).contains(&ahead.len()), "{}", ahead.len());
        assert!(numbers(&others).is_sorted());
    }

    #[test]
    fn a_rate_spaces_frames_and_a_full_queue_drops_them() {
        let conditions = Conditions { rate_mbit: 50.0, ..Conditions::default() };
        // A frame of 1,024 bytes with Ethernet's takes 163.84 µs.
        let frame_ns = 163_840;
        let mut direction = Direction::new(conditions, 1);
        let arrived = arrivals(&mut direction, 500, 0);
        let times: Vec<u64> = arrived.iter().map(|(_, ns)| *ns).collect();
        let expected: Vec<u64> = (1..=500).map(|frame| frame * frame_ns).collect();
        assert_eq!(times, expected);
        // Below the rate no frame waits for another.
        let mut direction = Direction::new(conditions, 1);
        let arrived = arrivals(&mut direction, 500, MS);
        assert!(arrived.iter().all(|&(at, ns)| ns == u64::from(at) * MS + frame_ns));
        let mut direction = Direction::new(conditions, 1);
        (0..1_500).for_each(|_| direction.send(0, vec![0; 1_000]));
        let counts = direction.counts();
        assert_eq!((counts.overflowed, counts.waiting), (500, 1_000), "{counts:?}");
        // A tenth of a second later there is room for as many as have left.
        (0..1_000).for_each(|_| direction.send(100 * MS, vec![0; 1_000]));
        assert_eq!(direction.counts().overflowed, 500 + 1_000 - 100 * MS / frame_ns);
    }

    #[test]
    fn a_cut_loses_what_is_on_its_way_and_nothing_is_unaccounted_for() {
        let mut direction = Direction::new(lossy(), 3);
        (0..1_000).for_each(|at| direction.send(at * MS / 10, vec![0; 64]));
        while direction.due(50 * MS).is_some() {}
        direction.cut();
        direction.send_into_cut();
        assert_eq!((direction.next_ns(), direction.counts().waiting), (None, 0));
        direction.send(200 * MS, vec![0; 64]);
        let Counts { sent, delivered, lost, overflowed, cut, refused, waiting } =
            direction.counts();
        assert_eq!(sent, 1_002);
        assert!(delivered > 400 && cut > 400 && waiting <= 1, "{:?}", direction.counts());
        assert_eq!(sent, delivered + lost + overflowed + cut + refused + waiting);
    }

    #[test]
    fn bytes_on_their_way_are_limited() {
        let delay = Duration::from_secs(10);
        let mut direction = Direction::new(Conditions { delay, ..Conditions::default() }, 1);
        (0..80).for_each(|at| direction.send(at, vec![0; 1 << 20]));
        assert_eq!((direction.counts().waiting, direction.counts().overflowed), (64, 16));
    }
}
