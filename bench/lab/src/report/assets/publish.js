// The publish call against the number of subscribers, of one payload.
"use strict";

/** Options for Plot, or null if nothing is shown. `page` is what the page has for all plots. */
function publishPlot(fan, payload, page) {
  const ns = (us) => 1000 * us;
  const cells = fan.cells.filter((cell) => cell.payload === payload && page.isShown(cell) && cell.p50 != null);
  if (cells.length === 0) return null;
  // No subscriber at all stands apart at the left of a logarithmic axis.
  const positive = fan.subscribers.filter((number) => number > 0);
  const first = positive.length ? Math.log2(positive[0]) : 0;
  const at = (number) => (number > 0 ? Math.log2(number) : first - 1.5);
  const labels = new Map(fan.subscribers.map((number) => [at(number), String(number)]));
  const points = cells.map((cell) => ({
    x: at(cell.subscribers), y: ns(cell.p50), p99: cell.p99 == null ? null : ns(cell.p99),
    interval: cell.p50_interval?.map(ns), cell, tuning: cell.tuning,
  })).sort((a, b) => a.x - b.x);
  const marks = [];
  if (fan.subscribers[0] === 0 && positive.length) {
    marks.push(Plot.ruleX([first - 0.75], { stroke: "var(--rule)", strokeDasharray: "1 3", ariaLabel: () => "break of the axis" }));
  }
  if (fan.clock_read_ns > 0) {
    marks.push(Plot.ruleY([fan.clock_read_ns], { stroke: "var(--muted)", strokeDasharray: "4 3", ariaLabel: () => "clock" }));
  }
  for (const system of page.shownSystems()) {
    const own = points.filter((point) => point.cell.system === system.name);
    const sound = own.filter((point) => point.cell.valid);
    const common = { x: "x", fx: "tuning" };
    const look = page.lineOf(system);
    marks.push(Plot.line(sound, { ...common, y: "y", z: "tuning", ...look, ariaLabel: (d) => `publish ${system.name}, ${d.tuning}` }));
    const rare = sound.filter((point) => point.p99 != null);
    marks.push(Plot.line(rare, { ...common, y: "p99", z: "tuning", ...look, strokeWidth: 1, strokeDasharray: "2 3", ariaLabel: (d) => `publish p99 ${system.name}, ${d.tuning}` }));
    const ranged = sound.filter((point) => point.interval);
    marks.push(Plot.ruleX(ranged, { ...common, y1: (d) => d.interval[0], y2: (d) => d.interval[1], stroke: system.colour, strokeWidth: 5, strokeOpacity: 0.35, ariaLabel: () => `interval ${system.name}` }));
    const runs = own.flatMap((point) => point.cell.runs.filter((run) => run.p50 != null).map((run) => ({ x: point.x, y: ns(run.p50), tuning: point.tuning })));
    marks.push(Plot.dot(runs, { ...common, y: "y", r: 1.7, fill: system.colour, fillOpacity: 0.45, dx: 7, ariaLabel: () => `runs ${system.name}` }));
    marks.push(Plot.dot(sound, { ...common, y: "y", r: 3.8, symbol: system.symbol, fill: system.colour, ariaLabel: () => `point ${system.name}` }));
    marks.push(Plot.text(own.filter((point) => !point.cell.valid), { ...common, y: "y", text: () => "×", fontSize: 17, fontWeight: 700, fill: system.colour, ariaLabel: () => `invalid ${system.name}` }));
  }
  marks.push(page.tip(points, {
    x: "x", y: "y", fx: "tuning",
    title: (d) => [
      `${d.cell.system}, ${d.cell.subscribers} subscribers, ${d.cell.tuning}${d.cell.valid ? "" : " (invalid)"}`,
      `p50 ${d.y.toFixed(0)} ns${d.interval ? ` [${d.interval.map((end) => end.toFixed(0)).join(", ")}]` : ""}`,
      ...(d.p99 == null ? [] : [`p99 ${d.p99.toFixed(0)} ns`]),
    ].join("\n"),
  }));
  const y = latencyAxis([...points.flatMap((point) => [point.y, point.p99 ?? point.y, ...(point.interval || [])]), fan.clock_read_ns], page.scale(), "↑ publish call", "ns");
  const places = [...labels.keys()];
  return {
    height: 340,
    marginLeft: 62,
    x: { domain: [Math.min(...places) - 0.5, Math.max(...places) + 0.7], ticks: places, tickFormat: (x) => labels.get(x), label: "subscribers →" },
    y: y.options,
    fx: { domain: page.shownTunings(fan) },
    marks: [...y.marks, ...marks],
  };
}
