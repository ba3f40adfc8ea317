/** The queue that events come from: the few calls of SQS that a consumer makes. */

import type { BatchResultErrorEntry, SQS } from "@aws-sdk/client-sqs";

import * as limits from "./limits.js";
import { textOf, type Log } from "./log.js";

export interface Message {
  readonly messageId: string;
  readonly receiptHandle: string;
  readonly body: string;
  readonly receiveCount: number;
}

interface Entry {
  readonly Id: string;
  readonly ReceiptHandle: string;
}

/** One queue, by a client of the AWS SDK. */
export class Queue {
  #sqs: SQS | undefined;
  readonly #url: string;
  readonly #log: Log;

  /** Without `sqs` it is `new SQS({})`. */
  constructor(sqs: SQS | undefined, queueUrl: string, log: Log) {
    this.#sqs = sqs;
    this.#url = queueUrl;
    this.#log = log;
  }

  /** Up to `most` messages (10 at the most), which stay invisible for `visibilitySeconds`. */
  async receive(most: number, waitSeconds: number, visibilitySeconds: number): Promise<Message[]> {
    const sqs = await this.#client();
    const answer = await sqs.receiveMessage({
      QueueUrl: this.#url,
      MaxNumberOfMessages: Math.min(most, limits.MESSAGES_PER_BATCH),
      WaitTimeSeconds: waitSeconds,
      VisibilityTimeout: visibilitySeconds,
      MessageSystemAttributeNames: ["ApproximateReceiveCount"],
    });
    return (answer.Messages ?? []).map((message) => ({
      messageId: message.MessageId ?? "",
      receiptHandle: message.ReceiptHandle ?? "",
      body: message.Body ?? "",
      receiveCount: Number(message.Attributes?.ApproximateReceiveCount ?? 1),
    }));
  }

  /** Deletes messages. What cannot be deleted is logged: it comes again, and its outcome is known by then. */
  async delete(messages: readonly Message[]): Promise<void> {
    const sqs = await this.#client();
    await this.#inBatches("delete", messages, (QueueUrl, Entries) => sqs.deleteMessageBatch({ QueueUrl, Entries }));
  }

  /** Makes messages visible again after so many seconds from now. What cannot be changed is logged. */
  async setVisibility(messages: readonly Message[], seconds: number): Promise<void> {
    const sqs = await this.#client();
    await this.#inBatches("set the visibility of", messages, (QueueUrl, entries) => {
      const Entries = entries.map((entry) => ({ ...entry, VisibilityTimeout: seconds }));
      return sqs.changeMessageVisibilityBatch({ QueueUrl, Entries });
    });
  }

  /** Only who consumes a queue waits for the SDK to load. */
  async #client(): Promise<SQS> {
    this.#sqs ??= new (await import("@aws-sdk/client-sqs")).SQS({});
    return this.#sqs;
  }

  async #inBatches(
    what: string,
    messages: readonly Message[],
    call: (queueUrl: string, entries: Entry[]) => Promise<{ Failed?: BatchResultErrorEntry[] | undefined }>,
  ): Promise<void> {
    for (let start = 0; start < messages.length; start += limits.MESSAGES_PER_BATCH) {
      const batch = messages.slice(start, start + limits.MESSAGES_PER_BATCH);
      const entries = batch.map(({ receiptHandle }, i) => ({ Id: String(i), ReceiptHandle: receiptHandle }));
      try {
        for (const failed of (await call(this.#url, entries)).Failed ?? []) {
          const id = batch[Number(failed.Id)]?.messageId;
          this.#log.warn(`failed to ${what} message ${id}: ${failed.Message}`);
        }
      } catch (error) {
        this.#log.warn(`failed to ${what} ${batch.length} messages: ${textOf(error)}`);
      }
    }
  }
}
