from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest
from conftest import Body
from fakes import LAUNCH, PATIENCE_SECONDS, Answer, FakeApi, rfc3339

from tidegate_consumer import Event, Lease, parse_event
from tidegate_consumer.leases import Heartbeats
from tidegate_consumer.worker import NoOutcome, Outcome, Recent, Work, Worker

WorkOn = Callable[..., Outcome | NoOutcome]


@pytest.fixture
def work_on(heartbeats: Heartbeats) -> WorkOn:
    """Works on an event, given as the body of its message, as a consumer that remembers two events."""
    recent = Recent(2)

    def work_on(work: Work, body: dict[str, object], came_before: bool = False) -> Outcome | NoOutcome:
        event = parse_event(json.dumps(body))
        lease = heartbeats.start(event)
        try:
            return Worker(work, recent, heartbeats).work_on(event, lease, came_before)
        finally:
            heartbeats.stop(lease)

    return work_on


def fail(_: Event, __: Lease) -> str:
    raise RuntimeError("the shop does not answer")


def lose(_: Event, lease: Lease) -> str:
    lease.answered("expired", None)
    raise RuntimeError("stopped")


def never(_: Event, __: Lease) -> str:
    raise AssertionError("it was worked on")


def test_what_a_function_returns_or_raises_is_the_outcome(work_on: WorkOn, body: Body) -> None:
    assert work_on(lambda _, __: None, body(0)) == Outcome("succeeded", None)
    assert work_on(lambda _, __: "9 rows", body(1)) == Outcome("succeeded", "9 rows")
    assert work_on(fail, body(2)) == Outcome("failed", "RuntimeError: the shop does not answer")


def test_an_event_that_came_again_is_not_worked_on_again(work_on: WorkOn, body: Body) -> None:
    work_on(lambda _, __: "9 rows", body(0))
    work_on(fail, body(1))
    assert work_on(never, body(0, token="tok.later", attempt=2)) == Outcome("succeeded", "9 rows")
    assert work_on(never, body(1), came_before=True) == Outcome("failed", "RuntimeError: the shop does not answer")


def test_an_event_that_failed_is_worked_on_again_when_it_was_redriven(work_on: WorkOn, body: Body) -> None:
    work_on(fail, body(1))
    assert work_on(lambda _, __: "9 rows", body(1, token="tok.redriven", attempt=2)) == Outcome("succeeded", "9 rows")
    assert work_on(never, body(1, token="tok.later", attempt=3)) == Outcome("succeeded", "9 rows")


def test_memory_is_bounded_and_the_oldest_is_forgotten(work_on: WorkOn, body: Body) -> None:
    for index in range(3):
        work_on(lambda _, __: "first", body(index))
    assert work_on(lambda _, __: "again", body(0)) == Outcome("succeeded", "again")
    assert work_on(never, body(2)) == Outcome("succeeded", "first")


def test_an_event_that_is_under_way_is_waited_for(work_on: WorkOn, body: Body) -> None:
    began, may_end = threading.Event(), threading.Event()
    outcomes: list[Outcome | NoOutcome] = []

    def slow(_: Event, __: Lease) -> str:
        began.set()
        assert may_end.wait(PATIENCE_SECONDS)
        return "once"

    threads = [threading.Thread(target=lambda w=work: outcomes.append(work_on(w, body(0)))) for work in (slow, never)]
    threads[0].start()
    assert began.wait(PATIENCE_SECONDS)
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert outcomes == [Outcome("succeeded", "once")] * 2


def test_what_was_given_up_is_worked_on_by_the_next_delivery(work_on: WorkOn, body: Body) -> None:
    assert work_on(lose, body(0)) is NoOutcome.LEASE_OVER
    assert work_on(lambda _, __: "done", body(0, attempt=2)) == Outcome("succeeded", "done")


def test_work_that_ends_well_although_its_lease_is_lost_has_succeeded(work_on: WorkOn, body: Body) -> None:
    def finish(_: Event, lease: Lease) -> str:
        lease.answered("expired", None)
        return "done"

    assert work_on(finish, body(0)) == Outcome("succeeded", "done")


def test_a_failure_without_a_token_leaves_the_message(work_on: WorkOn, body: Body) -> None:
    unthrottled = body(0, token=..., lease_expires_at=...)
    assert work_on(fail, unthrottled) is NoOutcome.LEFT
    assert work_on(lambda _, __: None, unthrottled, came_before=True) == Outcome("succeeded", None)


@pytest.mark.parametrize(("left_seconds", "came_before"), [(2.9, False), (-100, False), (60, True)])
def test_a_lease_that_may_be_over_is_extended_before_the_work(
    left_seconds: float, came_before: bool, work_on: WorkOn, api: FakeApi, body: Body
) -> None:
    def work(_: Event, __: Lease) -> str:
        return f"after {len(api.of('extend'))} extension"

    late = body(0, lease_expires_at=rfc3339(LAUNCH + left_seconds))
    assert work_on(work, late, came_before) == Outcome("succeeded", "after 1 extension")


@pytest.mark.parametrize(
    ("status", "expected"),
    [("expired", NoOutcome.LEASE_OVER), ("unknown", NoOutcome.LEFT), ("not_yours", NoOutcome.LEFT)],
)
def test_an_event_whose_lease_is_over_is_not_begun(
    status: str, expected: NoOutcome, work_on: WorkOn, api: FakeApi, body: Body
) -> None:
    api.statuses["tok.0"] = status
    assert work_on(never, body(0), came_before=True) is expected


def test_an_event_whose_lease_cannot_be_extended_is_left(work_on: WorkOn, api: FakeApi, body: Body) -> None:
    api.answers = [Answer(401)]
    assert work_on(never, body(0), came_before=True) is NoOutcome.LEFT


def test_nothing_is_begun_after_giving_up(heartbeats: Heartbeats, api: FakeApi, body: Body) -> None:
    event = parse_event(json.dumps(body()))
    lease = heartbeats.start(event)
    heartbeats.give_up()
    assert Worker(never, Recent(2), heartbeats).work_on(event, lease, came_before=True) is NoOutcome.LEFT
    assert api.calls == []
