// graphile-worker on PostgreSQL, with a local queue and completions in batches, as its page on performance advises.
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const TASK = "work";
const BULK = 1000;
const POLL_MS = 50;
const FREE_CONCURRENCY = 50;
const FREE_QUEUE = 500;
const CONNECTIONS = 20;

/** A `limit` is the concurrency of the one worker process: nothing of it holds over several. */
export async function open({ url }, limit) {
  const logger = new Logger(() => (level, message) => {
    if (level === "error") console.error(message);
  });
  const utils = await makeWorkerUtils({ connectionString: url, logger, maxPoolSize: CONNECTIONS });
  await utils.migrate();
  const add = (numbers, at) =>
    utils.addJobs(numbers.map((n) => ({ identifier: TASK, payload: { n }, runAt: new Date(at) })));

  return {
    createBulk: add,
    createOne: (n, at) => utils.addJob(TASK, { n }, { runAt: new Date(at) }),
    async createBatch(count) {
      for (let from = 0; from < count; from += BULK) {
        const length = Math.min(BULK, count - from);
        await add(Array.from({ length }, (_, index) => from + index), Date.now());
      }
    },
    async consume(book, { work }) {
      const concurrentJobs = limit ?? FREE_CONCURRENCY;
      const handle = async ({ n }) => {
        book.begin(n);
        if (work) await work();
        book.end();
      };
      const worker = {
        connectionString: url,
        maxPoolSize: CONNECTIONS,
        concurrentJobs,
        pollInterval: POLL_MS,
        localQueue: { size: limit ? 4 * limit : FREE_QUEUE },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      };
      const runner = await run({ logger, noHandleSignals: true, preset: { worker }, taskList: { [TASK]: handle } });
      return () => runner.stop();
    },
    close: () => utils.release(),
  };
}
