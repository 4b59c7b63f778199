"""Changing images: each change on its own, and nothing is overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from prime_local.contract.document import JsonObject
from prime_local.images.record import coordinate
from prime_local.images.references import (
    PERSONAL,
    PLATFORM,
    ImageKey,
    ImageOwner,
    destination_problem,
    read_reference,
)
from prime_local.images.registry import ImageRegistry

# An image of one's own can become a team's, and either the platform's.
_MOVES = frozenset({("personal", "team"), ("personal", "platform"), ("team", "platform")})


class _Refused(Exception):
    """A change that cannot be made."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def update(
    images: ImageRegistry,
    updates: Sequence[JsonObject],
    user_id: str,
    *,
    dry_run: bool,
    admin: bool,
) -> list[JsonObject]:
    """Make changes, or in a dry run find out what would become of them.

    Args:
        images: the images.
        updates: the items of the request.
        user_id: the caller.
        dry_run: whether nothing is to be changed.
        admin: whether the caller may change images of the platform.

    Returns the items of the answer.
    """
    # What a dry run has given away and taken by then.
    stands = {key: (image, image.visibility) for key, image in images.images.items()}
    results = []
    for item in updates:
        source, wanted = item["source"], item["set"]
        try:
            key = _find(source, user_id)
            if key not in stands:
                raise _Refused("image_not_found", f"Image {key.name}:{key.tag} not found")
            image, visibility = stands[key]
            target, shown = _target(key, visibility, wanted, admin=admin)
            if target != key and target in stands:
                raise _Refused("destination_exists", f"Image {target.reference} exists already")
        except _Refused as refused:
            error = {"code": refused.code, "message": str(refused)}
            results.append({"source": source, "success": False, "error": error})
            continue
        before = coordinate(key, visibility)
        del stands[key]
        stands[target] = image, shown
        if not dry_run:
            images.move(image, target, shown)
        after = coordinate(target, shown)
        results.append({"source": source, "success": True, "before": before, "after": after})
    return results


def _find(source: JsonObject, user_id: str) -> ImageKey:
    if "reference" in source:
        key = read_reference(source["reference"], user_id, legacy=True, plain=PERSONAL)
        if key is None:
            raise _Refused("image_not_found", f"Image {source['reference']} not found")
        return key
    return ImageKey(_owner(source["owner"]), source["name"], source["tag"])


def _owner(wire: JsonObject) -> ImageOwner:
    return ImageOwner(wire["type"], wire.get("teamId"))


def _target(
    key: ImageKey, visibility: str, wanted: JsonObject, *, admin: bool
) -> tuple[ImageKey, str]:
    """Return what an image becomes."""
    owner = _owner(wanted["owner"]) if "owner" in wanted else key.owner
    if owner != key.owner and (key.owner.type, owner.type) not in _MOVES:
        raise _Refused("invalid_owner", "An image moves from a user to a team, or to the platform")
    if PLATFORM in (owner, key.owner) and not admin:
        raise _Refused("forbidden", "Only admins change images of the platform")
    target = replace(
        key, owner=owner, name=wanted.get("name", key.name), tag=wanted.get("tag", key.tag)
    )
    problem = destination_problem(target.owner, target.name, target.tag)
    if problem is not None:
        raise _Refused("invalid_destination", problem)
    shown = wanted.get("visibility", "PUBLIC" if owner == PLATFORM else visibility)
    if owner == PLATFORM and shown == "PRIVATE":
        raise _Refused("invalid_visibility", "Images of the platform are PUBLIC")
    return target, shown
