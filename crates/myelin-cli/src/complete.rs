//! Names for Tab, from what runs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use myelin_bench_lab::baseline::Baselines;
use myelin_bench_lab::registry::Registry;
use myelin_bench_lab::scenario::Scenario;
use myelin_tools::session::{Place, Session};
use myelin_tools::{Graph, document, info, ros, select, services};

/// The topics.
pub fn topics() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = |graph: &Graph| {
            let topics = select::all(graph).into_iter();
            let topics = topics.filter(|(_, it)| !ros::is_of_service(it[0]));
            topics.map(|((shown, _), _)| shown.to_owned()).collect()
        };
        candidates(current, names)
    })
}

/// The nodes.
pub fn nodes() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        // The nodes of ROS 2 are known by their endpoints.
        let names = |graph: &Graph| {
            let of_ros = graph.endpoints.iter().filter_map(|it| ros::node_name(&it.attributes));
            of_ros.chain(graph.nodes.iter().map(|it| it.name.clone())).collect()
        };
        candidates(current, names)
    })
}

/// The services.
pub fn services() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = |graph: &Graph| services::all(graph).into_iter().map(|it| it.service);
        candidates(current, |graph| names(graph).collect())
    })
}

/// The fields of the topics that the line names.
pub fn fields() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let words: BTreeSet<OsString> = std::env::args_os().collect();
        let of_line = |graph: &Graph| {
            let all = select::all(graph);
            let is_named = |name: (&str, &str)| {
                words.iter().filter_map(|it| it.to_str()).any(|it| select::is_meant(it, name, &all))
            };
            let named = all.iter().filter(|(name, _)| is_named(**name));
            let types = named.filter_map(|(_, it)| info::type_of(graph, it[0]).ok());
            types.flat_map(|ty| document::leaves(&ty)).filter(|it| !it.is_empty()).collect()
        };
        candidates(current, of_line)
    })
}

/// The built-in scenarios, and files.
pub fn scenarios() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut all = described(current, Scenario::built_in().map(|it| (it.name, it.about)));
        all.extend(PathCompleter::any().filter(is_scenario).complete(current));
        all
    })
}

/// Folders that lead to scenarios stay; clap asks for each entry.
fn is_scenario(path: &Path) -> bool {
    path.is_dir() || path.extension().is_some_and(|it| it == "toml")
}

/// The systems of all drivers.
pub fn systems() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let registry = Registry::discover();
        let systems = registry.entries().iter().map(|it| &it.system);
        described(current, systems.map(|it| (it.name.clone(), it.about.clone())))
    })
}

/// Results folders, and folders on the way to them.
pub fn results() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| PathCompleter::dir().complete(current))
}

/// The baselines of this user.
pub fn baselines() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let all = Baselines::of_user().and_then(|it| it.list()).unwrap_or_default();
        described(current, all.into_iter().map(|it| (it.name, it.machine.to_string())))
    })
}

/// The names that begin with what is there, with what they are.
fn described(
    current: &OsStr,
    names: impl Iterator<Item = (String, String)>,
) -> Vec<CompletionCandidate> {
    let begin = current.to_str().unwrap_or_default();
    let fits = names.filter(|(name, _)| name.starts_with(begin));
    fits.map(|(name, about)| CompletionCandidate::new(name).help(Some(about.into()))).collect()
}

/// Names that begin with what is there; a topic of ROS 2 also without its `/`.
fn candidates(
    current: &OsStr,
    names: impl FnOnce(&Graph) -> BTreeSet<String>,
) -> Vec<CompletionCandidate> {
    let (Some(begin), Some(graph)) = (current.to_str(), graph()) else { return Vec::new() };
    let fits = |name: &String| name.starts_with(begin);
    let safe = |name: &String| !name.chars().any(char::is_control);
    names(&graph)
        .into_iter()
        .filter(|it| fits(it) && safe(it))
        .map(CompletionCandidate::new)
        .collect()
}

/// Of the domain that the line names. An error is no help while somebody types.
fn graph() -> Option<Graph> {
    let session = Session::open("myelin completion", &place(std::env::args_os())).ok()?;
    session.graph(ANSWER_LIMIT).ok()
}

fn place(words: impl Iterator<Item = OsString>) -> Place {
    let words: Vec<String> = words.map(|it| it.to_string_lossy().into_owned()).collect();
    let value_of = |option: &str| {
        let assigned = format!("{option}=");
        let with_sign = words.iter().find_map(|it| it.strip_prefix(&assigned));
        let behind = words.iter().position(|it| it == option).and_then(|at| words.get(at + 1));
        with_sign.or(behind.map(|it| &**it)).map(str::to_owned)
    };
    Place {
        domain: value_of("--domain").and_then(|it| it.parse().ok()),
        runtime_dir: value_of("--runtime-dir").map(Into::into),
        group: value_of("--group"),
        // Other hosts are found too slowly for Tab.
        network: false,
    }
}

const ANSWER_LIMIT: Duration = Duration::from_millis(200);
