// When and how plots are drawn: visible ones at once, others when they come near or when there is
// time, all of them before printing.
"use strict";

/** The queue of drawings: `add` registers a part of the page and its function; `renew` draws all
    again. */
function makeQueue() {
  const jobs = [];
  const near = new Set();
  const draw = (job) => {
    job.due = false;
    job.part.removeAttribute("data-waiting");
    job.run();
  };
  const sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) near.add(target);
      else near.delete(target);
    }
    for (const job of jobs) if (job.due && near.has(job.part)) draw(job);
  }, { rootMargin: "400px" });
  // A folded part has no width to draw into.
  const isOpen = (part) => !part.closest("details:not([open])");
  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    // In slices, so that the page stays responsive.
    setTimeout(() => {
      waiting = false;
      for (const until = performance.now() + 12; performance.now() < until;) {
        const job = jobs.find((job) => job.due && isOpen(job.part));
        if (!job) {
          document.documentElement.dataset.drawn = "yes";
          return;
        }
        draw(job);
      }
      later();
    }, 10);
  }
  return {
    add(part, run) {
      jobs.push({ part, run, due: false });
      sight.observe(part);
    },
    renew() {
      document.documentElement.dataset.drawn = "no";
      for (const job of jobs) {
        job.due = true;
        if (near.has(job.part)) draw(job);
        else if (!job.part.childElementCount) job.part.dataset.waiting = "";
      }
      later();
    },
    later,
    all() {
      for (const job of jobs) if (job.due) draw(job);
    },
  };
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const remark = (text) => element("p", { className: "remark", textContent: text });

/** A plot with a sentence for screen readers. `made` are options for Plot, or null. */
function fillPlot(holder, sentence, made) {
  holder.replaceChildren();
  if (made === null) {
    holder.append(remark("Nothing to show."));
    return;
  }
  const facets = made.fx?.domain || [];
  const room = holder.clientWidth || 1100;
  // Side by side the facets would be too narrow to read.
  const rows = facets.length > 1 && room < 300 * facets.length ? facets.map((facet) => [facet]) : [facets];
  for (const row of rows) {
    const svg = Plot.plot({
      width: Math.min(room, row.length < 2 ? 760 : 1280), marginLeft: 52, marginRight: 14, marginTop: 34, marginBottom: 40, ...made,
      ...(row.length ? { fx: { label: null, padding: 0.05, ...made.fx, domain: row } } : {}),
    });
    describe(svg, sentence);
    holder.append(svg);
    placeNames(svg);
  }
}

/** Presents the plot to screen readers as one image: the labels inside are only for tests and
    styles. */
function describe(svg, sentence) {
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", sentence);
}

/** The lowest and the highest value of a plot as a sentence; `points` have a name and a value. */
function extremes(points, text) {
  const known = points.filter(({ value }) => value != null && Number.isFinite(value));
  if (known.length === 0) return "no figures";
  const low = known.reduce((a, b) => (b.value < a.value ? b : a)), high = known.reduce((a, b) => (b.value > a.value ? b : a));
  return low === high ? `${low.name}, ${text(low.value)}` : `lowest ${low.name}, ${text(low.value)}; highest ${high.name}, ${text(high.value)}`;
}

/** Moves names to positions beside their signs where they hide nothing; hides names without such
    a position. */
function placeNames(svg) {
  const names = [...svg.querySelectorAll("text[aria-label^='name ']")];
  if (names.length === 0) return;
  const box = (node) => node.getBoundingClientRect();
  const bounds = box(svg);
  const fixed = [...svg.querySelectorAll("text")].filter((text) => !names.includes(text));
  const taken = [...fixed, ...svg.querySelectorAll("circle, [aria-label^='pareto '][transform]")].map(box);
  const hits = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const inside = (a) => a.left >= bounds.left && a.right <= bounds.right && a.top >= bounds.top && a.bottom <= bounds.bottom;
  for (const name of names) {
    const [x, y] = name.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
    const found = [[9, 0, "start"], [-9, 0, "end"], [0, -12, "middle"], [0, 13, "middle"]].some(([dx, dy, anchor]) => {
      name.setAttribute("transform", `translate(${x + dx},${y + dy})`);
      name.setAttribute("text-anchor", anchor);
      const own = box(name);
      return inside(own) && !taken.some((other) => hits(own, other));
    });
    if (found) taken.push(box(name));
    else name.remove();
  }
}
