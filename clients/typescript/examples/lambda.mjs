/**
 * A Lambda function that works on the events of its SQS event source: prints their ids, takes as many `seconds` as a payload
 * has, and fails with its `error`.
 *
 * Its handler is `lambda.handler`; its settings are the environment variables TIDEGATE_URL and TIDEGATE_API_KEY.
 */

import { setTimeout } from "node:timers/promises";

import { Client, lambdaHandler } from "@tidegate/consumer";

async function work(event) {
  console.log(event.event_id);
  const { seconds = 0, error } = event.payload ?? {};
  await setTimeout(seconds * 1000);
  if (error !== undefined) throw new Error(error);
}

const { TIDEGATE_URL, TIDEGATE_API_KEY } = process.env;
export const handler = lambdaHandler(new Client(TIDEGATE_URL, TIDEGATE_API_KEY), work);
