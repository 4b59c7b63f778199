"""Records that are on disk before they are on their way."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Literal

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_core.sync import across, loop_thread
from prime_traces._async.api_client import AsyncTracesAPIClient
from prime_traces.batches import DEFAULT_TARGET_BATCH_BYTES, MAX_BATCH_BYTES, MAX_LINE_BYTES
from prime_traces.errors import SpoolClosedError, SpoolError, TraceTooLargeError
from prime_traces.metadata import upload_metadata
from prime_traces.models import LineFormat
from prime_traces.record_checks import check_line
from prime_traces.records import SupportsToRecord, encode_record
from prime_traces.spool.engine import SpoolEngine, SpoolSettings
from prime_traces.spool.framing import Header
from prime_traces.spool.status import SpoolState, SpoolStats

__all__ = ["AsyncTraceSpool"]

GIB = 1024 * 1024 * 1024
# How long a close that is cut short waits until the directory is free.
CLOSE_GRACE = 2.0


class AsyncTraceSpool:
    """Keeps records in a directory until the platform has them, across crashes and outages.

    `append` returns once a record is on disk; it is uploaded in the background, on a thread of
    its own. A spool that is opened in the directory of one that was killed goes on with what
    that one left, and each record is stored once. It does so because what is uploaded
    together is fixed on disk before it is sent, and sent under a key made of its bytes.

    Use it as a context manager, or close it with `aclose`. It opens its directory when it is
    entered or first used, and may be used on any number of event loops. A forked child
    needs a spool, and a directory, of its own.

    Follows the documented page "api-reference/traces/ingestion/upload-traces".

    Args:
        directory: where it keeps them; made if missing. One spool uses it at a time.
        api_client: whose account and connections to upload with; by default the environment's.
        line_format: what each record is.
        context: labels that are stored with each record.
        schema_version: of the records; 1 is the only one.
        fsync: when a record is made to survive a power cut: ``always`` before `append` returns,
            for appends under way at once together; so many seconds later; ``never`` before it
            is due to be sent. A crash of the program alone loses nothing with any of them.
        max_bytes: most bytes that the directory may hold, set-aside records included; None
            for no limit. While refused records are sorted out it may briefly hold up to one
            segment more.
        segment_bytes: most bytes of records, uncompressed, that are uploaded together, at most
            256 MiB; a longer record goes alone.
        max_delay: seconds that a record waits for others to be uploaded with, when nothing else
            is being uploaded.
        compress: whether they travel as gzip.
        client: connections to share with other clients, in place of ``api_client``.

    Raises:
        ConfigurationError: the configuration can't be used.
        TypeError: an argument is of another type.
        ValueError: a number out of its range, or both clients are given.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        api_client: AsyncTracesAPIClient | None = None,
        *,
        line_format: LineFormat | str = LineFormat.TRACE,
        context: Mapping[str, str] | None = None,
        schema_version: int = 1,
        fsync: Literal["always", "never"] | float = "always",
        max_bytes: int | None = 10 * GIB,
        segment_bytes: int = DEFAULT_TARGET_BATCH_BYTES,
        max_delay: float = 5.0,
        compress: bool = True,
        client: AsyncAPIClient | None = None,
    ) -> None:
        if api_client is not None and client is not None:
            raise ValueError("pass api_client or client, not both")
        if api_client is not None and not isinstance(api_client, AsyncTracesAPIClient):
            raise TypeError(
                f"api_client is an AsyncTracesAPIClient, not {type(api_client).__name__}; that of "
                "an AsyncTracesClient is its api_client"
            )
        if fsync not in ("always", "never"):
            fsync = _number("fsync", fsync, "'always', 'never' or seconds")
        if not isinstance(segment_bytes, int) or not 0 < segment_bytes <= MAX_BATCH_BYTES:
            raise ValueError(f"segment_bytes is from 1 to {MAX_BATCH_BYTES}, not {segment_bytes!r}")
        if max_bytes is not None and (not isinstance(max_bytes, int) or max_bytes < 1):
            raise ValueError(f"max_bytes is at least 1, or None, not {max_bytes!r}")
        if not isinstance(compress, bool):
            raise TypeError(f"compress is True or False, not {compress!r}")
        if not os.fspath(directory):
            raise ValueError("directory is a path, not an empty one")
        upload_metadata(schema_version, context)  # refuses what it can't be made of
        # A user of the same connections: whoever closes last closes them.
        self._api = AsyncTracesAPIClient(client=client if api_client is None else api_client.client)
        team = self._api.client.config.team_id or ""
        self._line_format = LineFormat(line_format)
        self._settings = SpoolSettings(
            directory=os.path.abspath(directory),
            header=Header(self._line_format, schema_version, dict(context or {}), team),
            fsync=fsync,
            max_bytes=max_bytes,
            segment_bytes=segment_bytes,
            max_delay=_number("max_delay", max_delay, "seconds", least=0.0),
            compress=compress,
        )
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._opening: Future[SpoolEngine] | None = None
        self._closing: Future[SpoolStats] | None = None

    @property
    def directory(self) -> str:
        """The directory, as an absolute path."""
        return self._settings.directory

    @property
    def state(self) -> SpoolState:
        """What it is doing, as in `SpoolStats`."""
        return self.stats.state

    @property
    def stats(self) -> SpoolStats:
        """Where its records are; before it is opened nothing is known of what waits."""
        opening = self._opening
        if opening is None or not opening.done() or opening.exception() is not None:
            return _nothing("idle" if self._closing is None else "closed")
        return opening.result().stats

    async def append(
        self,
        record: Mapping[str, Any] | Sequence[Any] | SupportsToRecord | bytes,
        *,
        wait: float = 0.0,
    ) -> None:
        """Writes a record to disk; it is safe there when this returns.

        When it is cancelled the record may have been written or not.

        Args:
            record: a mapping, an object whose ``to_record()`` gives one, or a line of JSON as
                bytes, which is not changed; for ``prime_agent`` the list of a session's lines.
            wait: seconds to wait when there is no room for it.

        Raises:
            InvalidRecordError: the record is none that the service takes.
            TraceTooLargeError: it is larger than the service takes.
            SpoolFullError: the directory's limit is reached or the disk is full, still so after
                ``wait`` seconds; the record was not taken.
            SpoolWriteError: the disk failed; the record was not taken.
            SpoolLockedError: another spool uses the directory.
            SpoolClosedError: this one is closed.
        """
        line = self._line(record)
        wait = _number("wait", wait, "seconds", least=0.0)
        await (await self._open()).append(line, wait)

    async def flush(self, timeout: float | None = 60.0) -> bool:
        """Waits until all that was appended so far is uploaded, or set aside as refused.

        Args:
            timeout: seconds to wait, None for as long as it takes.

        Returns:
            Whether it is; False when the time ran out.

        Raises:
            UnauthorizedError: the platform refuses the key; so do the other errors that
                put the spool into the state ``paused``, such as `PaymentRequiredError` and
                `ForbiddenError`. The records stay.
            SpoolWriteError: the disk failed, or somebody removed records from the directory that
                were not uploaded, which is told once.
        """
        if timeout is not None:
            timeout = _number("timeout", timeout, "seconds", least=0.0)
        engine = await self._open()
        future = loop_thread().submit(engine.flush(timeout))
        try:
            return await across(future)
        finally:
            future.cancel()

    async def aclose(self, timeout: float = 15.0) -> SpoolStats:
        """Uploads what it can, then lets go of the directory.

        What is left stays on disk for the next spool there, and is said in a warning.

        Args:
            timeout: seconds to wait for uploads.

        Returns:
            Where the records are.
        """
        timeout = _number("timeout", timeout, "seconds", least=0.0)
        self._check_process()
        with self._lock:
            if self._closing is None:
                self._closing = loop_thread().submit(self._close(timeout))
            closing = self._closing
        try:
            return await across(closing)
        except BaseException:
            if not closing.done():
                loop_thread().submit(self._cut_close_short())
                waiting = asyncio.ensure_future(across(closing))
                await asyncio.wait([waiting], timeout=CLOSE_GRACE)
                waiting.cancel()
            raise

    async def _close(self, timeout: float) -> SpoolStats:
        engine = await self._opened()
        if engine is not None:
            return await engine.close(timeout)
        await self._api.aclose()
        return _nothing("closed")

    async def _cut_close_short(self) -> None:
        engine = await self._opened()
        if engine is not None:
            await engine.cut_short()

    async def _opened(self) -> SpoolEngine | None:
        """What is at work, if it could be opened."""
        if self._opening is not None:
            with contextlib.suppress(SpoolError):
                return await across(self._opening)
        return None

    def _line(self, record: Mapping[str, Any] | Sequence[Any] | SupportsToRecord | bytes) -> bytes:
        if isinstance(record, bytes):
            line = record if record.endswith(b"\n") else record + b"\n"
            if b"\n" in line[:-1]:
                raise ValueError("a record is one line; append the lines one by one")
            check_line(line, line_format=self._line_format)
        else:
            line = encode_record(record, line_format=self._line_format)
        if len(line) > MAX_LINE_BYTES + 1:
            raise TraceTooLargeError(1, len(line) - 1, MAX_LINE_BYTES)
        return line

    async def _open(self) -> SpoolEngine:
        self._check_process()
        with self._lock:
            if self._closing is not None:
                raise SpoolClosedError("the spool is closed; make another one in its directory")
            opening = self._opening
            if opening is None or (opening.done() and opening.exception() is not None):
                coroutine = SpoolEngine.open(self._settings, self._api)
                opening = self._opening = loop_thread().submit(coroutine)
        return opening.result() if opening.done() else await across(opening)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise SpoolError(
                f"this spool belongs to process {self._process}, which uploads what it holds; "
                "make another one, in another directory, in each process"
            )

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "a spool can't be pickled: one process uses its directory; make another one, in "
            "another directory, in each process"
        )

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.directory!r})"

    def __del__(self) -> None:
        # There may be none of these: the constructor can refuse its arguments.
        opened = getattr(self, "_opening", None) is not None
        if opened and self._closing is None and self._process == os.getpid():
            warnings.warn(
                f"{self!r} was not closed; what it holds is uploaded as long as the process "
                "lives, and by the next spool in its directory",
                ResourceWarning,
                stacklevel=2,
            )


def _nothing(state: SpoolState) -> SpoolStats:
    return SpoolStats(state, 0, 0, 0, 0, 0, None)


def _number(name: str, value: object, what: str, *, least: float | None = None) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or (value <= 0 if least is None else value < least)
    ):
        bound = "above 0" if least is None else f"from {least:g}"
        raise ValueError(f"{name} is {what}, {bound}, not {value!r}")
    return float(value)
