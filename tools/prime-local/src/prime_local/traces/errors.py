"""Errors of the traces service."""

from __future__ import annotations

from prime_local.errors import PlatformError


def traces_error(
    status: int, code: str | None, message: str, headers: dict[str, str] | None = None
) -> PlatformError:
    """An error that is answered as `{"error": {"code": code, "message": message}}`."""
    return PlatformError(status, message, headers, code)
