"""What a handler raises to end a request with a documented error."""

from __future__ import annotations

from collections.abc import Sequence

from prime_local.contract import Problem
from prime_local.contract.document import JsonObject


class PlatformError(Exception):
    """Ends a request with `status`, and a body in the form of the service that was called.

    That is `{"detail": detail}` for the control plane.

    Args:
        status: the HTTP status to answer.
        detail: text for people, or the list of problems of a 422.
        headers: further response headers.
        code: for programs, where the service has codes.
    """

    def __init__(
        self,
        status: int,
        detail: str | list[JsonObject],
        headers: dict[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(f"HTTP {status}: {detail}")
        self.status = status
        self.detail = detail
        self.headers = headers or {}
        self.code = code


def invalid(problems: Sequence[Problem]) -> PlatformError:
    """The 422 that lists every problem of a request."""
    return PlatformError(422, [problem.to_wire() for problem in problems])


def not_simulated(operation_id: str) -> PlatformError:
    """The 501 of an operation that this platform does not have yet."""
    return PlatformError(501, f"{operation_id} is not simulated yet by prime-local")


class ContractViolation(AssertionError):
    """Answers of the platform that broke the contract; raised when its owner leaves it."""

    def __init__(self, violations: Sequence[str]) -> None:
        super().__init__("prime-local broke the contract:\n" + "\n".join(violations))
        self.violations = tuple(violations)
