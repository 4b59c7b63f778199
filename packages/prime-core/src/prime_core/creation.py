"""Creates of what costs money: never made twice, never lost track of."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from prime_core.calls import Call
from prime_core.deadlines import timeout_at
from prime_core.decoding import model_reader
from prime_core.errors import APIError, PrimeError
from prime_core.failures import advise
from prime_core.handover import when_received
from prime_core.operations import Operation
from prime_core.reaper import Obligation, reaper
from prime_core.sync import across, loop_thread
from prime_core.transport import AsyncTransport

__all__ = ["create_once", "create_unkeyed", "owe_later"]

M = TypeVar("M", bound=BaseModel)

# Pauses before each look for what a create without an answer has made, while its caller waits.
FIRST_LOOKS = (0.2, 1.0, 2.0, 4.0)
# Most seconds for all looks that a caller waits for.
LOOK_PATIENCE = 15.0
# For how long the reaper goes on looking, and its pause between two looks.
LATE_PATIENCE = 60.0
LATE_PAUSE = 2.0
# For how long it looks while a client's or the program's end waits for it, and so does a user.
WAITED_PATIENCE = 3.0

logger = logging.getLogger("prime_core")


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
        RuntimeError: the obligation was undone meanwhile; nothing was sent.
    """
    fixed_key = secrets.token_hex(16) if key is None else key
    call = transport.prepare_create(operation, response, body=body, key=fixed_key, team=team)
    # Not closures: each variable of one costs an object, and the garbage collector's time.
    undo = partial(_undo, transport, operation, response, body, fixed_key, team, discard)
    owed = _still_owed(obligation) or reaper.owe(transport, description, undo)
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
    owed.description = _named(description, made)
    owed.undo = partial(discard, made)
    if obligation is None:
        when_received(owed.settle, owed.call_in)
    return made


def _named(description: str, made: BaseModel) -> str:
    """What the log calls something whose making is known: what was asked for, and its id."""
    made_id = _id_of(made)
    return description if made_id is None else f"{description} (id {made_id})"


def _id_of(made: BaseModel) -> str | None:
    """What tells one thing from others of its kind, where that is a field of a usual name."""
    fields = type(made).model_fields
    found: str | None = next(
        (getattr(made, name) for name in ("id", "run_id") if name in fields), None
    )
    return found


def _look_limit() -> AbstractAsyncContextManager[object]:
    """The time that looking for what was made may take."""
    limit: AbstractAsyncContextManager[object]
    limit = timeout_at(asyncio.get_running_loop().time() + LOOK_PATIENCE)
    return limit


async def create_unkeyed(
    transport: AsyncTransport,
    operation: Operation,
    response: type[M],
    *,
    path: Mapping[str, str] | None = None,
    body: bytes | None = None,
    team: str | None = None,
    description: str,
    discard: Callable[[M], Coroutine[Any, Any, None]],
    find: Callable[[], Coroutine[Any, Any, Sequence[M]]] | None = None,
    obligation: Obligation | None = None,
    timeout: float | None = None,
    marked: bool = True,
) -> M:
    """Sends a create that has no key, and answers for its result until the caller has it.

    Nothing but the answer tells what was made. So the request runs on the loop thread, where
    a cancellation of the caller does not reach it: its answer is awaited there, and what it
    names is discarded.

    After a failure that leaves the outcome open, what was made is looked for with ``find``. What
    is found in a few seconds is the result. Else the failure is raised, and the reaper goes on
    looking for `LATE_PATIENCE` seconds, to discard what appears. Without ``find`` such a failure
    is the caller's to look into; so it is without a mark, where what is found may be somebody
    else's.

    Args:
        transport: the client's.
        operation: an ``unsafe`` row.
        response: model of what is made.
        path: values of the path's parameters.
        body: the request's JSON object, without the team.
        team: the caller's team for this call.
        description: what is made, for the log.
        discard: deletes what was made; runs on the reaper's loop.
        find: lists what this create has made, and nothing else, by a mark that it carries; runs
            on any loop. Of several, which only a network that repeats requests can cause, the
            first is kept and the others are discarded.
        obligation: as for `create_once`.
        timeout: seconds for the request, over the client's.
        marked: whether what ``find`` lists has a mark that only this create can have made. Without,
            as of a volume that its name alone tells, it lists what was not there before. That is
            never discarded, whoever is cancelled: another program may have made it meanwhile. The
            log says then that it may be there.

    Raises:
        APIError: nothing was made, or the outcome is open: the error's ``sent`` says so.
        RuntimeError: the obligation was undone meanwhile; nothing was sent.
    """
    read = model_reader(response)
    call = transport.prepare(operation, read, path, body=body, team=team, timeout=timeout)
    owed = _still_owed(obligation) or owe_later(transport, description)
    owed.description = f"{description}, if it was made,"
    sending = _Sending(transport, call, description, discard, find, marked=marked)
    owed.undo = partial(sending.undo, owed)
    try:
        made = await sending.result()
    except Exception as error:
        hunted = find is not None and marked
        if call.unresolved and isinstance(error, APIError):
            fate = "is looked for, and deleted, for a minute" if hunted else "may be there"
            advise(error, f"{description} {fate}")
        if call.unresolved and hunted:
            owed.call_in()
        else:
            owed.settle()
        raise
    except BaseException:
        owed.call_in()
        raise
    owed.description = _named(description, made)
    owed.undo = _leave if sending.guessed else partial(discard, made)
    if obligation is None:
        when_received(owed.settle, owed.call_in)
    return made


def _still_owed(obligation: Obligation | None) -> Obligation | None:
    """A caller's obligation, before something is made that it is to answer for.

    Raises:
        RuntimeError: it was undone meanwhile, by the interpreter's exit or a cancellation.
    """
    if obligation is not None and not obligation.owed:
        raise RuntimeError(f"{obligation.description} is not made any more: it was undone")
    return obligation


async def _leave() -> None:
    """Leaves what another program may have made in the same moment.

    Raises:
        PrimeError: always.
    """
    raise PrimeError("Its answer was lost, so that it may be somebody else's: look who needs it")


def owe_later(transport: AsyncTransport, description: str) -> Obligation:
    """An obligation for a create that is still to come; until then nothing is to be undone."""
    return reaper.owe(transport, description, _nothing)


async def _nothing() -> None:
    """Nothing was asked for yet."""


class _Sending(Generic[M]):
    """A create under way on the loop thread.

    Args:
        transport: the client's.
        call: the create.
        description: what it makes, for the log.
        discard: deletes what it made.
        find: lists what it made.
        marked: whether that is surely what it made.

    Attributes:
        answer: what it made, or its failure.
        guessed: whether the result was found without a mark.
    """

    def __init__(
        self,
        transport: AsyncTransport,
        call: Call[M],
        description: str,
        discard: Callable[[M], Coroutine[Any, Any, None]],
        find: Callable[[], Coroutine[Any, Any, Sequence[M]]] | None,
        *,
        marked: bool,
    ) -> None:
        self._transport = transport
        self._call = call
        self._marked = marked
        self._description = description
        self._discard = discard
        self._find = find
        self._task: asyncio.Task[Any] | None = None
        self.guessed = False
        self._doubted = False  # whether an attempt may have made something unseen
        call.recover = self._recover
        self.answer = loop_thread().submit(self._send())

    async def _send(self) -> M:
        self._task = asyncio.current_task()
        return await self._transport.perform(self._call)

    async def _recover(self) -> M | None:
        """What an attempt has made that was answered as if it had not.

        Of the refusals only a 503 may be the word of a gateway that has passed the create on.
        """
        if self._find is None or not self._call.unresolved:
            return None
        async with _look_limit():
            found = await self._look(self._find)
        self._doubted = self._doubted or found is None
        return found

    async def result(self) -> M:
        """What was made: as the answer says, or as it is found when that is lost."""
        try:
            made = await across(self.answer)
        except APIError:
            if self._find is None or not self._call.unresolved:
                raise
            with contextlib.suppress(asyncio.TimeoutError):
                async with _look_limit():
                    for pause in FIRST_LOOKS:
                        await asyncio.sleep(pause)
                        with contextlib.suppress(APIError):  # the first failure says more
                            if (found := await self._look(self._find)) is not None:
                                return found
            raise
        if self._doubted:
            await self._discard_others(made)
        return made

    async def _look(self, find: Callable[[], Coroutine[Any, Any, Sequence[M]]]) -> M | None:
        """What was made, if it is there by now and can be told from what others make."""
        found = await find()
        if not found or (len(found) > 1 and not self._marked):
            return None
        await self._discard_all(found[1:])
        self.guessed = not self._marked
        return found[0]

    async def undo(self, owed: Obligation) -> None:
        """Waits for the answer and discards what it names; runs on the loop thread."""
        if self._task is not None and not self._call.in_flight:
            # It waits for its turn, and need not be sent; nothing happens when it is done.
            self._task.cancel()
        try:
            made = await across(self.answer)
        except (concurrent.futures.CancelledError, APIError) as error:
            if not self._call.unresolved:
                return
            if self._find is None or not self._marked:
                known = self._call.last.error if self._call.last is not None else error
                raise PrimeError(f"Whether it was made is not known: {known}") from error
            await self._discard_late(owed, self._find)
            return
        owed.description = _named(self._description, made)
        if self.guessed:
            await _leave()
        await self._discard(made)
        if self._doubted and self._marked and self._find is not None:
            await self._discard_all(await self._find())

    async def _discard_others(self, made: M) -> None:
        """Has discarded what an attempt before the one that was answered has made all the same.

        Nobody has got the result yet, so that nobody can have made another of the same mark.
        """
        kept = _id_of(made)
        if self._find is None or not self._marked or kept is None:
            return
        try:
            async with _look_limit():
                found = await self._find()
        except (APIError, asyncio.TimeoutError) as error:
            logger.warning(
                "%s was asked for more than once; whether there is another of its mark could not "
                "be looked up: %s",
                _named(self._description, made),
                type(error).__name__,
            )
            return
        for each in found:
            if _id_of(each) != kept:
                other = _named(self._description, each)
                reaper.owe(self._transport, other, partial(self._discard, each)).call_in()

    async def _discard_late(
        self,
        owed: Obligation,
        find: Callable[[], Coroutine[Any, Any, Sequence[M]]],
        began: float | None = None,
    ) -> None:
        """Looks for what an unanswered create may have made, and discards it.

        The client's end waits for the first seconds of that. Then it goes on as an obligation
        that is nobody's, which the program's end cuts short.
        """
        began = time.monotonic() if began is None else began
        failure: APIError | None = None
        while True:
            try:
                found, failure = await find(), None
            except APIError as error:
                found, failure = (), error
            if found:
                owed.description = _named(self._description, found[0])
                await self._discard_all(found)
                return
            hurried = reaper.exiting or owed.owner is not None
            patience = min(WAITED_PATIENCE, LATE_PATIENCE) if hurried else LATE_PATIENCE
            left = began + patience - time.monotonic()
            if left <= 0:
                break
            await asyncio.sleep(min(LATE_PAUSE, left))
        if patience < LATE_PATIENCE and not reaper.exiting:
            later = reaper.owe(None, owed.description, _nothing)
            later.undo = partial(self._discard_late, later, find, began)
            later.call_in()
        elif failure is not None:
            raise PrimeError(f"Whether it was made is not known: {failure}") from failure
        elif patience < LATE_PATIENCE:
            logger.warning(
                "%s had not appeared when the program ended; its name tells it, should it yet.",
                owed.description,
            )

    async def _discard_all(self, found: Sequence[M]) -> None:
        for made in found:
            await self._discard(made)


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
