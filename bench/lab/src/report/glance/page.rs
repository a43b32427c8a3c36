//! The glance as `assets/glance.html` wants it: every place in per cent of its axis, so that the
//! picture fits any width, and needs no script.

use serde::Serialize;

use super::Glance;
use super::axis::Axis;
use super::picture::{
    Curve, Curves, Drawing, Mark, Panel, Picture, Quantity, Ranking, Row, Section,
};
use crate::report::palette::Palette;
use crate::report::words;

/// See the module.
#[derive(Serialize)]
pub(in crate::report) struct OnPage {
    title: String,
    circumstances: String,
    level: &'static str,
    sign: &'static str,
    trust: &'static str,
    finding: String,
    to_know: Vec<String>,
    pictures: Vec<PictureOnPage>,
    sentences: Vec<(String, String)>,
}

#[derive(Serialize)]
struct PictureOnPage {
    scenario: String,
    low: &'static str,
    high: &'static str,
    unit: &'static str,
    /// The last is drawn full, the others thin and hollow.
    tunings: Vec<String>,
    panels: Vec<PanelOnPage>,
    is_ranking: bool,
}

#[derive(Serialize)]
struct PanelOnPage {
    label: String,
    ticks: Vec<Tick>,
    sections: Vec<SectionOnPage>,
    /// Of curves.
    parameter: &'static str,
    values: Vec<Tick>,
    lines: Vec<LineOnPage>,
}

#[derive(Serialize)]
struct Tick {
    at: f64,
    label: String,
}

#[derive(Serialize)]
struct SectionOnPage {
    title: String,
    /// Place and words.
    floor: Option<Tick>,
    rows: Vec<RowOnPage>,
}

#[derive(Serialize)]
struct RowOnPage {
    system: String,
    colour: String,
    marks: Vec<MarkOnPage>,
    figure: String,
    cpu: String,
    memory: String,
    title: String,
}

#[derive(Serialize)]
struct MarkOnPage {
    /// Whether it is the tuning that ranks.
    is_main: bool,
    low: f64,
    /// Of the line to the other end.
    width: f64,
    /// The intervals of either end: place and width.
    bands: Vec<[f64; 2]>,
}

#[derive(Serialize)]
struct LineOnPage {
    system: String,
    colour: String,
    is_floor: bool,
    /// Points for a polyline in a box of 100 × 100.
    points: String,
    dots: Vec<Dot>,
    figure: String,
}

#[derive(Serialize)]
struct Dot {
    x: f64,
    y: f64,
    /// Whether messages were lost, or the rate was not reached.
    is_doubtful: bool,
    title: String,
}

impl OnPage {
    pub(in crate::report) fn new(glance: &Glance, palette: &Palette) -> Self {
        let picture = |picture: &Picture| PictureOnPage::new(picture, palette);
        let trust = &glance.trust;
        Self {
            title: glance.title.clone(),
            circumstances: glance.circumstances.clone(),
            level: trust.level.words(),
            sign: trust.sign(),
            trust: trust.words(),
            finding: trust.finding.clone(),
            to_know: trust.to_know.clone(),
            pictures: glance.pictures.iter().map(picture).collect(),
            sentences: glance
                .sentences
                .iter()
                .map(|it| (it.lead.clone(), it.rest.clone()))
                .collect(),
        }
    }
}

impl PictureOnPage {
    fn new(picture: &Picture, palette: &Palette) -> Self {
        let panels = match &picture.drawing {
            Drawing::Ranking(ranking) => ranked(picture.quantity, ranking, palette),
            Drawing::Curves(panels) => {
                panels.iter().map(|panel| curved(picture, panel, palette)).collect()
            }
        };
        Self {
            scenario: picture.scenario.to_owned(),
            low: picture.quantity.low,
            high: picture.quantity.high,
            unit: picture.quantity.unit,
            tunings: picture.tunings.iter().map(|&tuning| tuning.to_owned()).collect(),
            panels,
            is_ranking: matches!(picture.drawing, Drawing::Ranking(_)),
        }
    }
}

/// All panels on one axis, so that they can be compared.
fn ranked(quantity: Quantity, ranking: &Ranking, palette: &Palette) -> Vec<PanelOnPage> {
    let rows = || ranking.sections.iter().flat_map(|section| &section.rows);
    let marks = || rows().flat_map(|row| row.marks.iter().flatten());
    let floors = ranking.sections.iter().flat_map(|section| section.floors.iter().flatten());
    let ends = marks().flat_map(|mark| [mark.low, mark.high.unwrap_or(mark.low)]);
    let axis = Axis::new(ends.chain(floors.copied())).with_room();
    let panel = |(place, panel): (usize, &Panel)| PanelOnPage {
        label: panel.label.clone(),
        ticks: ticks(&axis, quantity),
        sections: ranking
            .sections
            .iter()
            .map(|section| SectionOnPage::new(section, place, quantity, &axis, palette))
            .collect(),
        parameter: "",
        values: Vec::new(),
        lines: Vec::new(),
    };
    ranking.panels.iter().enumerate().map(panel).collect()
}

impl SectionOnPage {
    fn new(
        section: &Section,
        panel: usize,
        quantity: Quantity,
        axis: &Axis,
        palette: &Palette,
    ) -> Self {
        let floor = section.floors[panel].zip(section.floor.as_ref()).map(|(floor, name)| Tick {
            at: at(axis, floor),
            label: format!("floor {} ({name})", quantity.brief(floor)),
        });
        let row = |row: &Row| {
            let marks = &row.marks[panel];
            let main = row.mark(panel);
            RowOnPage {
                system: row.system.name.to_owned(),
                colour: palette.colour(row.system.name),
                marks: marks
                    .iter()
                    .map(|mark| {
                        let is_main = main.is_some_and(|main| main.tuning() == mark.tuning());
                        MarkOnPage::new(mark, is_main, axis)
                    })
                    .collect(),
                figure: main
                    .map_or_else(|| words::WITHHELD.to_owned(), |mark| quantity.brief(mark.low)),
                cpu: main.map(Mark::cpu).unwrap_or_default(),
                memory: main.map(Mark::memory).unwrap_or_default(),
                title: marks.iter().map(|mark| long(mark, quantity)).collect::<Vec<_>>().join("\n"),
            }
        };
        Self { title: section.title.clone(), floor, rows: section.rows.iter().map(row).collect() }
    }
}

impl MarkOnPage {
    fn new(mark: &Mark, is_main: bool, axis: &Axis) -> Self {
        let ends = [mark.low, mark.high.unwrap_or(mark.low)].map(|value| at(axis, value));
        let band = |[low, high]: [f64; 2]| {
            let [low, high] = [at(axis, low), at(axis, high)];
            [low, tidy(high - low)]
        };
        // Of a mixed cell the interval is not that of the dot.
        let intervals = [mark.entry.p50_interval(), mark.entry.p99_interval()];
        let is_drawn = mark.entry.is_steady() && !mark.entry.is_mixed();
        let bands = intervals.into_iter().flatten().filter(|_| is_drawn).map(band);
        Self {
            is_main,
            low: ends[0].min(ends[1]),
            width: tidy((ends[1] - ends[0]).abs()),
            bands: bands.collect(),
        }
    }
}

/// `tuned: p50 54.0 µs [53.1, 55.2], p99 81.9 µs [80.1, 90.3]`.
fn long(mark: &Mark, quantity: Quantity) -> String {
    let interval = |ends: Option<[f64; 2]>| {
        let ends = ends.filter(|_| mark.entry.is_steady());
        ends.map(|ends| format!(" {}", words::interval_us(ends))).unwrap_or_default()
    };
    let high = mark.high.map(|high| {
        let ends = interval(mark.entry.p99_interval());
        format!(", {} {} {}{ends}", quantity.high, quantity.exact(high), quantity.unit)
    });
    format!(
        "{}: {} {} {}{}{}",
        mark.tuning(),
        quantity.low,
        quantity.exact(mark.low),
        quantity.unit,
        interval(mark.entry.p50_interval()),
        high.unwrap_or_default()
    )
}

fn curved(picture: &Picture, panel: &Curves, palette: &Palette) -> PanelOnPage {
    let quantity = picture.quantity;
    let across = Axis::new(panel.values.iter().map(|(value, _)| value.max(LEAST))).with_room();
    let marks = panel.curves.iter().flat_map(|curve| &curve.marks);
    let upwards = Axis::new(marks.map(|(_, mark)| mark.low)).with_room();
    let line = |curve: &Curve| {
        let mut marks: Vec<_> = curve.marks.iter().collect();
        marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let place = |value: f64, mark: &Mark| {
            (at(&across, value.max(LEAST)), tidy(100.0 - at(&upwards, mark.low)))
        };
        let points = marks.iter().map(|(value, mark)| {
            let (x, y) = place(*value, mark);
            format!("{x},{y}")
        });
        let dot = |(value, mark): &&(f64, Mark)| {
            let (x, y) = place(*value, mark);
            let short = mark.entry.short_of_rate();
            let short = short.map(|(reached, asked)| words::reached(reached, asked));
            let loss = mark.entry.loss_percent().filter(|_| mark.is_lossy());
            let loss = loss.map(|percent| format!("{} % lost", words::percent(percent)));
            let doubts: Vec<String> = short.into_iter().chain(loss).collect();
            let label = panel.values.iter().find(|(known, _)| known == value);
            let label = label.map(|(_, label)| label.clone()).unwrap_or_default();
            let title = format!("{} at {label}\n{}", curve.system, long(mark, quantity));
            let is_doubtful = !doubts.is_empty();
            Dot { x, y, is_doubtful, title: [vec![title], doubts].concat().join("\n") }
        };
        let last = marks.last().map(|(_, mark)| quantity.brief(mark.low));
        LineOnPage {
            system: curve.system.to_owned(),
            colour: palette.colour(curve.system),
            is_floor: curve.is_floor,
            points: points.collect::<Vec<_>>().join(" "),
            dots: marks.iter().map(dot).collect(),
            figure: last.unwrap_or_default(),
        }
    };
    PanelOnPage {
        label: panel.title(),
        ticks: ticks(&upwards, quantity),
        sections: Vec::new(),
        parameter: panel.parameter,
        values: panel
            .labelled(LABELS_MAX)
            .map(|(value, label)| Tick { at: at(&across, value.max(LEAST)), label: label.clone() })
            .collect(),
        lines: panel.curves.iter().map(line).collect(),
    }
}

/// A place in per cent.
fn at(axis: &Axis, value: f64) -> f64 {
    tidy(100.0 * axis.share(value))
}

/// Powers of ten; of little more than a decade, 1, 2 and 5 of each.
fn ticks(axis: &Axis, quantity: Quantity) -> Vec<Tick> {
    let decades = (axis.low.log10().floor() as i32)..=(axis.high.log10().ceil() as i32);
    let steps: &[f64] = if axis.high / axis.low < 30.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let values = decades.flat_map(|decade| steps.iter().map(move |it| it * 10f64.powi(decade)));
    let inside = values.filter(|value| (axis.low..=axis.high).contains(value));
    inside.map(|value| Tick { at: at(axis, value), label: round(value, quantity) }).collect()
}

/// `0.1 µs`, `100 µs`, `10 ms`, `2 s`; `100 k` of rates.
fn round(value: f64, quantity: Quantity) -> String {
    let (value, unit) = match value {
        v if quantity.is_rate && v >= 1e6 => (v / 1e6, " M"),
        v if quantity.is_rate && v >= 1e3 => (v / 1e3, " k"),
        v if quantity.is_rate => (v, ""),
        v if v >= 1e6 => (v / 1e6, " s"),
        v if v >= 1e3 => (v / 1e3, " ms"),
        v if v < 1.0 => (v * 1e3, " ns"),
        v => (v, " µs"),
    };
    format!("{}{unit}", tidy(value))
}

/// Hundredths are finer than a pixel.
fn tidy(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Stands for 0 on a logarithmic axis.
const LEAST: f64 = 1.0;
const LABELS_MAX: usize = 8;
