/**
 * Works on the events of a queue: prints their ids, takes as many `seconds` as a payload has, and fails with its `error`.
 *
 * Settings are environment variables: TIDEGATE_URL, TIDEGATE_API_KEY, QUEUE_URL, those of AWS (such as AWS_REGION and
 * AWS_ENDPOINT_URL), and COUNT, after how many events it ends; without COUNT it goes on until SIGTERM or Ctrl-C.
 */

import { setTimeout } from "node:timers/promises";

import { Client, QueueConsumer } from "@tidegate/consumer";

const { TIDEGATE_URL, TIDEGATE_API_KEY, QUEUE_URL, COUNT } = process.env;
const count = Number(COUNT ?? 0);
let workedOn = 0;

async function work(event) {
  console.log(event.event_id);
  workedOn += 1;
  if (workedOn === count) consumer.stop();
  const { seconds = 0, error } = event.payload ?? {};
  await setTimeout(seconds * 1000);
  if (error !== undefined) throw new Error(error);
}

const client = new Client(TIDEGATE_URL, TIDEGATE_API_KEY);
const consumer = new QueueConsumer(client, QUEUE_URL, work);
for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => consumer.stop());
await consumer.run();
