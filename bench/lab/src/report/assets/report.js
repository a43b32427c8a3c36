// Draws the plots of a report from the JSON inside it, and keeps what is shown in the URL's hash:
// #hide=os.pipe,os.tcp&without=awake&sizes=0,65536&points=group-8&statistic=p99&cpu=receiver for the
// plots,
// &group=group-0&tuning=tuned&payload=64 for the table.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const systems = new Map(data.systems.map((system) => [system.name, system]));
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ------------------------------------------------------------------ what is shown

  const state = { hide: new Set(), without: new Set(), sizes: null, points: null, statistic: "p50", cpu: "all", group: "", tuning: "", payload: "" };

  // A floor that spins says little about systems that sleep, and would flatten their curves.
  const peers = data.systems.filter((system) => !system.floor);
  const isAlone = (system) => system.wait !== "" && !peers.some((peer) => peer.wait === system.wait);
  const asideAtFirst = data.systems.filter((system) => system.floor && peers.length > 0 && isAlone(system)).map((system) => system.name);

  function readHash() {
    const given = new URLSearchParams(location.hash.slice(1));
    const list = (key) => (given.get(key) || "").split(",").filter(Boolean);
    state.hide = new Set(given.has("hide") ? list("hide") : asideAtFirst);
    state.without = new Set(list("without"));
    state.sizes = given.has("sizes") ? new Set(list("sizes").map(Number)) : null;
    state.points = given.has("points") ? new Set(list("points")) : null;
    state.group = given.get("group") || "";
    state.tuning = given.get("tuning") || "";
    state.payload = given.get("payload") || "";
    state.statistic = given.get("statistic") === "p99" ? "p99" : "p50";
    state.cpu = given.get("cpu") === "receiver" ? "receiver" : "all";
  }

  function writeHash() {
    const parts = [];
    const put = (key, value) => parts.push(`${key}=${encodeURIComponent(value).replaceAll("%2C", ",")}`);
    if ([...state.hide].join() !== asideAtFirst.join()) put("hide", [...state.hide].join(","));
    if (state.without.size) put("without", [...state.without].join(","));
    if (state.sizes) put("sizes", [...state.sizes].join(","));
    if (state.points) put("points", [...state.points].join(","));
    if (state.group) put("group", state.group);
    if (state.tuning) put("tuning", state.tuning);
    if (state.payload) put("payload", state.payload);
    if (state.statistic !== "p50") put("statistic", state.statistic);
    if (state.cpu !== "all") put("cpu", state.cpu);
    const hash = "#" + parts.join("&");
    if (hash !== (location.hash || "#")) location.replace(hash);
  }

  const isShown = (cell) => !state.hide.has(cell.system) && !state.without.has(cell.tuning);
  const shownTunings = (group) => group.tunings.filter((tuning) => !state.without.has(tuning));
  const shownSystems = () => data.systems.filter((system) => !state.hide.has(system.name));

  function shownSizes(group) {
    const ends = [group.payloads[0], group.payloads[group.payloads.length - 1]];
    return group.payloads.filter((size) => (state.sizes ? state.sizes.has(size) : ends.includes(size)));
  }

  /** The groups that differ from this one in the value of a swept parameter. */
  const siblings = (group) => data.groups.filter((other) => other.is_swept && other.scenario === group.scenario);

  /** Of a swept parameter, the first and the last value at first: all of them would fill pages. */
  function isPointShown(group) {
    if (!group.is_swept) return true;
    const kin = siblings(group);
    const chosen = kin.filter((other) => state.points?.has(other.id));
    return (chosen.length ? chosen : [kin[0], kin[kin.length - 1]]).includes(group);
  }

  // ------------------------------------------------------------------ drawing

  const lineOf = (system) => ({
    stroke: system.colour,
    strokeWidth: system.floor ? 1.1 : 1.9,
    strokeDasharray: system.floor ? system.dash : null,
  });

  const tip = (points, options) => Plot.tip(points, Plot.pointer({ maxRadius: 36, fontSize: 12, ...options }));

  function draw(holder, label, options) {
    holder.replaceChildren();
    if (options === null) {
      holder.append(Object.assign(document.createElement("p"), { className: "remark", textContent: "Nothing to show." }));
      return;
    }
    const facets = options.fx.domain.length;
    const width = Math.min(holder.clientWidth || 1100, facets === 1 ? 760 : 1280);
    holder.append(Plot.plot({
      width, marginLeft: 52, marginRight: 14, marginTop: 34, marginBottom: 40, ariaLabel: label, ...options,
      fx: { label: null, padding: 0.05, ...options.fx },
    }));
  }

  // ------------------------------------------------------------------ percentiles on a nines axis

  const NINES = [[0, "0"], [-Math.log10(0.5), "50"], [1, "90"], [2, "99"], [3, "99.9"], [4, "99.99"], [5, "99.999"], [6, "99.9999"]];

  function percentilePlot(group, size, domains) {
    const cells = group.cells.filter((cell) => cell.payload === size && isShown(cell) && cell.curve.length > 1);
    if (cells.length === 0) return null;
    const points = (cell) => cell.curve.map(([x, y, low, high]) => ({ x, y, low, high, cell, tuning: cell.tuning }));
    const marks = [];
    const everything = [];
    for (const system of shownSystems()) {
      const own = cells.filter((cell) => cell.system === system.name);
      const sound = own.filter((cell) => cell.valid).flatMap(points);
      const unsound = own.filter((cell) => !cell.valid).flatMap(points);
      const common = { x: "x", fx: "tuning", z: "tuning", clip: true };
      if (!system.floor) {
        marks.push(Plot.areaY(sound, { ...common, y1: "low", y2: "high", fill: system.colour, fillOpacity: 0.14, ariaLabel: () => `band ${system.name}` }));
      }
      marks.push(Plot.line(sound, { ...common, y: "y", ...lineOf(system), ariaLabel: (d) => `curve ${system.name}, ${d.tuning}` }));
      marks.push(Plot.line(unsound, { ...common, y: "y", ...lineOf(system), strokeOpacity: 0.45, strokeDasharray: "1 4", ariaLabel: (d) => `invalid curve ${system.name}, ${d.tuning}` }));
      const ends = own.map((cell) => points(cell).at(-1));
      if (!system.floor) marks.push(Plot.dot(ends, { x: "x", y: "y", fx: "tuning", r: 3.2, symbol: system.symbol, fill: system.colour, ariaLabel: () => `end ${system.name}` }));
      everything.push(...sound, ...unsound);
    }
    for (const system of shownSystems()) {
      const mixed = cells.filter((cell) => cell.system === system.name && cell.mixed).map((cell) => {
        const lower = cell.placements.reduce((a, b) => ((a.p50 ?? Infinity) <= (b.p50 ?? Infinity) ? a : b));
        const split = -Math.log10(1 - lower.share);
        const near = cell.curve.reduce((a, b) => (Math.abs(b[0] - split) < Math.abs(a[0] - split) ? b : a));
        return { x: near[0], y: near[1], tuning: cell.tuning };
      });
      marks.push(Plot.text(mixed, { x: "x", y: "y", fx: "tuning", text: () => "◐", fontSize: system.floor ? 11 : 15, fill: system.colour, stroke: "var(--paper)", strokeWidth: 3, ariaLabel: () => `bimodal ${system.name}` }));
    }
    marks.push(tip(everything, {
      x: "x", y: "y", fx: "tuning",
      title: (d) => `${d.cell.system}, ${d.cell.tuning}${d.cell.valid ? "" : " (invalid)"}\np${percentile(d.x)}  ${us(d.y)} µs\nruns ${us(d.low)} to ${us(d.high)} µs`,
    }));
    const nines = NINES.filter(([x]) => x <= domains.x[1] + 0.01);
    return {
      height: 340,
      x: { domain: domains.x, ticks: nines.map(([x]) => x), tickFormat: (x) => nines.find(([at]) => at === x)[1], label: `per cent of ${group.noun} →`, grid: true },
      y: { type: "log", domain: domains.y },
      fx: { domain: shownTunings(group) },
      marks: [microseconds(domains.y, `↑ ${group.metric}, µs`), ...marks],
    };
  }

  /** Draws the plots of the payloads that are wanted, and hides the others. */
  function drawSizes(group, holder, name, options) {
    const wanted = shownSizes(group);
    for (const plot of all(".plot", holder)) {
      const size = Number(plot.dataset.payload);
      plot.parentElement.hidden = !wanted.includes(size);
      if (plot.parentElement.hidden) continue;
      draw(plot, `${name}, ${group.title}, ${plot.dataset.label}`, options(size));
    }
  }

  function drawPercentiles(group, holder) {
    const curves = group.cells.filter((cell) => isShown(cell) && cell.curve.length > 1 && shownSizes(group).includes(cell.payload));
    const points = curves.flatMap((cell) => cell.curve);
    const domains = {
      x: [0, Math.max(1, ...points.map((point) => point[0])) * 1.02],
      // From the 10th percentile: the luckiest few would take half the height.
      y: logDomain(points.filter((point) => point[0] > 0.045).flatMap((point) => [point[1], point[3]])),
    };
    drawSizes(group, holder, "Percentiles", (size) => percentilePlot(group, size, domains));
  }

  // ------------------------------------------------------------------ run by run

  const middle = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  };

  function runPlot(group) {
    const points = group.cells.filter(isShown).flatMap((cell) => {
      const medians = cell.runs.filter((run) => run.valid && run.p50 != null).map((run) => run.p50);
      if (medians.length === 0) return [];
      const centre = middle(medians);
      return cell.runs.filter((run) => run.p50 != null).map((run) => ({ x: run.order, y: run.p50 / centre, run, cell, tuning: cell.tuning }));
    });
    if (points.length === 0) return null;
    const marks = [Plot.ruleY([1], { stroke: "var(--muted)" })];
    for (const system of shownSystems()) {
      const own = points.filter((point) => point.cell.system === system.name);
      const common = { x: "x", y: "y", fx: "tuning" };
      const look = system.floor ? { r: 1.8, fill: system.colour, fillOpacity: 0.7 } : { r: 3, symbol: system.symbol, fill: system.colour, fillOpacity: 0.8 };
      marks.push(Plot.dot(own.filter((point) => point.run.valid), { ...common, ...look, ariaLabel: () => `runs ${system.name}` }));
      marks.push(Plot.text(own.filter((point) => !point.run.valid), { ...common, text: () => "×", fontSize: 16, fontWeight: 700, fill: system.colour, ariaLabel: () => `invalid runs ${system.name}` }));
    }
    const label = (cell) => group.payload_labels[group.payloads.indexOf(cell.payload)];
    marks.push(tip(points, {
      x: "x", y: "y", fx: "tuning",
      title: (d) => `${d.cell.system}, ${label(d.cell)}, ${d.cell.tuning}\nrun ${d.x + 1} of the plan${d.run.valid ? "" : " (invalid)"}\np50 ${us(d.run.p50)} µs`,
    }));
    const orders = points.map((point) => point.x);
    const extent = Math.max(1.15, ...points.flatMap(({ y }) => [y, 1 / y])) * 1.04;
    const ticks = RATIOS.find((ratios) => ratios.at(-1) >= extent ** 0.6) || RATIOS.at(-1);
    const shown = ticks.flatMap((tick) => (tick === 1 ? [1] : [tick, 1 / tick])).filter((tick) => tick >= 1 / extent && tick <= extent);
    return {
      height: 260,
      x: { label: "order of execution →", domain: [Math.min(...orders) - 1, Math.max(...orders) + 1] },
      y: { type: "log", domain: [1 / extent, extent] },
      fx: { domain: shownTunings(group) },
      marks: [logMarks(shown, "↑ p50 of the run over that of its cell", (d) => (d < 1 ? `÷${+(1 / d).toPrecision(3)}` : `×${+d.toPrecision(3)}`)), ...marks],
    };
  }

  /** Ticks of a scale of ratios, by how far it extends. */
  const RATIOS = [[1, 1.05, 1.1], [1, 1.1, 1.2], [1, 1.25, 1.5], [1, 1.5, 2, 3], [1, 2, 5], [1, 3, 10, 30], [1, 10, 100]];

  // ------------------------------------------------------------------ the page

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function holder(section, group, extra = {}) {
    const plot = element("div", { className: "plot" });
    Object.assign(plot.dataset, { group: group.id, ...extra });
    const figure = element("figure", {}, ...(extra.label ? [element("figcaption", { textContent: extra.label })] : []), plot);
    section.append(figure);
    return plot;
  }

  const drawings = [];

  function build() {
    const page = { systems, shownSystems, isShown, shownTunings, lineOf, tip, cpu: () => state.cpu, statistic: () => state.statistic };
    buildSweeps(page);
    for (const group of data.groups) {
      const heading = () => (data.groups.length > 1 ? [element("h3", { textContent: group.title })] : []);
      const drawing = (part, drawn) => drawings.push(() => {
        part.hidden = !isPointShown(group);
        if (!part.hidden) drawn();
      });
      if (group.is_swept && siblings(group)[0] === group) {
        for (const id of ["pareto", "percentiles", "runs"]) document.getElementById(id).append(pointChoice(group));
      }
      const costs = element("div", {}, ...heading());
      if (group.payloads.length > 2) costs.append(sizeChoice(group));
      group.payloads.forEach((payload, place) => holder(costs, group, { payload, label: group.payload_labels[place] }));
      document.getElementById("pareto").append(costs);
      drawing(costs, () => drawSizes(group, costs, "CPU against latency", (size) => paretoPlot(group, size, page)));

      const percentiles = element("div", {}, ...heading());
      if (group.payloads.length > 2) percentiles.append(sizeChoice(group));
      group.payloads.forEach((payload, place) => holder(percentiles, group, { payload, label: group.payload_labels[place] }));
      document.getElementById("percentiles").append(percentiles);
      drawing(percentiles, () => drawPercentiles(group, percentiles));

      if (group.has_sizes) {
        const sizes = document.getElementById("sizes");
        sizes.append(...heading());
        const plot = holder(sizes, group);
        drawings.push(() => draw(plot, `Latency against size, ${group.title}`, sizePlot(group, page)));
      }

      const runs = element("div", {}, ...heading());
      document.getElementById("runs").append(runs);
      if (group.cells.some((cell) => cell.runs.length > 1)) {
        const plot = holder(runs, group);
        drawing(runs, () => draw(plot, `Run by run, ${group.title}`, runPlot(group)));
      } else {
        drawing(runs, () => {});
        runs.append(element("p", { className: "remark", textContent: "One run of each cell: no spread to show." }));
      }
    }
    if (!data.groups.some((group) => group.has_sizes)) document.getElementById("sizes")?.remove();
    for (const fan of data.fans || []) {
      const section = document.getElementById("publish");
      section.append(element("h3", { textContent: fan.title }));
      fan.payloads.forEach((payload, place) => {
        const plot = holder(section, fan, { payload, label: fan.payload_labels[place] });
        drawings.push(() => draw(plot, `Publish time, ${fan.title}, ${fan.payload_labels[place]}`, publishPlot(fan, payload, page)));
      });
    }
    const select = document.getElementById("filter-payload");
    const sizes = new Map([...data.groups, ...(data.fans || [])].flatMap((group) => group.payloads.map((size, place) => [size, group.payload_labels[place]])));
    for (const [size, label] of [...sizes].sort((a, b) => a[0] - b[0])) select.append(element("option", { value: size, textContent: label }));
  }

  function buildSweeps(page) {
    for (const sweep of data.sweeps || []) {
      const rows = element("div", { className: "sweep" });
      document.getElementById("sweeps").append(element("h3", { textContent: sweep.title }), rows);
      drawings.push(() => drawSweep(rows, sweep, page, element));
    }
  }

  function pointChoice(group) {
    const boxes = siblings(group).map((other) => {
      const box = element("input", { type: "checkbox", name: "point", value: other.id });
      return element("label", {}, box, " " + other.point);
    });
    const field = element("fieldset", { className: "controls" }, element("legend", { textContent: `${group.scenario}, drawn` }), ...boxes);
    field.dataset.scenario = group.scenario;
    return field;
  }

  function sizeChoice(group) {
    const boxes = group.payloads.map((size, place) => {
      const box = element("input", { type: "checkbox", name: "size", value: size });
      return element("label", {}, box, " " + group.payload_labels[place]);
    });
    const field = element("fieldset", { className: "controls" }, element("legend", { textContent: "Payloads drawn" }), ...boxes);
    field.dataset.group = group.id;
    return field;
  }

  function showControls() {
    for (const box of all("input[name=system]")) box.checked = !state.hide.has(box.value);
    for (const box of all("input[name=tuning]")) box.checked = !state.without.has(box.value);
    for (const group of data.groups) {
      const wanted = shownSizes(group);
      for (const box of all(`fieldset[data-group="${group.id}"] input`)) box.checked = wanted.includes(Number(box.value));
    }
    for (const box of all("input[name=point]")) box.checked = isPointShown(data.groups.find((group) => group.id === box.value));
    for (const button of all("#statistics input")) button.checked = button.value === state.statistic;
    for (const button of all("#cpu-of input")) button.checked = button.value === state.cpu;
    for (const key of ["group", "tuning", "payload"]) {
      const select = document.getElementById(`filter-${key}`);
      if (select) select.value = state[key];
    }
  }

  function filterRows() {
    const differs = (wanted, found) => wanted !== "" && wanted !== found;
    for (const body of all("#cells tbody")) {
      body.hidden = differs(state.group, body.dataset.group) || differs(state.payload, body.dataset.payload);
      for (const row of all("tr[data-tuning]", body)) row.hidden = differs(state.tuning, row.dataset.tuning);
    }
  }

  function show() {
    showControls();
    filterRows();
    for (const drawing of drawings) drawing();
    document.documentElement.dataset.drawn = "yes";
  }

  function readControls(event) {
    const { name, value, checked, id } = event.target;
    const toggle = (set) => (checked ? set.delete(value) : set.add(value));
    if (name === "system") toggle(state.hide);
    else if (name === "tuning") toggle(state.without);
    else if (name === "statistic") state.statistic = value;
    else if (name === "cpu") state.cpu = value;
    else if (id.startsWith("filter-")) state[id.slice("filter-".length)] = value;
    else if (name === "size") {
      const field = event.target.closest("fieldset");
      state.sizes = new Set(all("input:checked", field).map((box) => Number(box.value)));
    } else if (name === "point") {
      // What other scenarios show stays as it is.
      const others = data.groups.filter((group) => group.is_swept && group.id !== value && isPointShown(group)).map((group) => group.id);
      state.points = new Set(checked ? [...others, value] : others);
    } else return;
    writeHash();
    show();
  }

  build();
  readHash();
  show();
  document.addEventListener("change", readControls);
  addEventListener("hashchange", () => { readHash(); show(); });
  let resizing = 0;
  addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(show, 150); });
  addEventListener("beforeprint", () => { for (const details of all("details")) details.open = true; });
})();
