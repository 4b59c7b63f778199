"""Owner and name of an environment."""

from __future__ import annotations

__all__ = ["split_slug"]


def split_slug(slug: str) -> dict[str, str]:
    """Path parameters of a slug.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(slug, str):
        raise TypeError(f"slug is a string, not {type(slug).__name__}")
    owner, slash, name = slug.partition("/")
    if not (owner and slash and name and slug.isprintable()) or set("/@") & set(name):
        raise ValueError(f"slug reads owner/name, unlike {slug!r}")
    return {"owner": owner, "name": name}
