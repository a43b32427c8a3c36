// The publish call against the number of subscribers, for one payload.
"use strict";

/** Options for Plot, or null if nothing is shown. `page` is the interface of the page to its
    plots. */
function publishPlot(fan, payload, page) {
  const ns = (us) => 1000 * us;
  const cells = fan.cells.filter((cell) => cell.payload === payload && page.isShown(cell) && cell.p50 != null);
  if (cells.length === 0) return null;
  // 0 subscribers stand apart at the left of the logarithmic axis.
  const axis = numberAxis(fan.subscribers, 1.5, "subscribers →", String);
  const points = cells.map((cell) => ({
    x: axis.at(cell.subscribers), y: ns(cell.p50), p99: cell.p99 == null ? null : ns(cell.p99),
    interval: cell.p50_interval?.map(ns), cell, tuning: cell.tuning,
  })).sort((a, b) => a.x - b.x);
  const marks = [...axis.marks];
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
    const runs = own.flatMap((point) => point.cell.runs.filter((run) => run.p50 != null).map((run) => ({ x: point.x, y: ns(run.p50), tuning: point.tuning })));
    marks.push(...cellMarks(system, sound, own.filter((point) => !point.cell.valid), runs));
  }
  marks.push(page.tip(points, {
    x: "x", y: "y", fx: "tuning",
    title: (d) => [
      `${d.cell.system}, ${counted(d.cell.subscribers, "subscriber")}, ${d.cell.tuning}${d.cell.valid ? "" : " (invalid)"}`,
      `p50 ${d.y.toFixed(0)} ns${d.interval ? ` [${d.interval.map((end) => end.toFixed(0)).join(", ")}]` : ""}`,
      ...(d.p99 == null ? [] : [`p99 ${d.p99.toFixed(0)} ns`]),
    ].join("\n"),
  }));
  const y = latencyAxis([...points.flatMap((point) => [point.y, point.p99 ?? point.y, ...(point.interval || [])]), fan.clock_read_ns], page.scale(), "↑ publish call", "ns");
  return {
    height: 340,
    marginLeft: 62,
    x: axis.options,
    y: y.options,
    fx: { domain: page.shownTunings(fan) },
    marks: [...y.marks, ...marks],
  };
}
