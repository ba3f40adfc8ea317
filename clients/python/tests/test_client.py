from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from fakes import LAUNCH, Answer, FakeApi, FakeClock, rfc3339

from tidegate_consumer import ApiError, Client, Extended, Release, Released, UnreadableAnswer

PROBLEM = {"type": "urn:tidegate:problem:x", "title": "x", "status": 0, "detail": "give a token"}


def test_a_release_says_how_each_event_ended(client: Client, api: FakeApi) -> None:
    api.statuses["tok.2"] = "reclaimed"
    answer = client.release(["tok.0", Release("tok.1", result="9 rows"), Release("tok.2", "failed", error="no answer")])
    assert answer == [
        Released("tok.0", "released"),
        Released("tok.1", "released"),
        Released("tok.2", "reclaimed"),
    ]
    [call] = api.of("release")
    assert call.body == {
        "tokens": [
            {"token": "tok.0", "outcome": "succeeded"},
            {"token": "tok.1", "outcome": "succeeded", "result": "9 rows"},
            {"token": "tok.2", "outcome": "failed", "error": "no answer"},
        ]
    }
    assert call.headers["authorization"] == "Bearer tg_acme_key"
    assert call.headers["content-type"] == "application/json"


def test_an_extension_tells_until_when(client: Client, api: FakeApi) -> None:
    api.statuses["tok.1"] = "expired"
    answer = client.extend(["tok.0", "tok.1"])
    assert answer == [Extended("tok.0", "extended", rfc3339(LAUNCH + 60)), Extended("tok.1", "expired")]
    client.extend(["tok.0"], 120)
    assert [call.body for call in api.calls] == [
        {"tokens": ["tok.0", "tok.1"]},
        {"tokens": ["tok.0"], "lease_seconds": 120},
    ]


def test_notes_are_cut_to_what_the_api_keeps(client: Client, api: FakeApi) -> None:
    client.release([Release("tok.0", result="é" * 1_025), Release("tok.1", "failed", error="a\x00b\ud800c")])
    [one, two] = api.released()
    assert one["result"] == "é" * 1_024
    assert two["error"] == "a b?c"
    client.release([Release("tok.2", result="x" + "é" * 1_024)])
    assert api.released()[2]["result"] == "x" + "é" * 1_023


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_what_may_pass_is_repeated_with_back_off(status: int, client: Client, api: FakeApi, clock: FakeClock) -> None:
    api.answers = [Answer(status, PROBLEM)] * 3
    assert client.release(["tok.0"]) == [Released("tok.0", "released")]
    assert (len(api.calls), clock.slept) == (4, [0.5, 1, 2])


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 409, 413, 422])
def test_what_is_refused_is_not_repeated(status: int, client: Client, api: FakeApi, clock: FakeClock) -> None:
    api.answers = [Answer(status, PROBLEM, {"location": "/elsewhere"})]
    with pytest.raises(ApiError, match=rf"the API refused the call: give a token \({status}\)") as refused:
        client.release(["tok.0"])
    assert (refused.value.status, len(api.calls), clock.slept) == (status, 1, [])


def test_attempts_are_bounded_and_the_back_off_has_jitter(api: FakeApi, clock: FakeClock, api_address: str) -> None:
    client = Client(api_address, "key", clock=clock, jitter=lambda: 1)
    api.answers = [Answer(503, b"<html>no backend</html>")] * 6
    with pytest.raises(ApiError, match=r"<html>no backend</html> \(503\)"):
        client.release(["tok.0"])
    assert (len(api.calls), clock.slept) == (6, [0.75, 1.5, 3, 6, 12])


def test_retry_after_makes_the_wait_longer(client: Client, api: FakeApi, clock: FakeClock) -> None:
    headers = ({"retry-after": "7"}, {"retry-after": "0"}, {"retry-after": "Sun, 22 Nov 2026 00:00:00 GMT"})
    api.answers = [Answer(503, PROBLEM, given) for given in headers]
    client.release(["tok.0"])
    assert clock.slept == [7, 1, 2]


def test_a_retry_after_beyond_a_minute_ends_the_call(client: Client, api: FakeApi, clock: FakeClock) -> None:
    api.answers = [Answer(429, PROBLEM, {"retry-after": "61"})]
    with pytest.raises(ApiError):
        client.release(["tok.0"])
    assert (len(api.calls), clock.slept) == (1, [])


def test_no_answer_is_repeated(clock: FakeClock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    client = Client(f"http://127.0.0.1:{port}", "key", clock=clock, jitter=lambda: 0)
    with pytest.raises(ApiError, match="no answer from the API") as failed:
        client.extend(["tok.0"])
    assert (failed.value.status, clock.slept) == (None, [0.5, 1, 2, 4, 8])


def test_nothing_is_begun_after_the_deadline(client: Client, api: FakeApi, clock: FakeClock) -> None:
    api.answers = [Answer(503, PROBLEM)] * 3
    with pytest.raises(ApiError):
        client.release(["tok.0"], deadline=clock.monotonic() + 2)
    assert clock.slept == [0.5, 1]
    with pytest.raises(ApiError, match="no time left"):
        client.release(["tok.0"], deadline=clock.monotonic())
    assert len(api.calls) == 3


@pytest.mark.parametrize(
    "body",
    [
        b"hello",
        [],
        {"results": []},
        {"results": [{"token": "tok.0"}]},
        {"results": [{"token": "tok.0", "status": "extended"}]},
        {"results": [{"token": "tok.0", "status": "extended", "lease_expires_at": "soon"}]},
        {"results": [{"token": "tok.0", "status": "expired", "detail": "x" * 1024 * 1024}]},
    ],
)
def test_an_answer_that_does_not_read_is_an_error(body: object, client: Client, api: FakeApi) -> None:
    api.answers = [Answer(200, body)]
    with pytest.raises(UnreadableAnswer):
        client.extend(["tok.0"])
    assert len(api.calls) == 1


def test_it_learns_the_servers_time(api: FakeApi, api_address: str) -> None:
    clock = FakeClock(wrong_by=-90)
    client = Client(api_address, "key", clock=clock)
    assert client.server_now() == LAUNCH - 90
    client.extend(["tok.0"])
    assert client.server_now() == LAUNCH


def test_it_names_its_version(client: Client, api: FakeApi) -> None:
    client.release(["tok.0"])
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    [version] = re.findall(r'^version = "(.*)"$', project, re.MULTILINE)
    assert api.calls[0].headers["user-agent"] == f"tidegate-consumer/{version} (python)"


def test_the_address_is_checked_and_may_end_in_a_slash_and_the_key_is_not_shown(api: FakeApi, api_address: str) -> None:
    with pytest.raises(ValueError, match="begins with neither"):
        Client("file:///etc/passwd", "key")
    client = Client(f"{api_address}/", "tg_acme_key")
    assert "tg_acme" not in repr(client)
    client.release(["tok.0"])
    assert api.calls[0].path == "/v1/tokens/release"
