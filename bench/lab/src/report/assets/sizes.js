// Latency against size, for one group.
"use strict";

/** The median of a mixture depends on its shares: a line has a gap there, a floor uses the
    messages across cores. */
function apart(cell, key, isFloor) {
  const across = cell.placements.find((part) => !part.same_cpu);
  return isFloor(cell.system) ? (across?.[key] ?? NaN) : NaN;
}

/** Options for Plot, or null if nothing is shown. `page` is the interface of the page to its
    plots. */
function sizePlot(group, page) {
  const key = page.statistic();
  const isFloor = (name) => page.systems.get(name).floor;
  const axis = numberAxis(group.payloads, 2, "payload, bytes →", (size, place) => (size === 0 ? "0" : group.payload_labels[place]));
  const cells = group.cells.filter((cell) => page.isShown(cell) && cell[key] != null);
  if (cells.length === 0) return null;
  const points = cells.map((cell) => ({
    joined: cell.mixed ? apart(cell, key, isFloor) : cell[key],
    x: axis.at(cell.payload), y: cell[key], interval: cell[`${key}_interval`], cell, tuning: cell.tuning,
  })).sort((a, b) => a.x - b.x);
  const marks = [...axis.marks];
  for (const system of page.shownSystems()) {
    const own = points.filter((point) => point.cell.system === system.name);
    const sound = own.filter((point) => point.cell.valid);
    const common = { x: "x", fx: "tuning" };
    marks.push(Plot.line(sound, { ...common, y: "joined", z: "tuning", ...page.lineOf(system), ariaLabel: (d) => `curve ${system.name}, ${d.tuning}` }));
    if (system.floor) continue;
    const parts = sound.filter((point) => point.cell.mixed).flatMap((point) => point.cell.placements.map((part) => ({ ...point, y: part[key] })));
    marks.push(Plot.dot(parts.filter((part) => part.y != null), { ...common, y: "y", r: 4.6, symbol: system.symbol, stroke: system.colour, strokeWidth: 1.3, ariaLabel: () => `placement ${system.name}` }));
    const runs = own.flatMap((point) => point.cell.runs.filter((run) => run[key] != null).map((run) => ({ x: point.x, y: run[key], tuning: point.tuning })));
    const unsound = own.filter((point) => !point.cell.valid);
    marks.push(...cellMarks(system, sound.filter((point) => !point.cell.mixed), unsound, runs));
  }
  marks.push(page.tip(points, {
    x: "x", y: "y", fx: "tuning",
    title: (d) => [
      `${d.cell.system}, ${axis.labels.get(d.x)}${d.x === axis.zero ? " B" : ""}, ${d.cell.tuning}${d.cell.valid ? "" : " (invalid)"}`,
      `${key} ${us(d.y)} µs${d.interval ? ` [${us(d.interval[0])}, ${us(d.interval[1])}]` : ""}`,
      ...d.cell.placements.map((part) => `${Math.round(100 * part.share)} % ${part.label}: ${us(part[key])} µs`),
    ].join("\n"),
  }));
  const values = points.flatMap((point) => {
    if (!point.cell.mixed) return [point.y, ...(point.interval || [])];
    return isFloor(point.cell.system) ? [point.joined] : point.cell.placements.map((part) => part[key]);
  });
  const y = latencyAxis(values, page.scale(), `↑ ${key} of ${group.metric}`);
  return {
    height: 380,
    marginLeft: 62,
    x: axis.options,
    y: y.options,
    fx: { domain: page.shownTunings(group) },
    marks: [...y.marks, ...marks],
  };
}
