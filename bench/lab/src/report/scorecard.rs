//! The scorecard: for each scenario, topology and tuning, systems scored by weighted criteria, and
//! what would turn the order. `score` has the arithmetic.

use myelin_bench_kit::protocol::Workload;

use super::document::{Column, Part, Section, Table, TableCell};
use super::format;
use super::view::{Entry, View};
use crate::lists::{distinct, few, grouped};
use crate::scenario::Tuning;
use crate::score::{Card, Contender, Criterion, Scored, Turn, turns};
use crate::summary::ProcessUse;

/// Systems of one scenario with the same topology, at one tuning.
pub(super) struct Field<'a> {
    scenario: &'a str,
    topology: &'a str,
    tuning: Tuning,
    contenders: Vec<Contender>,
    /// Systems that lack some of the cells of the others, and why.
    left_out: Vec<String>,
    /// Remarks on scored systems.
    cautions: Vec<String>,
    /// What round trips of a single size and rate cost each process.
    costs: Option<Part>,
}

/// The section about all cells with a steady latency.
pub(super) fn section(view: &View) -> Section {
    let weights = &view.options.weights;
    let mut parts: Vec<Part> = Vec::new();
    for field in fields(view) {
        let card = Card::new(&field.contenders, weights);
        let is_first = card.is_some() && parts.iter().all(|part| part.is_detail);
        parts.push(field.part(card.as_ref(), !is_first));
        parts.extend(field.costs);
    }
    Section { id: "scorecard", title: "Scorecard", remark: REMARK.to_owned(), parts }
}

/// The card of a scenario at a tuning; `None` if nothing is scored.
pub(super) fn card(view: &View, scenario: &str, tuning: Tuning) -> Option<Card> {
    let fields = fields(view);
    let field = fields.iter().find(|it| it.scenario == scenario && it.tuning == tuning)?;
    Card::new(&field.contenders, &view.options.weights)
}

/// Our score for a published one; `criterion` is its published name, or `total`.
pub(super) fn beside(card: &Card, system: &str, criterion: &str) -> Option<f64> {
    let row = card.rows.iter().find(|row| row.name == system)?;
    if criterion == "total" {
        return Some(row.total);
    }
    let (_, criterion) = PUBLISHED.iter().find(|(name, _)| *name == criterion)?;
    let place = card.criteria.iter().position(|it| it == criterion)?;
    Some(row.points[place])
}

fn fields<'a>(view: &View<'a>) -> Vec<Field<'a>> {
    let steady = view.groups.iter().enumerate().filter(|(_, group)| group.is_chosen_from());
    let entries = steady.flat_map(|(place, group)| {
        group.entries.iter().map(move |it| {
            let field = (group.scenario, it.cell.topology.name(), it.cell.tuning);
            (field, ((place, it.cell.params.payload_bytes), it))
        })
    });
    let mut fields = grouped(entries);
    fields.retain(|(_, entries)| entries.iter().any(|(_, it)| !it.system.floor));
    let field = |((scenario, topology, tuning), entries)| {
        let mut points = grouped::<_, &Entry>(entries);
        points.sort_by_key(|(point, _)| *point);
        let cells: Vec<_> = points.into_iter().map(|(_, entries)| entries).collect();
        Field::new(scenario, topology, tuning, &cells)
    };
    fields.into_iter().map(field).collect()
}

impl<'a> Field<'a> {
    /// Collects the entries of all systems, for each parameter point of `cells`.
    fn new(
        scenario: &'a str,
        topology: &'a str,
        tuning: Tuning,
        cells: &[Vec<&Entry<'a>>],
    ) -> Self {
        let mut field = Field {
            scenario,
            topology,
            tuning,
            contenders: Vec::new(),
            left_out: Vec::new(),
            cautions: Vec::new(),
            costs: costs(cells, topology),
        };
        let peers = cells.iter().flatten().map(|entry| entry.system).filter(|it| !it.floor);
        for system in distinct(peers.map(|system| system.name)) {
            let faults: Vec<String> =
                cells.iter().filter_map(|it| fault(of(it, system), it[0])).collect();
            if !faults.is_empty() {
                field.left_out.push(format!("{system}: {}", few(&faults, FEW)));
                continue;
            }
            let own: Vec<&Entry> = cells.iter().filter_map(|it| of(it, system)).collect();
            field.cautions.extend(caution(system, &own));
            let mean = |of: fn(&Entry, Criterion) -> Option<f64>| {
                Criterion::ALL
                    .map(|criterion| geometric_mean(own.iter().map(|it| of(it, criterion))))
            };
            let (name, figures, as_best) = (system.to_owned(), mean(figure), mean(figure_as_best));
            field.contenders.push(Contender { name, figures, as_best });
        }
        field
    }

    /// The part of the report; without a card it says that no system can be scored.
    fn part(&self, card: Option<&Card>, is_detail: bool) -> Part {
        let mut part = Part {
            title: title(self.scenario, self.topology, self.tuning),
            is_detail,
            ..Part::default()
        };
        match card {
            None => part.lines.push("no system can be scored".to_owned()),
            Some(card) => {
                let turns = turns(card);
                part.lines.push(verdict(card, &turns));
                part.lines.extend(card.dropped.iter().map(|criterion| {
                    format!(
                        "{} is not scored, because no system has all figures for it; its weight is \
                         divided among the other criteria",
                        criterion.words()
                    )
                }));
                part.lines.extend(card.lacking.iter().map(|(system, lacks)| {
                    let lacks: Vec<&str> = lacks.iter().map(|it| it.words()).collect();
                    format!("{system} has no figure for {}: scored 0", lacks.join(", "))
                }));
                part.tables.push(scores(card));
                if turns.iter().flatten().any(Option::is_some) {
                    part.tables.push(what_turns(card, &turns));
                }
            }
        }
        part.lines.extend(self.left_out.iter().map(|line| format!("not scored: {line}")));
        part.lines.extend(self.cautions.iter().filter(|_| card.is_some()).cloned());
        part
    }
}

/// `sanity, two processes, default`.
fn title(scenario: &str, topology: &str, tuning: Tuning) -> String {
    format!("{scenario}, {}, {tuning}", topology.replace('-', " "))
}

fn of<'v, 'a>(entries: &[&'v Entry<'a>], system: &str) -> Option<&'v Entry<'a>> {
    entries.iter().copied().find(|entry| entry.system.name == system)
}

/// Why a cell must not be used.
fn fault(entry: Option<&Entry>, any: &Entry) -> Option<String> {
    let point = format!("{}, {}", any.size(), format::rate(any.cell.params.rate_hz));
    match entry {
        None => Some(format!("not measured at {point}")),
        Some(entry) => entry.fault().map(|why| format!("{why} at {point}")),
    }
}

fn caution(system: &str, cells: &[&Entry]) -> Option<String> {
    let lost: Vec<String> =
        cells.iter().filter(|entry| entry.cell.is_lossy()).map(|entry| entry.size()).collect();
    (!lost.is_empty()).then(|| {
        format!("{system} lost messages at {}: in its latencies they are infinite", few(&lost, FEW))
    })
}

/// The mean over all cells. With it, ratios between two systems do not depend on the unit.
fn geometric_mean(figures: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let figures: Option<Vec<f64>> = figures.collect();
    let figures = figures.filter(|them| !them.is_empty())?;
    let sum: f64 = figures.iter().map(|figure| figure.ln()).sum();
    Some((sum / figures.len() as f64).exp())
}

fn figure(entry: &Entry, criterion: Criterion) -> Option<f64> {
    let cell = entry.cell;
    let value = match criterion {
        Criterion::Memory => cell.pss_bytes? as f64,
        Criterion::Stability => entry.typical_p99()? / entry.typical_p50()?,
        Criterion::Cpu => cell.cpu_us_per_message?,
        Criterion::Simplicity => {
            let threads: u32 = cell.processes.iter().map(|process| process.thread_count).sum();
            let lines = configuration_lines(entry) as f64 + 1.0;
            (cell.processes.len() as f64 * f64::from(threads) * lines).cbrt()
        }
        Criterion::StartUp => cell.startup_ms? + cell.daemon_ms.unwrap_or(0.0),
    };
    (value.is_finite() && value > 0.0).then_some(value)
}

/// The reference figure from which other systems are scored. At low rates nobody needs a core that
/// polls; without this limit the best of several polling systems would get 10 of 10 for CPU.
fn figure_as_best(entry: &Entry, criterion: Criterion) -> Option<f64> {
    let figure = figure(entry, criterion)?;
    let percent = entry.cell.cpu_percent.filter(|_| criterion == Criterion::Cpu);
    match (entry.cell.params.rate_hz, percent) {
        (Some(_), Some(percent)) if percent > CPU_PERCENT_MODEST => {
            Some(figure * CPU_PERCENT_MODEST / percent)
        }
        _ => Some(figure),
    }
}

/// Lines of the run's configuration files, without blank lines and comments.
fn configuration_lines(entry: &Entry) -> usize {
    let of = |text: &String| {
        let mut parts = text.split("<!--");
        let first = parts.next().unwrap_or_default().to_owned();
        let text = parts
            .fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, after)| after));
        let counts = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        text.lines().filter(counts).count()
    };
    entry.detail.configuration.values().map(of).sum()
}

/// The leader, and the smallest change of a weight that makes another system first.
fn verdict(card: &Card, turns: &[[Option<Turn>; 2]]) -> String {
    let first = &card.rows[0];
    let lead =
        |second: &Scored| format!(", {:.2} ahead of {}", first.total - second.total, second.name);
    let lead = card.rows.get(1).map(lead).unwrap_or_default();
    let all = card.criteria.iter().zip(&card.weights).zip(turns);
    let all = all.flat_map(|((criterion, weight), turns)| {
        turns.iter().flatten().map(move |turn| (criterion, *weight, turn))
    });
    let change = |(_, weight, turn): &(_, f64, &Turn)| (turn.weight - weight).abs();
    let nearest = match all.min_by(|a, b| change(a).total_cmp(&change(b))) {
        Some((criterion, weight, turn)) => {
            let way = if turn.weight < weight { "below" } else { "above" };
            let [weight, end] = [weight, turn.weight].map(format::share_percent);
            let name = &card.rows[turn.first].name;
            format!("; {name} is first if {} weighs {way} {end}, not {weight}", criterion.words())
        }
        None if card.rows.len() > 1 => "; no change of a single weight makes another first".into(),
        None => String::new(),
    };
    format!("{} is first with {:.2} out of 10{lead}{nearest}", first.name, first.total)
}

fn scores(card: &Card) -> Table {
    let criteria = card.criteria.iter().zip(&card.weights).enumerate();
    let criteria = criteria.map(|(place, (criterion, weight))| {
        let column = Column::new(criterion.words(), format::share_percent(*weight));
        (column, Some((place, *criterion)))
    });
    let total = std::iter::once((Column::new("total", "100 %"), None));
    let rows = card.rows.iter().map(|row| (row.name.clone(), row));
    let caption = "scores out of 10 with the figures behind them, by weight; the best first";
    let columns = total.chain(criteria).collect();
    Table::new(caption, columns, rows, |row, column| match *column {
        Some((place, criterion)) => TableCell::plain(format!("{:.1}", row.points[place]))
            .small(amount(criterion, row.figures[place])),
        None => TableCell::plain(format!("{:.2}", row.total)),
    })
}

fn what_turns(card: &Card, turns: &[[Option<Turn>; 2]]) -> Table {
    let cell = |turn: &Option<Turn>| match turn {
        Some(turn) => TableCell::plain(format::share_percent(turn.weight))
            .small(card.rows[turn.first].name.clone()),
        None => TableCell::plain(format::WITHHELD),
    };
    let row = |((criterion, weight), [below, above]): ((&Criterion, &f64), &[_; 2])| {
        let weight = TableCell::plain(format::share_percent(*weight));
        (criterion.words().to_owned(), [weight, cell(below), cell(above)])
    };
    let caption = "the weight at which another system is first; the others in proportion";
    let heads = [("weight", ""), ("another is first", "below"), ("another is first", "above")];
    let columns = heads.iter().zip(0..).map(|((group, head), at)| (Column::new(*group, *head), at));
    let rows = card.criteria.iter().zip(&card.weights).zip(turns).map(row);
    Table::new(caption, columns.collect(), rows, |cells, at| cells[*at].clone())
}

/// Memory by process, CPU by thread, and context switches of each system; `None` for several
/// parameter points, and for other workloads than round trips.
fn costs(cells: &[Vec<&Entry>], topology: &str) -> Option<Part> {
    let [entries] = cells else { return None };
    let first = entries.first().filter(|it| it.cell.workload == Workload::Roundtrip)?;
    let roles = ["ping", "pong", DAEMONS];
    let of_roles = |group| roles.map(|role| (Column::new(group, role), (group, role)));
    let switches = ["voluntary", "involuntary"];
    let switches = switches.map(|kind| (Column::new(SWITCHES, kind), (SWITCHES, kind)));
    let columns = of_roles(RSS).into_iter().chain(of_roles(CPU)).chain(switches).collect();
    let rows = entries.iter().filter(|entry| !entry.system.floor);
    let rows = rows.map(|entry| (entry.system.name.to_owned(), *entry));
    let caption = format!("{}; threads below 1 % are not named", first.size());
    Some(Part {
        title: format!(
            "What it costs: {}",
            title(&first.cell.scenario, topology, first.cell.tuning)
        ),
        tables: vec![Table::new(caption, columns, rows, |entry, (group, head)| {
            cost(entry, group, head).valid(entry.cell.valid)
        })],
        is_detail: true,
        ..Part::default()
    })
}

/// The figure below a heading and its group.
fn cost(entry: &Entry, group: &str, head: &str) -> TableCell {
    let cell = entry.cell;
    if group == SWITCHES {
        let [yielded, preempted] = [cell.voluntary_switches_per_s, cell.involuntary_switches_per_s]
            .map(|it| format::or_dash(it, format::amount));
        return TableCell::plain(if head == "voluntary" { yielded } else { preempted });
    }
    let of_role = |process: &&ProcessUse| match head {
        DAEMONS => !["ping", "pong"].contains(&process.role.as_str()),
        _ => process.role == head,
    };
    let processes: Vec<&ProcessUse> = cell.processes.iter().filter(of_role).collect();
    if processes.is_empty() {
        return TableCell::plain(format::WITHHELD);
    }
    if group == RSS {
        return TableCell::plain(format::megabytes(processes.iter().map(|it| it.rss_bytes).sum()));
    }
    let total = format::cpu_percent(processes.iter().map(|it| it.cpu_percent).sum());
    let threads = processes.iter().flat_map(|it| &it.threads);
    let threads = threads.filter(|thread| thread.cpu_percent >= BUSY_PERCENT);
    let threads = threads.map(|it| format!("{} {}", it.name, format::cpu_percent(it.cpu_percent)));
    TableCell::plain(total).small(threads.collect::<Vec<_>>().join(", "))
}

/// A figure with its unit.
fn amount(criterion: Criterion, figure: f64) -> String {
    match criterion {
        _ if figure.is_infinite() => format::WITHHELD.to_owned(),
        Criterion::Memory => format!("{} MB", format::megabytes(figure as u64)),
        Criterion::Stability => format::factor(figure),
        Criterion::Cpu => format!("{} µs", format::us(figure)),
        Criterion::Simplicity => format!("{figure:.1} parts"),
        Criterion::StartUp => format!("{} ms", format::us(figure)),
    }
}

/// The criteria of `published/cyclonedds-orin.toml`.
const PUBLISHED: [(&str, Criterion); 5] = [
    ("memory efficiency", Criterion::Memory),
    ("latency stability", Criterion::Stability),
    ("cpu efficiency", Criterion::Cpu),
    ("simplicity of architecture", Criterion::Simplicity),
    ("startup speed", Criterion::StartUp),
];

const RSS: &str = "RSS, MB";
const CPU: &str = "CPU, % of a core: by thread";
const SWITCHES: &str = "switches/s";
/// All processes other than the two ends.
const DAEMONS: &str = "daemons";
const BUSY_PERCENT: f64 = 1.0;
const FEW: usize = 3;
/// Per cent of a core, all processes together.
const CPU_PERCENT_MODEST: f64 = 10.0;

const REMARK: &str = "Each score is 10 minus 1 for each doubling of the system’s figure over the \
                      best one, 10 − log₂(figure / best), and at least 0; the total is the \
                      weighted mean. Figures are geometric means over all cells of the scenario. \
                      Memory: PSS of all processes with daemons. Latency stability: p99 over p50. \
                      CPU: of all processes for each message. Simplicity: the geometric mean of \
                      the numbers of processes, of threads, and of lines of configuration plus \
                      one. Start-up: until the processes have found each other, with the daemon’s \
                      start. At a rate, the CPU reference is the best system or 10 % of a core, \
                      whichever is less, so a system that keeps a core busy gets at most 6.7. The \
                      latency itself is not a criterion: see the advice. Because the scale is \
                      logarithmic, adding or removing a system does not change the order of the \
                      others. For other weights: myelin bench report DIR --weights FILE.";
