"""What a handler of the storage gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from prime_local.calls import Reply
from prime_local.faults import FaultRule
from prime_local.s3.documents import Fields, document
from prime_local.s3.errors import S3Error
from prime_local.s3.store import ObjectStore

MOST_LISTED = 1000
MOST_PARTS = 10_000


@dataclass(frozen=True)
class S3Call:
    """A request that its sender may make.

    Args:
        saved: waits until what has happened would survive a crash.
        key: of the object; empty for a request to the bucket.
        query: the fields of its query, the first of each name.
        fault: spoils the bytes of an object on their way out.
    """

    request: web.Request
    store: ObjectStore
    saved: Callable[[], Awaitable[None]]
    bucket: str
    key: str
    query: dict[str, str]
    fault: FaultRule | None

    def number(self, name: str, default: int, most: int) -> int:
        """Return a whole number of the query, which is at most `most`.

        Raises:
            S3Error: `InvalidArgument`.
        """
        text = self.query.get(name, str(default))
        if not text.isdecimal() or len(text) > 9:
            raise S3Error("InvalidArgument", f"{name} is a whole number")
        return min(int(text), most)


def xml_reply(name: str, fields: Fields) -> Reply:
    return Reply(document(name, fields), content_type="application/xml")
