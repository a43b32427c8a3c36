//! Draws the model: only the rows that are visible.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::details::{self, Tone, ToneLine};
use super::keys::{KEYS, Mode};
use super::model::{Model, Opened, View};
use super::table::{self, Column, Row, Table};
use super::text;
use crate::text::counted;

/// What the terminal can show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Whether it has colours, and they are wanted.
    pub has_colour: bool,
    /// Whether it shows characters beyond ASCII.
    pub is_utf8: bool,
}

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, model: &mut Model, look: Look) {
    let mut page = Page { area: frame.area(), buffer: frame.buffer_mut(), look };
    let rows = usize::from(page.area.height);
    page.line(0, &title(model), Style::new().add_modifier(Modifier::BOLD));
    if rows < 2 {
        return;
    }
    page.line(rows - 1, &footer(model, page.width()), Style::new().add_modifier(Modifier::DIM));
    let body = 1..rows - 1;
    match model.mode() {
        Mode::Help => page.scrolled(model, body, help),
        _ if model.opened().is_some() => page.scrolled(model, body, opened),
        _ => page.table(model, body),
    }
}

/// What is there, and whether it changes.
fn title(model: &Model) -> String {
    let snapshot = model.snapshot();
    let refused: usize = snapshot.topics.iter().map(|it| it.refused).sum();
    let lost: u64 = snapshot.topics.iter().map(|it| it.lost).sum();
    let silent = snapshot.nodes.iter().filter(|it| it.is_silent).count();
    let mut title = "myelin top".to_owned();
    if model.is_frozen() {
        title += "  FROZEN";
    }
    let (topics, nodes) = (snapshot.topics.len(), snapshot.nodes.len());
    title += &format!("  {}  {}", counted(topics, "topic"), counted(nodes, "node"));
    for (count, what) in [(lost, "lost"), (refused as u64, "refused"), (silent as u64, "silent")] {
        if count > 0 {
            title += &format!("  {} {what}", text::number(count as f64));
        }
    }
    title
}

/// The filter, or the most important keys.
fn footer(model: &Model, width: usize) -> String {
    let keys = match model.mode() {
        Mode::Filter => {
            // Its end is what is being typed.
            let filter = model.filter();
            let free = width.saturating_sub(2);
            let skipped = filter.chars().count().saturating_sub(free);
            return format!("/{}_", filter.chars().skip(skipped).collect::<String>());
        }
        Mode::Help => "Esc back  q quit",
        Mode::Details => "Esc back  Space freeze  q quit  Up Down scroll  Tab table  ? help",
        Mode::Table => {
            "? help  q quit  Tab table  / filter  Enter open  Space freeze  Up Down select"
        }
    };
    match model.filter() {
        "" => keys.to_owned(),
        filter if model.mode() == Mode::Table => format!("/{filter}  Esc clear  {keys}"),
        _ => keys.to_owned(),
    }
}

fn help(_: &Model, _: usize, _: Look) -> Vec<ToneLine> {
    let mut lines = vec![("Keys".to_owned(), Tone::Heading)];
    lines.extend(KEYS.map(|(key, what)| (format!("  {key:<18} {what}"), Tone::Plain)));
    lines.push(("  a column's letter  sort by it; once more: in reverse".to_owned(), Tone::Plain));
    lines.push(Default::default());
    lines.push(("Columns of topics".to_owned(), Tone::Heading));
    let topics = [
        "PUB/SUB  publishers and subscribers; ! some of them do not match",
        "RATE/s   samples that were published, by the publishers' counters",
        "BYTES/s  their payloads",
        "P50 P99  from publication to take, by subscribers' counters, of the last",
        "         10 to 20 s; - without timestamps: start publishers with",
        "         MYELIN_TIMESTAMPS=1",
        "LOST     samples that subscribers lost since the last update",
        "HELD     samples that subscribers hold now",
        "MEM      shared memory of the endpoints",
    ];
    lines.extend(topics.map(|it| (format!("  {it}"), Tone::Plain)));
    lines.push(("Columns of nodes".to_owned(), Tone::Heading));
    let nodes = [
        "CPU%     of one core, all threads of the process",
        "MEM      resident memory of the process; shared memory counts in each",
        "THR      threads",
        "STATE    silent: it does not answer; stopped: by a signal or debugger",
    ];
    lines.extend(nodes.map(|it| (format!("  {it}"), Tone::Plain)));
    lines
}

fn opened(model: &Model, width: usize, look: Look) -> Vec<ToneLine> {
    let snapshot = model.snapshot();
    match model.opened() {
        Some(Opened::Topic(wire_name)) => {
            let topic = snapshot.topics.iter().find(|it| it.wire_name == *wire_name);
            let name = topic.map_or(wire_name, |it| &it.name);
            let block = if look.is_utf8 { '\u{2588}' } else { '#' };
            details::of_topic(name, topic, model.observed(), width, block)
        }
        Some(Opened::Node(id, name)) => {
            let node = snapshot.nodes.iter().find(|it| (it.node, &it.name) == (*id, name));
            details::of_node(node, snapshot)
        }
        None => Vec::new(),
    }
}

/// Where it is drawn.
struct Page<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
    look: Look,
}

impl Page<'_> {
    fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    fn line(&mut self, row: usize, line: &str, style: Style) {
        let (x, y) = (self.area.x, self.area.y.saturating_add(row as u16));
        if row < usize::from(self.area.height) {
            let line = text::cut(line, self.width());
            self.buffer.set_stringn(x, y, line, self.width(), style);
        }
    }

    fn style(&self, tone: Tone) -> Style {
        let plain = Style::new();
        let colour = |colour: Color| if self.look.has_colour { plain.fg(colour) } else { plain };
        match tone {
            Tone::Plain => plain,
            Tone::Heading => plain.add_modifier(Modifier::BOLD),
            Tone::Dim => plain.add_modifier(Modifier::DIM),
            Tone::Warning => colour(Color::Yellow),
            Tone::Bad => colour(Color::Red),
        }
    }

    /// The part of a text that is scrolled to.
    fn scrolled(
        &mut self,
        model: &mut Model,
        rows: std::ops::Range<usize>,
        text: fn(&Model, usize, Look) -> Vec<ToneLine>,
    ) {
        let lines = text(model, self.width(), self.look);
        let first = model.scrolled_in(rows.len(), lines.len());
        for (row, (line, tone)) in rows.zip(&lines[first..]) {
            self.line(row, line, self.style(*tone));
        }
    }

    /// How it is sorted, the headings, the rows, and a line about the selected one.
    fn table(&mut self, model: &mut Model, rows: std::ops::Range<usize>) {
        let (first, last) = (rows.start, rows.end);
        let (about, tone) = model.about_selected();
        // A very low terminal has room for rows only.
        let has_room = rows.len() >= 5;
        let body = if has_room { first + 1..last - 1 } else { rows };
        if has_room {
            self.line(last - 1, &about, self.style(tone));
        }
        let height = body.len().saturating_sub(1);
        let sorting = match model.view() {
            View::Topics => {
                let (table, rows) = model.topics_in(height);
                self.rows(table, rows, body, |it| match () {
                    () if it.refused > 0 => Tone::Bad,
                    () if it.lost > 0 => Tone::Warning,
                    () => Tone::Plain,
                });
                sorting("TOPICS", "nodes", table, self.width())
            }
            View::Nodes => {
                let (table, rows) = model.nodes_in(height);
                self.rows(table, rows, body, |it| match () {
                    () if it.is_silent || it.is_stopped => Tone::Bad,
                    () => Tone::Plain,
                });
                sorting("NODES", "topics", table, self.width())
            }
        };
        if has_room {
            self.line(first, &sorting, Style::new());
        }
    }

    fn rows<R: Row>(
        &mut self,
        table: &mut Table<R>,
        rows: &[R],
        within: std::ops::Range<usize>,
        tone: fn(&R) -> Tone,
    ) {
        let layout = table::layout::<R>(self.width().saturating_sub(MARK.len()));
        let sorted_by = table.sorted_by().name;
        let heading = table::line(&layout, |column| {
            let mark = if column.name == sorted_by { "*" } else { "" };
            format!("{mark}{}", column.title)
        });
        let style = Style::new().add_modifier(Modifier::BOLD);
        self.line(within.start, &format!("{}{heading}", " ".repeat(MARK.len())), style);
        let visible = table.visible(within.len().saturating_sub(1));
        let selected = table.at();
        let first = visible.start;
        for (index, row) in table.slice(rows, visible).enumerate() {
            let line = table::line(&layout, |column| (column.cell)(row));
            let is_selected = first + index == selected;
            let mark = if is_selected { MARK } else { NO_MARK };
            let mut style = self.style(tone(row));
            if is_selected {
                style = style.add_modifier(Modifier::REVERSED);
            }
            self.line(within.start + 1 + index, &format!("{mark}{line}"), style);
        }
        if table.is_empty() {
            let text = if rows.is_empty() { "  nothing runs here" } else { "  no name matches" };
            self.line(within.start + 1, text, self.style(Tone::Dim));
        }
    }
}

/// The two tables, and the keys of the columns; the one that it is sorted by in brackets.
fn sorting<R: Row>(shown: &str, other: &str, table: &Table<R>, width: usize) -> String {
    let sorted_by = table.sorted_by().name;
    let key = |column: &Column<R>, is_long: bool| match (column.name == sorted_by, is_long) {
        (true, true) => format!("[{}:{}]", column.key, column.name),
        (true, false) => format!("[{}]", column.key),
        (false, true) => format!("{}:{}", column.key, column.name),
        (false, false) => column.key.to_string(),
    };
    let line = |is_long| {
        let keys: Vec<_> = R::COLUMNS.iter().map(|it| key(it, is_long)).collect();
        format!("{shown} {other}  sort {}", keys.join(" "))
    };
    let long = line(true);
    if text::width(&long) <= width { long } else { line(false) }
}

/// In front of the selected row, so that it is seen without colours, too.
const MARK: &str = "> ";
const NO_MARK: &str = "  ";

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::top::keys::Action;
    use crate::top::snapshot::{EndpointRow, Latency, MatchRow, NodeRow, Snapshot, TopicRow};

    /// A robot of a few nodes, with a topic that loses and one that does not match.
    fn robot() -> Snapshot {
        let endpoint = |node: u64, name: &str| EndpointRow {
            id: node << 8,
            node,
            node_name: name.to_owned(),
            qos: "best effort, depth 8".to_owned(),
            ..EndpointRow::default()
        };
        let mut logger = endpoint(3, "logger");
        (logger.lost, logger.lost_total, logger.held) = (12, 340, 2);
        let mut planner = endpoint(4, "planner");
        planner.matches = vec![MatchRow {
            other: 1 << 8,
            node_name: "camera".to_owned(),
            is_matched: false,
            refusal: Some("reliability: offered best effort, requested reliable".to_owned()),
        }];
        let image = TopicRow {
            name: "camera/image".to_owned(),
            wire_name: "camera/image".to_owned(),
            type_name: "sensor_msgs/msg/Image".to_owned(),
            rate_hz: Some(29.97),
            bytes_per_s: Some(186.4e6),
            latency_us: Some(Latency { p50: 42.0, p99: 1310.0 }),
            lost: 12,
            lost_total: 340,
            held: 2,
            memory_bytes: 56_000_000,
            publishers: vec![endpoint(1, "camera")],
            subscribers: vec![logger],
            ..TopicRow::default()
        };
        let plan = TopicRow {
            name: "plan".to_owned(),
            wire_name: "plan".to_owned(),
            refused: 1,
            publishers: vec![endpoint(1, "camera")],
            subscribers: vec![planner],
            ..TopicRow::default()
        };
        let imu = TopicRow {
            name: "imu".to_owned(),
            wire_name: "imu".to_owned(),
            rate_hz: Some(1000.0),
            ..TopicRow::default()
        };
        let node = |node: u64, name: &str, is_silent| NodeRow {
            node,
            name: name.to_owned(),
            pid: 4000 + node as u32,
            cpu_percent: Some(7.25),
            memory_bytes: Some(43_000_000),
            threads: Some(5),
            is_silent,
            ..NodeRow::default()
        };
        Snapshot {
            interval_s: Some(1.0),
            topics: vec![image, imu, plan],
            nodes: vec![node(1, "camera", false), node(3, "logger", true)],
            ..Snapshot::default()
        }
    }

    fn model(actions: &[Action]) -> Model {
        let mut model = Model::new(None);
        model.update(robot());
        for action in actions {
            model.act(*action);
        }
        model
    }

    fn drawn(model: &mut Model, width: u16, height: u16) -> (String, Buffer) {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model, Look::default())).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(usize::from(width).max(1));
        let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
        (rows.map(|row| row.trim_end().to_owned() + "\n").collect(), buffer)
    }

    #[test]
    fn all_that_matters_is_on_a_screen_of_80_by_24() {
        let (text, _) = drawn(&mut model(&[]), 80, 24);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "myelin top  3 topics  2 nodes  12 lost  1 refused  1 silent");
        let keys = "TOPICS nodes  sort [n:name] e:ends r:rate b:bw l:p50 L:p99 x:lost h:held m:mem";
        assert_eq!(lines[1], keys);
        let heading: Vec<_> = lines[2].split_whitespace().collect();
        let titles = "*TOPIC PUB/SUB RATE/s BYTES/s P50 P99 LOST HELD MEM";
        assert_eq!(heading, titles.split(' ').collect::<Vec<_>>());
        let image: Vec<_> = lines[3].split_whitespace().collect();
        let row = "> camera/image 1/1 30.0 186M 42.0us 1.31ms 12 2 56.0M";
        assert_eq!(image, row.split(' ').collect::<Vec<_>>());
        assert!(lines[5].contains("1/1!"), "{text}");
        assert_eq!(lines[22], "lost: logger 12 (of 340)");
        assert!(lines[23].starts_with("? help  q quit  Tab table  / filter  Enter open"), "{text}");
    }

    #[test]
    fn the_line_about_the_selected_topic_says_why_it_does_not_match() {
        let (text, _) = drawn(&mut model(&[Action::Last]), 100, 24);
        let why = "not matched: planner and camera: reliability: offered best effort, requested";
        assert!(text.contains(why), "{text}");
    }

    #[test]
    fn nodes_are_on_the_other_table() {
        let (text, _) = drawn(&mut model(&[Action::Switch]), 80, 24);
        assert!(text.contains("NODES topics  sort [n:name] p:pid c:cpu"), "{text}");
        let camera = text.lines().find(|it| it.contains("camera")).unwrap();
        let camera: Vec<_> = camera.split_whitespace().collect();
        assert_eq!(camera, ["> ", "camera", "4001", "7.25", "43.0M", "5", "0", "0"].map(str::trim));
        assert!(text.lines().any(|it| it.contains("logger") && it.ends_with("silent")), "{text}");
    }

    #[test]
    fn it_can_be_drawn_in_any_size() {
        let views: [&[Action]; 5] = [
            &[],
            &[Action::Switch],
            &[Action::Open],
            &[Action::Help],
            &[Action::Filter, Action::Type('x')],
        ];
        for view in views {
            for (width, height) in
                [(1, 1), (2, 2), (5, 3), (10, 4), (40, 15), (40, 5), (300, 100), (0, 0)]
            {
                drawn(&mut model(view), width, height);
            }
        }
        let (text, _) = drawn(&mut model(&[]), 40, 15);
        assert!(text.contains("LOST") && text.contains("P99") && !text.contains("HELD"), "{text}");
        assert!(text.contains("sort [n] e r b l L x h m"), "{text}");
    }

    #[test]
    fn without_colour_there_is_none() {
        let (_, buffer) = drawn(&mut model(&[]), 80, 24);
        let has_colour = |buffer: &Buffer| {
            buffer.content().iter().any(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset))
        };
        assert!(!has_colour(&buffer));
        let look = Look { has_colour: true, is_utf8: true };
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &mut model(&[]), look)).unwrap();
        assert!(has_colour(terminal.backend().buffer()));
    }

    #[test]
    fn details_and_help_scroll_to_their_end() {
        let mut model = model(&[Action::Open]);
        let (text, _) = drawn(&mut model, 80, 24);
        assert!(text.starts_with("myelin top") && text.contains("camera/image"), "{text}");
        assert!(
            text.contains("latency from publication to take: p50 42.0us, p99 1.31ms"),
            "{text}"
        );
        assert!(text.contains("logger, lost 12 (of 340), holds 2"), "{text}");
        drawn(&mut model, 40, 6);
        model.act(Action::Last);
        let (text, _) = drawn(&mut model, 40, 6);
        assert!(text.contains("Last samples"), "{text}");
        model.act(Action::Help);
        assert!(drawn(&mut model, 80, 24).0.contains("Ctrl-Z"));
    }

    #[test]
    fn a_filter_is_shown_while_it_is_typed_and_later() {
        let typed = [Action::Filter, Action::Type('i'), Action::Type('m')];
        let (text, _) = drawn(&mut model(&typed), 80, 24);
        assert_eq!(text.lines().last(), Some("/im_"));
        assert!(!text.contains("  plan ") && text.contains("> camera/image"), "{text}");
        let mut model = model(&typed);
        model.act(Action::Accept);
        assert!(drawn(&mut model, 80, 24).0.contains("/im  Esc clear"));
        for c in "xyz".chars() {
            model.act(Action::Type(c));
        }
        assert!(drawn(&mut model, 80, 24).0.contains("no name matches"));
    }
}
