"""Image references: which registry they name and whether the simulation has the image."""

from __future__ import annotations

from prime_local.clock import PlatformClock
from prime_local.identifiers import Identifiers

_HUB_HOSTS = frozenset(prefix + "docker" + ".io" for prefix in ("", "index.", "registry-1."))
_SIMULATED = frozenset({"python", "debian"})


def names_other_registry(reference: str) -> bool:
    """Say whether a reference names a registry host other than Docker Hub's."""
    host, slash, _ = reference.partition("@")[0].partition("/")
    if not slash or host in _HUB_HOSTS:
        return False
    return "." in host or ":" in host or host == "localhost"


def hub_path(reference: str) -> str:
    """Return a Docker Hub reference without host, digest and the `library/` of official images."""
    path = reference.partition("@")[0]
    host, slash, rest = path.partition("/")
    if slash and host in _HUB_HOSTS:
        path = rest
    return path.removeprefix("library/")


def is_simulated(reference: str) -> bool:
    """Say whether sandboxes of this image start: Docker Hub's official python and debian do."""
    return hub_path(reference).partition(":")[0] in _SIMULATED


class ImageBuilds:
    """Builds at the first use of an image, which the sandboxes that want it wait for.

    Args:
        clock: builds take their time on the platform clock.
        identifiers: makes the builds' ids.
        seconds: how long a build takes; 0 for no builds.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers, seconds: float) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._seconds = seconds
        self._builds: dict[str, tuple[str, float]] = {}

    def pending(self, reference: str) -> tuple[str, float] | None:
        """Return the id of the build to wait for and the seconds it still takes, if any.

        The first call for a reference begins its build.
        """
        if not self._seconds:
            return None
        if reference not in self._builds:
            build_id = self._identifiers.make("bld_")
            self._builds[reference] = build_id, self._clock.now() + self._seconds
        build_id, ready_at = self._builds[reference]
        left = ready_at - self._clock.now()
        return (build_id, left) if left > 0 else None

    def clear(self) -> None:
        """Forget every build: each image's next use is its first again."""
        self._builds.clear()
