/** Verifying the calls that Tidegate makes of an endpoint: signatures of Standard Webhooks. */

import { createHmac, timingSafeEqual } from "node:crypto";

import * as limits from "./limits.js";
import { parseMessage, type Completion, type Event } from "./messages.js";

/** A call is not to be trusted, and says why: answer it with 401. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}

/** The headers of a call: those of `fetch`, or an object, as Node and Lambda have it. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface WebhookOptions {
  /** How far the timestamp of a call may be off. */
  readonly toleranceSeconds?: number;
  /** The time of day, in seconds since 1970. */
  readonly now?: () => number;
}

/** Verifies calls by any of several secrets, so that a secret can be replaced: list the new and the old one. */
export class WebhookVerifier {
  readonly #keys: readonly Buffer[];
  readonly #toleranceSeconds: number;
  readonly #now: () => number;

  /** @throws {TypeError} when there is no secret, or one is not `whsec_` and base64. */
  constructor(secrets: readonly string[], options: WebhookOptions = {}) {
    if (!Array.isArray(secrets) || secrets.length === 0) throw new TypeError("give a list of at least one secret");
    this.#keys = (secrets as readonly string[]).map(keyOf);
    this.#toleranceSeconds = options.toleranceSeconds ?? limits.TOLERANCE_SECONDS;
    this.#now = options.now ?? (() => Date.now() / 1000);
  }

  /**
   * Verifies the bytes of a body as they arrived, and reads the event or the completion.
   *
   * The case of the headers' names does not matter.
   *
   * @throws {WebhookError} when the call is not to be trusted.
   * @throws {MessageError} when it is but does not read.
   */
  verify(body: Uint8Array, headers: WebhookHeaders): Event | Completion {
    if (!(body instanceof Uint8Array)) throw new TypeError("give the body as the bytes that arrived");
    const id = header(headers, "webhook-id");
    const timestamp = header(headers, "webhook-timestamp");
    const signatures = header(headers, "webhook-signature");
    this.#checkTime(timestamp);
    const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
    const given = signatures
      .split(" ")
      .filter((text) => text.startsWith("v1,"))
      .map((text) => decode(text.slice("v1,".length)) ?? Buffer.alloc(0));
    let fits = false;
    for (const key of this.#keys) {
      const expected = createHmac("sha256", key).update(signed).digest();
      // Every pair is compared, so that the time taken tells nothing.
      for (const one of given) fits = (one.length === expected.length && timingSafeEqual(one, expected)) || fits;
    }
    if (!fits) throw new WebhookError("no signature of the call fits any secret");
    return parseMessage(body);
  }

  #checkTime(timestamp: string): void {
    if (!/^[0-9]{1,15}$/.test(timestamp)) throw new WebhookError("'webhook-timestamp' is no number of seconds");
    const offSeconds = this.#now() - Number(timestamp);
    if (Math.abs(offSeconds) > this.#toleranceSeconds) {
      const way = offSeconds > 0 ? "old" : "far ahead";
      throw new WebhookError(`'webhook-timestamp' is too ${way}: by ${Math.abs(offSeconds).toFixed(0)} s`);
    }
  }
}

function keyOf(secret: string): Buffer {
  const key = decode(secret.replace(/^whsec_/, ""));
  if (key === undefined) throw new TypeError("a secret is not base64 after 'whsec_'");
  if (key.length === 0) throw new TypeError("a secret is empty");
  return key;
}

function header(headers: WebhookHeaders, name: string): string {
  const entries: Iterable<[string, string | readonly string[] | undefined]> =
    headers instanceof Headers ? headers.entries() : Object.entries(headers);
  for (const [given, value] of entries) {
    if (given.toLowerCase() === name && value !== undefined) return typeof value === "string" ? value : value.join(" ");
  }
  throw new WebhookError(`the header '${name}' is missing`);
}

/** The bytes of a text in base64; `undefined` when it is none, of which `Buffer` would drop what it cannot read. */
function decode(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}
