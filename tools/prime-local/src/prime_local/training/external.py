"""Training runs that are executed elsewhere and only recorded here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage

KIND = "external_run"
METRICS = "external_run_metrics"
_TERMINAL = ("COMPLETED", "FAILED")


@dataclass
class ExternalRun:
    """A run; dates are in their wire form.

    Args:
        asked: the `CreateExternalRunRequest` of the contract that made it.
    """

    id: str
    user_id: str
    asked: JsonObject
    created_at: str
    updated_at: str
    status: str = "RUNNING"
    error_message: str | None = None
    completed_at: str | None = None

    def to_wire(self) -> JsonObject:
        """Return the `Run` object of the contract."""
        asked = self.asked
        return {
            "id": self.id,
            "name": asked.get("name"),
            "userId": self.user_id,
            "teamId": asked["team_id"],
            "status": self.status,
            "kind": "EXTERNAL",
            "baseModel": asked["base_model"],
            "environments": asked["environments"],
            "maxSteps": asked["max_steps"],
            "batchSize": asked.get("batch_size"),
            "rolloutsPerExample": asked.get("rollouts_per_example"),
            "seqLen": asked.get("seq_len"),
            "runConfig": asked.get("run_config"),
            "wandbProject": asked.get("wandb_project"),
            "wandbEntity": asked.get("wandb_entity"),
            "wandbRunName": asked.get("wandb_run_name"),
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
            "startedAt": self.created_at,
            "completedAt": self.completed_at,
            "errorMessage": self.error_message,
        }


class ExternalRunRegistry:
    """Every external run since the last reset.

    Args:
        clock: dates what happens.
        identifiers: makes ids.
        storage: keeps the runs.
        user_id: the caller.
    """

    def __init__(
        self, clock: PlatformClock, identifiers: Identifiers, storage: Storage, user_id: str
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._user_id = user_id
        self._runs: dict[str, ExternalRun] = {}
        self._metrics: dict[str, list[JsonObject]] = {}
        # The place of a step's row, by run and step.
        self._places: dict[tuple[str, object], int] = {}

    def take_over(
        self, runs: Iterable[Mapping[str, Any]], metrics: Iterable[Mapping[str, Any]]
    ) -> None:
        """Take over what an earlier platform kept."""
        for row in runs:
            run = ExternalRun(**row)
            self._runs[run.id] = run
            self._metrics[run.id] = []
        for row in metrics:
            self._row(row["run_id"], row["metrics"])

    def create(self, asked: JsonObject) -> ExternalRun:
        """Register a run, which is RUNNING from then on."""
        now = wire_date(self._clock.date())
        run = ExternalRun(self._identifiers.make("", 24), self._user_id, asked, now, now)
        self._runs[run.id] = run
        self._metrics[run.id] = []
        self._save(run)
        return run

    def metrics(self, run: ExternalRun) -> list[JsonObject]:
        """Return a row for each step that was logged."""
        return self._metrics[run.id]

    def select(self, team_id: str | None) -> list[ExternalRun]:
        """Return the runs of a team, newest first; a person has none."""
        runs = reversed(self._runs.values())
        return [run for run in runs if run.asked["team_id"] == team_id]

    def get(self, run_id: str) -> ExternalRun:
        """Return a run.

        Raises:
            PlatformError: 404.
        """
        found = self._runs.get(run_id)
        if found is None:
            raise PlatformError(404, "Run not found")
        return found

    def delete(self, run: ExternalRun) -> None:
        """Forget a run with its metrics."""
        for place in range(len(self._metrics.pop(run.id))):
            self._storage.save_object(METRICS, f"{run.id}/{place}", None)
        self._places = {key: each for key, each in self._places.items() if key[0] != run.id}
        del self._runs[run.id]
        self._storage.save_object(KIND, run.id, None)

    def close(self, run: ExternalRun, status: str, error_message: str | None = None) -> None:
        """End a run.

        Raises:
            PlatformError: 409 when it has ended.
        """
        if run.status in _TERMINAL:
            raise PlatformError(409, f"The run is {run.status} already")
        run.status, run.error_message = status.upper(), error_message
        run.completed_at = wire_date(self._clock.date())
        self._save(run)

    def finalize(self, run: ExternalRun, exit_code: int) -> None:
        """End a run by the exit code of its process; one that has ended stays as it is."""
        if run.status not in _TERMINAL:
            reason = f"Exit code {exit_code}" if exit_code else None
            self.close(run, "failed" if exit_code else "completed", reason)

    def log(self, run: ExternalRun, metrics: JsonObject) -> None:
        """Store metrics; those of a step that is known already join its row."""
        place = self._row(run.id, metrics)
        row = {"run_id": run.id, "metrics": self._metrics[run.id][place]}
        self._storage.save_object(METRICS, f"{run.id}/{place}", row)
        self._save(run)

    def _row(self, run_id: str, metrics: JsonObject) -> int:
        """Put metrics into their row and return its place."""
        rows, step = self._metrics[run_id], metrics.get("step")
        place = len(rows)
        if step is not None:
            place = self._places.setdefault((run_id, step), place)
        if place == len(rows):
            rows.append({})
        rows[place].update(metrics)
        return place

    def _save(self, run: ExternalRun) -> None:
        run.updated_at = wire_date(self._clock.date())
        self._storage.save_object(KIND, run.id, asdict(run))
