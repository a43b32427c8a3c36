//! Whether publishers and subscribers that are there match: their types and settings.

use myelin::{MatchState, Mismatch, Setting};

use super::finding::Finding;
use super::snapshot::{End, Program, Snapshot};
use super::types;
use crate::text::printable;

/// Each pair that does not match, a cause once.
pub fn judge(seen: &Snapshot) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for publisher in seen.of_kind(true) {
        for subscriber in seen.of_kind(false) {
            let finding =
                refusal(seen, publisher, subscriber).or_else(|| no_network(publisher, subscriber));
            let Some(finding) = finding else { continue };
            if findings.len() < FINDINGS_MAX && !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

fn refusal(seen: &Snapshot, publisher: &End, subscriber: &End) -> Option<Finding> {
    let MatchState::Refused { reason, mismatch } =
        seen.state(publisher.info.id, subscriber.info.id)?
    else {
        return None;
    };
    let pair = [&publisher.program, &subscriber.program];
    let finding = match mismatch {
        Some(mismatch) if mismatch.setting == Setting::Type => {
            type_differs(seen, publisher, subscriber)
        }
        Some(mismatch) => qos_refused(mismatch, pair),
        None => short(reason, pair),
    };
    Some(finding.of(&subscriber.program.name, subscriber.program.pid))
}

/// One of the two is on another host, and the other has no network.
fn no_network(publisher: &End, subscriber: &End) -> Option<Finding> {
    let (here, there) = match (publisher.is_here(), subscriber.is_here()) {
        (true, false) => (&publisher.program, &subscriber.program),
        (false, true) => (&subscriber.program, &publisher.program),
        _ => return None,
    };
    if here.now()?.has_network? {
        return None;
    }
    let found =
        format!("{} has no network, and {} is on another host", here.label(), there.label());
    let change =
        format!("start {} with MYELIN_NETWORK=1, or open its node with network(true)", here.name);
    Some(Finding::change("network_off", found, change).of(&here.name, here.pid))
}

fn type_differs(seen: &Snapshot, publisher: &End, subscriber: &End) -> Finding {
    let (one, other) = (&publisher.program, &subscriber.program);
    let names = [&*one.name, &*other.name];
    let of = |end: &End| seen.types.get(&end.info.type_hash);
    let details = of(publisher).zip(of(subscriber)).map(|(a, b)| types::differences(a, b, names));
    let details = details.filter(|text| !text.is_empty()).unwrap_or_else(|| {
        let text = |end: &End| end.info.type_name.clone();
        format!("{} in {}, {} in {}", text(publisher), one.name, text(subscriber), other.name)
    });
    let found = format!(
        "the types of {:?} differ between {} and {}: {details}",
        seen.topic,
        one.label(),
        other.label(),
    );
    let change =
        "build both programs from one definition of the type, or use two topics".to_owned();
    Finding::change("type_differs", found, change)
}

fn qos_refused(mismatch: &Mismatch, [publisher, subscriber]: [&Program; 2]) -> Finding {
    let Mismatch { setting, offered, requested, .. } = mismatch;
    let found = format!(
        "{} and {} do not match: {}: {offered} is offered, {requested} is requested",
        publisher.label(),
        subscriber.label(),
        setting.name(),
    );
    let change = match lines(*setting, publisher, subscriber) {
        Some((offer, request)) => {
            format!("in {}: {offer}; or in {}: {request}", publisher.name, subscriber.name)
        }
        None => format!(
            "let {} offer {requested}, or {} request {offered}",
            publisher.name, subscriber.name
        ),
    };
    Finding::change("qos_refused", found, change)
}

/// The line that offers more, and the one that requests less.
fn lines(setting: Setting, publisher: &Program, subscriber: &Program) -> Option<(String, String)> {
    let (rust, ros) = match setting {
        Setting::Reliability => (
            ("reliable(Duration::from_secs(1))", "best_effort()"),
            ("rclcpp::QoS(10).reliable()", "rclcpp::QoS(10).best_effort()"),
        ),
        Setting::Durability => (
            ("transient_local(1)", "transient_local(0)"),
            ("rclcpp::QoS(10).transient_local()", "rclcpp::QoS(10).durability_volatile()"),
        ),
        _ => return None,
    };
    let python = match setting {
        Setting::Reliability => ("reliable=1.0", "no reliable="),
        _ => ("transient_local=1", "transient_local=0"),
    };
    let line = |program: &Program, of: fn((&'static str, &'static str)) -> &'static str| {
        if program.language.starts_with("ROS") || program.language == "rmw" {
            of(ros).to_owned()
        } else if program.language == "Python" {
            format!("node.topic(..., {})", of(python))
        } else {
            format!("topic.{}", of(rust))
        }
    };
    Some((line(publisher, |it| it.0), line(subscriber, |it| it.1)))
}

/// One of the two lacks memory, files or room; the reason names it and says what to do.
fn short(reason: &str, pair: [&Program; 2]) -> Finding {
    let id = match reason {
        _ if reason.contains("RLIMIT_NOFILE") || reason.contains("open files") => "files_short",
        _ if reason.contains("RLIMIT_MEMLOCK") => "memlock_short",
        _ if reason.contains("no memory") => "memory_short",
        _ => "match_refused",
    };
    let (why, remedy) = reason.split_once("; ").unwrap_or((reason, "see docs/reference/limits.md"));
    let found =
        format!("{} and {} do not match: {}", pair[0].label(), pair[1].label(), printable(why));
    Finding::change(id, found, remedy.to_owned())
}

/// A crowd of subscribers that all differ is one mistake.
const FINDINGS_MAX: usize = 8;
