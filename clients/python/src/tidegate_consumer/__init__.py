"""A consumer of Tidegate, in three forms:

- `QueueConsumer` receives the events of an SQS queue and works on several at once;
- `lambda_handler` makes the handler of a Lambda function with an SQS event source;
- `WebhookVerifier` verifies the calls that an endpoint gets.

Delivery is at least once: the same event may arrive more than once, always with the same `event_id`.
"""

from tidegate_consumer.client import ApiError, Client, Extended, Release, Released, UnreadableAnswer
from tidegate_consumer.lambda_consumer import lambda_handler
from tidegate_consumer.leases import Lease
from tidegate_consumer.messages import Completion, Event, MessageError, parse_event, parse_message
from tidegate_consumer.queue_consumer import QueueConsumer
from tidegate_consumer.webhook import WebhookError, WebhookVerifier

__all__ = [
    "ApiError",
    "Client",
    "Completion",
    "Event",
    "Extended",
    "Lease",
    "MessageError",
    "QueueConsumer",
    "Release",
    "Released",
    "UnreadableAnswer",
    "WebhookError",
    "WebhookVerifier",
    "lambda_handler",
    "parse_event",
    "parse_message",
]
