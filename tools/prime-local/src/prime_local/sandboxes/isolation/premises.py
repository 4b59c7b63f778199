"""What a platform has on this machine: a folder, a lease, threads, and a way to isolate."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

from prime_local.sandboxes.copying import Copier
from prime_local.sandboxes.isolation.base import Isolation, WantedMode
from prime_local.sandboxes.isolation.choosing import Place, choose, plan_groups
from prime_local.sandboxes.isolation.filling import Filler
from prime_local.sandboxes.isolation.leases import Belongings, Lease, sweep
from prime_local.sandboxes.removal import remove_tree
from prime_local.sandboxes.trees import TreeKiller
from prime_local.tasks import TaskSet

# Unlike /tmp it is never in memory, where a sandbox's files would cost its memory.
_ON_DISK = Path("/var/tmp")


class Premises:
    """Everything of a platform that must not outlive it; see `open`.

    Args:
        place: where it is.
        copier: copies files of sandboxes.
        isolation: how sandboxes are made there.
        rest: gives everything back.
    """

    def __init__(
        self, place: Place, copier: Copier, isolation: Isolation, rest: AsyncExitStack
    ) -> None:
        self.instance = place.instance
        self.root = place.root
        self.trees = place.trees
        self.copier = copier
        self.isolation = isolation
        self._rest = rest

    @classmethod
    async def open(cls, wanted: WantedMode, data_dir: Path | None, tasks: TaskSet) -> Premises:
        """Clean up after platforms that died, and set up a new one.

        Args:
            wanted: the isolation mode.
            data_dir: folder to keep the sandboxes' files in; None for a temporary one.
            tasks: for work in the background.

        Raises:
            IsolationError: the mode does not work here.
            OSError: the folder cannot be used.
        """
        # The names of a seeded platform repeat; the mark on its processes must not.
        instance = secrets.token_hex(8)
        groups = plan_groups(wanted, instance)
        await asyncio.to_thread(sweep)
        rest = AsyncExitStack()
        try:
            root = await asyncio.to_thread(_make_root, data_dir, wanted)
            folders = tuple(map(str, groups.folders)) if groups is not None else ()
            if (lease := Lease.take(Belongings(instance, str(root), folders))) is not None:
                rest.callback(lease.release)
            rest.push_async_callback(asyncio.to_thread, remove_tree, root)
            executor = ThreadPoolExecutor(4, thread_name_prefix="prime-local")
            rest.callback(executor.shutdown, wait=False, cancel_futures=True)
            private = (root,) if data_dir is None else (root.parent, root)
            copier = Copier()
            rest.callback(copier.close)
            trees = TreeKiller(executor, tasks)
            place = Place(instance, root, private, groups, executor, trees, Filler(copier))
            isolation = await choose(wanted, place)
            rest.push_async_callback(isolation.close)
        except BaseException:
            await rest.aclose()
            raise
        return cls(place, copier, isolation, rest)

    async def close(self) -> None:
        """Give everything back; the sandboxes have ended."""
        await self._rest.aclose()


def _make_root(data_dir: Path | None, wanted: WantedMode) -> Path:
    folder = data_dir
    if data_dir is not None:
        data_dir.mkdir(parents=True, exist_ok=True)
    elif wanted != "process" and _ON_DISK.is_dir():
        folder = _ON_DISK
    # A folder of its own each time: a seeded platform's sandboxes have the names of the last.
    return Path(tempfile.mkdtemp(prefix="prime-local-", dir=folder)).absolute()
