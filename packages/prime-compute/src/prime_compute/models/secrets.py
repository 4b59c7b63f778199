"""Secrets that environments are given; their values are written, never read."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from prime_compute.models.base import CamelModel
from prime_compute.models.listing import OffsetList
from prime_core.models import RequestModel, ResponseModel, SentSecret, UtcDatetime


class StoredSecret(CamelModel):
    """What is known of a secret: all but its value.

    Attributes:
        id: names it.
        name: the environment variable, or the file's.
        description: for people.
        is_file: whether its value is the content of a file.
        user_id: who made it.
        team_id: whose it is; None is personal.
        created_at: when it was made.
        updated_at: time of the last change.
    """

    id: str
    name: str
    description: str | None = None
    is_file: bool = False
    user_id: str | None = None
    team_id: str | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime


class StoredSecretList(OffsetList):
    """A part of a person's or a team's secrets.

    Attributes:
        data: the secrets.
    """

    data: list[StoredSecret]


class StoredSecretAnswer(ResponseModel):
    """The answer that holds a secret's description."""

    data: StoredSecret


Name: TypeAlias = Annotated[str, Field(max_length=255, pattern=r"^[A-Z][A-Z0-9_]*$")]
Description: TypeAlias = Annotated[str, Field(max_length=500)]


class SecretRequest(RequestModel):
    """What to store, or what of it to change: only what is set is sent."""

    model_config = ConfigDict(alias_generator=to_camel)

    name: Name | None = None
    value: SentSecret | None = None
    description: Description | None = None
    is_file: bool = False
