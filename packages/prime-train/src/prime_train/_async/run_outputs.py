"""What training runs show: logs, metrics, samples, distributions, checkpoints."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator
from typing import Any

from prime_core.arguments import check_id
from prime_core.pagination import Page, iterate_pages
from prime_train._async.run_logs import AsyncRunLogs
from prime_train.models.run_outputs import (
    RunCheckpoint,
    RunCheckpointList,
    RunCheckpointStatus,
    RunDistribution,
    RunMetrics,
    RunProgress,
    RunSample,
    RunSamplePage,
)
from prime_train.operations import (
    GET_RUN_DISTRIBUTIONS,
    GET_RUN_METRICS,
    GET_RUN_PROGRESS,
    GET_RUN_SAMPLES,
    LIST_RUN_CHECKPOINTS,
)

__all__ = ["AsyncRunOutputs"]


class AsyncRunOutputs(AsyncRunLogs):
    """The part of `AsyncRuns` that reads what a run shows."""

    async def get_metrics(
        self,
        run_id: str,
        min_step: int | None = None,
        max_step: int | None = None,
        limit: int | None = None,
    ) -> builtins.list[dict[str, Any]]:
        """Reads the figures of a run, a flat record for each step.

        Follows the documented page "hosted-training/hosted-sft".

        Args:
            run_id: the run.
            min_step: the first step, included.
            max_step: the last step, included.
            limit: most records, at least 1.

        Returns:
            Records by names such as ``step``, ``reward/all/mean``, ``loss/mean`` and
            ``_timestamp``, in seconds since 1970; each run has its own.

        Raises:
            NotFoundError: there is no such run.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        query = {
            "min_step": _whole("min_step", min_step, least=0),
            "max_step": _whole("max_step", max_step, least=0),
            "limit": _whole("limit", limit, least=1),
        }
        if min_step is not None and max_step is not None and min_step > max_step:
            raise ValueError(f"min_step, {min_step}, is above max_step, {max_step}")
        found = await self._transport.request(GET_RUN_METRICS, RunMetrics, path=path, query=query)
        return found.metrics

    async def get_progress(self, run_id: str) -> RunProgress:
        """Reads how far a run is, and for which steps it has samples and distributions.

        Args:
            run_id: the run.

        Raises:
            NotFoundError: there is no such run.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        return await self._transport.request(GET_RUN_PROGRESS, RunProgress, path=path)

    async def get_samples(
        self, run_id: str, step: int, page: int = 1, limit: int = 100
    ) -> RunSamplePage:
        """Reads a page of the rollouts of a step; `iter_samples` reads all of them.

        The platform retires this storage on 2026-11-06; newer rollouts are traces.

        Args:
            run_id: the run.
            step: one of the steps that `get_progress` names.
            page: its number, from 1.
            limit: most rollouts of a page, at least 1.

        Raises:
            NotFoundError: there is no such run.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        query = {
            "step": _whole("step", step, least=0),
            "page": _whole("page", page, least=1),
            "limit": _whole("limit", limit, least=1),
        }
        return await self._transport.request(GET_RUN_SAMPLES, RunSamplePage, path=path, query=query)

    async def iter_samples(
        self, run_id: str, step: int, *, page_size: int = 100
    ) -> AsyncIterator[RunSample]:
        """Reads all rollouts of a step, page after page.

        Args:
            run_id: the run.
            step: one of the steps that `get_progress` names.
            page_size: most rollouts of a page, at least 1; they may be large.

        Raises:
            NotFoundError: there is no such run.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """

        async def fetch(number: int) -> Page[tuple[int, RunSample]]:
            page = await self.get_samples(run_id, step, number, page_size)
            # Those of a step are stored at once: their place tells them apart.
            placed = list(enumerate(page.samples, (number - 1) * page_size))
            last = page.total_pages
            return Page(placed, page.total, None if last is None else number < last)

        async for _, sample in iterate_pages(fetch, page_size, lambda placed: placed[0]):
            yield sample

    async def get_distributions(
        self, run_id: str, distribution_type: str | None = None, step: int | None = None
    ) -> RunDistribution:
        """Reads how the rewards, or the advantages, of a step are spread.

        Args:
            run_id: the run.
            distribution_type: of what, such as ``rewards`` or ``advantages``; the platform's
                choice by default.
            step: one of the steps that `get_progress` names; the latest by default.

        Raises:
            NotFoundError: there is no such run.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        kind = (
            None if distribution_type is None else check_id("distribution_type", distribution_type)
        )
        query = {"type": kind, "step": _whole("step", step, least=0)}
        return await self._transport.request(
            GET_RUN_DISTRIBUTIONS, RunDistribution, path=path, query=query
        )

    async def list_checkpoints(
        self, run_id: str, status_filter: RunCheckpointStatus | str | None = None
    ) -> builtins.list[RunCheckpoint]:
        """Reads which checkpoints a run has saved; the volume holds them.

        Follows the documented page "hosted-training/hosted-sft".

        Args:
            run_id: the run.
            status_filter: only those of this state: PENDING, UPLOADING, READY or FAILED.

        Raises:
            NotFoundError: there is no such run.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        query = {"status_filter": None if status_filter is None else _status(status_filter)}
        found = await self._transport.request(
            LIST_RUN_CHECKPOINTS, RunCheckpointList, path=path, query=query
        )
        return found.checkpoints


def _status(value: str) -> str:
    try:
        return str(RunCheckpointStatus(str(value).upper()))
    except ValueError:
        known = ", ".join(RunCheckpointStatus)
        raise ValueError(f"status_filter is one of {known}, not {value!r}") from None


def _whole(name: str, value: int | None, *, least: int) -> int | None:
    if value is not None and (type(value) is not int or value < least):
        raise ValueError(f"{name} is a whole number of at least {least}, not {value!r}")
    return value
