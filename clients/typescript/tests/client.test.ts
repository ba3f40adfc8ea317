import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, beforeEach, test } from "node:test";
import { inspect } from "node:util";

import { ApiError, Client, UnreadableAnswer } from "../src/client.js";
import { FakeApi, FakeClock, FakeLog, LAUNCH, rfc3339 } from "./fakes.js";

const PROBLEM = { type: "urn:tidegate:problem:x", title: "x", status: 0, detail: "give a token" };

let clock: FakeClock;
let api: FakeApi;
let client: Client;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi(clock);
  await api.serve();
  client = new Client(api.address, "tg_acme_key", { clock, log: new FakeLog(), jitter: () => 0 });
});

afterEach(() => api.close());

test("a release says how each event ended", async () => {
  api.statuses["tok.2"] = "reclaimed";
  const answer = await client.release([
    "tok.0",
    { token: "tok.1", result: "9 rows" },
    { token: "tok.2", outcome: "failed", error: "no answer" },
  ]);
  assert.deepEqual(answer.map(({ token, status }) => [token, status]), [
    ["tok.0", "released"],
    ["tok.1", "released"],
    ["tok.2", "reclaimed"],
  ]);
  const [call] = api.of("release");
  assert.deepEqual(call?.body, {
    tokens: [
      { token: "tok.0", outcome: "succeeded" },
      { token: "tok.1", outcome: "succeeded", result: "9 rows" },
      { token: "tok.2", outcome: "failed", error: "no answer" },
    ],
  });
  assert.equal(call?.headers.authorization, "Bearer tg_acme_key");
  assert.equal(call?.headers["content-type"], "application/json");
});

test("an extension tells until when", async () => {
  api.statuses["tok.1"] = "expired";
  const answer = await client.extend(["tok.0", "tok.1"]);
  assert.deepEqual(answer, [
    { token: "tok.0", status: "extended", lease_expires_at: rfc3339(LAUNCH + 60) },
    { token: "tok.1", status: "expired", lease_expires_at: undefined },
  ]);
  await client.extend(["tok.0"], 120);
  assert.deepEqual(api.calls.map(({ body }) => body), [
    { tokens: ["tok.0", "tok.1"] },
    { tokens: ["tok.0"], lease_seconds: 120 },
  ]);
});

test("notes are cut to what the API keeps", async () => {
  await client.release([
    { token: "tok.0", result: "é".repeat(1_025) },
    { token: "tok.1", outcome: "failed", error: "a\x00b\ud800c" },
    { token: "tok.2", result: `x${"é".repeat(1_024)}` },
  ]);
  const [one, two, three] = api.released();
  assert.equal(one?.result, "é".repeat(1_024));
  assert.equal(two?.error, "a b\ufffdc");
  assert.equal(three?.result, `x${"é".repeat(1_023)}`);
});

for (const status of [408, 425, 429, 500, 502, 503]) {
  test(`what may pass is repeated with back-off: ${status}`, async () => {
    api.answers = Array.from({ length: 3 }, () => ({ status, body: PROBLEM }));
    assert.equal((await client.release(["tok.0"]))[0]?.status, "released");
    assert.deepEqual([api.calls.length, clock.slept], [4, [0.5, 1, 2]]);
  });
}

for (const status of [301, 400, 401, 403, 404, 409, 413, 422]) {
  test(`what is refused is not repeated: ${status}`, async () => {
    api.answers = [{ status, body: PROBLEM, headers: { location: "/elsewhere" } }];
    await assert.rejects(client.release(["tok.0"]), {
      name: "ApiError",
      message: `the API refused the call: give a token (${status})`,
      status,
    });
    assert.deepEqual([api.calls.length, clock.slept], [1, []]);
  });
}

test("attempts are bounded and the back-off has jitter", async () => {
  client = new Client(api.address, "key", { clock, log: new FakeLog(), jitter: () => 1 });
  api.answers = Array.from({ length: 6 }, () => ({ status: 503, body: Buffer.from("<html>no backend</html>") }));
  await assert.rejects(client.release(["tok.0"]), { message: /<html>no backend<\/html> \(503\)/ });
  assert.deepEqual([api.calls.length, clock.slept], [6, [0.75, 1.5, 3, 6, 12]]);
});

test("Retry-After makes the wait longer", async () => {
  const waits = ["7", "0", "Sun, 22 Nov 2026 00:00:00 GMT"];
  api.answers = waits.map((wait) => ({ status: 503, body: PROBLEM, headers: { "retry-after": wait } }));
  await client.release(["tok.0"]);
  assert.deepEqual(clock.slept, [7, 1, 2]);
});

test("a Retry-After beyond a minute ends the call", async () => {
  api.answers = [{ status: 429, body: PROBLEM, headers: { "retry-after": "61" } }];
  await assert.rejects(client.release(["tok.0"]), ApiError);
  assert.deepEqual([api.calls.length, clock.slept], [1, []]);
});

test("no answer is repeated", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  client = new Client(`http://127.0.0.1:${port}`, "key", { clock, log: new FakeLog(), jitter: () => 0 });
  await assert.rejects(client.extend(["tok.0"]), { message: /^no answer from the API: .*ECONNREFUSED/, status: undefined });
  assert.deepEqual(clock.slept, [0.5, 1, 2, 4, 8]);
});

test("nothing is begun after the deadline", async () => {
  api.answers = Array.from({ length: 3 }, () => ({ status: 503, body: PROBLEM }));
  await assert.rejects(client.release(["tok.0"], { deadline: clock.monotonic() + 2 }), ApiError);
  assert.deepEqual(clock.slept, [0.5, 1]);
  await assert.rejects(client.release(["tok.0"], { deadline: clock.monotonic() }), { message: /no time left/ });
  assert.equal(api.calls.length, 3);
});

const UNREADABLE: unknown[] = [
  Buffer.from("hello"),
  [],
  { results: [] },
  { results: [{ token: "tok.0" }] },
  { results: [{ token: "tok.0", status: "extended" }] },
  { results: [{ token: "tok.0", status: "extended", lease_expires_at: "soon" }] },
  { results: [{ token: "tok.0", status: "expired", detail: "x".repeat(1024 * 1024) }] },
];

for (const [i, body] of UNREADABLE.entries()) {
  test(`an answer that does not read is an error: ${i}`, async () => {
    api.answers = [{ status: 200, body }];
    await assert.rejects(client.extend(["tok.0"]), UnreadableAnswer);
    assert.equal(api.calls.length, 1);
  });
}

test("it learns the server's time", async () => {
  clock = new FakeClock(-90);
  client = new Client(api.address, "key", { clock });
  assert.equal(client.serverNow(), LAUNCH - 90);
  await client.extend(["tok.0"]);
  assert.equal(client.serverNow(), LAUNCH);
});

test("it names its version", async () => {
  await client.release(["tok.0"]);
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  assert.equal(api.calls[0]?.headers["user-agent"], `tidegate-consumer/${version} (node)`);
});

test("the address is checked, may end in a slash, and the key is not shown", async () => {
  assert.throws(() => new Client("file:///etc/passwd", "key"), { message: /begins with neither/ });
  assert.equal(inspect(client, { depth: 5, showHidden: true }).includes("tg_acme"), false);
  await new Client(`${api.address}/`, "key").release(["tok.0"]);
  assert.equal(api.calls[0]?.path, "/v1/tokens/release");
});
