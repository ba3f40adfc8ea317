/** The example and the code of the README, run as they are in processes of their own. */

import assert from "node:assert/strict";
import { execFileSync, spawn, type ChildProcessByStdio } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, before, beforeEach, test } from "node:test";
import type { Readable } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";

import { COMPLETION, eventBody, FakeApi, FakeClock, FakeSqs } from "./fakes.js";
import { OLD_SECRET, SECRET, signed } from "./signing.js";

const FOLDER = fileURLToPath(new URL("../../", import.meta.url));
const EXAMPLE = `${FOLDER}examples/consume.mjs`;
const [QUEUE = "", LAMBDA = "", WEBHOOK = "", RELEASE = ""] = ["queue", "lambda", "webhook", "release"].map(
  (name) => `${FOLDER}build/readme/${name}.js`,
);

let api: FakeApi;
let sqs: FakeSqs;
let environment: Record<string, string>;

before(() => {
  mkdirSync(`${FOLDER}build/readme`, { recursive: true });
  const readme = readFileSync(`${FOLDER}README.md`, "utf8");
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code]) => code ?? "");
  const files = [QUEUE, LAMBDA, WEBHOOK, RELEASE].map((file) => file.replace(/js$/, "ts"));
  assert.equal(blocks.length, files.length);
  files.forEach((file, i) => writeFileSync(file, blocks[i] ?? ""));
  const compilerOptions = { outDir: ".", rootDir: ".", noUnusedParameters: false };
  const project = { extends: "../../tsconfig.json", compilerOptions, files, include: [] };
  writeFileSync(`${FOLDER}build/readme/tsconfig.json`, JSON.stringify(project));
  execFileSync(`${FOLDER}node_modules/.bin/tsc`, ["--project", `${FOLDER}build/readme`], { stdio: "inherit" });
});

beforeEach(async () => {
  api = new FakeApi(new FakeClock());
  sqs = new FakeSqs();
  await Promise.all([api.serve(), sqs.serve()]);
  environment = {
    TIDEGATE_URL: api.address,
    TIDEGATE_API_KEY: "tg_acme_key",
    QUEUE_URL: `${sqs.address}/000000000000/work`,
    AWS_ENDPOINT_URL: sqs.address,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  };
});

afterEach(() => Promise.all([api.close(), sqs.close()]));

/** An event that does not say when its lease ends: these processes have a clock that nobody moves. */
function untimed(index: number): Record<string, unknown> {
  return eventBody(index, { lease_expires_at: undefined });
}

function run(args: string[], settings: Record<string, string>): ChildProcessByStdio<null, Readable, null> {
  return spawn(process.execPath, args, { env: { ...process.env, ...settings }, stdio: ["ignore", "pipe", "inherit"] });
}

/** What a process has printed, when it has ended well. */
async function end(child: ChildProcessByStdio<null, Readable, null>): Promise<string[]> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let out = "";
  for await (const chunk of child.stdout.setEncoding("utf8")) out += String(chunk);
  assert.equal(await ended, 0);
  return out.trimEnd().split("\n");
}

test("the example ends after COUNT events", async () => {
  for (const index of [0, 1, 2]) sqs.send(untimed(index));
  const child = run([EXAMPLE], { ...environment, COUNT: "3" });
  await sqs.waitForDeletes(3);
  sqs.endPolls();
  assert.deepEqual((await end(child)).sort(), [0, 1, 2].map((index) => `nightly.1.1795305600.${index}`));
  assert.equal(api.released().length, 3);
});

for (const [name, file] of [["example", EXAMPLE], ["consumer of the README", QUEUE]] as const) {
  test(`the ${name} ends well on SIGTERM`, async () => {
    sqs.send(untimed(0));
    const child = run([file], environment);
    await sqs.waitForDeletes(1);
    child.kill("SIGTERM");
    sqs.endPolls();
    assert.match((await end(child))[0] ?? "", /nightly\.1\.1795305600\.0/);
    assert.deepEqual(api.releasedTokens(), ["tok.0"]);
  });
}

test("the README's Lambda function handles records", async () => {
  const Records = [
    { messageId: "one", body: JSON.stringify(untimed(0)) },
    { messageId: "two", body: "hello" },
  ];
  const invoke = `
    import { handler } from ${JSON.stringify(pathToFileURL(LAMBDA).href)};
    const context = { getRemainingTimeInMillis: () => 60_000 };
    console.log(JSON.stringify(await handler({ Records: ${JSON.stringify(Records)} }, context)));`;
  const lines = await end(run(["--input-type=module", "--eval", invoke], environment));
  assert.equal(lines.at(-1), '{"batchItemFailures":[{"itemIdentifier":"two"}]}');
  assert.deepEqual(api.releasedTokens(), ["tok.0"]);
});

test("the README's endpoint verifies calls", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  const listening = `
    import { Server } from "node:net";
    const listen = Server.prototype.listen;
    Server.prototype.listen = function (...args) {
      return listen.call(this, ...args).once("listening", () => console.log("listening"));
    };
    await import(${JSON.stringify(pathToFileURL(WEBHOOK).href)});`;
  const settings = { WEBHOOK_SECRETS: `${SECRET} ${OLD_SECRET}`, PORT: String(port) };
  const child = run(["--input-type=module", "--eval", listening], settings);
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (chunk) => (out += String(chunk)));
  await new Promise((resolve) => child.stdout.once("data", resolve));

  const post = async (body: Buffer, signedBody: Buffer, secret: string): Promise<number> => {
    const headers = signed(signedBody, secret, Math.floor(Date.now() / 1000));
    return (await fetch(`http://127.0.0.1:${port}`, { method: "POST", body, headers })).status;
  };
  const event = Buffer.from(JSON.stringify(eventBody()));
  const completion = Buffer.from(JSON.stringify(COMPLETION));
  const other = Buffer.from("{}");
  assert.equal(await post(event, event, SECRET), 204);
  assert.equal(await post(completion, completion, OLD_SECRET), 204);
  assert.equal(await post(other, other, SECRET), 422);
  assert.equal(await post(event, other, SECRET), 401);
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill();
  await closed;
  assert.deepEqual(out.trimEnd().split("\n"), [
    "listening",
    "working on nightly.1.1795305600.0 { report: 'daily' }",
    "run nightly.1.1795305600 has finished",
  ]);
});

test("the README's release is sent", async () => {
  assert.deepEqual(await end(run([RELEASE], { ...environment, TOKEN: "tok.0" })), ["released"]);
  assert.deepEqual(api.released(), [{ token: "tok.0", outcome: "failed", error: "the shop does not answer" }]);
});
