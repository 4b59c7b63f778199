"""JSON objects of the caller's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator

__all__ = ["Document"]


def _check(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuses NaN and infinities, which JSON has no words for: they would arrive as null."""
    try:
        json.dumps(document, allow_nan=False, default=str)
    except TypeError as error:  # which pydantic would let through as it is
        raise ValueError(str(error)) from None
    return document


Document: TypeAlias = Annotated[Mapping[str, Any], AfterValidator(_check)]
