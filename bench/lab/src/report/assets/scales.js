// Numbers and scales that the plots share.
"use strict";

const us = (value) =>
  value == null ? "–" : value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);

/** `1 subscriber`, `3 subscribers`. */
const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** The percentile for a number of nines, with as many digits as it needs. */
const percentile = (nines) => (100 * (1 - 10 ** -nines)).toFixed(Math.max(0, Math.ceil(nines) - 1));

/** 1, 2, 5, 10, 20 … within a domain; finer steps if these are too few. */
function logTicks([low, high]) {
  const within = (digits) => {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
      for (const digit of digits) ticks.push(digit * 10 ** power);
    }
    return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  };
  const steps = [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7]].map(within);
  return steps.find((ticks) => ticks.length > 4) || d3.ticks(low, high, 5);
}

/** A logarithmic domain with a small margin, wide enough for at least two ticks. */
function logDomain(values) {
  const good = values.filter((value) => value > 0);
  if (good.length === 0) return [1, 10];
  const low = Math.min(...good), high = Math.max(...good);
  const air = high / low < 3 ? Math.sqrt(3 / (high / low)) : 1.12;
  return [low / air, high * air];
}

/** Grid and axis at given ticks of a logarithmic scale; Plot itself would drop some labels. */
const logMarks = (ticks, label, text) => [
  Plot.gridY(ticks),
  Plot.axisY(ticks, { label, text, tickSize: 4 }),
];

/** A vertical axis of latencies in µs, logarithmic or linear from zero: scale, grid and ticks. */
function latencyAxis(values, scale, label, unit = "us") {
  const text = (value) => quantity(value, unit);
  if (scale === "log") {
    const domain = logDomain(values);
    return { options: { type: "log", domain, label: null }, marks: logMarks(logTicks(domain), label, text) };
  }
  const domain = [0, Math.max(0, ...values) * 1.06 || 1];
  return { options: { type: "linear", domain, label: null }, marks: logMarks(d3.ticks(...domain, 5), label, text) };
}

/** Ticks whose labels do not overlap: only powers of ten if there are many decades. */
function roomy(ticks, isLog) {
  const decades = ticks.filter((tick) => Number.isInteger(+Math.log10(tick).toFixed(9)));
  return isLog && ticks.length > 7 && decades.length > 1 ? decades : ticks;
}

/** A quantity with its unit, for ticks and tips. */
function quantity(value, unit) {
  const short = (scaled) => String(+scaled.toPrecision(3));
  const steps = {
    us: [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]],
    ns: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
    s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]],
    MB: [[1e3, "GB"], [1, "MB"], [1e-3, "kB"]],
    MB_per_s: [[1e3, "GB/s"], [1, "MB/s"], [1e-3, "kB/s"], [1e-6, "B/s"]],
    per_s: [[1e6, "M/s"], [1e3, "k/s"], [1, "/s"]],
    percent: [[1, "%"]],
  }[unit];
  if (value === 0 && unit !== "percent") return "0";
  const [scale, name] = steps.find(([least]) => Math.abs(value) >= least * 0.9999) || steps.at(-1);
  return `${short(value / scale)} ${name}`;
}

/** Ticks of a linear scale, as many as have room for their labels on this many pixels. */
function roomyLinear(domain, pixels, text) {
  const half = (tick) => 3.5 * text(tick).length + 4;
  const at = (tick) => ((tick - domain[0]) / (domain[1] - domain[0])) * pixels;
  const fits = (ticks) => ticks.every((tick, place) => place === 0 || at(tick) - at(ticks[place - 1]) > half(tick) + half(ticks[place - 1]));
  return [9, 7, 5, 4, 3, 2].map((number) => d3.ticks(...domain, number)).find(fits) || [domain[0]];
}

/** An axis of numbers by doublings, with 0 apart at its left; `label` gets a number and its
    index. */
function numberAxis(numbers, gap, title, label) {
  const positive = numbers.filter((number) => number > 0);
  const zero = (positive.length ? Math.log2(positive[0]) : 0) - gap;
  const at = (number) => (number > 0 ? Math.log2(number) : zero);
  const labels = new Map(numbers.map((number, place) => [at(number), label(number, place)]));
  const places = [...labels.keys()];
  const isApart = numbers[0] === 0 && positive.length > 0;
  return {
    at, zero, labels,
    marks: isApart ? [Plot.ruleX([zero + gap / 2], { stroke: "var(--rule)", strokeDasharray: "1 3", ariaLabel: () => "break of the axis" })] : [],
    options: { domain: [Math.min(...places) - 0.5, Math.max(...places) + 0.7], ticks: places, tickFormat: (x) => labels.get(x), label: title },
  };
}

/** The cells of a system on such an axis, with intervals and single runs; × marks invalid ones. */
function cellMarks(system, sound, unsound, runs) {
  const common = { x: "x", fx: "tuning" };
  const ranged = sound.filter((point) => point.interval);
  return [
    Plot.ruleX(ranged, { ...common, y1: (d) => d.interval[0], y2: (d) => d.interval[1], stroke: system.colour, strokeWidth: 5, strokeOpacity: 0.35, ariaLabel: () => `interval ${system.name}` }),
    Plot.dot(runs, { ...common, y: "y", r: 1.7, fill: system.colour, fillOpacity: 0.45, dx: 7, ariaLabel: () => `runs ${system.name}` }),
    Plot.dot(sound, { ...common, y: "y", r: 3.8, symbol: system.symbol, fill: system.colour, ariaLabel: () => `point ${system.name}` }),
    Plot.text(unsound, { ...common, y: "y", text: () => "×", fontSize: 17, fontWeight: 700, fill: system.colour, ariaLabel: () => `invalid ${system.name}` }),
  ];
}
