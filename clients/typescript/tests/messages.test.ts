import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { instant, isCompletion, MessageError, parseEvent, parseMessage, type Completion } from "../src/messages.js";
import { COMPLETION, eventBody } from "./fakes.js";

const SCHEMAS = new URL("../../../../docs/schemas/", import.meta.url);

function parse(changes: Record<string, unknown>): ReturnType<typeof parseEvent> {
  return parseEvent(JSON.stringify(eventBody(0, changes)));
}

test("an event is read and later fields do no harm", () => {
  assert.deepEqual(parse({ a_later_field: true }), {
    event_id: "nightly.1.1795305600.0",
    job_id: "nightly",
    client_id: "acme",
    run_id: "nightly.1.1795305600",
    index: 0,
    count: 5,
    launch_at: "2026-11-22T00:00:00Z",
    attempt: 1,
    token: "tok.0",
    lease_expires_at: "2026-11-22T00:01:00.000Z",
    payload: { report: "daily" },
  });
});

for (const absent of [undefined, null]) {
  test(`an event whose token is ${absent} is read`, () => {
    const body = JSON.stringify(eventBody(0, { token: absent, lease_expires_at: absent, payload: null }));
    const event = parseEvent(Buffer.from(body));
    assert.deepEqual([event.token, event.lease_expires_at, event.payload], [undefined, undefined, null]);
  });
}

const REFUSED: [changes: Record<string, unknown>, reason: string][] = [
  [{ event_id: undefined }, "missing field 'event_id'"],
  [{ payload: undefined }, "missing field 'payload'"],
  [{ job_id: 7 }, "'job_id' is no text"],
  [{ index: -1 }, "'index' is no integer from 0"],
  [{ index: true }, "'index' is no integer from 0"],
  [{ index: 1.5 }, "'index' is no integer from 0"],
  [{ count: 0 }, "'count' is no integer from 1"],
  [{ attempt: "1" }, "'attempt' is no integer from 1"],
  [{ token: 1 }, "'token' is no text"],
  [{ launch_at: "2026-11-22" }, "'launch_at': '2026-11-22' is no RFC 3339 instant"],
  [{ launch_at: "yesterday" }, "'launch_at': 'yesterday' is no RFC 3339 instant"],
  [{ lease_expires_at: "2026-13-22T00:00:00Z" }, "'lease_expires_at': "],
];

for (const [changes, reason] of REFUSED) {
  test(`what is no event is refused with the reason: ${reason}`, () => {
    assert.throws(
      () => parse(changes),
      (error: unknown) =>
        error instanceof MessageError && error.message.startsWith(`the event cannot be read: ${reason}`),
    );
  });
}

test("what is no object is refused", () => {
  for (const text of ["", "hello", "[]", "null", Buffer.from(JSON.stringify(eventBody()).replace("acme", "\xff"), "latin1")]) {
    for (const parse of [parseEvent, parseMessage]) {
      assert.throws(() => parse(text), { name: "MessageError", message: /cannot be read/ });
    }
  }
});

test("a message is an event or a completion", () => {
  assert.equal(isCompletion(parseMessage(JSON.stringify(eventBody()))), false);
  const completion = parseMessage(JSON.stringify({ ...COMPLETION, a_later_field: 1 })) as Completion;
  assert.equal(isCompletion(completion), true);
  assert.deepEqual(completion, COMPLETION);
  assert.throws(() => parseMessage(JSON.stringify({ ...COMPLETION, left_out: undefined })), {
    message: "the completion cannot be read: missing field 'left_out'",
  });
});

test("the fields are those of the schemas", () => {
  const fields = (name: string): string[] => {
    const schema = JSON.parse(readFileSync(new URL(name, SCHEMAS), "utf8")) as { properties: object };
    return Object.keys(schema.properties).sort();
  };
  assert.deepEqual(Object.keys(parse({})).sort(), fields("event.json"));
  assert.deepEqual(Object.keys(parseMessage(JSON.stringify(COMPLETION))).sort(), fields("completion.json"));
});

test("instants are read with any fraction and zone", () => {
  for (const text of ["1970-01-01T00:01:40Z", "1970-01-01T00:01:40.000Z", "1970-01-01T01:01:40.0+01:00"]) {
    assert.equal(instant(text), 100);
  }
  assert.equal(instant("1970-01-01T00:00:00.4880123Z"), 0.488);
});
