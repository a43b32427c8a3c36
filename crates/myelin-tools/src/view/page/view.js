// The page of `myelin view`. It shows what the server has read; `page.rs` says what is sent.
// What comes from robots and files goes into the page as text, and never as HTML.
"use strict";

const byId = (id) => document.getElementById(id);
const WINDOW_MS = 30_000;
/** What a plot shows at first. */
const WINDOW_MIN_MS = 5_000;
const SERIES_MAX = 8;
const WATCHED_MAX = 32;
const POINTS_MAX = 60_000;
const COLOURS = 8;

const page = {
  socket: null,
  /** Of the server: id, name, type, numbers, image, problem. */
  channels: [],
  /** By name. */
  rates: new Map(),
  /** What is chosen, by the names of topics: it stays when a robot is started again. */
  watched: new Set(),
  /** Each: topic, path, t, v, colour. */
  series: [],
  picture: null,
  hasChosen: false,
  version: 0,
  nowMs: 0,
  range: null,
  isSeeking: false,
  pictures: [],
};

function channelOf(name) {
  return page.channels.find((channel) => channel.name === name);
}

// --- the connection

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const url = `${scheme}://${location.host}/${location.search}`;
  byId("websocket").textContent = url;
  const socket = new WebSocket(url, "myelin.view.v1");
  socket.binaryType = "arraybuffer";
  page.socket = socket;
  socket.onmessage = (event) => {
    if (typeof event.data === "string") {
      receive(JSON.parse(event.data));
    } else {
      receivePicture(event.data);
    }
  };
  socket.onclose = () => {
    setState("not connected; trying again …", true);
    setTimeout(connect, 1000);
  };
}

function send(message) {
  if (page.socket.readyState === WebSocket.OPEN) {
    page.socket.send(JSON.stringify(message));
  }
}

function setState(text, isBad) {
  byId("state").textContent = text;
  byId("state").classList.toggle("bad", isBad);
}

function receive(message) {
  if (message.op === "hello") {
    page.range = message.beginMs === null ? null : [message.beginMs, message.endMs];
    byId("playback").hidden = page.range === null;
    document.title = message.name;
    setState("connected", false);
  } else if (message.op === "channels") {
    page.channels = message.channels;
    choose();
    drawRows();
    drawPictureTopics();
    drawValues();
    show();
  } else if (message.op === "rates") {
    page.rates = new Map(message.topics.map((topic) => [topic.name, topic]));
    drawRates();
  } else if (message.op === "samples") {
    receiveSamples(message);
  } else if (message.op === "noPicture") {
    byId("picture-state").textContent = message.problem;
    send({ op: "shown" });
  }
}

/** At first: the first topics, the first picture and a few numbers. */
function choose() {
  if (page.hasChosen || page.channels.length === 0) {
    return;
  }
  page.hasChosen = true;
  const image = page.channels.find((channel) => channel.image);
  page.picture = image ? image.name : null;
  for (const channel of page.channels.filter((it) => !it.image).slice(0, 2)) {
    page.watched.add(channel.name);
  }
  const isDull = (path) => /stamp|sec|seq|time|number|count|id$|width|height|pad/i.test(path);
  for (const channel of page.channels.filter((it) => page.watched.has(it.name))) {
    for (const path of channel.numbers.filter((it) => !isDull(it))) {
      if (page.series.length < 3) {
        addSeries(channel.name, path);
      }
    }
  }
}

/** Tells the server what is shown. */
function show() {
  page.version += 1;
  const id = (name) => channelOf(name)?.id ?? 0;
  send({
    op: "show",
    version: page.version,
    watched: [...page.watched].map(id).filter((it) => it > 0),
    series: page.series.map((series) => ({ channel: id(series.topic), path: series.path })),
    image: page.picture === null || !channelOf(page.picture) ? null : id(page.picture),
  });
}

function receiveSamples(message) {
  if (message.nowMs < page.nowMs - 500) {
    // Back in a file.
    for (const series of page.series) {
      series.t.length = 0;
      series.v.length = 0;
    }
  }
  page.nowMs = message.nowMs;
  for (const value of message.values) {
    const channel = page.channels.find((it) => it.id === value.channel);
    const card = channel && cards.get(channel.name);
    if (card) {
      card.text.textContent = value.text;
      card.state.textContent = `${bytes(value.bytes)}, ${clock(value.atMs)}`;
    }
  }
  if (message.version === page.version) {
    message.points.forEach((points, at) => {
      const series = page.series[at];
      for (let i = 0; i < points.t.length; i += 1) {
        series.t.push(points.t[i]);
        series.v.push(points.v[i]);
      }
    });
  }
  const lost = [];
  if (message.dropped > 0) {
    lost.push(`${message.dropped} messages dropped: this page is too slow`);
  }
  if (message.overwritten > 0) {
    lost.push(`${message.overwritten} messages overwritten before they were taken`);
  }
  setState(lost.length > 0 ? lost.join("; ") : "connected", lost.length > 0);
  drawPlayback(message.playback);
  drawPlot();
  document.documentElement.dataset.values = String(
    message.values.length || document.documentElement.dataset.values || 0,
  );
}

// --- topics

const rows = new Map();

function drawRows() {
  const body = byId("rows");
  const names = [...new Set(page.channels.map((channel) => channel.name))].sort();
  for (const [name, row] of rows) {
    if (!names.includes(name)) {
      row.line.remove();
      rows.delete(name);
    }
  }
  let before = null;
  for (const name of names) {
    const row = rows.get(name) ?? newRow(name);
    rows.set(name, row);
    const channel = channelOf(name);
    row.type.textContent = channel.type;
    row.button.title = channel.problem ? `not in Foxglove's programs: ${channel.problem}` : "";
    row.button.setAttribute("aria-pressed", String(page.watched.has(name)));
    const place = before === null ? body.firstChild : before.line.nextSibling;
    if (place !== row.line) {
      body.insertBefore(row.line, place);
    }
    before = row;
  }
  byId("no-topics").hidden = names.length > 0;
  drawRates();
  filter();
}

function newRow(name) {
  const line = document.createElement("tr");
  const cells = [0, 1, 2, 3].map(() => line.appendChild(document.createElement("td")));
  const button = cells[0].appendChild(document.createElement("button"));
  button.type = "button";
  button.append(name);
  const type = button.appendChild(document.createElement("small"));
  button.onclick = () => {
    if (!page.watched.delete(name) && page.watched.size < WATCHED_MAX) {
      page.watched.add(name);
    }
    button.setAttribute("aria-pressed", String(page.watched.has(name)));
    drawValues();
    show();
  };
  return { line, button, type, rate: cells[1], ends: cells[2], lost: cells[3] };
}

function drawRates() {
  for (const [name, row] of rows) {
    const rates = page.rates.get(name);
    row.rate.textContent = rates && rates.rateHz !== null ? number(rates.rateHz) : "–";
    const isKnown = rates && rates.publishers !== null;
    row.ends.textContent = isKnown ? `${rates.publishers}/${rates.subscribers}` : "–";
    row.lost.textContent = rates && rates.lost !== null ? String(rates.lost) : "–";
    row.lost.classList.toggle("lost", Boolean(rates && rates.lost > 0));
  }
}

function filter() {
  const text = byId("filter").value.toLowerCase();
  for (const [name, row] of rows) {
    const all = `${name} ${row.type.textContent}`.toLowerCase();
    row.line.hidden = !all.includes(text);
  }
}

// --- last values

const cards = new Map();

function drawValues() {
  for (const [name, card] of cards) {
    if (!page.watched.has(name)) {
      card.element.remove();
      cards.delete(name);
    }
  }
  for (const name of page.watched) {
    const channel = channelOf(name);
    if (!cards.has(name)) {
      const card = newCard(name);
      cards.set(name, card);
      byId("values").append(card.element);
    }
    const card = cards.get(name);
    const numbers = channel ? channel.numbers : [];
    card.details.hidden = numbers.length === 0;
    if (card.numbers.join() !== numbers.join()) {
      card.numbers = numbers;
      card.choices.replaceChildren(...numbers.map((path) => newChoice(name, path)));
    }
    if (!channel) {
      card.state.textContent = "nobody publishes now";
    }
  }
  byId("values-hint").hidden = page.watched.size > 0;
}

function newCard(name) {
  const element = document.createElement("article");
  const title = element.appendChild(document.createElement("h3"));
  title.textContent = name;
  const state = element.appendChild(document.createElement("p"));
  state.className = "quiet";
  state.textContent = "nothing yet";
  const text = element.appendChild(document.createElement("pre"));
  text.tabIndex = 0;
  text.setAttribute("aria-label", `last value of ${name}`);
  const details = element.appendChild(document.createElement("details"));
  const summary = details.appendChild(document.createElement("summary"));
  summary.textContent = "Plot numbers";
  const choices = details.appendChild(document.createElement("div"));
  return { element, state, text, details, choices, numbers: [] };
}

function newChoice(topic, path) {
  const label = document.createElement("label");
  const box = label.appendChild(document.createElement("input"));
  box.type = "checkbox";
  box.checked = page.series.some((it) => it.topic === topic && it.path === path);
  box.onchange = () => {
    if (box.checked) {
      box.checked = addSeries(topic, path);
    } else {
      removeSeries(topic, path);
    }
    drawLegend();
    show();
  };
  label.append(` ${path === "" ? "the value" : path}`);
  return label;
}

// --- the plot

function addSeries(topic, path) {
  if (page.series.length >= SERIES_MAX) {
    return false;
  }
  const used = page.series.map((it) => it.colour);
  let colour = 0;
  while (used.includes(colour) && colour < COLOURS - 1) {
    colour += 1;
  }
  page.series.push({ topic, path, t: [], v: [], colour });
  drawLegend();
  return true;
}

function removeSeries(topic, path) {
  page.series = page.series.filter((it) => it.topic !== topic || it.path !== path);
}

function drawLegend() {
  byId("plot").hidden = page.series.length === 0;
  byId("plot-hint").hidden = page.series.length > 0;
  byId("legend").replaceChildren(
    ...page.series.map((series) => {
      const item = document.createElement("li");
      const mark = item.appendChild(document.createElement("i"));
      mark.style.background = `var(--series-${series.colour})`;
      item.append(`${series.topic}${series.path === "" ? "" : ` ${series.path}`}`);
      series.last = item.appendChild(document.createElement("span"));
      const remove = item.appendChild(document.createElement("button"));
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `remove ${series.topic} ${series.path}`);
      remove.onclick = () => {
        removeSeries(series.topic, series.path);
        drawLegend();
        const card = cards.get(series.topic);
        if (card) {
          card.numbers = [];
          drawValues();
        }
        show();
      };
      return item;
    }),
  );
}

function drawPlot() {
  const canvas = byId("plot");
  if (page.series.length === 0) {
    return;
  }
  const oldest = page.nowMs - WINDOW_MS;
  let begin = page.nowMs - WINDOW_MIN_MS;
  let [low, high] = [Infinity, -Infinity];
  for (const series of page.series) {
    let old = 0;
    while (old < series.t.length && (series.t[old] < oldest || series.t.length - old > POINTS_MAX)) {
      old += 1;
    }
    series.t.splice(0, old);
    series.v.splice(0, old);
    begin = Math.min(begin, series.t[0] ?? begin);
    for (const value of series.v) {
      if (value !== null) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    const last = series.v.at(-1);
    series.last.textContent = last === undefined || last === null ? "" : `: ${number(last)}`;
  }
  if (low > high) {
    [low, high] = [0, 1];
  }
  const margin = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  [low, high] = [low - margin, high + margin];

  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const style = getComputedStyle(document.documentElement);
  context.font = `12px ${style.getPropertyValue("font-family") || "sans-serif"}`;
  const steps = ticks(low, high, Math.max(2, Math.floor(height / 50)));
  const labels = steps.map((it) => number(it));
  const left = 8 + Math.max(...labels.map((it) => context.measureText(it).width));
  const [right, top, bottom] = [width - 12, 8, height - 22];
  const x = (t) => left + ((t - begin) / (page.nowMs - begin)) * (right - left);
  const y = (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
  context.lineWidth = 1;
  context.strokeStyle = style.getPropertyValue("--line");
  context.fillStyle = style.getPropertyValue("--quiet");
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.beginPath();
  steps.forEach((step, at) => {
    context.moveTo(left, y(step));
    context.lineTo(right, y(step));
    context.fillText(labels[at], left - 4, y(step));
  });
  context.stroke();
  context.textBaseline = "top";
  for (const second of ticks((begin - page.nowMs) / 1000, 0, 5)) {
    const at = x(page.nowMs + second * 1000);
    context.textAlign = at < left + 20 ? "left" : at > right - 20 ? "right" : "center";
    context.fillText(`${number(second)} s`, at, bottom + 6);
  }
  context.save();
  context.beginPath();
  context.rect(left, top, right - left, bottom - top);
  context.clip();
  context.lineWidth = 1.5;
  for (const series of page.series) {
    context.strokeStyle = style.getPropertyValue(`--series-${series.colour}`);
    context.beginPath();
    line(context, series, x, y);
    context.stroke();
  }
  context.restore();
  canvas.dataset.points = String(page.series.reduce((sum, it) => sum + it.t.length, 0));
}

/** Of each column of pixels the first, the lowest, the highest and the last. A number that is missing is a gap. */
function line(context, series, x, y) {
  let [column, first, low, high, last, isOpen] = [null, 0, 0, 0, 0, false];
  const flush = () => {
    if (column !== null) {
      isOpen ? context.lineTo(column, first) : context.moveTo(column, first);
      [low, high, last].forEach((value) => context.lineTo(column, value));
      isOpen = true;
    }
  };
  for (let i = 0; i < series.t.length; i += 1) {
    if (series.v[i] === null) {
      flush();
      [column, isOpen] = [null, false];
      continue;
    }
    const at = Math.round(x(series.t[i]) * 2) / 2;
    const value = y(series.v[i]);
    if (at === column) {
      [low, high, last] = [Math.min(low, value), Math.max(high, value), value];
    } else {
      flush();
      [column, first, low, high, last] = [at, value, value, value, value];
    }
  }
  flush();
}

/** Round numbers between two others. */
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((it) => it * power).find((it) => it >= rough);
  const all = [];
  for (let at = Math.ceil(low / step); at * step <= high; at += 1) {
    all.push(at * step);
  }
  return all;
}

// --- the picture

function drawPictureTopics() {
  const names = page.channels.filter((channel) => channel.image).map((channel) => channel.name);
  byId("picture-panel").hidden = names.length === 0 && page.picture === null;
  const select = byId("picture-topic");
  const options = ["", ...names].map((name) => {
    const option = document.createElement("option");
    option.value = name;
    option.textContent = name === "" ? "none" : name;
    option.selected = name === (page.picture ?? "");
    return option;
  });
  select.replaceChildren(...options);
}

async function receivePicture(buffer) {
  try {
    const head = new DataView(buffer, 0, 24);
    const [, width, height, step, format] = [0, 4, 8, 12, 16].map((at) => head.getUint32(at, true));
    const canvas = byId("picture");
    if (format === 6) {
      const bitmap = await createImageBitmap(new Blob([new Uint8Array(buffer, 24)]));
      resize(canvas, bitmap.width, bitmap.height);
      canvas.getContext("2d").drawImage(bitmap, 0, 0);
      bitmap.close();
    } else {
      resize(canvas, width, height);
      const pixels = rgba(new Uint8Array(buffer, 24), width, height, step, format);
      canvas.getContext("2d").putImageData(new ImageData(pixels, width, height), 0, 0);
    }
    const now = performance.now();
    page.pictures = [...page.pictures.filter((it) => it > now - 2000), now];
    const rate = page.pictures.length > 2
      ? `, ${number(((page.pictures.length - 1) * 1000) / (now - page.pictures[0]))} a second`
      : "";
    byId("picture-state").textContent = `${canvas.width} × ${canvas.height}${rate}`;
    canvas.setAttribute("aria-label", `picture of ${page.picture}`);
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn ?? 0) + 1);
  } catch (error) {
    byId("picture-state").textContent = `cannot be shown: ${error.message}`;
  }
  // A page in the background gets no frames, and so no pictures.
  requestAnimationFrame(() => send({ op: "shown" }));
}

function resize(canvas, width, height) {
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
}

function rgba(from, width, height, step, format) {
  const to = new Uint8ClampedArray(width * height * 4);
  const [bytes, red, green, blue] = [
    [1, 0, 0, 0],
    [3, 0, 1, 2],
    [3, 2, 1, 0],
    [4, 0, 1, 2],
    [4, 2, 1, 0],
    [2, 1, 1, 1],
  ][format];
  for (let row = 0, out = 0; row < height; row += 1) {
    let at = row * step;
    for (let column = 0; column < width; column += 1, at += bytes, out += 4) {
      to[out] = from[at + red];
      to[out + 1] = from[at + green];
      to[out + 2] = from[at + blue];
      to[out + 3] = 255;
    }
  }
  return to;
}

// --- a file

function drawPlayback(playback) {
  if (!playback || page.range === null) {
    return;
  }
  const isPlaying = playback.status === "playing";
  byId("play").textContent = isPlaying ? "Pause" : "Play";
  byId("play").dataset.isPlaying = String(isPlaying);
  const [begin, end] = page.range;
  if (!page.isSeeking) {
    const share = end > begin ? (playback.nowMs - begin) / (end - begin) : 0;
    byId("seek").value = String(Math.round(share * 1000));
  }
  const seconds = (ms) => (Math.max(0, ms) / 1000).toFixed(1);
  byId("clock").textContent = `${seconds(playback.nowMs - begin)} / ${seconds(end - begin)} s`;
}

// --- texts

function number(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e7)) {
    return value.toExponential(2);
  }
  return String(Number(value.toPrecision(size >= 1000 ? 7 : 4)));
}

function bytes(count) {
  if (count < 1000) {
    return `${count} B`;
  }
  return count < 1e6 ? `${number(count / 1e3)} kB` : `${number(count / 1e6)} MB`;
}

function clock(ms) {
  return new Date(ms).toISOString().slice(11, 23);
}

byId("filter").oninput = filter;
byId("picture-topic").onchange = () => {
  page.picture = byId("picture-topic").value || null;
  page.pictures = [];
  byId("picture-state").textContent = "";
  show();
};
byId("play").onclick = () => {
  send({ op: "playback", play: byId("play").dataset.isPlaying !== "true" });
};
byId("speed").onchange = () => {
  send({ op: "playback", speed: Number(byId("speed").value) });
};
byId("seek").oninput = () => {
  page.isSeeking = true;
};
byId("seek").onchange = () => {
  page.isSeeking = false;
  const [begin, end] = page.range;
  const seekMs = begin + ((end - begin) * Number(byId("seek").value)) / 1000;
  send({ op: "playback", seekMs });
};
connect();
