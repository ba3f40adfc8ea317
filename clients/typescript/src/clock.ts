/** The time, behind an interface, so that tests move it instead of waiting. */

export interface Clock {
  /** The time of day, in seconds since 1970. */
  now(): number;
  /** Seconds since some instant; never goes back. For durations. */
  monotonic(): number;
  /** Waits so many seconds. */
  sleep(seconds: number): Promise<void>;
  /** Calls `act` at an instant of `monotonic`, unless the function that this returns is called before. */
  at(instant: number, act: () => void): () => void;
}

/** A timer of Node takes 31 bits of milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Date.now() / 1000,
  monotonic: () => performance.now() / 1000,
  sleep: (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000)),
  at(instant, act) {
    const ms = Math.max(0, instant * 1000 - performance.now());
    const timer = setTimeout(act, Math.min(ms, LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Lets several tasks wait until something has changed. Who waits looks again afterwards. */
export class Condition {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  notifyAll(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Waits until it is notified, or an instant of the clock's `monotonic` has come. */
  wait(until?: number): Promise<void> {
    return new Promise((resolve) => {
      let cancel = (): void => {};
      const wake = (): void => {
        this.#waiting.delete(wake);
        cancel();
        resolve();
      };
      this.#waiting.add(wake);
      if (until !== undefined) cancel = this.#clock.at(until, wake);
    });
  }
}
