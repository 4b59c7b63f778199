"""Requests of the S3 protocol, written, signed and read by botocore; nothing is sent here.

botocore's own client is not used: it blocks, and an async one of it asks for one exact botocore,
which no program with another can install. The core's transport sends what is made here, with its
deadlines, its retries and its one session.
"""

from __future__ import annotations

import datetime
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest, HeadersDict
from botocore.credentials import Credentials
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.parsers import ResponseParserError, create_parser
from botocore.serialize import create_serializer

from prime_train.transfers.keys import TemporaryKeys

__all__ = ["S3Protocol", "S3Request", "s3_protocol"]

REGION = "auto"
# What stands in each answer: a page of something between us and the store lacks it.
_TOLD = {
    "ListObjectsV2": "IsTruncated",
    "ListParts": "IsTruncated",
    "ListMultipartUploads": "IsTruncated",
    "CreateMultipartUpload": "UploadId",
    "CompleteMultipartUpload": "ETag",
    "PutObject": "ETag",
    "UploadPart": "ETag",
}
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,64})</Code>")


@dataclass(frozen=True)
class S3Request:
    """A signed request.

    Attributes:
        endpoint: the store's address.
        rest: path and query, encoded, without the first slash.
        headers: with the signature.
        body: what the protocol itself sends; what is stored is not part of it.
    """

    endpoint: str
    rest: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes


class _Signer(S3SigV4Auth):
    """Signs all but the body, which is streamed; a checksum in a header is signed."""

    def payload(self, request: AWSRequest) -> str:
        return "UNSIGNED-PAYLOAD"

    def add_auth(self, request: AWSRequest) -> None:
        """As the base does, which also logs the session token."""
        now = datetime.datetime.now(datetime.timezone.utc)
        request.context["timestamp"] = now.strftime("%Y%m%dT%H%M%SZ")
        self._modify_request_before_signing(request)  # type: ignore[attr-defined]
        text = self.string_to_sign(request, self.canonical_request(request))
        signature = self.signature(text, request)
        self._inject_signature_to_request(request, signature)  # type: ignore[attr-defined]


class S3Protocol:
    """The S3 service as botocore describes it."""

    def __init__(self) -> None:
        self._service = ServiceModel(Loader().load_service_model("s3", "service-2"), "s3")
        self._serializer = create_serializer("rest-xml", include_validation=False)
        self._parser = create_parser("rest-xml")

    def request(
        self, operation: str, keys: TemporaryKeys, parameters: Mapping[str, object]
    ) -> S3Request:
        """Writes and signs a request.

        Args:
            operation: the service's name of it, such as ``UploadPart``.
            keys: what to sign with, and where to.
            parameters: as the service names them, without the bucket.
        """
        model = self._service.operation_model(operation)
        # A body would be read as a whole; it is sent by the caller.
        written = self._serializer.serialize_to_request(
            {"Bucket": keys.bucket, **parameters}, model
        )
        rest = written["url_path"]
        query = urllib.parse.urlencode(written["query_string"], quote_via=urllib.parse.quote)
        if query:
            rest += ("&" if "?" in rest else "?") + query
        url = keys.endpoint.rstrip("/") + rest
        body = written["body"] or b""
        request = AWSRequest(method=written["method"], url=url, headers=written["headers"])
        credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
        _Signer(credentials, "s3", REGION).add_auth(request)
        return S3Request(
            endpoint=keys.endpoint.rstrip("/"),
            rest=rest.lstrip("/"),
            headers={name: str(value) for name, value in request.headers.items()},
            body=body if isinstance(body, bytes) else str(body).encode(),
        )

    def answer(
        self, operation: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> Mapping[str, Any]:
        """Reads the answer to a request that succeeded.

        Raises:
            ValueError: it is no such answer.
        """
        shape = self._service.operation_model(operation).output_shape
        if shape is None:
            return {}
        answer = {"status_code": status, "headers": HeadersDict(headers), "body": body}
        try:
            parsed: Mapping[str, Any] = self._parser.parse(answer, shape)
        except (ResponseParserError, KeyError, TypeError) as error:
            raise ValueError(type(error).__name__) from error
        told = _TOLD.get(operation)
        if told is not None and told not in parsed:
            raise ValueError(f"without {told}")
        return parsed

    @staticmethod
    def error_code(body: str | None) -> str | None:
        """What the store calls an error. botocore would log the body, which may repeat keys."""
        found = _CODE.search(body or "")
        return found[1] if found else None


@lru_cache(maxsize=1)
def s3_protocol() -> S3Protocol:
    """The protocol, whose description takes a while to load: call it in a thread."""
    return S3Protocol()
