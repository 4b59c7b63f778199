"""The traces service of one platform: its store, and what a test may switch."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract import Operation
from prime_local.traces.errors import traces_error
from prime_local.traces.store import TracesStore

READ, WRITE = "traces:read", "traces:write"
_RELEASE = "UPDATE traces SET indexed_at = ? WHERE indexed_at IS NULL"


@dataclass(frozen=True)
class TracesSwitches:
    """What a test can turn.

    Args:
        enabled: whether the account has the service on; otherwise every route answers 403
            `service_not_enabled`, and what is stored stays.
        scopes: what the API key may do, of `traces:read` and `traces:write`.
        storage_limit: bytes of documents that an owner may store; None for no limit.
        hold_index: keep the index of traces that are uploaded from now on pending; switching it
            off finishes those that are.

    Raises:
        ValueError: a value that no switch has.
    """

    enabled: bool = True
    scopes: tuple[str, ...] = (READ, WRITE)
    storage_limit: int | None = None
    hold_index: bool = False

    def __post_init__(self) -> None:
        for name in ("enabled", "hold_index"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false")
        if not isinstance(self.scopes, tuple) or not {*self.scopes} <= {READ, WRITE}:
            raise ValueError(f"scopes must be a list of {READ} and {WRITE}")
        limit = self.storage_limit
        if limit is not None and (type(limit) is not int or limit < 0):
            raise ValueError("storage_limit must be a number of bytes, or null")

    def changed(self, changes: Mapping[str, Any]) -> TracesSwitches:
        """Return these switches with changes.

        Raises:
            ValueError: there is no such switch, or it has no such value.
        """
        known = [each.name for each in fields(self)]
        for name in changes:
            if name not in known:
                raise ValueError(f"{name!r} is none of {', '.join(known)}")
        scopes = changes.get("scopes", self.scopes)
        if isinstance(scopes, (list, tuple)) and all(isinstance(each, str) for each in scopes):
            scopes = tuple(scopes)
        return replace(self, **{**changes, "scopes": scopes})


class TracesService:
    """Traces, episodes and runs, kept in a store of their own.

    Args:
        path: the store's file.
        clock: the platform's clock.
        user_id: who uploads, and owns what names no team.
        index_delay: seconds on the platform clock from an upload to its index.
    """

    def __init__(self, path: Path, clock: PlatformClock, user_id: str, index_delay: float) -> None:
        self.folder = path.parent
        self.store = TracesStore(path)
        self.user_id = user_id
        self.switches = TracesSwitches()
        self._clock = clock
        self._index_delay = index_delay

    def now(self) -> float:
        """Return the platform's date in seconds since 1970."""
        return self._clock.date().timestamp()

    def indexed_at(self, now: float) -> float | None:
        """Return when the index of what is uploaded now is ready; None while it is held back."""
        return None if self.switches.hold_index else now + self._index_delay

    def owner(self, team_id: str | None) -> str:
        """Return whose traces a request means: the team's that its header names, or the user's."""
        return team_id or self.user_id

    def admit(self, operation: Operation) -> None:
        """Let a request with a valid key in.

        Raises:
            PlatformError: 403 `service_not_enabled` or `forbidden`.
        """
        if not self.switches.enabled:
            raise traces_error(403, "service_not_enabled", "traces are off for this account")
        scope = operation.spec["x-scope"]
        if scope not in self.switches.scopes:
            raise traces_error(403, "forbidden", f"the key lacks {scope}")

    async def change(self, changes: Mapping[str, Any]) -> None:
        """Turn switches; see `TracesSwitches`.

        Raises:
            ValueError: there is no such switch, or it has no such value.
        """
        self.switches = self.switches.changed(changes)
        if not self.switches.hold_index:
            await self.store.write(partial(_release, now=self.now()))

    async def clear(self) -> None:
        """Forget everything, and turn the switches back."""
        self.switches = TracesSwitches()
        await self.store.clear()


def _release(connection: sqlite3.Connection, now: float) -> None:
    connection.execute(_RELEASE, (now,))
