//! The delay of each message: from the quantile function, stratified or drawn.

use myelin_bench_kit::pingpong::END_OF_STREAM;
use myelin_bench_kit::protocol::Prepare;

use crate::fate::{self, Fate};
use crate::options::Options;

/// The delays of a run's messages, fixed by its seed.
pub struct Delays {
    seed: u64,
    /// The stratum of each message's delay; empty if delays are drawn independently.
    strata: Vec<u32>,
}

impl Delays {
    /// For `messages` measured messages; 0 if their number is unknown.
    pub fn new(messages: u64, seed: u64) -> Self {
        let count = u32::try_from(messages).unwrap_or(0);
        let mut strata: Vec<u32> = (0..count).collect();
        for last in (1..strata.len()).rev() {
            let other = mix(seed, last as u64) % (last as u64 + 1);
            strata.swap(last, other as usize);
        }
        Delays { seed, strata }
    }

    /// The quantile of measured message `id`.
    pub fn quantile(&self, id: u64) -> f64 {
        match self.strata.get(id as usize) {
            Some(stratum) => (f64::from(*stratum) + 0.5) / self.strata.len() as f64,
            // 53 bits, the precision of a double.
            None => (mix(self.seed, id) >> 11) as f64 / (1u64 << 53) as f64,
        }
    }

    /// The delay of measured message `id`, or of a message of the warm-up.
    pub fn ns(&self, id: Option<u64>, options: &Options) -> u64 {
        let Some(id) = id else {
            return options.delay_ns_at(MEDIAN);
        };
        let part = id as f64 / self.strata.len().max(1) as f64;
        (options.delay_ns_at(self.quantile(id)) as f64 * options.drift_at(part)).round() as u64
    }
}

/// When the messages of a run are due, as the options say.
pub struct Timing {
    /// The faults and delays.
    pub options: Options,
    delays: Delays,
    warmup_messages: u64,
}

impl Timing {
    /// For the run of `prepare`.
    pub fn new(options: &Options, prepare: &Prepare) -> Self {
        let delays = Delays::new(prepare.messages, prepare.seed);
        Timing { options: options.clone(), delays, warmup_messages: prepare.warmup_messages }
    }

    /// The number of a measured message; `None` in the warm-up.
    pub fn id(&self, sequence: u64) -> Option<u64> {
        sequence.checked_sub(self.warmup_messages).filter(|_| sequence != END_OF_STREAM)
    }

    /// The fate of message `sequence`.
    pub fn fate(&self, sequence: u64) -> Fate {
        self.id(sequence).map_or(Fate::Whole, |id| Fate::of(id, &self.options))
    }

    /// How much longer message `sequence` takes.
    pub fn stall_ns(&self, sequence: u64) -> u64 {
        self.id(sequence).map_or(0, |id| fate::stall_ns(id, &self.options))
    }

    /// The delay of message `sequence`, with its stall.
    pub fn delay_ns(&self, sequence: u64) -> u64 {
        self.delays.ns(self.id(sequence), &self.options) + self.stall_ns(sequence)
    }
}

/// The number of SplitMix64 at `index`: six lines whose results never change between versions.
fn mix(seed: u64, index: u64) -> u64 {
    let mut word = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

const MEDIAN: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quantile_is_used_once_in_seeded_order() {
        let of_seed = |seed| {
            let delays = Delays::new(1000, seed);
            (0..1000).map(|id| delays.quantile(id)).collect::<Vec<f64>>()
        };
        let mut sorted = of_seed(7);
        sorted.sort_by(f64::total_cmp);
        let exact: Vec<f64> = (0..1000).map(|index| (f64::from(index) + 0.5) / 1000.0).collect();
        assert_eq!(sorted, exact);
        assert_eq!(of_seed(7), of_seed(7));
        assert_ne!(of_seed(7), of_seed(8));
        assert_ne!(of_seed(7), exact);
    }

    #[test]
    fn drift_grows_with_the_index_of_the_message() {
        let drifting = Options {
            delay_us: vec![[0.0, 10.0], [1.0, 10.0]],
            drift_percent: 50.0,
            ..Options::default()
        };
        let delays = Delays::new(1000, 7);
        let ns = |id| delays.ns(id, &drifting);
        assert_eq!([ns(None), ns(Some(0)), ns(Some(500))], [10_000, 10_000, 12_500]);
        assert_eq!(ns(Some(999)), 14_995);
    }

    #[test]
    fn without_a_message_count_quantiles_are_random() {
        let delays = Delays::new(0, 7);
        let below_half = (0..10_000).filter(|id| delays.quantile(*id) < 0.5).count();
        assert!((4_800..5_200).contains(&below_half), "{below_half}");
        assert!((0..10_000).all(|id| (0.0..1.0).contains(&delays.quantile(id))));
    }
}
