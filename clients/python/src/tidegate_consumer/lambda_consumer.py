"""A consumer for a Lambda function with an SQS event source.

The function must report batch item failures: `FunctionResponseTypes: [ReportBatchItemFailures]` of the event source.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate_consumer import limits
from tidegate_consumer.client import Client, Release
from tidegate_consumer.leases import Heartbeats, Lease
from tidegate_consumer.messages import Event, MessageError, parse_event
from tidegate_consumer.releases import send_releases
from tidegate_consumer.worker import NoOutcome, Outcome, Recent, Work, Worker

log = logging.getLogger("tidegate_consumer")

Handler = Callable[[Mapping[str, Any], Any], dict[str, list[dict[str, str]]]]


def lambda_handler(
    client: Client,
    work: Work,
    *,
    concurrency: int = limits.LAMBDA_CONCURRENCY,
    margin_seconds: float = limits.MARGIN_SECONDS,
    remembered_events: int = limits.REMEMBERED_EVENTS,
) -> Handler:
    """Makes the handler of a function: `handler = lambda_handler(client, work)`.

    Each record's event is given to `work`, up to `concurrency` at once. Their tokens are released at the end, or
    `margin_seconds` (a quarter of the invocation's time at the most) before the function would be stopped. A record
    is reported as a failure when it is no event, when its release could not be sent, or when its event was not
    finished: then it comes again. Work that failed and was released as `failed` is not reported.

    Raises `ValueError` when `concurrency` is less than 1.
    """
    if concurrency < 1:
        raise ValueError(f"a concurrency of {concurrency} works on nothing")
    recent = Recent(remembered_events)

    def handler(event: Mapping[str, Any], context: Any) -> dict[str, list[dict[str, str]]]:
        remaining = context.get_remaining_time_in_millis() / 1000
        ends_at = client.clock.monotonic() + remaining
        margin = min(margin_seconds, remaining / 4)
        invocation = _Invocation(client, work, recent, event["Records"])
        invocation.work(concurrency, until=ends_at - margin)
        # Half of the margin is for whatever else the function does in its end.
        failures = invocation.release(deadline=ends_at - margin / 2)
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failures]}

    return handler


class _Record:
    """One record of an invocation, and what has come of it so far."""

    def __init__(self, record: Mapping[str, Any], event: Event, lease: Lease) -> None:
        attributes = record.get("attributes", {})
        self.message_id: str = record["messageId"]
        self.came_before = int(attributes.get("ApproximateReceiveCount", 1)) > 1
        self.event = event
        self.lease = lease
        self.outcome: Outcome | NoOutcome = NoOutcome.LEFT


class _Invocation:
    """The records of one invocation. Their leases are extended from its start, also while they wait for their turn."""

    def __init__(self, client: Client, work: Work, recent: Recent, records: Sequence[Mapping[str, Any]]) -> None:
        self._client = client
        self._heartbeats = Heartbeats(client)
        self._worker = Worker(work, recent, self._heartbeats)
        self._message_ids: list[str] = [record["messageId"] for record in records]
        self._records: list[_Record] = []
        for record in records:
            try:
                event = parse_event(record["body"])
            except MessageError as error:
                log.error("message %s is reported as a failure: %s", record["messageId"], error)
                continue
            self._records.append(_Record(record, event, self._heartbeats.start(event)))
        self._to_begin = list(reversed(self._records))
        self._working = 0
        self._changed = threading.Condition()

    def work(self, concurrency: int, until: float) -> None:
        """Works on the records, and returns when all are done, or at `until`: then the rest is given up."""
        clock = self._client.clock
        self._working = min(concurrency, len(self._records))
        for _ in range(self._working):
            threading.Thread(target=self._work_in_turn, name="tidegate-work", daemon=True).start()
        with self._changed:
            while self._working:
                if clock.monotonic() >= until:
                    log.warning("events are given up: the invocation ends soon")
                    break
                clock.wait(self._changed, until)
        self._heartbeats.give_up()
        self._heartbeats.close()

    def release(self, deadline: float) -> list[str]:
        """Releases what has an outcome. Returns the ids of the messages that are to come again."""
        with self._changed:
            outcomes = [(record, record.outcome) for record in self._records]
        settled = {record.message_id for record, outcome in outcomes if _needs_no_release(record, outcome)}
        releases: list[tuple[str, Release]] = []
        for record, outcome in outcomes:
            if isinstance(outcome, Outcome) and record.event.token is not None:
                releases.append((record.message_id, outcome.release(record.event.token)))
        for start in range(0, len(releases), limits.TOKENS_PER_CALL):
            batch = releases[start : start + limits.TOKENS_PER_CALL]
            accepted = send_releases(self._client, [release for _, release in batch], deadline)
            settled.update(
                message_id for (message_id, _), is_accepted in zip(batch, accepted, strict=True) if is_accepted
            )
        return [message_id for message_id in self._message_ids if message_id not in settled]

    def _work_in_turn(self) -> None:
        try:
            while (record := self._next()) is not None:
                outcome = self._worker.work_on(record.event, record.lease, record.came_before)
                with self._changed:
                    record.outcome = outcome
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def _next(self) -> _Record | None:
        with self._changed:
            return self._to_begin.pop() if self._to_begin else None


def _needs_no_release(record: _Record, outcome: Outcome | NoOutcome) -> bool:
    if isinstance(outcome, Outcome):
        return record.event.token is None
    return outcome is NoOutcome.LEASE_OVER
