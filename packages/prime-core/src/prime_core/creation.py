"""Creates of what costs money: never made twice, never lost track of."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from prime_core.errors import APIError
from prime_core.operations import Operation
from prime_core.reaper import Obligation, reaper
from prime_core.sync import when_received
from prime_core.transport import AsyncTransport

__all__ = ["create_once"]

M = TypeVar("M", bound=BaseModel)


async def create_once(
    transport: AsyncTransport,
    operation: Operation,
    response: type[M],
    *,
    body: bytes,
    key: str | None,
    team: str | None,
    description: str,
    discard: Callable[[M], Coroutine[Any, Any, None]],
    obligation: Obligation | None = None,
) -> M:
    """Sends a keyed create, and answers for its result until the caller has it.

    One idempotency key serves all attempts. When the caller is cancelled, or the program
    ends, while the request may have left, the reaper sends it again with the same key,
    which tells what was made, and discards that. So it does after a failure that leaves
    the outcome open, unless the key is the caller's, who can send it again.

    Args:
        transport: the client's.
        operation: a ``keyed`` row.
        response: model of what is made.
        body: the request's JSON object, without key and team.
        key: the caller's idempotency key; a fresh one is made for None.
        team: the caller's team for this call.
        description: what is made, for the log.
        discard: deletes what was made; runs on the reaper's loop.
        obligation: the caller's, kept on success: from then on its undoing discards what
            was made. Without one nothing is owed once the caller has the result.

    Raises:
        APIError: nothing was made, or the outcome is open as said above.
    """
    fixed_key = secrets.token_hex(16) if key is None else key
    call = transport.prepare_create(operation, response, body=body, key=fixed_key, team=team)
    # Not closures: each variable of one costs an object, and the garbage collector's time.
    undo = partial(_undo, transport, operation, response, body, fixed_key, team, discard)
    owed = obligation or reaper.owe(transport, description, undo)
    owed.undo = undo
    try:
        made = await transport.perform(call)
    except BaseException as error:
        # An error leaves the caller in charge when the key is the caller's: the same request
        # sent again finds what was made. A cancellation means that nobody wants it.
        callers_turn = isinstance(error, Exception) and key is not None
        if call.unresolved and not callers_turn:
            owed.call_in()
        else:
            owed.settle()
        raise
    owed.undo = partial(discard, made)
    if obligation is None:
        when_received(owed.settle, owed.call_in)
    return made


async def _undo(
    transport: AsyncTransport,
    operation: Operation,
    response: type[M],
    body: bytes,
    key: str,
    team: str | None,
    discard: Callable[[M], Coroutine[Any, Any, None]],
) -> None:
    """Sends a create again, to learn what it made, and discards that."""
    again = transport.prepare_create(operation, response, body=body, key=key, team=team)
    try:
        made = await transport.perform(again)
    except APIError as error:
        if again.unresolved or error.status_code is None:
            raise
        return  # refused for good: nothing was made
    await discard(made)
