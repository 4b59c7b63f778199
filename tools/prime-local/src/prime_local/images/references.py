"""References of images: whose they name, and where a copied image goes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from prime_local.sandboxes.images import hub_path, is_simulated, names_other_registry

# The name under which this account's images go, besides its id.
USERNAME = "local"
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_NAME = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*", re.IGNORECASE)
_SOURCE_HOSTS = frozenset(
    ".".join(parts)
    for parts in (
        ("ghcr", "io"),
        ("quay", "io"),
        ("public", "ecr", "aws"),
        ("registry", "k8s", "io"),
        ("mcr", "microsoft", "com"),
    )
)

OwnerType = Literal["personal", "team", "platform"]


@dataclass(frozen=True)
class ImageOwner:
    """Whose an image is; there is one user here."""

    type: OwnerType
    team_id: str | None = None

    def to_wire(self) -> dict[str, str]:
        wire: dict[str, str] = {"type": self.type}
        return wire if self.team_id is None else {**wire, "teamId": self.team_id}


PERSONAL, PLATFORM = ImageOwner("personal"), ImageOwner("platform")


@dataclass(frozen=True)
class ImageKey:
    """What tells images apart."""

    owner: ImageOwner
    name: str
    tag: str

    @property
    def reference(self) -> str:
        """What a sandbox is created with."""
        prefix = {"personal": f"prime/{USERNAME}/", "platform": ""}.get(
            self.owner.type, f"prime/team-{self.owner.team_id}/"
        )
        return f"{prefix}{self.name}:{self.tag}"


def owner_of(team_id: str | None) -> ImageOwner:
    """Return a team, or for None the user, as an owner."""
    return PERSONAL if team_id is None else ImageOwner("team", team_id)


def read_reference(
    reference: str, user_id: str, *, legacy: bool = False, plain: ImageOwner = PLATFORM
) -> ImageKey | None:
    """Return the image that a reference names here, or None when it names none.

    Args:
        reference: such as `prime/local/app:v1` or `ubuntu:22.04`.
        user_id: the user's id, which stands for his name.
        legacy: whether an owner may be named without `prime/` before it.
        plain: whose a reference without an owner is.
    """
    path, tag = split_tag(reference.partition("@")[0])
    if path.startswith("prime/") or (legacy and _owner(path.split("/")[0], user_id)):
        owner_name, _, name = path.removeprefix("prime/").partition("/")
        owner = _owner(owner_name, user_id)
        return None if owner is None or not name else ImageKey(owner, name, tag)
    if names_other_registry(reference):
        return None
    return ImageKey(plain, hub_path(path), tag)


def split_tag(path: str) -> tuple[str, str]:
    """Split a path from its tag, `latest` where it has none."""
    name, colon, tag = path.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (path, "latest")


def _owner(name: str, user_id: str) -> ImageOwner | None:
    if name in (USERNAME, user_id):
        return PERSONAL
    team = name.removeprefix("team-")
    return ImageOwner("team", team) if team and team != name else None


def destination_problem(owner: ImageOwner, name: str, tag: str) -> str | None:
    """Say what is wrong with a name and a tag; None when nothing is."""
    parts = name.split("/")
    if not all(_NAME.fullmatch(part) for part in parts):
        return f"{name!r} is no image name"
    if len(parts) > 1 and owner.type != "platform":
        return "an image name holds no slash"
    return None if _TAG.fullmatch(tag) else f"{tag!r} is no tag"


@dataclass(frozen=True)
class Source:
    """An image of a public registry, to be copied."""

    reference: str

    @property
    def on_hub(self) -> bool:
        return not names_other_registry(self.reference)

    @property
    def refusal(self) -> str | None:
        """Why it is not accepted; None when it is."""
        host = self.reference.partition("/")[0]
        if self.on_hub or host in _SOURCE_HOSTS:
            return None
        if host == "gcr" + ".io" or host.endswith(("." + "gcr" + ".io", "." + "pkg.dev")):
            return "Images of Google-hosted registries are not accepted"
        return f"Images of {host} are not accepted"

    @property
    def exists(self) -> bool:
        """Whether there is such an image: here python and debian are, on every registry."""
        path = self.reference.partition("@")[0]
        return is_simulated(path if self.on_hub else split_tag(path)[0].rpartition("/")[2])

    def derived(self) -> tuple[str, str]:
        """Return the name and the tag of its copy."""
        path, _, digest = self.reference.partition("@")
        name, tag = split_tag(path)
        if digest:
            tag = "sha256-" + digest.partition(":")[2][:16]
        return (hub_path(name) if self.on_hub else name.rpartition("/")[2]).lower(), tag
