"""The routes of the traces service."""

from __future__ import annotations

from prime_local.calls import Handler

HANDLERS: dict[str, Handler] = {}
