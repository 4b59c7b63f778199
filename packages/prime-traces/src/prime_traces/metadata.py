"""What is said of a batch beside its lines."""

from __future__ import annotations

import json
from collections.abc import Mapping

from prime_traces.record_checks import HALF, is_encodable

__all__ = ["upload_metadata"]

SCHEMA_VERSION = 1
MAX_METADATA_BYTES = 64 * 1024


def upload_metadata(schema_version: int, context: Mapping[str, str] | None) -> bytes:
    """The part of an upload that says what the lines are.

    Raises:
        TypeError: the context is no mapping of strings, or the version no number.
        ValueError: the service does not take it: a context that is too large or has text that
            UTF-8 can't hold, or another version than 1.
    """
    if not isinstance(schema_version, int) or isinstance(schema_version, bool):
        raise TypeError(f"schema_version is a number, not {schema_version!r}")
    if schema_version != SCHEMA_VERSION:
        raise ValueError(f"schema_version is {SCHEMA_VERSION}, the only one, not {schema_version}")
    metadata: dict[str, object] = {"schema_version": schema_version}
    if context is not None and not isinstance(context, Mapping):
        raise TypeError(f"context is a mapping of strings, not {type(context).__name__}")
    for name, value in (context or {}).items():
        if not isinstance(name, str):
            raise TypeError(f"context's names are strings; {name!r} is a {type(name).__name__}")
        if not isinstance(value, str):
            raise TypeError(f"context holds strings; {name!r} is a {type(value).__name__}")
        if not (is_encodable(name) and is_encodable(value)):
            raise ValueError(f"context holds {HALF}, at {name!r}")
    if context:
        metadata["context"] = dict(context)
    encoded = json.dumps(metadata, ensure_ascii=False).encode()
    if len(encoded) > MAX_METADATA_BYTES:
        raise ValueError(
            f"context has {len(encoded):,} bytes, more than the {MAX_METADATA_BYTES:,} that the "
            "service takes; put large fields into the records"
        )
    return encoded
