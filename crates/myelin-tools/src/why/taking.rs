//! Whether the subscribers run and take.

use myelin::MatchState;

use super::finding::Finding;
use super::late::Use;
use super::publishing::debugger;
use super::snapshot::{End, Snapshot};
use super::stillness;
use crate::text::counted;

/// Subscribers that stand still, hold everything, or lose samples.
pub fn judge(seen: &Snapshot) -> Vec<Finding> {
    seen.of_kind(false).filter_map(|subscriber| of(seen, subscriber)).take(FINDINGS_MAX).collect()
}

fn of(seen: &Snapshot, subscriber: &End) -> Option<Finding> {
    let program = &subscriber.program;
    let what = format!("it takes nothing of {:?}", seen.topic);
    if let Some(finding) = stillness::judge(program, "subscriber", &what) {
        return Some(finding);
    }
    if program.is_silent {
        return Some(stillness::unresponsive(program, "subscriber"));
    }
    let finding = holds_all(seen, subscriber)
        .or_else(|| idle(seen, subscriber))
        .or_else(|| late(seen, subscriber));
    finding.map(|finding| finding.of(&program.name, program.pid))
}

/// It keeps samples, so that it may take no more, or the publisher has none left.
fn holds_all(seen: &Snapshot, subscriber: &End) -> Option<Finding> {
    let held = subscriber.held()?;
    let depth = u64::from(subscriber.info.depth);
    let new = subscriber.lost().map_or(0, |(new, _)| new);
    if held == 0
        || held < depth.min(HELD_MAX)
        || new > 0
        || seen.rate_hz().is_none_or(|hz| hz == 0.0)
    {
        return None;
    }
    let label = subscriber.program.label();
    let found = format!(
        "{label} keeps {} of {:?} and takes no more: it may hold {HELD_MAX} unless it \
         says otherwise, and its depth is {depth}",
        counted(held, "sample"),
        seen.topic
    );
    let change = "drop each sample when it is used, or copy what is kept; if it needs them all: \
                  subscriber_builder().held_max(64)";
    Some(Finding::change("subscriber_holds_all", found, change.to_owned()))
}

/// It runs, and takes nothing of what is published.
fn idle(seen: &Snapshot, subscriber: &End) -> Option<Finding> {
    let (_, all) = subscriber.taken().filter(|(new, _)| *new == 0)?;
    let is_matched = |publisher: &&End| {
        seen.state(publisher.info.id, subscriber.info.id) == Some(&MatchState::Matched)
            && publisher.published().is_some_and(|(new, _)| new > 1)
    };
    seen.of_kind(true).find(is_matched)?;
    let so_far = match all {
        0 => "nothing so far".to_owned(),
        all => format!("nothing in {:.1} s, {} before", seen.interval_s, counted(all, "sample")),
    };
    let label = subscriber.program.label();
    let found = format!("{label} has taken {so_far} of {:?}, and samples come", seen.topic);
    Some(match subscriber.program.pid {
        0 => {
            let change = "take in a loop, or give the subscriber a callback".to_owned();
            Finding::change("subscriber_idle", found, change)
        }
        pid => Finding::command("subscriber_idle", found, debugger(pid)),
    })
}

/// It loses samples, because it takes too slowly.
fn late(seen: &Snapshot, subscriber: &End) -> Option<Finding> {
    // Who keeps one sample wants the newest: what it skips is no fault.
    let (new, _) = subscriber.lost().filter(|(new, _)| *new > 0 && subscriber.info.depth > 1)?;
    let label = subscriber.program.label();
    let doing = match Use::of(&subscriber.program, seen.interval_s) {
        Some(spent) if spent.is_busy() => spent.text(),
        Some(_) => "it sleeps or waits between its takes".to_owned(),
        None => "it takes too slowly".to_owned(),
    };
    let found = format!("{label} is late: it loses {}: {doing}", seen.losses(new));
    let command = format!("myelin why --late {}", seen.topic);
    Some(Finding::command("subscriber_late", found, command))
}

/// What a subscriber may hold unless it says otherwise: the library's default of `held_max`.
const HELD_MAX: u64 = 16;
const FINDINGS_MAX: usize = 8;
