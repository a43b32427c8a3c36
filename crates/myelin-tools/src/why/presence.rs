//! Whether both sides are there: a publisher and a subscriber, in one place, on one name.

use super::finding::Finding;
use super::snapshot::{Elsewhere, OtherTopic, Place, Snapshot};
use super::stillness;
use crate::names;

/// Why a side is missing; nothing if both are there.
pub fn judge(seen: &Snapshot) -> Vec<Finding> {
    let sides = [true, false].into_iter();
    let missing: Vec<_> =
        sides.filter(|publishers| seen.of_kind(*publishers).next().is_none()).collect();
    // The topic is known nowhere here: its publisher is searched for first.
    let causes = missing.iter().take(1).flat_map(|publishers| absent(seen, *publishers));
    causes.collect()
}

fn absent(seen: &Snapshot, publishers: bool) -> Vec<Finding> {
    let found = denied(seen, publishers)
        .or_else(|| elsewhere(seen, publishers))
        .or_else(|| other_name(seen, publishers))
        .or_else(|| network(seen, publishers))
        .or_else(|| unanswered(seen, publishers))
        .or_else(|| foreign(seen, publishers));
    vec![found.unwrap_or_else(|| nobody(seen, publishers))]
}

/// A program of another host lacks the right.
fn denied(seen: &Snapshot, publishers: bool) -> Option<Finding> {
    let (_, program) = seen.denied.iter().find(|(it, _)| *it == publishers)?;
    let does = if publishers { "publish" } else { "subscribe to" };
    let found = format!(
        "the permissions of {} do not allow it to {does} {:?}",
        program.label(),
        seen.topic
    );
    let right = if publishers { "publish" } else { "subscribe" };
    let change = format!(
        "allow it where the keystore is, and copy the enclave to its host: myelin keystore add KEYSTORE ENCLAVE \
         --allow {right}={} ...",
        seen.topic
    );
    Some(Finding::change("no_right", found, change).of(&program.name, 0))
}

/// The side is in another domain, folder, container, or group's domain.
fn elsewhere(seen: &Snapshot, publishers: bool) -> Option<Finding> {
    let side =
        |it: &Elsewhere| if publishers { it.publishers.clone() } else { it.subscribers.clone() };
    // A place in which the other side is missing has lost what this one has.
    let has_both = |it: &&Elsewhere| !it.publishers.is_empty() && !it.subscribers.is_empty();
    let places = seen.elsewhere.iter().filter(|it| !side(it).is_empty());
    let there = places.min_by_key(|it| (has_both(it), it.place.clone()))?;
    let program = side(there).first()?.clone();
    let (place, here) = (&there.place, &seen.place);
    let found = format!(
        "{:?} has no {} in {}: {} {} it in {}",
        seen.topic,
        noun(publishers),
        domain_of(here),
        program.label(),
        if publishers { "publishes" } else { "subscribes to" },
        place.from(here),
    );
    let who = program.name.clone();
    let finding = if place.container_of.is_some() {
        let change = "start both containers with one /dev/shm: docker run --ipc=host, or -v \
                      /dev/shm:/dev/shm"
            .to_owned();
        Finding::change("other_container", found, change)
    } else if place.runtime_dir != here.runtime_dir {
        let folder = here.runtime_dir.display();
        let change = format!("start {who} with MYELIN_RUNTIME_DIR={folder}");
        Finding::change("other_folder", found, change)
    } else if place.group != here.group {
        let change = match (place.group, here.group) {
            (Some(group), _) => format!("open both nodes with the group {group}, or neither"),
            (None, group) => {
                format!("open {who} with the group {}, too", group.unwrap_or_default())
            }
        };
        Finding::change("other_group", found, change)
    } else {
        let change = format!("start {who} with MYELIN_DOMAIN={}", here.domain);
        Finding::change("other_domain", found, change)
    };
    Some(finding.of(&program.name, program.pid))
}

/// The side is on a topic of nearly the same name.
fn other_name(seen: &Snapshot, publishers: bool) -> Option<Finding> {
    let side = |it: &OtherTopic| if publishers { &it.publishers } else { &it.subscribers }.clone();
    let candidates = || seen.others.iter().filter(|it| !side(it).is_empty());
    let name = match seen.ends.is_empty() {
        true => names::nearest(&seen.topic, candidates().map(|it| &*it.name))?,
        false => &*candidates().find(|it| is_confused(it, &seen.topic, publishers))?.name,
    };
    let other = candidates().find(|it| it.name == name)?;
    let who = side(other).first()?.clone();
    let found = format!(
        "{:?} has no {} in {}: {who} {} {name:?}, which is another topic",
        seen.topic,
        noun(publishers),
        domain_of(&seen.place),
        if publishers { "publishes" } else { "subscribes to" },
    );
    let finding = match seen.ends.is_empty() {
        true => Finding::command("other_name", found, format!("myelin why {name}")),
        false => {
            let change = format!(
                "use one name on both sides: {name:?} in the programs of {:?}, or {:?} in {who}",
                seen.topic, seen.topic
            );
            Finding::change("other_name", found, change)
        }
    };
    Some(finding.of(&who, 0))
}

/// Whether a topic is likely the one that is meant: it is the same but for the `/` in front; or it
/// lacks what this one has, and has another namespace or a misspelt letter. `left` and `right` are
/// like each other, too, but both have two sides.
fn is_confused(other: &OtherTopic, topic: &str, publishers: bool) -> bool {
    let bare = |name: &str| name.trim_start_matches('/').to_owned();
    let leaf = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    if bare(&other.name) == bare(topic) {
        return true;
    }
    let lacks = if publishers { &other.subscribers } else { &other.publishers }.is_empty();
    let letters = strsim::damerau_levenshtein(&other.name, topic);
    lacks && (leaf(&other.name) == leaf(topic) || letters <= 1 + topic.chars().count() / 8)
}

/// A node whose topics are unknown, because it does not answer.
fn unanswered(seen: &Snapshot, publishers: bool) -> Option<Finding> {
    let still = seen.unanswered.iter().find_map(|program| {
        let what =
            format!("nobody knows its topics, and {:?} has no {}", seen.topic, noun(publishers));
        stillness::judge(program, "node", &what)
    });
    still.or_else(|| {
        let program = seen.unanswered.first()?;
        Some(stillness::unresponsive(program, "node"))
    })
}

/// Nodes of other users.
fn foreign(seen: &Snapshot, publishers: bool) -> Option<Finding> {
    let other = seen.foreign.first()?;
    let found = format!(
        "{:?} has no {} among your nodes, and user {} has nodes of its own in {}: nodes of two users \
         do not meet",
        seen.topic,
        noun(publishers),
        other.uid,
        other.path.display(),
    );
    let change = "run all programs as one user, or open their nodes with one group: \
                  Node::builder(name).group(\"robot\")";
    Some(Finding::change("other_user", found, change.to_owned()))
}

/// The side would have to come from another host.
fn network(seen: &Snapshot, publishers: bool) -> Option<Finding> {
    let (state, hosts) = seen.network.as_ref()?;
    let missing = format!("{:?} has no {} on this host", seen.topic, noun(publishers));
    if let myelin::NetworkState::Waiting { reason } = state {
        let found = format!("{missing}, and there is no network: {reason}");
        return Some(Finding::command("network_down", found, "ip -brief address".to_owned()));
    }
    if *hosts > 0 {
        return None;
    }
    let found = format!("{missing}, and no other host is found in {}", domain_of(&seen.place));
    let change = format!(
        "start the programs of both hosts with MYELIN_NETWORK=1 MYELIN_DOMAIN={}; where multicast \
         does not pass, also with MYELIN_PEERS=ADDRESS of the other host",
        seen.place.domain
    );
    Some(Finding::change("no_other_host", found, change))
}

fn nobody(seen: &Snapshot, publishers: bool) -> Finding {
    let there: Vec<_> = seen.of_kind(!publishers).map(|end| end.program.label()).collect();
    let there = match &*there {
        [] => String::new(),
        [one] => format!("; {one} {} it", if publishers { "subscribes to" } else { "publishes" }),
        many => format!(
            "; {} programs {} it",
            many.len(),
            if publishers { "subscribe to" } else { "publish" }
        ),
    };
    let found = format!(
        "nobody {} {:?} in {}, nor in another place that can be seen{there}",
        if publishers { "publishes" } else { "subscribes to" },
        seen.topic,
        domain_of(&seen.place),
    );
    let id = if publishers { "no_publisher" } else { "no_subscriber" };
    let change = format!(
        "start the program that {} it; if it runs, read its stderr: an endpoint whose type differs \
         is not opened",
        if publishers { "publishes" } else { "subscribes to" },
    );
    Finding::change(id, found, change)
}

fn noun(publishers: bool) -> &'static str {
    if publishers { "publisher" } else { "subscriber" }
}

fn domain_of(place: &Place) -> String {
    match place.group {
        Some(group) => format!("domain {} of group {group}", place.domain),
        None => format!("domain {}", place.domain),
    }
}
