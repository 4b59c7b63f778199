"""Cursors: a position in a list, good for the very query that it came from."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from typing import Any

_CHECK_BYTES = 12

Position = list[Any]


def make_cursor(scope: Sequence[object], position: Sequence[object]) -> str:
    """Return the opaque text for a position.

    Args:
        scope: all that the cursor is bound to, as JSON values: route, owner, filters.
        position: where the next page goes on, as JSON values.
    """
    text = _dump(position)
    return base64.urlsafe_b64encode(_check(scope, text) + text).decode().rstrip("=")


def read_cursor(scope: Sequence[object], cursor: str) -> Position:
    """Return the position that `make_cursor` was given.

    Raises:
        ValueError: no cursor of ours, or one of another scope.
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not a cursor") from None
    check, text = data[:_CHECK_BYTES], data[_CHECK_BYTES:]
    if check != _check(scope, text):
        raise ValueError("the cursor does not match this query")
    position: Position = json.loads(text)
    return position


def _check(scope: Sequence[object], text: bytes) -> bytes:
    # A digest, so that a position which somebody made up does not reach SQL.
    return hashlib.sha256(_dump(scope) + b"\n" + text).digest()[:_CHECK_BYTES]


def _dump(value: Sequence[object]) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
