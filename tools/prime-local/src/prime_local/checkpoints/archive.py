"""Where the files of checkpoints are: a folder each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Container, Mapping
from pathlib import Path

from prime_local.sandboxes.copying import Copier
from prime_local.sandboxes.removal import remove_tree


class Archive:
    """Keeps copies of folders under the ids of checkpoints.

    Args:
        root: folder for them; made when the first is kept.
        copier: does the copying.
    """

    def __init__(self, root: Path, copier: Copier) -> None:
        self._root = root
        self._copier = copier

    def folder(self, checkpoint_id: str) -> Path:
        """Return where the files of a checkpoint are, in a folder for each part."""
        return self._root / checkpoint_id

    async def keep(
        self,
        checkpoint_id: str,
        parts: Mapping[str, Path],
        most_bytes: int,
        stop: threading.Event,
    ) -> int:
        """Copy the parts of a checkpoint; `stop` ends that early.

        Returns how many bytes of data they hold.

        Raises:
            CopyError: they hold more than `most_bytes`, or cannot be copied.
        """
        occupied = 0
        for name, source in parts.items():
            target = self.folder(checkpoint_id) / name
            occupied += await self._copier.copy(source, target, most_bytes - occupied, stop)
        return occupied

    async def drop(self, checkpoint_id: str) -> None:
        """Delete the files of a checkpoint."""
        await asyncio.to_thread(remove_tree, self.folder(checkpoint_id))

    async def drop_all_but(self, kept: Container[str]) -> None:
        """Delete the files of every checkpoint that is not among these."""
        await asyncio.to_thread(self._drop_all_but, kept)

    def _drop_all_but(self, kept: Container[str]) -> None:
        if self._root.is_dir():
            for folder in self._root.iterdir():
                if folder.name not in kept:
                    remove_tree(folder)
