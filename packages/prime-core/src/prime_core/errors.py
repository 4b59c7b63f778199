"""Every error that the SDK raises for the platform's or the network's reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar, cast

__all__ = [
    "APIConnectionError",
    "APIError",
    "APIResponseError",
    "APITimeoutError",
    "BadRequestError",
    "ConfigurationError",
    "ConflictError",
    "ForbiddenError",
    "LoginExpiredError",
    "LoginTimeoutError",
    "NotFoundError",
    "PaymentRequiredError",
    "PrimeError",
    "QuotaExceededError",
    "RateLimitError",
    "ServerError",
    "StreamStateError",
    "UnauthorizedError",
    "UnsafeArchiveError",
    "ValidationError",
]

Sent = Literal["yes", "no", "unknown"]
TimeoutPhase = Literal["queue", "pool", "connect", "idle", "total"]


class PrimeError(Exception):
    """Base class of every error of the SDK. Errors pickle whole, attributes included."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


_E = TypeVar("_E", bound=PrimeError)


def _rebuild(cls: type[_E], args: tuple[object, ...], state: dict[str, object]) -> _E:
    # The base whose layout it has; with several, the first one's `__new__` may not make it.
    base = cls.__base__
    assert base is not None
    make = cast("Callable[..., _E]", base.__new__)
    error = make(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def rebuilt(cls: type[_E], error: PrimeError) -> _E:
    """An error as one of a class that says more of it, with all that is known of it."""
    other = _rebuild(cls, error.args, error.__dict__)
    other.__cause__ = error.__cause__
    return other


class ConfigurationError(PrimeError, ValueError):
    """The key, team, URL or context in use is missing or unusable; nothing was sent."""


class LoginTimeoutError(PrimeError, TimeoutError):
    """Nobody approved a login in time: begin again."""


class UnsafeArchiveError(PrimeError, ValueError):
    """An archive that came holds something that would not stay in its folder."""


class StreamStateError(PrimeError, RuntimeError):
    """A stream, or a map's results, can't be read on.

    It was closed, left or broke before its end, is read by two at once, or belongs to another
    event loop or to the parent of a forked process. Make the call anew.
    """


class APIError(PrimeError):
    """A call failed: an error answer, an answer that can't be read, or no answer at all.

    Args:
        message: what went wrong, and what to do next where that is known.

    Attributes:
        status_code: HTTP status of the answer, or None without one.
        code: the platform's machine-readable code, or None.
        request_id: id of the request, to quote to the platform's support.
        inference_id: id of a call of the inference service, to quote likewise, or None.
        operation: the operation that failed, such as ``create_sandbox``.
        host: the host that was called.
        retry_after: seconds that the platform asked to wait, or None.
        attempts: how many times the request was sent.
        elapsed: seconds from the first attempt to the error.
        body: the start of the answer's body, at most 64 KiB, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        inference_id: str | None = None,
        operation: str | None = None,
        host: str | None = None,
        retry_after: float | None = None,
        attempts: int = 0,
        elapsed: float = 0.0,
        body: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.code = code
        self.request_id = request_id
        self.inference_id = inference_id
        self.operation = operation
        self.host = host
        self.retry_after = retry_after
        self.attempts = attempts
        self.elapsed = elapsed
        self.body = body

    def __str__(self) -> str:
        message = str(self.args[0]) if self.args else type(self).__name__
        details = [text for text in (self.operation, self.host) if text]
        if self.request_id:
            details.append(f"request id {self.request_id}")
        if self.inference_id:
            details.append(f"inference id {self.inference_id}")
        if self.attempts:
            tries = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
            details.append(f"{tries} in {self.elapsed:.1f} s")
        return f"{message} ({', '.join(details)})" if details else message


class BadRequestError(APIError):
    """400: the platform refused the request: a limit, a state or a bad combination."""


class UnauthorizedError(APIError):
    """401: the API key is missing, wrong, expired, disabled or lacks the permission."""


class PaymentRequiredError(APIError):
    """402: the wallet can't pay for this."""


class ForbiddenError(APIError):
    """403: the key's scope, the team role or a feature switch forbids this."""


class NotFoundError(APIError):
    """404: there is no such object, or the caller can't see it."""


class LoginExpiredError(APIError):
    """404 or 410 of a login: its challenge has expired. Begin again."""


class ConflictError(APIError):
    """409: the object's state, or a name that is taken, forbids this."""


class ValidationError(APIError):
    """422: the platform found the request's data invalid.

    Attributes:
        problems: (path, message) pairs, such as ``("name", "Field required")``.
    """

    problems: list[tuple[str, str]]

    def __init__(
        self,
        message: str,
        *,
        problems: list[tuple[str, str]] | None = None,
        status_code: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(
            message, status_code=status_code, code=code, request_id=request_id, body=body
        )
        self.problems = problems or []


class RateLimitError(APIError):
    """429: too many requests, still refused when the time to wait for them was over."""


class QuotaExceededError(RateLimitError):
    """429 that no waiting cures: an account limit is reached. Free something or ask for more."""


class ServerError(APIError):
    """5xx: the platform failed."""


class APIResponseError(APIError):
    """The platform's answer can't be read: not JSON, cut short, or not of the expected shape."""


class APIConnectionError(APIError, ConnectionError):
    """No answer arrived: name look-up, connection, TLS or transfer failed.

    Attributes:
        sent: whether the platform may have got the request: ``yes``, ``no`` or ``unknown``.
    """

    sent: Sent

    def __init__(self, message: str, *, sent: Sent = "unknown") -> None:
        super().__init__(message)
        self.sent = sent


class APITimeoutError(APIConnectionError, TimeoutError):
    """No answer arrived in time.

    Attributes:
        phase: what took too long: ``queue`` (the rate limit), ``pool`` (a free connection),
            ``connect``, ``idle`` (the next byte) or ``total`` (the whole call).
    """

    phase: TimeoutPhase

    def __init__(
        self, message: str, *, sent: Sent = "unknown", phase: TimeoutPhase = "total"
    ) -> None:
        super().__init__(message, sent=sent)
        self.phase = phase
