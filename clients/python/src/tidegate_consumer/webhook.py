"""Verifying the calls that Tidegate makes of an endpoint: signatures of Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tidegate_consumer import limits
from tidegate_consumer.messages import Completion, Event, parse_message


class WebhookError(Exception):
    """A call is not to be trusted, and says why: answer it with 401."""


class Headers(Protocol):
    """The headers of a call: a dictionary, or what a framework has for that."""

    def items(self) -> Iterable[tuple[str, str]]: ...


class WebhookVerifier:
    """Verifies calls by any of several secrets, so that a secret can be replaced: list the new and the old one."""

    def __init__(
        self,
        secrets: Sequence[str],
        *,
        tolerance_seconds: float = limits.TOLERANCE_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Raises `ValueError` when there is no secret, or one is not `whsec_` and base64."""
        if isinstance(secrets, str) or not secrets:
            raise ValueError("give a list of at least one secret")
        self._keys = [_key(secret) for secret in secrets]
        self._tolerance_seconds = tolerance_seconds
        self._now = now

    def verify(self, body: bytes, headers: Headers) -> Event | Completion:
        """Verifies the bytes of a body as they arrived, and reads the event or the completion.

        The case of the headers' names does not matter. Raises `WebhookError` when the call is not to be trusted, and
        `MessageError` when it is but does not read.
        """
        if not isinstance(body, bytes):
            raise TypeError("give the body as the bytes that arrived")
        webhook_id = _header(headers, "webhook-id")
        timestamp = _header(headers, "webhook-timestamp")
        signatures = _header(headers, "webhook-signature")
        self._check_time(timestamp)
        signed = f"{webhook_id}.{timestamp}.".encode() + body
        expected = [hmac.new(key, signed, hashlib.sha256).digest() for key in self._keys]
        given = [_signature(text) for text in signatures.split(" ") if text.startswith("v1,")]
        # Every pair is compared, so that the time taken tells nothing.
        matches = [hmac.compare_digest(e, g) for e in expected for g in given]
        if not any(matches):
            raise WebhookError("no signature of the call fits any secret")
        return parse_message(body)

    def _check_time(self, timestamp: str) -> None:
        if not re.fullmatch(r"[0-9]{1,15}", timestamp):
            raise WebhookError("'webhook-timestamp' is no number of seconds")
        off_seconds = self._now() - int(timestamp)
        if abs(off_seconds) > self._tolerance_seconds:
            way = "old" if off_seconds > 0 else "far ahead"
            raise WebhookError(f"'webhook-timestamp' is too {way}: by {abs(off_seconds):.0f} s")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"a secret is not base64 after 'whsec_': {error}") from None
    if not key:
        raise ValueError("a secret is empty")
    return key


def _header(headers: Headers, name: str) -> str:
    for given, value in headers.items():
        if given.lower() == name:
            return value
    raise WebhookError(f"the header '{name}' is missing")


def _signature(text: str) -> bytes:
    """The bytes of a signature; none when it is not base64, which fit nothing."""
    try:
        return base64.b64decode(text.removeprefix("v1,"), validate=True)
    except (binascii.Error, ValueError):
        return b""
