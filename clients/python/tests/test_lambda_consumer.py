from __future__ import annotations

import json
import logging
import threading
from typing import Any

import pytest
from conftest import Body
from fakes import LAUNCH, PATIENCE_SECONDS, Answer, FakeApi, FakeClock, rfc3339

from tidegate_consumer import Client, Event, Lease, lambda_handler


class Context:
    """What Lambda tells of an invocation."""

    def __init__(self, remaining_seconds: float = 60) -> None:
        self._remaining_seconds = remaining_seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._remaining_seconds * 1000)


def sqs_event(*bodies: Any, receive_count: int = 1) -> dict[str, Any]:
    return {
        "Records": [
            {
                "messageId": f"message-{i}",
                "receiptHandle": "handle",
                "body": body if isinstance(body, str) else json.dumps(body),
                "attributes": {"ApproximateReceiveCount": str(receive_count)},
                "eventSource": "aws:sqs",
            }
            for i, body in enumerate(bodies)
        ]
    }


def failures(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    assert list(answer) == ["batchItemFailures"]
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_records_are_worked_on_in_order_and_released_together(client: Client, api: FakeApi, body: Body) -> None:
    worked_on: list[int] = []

    def work(event: Event, _: Lease) -> str | None:
        worked_on.append(event.index)
        if event.index == 1:
            raise ValueError("no such shop")
        return "9 rows" if event.index == 2 else None

    handler = lambda_handler(client, work)
    assert failures(handler(sqs_event(body(0), body(1), body(2)), Context())) == []
    assert worked_on == [0, 1, 2]
    [call] = api.calls
    assert call.body["tokens"] == [
        {"token": "tok.0", "outcome": "succeeded"},
        {"token": "tok.1", "outcome": "failed", "error": "ValueError: no such shop"},
        {"token": "tok.2", "outcome": "succeeded", "result": "9 rows"},
    ]


def test_a_record_that_is_no_event_is_reported(client: Client, api: FakeApi, body: Body) -> None:
    handler = lambda_handler(client, lambda _, __: None)
    assert failures(handler(sqs_event("hello", body(1), "{}"), Context())) == ["message-0", "message-2"]
    assert [entry["token"] for entry in api.released()] == ["tok.1"]


def test_a_release_that_could_not_be_sent_is_reported_and_sent_again(client: Client, api: FakeApi, body: Body) -> None:
    worked_on: list[str] = []
    handler = lambda_handler(client, lambda event, _: worked_on.append(event.event_id))
    api.answers = [Answer(401)]
    records = sqs_event(body(0), body(1, token=..., lease_expires_at=...))
    assert failures(handler(records, Context())) == ["message-0"]
    assert failures(handler(sqs_event(body(0), receive_count=2), Context())) == []
    assert len(worked_on) == 2
    assert [entry["token"] for entry in api.released()] == ["tok.0", "tok.0"]


@pytest.mark.parametrize(
    ("status", "reported"), [("already_released", []), ("reclaimed", []), ("not_yours", ["message-0"])]
)
def test_a_late_release_is_no_error_and_a_refused_one_is(
    status: str, reported: list[str], client: Client, api: FakeApi, body: Body
) -> None:
    api.statuses["tok.0"] = status
    handler = lambda_handler(client, lambda _, __: None)
    assert failures(handler(sqs_event(body(0)), Context())) == reported


def test_a_failure_without_a_token_is_reported(client: Client, api: FakeApi, body: Body) -> None:
    def work(_: Event, __: Lease) -> None:
        raise ValueError("it failed")

    handler = lambda_handler(client, work)
    assert failures(handler(sqs_event(body(0, token=..., lease_expires_at=...)), Context())) == ["message-0"]
    assert api.calls == []


def test_leases_are_extended_also_of_records_that_wait(
    client: Client, api: FakeApi, clock: FakeClock, body: Body
) -> None:
    def work(event: Event, lease: Lease) -> None:
        if event.index == 0:
            clock.advance(20)
            call = api.wait_for("extend", 1)[0]
            assert sorted(call.body["tokens"]) == ["tok.0", "tok.1"]
        assert not lease.lost.is_set()

    handler = lambda_handler(client, work)
    assert failures(handler(sqs_event(body(0), body(1)), Context())) == []
    assert [entry["outcome"] for entry in api.released()] == ["succeeded", "succeeded"]


def test_a_record_whose_lease_is_over_is_neither_begun_nor_reported(client: Client, api: FakeApi, body: Body) -> None:
    worked_on: list[str] = []
    api.statuses["tok.0"] = "expired"
    handler = lambda_handler(client, lambda event, _: worked_on.append(event.event_id))
    late = body(0, lease_expires_at=rfc3339(LAUNCH - 1))
    assert failures(handler(sqs_event(late), Context())) == []
    assert failures(handler(sqs_event(body(0), receive_count=2), Context())) == []
    assert (worked_on, api.released()) == ([], [])


@pytest.mark.parametrize(("remaining", "margin", "works"), [(60, 5, 55), (8, 5, 6), (900, 100, 800)])
def test_what_is_finished_is_released_before_the_time_is_over(
    remaining: float,
    margin: float,
    works: float,
    client: Client,
    api: FakeApi,
    clock: FakeClock,
    body: Body,
) -> None:
    given_up = threading.Event()

    def pass_time() -> None:
        clock.wait_for_waiter(works)
        clock.advance(works)

    passing = threading.Thread(target=pass_time)

    def work(event: Event, lease: Lease) -> None:
        if event.index == 1:
            passing.start()
            assert lease.lost.wait(PATIENCE_SECONDS)
            given_up.set()
            raise InterruptedError("no time")
        assert event.index == 0

    handler = lambda_handler(client, work, margin_seconds=margin)
    far = rfc3339(LAUNCH + 36_000)
    bodies = [body(index, lease_expires_at=far) for index in range(3)]
    assert failures(handler(sqs_event(*bodies), Context(remaining))) == ["message-1", "message-2"]
    assert given_up.wait(PATIENCE_SECONDS)
    passing.join(PATIENCE_SECONDS)
    assert [entry["token"] for entry in api.released()] == ["tok.0"]


def test_the_release_is_not_repeated_beyond_the_time(
    client: Client, api: FakeApi, clock: FakeClock, body: Body
) -> None:
    api.answers = [Answer(503)] * 6
    handler = lambda_handler(client, lambda _, __: None)
    assert failures(handler(sqs_event(body(0)), Context(4))) == ["message-0"]
    assert clock.slept == [0.5, 1]  # the next attempt would come when only half of the margin is left


def test_several_records_may_be_worked_on_at_once(client: Client, api: FakeApi, body: Body) -> None:
    both = threading.Barrier(2)

    def work(_: Event, __: Lease) -> None:
        both.wait(PATIENCE_SECONDS)

    handler = lambda_handler(client, work, concurrency=2)
    assert failures(handler(sqs_event(body(0), body(1)), Context())) == []
    assert [entry["outcome"] for entry in api.released()] == ["succeeded", "succeeded"]


def test_more_than_a_hundred_releases_take_several_calls(client: Client, api: FakeApi, body: Body) -> None:
    handler = lambda_handler(client, lambda _, __: None, concurrency=1)
    assert failures(handler(sqs_event(*(body(index) for index in range(101))), Context())) == []
    assert [len(call.body["tokens"]) for call in api.of("release")] == [100, 1]


def test_an_event_that_came_again_in_one_environment_is_not_worked_on_again(
    client: Client, body: Body, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tidegate_consumer")
    worked_on: list[str] = []
    handler = lambda_handler(client, lambda event, _: worked_on.append(event.event_id))
    handler(sqs_event(body(0), body(0)), Context())
    handler(sqs_event(body(0, token="tok.later", attempt=2)), Context())
    assert len(worked_on) == 1
    assert "came again and is not worked on again" in caplog.text
