"""Failed attempts as typed errors, sorted by whether the request can have arrived."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from typing import TypeVar

import aiohttp

from prime_core.calls import Call
from prime_core.errors import APIConnectionError, APIError, APIResponseError, APITimeoutError
from prime_core.outcomes import (
    MAX_ERROR_BODY,
    Failure,
    Outcome,
    error_of,
    parse_retry_after,
    shown_id,
)

__all__ = [
    "advise",
    "closed_failure",
    "down_failure",
    "failure_of_answer",
    "failure_of_transport",
    "finished",
    "page_failure",
    "partial_failure",
    "pool_failure",
    "queue_failure",
    "total_timeout",
    "without_key",
]

CHUNK = 64 * 1024

_OPEN_OUTCOME = {
    "safe": "it is safe to try again",
    "keyed": "the platform may have done it: try again with the same idempotency key, if you "
    "passed one",
    "unsafe": "the platform may have done it: check before you send it again",
    "permitted": "the platform may have done it {times}: check before you send it again",
}

_SPENT = "what was being sent is used up: pass it anew to try again"

T = TypeVar("T")


async def failure_of_answer(call: Call[T], response: aiohttp.ClientResponse) -> Failure:
    """The typed error of an error answer; only the start of a large body is read.

    A server that echoes the request's headers must not bring the key into it.
    """
    body = b""
    # An error whose text breaks off is still that error.
    with contextlib.suppress(aiohttp.ClientError, OSError, asyncio.TimeoutError):
        async for chunk in response.content.iter_chunked(CHUNK):
            body += chunk
            if len(body) >= MAX_ERROR_BODY:
                response.close()
                break
    retry_after = parse_retry_after(response.headers.get("Retry-After"))
    failure = error_of(
        response.status,
        without_key(call, body)[:MAX_ERROR_BODY],
        reason=response.reason,
        retry_after=retry_after,
        request_id=response.headers.get("X-Request-Id"),
    )
    codes = call.operation.refusal_codes
    if response.status == 503 and codes:
        refused = failure.error.code in codes
        outcome = Outcome.REFUSED if refused else Outcome.AMBIGUOUS
        return dataclasses.replace(failure, outcome=outcome)
    return failure


def without_key(call: Call[T], body: bytes) -> bytes:
    """What a server says, without the key that it may echo."""
    secret = call.headers.get("Authorization", "").removeprefix("Bearer ").encode()
    return body.replace(secret, b"[redacted]") if secret else body


def _cause(error: BaseException) -> Exception:
    """An exception of the transport without its traceback: the frames there hold the key.

    Of its text only the gist is kept, since the whole may quote a proxy's URL with its password.
    """
    return TransportCause(f"{type(error).__name__}: {_gist(error)}")


class TransportCause(Exception):
    """Type and text of the transport's own exception."""


def failure_of_transport(call: Call[T], error: Exception, *, reading: bool) -> Failure:
    """Sorts an exception of the transport by whether the request can have arrived."""
    host = call.target.host
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        failure = Failure(
            Outcome.FINAL,
            APIConnectionError(
                f"TLS with {host} failed: {_gist(error)}. For a private CA set SSL_CERT_FILE "
                "or pass ssl_context=.",
                sent="no",
            ),
        )
    elif isinstance(error, aiohttp.ConnectionTimeoutError):
        failure = Failure(
            Outcome.NOT_SENT,
            APITimeoutError(
                f"Connecting to {host} took too long; check the network and the base URL.",
                sent="no",
                phase="connect",
            ),
            unavailable=True,
        )
    elif isinstance(error, asyncio.TimeoutError):
        moves = call.idle is not None and asyncio.get_running_loop().time() < call.end
        failure = Failure(
            Outcome.AMBIGUOUS, idle_timeout(call) if moves else total_timeout(call, sent=True)
        )
    elif isinstance(error, aiohttp.ClientConnectorDNSError):
        failure = Failure(
            Outcome.NOT_SENT,
            APIConnectionError(
                f"The name of {host} can't be resolved: check the base URL.", sent="no"
            ),
            unavailable=True,
        )
    elif isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientProxyConnectionError):
        failure = Failure(
            Outcome.NOT_SENT,
            APIConnectionError(
                f"Can't connect to {host}: {_gist(error)}; check the network and the base URL.",
                sent="no",
            ),
            unavailable=True,
        )
    elif isinstance(error, aiohttp.ClientHttpProxyError):
        failure = Failure(
            Outcome.NOT_SENT,
            APIConnectionError(
                f"The proxy refused to connect to {host}: HTTP {error.status} {_gist(error)}; "
                "check HTTPS_PROXY and NO_PROXY.",
                sent="no",
            ),
        )
    elif isinstance(error, aiohttp.ClientResponseError) or (
        # A RuntimeError: the connection was closed while the reader was busy with a chunk.
        reading and isinstance(error, aiohttp.ClientPayloadError | ValueError | RuntimeError)
    ):
        failure = Failure(
            Outcome.AMBIGUOUS,
            APIResponseError(f"The answer of {host} is cut short or garbled: {_gist(error)}"),
        )
    elif isinstance(error, aiohttp.ClientError | OSError):
        failure = Failure(
            Outcome.AMBIGUOUS,
            APIConnectionError(
                f"The connection to {host} broke before the answer: {_gist(error)}",
                sent="unknown",
            ),
            unavailable=isinstance(error, aiohttp.ServerDisconnectedError | OSError),
        )
    else:
        raise error
    failure.error.__cause__ = _cause(error)
    return failure


def _gist(error: BaseException) -> str:
    names = ("os_error", "certificate_error", "message")
    reason = next((found for name in names if (found := getattr(error, name, None))), None)
    text = str(error if reason is None else reason) or type(error).__name__
    return " ".join(text.split())[:200]


def total_timeout(call: Call[T], *, sent: bool) -> APITimeoutError:
    return APITimeoutError(
        f"No complete answer of {call.target.host} within {_limit(call)}; pass a larger timeout",
        sent="unknown" if sent else "no",
        phase="total",
    )


def idle_timeout(call: Call[T]) -> APITimeoutError:
    return APITimeoutError(
        f"Nothing moved between here and {call.target.host} for {call.idle:g} s.",
        sent="unknown",
        phase="idle",
    )


def _limit(call: Call[T]) -> str:
    """How long a call was let to wait, for a message."""
    return f"{call.idle if call.timeout is None else call.timeout:g} s"


def finished(call: Call[T], failure: Failure) -> APIError:
    """The error of a failure, completed with what is known of its call."""
    error = failure.error
    safety = call.operation.safety
    open_now = failure.outcome is Outcome.AMBIGUOUS
    # A later refusal says nothing of what the attempts before it have done.
    repeated = safety == "permitted" and call.ambiguous
    if call.unresolved or open_now or repeated:
        # An answer that breaks while its caller reads it is no attempt's failure.
        count = call.ambiguous + (open_now and failure is not call.last)
        times = "once" if count == 1 else f"{count} times"
        advice = _SPENT if call.spent else _OPEN_OUTCOME[safety].format(times=times)
        advise(error, advice)
    error.operation = call.operation.id
    error.host = call.target.host
    error.request_id = error.request_id or call.request_id
    error.inference_id = shown_id(call.inference_id) or error.inference_id
    error.attempts = call.attempts
    if call.attempts:
        error.elapsed = time.monotonic() - call.started
    return error


def advise(error: APIError, advice: str) -> None:
    """Adds to an error's message what to do next, or what is known besides."""
    message, *others = error.args
    error.args = (f"{message.rstrip('.')}; {advice}", *others)


def page_failure(call: Call[T]) -> Failure:
    error = APIResponseError(f"{call.target.host} answered with an HTML page; check the base URL.")
    return Failure(Outcome.AMBIGUOUS, error)


def partial_failure(call: Call[T], status: int) -> Failure:
    """A download answered by a success that is not the whole: 204, 206 or the like."""
    error = APIResponseError(
        f"{call.target.host} answered with HTTP {status} in place of a whole document."
    )
    error.status_code = status
    return Failure(Outcome.AMBIGUOUS, error)


def queue_failure(call: Call[T]) -> Failure:
    return Failure(
        Outcome.NOT_SENT,
        APITimeoutError(
            f"Waited {call.queue_timeout:g} s for the rate limit's turn without being sent; "
            "send fewer calls at once, or raise queue_timeout.",
            sent="no",
            phase="queue",
        ),
    )


def pool_failure(call: Call[T]) -> Failure:
    return Failure(
        Outcome.NOT_SENT,
        APITimeoutError(
            f"No connection to {call.target.host} became free within {_limit(call)}; "
            "raise max_connections.",
            sent="no",
            phase="pool",
        ),
    )


def closed_failure() -> Failure:
    return Failure(
        Outcome.NOT_SENT,
        APIConnectionError("The client was closed before this was sent; call it again.", sent="no"),
    )


def down_failure(call: Call[T]) -> Failure:
    return Failure(
        Outcome.NOT_SENT,
        APIConnectionError(
            f"{call.target.host} stopped answering and did not come back within "
            f"{_limit(call)}; try again later.",
            sent="no",
        ),
    )
