// Where the time of messages goes: stacked bars of all, and of those above p99, for each system.
"use strict";

/** By the numbers of `Stage` in the analysis. Parts of the way back have the colour of the way there. */
const STAGES = [
  { name: "lateness", colour: 0 }, { name: "loan", colour: 1 }, { name: "fill", colour: 2 },
  { name: "publish", colour: 3 }, { name: "wake", colour: 4 }, { name: "take", colour: 5 },
  { name: "wake and take", colour: 6 },
  { name: "publish back", colour: 3, pale: true }, { name: "wake back", colour: 4, pale: true },
  { name: "take back", colour: 5, pale: true }, { name: "wake and take back", colour: 6, pale: true },
];
const stageColour = (stage) => `var(--stage-${STAGES[stage].colour})`;
const stageOpacity = (stage) => (STAGES[stage].pale ? 0.55 : 1);

const ALL_MESSAGES = "all messages", SLOW_MESSAGES = "messages above p99";

/** The parts of a cell's bar: what passes before the latency leftwards of zero, the rest rightwards. */
function stageBar(cell, which, isShare) {
  const column = which === ALL_MESSAGES ? 2 : 3;
  const parts = cell.stages.parts.filter((part) => part[column] != null);
  const within = parts.filter(([, isBefore]) => !isBefore), before = parts.filter(([, isBefore]) => isBefore);
  const total = within.reduce((sum, part) => sum + part[column], 0);
  const scale = isShare ? (total > 0 ? 100 / total : 0) : 1;
  const bars = [];
  let at = 0;
  for (const part of within) {
    bars.push({ stage: part[0], us: part[column], x1: at, x2: at += part[column] * scale });
  }
  at = 0;
  for (const part of isShare ? [] : [...before].reverse()) {
    bars.push({ stage: part[0], us: part[column], x2: at, x1: at -= part[column], isBefore: true });
  }
  return { total, end: within.length ? total * scale : null, bars: bars.map((bar) => ({ ...bar, cell, which, total, share: total > 0 ? bar.us / total : 0 })) };
}

/** Options for Plot of one tuning, or null if nothing is shown. */
function stagePlot(group, payload, tuning, page, room) {
  const isShare = page.bars() === "share";
  const cells = group.cells.filter((cell) => cell.payload === payload && cell.tuning === tuning && page.isShown(cell) && cell.stages);
  if (cells.length === 0) return null;
  const order = [...cells].sort((a, b) => stageBar(a, ALL_MESSAGES).total - stageBar(b, ALL_MESSAGES).total);
  const names = order.map((cell) => cell.system);
  const facets = [ALL_MESSAGES, SLOW_MESSAGES];
  const made = facets.flatMap((which) => order.map((cell) => ({ cell, which, ...stageBar(cell, which, isShare) })));
  const bars = made.flatMap((one) => one.bars.filter((bar) => bar.x2 > bar.x1));
  const longest = Math.max(...made.map((one) => one.end ?? 0)), first = Math.min(0, ...bars.map((bar) => bar.x1));
  const isNarrow = room < 620;
  const marginLeft = 12 + Math.max(...names.map((name) => name.length)) * (isNarrow ? 5.6 : 6.4);
  // Beside the longest bar there is room for its sum; what is before zero takes a third at most.
  const domain = [Math.max(first, -longest / 2), longest * (isNarrow ? 1.5 : 1.22)];
  const width = (room - marginLeft) / (isNarrow ? 1 : 2.1);
  const pixels = (bar) => ((bar.x2 - bar.x1) / (domain[1] - domain[0])) * width;
  const common = { y: (d) => d.cell.system, fx: "which" };
  const roomy = bars.filter((bar) => pixels(bar) > 6.4 * STAGES[bar.stage].name.length + 8 && bar.x1 >= domain[0]);
  const words = (bar) => `${STAGES[bar.stage].name}${bar.isBefore ? " (before the latency begins)" : ""}: ${us(bar.us)} µs${bar.isBefore ? "" : `, ${(100 * bar.share).toFixed(1)} %`}`;
  return {
    width: room,
    facets: isNarrow ? facets : undefined,
    height: 44 + 20 * names.length + 40,
    marginLeft, marginRight: 10,
    x: { domain, label: null },
    y: { domain: names, label: null, padding: 0.22 },
    fx: { domain: facets },
    marks: [
      Plot.axisX(d3.ticks(...domain, isNarrow ? 3 : 5).filter((tick) => tick <= longest), { text: (value) => (isShare ? `${value} %` : value < 0 ? `−${quantity(-value, "us")}` : quantity(value, "us")), tickSize: 4, label: null }),
      Plot.axisY({ tickSize: 0, fontSize: isNarrow ? 10 : 11.5 }),
      Plot.barX(bars, { ...common, x1: "x1", x2: "x2", clip: true, fill: (d) => stageColour(d.stage), fillOpacity: (d) => stageOpacity(d.stage), stroke: "var(--paper)", strokeWidth: 0.6, title: (d) => `${d.cell.system}, ${tuning}, ${d.which}\n${words(d)}`, ariaLabel: (d) => `stage ${STAGES[d.stage].name} of ${d.cell.system}, ${d.which}` }),
      Plot.text(roomy, { ...common, x: (d) => (d.x1 + d.x2) / 2, text: (d) => STAGES[d.stage].name, fontSize: 10.5, fill: (d) => (STAGES[d.stage].pale ? "var(--ink)" : "var(--on-stage)"), ariaLabel: () => "part" }),
      Plot.text(made, { ...common, x: (d) => d.end ?? 0, text: (d) => (d.end == null ? "p99 withheld" : `${us(d.total)} µs`), textAnchor: "start", dx: 5, fontSize: 11, fill: "var(--muted)", ariaLabel: () => "sum" }),
      Plot.ruleX([0], { stroke: "var(--muted)" }),
    ],
  };
}

/** What the bars of some cells do not show, and why. */
function stageRemarks(cells) {
  const has = (cell, stage) => cell.stages.parts.some((part) => part[0] === stage);
  const names = (wanted) => [...new Set(cells.filter(wanted).map((cell) => cell.system))];
  const remarks = [];
  const say = (systems, text) => { if (systems.length) remarks.push(`${systems.join(", ")}: ${text}`); };
  say(names((cell) => !has(cell, 1) && !has(cell, 2)), "no loan to be had or filled; what is written is copied within publish.");
  say(names((cell) => has(cell, 6) || has(cell, 10)), "waits inside its take, or is called: wake and take are one.");
  say(names((cell) => !has(cell, 0)), "no schedule, hence no lateness.");
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
    const own = shown.filter((cell) => cell.tuning === tuning);
    if (own.length === 0) continue;
    if (group.tunings.length > 1) holder.append(element("h4", { textContent: tuning }));
    const part = element("div", {});
    holder.append(part);
    const sums = own.map((cell) => ({ name: cell.system, value: stageBar(cell, ALL_MESSAGES).total }));
    const sentence = `Mean composition of the latency, ${group.title}, ${tuning}: ${extremes(sums, (value) => `${us(value)} µs`)}`;
    fillPlot(part, sentence, stagePlot(group, payload, tuning, page, room));
  }
  const remarks = stageRemarks(shown);
  if (remarks.length) holder.append(element("ul", { className: "notes" }, ...remarks.map((text) => element("li", { textContent: text }))));
}

function stageKeys(list, cells) {
  const used = new Set(cells.flatMap((cell) => cell.stages?.parts.map((part) => part[0]) || []));
  for (const [stage, { name }] of STAGES.entries()) {
    if (!used.has(stage)) continue;
    const swatch = element("i", { className: "swatch" });
    swatch.style.background = stageColour(stage);
    swatch.style.opacity = stageOpacity(stage);
    list.append(element("li", {}, swatch, name));
  }
}
