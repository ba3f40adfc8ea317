// Plays one work on one system and prints a line of JSON: `node play.mjs '{"system":..,"server":..,"work":..}'`.
import { setTimeout as sleep } from "node:timers/promises";

import { works } from "./works.mjs";

// A server that has just been started may refuse its first callers.
const TRIES = 50;
const BETWEEN_TRIES_MS = 200;

const { system: name, server, work } = JSON.parse(process.argv[2]);
const { open } = await import(`./adapters/${name}.mjs`);
const system = await opened();
const result = await works[work.kind](system, work, server.pid);
console.log(JSON.stringify(result));
await system.close();
// Clients keep timers and connections of their own, and the server is thrown away.
process.exit(0);

async function opened() {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await open(server, work.limit);
    } catch (error) {
      if (left === 0) throw error;
      await sleep(BETWEEN_TRIES_MS);
    }
  }
}
