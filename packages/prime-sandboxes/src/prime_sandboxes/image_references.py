"""References of images: which registry they name, and their name and tag."""

from __future__ import annotations

import re

__all__ = ["check_image_name", "check_image_tag", "is_docker_hub_reference", "split_reference"]

_HUB_HOSTS = frozenset(prefix + "docker" + ".io" for prefix in ("", "index.", "registry-1."))
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
# What would end a name, or change the route of a request that names it.
_NOT_IN_NAMES = re.compile(r"[\s:@?#%\\\x00-\x1f]")


def is_docker_hub_reference(reference: str) -> bool:
    """Tells whether an image reference names Docker Hub, by a host of it or by no host at all.

    Follows the documented page "sandboxes/images", "Image references".

    Args:
        reference: such as ``ubuntu:22.04`` or ``org/app@sha256:…``. A Prime reference has no
            host either; check for ``prime/`` first.
    """
    first, slash, _ = reference.partition("@")[0].partition("/")
    names_host = "." in first or ":" in first or first == "localhost"
    return not slash or first in _HUB_HOSTS or not names_host


def check_image_tag(tag: str) -> str:
    """A tag of up to 128 letters, digits, ``_``, ``.`` and ``-``, the last two not in front."""
    if not _TAG.fullmatch(tag):
        raise ValueError(f"tag is 1 to 128 of A-Z a-z 0-9 _ . - not led by . or -, unlike {tag!r}")
    return tag


def check_image_name(name: str, *, owner: bool = False) -> str:
    """A name without a tag.

    Args:
        name: such as ``myapp``.
        owner: whether it may hold slashes, as in ``prime/acme/myapp``.
    """
    parts = name.split("/")
    if _NOT_IN_NAMES.search(name) or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"name is an image's name without its tag, unlike {name!r}")
    if len(parts) > 1 and not owner:
        raise ValueError(f"name holds no slash: the owner is given apart; not {name!r}")
    return name


def split_reference(reference: str, *, default_tag: str | None = None) -> tuple[str, str]:
    """Takes a reference apart into name, owner's prefix included, and tag.

    Args:
        reference: such as ``myapp:v1`` or ``prime/acme/myapp:v1``.
        default_tag: the tag of a reference without one; None refuses that.

    Raises:
        ValueError: it is no such reference.
        TypeError: it is no string.
    """
    if not isinstance(reference, str):
        raise TypeError(f"an image is named by a string, not {type(reference).__name__}")
    name, colon, tag = reference.rpartition(":")
    if not colon or "/" in tag:
        if default_tag is None:
            raise ValueError(f"an image is named with its tag, such as myapp:v1, not {reference!r}")
        name, tag = reference, default_tag
    return check_image_name(name, owner=True), check_image_tag(tag)
