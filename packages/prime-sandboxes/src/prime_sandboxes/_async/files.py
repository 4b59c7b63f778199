"""Moving files in and out of sandboxes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from prime_core.archives import UnpackedFolder, folder_upload
from prime_core.contents import Content, upload_of
from prime_core.local_files import PartialFile
from prime_core.progress import transfer_progress
from prime_core.uploads import Progress
from prime_sandboxes import directories, files
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes.arguments import check_id, check_path, check_seconds, check_window
from prime_sandboxes.models import FileUploadResponse, ReadFileResponse

__all__ = ["AsyncSandboxFiles"]


class AsyncSandboxFiles(AsyncSandboxResource):
    """The part of the client that moves files."""

    async def upload_file(
        self,
        sandbox_id: str,
        file_path: str,
        local_file_path: Content,
        timeout: float | None = None,
        *,
        progress: bool | Progress = False,
    ) -> FileUploadResponse:
        """Uploads a file; it replaces what is there, and missing folders are made.

        It is read while it is sent, so that files of any size can be uploaded. A path, bytes, or
        an open file that can seek is sent again when the connection breaks; anything else is
        sent once.

        Follows the documented page "sandboxes/files".

        Args:
            sandbox_id: a running sandbox.
            file_path: where it goes, a path in the sandbox that names the file.
            local_file_path: the path of a local file; or bytes, an open binary file, which is
                read from where it stands and put back there, or an iterable of bytes, async or not.
            timeout: seconds for the whole transfer, above 0; by default it takes as long as it
                moves, and is given up when it stands still for 60 s.
            progress: called with the bytes sent and the bytes in all, or None for an unknown
                size, on the event loop; or True for a bar, if rich is installed and the output
                is a terminal or a notebook.

        Returns:
            Where the file is, its size, and when it was written.

        Raises:
            FileNotFoundError: there is no such local file; nothing was sent.
            UploadTimeoutError: it stood still, or reached ``timeout``.
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure, such as no space left in the sandbox.
        """
        call = self._file_call(sandbox_id, file_path, timeout)
        source = local_file_path if isinstance(local_file_path, (str, os.PathLike)) else file_path
        filename = os.path.basename(os.fspath(source))
        return await self._upload(call, local_file_path, filename, progress)

    async def upload_bytes(
        self,
        sandbox_id: str,
        file_path: str,
        file_bytes: bytes,
        filename: str,
        timeout: float | None = None,
        *,
        progress: bool | Progress = False,
    ) -> FileUploadResponse:
        """Uploads bytes as a file, as `upload_file` does.

        Follows the documented page "sandboxes/files".

        Args:
            sandbox_id: a running sandbox.
            file_path: where it goes, a path in the sandbox that names the file.
            file_bytes: its content.
            filename: what the request calls the file; ``file_path`` alone says where it goes.
            timeout: as for `upload_file`.
            progress: as for `upload_file`.

        Returns:
            Where the file is, its size, and when it was written.

        Raises:
            UploadTimeoutError: it stood still, or reached ``timeout``.
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure, such as no space left in the sandbox.
        """
        call = self._file_call(sandbox_id, file_path, timeout)
        if not isinstance(file_bytes, (bytes, bytearray, memoryview)):
            raise TypeError(f"file_bytes is bytes, not {type(file_bytes).__name__}")
        if not isinstance(filename, str) or not filename:
            raise ValueError(f"filename is a name, not {filename!r}")
        return await self._upload(call, file_bytes, filename, progress)

    async def _upload(
        self, call: files.FileCall, content: Content, filename: str, progress: bool | Progress
    ) -> FileUploadResponse:
        body = await upload_of(content)
        with transfer_progress(progress, filename) as told:
            if told is not None:
                body = body.watched(told)
            return await files.upload(self._gateway, call, body, filename)

    async def download_file(
        self,
        sandbox_id: str,
        file_path: str,
        local_file_path: str | os.PathLike[str],
        timeout: float | None = None,
        *,
        progress: bool | Progress = False,
    ) -> None:
        """Downloads a file of any size; it takes the local file's place once it is whole.

        Until then it is written beside it, as a hidden file, which is removed when the download
        fails or is cancelled. Missing local folders are made. A transfer that breaks off is
        begun anew.

        Follows the documented page "sandboxes/files".

        Args:
            sandbox_id: a running sandbox.
            file_path: the file, a path in the sandbox.
            local_file_path: where it goes.
            timeout: seconds for the whole transfer, above 0; by default it takes as long as it
                moves, and is given up when it stands still for 60 s.
            progress: called with the bytes received and the bytes in all, or None for an
                unknown size, on the event loop; or True for a bar, as for `upload_file`.

        Raises:
            SandboxFileNotFoundError: there is no such file in the sandbox.
            DownloadTimeoutError: it stood still, or reached ``timeout``.
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            OSError: the local file can't be written.
            ValueError: an empty or impossible argument, or a place that is a device's or a
                pipe's; nothing was sent.
            APIError: any other failure.
        """
        call = self._file_call(sandbox_id, file_path, timeout)
        with transfer_progress(progress, os.path.basename(file_path)) as told:
            async with PartialFile(local_file_path, told) as target:
                await files.download(self._gateway, call, target)

    def iter_file(
        self, sandbox_id: str, file_path: str, timeout: float | None = None
    ) -> AsyncIterator[bytes]:
        """Downloads a file of any size in pieces, as they arrive.

        Leaving the loop early closes the connection. A caller may take any time for a piece;
        the platform may not.

        Args:
            sandbox_id: a running sandbox.
            file_path: the file, a path in the sandbox.
            timeout: seconds for the whole transfer, above 0; by default it takes as long as it
                moves, and is given up when it stands still for 60 s.

        Returns:
            The pieces, of any length. A transfer that breaks off after the first is an error.

        Raises:
            SandboxFileNotFoundError: there is no such file in the sandbox.
            DownloadTimeoutError: it stood still, or reached ``timeout``.
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure.
        """
        return files.iterate(self._gateway, self._file_call(sandbox_id, file_path, timeout))

    async def upload_directory(
        self,
        sandbox_id: str,
        directory_path: str,
        local_directory_path: str | os.PathLike[str],
        timeout: float | None = None,
        *,
        progress: bool | Progress = False,
    ) -> None:
        """Uploads what is in a folder; files of the same names are replaced, others stay.

        It travels as one tar archive, made while it is sent, and is unpacked by the image's
        ``tar``. That needs room for both in the sandbox; the archive is removed in any case.
        Modes, times and symbolic links are kept; owners are not, and sockets, pipes and devices
        are left out.

        Args:
            sandbox_id: a running sandbox.
            directory_path: where it goes, a path in the sandbox; it is made if it is missing.
            local_directory_path: the local folder.
            timeout: seconds for all of it, above 0; by default it takes as long as it moves.
            progress: called with the bytes of the archive sent and in all, on the event loop;
                or True for a bar, as for `upload_file`.

        Raises:
            FileNotFoundError: there is no such local folder; nothing was sent.
            NotADirectoryError: it is none; nothing was sent.
            OSError: a local file can't be read, or changed meanwhile.
            UploadTimeoutError: it stood still, or reached ``timeout``.
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure, such as an image without ``tar``.
        """
        call = self._file_call(sandbox_id, directory_path, timeout, folder=True)
        body = await folder_upload(local_directory_path)
        with transfer_progress(progress, os.path.basename(local_directory_path)) as told:
            if told is not None:
                body = body.watched(told)
            await directories.upload_directory(self._gateway, self._error_context, call, body)

    async def download_directory(
        self,
        sandbox_id: str,
        directory_path: str,
        local_directory_path: str | os.PathLike[str],
        timeout: float | None = None,
        *,
        progress: bool | Progress = False,
    ) -> None:
        """Downloads what is in a folder, which takes the local folder's place once it is whole.

        It travels as one tar archive, which the image's ``tar`` makes while it is sent; nothing
        is stored in the sandbox. Modes, times and symbolic links are kept, wherever a link
        leads; owners and special mode bits are not. A transfer that breaks off is an error and
        leaves nothing behind.

        Args:
            sandbox_id: a running sandbox.
            directory_path: the folder, a path in the sandbox.
            local_directory_path: where it goes: nothing, or an empty folder.
            timeout: seconds for all of it, above 0; by default it takes as long as it moves.
            progress: called with the bytes of the archive received, and None, on the event
                loop; or True for a bar, as for `upload_file`.

        Raises:
            SandboxFileNotFoundError: there is no such folder in the sandbox.
            FileExistsError: the local folder holds something; nothing was sent.
            UnsafeArchiveError: it holds a device or a pipe, or what would lie outside of it.
            OSError: a local file can't be written.
            DownloadTimeoutError: it stood still, or reached ``timeout``.
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure, such as an image without ``tar``.
        """
        call = self._file_call(sandbox_id, directory_path, timeout, folder=True)
        with transfer_progress(progress, os.path.basename(directory_path)) as told:
            async with UnpackedFolder(local_directory_path, told) as target:
                await directories.download_directory(self._gateway, call, target)

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

    def _file_call(
        self, sandbox_id: str, path: str, timeout: float | None, *, folder: bool = False
    ) -> files.FileCall:
        if timeout is not None:
            check_seconds("timeout", timeout)
        check_path(path, folder=folder)
        return files.FileCall(check_id(sandbox_id), path, self._error_context, timeout)
