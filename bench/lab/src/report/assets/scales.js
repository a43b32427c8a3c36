// Numbers and scales that the plots share.
"use strict";

const us = (value) =>
  value == null ? "–" : value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0);

/** Percentile of a number of nines, with as many digits as it deserves. */
const percentile = (nines) => (100 * (1 - 10 ** -nines)).toFixed(Math.max(0, Math.ceil(nines) - 1));

/** 1, 2, 5, 10, 20 … within a domain; finer steps where these would be few. */
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

/** A logarithmic domain with a little air, wide enough for at least two ticks. */
function logDomain(values) {
  const good = values.filter((value) => value > 0);
  if (good.length === 0) return [1, 10];
  const low = Math.min(...good), high = Math.max(...good);
  const air = high / low < 3 ? Math.sqrt(3 / (high / low)) : 1.12;
  return [low / air, high * air];
}

/** Grid and axis at given places of a logarithmic scale: Plot itself would drop some labels. */
const logMarks = (ticks, label, text) => [
  Plot.gridY(ticks),
  Plot.axisY(ticks, { label, text, tickSize: 4 }),
];
const microseconds = (domain, label) => {
  const ticks = logTicks(domain);
  return logMarks(ticks, label, (d) => String(+d.toPrecision(3)));
};
