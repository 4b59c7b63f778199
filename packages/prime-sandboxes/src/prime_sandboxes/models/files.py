"""Results of file transfers."""

from __future__ import annotations

from prime_core.models import ResponseModel, UtcDatetime


class FileUploadResponse(ResponseModel):
    """A file that was uploaded. Follows the page "sandboxes/files".

    Attributes:
        success: whether it is in place.
        path: where it is, in the sandbox.
        size: its bytes.
        timestamp: when it was written.
    """

    success: bool
    path: str
    size: int
    timestamp: UtcDatetime


class ReadFileResponse(ResponseModel):
    """A file's text, or a window of it. Follows the page "sandboxes/files".

    Attributes:
        content: the text.
        size: bytes of the content in the sandbox.
        total_size: bytes of the whole file; None where the platform serves no windows.
        offset: where the window begins in the file, in bytes; None where the platform serves no
            windows, so that ``content`` is the whole file whatever was asked for.
        truncated: whether the file has more than ``content``; None likewise.
    """

    content: str
    size: int
    total_size: int | None = None
    offset: int | None = None
    truncated: bool | None = None
