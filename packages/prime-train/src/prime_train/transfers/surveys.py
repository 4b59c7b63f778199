"""What is on a volume, as far as a transfer must know before it begins."""

from __future__ import annotations

from collections.abc import Sequence

from prime_core.concurrency import run_each
from prime_train.transfers.paths import RUNS, VolumePath, ancestors
from prime_train.transfers.planning import Source, UploadPlan, check_clashes, plan_upload
from prime_train.transfers.store import StoredObject, VolumeStore

__all__ = ["lone_object", "plan_put", "readable_root", "stored_under"]

LOOKS_AT_ONCE = 8


async def plan_put(store: VolumeStore, source: Source, target: VolumePath) -> UploadPlan:
    """Decides where a source goes, knowing what is on the volume."""
    is_folder = False
    if not source.is_folder and not target.inside:
        is_folder = await store.first(f"{target}/") is not None
    plan = plan_upload(source, target, target_is_folder=is_folder, prefix=store.prefix)
    stored: list[str] = []
    above: set[str] = set()
    for place in plan.looked_at:
        above.update((*ancestors(place), place))
        stored += [found.key async for found in store.list(f"{place}/")]

    async def look(key: str) -> None:
        if await store.find(key) is not None:
            stored.append(key)

    await run_each(look, above, limit=LOOKS_AT_ONCE)
    check_clashes((upload.key for upload in plan.uploads), stored)
    return plan


def readable_root(path: VolumePath) -> str:
    """What to ask for keys to: outputs of runs can be read while a session has the rest."""
    return f"{RUNS}/" if path.parts[:1] == (RUNS,) else ""


async def lone_object(store: VolumeStore, path: VolumePath) -> StoredObject | None:
    """The object of a path that may be a file's."""
    if path.inside or path.parts == (RUNS,):
        return None
    return await store.find("/".join(path.parts))


async def stored_under(store: VolumeStore, source: VolumePath) -> Sequence[StoredObject]:
    """The object of a path, and all that is in its folder."""
    text = "/".join(source.parts)
    lone = await lone_object(store, source)
    inside = [found async for found in store.list(f"{text}/" if text else "")]
    return inside if lone is None else [lone, *inside]
