"""A consumer of a queue: receives events, works on several at once, releases their tokens, deletes their messages.

A message is deleted only when the API has accepted the release of its token. Whatever goes wrong before that leaves
the message in the queue, and it comes again.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import Any

from tidegate_consumer import limits
from tidegate_consumer.client import Client, backoff_seconds
from tidegate_consumer.leases import Heartbeats
from tidegate_consumer.messages import MessageError, parse_event
from tidegate_consumer.periodic import Periodic
from tidegate_consumer.releases import Releaser
from tidegate_consumer.sqs import Message, Queue
from tidegate_consumer.worker import NoOutcome, Outcome, Recent, Work, Worker

log = logging.getLogger("tidegate_consumer")


class QueueConsumer:
    """Works on the events of a queue until it is stopped.

    `work` is called with each event and its lease, in up to `concurrency` threads at once.
    """

    def __init__(
        self,
        client: Client,
        queue_url: str,
        work: Work,
        *,
        concurrency: int = limits.CONCURRENCY,
        visibility_seconds: int = limits.VISIBILITY_SECONDS,
        wait_seconds: int = limits.WAIT_SECONDS,
        linger_seconds: float = limits.LINGER_SECONDS,
        shutdown_seconds: float = limits.SHUTDOWN_SECONDS,
        remembered_events: int = limits.REMEMBERED_EVENTS,
        sqs: Any = None,
    ) -> None:
        """`sqs` is a client of boto3 for the queue; without one it is `boto3.client("sqs")`.

        Raises `ValueError` when `concurrency` is less than 1.
        """
        if concurrency < 1:
            raise ValueError(f"a concurrency of {concurrency} works on nothing")
        if sqs is None:
            import boto3  # Only who consumes a queue waits for it to load.

            sqs = boto3.client("sqs")
        self._clock = client.clock
        self._queue = Queue(sqs, queue_url)
        self._concurrency = concurrency
        self._visibility_seconds = visibility_seconds
        self._wait_seconds = wait_seconds
        self._shutdown_seconds = shutdown_seconds
        self._heartbeats = Heartbeats(client)
        self._worker = Worker(work, Recent(remembered_events), self._heartbeats)
        self._releaser: Releaser[Message] = Releaser(client, linger_seconds, self._settle)
        self._kept_invisible: Periodic[Message] = Periodic(
            "tidegate-visibility", self._keep_invisible, lambda _: visibility_seconds / 3, client.clock
        )
        self._changed = threading.Condition()
        self._under_way = 0
        self._is_polling = True
        self._is_stopping = False
        self._failure: BaseException | None = None
        # Unlike a condition, its `put` may be called by a signal handler at any moment.
        self._stops: queue.SimpleQueue[None] = queue.SimpleQueue()

    def run(self) -> None:
        """Works until `stop` is called, finishes what is under way, and returns. To be called once.

        What is not finished within `shutdown_seconds` is given up: its lease says `lost`, its token is not released,
        and its message becomes visible again.
        """
        threading.Thread(target=self._poll, name="tidegate-poll", daemon=True).start()
        try:
            self._stops.get()
        finally:
            self._shut_down()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Lets `run` come to its end. May be called from any thread, from the work, and from a signal handler."""
        self._is_stopping = True
        self._stops.put(None)

    def _poll(self) -> None:
        try:
            failures = 0
            while (free := self._wait_for_room()) > 0:
                try:
                    messages = self._queue.receive(free, self._wait_seconds, self._visibility_seconds)
                    failures = 0
                except Exception as error:  # of botocore, or of the network
                    failures += 1
                    self._back_off(failures, error)
                    continue
                if self._is_stopping:
                    self._queue.set_visibility(messages, 0)
                    break
                for message in messages:
                    self._begin(message)
        except BaseException as error:
            self._failure = error
            self.stop()
        finally:
            with self._changed:
                self._is_polling = False
                self._changed.notify_all()

    def _wait_for_room(self) -> int:
        """How many events may be begun, at least one; 0 when this is stopping."""
        with self._changed:
            while self._under_way >= self._concurrency and not self._is_stopping:
                self._clock.wait(self._changed, None)
            return 0 if self._is_stopping else self._concurrency - self._under_way

    def _back_off(self, failures: int, error: Exception) -> None:
        seconds = backoff_seconds(failures, 0)
        log.error("failed to receive messages, trying again in %.1f s: %s", seconds, error)
        with self._changed:
            until = self._clock.monotonic() + seconds
            while not self._is_stopping and self._clock.monotonic() < until:
                self._clock.wait(self._changed, until)

    def _begin(self, message: Message) -> None:
        with self._changed:
            self._under_way += 1
        threading.Thread(target=self._handle, args=(message,), name="tidegate-work", daemon=True).start()

    def _handle(self, message: Message) -> None:
        self._kept_invisible.add(message)
        is_left = True
        try:
            is_left = self._work_on(message)
        finally:
            if is_left:
                self._kept_invisible.discard(message)
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _work_on(self, message: Message) -> bool:
        """Whether the message is left as it is: neither deleted nor with the releaser, which deletes it."""
        try:
            event = parse_event(message.body)
        except MessageError as error:
            log.error("message %s is left in the queue: %s", message.message_id, error)
            return True
        lease = self._heartbeats.start(event)
        try:
            outcome = self._worker.work_on(event, lease, came_before=message.receive_count > 1)
        finally:
            self._heartbeats.stop(lease)
        if outcome is NoOutcome.LEFT:
            return True
        if isinstance(outcome, Outcome) and event.token is not None:
            self._releaser.add(outcome.release(event.token), message)
            return False
        self._settle([(message, True)])
        return False

    def _settle(self, answers: list[tuple[Message, bool]]) -> None:
        """Deletes the messages whose releases were accepted. The others become visible again."""
        self._queue.delete([message for message, is_accepted in answers if is_accepted])
        for message, _ in answers:
            self._kept_invisible.discard(message)

    def _keep_invisible(self, messages: list[Message]) -> None:
        self._queue.set_visibility(messages, self._visibility_seconds)

    def _shut_down(self) -> None:
        self._is_stopping = True
        with self._changed:
            self._changed.notify_all()
            deadline = self._clock.monotonic() + self._shutdown_seconds
            while self._under_way or self._is_polling:
                if self._clock.monotonic() >= deadline:
                    break
                self._clock.wait(self._changed, deadline)
            if self._under_way:
                log.warning("%d events are given up: they were not finished in time", self._under_way)
        self._heartbeats.give_up()
        self._releaser.close(limits.RELEASE_GRACE_SECONDS)
        self._heartbeats.close()
        self._kept_invisible.close()
