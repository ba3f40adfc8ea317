/**
 * A consumer of a queue: receives events, works on several at once, releases their tokens, deletes their messages.
 *
 * A message is deleted only when the API has accepted the release of its token. Whatever goes wrong before that leaves
 * the message in the queue, and it comes again.
 */

import type { SQS } from "@aws-sdk/client-sqs";

import { backoffSeconds, type Client } from "./client.js";
import { Condition, type Clock } from "./clock.js";
import { Heartbeats } from "./leases.js";
import * as limits from "./limits.js";
import { textOf, type Log } from "./log.js";
import { MessageError, parseEvent, type Event } from "./messages.js";
import { Periodic } from "./periodic.js";
import { Releaser } from "./releases.js";
import { Queue, type Message } from "./sqs.js";
import { isOutcome, Recent, releaseOf, Worker, type Work } from "./worker.js";

export interface QueueConsumerOptions {
  /** How many events are worked on at once. */
  readonly concurrency?: number;
  /** How long a message stays invisible after its consumer was killed. */
  readonly visibilitySeconds?: number;
  /** How long a receive waits for messages; a shutdown waits for it. */
  readonly waitSeconds?: number;
  /** How long a release waits for others to go with it, up to 100. */
  readonly lingerSeconds?: number;
  /** How long a shutdown waits for what is under way. */
  readonly shutdownSeconds?: number;
  /** Of how many events the outcomes are remembered. */
  readonly rememberedEvents?: number;
  /** The client of SQS; `new SQS({})` when left out. */
  readonly sqs?: SQS;
}

/** Works on the events of a queue until it is stopped: calls `work` with each event and its lease. */
export class QueueConsumer {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #queue: Queue;
  readonly #concurrency: number;
  readonly #visibilitySeconds: number;
  readonly #waitSeconds: number;
  readonly #shutdownSeconds: number;
  readonly #heartbeats: Heartbeats;
  readonly #worker: Worker;
  readonly #releaser: Releaser<Message>;
  readonly #keptInvisible: Periodic<Message>;
  readonly #changed: Condition;
  #underWay = 0;
  #isPolling = true;
  #isStopping = false;

  /** @throws {RangeError} when `concurrency` is less than 1. */
  constructor(client: Client, queueUrl: string, work: Work, options: QueueConsumerOptions = {}) {
    this.#concurrency = options.concurrency ?? limits.CONCURRENCY;
    if (!(this.#concurrency >= 1)) throw new RangeError(`a concurrency of ${this.#concurrency} works on nothing`);
    this.#visibilitySeconds = options.visibilitySeconds ?? limits.VISIBILITY_SECONDS;
    this.#waitSeconds = options.waitSeconds ?? limits.WAIT_SECONDS;
    this.#shutdownSeconds = options.shutdownSeconds ?? limits.SHUTDOWN_SECONDS;
    this.#clock = client.clock;
    this.#log = client.log;
    this.#queue = new Queue(options.sqs, queueUrl, client.log);
    this.#heartbeats = new Heartbeats(client);
    const recent = new Recent(options.rememberedEvents ?? limits.REMEMBERED_EVENTS, client.log);
    this.#worker = new Worker(work, recent, this.#heartbeats, client.log);
    const linger = options.lingerSeconds ?? limits.LINGER_SECONDS;
    this.#releaser = new Releaser(client, linger, (answers) => this.#settle(answers));
    this.#keptInvisible = new Periodic<Message>(
      (messages) => this.#queue.setVisibility(messages, this.#visibilitySeconds),
      () => this.#visibilitySeconds / 3,
      client,
    );
    this.#changed = new Condition(client.clock);
  }

  /**
   * Works until `stop` is called, finishes what is under way, and returns. To be called once.
   *
   * What is not finished within `shutdownSeconds` is given up: its lease says `lost`, its token is not released, and
   * its message becomes visible again.
   */
  async run(): Promise<void> {
    const polling = this.#poll();
    polling.catch(() => {}); // It is awaited below, after the shutdown.
    while (!this.#isStopping) await this.#changed.wait();
    await this.#shutDown();
    if (!this.#isPolling) await polling; // Throws what ended it.
  }

  /** Lets `run` come to its end. May be called at any time, also from the work. */
  stop(): void {
    this.#isStopping = true;
    this.#changed.notifyAll();
  }

  async #poll(): Promise<void> {
    try {
      let failures = 0;
      for (let room = await this.#waitForRoom(); room > 0; room = await this.#waitForRoom()) {
        let messages: Message[];
        try {
          messages = await this.#queue.receive(room, this.#waitSeconds, this.#visibilitySeconds);
          failures = 0;
        } catch (error) {
          failures += 1;
          await this.#backOff(failures, error);
          continue;
        }
        if (this.#isStopping) {
          await this.#queue.setVisibility(messages, 0);
          break;
        }
        for (const message of messages) this.#begin(message);
      }
    } finally {
      this.#isPolling = false;
      this.stop();
    }
  }

  /** How many events may be begun, at least one; 0 when this is stopping. */
  async #waitForRoom(): Promise<number> {
    while (this.#underWay >= this.#concurrency && !this.#isStopping) await this.#changed.wait();
    return this.#isStopping ? 0 : this.#concurrency - this.#underWay;
  }

  async #backOff(failures: number, error: unknown): Promise<void> {
    const seconds = backoffSeconds(failures, 0);
    this.#log.error(`failed to receive messages, trying again in ${seconds.toFixed(1)} s: ${textOf(error)}`);
    const until = this.#clock.monotonic() + seconds;
    while (!this.#isStopping && this.#clock.monotonic() < until) await this.#changed.wait(until);
  }

  #begin(message: Message): void {
    this.#underWay += 1;
    void this.#handle(message);
  }

  async #handle(message: Message): Promise<void> {
    this.#keptInvisible.add(message);
    let isLeft = true;
    try {
      isLeft = await this.#workOn(message);
    } catch (error) {
      this.#log.error(`message ${message.messageId} is left in the queue`, error);
    } finally {
      if (isLeft) this.#keptInvisible.discard(message);
      this.#underWay -= 1;
      this.#changed.notifyAll();
    }
  }

  /** Whether the message is left as it is: neither deleted nor with the releaser, which deletes it. */
  async #workOn(message: Message): Promise<boolean> {
    let event: Event;
    try {
      event = parseEvent(message.body);
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#log.error(`message ${message.messageId} is left in the queue: ${error.message}`);
      return true;
    }
    const lease = this.#heartbeats.start(event);
    const outcome = await this.#worker
      .workOn(event, lease, message.receiveCount > 1)
      .finally(() => this.#heartbeats.stop(lease));
    if (outcome === "left") return true;
    if (isOutcome(outcome) && event.token !== undefined) {
      await this.#releaser.add(releaseOf(event.token, outcome), message);
      return false;
    }
    await this.#settle([[message, true]]);
    return false;
  }

  /** Deletes the messages whose releases were accepted. The others become visible again. */
  async #settle(answers: [message: Message, isAccepted: boolean][]): Promise<void> {
    await this.#queue.delete(answers.filter(([, isAccepted]) => isAccepted).map(([message]) => message));
    for (const [message] of answers) this.#keptInvisible.discard(message);
  }

  async #shutDown(): Promise<void> {
    const deadline = this.#clock.monotonic() + this.#shutdownSeconds;
    while (this.#underWay > 0 || this.#isPolling) {
      if (this.#clock.monotonic() >= deadline) break;
      await this.#changed.wait(deadline);
    }
    if (this.#underWay > 0) this.#log.warn(`${this.#underWay} events are given up: they were not finished in time`);
    this.#heartbeats.giveUp();
    await this.#releaser.close(limits.RELEASE_GRACE_SECONDS);
    this.#heartbeats.close();
    this.#keptInvisible.close();
  }
}
