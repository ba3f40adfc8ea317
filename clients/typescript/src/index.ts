/**
 * A consumer of Tidegate, in three forms:
 *
 * - `QueueConsumer` receives the events of an SQS queue and works on several at once;
 * - `lambdaHandler` makes the handler of a Lambda function with an SQS event source;
 * - `WebhookVerifier` verifies the calls that an endpoint gets.
 *
 * Delivery is at least once: the same event may arrive more than once, always with the same `event_id`.
 */

export {
  ApiError,
  Client,
  UnreadableAnswer,
  type CallOptions,
  type ClientOptions,
  type Extended,
  type Release,
  type Released,
} from "./client.js";
export type { Clock } from "./clock.js";
export {
  lambdaHandler,
  type LambdaContext,
  type LambdaOptions,
  type SqsBatchResponse,
  type SqsEvent,
  type SqsRecord,
} from "./lambdaConsumer.js";
export type { Lease } from "./leases.js";
export type { Log } from "./log.js";
export { isCompletion, MessageError, parseEvent, parseMessage, type Completion, type Event } from "./messages.js";
export { QueueConsumer, type QueueConsumerOptions } from "./queueConsumer.js";
export { WebhookError, WebhookVerifier, type WebhookHeaders, type WebhookOptions } from "./webhook.js";
export type { Work } from "./worker.js";
