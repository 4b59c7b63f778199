"""Results of commands."""

from __future__ import annotations

from prime_core.models import ResponseModel


class CommandResponse(ResponseModel):
    """What a finished command left. Follows the page "sandboxes/commands".

    Attributes:
        stdout: standard output as text; bytes that are not UTF-8 read as U+FFFD.
        stderr: standard error, likewise.
        exit_code: exit status of the command; 0 is success.
    """

    stdout: str
    stderr: str
    exit_code: int
