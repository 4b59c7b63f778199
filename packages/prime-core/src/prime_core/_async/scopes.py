"""What is made for a block of code, and ended with it."""

from __future__ import annotations

from types import TracebackType

from typing_extensions import Self

from prime_core.creation import owe_later
from prime_core.handover import when_received
from prime_core.reaper import Obligation
from prime_core.sync import across
from prime_core.termination import CancelOnTermination, ExitOnTermination
from prime_core.transport import AsyncTransport

__all__ = ["AsyncScope"]


class AsyncScope:
    """Something that is made for a block of code and ended with it; what it is, a subclass says.

    Args:
        transport: the client's.
        description: what is made, for the log.
    """

    def __init__(self, transport: AsyncTransport, description: str) -> None:
        self._transport = transport
        self._description = description
        self._owed: Obligation | None = None
        self._made = False  # whether there is something to end, as far as is known
        self._kept = False
        self._guard = CancelOnTermination()
        self._main_thread_guard = ExitOnTermination()  # for the sync twin, see `prime_core.sync`

    def keep(self) -> None:
        """Leaves it alive when the block ends: from now on the caller answers for it."""
        self._kept = True
        if self._owed is not None:
            self._owed.settle()

    async def _open(self, obligation: Obligation) -> None:
        """Creates it and waits until it can be used; notes when it is made."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a session can't be pickled: two would end the same thing")

    async def __aenter__(self) -> Self:
        if self._owed is not None:
            raise RuntimeError("a session is entered once; make another one")
        self._guard.enter()
        try:
            self._owed = owe_later(self._transport, self._description)
            await self._open(self._owed)
        except BaseException as error:
            await self._leave(error)
            raise
        when_received(_nothing, self._owed.call_in)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leave(error)

    async def _leave(self, error: BaseException | None) -> None:
        """Ends it on the reaper's loop, unless it is kept; waits while it may.

        What may have been made by a create without an answer is not waited for.
        """
        owed = self._owed
        try:
            if owed is not None and not self._kept:
                ending = owed.call_in()
                if self._made:
                    await across(ending)
        except Exception:  # logged by the reaper
            self._guard.leave()
            if error is None:
                raise
        except BaseException:
            self._guard.leave(finished=False)
            raise
        else:
            self._guard.leave(finished=owed is None or not owed.owed)


def _nothing() -> None:
    """The end of the block answers for what was made."""
