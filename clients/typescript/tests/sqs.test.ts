import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { SQS } from "@aws-sdk/client-sqs";

import { Queue, type Message } from "../src/sqs.js";
import { FakeLog, FakeSqs } from "./fakes.js";

let sqs: FakeSqs;
let aws: SQS;
let log: FakeLog;
let queue: Queue;

beforeEach(async () => {
  sqs = new FakeSqs();
  await sqs.serve();
  log = new FakeLog();
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  aws = new SQS({ endpoint: sqs.address, region: "us-east-1", credentials });
  queue = new Queue(aws, `${sqs.address}/000000000000/work`, log);
});

afterEach(async () => {
  aws.destroy();
  await sqs.close();
});

test("ten messages at a time are received, deleted and kept", async () => {
  for (let index = 0; index < 25; index += 1) sqs.send(`body ${index}`).receiveCount = 6;
  const messages: Message[] = [];
  for (const most of [10, 11, 5]) messages.push(...(await queue.receive(most, 0, 30)));
  assert.deepEqual(messages.map(({ body }) => body), Array.from({ length: 25 }, (_, index) => `body ${index}`));
  assert.deepEqual([...new Set(messages.map(({ receiveCount }) => receiveCount))], [7]);
  await queue.setVisibility(messages, 40);
  for (const { visibility } of sqs.messages) assert.deepEqual(visibility, [30, 40]);
  await queue.delete(messages);
  assert.ok(sqs.messages.every(({ isDeleted }) => isDeleted));
});

test("what is refused is logged", async () => {
  const { messageId } = sqs.send("body");
  await queue.delete([
    { messageId: "first", receiptHandle: "refused", body: "", receiveCount: 1 },
    { messageId, receiptHandle: `${messageId}/1`, body: "", receiveCount: 1 },
  ]);
  assert.equal(sqs.messages[0]?.isDeleted, true);
  assert.deepEqual(log.lines, [{ level: "warn", message: "failed to delete message first: not now" }]);
});

test("a call that fails is logged", async () => {
  const broken = { deleteMessageBatch: () => Promise.reject(new Error("no network")) } as unknown as SQS;
  const message = { messageId: "first", receiptHandle: "handle", body: "", receiveCount: 1 };
  await new Queue(broken, "http://127.0.0.1:1/0/work", log).delete([message]);
  assert.deepEqual(log.lines, [{ level: "warn", message: "failed to delete 1 messages: no network" }]);
});
