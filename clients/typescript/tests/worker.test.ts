import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Client } from "../src/client.js";
import { Heartbeats } from "../src/leases.js";
import { parseEvent } from "../src/messages.js";
import { Recent, Worker, type NoOutcome, type Outcome, type Work } from "../src/worker.js";
import { eventBody, FakeApi, FakeClock, FakeLog, Gate, LAUNCH, rfc3339, UNTHROTTLED } from "./fakes.js";

let api: FakeApi;
let log: FakeLog;
let heartbeats: Heartbeats;
let recent: Recent;

beforeEach(async () => {
  const clock = new FakeClock();
  log = new FakeLog();
  api = new FakeApi(clock);
  await api.serve();
  heartbeats = new Heartbeats(new Client(api.address, "key", { clock, log, jitter: () => 0 }));
  recent = new Recent(2, log);
});

afterEach(async () => {
  heartbeats.close();
  await api.close();
});

/** Works on an event, given as the body of its message, as a consumer that remembers two events. */
async function workOn(work: Work, body: Record<string, unknown>, cameBefore = false): Promise<Outcome | NoOutcome> {
  const event = parseEvent(JSON.stringify(body));
  const lease = heartbeats.start(event);
  try {
    return await new Worker(work, recent, heartbeats, log).workOn(event, lease, cameBefore);
  } finally {
    heartbeats.stop(lease);
  }
}

const fail: Work = () => {
  throw new RangeError("the shop does not answer");
};
const lose: Work = (_, lease) => {
  lease.answered({ status: "expired" });
  throw new Error("stopped");
};
const never: Work = () => assert.fail("it was worked on");

function succeeded(note?: string): Outcome {
  return { outcome: "succeeded", note };
}

const FAILED: Outcome = { outcome: "failed", note: "RangeError: the shop does not answer" };

test("what a function returns or throws is the outcome", async () => {
  assert.deepEqual(await workOn(() => undefined, eventBody(0)), succeeded());
  assert.deepEqual(await workOn(async () => "9 rows", eventBody(1)), succeeded("9 rows"));
  assert.deepEqual(await workOn(fail, eventBody(2)), FAILED);
  assert.deepEqual(await workOn(() => Promise.reject("no"), eventBody(3)), { outcome: "failed", note: "no" });
});

test("an event that came again is not worked on again", async () => {
  await workOn(() => "9 rows", eventBody(0));
  await workOn(fail, eventBody(1));
  assert.deepEqual(await workOn(never, eventBody(0, { token: "tok.later", attempt: 2 })), succeeded("9 rows"));
  assert.deepEqual(await workOn(never, eventBody(1), true), FAILED);
});

test("an event that failed is worked on again when it was redriven", async () => {
  await workOn(fail, eventBody(1));
  const redriven = eventBody(1, { token: "tok.redriven", attempt: 2 });
  assert.deepEqual(await workOn(() => "9 rows", redriven), succeeded("9 rows"));
  assert.deepEqual(await workOn(never, eventBody(1, { token: "tok.later", attempt: 3 })), succeeded("9 rows"));
});

test("memory is bounded and the oldest is forgotten", async () => {
  for (const index of [0, 1, 2]) await workOn(() => "first", eventBody(index));
  assert.deepEqual(await workOn(() => "again", eventBody(0)), succeeded("again"));
  assert.deepEqual(await workOn(never, eventBody(2)), succeeded("first"));
});

test("an event that is under way is waited for", async () => {
  const mayEnd = new Gate();
  const first = workOn(async () => {
    await mayEnd.opened;
    return "once";
  }, eventBody(0));
  const second = workOn(never, eventBody(0));
  mayEnd.open();
  assert.deepEqual(await Promise.all([first, second]), [succeeded("once"), succeeded("once")]);
});

test("what was given up is worked on by the next delivery", async () => {
  assert.equal(await workOn(lose, eventBody(0)), "lease over");
  assert.deepEqual(await workOn(() => "done", eventBody(0, { attempt: 2 })), succeeded("done"));
});

test("work that ends well although its lease is lost has succeeded", async () => {
  const finish: Work = (_, lease) => {
    lease.answered({ status: "expired" });
    return "done";
  };
  assert.deepEqual(await workOn(finish, eventBody(0)), succeeded("done"));
});

test("a failure without a token leaves the message", async () => {
  const unthrottled = eventBody(0, UNTHROTTLED);
  assert.equal(await workOn(fail, unthrottled), "left");
  assert.deepEqual(await workOn(() => undefined, unthrottled, true), succeeded());
});

for (const [leftSeconds, cameBefore] of [[2.9, false], [-100, false], [60, true]] as const) {
  test(`a lease that may be over is extended before the work: ${leftSeconds} s left`, async () => {
    const late = eventBody(0, { lease_expires_at: rfc3339(LAUNCH + leftSeconds) });
    const work: Work = () => `after ${api.of("extend").length} extension`;
    assert.deepEqual(await workOn(work, late, cameBefore), succeeded("after 1 extension"));
  });
}

for (const [status, expected] of [["expired", "lease over"], ["unknown", "left"], ["not_yours", "left"]] as const) {
  test(`an event whose lease is ${status} is not begun`, async () => {
    api.statuses["tok.0"] = status;
    assert.equal(await workOn(never, eventBody(0), true), expected);
  });
}

test("an event whose lease cannot be extended is left", async () => {
  api.answers = [{ status: 401 }];
  assert.equal(await workOn(never, eventBody(0), true), "left");
});

test("nothing is begun after giving up", async () => {
  const event = parseEvent(JSON.stringify(eventBody()));
  const lease = heartbeats.start(event);
  heartbeats.giveUp();
  assert.equal(await new Worker(never, recent, heartbeats, log).workOn(event, lease, true), "left");
  assert.deepEqual(api.calls, []);
});
