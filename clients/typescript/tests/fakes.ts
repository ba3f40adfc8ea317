/** A clock that tests move, and servers on loopback that speak as Tidegate's API and as SQS do. */

import { createHash } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import type { Clock } from "../src/clock.js";
import type { Log } from "../src/log.js";

/** How long a test waits for what must happen before it fails. Nothing waits this long in a test that passes. */
const PATIENCE_MS = 20_000;

export const LAUNCH = 1_795_305_600; // 2026-11-22T00:00:00Z

export function rfc3339(instant: number): string {
  return new Date(instant * 1000).toISOString();
}

/** Something that changes, and that tests wait for. */
export class Changing {
  readonly #waiting = new Set<() => void>();

  changed(): void {
    for (const look of [...this.#waiting]) look();
  }

  async waitUntil(isSo: () => boolean): Promise<void> {
    if (isSo()) return;
    await new Promise<void>((resolve, reject) => {
      const patience = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error("it did not happen"));
      }, PATIENCE_MS);
      const look = (): void => {
        if (!isSo()) return;
        clearTimeout(patience);
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
  }
}

/** A promise that a test fulfils. */
export class Gate {
  isOpen = false;
  #open = (): void => {};
  readonly opened = new Promise<void>((resolve) => (this.#open = resolve));

  open(): void {
    this.isOpen = true;
    this.#open();
  }
}

/** Stands still until a test, or a sleep of the code under test, moves it. */
export class FakeClock extends Changing implements Clock {
  readonly slept: number[] = [];
  readonly #wrongBy: number;
  readonly #timers = new Set<{ instant: number; act: () => void }>();
  #time = LAUNCH;

  constructor(wrongBy = 0) {
    super();
    this.#wrongBy = wrongBy;
  }

  now(): number {
    return this.#time + this.#wrongBy;
  }

  monotonic(): number {
    return this.#time;
  }

  /** What a clock that is right says: that of the server. */
  rightNow(): number {
    return this.#time;
  }

  async sleep(seconds: number): Promise<void> {
    this.slept.push(seconds);
    this.advance(seconds);
  }

  at(instant: number, act: () => void): () => void {
    const timer = { instant, act };
    this.#timers.add(timer);
    if (instant <= this.#time) queueMicrotask(() => this.#fire());
    this.changed();
    return () => void this.#timers.delete(timer);
  }

  advance(seconds: number): void {
    this.#time += seconds;
    this.#fire();
  }

  /** Until somebody waits for the instant that is so many seconds ahead. */
  async waitForTimer(seconds: number): Promise<void> {
    const until = this.#time + seconds;
    await this.waitUntil(() => [...this.#timers].some(({ instant }) => Math.abs(instant - until) < 0.001));
  }

  #fire(): void {
    for (const timer of [...this.#timers]) {
      if (timer.instant <= this.#time && this.#timers.delete(timer)) timer.act();
    }
  }
}

/** Keeps what is logged. */
export class FakeLog implements Log {
  readonly lines: { level: "info" | "warn" | "error"; message: string }[] = [];

  info(message: string): void {
    this.lines.push({ level: "info", message });
  }

  warn(message: string): void {
    this.lines.push({ level: "warn", message });
  }

  error(message: string): void {
    this.lines.push({ level: "error", message });
  }
}

export interface Answer {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Call {
  path: string;
  body: { tokens: (string | { token: string })[]; lease_seconds?: number };
  headers: IncomingHttpHeaders;
}

/** A server on loopback. */
abstract class Loopback extends Changing {
  readonly #server: Server;

  constructor() {
    super();
    this.#server = createServer((request, response) => {
      void this.#read(request).then(async (body) => {
        const { status, body: content, headers } = await this.respond(request, body);
        const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content ?? null));
        response.writeHead(status, { ...headers, "content-length": bytes.length }).end(bytes);
      });
    });
  }

  protected abstract respond(request: IncomingMessage, body: unknown): Promise<Answer>;

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async serve(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #read(request: IncomingMessage): Promise<unknown> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    return JSON.parse(Buffer.concat(chunks).toString());
  }
}

/** Tidegate's API. Releases and extends whatever it is told, unless a test says otherwise. */
export class FakeApi extends Loopback {
  readonly calls: Call[] = [];
  leaseSeconds = 60;
  /** What is answered of a token, by its text. */
  readonly statuses: Record<string, string> = {};
  /** What is answered to the next calls, whichever they are, one after another. */
  answers: Answer[] = [];
  /** Calls are answered once it is open. */
  gate: Gate | undefined;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    super();
    this.#clock = clock;
  }

  of(path: "release" | "extend"): Call[] {
    return this.calls.filter((call) => call.path === `/v1/tokens/${path}`);
  }

  /** The calls of a route, as soon as there are so many. */
  async waitFor(path: "release" | "extend", count: number): Promise<Call[]> {
    await this.waitUntil(() => this.of(path).length >= count);
    return this.of(path);
  }

  /** Every entry of every release. */
  released(): { token: string; outcome: string; result?: string; error?: string }[] {
    return this.of("release").flatMap((call) => call.body.tokens) as ReturnType<FakeApi["released"]>;
  }

  releasedTokens(): string[] {
    return this.released().map(({ token }) => token);
  }

  protected override async respond(request: IncomingMessage, body: unknown): Promise<Answer> {
    const call = { path: request.url ?? "", body: body as Call["body"], headers: request.headers };
    const scripted = this.answers.shift();
    this.calls.push(call);
    this.changed();
    await this.gate?.opened;
    const results = call.body.tokens.map((entry) => this.#result(call.path, entry));
    const date = new Date(this.#clock.rightNow() * 1000).toUTCString();
    const answer = scripted ?? { status: 200, body: { results } };
    return { ...answer, headers: { date, ...answer.headers } };
  }

  #result(path: string, entry: string | { token: string }): Record<string, string> {
    const token = typeof entry === "string" ? entry : entry.token;
    if (path === "/v1/tokens/release") return { token, status: this.statuses[token] ?? "released" };
    const status = this.statuses[token] ?? "extended";
    if (status !== "extended") return { token, status };
    return { token, status, lease_expires_at: rfc3339(this.#clock.rightNow() + this.leaseSeconds) };
  }
}

export interface Stored {
  readonly messageId: string;
  readonly body: string;
  isVisible: boolean;
  isDeleted: boolean;
  receiveCount: number;
  /** Each visibility time-out that it was given, from its receive on. */
  readonly visibility: number[];
}

interface SqsRequest {
  MaxNumberOfMessages: number;
  WaitTimeSeconds: number;
  VisibilityTimeout: number;
  MessageSystemAttributeNames: string[];
  Entries: { Id: string; ReceiptHandle: string; VisibilityTimeout: number }[];
}

/** One queue. A message becomes visible again when a test says so, not by the time. */
export class FakeSqs extends Loopback {
  readonly messages: Stored[] = [];
  receives = 0;
  /** What is answered to the next receives instead of messages. */
  answers: Answer[] = [];
  #doPollsWait = true;

  send(body: unknown): Stored {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const messageId = `message-${this.messages.length}`;
    const stored: Stored = {
      messageId,
      body: text,
      isVisible: true,
      isDeleted: false,
      receiveCount: 0,
      visibility: [],
    };
    this.messages.push(stored);
    this.changed();
    return stored;
  }

  /** Its visibility time-out has passed. */
  makeVisible(stored: Stored): void {
    stored.isVisible = true;
    this.changed();
  }

  /** Receives wait no longer. */
  endPolls(): void {
    this.#doPollsWait = false;
    this.changed();
  }

  async waitForDeletes(count: number): Promise<void> {
    await this.waitUntil(() => this.messages.filter(({ isDeleted }) => isDeleted).length >= count);
  }

  protected override async respond(request: IncomingMessage, body: unknown): Promise<Answer> {
    const asked = body as SqsRequest;
    const headers = { "content-type": "application/x-amz-json-1.0" };
    switch (request.headers["x-amz-target"]) {
      case "AmazonSQS.ReceiveMessage":
        return { ...(await this.#receive(asked)), headers };
      case "AmazonSQS.DeleteMessageBatch":
        return { ...this.#forEach(asked, (stored) => Object.assign(stored, { isDeleted: true, isVisible: false })), headers };
      case "AmazonSQS.ChangeMessageVisibilityBatch":
        return {
          ...this.#forEach(asked, (stored, seconds) => {
            stored.visibility.push(seconds);
            stored.isVisible = seconds === 0;
          }),
          headers,
        };
      default:
        return { status: 400 };
    }
  }

  async #receive(asked: SqsRequest): Promise<Answer> {
    this.receives += 1;
    this.changed();
    if (asked.MaxNumberOfMessages < 1 || asked.MaxNumberOfMessages > 10) return { status: 400 };
    const scripted = this.answers.shift();
    if (scripted !== undefined) return scripted;
    await this.waitUntil(() => !this.#doPollsWait || this.messages.some(({ isVisible }) => isVisible));
    const taken = this.messages.filter(({ isVisible }) => isVisible).slice(0, asked.MaxNumberOfMessages);
    for (const stored of taken) {
      stored.isVisible = false;
      stored.receiveCount += 1;
      stored.visibility.push(asked.VisibilityTimeout);
    }
    if (asked.MessageSystemAttributeNames.join() !== "ApproximateReceiveCount") return { status: 400 };
    return { status: 200, body: taken.length > 0 ? { Messages: taken.map(received) } : {} };
  }

  #forEach({ Entries }: SqsRequest, act: (stored: Stored, seconds: number) => void): Answer {
    if (Entries.length < 1 || Entries.length > 10) return { status: 400 };
    for (const { ReceiptHandle, VisibilityTimeout } of Entries) {
      const stored = this.messages.find(({ messageId }) => messageId === ReceiptHandle.split("/")[0]);
      if (stored !== undefined) act(stored, VisibilityTimeout);
    }
    this.changed();
    const kept = Entries.filter(({ ReceiptHandle }) => ReceiptHandle.startsWith("refused"));
    const Failed = kept.map(({ Id }) => ({ Id, Code: "x", Message: "not now", SenderFault: true }));
    return { status: 200, body: { Successful: [], Failed } };
  }
}

function received({ messageId, receiveCount, body }: Stored): unknown {
  return {
    MessageId: messageId,
    ReceiptHandle: `${messageId}/${receiveCount}`,
    Body: body,
    MD5OfBody: createHash("md5").update(body).digest("hex"),
    Attributes: { ApproximateReceiveCount: String(receiveCount) },
  };
}

/** The body of an event of a job with a policy, whose lease lasts a minute. A change to `undefined` leaves it out. */
export function eventBody(index = 0, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    event_id: `nightly.1.1795305600.${index}`,
    job_id: "nightly",
    client_id: "acme",
    run_id: "nightly.1.1795305600",
    index,
    count: 5,
    launch_at: "2026-11-22T00:00:00Z",
    attempt: 1,
    token: `tok.${index}`,
    lease_expires_at: rfc3339(LAUNCH + 60),
    payload: { report: "daily" },
    ...changes,
  };
}

export const UNTHROTTLED = { token: undefined, lease_expires_at: undefined };

export const COMPLETION = {
  type: "run.completed",
  id: "nightly.1.1795305600.completed",
  run_id: "nightly.1.1795305600",
  job_id: "nightly",
  client_id: "acme",
  state: "finished",
  reason: null,
  count: 5,
  succeeded: 4,
  failed: 1,
  expired: 0,
  dead: 0,
  left_out: 0,
  launch_at: "2026-11-22T00:00:00Z",
  started_at: "2026-11-22T03:33:09.487Z",
  finished_at: null,
};
