// Opens the page in Chromium, by its protocol for developers, and prints what is there as JSON.
//   node browser.js CHROMIUM PROFILE URL URL_OF_ANOTHER_SERVER [FOLDER_FOR_PICTURES]
//   node browser.js CHROMIUM PROFILE URL picture FILE    makes a picture of a full plot
"use strict";

const { spawn } = require("node:child_process");
const { writeFileSync } = require("node:fs");
const WebSocket = require("ws");

const [browser, profile, url, otherUrl, pictures] = process.argv.slice(2);
const problems = [];
/** Of a plot for the documentation: 3 numbers, nearly 50 a second, for more than 10 s. */
const POINTS = 1500;

function start() {
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
    `--user-data-dir=${profile}`, "about:blank"];
  const child = spawn(browser, flags, { stdio: ["ignore", "ignore", "pipe"] });
  return new Promise((resolve, reject) => {
    let text = "";
    child.on("exit", () => reject(new Error(`the browser ended: ${text}`)));
    child.stderr.on("data", (data) => {
      text += data;
      const found = /DevTools listening on (ws:\S+)/.exec(text);
      if (found) {
        resolve({ child, address: found[1] });
      }
    });
  });
}

/** Calls of the protocol, in one session with one page. */
async function open(address) {
  const socket = new WebSocket(address, { maxPayload: 1 << 28 });
  await new Promise((resolve, reject) => {
    socket.on("open", resolve);
    socket.on("error", reject);
  });
  let last = 0;
  const waiting = new Map();
  socket.on("message", (data) => {
    const message = JSON.parse(data);
    const waits = waiting.get(message.id);
    if (waits) {
      waiting.delete(message.id);
      message.error ? waits.reject(new Error(message.error.message)) : waits.resolve(message.result);
    } else if (message.method === "Runtime.exceptionThrown") {
      problems.push(message.params.exceptionDetails.text);
    } else if (message.method === "Log.entryAdded" && message.params.entry.level === "error") {
      problems.push(message.params.entry.text);
    }
  });
  const call = (method, params = {}, sessionId = undefined) => {
    last += 1;
    socket.send(JSON.stringify({ id: last, method, params, sessionId }));
    return new Promise((resolve, reject) => waiting.set(last, { resolve, reject }));
  };
  const { targetId } = await call("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
  return (method, params) => call(method, params, sessionId);
}

async function evaluate(call, expression) {
  const parameters = { expression, awaitPromise: true, returnByValue: true };
  const { result, exceptionDetails } = await call("Runtime.evaluate", parameters);
  if (exceptionDetails) {
    throw new Error(`${expression}: ${exceptionDetails.exception?.description}`);
  }
  return result.value;
}

async function until(call, expression) {
  for (;;) {
    if (await evaluate(call, expression)) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const IS_DRAWN = `
  document.readyState === "complete" &&
  document.getElementById("rows")?.children.length === 3 &&
  Number(document.getElementById("picture").dataset.drawn ?? 0) > 1 &&
  Number(document.getElementById("plot").dataset.points ?? 0) > 150 &&
  [...document.querySelectorAll("#rows td:nth-child(2)")].every((it) => Number(it.textContent) > 10) &&
  document.getElementById("values").textContent.includes("temperature")`;

const WHAT_IS_THERE = `(() => {
  const canvas = document.getElementById("picture");
  const context = canvas.getContext("2d");
  const pixel = (x) => [...context.getImageData(x, 10, 1, 1).data];
  const text = (selector) => document.querySelector(selector).textContent;
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number).slice(0, 3);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((it) => {
      const share = it / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = light(getComputedStyle(document.querySelector("section")).backgroundColor);
  const contrasts = ["h2", "td small", "#picture-state", "pre", "th", "summary"].map((it) => {
    const front = light(getComputedStyle(document.querySelector(it)).color);
    return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  });
  return {
    topics: [...document.querySelectorAll("#rows button")].map((it) => it.firstChild.textContent),
    isTooWide: document.documentElement.scrollWidth > innerWidth,
    left: pixel(10),
    right: pixel(canvas.width - 10),
    picture: [canvas.width, canvas.height],
    values: text("#values"),
    points: Number(document.getElementById("plot").dataset.points),
    rate: Number(text("#rows tr:last-child td:nth-child(2)")),
    isDark: back < 0.2,
    contrast: Math.min(...contrasts),
  };
})()`;

async function press(call, key, code, text = undefined) {
  await call("Input.dispatchKeyEvent", { type: "keyDown", key, code, windowsVirtualKeyCode: key === "Tab" ? 9 : 13, text });
  await call("Input.dispatchKeyEvent", { type: "keyUp", key, code });
}

/** Goes to the last topic by Tab, and presses Enter twice. */
async function keys(call) {
  const state = () => evaluate(call, `(() => {
    const it = document.activeElement;
    return it.closest("#rows tr:last-child") ? it.getAttribute("aria-pressed") : null;
  })()`);
  await evaluate(call, "document.activeElement.blur()");
  let now = await state();
  for (let tabs = 0; now === null && tabs < 20; tabs += 1) {
    await press(call, "Tab", "Tab");
    now = await state();
  }
  const all = [now];
  for (let presses = 0; presses < 2; presses += 1) {
    await press(call, "Enter", "Enter", "\r");
    all.push(await state());
  }
  return all.map((it) => it === "true");
}

/** Whether a page may connect to a server. */
const connect = (to) => `new Promise((resolve) => {
  const socket = new WebSocket(${JSON.stringify(to.replace("http", "ws"))}, "foxglove.sdk.v1");
  socket.onopen = () => resolve("open");
  socket.onerror = () => resolve("refused");
})`;

async function main() {
  const { child, address } = await start();
  try {
    const call = await open(address);
    await call("Page.enable");
    await call("Runtime.enable");
    await call("Log.enable");
    if (otherUrl === "picture") {
      const metrics = { width: 1440, height: 1000, deviceScaleFactor: 1, mobile: false };
      await call("Emulation.setDeviceMetricsOverride", metrics);
      await call("Page.navigate", { url });
      await until(call, `Number(document.getElementById("plot")?.dataset.points ?? 0) > ${POINTS}`);
      const shot = await call("Page.captureScreenshot", {});
      writeFileSync(pictures, Buffer.from(shot.data, "base64"));
      return;
    }
    for (const width of [1440, 400]) {
      for (const scheme of ["light", "dark"]) {
        const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 };
        await call("Emulation.setDeviceMetricsOverride", metrics);
        const features = [{ name: "prefers-color-scheme", value: scheme }];
        await call("Emulation.setEmulatedMedia", { features });
        await call("Page.navigate", { url });
        await until(call, IS_DRAWN);
        const there = await evaluate(call, WHAT_IS_THERE);
        console.log(JSON.stringify({ width, scheme, ...there }));
        if (pictures) {
          const shot = await call("Page.captureScreenshot", { captureBeyondViewport: width < 500 });
          writeFileSync(`${pictures}/view-${width}-${scheme}.png`, Buffer.from(shot.data, "base64"));
        }
      }
    }
    console.log(JSON.stringify({ keys: await keys(call) }));
    const seen = problems.splice(0);
    await call("Page.navigate", { url: otherUrl });
    await until(call, `document.readyState === "complete" && location.href === ${JSON.stringify(otherUrl)}`);
    // The page's own rules forbid it as well: it is asked of a page without rules.
    await call("Page.setBypassCSP", { enabled: true });
    await call("Page.reload");
    await until(call, 'document.readyState === "complete"');
    const otherOrigin = await evaluate(call, connect(url));
    const own = await evaluate(call, connect(otherUrl));
    await call("Page.navigate", { url: "data:text/html,<p>a page</p>" });
    await until(call, 'document.readyState === "complete" && location.protocol === "data:"');
    const opaqueOrigin = await evaluate(call, connect(url));
    console.log(JSON.stringify({ otherOrigin, opaqueOrigin, own }));
    console.log(JSON.stringify({ problems: seen }));
  } finally {
    child.removeAllListeners("exit");
    child.kill();
    await new Promise((resolve) => child.on("close", resolve));
  }
}

const watchdog = setTimeout(() => {
  console.error("the page is not there after a minute", problems);
  process.exit(1);
}, 60_000);
watchdog.unref();
main().catch((error) => {
  console.error(error, problems);
  process.exitCode = 1;
});
