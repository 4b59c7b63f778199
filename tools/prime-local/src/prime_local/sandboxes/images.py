"""Image references: which registry they name and whether the simulation has the image."""

from __future__ import annotations

_HUB_HOSTS = frozenset(prefix + "docker" + ".io" for prefix in ("", "index.", "registry-1."))
_SIMULATED = frozenset({"python", "debian"})


def names_other_registry(reference: str) -> bool:
    """Say whether a reference names a registry host other than Docker Hub's."""
    host, slash, _ = reference.partition("@")[0].partition("/")
    if not slash or host in _HUB_HOSTS:
        return False
    return "." in host or ":" in host or host == "localhost"


def is_simulated(reference: str) -> bool:
    """Say whether sandboxes of this image start: Docker Hub's official python and debian do."""
    path = reference.partition("@")[0]
    host, slash, rest = path.partition("/")
    if slash and host in _HUB_HOSTS:
        path = rest
    repository = path.removeprefix("library/").partition(":")[0]
    return repository in _SIMULATED
