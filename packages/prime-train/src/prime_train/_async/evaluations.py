"""Evaluations that are run anywhere and kept on the platform."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Literal

from prime_core.errors import APIError
from prime_core.sync import in_thread
from prime_train._async.evaluation_life import AsyncEvaluationLife, EnvironmentLike
from prime_train.evaluation_results import read_results
from prime_train.models.evaluations import FINAL_EVALUATION_STATUSES, FinalizedEvaluation
from prime_train.sample_pushing import SampleProgress

__all__ = ["AsyncEvaluations"]

# Seconds that closing an evaluation may take once its push has failed.
CLOSE_PATIENCE = 15.0


class AsyncEvaluations(AsyncEvaluationLife):
    """Creates, fills, reads, changes and deletes evaluations. Made by `AsyncTrainClient`.

    Follows the documented pages "api-reference/evals".

    Args:
        client: the connections.
    """

    async def evaluate_and_push(
        self,
        folder: str | os.PathLike[str],
        *,
        environment: EnvironmentLike | None = None,
        name: str | None = None,
        tags: Sequence[str] = (),
        is_public: bool = False,
        team_id: str | None = None,
        progress_callback: SampleProgress | None = None,
    ) -> FinalizedEvaluation:
        """Pushes the results that verifiers saved: creates an evaluation, fills and completes it.

        When something fails, or is cancelled, the evaluation is closed with the reason.

        Follows the documented page "tutorials-environments/evaluating".

        Args:
            folder: with ``results.jsonl`` and ``metadata.json`` (``vf-eval -s``), or with the
                ``traces.jsonl`` of verifiers v1, of which each trace becomes a sample.
            environment: as for `create`; by default what the results name. Give the slug of the
                hub's environment where they name it by a short name.
            name: of the evaluation; by default environment and model.
            tags: as for `create`.
            is_public: as for `create`.
            team_id: as for `create`.
            progress_callback: as for `push_samples`.

        Raises:
            FileNotFoundError: the folder holds no results.
            ValueError: they can't be read, or name no environment.
            PushSamplesError: not all samples are stored; the evaluation is closed as FAILED.
            APIError: any other failure.
        """
        results = await in_thread(read_results)(folder)
        about = environment or results.environment
        if about is None:
            raise ValueError("environment: the results name none; pass its slug")
        label = results.environment or (about if isinstance(about, str) else "evaluation")
        created = await self.create(
            name or " ".join(filter(None, (label, results.model_name))),
            environments=[about],
            model_name=results.model_name,
            framework="verifiers",
            metadata=results.metadata or None,
            metrics=results.metrics,
            tags=tags,
            is_public=is_public,
            team_id=team_id,
        )
        evaluation_id = created.evaluation_id
        try:
            await self.push_samples(
                evaluation_id, results.samples(), progress_callback=progress_callback
            )
            return await self.finalize(evaluation_id, metrics=results.metrics)
        except BaseException as error:
            await self._close_for(evaluation_id, error)
            raise

    async def _close_for(self, evaluation_id: str, error: BaseException) -> None:
        """Closes an evaluation that failed; its own failure must not hide the first one."""
        status: Literal["FAILED", "CANCELLED"] = (
            "FAILED" if isinstance(error, Exception) else "CANCELLED"
        )
        closing = asyncio.ensure_future(self._close_quietly(evaluation_id, status, str(error)))
        await asyncio.wait([closing], timeout=CLOSE_PATIENCE)
        closing.cancel()

    async def _close_quietly(
        self, evaluation_id: str, status: Literal["FAILED", "CANCELLED"], reason: str
    ) -> None:
        try:
            if (await self.get(evaluation_id)).status not in FINAL_EVALUATION_STATUSES:
                await self.close(evaluation_id, status, reason or None)
        except APIError:
            pass
