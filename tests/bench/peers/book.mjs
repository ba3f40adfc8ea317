// What a consumer saw: when each event came, how late it was, and how many were in hand at once.
import { performance } from "node:perf_hooks";

/** Now, in milliseconds since 1970, with their fractions. */
export const now = () => performance.timeOrigin + performance.now();

// The clocks of a server and of this process are the same, but not every system counts fractions of a millisecond.
const EARLY_BEYOND_MS = 2;

export class Book {
  /** Of `count` events; `due(n)` says when event `n` is due, or nothing. */
  constructor(count, due) {
    Object.assign(this, { count, due, seen: new Uint8Array(count), late: [], repeated: 0, early: 0 });
    Object.assign(this, { inHand: 0, most: 0, first: undefined, last: undefined });
    this.all = new Promise((resolve) => (this.complete = resolve));
  }

  /** Event `n` is in the consumer's hands. */
  begin(n) {
    const at = now();
    this.inHand += 1;
    this.most = Math.max(this.most, this.inHand);
    if (this.seen[n]) {
      this.repeated += 1;
      return;
    }
    this.seen[n] = 1;
    this.first ??= at;
    this.last = at;
    const late = at - (this.due?.(n) ?? at);
    if (late < -EARLY_BEYOND_MS) this.early += 1;
    this.late.push(late);
    if (this.late.length === this.count) this.complete();
  }

  /** The work of an event has ended; its token, or its place, is about to be given back. */
  end() {
    this.inHand -= 1;
    this.ended = now();
  }

  /** Waits until each event was seen, or until `at`. */
  async wait(at) {
    let timer;
    const over = new Promise((resolve) => (timer = setTimeout(resolve, Math.max(0, at - now()))));
    await Promise.race([this.all, over]);
    clearTimeout(timer);
  }

  /** What must hold whatever the speed. */
  check() {
    const { count: wanted, late, repeated, early, most } = this;
    return { wanted, arrived: late.length, repeated, early, most_in_hand: most };
  }
}
