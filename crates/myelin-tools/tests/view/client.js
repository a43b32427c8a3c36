// A viewer made of Foxglove's client library. It prints what it receives, and ends after 5 messages.
"use strict";

const { FoxgloveClient } = require("@foxglove/ws-protocol");
const WebSocket = require("ws");

const [url] = process.argv.slice(2);
const client = new FoxgloveClient({
  ws: new WebSocket(url, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]),
});
const fail = (text) => {
  console.log(`failed: ${text}`);
  process.exit(1);
};
setTimeout(() => fail("no messages for a minute"), 60_000).unref();
client.on("error", (error) => fail(error.message));
client.on("serverInfo", ({ name, capabilities }) => {
  console.log(`${name} ${JSON.stringify(capabilities)}`);
});
client.on("advertise", (channels) => {
  for (const channel of channels) {
    const { topic, encoding, schemaEncoding, schemaName } = channel;
    console.log(`${topic} ${encoding} ${schemaEncoding} ${schemaName}`);
  }
  client.subscribeConnectionGraph();
});
let channelId = 1;
client.on("connectionGraphUpdate", ({ publishedTopics }) => {
  if (publishedTopics.length > 0) {
    console.log(`connectionGraph ${publishedTopics.map((it) => it.name).join()}`);
    client.subscribe(channelId);
  }
});
let count = 0;
client.on("message", ({ subscriptionId, timestamp, data }) => {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const isNow = Math.abs(Number(timestamp / 1000000n) - Date.now()) < 60_000;
  const y = view.getFloat64(4 + 16, true);
  const id = view.getUint32(4 + 32, true);
  console.log(`message ${subscriptionId} ${JSON.stringify({ y, id, isNow })}`);
  count += 1;
  if (count === 5) {
    client.close();
  }
});
client.on("close", () => process.exit(count === 5 ? 0 : 1));
