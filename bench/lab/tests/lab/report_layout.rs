//! The layout of the page in wide and narrow windows and on paper: nothing overlaps or exceeds the
//! edge, everything is drawn and has a name.
//!
//! `MYELIN_KEEP_REPORT=FOLDER` leaves large pages in that folder, to measure how long they take to
//! open.

use std::path::Path;

use myelin_bench_lab::summary;

use crate::page::{ask, browser, fixture, flow, robot, timeline};
use ask::ask;
use browser::write;
use summary::Analysis;

/// Problems, one per line, then the number of checked texts.
const LOOK: &str = "
const wrong = [];
const box = (node) => node.getBoundingClientRect();
const isSeen = (node) => box(node).width > 0 && box(node).height > 0;
const name = (node) => `${node.closest('section')?.id}: “${node.textContent.trim().slice(0, 40)}”`;
const hit = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5;
let texts = 0;
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width + 1) wrong.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${width}`);
for (const svg of document.querySelectorAll('.plot svg, .panels svg, #timeline-plots svg, #stages svg')) {
  if (!isSeen(svg)) continue;
  // Signs of data may meet; words may not.
  const words = [...svg.querySelectorAll('text')].filter((text) => isSeen(text) && !/^(bimodal|invalid)/.test(text.getAttribute('aria-label') || ''));
  texts += words.length;
  const boxes = words.map(box);
  for (let a = 0; a < words.length; a++) {
    if (boxes[a].right > width + 1 || boxes[a].left < -1) wrong.push(`${name(words[a])} passes the edge`);
    for (let b = 0; b < a; b++) if (hit(boxes[a], boxes[b])) wrong.push(`${name(words[a])} lies on ${name(words[b])}`);
  }
  if (svg.getAttribute('role') !== 'img' || (svg.getAttribute('aria-label') || '').length < 20) wrong.push(`a plot of ${svg.closest('section')?.id} has no name`);
}
for (const parts of ['main > section, main > details > section, #plots > section', '#timeline-plots > *', '.controls label', 'figure']) {
  const seen = [...document.querySelectorAll(parts)].filter(isSeen);
  for (let a = 1; a < seen.length; a++) {
    if (!seen[a - 1].contains(seen[a]) && hit(box(seen[a - 1]), box(seen[a]))) wrong.push(`${name(seen[a])} lies on ${name(seen[a - 1])}`);
  }
}
for (const control of document.querySelectorAll('button, input, select')) {
  if (!(control.labels?.length || control.textContent.trim() || control.getAttribute('aria-label'))) wrong.push(`${control.outerHTML} has no name`);
}
if (document.querySelector('[data-waiting]')) wrong.push('a plot was not drawn');
if (document.documentElement.dataset.errors !== '0') wrong.push(document.documentElement.dataset.error);
answer([...new Set(wrong)].slice(0, 12).concat(texts).join('\\n'));
";

fn assert_fits(what: &str, mut analysis: Analysis, hash: &str) {
    timeline::enrich(&mut analysis);
    let page = write(&analysis);
    for width in [400, 1440] {
        let Some(answer) = ask(&page, hash, width, LOOK) else { return };
        let (wrong, texts) = answer.rsplit_once('\n').unwrap_or(("", &answer));
        assert_eq!(wrong, "", "{what} at {width} pixels");
        assert!(texts.parse::<usize>().expect(&answer) > 40, "{texts} texts");
    }
}

#[test]
fn round_trips_fit() {
    assert_fits("round trips", fixture::analysis(), "#hide=none");
    assert_fits("linear", fixture::analysis(), "#axis=ecdf&scale=linear&bars=share&sizes=0,1024");
}

#[test]
fn streams_fit() {
    assert_fits("sizes", robot::sizes(), "");
    assert_fits("images", flow::images(), "");
}

#[test]
fn printing_opens_and_draws_all_sections() {
    let mut analysis = fixture::analysis();
    timeline::enrich(&mut analysis);
    // Read at once, before there was time to draw.
    let early = "
        const count = () => document.querySelectorAll('#plots svg[role=img]').length;
        dispatchEvent(new Event('beforeprint'));
        const open = [...document.querySelectorAll('details:not(.file)')].every((details) => details.open);
        const waiting = document.querySelectorAll('[data-waiting]').length;
        answer([count(), open, waiting].join(' '));";
    let page = write(&analysis);
    let mut at_once = page;
    at_once.2 = at_once.2.replacen(
        "</body>",
        &format!(
            "<script>{{const answer = (text) => \
        parent.postMessage(text, '*');{early}}}</script></body>"
        ),
        1,
    );
    let Some(printed) = ask(&at_once, "", 1200, "") else { return };
    let Some(drawn) = ask(&write(&analysis), "", 1200, early) else { return };
    assert_eq!(printed, drawn);
    assert!(printed.ends_with(" true 0"), "{printed}");
    assert!(printed.split(' ').next().unwrap().parse::<usize>().unwrap() > 10, "{printed}");
}

#[test]
fn a_thousand_cells_stay_below_five_megabytes() {
    let mut analysis = fixture::analysis();
    timeline::enrich(&mut analysis);
    let page = write(&analysis);
    assert!(!page.2.contains("to keep the page below 5 MB"));
    for (cells, is_ample) in [(304, true), (1000, false)] {
        let large = repeated(&analysis, cells);
        let page = write(&large);
        if let Some(folder) = std::env::var_os("MYELIN_KEEP_REPORT") {
            let place = Path::new(&folder).join(format!("{cells}-cells.html"));
            std::fs::copy(&page.1, place).unwrap();
        }
        assert!(page.2.len() < 5_000_000, "{cells} cells: {} bytes", page.2.len());
        let is_said = page.2.contains("to keep the page below 5 MB");
        assert_eq!(is_said, !is_ample, "{cells} cells: {} bytes", page.2.len());
    }
}

/// The analysis with its cells repeated in further scenarios, up to `cells` cells.
fn repeated(analysis: &Analysis, cells: usize) -> Analysis {
    let mut large = analysis.clone();
    for place in analysis.summary.cells.len()..cells {
        let pattern = place % analysis.summary.cells.len();
        let mut cell = analysis.summary.cells[pattern].clone();
        cell.scenario += &format!("-{}", place / analysis.summary.cells.len());
        large.summary.cells.push(cell);
        large.details.push(analysis.details[pattern].clone());
    }
    large
}
