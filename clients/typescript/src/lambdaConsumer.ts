/**
 * A consumer for a Lambda function with an SQS event source.
 *
 * The function must report batch item failures: `FunctionResponseTypes: [ReportBatchItemFailures]` of the event source.
 */

import type { Client, Release } from "./client.js";
import { Condition } from "./clock.js";
import { Heartbeats, type Lease } from "./leases.js";
import * as limits from "./limits.js";
import { MessageError, parseEvent, type Event } from "./messages.js";
import { sendReleases } from "./releases.js";
import { isOutcome, Recent, releaseOf, Worker, type NoOutcome, type Outcome, type Work } from "./worker.js";

/** What Lambda gives a function of a record of SQS, as far as it is read here. */
export interface SqsRecord {
  readonly messageId: string;
  readonly body: string;
  readonly attributes?: { readonly ApproximateReceiveCount?: string };
}

export interface SqsEvent {
  readonly Records: readonly SqsRecord[];
}

export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

export interface SqsBatchResponse {
  batchItemFailures: { itemIdentifier: string }[];
}

export interface LambdaOptions {
  /** How many records of an invocation are worked on at once. */
  readonly concurrency?: number;
  /** Time of the invocation that is kept for its end; a quarter of it at the most. */
  readonly marginSeconds?: number;
  /** Of how many events an environment remembers the outcomes. */
  readonly rememberedEvents?: number;
}

/**
 * Makes the handler of a function: `export const handler = lambdaHandler(client, work)`.
 *
 * Each record's event is given to `work`, up to `concurrency` at once. Their tokens are released at the end, or
 * `marginSeconds` (a quarter of the invocation's time at the most) before the function would be stopped. A record is
 * reported as a failure when it is no event, when its release could not be sent, or when its event was not finished:
 * then it comes again. Work that failed and was released as `failed` is not reported.
 *
 * @throws {RangeError} when `concurrency` is less than 1.
 */
export function lambdaHandler(
  client: Client,
  work: Work,
  options: LambdaOptions = {},
): (event: SqsEvent, context: LambdaContext) => Promise<SqsBatchResponse> {
  const concurrency = options.concurrency ?? limits.LAMBDA_CONCURRENCY;
  if (!(concurrency >= 1)) throw new RangeError(`a concurrency of ${concurrency} works on nothing`);
  const recent = new Recent(options.rememberedEvents ?? limits.REMEMBERED_EVENTS, client.log);

  return async (event, context) => {
    const remaining = context.getRemainingTimeInMillis() / 1000;
    const endsAt = client.clock.monotonic() + remaining;
    const margin = Math.min(options.marginSeconds ?? limits.MARGIN_SECONDS, remaining / 4);
    const invocation = new Invocation(client, work, recent, event.Records);
    await invocation.work(concurrency, endsAt - margin);
    // Half of the margin is for whatever else the function does in its end.
    const failures = await invocation.release(endsAt - margin / 2);
    return { batchItemFailures: failures.map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

/** One record of an invocation, and what has come of it so far. */
interface Item {
  readonly messageId: string;
  readonly cameBefore: boolean;
  readonly event: Event;
  readonly lease: Lease;
  outcome: Outcome | NoOutcome;
}

/** The records of one invocation. Their leases are extended from its start, also while they wait for their turn. */
class Invocation {
  readonly #client: Client;
  readonly #heartbeats: Heartbeats;
  readonly #worker: Worker;
  readonly #messageIds: string[];
  readonly #items: Item[] = [];
  readonly #toBegin: Item[];
  readonly #changed: Condition;
  #working = 0;

  constructor(client: Client, work: Work, recent: Recent, records: readonly SqsRecord[]) {
    this.#client = client;
    this.#heartbeats = new Heartbeats(client);
    this.#worker = new Worker(work, recent, this.#heartbeats, client.log);
    this.#changed = new Condition(client.clock);
    this.#messageIds = records.map((record) => record.messageId);
    for (const record of records) {
      try {
        const event = parseEvent(record.body);
        const cameBefore = Number(record.attributes?.ApproximateReceiveCount ?? 1) > 1;
        const lease = this.#heartbeats.start(event);
        this.#items.push({ messageId: record.messageId, cameBefore, event, lease, outcome: "left" });
      } catch (error) {
        if (!(error instanceof MessageError)) throw error;
        client.log.error(`message ${record.messageId} is reported as a failure: ${error.message}`);
      }
    }
    this.#toBegin = [...this.#items];
  }

  /** Works on the records, and returns when all are done, or at `until`: then the rest is given up. */
  async work(concurrency: number, until: number): Promise<void> {
    const { clock, log } = this.#client;
    this.#working = Math.min(concurrency, this.#items.length);
    for (let i = this.#working; i > 0; i -= 1) void this.#workInTurn();
    while (this.#working > 0) {
      if (clock.monotonic() >= until) {
        log.warn("events are given up: the invocation ends soon");
        break;
      }
      await this.#changed.wait(until);
    }
    this.#heartbeats.giveUp();
    this.#heartbeats.close();
  }

  /** Releases what has an outcome. Returns the ids of the messages that are to come again. */
  async release(deadline: number): Promise<string[]> {
    const settled = new Set<string>();
    const releases: [messageId: string, release: Release][] = [];
    for (const { messageId, event, outcome } of this.#items) {
      if (isOutcome(outcome) && event.token !== undefined) {
        releases.push([messageId, releaseOf(event.token, outcome)]);
      } else if (outcome !== "left") {
        settled.add(messageId);
      }
    }
    for (let start = 0; start < releases.length; start += limits.TOKENS_PER_CALL) {
      const batch = releases.slice(start, start + limits.TOKENS_PER_CALL);
      const accepted = await sendReleases(this.#client, batch.map(([, release]) => release), { deadline });
      batch.forEach(([messageId], i) => {
        if (accepted[i]) settled.add(messageId);
      });
    }
    return this.#messageIds.filter((messageId) => !settled.has(messageId));
  }

  async #workInTurn(): Promise<void> {
    for (let item = this.#toBegin.shift(); item !== undefined; item = this.#toBegin.shift()) {
      try {
        item.outcome = await this.#worker.workOn(item.event, item.lease, item.cameBefore);
      } catch (error) {
        this.#client.log.error(`message ${item.messageId} is reported as a failure`, error);
      }
    }
    this.#working -= 1;
    this.#changed.notifyAll();
  }
}
