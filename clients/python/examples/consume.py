"""Works on the events of a queue: prints their ids, takes as many `seconds` as a payload has, fails with its `error`.

Settings are environment variables: TIDEGATE_URL, TIDEGATE_API_KEY, QUEUE_URL, those of AWS (such as AWS_REGION and
AWS_ENDPOINT_URL), and COUNT, after how many events it ends; without COUNT it goes on until SIGTERM or Ctrl-C.
"""

from __future__ import annotations

import logging
import os
import signal
import threading

from tidegate_consumer import Client, Event, Lease, QueueConsumer

count = int(os.environ.get("COUNT", "0"))
lock = threading.Lock()
worked_on = 0


def work(event: Event, lease: Lease) -> None:
    global worked_on
    with lock:
        print(event.event_id, flush=True)
        worked_on += 1
        if worked_on == count:
            consumer.stop()
    payload = event.payload if isinstance(event.payload, dict) else {}
    lease.lost.wait(payload.get("seconds", 0))
    if "error" in payload:
        raise RuntimeError(payload["error"])


logging.basicConfig(level=logging.INFO)
client = Client(os.environ["TIDEGATE_URL"], os.environ["TIDEGATE_API_KEY"])
consumer = QueueConsumer(client, os.environ["QUEUE_URL"], work)
for name in (signal.SIGTERM, signal.SIGINT):
    signal.signal(name, lambda *_: consumer.stop())
consumer.run()
