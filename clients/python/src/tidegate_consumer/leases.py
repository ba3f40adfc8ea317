"""Keeping the leases of events that are worked on, by heartbeats."""

from __future__ import annotations

import logging
import threading

from tidegate_consumer import limits
from tidegate_consumer.client import ApiError, Client
from tidegate_consumer.messages import Event, instant
from tidegate_consumer.periodic import Periodic

log = logging.getLogger("tidegate_consumer")


class Lease:
    """The lease of an event that is worked on. An event without token has one too, which only a shutdown ends."""

    def __init__(self, event: Event) -> None:
        self.event_id = event.event_id
        self.token = event.token
        self.lost = threading.Event()
        """Set when the event is not this consumer's any more: the API says that the lease has ended, or the time of
        a shutdown or an invocation is over. Stop working then: another consumer may have the event. What is raised
        afterwards is not released."""
        self.is_over = False
        """Whether the API said that the lease has ended, so that Tidegate delivers the event again if it is to be.
        The other answers, such as `unknown`, may come from a wrong address or key: then the message is kept."""
        self._is_extended = False
        self._ends_at = instant(event.lease_expires_at) if event.lease_expires_at else None

    def remaining_seconds(self, server_now: float) -> float:
        """What is left of it; 0 when the event did not say when it ends."""
        return 0 if self._ends_at is None else self._ends_at - server_now

    def beat_seconds(self, server_now: float) -> float:
        """How long until its next heartbeat: a third of what is left."""
        remaining = self.remaining_seconds(server_now)
        if remaining <= 0:
            return limits.OVERDUE_BEAT_SECONDS
        third = max(limits.SHORTEST_BEAT_SECONDS, remaining / 3)
        return third if self._is_extended else min(third, limits.LONGEST_FIRST_BEAT_SECONDS)

    def answered(self, status: str, lease_expires_at: str | None) -> None:
        """Takes the API's answer to an extension."""
        if status == "extended":
            self._is_extended = True
            self._ends_at = None if lease_expires_at is None else instant(lease_expires_at)
            return
        self.is_over = status == "expired"
        self.lost.set()


class Heartbeats:
    """Extends the leases of events while they are worked on, at about a third of what is left of them.

    A heartbeat that gets no answer is followed by another one before the lease ends. Once the API says that a lease
    has ended its heartbeats stop, and `Lease.lost` says so.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._open: set[Lease] = set()
        self._lock = threading.Lock()
        self._beats = Periodic(
            "tidegate-heartbeats",
            self._extend,
            lambda lease: lease.beat_seconds(client.server_now()),
            client.clock,
        )

    def start(self, event: Event) -> Lease:
        """Begins to extend the lease of an event, if it has one."""
        lease = Lease(event)
        with self._lock:
            self._open.add(lease)
        if lease.token is not None:
            self._beats.add(lease)
        return lease

    def stop(self, lease: Lease) -> None:
        """The event is not worked on any more."""
        self._beats.discard(lease)
        with self._lock:
            self._open.discard(lease)

    def confirm(self, lease: Lease) -> None:
        """Extends a lease now; if it has ended, it is `lost`. Raises `ApiError` when nobody answers that."""
        if lease.token is None:
            return
        answer = self._client.extend([lease.token])[0]
        lease.answered(answer.status, answer.lease_expires_at)
        if lease.lost.is_set():
            self._beats.discard(lease)

    def is_short(self, lease: Lease) -> bool:
        """Whether a lease has ended, or is about to, by the time that is known of the server."""
        remaining = lease.remaining_seconds(self._client.server_now())
        return lease.token is not None and remaining < limits.CHECKED_BELOW_SECONDS

    def give_up(self) -> None:
        """Tells every function that is still at work that its event is not its own any more."""
        with self._lock:
            leases = list(self._open)
        for lease in leases:
            self._beats.discard(lease)
            lease.lost.set()

    def close(self) -> None:
        self._beats.close()

    def _extend(self, leases: list[Lease]) -> None:
        for start in range(0, len(leases), limits.TOKENS_PER_CALL):
            self._extend_call(leases[start : start + limits.TOKENS_PER_CALL])

    def _extend_call(self, leases: list[Lease]) -> None:
        server_now = self._client.server_now()
        # Retries end when the next heartbeat is due, which is one more.
        next_beat = min(lease.beat_seconds(server_now) for lease in leases)
        deadline = self._client.clock.monotonic() + next_beat
        try:
            answers = self._client.extend([lease.token or "" for lease in leases], deadline=deadline)
        except ApiError as error:
            log.warning("failed to extend %d leases, trying again soon: %s", len(leases), error)
            return
        for lease, answer in zip(leases, answers, strict=True):
            if lease not in self._beats:
                continue  # The work has ended since: of a token that was released the answer is no news.
            lease.answered(answer.status, answer.lease_expires_at)
            if lease.lost.is_set():
                self._beats.discard(lease)
                log.warning("the lease of event %s is lost: the API answers '%s'", lease.event_id, answer.status)
