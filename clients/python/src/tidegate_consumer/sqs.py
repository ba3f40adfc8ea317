"""The queue that events come from: the few calls of SQS that a consumer makes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate_consumer import limits

log = logging.getLogger("tidegate_consumer")


@dataclass(frozen=True)
class Message:
    message_id: str
    receipt_handle: str
    body: str
    receive_count: int


class Queue:
    """One queue, by a client of boto3."""

    def __init__(self, sqs: Any, queue_url: str) -> None:
        self._sqs = sqs
        self._url = queue_url

    def receive(self, most: int, wait_seconds: int, visibility_seconds: int) -> list[Message]:
        """Up to `most` messages (10 at the most), which stay invisible for `visibility_seconds`."""
        answer = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=min(most, limits.MESSAGES_PER_BATCH),
            WaitTimeSeconds=wait_seconds,
            VisibilityTimeout=visibility_seconds,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return [_message(message) for message in answer.get("Messages", [])]

    def delete(self, messages: Sequence[Message]) -> None:
        """Deletes messages. What cannot be deleted is logged: it comes again, and its outcome is known by then."""
        self._in_batches("delete", messages, self._sqs.delete_message_batch, {})

    def set_visibility(self, messages: Sequence[Message], seconds: int) -> None:
        """Makes messages visible again after so many seconds from now. What cannot be changed is logged."""
        entry = {"VisibilityTimeout": seconds}
        self._in_batches("set the visibility of", messages, self._sqs.change_message_visibility_batch, entry)

    def _in_batches(self, what: str, messages: Sequence[Message], call: Any, more: dict[str, int]) -> None:
        for start in range(0, len(messages), limits.MESSAGES_PER_BATCH):
            batch = messages[start : start + limits.MESSAGES_PER_BATCH]
            entries = [
                {"Id": str(i), "ReceiptHandle": message.receipt_handle, **more} for i, message in enumerate(batch)
            ]
            try:
                answer = call(QueueUrl=self._url, Entries=entries)
            except Exception as error:  # of botocore, or of the network
                log.warning("failed to %s %d messages: %s", what, len(batch), error)
                continue
            for failed in answer.get("Failed", []):
                message = batch[int(failed["Id"])]
                log.warning("failed to %s message %s: %s", what, message.message_id, failed.get("Message"))


def _message(received: dict[str, Any]) -> Message:
    attributes = received.get("Attributes", {})
    return Message(
        received["MessageId"],
        received["ReceiptHandle"],
        received["Body"],
        int(attributes.get("ApproximateReceiveCount", 1)),
    )
