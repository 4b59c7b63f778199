"""SSH sessions."""

from __future__ import annotations

import base64
import binascii
from typing import ClassVar

from pydantic import Field, field_validator

from prime_core.models import RequestModel, ResponseModel, UtcDatetime

MAX_SSH_TTL_SECONDS = 3600


class CreateSSHSessionRequest(RequestModel):
    """Asks for an SSH session.

    Attributes:
        public_key: an OpenSSH public key, one line such as ``ssh-ed25519 AAAA... comment``.
        ttl_seconds: how long the session lives, 1 to 3,600 seconds; the platform's default,
            900, without it.
    """

    omits_null: ClassVar[bool] = True

    public_key: str
    ttl_seconds: int | None = Field(default=None, strict=True, ge=1, le=MAX_SSH_TTL_SECONDS)

    @field_validator("public_key")
    @classmethod
    def _check_key(cls, value: str) -> str:
        # The text is never shown: in its place somebody may have passed the private key.
        if "PRIVATE KEY" in value:
            raise ValueError(
                "this is a private key; pass the public one, the line of the .pub file"
            )
        line = value.strip()
        words = line.split(None, 2)
        if not line.isprintable() or len(words) < 2:
            raise ValueError("a public key is one line: its type, its data in base64, a comment")
        try:
            data = base64.b64decode(words[1], validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("the data of the public key is not base64") from None
        # The data begins with the type again, behind its length.
        if data[4 : 4 + int.from_bytes(data[:4], "big")] != words[0].encode():
            raise ValueError("the type of the public key and its data don't belong together")
        return line


class SSHSession(ResponseModel):
    """An SSH session. Follows the page "sandboxes/commands", "SSH".

    To use it, connect to `host` and `port`, send the line ``PRIME-SSH-SESSION <session_id>``
    with a line feed, then speak SSH as the user `session_id` with the session's private key.

    Attributes:
        session_id: names the session; also the SSH user name.
        sandbox_id: the sandbox.
        host: where to connect to.
        port: where to connect to.
        expires_at: when the session ends.
        ttl_seconds: how long it lives, from its creation.
    """

    session_id: str
    sandbox_id: str
    host: str
    port: int
    expires_at: UtcDatetime
    ttl_seconds: int
