"""A clock that tests move, and servers on loopback that speak as Tidegate's API and as SQS do."""

from __future__ import annotations

import email.utils
import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# How long a test waits for what must happen before it fails. Nothing waits this long in a test that passes.
PATIENCE_SECONDS = 20

LAUNCH = 1_795_305_600.0  # 2026-11-22T00:00:00Z


def rfc3339(instant: float) -> str:
    return datetime.fromtimestamp(instant, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class FakeClock:
    """Stands still until a test, or a sleep of the code under test, moves it."""

    def __init__(self, wrong_by: float = 0) -> None:
        self.slept: list[float] = []
        self._wrong_by = wrong_by
        self._time = LAUNCH
        self._waiting: list[tuple[threading.Condition, float]] = []
        self._changed = threading.Condition()

    def now(self) -> float:
        return self._time + self._wrong_by

    def monotonic(self) -> float:
        return self._time

    def right_now(self) -> float:
        """What a clock that is right says: that of the server."""
        return self._time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def wait(self, condition: threading.Condition, until: float | None) -> None:
        if until is None:
            condition.wait()
            return
        waiting = (condition, until)
        with self._changed:
            if until <= self._time:
                return
            self._waiting.append(waiting)
            self._changed.notify_all()
        condition.wait()
        with self._changed:
            self._waiting.remove(waiting)

    def advance(self, seconds: float) -> None:
        with self._changed:
            self._time += seconds
            due = [condition for condition, until in self._waiting if until <= self._time]
        for condition in due:
            with condition:
                condition.notify_all()

    def wait_for_waiter(self, seconds: float) -> None:
        """Until somebody waits for the instant that is so many seconds ahead."""
        until = self._time + seconds
        wait_for(self._changed, lambda: any(abs(at - until) < 0.001 for _, at in self._waiting))


def wait_for(condition: threading.Condition, is_so: Callable[[], bool]) -> None:
    with condition:
        assert condition.wait_for(is_so, PATIENCE_SECONDS), "it did not happen"


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Call:
    path: str
    body: Any
    headers: dict[str, str]


class FakeApi:
    """Tidegate's API. Releases and extends whatever it is told, unless a test says otherwise."""

    def __init__(self, clock: FakeClock, lease_seconds: float = 60) -> None:
        self.calls: list[Call] = []
        self.lease_seconds = lease_seconds
        self.statuses: dict[str, str] = {}
        """What is answered of a token, by its text."""
        self.answers: list[Answer] = []
        """What is answered to the next calls, whichever they are, one after another."""
        self.is_open = threading.Event()
        """Calls are answered while it is set."""
        self.is_open.set()
        self.changed = threading.Condition()
        self._clock = clock

    def of(self, path: str) -> list[Call]:
        with self.changed:
            return [call for call in self.calls if call.path == f"/v1/tokens/{path}"]

    def wait_for(self, path: str, count: int) -> list[Call]:
        """The calls of a route, as soon as there are so many."""
        wait_for(self.changed, lambda: len(self.of(path)) >= count)
        return self.of(path)

    def released(self) -> list[dict[str, Any]]:
        """Every entry of every release."""
        return [entry for call in self.of("release") for entry in call.body["tokens"]]

    def answer(self, call: Call) -> Answer:
        with self.changed:
            self.calls.append(call)
            self.changed.notify_all()
            scripted = self.answers.pop(0) if self.answers else None
        self.is_open.wait(PATIENCE_SECONDS)
        if scripted is not None:
            return scripted
        return Answer(body={"results": [self._result(call.path, entry) for entry in call.body["tokens"]]})

    def _result(self, path: str, entry: Any) -> dict[str, str]:
        token = entry if isinstance(entry, str) else entry["token"]
        if path == "/v1/tokens/release":
            return {"token": token, "status": self.statuses.get(token, "released")}
        status = self.statuses.get(token, "extended")
        if status != "extended":
            return {"token": token, "status": status}
        ends_at = rfc3339(self._clock.right_now() + self.lease_seconds)
        return {"token": token, "status": status, "lease_expires_at": ends_at}

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Its address, while it is served."""
        api = self

        class Handler(_Handler):
            def do_POST(self) -> None:
                path = self.requestline.split()[1]  # `self.path` is without a second slash
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = api.answer(Call(path, self.read_json(), headers))
                date = email.utils.formatdate(api._clock.right_now(), usegmt=True)
                self.reply(answer.status, answer.body, {"date": date, **answer.headers})

        with _serving(Handler) as address:
            yield address


@dataclass
class Stored:
    message_id: str
    body: str
    is_visible: bool = True
    is_deleted: bool = False
    receive_count: int = 0
    visibility: list[int] = field(default_factory=list)
    """Each visibility time-out that it was given, from its receive on."""


class FakeSqs:
    """One queue. A message becomes visible again when a test says so, not by the time."""

    def __init__(self) -> None:
        self.messages: list[Stored] = []
        self.receives = 0
        self.answers: list[Answer] = []
        """What is answered to the next receives instead of messages."""
        self.changed = threading.Condition()
        self._ids = itertools.count()
        self._do_polls_wait = True

    def send(self, body: Any) -> Stored:
        text = body if isinstance(body, str) else json.dumps(body)
        with self.changed:
            stored = Stored(f"message-{next(self._ids)}", text)
            self.messages.append(stored)
            self.changed.notify_all()
            return stored

    def make_visible(self, stored: Stored) -> None:
        """Its visibility time-out has passed."""
        with self.changed:
            assert not stored.is_deleted
            stored.is_visible = True
            self.changed.notify_all()

    def end_polls(self) -> None:
        """Receives wait no longer."""
        with self.changed:
            self._do_polls_wait = False
            self.changed.notify_all()

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        wait_for(self.changed, is_so)

    def wait_for_deletes(self, count: int) -> None:
        self.wait_until(lambda: sum(stored.is_deleted for stored in self.messages) >= count)

    def serve_call(self, operation: str, request: dict[str, Any]) -> Answer:
        with self.changed:
            if operation == "ReceiveMessage":
                return self._receive(request)
            if operation == "DeleteMessageBatch":
                return self._for_each(request, self._delete)
            assert operation == "ChangeMessageVisibilityBatch", operation
            return self._for_each(request, self._change_visibility)

    def _receive(self, request: dict[str, Any]) -> Answer:
        self.receives += 1
        self.changed.notify_all()
        if not 1 <= request["MaxNumberOfMessages"] <= 10:
            return Answer(400)
        if self.answers:
            return self.answers.pop(0)
        self.changed.wait_for(
            lambda: not self._do_polls_wait or any(stored.is_visible for stored in self.messages),
            request["WaitTimeSeconds"],
        )
        visible = [stored for stored in self.messages if stored.is_visible]
        taken = visible[: request["MaxNumberOfMessages"]]
        for stored in taken:
            stored.is_visible = False
            stored.receive_count += 1
            stored.visibility.append(request["VisibilityTimeout"])
        assert request["MessageSystemAttributeNames"] == ["ApproximateReceiveCount"]
        return Answer(body={"Messages": [_received(stored) for stored in taken]} if taken else {})

    def _for_each(self, request: dict[str, Any], act: Callable[[Stored, dict[str, Any]], None]) -> Answer:
        if not 1 <= len(request["Entries"]) <= 10:
            return Answer(400)
        for entry in request["Entries"]:
            message_id, _, _ = entry["ReceiptHandle"].partition("/")
            for stored in self.messages:
                if stored.message_id == message_id:
                    act(stored, entry)
        self.changed.notify_all()
        kept = [entry for entry in request["Entries"] if entry["ReceiptHandle"].startswith("refused")]
        failed = [{"Id": entry["Id"], "Code": "x", "Message": "not now", "SenderFault": True} for entry in kept]
        return Answer(body={"Successful": [], "Failed": failed})

    @staticmethod
    def _delete(stored: Stored, _: dict[str, Any]) -> None:
        stored.is_deleted = True
        stored.is_visible = False

    @staticmethod
    def _change_visibility(stored: Stored, entry: dict[str, Any]) -> None:
        stored.visibility.append(entry["VisibilityTimeout"])
        stored.is_visible = entry["VisibilityTimeout"] == 0

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Its address, while it is served."""
        sqs = self

        class Handler(_Handler):
            def do_POST(self) -> None:
                operation = self.headers["x-amz-target"].removeprefix("AmazonSQS.")
                answer = sqs.serve_call(operation, self.read_json())
                self.reply(answer.status, answer.body, {"content-type": "application/x-amz-json-1.0"})

        with _serving(Handler) as address:
            yield address


def _received(stored: Stored) -> dict[str, Any]:
    return {
        "MessageId": stored.message_id,
        "ReceiptHandle": f"{stored.message_id}/{stored.receive_count}",
        "Body": stored.body,
        "MD5OfBody": hashlib.md5(stored.body.encode()).hexdigest(),
        "Attributes": {"ApproximateReceiveCount": str(stored.receive_count)},
    }


class _Handler(BaseHTTPRequestHandler):
    def read_json(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def reply(self, status: int, body: Any, headers: dict[str, str]) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _serving(handler: type[_Handler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
