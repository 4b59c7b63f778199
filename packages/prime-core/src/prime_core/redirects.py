"""Where a redirect may be followed to."""

from __future__ import annotations

from typing import TypeVar

from yarl import URL

from prime_core.calls import Call
from prime_core.errors import APIResponseError
from prime_core.outcomes import Failure, Outcome
from prime_core.uploads import Upload

__all__ = ["redirect_failure", "redirected"]

T = TypeVar("T")


def redirected(call: Call[T], url: URL, location: str, status: int) -> URL | Failure:
    """Where a redirect may be followed to.

    To the same origin with all headers where the method stays the same; to another host only
    for reads and without key and team; never from https to http.
    """
    try:
        target = url.join(URL(location)).with_user(None)
        same = target.origin() == url.origin()
    except ValueError:
        return redirect_failure(
            status, "The platform redirects to no valid URL; check the base URL."
        )
    read = call.operation.method == "GET"
    upward = target.scheme == "https" or (target.scheme == "http" and url.scheme == "http")
    again = status in (307, 308) and not isinstance(call.body, Upload)  # which is partly sent
    if (same and (read or again)) or (read and upward):
        return target
    return redirect_failure(
        status,
        f"Redirected to {target.host}, where this request must not go; check the base URL.",
    )


def redirect_failure(status: int, message: str) -> Failure:
    error = APIResponseError(f"HTTP {status}: {message}")
    error.status_code = status
    return Failure(Outcome.FINAL, error)
