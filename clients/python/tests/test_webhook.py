from __future__ import annotations

import base64
import email.message
import hashlib
import hmac
import json

import pytest
from conftest import Body
from test_messages import COMPLETION

from tidegate_consumer import Completion, Event, MessageError, WebhookError, WebhookVerifier

# The request of docs/messages.md.
SECRET = "whsec_f1G4tjPCN9nHZejqz/eS5isRna3QzX+Ciy/YkLIZjXg="
OLD_SECRET = "whsec_" + base64.b64encode(b"an older key").decode()
SENT_AT = 1795318389
HEADERS = {
    "webhook-id": "hello.1.1795305600.0",
    "webhook-timestamp": str(SENT_AT),
    "webhook-signature": "v1,wNxHbE4r552EnPaUXAQSv0zUe83w73Th080rmC7Pe/U=",
}
BODY = (
    b'{"event_id":"hello.1.1795305600.0","job_id":"hello","client_id":"acme","run_id":"hello.1.1795305600","index":0,'
    b'"count":1,"launch_at":"2026-11-22T00:00:00Z","attempt":1,"payload":{"report":"daily"}}'
)


def verifier(*secrets: str, at: float = SENT_AT) -> WebhookVerifier:
    return WebhookVerifier(secrets or [SECRET], now=lambda: at)


def signed(body: bytes, secret: str = SECRET, sent_at: int = SENT_AT) -> dict[str, str]:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"id.{sent_at}.".encode() + body, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(mac).decode()
    return {"webhook-id": "id", "webhook-timestamp": str(sent_at), "webhook-signature": signature}


def test_the_documented_call_is_an_event() -> None:
    event = verifier().verify(BODY, HEADERS)
    assert isinstance(event, Event)
    assert (event.event_id, event.payload) == ("hello.1.1795305600.0", {"report": "daily"})


def test_the_case_of_headers_does_not_matter() -> None:
    message = email.message.Message()
    for name, value in HEADERS.items():
        message[name.title()] = value
    assert isinstance(verifier().verify(BODY, message), Event)


def test_a_completion_is_told_from_an_event() -> None:
    body = json.dumps(COMPLETION).encode()
    assert isinstance(verifier().verify(body, signed(body)), Completion)


def test_any_of_the_secrets_and_any_of_the_signatures_may_fit() -> None:
    both = verifier(SECRET, OLD_SECRET)
    assert isinstance(both.verify(BODY, HEADERS), Event)
    assert isinstance(both.verify(BODY, signed(BODY, OLD_SECRET)), Event)
    one_of_three = f"v1a,abcd v1,AAAA {HEADERS['webhook-signature']}"
    assert isinstance(verifier().verify(BODY, {**HEADERS, "webhook-signature": one_of_three}), Event)


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "v1,",
        "v1,AAAA",
        "v1,é",
        "wNxHbE4r552EnPaUXAQSv0zUe83w73Th080rmC7Pe/U=",
        "v2,wNxHbE4r552EnPaUXAQSv0zUe83w73Th080rmC7Pe/U=",
    ],
)
def test_another_signature_does_not_fit(signature: str) -> None:
    with pytest.raises(WebhookError, match="no signature of the call fits any secret"):
        verifier().verify(BODY, {**HEADERS, "webhook-signature": signature})


def test_what_was_signed_cannot_be_changed() -> None:
    for body, headers in [
        (BODY + b" ", HEADERS),
        (BODY, {**HEADERS, "webhook-id": "other"}),
        (BODY, {**HEADERS, "webhook-timestamp": str(SENT_AT + 1)}),
    ]:
        with pytest.raises(WebhookError, match="no signature"):
            verifier().verify(body, headers)
    with pytest.raises(WebhookError, match="no signature"):
        verifier(OLD_SECRET).verify(BODY, HEADERS)


def test_a_timestamp_may_be_off_by_five_minutes() -> None:
    for off in (-300, 300):
        verifier(at=SENT_AT + off).verify(BODY, HEADERS)
    with pytest.raises(WebhookError, match="too old: by 301 s"):
        verifier(at=SENT_AT + 301).verify(BODY, HEADERS)
    with pytest.raises(WebhookError, match="too far ahead: by 301 s"):
        verifier(at=SENT_AT - 301).verify(BODY, HEADERS)


@pytest.mark.parametrize("timestamp", ["", "now", "1e9", "-1", " 1795318389", "1795318389.5", "1" * 5_000, "²"])
def test_a_timestamp_is_a_number_of_seconds(timestamp: str) -> None:
    with pytest.raises(WebhookError, match="no number of seconds"):
        verifier().verify(BODY, {**HEADERS, "webhook-timestamp": timestamp})


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_is_missing_is_named(name: str) -> None:
    with pytest.raises(WebhookError, match=f"the header '{name}' is missing"):
        verifier().verify(BODY, {other: value for other, value in HEADERS.items() if other != name})


def test_a_signed_body_that_does_not_read_is_another_error(body: Body) -> None:
    text = json.dumps(body(count=0)).encode()
    with pytest.raises(MessageError, match="'count' is no integer from 1"):
        verifier().verify(text, signed(text))


def test_the_body_is_bytes_and_the_secrets_are_a_list_of_base64() -> None:
    with pytest.raises(TypeError, match="bytes that arrived"):
        verifier().verify(BODY.decode(), HEADERS)  # type: ignore[arg-type]
    for secrets, reason in [
        ([], "at least one"),
        (SECRET, "a list"),
        (["whsec_"], "a secret is empty"),
        (["whsec_not base64"], "not base64"),
        (["whsec_é"], "not base64"),
    ]:
        with pytest.raises(ValueError, match=reason):
            WebhookVerifier(secrets)
