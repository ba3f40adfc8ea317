/**
 * What Tidegate sends to a consumer: events, and completions of runs. docs/messages.md describes both.
 *
 * Fields that this version does not know are ignored: later versions add some.
 */

/** A delivered event. It may come more than once, always with the same `event_id`: the idempotency key. */
export interface Event {
  readonly event_id: string;
  readonly job_id: string;
  readonly client_id: string;
  readonly run_id: string;
  /** Its number in the run, from 0. */
  readonly index: number;
  /** How many events the run has. */
  readonly count: number;
  /** When the run was due, RFC 3339. */
  readonly launch_at: string;
  /** Which delivery of the event this is, from 1. */
  readonly attempt: number;
  /** What the job carries: any JSON. */
  readonly payload: unknown;
  /** What is released when the work is done; absent when the job has no policy. */
  readonly token?: string;
  /** When the token is taken back unless it is extended, RFC 3339; absent when the job has no policy. */
  readonly lease_expires_at?: string;
}

/** A run has ended. It may come more than once, always with the same `id`: the idempotency key. */
export interface Completion {
  readonly type: "run.completed";
  readonly id: string;
  readonly run_id: string;
  readonly job_id: string;
  readonly client_id: string;
  /** `finished`, or `stopped` when the run ended before each of its events had. */
  readonly state: string;
  /** Why it was stopped; `null` when it finished. */
  readonly reason: string | null;
  readonly count: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly expired: number;
  readonly dead: number;
  readonly left_out: number;
  readonly launch_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

/** A message does not read as an event, or as a completion. */
export class MessageError extends Error {
  override readonly name = "MessageError";
}

/**
 * Reads the text of a queue's message, or the body of a webhook.
 *
 * @throws {MessageError} when it is no event.
 */
export function parseEvent(body: string | Uint8Array): Event {
  return event(new Fields(body, "the event"));
}

/**
 * Reads an event or a completion, whichever it is: a completion has a `type`.
 *
 * @throws {MessageError} when it is neither.
 */
export function parseMessage(body: string | Uint8Array): Event | Completion {
  const fields = new Fields(body, "the message");
  return fields.values["type"] === "run.completed" ? completion(fields) : event(fields);
}

/** Whether a message is the completion of a run. */
export function isCompletion(message: Event | Completion): message is Completion {
  return "type" in message;
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** An RFC 3339 instant as seconds since 1970; `undefined` when the text is none. */
export function instant(text: string): number | undefined {
  const ms = INSTANT.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms / 1000;
}

function event(fields: Fields): Event {
  fields.called = "the event";
  return {
    event_id: fields.text("event_id"),
    job_id: fields.text("job_id"),
    client_id: fields.text("client_id"),
    run_id: fields.text("run_id"),
    index: fields.number("index", 0),
    count: fields.number("count", 1),
    launch_at: fields.instant("launch_at"),
    attempt: fields.number("attempt", 1),
    payload: fields.value("payload"),
    ...(fields.has("token") && { token: fields.text("token") }),
    ...(fields.has("lease_expires_at") && { lease_expires_at: fields.instant("lease_expires_at") }),
  };
}

function completion(fields: Fields): Completion {
  fields.called = "the completion";
  return {
    type: "run.completed",
    id: fields.text("id"),
    run_id: fields.text("run_id"),
    job_id: fields.text("job_id"),
    client_id: fields.text("client_id"),
    state: fields.text("state"),
    reason: fields.has("reason") ? fields.text("reason") : null,
    count: fields.number("count", 1),
    succeeded: fields.number("succeeded", 0),
    failed: fields.number("failed", 0),
    expired: fields.number("expired", 0),
    dead: fields.number("dead", 0),
    left_out: fields.number("left_out", 0),
    launch_at: fields.instant("launch_at"),
    started_at: fields.has("started_at") ? fields.instant("started_at") : null,
    finished_at: fields.has("finished_at") ? fields.instant("finished_at") : null,
  };
}

/** The fields of a JSON object, each read as what it must be. */
class Fields {
  readonly values: Readonly<Record<string, unknown>>;
  /** What is said to be unreadable. */
  called: string;

  constructor(body: string | Uint8Array, called: string) {
    this.called = called;
    let values: unknown;
    try {
      const text = typeof body === "string" ? body : new TextDecoder("utf-8", { fatal: true }).decode(body);
      values = JSON.parse(text);
    } catch (error) {
      throw this.#unreadable(error instanceof Error ? error.message : String(error));
    }
    if (typeof values !== "object" || values === null || Array.isArray(values)) {
      throw this.#unreadable("it is no JSON object");
    }
    this.values = values as Record<string, unknown>;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.values, name) && this.values[name] !== null;
  }

  value(name: string): unknown {
    if (!Object.hasOwn(this.values, name)) throw this.#unreadable(`missing field '${name}'`);
    return this.values[name];
  }

  text(name: string): string {
    const value = this.value(name);
    if (typeof value !== "string") throw this.#unreadable(`'${name}' is no text`);
    return value;
  }

  number(name: string, least: number): number {
    const value = this.value(name);
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least) {
      throw this.#unreadable(`'${name}' is no integer from ${least}`);
    }
    return value;
  }

  instant(name: string): string {
    const text = this.text(name);
    if (instant(text) === undefined) throw this.#unreadable(`'${name}': '${text}' is no RFC 3339 instant`);
    return text;
  }

  #unreadable(reason: string): MessageError {
    return new MessageError(`${this.called} cannot be read: ${reason}`);
  }
}
