from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Body
from fakes import LAUNCH, PATIENCE_SECONDS, Answer, FakeApi, FakeClock, rfc3339

from tidegate_consumer import Client, Lease, parse_event
from tidegate_consumer.leases import Heartbeats

Start = Callable[..., Lease]


@pytest.fixture
def start(heartbeats: Heartbeats, body: Body) -> Start:
    def start(index: int = 0, lease_seconds: float = 60, **changes: Any) -> Lease:
        ends_at = rfc3339(LAUNCH + lease_seconds)
        event = parse_event(json.dumps(body(index, **{"lease_expires_at": ends_at, **changes})))
        return heartbeats.start(event)

    return start


def test_a_lease_is_extended_at_each_third_of_what_is_left(api: FakeApi, clock: FakeClock, start: Start) -> None:
    lease = start(lease_seconds=30)
    clock.wait_for_waiter(10)
    assert api.calls == []
    clock.advance(10)
    api.wait_for("extend", 1)
    clock.wait_for_waiter(20)  # a third of the minute that the API gave
    clock.advance(20)
    [_, second] = api.wait_for("extend", 2)
    assert second.body == {"tokens": ["tok.0"]}
    assert not lease.lost.is_set()


def test_the_first_heartbeat_of_a_long_lease_comes_early(api: FakeApi, clock: FakeClock, start: Start) -> None:
    api.lease_seconds = 3_600
    start(lease_seconds=3_600)
    clock.wait_for_waiter(20)
    clock.advance(20)
    api.wait_for("extend", 1)
    clock.wait_for_waiter(1_200)


def test_heartbeats_go_by_the_servers_clock(api: FakeApi, api_address: str, body: Body) -> None:
    clock = FakeClock(wrong_by=-600)
    heartbeats = Heartbeats(Client(api_address, "key", clock=clock))
    heartbeats.start(parse_event(json.dumps(body())))
    clock.wait_for_waiter(20)
    clock.advance(20)
    api.wait_for("extend", 1)
    clock.wait_for_waiter(20)
    heartbeats.close()


def test_a_heartbeat_without_an_answer_is_followed_by_another(
    api: FakeApi, clock: FakeClock, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    lease = start(lease_seconds=9)
    api.answers = [Answer(401)]
    clock.wait_for_waiter(3)
    clock.advance(3)
    api.wait_for("extend", 1)
    clock.wait_for_waiter(2)
    clock.advance(2)
    api.wait_for("extend", 2)
    clock.wait_for_waiter(20)
    assert not lease.lost.is_set()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    ("status", "is_over"), [("expired", True), ("unknown", False), ("not_yours", False), ("malformed", False)]
)
def test_a_lost_lease_is_told_and_not_extended_again(
    status: str, is_over: bool, api: FakeApi, clock: FakeClock, start: Start
) -> None:
    lost, held = start(0), start(1)
    api.statuses["tok.0"] = status
    clock.wait_for_waiter(20)
    clock.advance(20)
    assert lost.lost.wait(PATIENCE_SECONDS)
    assert (lost.is_over, held.lost.is_set()) == (is_over, False)
    clock.wait_for_waiter(20)
    clock.advance(20)
    assert api.wait_for("extend", 2)[1].body == {"tokens": ["tok.1"]}


def test_leases_are_extended_together(api: FakeApi, clock: FakeClock, start: Start) -> None:
    for index in range(101):
        start(index)
    clock.wait_for_waiter(20)
    clock.advance(9)
    start(101)  # less than half-way when the others are due
    clock.advance(11)
    calls = api.wait_for("extend", 2)
    assert [len(call.body["tokens"]) for call in calls] == [100, 2]
    assert "tok.101" in calls[1].body["tokens"]


def test_a_lease_that_began_just_now_does_not_go_along(api: FakeApi, clock: FakeClock, start: Start) -> None:
    start(0)
    clock.wait_for_waiter(20)
    clock.advance(11)
    start(1, lease_seconds=71)
    clock.advance(9)
    assert api.wait_for("extend", 1)[0].body == {"tokens": ["tok.0"]}


def test_a_lease_that_is_not_worked_on_is_not_extended(
    api: FakeApi, clock: FakeClock, heartbeats: Heartbeats, start: Start
) -> None:
    heartbeats.stop(start(0))
    start(1)
    clock.wait_for_waiter(20)
    clock.advance(20)
    assert api.wait_for("extend", 1)[0].body == {"tokens": ["tok.1"]}


def test_an_answer_about_a_token_that_was_released_meanwhile_is_no_news(
    api: FakeApi, clock: FakeClock, heartbeats: Heartbeats, start: Start
) -> None:
    api.is_open.clear()
    api.statuses = {"tok.0": "expired", "tok.1": "expired"}
    released, lost = start(0), start(1)
    clock.wait_for_waiter(20)
    clock.advance(20)
    api.wait_for("extend", 1)
    heartbeats.stop(released)
    api.is_open.set()
    assert lost.lost.wait(PATIENCE_SECONDS)
    assert not released.lost.is_set()


def test_giving_up_is_told_to_all_also_where_there_is_no_token(heartbeats: Heartbeats, start: Start) -> None:
    leases = [start(0), start(1, token=..., lease_expires_at=...)]
    heartbeats.give_up()
    assert [(lease.lost.is_set(), lease.is_over) for lease in leases] == [(True, False), (True, False)]
