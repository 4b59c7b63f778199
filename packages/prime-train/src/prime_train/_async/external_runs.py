"""Training runs that are executed elsewhere and recorded on the platform."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from prime_core._async.resource import AsyncResource
from prime_core.arguments import build, check_id, team_of
from prime_core.contents import upload_of
from prime_core.creation import create_unkeyed
from prime_core.errors import ConflictError
from prime_core.marks import carries, marked, new_mark
from prime_core.models import encode_request
from prime_core.presigned import put_file
from prime_core.sync import in_thread
from prime_train.external_records import PARQUET, check_metrics, check_parquet, check_step
from prime_train.models.external_runs import (
    ConfirmSamplesBody,
    CreateExternalRunBody,
    ExternalRun,
    ExternalRunEnvelope,
    ExternalRunEnvironment,
    ExternalRunPage,
    FinalizeExternalRunBody,
    LogExternalRunMetricsBody,
    PresignSamplesBody,
    SamplesTicket,
    SetExternalRunStatusBody,
)
from prime_train.operations import (
    CONFIRM_EXTERNAL_RUN_SAMPLES,
    CREATE_EXTERNAL_RUN,
    FINALIZE_EXTERNAL_RUN,
    LIST_TRAINING_RUNS,
    LOG_EXTERNAL_RUN_METRICS,
    PRESIGN_EXTERNAL_RUN_SAMPLES,
    SET_EXTERNAL_RUN_STATUS,
)

__all__ = ["AsyncExternalRuns", "ExternalEnvironmentLike"]

# How many of the newest runs a create without an answer is looked for among.
LOOKED_AT = 100

ExternalEnvironmentLike: TypeAlias = "str | ExternalRunEnvironment | Mapping[str, str]"


class AsyncExternalRuns(AsyncResource):
    """Records training runs that are executed elsewhere. Made by `AsyncTrainClient`.

    They belong to a team, which must be enabled for them; recording them costs nothing. For a
    training loop, `prime_traces.runs` sends metrics and traces in the background.

    Args:
        client: the connections.
    """

    async def create(
        self,
        base_model: str,
        environments: Sequence[ExternalEnvironmentLike] = (),
        *,
        name: str | None = None,
        max_steps: int | None = None,
        batch_size: int | None = None,
        rollouts_per_example: int | None = None,
        seq_len: int | None = None,
        run_config: Mapping[str, Any] | None = None,
        wandb_project: str | None = None,
        wandb_entity: str | None = None,
        wandb_run_name: str | None = None,
        team_id: str | None = None,
    ) -> ExternalRun:
        """Registers a run, which counts as running from then on.

        It is sent once, under a name with a mark such as ``-3f9a2c41d0``, by which the run is
        found when the answer is lost. When the caller is cancelled meanwhile, or the program
        ends, what was registered is closed as failed.

        Args:
            base_model: the model that is trained.
            environments: what it trains on, each by its name on the hub (``owner/name`` or a bare
                one), as a mapping with ``id`` and ``version_id``, or as an
                `ExternalRunEnvironment`.
            name: what to call it; the mark is added.
            max_steps: steps that it takes, at least 0; None for not known.
            batch_size: rollouts a step, at least 1.
            rollouts_per_example: at least 1.
            seq_len: tokens, at least 1.
            run_config: a JSON object of your own.
            wandb_project: where it is on Weights & Biases.
            wandb_entity: likewise.
            wandb_run_name: likewise.
            team_id: the owning team; None takes the client's.

        Raises:
            ConfigurationError: there is no team.
            ForbiddenError: the team is not enabled for external runs.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        team = team_of(self._transport.config, team_id)
        if isinstance(environments, (str, Mapping)):
            raise ValueError("environments is a list, not a single one")
        mark = new_mark()
        fields = {
            "base_model": base_model,
            "max_steps": 0 if max_steps is None else max_steps,
            "environments": [
                {"id": each} if isinstance(each, str) else each for each in environments
            ],
            "name": marked(name, mark, "run"),
            "batch_size": batch_size,
            "rollouts_per_example": rollouts_per_example,
            "seq_len": seq_len,
            "run_config": run_config,
            "wandb_project": wandb_project,
            "wandb_entity": wandb_entity,
            "wandb_run_name": wandb_run_name,
        }
        stated = {field: value for field, value in fields.items() if value is not None}
        body = build(CreateExternalRunBody, stated)

        async def find() -> list[ExternalRunEnvelope]:
            query = {"page": 1, "limit": LOOKED_AT}
            page = await self._transport.request(
                LIST_TRAINING_RUNS, ExternalRunPage, query=query, team=team
            )
            return [ExternalRunEnvelope(run=run) for run in page.runs if carries(run.name, mark)]

        made = await create_unkeyed(
            self._transport,
            CREATE_EXTERNAL_RUN,
            ExternalRunEnvelope,
            body=encode_request(body),
            team=team,
            description=f"External run {body.name!r}",
            discard=self._discard,
            find=find,
        )
        return made.run

    async def _discard(self, made: ExternalRunEnvelope) -> None:
        await self.set_status(made.run.id, "failed", "The program that registered it had ended.")

    async def set_status(
        self,
        run_id: str,
        status: Literal["completed", "failed"],
        error_message: str | None = None,
    ) -> None:
        """Closes a run; one that is closed already stays as it is, without an error.

        Args:
            run_id: the run.
            status: ``completed`` or ``failed``.
            error_message: why it failed.

        Raises:
            NotFoundError: there is no such run.
            BadRequestError: it is a hosted one.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        path = {"run_id": check_id("run_id", run_id)}
        body = build(SetExternalRunStatusBody, {"status": status, "error_message": error_message})
        try:
            await self._transport.request(
                SET_EXTERNAL_RUN_STATUS, path=path, body=encode_request(body)
            )
        except ConflictError:
            return  # it is closed

    async def finalize(self, run_id: str, exit_code: int = 0) -> None:
        """Closes a run by the exit code of its process; one that is closed stays as it is.

        Args:
            run_id: the run.
            exit_code: 0 for success.

        Raises:
            NotFoundError: there is no such run.
            APIError: any other failure.
        """
        fields = {"run_id": check_id("run_id", run_id), "exit_code": exit_code}
        body = build(FinalizeExternalRunBody, fields)
        await self._transport.request(FINALIZE_EXTERNAL_RUN, body=encode_request(body))

    async def log_metrics(self, run_id: str, metrics: Mapping[str, Any], *, step: int) -> None:
        """Stores metrics of a step; those of a step that is there join its row.

        Args:
            run_id: the run.
            metrics: single values by name, such as ``{"reward/all/mean": 0.41}``: numbers,
                booleans, text or None. ``_timestamp``, seconds since 1970, is now by default.
            step: the step, at least 0.

        Raises:
            ValueError: a value is not finite or no single one; nothing was sent.
            NotFoundError: there is no such run.
            APIError: any other failure.
        """
        body = LogExternalRunMetricsBody(
            run_id=check_id("run_id", run_id), metrics=check_metrics(metrics, step)
        )
        await self._transport.request(LOG_EXTERNAL_RUN_METRICS, body=encode_request(body))

    async def push_samples(
        self, run_id: str, step: int, parquet: str | os.PathLike[str] | bytes
    ) -> None:
        """Uploads the samples of a step, and confirms them; sent again they are replaced.

        The file goes to the storage that the platform names, in up to three tries, without the
        API key. This is not the trace storage: older samples were kept until 2026-11-06, and how
        long the platform goes on taking these is not documented.

        Args:
            run_id: the run.
            step: the step, at least 0; by custom every tenth has samples.
            parquet: path or content of a Parquet file, with the columns run_id, step, tag,
                problem_id, sample_id, prompt, completion, trajectory, answer, env_name, task,
                info, reward, advantage, metrics, timing, num_input_tokens, num_output_tokens
                and created_at.

        Raises:
            ValueError: it is no Parquet file; nothing was sent.
            OSError: it can't be read.
            NotFoundError: there is no such run.
            APIError: any other failure; nothing is confirmed.
        """
        number = check_step(step)
        ticket_body = PresignSamplesBody(run_id=check_id("run_id", run_id), step=number)
        await in_thread(check_parquet)(parquet)
        ticket = await self._transport.request(
            PRESIGN_EXTERNAL_RUN_SAMPLES, SamplesTicket, body=encode_request(ticket_body)
        )
        upload = await upload_of(parquet)
        await put_file(self._transport, ticket.url, upload, content_type=PARQUET)
        body = ConfirmSamplesBody(run_id=run_id, step=number, s3_key=ticket.s3_key)
        await self._transport.request(CONFIRM_EXTERNAL_RUN_SAMPLES, body=encode_request(body))
