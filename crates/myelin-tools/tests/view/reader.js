// A viewer that subscribes to everything and counts images, until the server ends.
//   node reader.js URL [stall]    the second form stops reading
"use strict";

const { FoxgloveClient } = require("@foxglove/ws-protocol");
const WebSocket = require("ws");

const [url, stalls] = process.argv.slice(2);
const socket = new WebSocket(url, [FoxgloveClient.SUPPORTED_SUBPROTOCOL], { maxPayload: 1 << 28 });
const client = new FoxgloveClient({ ws: socket });
let count = 0;
client.on("advertise", (channels) => {
  channels.forEach((channel) => client.subscribe(channel.id));
  if (stalls) {
    setTimeout(() => socket.pause(), 200);
    setInterval(() => {}, 1000);
  }
});
client.on("message", () => {
  count += 1;
});
client.on("close", () => console.log(count));
