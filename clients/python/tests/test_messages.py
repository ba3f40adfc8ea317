from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Body

from tidegate_consumer import Completion, Event, MessageError, parse_event, parse_message
from tidegate_consumer.messages import instant

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"

COMPLETION: dict[str, Any] = {
    "type": "run.completed",
    "id": "nightly.1.1795305600.completed",
    "run_id": "nightly.1.1795305600",
    "job_id": "nightly",
    "client_id": "acme",
    "state": "finished",
    "reason": None,
    "count": 5,
    "succeeded": 4,
    "failed": 1,
    "expired": 0,
    "dead": 0,
    "left_out": 0,
    "launch_at": "2026-11-22T00:00:00Z",
    "started_at": "2026-11-22T03:33:09.487Z",
    "finished_at": None,
}


def test_an_event_is_read_and_later_fields_do_no_harm(body: Body) -> None:
    event = parse_event(json.dumps(body(a_later_field=True)))
    assert (event.event_id, event.index, event.count, event.attempt) == ("nightly.1.1795305600.0", 0, 5, 1)
    assert (event.token, event.lease_expires_at) == ("tok.0", "2026-11-22T00:01:00.000Z")
    assert event.payload == {"report": "daily"}


@pytest.mark.parametrize("absent", [..., None])
def test_an_event_without_a_token_is_read(body: Body, absent: Any) -> None:
    event = parse_event(json.dumps(body(token=absent, lease_expires_at=absent, payload=None)).encode())
    assert (event.token, event.lease_expires_at, event.payload) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"event_id": ...}, "missing field 'event_id'"),
        ({"payload": ...}, "missing field 'payload'"),
        ({"job_id": 7}, "'job_id' is no text"),
        ({"index": -1}, "'index' is no integer from 0"),
        ({"index": True}, "'index' is no integer from 0"),
        ({"index": 1.5}, "'index' is no integer from 0"),
        ({"count": 0}, "'count' is no integer from 1"),
        ({"attempt": "1"}, "'attempt' is no integer from 1"),
        ({"token": 1}, "'token' is no text"),
        ({"launch_at": "2026-11-22"}, "'launch_at': '2026-11-22' is no RFC 3339 instant"),
        ({"launch_at": "yesterday"}, "'launch_at': 'yesterday' is no RFC 3339 instant"),
        ({"lease_expires_at": "2026-13-22T00:00:00Z"}, "'lease_expires_at': "),
    ],
)
def test_what_is_no_event_is_refused_with_the_reason(body: Body, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(MessageError, match=f"the event cannot be read: {reason}"):
        parse_event(json.dumps(body(**changes)))


@pytest.mark.parametrize("text", ["", "hello", "[]", "null", b'{"event_id": "\xff"}', "[" * 100_000])
def test_what_is_no_object_is_refused(text: str | bytes) -> None:
    for parse in (parse_event, parse_message):
        with pytest.raises(MessageError, match="cannot be read"):
            parse(text)


def test_a_message_is_an_event_or_a_completion(body: Body) -> None:
    assert isinstance(parse_message(json.dumps(body())), Event)
    completion = parse_message(json.dumps({**COMPLETION, "a_later_field": 1}))
    assert isinstance(completion, Completion)
    assert (completion.id, completion.succeeded, completion.finished_at) == (COMPLETION["id"], 4, None)
    with pytest.raises(MessageError, match="the completion cannot be read: missing field 'left_out'"):
        parse_message(json.dumps({name: COMPLETION[name] for name in COMPLETION if name != "left_out"}))


@pytest.mark.parametrize(("schema", "kind"), [("event.json", Event), ("completion.json", Completion)])
def test_the_fields_are_those_of_the_schema(schema: str, kind: type[Any]) -> None:
    properties = json.loads((SCHEMAS / schema).read_text())["properties"]
    assert {field.name for field in dataclasses.fields(kind)} == set(properties)


@pytest.mark.parametrize("text", ["1970-01-01T00:01:40Z", "1970-01-01T00:01:40.000Z", "1970-01-01T01:01:40.0+01:00"])
def test_instants_are_read_with_any_fraction_and_zone(text: str) -> None:
    assert instant(text) == 100
    assert instant("1970-01-01T00:00:00.4880123Z") == pytest.approx(0.4880123)
