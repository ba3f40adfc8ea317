import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Client } from "../src/client.js";
import { Releaser, sendReleases } from "../src/releases.js";
import { Changing, FakeApi, FakeClock, FakeLog, Gate } from "./fakes.js";

/** What a releaser gave back. */
class Settled extends Changing {
  readonly answers: [tag: number, isAccepted: boolean][] = [];

  readonly settle = async (answers: [number, boolean][]): Promise<void> => {
    this.answers.push(...answers);
    this.changed();
  };

  waitFor(count: number): Promise<void> {
    return this.waitUntil(() => this.answers.length >= count);
  }
}

let clock: FakeClock;
let api: FakeApi;
let log: FakeLog;
let client: Client;
let settled: Settled;

beforeEach(async () => {
  clock = new FakeClock();
  log = new FakeLog();
  api = new FakeApi(clock);
  await api.serve();
  client = new Client(api.address, "key", { clock, log, jitter: () => 0 });
  settled = new Settled();
});

afterEach(() => api.close());

test("releases that come within the linger go together", async () => {
  const releaser = new Releaser(client, 0.05, settled.settle);
  await releaser.add({ token: "tok.0" }, 0);
  await clock.waitForTimer(0.05);
  await releaser.add({ token: "tok.1", outcome: "failed", error: "x" }, 1);
  assert.deepEqual(api.calls, []);
  clock.advance(0.05);
  await settled.waitFor(2);
  assert.equal(api.calls.length, 1);
  assert.deepEqual(api.releasedTokens(), ["tok.0", "tok.1"]);
  assert.deepEqual(settled.answers, [[0, true], [1, true]]);
  await releaser.close(1);
});

test("a hundred go at once and the rest with the next call", async () => {
  const releaser = new Releaser(client, 3_600, settled.settle);
  for (let index = 0; index < 101; index += 1) await releaser.add({ token: `tok.${index}` }, index);
  await settled.waitFor(100);
  assert.deepEqual(api.calls.map(({ body }) => body.tokens.length), [100]);
  await clock.waitForTimer(3_600);
  await releaser.close(1); // sends what is left without delay
  assert.deepEqual(api.calls.map(({ body }) => body.tokens.length), [100, 1]);
  assert.equal(settled.answers.length, 101);
});

test("adding waits while a whole call is waiting", async () => {
  api.gate = new Gate();
  const releaser = new Releaser(client, 0, settled.settle);
  await releaser.add({ token: "tok.first" }, -1);
  await api.waitFor("release", 1);
  for (let index = 0; index < 100; index += 1) await releaser.add({ token: `tok.${index}` }, index);
  let isAdded = false;
  const adding = releaser.add({ token: "tok.last" }, 100).then(() => (isAdded = true));
  await new Promise(setImmediate);
  assert.equal(isAdded, false);
  api.gate.open();
  await adding;
  await settled.waitFor(102);
  await releaser.close(1);
});

test("closing does not wait forever for an answer", async () => {
  api.gate = new Gate();
  const releaser = new Releaser(client, 0, settled.settle);
  await releaser.add({ token: "tok.0" }, 0);
  await api.waitFor("release", 1);
  const closing = releaser.close(5);
  await clock.waitForTimer(5);
  clock.advance(5);
  await closing;
  assert.deepEqual(log.lines.map(({ level }) => level), ["error"]);
  api.gate.open();
});

const ANSWERS = [
  ["released", true, []],
  ["already_released", true, []],
  ["accepted", true, []],
  ["reclaimed", true, ["warn"]],
  ["unknown", true, ["warn"]],
  ["not_yours", false, ["error"]],
  ["malformed", false, ["error"]],
  ["a word of a later version", false, ["error"]],
] as const;

for (const [status, isAccepted, levels] of ANSWERS) {
  test(`an answer says whether the message can go: ${status}`, async () => {
    api.statuses["tok.0"] = status;
    assert.deepEqual(await sendReleases(client, [{ token: "tok.0" }, { token: "tok.1" }]), [isAccepted, true]);
    assert.deepEqual(log.lines.map(({ level }) => level), levels);
  });
}

test("a call that failed released nothing", async () => {
  api.answers = [{ status: 401 }];
  assert.deepEqual(await sendReleases(client, [{ token: "tok.0" }, { token: "tok.1" }]), [false, false]);
});
