"""Requests that say by a uuid that a repeat must do nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from prime_local.sandboxes.commands import CommandFault
from prime_local.tasks import TaskSet

_MOST_REMEMBERED = 4096


@dataclass(frozen=True)
class _Delivery:
    request: bytes
    outcome: asyncio.Future[CommandFault | None]


class Deliveries:
    """Carries each request with a uuid out once; a repeat waits for the same outcome.

    The newest 4,096 are remembered, and no failed one.

    Args:
        tasks: runs them, so that they go on when their caller leaves.
    """

    def __init__(self, tasks: TaskSet) -> None:
        self._tasks = tasks
        self._known: dict[str, _Delivery] = {}

    async def once(
        self, key: str | None, request: bytes, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Carry a request out, unless that was done or is under way.

        Args:
            key: its uuid; without one it is carried out each time.
            request: all that it says; a repeat has to say the same.
            work: carries it out; what it raises is raised to every caller.

        Raises:
            CommandFault: `failed_precondition` for a repeat that differs.
        """
        known = None if key is None else self._known.get(key)
        if known is None:
            outcome = self._tasks.start(_outcome(work()))
            known = _Delivery(request, outcome)
            if key is not None:
                self._remember(key, known)
        elif known.request != request:
            raise CommandFault("failed_precondition", "another request had this uuid")
        fault = await asyncio.shield(known.outcome)
        if fault is not None:
            if key is not None and self._known.get(key) is known:
                del self._known[key]
            raise fault

    def _remember(self, key: str, delivery: _Delivery) -> None:
        self._known[key] = delivery
        while len(self._known) > _MOST_REMEMBERED:
            del self._known[next(iter(self._known))]


async def _outcome(work: Coroutine[Any, Any, None]) -> CommandFault | None:
    try:
        await work
    except CommandFault as fault:
        return fault
    return None
