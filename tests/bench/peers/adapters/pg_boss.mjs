// pg-boss on PostgreSQL, by its calls `fetch` and `complete`: its own workers look for jobs twice a second at most.
import { setTimeout as sleep } from "node:timers/promises";
import { PgBoss } from "pg-boss";

const QUEUE = "bench";
const GROUP = "limit";
const BULK = 1000;
const CONNECTIONS = 20;
// Batches of a consumer that nothing throttles, and how many are fetched at once while batches come back full.
const FREE_BATCH = 500;
const FREE_LOOPS = 3;
// How long a loop waits that found nothing: a backlog is not looked for, work under a limit is awaited.
const IDLE_MS = 50;
const THROTTLED_IDLE_MS = 2;

/** A queue. Where there is a `limit`, all jobs are in one group, whose concurrency is limited over all workers. */
export async function open({ url }, limit) {
  const boss = new PgBoss({ connectionString: url, max: CONNECTIONS, schedule: false });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue(QUEUE);
  const options = (at) => ({ startAfter: new Date(at), ...(limit && { group: { id: GROUP } }) });
  const insert = (numbers, at) => boss.insert(QUEUE, numbers.map((n) => ({ data: { n }, ...options(at) })));

  return {
    createBulk: insert,
    createOne: (n, at) => boss.send(QUEUE, { n }, options(at)),
    async createBatch(count) {
      for (let from = 0; from < count; from += BULK) {
        const length = Math.min(BULK, count - from);
        await insert(Array.from({ length }, (_, index) => from + index), Date.now());
      }
    },
    consume(book, { take, work }) {
      const state = { running: true };
      // All that the limit allows at once is faster here than several batches. Never more loops than the limit has places:
      // fetches that run at once each count before the others' jobs are active, and exceed it together.
      const batchSize = limit ? (take === 1 ? 1 : limit) : FREE_BATCH;
      const count = limit ? limit / batchSize : FREE_LOOPS;
      const asked = limit ? { batchSize, groupConcurrency: limit } : { batchSize };
      const loop = async (_, number) => {
        while (state.running) {
          const jobs = await boss.fetch(QUEUE, asked);
          await Promise.all(jobs.map(({ data }) => handle(data.n, book, work)));
          jobs.forEach(() => book.end());
          if (jobs.length > 0) await boss.complete(QUEUE, jobs.map(({ id }) => id));
          // While nothing throttles and little is there, one loop looks for all of them.
          if (jobs.length === batchSize) state.busyUntil = Date.now() + IDLE_MS;
          else if (limit) await sleep(jobs.length === 0 ? THROTTLED_IDLE_MS : 0);
          else do await sleep(IDLE_MS); while (state.running && number > 0 && !(state.busyUntil > Date.now()));
        }
      };
      const loops = Array.from({ length: count }, loop);
      return async () => {
        state.running = false;
        await Promise.all(loops);
      };
    },
    close: () => boss.stop({ graceful: false }),
  };
}

async function handle(n, book, work) {
  book.begin(n);
  if (work) await work();
}
