import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { SQS } from "@aws-sdk/client-sqs";

import { Client } from "../src/client.js";
import { lambdaHandler } from "../src/lambdaConsumer.js";
import type { Lease } from "../src/leases.js";
import type { Event } from "../src/messages.js";
import { QueueConsumer, type QueueConsumerOptions } from "../src/queueConsumer.js";
import type { Work } from "../src/worker.js";
import { Changing, eventBody, FakeApi, FakeClock, FakeLog, FakeSqs, Gate, UNTHROTTLED } from "./fakes.js";

let clock: FakeClock;
let api: FakeApi;
let sqs: FakeSqs;
let aws: SQS;
let log: FakeLog;
let client: Client;
let consumer: QueueConsumer;
let running: Promise<void>;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi(clock);
  sqs = new FakeSqs();
  await Promise.all([api.serve(), sqs.serve()]);
  aws = new SQS({
    endpoint: sqs.address,
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
  });
  log = new FakeLog();
  client = new Client(api.address, "tg_acme_key", { clock, log, jitter: () => 0 });
});

afterEach(async () => {
  await stop();
  aws.destroy();
  await Promise.all([api.close(), sqs.close()]);
});

function consume(work: Work, options: QueueConsumerOptions = {}): void {
  const queueUrl = `${sqs.address}/000000000000/work`;
  consumer = new QueueConsumer(client, queueUrl, work, { lingerSeconds: 0, sqs: aws, ...options });
  running = consumer.run();
  running.catch(() => {}); // A test that expects it to fail awaits it.
}

function beginToStop(): void {
  consumer.stop();
  sqs.endPolls();
}

async function stop(): Promise<void> {
  api.gate?.open();
  beginToStop();
  await running.catch(() => {});
}

/** Work that begins and then waits until the test lets it end. */
class Slow extends Changing {
  readonly events: Event[] = [];
  readonly leases: Lease[] = [];
  readonly mayEnd = new Gate();

  readonly work: Work = async (event, lease) => {
    this.events.push(event);
    this.leases.push(lease);
    this.changed();
    await this.mayEnd.opened;
    return "done";
  };

  waitForBegin(count = 1): Promise<void> {
    return this.waitUntil(() => this.events.length >= count);
  }
}

test("events are worked on, released and deleted", async () => {
  for (let index = 0; index < 3; index += 1) sqs.send(eventBody(index));
  consume(({ index }) => {
    if (index === 2) throw new TypeError("no such shop");
    return index === 1 ? "9 rows" : undefined;
  });
  await sqs.waitForDeletes(3);
  const released = api.released().sort((one, other) => one.token.localeCompare(other.token));
  assert.deepEqual(released, [
    { token: "tok.0", outcome: "succeeded" },
    { token: "tok.1", outcome: "succeeded", result: "9 rows" },
    { token: "tok.2", outcome: "failed", error: "TypeError: no such shop" },
  ]);
});

test("a message is deleted only after its release", async () => {
  api.gate = new Gate();
  const stored = sqs.send(eventBody());
  consume(() => {});
  await api.waitFor("release", 1);
  assert.equal(stored.isDeleted, false);
  api.gate.open();
  await sqs.waitForDeletes(1);
});

test("a release that failed is sent again without working again", async () => {
  const workedOn: string[] = [];
  api.answers = [{ status: 401 }];
  const stored = sqs.send(eventBody());
  consume(({ event_id }) => void workedOn.push(event_id));
  await api.waitFor("release", 1);
  assert.equal(stored.isDeleted, false);
  sqs.makeVisible(stored);
  await sqs.waitForDeletes(1);
  assert.equal(workedOn.length, 1);
  assert.deepEqual(api.releasedTokens(), ["tok.0", "tok.0"]);
});

test("a later delivery of a finished event is released with its own token", async () => {
  const workedOn: string[] = [];
  api.statuses["tok.0"] = "reclaimed"; // an answer that is logged and no error
  sqs.send(eventBody());
  sqs.send(eventBody(0, { attempt: 2, token: "tok.later" }));
  consume(({ event_id }) => void workedOn.push(event_id), { concurrency: 1 });
  await sqs.waitForDeletes(2);
  assert.equal(workedOn.length, 1);
  assert.deepEqual(api.releasedTokens().sort(), ["tok.0", "tok.later"]);
});

test("events without a token need no release", async () => {
  sqs.send(eventBody(0, UNTHROTTLED));
  consume(() => {});
  await sqs.waitForDeletes(1);
  assert.deepEqual(api.calls, []);
});

test("what is no event, or failed without a token, stays", async () => {
  const stored = [sqs.send("hello"), sqs.send(eventBody(0, UNTHROTTLED)), sqs.send(eventBody(1))];
  consume(({ token }) => (token === undefined ? Promise.reject(new Error("it failed")) : undefined), { concurrency: 1 });
  await sqs.waitForDeletes(1);
  await stop();
  assert.deepEqual(stored.map(({ isDeleted }) => isDeleted), [false, false, true]);
  assert.match(log.lines[0]?.message ?? "", /^message message-0 is left in the queue: the event cannot be read: /);
});

test("no more than the concurrency are worked on", async () => {
  const slow = new Slow();
  const stored = [sqs.send(eventBody(0))];
  consume(slow.work, { concurrency: 3 });
  await slow.waitForBegin();
  await sqs.waitUntil(() => sqs.receives === 2);
  for (let index = 1; index < 5; index += 1) stored.push(sqs.send(eventBody(index)));
  await slow.waitForBegin(3);
  assert.equal(stored.filter(({ receiveCount }) => receiveCount > 0).length, 3); // the others are left to other consumers
  slow.mayEnd.open();
  await sqs.waitForDeletes(5);
  assert.equal(slow.events.length, 5);
});

test("leases and messages are kept while the work goes on", async () => {
  const slow = new Slow();
  const stored = sqs.send(eventBody());
  consume(slow.work, { visibilitySeconds: 36 });
  await slow.waitForBegin();
  for (const times of [2, 3]) {
    await clock.waitForTimer(12);
    clock.advance(12);
    await sqs.waitUntil(() => stored.visibility.length === times);
  }
  assert.deepEqual(stored.visibility, [36, 36, 36]);
  assert.deepEqual((await api.waitFor("extend", 1))[0]?.body, { tokens: ["tok.0"] });
  slow.mayEnd.open();
  await sqs.waitForDeletes(1);
});

test("a message is kept invisible while its release is on its way", async () => {
  api.gate = new Gate();
  const stored = sqs.send(eventBody());
  consume(() => {});
  await api.waitFor("release", 1);
  clock.advance(20);
  await sqs.waitUntil(() => stored.visibility.length === 2);
  assert.deepEqual(stored.visibility, [60, 60]);
  api.gate.open();
  await sqs.waitForDeletes(1);
});

test("a lost lease is told and its message goes", async () => {
  const began = new Gate();
  sqs.send(eventBody());
  consume(async (_, lease) => {
    began.open();
    await new Promise((resolve) => lease.lost.addEventListener("abort", resolve));
    lease.lost.throwIfAborted();
  });
  await began.opened;
  api.statuses["tok.0"] = "expired";
  clock.advance(20);
  await sqs.waitForDeletes(1);
  assert.deepEqual(api.released(), []);
});

test("a message that came before and whose token was released goes without work", async () => {
  const workedOn: string[] = [];
  api.statuses["tok.0"] = "expired";
  sqs.send(eventBody()).receiveCount = 1; // by a consumer that was killed after its release
  consume(({ event_id }) => void workedOn.push(event_id));
  await sqs.waitForDeletes(1);
  assert.deepEqual(workedOn, []);
});

test("a shutdown finishes what is under way", async () => {
  const slow = new Slow();
  const stored = sqs.send(eventBody());
  consume(slow.work, { lingerSeconds: 3_600 });
  await slow.waitForBegin();
  beginToStop();
  slow.mayEnd.open();
  await running;
  assert.deepEqual(api.releasedTokens(), ["tok.0"]);
  assert.equal(stored.isDeleted, true);
});

test("a shutdown gives up what takes too long", async () => {
  const slow = new Slow();
  const stored = sqs.send(eventBody());
  consume(slow.work, { shutdownSeconds: 15 });
  await slow.waitForBegin();
  beginToStop();
  await clock.waitForTimer(15);
  assert.equal(slow.leases[0]?.lost.aborted, false);
  clock.advance(15);
  await running;
  assert.equal(slow.leases[0]?.lost.aborted, true);
  assert.equal(stored.isDeleted, false);
  assert.deepEqual(api.released(), []);
  slow.mayEnd.open();
});

test("messages that arrive after the stop are visible again at once", async () => {
  consume(() => {});
  await sqs.waitUntil(() => sqs.receives === 1);
  consumer.stop();
  const stored = sqs.send(eventBody());
  await running;
  assert.deepEqual([stored.visibility, stored.isVisible, stored.isDeleted], [[60, 0], true, false]);
});

test("a stop before the start ends it at once", async () => {
  consumer = new QueueConsumer(client, "http://127.0.0.1:1/0/work", () => {}, { sqs: aws });
  consumer.stop();
  running = consumer.run();
  await running;
  assert.equal(sqs.receives, 0);
});

test("a concurrency of nothing is refused", () => {
  consume(() => {});
  const options = { concurrency: 0, sqs: aws };
  assert.throws(() => new QueueConsumer(client, "http://127.0.0.1:1/0/work", () => {}, options), /works on nothing/);
  assert.throws(() => lambdaHandler(client, () => {}, { concurrency: Number.NaN }), /works on nothing/);
});

test("work may stop the consumer", async () => {
  const stored = sqs.send(eventBody());
  consume(() => beginToStop());
  await running;
  assert.equal(stored.isDeleted, true);
});

test("a queue that does not answer is asked again with back-off", async () => {
  const body = { __type: "com.amazon.coral.service#AccessDeniedException", message: "not allowed" };
  sqs.answers = [{ status: 403, body }, { status: 403, body }];
  sqs.send(eventBody());
  consume(() => {});
  for (const seconds of [0.5, 1]) {
    await clock.waitForTimer(seconds);
    clock.advance(seconds);
  }
  await sqs.waitForDeletes(1);
  assert.ok(sqs.receives >= 3);
});

test("a bug ends the run instead of stalling it", async () => {
  const messages = {
    map: () => ({
      [Symbol.iterator]() {
        throw new TypeError("a bug");
      },
    }),
  };
  const broken = { receiveMessage: () => Promise.resolve({ Messages: messages }) } as unknown as SQS;
  consume(() => {}, { sqs: broken });
  await assert.rejects(running, TypeError);
});
