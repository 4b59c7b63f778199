"""A volume's files in its object store."""

from __future__ import annotations

import urllib.parse
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from prime_core.calls import Body, Call, Target
from prime_core.decoding import read_whole
from prime_core.encoding import Encoded
from prime_core.errors import (
    APIError,
    APIResponseError,
    APITimeoutError,
    ConfigurationError,
    NotFoundError,
)
from prime_core.local_files import LocalFailure
from prime_core.operations import Operation, RateScope
from prime_core.sync import in_thread
from prime_core.transport import AsyncTransport
from prime_core.uploads import Upload
from prime_train.errors import VolumeChecksumError
from prime_train.transfers.keys import KeyRing

if TYPE_CHECKING:
    from prime_train.transfers.s3_protocol import S3Protocol, S3Request

__all__ = ["StoredObject", "StoredPart", "VolumeStore", "open_store"]

# Seconds for a call that moves no file, and without progress for one that does.
TIMEOUT = 60.0
IDLE = 60.0
# Of an answer that is no file: a thousand of the longest keys, all encoded, take a fifth of it.
MAX_PAGE = 16 * 1024 * 1024
# Pages without an object, but with more to come, are rare.
MOST_EMPTY = 100
# Many parts are put together by a store in its own time.
_TIMEOUTS = {"CompleteMultipartUpload": 600.0}
# More often than usual: one part of many thousand must not end a transfer.
ATTEMPTS = 6
# How often a call that stalls is made again.
STALLS = 2
# What a store says of keys that have expired, or that it does not know any more.
_EXPIRED = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"}
)


_STORE = RateScope("volume_storage")


def _row(name: str, method: Any, *, stream: bool = False) -> Operation:
    return Operation(
        id=name,
        method=method,
        path="/{rest}",
        safety="safe",
        scope=_STORE,  # a store that is busy holds up no call of the platform's
        keyless=True,
        pool="stream" if stream else "control",
    )


_ROWS = {
    row.id: row
    for row in (
        _row("ListObjectsV2", "GET"),
        _row("GetObject", "GET", stream=True),
        _row("PutObject", "PUT", stream=True),
        _row("CreateMultipartUpload", "POST"),
        _row("UploadPart", "PUT", stream=True),
        _row("ListParts", "GET"),
        _row("ListMultipartUploads", "GET"),
        _row("CompleteMultipartUpload", "POST"),
        _row("AbortMultipartUpload", "DELETE"),
    )
}


@dataclass(frozen=True)
class StoredObject:
    """An object: its key below the volume's prefix, and what a listing says of it."""

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True)
class StoredPart:
    """A part of an upload that is not complete."""

    number: int
    size: int
    etag: str


# Takes the chunks of a file as they come.
Receive = Callable[[AsyncIterable[bytes], Mapping[str, str]], Awaitable[None]]


async def open_store(transport: AsyncTransport, keys: KeyRing) -> VolumeStore:
    """The store that keys open.

    Raises:
        ConfigurationError: botocore is missing.
    """

    def load() -> S3Protocol:
        from prime_train.transfers.s3_protocol import s3_protocol

        return s3_protocol()

    try:
        protocol = await in_thread(load)()
    except ImportError as error:
        raise ConfigurationError(
            "Transfers of volumes need botocore: pip install 'prime-train[volumes]'"
        ) from error
    return VolumeStore(transport, keys, protocol)


class VolumeStore:
    """The objects under a volume's prefix; keys are paths on the volume."""

    def __init__(self, transport: AsyncTransport, keys: KeyRing, protocol: S3Protocol) -> None:
        self._transport = transport
        self._keys = keys
        self._protocol = protocol
        self._target = Target.of("", {})

    @property
    def prefix(self) -> str:
        """What the volume's keys begin with in the store."""
        return self._keys.prefix

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Lists the objects whose keys begin so, in the order of their keys."""
        async for page in self._pages(prefix):
            for found in page.get("Contents", ()):
                yield self._object(found, page)

    async def list_folder(self, folder: str) -> tuple[Sequence[StoredObject], Sequence[str]]:
        """What is in a folder: objects, and folders with their slash."""
        objects: list[StoredObject] = []
        folders: list[str] = []
        async for page in self._pages(folder, delimiter="/"):
            objects += [self._object(found, page) for found in page.get("Contents", ())]
            folders += [
                self._key(found["Prefix"], page) for found in page.get("CommonPrefixes", ())
            ]
        return objects, folders

    async def first(self, prefix: str) -> StoredObject | None:
        """The first of the objects whose keys begin so."""
        page = await self._page(prefix, {"MaxKeys": 1})
        found = page.get("Contents", ())
        return self._object(found[0], page) if found else None

    async def find(self, key: str) -> StoredObject | None:
        """The object of exactly this key."""
        found = await self.first(key)  # of all that begin so it is the shortest
        return found if found is not None and found.key == key else None

    async def _pages(
        self, prefix: str, *, delimiter: str | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        more: dict[str, object] = {} if delimiter is None else {"Delimiter": delimiter}
        tokens: set[str] = set()
        empty = 0
        while True:
            page = await self._page(prefix, more)
            yield page
            token = page.get("NextContinuationToken")
            if not page.get("IsTruncated") or not token:
                return
            empty = 0 if page.get("Contents") or page.get("CommonPrefixes") else empty + 1
            if token in tokens or empty > MOST_EMPTY:
                raise APIResponseError("The store lists its objects without an end.")
            tokens.add(token)
            more["ContinuationToken"] = token

    async def _page(self, prefix: str, more: Mapping[str, object]) -> Mapping[str, Any]:
        # Encoded: XML can't carry every key.
        parameters = {"Prefix": prefix, "EncodingType": "url", **more}
        return await self._call("ListObjectsV2", parameters, own="Prefix")

    def _object(self, found: Mapping[str, Any], page: Mapping[str, Any]) -> StoredObject:
        size = found["Size"]
        if size < 0:
            raise APIResponseError("The store listed an object of less than no bytes.")
        return StoredObject(
            key=self._key(found["Key"], page),
            size=size,
            etag=found["ETag"].strip('"'),
            modified=found["LastModified"].astimezone(timezone.utc),
        )

    def _key(self, text: str, page: Mapping[str, Any]) -> str:
        key = urllib.parse.unquote_plus(text) if page.get("EncodingType") == "url" else text
        if not key.startswith(self._keys.prefix):
            raise APIResponseError("The store listed an object outside of the volume.")
        return key[len(self._keys.prefix) :]

    async def put(
        self, key: str, body: Upload | bytes, *, md5: str, metadata: Mapping[str, str]
    ) -> str:
        """Stores an object whole.

        Args:
            key: where.
            body: its bytes.
            md5: their MD5, in base64.
            metadata: what else to keep.

        Returns:
            Its etag.
        """
        parameters = {"Key": key, "ContentMD5": md5, "Metadata": dict(metadata)}
        answer = await self._call("PutObject", parameters, body=body)
        return _etag(answer)

    async def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        """Begins an upload in parts, and gives its id."""
        answer = await self._call("CreateMultipartUpload", {"Key": key, "Metadata": dict(metadata)})
        upload = answer.get("UploadId")
        if not isinstance(upload, str) or not upload:
            raise APIResponseError("The store named no upload.")
        return upload

    async def put_part(self, key: str, upload: str, number: int, body: Upload, *, md5: str) -> str:
        """Stores a part of an upload, and gives its etag."""
        parameters = {"Key": key, "UploadId": upload, "PartNumber": number, "ContentMD5": md5}
        return _etag(await self._call("UploadPart", parameters, body=body))

    async def parts(self, key: str, upload: str) -> Sequence[StoredPart] | None:
        """The parts of an upload that are stored; None when there is no such upload."""
        parts: list[StoredPart] = []
        more: dict[str, object] = {}
        while True:
            try:
                page = await self._call("ListParts", {"Key": key, "UploadId": upload, **more})
            except NotFoundError:
                return None
            parts += [
                StoredPart(part["PartNumber"], part["Size"], part["ETag"].strip('"'))
                for part in page.get("Parts", ())
            ]
            if not page.get("IsTruncated"):
                return parts
            marker = page.get("NextPartNumberMarker")
            if not marker or marker == more.get("PartNumberMarker"):
                raise APIResponseError("The store lists the parts of an upload without an end.")
            more["PartNumberMarker"] = marker

    async def uploads(self, key: str) -> Sequence[str]:
        """Uploads to this key that are not complete."""
        page = await self._call("ListMultipartUploads", {"Prefix": key}, own="Prefix")
        wanted = self._keys.prefix + key
        return [found["UploadId"] for found in page.get("Uploads", ()) if found["Key"] == wanted]

    async def complete_upload(self, key: str, upload: str, etags: Sequence[str]) -> None:
        """Makes an object of an upload's parts."""
        parts = [
            {"PartNumber": number, "ETag": f'"{etag}"'} for number, etag in enumerate(etags, 1)
        ]
        parameters = {"Key": key, "UploadId": upload, "MultipartUpload": {"Parts": parts}}
        await self._call("CompleteMultipartUpload", parameters)

    async def abort_upload(self, key: str, upload: str) -> None:
        """Throws the parts of an upload away; one that is not there is no failure."""
        await self._call("AbortMultipartUpload", {"Key": key, "UploadId": upload})

    async def get(
        self,
        key: str,
        receive: Receive,
        *,
        etag: str,
        start: int | None = None,
        size: int | None = None,
    ) -> None:
        """Reads an object, or a range of it.

        Args:
            key: which.
            receive: takes the bytes of an attempt, from the first on.
            etag: of the object that is meant; another in its place is refused with 412.
            start: where the range begins.
            size: bytes of the range.
        """
        parameters: dict[str, object] = {"Key": key, "IfMatch": f'"{etag}"'}
        if start is not None and size is not None:
            parameters["Range"] = f"bytes={start}-{start + size - 1}"
        await self._call("GetObject", parameters, receive=receive)

    async def _call(
        self,
        name: str,
        parameters: Mapping[str, object],
        *,
        body: Upload | bytes | None = None,
        receive: Receive | None = None,
        own: str = "Key",
    ) -> Mapping[str, Any]:
        """Sends a request, once more with new keys when its own have expired.

        Args:
            name: the service's name of it.
            parameters: as the service names them.
            body: what is stored.
            receive: takes what is read.
            own: the parameter that the volume's prefix is added to.
        """
        renewed = False
        stalls = 0
        while True:
            keys = await self._keys.current()
            named = {**parameters, own: keys.prefix + str(parameters[own])}
            call = self._prepare(name, self._protocol.request(name, keys, named), body, receive)
            try:
                return await self._transport.perform(call)
            except LocalFailure as failure:
                raise failure.cause from None
            except APITimeoutError as error:
                # The core gives what stalls up, since most callers can't wait that long again.
                if error.phase != "idle" or stalls == STALLS:
                    raise
                stalls += 1
            except APIError as error:
                _explain(error, self._protocol.error_code(error.body))
                if error.code in _EXPIRED and not renewed:
                    renewed = True
                    await self._keys.renewed(keys)
                    continue
                if error.code == "BadDigest":
                    sent = str(parameters.get("ContentMD5"))
                    raise VolumeChecksumError(str(parameters[own]), sent, "another") from error
                raise

    def _prepare(
        self, name: str, request: S3Request, body: Upload | bytes | None, receive: Receive | None
    ) -> Call[Mapping[str, Any]]:
        moves = body is not None or receive is not None
        if self._target.base_url != request.endpoint:  # its proxy is looked up once
            agent = {"User-Agent": self._transport.user_agent}
            self._target = Target.of(request.endpoint, agent)

        async def read(status: int, answer: Body) -> Mapping[str, Any]:
            if receive is not None:
                await receive(answer.iter_any(), call.answer_headers)
                return {}
            data = await read_whole(answer.iter_any(), MAX_PAGE)
            try:
                # An answer that took long to make begins before its outcome is known.
                if b"<Error>" not in data[:200]:
                    return self._protocol.answer(name, status, call.answer_headers, data)
            except ValueError as error:
                raise APIResponseError(f"The store's answer can't be read: {error}") from None
            raise APIResponseError("The store failed after it had begun to answer.")

        call: Call[Mapping[str, Any]] = self._transport.prepare_elsewhere(
            _ROWS[name],
            read,
            self._target,
            path={"rest": Encoded(request.rest)},
            # What is stored is wanted, not what it decompresses to.
            headers={**request.headers, "Accept-Encoding": "identity"},
            body=(request.body or None) if body is None else body,
            timeout=None if moves else _TIMEOUTS.get(name, TIMEOUT),
            idle=IDLE if moves else None,
        )
        call.max_attempts = ATTEMPTS
        call.any_page = True
        call.ranged = "Range" in request.headers
        return call


def _etag(answer: Mapping[str, Any]) -> str:
    etag = answer.get("ETag")
    if not isinstance(etag, str):
        raise APIResponseError("The store did not say what it has stored.")
    return etag.strip('"')


def _explain(error: APIError, code: str | None) -> None:
    """Says what a store's error is, in no words of its own: they may hold the keys."""
    error.body = None
    if error.status_code is None:
        return
    error.code = code
    step = "" if error.status_code >= 500 else "; put or get again"
    error.args = (
        f"The object store answered HTTP {error.status_code} {code or ''}".rstrip() + step,
    )
