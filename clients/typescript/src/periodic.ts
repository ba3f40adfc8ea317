/** Something that is done for each of many items now and then, for many at once. */

import type { Clock } from "./clock.js";
import type { Log } from "./log.js";

interface Turn {
  readonly since: number;
  readonly dueAt: number;
}

/**
 * Calls `act` with the items whose turn it is. An item's next turn comes `interval(item)` seconds later.
 *
 * Items that are more than half-way to their turn go along with one whose turn it is, so that items which began at
 * different instants soon share their calls.
 */
export class Periodic<Item> {
  readonly #act: (items: Item[]) => Promise<void>;
  readonly #interval: (item: Item) => number;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #turns = new Map<Item, Turn>();
  #cancel = (): void => {};
  #isActing = false;
  #isClosed = false;

  constructor(
    act: (items: Item[]) => Promise<void>,
    interval: (item: Item) => number,
    { clock, log }: { clock: Clock; log: Log },
  ) {
    this.#act = act;
    this.#interval = interval;
    this.#clock = clock;
    this.#log = log;
  }

  add(item: Item): void {
    this.#turns.set(item, this.#nextTurn(item));
    this.#schedule();
  }

  discard(item: Item): void {
    this.#turns.delete(item);
    this.#schedule();
  }

  has(item: Item): boolean {
    return this.#turns.has(item);
  }

  /** Nothing is begun any more. */
  close(): void {
    this.#isClosed = true;
    this.#schedule();
  }

  #schedule(): void {
    this.#cancel();
    this.#cancel = () => {};
    if (this.#isActing || this.#isClosed || this.#turns.size === 0) return;
    const firstDueAt = [...this.#turns.values()].reduce((first, turn) => Math.min(first, turn.dueAt), Infinity);
    this.#cancel = this.#clock.at(firstDueAt, () => void this.#run());
  }

  async #run(): Promise<void> {
    const now = this.#clock.monotonic();
    const turns = [...this.#turns].filter(([, turn]) => now >= (turn.since + turn.dueAt) / 2);
    const items = turns.map(([item]) => item);
    this.#isActing = true;
    try {
      await this.#act(items);
    } catch (error) {
      this.#log.error(`failed to act on ${items.length} items`, error);
    }
    this.#isActing = false;
    for (const item of items) {
      if (this.#turns.has(item)) this.#turns.set(item, this.#nextTurn(item));
    }
    this.#schedule();
  }

  #nextTurn(item: Item): Turn {
    const since = this.#clock.monotonic();
    return { since, dueAt: since + this.#interval(item) };
  }
}
