// Draws the comparison page from the JSON inside it, and keeps the state of the view in the URL's
// hash:
// #show=all&cell=3&as=percent
"use strict";
(() => {
  /** With more cells than this, only those that differ are shown at first. */
  const CELLS_MANY = 30;
  /** Larger ratios are drawn at the edge. */
  const EXTENT_MAX = 12;
  const LOOKS = {
    worse: { fill: "var(--bad)", symbol: "triangle", r: 5, differs: true },
    better: { fill: "var(--good)", symbol: "diamond", r: 5, differs: true },
    "no difference": { fill: "var(--muted)", symbol: "circle", r: 3.4 },
    "too noisy": { fill: "var(--paper)", stroke: "var(--muted)", symbol: "circle", r: 3.4 },
    none: { fill: "var(--muted)", symbol: "circle", r: 1.6 },
  };

  const data = JSON.parse(document.getElementById("data").textContent);
  const shiftable = data.cells.map((cell, place) => ({ ...cell, place })).filter((cell) => cell.shift.length > 1);
  const isDifferent = (cell) => cell.figures.some((figure) => LOOKS[figure.verdict]?.differs);

  const state = { show: "all", cell: null, as: "us" };

  /** The cell whose distribution is shown first: the first that differs, else the first. */
  const atFirst = () => (shiftable.find(isDifferent) || shiftable[0])?.place ?? null;

  function readHash() {
    const given = new URLSearchParams(location.hash.slice(1));
    const many = data.cells.length > CELLS_MANY;
    state.show = { all: "all", different: "different" }[given.get("show")] || (many ? "different" : "all");
    state.as = given.get("as") === "percent" ? "percent" : "us";
    const wanted = Number(given.get("cell") ?? NaN);
    state.cell = shiftable.some((cell) => cell.place === wanted) ? wanted : atFirst();
  }

  function writeHash() {
    const parts = [`show=${state.show}`, `as=${state.as}`];
    if (state.cell !== null) parts.push(`cell=${state.cell}`);
    location.replace("#" + parts.join("&"));
  }

  // ------------------------------------------------------------------ ratios

  const factor = (ratio) => (ratio < 1 ? `÷${+(1 / ratio).toPrecision(3)}` : `×${+ratio.toPrecision(3)}`);

  /** A domain around 1 that holds all signs, and nine of ten lines; other lines end at its edge. */
  function extentOf(points) {
    const far = (values) => values.map((value) => Math.max(value, 1 / value)).sort((a, b) => a - b);
    const lines = far(points.flatMap((point) => point.interval || []));
    const most = lines[Math.floor(0.9 * (lines.length - 1))] ?? 1;
    return Math.min(1.04 * Math.max(1.1, most, ...far(points.map((point) => point.ratio))), EXTENT_MAX);
  }

  function ratioTicks(extent, room) {
    const steps = [[1, 1.05, 1.1], [1, 1.1, 1.2], [1, 1.2, 1.5], [1, 1.5, 2], [1, 2, 5], [1, 3, 10]];
    const fit = steps.find((ticks) => ticks.at(-1) >= extent ** 0.6) || steps.at(-1);
    const kept = room < 280 ? [fit[0], fit.at(-1)] : fit;
    return kept.flatMap((tick) => (tick === 1 ? [1] : [tick, 1 / tick])).filter((tick) => tick <= extent && tick >= 1 / extent);
  }

  function dots(holder, group, points, extent) {
    const width = Math.min(holder.clientWidth || 900, 1100);
    // Names stand above their line if there is no room beside it.
    const narrow = width < 620;
    const longest = Math.max(...points.map((point) => point.name.length));
    const left = narrow ? 10 : Math.min(12 + longest * 6.3, width * 0.5);
    const row = narrow ? 34 : 19;
    const within = (value) => Math.min(Math.max(value, 1 / extent), extent);
    const common = { y: "row" };
    const marks = [Plot.ruleX([1], { stroke: "var(--muted)" })];
    const intervals = points.filter((point) => point.interval);
    marks.push(Plot.ruleY(intervals, { ...common, x1: (d) => within(d.interval[0]), x2: (d) => within(d.interval[1]), stroke: (d) => (LOOKS[d.verdict].differs ? LOOKS[d.verdict].fill : "var(--muted)"), strokeWidth: 1.6, ariaLabel: (d) => `interval ${d.row}` }));
    for (const [verdict, look] of Object.entries(LOOKS)) {
      const own = points.filter((point) => point.verdict === verdict && point.ratio != null);
      const { differs, ...drawn } = look;
      marks.push(Plot.dot(own, { ...common, x: (d) => within(d.ratio), ...drawn, ariaLabel: (d) => `ratio ${d.row}` }));
    }
    if (narrow) {
      marks.push(Plot.text(points, { ...common, frameAnchor: "left", textAnchor: "start", dy: -13, text: "name", fontSize: 11, fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 3 }));
    } else {
      marks.push(Plot.text(points, { ...common, frameAnchor: "left", textAnchor: "end", dx: -8, text: "name", fontSize: 11.5, fill: "var(--ink)" }));
    }
    marks.push(Plot.tip(points.filter((point) => point.ratio != null), Plot.pointerY({
      ...common, x: (d) => within(d.ratio), fontSize: 12, maxRadius: 14,
      title: (d) => `${d.name}\n${group.words}: A ${d.a_text}, B ${d.b_text} ${group.unit}\nB/A ${factor(d.ratio)}${d.interval ? `, ${factor(d.interval[0])} to ${factor(d.interval[1])}` : ""}\n${d.verdict}${d.p_text ? `, p ${d.p_text}` : ""}${d.note ? `\n${d.note}` : ""}`,
    })));
    const ticks = ratioTicks(extent, width - left);
    holder.append(Plot.plot({
      width, height: 46 + points.length * row, marginLeft: left, marginRight: 14, marginTop: 28, marginBottom: 18,
      ariaLabel: `B over A, ${group.words}`,
      x: { type: "log", domain: [1 / extent, extent] },
      y: { type: "band", domain: points.map((point) => point.row), axis: null, padding: 0.1 },
      marks: [Plot.gridX(ticks), Plot.axisX(ticks, { anchor: "top", label: null, text: factor, tickSize: 4 }), ...marks],
    }));
  }

  function drawDots() {
    const holder = document.getElementById("dots");
    holder.replaceChildren();
    const groups = data.figures.map((group) => {
      const points = data.cells.flatMap((cell, place) => {
        if (state.show === "different" && !isDifferent(cell)) return [];
        const figure = cell.figures.find((it) => it.figure === group.figure);
        return figure ? [{ ...figure, name: cell.name, row: place }] : [];
      });
      return { group, points };
    });
    const extent = extentOf(groups.flatMap(({ points }) => points.filter((point) => point.ratio != null)));
    let any = false;
    for (const { group, points } of groups) {
      if (points.length === 0) continue;
      any = true;
      const plot = element("div", { className: "plot" });
      const figure = element("figure", {}, element("figcaption", { textContent: `${group.words}: B over A` }), plot);
      figure.dataset.figure = group.figure;
      holder.append(figure);
      dots(plot, group, points, extent);
    }
    if (!any) holder.append(remark("No cell differs."));
  }

  // ------------------------------------------------------------------ the shift function

  const NINES = [[-Math.log10(0.9), "10"], [-Math.log10(0.5), "50"], [1, "90"], [2, "99"], [3, "99.9"], [4, "99.99"]];
  const nines = (quantile) => -Math.log10(1 - quantile);
  const signed = (value) => (value < 0 ? "−" : "+") + us(Math.abs(value));

  function drawShift() {
    const holder = document.getElementById("shift-plot");
    holder.replaceChildren();
    const cell = state.cell === null ? null : data.cells[state.cell];
    if (cell === null) {
      holder.append(remark("No cell has latencies in both folders."));
      return;
    }
    const percent = state.as === "percent";
    const points = cell.shift.map((point) => {
      const scale = percent ? 100 / point.a_us : 1;
      const [low, high] = (point.interval_us || []).map((end) => end * scale);
      return { ...point, x: nines(point.quantile), y: point.difference_us * scale, low, high };
    });
    const unit = percent ? "% of A" : "µs";
    const end = points.at(-1).x;
    const banded = points.filter((point) => point.low != null);
    const width = Math.min(holder.clientWidth || 900, 900);
    const ticks = NINES.filter(([x]) => x <= end + 0.01 && (width > 480 || x !== NINES[0][0]));
    holder.append(Plot.plot({
      width, height: 320, marginLeft: 56, marginRight: 16, marginTop: 30, marginBottom: 40, ariaLabel: `Shift of ${cell.name}`,
      x: { domain: [0, end * 1.02], ticks: ticks.map(([x]) => x), tickFormat: (x) => ticks.find(([at]) => at === x)[1], label: "per cent of the messages →", grid: true },
      y: { nice: true, grid: true, label: `↑ B − A, ${unit}`, tickFormat: (d) => (d < 0 ? `−${-d}` : `${d}`) },
      marks: [
        Plot.ruleY([0], { stroke: "var(--muted)" }),
        Plot.areaY(banded, { x: "x", y1: "low", y2: "high", fill: "var(--system-0)", fillOpacity: 0.18, ariaLabel: () => "band" }),
        Plot.line(points, { x: "x", y: "y", stroke: "var(--system-0)", strokeWidth: 1.9, ariaLabel: () => "shift" }),
        Plot.dot(points, { x: "x", y: "y", r: 2.6, fill: "var(--system-0)", ariaLabel: (d) => `shift ${d.quantile}` }),
        Plot.tip(points, Plot.pointerX({
          x: "x", y: "y", fontSize: 12,
          title: (d) => `p${+(100 * d.quantile).toPrecision(6)}\nA ${us(d.a_us)} µs\nB − A ${signed(d.difference_us)} µs (${signed((100 * d.difference_us) / d.a_us)} %)${d.interval_us ? `\n95 % ${signed(d.interval_us[0])} to ${signed(d.interval_us[1])} µs` : ""}`,
        })),
      ],
    }));
  }

  // ------------------------------------------------------------------ the page

  function show() {
    for (const radio of document.querySelectorAll("input[type=radio]")) radio.checked = state[radio.name] === radio.value;
    const select = document.getElementById("cell");
    if (state.cell !== null) select.value = String(state.cell);
    drawDots();
    drawShift();
    document.documentElement.dataset.drawn = "yes";
  }

  const select = document.getElementById("cell");
  for (const cell of shiftable) {
    const text = cell.name + (isDifferent(cell) ? " (differs)" : "");
    select.append(element("option", { value: String(cell.place), textContent: text }));
  }
  document.addEventListener("change", ({ target }) => {
    if (!(target.name in state)) return;
    state[target.name] = target.name === "cell" ? Number(target.value) : target.value;
    writeHash();
    show();
  });
  readHash();
  show();
  addEventListener("hashchange", () => { readHash(); show(); });
  let resizing = 0;
  addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(show, 150); });
  addEventListener("beforeprint", () => { for (const details of document.querySelectorAll("details")) details.open = true; });
})();
