"""Request bodies that are read while they are sent, and never held whole."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable

__all__ = ["Upload"]


class Upload:
    """A request body made of chunks.

    Args:
        open: makes an iterator over the chunks, from the first on. For a body that can't rewind
            it is called once.
        size: bytes in all; None sends the body in chunked encoding.
        rewindable: whether ``open`` can be called again, so that the request may be repeated.

    Attributes:
        failure: what reading the source raised, if that is why a request broke off.
    """

    def __init__(
        self, open: Callable[[], AsyncIterator[bytes]], *, size: int | None, rewindable: bool
    ) -> None:
        self._open = open
        self.size = size
        self.rewindable = rewindable
        self.failure: Exception | None = None
        self._begun = False

    @property
    def spent(self) -> bool:
        """Whether it has begun to be sent and can't be sent again."""
        return self.failure is not None or (self._begun and not self.rewindable)

    async def chunks(
        self, sending: Callable[[], None], reading: Callable[[], None]
    ) -> AsyncGenerator[bytes, None]:
        """Yields the chunks of one attempt.

        Args:
            sending: called before a chunk is handed to the network.
            reading: called before the source is asked for more: its slowness is not the
                network's.
        """
        self._begun = True
        reading()
        source = self._open()
        try:
            async for chunk in source:
                sending()
                yield chunk
                reading()
            sending()  # and then waits for the answer
        except Exception as error:
            self.failure = error
            raise
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
