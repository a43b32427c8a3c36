// Where the time of messages goes: stacked bars for all messages and for those above p99, for each
// system.
"use strict";

/** By the names of `Stage` in the analysis. A part of the way back has the colour of the same
    part of the way there. */
const STAGES = {
  lateness: { name: "lateness", colour: 0 }, loan: { name: "loan", colour: 1 }, fill: { name: "fill", colour: 2 },
  publish: { name: "publish", colour: 3 }, wake: { name: "wake", colour: 4 }, take: { name: "take", colour: 5 },
  wake_and_take: { name: "wake and take", colour: 6 },
  publish_back: { name: "publish back", colour: 3, pale: true }, wake_back: { name: "wake back", colour: 4, pale: true },
  take_back: { name: "take back", colour: 5, pale: true }, wake_and_take_back: { name: "wake and take back", colour: 6, pale: true },
};
const stageColour = (stage) => `var(--stage-${STAGES[stage].colour})`;
const stageOpacity = (stage) => (STAGES[stage].pale ? 0.55 : 1);

const ALL_MESSAGES = "all messages", SLOW_MESSAGES = "messages above p99";

/** The parts of a cell's bar: those before the latency to the left of zero, the others to the
    right. */
function stageBar(cell, which, isShare) {
  const column = which === ALL_MESSAGES ? "mean_us" : "slow_us";
  const parts = cell.stages.parts.filter((part) => part[column] != null);
  const within = parts.filter((part) => !part.is_before), before = parts.filter((part) => part.is_before);
  const total = within.reduce((sum, part) => sum + part[column], 0);
  const scale = isShare ? (total > 0 ? 100 / total : 0) : 1;
  const bars = [];
  let at = 0;
  for (const part of within) {
    bars.push({ stage: part.stage, us: part[column], x1: at, x2: at += part[column] * scale });
  }
  at = 0;
  for (const part of isShare ? [] : [...before].reverse()) {
    bars.push({ stage: part.stage, us: part[column], x2: at, x1: at -= part[column], isBefore: true });
  }
  return { total, end: within.length ? total * scale : null, bars: bars.map((bar) => ({ ...bar, cell, which, total, share: total > 0 ? bar.us / total : 0 })) };
}

/** Options for Plot of the bars of `cells`, in their order; `room` is their width in pixels. */
function stagePlot(cells, which, page, room) {
  const isShare = page.bars() === "share";
  const made = cells.map((cell) => ({ cell, ...stageBar(cell, which, isShare) }));
  const bars = made.flatMap((one) => one.bars.filter((bar) => bar.x2 > bar.x1));
  const longest = Math.max(...made.map((one) => one.end ?? 0)) || 1, first = Math.min(0, ...bars.map((bar) => bar.x1));
  const names = cells.map((cell) => cell.system);
  const marginLeft = 14 + 6.3 * Math.max(...names.map((name) => name.length)), marginRight = 82;
  // The part before zero takes at most a third.
  const domain = [Math.max(first, -longest / 2), longest];
  const pixels = (bar) => ((bar.x2 - bar.x1) / (domain[1] - domain[0])) * (room - marginLeft - marginRight);
  const y = (d) => d.cell.system;
  const named = bars.filter((bar) => pixels(bar) > 6.4 * STAGES[bar.stage].name.length + 8 && bar.x1 >= domain[0]);
  const words = (bar) => `${STAGES[bar.stage].name}${bar.isBefore ? " (before the latency begins)" : ""}: ${us(bar.us)} µs${bar.isBefore ? "" : `, ${(100 * bar.share).toFixed(1)} %`}`;
  const tick = (value) => (isShare ? `${value} %` : value < 0 ? `−${quantity(-value, "us")}` : quantity(value, "us"));
  return {
    width: room, height: 34 + 19 * names.length, marginLeft, marginRight, marginTop: 4, marginBottom: 26,
    x: { domain, label: null },
    y: { domain: names, label: null, padding: 0.2 },
    marks: [
      Plot.axisX(roomyLinear(domain, room - marginLeft - marginRight, tick), { text: tick, tickSize: 4, label: null }),
      Plot.axisY({ tickSize: 0 }),
      Plot.barX(bars, { y, x1: "x1", x2: "x2", clip: true, fill: (d) => stageColour(d.stage), fillOpacity: (d) => stageOpacity(d.stage), stroke: "var(--paper)", strokeWidth: 0.6, title: (d) => `${d.cell.system}, ${d.cell.tuning}, ${which}\n${words(d)}`, ariaLabel: (d) => `stage ${STAGES[d.stage].name} of ${d.cell.system}, ${d.cell.tuning}, ${which}` }),
      Plot.text(named, { y, x: (d) => (d.x1 + d.x2) / 2, text: (d) => STAGES[d.stage].name, fontSize: 10.5, fill: (d) => (STAGES[d.stage].pale ? "var(--ink)" : "var(--on-stage)"), ariaLabel: () => "part" }),
      Plot.text(made, { y, x: (d) => d.end ?? 0, text: (d) => (d.end == null ? "p99 withheld" : `${us(d.total)} µs`), textAnchor: "start", dx: 5, fontSize: 11, fill: "var(--muted)", ariaLabel: () => "sum" }),
      Plot.ruleX([0], { stroke: "var(--muted)" }),
    ],
  };
}

/** What the bars of some cells leave out, and why. */
function stageRemarks(cells) {
  const has = (cell, stage) => cell.stages.parts.some((part) => part.stage === stage);
  const names = (wanted) => [...new Set(cells.filter(wanted).map((cell) => cell.system))];
  const every = names(() => true).length;
  const remarks = [];
  const say = (systems, text) => { if (systems.length) remarks.push(`${systems.length === every ? "All" : systems.join(", ")}: ${text}`); };
  say(names((cell) => !has(cell, "loan") && !has(cell, "fill")), "without loans; publish copies the written data.");
  say(names((cell) => has(cell, "wake_and_take") || has(cell, "wake_and_take_back")), "waits inside its take or gets callbacks: wake and take are one part.");
  say(names((cell) => !has(cell, "lateness")), "no schedule, so no lateness.");
  return remarks;
}

function drawStages(holder, group, payload, page) {
  holder.replaceChildren();
  const room = Math.min(holder.clientWidth || 1100, 1280);
  const shown = group.cells.filter((cell) => cell.payload === payload && page.isShown(cell) && cell.stages);
  if (shown.length === 0) {
    holder.append(remark("Nothing to show."));
    return;
  }
  for (const tuning of page.shownTunings(group)) {
    const total = (cell) => stageBar(cell, ALL_MESSAGES).total;
    const own = shown.filter((cell) => cell.tuning === tuning).sort((a, b) => total(a) - total(b));
    if (own.length === 0) continue;
    const pair = element("div", { className: "pair" });
    for (const which of [ALL_MESSAGES, SLOW_MESSAGES]) {
      const part = element("div", {});
      pair.append(element("div", {}, element("h4", { textContent: `${group.tunings.length > 1 ? `${tuning}: ` : ""}${which}` }), part));
      if (which === SLOW_MESSAGES && own.every((cell) => cell.stages.slow_messages === 0)) {
        part.append(remark("p99 is withheld in every cell: fewer than ten messages lie beyond."));
        continue;
      }
      const sums = own.map((cell) => ({ name: cell.system, value: stageBar(cell, which).end }));
      const sentence = `Mean composition of the latency, ${group.title}, ${tuning}, ${which}: ${extremes(sums, (value) => `${us(value)} µs`)}`;
      fillPlot(part, sentence, stagePlot(own, which, page, room < 760 ? room : (room - 24) / 2));
    }
    holder.append(pair);
  }
  const remarks = stageRemarks(shown);
  if (remarks.length) holder.append(element("ul", { className: "notes" }, ...remarks.map((text) => element("li", { textContent: text }))));
}

function stageKeys(list, cells) {
  const used = new Set(cells.flatMap((cell) => cell.stages?.parts.map((part) => part.stage) || []));
  for (const [stage, { name }] of Object.entries(STAGES)) {
    if (!used.has(stage)) continue;
    const swatch = element("i", { className: "swatch" });
    swatch.style.background = stageColour(stage);
    swatch.style.opacity = stageOpacity(stage);
    list.append(element("li", {}, swatch, name));
  }
}
