"""What is said of a batch beside its lines."""

from __future__ import annotations

import json
from collections.abc import Mapping

__all__ = ["upload_metadata"]


def upload_metadata(schema_version: int, context: Mapping[str, str] | None) -> bytes:
    """The part of an upload that says what the lines are.

    Raises:
        TypeError: the context is no mapping of strings, or the version no number.
        ValueError: text that UTF-8 can't hold.
    """
    if not isinstance(schema_version, int) or isinstance(schema_version, bool):
        raise TypeError(f"schema_version is a number, not {schema_version!r}")
    metadata: dict[str, object] = {"schema_version": schema_version}
    if context is not None and not isinstance(context, Mapping):
        raise TypeError(f"context is a mapping of strings, not {type(context).__name__}")
    for name, value in (context or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"context holds strings by name; {name!r} is a {type(value).__name__}")
    if context:
        metadata["context"] = dict(context)
    return json.dumps(metadata, ensure_ascii=False).encode()
