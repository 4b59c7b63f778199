"""What lists by offset have in common."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from prime_core.models import ResponseModel


class OffsetList(ResponseModel):
    """A part of a list, named by how many items it skips.

    Attributes:
        total_count: how many items the whole list holds.
        offset: how many were skipped.
        limit: most items of this part.
    """

    total_count: int = Field(0, validation_alias=AliasChoices("total_count", "totalCount"))
    offset: int = 0
    limit: int = 0
