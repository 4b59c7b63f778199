"""Files sent to a volume, in parts where they are large, each with its checksum."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from prime_core.concurrency import run_each
from prime_core.errors import APIError, NotFoundError
from prime_core.local_files import slice_upload
from prime_core.sync import in_thread
from prime_train.errors import VolumeChecksumError
from prime_train.transfers.hashing import (
    Digests,
    base64_of,
    check_unchanged,
    digest,
    goes_in_parts,
    is_md5,
    is_small,
    multipart_etag,
    part_size,
    read_small,
)
from prime_train.transfers.journals import Journal
from prime_train.transfers.meters import Meter
from prime_train.transfers.planning import LocalFile, PlannedUpload
from prime_train.transfers.store import VolumeStore

__all__ = ["Uploads"]

PARTS_AT_ONCE = 4
# MD5 of no bytes.
EMPTY = "1B2M2Y8AsgTpgAmY7PhCfg=="


class Uploads:
    """Sends the files of one put.

    Args:
        store: where to.
        reading: the same, with keys that read: those of a put need not.
        journal: of this put.
        meter: is told of the bytes.
    """

    def __init__(
        self, store: VolumeStore, reading: VolumeStore, journal: Journal, meter: Meter
    ) -> None:
        self._store = store
        self._reading = reading
        self._journal = journal
        self._meter = meter
        self._begun: dict[str, tuple[str, str]] = {}
        self._stored: dict[str, tuple[str, str]] = {}
        for line in journal.lines:
            key, md5 = str(line.get("key")), str(line.get("md5"))
            if "upload" in line:
                self._begun[key] = (str(line["upload"]), md5)
            elif "etag" in line:
                self._stored[key] = (str(line["etag"]), md5)

    async def send(self, upload: PlannedUpload) -> None:
        """Stores a file, or the marker of an empty folder.

        Raises:
            SourceChangedError: the file is not what it was.
            VolumeChecksumError: it did not arrive as it was sent.
            APIError: any other failure.
        """
        if upload.file is None:
            await self._store.put(upload.key, b"", md5=EMPTY, metadata={})
            return
        try:
            await self._send_file(upload.key, upload.file)
        except APIError:
            raise
        except (OSError, VolumeChecksumError):
            # Of a file that was changed, taken away or replaced it says so.
            await in_thread(check_unchanged)(upload.file)
            raise

    async def _send_file(self, key: str, file: LocalFile) -> None:
        if is_small(file.size):
            digests, body = await in_thread(read_small)(file)
        else:
            digests, body = await digest(file.path, file.size, part_size(file.size)), None
        md5 = base64_of(digests.whole)
        if await self._is_stored(key, md5):
            self._meter.resume(file.size)
            return
        if goes_in_parts(file.size):
            etag = await self._send_parts(key, file, digests)
        else:
            etag = await self._send_whole(key, file, digests, body)
        await in_thread(self._journal.add)({"key": key, "etag": etag, "md5": md5})

    async def _is_stored(self, key: str, md5: str) -> bool:
        """Whether an earlier call has stored this very file, and it is there still."""
        etag, known = self._stored.get(key, ("", ""))
        if known != md5:
            return False
        found = await self._reading.find(key)
        return found is not None and found.etag == etag

    async def _send_whole(
        self, key: str, file: LocalFile, digests: Digests, content: bytes | None
    ) -> str:
        moved = self._meter.part()
        body = slice_upload(file.path, 0, file.size).watched(moved) if content is None else content
        etag = await self._store.put(
            key, body, md5=base64_of(digests.whole), metadata=_metadata(file, digests)
        )
        self._check(key, etag, digests.whole)
        if content is not None:
            moved(file.size)
        else:
            await in_thread(check_unchanged)(file)
        return etag

    async def _send_parts(self, key: str, file: LocalFile, digests: Digests) -> str:
        size = part_size(file.size)
        upload, stored = await self._resume(key, file, digests)
        etags: dict[int, str] = {}
        missing: list[int] = []
        for number, md5 in enumerate(digests.parts, 1):
            length = min(size, file.size - (number - 1) * size)
            if stored.get(number) == (length, md5.hex()):
                self._meter.resume(length)
                etags[number] = md5.hex()
            else:
                missing.append(number)

        async def send(number: int) -> None:
            start, md5 = (number - 1) * size, digests.parts[number - 1]
            body = slice_upload(file.path, start, min(size, file.size - start))
            etag = await self._store.put_part(
                key, upload, number, body.watched(self._meter.part()), md5=base64_of(md5)
            )
            self._check(key, etag, md5)
            etags[number] = etag

        await run_each(send, missing, limit=PARTS_AT_ONCE)
        await in_thread(check_unchanged)(file)
        expected = multipart_etag(digests.parts)
        try:
            await self._store.complete_upload(key, upload, [etags[n] for n in sorted(etags)])
        except NotFoundError:  # an attempt whose answer was lost has completed it
            found = await self._reading.find(key)
            if found is None or found.etag != expected:
                raise
        return expected

    async def _resume(
        self, key: str, file: LocalFile, digests: Digests
    ) -> tuple[str, Mapping[int, tuple[int, str]]]:
        """The upload to go on with, and its parts; a new one for a file that has changed."""
        md5 = base64_of(digests.whole)
        upload, known = self._begun.get(key, ("", ""))
        if known == md5:
            parts = await self._store.parts(key, upload)
            if parts is not None:
                return upload, {part.number: (part.size, part.etag) for part in parts}
        # Nobody else writes to the volume: what is there is left over, and takes up room.
        left_overs = {upload} if upload else set()
        try:
            left_overs.update(await self._store.uploads(key))
        except APIError as error:
            if error.status_code not in (403, 501):  # keys or stores that can't look
                raise
        for left_over in left_overs:
            await self._store.abort_upload(key, left_over)
        upload = await self._store.create_upload(key, _metadata(file, digests))
        await in_thread(self._journal.add)({"key": key, "upload": upload, "md5": md5})
        return upload, {}

    @staticmethod
    def _check(key: str, etag: str, md5: bytes) -> None:
        if is_md5(etag) and etag != md5.hex():
            raise VolumeChecksumError(key, md5.hex(), etag)


def _metadata(file: LocalFile, digests: Digests) -> Mapping[str, str]:
    return {"mtime": _seconds(file.mtime_ns), "md5chksum": base64_of(digests.whole)}


def _seconds(nanoseconds: int) -> str:
    """Seconds with at most nine decimals, without trailing zeros, as rclone writes them."""
    text = f"{Decimal(nanoseconds).scaleb(-9):.9f}"
    return text.rstrip("0").rstrip(".")
