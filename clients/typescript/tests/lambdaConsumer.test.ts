import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Client } from "../src/client.js";
import { lambdaHandler, type LambdaContext, type SqsBatchResponse, type SqsEvent } from "../src/lambdaConsumer.js";
import { eventBody, FakeApi, FakeClock, FakeLog, Gate, LAUNCH, rfc3339, UNTHROTTLED } from "./fakes.js";

let clock: FakeClock;
let api: FakeApi;
let log: FakeLog;
let client: Client;

beforeEach(async () => {
  clock = new FakeClock();
  log = new FakeLog();
  api = new FakeApi(clock);
  await api.serve();
  client = new Client(api.address, "key", { clock, log, jitter: () => 0 });
});

afterEach(() => api.close());

function context(remainingSeconds = 60): LambdaContext {
  return { getRemainingTimeInMillis: () => remainingSeconds * 1000 };
}

function sqsEvent(bodies: (string | Record<string, unknown>)[], receiveCount = 1): SqsEvent {
  return {
    Records: bodies.map((body, i) => ({
      messageId: `message-${i}`,
      body: typeof body === "string" ? body : JSON.stringify(body),
      attributes: { ApproximateReceiveCount: String(receiveCount) },
    })),
  };
}

function failures(answer: SqsBatchResponse): string[] {
  assert.deepEqual(Object.keys(answer), ["batchItemFailures"]);
  return answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
}

test("records are worked on in order and released together", async () => {
  const workedOn: number[] = [];
  const handler = lambdaHandler(client, ({ index }) => {
    workedOn.push(index);
    if (index === 1) throw new TypeError("no such shop");
    return index === 2 ? "9 rows" : undefined;
  });
  assert.deepEqual(failures(await handler(sqsEvent([eventBody(0), eventBody(1), eventBody(2)]), context())), []);
  assert.deepEqual(workedOn, [0, 1, 2]);
  assert.equal(api.calls.length, 1);
  assert.deepEqual(api.released(), [
    { token: "tok.0", outcome: "succeeded" },
    { token: "tok.1", outcome: "failed", error: "TypeError: no such shop" },
    { token: "tok.2", outcome: "succeeded", result: "9 rows" },
  ]);
});

test("a record that is no event is reported", async () => {
  const handler = lambdaHandler(client, () => {});
  const answer = await handler(sqsEvent(["hello", eventBody(1), "{}"]), context());
  assert.deepEqual(failures(answer), ["message-0", "message-2"]);
  assert.deepEqual(api.releasedTokens(), ["tok.1"]);
});

test("a release that could not be sent is reported and sent again", async () => {
  const workedOn: string[] = [];
  const handler = lambdaHandler(client, ({ event_id }) => void workedOn.push(event_id));
  api.answers = [{ status: 401 }];
  const records = sqsEvent([eventBody(0), eventBody(1, UNTHROTTLED)]);
  assert.deepEqual(failures(await handler(records, context())), ["message-0"]);
  assert.deepEqual(failures(await handler(sqsEvent([eventBody(0)], 2), context())), []);
  assert.equal(workedOn.length, 2);
  assert.deepEqual(api.releasedTokens(), ["tok.0", "tok.0"]);
});

for (const [status, reported] of [["already_released", []], ["reclaimed", []], ["not_yours", ["message-0"]]] as const) {
  test(`a late release is no error and a refused one is: ${status}`, async () => {
    api.statuses["tok.0"] = status;
    assert.deepEqual(failures(await lambdaHandler(client, () => {})(sqsEvent([eventBody(0)]), context())), reported);
  });
}

test("a failure without a token is reported", async () => {
  const handler = lambdaHandler(client, () => Promise.reject(new Error("it failed")));
  assert.deepEqual(failures(await handler(sqsEvent([eventBody(0, UNTHROTTLED)]), context())), ["message-0"]);
  assert.deepEqual(api.calls, []);
});

test("leases are extended, also of records that wait", async () => {
  const handler = lambdaHandler(client, async ({ index }, lease) => {
    if (index === 0) {
      clock.advance(20);
      const [call] = await api.waitFor("extend", 1);
      assert.deepEqual([...(call?.body.tokens ?? [])].sort(), ["tok.0", "tok.1"]);
    }
    assert.equal(lease.lost.aborted, false);
  });
  assert.deepEqual(failures(await handler(sqsEvent([eventBody(0), eventBody(1)]), context())), []);
  assert.deepEqual(api.released().map(({ outcome }) => outcome), ["succeeded", "succeeded"]);
});

test("a record whose lease is over is neither begun nor reported", async () => {
  const workedOn: string[] = [];
  api.statuses["tok.0"] = "expired";
  const handler = lambdaHandler(client, ({ event_id }) => void workedOn.push(event_id));
  const late = eventBody(0, { lease_expires_at: rfc3339(LAUNCH - 1) });
  assert.deepEqual(failures(await handler(sqsEvent([late]), context())), []);
  assert.deepEqual(failures(await handler(sqsEvent([eventBody(0)], 2), context())), []);
  assert.deepEqual([workedOn, api.released()], [[], []]);
});

for (const [remaining, marginSeconds, works] of [[60, 5, 55], [8, 5, 6], [900, 100, 800]] as const) {
  test(`what is finished is released before the time is over: ${remaining} s`, async () => {
    const givenUp = new Gate();
    const began: number[] = [];
    const handler = lambdaHandler(
      client,
      async ({ index }, lease) => {
        began.push(index);
        if (index === 0) return;
        void clock.waitForTimer(works).then(() => clock.advance(works));
        await new Promise((resolve) => lease.lost.addEventListener("abort", resolve));
        givenUp.open();
        throw new Error("no time");
      },
      { marginSeconds },
    );
    const far = { lease_expires_at: rfc3339(LAUNCH + 36_000) };
    const records = sqsEvent([eventBody(0, far), eventBody(1, far), eventBody(2, far)]);
    assert.deepEqual(failures(await handler(records, context(remaining))), ["message-1", "message-2"]);
    await givenUp.opened;
    await new Promise(setImmediate);
    assert.deepEqual(began, [0, 1]);
    assert.deepEqual(api.releasedTokens(), ["tok.0"]);
  });
}

test("the release is not repeated beyond the time", async () => {
  api.answers = Array.from({ length: 6 }, () => ({ status: 503 }));
  const handler = lambdaHandler(client, () => {});
  assert.deepEqual(failures(await handler(sqsEvent([eventBody(0)]), context(4))), ["message-0"]);
  assert.deepEqual(clock.slept, [0.5, 1]); // the next attempt would come when only half of the margin is left
});

test("several records may be worked on at once", async () => {
  const both = new Gate();
  let working = 0;
  const handler = lambdaHandler(
    client,
    async () => {
      working += 1;
      if (working === 2) both.open();
      await both.opened;
    },
    { concurrency: 2 },
  );
  assert.deepEqual(failures(await handler(sqsEvent([eventBody(0), eventBody(1)]), context())), []);
  assert.deepEqual(api.released().map(({ outcome }) => outcome), ["succeeded", "succeeded"]);
});

test("more than a hundred releases take several calls", async () => {
  const records = sqsEvent(Array.from({ length: 101 }, (_, index) => eventBody(index)));
  assert.deepEqual(failures(await lambdaHandler(client, () => {})(records, context())), []);
  assert.deepEqual(api.of("release").map(({ body }) => body.tokens.length), [100, 1]);
});

test("an event that came again in one environment is not worked on again", async () => {
  const workedOn: string[] = [];
  const handler = lambdaHandler(client, ({ event_id }) => void workedOn.push(event_id));
  await handler(sqsEvent([eventBody(0), eventBody(0)]), context());
  await handler(sqsEvent([eventBody(0, { token: "tok.later", attempt: 2 })]), context());
  assert.equal(workedOn.length, 1);
  assert.match(log.lines.at(-1)?.message ?? "", /came again and is not worked on again/);
});
