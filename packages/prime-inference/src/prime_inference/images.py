"""Images as the data URLs that evaluation models take."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

__all__ = ["Image", "data_urls"]

Image: TypeAlias = bytes | str | os.PathLike[str]
"""An image: its bytes, the path of its file, or a data URL."""

MAX_IMAGES = 4
MAX_BYTES = 4 * 1024 * 1024
MAX_ALL = 8 * 1024 * 1024
_DATA_URL = re.compile(r"data:image/(?:png|jpeg|webp);base64,([A-Za-z0-9+/]+={0,2})")
_FORMS = "a PNG, JPEG or WebP"


def data_urls(images: Sequence[Image]) -> list[str]:
    """Reads files, and checks the documented limits, in bytes before they are encoded.

    It blocks while it reads.

    Raises:
        ValueError: an image can't be sent; it names its place.
        OSError: a file can't be read.
    """
    if isinstance(images, bytes | str | os.PathLike) or not isinstance(images, Sequence):
        raise ValueError("images is a list of images")
    if len(images) > MAX_IMAGES:
        raise ValueError(f"images holds at most {MAX_IMAGES} images, not {len(images)}")
    urls: list[str] = []
    total = 0
    for number, image in enumerate(images):
        url, size = _data_url(f"images.{number}", image)
        total += size
        if total > MAX_ALL:
            raise ValueError(f"images holds at most {MAX_ALL} bytes in all")
        urls.append(url)
    return urls


def _data_url(path: str, image: Image) -> tuple[str, int]:
    """The URL, and the bytes of the image itself."""
    if isinstance(image, str) and image[:5].lower() == "data:":  # as any scheme
        image = "data:" + image[5:]
        return image, _decoded_size(path, image)
    if isinstance(image, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", image):
        raise ValueError(f"{path} is a remote address, which is not accepted: pass the image")
    if isinstance(image, str | os.PathLike):
        file = Path(image)
        _check_size(path, file.stat().st_size)
        image = file.read_bytes()
    if not isinstance(image, bytes | bytearray | memoryview):
        raise ValueError(f"{path} is bytes, a path or a data URL, not {type(image).__name__}")
    data = bytes(image)
    _check_size(path, len(data))
    kind = _kind(data)
    if kind is None:
        raise ValueError(f"{path} is not {_FORMS} image")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}", len(data)


def _decoded_size(path: str, url: str) -> int:
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise ValueError(
            f"{path} is {_FORMS} image as data:image/png;base64,… (or jpeg, webp), not {url[:40]!r}"
        )
    try:
        size = len(base64.b64decode(found[1], validate=True))
    except binascii.Error as error:
        raise ValueError(f"{path} is no valid base64: {error}") from None
    _check_size(path, size)
    return size


def _check_size(path: str, size: int) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"{path} is larger than {MAX_BYTES} bytes")


def _kind(data: bytes) -> str | None:
    """The form of an image, by its first bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return None
