"""Files in a sandbox: what the failures of their calls mean, and which are tried again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar

from prime_core.calls import Body, Call, Reader
from prime_core.decoding import model_reader
from prime_core.errors import APIError, APITimeoutError
from prime_core.local_files import PartialFile
from prime_core.streams import OpenStream
from prime_core.uploads import Upload, multipart
from prime_sandboxes.commands import GONE_CODES, ReadContext, unknown_sandbox
from prime_sandboxes.errors import (
    DownloadTimeoutError,
    SandboxFileNotFoundError,
    SandboxFileTooLargeError,
    UploadTimeoutError,
    not_running,
)
from prime_sandboxes.gateway import Access, Gateway
from prime_sandboxes.models import (
    TERMINAL_STATUSES,
    FileUploadResponse,
    ReadFileResponse,
    SandboxStatus,
)
from prime_sandboxes.operations import DOWNLOAD_FILE, READ_FILE, UPLOAD_FILE

__all__ = ["IDLE_LIMIT", "FileCall", "download", "iterate", "read_file", "upload"]

T = TypeVar("T")

# Seconds without a byte after which a transfer is given up.
IDLE_LIMIT = 60.0
READ_TIMEOUT = 30.0
# A running sandbox that answers 409 is not routable yet: it is asked so often in all.
CONFLICT_ATTEMPTS = 4
CONFLICT_DELAY = 0.25
_GONE_CODES = frozenset({"sandbox_not_found", "sandbox_terminated"})
_FILE_ROWS = frozenset({UPLOAD_FILE.id, DOWNLOAD_FILE.id, READ_FILE.id})


class FileCall:
    """One call about a file in a sandbox: its limits, its repeats, and its errors.

    Args:
        sandbox_id: the sandbox.
        file_path: the path in the sandbox.
        read_context: tells what became of the sandbox.
        timeout: seconds for all of it, or None.
    """

    def __init__(
        self,
        sandbox_id: str,
        file_path: str,
        read_context: ReadContext,
        timeout: float | None,
    ) -> None:
        self.sandbox_id = sandbox_id
        self.file_path = file_path
        self.timeout = timeout
        self._read_context = read_context
        self._deadline: float | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters that name the file."""
        return {"path": self.file_path, "sandbox_id": self.sandbox_id}

    def left(self) -> float | None:
        """Seconds until the limit, or None without one; counted from the call's start."""
        if self._deadline is None:
            return None
        return max(0.001, self._deadline - asyncio.get_running_loop().time())

    async def perform(
        self, send: Callable[[float | None], Awaitable[T]], body: Upload | None = None
    ) -> T:
        """Makes the call; a running sandbox that is not routable yet is asked again.

        Args:
            send: makes it, within so many seconds.
            body: what it sends: one that is spent can't be sent again.

        Raises:
            SandboxNotRunningError: or the subclass that says why it ended.
            SandboxFileNotFoundError: there is no such file.
            SandboxFileTooLargeError: it is too large for this call.
            UploadTimeoutError: a limit of an upload was reached.
            DownloadTimeoutError: a limit of a download was reached.
            APIError: any other failure.
        """
        loop = asyncio.get_running_loop()
        if self.timeout is not None:
            self._deadline = loop.time() + self.timeout
        for attempt in range(1, CONFLICT_ATTEMPTS + 1):
            try:
                return await send(self.left())
            except APIError as error:
                failure = error
            again = await self.explain(failure) and not (body is not None and body.spent)
            delay = CONFLICT_DELAY * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)
            late = self._deadline is not None and loop.time() + delay >= self._deadline
            if not again or late or attempt == CONFLICT_ATTEMPTS:
                break
            await asyncio.sleep(delay)
        raise failure

    async def explain(self, failure: APIError) -> bool:
        """Whether a failure is that of a running sandbox which may be routable soon.

        Raises:
            PrimeError: what the failure means, where it has a class of its own.
        """
        # A file route's "not_found" may be the file's.
        codes = _GONE_CODES if failure.operation in _FILE_ROWS else GONE_CODES
        gone = failure.code in codes or failure.status_code == 410 or unknown_sandbox(failure)
        # A transfer that breaks off or stands still may have lost its sandbox. There is no time
        # left to ask about one whose own limit is over.
        late = isinstance(failure, APITimeoutError) and failure.phase == "total"
        if gone or (failure.status_code in (None, 409) and not late):
            await self._check_sandbox(failure, gone)
        if failure.status_code == 409:
            return True
        self._raise_documented(failure)
        return False

    async def _check_sandbox(self, failure: APIError, gone: bool) -> None:
        context = await self._read_context(self.sandbox_id)
        kind, status = context.error_type, context.status
        if status not in TERMINAL_STATUSES:
            if gone:
                kind, status = kind or "SANDBOX_NOT_FOUND", "TERMINATED"
            elif failure.status_code is None or status == SandboxStatus.RUNNING:
                return
        raise not_running(self.sandbox_id, status, kind, context.error_message) from failure

    def _raise_documented(self, failure: APIError) -> None:
        if failure.operation not in _FILE_ROWS:
            return
        cls: type[APIError] | None = None
        if failure.status_code == 404:
            cls = SandboxFileNotFoundError
        elif failure.status_code == 413 and failure.operation == READ_FILE.id:
            cls = SandboxFileTooLargeError
        if cls is not None:
            raise _as(cls, failure, f"{self.file_path!r}: {failure.args[0]}") from failure
        if isinstance(failure, APITimeoutError) and failure.operation != READ_FILE.id:
            uploading = failure.operation == UPLOAD_FILE.id
            timed_out = UploadTimeoutError if uploading else DownloadTimeoutError
            if failure.phase == "idle":
                raise timed_out(self.sandbox_id, self.file_path, IDLE_LIMIT, "idle") from failure
            if failure.phase == "total" and self.timeout is not None:
                raise timed_out(self.sandbox_id, self.file_path, self.timeout) from failure


def _as(cls: type[APIError], failure: APIError, message: str) -> APIError:
    """A failure as the error of another class, with all that is known of it."""
    error = cls(message)
    vars(error).update(vars(failure))
    return error


async def read_file(
    gateway: Gateway, call: FileCall, offset: int | None, length: int | None
) -> ReadFileResponse:
    """Reads a small file, or what the platform serves of a window."""
    query = {"path": call.file_path, "offset": offset, "length": length}

    async def send(left: float | None) -> ReadFileResponse:
        return await gateway.request(
            call.sandbox_id,
            READ_FILE,
            model_reader(ReadFileResponse),
            query=query,
            timeout=left,
        )

    return await call.perform(send)


async def upload(
    gateway: Gateway, call: FileCall, body: Upload, filename: str
) -> FileUploadResponse:
    """Sends a file."""
    form, content_type = multipart(body, field="file", filename=filename)

    async def send(left: float | None) -> FileUploadResponse:
        return await gateway.request(
            call.sandbox_id,
            UPLOAD_FILE,
            model_reader(FileUploadResponse),
            query=call.query,
            headers={"Accept": "application/json", "Content-Type": content_type},
            body=form,
            timeout=left,
            idle=IDLE_LIMIT,
        )

    return await call.perform(send, form)


async def download(gateway: Gateway, call: FileCall, target: PartialFile) -> None:
    """Receives a file; when the transfer breaks off it begins anew."""

    async def send(left: float | None) -> int:
        async def start(access: Access) -> int:
            async def receive(status: int, body: Body) -> int:
                return await target.receive(body.iter_any(), request.answer_size)

            request: Call[int] = _prepare(gateway, access, call, receive, left)
            return await gateway.perform(request)

        return await gateway.authorized(call.sandbox_id, start)

    await call.perform(send)


async def iterate(gateway: Gateway, call: FileCall) -> AsyncIterator[bytes]:
    """Yields a file as it arrives; what breaks off after its first bytes is an error."""

    async def send(left: float | None) -> OpenStream:
        async def start(access: Access) -> OpenStream:
            return await gateway.perform(_prepare(gateway, access, call, None, left))

        return await gateway.authorized(call.sandbox_id, start)

    async with await call.perform(send) as stream:
        try:
            async for chunk in stream:
                yield chunk
        except APIError as error:
            await call.explain(error)
            raise


def _prepare(
    gateway: Gateway, access: Access, call: FileCall, read: Reader[T] | None, left: float | None
) -> Call[T]:
    return gateway.prepare(
        access,
        DOWNLOAD_FILE,
        read,
        query=call.query,
        # What is stored is wanted, not what it decompresses to.
        headers={"Accept-Encoding": "identity"},
        timeout=left,
        idle=IDLE_LIMIT,
    )
