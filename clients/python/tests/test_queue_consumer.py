from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from conftest import Body
from fakes import PATIENCE_SECONDS, Answer, FakeApi, FakeClock, FakeSqs

from tidegate_consumer import Client, Event, Lease, QueueConsumer, lambda_handler


class Running:
    """A consumer that runs in a thread."""

    def __init__(self, consumer: QueueConsumer, sqs: FakeSqs) -> None:
        self.consumer = consumer
        self.error: BaseException | None = None
        self._sqs = sqs
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.consumer.run()
        except BaseException as error:
            self.error = error

    def begin_to_stop(self) -> None:
        self.consumer.stop()
        self._sqs.end_polls()

    def wait(self) -> None:
        """Until `run` has returned."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        self.begin_to_stop()
        self.wait()


Consume = Callable[..., Running]


@pytest.fixture
def consume(client: Client, sqs: FakeSqs, sqs_address: str) -> Iterator[Consume]:
    boto = boto3.client(
        "sqs",
        endpoint_url=sqs_address,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    running: list[Running] = []

    def consume(work: Callable[[Event, Lease], str | None], **options: Any) -> Running:
        defaults: dict[str, Any] = {"linger_seconds": 0, "sqs": boto}
        consumer = QueueConsumer(client, f"{sqs_address}/000000000000/work", work, **{**defaults, **options})
        running.append(Running(consumer, sqs))
        return running[-1]

    yield consume
    for one in running:
        one.stop()
    boto.close()


class Slow:
    """Work that begins and then waits until the test lets it end."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.leases: list[Lease] = []
        self.began = threading.Semaphore(0)
        self.may_end = threading.Event()

    def __call__(self, event: Event, lease: Lease) -> str:
        self.events.append(event)
        self.leases.append(lease)
        self.began.release()
        assert self.may_end.wait(PATIENCE_SECONDS)
        return "done"

    def wait_for_begin(self) -> None:
        assert self.began.acquire(timeout=PATIENCE_SECONDS)


def test_events_are_worked_on_released_and_deleted(consume: Consume, api: FakeApi, sqs: FakeSqs, body: Body) -> None:
    def work(event: Event, _: Lease) -> str | None:
        if event.index == 2:
            raise ValueError("no such shop")
        return "9 rows" if event.index == 1 else None

    for index in range(3):
        sqs.send(body(index))
    running = consume(work)
    sqs.wait_for_deletes(3)
    running.stop()
    assert sorted(api.released(), key=lambda entry: str(entry["token"])) == [
        {"token": "tok.0", "outcome": "succeeded"},
        {"token": "tok.1", "outcome": "succeeded", "result": "9 rows"},
        {"token": "tok.2", "outcome": "failed", "error": "ValueError: no such shop"},
    ]


def test_a_message_is_deleted_only_after_its_release(consume: Consume, api: FakeApi, sqs: FakeSqs, body: Body) -> None:
    api.is_open.clear()
    stored = sqs.send(body())
    consume(lambda _, __: None)
    api.wait_for("release", 1)
    assert not stored.is_deleted
    api.is_open.set()
    sqs.wait_for_deletes(1)


def test_a_release_that_failed_is_sent_again_without_working_again(
    consume: Consume, api: FakeApi, sqs: FakeSqs, body: Body
) -> None:
    worked_on: list[str] = []
    api.answers = [Answer(401)]
    stored = sqs.send(body())
    running = consume(lambda event, _: worked_on.append(event.event_id))
    api.wait_for("release", 1)
    assert not stored.is_deleted
    sqs.make_visible(stored)
    sqs.wait_for_deletes(1)
    running.stop()
    assert len(worked_on) == 1
    assert [entry["token"] for entry in api.released()] == ["tok.0", "tok.0"]


def test_a_later_delivery_of_a_finished_event_is_released_with_its_own_token(
    consume: Consume, api: FakeApi, sqs: FakeSqs, body: Body
) -> None:
    worked_on: list[str] = []
    running = consume(lambda event, _: worked_on.append(event.event_id), concurrency=1)
    api.statuses["tok.0"] = "reclaimed"  # an answer that is logged and no error
    sqs.send(body())
    sqs.send(body(attempt=2, token="tok.later"))
    sqs.wait_for_deletes(2)
    running.stop()
    assert len(worked_on) == 1
    assert {entry["token"] for entry in api.released()} == {"tok.0", "tok.later"}


def test_events_without_a_token_need_no_release(consume: Consume, api: FakeApi, sqs: FakeSqs, body: Body) -> None:
    sqs.send(body(token=..., lease_expires_at=...))
    consume(lambda _, __: None)
    sqs.wait_for_deletes(1)
    assert api.calls == []


def test_what_is_no_event_or_failed_without_a_token_stays(
    consume: Consume, sqs: FakeSqs, body: Body, caplog: pytest.LogCaptureFixture
) -> None:
    def work(event: Event, _: Lease) -> None:
        if event.token is None:
            raise ValueError("it failed")

    stay = [sqs.send("hello"), sqs.send(body(0, token=..., lease_expires_at=...))]
    goes = sqs.send(body(1))
    running = consume(work, concurrency=1)
    sqs.wait_for_deletes(1)
    running.stop()
    assert [stored.is_deleted for stored in [*stay, goes]] == [False, False, True]
    assert "message message-0 is left in the queue: the event cannot be read: " in caplog.text


def test_no_more_than_the_concurrency_are_worked_on(consume: Consume, sqs: FakeSqs, body: Body) -> None:
    slow = Slow()
    stored = [sqs.send(body(0))]
    running = consume(slow, concurrency=3)
    slow.wait_for_begin()
    sqs.wait_until(lambda: sqs.receives == 2)
    with sqs.changed:  # so that all of them are there when the receive looks
        stored += [sqs.send(body(index)) for index in range(1, 5)]
    for _ in range(2):
        slow.wait_for_begin()
    assert sum(one.receive_count for one in stored) == 3  # the others are left to other consumers
    slow.may_end.set()
    sqs.wait_for_deletes(5)
    running.stop()
    assert len(slow.events) == 5


def test_leases_and_messages_are_kept_while_the_work_goes_on(
    consume: Consume, api: FakeApi, clock: FakeClock, sqs: FakeSqs, body: Body
) -> None:
    slow = Slow()
    stored = sqs.send(body())
    consume(slow, visibility_seconds=36)
    slow.wait_for_begin()
    for visibility in ([36, 36], [36, 36, 36]):
        clock.wait_for_waiter(12)
        clock.advance(12)
        sqs.wait_until(functools.partial(operator.eq, stored.visibility, visibility))
    assert api.wait_for("extend", 1)[0].body == {"tokens": ["tok.0"]}
    slow.may_end.set()
    sqs.wait_for_deletes(1)


def test_a_message_is_kept_invisible_while_its_release_is_on_its_way(
    consume: Consume, api: FakeApi, clock: FakeClock, sqs: FakeSqs, body: Body
) -> None:
    api.is_open.clear()
    stored = sqs.send(body())
    consume(lambda _, __: None)
    api.wait_for("release", 1)
    clock.advance(20)
    sqs.wait_until(lambda: stored.visibility == [60, 60])
    api.is_open.set()
    sqs.wait_for_deletes(1)


def test_a_lost_lease_is_told_and_its_message_goes(
    consume: Consume, api: FakeApi, clock: FakeClock, sqs: FakeSqs, body: Body
) -> None:
    began = threading.Event()

    def work(_: Event, lease: Lease) -> None:
        began.set()
        assert lease.lost.wait(PATIENCE_SECONDS)
        raise InterruptedError("stopped")

    sqs.send(body())
    running = consume(work)
    assert began.wait(PATIENCE_SECONDS)
    api.statuses["tok.0"] = "expired"
    clock.advance(20)
    sqs.wait_for_deletes(1)
    running.stop()
    assert api.released() == []


def test_a_message_that_came_before_and_whose_token_was_released_goes_without_work(
    consume: Consume, api: FakeApi, sqs: FakeSqs, body: Body
) -> None:
    worked_on: list[str] = []
    api.statuses["tok.0"] = "expired"
    sqs.send(body()).receive_count = 1  # by a consumer that was killed after its release
    consume(lambda event, _: worked_on.append(event.event_id))
    sqs.wait_for_deletes(1)
    assert worked_on == []


def test_a_shutdown_finishes_what_is_under_way(consume: Consume, api: FakeApi, sqs: FakeSqs, body: Body) -> None:
    slow = Slow()
    stored = sqs.send(body())
    running = consume(slow, linger_seconds=3_600)
    slow.wait_for_begin()
    running.begin_to_stop()
    slow.may_end.set()
    running.wait()
    assert [entry["token"] for entry in api.released()] == ["tok.0"]
    assert stored.is_deleted


def test_a_shutdown_gives_up_what_takes_too_long(
    consume: Consume, api: FakeApi, clock: FakeClock, sqs: FakeSqs, body: Body
) -> None:
    slow = Slow()
    stored = sqs.send(body())
    running = consume(slow, shutdown_seconds=15)
    slow.wait_for_begin()
    running.begin_to_stop()
    clock.wait_for_waiter(15)
    assert not slow.leases[0].lost.is_set()
    clock.advance(15)
    running.wait()
    assert slow.leases[0].lost.is_set()
    assert not stored.is_deleted
    assert api.released() == []
    slow.may_end.set()


def test_messages_that_arrive_after_the_stop_are_visible_again_at_once(
    consume: Consume, sqs: FakeSqs, body: Body
) -> None:
    running = consume(lambda _, __: None)
    sqs.wait_until(lambda: sqs.receives == 1)
    running.consumer.stop()
    stored = sqs.send(body())
    running.wait()
    assert (stored.visibility, stored.is_visible, stored.is_deleted) == ([60, 0], True, False)


def test_a_stop_before_the_start_ends_it_at_once(client: Client, sqs: FakeSqs) -> None:
    consumer = QueueConsumer(client, "http://127.0.0.1:1/0/work", lambda _, __: None, sqs=object())
    consumer.stop()
    Running(consumer, sqs).wait()


def test_a_concurrency_of_nothing_is_refused(client: Client) -> None:
    with pytest.raises(ValueError, match="works on nothing"):
        QueueConsumer(client, "http://127.0.0.1:1/0/work", lambda _, __: None, concurrency=0, sqs=object())
    with pytest.raises(ValueError, match="works on nothing"):
        lambda_handler(client, lambda _, __: None, concurrency=0)


def test_work_may_stop_the_consumer(consume: Consume, sqs: FakeSqs, body: Body) -> None:
    stopped: list[Running] = []
    began = threading.Event()

    def work(_: Event, __: Lease) -> None:
        assert began.wait(PATIENCE_SECONDS)
        stopped[0].begin_to_stop()

    stored = sqs.send(body())
    stopped.append(consume(work))
    began.set()
    stopped[0].wait()
    assert stored.is_deleted


def test_a_queue_that_does_not_answer_is_asked_again_with_back_off(
    consume: Consume, clock: FakeClock, sqs: FakeSqs, body: Body
) -> None:
    denied = {"__type": "com.amazon.coral.service#AccessDeniedException", "message": "not allowed"}
    sqs.answers = [Answer(403, denied)] * 2
    sqs.send(body())
    consume(lambda _, __: None)
    for seconds in (0.5, 1):
        clock.wait_for_waiter(seconds)
        clock.advance(seconds)
    sqs.wait_for_deletes(1)
    assert sqs.receives >= 3


def test_a_bug_ends_the_run_instead_of_stalling_it(
    consume: Consume, sqs: FakeSqs, body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(QueueConsumer, "_begin", begin)
    sqs.send(body())
    running = consume(lambda _, __: None)
    running.wait()
    assert isinstance(running.error, RuntimeError)
