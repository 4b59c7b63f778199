"""All evaluations of a platform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.environments.registry import EnvironmentRegistry
from prime_local.errors import PlatformError
from prime_local.evaluations.record import DESCRIPTION, Evaluation, Status
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import Owner, wire_date
from prime_local.storage import Storage

KIND = "evaluation"
SAMPLES = "evaluation_samples"
_DASHBOARD = "https://app.primeintellect.ai/dashboard/evaluations"


class EvaluationRegistry:
    """Every evaluation since the last reset.

    Args:
        clock: dates what happens.
        identifiers: makes ids.
        storage: keeps evaluations and their samples.
        environments: what can be evaluated.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        environments: EnvironmentRegistry,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._environments = environments
        self._evaluations: dict[str, Evaluation] = {}
        self._samples: dict[str, list[JsonObject]] = {}

    def take_over(
        self, evaluations: Iterable[Mapping[str, Any]], samples: Iterable[Mapping[str, Any]]
    ) -> None:
        """Take over what an earlier platform kept."""
        for row in evaluations:
            evaluation = Evaluation.from_row(dict(row))
            self._evaluations[evaluation.id] = evaluation
            self._samples[evaluation.id] = []
        for row in samples:
            self._samples[row["evaluation_id"]] += row["samples"]

    def all(self) -> Iterable[Evaluation]:
        """Return every evaluation, oldest first."""
        return list(self._evaluations.values())

    def select(self, owner: Owner, asked: JsonObject) -> list[Evaluation]:
        """Return the evaluations of a scope, newest first.

        Args:
            owner: the scope.
            asked: the query of a list.
        """
        wanted: list[Callable[[Evaluation], bool]] = [lambda each: each.team_id == owner.team_id]
        if (environment_id := asked.get("environment_id")) is not None:
            wanted.append(lambda each: environment_id in [env["id"] for env in each.environments])
        if (name := asked.get("environment_name")) is not None:
            ids = self._environments.ids_of(name)
            wanted.append(lambda each: bool(ids & {env["id"] for env in each.environments}))
        if (suite_id := asked.get("suite_id")) is not None:
            wanted.append(lambda each: each.suite_id == suite_id)
        found = [each for each in self.all() if all(fits(each) for fits in wanted)]
        return found[::-1]

    def known_environment(self, environment_id: str) -> None:
        """Check that an environment can be evaluated.

        Raises:
            PlatformError: 404.
        """
        self._environments.by_id(environment_id)

    def delete(self, evaluation: Evaluation) -> None:
        """Delete an evaluation and its samples."""
        del self._evaluations[evaluation.id], self._samples[evaluation.id]
        for push in range(1, evaluation.pushes + 1):
            self._storage.save_object(SAMPLES, f"{evaluation.id}/{push}", None)
        self._storage.save_object(KIND, evaluation.id, None)

    def create(self, asked: JsonObject, owner: Owner) -> Evaluation:
        """Create an evaluation.

        Args:
            asked: a `CreateEvaluationRequest` of the contract.
            owner: whose it is.

        Raises:
            PlatformError: 400 or 404.
        """
        if not (asked.get("environments") or asked.get("run_id") or asked.get("suite_id")):
            raise PlatformError(400, "One of environments, run_id and suite_id is needed")
        found = [self._environments.by_id(each["id"]) for each in asked.get("environments") or ()]
        now = self._now()
        evaluation = Evaluation(
            self._identifiers.make("c", 24),
            owner.user_id,
            owner.team_id,
            {name: asked.get(name, value) for name, value in DESCRIPTION.items()},
            [{"id": each.id, "name": each.name} for each in found],
            asked.get("suite_id"),
            asked.get("run_id"),
            created_at=now,
            updated_at=now,
        )
        self._evaluations[evaluation.id] = evaluation
        self._samples[evaluation.id] = []
        self.save(evaluation)
        return evaluation

    def get(self, evaluation_id: str) -> Evaluation:
        """Return an evaluation.

        Raises:
            PlatformError: 404.
        """
        found = self._evaluations.get(evaluation_id)
        if found is None:
            raise PlatformError(404, "Evaluation not found")
        return found

    def samples(self, evaluation: Evaluation) -> list[JsonObject]:
        """Return its samples, in the order in which they came."""
        return self._samples[evaluation.id]

    def update(self, evaluation: Evaluation, asked: JsonObject) -> None:
        """Change what is said about an evaluation, or close it.

        Args:
            evaluation: the evaluation.
            asked: an `UpdateEvaluationRequest` of the contract.

        Raises:
            PlatformError: 409 when it is to be closed and is already.
        """
        if "status" in asked:
            self._close(evaluation, Status(asked["status"]))
            evaluation.error_message = asked.get("error_message")
        evaluation.described |= {name: asked[name] for name in DESCRIPTION if name in asked}
        self.save(evaluation)

    def push(self, evaluation: Evaluation, samples: list[JsonObject]) -> None:
        """Append samples; the first ones make the evaluation run.

        Raises:
            PlatformError: 409 when it is closed.
        """
        if evaluation.closed:
            raise PlatformError(409, f"The evaluation is {evaluation.status.value}")
        if evaluation.status is Status.PENDING:
            evaluation.status, evaluation.started_at = Status.RUNNING, self._now()
        evaluation.count(samples)
        self._samples[evaluation.id] += samples
        row = {"evaluation_id": evaluation.id, "samples": samples}
        self._storage.save_object(SAMPLES, f"{evaluation.id}/{evaluation.pushes}", row)
        self.save(evaluation)

    def finalize(self, evaluation: Evaluation, metrics: JsonObject | None) -> None:
        """Complete an evaluation.

        Raises:
            PlatformError: 409 when it is closed.
        """
        self._close(evaluation, Status.COMPLETED)
        if metrics is not None:
            evaluation.described["metrics"] = metrics
        self.save(evaluation)

    def begin_hosted(self, evaluation: Evaluation) -> None:
        """Let an evaluation that the platform runs begin."""
        evaluation.status, evaluation.started_at = Status.RUNNING, self._now()
        self.save(evaluation)

    def end_hosted(self, evaluation: Evaluation, status: Status, reason: str | None) -> None:
        """Note the end of an evaluation that the platform ran."""
        self._close(evaluation, status)
        evaluation.error_message = None if status is Status.CANCELLED else reason
        self.save(evaluation)

    def viewer_url(self, evaluation: Evaluation) -> str:
        """Return the address that it would have on the dashboard."""
        return f"{_DASHBOARD}/{evaluation.id}"

    def _close(self, evaluation: Evaluation, status: Status) -> None:
        if evaluation.closed:
            raise PlatformError(409, f"The evaluation is {evaluation.status.value} already")
        evaluation.status = status
        evaluation.completed_at = self._now()

    def save(self, evaluation: Evaluation) -> None:
        """Keep an evaluation that has changed."""
        evaluation.updated_at = self._now()
        self._storage.save_object(KIND, evaluation.id, evaluation.to_row())

    def _now(self) -> str:
        return wire_date(self._clock.date())
