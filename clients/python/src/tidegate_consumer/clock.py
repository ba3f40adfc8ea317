"""The time, behind an interface, so that tests move it instead of waiting."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """The time of day, in seconds since 1970."""

    def monotonic(self) -> float:
        """Seconds since some instant; never goes back. For durations."""

    def sleep(self, seconds: float) -> None:
        """Waits so many seconds."""

    def wait(self, condition: threading.Condition, until: float | None) -> None:
        """Waits until the condition, which the caller holds, is notified, or an instant of `monotonic` has come."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, condition: threading.Condition, until: float | None) -> None:
        condition.wait(None if until is None else max(0.0, until - self.monotonic()))
