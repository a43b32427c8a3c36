//! `hgrm/*.hgrm`: each cell's latencies as HdrHistogram's percentile distribution, for its plotter
//! and for readers of wrk2's output.
//!
//! Columns and footer are those of `HistogramLogProcessor` and of wrk2, in microseconds. All
//! readers skip lines that begin with `#`. Values have three significant digits, HdrHistogram's
//! usual precision; `summary.json` has the exact ones.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::entry::Latency;
use crate::summary::{Analysis, Cell, Detail};

/// File name (without folder) and text of each file; cells without a latency have none.
pub(super) fn files(analysis: &Analysis) -> Vec<(String, String)> {
    let mut files = BTreeMap::new();
    let cells = analysis.summary.cells.iter().zip(&analysis.details);
    for (cell, detail) in cells.filter(|(_, detail)| !detail.histogram.is_empty()) {
        let mut name = detail.name.clone();
        // Two scenarios of a session may have the same name.
        while files.contains_key(&name) {
            name += "-again";
        }
        files.insert(name, render(cell, detail));
    }
    files.into_iter().map(|(name, text)| (name + ".hgrm", text)).collect()
}

fn render(cell: &Cell, detail: &Detail) -> String {
    let mut histogram = Histogram::<u64>::new(DIGITS).expect("3 digits are within 0 to 5");
    for &(ns, count) in &detail.histogram {
        histogram.record_n(ns, count).expect("the histogram grows as needed");
    }
    let metric = Latency::of(cell.workload, cell.workload.is_one_way());
    let mut text = format!("# {}, in µs: {}\n", metric.words(), detail.name);
    let negative = cell.clock.as_ref().map_or(0, |clock| clock.negative);
    if negative > 0 && metric == Latency::OneWay {
        text += &format!(
            "# {negative} values below zero count as 0, because this format has no negative \
             values. The clocks of the two hosts are known only to ± {:.1} µs\n",
            cell.clock.as_ref().map_or(0.0, |clock| clock.error_us)
        );
    }
    if !cell.valid {
        text += "# no valid run: these figures come from invalid runs\n";
    }
    text += &format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut count = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        count += step.count_since_last_iteration();
        let (value, quantile) = (us(step.value_iterated_to() as f64), step.quantile_iterated_to());
        let beyond = 1.0 / (1.0 - quantile);
        text += &format!("{value:12.3} {quantile:2.12} {count:10} {beyond:14.2}\n");
    }
    let (mean, deviation) = (us(histogram.mean()), us(histogram.stdev()));
    let (max, total) = (us(histogram.max() as f64), histogram.len());
    let buckets = histogram.buckets();
    text += &format!("#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]\n");
    text += &format!("#[Max     = {max:12.3}, Total count    = {total:12}]\n");
    text + &format!("#[Buckets = {buckets:12}, SubBuckets     = {SUB_BUCKETS:12}]\n")
}

fn us(ns: f64) -> f64 {
    ns / 1e3
}

/// The value of HdrHistogram's own tools and of wrk2.
const TICKS_PER_HALF_DISTANCE: u32 = 5;
/// Significant digits of a value.
const DIGITS: u8 = 3;
/// Sub-buckets that this number of digits needs.
const SUB_BUCKETS: u32 = 2048;
