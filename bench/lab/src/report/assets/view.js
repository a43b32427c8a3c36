// The state of the view, kept in the URL's hash, so that a link reproduces it:
// #hide=os.pipe,os.tcp&without=awake&sizes=0,65536&points=group-8&statistic=p99&cpu=receiver
// &axis=ecdf&scale=linear&bars=share&cell=12&at=stages for the plots,
// &group=group-0&tuning=tuned&payload=64 for the table.
"use strict";

/** Choices between a few words; the first one is the default. */
const CHOICES = { statistic: ["p50", "p99"], cpu: ["all", "receiver"], axis: ["nines", "ecdf"], scale: ["log", "linear"], bars: ["time", "share"] };
const FILTERS = ["group", "tuning", "payload"];

function makeView(data) {
  const state = { hide: new Set(), without: new Set(), sizes: null, points: null, cell: null };
  const cells = [...data.groups, ...(data.publish_groups || [])].flatMap((group) => group.cells.map((cell) => ({ group, cell })));
  const withTimeline = cells.filter(({ cell }) => data.timelines[cell.index]);

  // A floor that spins says little about systems that sleep, and would flatten their curves.
  const peers = data.systems.filter((system) => !system.floor);
  const isAlone = (system) => system.wait !== "" && !peers.some((peer) => peer.wait === system.wait);
  const asideAtFirst = data.systems.filter((system) => system.floor && peers.length > 0 && isAlone(system)).map((system) => system.name);
  const floors = new Set(data.systems.filter((system) => system.floor).map((system) => system.name));
  const firstCell = (withTimeline.find(({ cell }) => !floors.has(cell.system)) || withTimeline[0])?.cell.index ?? null;

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const list = (key) => (given.get(key) || "").split(",").filter(Boolean);
    state.hide = new Set(given.has("hide") ? list("hide") : asideAtFirst);
    state.without = new Set(list("without"));
    state.sizes = given.has("sizes") ? new Set(list("sizes").map(Number)) : null;
    state.points = given.has("points") ? new Set(list("points")) : null;
    for (const key of FILTERS) state[key] = given.get(key) || "";
    for (const [key, words] of Object.entries(CHOICES)) state[key] = words.includes(given.get(key)) ? given.get(key) : words[0];
    const wanted = given.has("cell") ? Number(given.get("cell")) : null;
    state.cell = withTimeline.some(({ cell }) => cell.index === wanted) ? wanted : firstCell;
    return given.get("at");
  }

  /** The hash of the current view; `at` names the section to start at. */
  function hash(at) {
    const parts = [];
    const put = (key, value) => parts.push(`${key}=${encodeURIComponent(value).replaceAll("%2C", ",")}`);
    if ([...state.hide].join() !== asideAtFirst.join()) put("hide", [...state.hide].join(","));
    if (state.without.size) put("without", [...state.without].join(","));
    if (state.sizes) put("sizes", [...state.sizes].join(","));
    if (state.points) put("points", [...state.points].join(","));
    if (state.cell !== firstCell) put("cell", state.cell);
    for (const key of FILTERS) if (state[key]) put(key, state[key]);
    for (const [key, words] of Object.entries(CHOICES)) if (state[key] !== words[0]) put(key, state[key]);
    if (at) put("at", at);
    return "#" + parts.join("&");
  }

  function write() {
    if (hash() !== (location.hash || "#")) history.replaceState(null, "", hash());
  }

  /** The groups that differ from this one in the value of a swept parameter. */
  const siblings = (group) => data.groups.filter((other) => other.is_swept && other.scenario === group.scenario);

  return {
    state, read, write, hash, siblings, cells, withTimeline,
    isShown: (cell) => !state.hide.has(cell.system) && !state.without.has(cell.tuning),
    shownTunings: (group) => group.tunings.filter((tuning) => !state.without.has(tuning)),
    shownSystems: () => data.systems.filter((system) => !state.hide.has(system.name)),

    shownSizes(group) {
      const ends = [group.payloads[0], group.payloads[group.payloads.length - 1]];
      return group.payloads.filter((size) => (state.sizes ? state.sizes.has(size) : ends.includes(size)));
    },

    /** At first only the first and the last value of a swept parameter are shown: all of them
        would fill pages. */
    isPointShown(group) {
      if (!group.is_swept) return true;
      const kin = siblings(group);
      const chosen = kin.filter((other) => state.points?.has(other.id));
      return (chosen.length ? chosen : [kin[0], kin[kin.length - 1]]).includes(group);
    },

    /** The chosen cell with its group. */
    chosen: () => withTimeline.find(({ cell }) => cell.index === state.cell),

    /** Selects a cell before or after the chosen one. */
    step(number) {
      const place = withTimeline.findIndex(({ cell }) => cell.index === state.cell);
      const next = withTimeline[Math.max(0, Math.min(withTimeline.length - 1, place + number))];
      if (next) state.cell = next.cell.index;
    },
  };
}

/** Copies a text, even on a page opened as a file; false if the browser refuses. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = Object.assign(document.createElement("textarea"), { value: text });
    field.style.position = "fixed";
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    return copied;
  }
}
