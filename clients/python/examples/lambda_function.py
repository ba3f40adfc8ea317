"""A Lambda function that works on the events of its SQS event source: prints their ids, takes as many `seconds` as a
payload has, and fails with its `error`.

Its handler is `lambda_function.handler`; its settings are the environment variables TIDEGATE_URL and TIDEGATE_API_KEY.
"""

from __future__ import annotations

import os

from tidegate_consumer import Client, Event, Lease, lambda_handler


def work(event: Event, lease: Lease) -> None:
    print(event.event_id)
    payload = event.payload if isinstance(event.payload, dict) else {}
    lease.lost.wait(payload.get("seconds", 0))
    if "error" in payload:
        raise RuntimeError(payload["error"])


client = Client(os.environ["TIDEGATE_URL"], os.environ["TIDEGATE_API_KEY"])
handler = lambda_handler(client, work)
