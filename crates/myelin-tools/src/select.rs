//! The topics that people mean: by name, by pattern, with or without the `/` of ROS 2.

use std::collections::BTreeMap;

use myelin::{EndpointInfo, Graph};
use myelin_shm::leftovers::LiveNode;

use crate::names::{is_match, is_pattern, nearest};
use crate::session::{Place, Session};
use crate::text::printable;
use crate::{Error, ros};

/// The endpoints of some topics, by the name that people write and the one on the wire.
pub type Selected<'g> = BTreeMap<(&'g str, &'g str), Vec<&'g EndpointInfo>>;

/// The topics of a graph that patterns name; all if there is no pattern. Those of services are left
/// out, unless they are named in full.
///
/// # Errors
/// A name or pattern that names none of them: the nearest name, and where to look.
pub fn topics<'g>(
    graph: &'g Graph,
    patterns: &[String],
    session: &Session,
    place: &Place,
) -> Result<Selected<'g>, Error> {
    let all = all(graph);
    if patterns.is_empty() {
        return Ok(all.into_iter().filter(|(_, it)| !ros::is_of_service(it[0])).collect());
    }
    let mut selected = Selected::new();
    for pattern in patterns {
        let mut names = all.keys().filter(|name| is_meant(pattern, **name, &all)).peekable();
        if names.peek().is_none() {
            return Err(missing(pattern, all.keys().map(|(shown, _)| *shown), session, place));
        }
        selected.extend(names.map(|name| (*name, all[name].clone())));
    }
    Ok(selected)
}

/// All topics of a graph, also those of services.
pub fn all(graph: &Graph) -> Selected<'_> {
    let mut all = Selected::new();
    for endpoint in &graph.endpoints {
        let names = (ros::topic_name(endpoint), endpoint.topic.as_str());
        all.entry(names).or_default().push(endpoint);
    }
    all
}

/// Whether what somebody typed means a topic.
pub fn is_meant(typed: &str, (shown, raw): (&str, &str), all: &Selected<'_>) -> bool {
    let is_of_ros = shown != raw;
    if is_pattern(typed) {
        let is_service = all.get(&(shown, raw)).is_some_and(|it| ros::is_of_service(it[0]));
        let bare = shown.strip_prefix('/').filter(|_| is_of_ros).unwrap_or(shown);
        let names = [shown, raw, bare];
        return !is_service && names.iter().any(|name| is_match(typed, name));
    }
    if typed == shown || typed == raw {
        return true;
    }
    // Without the `/`, unless another topic has this very name.
    let is_taken = all.keys().any(|(shown, raw)| typed == *shown || typed == *raw);
    is_of_ros && shown.strip_prefix('/') == Some(typed) && !is_taken
}

/// The error for a name that no topic has.
pub fn missing<'a>(
    typed: &str,
    names: impl IntoIterator<Item = &'a str>,
    session: &Session,
    place: &Place,
) -> Error {
    let names: Vec<&str> = names.into_iter().collect();
    let what = if is_pattern(typed) { "no topic matches" } else { "there is no topic" };
    let mut text = format!("{what} {typed:?}");
    text += &match nearest(typed, names.iter().copied()) {
        Some(nearest) => format!("; did you mean {:?}?", printable(nearest)),
        None => ".".to_owned(),
    };
    text += match names.is_empty() {
        true => " No node of this domain has one.",
        false => " `myelin topic list` lists them.",
    };
    not_found(text, session, place)
}

/// The error for what is not here, with the other places of this host in which it may be.
pub(crate) fn not_found(text: String, session: &Session, place: &Place) -> Error {
    Error::NotFound(format!("{text} {}", elsewhere(session, place)).trim_end().to_owned())
}

/// The nodes whose part of a graph is missing, a line each: they are stopped or busy.
pub fn silent(graph: &Graph, session: &Session, place: &Place) -> Vec<String> {
    let line = |name: &str, pid: u32, what: &str| {
        let name = printable(name);
        format!("node {name} (process {pid}) does not answer: it is stopped or busy; {what}")
    };
    let of_graph = graph.silent.iter().map(|silent| {
        let node = graph.nodes.iter().find(|node| node.node == *silent);
        let (name, pid) = node.map_or(("?", 0), |node| (&node.name, node.pid));
        line(name, pid, "its matches and counters are unknown")
    });
    // Nodes that have not even announced themselves to this one.
    let is_unknown = |it: &&LiveNode| {
        (it.domain, it.group.is_some()) == (place.domain_number(), place.group.is_some())
            && !graph.nodes.iter().any(|node| node.node == it.node)
    };
    let live = live(session);
    let unknown = live.iter().filter(is_unknown).map(|it| {
        let name = it.name.as_deref().unwrap_or("?");
        line(name, it.pid, "its topics are unknown")
    });
    of_graph.chain(unknown).collect()
}

/// The nodes of this host in the same folder, in all domains.
fn live(session: &Session) -> Vec<LiveNode> {
    // The folder of the domain is in that of the user.
    let runtime_dir = session.node().runtime_dir().ancestors().nth(2);
    myelin_shm::leftovers::scan(runtime_dir).map(|scan| scan.live).unwrap_or_default()
}

/// Where else nodes of this host run, in one sentence; empty if nowhere.
pub fn elsewhere(session: &Session, place: &Place) -> String {
    let own = std::process::id();
    let mut options: BTreeMap<String, usize> = BTreeMap::new();
    for node in live(session).iter().filter(|node| node.pid != own) {
        let domain = Some(node.domain).filter(|it| *it != place.domain_number());
        // The name of a group may not be known here, and its number is not asked for.
        let option = match (domain, node.group) {
            (Some(domain), None) => format!("--domain {domain}"),
            (_, Some(group)) if place.group.is_none() => {
                format!("--group {group} --domain {}", node.domain)
            }
            _ => continue,
        };
        *options.entry(option).or_default() += 1;
    }
    if options.is_empty() {
        return String::new();
    }
    let shown = options.iter().take(OPTIONS_MAX);
    let shown: Vec<_> = shown.map(|(option, nodes)| format!("{option} ({nodes})")).collect();
    format!("Nodes of this host run elsewhere: {}.", shown.join(", "))
}

/// How many other places are named.
const OPTIONS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_the_slash_is_meant_if_no_other_topic_has_it() {
        let endpoint = |topic: &str, ty: &str| {
            let mut endpoint = EndpointInfo::default();
            (endpoint.topic, endpoint.type_name) = (topic.to_owned(), ty.to_owned());
            endpoint
        };
        let ty = "CDR std_msgs::msg::dds_::String_";
        let endpoints =
            vec![endpoint("rt/chatter", ty), endpoint("rt/imu", ty), endpoint("imu", "Imu")];
        let graph = Graph { endpoints, ..Graph::default() };
        let all = all(&graph);
        let meant = |typed: &str| -> Vec<&str> {
            all.keys()
                .filter(|name| is_meant(typed, **name, &all))
                .map(|(shown, _)| *shown)
                .collect()
        };
        assert_eq!(meant("chatter"), ["/chatter"]);
        assert_eq!(meant("/chatter"), ["/chatter"]);
        assert_eq!(meant("rt/chatter"), ["/chatter"]);
        assert_eq!(meant("imu"), ["imu"]);
        assert_eq!(meant("/imu"), ["/imu"]);
        assert_eq!(meant("*mu"), ["/imu", "imu"]);
        assert_eq!(meant("ch*"), ["/chatter"]);
        assert_eq!(meant("/i"), [""; 0]);
    }
}
