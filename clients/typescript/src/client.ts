/** The calls of the API that a consumer makes: release and extend, with their retries. */

import { systemClock, type Clock } from "./clock.js";
import * as limits from "./limits.js";
import { textOf, type Log } from "./log.js";
import { instant } from "./messages.js";

const USER_AGENT = "tidegate-consumer/0.1.0 (node)";
// Control characters, each of which would be six bytes in JSON, and which nobody can read anyway.
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f]/g;

/** A token, and how its event ended: `succeeded` when left out. `result` goes with `succeeded`, `error` with `failed`. */
export interface Release {
  readonly token: string;
  readonly outcome?: "succeeded" | "failed";
  readonly result?: string;
  readonly error?: string;
}

/** What a release did to one token. */
export interface Released {
  readonly token: string;
  /** `released`, `already_released`, `accepted`, `reclaimed`, `not_yours`, `unknown` or `malformed`. */
  readonly status: string;
  /** What is wrong with the entry, when it is malformed. */
  readonly detail?: string;
}

/** What an extension did to one token. */
export interface Extended {
  readonly token: string;
  /** `extended`, `expired`, `not_yours`, `unknown` or `malformed`. */
  readonly status: string;
  /** Until when the token is held; only when it was extended. */
  readonly lease_expires_at?: string;
}

export interface ClientOptions {
  /** Of one attempt of a call. */
  readonly timeoutSeconds?: number;
  /** Of a call in all. */
  readonly attempts?: number;
  readonly log?: Log;
  readonly clock?: Clock;
  /** Draws a number from 0 to 1. */
  readonly jitter?: () => number;
}

export interface CallOptions {
  /** An instant of the monotonic clock after which no attempt is begun. */
  readonly deadline?: number | undefined;
}

/** A call did not do what it was asked. */
export class ApiError extends Error {
  override readonly name: string = "ApiError";
  /** The status of a refusal; absent when no answer came, and whether the call took effect is unknown. */
  readonly status: number | undefined;
  /** How long the API wants the next attempt to wait. */
  readonly retryAfterSeconds: number;

  constructor(message: string, status?: number, retryAfterSeconds = 0) {
    super(message);
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** Whether the same call may succeed a little later. */
  isRetryable(): boolean {
    return this.status === undefined || [408, 425, 429].includes(this.status) || this.status >= 500;
  }
}

/** The answer does not read as what this version expects. */
export class UnreadableAnswer extends ApiError {
  override readonly name = "UnreadableAnswer";

  override isRetryable(): boolean {
    return false;
  }
}

interface TokensBody {
  readonly tokens: readonly unknown[];
  readonly lease_seconds?: number | undefined;
}

type Result = Record<string, string>;

/** The API of a Tidegate, as one of its clients. */
export class Client {
  readonly clock: Clock;
  readonly log: Log;
  readonly #baseUrl: string;
  readonly #apiKey: string;
  readonly #timeoutSeconds: number;
  readonly #attempts: number;
  readonly #jitter: () => number;
  #clockIsBehindSeconds = 0;

  /** `baseUrl` is without `/v1`. Makes no call. */
  constructor(baseUrl: string, apiKey: string, options: ClientOptions = {}) {
    if (!/^https?:\/\//.test(baseUrl)) {
      throw new TypeError(`the base URL '${baseUrl}' begins with neither http:// nor https://`);
    }
    this.clock = options.clock ?? systemClock;
    this.log = options.log ?? console;
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#apiKey = apiKey;
    this.#timeoutSeconds = options.timeoutSeconds ?? limits.TIMEOUT_SECONDS;
    this.#attempts = options.attempts ?? limits.ATTEMPTS;
    this.#jitter = options.jitter ?? Math.random;
  }

  /**
   * Releases 1 to 100 tokens; a text alone is a token whose event succeeded. Repeating it is safe.
   *
   * The answer has one entry for each, in the same order: its `status` says what came of it. A `result` or an `error`
   * of more than 2,048 bytes is cut.
   *
   * @throws {ApiError}
   */
  async release(entries: readonly (string | Release)[], options: CallOptions = {}): Promise<Released[]> {
    const results = await this.#results("/v1/tokens/release", { tokens: entries.map(entry) }, options);
    return results.map(({ token, status, detail }) => ({ token, status, detail }) as Released);
  }

  /**
   * Makes the leases of 1 to 100 tokens last `leaseSeconds` from now, or as long as their policy says.
   *
   * The answer has one entry for each, in the same order: its `status` says what came of it. Repeating it is safe.
   *
   * @throws {ApiError}
   */
  async extend(
    tokens: readonly string[],
    leaseSeconds?: number,
    options: CallOptions = {},
  ): Promise<Extended[]> {
    const results = await this.#results("/v1/tokens/extend", { tokens, lease_seconds: leaseSeconds }, options);
    return results.map(({ token, status, lease_expires_at }) => ({ token, status, lease_expires_at }) as Extended);
  }

  /** The server's time of day, as its last answer told it: leases go by its clock, and this one may be wrong. */
  serverNow(): number {
    return this.clock.now() + this.#clockIsBehindSeconds;
  }

  async #results(path: string, body: TokensBody, options: CallOptions): Promise<Result[]> {
    const answer = await this.#post(path, JSON.stringify(body), options.deadline);
    try {
      const { results } = JSON.parse(answer) as { results: Result[] };
      if (results.length !== body.tokens.length) {
        throw new TypeError(`${results.length} results for ${body.tokens.length} tokens`);
      }
      for (const { token, status, lease_expires_at } of results) {
        if (typeof token !== "string" || typeof status !== "string") {
          throw new TypeError("a result without token and status");
        }
        if (status === "extended" && instant(String(lease_expires_at)) === undefined) {
          throw new TypeError(`'${lease_expires_at}' is no RFC 3339 instant`);
        }
      }
      return results;
    } catch (error) {
      throw new UnreadableAnswer(`the answer of the API cannot be read: ${textOf(error)}`);
    }
  }

  /** Makes the call, and repeats it while that may help and there is time. */
  async #post(path: string, body: string, deadline: number | undefined): Promise<string> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attempt(path, body, deadline);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const wait = Math.max(backoffSeconds(attempt, this.#jitter()), error.retryAfterSeconds);
        const isLast = attempt >= this.#attempts || wait > limits.LONGEST_RETRY_AFTER_SECONDS;
        const isLate = deadline !== undefined && this.clock.monotonic() + wait >= deadline;
        if (!error.isRetryable() || isLast || isLate) throw error;
        this.log.info(`attempt ${attempt} of POST ${path} is repeated in ${wait.toFixed(1)} s: ${error.message}`);
        await this.clock.sleep(wait);
      }
    }
  }

  async #attempt(path: string, body: string, deadline: number | undefined): Promise<string> {
    const left = deadline === undefined ? Infinity : deadline - this.clock.monotonic();
    if (left <= 0) throw new ApiError("no answer from the API: there was no time left to ask");
    let response: Response;
    let answer: string | undefined;
    try {
      response = await fetch(this.#baseUrl + path, {
        method: "POST",
        headers: {
          authorization: `Bearer ${this.#apiKey}`,
          "content-type": "application/json",
          "user-agent": USER_AGENT,
        },
        body,
        redirect: "manual", // The API does not redirect; whoever does must not be given the key.
        signal: AbortSignal.timeout(Math.ceil(Math.min(this.#timeoutSeconds, left) * 1000)),
      });
      this.#learnTime(response.headers.get("date"));
      answer = await read(response);
    } catch (error) {
      const cause = error instanceof Error && error.cause !== undefined ? `: ${textOf(error.cause)}` : "";
      throw new ApiError(`no answer from the API: ${textOf(error)}${cause}`);
    }
    if (!response.ok) throw refused(response, answer ?? "");
    if (answer === undefined) throw new UnreadableAnswer(`the answer of the API is over ${limits.ANSWER_BYTES} bytes`);
    return answer;
  }

  #learnTime(date: string | null): void {
    const ms = Date.parse(date ?? "");
    if (!Number.isNaN(ms)) this.#clockIsBehindSeconds = ms / 1000 - this.clock.now();
  }
}

/** How long to wait after an attempt in vain: doubling, and up to half as long again (`jitter` is 0 to 1). */
export function backoffSeconds(attempt: number, jitter: number): number {
  const doubled = limits.FIRST_BACKOFF_SECONDS * 2 ** (attempt - 1);
  return Math.min(doubled, limits.LONGEST_BACKOFF_SECONDS) * (1 + jitter / 2);
}

/** The body of an answer; `undefined` when it is too long. */
async function read(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > limits.ANSWER_BYTES) return undefined;
  }
  return Buffer.concat(chunks).toString();
}

/** Whatever stands between may answer too, and not with a problem. */
function refused(response: Response, body: string): ApiError {
  let detail: unknown;
  try {
    detail = (JSON.parse(body) as { detail?: unknown }).detail;
  } catch {
    // It is no JSON.
  }
  const text = typeof detail === "string" ? detail : body.slice(0, 200);
  const seconds = response.headers.get("retry-after") ?? "";
  const retryAfter = /^[0-9]{1,9}$/.test(seconds) ? Number(seconds) : 0;
  return new ApiError(`the API refused the call: ${text} (${response.status})`, response.status, retryAfter);
}

function entry(given: string | Release): Release {
  if (typeof given === "string") return { token: given, outcome: "succeeded" };
  const { token, outcome = "succeeded", result, error } = given;
  return {
    token,
    outcome,
    ...(result !== undefined && { result: fitted(result) }),
    ...(error !== undefined && { error: fitted(error) }),
  };
}

/** As much of a text as the API keeps, and what it can read of it. */
function fitted(note: string): string {
  const bytes = Buffer.from(note.replace(CONTROL, " ")).subarray(0, limits.NOTE_BYTES);
  // What is left of a character that was cut is dropped: as of a stream, the rest might come.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });
}
