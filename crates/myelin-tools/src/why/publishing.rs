//! Whether the publishers run and publish.

use myelin::MatchState;

use super::finding::Finding;
use super::late::Use;
use super::snapshot::{End, Snapshot};
use super::stillness;
use crate::text::counted;

/// Publishers that stand still, and those that run and publish nothing.
pub fn judge(seen: &Snapshot) -> Vec<Finding> {
    seen.of_kind(true).filter_map(|publisher| of(seen, publisher)).take(FINDINGS_MAX).collect()
}

fn of(seen: &Snapshot, publisher: &End) -> Option<Finding> {
    let program = &publisher.program;
    let grown = publisher.published();
    if grown.is_some_and(|(new, _)| new > 0) {
        return None;
    }
    let what = format!("it publishes nothing on {:?}", seen.topic);
    if let Some(finding) = stillness::judge(program, "publisher", &what) {
        return Some(finding);
    }
    if program.is_silent {
        return Some(stillness::unresponsive(program, "publisher"));
    }
    let (_, all) = grown?;
    let finding = match younger(seen, publisher) {
        Some(subscriber) if all > 0 => before_match(seen, publisher, subscriber, all),
        _ => silent(seen, publisher, all),
    };
    Some(finding.of(&program.name, program.pid))
}

/// A matched subscriber that was made after the publisher, and does not get what was published
/// before.
fn younger<'a>(seen: &'a Snapshot, publisher: &End) -> Option<&'a End> {
    let is_matched = |it: &&End| {
        seen.state(publisher.info.id, it.info.id) == Some(&MatchState::Matched)
            && it.info.created_ns > publisher.info.created_ns
            && (it.info.transient_local == 0 || publisher.info.transient_local == 0)
            && it.taken().is_none_or(|(_, all)| all == 0)
    };
    seen.of_kind(false).find(is_matched)
}

fn before_match(seen: &Snapshot, publisher: &End, subscriber: &End, all: u64) -> Finding {
    let found = format!(
        "{} publishes nothing now: its {} of {:?} came {:.1} s or more ago, and what was published \
         before {} matched is lost",
        publisher.program.label(),
        counted(all, "sample"),
        seen.topic,
        seen.interval_s,
        subscriber.program.label(),
    );
    let change = "for the last sample also to late subscribers: transient_local(1) on both sides; or \
                  wait_for_match before the first publish";
    Finding::change("published_before_match", found, change.to_owned())
}

fn silent(seen: &Snapshot, publisher: &End, all: u64) -> Finding {
    let program = &publisher.program;
    let so_far = match all {
        0 => "nothing so far".to_owned(),
        all => format!("nothing in {:.1} s, {} before", seen.interval_s, counted(all, "sample")),
    };
    let doing = match Use::of(program, seen.interval_s) {
        Some(spent) if spent.is_busy() => {
            format!("its thread {:?} computes all the time, as in an endless loop", spent.thread)
        }
        _ => "it runs, and its threads sleep".to_owned(),
    };
    let found = format!("{} has published {so_far} on {:?}: {doing}", program.label(), seen.topic);
    let change = format!("look at what {} waits for before it publishes", program.name);
    match program.pid {
        0 => Finding::change("publisher_idle", found, change),
        pid => Finding::command("publisher_idle", found, debugger(pid)),
    }
}

/// Shows where the threads of a process are.
pub fn debugger(pid: u32) -> String {
    format!("gdb -p {pid} -batch -ex 'thread apply all bt'")
}

const FINDINGS_MAX: usize = 8;
