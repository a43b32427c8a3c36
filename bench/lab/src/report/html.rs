//! The files made from templates: `report.md` and `report.html`, which needs no other file.
//!
//! Tables are plain HTML and readable without scripts; `assets/report.js` draws plots from the JSON
//! of `plots`. A content security policy forbids the page all requests.

use std::collections::BTreeMap;

use minijinja::value::ViaDeserialize;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use myelin_bench_kit::protocol::Workload;

use super::document::{Section, superscript};
use super::flow;
use super::glance::{Axis, Glance};
use super::palette::{Style, palette};
use super::table::{figures, tables};
use super::timeline::Downsampling;
use super::validity::checks;
use super::view::{Group, View};
use super::{format, plots, published, rows, sweep, verdicts};
use crate::lists::grouped;
use crate::machine::Machine;

/// The whole page, with as much detail as its size limit allows.
pub(super) fn render(view: &View, extras: [&Section; 2]) -> String {
    let mut page = String::new();
    for downsampling in Downsampling::ALL {
        page = with(view, extras, downsampling);
        if page.len() < PAGE_BYTES_MAX {
            break;
        }
    }
    page
}

fn with(view: &View, extras: [&Section; 2], downsampling: Downsampling) -> String {
    let summary = &view.analysis.summary;
    let styles = palette(view);
    let colour = |it: &Style| (it.name.clone(), it.colour.clone());
    let of_fan = |it: &Group| context! { title => it.title(), tables => tables(it) };
    let context = context! {
        colours => styles.iter().map(colour).collect::<BTreeMap<_, _>>(),
        title => view.scenarios().join(", "),
        glances => glances(view, |group| !group.workload.is_one_way()),
        flows => glances(view, |group| group.is_flow()),
        floods => glances(view, |group| group.workload == Workload::Flood),
        startups => glances(view, |group| group.workload == Workload::Startup),
        has_sweeps => !sweep::sweeps(view).is_empty(),
        at_a_glance => super::at_a_glance(view),
        overviews => flow::overviews(view),
        has_groups => view.groups.iter().any(Group::is_steady) || view.entries().next().is_none(),
        publish_groups => view.publish_groups.iter().map(of_fan).collect::<Vec<_>>(),
        heads => rows::heads(),
        latencies => rows::LATENCIES,
        sections => rows::sections(view),
        tunings => view.tunings(),
        families => plots::families(&styles),
        has_timelines => view.entries().any(|entry| entry.detail.timeline.is_some()),
        has_stages => view.entries().any(|entry| entry.detail.stages.is_some()),
        left_out => downsampling.remark(),
        systems => summary.systems,
        waits => summary.systems.iter().map(|it| match view.is_imported() {
            true => format::WITHHELD,
            false => format::wait(it.wait),
        }).collect::<Vec<_>>(),
        has_configurations => downsampling < Downsampling::Configurations,
        configurations => match downsampling < Downsampling::Configurations {
            true => configurations(view),
            false => Vec::new(),
        },
        data => plots::json(view, &styles, downsampling),
        css => include_str!("assets/report.css"),
        js => SCRIPTS.concat(),
        ..context! { ..told(view, extras), ..essentials() }
    };
    rendered("report.html", TEMPLATE, context)
}

/// `report.md`: the report as code hosts render it.
pub(super) fn markdown(view: &View, extras: [&Section; 2]) -> String {
    let context = context! { figures => figures(view), ..told(view, extras) };
    rendered("report.md", include_str!("assets/report.md.jinja"), context)
}

/// What page and Markdown share.
fn told(view: &View, extras: [&Section; 2]) -> Value {
    let summary = &view.analysis.summary;
    let verdicts = verdicts::section(view);
    context! {
        answer => Glance::new(view),
        comparisons => verdicts.parts.iter().map(|part| part.findings.len()).sum::<usize>(),
        verdicts,
        checks => checks(view),
        extras,
        // Figures of middleware do not stand beside those of an application.
        published => match view.is_imported() {
            true => Vec::new(),
            false => published::comparisons(view),
        },
        published_remark => published::REMARK,
        command => summary.command,
        host_rows => host_rows(&summary.host),
    }
}

/// What every page with plots needs.
pub(crate) fn essentials() -> Value {
    context! {
        version => env!("CARGO_PKG_VERSION"),
        errors => include_str!("assets/errors.js"),
        d3 => include_str!("assets/vendor/d3.min.js"),
        plot => include_str!("assets/vendor/plot.umd.min.js"),
        d3_licence => include_str!("assets/vendor/d3.LICENSE.txt"),
        plot_licence => include_str!("assets/vendor/plot.LICENSE.txt"),
    }
}

/// Renders a template of this program; names that end in `.html` escape their values.
pub(crate) fn rendered(name: &str, template: &str, context: Value) -> String {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_filter("at", |value: f64, axis: ViaDeserialize<Axis>| axis.at(value));
    environment.add_filter("span", |ends: Vec<f64>, axis: ViaDeserialize<Axis>| axis.span(&ends));
    environment.add_filter("bytes", format::bytes);
    environment.add_filter("superscript", superscript);
    environment.add_filter("md", |text: String| escape(&text));
    for (name, text) in INCLUDED {
        environment.add_template(name, text).expect("templates are part of the program");
    }
    let template = environment.template_from_named_str(name, template);
    let page = template.and_then(|template| template.render(context));
    page.expect("the template is part of the program, and a test renders it")
}

/// Everything known about the machine: name and value.
pub(crate) fn host_rows(host: &Machine) -> Vec<(String, String)> {
    if host.identity.cpus == 0 {
        return vec![("processor".to_owned(), host.identity.cpu_model.clone())];
    }
    let text = rendered("host", include_str!("assets/host.jinja"), context! { host });
    let row =
        |line: &str| line.split_once('\t').map(|(what, value)| (what.to_owned(), value.to_owned()));
    text.lines().filter_map(row).collect()
}

/// Keeps text from being read as markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '~' | '\\' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// The small tables of groups, each with its title and whether it is folded.
fn glances(view: &View, are_wanted: fn(&Group) -> bool) -> Vec<Value> {
    let wanted: Vec<_> = view.groups.iter().filter(|group| are_wanted(group)).collect();
    let glance = |group: &&Group| {
        let kin: Vec<_> = wanted.iter().filter(|it| it.scenario == group.scenario).collect();
        let place = kin.iter().position(|it| it.id == group.id).unwrap_or_default();
        // Fold all but the first and the last of many tables that differ in one parameter.
        let is_inner = kin.len() > MANY && place > 0 && place + 1 < kin.len();
        let is_folded = group.is_flow() && is_inner;
        context! { title => group.title(), is_folded, tables => tables(group) }
    };
    wanted.iter().map(glance).collect()
}

/// Configuration files, each text once, with the cells that used it.
fn configurations(view: &View) -> Vec<Value> {
    let files = grouped(view.entries().flat_map(|entry| {
        let files = entry.detail.configuration.iter();
        files.map(move |(file, text)| ([entry.system.name, file, text], entry.name()))
    }));
    let files = files.into_iter();
    files.map(|([system, file, text], cells)| context! { system, file, text, cells }).collect()
}

/// Up to this many tables of one kind can be read one below the other.
const MANY: usize = 4;

/// A larger page is slow to send and to open.
const PAGE_BYTES_MAX: usize = 5_000_000;

const TEMPLATE: &str = include_str!("assets/report.html");

/// The files that the templates include, by the names they use there.
const INCLUDED: [(&str, &str); 7] = [
    ("parts.md", include_str!("assets/parts.md.jinja")),
    ("groups.html", include_str!("assets/groups.html")),
    ("glance.html", include_str!("assets/glance.html")),
    ("controls.html", include_str!("assets/controls.html")),
    ("plots.html", include_str!("assets/plots.html")),
    ("sections.html", include_str!("assets/sections.html")),
    ("end.html", include_str!("assets/end.html")),
];

/// In this order: the last script draws with the definitions of the others.
const SCRIPTS: [&str; 14] = [
    include_str!("assets/scales.js"),
    include_str!("assets/packed.js"),
    include_str!("assets/view.js"),
    include_str!("assets/drawing.js"),
    include_str!("assets/percentiles.js"),
    include_str!("assets/runs.js"),
    include_str!("assets/publish.js"),
    include_str!("assets/pareto.js"),
    include_str!("assets/sizes.js"),
    include_str!("assets/sweep.js"),
    include_str!("assets/stages.js"),
    include_str!("assets/timeline.js"),
    include_str!("assets/slowest.js"),
    include_str!("assets/report.js"),
];
