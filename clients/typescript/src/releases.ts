/** Releasing tokens: many by one call, and whether each release was accepted. */

import type { CallOptions, Client, Release, Released } from "./client.js";
import { Condition } from "./clock.js";
import * as limits from "./limits.js";
import { textOf } from "./log.js";

const DONE = ["released", "already_released", "accepted"];
/** The lease was not the present one any more: nothing changed, and another delivery of the event decides. */
const LATE = ["reclaimed", "unknown"];

/**
 * Releases up to 100 tokens. Of each: whether the API has taken the release, so that its message can go.
 *
 * An error of the call is logged: then nothing was accepted.
 */
export async function sendReleases(
  client: Client,
  entries: readonly Release[],
  options: CallOptions = {},
): Promise<boolean[]> {
  let answers: Released[];
  try {
    answers = await client.release(entries, options);
  } catch (error) {
    // An ApiError; anything else must not end what releases.
    client.log.error(
      `failed to release ${entries.length} tokens, their messages stay in the queue: ${textOf(error)}`,
    );
    return entries.map(() => false);
  }
  for (const { token, status, detail } of answers) {
    if (LATE.includes(status)) {
      client.log.warn(`token ${token} was not released: the API answers '${status}'`);
    } else if (!DONE.includes(status)) {
      client.log.error(`the release of token ${token} was refused: ${detail ?? status}`);
    }
  }
  return answers.map(({ status }) => DONE.includes(status) || LATE.includes(status));
}

/**
 * Collects releases for a moment and sends them together.
 *
 * Each release has a tag, which `settle` is given back with whether the release was accepted.
 */
export class Releaser<Tag> {
  readonly #client: Client;
  readonly #lingerSeconds: number;
  readonly #settle: (answers: [tag: Tag, isAccepted: boolean][]) => Promise<void>;
  readonly #changed: Condition;
  #waiting: [Release, Tag][] = [];
  #isClosed = false;
  #hasEnded = false;

  constructor(
    client: Client,
    lingerSeconds: number,
    settle: (answers: [tag: Tag, isAccepted: boolean][]) => Promise<void>,
  ) {
    this.#client = client;
    this.#lingerSeconds = lingerSeconds;
    this.#settle = settle;
    this.#changed = new Condition(client.clock);
    void this.#run();
  }

  /** Takes a release to be sent. Waits while a whole call's worth is waiting, so that memory is bounded. */
  async add(release: Release, tag: Tag): Promise<void> {
    while (this.#waiting.length >= limits.TOKENS_PER_CALL && !this.#hasEnded) await this.#changed.wait();
    this.#waiting.push([release, tag]);
    this.#changed.notifyAll();
  }

  /** Sends what is waiting without delay, and returns when that is done or so many seconds have passed. */
  async close(seconds: number): Promise<void> {
    const { clock, log } = this.#client;
    this.#isClosed = true;
    this.#changed.notifyAll();
    const deadline = clock.monotonic() + seconds;
    while (!this.#hasEnded && clock.monotonic() < deadline) await this.#changed.wait(deadline);
    if (!this.#hasEnded) log.error("the last releases were not answered in time: their messages stay in the queue");
  }

  async #run(): Promise<void> {
    for (;;) {
      const batch = await this.#nextBatch();
      if (batch.length === 0) break;
      const accepted = await sendReleases(this.#client, batch.map(([release]) => release));
      await this.#settle(batch.map(([, tag], i) => [tag, accepted[i] === true]));
    }
    this.#hasEnded = true;
    this.#changed.notifyAll();
  }

  /** The releases of one call; empty when this is closed and nothing is waiting. */
  async #nextBatch(): Promise<[Release, Tag][]> {
    const { clock } = this.#client;
    while (this.#waiting.length === 0 && !this.#isClosed) await this.#changed.wait();
    const sendAt = clock.monotonic() + this.#lingerSeconds;
    while (this.#waiting.length < limits.TOKENS_PER_CALL && !this.#isClosed) {
      if (clock.monotonic() >= sendAt) break;
      await this.#changed.wait(sendAt);
    }
    const batch = this.#waiting.splice(0, limits.TOKENS_PER_CALL);
    this.#changed.notifyAll();
    return batch;
  }
}
