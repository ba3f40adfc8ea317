import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Client } from "../src/client.js";
import { Heartbeats, type Lease } from "../src/leases.js";
import { parseEvent } from "../src/messages.js";
import { eventBody, FakeApi, FakeClock, FakeLog, Gate, LAUNCH, rfc3339, UNTHROTTLED } from "./fakes.js";

let clock: FakeClock;
let api: FakeApi;
let log: FakeLog;
let heartbeats: Heartbeats;

beforeEach(async () => {
  clock = new FakeClock();
  log = new FakeLog();
  api = new FakeApi(clock);
  await api.serve();
  heartbeats = new Heartbeats(new Client(api.address, "key", { clock, log, jitter: () => 0 }));
});

afterEach(async () => {
  heartbeats.close();
  await api.close();
});

function start(index = 0, leaseSeconds = 60, changes: Record<string, unknown> = {}): Lease {
  const body = eventBody(index, { lease_expires_at: rfc3339(LAUNCH + leaseSeconds), ...changes });
  return heartbeats.start(parseEvent(JSON.stringify(body)));
}

function lost(lease: Lease): Promise<void> {
  return new Promise((resolve) => lease.lost.addEventListener("abort", () => resolve()));
}

test("a lease is extended at each third of what is left", async () => {
  const lease = start(0, 30);
  await clock.waitForTimer(10);
  assert.deepEqual(api.calls, []);
  clock.advance(10);
  await api.waitFor("extend", 1);
  await clock.waitForTimer(20); // a third of the minute that the API gave
  clock.advance(20);
  const [, second] = await api.waitFor("extend", 2);
  assert.deepEqual(second?.body, { tokens: ["tok.0"] });
  assert.equal(lease.lost.aborted, false);
});

test("the first heartbeat of a long lease comes early", async () => {
  api.leaseSeconds = 3_600;
  start(0, 3_600);
  await clock.waitForTimer(20);
  clock.advance(20);
  await api.waitFor("extend", 1);
  await clock.waitForTimer(1_200);
});

test("heartbeats go by the server's clock", async () => {
  clock = new FakeClock(-600);
  heartbeats = new Heartbeats(new Client(api.address, "key", { clock, log }));
  start();
  await clock.waitForTimer(20);
  clock.advance(20);
  await api.waitFor("extend", 1); // answered at the API's own time, which stood still
  await clock.waitForTimer(20);
});

test("a heartbeat without an answer is followed by another", async () => {
  const lease = start(0, 9);
  api.answers = [{ status: 401 }];
  await clock.waitForTimer(3);
  clock.advance(3);
  await api.waitFor("extend", 1);
  await clock.waitForTimer(2);
  clock.advance(2);
  await api.waitFor("extend", 2);
  await clock.waitForTimer(20);
  assert.equal(lease.lost.aborted, false);
  assert.deepEqual(log.lines.map(({ level }) => level), ["warn"]);
});

for (const [status, isOver] of [["expired", true], ["unknown", false], ["not_yours", false], ["malformed", false]] as const) {
  test(`a lost lease is told and not extended again: ${status}`, async () => {
    const [gone, held] = [start(0), start(1)];
    api.statuses["tok.0"] = status;
    await clock.waitForTimer(20);
    clock.advance(20);
    await lost(gone);
    assert.deepEqual([gone.isOver, held.lost.aborted], [isOver, false]);
    await clock.waitForTimer(20);
    clock.advance(20);
    assert.deepEqual((await api.waitFor("extend", 2))[1]?.body, { tokens: ["tok.1"] });
  });
}

test("leases are extended together", async () => {
  for (let index = 0; index < 101; index += 1) start(index);
  await clock.waitForTimer(20);
  clock.advance(9);
  start(101); // less than half-way when the others are due
  clock.advance(11);
  const calls = await api.waitFor("extend", 2);
  assert.deepEqual(calls.map(({ body }) => body.tokens.length), [100, 2]);
  assert.ok(calls[1]?.body.tokens.includes("tok.101"));
});

test("a lease that began just now does not go along", async () => {
  start(0);
  await clock.waitForTimer(20);
  clock.advance(11);
  start(1, 71);
  clock.advance(9);
  assert.deepEqual((await api.waitFor("extend", 1))[0]?.body, { tokens: ["tok.0"] });
});

test("a lease that is not worked on is not extended", async () => {
  heartbeats.stop(start(0));
  start(1);
  await clock.waitForTimer(20);
  clock.advance(20);
  assert.deepEqual((await api.waitFor("extend", 1))[0]?.body, { tokens: ["tok.1"] });
});

test("an answer about a token that was released meanwhile is no news", async () => {
  api.gate = new Gate();
  Object.assign(api.statuses, { "tok.0": "expired", "tok.1": "expired" });
  const [released, gone] = [start(0), start(1)];
  await clock.waitForTimer(20);
  clock.advance(20);
  await api.waitFor("extend", 1);
  heartbeats.stop(released);
  const told = lost(gone);
  api.gate.open();
  await told;
  assert.equal(released.lost.aborted, false);
});

test("giving up is told to all, also where there is no token", () => {
  const leases = [start(0), start(1, 60, UNTHROTTLED)];
  heartbeats.giveUp();
  assert.deepEqual(leases.map((lease) => [lease.lost.aborted, lease.isOver]), [[true, false], [true, false]]);
});
