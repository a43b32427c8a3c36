//! The samples of topics as text: `myelin topic echo`.
//!
//! It looks by observers, so publishers do nothing for it, or takes part as a best-effort
//! subscriber. A source reads the samples of one type of a topic; sources follow the domain: a
//! publisher that dies and comes back is read on, and one of another type gets a source of its own.

mod line;
mod source;

use std::collections::BTreeSet;
use std::time::Duration;

use myelin::{EndpointInfo, Graph, Location, WaitSet};

use crate::document::Format;
use crate::filter::Filter;
use crate::info::format_of;
use crate::select::{self, is_meant, missing};
use crate::session::{Place, Session};
use crate::text::{counted, printable};
use crate::{Error, discovery, names, ros};

pub use line::Layout;
use line::Writer;
use source::Source;

/// What to show, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The parts to show; all of the sample if there are none.
    pub fields: Vec<String>,
    /// Only samples that fulfil it.
    pub filter: Option<Filter>,
    /// The form of the output.
    pub layout: Layout,
    /// At most so many elements of each array, and characters of each text.
    pub limit: usize,
    /// The width of the terminal.
    pub width: usize,
    /// So many samples of each topic.
    pub count: Option<u64>,
    /// At most one sample of each topic in this time.
    pub every: Option<Duration>,
    /// How samples are read, instead of by their schema.
    pub format: Option<Format>,
    /// Takes part as a subscriber instead of looking.
    pub subscribe: bool,
    /// Waits for topics that are not there.
    pub wait: bool,
}

/// The samples of topics, as they come.
#[derive(Debug)]
pub struct Echo {
    session: Session,
    place: Place,
    patterns: Vec<String>,
    options: Options,
    writer: Writer,
    sources: Vec<Source>,
    /// `graph_changes` when the graph was read last.
    graph_changes: Option<u64>,
    /// For several subscribers.
    wait_set: Option<WaitSet>,
    notes: Vec<String>,
}

/// What a [step](Echo::step) has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is new text.
    Printed,
    /// The time is over.
    Nothing,
    /// Each topic has had its number of samples.
    Finished,
}

impl Echo {
    /// Opens the topics that the patterns name.
    ///
    /// # Errors
    /// A topic that is not there, unless the options say to wait; a field or a filter that does not
    /// fit a type; topics of other hosts only, which need a subscriber.
    pub fn open(
        session: Session,
        place: Place,
        patterns: &[String],
        options: Options,
    ) -> Result<Echo, Error> {
        let graph = discovery::graph(&session, ANSWER_LIMIT)?;
        if !options.wait {
            select::topics(&graph, patterns, &session, &place)?;
        }
        let is_plain = |it: &String| !names::is_pattern(it);
        let several = patterns.len() != 1 || !patterns.iter().all(is_plain);
        let wait_set = match options.subscribe {
            true => Some(session.node().wait_set()?),
            false => None,
        };
        let mut echo = Echo {
            session,
            place,
            patterns: patterns.to_vec(),
            writer: Writer::new(&options, several),
            options,
            sources: Vec::new(),
            graph_changes: None,
            wait_set,
            notes: Vec::new(),
        };
        echo.follow(&graph)?;
        if echo.sources.is_empty() && !echo.options.wait {
            return Err(echo.nothing_to_read(&graph));
        }
        Ok(echo)
    }

    /// Appends the text of samples that have come; waits for them for at most `limit`.
    ///
    /// # Errors
    /// Data that cannot be read; a publisher of a type that the fields or the filter do not fit.
    pub fn step(&mut self, to: &mut String, limit: Duration) -> Result<Step, Error> {
        self.keep_up()?;
        if self.read(to)? {
            return Ok(self.step_after(Step::Printed));
        }
        if self.is_finished() {
            return Ok(Step::Finished);
        }
        self.wait(limit)?;
        let step = if self.read(to)? { Step::Printed } else { Step::Nothing };
        Ok(self.step_after(step))
    }

    /// What the user should know meanwhile, a line each.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// How many samples have been shown.
    pub fn shown(&self) -> u64 {
        self.sources.iter().map(|source| source.shown).sum()
    }

    /// What was missed, a line for each topic of which something was; of many topics, the first ones.
    pub fn missed(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.sources.iter().filter_map(Source::missed).collect();
        if let Some(more) = lines.len().checked_sub(MISSED_LINES_MAX).filter(|more| *more > 0) {
            lines.truncate(MISSED_LINES_MAX);
            lines.push(format!("samples of {} were missed", counted(more, "more topic")));
        }
        lines
    }

    fn step_after(&self, step: Step) -> Step {
        if self.is_finished() { Step::Finished } else { step }
    }

    fn is_finished(&self) -> bool {
        let is_done = |source: &Source| Some(source.shown) >= self.options.count;
        self.options.count.is_some() && !self.sources.is_empty() && self.sources.iter().all(is_done)
    }

    fn read(&mut self, to: &mut String) -> Result<bool, Error> {
        let before = to.len();
        for source in &mut self.sources {
            source.read(&mut self.writer, &self.options, to)?;
        }
        Ok(to.len() > before)
    }

    fn wait(&mut self, limit: Duration) -> Result<(), Error> {
        let limit = limit.min(SLICE);
        match (&mut self.wait_set, &mut self.sources[..]) {
            (_, []) => std::thread::sleep(limit),
            (Some(set), _) => _ = set.wait(limit)?,
            (None, [one]) => one.wait(limit)?,
            (None, all) => {
                let interval = all.iter().map(Source::interval).min().unwrap_or(limit);
                std::thread::sleep(interval.min(limit));
            }
        }
        Ok(())
    }

    /// Follows the domain if it has changed.
    fn keep_up(&mut self) -> Result<(), Error> {
        let changes = self.session.node().graph_changes()?;
        if self.graph_changes == Some(changes) {
            return Ok(());
        }
        let mut graph = self.session.node().graph()?;
        ros::unite_types(&mut graph);
        let is_new = |it: &&EndpointInfo| !self.sources.iter().any(|source| source.is_of(it));
        if self.wanted(&graph).iter().any(is_new) {
            // With the schemas.
            let graph = discovery::graph(&self.session, ANSWER_LIMIT)?;
            self.follow(&graph)?;
        }
        self.graph_changes = Some(changes);
        Ok(())
    }

    /// Opens sources that are missing.
    fn follow(&mut self, graph: &Graph) -> Result<(), Error> {
        let wanted: Vec<EndpointInfo> = self.wanted(graph).into_iter().cloned().collect();
        for endpoint in wanted {
            if self.sources.iter().any(|source| source.is_of(&endpoint)) {
                continue;
            }
            if self.sources.len() >= SOURCES_MAX {
                return Err(Error::Failed(format!("more than {SOURCES_MAX} topics; name fewer")));
            }
            let before = self.sources.iter().rev().find(|it| it.is_of_topic(&endpoint));
            let (shown, ty) = (ros::topic_name(&endpoint), ros::type_name(&endpoint));
            let change = before.map(|before| {
                let is_of_before = |it: &EndpointInfo| it.is_publisher && before.is_of(it);
                let was = printable(&before.type_name);
                let (shown, ty) = (printable(shown), printable(&ty));
                match graph.endpoints.iter().any(is_of_before) {
                    true => format!("{shown}: it has the types {was} and {ty}"),
                    false => format!("{shown}: its type was {was}, and is now {ty}"),
                }
            });
            let opened = self.open_source(graph, &endpoint);
            let source = match (opened, &change) {
                (Err(error), Some(change)) => {
                    return Err(Error::Failed(format!("{change}: {error}")));
                }
                (opened, _) => opened?,
            };
            self.notes.extend(change);
            if !endpoint.is_publisher {
                self.notes.push(format!("{}: nobody publishes yet", printable(shown)));
            }
            self.sources.push(source);
        }
        Ok(())
    }

    fn open_source(&mut self, graph: &Graph, endpoint: &EndpointInfo) -> Result<Source, Error> {
        let format = self.options.format.clone().unwrap_or_else(|| format_of(graph, endpoint));
        let columns = self.writer.columns(ros::topic_name(endpoint), &format, &self.options)?;
        let of_topic = graph.endpoints.iter().filter(|it| it.is_publisher && is_same(it, endpoint));
        let (depth, history) = of_topic.fold((0, 0), |(depth, history), it| {
            (it.depth.max(depth), it.transient_local.max(history))
        });
        let source = Source::open(
            self.session.node(),
            graph,
            endpoint,
            source::Settings { format, columns, depth, history },
            self.wait_set.as_ref(),
        )?;
        Ok(source)
    }

    /// An endpoint of each type of each topic that is meant; of publishers, or of subscribers where
    /// nobody publishes.
    fn wanted<'g>(&self, graph: &'g Graph) -> Vec<&'g EndpointInfo> {
        let all = select::all(graph);
        let mut wanted = Vec::new();
        for (name, endpoints) in &all {
            if !self.patterns.iter().any(|it| is_meant(it, *name, &all)) {
                continue;
            }
            if ros::is_of_service(endpoints[0]) {
                continue;
            }
            let has_publisher = endpoints.iter().any(|it| it.is_publisher);
            let mut types = BTreeSet::new();
            let of_kind = endpoints.iter().filter(|it| it.is_publisher == has_publisher);
            for endpoint in of_kind.filter(|it| self.is_reachable(it)) {
                if types.insert((endpoint.type_hash, &endpoint.type_name)) {
                    wanted.push(*endpoint);
                }
            }
        }
        wanted
    }

    /// An observer reads the memory of this host.
    fn is_reachable(&self, endpoint: &EndpointInfo) -> bool {
        self.options.subscribe || endpoint.location == Location::ThisHost
    }

    /// The error for topics that are there and cannot be read.
    fn nothing_to_read(&self, graph: &Graph) -> Error {
        let all = select::all(graph);
        let names = all.keys().map(|(shown, _)| *shown);
        let typed = self.patterns.first().map_or("*", |it| it);
        let mut meant = all.iter().filter(|(name, _)| is_meant(typed, **name, &all));
        match meant.next() {
            Some((_, endpoints)) if ros::is_of_service(endpoints[0]) => Error::BadInput(format!(
                "{typed:?} belongs to a service; see `myelin service list`"
            )),
            Some(_) => Error::BadInput(format!(
                "{typed:?} has publishers on other hosts only, and looking works on this host only; \
                 take part as a subscriber: --subscribe"
            )),
            None => missing(typed, names, &self.session, &self.place),
        }
    }
}

/// Whether two endpoints have one topic and type.
fn is_same(one: &EndpointInfo, other: &EndpointInfo) -> bool {
    one.topic == other.topic && one.type_hash == other.type_hash
}

/// How long to wait for the nodes' answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// How long a wait is at most, so that Ctrl-C is noticed.
const SLICE: Duration = Duration::from_millis(100);
/// Each takes memory for the largest sample.
const SOURCES_MAX: usize = 4096;
/// Topics whose missed samples are counted on lines of their own.
const MISSED_LINES_MAX: usize = 8;
