// CPU against latency, for one payload: a mark for each system, and the Pareto front of the tested
// ones.
"use strict";

/** The point of a cell; `cpu` is "all" or "receiver", and only streams and images have both. */
function paretoPoint(group, cell, cpu) {
  const x = group.is_flow ? (cpu === "receiver" ? cell.receiver_cpu : cell.cpu) : cell.cpu_us;
  const y = group.is_flow ? cell.p50 : cell.p99;
  if (!(x > 0) || !(y > 0)) return null;
  return { x, y, top: group.is_flow ? cell.p99 : null, cell, tuning: cell.tuning };
}

/** The points that no other beats in both figures, from cheap to fast. */
function paretoFront(points) {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  let lowest = Infinity;
  return sorted.filter((point) => {
    const counts = point.y < lowest;
    lowest = Math.min(lowest, point.y);
    return counts;
  });
}

/** Options for Plot, or null if nothing is shown. `page` is the interface of the page to its
    plots. */
function paretoPlot(group, payload, page) {
  const cells = group.cells.filter((cell) => cell.payload === payload && page.isShown(cell));
  const points = cells.map((cell) => paretoPoint(group, cell, page.cpu())).filter((point) => point !== null);
  if (points.length === 0) return null;
  const systems = page.shownSystems();
  const isFloor = new Set(systems.filter((system) => system.floor).map((system) => system.name));
  const marks = [];
  for (const topology of new Set(points.map((point) => point.cell.topology))) {
    const rivals = points.filter((point) => point.cell.topology === topology && point.cell.valid && !point.cell.short && !isFloor.has(point.cell.system));
    const front = page.shownTunings(group).flatMap((tuning) => paretoFront(rivals.filter((point) => point.tuning === tuning)));
    marks.push(Plot.line(front, {
      x: "x", y: "y", fx: "tuning", z: "tuning", curve: "step-after", stroke: "var(--muted)", strokeWidth: 1.2,
      strokeDasharray: topology === "one-process" ? "1.5 3" : null, ariaLabel: (d) => `front ${topology}, ${d.tuning}`,
    }));
  }
  for (const system of systems) {
    const own = points.filter((point) => point.cell.system === system.name);
    const sound = own.filter((point) => point.cell.valid);
    const common = { x: "x", fx: "tuning" };
    const label = (d) => `${system.name}, ${d.tuning}`;
    marks.push(Plot.ruleX(sound.filter((point) => point.top != null), { ...common, y1: "y", y2: "top", stroke: system.colour, strokeWidth: 1.4, ariaLabel: (d) => `pareto p99 ${label(d)}` }));
    const look = system.floor ? { fill: "var(--paper)", stroke: system.colour, strokeWidth: 1.6 } : { fill: system.colour, symbol: system.symbol };
    marks.push(Plot.dot(sound, { ...common, y: "y", r: system.floor ? 3.6 : 5, ...look, ariaLabel: (d) => `pareto ${label(d)}` }));
    marks.push(Plot.text(sound, { ...common, y: "y", text: (d) => system.name + (d.cell.short ? ", short of its rate" : ""), fontSize: 10.5, fill: system.floor ? "var(--muted)" : system.colour, stroke: "var(--paper)", strokeWidth: 3, ariaLabel: () => `name ${system.name}` }));
    marks.push(Plot.text(own.filter((point) => !point.cell.valid), { ...common, y: "y", text: () => "×", fontSize: 17, fontWeight: 700, fill: system.colour, ariaLabel: (d) => `invalid pareto ${label(d)}` }));
  }
  const unit = group.is_flow ? "% of a core" : "µs for each round trip";
  marks.push(page.tip(points, {
    x: "x", y: "y", fx: "tuning",
    title: (d) => [
      `${d.cell.system}, ${d.tuning}, ${d.cell.topology.replace("-", " ")}${d.cell.valid ? "" : " (invalid)"}`,
      `CPU ${+d.x.toPrecision(3)} ${unit}`,
      `p50 ${us(d.cell.p50)} µs, p99 ${us(d.cell.p99)} µs`,
    ].join("\n"),
  }));
  const x = logDomain(points.map((point) => point.x));
  const y = latencyAxis(points.flatMap((point) => [point.y, point.top ?? point.y]), page.scale(), `↑ ${group.is_flow ? "p50 to p99" : "p99"} of ${group.metric}`);
  // Room for the outermost names: left for floors, right for others.
  const room = x[1] / x[0];
  x[0] /= points.some((point) => isFloor.has(point.cell.system)) ? room ** 0.14 : 1;
  x[1] *= room ** 0.22;
  const whose = group.is_flow ? (page.cpu() === "receiver" ? "CPU of the receiving process, % of a core →" : "CPU of all processes, % of a core →") : "CPU of all processes for each round trip, µs →";
  const text = (d) => String(+d.toPrecision(3));
  return {
    height: 380,
    marginLeft: 62,
    x: { type: "log", domain: x, ticks: roomy(logTicks(x), true), tickFormat: text, label: whose, grid: true },
    y: y.options,
    fx: { domain: page.shownTunings(group) },
    marks: [...y.marks, ...marks],
  };
}
