// One cell over time: windows, observations, and a heat map with the floor's below it.
"use strict";

/** The columns of a timeline, read once. */
function timelineOf(data, index) {
  const timeline = data.timelines[index];
  if (!timeline || timeline.read) return timeline;
  const column = (text) => logarithms(text);
  const length = timeline.duration_s / timeline.windows;
  const [rate, p50, p99, max] = [timeline.rate, timeline.p50, timeline.p99, timeline.max].map(column);
  timeline.rows = rate.map((_, place) => ({ x1: place * length, x2: (place + 1) * length, rate: rate[place], p50: p50[place], p99: p99[place], max: max[place] }));
  timeline.seen = [];
  if (timeline.observed && timeline.observed_from_s != null) {
    const { t_ms, cpu, wait, pss } = timeline.observed;
    const ends = multiples(t_ms, 1e-3), columns = [multiples(cpu, 0.1), multiples(wait, 0.1), multiples(pss, 1024 / 1e6)];
    timeline.seen = ends.map((end, place) => ({
      x1: timeline.observed_from_s + (place ? ends[place - 1] : 0), x2: timeline.observed_from_s + end,
      cpu: columns[0][place], wait: columns[1][place], pss: columns[2][place],
    }));
  }
  timeline.fields = [];
  if (timeline.map) {
    const { columns, rows_per_decade, height } = timeline.map;
    const counts = integers(timeline.map.counts), width = timeline.duration_s / columns;
    const at = (row) => 10 ** (row / rows_per_decade) / 1e3;
    timeline.fields = integers(timeline.map.places).map((place, which) => {
      const column = Math.floor(place / 1000), row = place % 1000;
      return { x1: column * width, x2: (column + 1) * width, y1: at(row), y2: at(row + height), count: counts[which] };
    });
  }
  timeline.read = true;
  return timeline;
}

/** Both heat maps use the same time axis, unless one of the runs would be too narrow on it. */
const SHORTEST_SHARE = 0.2;

const cellName = ({ group, cell }) => `${cell.system}, ${group.payload_labels[group.payloads.indexOf(cell.payload)]}, ${cell.tuning}`;

function drawTimeline(holder, data, page) {
  holder.replaceChildren();
  const chosen = page.chosen();
  if (!chosen) {
    holder.append(remark("No messages to show over time."));
    return;
  }
  const { group, cell } = chosen;
  const timeline = timelineOf(data, cell.index), system = page.systems.get(cell.system);
  const metric = group.metric || "publish call";
  const room = Math.min(holder.clientWidth || 1100, 1280);
  // Omit what happened long before the first message.
  const begin = Math.max(timeline.observed_from_s ?? 0, -timeline.duration_s / 2, -5);
  const domain = [Math.min(0, begin), timeline.duration_s];
  const cut = timeline.cut_s ? ` · the link was down from ${quantity(timeline.cut_s[0], "s")} to ${quantity(timeline.cut_s[1], "s")} (shaded)` : "";
  holder.append(element("h3", { textContent: `${cellName(chosen)}${cell.valid ? "" : " (invalid)"}` }), remark(`${group.title} · run ${timeline.run} of its cell${cut}`));
  const seconds = (value) => (value < 0 ? `−${quantity(-value, "s")}` : quantity(value, "s"));
  const ticksOf = (x) => roomyLinear(x, room - 76, seconds);
  const panel = (caption, sentence, height, y, marks, x = domain, down = timeline.cut_s) => {
    const plot = element("div", { className: "plot" });
    holder.append(element("figure", {}, element("figcaption", { textContent: caption }), plot));
    const svg = Plot.plot({
      width: room, height, marginLeft: 62, marginRight: 14, marginTop: 10, marginBottom: height > 150 ? 36 : 24,
      x: { domain: x, label: null }, y: { ...y.options, label: null },
      marks: [
        ...(x[0] < 0 ? [Plot.rectX([x], { x1: x[0], x2: 0, fill: "var(--muted)", fillOpacity: 0.12, ariaLabel: () => "warm-up" })] : []),
        ...(down ? [Plot.rectX([down], { x1: (cut) => Math.max(cut[0], x[0]), x2: (cut) => Math.min(cut[1], x[1]), fill: "var(--bad)", fillOpacity: 0.12, ariaLabel: () => "link down" })] : []),
        ...y.marks.filter(Boolean),
        Plot.axisX(ticksOf(x), { text: seconds, tickSize: 4, label: height > 150 ? "since the first measured message →" : null }),
        ...marks,
      ],
    });
    describe(svg, sentence);
    plot.append(svg);
  };
  const colour = system.colour;
  // Unknown values interrupt the line.
  const steps = (rows, key) => rows.flatMap((row) => [{ x: row.x1, y: row[key] ?? NaN }, { x: row.x2, y: row[key] ?? NaN }]);
  const line = (rows, key, look) => Plot.line(steps(rows, key), { x: "x", y: "y", clip: true, stroke: colour, strokeWidth: 1.7, ariaLabel: () => `timeline ${key}`, ...look });
  const tell = (rows, key, text) => page.tip(rows.filter((row) => row[key] != null).map((row) => ({ ...row, x: (row.x1 + row.x2) / 2, y: row[key] })), { x: "x", y: "y", title: (d) => `${quantity(Math.max(d.x1, domain[0]), "s")} to ${quantity(d.x2, "s")}\n${text(d)}` });

  const shown = timeline.rows.flatMap((row) => [row.p50, row.p99, row.max]).filter((value) => value != null);
  const latency = latencyAxis(shown, page.scale(), null);
  const withheld = timeline.rows.every((row) => row.p99 == null) ? "; p99 is withheld: fewer than ten messages of a window lie beyond it" : "";
  panel(`${metric}: p50 (line), p99 (dashed), slowest message (dots) of ${timeline.windows} windows${withheld}`,
    `Latency over time of ${cellName(chosen)}: medians of windows ${extremes(timeline.rows.map((row) => ({ name: `at ${quantity(row.x1, "s")}`, value: row.p50 })), (value) => `${us(value)} µs`)}`,
    220, latency, [
      line(timeline.rows, "p50"), line(timeline.rows, "p99", { strokeDasharray: "5 3", strokeWidth: 1.2 }),
      Plot.dot(timeline.rows.filter((row) => row.max != null), { x: (row) => (row.x1 + row.x2) / 2, y: "max", r: 2.6, fill: colour, ariaLabel: () => "timeline max" }),
      tell(timeline.rows, "max", (row) => `${row.p50 == null ? "" : `p50 ${us(row.p50)} µs\n`}${row.p99 == null ? "" : `p99 ${us(row.p99)} µs\n`}slowest ${us(row.max)} µs\n${quantity(row.rate, "per_s")}`),
    ]);
  const figure = (caption, rows, key, unit) => {
    const values = rows.map((row) => row[key]).filter((value) => value != null);
    if (values.length === 0) {
      holder.append(element("p", { className: "remark", textContent: `${caption}: not observed over time.` }));
      return;
    }
    const axis = { options: { domain: [0, Math.max(...values) * 1.12 || 1] } };
    axis.marks = logMarks(d3.ticks(...axis.options.domain, 3), null, (value) => quantity(value, unit));
    panel(caption, `${caption} over time of ${cellName(chosen)}: ${extremes(rows.map((row) => ({ name: `at ${quantity(row.x1, "s")}`, value: row[key] })), (value) => quantity(value, unit))}`,
      110, axis, [line(rows, key), tell(rows, key, (row) => quantity(row[key], unit))]);
  };
  figure("messages a second", timeline.rows, "rate", "per_s");
  figure("CPU of all processes (100 %: a core)", timeline.seen, "cpu", "percent");
  figure("waiting in a run queue (100 %: one thread waits all the time)", timeline.seen, "wait", "percent");
  figure("memory (PSS)", timeline.seen, "pss", "MB");
  drawMaps(chosen, timeline, data, page, panel, domain);
}

function drawMaps(chosen, timeline, data, page, panel, domain) {
  if (timeline.fields.length === 0) return;
  const floor = timeline.floor == null ? null : timelineOf(data, timeline.floor);
  const both = [...timeline.fields, ...(floor?.fields || [])];
  const options = { type: "log", domain: [d3.min(both, (field) => field.y1), d3.max(both, (field) => field.y2)], label: null };
  const most = d3.max(both, (field) => field.count);
  const y = { options, marks: logMarks(logTicks(options.domain), null, (value) => quantity(value, "us")) };
  const marks = (fields, whose) => [Plot.rect(fields, {
    x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: "var(--heat)", inset: 0,
    fillOpacity: (field) => 0.16 + (0.84 * Math.log(field.count)) / Math.max(Math.log(most), 1e-9) || 0.16,
    title: (field) => `${quantity(field.y1, "us")} to ${quantity(field.y2, "us")}, at ${quantity(field.x1, "s")}\n${field.count} messages`,
    ariaLabel: (field) => `${whose} field ${field.count}`,
  })];
  const sum = (fields) => fields.reduce((total, field) => total + field.count, 0);
  panel(`all ${sum(timeline.fields)} messages of the run by time and latency; strongest colour: ${most} in a field`,
    `Heat map of ${cellName(chosen)}: ${sum(timeline.fields)} messages between ${quantity(d3.min(timeline.fields, (field) => field.y1), "us")} and ${quantity(d3.max(timeline.fields, (field) => field.y2), "us")}`,
    240, y, marks(timeline.fields, "map"));
  if (!floor?.fields.length) return;
  const owner = page.withTimeline.find(({ cell }) => cell.index === timeline.floor);
  const ratio = floor.duration_s / timeline.duration_s;
  const isAlike = ratio >= SHORTEST_SHARE && ratio <= 1.02;
  const x = isAlike ? domain : [0, floor.duration_s];
  const own = isAlike ? "" : `; its run took ${quantity(floor.duration_s, "s")}, so it has its own time axis`;
  panel(`the floor in its own run: ${cellName(owner)}${own}`,
    `Heat map of the floor, ${cellName(owner)}: ${sum(floor.fields)} messages between ${quantity(d3.min(floor.fields, (field) => field.y1), "us")} and ${quantity(d3.max(floor.fields, (field) => field.y2), "us")}`,
    240, y, marks(floor.fields, "floor"), x, floor.cut_s);
}
