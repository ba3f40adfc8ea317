"""Releasing tokens: many by one call, and whether each release was accepted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tidegate_consumer import limits
from tidegate_consumer.client import Client, Release

log = logging.getLogger("tidegate_consumer")
Tag = TypeVar("Tag")

DONE = ("released", "already_released", "accepted")
# The lease was not the present one any more: nothing changed, and another delivery of the event decides.
LATE = ("reclaimed", "unknown")


def send_releases(client: Client, entries: Sequence[Release], deadline: float | None = None) -> list[bool]:
    """Releases up to 100 tokens. Of each: whether the API has taken the release, so that its message can go.

    An error of the call is logged: then nothing was accepted.
    """
    try:
        answers = client.release(entries, deadline=deadline)
    except Exception as error:  # ApiError; anything else must not end the thread that releases
        log.error("failed to release %d tokens, their messages stay in the queue: %s", len(entries), error)
        return [False] * len(entries)
    for answer in answers:
        if answer.status in LATE:
            log.warning("token %s was not released: the API answers '%s'", answer.token, answer.status)
        elif answer.status not in DONE:
            log.error("the release of token %s was refused: %s", answer.token, answer.detail or answer.status)
    return [answer.status in DONE or answer.status in LATE for answer in answers]


class Releaser(Generic[Tag]):
    """Collects releases for a moment and sends them together, from one thread.

    Each release has a tag, which `settle` is given back with whether the release was accepted.
    """

    def __init__(self, client: Client, linger_seconds: float, settle: Callable[[list[tuple[Tag, bool]]], None]) -> None:
        self._client = client
        self._clock = client.clock
        self._linger_seconds = linger_seconds
        self._settle = settle
        self._waiting: list[tuple[Release, Tag]] = []
        self._is_closed = False
        self._has_ended = False
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="tidegate-releases", daemon=True).start()

    def add(self, release: Release, tag: Tag) -> None:
        """Takes a release to be sent. Waits while a whole call's worth is waiting, so that memory is bounded."""
        with self._changed:
            while len(self._waiting) >= limits.TOKENS_PER_CALL and not self._has_ended:
                self._clock.wait(self._changed, None)
            self._waiting.append((release, tag))
            self._changed.notify_all()

    def close(self, seconds: float) -> None:
        """Sends what is waiting without delay, and returns when that is done or so many seconds have passed."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            deadline = self._clock.monotonic() + seconds
            while not self._has_ended and self._clock.monotonic() < deadline:
                self._clock.wait(self._changed, deadline)
            if not self._has_ended:
                log.error("the last releases were not answered in time: their messages stay in the queue")

    def _run(self) -> None:
        while batch := self._next_batch():
            accepted = send_releases(self._client, [release for release, _ in batch])
            self._settle([(tag, is_accepted) for (_, tag), is_accepted in zip(batch, accepted, strict=True)])
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _next_batch(self) -> list[tuple[Release, Tag]]:
        """The releases of one call; empty when this is closed and nothing is waiting."""
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._clock.wait(self._changed, None)
            send_at = self._clock.monotonic() + self._linger_seconds
            while len(self._waiting) < limits.TOKENS_PER_CALL and not self._is_closed:
                if self._clock.monotonic() >= send_at:
                    break
                self._clock.wait(self._changed, send_at)
            batch = self._waiting[: limits.TOKENS_PER_CALL]
            del self._waiting[: len(batch)]
            self._changed.notify_all()
            return batch
