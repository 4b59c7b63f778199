"""Resizing a Slurm deployment: what its errors mean, and when it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from prime_compute.errors import (
    SlurmNotRunningError,
    SlurmResizeUnverifiedError,
    SlurmUnavailableError,
    SlurmWaitTimeoutError,
)
from prime_compute.models.slurm import SlurmCluster, SlurmResize, SlurmStatus
from prime_core.errors import ServerError, rebuilt
from prime_core.polling import PollSchedule, PollTimeout

__all__ = ["SlurmSchedule", "rows_of", "told_apart", "wait_until_resized"]

# The documented pace of looks, in seconds.
PAUSE = 5.0

_OVER = frozenset(
    {
        SlurmStatus.TERMINATING,
        SlurmStatus.COMPLETED,
        SlurmStatus.FAILED,
        SlurmStatus.STOPPED,
        SlurmStatus.TOMBSTONED,
    }
)

SlurmSchedule = PollSchedule[str, Mapping[str, SlurmCluster]]


def rows_of(clusters: Iterable[SlurmCluster]) -> dict[str, SlurmCluster]:
    """Deployments by their ids."""
    return {cluster.id: cluster for cluster in clusters}


@contextmanager
def told_apart() -> Iterator[None]:
    """Tells the two server errors of a resize apart: only one of them may be tried again."""
    try:
        yield
    except ServerError as error:
        if error.status_code == 502:
            raise rebuilt(SlurmResizeUnverifiedError, error) from error.__cause__
        if error.status_code == 503:
            raise rebuilt(SlurmUnavailableError, error) from error.__cause__
        raise


async def wait_until_resized(
    schedule: SlurmSchedule,
    team_id: str,
    before: SlurmCluster,
    resize: SlurmResize,
    timeout: float,
) -> SlurmCluster:
    """Waits until a deployment's GPUs are those of its nodes.

    Raises:
        SlurmNotRunningError: it has ended.
        SlurmWaitTimeoutError: not in time.
        ValueError: the row is not of this resize.
    """
    nodes_before = resize.num_nodes - len(resize.added) + len(resize.removed)
    if nodes_before < 1 or before.gpu_count < 1:
        raise ValueError("before is the deployment's row from before the resize")
    last: list[SlurmCluster] = []

    def settled(rows: Mapping[str, SlurmCluster]) -> bool:
        row = rows.get(before.id)
        if row is None:
            raise SlurmNotRunningError(before.id, "is not listed any more")
        if row.status in _OVER:
            raise SlurmNotRunningError(before.id, f"has ended ({row.status})", status=row.status)
        last[:] = [row]
        return row.gpu_count * nodes_before == resize.num_nodes * before.gpu_count

    deadline = asyncio.get_running_loop().time() + timeout
    try:
        rows = await schedule.wait(team_id, settled, deadline, interval=PAUSE, longest=PAUSE)
    except PollTimeout as late:
        seen = f"{last[0].gpu_count} GPUs" if last else "nothing"
        raise SlurmWaitTimeoutError(
            before.id,
            f"was not resized within {timeout:g} s (last seen: {seen})",
            status=last[0].status if last else None,
        ) from late.last_error
    return rows[before.id]
