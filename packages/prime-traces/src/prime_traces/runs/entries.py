"""A run's entry at the platform: made, given its figures, and closed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from prime_core.decoding import JSONObject
from prime_core.errors import APIError, ConflictError, ForbiddenError
from prime_core.operations import Operation
from prime_traces.runs.control import ControlPlane
from prime_traces.runs.descriptions import EnvironmentRef
from prime_traces.runs.errors import EnvironmentResolutionError
from prime_traces.runs.operations import (
    CREATE_EVALUATION,
    CREATE_EXTERNAL_RUN,
    FINALIZE_EVALUATION,
    FINALIZE_EXTERNAL_RUN,
    GET_ENVIRONMENT,
    GET_EVALUATION,
    GET_TRAINING_RUN,
    LOG_EXTERNAL_RUN_METRICS,
    RESOLVE_ENVIRONMENT,
    SET_EXTERNAL_RUN_STATUS,
    UPDATE_EVALUATION,
)
from prime_traces.runs.parcels import Parcel
from prime_traces.runs.settings import RunSettings

__all__ = ["EPISODES_WRITTEN", "Entry", "EvaluationEntry", "Status", "TrainingEntry"]

Status = Literal["running", "completed", "failed", "cancelled", "crashed"]

EPISODES_WRITTEN = "prime_runs.traces_episodes_written"
MAX_REASON_CHARACTERS = 4096
# Evaluations whose end has been reported, or has come without.
CLOSED = frozenset({"PROCESSING", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"})


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Attributes:
        status: a terminal one.
        reason: what went wrong; None where nothing did.
        summary: the run's final figures.
        episodes_written: episodes that the traces service has.
    """

    status: Status
    reason: str | None
    summary: Mapping[str, Any]
    episodes_written: int

    @property
    def message(self) -> str:
        """What the platform is told of an end that is no success."""
        text = self.reason or self.status
        if self.status in ("cancelled", "crashed") and self.reason:
            text = f"{self.status}: {self.reason}"
        return text[:MAX_REASON_CHARACTERS]


class Entry(Protocol):
    """What the two kinds of run have in common."""

    id: str
    name: str | None
    url: str | None
    repeatable: bool

    async def create(self) -> None:
        """Makes the entry, or finds the one that the run is attached to."""

    async def send(self, parcel: Parcel) -> None:
        """Sends metrics."""

    async def close(self, ending: Ending) -> None:
        """Says how the run ended; done already is fine."""


class EvaluationEntry:
    """An evaluation: it has no steps, so that its metrics are the latest of each name."""

    repeatable = True

    def __init__(self, control: ControlPlane, settings: RunSettings) -> None:
        self._control = control
        self._settings = settings
        self._metrics: dict[str, Any] = {}
        self.id = settings.attached_id or ""
        self.name = settings.name
        self.url: str | None = _dashboard(settings, "evaluations", self.id)
        self._finalizing = False

    async def create(self) -> None:
        settings = self._settings
        if settings.attached:
            there = await self._read()
            self.name = self.name or there.get("name")
            self.url = there.get("viewer_url") or self.url
            return
        found = [await self._resolved(each) for each in settings.environments]
        self.name = settings.name or _default_name(settings)
        body = {
            "name": self.name,
            "environments": found,
            "tags": list(settings.tags),
            "model_name": settings.model,
            "framework": settings.framework,
            "description": settings.description,
            "metadata": settings.document() or None,
        }
        answer = await self._control.call(CREATE_EVALUATION, _stated(body))
        self.id = answer["evaluation_id"]
        self.name = answer.get("name") or self.name
        self.url = answer.get("viewer_url") or _dashboard(settings, "evaluations", self.id)

    async def _resolved(self, environment: EnvironmentRef) -> dict[str, str]:
        found = environment.id
        try:
            if found is None and environment.slug is not None:
                owner, _, name = environment.slug.partition("/")
                path = {"owner": owner, "name": name, "version": "latest"}
                found = _id_of(await self._control.call(GET_ENVIRONMENT, path=path))
            elif found is None:
                body = {"name": environment.name}
                found = _id_of(await self._control.call(RESOLVE_ENVIRONMENT, body))
        except (APIError, KeyError) as error:
            raise EnvironmentResolutionError(
                f"The environment {_named(environment)!r} can't be read from the Environments "
                f"Hub: {error}"
            ) from error
        return _stated({"id": found, "version_id": environment.version_id})

    async def send(self, parcel: Parcel) -> None:
        latest = dict(self._metrics)
        for line in parcel.lines:
            latest.update(json.loads(line))
        await self._update({"metrics": latest})
        self._metrics = latest

    async def close(self, ending: Ending) -> None:
        figures = {**self._metrics, **ending.summary}
        if ending.episodes_written:
            figures[EPISODES_WRITTEN] = ending.episodes_written
        try:
            if ending.status == "completed":
                await self._finalize(figures)
                return
            if ending.summary:
                await self._update({"metrics": figures})
            if not self._settings.attached:
                status = "CANCELLED" if ending.status == "cancelled" else "FAILED"
                await self._update({"status": status, "error_message": ending.message})
        except ConflictError:
            pass  # it has been closed

    async def _finalize(self, figures: Mapping[str, Any]) -> None:
        # What a first attempt came to is asked, since it is not to be done twice.
        if self._finalizing and (await self._read()).get("status") in CLOSED:
            return
        self._finalizing = True
        path = {"evaluation_id": self.id}
        await self._control.call(FINALIZE_EVALUATION, {"metrics": figures}, path=path)

    async def _read(self) -> JSONObject:
        return await _found(
            self._control, self._settings, GET_EVALUATION, {"evaluation_id": self.id}
        )

    async def _update(self, fields: Mapping[str, Any]) -> None:
        await self._control.call(UPDATE_EVALUATION, fields, path={"evaluation_id": self.id})


class TrainingEntry:
    """A training run that is executed elsewhere than on the platform."""

    repeatable = True

    def __init__(self, control: ControlPlane, settings: RunSettings) -> None:
        self._control = control
        self._settings = settings
        self.id = settings.attached_id or ""
        self.name = settings.name
        self.url: str | None = _dashboard(settings, "training", self.id)

    async def create(self) -> None:
        settings = self._settings
        if settings.attached:
            path = {"run_id": self.id}
            there = await _found(self._control, settings, GET_TRAINING_RUN, path)
            self.name = self.name or there.get("run", {}).get("name")
            return
        figures = settings.training
        body = {
            "base_model": settings.model,
            "max_steps": figures.max_steps,
            "environments": [
                _stated({"id": _named(each), "version_id": each.version_id})
                for each in settings.environments
            ],
            "name": settings.name,
            "batch_size": figures.batch_size,
            "rollouts_per_example": figures.rollouts_per_example,
            "seq_len": figures.seq_len,
            "run_config": settings.document() or None,
            "wandb_project": figures.wandb_project,
            "wandb_entity": figures.wandb_entity,
            "wandb_run_name": figures.wandb_run_name,
        }
        answer = await self._control.call(CREATE_EXTERNAL_RUN, _stated(body))
        self.id = answer["run"]["id"]
        self.name = answer["run"].get("name") or self.name
        self.url = _dashboard(settings, "training", self.id)

    async def send(self, parcel: Parcel) -> None:
        for line in parcel.lines:
            body = b'{"run_id":%b,"metrics":%b}' % (json.dumps(self.id).encode(), line.strip())
            await self._control.call(LOG_EXTERNAL_RUN_METRICS, body)

    async def close(self, ending: Ending) -> None:
        try:
            if ending.status == "completed":
                body = {"run_id": self.id, "exit_code": 0}
                await self._control.call(FINALIZE_EXTERNAL_RUN, body)
            elif not self._settings.attached:
                await self._control.call(
                    SET_EXTERNAL_RUN_STATUS,
                    {"status": "failed", "error_message": ending.message},
                    path={"run_id": self.id},
                )
        except ConflictError:
            pass  # it has been closed


async def _found(
    control: ControlPlane, settings: RunSettings, operation: Operation, path: Mapping[str, str]
) -> JSONObject:
    """What the platform says of a run; nothing where the key may write it but not read it."""
    if settings.internal:  # that root is for writing
        return {}
    try:
        return await control.call(operation, path=path)
    except ForbiddenError:
        return {}


def _id_of(answer: Mapping[str, Any]) -> str:
    """The id of an environment; older servers don't wrap it in ``data``."""
    found: str = answer.get("data", answer)["id"]
    return found


def _named(environment: EnvironmentRef) -> str:
    """How an environment was named, the surest way first."""
    return environment.id or environment.slug or environment.name or ""


def _stated(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _default_name(settings: RunSettings) -> str:
    parts = [_named(each).rpartition("/")[2] for each in settings.environments[:1]]
    if settings.model:
        parts.append(settings.model.rpartition("/")[2])
    return "-".join(parts)


def _dashboard(settings: RunSettings, area: str, run_id: str) -> str | None:
    return f"{settings.account.frontend_url}/dashboard/{area}/{run_id}" if run_id else None
