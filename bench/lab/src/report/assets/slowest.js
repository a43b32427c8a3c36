// The slowest messages of the chosen cell: where their time went, and what happened around them.
"use strict";

/** Headings and units of observations, by the names of `Around` in the analysis. */
const AROUND = {
  cpu_percent: ["CPU", "percent"], runqueue_wait_percent: ["run-queue wait", "percent"],
  switches_per_s: ["switches", "per_s"], faults_per_s: ["faults", "per_s"],
  migrations_per_s: ["migrations", "per_s"], steal_percent: ["steal", "percent"],
};

function drawSlowest(title, holder, data, page) {
  holder.replaceChildren();
  const chosen = page.chosen();
  title.textContent = chosen ? `${cellName(chosen)} · ${chosen.group.title}` : "";
  const slowest = chosen ? data.timelines[chosen.cell.index].slowest : [];
  if (slowest.length === 0) {
    holder.append(remark("Nothing to show."));
    return;
  }
  const { group, cell } = chosen;
  const isRoundTrip = slowest.some((message) => message.cpus.length > 2);
  const hasParts = slowest.some((message) => message.parts.length);
  const isObserved = slowest.some((message) => message.around);
  const heads = ["latency", "× p50", "run", "at", "message", ...(hasParts ? ["parts", "most of it"] : []), "CPUs", ...(isObserved ? Object.values(AROUND).map(([head]) => head) : [])];
  const rows = slowest.map((message) => {
    const within = message.parts.filter(([stage]) => !isBefore(cell, stage));
    const total = within.reduce((sum, [, us]) => sum + us, 0);
    const cells = [
      element("th", { scope: "row", textContent: `${us(message.us)} µs` }),
      cellOf(cell.p50 ? `${+(message.us / cell.p50).toPrecision(2)}` : "–"),
      cellOf(String(message.run)), cellOf(message.at_s < 0 ? `−${quantity(-message.at_s, "s")}` : quantity(message.at_s, "s")), cellOf(String(message.id)),
    ];
    if (hasParts) cells.push(partsOf(within, total), cellOf(mostOf(within, total), "word"));
    cells.push(cellOf(message.cpus.join(" → ") + (isRoundTrip && message.cpus[0] !== message.cpus[2] ? " (moved)" : ""), "word"));
    if (isObserved) {
      cells.push(...Object.entries(AROUND).map(([name, [, unit]]) => {
        const value = message.around?.[name];
        const made = cellOf(value == null ? "–" : quantity(value, unit));
        if (message.around) made.title = `in the ${quantity(message.around.span_s, "s")} in which it ended`;
        return made;
      }));
    }
    return element("tr", {}, ...cells);
  });
  const head = element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col", textContent: text, className: ["parts", "most of it", "CPUs"].includes(text) ? "word" : "" }))));
  holder.append(element("div", { className: "scroll" }, element("table", { className: "slowest" }, head, element("tbody", {}, ...rows))));
  holder.append(remark(floorRemark(chosen, slowest, data, page)));
  if (!isObserved) holder.append(remark("The lab did not observe the machine over time."));
}

const isBefore = (cell, stage) => cell.stages?.parts.some((part) => part.stage === stage && part.is_before) || false;

const cellOf = (text, className = "") => element("td", { textContent: text, className });

/** A small bar of a message's parts. */
function partsOf(parts, total) {
  const words = parts.map(([stage, value]) => `${STAGES[stage].name} ${us(value)} µs`).join(", ");
  const bar = element("span", { className: "parts-bar", title: words });
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", words || "not known");
  for (const [stage, value] of parts) {
    const piece = element("i", {});
    piece.style.width = `${total > 0 ? (100 * value) / total : 0}%`;
    piece.style.background = stageColour(stage);
    piece.style.opacity = stageOpacity(stage);
    bar.append(piece);
  }
  return element("td", {}, bar);
}

function mostOf(parts, total) {
  if (!(total > 0)) return "–";
  const [stage, value] = parts.reduce((a, b) => (b[1] > a[1] ? b : a));
  return `${STAGES[stage].name}, ${Math.round((100 * value) / total)} %`;
}

/** A remark if the floor had equally slow messages: then the machine is suspect, not the system. */
function floorRemark({ cell }, slowest, data, page) {
  const index = data.timelines[cell.index].floor;
  const theirs = index == null ? null : data.timelines[index]?.slowest;
  if (!theirs?.length) return page.systems.get(cell.system).floor ? "This is a bare primitive of the operating system, so the machine caused these delays." : "No floor with this payload and tuning waits in the same way.";
  const worst = theirs[0].us;
  const beyond = slowest.filter((message) => message.us > worst).length;
  const name = page.withTimeline.find((other) => other.cell.index === index).cell.system;
  return `The floor of this payload and tuning, ${name}, had messages of up to ${us(worst)} µs in its own runs: ${beyond} of these ${slowest.length} took longer. The machine caused the delays that the floor has, too.`;
}
