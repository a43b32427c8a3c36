//! Messages over time on the page, read back from a browser and compared with the analysis: the
//! ECDF, a cell over time, heat maps, stage bars and the slowest messages.
//!
//! `MYELIN_KEEP_REPORT=FOLDER` leaves the page in that folder for inspection.

use std::path::Path;
use std::sync::OnceLock;

use myelin_bench_lab::report::write_all;
use myelin_bench_lab::summary;

use crate::page::{ask, browser, dom, fixture, lines, marks, timeline};
use ask::ask;
use browser::{Page, dump_of, write};
use dom::{attribute, elements};
use lines::lines;
use marks::{assert_scale, figures};
use summary::{Analysis, Cell, Detail, HeatMap, Stage, StageMean, Timeline};

fn analysis() -> Analysis {
    let mut analysis = fixture::analysis();
    timeline::enrich(&mut analysis);
    analysis
}

fn page() -> &'static Page {
    static PAGE: OnceLock<Page> = OnceLock::new();
    PAGE.get_or_init(|| {
        if let Some(folder) = std::env::var_os("MYELIN_KEEP_REPORT") {
            write_all(&analysis(), Path::new(&folder)).unwrap();
        }
        write(&analysis())
    })
}

/// The index of a cell in the summary.
fn index(analysis: &Analysis, system: &str, tuning: &str, payload: u64) -> usize {
    let here = |cell: &Cell| {
        cell.system == system
            && cell.tuning.name() == tuning
            && cell.params.payload_bytes == payload
    };
    analysis.summary.cells.iter().position(here).unwrap()
}

/// The figures drawn for the chosen cell.
fn timeline_of(dom: &str) -> &str {
    dom.split_once("id=\"timeline-plots\"").unwrap().1.split_once("</section>").unwrap().0
}

/// The numbers of an element.
fn numbers<const N: usize>(tag: &str, names: [&str; N]) -> [f64; N] {
    names.map(|name| attribute(tag, name).expect(tag).parse().expect(tag))
}

fn labelled<'a>(html: &'a str, element: &'static str, label: &str) -> Vec<&'a str> {
    let ours = |tag: &&str| attribute(tag, "aria-label").is_some_and(|it| it.starts_with(label));
    elements(html, element).filter(ours).collect()
}

#[test]
fn the_ecdf_is_where_the_analysis_has_it() {
    let analysis = analysis();
    let Some(dom) = dump_of(page(), "#hide=none&axis=ecdf&without=default&sizes=64") else {
        return;
    };
    assert_eq!(attribute(elements(&dom, "html").next().unwrap(), "data-errors"), Some("0"));
    assert!(lines(&dom, "curve os.pipe, tuned").iter().all(|line| line.len() <= 7), "no nines");
    let (mut across, mut up) = (Vec::new(), Vec::new());
    for system in ["os.cacheline", "os.pipe", "cyclonedds.udp", "cyclonedds.iceoryx-loan"] {
        let even = &analysis.details[index(&analysis, system, "tuned", 64)].even_us;
        let drawn = lines(&dom, &format!("ecdf {system}, tuned"));
        assert_eq!(drawn.iter().map(Vec::len).collect::<Vec<_>>(), [even.len()], "{system}");
        for (step, (us, (x, y))) in even.iter().zip(&drawn[0]).enumerate() {
            across.push((*us, *x));
            up.push(((step as f64 + 0.5) / 200.0, *y));
        }
    }
    assert_scale(&across, true);
    assert_scale(&up, false);
}

#[test]
fn a_linear_scale_is_linear() {
    let analysis = analysis();
    let hash = "#hide=none&axis=ecdf&without=default&sizes=64&scale=linear";
    let Some(dom) = dump_of(page(), hash) else { return };
    let even = &analysis.details[index(&analysis, "cyclonedds.udp", "tuned", 64)].even_us;
    let drawn = lines(&dom, "ecdf cyclonedds.udp, tuned");
    let pairs: Vec<_> = even.iter().copied().zip(drawn[0].iter().map(|point| point.0)).collect();
    assert_scale(&pairs, false);
}

#[test]
fn a_cell_over_time_is_where_the_analysis_has_it() {
    let analysis = analysis();
    let place = index(&analysis, "cyclonedds.iceoryx", "tuned", 1024);
    let Detail { timeline: Some(course), series: Some(series), .. } = &analysis.details[place]
    else {
        panic!("the fixture has both")
    };
    let Some(dom) = dump_of(page(), &format!("#cell={place}")) else { return };
    let plots = timeline_of(&dom);
    assert!(plots.contains("cyclonedds.iceoryx, 1 KiB, tuned"));
    let windows = &course.windows;
    let dots: Vec<[f64; 2]> = labelled(plots, "circle", "timeline max")
        .iter()
        .map(|tag| numbers(tag, ["cx", "cy"]))
        .collect();
    assert_eq!(dots.len(), windows.len());
    let high: Vec<_> = windows.iter().map(|it| it.max_us.unwrap()).collect();
    assert_scale(
        &high.iter().copied().zip(dots.iter().map(|dot| dot[1])).collect::<Vec<_>>(),
        true,
    );
    let middle = (0..windows.len()).map(|at| at as f64 + 0.5);
    assert_scale(&middle.zip(dots.iter().map(|dot| dot[0])).collect::<Vec<_>>(), false);
    // One window has no median: two pieces.
    let medians = lines(plots, "timeline p50");
    assert_eq!(medians.iter().map(Vec::len).collect::<Vec<_>>(), [10, 2 * windows.len() - 12]);
    let known = windows.iter().filter_map(|it| it.p50_us).flat_map(|us| [us, us]);
    let drawn = medians.concat().into_iter().map(|point| point.1);
    assert_scale(&known.zip(drawn).collect::<Vec<_>>(), true);
    let rate = windows.iter().flat_map(|it| [it.rate_per_s; 2]);
    let drawn = lines(plots, "timeline rate").concat();
    assert_scale(&rate.zip(drawn.iter().map(|point| point.1)).collect::<Vec<_>>(), false);
    assert_observed(plots, "cpu", &series.cpu_percent);
    assert_observed(plots, "wait", &series.runqueue_wait_percent);
    let pss: Vec<f64> = series.pss_bytes.iter().flatten().map(|bytes| *bytes as f64).collect();
    assert_observed(plots, "pss", &pss);
    // The link was down from 2.5 s to 3.75 s of 6 s.
    assert!(plots.contains("the link was down from 2.5 s to 3.75 s"), "in words");
    let cuts = labelled(plots, "rect", "link down");
    assert_eq!(cuts.len(), 7, "five timelines and two maps");
    let [x, width] = numbers(cuts[0], ["x", "width"]);
    let at = |s: f64| medians[0][0].0 + s / 6.0 * (medians[1].last().unwrap().0 - medians[0][0].0);
    assert!((x - at(2.5)).abs() < 0.6 && (x + width - at(3.75)).abs() < 0.6, "{x} {width}");
    // Warm-up: from the first observation to the first message, in every plot above the maps.
    let shades = labelled(plots, "rect", "warm-up");
    assert_eq!(shades.len(), 7, "five timelines and two maps");
    let [x, width] = numbers(shades[0], ["x", "width"]);
    let first = lines(plots, "timeline cpu")[0][0].0;
    assert!((x - first).abs() < 0.6 && (x + width - medians[0][0].0).abs() < 0.6);
}

/// Rows of two ends each, on a linear axis.
fn assert_observed(plots: &str, key: &str, values: &[f64]) {
    let drawn = lines(plots, &format!("timeline {key}")).concat();
    assert_eq!(drawn.len(), 2 * values.len(), "{key}");
    let ends = values.iter().flat_map(|value| [*value; 2]);
    assert_scale(&ends.zip(drawn.iter().map(|point| point.1)).collect::<Vec<_>>(), false);
}

#[test]
fn heat_maps_have_every_message_and_the_floor_below() {
    let analysis = analysis();
    let place = index(&analysis, "cyclonedds.udp", "tuned", 64);
    let Some(dom) = dump_of(page(), &format!("#cell={place}")) else { return };
    let plots = timeline_of(&dom);
    let floor = index(&analysis, "os.futex", "tuned", 64);
    assert!(plots.contains("the floor in its own run: os.futex, 64 B, tuned"));
    let mut rows = Vec::new();
    for (whose, place) in [("map", place), ("floor", floor)] {
        let Some(Timeline { map, .. }) = &analysis.details[place].timeline else { panic!() };
        let drawn = labelled(plots, "rect", &format!("{whose} field "));
        assert_eq!(drawn.len(), map.fields.len());
        let mut columns = Vec::new();
        for (field, tag) in map.fields.iter().zip(drawn) {
            let label = format!("{whose} field {}", field.count);
            assert_eq!(attribute(tag, "aria-label"), Some(label.as_str()));
            let [x, y, height] = numbers(tag, ["x", "y", "height"]);
            columns.push((f64::from(field.column), x));
            let begin = f64::from(field.row) / f64::from(HeatMap::ROWS_PER_DECADE);
            rows.push((10f64.powf(begin), y + height));
        }
        assert_scale(&columns, false);
    }
    // Both are on one axis of latency.
    assert_scale(&rows, true);
}

#[test]
fn stage_bars_are_as_long_as_their_means() {
    let analysis = analysis();
    let Some(dom) = dump_of(page(), "#hide=none&sizes=64") else { return };
    let stages = dom.split_once("<section id=\"stages\"").unwrap().1;
    let stages = stages.split_once("</section>").unwrap().0;
    let shown = figures(stages).filter(|figure| figure.contains("aria-label=\"stage "));
    let figure = shown.collect::<Vec<_>>().remove(0);
    type Mean = fn(&StageMean) -> Option<f64>;
    let columns: [(&str, Mean); 2] =
        [("all messages", |part| Some(part.mean_us)), ("messages above p99", |part| part.slow_us)];
    let mut bars = 0;
    for tuning in ["default", "tuned"] {
        for (which, mean) in columns {
            let mut pairs = Vec::new();
            for cell in analysis.summary.cells.iter().enumerate() {
                let (place, cell) = cell;
                if cell.params.payload_bytes != 64 || cell.tuning.name() != tuning {
                    continue;
                }
                let parts = &analysis.details[place].stages.as_ref().unwrap().parts;
                for (stage, name) in [
                    (Stage::Loan, "loan"),
                    (Stage::Publish, "publish"),
                    (Stage::Wake, "wake"),
                    (Stage::Take, "take"),
                    (Stage::WakeAndTake, "wake and take"),
                ] {
                    let label = format!("stage {name} of {}, {tuning}, {which}", cell.system);
                    let drawn = elements(figure, "rect")
                        .filter(|tag| attribute(tag, "aria-label") == Some(label.as_str()));
                    let widths: Vec<f64> = drawn.map(|tag| numbers(tag, ["width"])[0]).collect();
                    let part = parts.iter().find(|part| part.stage == stage).and_then(mean);
                    assert_eq!(widths.len(), usize::from(part.is_some()), "{label}");
                    pairs.extend(part.zip(widths.first().copied()));
                    bars += widths.len();
                }
            }
            assert_scale(&pairs, false);
        }
    }
    assert!(bars > 60, "{bars}");
    assert!(figure.contains("p99 withheld") && figure.contains("All: no schedule"));
    assert!(figure.contains("os.cacheline: waits inside its take"), "said, not drawn as zero");
}

#[test]
fn the_slowest_messages_are_in_a_table() {
    let analysis = analysis();
    let place = index(&analysis, "cyclonedds.udp", "tuned", 64);
    let Some(dom) = dump_of(page(), &format!("#cell={place}")) else { return };
    let table = dom.split_once("id=\"slowest-table\"").unwrap().1;
    let table = table.split_once("</section>").unwrap().0;
    assert_eq!(elements(table, "tr").count(), 11);
    for message in &analysis.details[place].slowest {
        assert!(table.contains(&format!("<td class=\"\">{}</td>", message.id)), "{}", message.id);
        assert!(table.contains(&format!("{:.0} µs</th>", message.us)), "{}", message.us);
    }
    assert_eq!(table.matches("wake, 70 %").count(), 10);
    assert_eq!(table.matches("run-queue wait").count(), 1);
    assert!(table.contains("12.5 %") && table.contains("1.5 k/s") && table.contains("0 → 1 → 0"));
    assert!(table.contains("os.futex, had messages of up to"));
}

#[test]
fn a_link_restores_the_view_and_arrow_keys_change_cells() {
    let state = "answer(location.hash + '\\n' + JSON.stringify([...document.querySelectorAll(\
        'input:checked, select')].map((it) => `${it.name}${it.id}=${it.value}`)));";
    let choose = format!(
        "for (const selector of ['input[name=axis][value=ecdf]', 'input[name=scale][value=linear]', \
         'input[name=bars][value=share]', 'input[name=system][value=\"os.udp\"]', \
         'input[name=tuning][value=default]', 'input[name=statistic][value=p99]', \
         '[data-family=cyclonedds]', '[data-step=\"1\"]']) document.querySelector(selector).click();
         const before = document.getElementById('cell').value;
         document.getElementById('timeline-plots').dispatchEvent(new KeyboardEvent('keydown', {{ key: \
         'ArrowRight', bubbles: true }}));
         if (document.getElementById('cell').value === before) answer('the key did nothing');
         else {state}"
    );
    let Some(chosen) = ask(page(), "", 1200, &choose) else { return };
    let (hash, controls) = chosen.split_once('\n').expect(&chosen);
    for word in ["axis=ecdf", "scale=linear", "bars=share", "hide=", "without=default", "cell="] {
        assert!(hash.contains(word), "{word} is not in {hash}");
    }
    assert!(hash.contains("cyclonedds.iceoryx-loan"), "the whole family: {hash}");
    let restored = ask(page(), hash, 1200, state).unwrap();
    assert_eq!(restored.split_once('\n').unwrap().1, controls);
    let plain = ask(page(), "", 1200, state).unwrap();
    assert_ne!(plain.split_once('\n').unwrap().1, controls);
}

#[test]
fn the_link_is_copied_or_shown() {
    let script = "
        document.getElementById('timeline').scrollIntoView();
        document.querySelector('input[name=axis][value=ecdf]').click();
        let copied = '';
        document.execCommand = () => { copied = document.activeElement.value; return true; };
        Object.defineProperty(navigator, 'clipboard', { value: undefined });
        document.getElementById('copy-link').click();
        setTimeout(() => answer(`${copied}\\n${document.getElementById('copied').textContent}`), 50);";
    let Some(answer) = ask(page(), "", 1200, script) else { return };
    let (link, said) = answer.split_once('\n').unwrap();
    assert!(
        link.starts_with("file://") && link.ends_with("asked.html#axis=ecdf&at=timeline"),
        "{link}"
    );
    assert_eq!(said, "Copied.");
}
