"""The calls of the API that a consumer makes: release and extend, with their retries."""

from __future__ import annotations

import email.utils
import http.client
import json
import logging
import random
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tidegate_consumer import limits
from tidegate_consumer.clock import Clock, SystemClock
from tidegate_consumer.messages import instant

log = logging.getLogger("tidegate_consumer")

USER_AGENT = "tidegate-consumer/0.1.0 (python)"
# Control characters, each of which would be six bytes in JSON, and which nobody can read anyway.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True)
class Release:
    """A token, and how its event ended. `result` goes with `succeeded`, `error` with `failed`."""

    token: str
    outcome: Literal["succeeded", "failed"] = "succeeded"
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Released:
    """What a release did to one token."""

    token: str
    status: str
    """`released`, `already_released`, `accepted`, `reclaimed`, `not_yours`, `unknown` or `malformed`."""
    detail: str | None = None
    """What is wrong with the entry, when it is malformed."""


@dataclass(frozen=True)
class Extended:
    """What an extension did to one token."""

    token: str
    status: str
    """`extended`, `expired`, `not_yours`, `unknown` or `malformed`."""
    lease_expires_at: str | None = None
    """Until when the token is held; only when it was extended."""


class ApiError(Exception):
    """A call did not do what it was asked."""

    def __init__(self, message: str, status: int | None = None, retry_after_seconds: float = 0) -> None:
        super().__init__(message)
        self.status = status
        """The status of a refusal; `None` when no answer came, and whether the call took effect is unknown."""
        self.retry_after_seconds = retry_after_seconds
        """How long the API wants the next attempt to wait."""

    def is_retryable(self) -> bool:
        """Whether the same call may succeed a little later."""
        return self.status is None or self.status in (408, 425, 429) or self.status >= 500


class UnreadableAnswer(ApiError):  # noqa: N818 (as the Rust client calls it)
    """The answer does not read as what this version expects."""

    def is_retryable(self) -> bool:
        return False


class Client:
    """The API of a Tidegate, as one of its clients. May be used by several threads at once."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_seconds: float = limits.TIMEOUT_SECONDS,
        attempts: int = limits.ATTEMPTS,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`base_url` is without `/v1`. Makes no call."""
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"the base URL '{base_url}' begins with neither http:// nor https://")
        self.clock: Clock = clock or SystemClock()
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._jitter = jitter
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._clock_is_behind_seconds = 0.0

    def release(self, entries: Sequence[str | Release], *, deadline: float | None = None) -> list[Released]:
        """Releases 1 to 100 tokens; a text alone is a token whose event succeeded. Repeating it is safe.

        The answer has one entry for each, in the same order: its `status` says what came of it. A `result` or an
        `error` of more than 2,048 bytes is cut. After `deadline`, an instant of the monotonic clock, no attempt is
        begun. Raises `ApiError`.
        """
        body = {"tokens": [_entry(entry) for entry in entries]}
        results = self._results("/v1/tokens/release", body, len(entries), deadline)
        return [Released(r["token"], r["status"], r.get("detail")) for r in results]

    def extend(
        self, tokens: Sequence[str], lease_seconds: int | None = None, *, deadline: float | None = None
    ) -> list[Extended]:
        """Makes the leases of 1 to 100 tokens last `lease_seconds` from now, or as long as their policy says.

        The answer has one entry for each, in the same order: its `status` says what came of it. Repeating it is
        safe. After `deadline`, an instant of the monotonic clock, no attempt is begun. Raises `ApiError`.
        """
        body: dict[str, Any] = {"tokens": list(tokens)}
        if lease_seconds is not None:
            body["lease_seconds"] = lease_seconds
        results = self._results("/v1/tokens/extend", body, len(tokens), deadline)
        return [Extended(r["token"], r["status"], r.get("lease_expires_at")) for r in results]

    def server_now(self) -> float:
        """The server's time of day, as its last answer told it: leases go by its clock, and this one may be wrong."""
        return self.clock.now() + self._clock_is_behind_seconds

    def _results(self, path: str, body: Any, count: int, deadline: float | None) -> list[dict[str, Any]]:
        answer = self._post(path, json.dumps(body, ensure_ascii=False).encode(errors="replace"), deadline)
        try:
            results = json.loads(answer)["results"]
            if len(results) != count:
                raise ValueError(f"{len(results)} results for {count} tokens")
            for result in results:
                if not isinstance(result["token"], str) or not isinstance(result["status"], str):
                    raise ValueError("a result without token and status")
                if result["status"] == "extended":
                    instant(result["lease_expires_at"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UnreadableAnswer(f"the answer of the API cannot be read: {error!r}") from error
        return list(results)

    def _post(self, path: str, body: bytes, deadline: float | None) -> bytes:
        """Makes the call, and repeats it while that may help and there is time."""
        attempt = 1
        while True:
            try:
                return self._attempt(path, body, deadline)
            except ApiError as error:
                wait = max(backoff_seconds(attempt, self._jitter()), error.retry_after_seconds)
                is_last = attempt >= self._attempts or wait > limits.LONGEST_RETRY_AFTER_SECONDS
                is_late = deadline is not None and self.clock.monotonic() + wait >= deadline
                if not error.is_retryable() or is_last or is_late:
                    raise
                log.info("attempt %d of POST %s is repeated in %.1f s: %s", attempt, path, wait, error)
                self.clock.sleep(wait)
                attempt += 1

    def _attempt(self, path: str, body: bytes, deadline: float | None) -> bytes:
        timeout = self._timeout_seconds
        if deadline is not None:
            timeout = min(timeout, deadline - self.clock.monotonic())
            if timeout <= 0:
                raise ApiError("no answer from the API: there was no time left to ask")
        headers = {
            "authorization": f"Bearer {self._api_key}",
            "content-type": "application/json",
            "user-agent": USER_AGENT,
        }
        request = urllib.request.Request(self._base_url + path, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=timeout) as response:
                self._learn_time(response.headers.get("date"))
                answer: bytes = response.read(limits.ANSWER_BYTES + 1)
        except urllib.error.HTTPError as refusal:
            with refusal:
                self._learn_time(refusal.headers.get("date"))
                raise _refused(refusal) from None
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(f"no answer from the API: {error}") from error
        if len(answer) > limits.ANSWER_BYTES:
            raise UnreadableAnswer(f"the answer of the API is over {limits.ANSWER_BYTES} bytes")
        return answer

    def _learn_time(self, date: str | None) -> None:
        try:
            told = email.utils.parsedate_to_datetime(date or "").timestamp()
        except ValueError:
            return
        self._clock_is_behind_seconds = told - self.clock.now()


def backoff_seconds(attempt: int, jitter: float) -> float:
    """How long to wait after an attempt in vain: doubling, and up to half as long again (`jitter` is 0 to 1)."""
    doubled = limits.FIRST_BACKOFF_SECONDS * 2.0 ** min(attempt - 1, 30)
    return min(doubled, limits.LONGEST_BACKOFF_SECONDS) * (1 + jitter / 2)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The API does not redirect; whoever does must not be given the key."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _refused(refusal: urllib.error.HTTPError) -> ApiError:
    """Whatever stands between may answer too, and not with a problem."""
    try:
        body = refusal.read(limits.ANSWER_BYTES)
    except (OSError, http.client.HTTPException):
        body = b""
    try:
        detail = json.loads(body)["detail"]
    except (ValueError, TypeError, KeyError, RecursionError):
        detail = body.decode(errors="replace")[:200]
    seconds = refusal.headers.get("retry-after") or ""
    retry_after = float(seconds) if re.fullmatch(r"[0-9]{1,9}", seconds) else 0.0
    return ApiError(f"the API refused the call: {detail} ({refusal.code})", refusal.code, retry_after)


def _entry(entry: str | Release) -> dict[str, str]:
    release = Release(entry) if isinstance(entry, str) else entry
    sent = {"token": release.token, "outcome": release.outcome}
    if release.result is not None:
        sent["result"] = _fitted(release.result)
    if release.error is not None:
        sent["error"] = _fitted(release.error)
    return sent


def _fitted(note: str) -> str:
    """As much of a text as the API keeps, and what it can read of it."""
    text = CONTROL.sub(" ", note).encode(errors="replace")
    return text[: limits.NOTE_BYTES].decode(errors="ignore")
