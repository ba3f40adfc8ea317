"""The example and the code of the README, run as they are in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import Body
from fakes import PATIENCE_SECONDS, FakeApi, FakeSqs
from test_messages import COMPLETION
from test_webhook import OLD_SECRET, SECRET, signed

FOLDER = Path(__file__).parents[1]
README = re.findall(r"^```python\n(.*?)^```", (FOLDER / "README.md").read_text(), re.DOTALL | re.MULTILINE)
EXAMPLE = (FOLDER / "examples" / "consume.py").read_text()


class Script:
    def __init__(self, code: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> list[str]:
        """What it has printed, when it has ended well."""
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0, err
        return out.splitlines()


@pytest.fixture
def environment(api_address: str, sqs_address: str) -> dict[str, str]:
    return {
        "TIDEGATE_URL": api_address,
        "TIDEGATE_API_KEY": "tg_acme_key",
        "QUEUE_URL": f"{sqs_address}/000000000000/work",
        "AWS_ENDPOINT_URL": sqs_address,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }


@pytest.fixture
def untimed(body: Body) -> Body:
    """Events that do not say when their lease ends: these processes have a clock that nobody moves."""
    return lambda index=0, **changes: body(index, **{"lease_expires_at": ..., **changes})


def test_the_example_ends_after_count_events(
    environment: dict[str, str], api: FakeApi, sqs: FakeSqs, untimed: Body
) -> None:
    for index in range(3):
        sqs.send(untimed(index))
    script = Script(EXAMPLE, {**environment, "COUNT": "3"})
    sqs.wait_for_deletes(3)
    sqs.end_polls()
    assert sorted(script.end()) == [f"nightly.1.1795305600.{index}" for index in range(3)]
    assert len(api.released()) == 3


@pytest.mark.parametrize("code", [EXAMPLE, README[0]], ids=["example", "readme"])
def test_a_consumer_ends_well_on_sigterm(
    code: str, environment: dict[str, str], api: FakeApi, sqs: FakeSqs, untimed: Body
) -> None:
    sqs.send(untimed(0))
    script = Script(code, environment)
    sqs.wait_for_deletes(1)
    script.process.send_signal(signal.SIGTERM)
    sqs.end_polls()
    assert "nightly.1.1795305600.0" in script.end()[0]
    assert [entry["token"] for entry in api.released()] == ["tok.0"]


def test_the_readmes_lambda_function_handles_records(environment: dict[str, str], api: FakeApi, untimed: Body) -> None:
    records = [{"messageId": "one", "body": json.dumps(untimed(0))}, {"messageId": "two", "body": "hello"}]
    invoke = f"""
class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 60_000


print(handler({{"Records": {records!r}}}, Context()))
"""
    lines = Script(README[1] + invoke, environment).end()
    assert lines[-1] == "{'batchItemFailures': [{'itemIdentifier': 'two'}]}"
    assert [entry["token"] for entry in api.released()] == ["tok.0"]


ANNOUNCED = """
import http.server


class Announced(http.server.ThreadingHTTPServer):
    def serve_forever(self, poll_interval=0.01):
        print(self.server_address[1], flush=True)
        super().serve_forever(poll_interval)


http.server.ThreadingHTTPServer = Announced
"""


def test_the_readmes_endpoint_verifies_calls(body: Body) -> None:
    script = Script(ANNOUNCED + README[2], {"WEBHOOK_SECRETS": f"{SECRET} {OLD_SECRET}", "PORT": "0"})
    assert script.process.stdout is not None
    address = f"http://127.0.0.1:{script.process.stdout.readline().strip()}"
    event, completion, other = json.dumps(body()).encode(), json.dumps(COMPLETION).encode(), b"{}"
    now = int(time.time())
    assert post(address, event, signed(event, SECRET, sent_at=now)) == 204
    assert post(address, completion, signed(completion, OLD_SECRET, sent_at=now)) == 204
    assert post(address, other, signed(other, SECRET, sent_at=now)) == 422
    assert post(address, event, signed(other, SECRET, sent_at=now)) == 401
    script.process.kill()
    out, _ = script.process.communicate()
    assert out.splitlines() == [
        "working on nightly.1.1795305600.0 {'report': 'daily'}",
        "run nightly.1.1795305600 has finished",
    ]


def post(address: str, body: bytes, headers: dict[str, str]) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code


def test_the_readmes_release_is_sent(environment: dict[str, str], api: FakeApi) -> None:
    assert Script(README[3], {**environment, "TOKEN": "tok.0"}).end() == ["released"]
    assert api.released() == [{"token": "tok.0", "outcome": "failed", "error": "the shop does not answer"}]
