//! What a reader must know of a cell across hosts: a link that was down, and one that is too slow for
//! what was sent over it.

use super::judged::JudgedRun;
use crate::plan::CellPlan;
use crate::scenario::Scenario;

/// Remarks on the runs that are used, of whose messages `lost` were lost.
pub(super) fn remarks(
    runs: &[&JudgedRun],
    lost: u64,
    plan: &CellPlan,
    scenario: &Scenario,
) -> Vec<String> {
    let cuts = runs.iter().filter_map(|run| cut(run));
    cuts.chain(too_much(lost, plan, scenario)).collect()
}

fn cut(run: &JudgedRun) -> Option<String> {
    let cut = run.cut?;
    let silence = match cut.silent_s {
        Some(seconds) => format!("nothing was taken for {seconds:.3} s"),
        None => "nothing was taken before or after".to_owned(),
    };
    Some(format!(
        "run {}: the link was down for {:.3} s, {:.3} s into the run; {silence}; of {} messages sent \
         while it was, {} were lost and {} came late",
        run.number(),
        cut.for_s,
        cut.at_s,
        cut.sent,
        cut.lost,
        cut.late
    ))
}

/// Whether the messages, without what the protocols add, are more than the link is made to carry, or
/// some were lost and they are nearly that.
fn too_much(lost: u64, plan: &CellPlan, scenario: &Scenario) -> Option<String> {
    let rate_mbit = scenario.network.as_ref()?.rate_mbit;
    let bits = 8.0 * (plan.payload_bytes + 8) as f64;
    let offered_mbit = bits * plan.rate_hz? * f64::from(plan.publishers) * 1e-6;
    let share = offered_mbit / rate_mbit;
    let is_too_much = share > 1.0 || lost > 0 && share > NEARLY_ALL;
    (rate_mbit > 0.0 && is_too_much).then(|| {
        format!(
            "the messages alone are {offered_mbit:.0} Mbit/s, {:.0} % of what the link carries \
             ({rate_mbit} Mbit/s); headers come on top{}",
            100.0 * share,
            if lost > 0 { ", and what does not fit is late or lost" } else { "" }
        )
    })
}

/// Ethernet, IP and UDP headers take 5 % of a link with packets of 1500 bytes, and a protocol of its own
/// takes more.
const NEARLY_ALL: f64 = 0.9;
