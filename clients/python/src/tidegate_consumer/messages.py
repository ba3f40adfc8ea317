"""What Tidegate sends to a consumer: events, and completions of runs. docs/messages.md describes both.

Fields that this version does not know are ignored: later versions add some.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")


class MessageError(ValueError):
    """A message does not read as an event, or as a completion."""


@dataclass(frozen=True)
class Event:
    """A delivered event. It may come more than once, always with the same `event_id`: the idempotency key."""

    event_id: str
    job_id: str
    client_id: str
    run_id: str
    index: int
    """Its number in the run, from 0."""
    count: int
    """How many events the run has."""
    launch_at: str
    """When the run was due, RFC 3339."""
    attempt: int
    """Which delivery of the event this is, from 1."""
    payload: Any
    """What the job carries: any JSON."""
    token: str | None = None
    """What is released when the work is done; `None` when the job has no policy."""
    lease_expires_at: str | None = None
    """When the token is taken back unless it is extended, RFC 3339; `None` when the job has no policy."""


@dataclass(frozen=True)
class Completion:
    """A run has ended. It may come more than once, always with the same `id`: the idempotency key."""

    type: str
    id: str
    run_id: str
    job_id: str
    client_id: str
    state: str
    """`finished`, or `stopped` when the run ended before each of its events had."""
    reason: str | None
    """Why it was stopped; `None` when it finished."""
    count: int
    succeeded: int
    failed: int
    expired: int
    dead: int
    left_out: int
    launch_at: str
    started_at: str | None
    finished_at: str | None


def parse_event(body: str | bytes) -> Event:
    """Reads the text of a queue's message, or the body of a webhook.

    Raises `MessageError` when it is no event.
    """
    return _event(_Fields(body, "the event"))


def parse_message(body: str | bytes) -> Event | Completion:
    """Reads an event or a completion, whichever it is: a completion has a `type`.

    Raises `MessageError` when it is neither.
    """
    fields = _Fields(body, "the message")
    return _completion(fields) if fields.values.get("type") == "run.completed" else _event(fields)


def instant(text: str) -> float:
    """An RFC 3339 instant as seconds since 1970.

    Raises `ValueError` when it is none.
    """
    parts = INSTANT.fullmatch(text)
    if parts is None:
        raise ValueError(f"'{text}' is no RFC 3339 instant")
    seconds, fraction, zone = parts.groups()
    whole = datetime.fromisoformat(seconds + ("+00:00" if zone == "Z" else zone)).timestamp()
    return whole + float(fraction or 0)


def _event(fields: _Fields) -> Event:
    fields.called = "the event"
    return Event(
        event_id=fields.text("event_id"),
        job_id=fields.text("job_id"),
        client_id=fields.text("client_id"),
        run_id=fields.text("run_id"),
        index=fields.number("index", least=0),
        count=fields.number("count", least=1),
        launch_at=fields.instant("launch_at"),
        attempt=fields.number("attempt", least=1),
        payload=fields.value("payload"),
        token=fields.text("token") if fields.has("token") else None,
        lease_expires_at=fields.instant("lease_expires_at") if fields.has("lease_expires_at") else None,
    )


def _completion(fields: _Fields) -> Completion:
    fields.called = "the completion"
    return Completion(
        type=fields.text("type"),
        id=fields.text("id"),
        run_id=fields.text("run_id"),
        job_id=fields.text("job_id"),
        client_id=fields.text("client_id"),
        state=fields.text("state"),
        reason=fields.text("reason") if fields.has("reason") else None,
        count=fields.number("count", least=1),
        succeeded=fields.number("succeeded", least=0),
        failed=fields.number("failed", least=0),
        expired=fields.number("expired", least=0),
        dead=fields.number("dead", least=0),
        left_out=fields.number("left_out", least=0),
        launch_at=fields.instant("launch_at"),
        started_at=fields.instant("started_at") if fields.has("started_at") else None,
        finished_at=fields.instant("finished_at") if fields.has("finished_at") else None,
    )


class _Fields:
    """The fields of a JSON object, each read as what it must be."""

    def __init__(self, body: str | bytes, called: str) -> None:
        self.called = called
        """What is said to be unreadable."""
        try:
            values = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self._unreadable(str(error)) from error
        if not isinstance(values, dict):
            raise self._unreadable("it is no JSON object")
        self.values: Mapping[str, Any] = values

    def has(self, name: str) -> bool:
        return self.values.get(name) is not None

    def value(self, name: str) -> Any:
        if name not in self.values:
            raise self._unreadable(f"missing field '{name}'")
        return self.values[name]

    def text(self, name: str) -> str:
        value = self.value(name)
        if not isinstance(value, str):
            raise self._unreadable(f"'{name}' is no text")
        return value

    def number(self, name: str, least: int) -> int:
        value = self.value(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self._unreadable(f"'{name}' is no integer from {least}")
        return value

    def instant(self, name: str) -> str:
        text = self.text(name)
        try:
            instant(text)
        except ValueError as error:
            raise self._unreadable(f"'{name}': {error}") from error
        return text

    def _unreadable(self, reason: str) -> MessageError:
        return MessageError(f"{self.called} cannot be read: {reason}")
