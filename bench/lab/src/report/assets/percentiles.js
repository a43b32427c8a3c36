// Percentiles on a nines axis, and the same distribution as an ECDF.
"use strict";

const NINES = [[0, "0"], [-Math.log10(0.5), "50"], [1, "90"], [2, "99"], [3, "99.9"], [4, "99.99"], [5, "99.999"], [6, "99.9999"]];

/** The axes that all payloads of a group share. */
function percentileDomains(group, page) {
  const curves = group.cells.filter((cell) => page.isShown(cell) && cell.curve.length > 1 && page.shownSizes(group).includes(cell.payload));
  const points = curves.flatMap((cell) => cell.curve);
  return {
    x: [0, Math.max(1, ...points.map((point) => point[0])) * 1.02],
    // From the 10th percentile on: the fastest few would take half the height.
    us: points.filter((point) => point[0] > 0.045).flatMap((point) => [point[1], point[3]]),
    even: curves.flatMap((cell) => { const values = evenOf(cell); return [values[0], values.at(-1)]; }).filter((value) => value != null),
  };
}

/** Turns the columns of a cell's curve into points. */
function unpackCurve(cell) {
  const [nines, ...columns] = cell.curve;
  const values = columns.map(logarithms);
  cell.curve = integers(nines).map((at, place) => [at / 1e4, ...values.map((column) => column[place])]);
}

const evenOf = (cell) => (cell.evenly ??= logarithms(cell.even));

/** The look of a system's lines over facets of tunings; invalid cells are dotted. */
const lineLook = (page, system, isValid) => ({ ...page.lineOf(system), ...(isValid ? {} : { strokeOpacity: 0.45, strokeDasharray: "1 4" }) });

function percentilePlot(group, size, domains, page) {
  const cells = group.cells.filter((cell) => cell.payload === size && page.isShown(cell) && cell.curve.length > 1);
  if (cells.length === 0) return null;
  const points = (cell) => cell.curve.map(([x, y, low, high]) => ({ x, y, low, high, cell, tuning: cell.tuning }));
  const marks = [];
  const everything = [];
  const shown = page.shownSystems();
  // Many overlapping bands need to be fainter.
  const fillOpacity = shown.filter((system) => !system.floor).length > 8 ? 0.06 : 0.14;
  for (const system of shown) {
    const own = cells.filter((cell) => cell.system === system.name);
    const sound = own.filter((cell) => cell.valid).flatMap(points);
    const unsound = own.filter((cell) => !cell.valid).flatMap(points);
    const common = { x: "x", fx: "tuning", z: "tuning", clip: true };
    if (!system.floor) {
      marks.push(Plot.areaY(sound, { ...common, y1: "low", y2: "high", fill: system.colour, fillOpacity, ariaLabel: () => `band ${system.name}` }));
    }
    marks.push(Plot.line(sound, { ...common, y: "y", ...lineLook(page, system, true), ariaLabel: (d) => `curve ${system.name}, ${d.tuning}` }));
    marks.push(Plot.line(unsound, { ...common, y: "y", ...lineLook(page, system, false), ariaLabel: (d) => `invalid curve ${system.name}, ${d.tuning}` }));
    const ends = own.map((cell) => points(cell).at(-1));
    if (!system.floor) marks.push(Plot.dot(ends, { x: "x", y: "y", fx: "tuning", r: 3.2, symbol: system.symbol, fill: system.colour, ariaLabel: () => `end ${system.name}` }));
    everything.push(...sound, ...unsound);
  }
  for (const system of shown) {
    const mixed = cells.filter((cell) => cell.system === system.name && cell.mixed).map((cell) => {
      const lower = cell.placements.reduce((a, b) => ((a.p50 ?? Infinity) <= (b.p50 ?? Infinity) ? a : b));
      const split = -Math.log10(1 - lower.share);
      const near = cell.curve.reduce((a, b) => (Math.abs(b[0] - split) < Math.abs(a[0] - split) ? b : a));
      return { x: near[0], y: near[1], tuning: cell.tuning };
    });
    marks.push(Plot.text(mixed, { x: "x", y: "y", fx: "tuning", text: () => "◐", fontSize: system.floor ? 11 : 15, fill: system.colour, stroke: "var(--paper)", strokeWidth: 3, ariaLabel: () => `bimodal ${system.name}` }));
  }
  marks.push(page.tip(everything, {
    x: "x", y: "y", fx: "tuning",
    title: (d) => `${d.cell.system}, ${d.cell.tuning}${d.cell.valid ? "" : " (invalid)"}\np${percentile(d.x)}  ${us(d.y)} µs\nruns ${us(d.low)} to ${us(d.high)} µs`,
  }));
  const nines = NINES.filter(([x]) => x <= domains.x[1] + 0.01);
  const y = latencyAxis(domains.us, page.scale(), `↑ ${group.metric}`);
  return {
    height: 340,
    marginLeft: 62,
    x: { domain: domains.x, ticks: nines.map(([x]) => x), tickFormat: (x) => nines.find(([at]) => at === x)[1], label: `per cent of ${group.noun} →`, grid: true },
    y: y.options,
    fx: { domain: page.shownTunings(group) },
    marks: [...y.marks, ...marks],
  };
}

function ecdfPlot(group, size, domains, page) {
  const cells = group.cells.filter((cell) => cell.payload === size && page.isShown(cell) && evenOf(cell).length > 1);
  if (cells.length === 0) return null;
  const points = (cell) => evenOf(cell).map((x, step, all) => ({ x, y: (step + 0.5) / 2, cell, tuning: cell.tuning, all }));
  const marks = [];
  const everything = [];
  for (const system of page.shownSystems()) {
    const own = cells.filter((cell) => cell.system === system.name);
    for (const isValid of [true, false]) {
      const drawn = own.filter((cell) => cell.valid === isValid).flatMap(points);
      const kind = isValid ? "ecdf" : "invalid ecdf";
      marks.push(Plot.line(drawn, { x: "x", y: "y", fx: "tuning", z: "tuning", clip: true, ...lineLook(page, system, isValid), ariaLabel: (d) => `${kind} ${system.name}, ${d.tuning}` }));
      everything.push(...drawn);
    }
    // Signs lie apart, so that lines of one hue can be distinguished.
    const place = 20 + ((7 * page.shownSystems().indexOf(system)) % 50);
    const signs = own.flatMap((cell) => points(cell).filter((point) => Math.abs(point.y - place) < 0.26).slice(0, 1));
    if (!system.floor) marks.push(Plot.dot(signs, { x: "x", y: "y", fx: "tuning", r: 3.2, symbol: system.symbol, fill: system.colour, ariaLabel: () => `sign ${system.name}` }));
  }
  marks.push(page.tip(everything, {
    x: "x", y: "y", fx: "tuning",
    title: (d) => `${d.cell.system}, ${d.cell.tuning}${d.cell.valid ? "" : " (invalid)"}\n${d.y.toFixed(1)} % within ${us(d.x)} µs`,
  }));
  const isLog = page.scale() === "log";
  const domain = isLog ? logDomain(domains.even) : [0, Math.max(...domains.even) * 1.04];
  const ticks = isLog ? logTicks(domain) : d3.ticks(...domain, 5);
  return {
    height: 340,
    x: { type: page.scale(), domain, label: null },
    y: { domain: [0, 100], label: null },
    fx: { domain: page.shownTunings(group) },
    marks: [
      Plot.gridX(ticks), Plot.gridY([0, 25, 50, 75, 100]),
      Plot.axisX(roomy(ticks, isLog), { text: (value) => quantity(value, "us"), label: `${group.metric} →`, tickSize: 4 }),
      Plot.axisY([0, 25, 50, 75, 100], { text: (value) => `${value} %`, label: `↑ ${group.noun} that took at most this long`, tickSize: 4 }),
      ...marks,
    ],
  };
}
