import assert from "node:assert/strict";
import { test } from "node:test";

import { isCompletion, type Event } from "../src/messages.js";
import { WebhookVerifier, type WebhookHeaders } from "../src/webhook.js";
import { COMPLETION, eventBody } from "./fakes.js";
import { OLD_SECRET, SECRET, signed } from "./signing.js";

// The request of docs/messages.md.
const SENT_AT = 1795318389;
const HEADERS = {
  "webhook-id": "hello.1.1795305600.0",
  "webhook-timestamp": String(SENT_AT),
  "webhook-signature": "v1,wNxHbE4r552EnPaUXAQSv0zUe83w73Th080rmC7Pe/U=",
};
const BODY = Buffer.from(
  '{"event_id":"hello.1.1795305600.0","job_id":"hello","client_id":"acme","run_id":"hello.1.1795305600","index":0,' +
    '"count":1,"launch_at":"2026-11-22T00:00:00Z","attempt":1,"payload":{"report":"daily"}}',
);

function verifier(secrets = [SECRET], at = SENT_AT): WebhookVerifier {
  return new WebhookVerifier(secrets, { now: () => at });
}

function refuses(reason: RegExp, body: Uint8Array, headers: WebhookHeaders, by = verifier()): void {
  assert.throws(() => by.verify(body, headers), { name: "WebhookError", message: reason });
}

test("the documented call is an event", () => {
  const event = verifier().verify(BODY, HEADERS) as Event;
  assert.equal(isCompletion(event), false);
  assert.deepEqual([event.event_id, event.payload], ["hello.1.1795305600.0", { report: "daily" }]);
});

test("headers may be an object of any case, with lists, or those of fetch", () => {
  const titled = Object.fromEntries(Object.entries(HEADERS).map(([name, value]) => [name.toUpperCase(), value]));
  const listed = { ...HEADERS, "webhook-signature": ["v1,AAAA", HEADERS["webhook-signature"]], other: undefined };
  for (const headers of [titled, listed, new Headers(HEADERS)]) verifier().verify(BODY, headers);
});

test("a completion is told from an event", () => {
  const body = Buffer.from(JSON.stringify(COMPLETION));
  assert.equal(isCompletion(verifier().verify(body, signed(body, SECRET, SENT_AT))), true);
});

test("any of the secrets and any of the signatures may fit", () => {
  const both = verifier([SECRET, OLD_SECRET]);
  both.verify(BODY, HEADERS);
  both.verify(BODY, signed(BODY, OLD_SECRET, SENT_AT));
  const oneOfThree = `v1a,abcd v1,AAAA ${HEADERS["webhook-signature"]}`;
  verifier().verify(BODY, { ...HEADERS, "webhook-signature": oneOfThree });
});

test("another signature does not fit", () => {
  for (const signature of [
    "",
    "v1,",
    "v1,AAAA",
    "v1,é",
    "wNxHbE4r552EnPaUXAQSv0zUe83w73Th080rmC7Pe/U=",
    "v2,wNxHbE4r552EnPaUXAQSv0zUe83w73Th080rmC7Pe/U=",
    `${HEADERS["webhook-signature"]} `.slice(0, -2),
  ]) {
    refuses(/^no signature of the call fits any secret$/, BODY, { ...HEADERS, "webhook-signature": signature });
  }
});

test("what was signed cannot be changed", () => {
  refuses(/^no signature/, Buffer.concat([BODY, Buffer.from(" ")]), HEADERS);
  refuses(/^no signature/, BODY, { ...HEADERS, "webhook-id": "other" });
  refuses(/^no signature/, BODY, { ...HEADERS, "webhook-timestamp": String(SENT_AT + 1) });
  refuses(/^no signature/, BODY, HEADERS, verifier([OLD_SECRET]));
});

test("a timestamp may be off by five minutes", () => {
  for (const off of [-300, 300]) verifier([SECRET], SENT_AT + off).verify(BODY, HEADERS);
  refuses(/too old: by 301 s$/, BODY, HEADERS, verifier([SECRET], SENT_AT + 301));
  refuses(/too far ahead: by 301 s$/, BODY, HEADERS, verifier([SECRET], SENT_AT - 301));
});

test("a timestamp is a number of seconds", () => {
  for (const timestamp of ["", "now", "1e9", "-1", " 1795318389", "1795318389.5", "1".repeat(5_000), "²"]) {
    refuses(/no number of seconds/, BODY, { ...HEADERS, "webhook-timestamp": timestamp });
  }
});

for (const name of Object.keys(HEADERS)) {
  test(`a header that is missing is named: ${name}`, () => {
    refuses(new RegExp(`^the header '${name}' is missing$`), BODY, { ...HEADERS, [name]: undefined });
  });
}

test("a signed body that does not read is another error", () => {
  const body = Buffer.from(JSON.stringify(eventBody(0, { count: 0 })));
  assert.throws(() => verifier().verify(body, signed(body, SECRET, SENT_AT)), {
    name: "MessageError",
    message: "the event cannot be read: 'count' is no integer from 1",
  });
});

test("the body is bytes and the secrets are a list of base64", () => {
  assert.throws(() => verifier().verify(BODY.toString() as unknown as Uint8Array, HEADERS), {
    name: "TypeError",
    message: /bytes that arrived/,
  });
  for (const [secrets, reason] of [
    [[], /at least one/],
    [SECRET as unknown as string[], /a list/],
    [["whsec_"], /a secret is empty/],
    [["whsec_not base64"], /not base64/],
    [["whsec_é"], /not base64/],
  ] as const) {
    assert.throws(() => new WebhookVerifier(secrets), { message: reason });
  }
});
