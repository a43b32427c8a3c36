// Run by run: the ratio of each run's median to its cell's median.
"use strict";

const middle = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
};

function runPlot(group, page) {
  const points = group.cells.filter(page.isShown).flatMap((cell) => {
    const medians = cell.runs.filter((run) => run.valid && run.p50 != null).map((run) => run.p50);
    if (medians.length === 0) return [];
    const centre = middle(medians);
    return cell.runs.filter((run) => run.p50 != null).map((run) => ({ x: run.order, y: run.p50 / centre, run, cell, tuning: cell.tuning }));
  });
  if (points.length === 0) return null;
  const marks = [Plot.ruleY([1], { stroke: "var(--muted)" })];
  for (const system of page.shownSystems()) {
    const own = points.filter((point) => point.cell.system === system.name);
    const common = { x: "x", y: "y", fx: "tuning" };
    const look = system.floor ? { r: 1.8, fill: system.colour, fillOpacity: 0.7 } : { r: 3, symbol: system.symbol, fill: system.colour, fillOpacity: 0.8 };
    marks.push(Plot.dot(own.filter((point) => point.run.valid), { ...common, ...look, ariaLabel: () => `runs ${system.name}` }));
    marks.push(Plot.text(own.filter((point) => !point.run.valid), { ...common, text: () => "×", fontSize: 16, fontWeight: 700, fill: system.colour, ariaLabel: () => `invalid runs ${system.name}` }));
  }
  const label = (cell) => group.payload_labels[group.payloads.indexOf(cell.payload)];
  marks.push(page.tip(points, {
    x: "x", y: "y", fx: "tuning",
    title: (d) => `${d.cell.system}, ${label(d.cell)}, ${d.cell.tuning}\nrun ${d.x + 1} of the plan${d.run.valid ? "" : " (invalid)"}\np50 ${us(d.run.p50)} µs`,
  }));
  const orders = points.map((point) => point.x);
  const extent = Math.max(1.15, ...points.flatMap(({ y }) => [y, 1 / y])) * 1.04;
  const ticks = RATIOS.find((ratios) => ratios.at(-1) >= extent ** 0.6) || RATIOS.at(-1);
  const shown = ticks.flatMap((tick) => (tick === 1 ? [1] : [tick, 1 / tick])).filter((tick) => tick >= 1 / extent && tick <= extent);
  return {
    height: 260,
    x: { label: "order of execution →", domain: [Math.min(...orders) - 1, Math.max(...orders) + 1] },
    y: { type: "log", domain: [1 / extent, extent] },
    fx: { domain: page.shownTunings(group) },
    marks: [...logMarks(shown, "↑ p50 of the run over that of its cell", (d) => (d < 1 ? `÷${+(1 / d).toPrecision(3)}` : `×${+d.toPrecision(3)}`)), ...marks],
  };
}

/** Ticks for a scale of ratios, by its extent. */
const RATIOS = [[1, 1.05, 1.1], [1, 1.1, 1.2], [1, 1.25, 1.5], [1, 1.5, 2, 3], [1, 2, 5], [1, 3, 10, 30], [1, 10, 100]];
