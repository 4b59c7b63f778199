"""The routes of the traces service as they are: what its client is made of."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel
from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_core.calls import Call
from prime_core.config import Config
from prime_core.contents import bytes_upload
from prime_core.decoding import model_reader, read_object, read_whole
from prime_core.encoding import Query
from prime_core.errors import APIError, rebuilt
from prime_core.local_files import PartialFile
from prime_core.operations import Operation, unnamed_operation
from prime_core.streams import OpenStream
from prime_core.sync import in_thread
from prime_core.uploads import multipart
from prime_traces.compression import compressed, load_compressor
from prime_traces.errors import AmbiguousDeleteError, typed
from prime_traces.metadata import upload_metadata
from prime_traces.models import LineFormat, UploadReceipt
from prime_traces.operations import REFUSAL_CODES, UPLOAD_TRACES
from prime_traces.records import load_encoder

__all__ = ["AsyncTracesAPIClient"]

JSONObject: TypeAlias = dict[str, Any]
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

USER_AGENT = "prime-traces/0.1.0"
# Seconds without progress after which an upload or a download is given up.
IDLE_LIMIT = 60.0
RAW: Query = {"raw": True}
NO_DOCUMENT = "it is empty, and a stored document never is"


class AsyncTracesAPIClient:
    """Calls the routes of the traces service.

    Use it as a context manager, or close it with `aclose`. Each setting is taken from the
    arguments, then the environment, then the configuration file.

    Follows the documented page "traces/uploading".

    Args:
        api_key: the API key.
        base_url: address of the traces service; it never follows that of the platform.
        team_id: the team whose traces they are; "" is the personal account.
        user_agent: ``<name>/<version>`` to go by.
        timeout: seconds for a whole call, retries included; 60 by default. An upload or
            download takes as long as it moves.
        client: connections to share with other clients, in place of all of these.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        team_id: str | None = None,
        user_agent: str | None = None,
        timeout: float | None = None,
        *,
        client: AsyncAPIClient | None = None,
    ) -> None:
        own = (api_key, base_url, team_id, user_agent, timeout)
        if client is not None and own != (None,) * len(own):
            raise ValueError("pass client or settings of its own, not both")
        if client is not None and not isinstance(client, AsyncAPIClient):
            raise TypeError(f"client is an AsyncAPIClient, not {type(client).__name__}")
        if client is None:
            client = AsyncAPIClient(
                config=Config(api_key, team_id=team_id, traces_url=base_url),
                user_agent=user_agent or USER_AGENT,
                timeout=60.0 if timeout is None else timeout,
            )
        load_compressor()
        load_encoder()
        self._client = client
        self._transport = client._share(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self._client)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client!r})"

    @property
    def client(self) -> AsyncAPIClient:
        """The connections, to share with other clients."""
        return self._client

    @property
    def base_url(self) -> str:
        """Address of the traces service, without ``/api/v1``."""
        return self._client.config.traces_url

    async def upload_batch(
        self,
        body: bytes,
        idempotency_key: str,
        *,
        line_format: LineFormat | str = LineFormat.TRACE,
        schema_version: int = 1,
        context: Mapping[str, str] | None = None,
        compress: bool = True,
    ) -> UploadReceipt:
        """Uploads the lines of one batch: all of them are stored, or none.

        It is sent again, byte for byte the same, when no answer comes.

        Follows the documented page "api-reference/traces/ingestion/upload-traces".

        Args:
            body: the lines, at most 256 MiB and 64 MiB a line, uncompressed.
            idempotency_key: ``sha256:`` and the digest of ``body`` in lower-case hex.
            line_format: what each line holds.
            schema_version: of the lines; 1 is the only one.
            context: labels that are stored with each trace.
            compress: whether it travels as gzip.

        Raises:
            ValidationRejectedError: the lines were refused; correct them.
            LineFormatConflictError: the same bytes are stored under another line format.
            APIError: any other failure.
        """
        form, metadata = LineFormat(line_format), upload_metadata(schema_version, context)
        if compress:
            body = await in_thread(compressed)(body)
        return await self._send_batch((body,), idempotency_key, form, metadata, compressed=compress)

    async def _send_batch(
        self,
        body: Collection[bytes],
        key: str,
        line_format: LineFormat,
        metadata: bytes,
        *,
        compressed: bool,
        max_attempts: int | None = None,
    ) -> UploadReceipt:
        """Sends lines that may be compressed already; every attempt sends the same bytes."""
        headers = {"Content-Type": "application/x-ndjson"}
        if compressed:
            headers["Content-Encoding"] = "gzip"
        upload, content_type = multipart(
            bytes_upload(*body),
            field="traces",
            filename="traces.jsonl",
            headers=headers,
            json_fields={"metadata": metadata},
        )
        sent = {"Content-Type": content_type}
        if line_format is not LineFormat.TRACE:
            sent["X-Prime-Line-Format"] = line_format
        call = self._transport.prepare(
            UPLOAD_TRACES,
            model_reader(UploadReceipt),
            body=upload,
            key=key,
            headers=sent,
            idle=IDLE_LIMIT,
        )
        call.max_attempts = max_attempts
        return await self._perform(call)

    async def get_json(self, endpoint: str, params: Query | None = None) -> JSONObject:
        """Reads a route that has no method of its own.

        Args:
            endpoint: the path below ``/api/v1``, percent-encoded, such as ``/traces``.
            params: query parameters; None leaves one out, a list repeats its key.

        Returns:
            The answer's JSON object.

        Raises:
            APIError: one of its subclasses says what failed.
            ValueError: an endpoint that is no encoded path.
        """
        operation = unnamed_operation("GET", endpoint, "safe", "traces")
        return await self._perform(self._transport.prepare(operation, read_object, query=params))

    async def delete(self, endpoint: str, params: Query | None = None) -> None:
        """Deletes at a route; it is sent once, unless it surely was not processed.

        Args:
            endpoint: the path below ``/api/v1``, percent-encoded.
            params: query parameters; None leaves one out, a list repeats its key.

        Raises:
            AmbiguousDeleteError: no answer says whether it was done.
            NotFoundError: there is nothing of the kind, or there is no more.
            APIError: any other failure.
            ValueError: an endpoint that is no encoded path.
        """
        operation = unnamed_operation("DELETE", endpoint, "unsafe", "traces")
        await self._delete(replace(operation, refusal_codes=REFUSAL_CODES), query=params)

    async def stream_bytes(
        self, endpoint: str, params: Query | None = None
    ) -> AsyncIterator[bytes]:
        """Reads an answer of any size in chunks, as they arrive.

        A stream that breaks off is not begun anew.

        Args:
            endpoint: the path below ``/api/v1``, percent-encoded.
            params: query parameters; None leaves one out, a list repeats its key.

        Raises:
            APIError: one of its subclasses says what failed.
            ValueError: an endpoint that is no encoded path.
        """
        operation = unnamed_operation("GET", endpoint, "safe", "traces")
        async with await self._open(operation, query=params) as stream:
            async for chunk in stream:
                yield chunk

    async def _request(
        self,
        operation: Operation,
        response: type[M],
        *,
        path: Mapping[str, str] | None = None,
        query: Query | None = None,
        timeout: float | None = None,
    ) -> M:
        call = self._transport.prepare(
            operation, model_reader(response), path, query, timeout=timeout
        )
        return await self._perform(call)

    async def _delete(
        self,
        operation: Operation,
        path: Mapping[str, str] | None = None,
        query: Query | None = None,
    ) -> None:
        call = self._transport.prepare(operation, read_object, path, query)
        try:
            await self._perform(call)
        except APIError as error:
            if not call.ambiguous:
                raise
            failure = rebuilt(AmbiguousDeleteError, error)
        else:
            return
        raise failure

    async def _open(
        self,
        operation: Operation,
        path: Mapping[str, str] | None = None,
        query: Query | None = None,
    ) -> OpenStream:
        call: Call[OpenStream] = self._transport.prepare(
            operation, None, path, query, idle=IDLE_LIMIT
        )
        return await self._perform(call)

    async def _read_document(self, operation: Operation, path: Mapping[str, str]) -> bytes:
        """Reads a stored document, which is never empty."""
        async with await self._open(operation, path, RAW) as stream:
            document = await read_whole(stream)
            if not document:
                raise stream.unreadable(NO_DOCUMENT)
            return document

    async def _read_record(self, operation: Operation, path: Mapping[str, str]) -> Any:
        """Reads a stored document, and parses it."""
        async with await self._open(operation, path, RAW) as stream:
            document = await read_whole(stream)
            try:
                return json.loads(document)
            except (ValueError, RecursionError) as error:
                why = f"it is no JSON document: {error}" if document else NO_DOCUMENT
            raise stream.unreadable(why)

    async def _save_document(
        self, operation: Operation, path: Mapping[str, str], dest: str | os.PathLike[str]
    ) -> int:
        """Writes a stored document to a file once it is whole."""
        async with (
            PartialFile(dest) as target,
            await self._open(operation, path, RAW) as stream,
        ):
            size = await target.receive(stream, stream.size)
            if not size:
                raise stream.unreadable(NO_DOCUMENT)
            return size

    async def _perform(self, call: Call[T]) -> T:
        try:
            return await self._transport.perform(call)
        except APIError as error:
            failure = typed(error)
        raise failure

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections; shared ones are closed by the last client that uses them."""
        await self._client._release(self)


def _restore(cls: type[AsyncTracesAPIClient], client: AsyncAPIClient) -> AsyncTracesAPIClient:
    return cls(client=client)
