"""Live processes, as they are listed."""

from __future__ import annotations

from prime_core.models import ResponseModel

__all__ = ["ProcessInfo"]


class ProcessInfo(ResponseModel):
    """A command that runs in a sandbox.

    Attributes:
        pid: its process id in the sandbox.
        session_uuid: what `attach_process` takes; None for one that was started without.
        command: its words; those of a bash command line are ``/bin/bash``, ``-c`` and the line.
        env: the further environment variables that it was given.
        working_dir: where it was told to run, if it was told.
        user: the account that it was told to run as, if it was told.
    """

    pid: int
    session_uuid: str | None = None
    command: list[str]
    env: dict[str, str]
    working_dir: str | None = None
    user: str | None = None
