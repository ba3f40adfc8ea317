"""Working on one event: not twice at once, and not again when its outcome is known."""

from __future__ import annotations

import enum
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tidegate_consumer.client import ApiError, Release
from tidegate_consumer.leases import Heartbeats, Lease
from tidegate_consumer.messages import Event

log = logging.getLogger("tidegate_consumer")

Work = Callable[[Event, Lease], str | None]
"""A user's function. A text that it returns is the `result` of the release; an exception makes the event `failed`."""


@dataclass(frozen=True)
class Outcome:
    """How an event ended, and what is said about that: a result or an error."""

    outcome: Literal["succeeded", "failed"]
    note: str | None

    def release(self, token: str) -> Release:
        if self.outcome == "succeeded":
            return Release(token, "succeeded", result=self.note)
        return Release(token, "failed", error=self.note)


class NoOutcome(enum.Enum):
    """Why an event that was received has no outcome."""

    LEASE_OVER = enum.auto()
    """Its lease has ended: its message is of no use, and another one comes if the event is to be delivered again."""
    LEFT = enum.auto()
    """It was not finished here: its message stays, and comes again."""


class Recent:
    """The events that are under way, and the outcomes of those that ended last, by event id. Bounded."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._outcomes: OrderedDict[str, tuple[int, Outcome]] = OrderedDict()
        self._under_way: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def outcome(self, event: Event, work: Callable[[], Outcome | NoOutcome]) -> Outcome | NoOutcome:
        """The outcome of an event: by `work`, unless it is known. Waits when it is being worked on elsewhere.

        A later delivery of an event that failed is worked on: it was redriven.
        """
        event_id = event.event_id
        while True:
            with self._lock:
                attempt, known = self._outcomes.get(event_id, (0, None))
                if known is not None and (known.outcome == "succeeded" or event.attempt <= attempt):
                    log.info("event %s came again and is not worked on again: it has %s", event_id, known.outcome)
                    return known
                other = self._under_way.get(event_id)
                if other is None:
                    self._under_way[event_id] = threading.Event()
                    break
            other.wait()
        try:
            outcome = work()
            if isinstance(outcome, Outcome):
                self._remember(event, outcome)
            return outcome
        finally:
            with self._lock:
                self._under_way.pop(event_id).set()

    def _remember(self, event: Event, outcome: Outcome) -> None:
        with self._lock:
            self._outcomes[event.event_id] = (event.attempt, outcome)
            self._outcomes.move_to_end(event.event_id)
            while len(self._outcomes) > self._capacity:
                self._outcomes.popitem(last=False)


class Worker:
    """Runs the user's function on events, and says what came of each."""

    def __init__(self, work: Work, recent: Recent, heartbeats: Heartbeats) -> None:
        self._work = work
        self._recent = recent
        self._heartbeats = heartbeats

    def work_on(self, event: Event, lease: Lease, came_before: bool) -> Outcome | NoOutcome:
        """`came_before`: the message was received before, so whoever had it may have released its token."""
        return self._recent.outcome(event, lambda: self._run(event, lease, came_before))

    def _run(self, event: Event, lease: Lease, came_before: bool) -> Outcome | NoOutcome:
        if not lease.lost.is_set() and (came_before or self._heartbeats.is_short(lease)):
            try:
                self._heartbeats.confirm(lease)
            except ApiError as error:
                log.warning(
                    "event %s is left in the queue: its lease could not be extended: %s",
                    event.event_id,
                    error,
                )
                return NoOutcome.LEFT
        if lease.lost.is_set():
            log.info("event %s is not begun: its lease is lost", event.event_id)
            return _without_outcome(lease)
        try:
            result = self._work(event, lease)
        except Exception as error:
            if lease.lost.is_set():
                log.info("event %s was given up: its lease is lost", event.event_id, exc_info=True)
                return _without_outcome(lease)
            log.warning("event %s failed", event.event_id, exc_info=True)
            if event.token is None:
                return NoOutcome.LEFT  # Nobody else would hear of the failure.
            return Outcome("failed", f"{type(error).__name__}: {error}")
        return Outcome("succeeded", result if isinstance(result, str) else None)


def _without_outcome(lease: Lease) -> NoOutcome:
    return NoOutcome.LEASE_OVER if lease.is_over else NoOutcome.LEFT
