"""SSH sessions on volumes."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from prime_core.models import OpenEnum, RequestModel, ResponseModel, StrEnum, UtcDatetime

__all__ = ["VolumeSession", "VolumeSessionGateway", "VolumeSessionList", "VolumeSessionPhase"]


class VolumeSessionPhase(StrEnum):
    """How far a session is; newer phases are kept as plain strings."""

    CREATING = "creating"
    STAGING = "staging"
    READY = "ready"
    SYNCING = "syncing"
    FINALIZING = "finalizing"
    STOPPED = "stopped"
    FAILED = "failed"


class VolumeSessionGateway(ResponseModel):
    """A relay that reaches a session over TLS, 1.2 or newer, from outside of its cluster.

    Attributes:
        host: where it listens.
        port: likewise.
        cert_sha256: SHA-256 of its certificate in DER form, hexadecimal, to compare with. The
            server name to send is the first label of the session's host.
    """

    host: str
    port: int
    cert_sha256: str = Field(alias="certSha256")


class VolumeSession(ResponseModel):
    """A session. Follows the page "hosted-training/volumes".

    Attributes:
        id: names it.
        volume_name: the volume, which its shell has at ``/volume``.
        status: its state as a job's, such as RUNNING.
        read_only: whether nothing of it is saved.
        phase: how far it is; None from older servers.
        ssh_connection: ``user@host``, maybe with `` -p PORT``; None until it can be used.
        gateway: a relay to reach it by, where there is one.
        host_public_key: the shell's host key, to compare with.
        progress: how far the copy of the volume is, while it is staging.
        error_message: why it failed.
        created_at: when it was asked for.
    """

    id: str
    volume_name: str = Field(alias="volumeName")
    status: str
    read_only: bool = Field(alias="readOnly")
    phase: OpenEnum[VolumeSessionPhase] | None = None
    ssh_connection: str | None = Field(default=None, alias="sshConnection")
    gateway: VolumeSessionGateway | None = None
    host_public_key: str | None = Field(default=None, alias="hostPublicKey")
    progress: str | None = None
    error_message: str | None = Field(default=None, alias="errorMessage")
    created_at: UtcDatetime | None = Field(default=None, alias="createdAt")


class VolumeSessionList(ResponseModel):
    """Answer of `list_volume_sessions`."""

    sessions: list[VolumeSession]


class CreateVolumeSessionBody(RequestModel):
    """Body of `create_volume_session`."""

    always_sent: ClassVar[frozenset[str]] = frozenset({"read_only"})

    read_only: bool = Field(alias="readOnly")
    allow_writable: bool = Field(default=False, alias="allowWritable")
