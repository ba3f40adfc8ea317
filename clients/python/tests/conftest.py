from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fakes import LAUNCH, FakeApi, FakeClock, FakeSqs, rfc3339

from tidegate_consumer import Client
from tidegate_consumer.leases import Heartbeats


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def api(clock: FakeClock) -> FakeApi:
    return FakeApi(clock)


@pytest.fixture
def api_address(api: FakeApi) -> Iterator[str]:
    with api.serve() as address:
        yield address
        api.is_open.set()


@pytest.fixture
def client(clock: FakeClock, api_address: str) -> Client:
    return Client(api_address, "tg_acme_key", clock=clock, jitter=lambda: 0)


@pytest.fixture
def heartbeats(client: Client) -> Iterator[Heartbeats]:
    heartbeats = Heartbeats(client)
    yield heartbeats
    heartbeats.close()


@pytest.fixture
def sqs() -> FakeSqs:
    return FakeSqs()


@pytest.fixture
def sqs_address(sqs: FakeSqs) -> Iterator[str]:
    with sqs.serve() as address:
        yield address
        sqs.end_polls()


Body = Callable[..., dict[str, Any]]


@pytest.fixture
def body() -> Body:
    """The body of an event of a job with a policy, whose lease lasts a minute."""

    def of(index: int = 0, **changes: Any) -> dict[str, Any]:
        fields = {
            "event_id": f"nightly.1.1795305600.{index}",
            "job_id": "nightly",
            "client_id": "acme",
            "run_id": "nightly.1.1795305600",
            "index": index,
            "count": 5,
            "launch_at": "2026-11-22T00:00:00Z",
            "attempt": 1,
            "token": f"tok.{index}",
            "lease_expires_at": rfc3339(LAUNCH + 60),
            "payload": {"report": "daily"},
        }
        return {name: value for name, value in {**fields, **changes}.items() if value is not ...}

    return of
