from __future__ import annotations

import logging
import threading

import pytest
from fakes import PATIENCE_SECONDS, Answer, FakeApi, FakeClock, wait_for

from tidegate_consumer import Client, Release
from tidegate_consumer.releases import Releaser, send_releases


class Settled:
    """What a releaser gave back."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bool]] = []
        self.changed = threading.Condition()

    def __call__(self, answers: list[tuple[int, bool]]) -> None:
        with self.changed:
            self.answers += answers
            self.changed.notify_all()

    def wait_for(self, count: int) -> None:
        wait_for(self.changed, lambda: len(self.answers) >= count)


def test_releases_that_come_within_the_linger_go_together(client: Client, api: FakeApi, clock: FakeClock) -> None:
    settled = Settled()
    releaser: Releaser[int] = Releaser(client, 0.05, settled)
    releaser.add(Release("tok.0"), 0)
    clock.wait_for_waiter(0.05)
    releaser.add(Release("tok.1", "failed", error="x"), 1)
    assert api.calls == []
    clock.advance(0.05)
    settled.wait_for(2)
    assert [[entry["token"] for entry in call.body["tokens"]] for call in api.calls] == [["tok.0", "tok.1"]]
    assert settled.answers == [(0, True), (1, True)]
    releaser.close(1)


def test_a_hundred_go_at_once_and_the_rest_with_the_next_call(client: Client, api: FakeApi, clock: FakeClock) -> None:
    settled = Settled()
    releaser: Releaser[int] = Releaser(client, 3_600, settled)
    for index in range(101):
        releaser.add(Release(f"tok.{index}"), index)
    settled.wait_for(100)
    assert [len(call.body["tokens"]) for call in api.calls] == [100]
    clock.wait_for_waiter(3_600)
    releaser.close(1)  # sends what is left without delay
    assert [len(call.body["tokens"]) for call in api.calls] == [100, 1]
    assert len(settled.answers) == 101


def test_adding_waits_while_a_whole_call_is_waiting(client: Client, api: FakeApi) -> None:
    api.is_open.clear()
    settled = Settled()
    releaser: Releaser[int] = Releaser(client, 0, settled)
    releaser.add(Release("tok.first"), -1)
    api.wait_for("release", 1)
    added = threading.Semaphore(0)

    def add() -> None:
        for index in range(101):
            releaser.add(Release(f"tok.{index}"), index)
            added.release()

    threading.Thread(target=add, daemon=True).start()
    for _ in range(100):
        assert added.acquire(timeout=PATIENCE_SECONDS)
    assert not added.acquire(blocking=False)
    api.is_open.set()
    settled.wait_for(102)
    releaser.close(1)


def test_closing_does_not_wait_forever_for_an_answer(client: Client, api: FakeApi, clock: FakeClock) -> None:
    api.is_open.clear()
    releaser: Releaser[int] = Releaser(client, 0, Settled())
    releaser.add(Release("tok.0"), 0)
    api.wait_for("release", 1)
    closing = threading.Thread(target=releaser.close, args=(5,))
    closing.start()
    clock.wait_for_waiter(5)
    clock.advance(5)
    closing.join(PATIENCE_SECONDS)
    assert not closing.is_alive()


@pytest.mark.parametrize(
    ("status", "is_accepted", "level"),
    [
        ("released", True, None),
        ("already_released", True, None),
        ("accepted", True, None),
        ("reclaimed", True, logging.WARNING),
        ("unknown", True, logging.WARNING),
        ("not_yours", False, logging.ERROR),
        ("malformed", False, logging.ERROR),
        ("a word of a later version", False, logging.ERROR),
    ],
)
def test_an_answer_says_whether_the_message_can_go(
    status: str,
    is_accepted: bool,
    level: int | None,
    client: Client,
    api: FakeApi,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api.statuses["tok.0"] = status
    assert send_releases(client, [Release("tok.0"), Release("tok.1")]) == [is_accepted, True]
    assert [record.levelno for record in caplog.records] == ([] if level is None else [level])


def test_a_call_that_failed_released_nothing(client: Client, api: FakeApi) -> None:
    api.answers = [Answer(401)]
    assert send_releases(client, [Release("tok.0"), Release("tok.1")]) == [False, False]
