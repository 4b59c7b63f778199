"""The operations of S3 that are served."""

from __future__ import annotations

from dataclasses import dataclass

# Where the endpoint is on the platform's port.
PREFIX = "/s3"


@dataclass(frozen=True)
class S3Operation:
    """An operation.

    Args:
        name: S3's, for fault rules and the ledger.
        method: of HTTP.
        on_object: whether it is about an object, or about the bucket.
        marks: names in the query that tell it from others.
        writes: whether it changes anything.
    """

    name: str
    method: str
    on_object: bool
    marks: frozenset[str]
    writes: bool = False


def _on_object(name: str, method: str, *marks: str, writes: bool = False) -> S3Operation:
    return S3Operation(name, method, True, frozenset(marks), writes)


def _on_bucket(name: str, method: str, *marks: str) -> S3Operation:
    return S3Operation(name, method, False, frozenset(marks))


OPERATIONS = (
    _on_bucket("ListMultipartUploads", "GET", "uploads"),
    _on_bucket("ListObjectsV2", "GET", "list-type"),
    _on_bucket("HeadBucket", "HEAD"),
    _on_object("ListParts", "GET", "uploadId"),
    _on_object("GetObject", "GET"),
    _on_object("HeadObject", "HEAD"),
    _on_object("UploadPart", "PUT", "uploadId", "partNumber", writes=True),
    _on_object("PutObject", "PUT", writes=True),
    _on_object("CreateMultipartUpload", "POST", "uploads", writes=True),
    _on_object("CompleteMultipartUpload", "POST", "uploadId", writes=True),
    _on_object("AbortMultipartUpload", "DELETE", "uploadId", writes=True),
    _on_object("DeleteObject", "DELETE", writes=True),
)
NAMES = frozenset(operation.name for operation in OPERATIONS)
# What else may be in a query: the operation reads it, or it changes nothing.
_PLAIN = {
    "continuation-token",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "key-marker",
    "max-keys",
    "max-parts",
    "max-uploads",
    "part-number-marker",
    "partNumber",
    "prefix",
    "start-after",
    "upload-id-marker",
    "x-id",
}


def find_operation(method: str, on_object: bool, names: set[str]) -> S3Operation | None:
    """Return the operation that a request is, if it is one that there is.

    Args:
        method: of HTTP.
        on_object: whether it names an object.
        names: those of its query.
    """
    for operation in OPERATIONS:
        fits = (method, on_object) == (operation.method, operation.on_object)
        if fits and operation.marks <= names <= operation.marks | _PLAIN:
            return operation
    return None
