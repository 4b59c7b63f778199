"""What is said of an environment on the wire."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from prime_core.models import RequestModel

__all__ = [
    "ForkBody",
    "LookupBody",
    "NamedValueBody",
    "RegisterSourceBody",
    "RegisterWheelBody",
    "ResolveBody",
]


class ResolveBody(RequestModel):
    """The body that finds an environment by its name."""

    omits_null: ClassVar[bool] = True

    name: str
    visibility: Literal["PUBLIC", "PRIVATE"] | None = None
    owner_slug: str | None = None
    team_slug: str | None = None


class LookupBody(RequestModel):
    """The body that finds an environment by its id."""

    id: str


class ForkBody(RequestModel):
    """The body of a fork."""

    omits_null: ClassVar[bool] = True

    team_slug: str | None = None


class RegisterSourceBody(RequestModel):
    """The body that announces a source archive."""

    omits_null: ClassVar[bool] = True

    content_hash: str
    filename: str
    sha256: str
    semantic_version: str | None = None
    metadata: dict[str, Any]
    runtime_hint: str | None = None


class RegisterWheelBody(RegisterSourceBody):
    """The body that announces a wheel."""

    size: int


class NamedValueBody(RequestModel):
    """The body of a new or changed secret or variable."""

    omits_null: ClassVar[bool] = True

    name: str | None = None
    value: str | None = Field(default=None, repr=False)
    description: str | None = None
