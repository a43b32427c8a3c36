// Draws the plots of a report from the JSON inside it: makes their elements and reacts to the
// controls.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  for (const group of [...data.groups, ...(data.publish_groups || [])]) group.cells.forEach(unpackCurve);
  const view = makeView(data), queue = makeQueue(), { state } = view;

  const lineOf = (system) => ({
    stroke: system.colour,
    strokeWidth: system.floor ? 1.1 : 1.9,
    strokeDasharray: system.dash || null,
  });
  const tip = (points, options) => Plot.tip(points, Plot.pointer({ maxRadius: 36, fontSize: 12, ...options }));

  /** The interface of the page to its plots. */
  const page = {
    ...view, lineOf, tip,
    systems: new Map(data.systems.map((system) => [system.name, system])),
    ...Object.fromEntries(Object.keys(CHOICES).map((key) => [key, () => state[key]])),
  };

  // ------------------------------------------------------------------ elements of the plots

  function holder(section, group, extra = {}) {
    const plot = element("div", { className: "plot" });
    Object.assign(plot.dataset, { group: group.id, ...extra });
    section.append(element("figure", {}, ...(extra.label ? [element("figcaption", { textContent: extra.label })] : []), plot));
    return plot;
  }

  const heading = (title, number) => (number > 1 ? [element("h3", { textContent: title })] : []);

  /** Elements that are hidden while `isWanted` returns false. */
  const hideable = [];
  const job = (plot, isWanted, run) => {
    const figure = plot.parentElement;
    hideable.push(() => { figure.hidden = !isWanted(); });
    queue.add(plot, () => { if (!figure.hidden) run(); });
  };

  /** A plot for each payload; `what` is its description. */
  function sized(id, group, what, options) {
    const section = byId(id);
    if (!section) return;
    const part = element("div", {}, ...heading(group.title, data.groups.length));
    if (group.payloads.length > 2) part.append(sizeChoice(group));
    section.append(part);
    const figures = element("div", { className: group.tunings.length > 1 ? "" : "columns" });
    part.append(figures);
    hideable.push(() => { part.hidden = !view.isPointShown(group); });
    group.payloads.forEach((payload, place) => {
      const label = group.payload_labels[place];
      const plot = holder(figures, group, { payload, label });
      const isWanted = () => view.isPointShown(group) && view.shownSizes(group).includes(payload);
      job(plot, isWanted, () => {
        const cells = group.cells.filter((cell) => cell.payload === payload && view.isShown(cell));
        const ends = (key) => extremes(cells.map((cell) => ({ name: `${cell.system} ${cell.tuning}`, value: cell[key] })), (value) => `${us(value)} µs`);
        options(plot, payload, `${what()}, ${group.title}, ${label}. p50: ${ends("p50")}. p99: ${ends("p99")}`);
      });
    });
  }

  function build() {
    for (const sweep of data.sweeps || []) {
      const rows = element("div", { className: "sweep" });
      byId("sweeps").append(element("h3", { textContent: sweep.title }), rows);
      queue.add(rows, () => drawSweep(rows, sweep, page));
    }
    for (const group of data.groups) {
      if (group.is_swept && view.siblings(group)[0] === group) {
        for (const id of ["pareto", "percentiles", "runs", "stages"]) byId(id)?.append(pointChoice(group));
      }
      sized("percentiles", group, () => (state.axis === "ecdf" ? "ECDF" : "Percentiles"), (plot, payload, sentence) => {
        const drawn = state.axis === "ecdf" ? ecdfPlot : percentilePlot;
        fillPlot(plot, sentence, drawn(group, payload, percentileDomains(group, page), page));
      });
      sized("pareto", group, () => "CPU against latency", (plot, payload, sentence) => fillPlot(plot, sentence, paretoPlot(group, payload, page)));
      if (group.cells.some((cell) => cell.stages)) {
        sized("stages", group, () => "Where the time goes", (plot, payload) => drawStages(plot, group, payload, page));
      }
      if (group.has_sizes) {
        byId("sizes").append(...heading(group.title, data.groups.length));
        const plot = holder(byId("sizes"), group);
        queue.add(plot, () => {
          const ends = group.cells.filter(view.isShown).map((cell) => ({ name: `${cell.system} ${cell.tuning} at ${group.payload_labels[group.payloads.indexOf(cell.payload)]}`, value: cell[state.statistic] }));
          fillPlot(plot, `${state.statistic} against size, ${group.title}: ${extremes(ends, (value) => `${us(value)} µs`)}`, sizePlot(group, page));
        });
      }
      buildRuns(group);
    }
    if (!data.groups.some((group) => group.has_sizes)) byId("sizes")?.remove();
    for (const fan of data.publish_groups || []) buildFan(fan);
    const cells = view.cells.map(({ cell }) => cell);
    if (byId("stage-keys")) stageKeys(byId("stage-keys"), cells);
    buildCell();
    const sizes = new Map([...data.groups, ...(data.publish_groups || [])].flatMap((group) => group.payloads.map((size, place) => [size, group.payload_labels[place]])));
    for (const [size, label] of [...sizes].sort((a, b) => a[0] - b[0])) byId("filter-payload").append(element("option", { value: size, textContent: label }));
  }

  function buildRuns(group) {
    const runs = element("div", {}, ...heading(group.title, data.groups.length));
    byId("runs").append(runs);
    hideable.push(() => { runs.hidden = !view.isPointShown(group); });
    if (!group.cells.some((cell) => cell.runs.length > 1)) {
      runs.append(remark("One run of each cell: no spread to show."));
      return;
    }
    const plot = holder(runs, group);
    job(plot, () => view.isPointShown(group), () => fillPlot(plot, `Median of each run over that of its cell, in the order of execution, ${group.title}`, runPlot(group, page)));
  }

  function buildFan(fan) {
    byId("publish").append(element("h3", { textContent: fan.title }));
    fan.payloads.forEach((payload, place) => {
      const plot = holder(byId("publish"), fan, { payload, label: fan.payload_labels[place] });
      queue.add(plot, () => {
        const ends = fan.cells.filter((cell) => cell.payload === payload && view.isShown(cell)).map((cell) => ({ name: `${cell.system} ${cell.tuning} with ${cell.subscribers}`, value: cell.p50 }));
        fillPlot(plot, `Publish time against subscribers, ${fan.title}, ${fan.payload_labels[place]}: ${extremes(ends, (value) => quantity(value, "us"))}`, publishPlot(fan, payload, page));
      });
    });
  }

  function buildCell() {
    if (!byId("timeline")) return;
    const select = byId("cell");
    for (const group of [...data.groups, ...(data.publish_groups || [])]) {
      const own = view.withTimeline.filter((one) => one.group === group);
      if (own.length === 0) continue;
      const parent = element("optgroup", { label: group.title });
      parent.append(...own.map((one) => element("option", { value: one.cell.index, textContent: cellName(one) + (one.cell.subscribers === undefined ? "" : `, ${counted(one.cell.subscribers, "subscriber")}`) })));
      select.append(parent);
    }
    if (view.withTimeline.length === 0) select.closest(".chooser").hidden = true;
    queue.add(byId("timeline-plots"), () => drawTimeline(byId("timeline-plots"), data, page));
    queue.add(byId("slowest-table"), () => drawSlowest(byId("slowest-title"), byId("slowest-table"), data, page));
  }

  const choice = (legend, boxes) => element("fieldset", { className: "controls" }, element("legend", { textContent: legend }), ...boxes.map(([name, value, text]) =>
    element("label", {}, element("input", { type: "checkbox", name, value }), " " + text)));

  function pointChoice(group) {
    const field = choice(`${group.scenario}, drawn`, view.siblings(group).map((other) => ["point", other.id, other.point]));
    field.dataset.scenario = group.scenario;
    return field;
  }

  function sizeChoice(group) {
    const field = choice("Payloads drawn", group.payloads.map((size, place) => ["size", size, group.payload_labels[place]]));
    field.dataset.group = group.id;
    return field;
  }

  // ------------------------------------------------------------------ the state of the view

  function showControls() {
    for (const box of all("input[name=system]")) box.checked = !state.hide.has(box.value);
    for (const box of all("input[name=tuning]")) box.checked = !state.without.has(box.value);
    for (const group of data.groups) {
      const wanted = view.shownSizes(group);
      for (const box of all(`fieldset[data-group="${group.id}"] input`)) box.checked = wanted.includes(Number(box.value));
    }
    for (const box of all("input[name=point]")) box.checked = view.isPointShown(data.groups.find((group) => group.id === box.value));
    for (const key of Object.keys(CHOICES)) for (const button of all(`input[name=${key}]`)) button.checked = button.value === state[key];
    for (const part of all("[data-axis]")) part.hidden = part.dataset.axis !== state.axis;
    for (const key of FILTERS) if (byId(`filter-${key}`)) byId(`filter-${key}`).value = state[key];
    if (byId("cell") && state.cell !== null) byId("cell").value = state.cell;
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
    for (const hide of hideable) hide();
    queue.renew();
  }

  function changed() {
    view.write();
    show();
  }

  function readControls(event) {
    const { name, value, checked, id } = event.target;
    const toggle = (set) => (checked ? set.delete(value) : set.add(value));
    if (name === "system") toggle(state.hide);
    else if (name === "tuning") toggle(state.without);
    else if (name in CHOICES) state[name] = value;
    else if (id === "cell") state.cell = Number(value);
    else if (id.startsWith("filter-")) state[id.slice("filter-".length)] = value;
    else if (name === "size") {
      const field = event.target.closest("fieldset");
      state.sizes = new Set(all("input:checked", field).map((box) => Number(box.value)));
    } else if (name === "point") {
      // Plots of other scenarios do not change.
      const others = data.groups.filter((group) => group.is_swept && group.id !== value && view.isPointShown(group)).map((group) => group.id);
      state.points = new Set(checked ? [...others, value] : others);
    } else return;
    changed();
  }

  function unfold(target) {
    for (let at = target.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  }

  function goTo(target) {
    unfold(target);
    target.scrollIntoView();
    target.setAttribute("tabindex", target.getAttribute("tabindex") ?? "-1");
    target.focus({ preventScroll: true });
  }

  function press(event) {
    const button = event.target.closest("button"), link = event.target.closest("a[href^='#']");
    if (link) {
      // The hash holds the state of the view; a link within the page must not change it.
      event.preventDefault();
      goTo(byId(link.getAttribute("href").slice(1)));
    } else if (button?.dataset.step) {
      view.step(Number(button.dataset.step));
      changed();
    } else if (button?.dataset.family) {
      const members = data.systems.filter((system) => system.family === button.dataset.family).map((system) => system.name);
      const isAnyShown = members.some((name) => !state.hide.has(name));
      for (const name of members) if (isAnyShown) state.hide.add(name); else state.hide.delete(name);
      changed();
    } else if (button?.classList.contains("to-cell") && byId("timeline")) {
      const index = Number(button.closest("tr").dataset.cell);
      if (!data.timelines[index]) return;
      state.cell = index;
      changed();
      goTo(byId("timeline"));
    } else if (button?.id === "copy-link") {
      const link = location.href.split("#")[0] + view.hash(sectionInSight());
      copyText(link).then((copied) => { byId("copied").textContent = copied ? "Copied." : link; });
    }
  }

  /** The section of plots at the top of the window. */
  function sectionInSight() {
    const sections = all("#plots > section").filter((section) => !section.closest("details:not([open])") && section.getBoundingClientRect().top < innerHeight / 2);
    return sections.at(-1)?.id;
  }

  build();
  const at = view.read();
  show();
  // A link may name a section of plots to start at.
  if (at && all("#plots > section").some((section) => section.id === at)) {
    unfold(byId(at));
    byId(at).scrollIntoView();
  }
  // Toggle events of details elements do not bubble.
  document.addEventListener("toggle", queue.later, true);
  document.addEventListener("change", readControls);
  document.addEventListener("click", press);
  byId("timeline-plots")?.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    view.step(step);
    changed();
  });
  addEventListener("hashchange", () => { view.read(); show(); });
  let resizing = 0, width = innerWidth;
  addEventListener("resize", () => {
    // Scrolling on a phone changes only the height.
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(resizing);
    resizing = setTimeout(show, 150);
  });
  addEventListener("beforeprint", () => {
    // Configuration files would fill a hundred sheets.
    for (const details of all("details:not(.file)")) details.open = true;
    queue.all();
  });
})();
