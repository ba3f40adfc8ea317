/** Working on one event: not twice at once, and not again when its outcome is known. */

import { ApiError, type Release } from "./client.js";
import type { Heartbeats, Lease } from "./leases.js";
import type { Log } from "./log.js";
import type { Event } from "./messages.js";

/** A user's function. A text that it returns is the `result` of the release; an error makes the event `failed`. */
export type Work = (event: Event, lease: Lease) => unknown;

/** How an event ended, and what is said about that: a result or an error. */
export interface Outcome {
  readonly outcome: "succeeded" | "failed";
  readonly note: string | undefined;
}

/**
 * Why an event that was received has no outcome.
 *
 * - `lease over`: its message is of no use, and another one comes if the event is to be delivered again.
 * - `left`: it was not finished here; its message stays, and comes again.
 */
export type NoOutcome = "lease over" | "left";

export function isOutcome(outcome: Outcome | NoOutcome): outcome is Outcome {
  return typeof outcome === "object";
}

export function releaseOf(token: string, { outcome, note }: Outcome): Release {
  if (note === undefined) return { token, outcome };
  return outcome === "succeeded" ? { token, outcome, result: note } : { token, outcome, error: note };
}

/** The events that are under way, and the outcomes of those that ended last, by event id. Bounded. */
export class Recent {
  readonly #capacity: number;
  readonly #log: Log;
  readonly #outcomes = new Map<string, { attempt: number; outcome: Outcome }>(); // in the order in which they came
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(capacity: number, log: Log) {
    this.#capacity = capacity;
    this.#log = log;
  }

  /**
   * The outcome of an event: by `work`, unless it is known. Waits when it is being worked on elsewhere.
   *
   * A later delivery of an event that failed is worked on: it was redriven.
   */
  async outcome(event: Event, work: () => Promise<Outcome | NoOutcome>): Promise<Outcome | NoOutcome> {
    const eventId = event.event_id;
    for (;;) {
      const { attempt, outcome: known } = this.#outcomes.get(eventId) ?? { attempt: 0, outcome: undefined };
      if (known !== undefined && (known.outcome === "succeeded" || event.attempt <= attempt)) {
        this.#log.info(`event ${eventId} came again and is not worked on again: it has ${known.outcome}`);
        return known;
      }
      const other = this.#underWay.get(eventId);
      if (other === undefined) break;
      await other.catch(() => {}); // Whoever works on it meets the error.
    }
    const working = this.#work(event, work);
    this.#underWay.set(eventId, working);
    return await working;
  }

  async #work(event: Event, work: () => Promise<Outcome | NoOutcome>): Promise<Outcome | NoOutcome> {
    try {
      const outcome = await work();
      if (isOutcome(outcome)) this.#remember(event, outcome);
      return outcome;
    } finally {
      this.#underWay.delete(event.event_id);
    }
  }

  #remember(event: Event, outcome: Outcome): void {
    this.#outcomes.delete(event.event_id);
    this.#outcomes.set(event.event_id, { attempt: event.attempt, outcome });
    for (const oldest of this.#outcomes.keys()) {
      if (this.#outcomes.size <= this.#capacity) break;
      this.#outcomes.delete(oldest);
    }
  }
}

/** Runs the user's function on events, and says what came of each. */
export class Worker {
  readonly #work: Work;
  readonly #recent: Recent;
  readonly #heartbeats: Heartbeats;
  readonly #log: Log;

  constructor(work: Work, recent: Recent, heartbeats: Heartbeats, log: Log) {
    this.#work = work;
    this.#recent = recent;
    this.#heartbeats = heartbeats;
    this.#log = log;
  }

  /** `cameBefore`: the message was received before, so whoever had it may have released its token. */
  workOn(event: Event, lease: Lease, cameBefore: boolean): Promise<Outcome | NoOutcome> {
    return this.#recent.outcome(event, () => this.#run(event, lease, cameBefore));
  }

  async #run(event: Event, lease: Lease, cameBefore: boolean): Promise<Outcome | NoOutcome> {
    if (!lease.lost.aborted && (cameBefore || this.#heartbeats.isShort(lease))) {
      try {
        await this.#heartbeats.confirm(lease);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const id = event.event_id;
        this.#log.warn(`event ${id} is left in the queue: its lease could not be extended: ${error.message}`);
        return "left";
      }
    }
    if (lease.lost.aborted) {
      this.#log.info(`event ${event.event_id} is not begun: its lease is lost`);
      return withoutOutcome(lease);
    }
    try {
      const result = await this.#work(event, lease);
      return { outcome: "succeeded", note: typeof result === "string" ? result : undefined };
    } catch (error) {
      if (lease.lost.aborted) {
        this.#log.info(`event ${event.event_id} was given up: its lease is lost`, error);
        return withoutOutcome(lease);
      }
      this.#log.warn(`event ${event.event_id} failed`, error);
      if (event.token === undefined) return "left"; // Nobody else would hear of the failure.
      return { outcome: "failed", note: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
    }
  }
}

function withoutOutcome(lease: Lease): NoOutcome {
  return lease.isOver ? "lease over" : "left";
}
