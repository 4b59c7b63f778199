"""Evaluations, training runs and their environments: recorded here, or simulated."""

from __future__ import annotations

from prime_local.clock import PlatformClock
from prime_local.environments.files import ARTIFACTS, CONTENTS
from prime_local.environments.registry import KIND as ENVIRONMENTS
from prime_local.environments.registry import EnvironmentRegistry
from prime_local.environments.values import VALUES
from prime_local.evaluations.hosted import HostedEvaluations
from prime_local.evaluations.registry import KIND as EVALUATIONS
from prime_local.evaluations.registry import SAMPLES, EvaluationRegistry
from prime_local.identifiers import Identifiers
from prime_local.ledger import Tally
from prime_local.rentals import Rentals
from prime_local.storage import Objects, Storage
from prime_local.training.capacity.offers import TrainingCapacity
from prime_local.training.external import KIND as RUNS
from prime_local.training.external import METRICS, ExternalRunRegistry
from prime_local.training.runs.conductor import KIND as HOSTED_RUNS
from prime_local.training.runs.conductor import RunConductor
from prime_local.training.runs.registry import RunPace, RunRegistry
from prime_local.training.sample_files import KIND as SAMPLE_FILES
from prime_local.training.sample_files import SampleFiles
from prime_local.training.volumes.registry import TrainingVolumes

# Under which the only user there is owns environments.
_USER_SLUG = "local-user"


class Recording:
    """The registries of all that, since the last reset.

    Args:
        clock: dates what happens.
        identifiers: makes ids.
        storage: keeps all of it.
        user_id: the only user there is.
        team_id: the team that has GPUs of its own.
        rentals: what hosted evaluations and runs are paid by.
        volumes: what hosted runs mount.
        rollout_time: seconds that each rollout of hosted evaluations takes.
        pace: how fast hosted runs are.
        tally: counts hosted runs.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        user_id: str,
        team_id: str,
        rentals: Rentals,
        volumes: TrainingVolumes,
        rollout_time: float,
        pace: RunPace,
        tally: Tally,
    ) -> None:
        wallets = rentals.wallets
        self.environments = EnvironmentRegistry(clock, identifiers, storage, _USER_SLUG)
        self.evaluations = EvaluationRegistry(clock, identifiers, storage, self.environments)
        self.hosted = HostedEvaluations(clock, identifiers, self.evaluations, wallets, rollout_time)
        self.capacity = TrainingCapacity(clock, team_id)
        self.external_runs = ExternalRunRegistry(clock, identifiers, storage, user_id)
        self.sample_files = SampleFiles(clock, identifiers, storage)
        conductor = RunConductor(clock, storage, wallets, self.capacity, volumes, tally)
        self.runs = RunRegistry(
            identifiers,
            conductor,
            self.capacity,
            volumes,
            pace,
            lambda slug: bool(self.environments.ids_of(slug)),
        )
        rentals.runs.title = self.runs.title

    def take_over(self, objects: Objects) -> None:
        """Take over what an earlier platform kept."""

        def kept(kind: str) -> list[dict[str, object]]:
            return [dict(row) for row in objects.get(kind, {}).values()]

        self.environments.take_over(kept(ENVIRONMENTS))
        self.environments.files.take_over(kept(ARTIFACTS), kept(CONTENTS))
        self.environments.values.take_over(kept(VALUES))
        self.evaluations.take_over(kept(EVALUATIONS), kept(SAMPLES))
        self.hosted.take_over()
        self.external_runs.take_over(kept(RUNS), kept(METRICS))
        self.sample_files.take_over(kept(SAMPLE_FILES))
        self.runs.take_over(kept(HOSTED_RUNS))

    def clear(self) -> None:
        """Stop what is at work."""
        self.hosted.clear()
        self.runs.clear()

    async def close(self) -> None:
        """Stop what is at work, and wait until it has."""
        self.clear()
        await self.runs.close()
