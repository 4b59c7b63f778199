"""Public keys that pods and clusters let in."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from prime_compute.models.base import CamelModel
from prime_compute.models.listing import OffsetList
from prime_core.models import RequestModel, ResponseModel, UtcDatetime


class SshKey(CamelModel):
    """An SSH public key of the caller's. Follows the page "api-reference/ssh-keys/get-ssh-keys".

    Attributes:
        id: names it.
        user_id: whose it is.
        name: for people.
        public_key: the OpenSSH line.
        is_primary: whether it is the one that is used where one is enough.
        is_user_key: whether a person uploaded it.
        created_at: when it came.
        updated_at: time of the last change.
    """

    id: str
    user_id: str
    name: str
    public_key: str
    is_primary: bool
    is_user_key: bool
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None


class SshKeyList(OffsetList):
    """A part of the caller's SSH keys.

    Attributes:
        data: the keys.
    """

    data: list[SshKey]


class SshKeyChange(ResponseModel):
    """What a change of an SSH key came to.

    Attributes:
        message: for people.
        updated_fields: new values by wire name.
    """

    message: str
    updated_fields: dict[str, Any]


class UploadSshKeyRequest(RequestModel):
    """A public key to add: a name, and one OpenSSH line."""

    model_config = ConfigDict(alias_generator=to_camel)

    name: str = Field(min_length=1)
    public_key: str
