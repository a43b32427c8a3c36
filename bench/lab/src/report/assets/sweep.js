// Small multiples against one parameter: a row of panels for each tuning, a line for each system.
"use strict";

/** The panels of each kind of sweep. The first key of a panel is drawn with signs, the others as
    lighter lines; the unit determines the text of ticks. */
const SWEEP_PANELS = (() => {
  const cpu = { title: "CPU of all processes (100 %: a core)", unit: "percent", keys: ["cpu"] };
  const memory = { title: "memory (PSS)", unit: "MB", keys: ["memory"] };
  const lost = { title: "messages lost", unit: "percent", keys: ["lost"] };
  return {
    round_trip: [{ title: "CPU of all processes for each round trip", unit: "us", keys: ["cpu_us"] }, memory, lost],
    one_way: [{ title: "one way: p50, light p99", unit: "us", keys: ["p50", "p99"] }, cpu, memory, lost],
    rate: [{ title: "one way: p50, light p99, dotted p99.9", unit: "us", keys: ["p50", "p99", "p999"] }, cpu, memory, lost],
    flood: [
      { title: "messages taken; light: most without loss", unit: "per_s", keys: ["taken", "lossless"] },
      { title: "payload taken", unit: "MB_per_s", keys: ["bytes"] },
      { title: "CPU for each message", unit: "us", keys: ["cpu_us"] },
      lost,
    ],
  };
})();

/** Positions of the parameter's values; on a logarithmic axis 0 stands apart. */
function sweepPlaces(sweep) {
  if (!sweep.log) return (value) => value;
  const first = Math.log10(sweep.values.find((value) => value > 0));
  return (value) => (value > 0 ? Math.log10(value) : first - 0.6);
}

/** Values with room for their labels, from the first and the last inwards. */
function roomyTicks(sweep, at, width) {
  const places = sweep.values.map(at);
  const scale = width / (places.at(-1) - places[0]);
  const half = (place) => 3.4 * sweep.labels[place].length + 4;
  const clear = (a, b) => Math.abs(places[a] - places[b]) * scale >= half(a) + half(b);
  const kept = [0, places.length - 1];
  for (let place = 1; place < places.length - 1; place++) {
    if (kept.every((other) => clear(other, place))) kept.push(place);
  }
  return kept.sort((a, b) => a - b);
}

/** Scale of a panel, shared by all its tunings. Logarithmic above a decade, else from zero. */
function sweepScale(sweep, panel, page) {
  const shown = [...sweep.cells.filter((cell) => page.isShown(cell)), ...sweep.published];
  const values = shown.flatMap((cell) => panel.keys.map((key) => cell[key])).filter((value) => value != null);
  if (values.length === 0) return null;
  const low = Math.min(...values), high = Math.max(...values);
  const isLatency = panel.keys[0] === "p50";
  if (low > 0 && high > 10 * low && !(isLatency && page.scale() === "linear")) {
    const domain = logDomain(values);
    const ticks = logTicks(domain);
    const decades = ticks.filter((tick) => Number.isInteger(+Math.log10(tick).toFixed(9)));
    return { type: "log", domain, ticks: ticks.length > 8 && decades.length > 2 ? decades : ticks };
  }
  const domain = [0, high > 0 ? high * 1.08 : 1];
  return { type: "linear", domain, ticks: d3.ticks(...domain, 4) };
}

function sweepMarks(sweep, panel, tuning, at, page) {
  const [main, ...lighter] = panel.keys;
  const marks = [], points = [];
  for (const system of page.shownSystems()) {
    const own = sweep.cells.filter((cell) => cell.system === system.name && cell.tuning === tuning);
    if (own.length === 0) continue;
    // A point for every value: a missing one interrupts the line.
    const line = (key) => sweep.values.map((value) => {
      const cell = own.find((cell) => cell.x === value && cell.valid);
      return { x: at(value), y: cell?.[key] ?? NaN };
    });
    const look = page.lineOf(system);
    lighter.forEach((key, place) => marks.push(Plot.line(line(key), {
      x: "x", y: "y", ...look, strokeWidth: 1, strokeOpacity: 0.55, strokeDasharray: place === 0 ? look.strokeDasharray : "1 3",
      ariaLabel: () => `sweep ${key} ${system.name}, ${tuning}`,
    })));
    marks.push(Plot.line(line(main), { x: "x", y: "y", ...look, ariaLabel: () => `sweep line ${main} ${system.name}, ${tuning}` }));
    const drawn = own.filter((cell) => cell[main] != null).map((cell) => ({ x: at(cell.x), y: cell[main], cell }));
    const label = (point) => `sweep ${main} ${system.name}, ${tuning}, ${sweep.labels[sweep.values.indexOf(point.cell.x)]}`;
    const sign = { x: "x", y: "y", r: system.floor ? 1.8 : 3.2, symbol: system.floor ? "circle" : system.symbol, ariaLabel: label };
    const sound = drawn.filter((point) => point.cell.valid);
    marks.push(Plot.dot(sound.filter((point) => !point.cell.short), { ...sign, fill: system.colour }));
    marks.push(Plot.dot(sound.filter((point) => point.cell.short), { ...sign, fill: "var(--paper)", stroke: system.colour, strokeWidth: 1.6 }));
    marks.push(Plot.text(drawn.filter((point) => !point.cell.valid), { x: "x", y: "y", text: () => "×", fontSize: 16, fontWeight: 700, fill: system.colour, ariaLabel: (point) => `invalid ${label(point)}` }));
    points.push(...drawn);
  }
  const theirs = sweep.published.filter((point) => point[main] != null).map((point) => ({ x: at(point.x), y: point[main], theirs: point }));
  marks.push(Plot.dot(theirs, { x: "x", y: "y", r: 5, symbol: "square2", stroke: "var(--muted)", strokeWidth: 2, ariaLabel: (point) => `published ${main} ${point.theirs.label}` }));
  marks.push(Plot.text(theirs.slice(-1), { x: "x", y: "y", text: (point) => point.theirs.name, fontSize: 10.5, fill: "var(--muted)", stroke: "var(--paper)", strokeWidth: 3, ariaLabel: (point) => `name ${point.theirs.name}` }));
  return { marks, points: [...points, ...theirs] };
}

function sweepTip(sweep, panel, tuning, point) {
  const figures = point.theirs || point.cell;
  const value = sweep.labels[sweep.values.indexOf(figures.x)] || String(figures.x);
  const name = (key) => ({ p50: point.theirs ? "mean" : "p50", p999: "p99.9", cpu: "CPU", cpu_us: "CPU", lossless: "without loss", bytes: "taken" }[key] || key);
  return [
    point.theirs ? `${figures.label}, ${value}` : `${figures.system}, ${value}, ${tuning}${figures.valid ? "" : " (invalid)"}`,
    ...panel.keys.filter((key) => figures[key] != null).map((key) => `${name(key)} ${quantity(figures[key], panel.unit)}`),
    ...(figures.short ? [`reached ${+figures.short[0].toPrecision(4)} of ${+figures.short[1].toPrecision(4)} messages a second`] : []),
  ].join("\n");
}

/** Fills `rows` with the panels of every shown tuning. `page` is the interface of the page to
    its plots. */
function drawSweep(rows, sweep, page) {
  rows.replaceChildren();
  const at = sweepPlaces(sweep);
  const places = sweep.values.map(at);
  const air = (places.at(-1) - places[0]) * 0.04;
  const shown = page.shownTunings(sweep).filter((tuning) => sweep.cells.some((cell) => cell.tuning === tuning && page.isShown(cell)));
  if (shown.length === 0) rows.append(element("p", { className: "remark", textContent: "Nothing to show." }));
  for (const tuning of shown) {
    if (sweep.tunings.length > 1) rows.append(element("h4", { textContent: tuning }));
    const panels = element("div", { className: "panels" });
    rows.append(panels);
    for (const panel of SWEEP_PANELS[sweep.panels]) {
      const plot = element("div", { className: "plot" });
      panels.append(element("figure", {}, element("figcaption", { textContent: panel.title }), plot));
      const scale = sweepScale(sweep, panel, page);
      if (scale === null) {
        plot.append(element("p", { className: "remark", textContent: "Not measured." }));
        continue;
      }
      const width = Math.min(plot.clientWidth || 340, 560), marginLeft = 62, marginRight = 22;
      const { marks, points } = sweepMarks(sweep, panel, tuning, at, page);
      const kept = roomyTicks(sweep, at, (width - marginLeft - marginRight) / 1.08);
      marks.push(page.tip(points, { x: "x", y: "y", title: (point) => sweepTip(sweep, panel, tuning, point) }));
      const svg = Plot.plot({
        width, height: 230, marginLeft, marginRight, marginTop: 10, marginBottom: 36,
        x: { domain: [places[0] - air, places.at(-1) + air], label: null },
        y: { type: scale.type, domain: scale.domain, label: null },
        marks: [
          Plot.gridX(places),
          Plot.gridY(scale.ticks),
          Plot.axisX(kept.map((place) => places[place]), { tickFormat: (_, index) => sweep.labels[kept[index]], label: `${sweep.parameter} →`, tickSize: 4 }),
          Plot.axisY(scale.ticks, { text: (value) => quantity(value, panel.unit), label: null, tickSize: 4 }),
          ...marks,
        ],
      });
      const ends = points.filter((point) => point.cell).map((point) => ({ name: `${point.cell.system} at ${sweep.labels[sweep.values.indexOf(point.cell.x)]}`, value: point.y }));
      describe(svg, `${sweep.title}, ${tuning}: ${panel.title}: ${extremes(ends, (value) => quantity(value, panel.unit))}`);
      plot.append(svg);
      placeNames(svg);
    }
  }
}
