"""Something that is done for each of many items now and then, by one thread and many at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidegate_consumer.clock import Clock

log = logging.getLogger("tidegate_consumer")
Item = TypeVar("Item")


@dataclass
class _Turn:
    since: float
    due_at: float


class Periodic(Generic[Item]):
    """Calls `act` with the items whose turn it is. An item's next turn comes `interval(item)` seconds later.

    Items that are more than half-way to their turn go along with one whose turn it is, so that items which began at
    different instants soon share their calls.
    """

    def __init__(
        self, name: str, act: Callable[[list[Item]], None], interval: Callable[[Item], float], clock: Clock
    ) -> None:
        self._act = act
        self._interval = interval
        self._clock = clock
        self._turns: dict[Item, _Turn] = {}
        self._is_closed = False
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def add(self, item: Item) -> None:
        turn = self._next_turn(item)
        with self._changed:
            self._turns[item] = turn
            self._changed.notify_all()

    def discard(self, item: Item) -> None:
        with self._changed:
            self._turns.pop(item, None)

    def __contains__(self, item: Item) -> bool:
        with self._changed:
            return item in self._turns

    def close(self) -> None:
        """Nothing is begun any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (items := self._wait_for_turns()) is not None:
            try:
                self._act(items)
            except Exception:
                log.exception("failed to act on %d items", len(items))
            for item in items:
                turn = self._next_turn(item)
                with self._changed:
                    if item in self._turns:
                        self._turns[item] = turn

    def _wait_for_turns(self) -> list[Item] | None:
        """The items whose turn has come; `None` when this is closed."""
        with self._changed:
            while not self._is_closed:
                now = self._clock.monotonic()
                first_due_at = min((turn.due_at for turn in self._turns.values()), default=None)
                if first_due_at is not None and first_due_at <= now:
                    return [i for i, turn in self._turns.items() if now >= (turn.since + turn.due_at) / 2]
                self._clock.wait(self._changed, first_due_at)
            return None

    def _next_turn(self, item: Item) -> _Turn:
        now = self._clock.monotonic()
        return _Turn(now, now + self._interval(item))
