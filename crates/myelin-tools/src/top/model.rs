//! What the screen shows, and what keys do to it. It knows no terminal.

use super::details::{Observed, Tone};
use super::keys::{Action, Mode};
use super::snapshot::{NodeRow, Snapshot, TopicRow};
use super::table::{Row, Table};

/// Everything that is shown.
#[derive(Debug)]
pub struct Model {
    /// What the rows are made of.
    shown: Snapshot,
    /// What came while it was frozen.
    waiting: Option<Snapshot>,
    is_frozen: bool,
    view: View,
    topics: Table<TopicRow>,
    nodes: Table<NodeRow>,
    /// Of topics and of nodes.
    filters: [String; 2],
    /// The filter before it was changed, while one is typed.
    typed_over: Option<String>,
    opened: Option<Opened>,
    observed: Option<Observed>,
    /// The first line of the details, or of the help.
    scrolled: usize,
    /// How many rows and lines a page has.
    page: usize,
    is_help: bool,
}

/// The table that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Topics.
    #[default]
    Topics,
    /// Nodes.
    Nodes,
}

/// The row whose details are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// A topic, by its name on the wire.
    Topic(String),
    /// A node, by id and name.
    Node(u64, String),
}

/// What a key asks of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// End.
    Quit,
    /// Stop, as other programs do at Ctrl-Z.
    Suspend,
    /// Draw everything again.
    Redraw,
}

impl Model {
    /// Empty, and sorted by the column of this name: see [`Table::new`].
    pub fn new(sort: Option<&str>) -> Model {
        Model {
            shown: Snapshot::default(),
            waiting: None,
            is_frozen: false,
            view: View::default(),
            topics: Table::new(sort),
            nodes: Table::new(sort),
            filters: Default::default(),
            typed_over: None,
            opened: None,
            observed: None,
            scrolled: 0,
            page: 1,
            is_help: false,
        }
    }

    /// Shows what is there now, or keeps it until it is no longer frozen.
    pub fn update(&mut self, snapshot: Snapshot) {
        if self.is_frozen {
            self.waiting = Some(snapshot);
        } else {
            self.shown = snapshot;
            self.arrange();
        }
    }

    /// What has been observed of the open topic. Details that are opened while it is frozen show the
    /// first that comes.
    pub fn observe(&mut self, observed: Option<Observed>) {
        let is_empty = self.observed.as_ref().is_none_or(|it| it.samples.is_empty());
        if !self.is_frozen || is_empty {
            self.observed = observed;
        }
    }

    /// Does what a key asks for.
    pub fn act(&mut self, action: Action) -> Option<Effect> {
        match action {
            Action::Quit => return Some(Effect::Quit),
            Action::Suspend => return Some(Effect::Suspend),
            Action::Redraw => return Some(Effect::Redraw),
            Action::Back => return self.back(),
            Action::Move(by) => self.move_by(by),
            Action::Page(by) => self.move_by(by * self.page.max(1) as isize),
            Action::First => self.move_by(isize::MIN / 2),
            Action::Last => self.move_by(isize::MAX / 2),
            Action::Sort(key) => self.sort(key),
            Action::Switch => self.switch(),
            Action::Open => self.open(),
            Action::Freeze => self.freeze(),
            Action::Help => (self.is_help, self.scrolled) = (!self.is_help, 0),
            Action::Filter => self.typed_over = Some(self.filter().to_owned()),
            Action::Type(c) => self.edit(|filter| filter.push(c)),
            Action::Erase => self.edit(|filter| {
                filter.pop();
            }),
            Action::EraseAll => self.edit(String::clear),
            Action::Accept => self.typed_over = None,
        }
        None
    }

    /// Leaves what is open, the innermost first; at last the program.
    fn back(&mut self) -> Option<Effect> {
        if let Some(before) = self.typed_over.take() {
            self.edit(|filter| *filter = before);
        } else if self.is_help {
            (self.is_help, self.scrolled) = (false, 0);
        } else if self.opened.is_some() {
            (self.opened, self.observed, self.scrolled) = (None, None, 0);
        } else if !self.filter().is_empty() {
            self.edit(String::clear);
        } else {
            return Some(Effect::Quit);
        }
        None
    }

    fn move_by(&mut self, by: isize) {
        match self.mode() {
            Mode::Help | Mode::Details => self.scrolled = self.scrolled.saturating_add_signed(by),
            _ => match self.view {
                View::Topics => self.topics.move_by(&self.shown.topics, by),
                View::Nodes => self.nodes.move_by(&self.shown.nodes, by),
            },
        }
    }

    fn sort(&mut self, key: char) {
        let is_column = match self.view {
            View::Topics => self.topics.sort_by(key),
            View::Nodes => self.nodes.sort_by(key),
        };
        if is_column {
            self.arrange();
        }
    }

    fn switch(&mut self) {
        self.view = match self.view {
            View::Topics => View::Nodes,
            View::Nodes => View::Topics,
        };
        (self.opened, self.observed, self.scrolled) = (None, None, 0);
    }

    fn open(&mut self) {
        self.opened = match self.view {
            View::Topics => self.selected_topic().map(|it| Opened::Topic(it.key())),
            View::Nodes => self.selected_node().map(|it| Opened::Node(it.node, it.name.clone())),
        };
        (self.observed, self.scrolled) = (None, 0);
    }

    fn freeze(&mut self) {
        self.is_frozen = !self.is_frozen;
        if let Some(newest) = self.waiting.take() {
            self.update(newest);
        }
    }

    fn edit(&mut self, change: impl FnOnce(&mut String)) {
        let filter = &mut self.filters[self.view as usize];
        change(filter);
        while filter.len() > FILTER_BYTES_MAX {
            filter.pop();
        }
        self.arrange();
    }

    fn arrange(&mut self) {
        let [of_topics, of_nodes] = &self.filters;
        self.topics.arrange(&self.shown.topics, of_topics);
        self.nodes.arrange(&self.shown.nodes, of_nodes);
    }

    /// What keys mean now.
    pub fn mode(&self) -> Mode {
        match () {
            () if self.typed_over.is_some() => Mode::Filter,
            () if self.is_help => Mode::Help,
            () if self.opened.is_some() => Mode::Details,
            () => Mode::Table,
        }
    }

    /// What the rows are made of.
    pub fn snapshot(&self) -> &Snapshot {
        &self.shown
    }

    /// The table that is shown.
    pub fn view(&self) -> View {
        self.view
    }

    /// The table of topics.
    pub fn topics(&self) -> &Table<TopicRow> {
        &self.topics
    }

    /// The table of nodes.
    pub fn nodes(&self) -> &Table<NodeRow> {
        &self.nodes
    }

    /// The table of topics with their rows, to be drawn in so many lines.
    pub fn topics_in(&mut self, height: usize) -> (&mut Table<TopicRow>, &[TopicRow]) {
        self.page = height;
        (&mut self.topics, &self.shown.topics)
    }

    /// The table of nodes with their rows, to be drawn in so many lines.
    pub fn nodes_in(&mut self, height: usize) -> (&mut Table<NodeRow>, &[NodeRow]) {
        self.page = height;
        (&mut self.nodes, &self.shown.nodes)
    }

    /// The first of so many lines that are drawn in `height` lines.
    pub fn scrolled_in(&mut self, height: usize, lines: usize) -> usize {
        self.page = height;
        self.scrolled = self.scrolled.min(lines.saturating_sub(height));
        self.scrolled
    }

    /// The selected topic.
    pub fn selected_topic(&self) -> Option<&TopicRow> {
        self.topics.selected(&self.shown.topics)
    }

    /// The selected node.
    pub fn selected_node(&self) -> Option<&NodeRow> {
        self.nodes.selected(&self.shown.nodes)
    }

    /// The row whose details are shown.
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// What has been observed of the open topic.
    pub fn observed(&self) -> Option<&Observed> {
        self.observed.as_ref()
    }

    /// The filter of the table that is shown.
    pub fn filter(&self) -> &str {
        &self.filters[self.view as usize]
    }

    /// Whether it shows what was, until it is no longer frozen.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// One line about the selected row: what is wrong with it, and at which endpoint.
    pub fn about_selected(&self) -> (String, Tone) {
        match self.view {
            View::Topics => self.selected_topic().map(about_topic).unwrap_or_default(),
            View::Nodes => self.selected_node().map(about_node).unwrap_or_default(),
        }
    }
}

/// Losses by subscriber, and a refusal.
pub fn about_topic(topic: &TopicRow) -> (String, Tone) {
    let refusals = topic.publishers.iter().chain(&topic.subscribers).flat_map(|endpoint| {
        let reasons = endpoint.matches.iter().filter_map(|it| Some((it, it.refusal.as_ref()?)));
        reasons.map(move |(other, reason)| (&endpoint.node_name, &other.node_name, reason))
    });
    if let Some((one, other, reason)) = { refusals }.next() {
        return (format!("not matched: {one} and {other}: {reason}"), Tone::Bad);
    }
    let mut losers: Vec<_> = topic.subscribers.iter().filter(|it| it.lost_total > 0).collect();
    losers.sort_by_key(|it| std::cmp::Reverse((it.lost, it.lost_total)));
    if losers.is_empty() {
        return (topic.type_name.clone(), Tone::Dim);
    }
    let lost =
        losers.iter().map(|it| format!("{} {} (of {})", it.node_name, it.lost, it.lost_total));
    let tone = if topic.lost > 0 { Tone::Warning } else { Tone::Dim };
    (format!("lost: {}", lost.collect::<Vec<_>>().join(", ")), tone)
}

fn about_node(node: &NodeRow) -> (String, Tone) {
    if node.is_stopped {
        return (format!("{} is stopped by a signal or a debugger", node.name), Tone::Bad);
    }
    if node.is_silent {
        return (format!("{} does not answer", node.name), Tone::Bad);
    }
    (format!("{} on {}, user {}", node.program, node.host, node.user), Tone::Dim)
}

/// The longest filter.
const FILTER_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::snapshot::{EndpointRow, MatchRow};

    fn snapshot(names: &[&str]) -> Snapshot {
        let topic = |name: &&str| TopicRow {
            name: (*name).to_owned(),
            wire_name: (*name).to_owned(),
            ..TopicRow::default()
        };
        let node = |(index, name): (usize, &&str)| NodeRow {
            node: index as u64,
            name: format!("node of {name}"),
            ..NodeRow::default()
        };
        Snapshot {
            topics: names.iter().map(topic).collect(),
            nodes: names.iter().enumerate().map(node).collect(),
            ..Snapshot::default()
        }
    }

    fn selected(model: &Model) -> &str {
        &model.selected_topic().expect("a topic is selected").name
    }

    #[test]
    fn nothing_changes_while_it_is_frozen_and_then_the_newest_is_shown() {
        let mut model = Model::new(None);
        model.update(snapshot(&["a", "b"]));
        model.act(Action::Freeze);
        model.update(snapshot(&["c"]));
        model.update(snapshot(&["d"]));
        assert_eq!(model.snapshot().topics.len(), 2);
        model.act(Action::Last);
        assert_eq!(selected(&model), "b", "it can be looked at");
        model.act(Action::Freeze);
        assert_eq!(selected(&model), "d");
    }

    #[test]
    fn escape_leaves_the_innermost_first() {
        let mut model = Model::new(None);
        model.update(snapshot(&["a", "b"]));
        for action in [Action::Filter, Action::Type('b'), Action::Accept, Action::Open] {
            assert_eq!(model.act(action), None);
        }
        assert_eq!(model.opened(), Some(&Opened::Topic("b".to_owned())));
        model.act(Action::Help);
        assert_eq!(model.mode(), Mode::Help);
        model.act(Action::Back);
        assert_eq!(model.mode(), Mode::Details);
        model.act(Action::Back);
        assert_eq!((model.mode(), model.filter()), (Mode::Table, "b"));
        model.act(Action::Filter);
        model.act(Action::Type('x'));
        model.act(Action::Back);
        assert_eq!(model.filter(), "b", "what is not accepted is undone");
        model.act(Action::Back);
        assert_eq!((model.filter(), model.topics().len()), ("", 2));
        assert_eq!(model.act(Action::Back), Some(Effect::Quit));
    }

    #[test]
    fn topics_and_nodes_have_filters_and_sorting_of_their_own() {
        let mut model = Model::new(None);
        model.update(snapshot(&["a", "b"]));
        model.act(Action::Type('a'));
        model.act(Action::Switch);
        assert_eq!((model.filter(), model.nodes().len()), ("", 2));
        model.act(Action::Sort('c'));
        assert_eq!(model.nodes().sorted_by().name, "cpu");
        assert_eq!(model.topics().sorted_by().name, "name");
        model.act(Action::Open);
        assert_eq!(model.opened(), Some(&Opened::Node(0, "node of a".to_owned())));
    }

    #[test]
    fn the_line_about_a_topic_names_what_is_wrong() {
        let mut topic = TopicRow { type_name: "Imu".to_owned(), ..TopicRow::default() };
        assert_eq!(about_topic(&topic), ("Imu".to_owned(), Tone::Dim));
        let loser = |name: &str, lost, lost_total| EndpointRow {
            node_name: name.to_owned(),
            lost,
            lost_total,
            ..EndpointRow::default()
        };
        topic.subscribers = vec![loser("a", 0, 7), loser("b", 0, 0), loser("c", 2, 5)];
        topic.lost = 2;
        assert_eq!(about_topic(&topic), ("lost: c 2 (of 5), a 0 (of 7)".to_owned(), Tone::Warning));
        let refusal = Some("the types differ".to_owned());
        topic.subscribers[1].matches =
            vec![MatchRow { node_name: "p".to_owned(), refusal, ..MatchRow::default() }];
        let text = "not matched: b and p: the types differ".to_owned();
        assert_eq!(about_topic(&topic), (text, Tone::Bad));
    }
}
