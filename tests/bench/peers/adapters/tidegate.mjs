// Tidegate through its API and its queues, as a service beside it uses them: `tidegate local`, nothing in its process.
import { Pool } from "undici";

const CONNECTIONS = 64;
const WAIT_SECONDS = 20;
// Loops of a consumer that nothing throttles, each of which receives ten messages at a time.
const FREE_LOOPS = 8;
// Loops beyond those that hold all tokens: somebody always waits for the next event.
const SPARE_LOOPS = 3;
const DELETED_AT_ONCE = 10;

/** Registers a client. A policy throttles all jobs where there is a `limit`. */
export async function open({ api, sqs: sqsUrl, queue, admin_key: adminKey }, limit) {
  const calls = new Pool(api, { connections: CONNECTIONS });
  const queues = new Pool(sqsUrl, { connections: CONNECTIONS });
  const registered = await post(calls, "/v1/clients", adminKey, { client_id: "bench" });
  const key = registered.api_key;
  const call = (path, body) => post(calls, path, key, body);
  if (limit) await call("/v1/policies", { policy_id: "limit", max_in_flight: limit, lease_seconds: 60 });
  const target = { sqs: { queue_url: queue } };
  const flow = limit ? { target, policy_id: "limit" } : { target };

  return {
    async createBulk(numbers, at) {
      const trigger = instant(at);
      const jobs = numbers.map((n) => ({ ...flow, trigger, payload: { n } }));
      const { results } = await call("/v1/jobs/bulk", { jobs });
      const refused = results.find(({ status }) => status !== 201);
      if (refused) throw new Error(`a job was refused: ${JSON.stringify(refused)}`);
    },
    createOne: (n, at) => call("/v1/jobs", { ...flow, trigger: instant(at), payload: { n } }),
    createBatch: (count) => call("/v1/jobs", { ...flow, trigger: instant(Date.now()), count }),
    consume(book, { take, work }) {
      const state = { running: true, handles: [] };
      // A pool of their own, since those that wait are ended with it, without a signal for each.
      const receives = new Pool(sqsUrl, { connections: CONNECTIONS });
      const count = limit ? Math.ceil(limit / take) + SPARE_LOOPS : FREE_LOOPS;
      const wanted = { QueueUrl: queue, MaxNumberOfMessages: take, WaitTimeSeconds: WAIT_SECONDS };
      const receive = async () => (await sqs(receives, "ReceiveMessage", wanted)).Messages ?? [];
      const loop = async () => {
        let deletion;
        while (state.running) {
          const received = await receive().catch((error) => (state.running ? Promise.reject(error) : []));
          const tokens = received.map((message) => begin(message, book));
          if (work && tokens.length > 0) await work();
          tokens.forEach(() => book.end());
          const held = tokens.filter(Boolean);
          // The token first: the next event waits for it. Messages are deleted ten at a time while the loop goes on.
          if (held.length > 0) await call("/v1/tokens/release", { tokens: held });
          state.handles.push(...received.map(({ ReceiptHandle }) => ReceiptHandle));
          if (state.handles.length < DELETED_AT_ONCE) continue;
          await deletion;
          deletion = remove(queues, queue, state);
        }
        await deletion;
      };
      const loops = Array.from({ length: count }, loop);
      return async () => {
        state.running = false;
        await receives.destroy();
        await Promise.all(loops);
        while (state.handles.length > 0) await remove(queues, queue, state);
      };
    },
    close: () => Promise.all([calls.close(), queues.close()]),
  };
}

// Creates that take longer than the time ahead are late, and not refused.
const instant = (at) => ({ at: new Date(at).toISOString(), past: "fire" });

function begin({ Body }, book) {
  const { payload, index, token } = JSON.parse(Body);
  book.begin(payload?.n ?? index);
  return token;
}

function remove(queues, queue, state) {
  const handles = state.handles.splice(0, DELETED_AT_ONCE);
  if (handles.length === 0) return undefined;
  const entries = handles.map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle }));
  return sqs(queues, "DeleteMessageBatch", { QueueUrl: queue, Entries: entries });
}

function sqs(queues, action, body) {
  const headers = { "content-type": "application/x-amz-json-1.0", "x-amz-target": `AmazonSQS.${action}` };
  return answered(queues, { path: "/", method: "POST", headers, body: JSON.stringify(body) });
}

function post(calls, path, key, body) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
  return answered(calls, { path, method: "POST", headers, body: JSON.stringify(body) });
}

async function answered(pool, request) {
  const { statusCode, body } = await pool.request(request);
  const text = await body.text();
  if (statusCode >= 300) throw new Error(`${request.path} was answered with ${statusCode}: ${text}`);
  return JSON.parse(text);
}
