"""Compressed uploads: the same bytes always give the same bytes."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Protocol

__all__ = ["compressed", "compressed_pieces", "load_compressor"]

# Of text, zlib's lowest level leaves a tenth more than its usual one, in half of the time. isal,
# from the extra `fast`, takes a quarter of that, and its level 2 leaves no more than the latter.
ZLIB_LEVEL = 1
ISAL_LEVEL = 2
GZIP = 31  # to zlib: with a gzip header, whose time is 0


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def compressed(data: bytes) -> bytes:
    """Bytes as gzip, without a time stamp; takes long, so call it in a thread."""
    return b"".join(compressed_pieces((data,)))


def compressed_pieces(pieces: Iterable[bytes]) -> list[bytes]:
    """As `compressed`, for bytes in pieces, which are not put together."""
    compressor = _maker()()
    out = [compressor.compress(piece) for piece in pieces]
    out.append(compressor.flush())
    return [piece for piece in out if piece]


def load_compressor() -> None:
    """Imports what compresses; a fork in the middle of an import in a thread hangs the child."""
    _maker()


@cache
def _maker() -> Callable[[], _Compressor]:
    try:
        isal = importlib.import_module("isal.isal_zlib")
    except ImportError:
        return lambda: zlib.compressobj(ZLIB_LEVEL, wbits=GZIP)
    make: Callable[..., _Compressor] = isal.compressobj
    return lambda: make(ISAL_LEVEL, wbits=GZIP)
