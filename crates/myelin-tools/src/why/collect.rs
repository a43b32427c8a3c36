//! Looks at a topic and around it, twice, and makes the snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use myelin::value::Schema;
use myelin::{
    Counters, EndpointId, EndpointInfo, Graph, Location, MatchInfo, NetworkState, Observer,
    PeerInfo,
};

use super::Options;
use super::elsewhere::Places;
use super::process::Process;
use super::snapshot::{Counts, End, OtherTopic, Place, Program, Rates, Snapshot};
use crate::leftovers::Live;
use crate::rate::Rate;
use crate::session::{self, Session};
use crate::{Error, ros, select};

/// Looks until a sample has come from each publisher, and for `options.within` at most.
pub(super) fn collect(place: &session::Place, options: &Options) -> Result<Snapshot, Error> {
    let session = Session::open("myelin why", place)?;
    let here = place_of(&session);
    let (places, first) = thread::scope(|scope| {
        let places = scope.spawn(|| Places::find(&here));
        let first = first_look(&session, &options.topic, options.within);
        (places.join().expect("it does not panic"), first)
    });
    let (topic, first) = first?;
    let begun = Instant::now();
    let before = Processes::read(&first, &places.here);
    let busy_before = if options.late { cpu_ticks() } else { BTreeMap::new() };
    let (second, rates) = second_look(&session, &topic, &first, options)?;
    let interval_s = begun.elapsed().as_secs_f64();
    let after = Processes::read(&second, &places.here);

    let programs = Programs { graph: &second, live: &places.here, before, after };
    let mut ends = ends(&topic, &first, &second, &programs);
    let ids: BTreeSet<_> = ends.iter().map(|end| end.info.id).collect();
    let of_topic = |it: &&MatchInfo| ids.contains(&it.endpoint) || ids.contains(&it.other);
    let matches: Vec<_> = second.matches.iter().filter(of_topic).cloned().collect();
    ends.extend(hidden(&topic, &ends, &matches, &programs));
    let is_one_sided = [true, false]
        .iter()
        .any(|publishers| !ends.iter().any(|end| end.info.is_publisher == *publishers));
    let elsewhere = if is_one_sided { places.ask(&topic, ELSEWHERE_LIMIT) } else { Vec::new() };
    let known: BTreeSet<_> = ends.iter().map(|end| end.program.pid).collect();
    Ok(Snapshot {
        others: others(&topic, &second),
        types: types(&ends, &second),
        unanswered: programs.unanswered(),
        busiest: busiest(&busy_before, &known, interval_s),
        network: network(&session, &second),
        denied: denied(&topic, &second),
        foreign: places.foreign,
        place: here,
        topic: shown(&topic, &second),
        interval_s,
        ends,
        matches,
        elsewhere,
        rates,
    })
}

/// The place that a session looks at: `FOLDER/myelin-1000/DOMAIN` has its socket.
fn place_of(session: &Session) -> Place {
    let sockets = session.node().runtime_dir();
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let user = sockets.parent().unwrap_or(sockets);
    let group = name(user).and_then(|name| name.strip_prefix("myelin-group-")?.parse().ok());
    Place {
        runtime_dir: user.parent().unwrap_or(user).to_owned(),
        domain: name(sockets).and_then(|name| name.parse().ok()).unwrap_or(0),
        group,
        container_of: None,
    }
}

/// The topic's name in full, and what all nodes answer. Other hosts are waited for.
fn first_look(session: &Session, topic: &str, within: Duration) -> Result<(String, Graph), Error> {
    let begun = Instant::now();
    loop {
        let graph = ask(session)?;
        let name = full_name(topic, &graph);
        let has = |publishers: bool| {
            graph
                .endpoints
                .iter()
                .any(|it| it.is_publisher == publishers && is_on(&name, it, &graph))
        };
        let is_local = session.node().network() == NetworkState::Off;
        if is_local || (has(true) && has(false)) || begun.elapsed() >= within {
            return Ok((name, graph));
        }
        thread::sleep(STEP);
    }
}

/// What all nodes answer. On a busy machine one may need a second time.
fn ask(session: &Session) -> Result<Graph, Error> {
    let graph = session.graph(ANSWER_LIMIT)?;
    if graph.silent.is_empty() { Ok(graph) } else { session.graph(ANSWER_LIMIT) }
}

/// The name on the wire of what is typed.
fn full_name(typed: &str, graph: &Graph) -> String {
    let all = select::all(graph);
    let meant = all.keys().find(|names| select::is_meant(typed, **names, &all));
    meant.map_or(typed, |(_, raw)| raw).to_owned()
}

/// A topic's name as people write it.
fn shown(topic: &str, graph: &Graph) -> String {
    let found = graph.endpoints.iter().find(|it| it.topic == topic);
    found.map_or(topic, ros::topic_name).to_owned()
}

/// Whether an endpoint is on a topic; those of DDS programs have the name that it has in DDS.
fn is_on(topic: &str, endpoint: &EndpointInfo, graph: &Graph) -> bool {
    if endpoint.location != Location::Dds {
        return endpoint.topic == topic;
    }
    let of_ours =
        graph.endpoints.iter().filter(|it| it.topic == topic && it.location != Location::Dds);
    let mut names = of_ours.filter_map(|it| it.dds.as_ref()).map(|dds| &*dds.topic);
    endpoint.topic == topic
        || endpoint.topic == format!("rt/{}", topic.trim_start_matches('/'))
        || names.any(|name| name == endpoint.topic)
}

/// What all nodes answer when every publisher has published, or the time is over; and, if it is to
/// be looked for lateness, the rates of the publishers.
fn second_look(
    session: &Session,
    topic: &str,
    first: &Graph,
    options: &Options,
) -> Result<(Graph, Rates), Error> {
    let begun = Instant::now();
    if options.late {
        let rates = watch(session, topic, first, options.within);
        return Ok((ask(session)?, rates));
    }
    loop {
        thread::sleep(STEP);
        let graph = ask(session)?;
        let (elapsed, enough) = (begun.elapsed(), is_enough(topic, first, &graph));
        if elapsed >= options.within || (enough && elapsed >= INTERVAL_MIN) {
            return Ok((graph, Rates::new()));
        }
    }
}

/// Whether each publisher has published meanwhile, and each subscriber that lost samples before has
/// lost more.
fn is_enough(topic: &str, first: &Graph, now: &Graph) -> bool {
    let before: BTreeMap<_, _> = first.endpoints.iter().map(|it| (it.id, it.counters)).collect();
    now.endpoints.iter().filter(|it| it.topic == topic).all(|it| {
        let end = End {
            info: it.clone(),
            counts: counts(before.get(&it.id).copied().flatten(), it.counters),
            ..End::default()
        };
        end.published().is_none_or(|(new, _)| new > 0)
            && end.lost().is_none_or(|(new, all)| new > 0 || all == 0)
    })
}

/// The counters at both looks.
fn counts(before: Option<Counters>, now: Option<Counters>) -> Option<(Counts, Counts)> {
    Some((before?.into(), now?.into()))
}

/// The endpoints of a topic.
fn ends(topic: &str, first: &Graph, second: &Graph, programs: &Programs<'_>) -> Vec<End> {
    let before: BTreeMap<_, _> = first.endpoints.iter().map(|it| (it.id, it.counters)).collect();
    let on_topic = second.endpoints.iter().filter(|it| is_on(topic, it, second));
    let end = |info: &EndpointInfo| End {
        program: programs.of(info),
        counts: counts(before.get(&info.id).copied().flatten(), info.counters),
        info: info.clone(),
    };
    on_topic.take(ENDS_MAX).map(end).collect()
}

/// Endpoints of nodes that do not answer, as far as the other side of their matches reports them.
fn hidden(topic: &str, ends: &[End], matches: &[MatchInfo], programs: &Programs<'_>) -> Vec<End> {
    let known: BTreeMap<_, _> = ends.iter().map(|end| (end.info.id, &end.info)).collect();
    let mut hidden = BTreeMap::new();
    for each in matches {
        let Some(ours) = known.get(&each.endpoint) else { continue };
        let Some(live) = programs.live.iter().find(|it| it.node == node_of(each.other)) else {
            continue;
        };
        if known.contains_key(&each.other) {
            continue;
        }
        let mut info = EndpointInfo::default();
        info.id = each.other;
        info.node = live.node;
        info.topic = topic.to_owned();
        info.is_publisher = !ours.is_publisher;
        hidden.insert(each.other, End { info, program: programs.of_live(live), counts: None });
    }
    hidden.into_values().collect()
}

/// The other topics, with those who have them.
fn others(topic: &str, graph: &Graph) -> Vec<OtherTopic> {
    let nodes: BTreeMap<_, _> = graph.nodes.iter().map(|node| (node.node, node)).collect();
    let mut topics: BTreeMap<&str, OtherTopic> = BTreeMap::new();
    let is_other = |it: &&EndpointInfo| it.topic != topic && !it.type_name.contains(" -> ");
    for endpoint in graph.endpoints.iter().filter(is_other) {
        let other = topics.entry(&endpoint.topic).or_default();
        ros::topic_name(endpoint).clone_into(&mut other.name);
        let node = nodes.get(&endpoint.node).map_or("a DDS program", |node| &node.name);
        let side =
            if endpoint.is_publisher { &mut other.publishers } else { &mut other.subscribers };
        side.push(node.to_owned());
    }
    topics.into_values().collect()
}

/// The programs of other hosts that say that their permissions do not allow them the topic.
fn denied(topic: &str, graph: &Graph) -> Vec<(bool, Program)> {
    let of = |node: &PeerInfo, attribute: &str| {
        let names = node.record.attributes.get(attribute).unwrap_or_default();
        names.split(|byte| *byte == b' ').any(|name| name == topic.as_bytes())
    };
    let both = [(true, "myelin.may_not_publish"), (false, "myelin.may_not_subscribe")];
    let all = both.into_iter().flat_map(|(publishers, attribute)| {
        let nodes = graph.nodes.iter().filter(move |node| of(node, attribute));
        nodes.map(move |node| {
            let (name, host) = (node.name.clone(), Some(node.record.host.clone()));
            (publishers, Program { name, host, ..Program::default() })
        })
    });
    all.take(ENDS_MAX).collect()
}

fn types(ends: &[End], graph: &Graph) -> BTreeMap<u64, Arc<myelin::value::Type>> {
    let hashes: BTreeSet<_> = ends.iter().map(|end| end.info.type_hash).collect();
    let of_topic = graph.types.iter().filter(|it| hashes.contains(&it.hash));
    let parsed = of_topic.filter_map(|it| {
        let schema = it.schema.as_ref()?;
        let ty = Schema::new(&schema.encoding, &it.name, &schema.content).parse().ok()?;
        Some((it.hash, Arc::new(ty)))
    });
    parsed.collect()
}

fn network(session: &Session, graph: &Graph) -> Option<(NetworkState, usize)> {
    let state = session.node().network();
    let is_other = |node: &&PeerInfo| node.location != Location::ThisHost;
    let others = graph.nodes.iter().filter(is_other).count();
    let dds = graph.endpoints.iter().filter(|it| it.location == Location::Dds).count();
    (state != NetworkState::Off).then_some((state, others + dds))
}

/// The processes at one moment, by number.
struct Processes(BTreeMap<u32, Process>);

impl Processes {
    fn read(graph: &Graph, live: &[Live]) -> Processes {
        let local = graph.nodes.iter().filter(|node| node.location == Location::ThisHost);
        let pids = local.map(|node| node.pid).chain(live.iter().filter_map(|it| it.pid));
        let pids: BTreeSet<_> = pids.filter(|pid| *pid != 0).take(ENDS_MAX).collect();
        Processes(pids.into_iter().filter_map(|pid| Some((pid, Process::read(pid)?))).collect())
    }
}

/// The nodes with their processes.
struct Programs<'a> {
    graph: &'a Graph,
    live: &'a [Live],
    before: Processes,
    after: Processes,
}

impl Programs<'_> {
    /// That of an endpoint.
    fn of(&self, endpoint: &EndpointInfo) -> Program {
        let Some(node) = self.graph.nodes.iter().find(|node| node.node == endpoint.node) else {
            let (name, host) = ("a DDS program".to_owned(), None);
            return Program { name, host, ..Program::default() };
        };
        let is_here = node.location == Location::ThisHost;
        let pid = if is_here { node.pid } else { 0 };
        Program {
            name: node.name.clone(),
            pid,
            language: node.record.language.clone(),
            host: (!is_here).then(|| node.record.host.clone()),
            is_silent: self.graph.silent.contains(&node.node),
            process: self.process(pid),
        }
    }

    /// That of a node that does not answer: the name is that of its program.
    fn of_live(&self, live: &Live) -> Program {
        let pid = live.pid.unwrap_or(0);
        let process = self.process(pid);
        let name = process.as_ref().map(|(_, now)| now.name.clone());
        let name = live.name.clone().or(name).unwrap_or_else(|| "a node".to_owned());
        Program { name, pid, is_silent: true, process, ..Program::default() }
    }

    /// Nodes that live and have not answered anybody here.
    fn unanswered(&self) -> Vec<Program> {
        let known: BTreeSet<_> = self.graph.nodes.iter().map(|node| node.node).collect();
        let is_silent = |it: &&Live| it.name.is_none() && !known.contains(&it.node);
        self.live.iter().filter(is_silent).map(|it| self.of_live(it)).collect()
    }

    fn process(&self, pid: u32) -> Option<(Process, Process)> {
        Some((self.before.0.get(&pid)?.clone(), self.after.0.get(&pid)?.clone()))
    }
}

/// Observes the publishers of a topic on this host for some time.
fn watch(session: &Session, topic: &str, graph: &Graph, within: Duration) -> Rates {
    let is_ours = |it: &&EndpointInfo| {
        it.topic == topic && it.is_publisher && it.location == Location::ThisHost
    };
    let of_types: BTreeMap<_, _> =
        graph.endpoints.iter().filter(is_ours).map(|it| (it.type_hash, it)).collect();
    // One that cannot be observed has no rate.
    let observer = |it| ros::any_topic(session.node(), it, graph).ok()?.topic().observer().ok();
    let mut observers: Vec<_> = of_types.into_values().filter_map(observer).collect();
    let begun = Instant::now();
    let mut rates = BTreeMap::new();
    loop {
        let now_ns = myelin::now();
        for observer in &mut observers {
            for _ in 0..HEADERS_MAX {
                let Ok(Some(header)) = observer.take_header() else { break };
                let rate = rates
                    .entry(header.publisher)
                    .or_insert_with(|| Rate::new(u64::MAX, 0, now_ns, header.sequence));
                rate.add(&header, now_ns);
            }
        }
        let left = within.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return rates.into_iter().map(|(id, rate)| (id, rate.total(now_ns, 0))).collect();
        }
        let interval = observers.iter().map(Observer::interval).min().unwrap_or(left);
        thread::sleep(interval.min(left));
    }
}

/// The CPU time of all processes that can be seen, in ticks.
fn cpu_ticks() -> BTreeMap<u32, u64> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().take(PROCESSES_MAX);
    let ticks = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, fields) = text.rsplit_once(')')?;
        let times = fields.split_whitespace().skip(UTIME_FIELD).take(2);
        Some((pid, times.filter_map(|time| time.parse::<u64>().ok()).sum()))
    };
    processes.filter_map(ticks).collect()
}

/// The process, not among `known`, that ran most since, and its share of a core.
fn busiest(
    before: &BTreeMap<u32, u64>,
    known: &BTreeSet<u32>,
    interval_s: f64,
) -> Option<(Program, f64)> {
    if before.is_empty() {
        return None;
    }
    let own = std::process::id();
    let now = cpu_ticks().into_iter().filter(|(pid, _)| *pid != own && !known.contains(pid));
    let ran = now.map(|(pid, ticks)| (ticks - before.get(&pid).unwrap_or(&ticks).min(&ticks), pid));
    let (ticks, pid) = ran.max()?;
    let share =
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64 / interval_s.max(1e-3);
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned();
    (share > 0.1).then(|| (Program { name, pid, ..Program::default() }, share))
}

/// The node of an endpoint: the upper 40 bits of its id.
fn node_of(endpoint: EndpointId) -> u64 {
    endpoint >> 24 << 24
}

/// A node answers in less than a millisecond; one that is stopped costs every look so long.
const ANSWER_LIMIT: Duration = Duration::from_millis(200);
/// For all other places together.
const ELSEWHERE_LIMIT: Duration = Duration::from_millis(600);
/// Between two looks at counters.
const STEP: Duration = Duration::from_millis(50);
/// Rates over a shorter time say little.
const INTERVAL_MIN: Duration = Duration::from_millis(250);
/// Samples that are read in one look at most.
const HEADERS_MAX: usize = 4_096;
const ENDS_MAX: usize = 1_024;
const PROCESSES_MAX: usize = 8_192;
/// The 14th field, of which the first two are number and name.
const UTIME_FIELD: usize = 11;
