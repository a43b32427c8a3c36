// Reads recordings with Foxglove's own packages, for the tests.
//
// read.mjs serve          for each path on stdin: its messages, and how the file ends, see `serve` in read.py
// read.mjs values FILE    each message's values, by @foxglove/rosmsg2-serialization
//
// MYELIN_NPM is the folder that scripts/setup installed them into.

import fs from "node:fs";
import { createRequire } from "node:module";
import readline from "node:readline";

const require = createRequire(`${process.env.MYELIN_NPM}/`);
const { McapIndexedReader, McapStreamReader } = require("@mcap/core");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader } = require("@foxglove/rosmsg2-serialization");
const lz4 = require("@foxglove/wasm-lz4");
const zstd = require("@foxglove/wasm-zstd");

await lz4.isLoaded;
await zstd.isLoaded;
const decompressHandlers = {
  lz4: (packed, bytes) => lz4(packed, Number(bytes)),
  zstd: (packed, bytes) => zstd.decompress(packed, Number(bytes)),
};

function line(topic, message) {
  const { sequence, logTime, publishTime, data } = message;
  return `${topic} ${sequence} ${logTime} ${publishTime} ${Buffer.from(data).toString("hex")}`;
}

// Whatever is complete, in the order of the file.
function inOrder(bytes) {
  const reader = new McapStreamReader({ decompressHandlers, validateCrcs: true });
  const topics = new Map();
  const lines = [];
  reader.append(bytes);
  for (let record; (record = reader.nextRecord()); ) {
    if (record.type === "Channel") {
      topics.set(record.id, record.topic);
    } else if (record.type === "Message") {
      lines.push(line(topics.get(record.channelId), record));
    }
  }
  return [lines, reader.done()];
}

// By the summary.
async function open(bytes) {
  const readable = {
    size: async () => BigInt(bytes.length),
    read: async (offset, size) => new Uint8Array(bytes.subarray(Number(offset), Number(offset + size))),
  };
  return await McapIndexedReader.Initialize({ readable, decompressHandlers });
}

async function serve() {
  for await (const path of readline.createInterface({ input: process.stdin })) {
    const bytes = fs.readFileSync(path);
    const [lines, isComplete] = inOrder(bytes);
    if (isComplete) {
      const reader = await open(bytes);
      const indexed = [];
      for await (const message of reader.readMessages()) {
        indexed.push(line(reader.channelsById.get(message.channelId).topic, message));
      }
      if (indexed.sort().join() !== [...lines].sort().join()) {
        throw new Error(`${path}: by the summary there are other messages`);
      }
    }
    process.stdout.write([...lines, isComplete ? "= complete" : "= cut", ""].join("\n"));
  }
}

async function values(path) {
  const reader = await open(fs.readFileSync(path));
  const plain = (_, value) =>
    typeof value === "bigint" ? Number(value) : ArrayBuffer.isView(value) ? [...value] : value;
  for await (const { channelId, data } of reader.readMessages()) {
    const schema = reader.schemasById.get(reader.channelsById.get(channelId).schemaId);
    const definition = parse(new TextDecoder().decode(schema.data), { ros2: true });
    const value = new MessageReader(definition).readMessage(data);
    console.log(JSON.stringify(value, plain));
  }
}

await { serve, values }[process.argv[2]](...process.argv.slice(3));
