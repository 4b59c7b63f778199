"""The files that a sandbox starts with: those of a checkpoint, and its copies of volumes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from prime_local.sandboxes.copying import Copier, CopyError
from prime_local.sandboxes.isolation.base import Box, IsolationError

GIB = 1024**3
VOLUME_GIB = 100


class Filler:
    """Copies files into sandboxes that are being made.

    Args:
        copier: does the copying.
    """

    def __init__(self, copier: Copier) -> None:
        self._copier = copier
        self._stops: dict[str, threading.Event] = {}

    async def fill(
        self, box: Box, parts: Mapping[str, Path], volume: Callable[[str], Path]
    ) -> None:
        """Copy what a sandbox starts with.

        Args:
            box: the sandbox.
            parts: its folders, by the names that they have in `box.files`.
            volume: the folder of its copy of a volume, by the volume's name.

        Raises:
            IsolationError: that failed, or was stopped.
        """
        stop = self._stops[box.sandbox_id] = threading.Event()
        copy, most = self._copier.copy, int(box.resources.disk * GIB)
        try:
            if box.files is not None:
                for name, folder in parts.items():
                    await copy(box.files / name, folder, most, stop)
            for mount in box.mounts:
                await copy(mount.files, volume(mount.name), VOLUME_GIB * GIB, stop)
        except CopyError as error:
            raise IsolationError(f"its files are not complete: {error}") from error
        finally:
            del self._stops[box.sandbox_id]

    def stop(self, sandbox_id: str) -> None:
        """Stop the copying for a sandbox that is to end, if there is any."""
        stop = self._stops.get(sandbox_id)
        if stop is not None:
            stop.set()
