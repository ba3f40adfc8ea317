// BullMQ on Redis. Finished jobs are removed at once, which is the least that Redis can do for them.
import { Queue, Worker } from "bullmq";
import Redis from "ioredis";

const QUEUE = "bench";
const BULK = 1000;
// Enough jobs under way to keep Redis busy, which is one thread.
const FREE_CONCURRENCY = 100;

/** A queue, with a global concurrency where there is a `limit`: it holds over all workers. */
export async function open({ port }, limit) {
  const connection = () => new Redis({ port, host: "127.0.0.1", maxRetriesPerRequest: null, enableAutoPipelining: true });
  const [adding, working] = [connection(), connection()];
  const queue = new Queue(QUEUE, { connection: adding, defaultJobOptions: { removeOnComplete: true } });
  await queue.waitUntilReady();
  if (limit) await queue.setGlobalConcurrency(limit);
  const job = (n, at) => ({ name: "work", data: { n }, opts: { delay: Math.max(0, at - Date.now()) } });
  const addBulk = (numbers, at) => queue.addBulk(numbers.map((n) => job(n, at)));

  return {
    createBulk: addBulk,
    createOne: (n, at) => {
      const { name, data, opts } = job(n, at);
      return queue.add(name, data, opts);
    },
    async createBatch(count) {
      for (let from = 0; from < count; from += BULK) {
        const length = Math.min(BULK, count - from);
        await addBulk(Array.from({ length }, (_, index) => from + index), 0);
      }
    },
    consume(book, { work }) {
      const handle = async ({ data }) => {
        book.begin(data.n);
        if (work) await work();
        book.end();
      };
      const worker = new Worker(QUEUE, handle, { connection: working, concurrency: limit ?? FREE_CONCURRENCY });
      worker.on("error", (error) => console.error(error));
      return () => worker.close(true);
    },
    async close() {
      await queue.close();
      [adding, working].forEach((each) => each.disconnect());
    },
  };
}
