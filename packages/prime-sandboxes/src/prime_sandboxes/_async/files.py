"""Moving files in and out of sandboxes."""

from __future__ import annotations

from prime_sandboxes import files
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes.arguments import check_id, check_path, check_seconds, check_window
from prime_sandboxes.models import ReadFileResponse

__all__ = ["AsyncSandboxFiles"]


class AsyncSandboxFiles(AsyncSandboxResource):
    """The part of the client that moves files."""

    async def read_file(
        self,
        sandbox_id: str,
        file_path: str,
        timeout: float | None = None,
        offset: int | None = None,
        length: int | None = None,
    ) -> ReadFileResponse:
        """Reads a text file of at most 10 MiB.

        Follows the documented page "sandboxes/files".

        Args:
            sandbox_id: a running sandbox.
            file_path: the file, a path in the sandbox.
            timeout: seconds for the whole call, above 0; 30 by default.
            offset: where to begin, in bytes; negative counts from the end. Platforms that serve
                no windows send the whole file: then the answer's ``offset`` is None.
            length: bytes to read, at least 0; all by default.

        Returns:
            The text and its size. Bytes that are not UTF-8 are replaced.

        Raises:
            SandboxFileNotFoundError: there is no such file.
            SandboxFileTooLargeError: it is above 10 MiB: use `download_file`.
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, length)
        limit = files.READ_TIMEOUT if timeout is None else check_seconds("timeout", timeout)
        call = self._file_call(sandbox_id, file_path, limit)
        return await files.read_file(self._gateway, call, offset, length)

    def _file_call(self, sandbox_id: str, file_path: str, timeout: float | None) -> files.FileCall:
        if timeout is not None:
            check_seconds("timeout", timeout)
        return files.FileCall(
            check_id(sandbox_id), check_path(file_path), self._error_context, timeout
        )
