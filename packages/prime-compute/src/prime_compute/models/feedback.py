"""Words to the people behind the platform."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prime_core.models import RequestModel


class FeedbackRequest(RequestModel):
    """What to say, and about what."""

    message: str = Field(min_length=1, max_length=2048)
    category: Literal["bug", "feature", "general"]
    cli_version: str = Field(min_length=1, max_length=64)
    run_id: str | None = Field(default=None, max_length=128)
