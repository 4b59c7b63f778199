"""The XML that S3 speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TypeAlias
from xml.etree import ElementTree

from prime_local.s3.errors import S3Error

# The content of an element: text, further elements by their names, or several of one name.
Scalar: TypeAlias = str | int | bool | datetime
Content: TypeAlias = "Scalar | Mapping[str, Content] | Sequence[Mapping[str, Content]]"
Fields = Mapping[str, Content]
_SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'


def document(name: str, fields: Fields, *, plain: bool = False) -> bytes:
    """Write a document.

    Args:
        name: of its root.
        fields: what is in it.
        plain: without S3's name space, as errors are.
    """
    root = ElementTree.Element(name, {} if plain else {"xmlns": _SPACE})
    _fill(root, fields)
    return _HEAD + ElementTree.tostring(root, "unicode").encode()


def read_parts(body: bytes) -> list[dict[str, str]]:
    """Read the parts that are to make an object: fields by their names.

    Raises:
        S3Error: `MalformedXML`.
    """
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise S3Error("MalformedXML", "The body is not XML") from None
    parts = [
        {_local(field.tag): (field.text or "").strip() for field in part}
        for part in root
        if _local(part.tag) == "Part"
    ]
    if not parts or not all(part.get("PartNumber", "").isdigit() for part in parts):
        raise S3Error("MalformedXML", "The body names the parts of the object")
    return parts


def checksum_fields(checksums: Mapping[str, str]) -> dict[str, str]:
    """Return checksums, which have the names of headers, by their names in XML."""
    return {
        f"Checksum{name.rpartition('-')[2].upper()}": value for name, value in checksums.items()
    }


def error_document(error: S3Error, resource: str) -> bytes:
    fields = {"Code": error.code, "Message": error.message, "Resource": resource}
    return document("Error", fields, plain=True)


def _fill(parent: ElementTree.Element, fields: Fields) -> None:
    for name, content in fields.items():
        if isinstance(content, (str, int, datetime)):
            ElementTree.SubElement(parent, name).text = _text(content)
            continue
        for each in [content] if isinstance(content, Mapping) else content:
            _fill(ElementTree.SubElement(parent, name), each)


def _text(value: Scalar) -> str:
    if isinstance(value, datetime):
        utc = value.astimezone(timezone.utc)
        return utc.strftime("%Y-%m-%dT%H:%M:%S.") + f"{utc.microsecond // 1000:03}Z"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
