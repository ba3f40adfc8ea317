// The works. Each is played on an adapter and answers its figures, and what must hold whatever the speed.
import { setTimeout as sleep } from "node:timers/promises";

import { Book, now } from "./book.mjs";
import { percentile, perSecond } from "./figures.mjs";
import { usage } from "./servers.mjs";

const BULK = 1000;
// Node's timers count whole milliseconds; the rest of a job's time is spent awake.
const AWAKE_MS = 1.5;

export const works = { herd, batch, creates, steady };

/** One-time jobs of one instant, created in bulk ahead of it and consumed as they come. */
async function herd(system, { count, ahead_s: ahead, callers, take, patience_s: patience }) {
  const due = wholeSecond(now() + ahead * 1000);
  const book = new Book(count, () => due);
  await create(system, count, callers, due);
  const created = now();
  const stop = await system.consume(book, { take });
  await book.wait(due + patience * 1000);
  const figures = {
    p50_late_s: seconds(percentile(book.late, 0.5)),
    p99_late_s: seconds(percentile(book.late, 0.99)),
    max_late_s: seconds(percentile(book.late, 1)),
    per_second: perSecond(book.late.length, book.last - due),
    from_first_per_second: perSecond(book.late.length, book.last - book.first),
    // Work that was not all created by its instant tells of the creation instead.
    created_before_due_s: (due - created) / 1000,
  };
  await stop();
  return { figures, check: book.check() };
}

/** A backlog, of one batch where the system knows batches, that is drained under a limit. */
async function batch(system, { count, limit, take, work_ms: workMs, patience_s: patience }) {
  const book = new Book(count);
  await system.createBatch(count);
  const until = now() + patience * 1000;
  const stop = await system.consume(book, { take, work: workMs ? () => spend(workMs) : undefined });
  await book.wait(until);
  await sleep(2 * (workMs ?? 0));
  const took = book.ended - book.first;
  const figures = { from_first_per_second: perSecond(book.late.length, book.last - book.first) };
  if (workMs) figures.share_of_ideal = (book.late.length * workMs) / limit / took;
  await stop();
  return { figures, check: book.check() };
}

/** Creates alone, in bulk or one by one; nothing is consumed. */
async function creates(system, { count, ahead_s: ahead, callers, one_by_one: oneByOne }) {
  const due = wholeSecond(now() + ahead * 1000);
  const started = now();
  if (oneByOne) await crowd(callers, count, (n) => system.createOne(n, due));
  else await create(system, count, callers, due);
  return { figures: { per_second: perSecond(count, now() - started) } };
}

/** A steady load: so many jobs each tenth of a second, due at the whole seconds of a span ahead, consumed as they come. */
async function steady(system, { per_second: rate, for_s: length, ahead_s: [nearest, farthest], take, patience_s }, server) {
  const [ticks, each] = [length * 10, rate / 10];
  const instants = new Float64Array(ticks * each);
  const book = new Book(instants.length, (n) => instants[n]);
  const stop = await system.consume(book, { take });
  const before = usage(server);
  const started = now();
  const calls = [];
  for (let tick = 0; tick < ticks; tick += 1) {
    await sleep(Math.max(0, started + tick * 100 - now()));
    // Each tenth of a second another distance ahead: all of them as often.
    const ahead = nearest + ((tick * 7) % (farthest - nearest + 1));
    const due = wholeSecond(now() + ahead * 1000);
    const numbers = Array.from({ length: each }, (_, index) => tick * each + index);
    numbers.forEach((n) => (instants[n] = due));
    calls.push(system.createBulk(numbers, due));
  }
  await Promise.all(calls);
  await book.wait(now() + (farthest + patience_s) * 1000);
  const after = usage(server);
  await stop();
  const figures = {
    p50_late_s: seconds(percentile(book.late, 0.5)),
    p99_late_s: seconds(percentile(book.late, 0.99)),
    memory_mb: after?.memoryMb,
    processor_us_per_job: before && after && ((after.processorMs - before.processorMs) * 1000) / instants.length,
  };
  return { figures, check: book.check() };
}

/** Bulk calls of up to a thousand jobs by several callers. */
function create(system, count, callers, due) {
  const bulk = Math.min(BULK, Math.ceil(count / callers));
  return crowd(callers, Math.ceil(count / bulk), (call) => {
    const length = Math.min(bulk, count - call * bulk);
    return system.createBulk(Array.from({ length }, (_, index) => call * bulk + index), due);
  });
}

/** `count` calls by `callers` at a time. */
async function crowd(callers, count, call) {
  let next = 0;
  const caller = async () => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

async function spend(ms) {
  const end = now() + ms;
  await sleep(Math.floor(ms - AWAKE_MS));
  while (now() < end) await new Promise(setImmediate);
}

const wholeSecond = (at) => Math.ceil(at / 1000) * 1000;
const seconds = (ms) => (ms === undefined ? undefined : ms / 1000);
