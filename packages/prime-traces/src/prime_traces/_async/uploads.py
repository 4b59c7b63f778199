"""Uploads of traces, episodes and agent sessions."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterable, Collection, Iterable, Mapping
from typing import TypeVar

from prime_core.progress import transfer_progress
from prime_core.sync import in_thread
from prime_core.uploads import Progress
from prime_traces._async.resource import AsyncTracesResource
from prime_traces.batches import DEFAULT_TARGET_BATCH_BYTES, BatchCutter, Lines
from prime_traces.metadata import upload_metadata
from prime_traces.models import LineFormat, UploadReceipt
from prime_traces.records import Records
from prime_traces.sources import JsonlFile, Maker, batch_source, line_maker, record_maker
from prime_traces.uploading import OnBatch, UploadOptions, check_callable, upload_batches

__all__ = ["AsyncTracesUploads"]

T = TypeVar("T")


class AsyncTracesUploads(AsyncTracesResource):
    """The part of the client that uploads."""

    async def upload_records(
        self,
        records: Records,
        *,
        line_format: LineFormat | str = LineFormat.TRACE,
        context: Mapping[str, str] | None = None,
        schema_version: int = 1,
        compress: bool = True,
        target_batch_bytes: int = DEFAULT_TARGET_BATCH_BYTES,
        max_attempts: int = 5,
        on_batch: OnBatch | None = None,
        max_in_flight: int = 4,
        progress: bool | Progress = False,
    ) -> list[UploadReceipt]:
        """Uploads records in batches, several at once, none of them lost or stored twice.

        The records are taken as they are needed, so that they may be more than memory holds. Each
        batch is stored whole or not at all, and sent again, byte for byte the same, when no answer
        comes. The same call made again gives the same batches, which are not stored twice.

        Each record is checked before its batch is sent: a trace, and each trace of an episode,
        needs an ``id`` and a numeric ``timing.start``, and all of it must be JSON.

        Follows the documented page "traces/uploading".

        Args:
            records: mappings, or objects whose ``to_record()`` gives one, such as what verifiers
                makes; async or not. For ``LineFormat.PRIME_AGENT``, lists of a session's lines.
            line_format: what a record is: a trace, a whole episode or an agent session.
            context: labels that are stored with each trace, such as ``{"source": "my-eval"}``.
            schema_version: of the records; 1 is the only one.
            compress: whether they travel as gzip.
            target_batch_bytes: most bytes of a batch, uncompressed, at most 256 MiB; a larger
                record, of at most 64 MiB, has its own. A gateway before the service takes 32 MiB.
            max_attempts: how often a batch is sent at most; waits that the service asks for are
                not counted. 1 sends it once, whatever comes of it.
            on_batch: called with each `Batch` that is stored and its receipt, in order.
                It may be async, and else runs in a thread. Batches are kept in memory for it.
            max_in_flight: most batches that are compressed and sent at once, 1 to 8. No more than
                96 MiB of them are in memory, or one batch that is larger.
            progress: called with the uncompressed bytes that are stored and the bytes in all, or
                None for an unknown size, on the event loop; or True for a bar, if rich is
                installed and the output is a terminal or a notebook.

        Returns:
            A receipt for each batch, in order; none without records.

        Raises:
            InvalidRecordError: a record lacks what the service demands, or holds NaN, an infinity
                or half a character. It names the record; its batch was not sent.
            RecordTypeError: a TypeError, too: it is no mapping, or holds what JSON can't.
            TraceTooLargeError: a record has more than 64 MiB.
            BatchRejectedError: a ValidationRejectedError: the service refused a record, which it
                names; it holds the receipts of the other batches.
            ValueError: an argument out of its range; nothing was sent.
            APIError: any other failure, when ``max_attempts`` are used up.
            Exception: what ``records`` or ``on_batch`` raised.

            In each case the batches in flight are brought to their end first. A cancellation,
            Ctrl-C and what else is no Exception breaks them off at once. `partial_upload` tells
            which batches are stored, of which that is not known, and where to go on.
        """
        self._refuse(records, "records", (str, bytes, Mapping), "pass a list of them")
        options = UploadOptions(
            LineFormat(line_format),
            context,
            schema_version,
            compress,
            target_batch_bytes,
            max_attempts,
            on_batch,
            max_in_flight,
        )
        with _told(progress, "records") as told:
            make = record_maker(options.line_format)
            return await self._upload(records, make, options, told)

    async def upload_lines(
        self,
        lines: Lines,
        *,
        line_format: LineFormat | str = LineFormat.TRACE,
        context: Mapping[str, str] | None = None,
        schema_version: int = 1,
        compress: bool = True,
        target_batch_bytes: int = DEFAULT_TARGET_BATCH_BYTES,
        max_attempts: int = 5,
        on_batch: OnBatch | None = None,
        max_in_flight: int = 4,
        progress: bool | Progress = False,
    ) -> list[UploadReceipt]:
        """Uploads lines of JSON as they are, in batches, as `upload_records` does.

        A line is what a line feed ends; a carriage return before it is white space. Lines are not
        changed, and blank ones are left out but counted.

        Follows the documented page "traces/uploading".

        Args:
            lines: bytes in UTF-8, such as an open binary file; async or not.
            line_format: what a line holds.
            context: as for `upload_records`.
            schema_version: as for `upload_records`.
            compress: as for `upload_records`.
            target_batch_bytes: as for `upload_records`.
            max_attempts: as for `upload_records`.
            on_batch: as for `upload_records`.
            max_in_flight: as for `upload_records`.
            progress: as for `upload_records`.

        Returns:
            A receipt for each batch, in order; none without lines.

        Raises:
            InvalidRecordError: a line is no JSON in UTF-8, begins with a byte order mark, or lacks
                what the service demands. It names the line; its batch was not sent. Lines of more
                than 8 MiB are left to the service.
            TypeError: a line is not bytes.
            Exception: as for `upload_records`.
        """
        self._refuse(lines, "lines", (str, bytes, Mapping), "a file is uploaded by upload_file")
        options = UploadOptions(
            LineFormat(line_format),
            context,
            schema_version,
            compress,
            target_batch_bytes,
            max_attempts,
            on_batch,
            max_in_flight,
        )
        with _told(progress, "lines") as told:
            make = line_maker(options.line_format)
            return await self._upload(lines, make, options, told)

    async def upload_file(
        self,
        path: str | os.PathLike[str],
        *,
        line_format: LineFormat | str = LineFormat.TRACE,
        context: Mapping[str, str] | None = None,
        schema_version: int = 1,
        compress: bool = True,
        target_batch_bytes: int = DEFAULT_TARGET_BATCH_BYTES,
        max_attempts: int = 5,
        on_batch: OnBatch | None = None,
        max_in_flight: int = 4,
        progress: bool | Progress = False,
    ) -> list[UploadReceipt]:
        """Uploads a file of JSON lines as they are, in batches, as `upload_lines` does.

        Follows the documented page "traces/uploading".

        Args:
            path: the file, such as the ``traces.jsonl`` of verifiers, which holds episodes.
            line_format: what a line holds; the file's name does not say.
            context: as for `upload_records`.
            schema_version: as for `upload_records`.
            compress: as for `upload_records`.
            target_batch_bytes: as for `upload_records`.
            max_attempts: as for `upload_records`.
            on_batch: as for `upload_records`.
            max_in_flight: as for `upload_records`.
            progress: as for `upload_records`, with the file's size.

        Returns:
            A receipt for each batch, in order; none for an empty file.

        Raises:
            OSError: the file can't be read, such as FileNotFoundError.
            InvalidRecordError: as for `upload_lines`.
            TraceTooLargeError: a line has more than 64 MiB.
            Exception: as for `upload_records`.
        """
        options = UploadOptions(
            LineFormat(line_format),
            context,
            schema_version,
            compress,
            target_batch_bytes,
            max_attempts,
            on_batch,
            max_in_flight,
        )
        size = (await in_thread(os.stat)(path)).st_size
        with _told(progress, os.path.basename(path)) as told:
            make = line_maker(options.line_format)
            return await self._upload(JsonlFile(path), make, options, told, size or None)

    async def _upload(
        self,
        items: Iterable[T] | AsyncIterable[T],
        make: Maker[T],
        options: UploadOptions,
        progress: Progress | None,
        size: int | None = None,
    ) -> list[UploadReceipt]:
        metadata = upload_metadata(options.schema_version, options.context)
        cutter = BatchCutter(target_bytes=options.target_batch_bytes)

        async def send(body: Collection[bytes], key: str) -> UploadReceipt:
            return await self._api._send_batch(
                body,
                key,
                options.line_format,
                metadata,
                compressed=options.compress,
                max_attempts=options.max_attempts,
            )

        source = batch_source(items, make, cutter)
        return await upload_batches(source, send, options, progress, size)

    def _refuse(self, items: object, name: str, kinds: tuple[type, ...], instead: str) -> None:
        """Refuses what can be iterated but holds no items of their own."""
        if isinstance(items, kinds) or not isinstance(items, (Iterable, AsyncIterable)):
            raise TypeError(f"{name} is an iterable, not a {type(items).__name__}; {instead}")


def _told(
    progress: bool | Progress, name: str
) -> contextlib.AbstractContextManager[Progress | None]:
    if not isinstance(progress, bool):
        check_callable("progress", progress, "bytes done and bytes in all")
    return transfer_progress(progress, name)
