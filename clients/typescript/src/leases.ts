/** Keeping the leases of events that are worked on, by heartbeats. */

import { ApiError, type Client, type Extended } from "./client.js";
import * as limits from "./limits.js";
import { instant, type Event } from "./messages.js";
import { Periodic } from "./periodic.js";

/** The lease of an event that is worked on. An event without token has one too, which only a shutdown ends. */
export class Lease {
  readonly event_id: string;
  readonly token: string | undefined;
  /**
   * Whether the API said that the lease has ended, so that Tidegate delivers the event again if it is to be.
   * The other answers, such as `unknown`, may come from a wrong address or key: then the message is kept.
   */
  isOver = false;
  readonly #lost = new AbortController();
  #isExtended = false;
  #endsAt: number | undefined;

  constructor(event: Event) {
    this.event_id = event.event_id;
    this.token = event.token;
    this.#endsAt = event.lease_expires_at === undefined ? undefined : instant(event.lease_expires_at);
  }

  /**
   * Aborted when the event is not this consumer's any more: the API says that the lease has ended, or the time of a
   * shutdown or an invocation is over. Stop working then: another consumer may have the event. What is thrown
   * afterwards is not released.
   */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** What is left of it; 0 when the event did not say when it ends. */
  remainingSeconds(serverNow: number): number {
    return this.#endsAt === undefined ? 0 : this.#endsAt - serverNow;
  }

  /** How long until its next heartbeat: a third of what is left. */
  beatSeconds(serverNow: number): number {
    const remaining = this.remainingSeconds(serverNow);
    if (remaining <= 0) return limits.OVERDUE_BEAT_SECONDS;
    const third = Math.max(limits.SHORTEST_BEAT_SECONDS, remaining / 3);
    return this.#isExtended ? third : Math.min(third, limits.LONGEST_FIRST_BEAT_SECONDS);
  }

  /** Takes the API's answer to an extension. */
  answered({ status, lease_expires_at }: Pick<Extended, "status" | "lease_expires_at">): void {
    if (status === "extended") {
      this.#isExtended = true;
      this.#endsAt = lease_expires_at === undefined ? undefined : instant(lease_expires_at);
      return;
    }
    this.isOver = status === "expired";
    this.#lost.abort();
  }

  /** Tells the function that the event is not its own any more. */
  giveUp(): void {
    this.#lost.abort();
  }
}

/**
 * Extends the leases of events while they are worked on, at about a third of what is left of them.
 *
 * A heartbeat that gets no answer is followed by another one before the lease ends. Once the API says that a lease has
 * ended its heartbeats stop, and `Lease.lost` says so.
 */
export class Heartbeats {
  readonly #client: Client;
  readonly #open = new Set<Lease>();
  readonly #beats: Periodic<Lease>;

  constructor(client: Client) {
    this.#client = client;
    const interval = (lease: Lease): number => lease.beatSeconds(client.serverNow());
    this.#beats = new Periodic((leases) => this.#extend(leases), interval, client);
  }

  /** Begins to extend the lease of an event, if it has one. */
  start(event: Event): Lease {
    const lease = new Lease(event);
    this.#open.add(lease);
    if (lease.token !== undefined) this.#beats.add(lease);
    return lease;
  }

  /** The event is not worked on any more. */
  stop(lease: Lease): void {
    this.#beats.discard(lease);
    this.#open.delete(lease);
  }

  /**
   * Extends a lease now; if it has ended, it is `lost`.
   *
   * @throws {ApiError} when nobody answers that.
   */
  async confirm(lease: Lease): Promise<void> {
    if (lease.token === undefined) return;
    const [answer] = await this.#client.extend([lease.token]);
    lease.answered(answer as Extended);
    if (lease.lost.aborted) this.#beats.discard(lease);
  }

  /** Whether a lease has ended, or is about to, by the time that is known of the server. */
  isShort(lease: Lease): boolean {
    const remaining = lease.remainingSeconds(this.#client.serverNow());
    return lease.token !== undefined && remaining < limits.CHECKED_BELOW_SECONDS;
  }

  /** Tells every function that is still at work that its event is not its own any more. */
  giveUp(): void {
    for (const lease of this.#open) {
      this.#beats.discard(lease);
      lease.giveUp();
    }
  }

  close(): void {
    this.#beats.close();
  }

  async #extend(leases: Lease[]): Promise<void> {
    for (let start = 0; start < leases.length; start += limits.TOKENS_PER_CALL) {
      await this.#extendCall(leases.slice(start, start + limits.TOKENS_PER_CALL));
    }
  }

  async #extendCall(leases: Lease[]): Promise<void> {
    const serverNow = this.#client.serverNow();
    // Retries end when the next heartbeat is due, which is one more.
    const nextBeat = Math.min(...leases.map((lease) => lease.beatSeconds(serverNow)));
    const deadline = this.#client.clock.monotonic() + nextBeat;
    const tokens = leases.map((lease) => lease.token ?? "");
    let answers: Extended[];
    try {
      answers = await this.#client.extend(tokens, undefined, { deadline });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#client.log.warn(`failed to extend ${leases.length} leases, trying again soon: ${error.message}`);
      return;
    }
    leases.forEach((lease, i) => {
      // When the work has ended since, the answer is no news: it may be about a token that was released.
      if (!this.#beats.has(lease)) return;
      const answer = answers[i] as Extended;
      lease.answered(answer);
      if (!lease.lost.aborted) return;
      this.#beats.discard(lease);
      this.#client.log.warn(`the lease of event ${lease.event_id} is lost: the API answers '${answer.status}'`);
    });
  }
}
