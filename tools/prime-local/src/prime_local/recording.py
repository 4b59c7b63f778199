"""What runs elsewhere and is recorded here: evaluations, training runs, and their environments."""

from __future__ import annotations

from prime_local.clock import PlatformClock
from prime_local.environments.registry import KIND as ENVIRONMENTS
from prime_local.environments.registry import EnvironmentRegistry
from prime_local.evaluations.registry import KIND as EVALUATIONS
from prime_local.evaluations.registry import SAMPLES, EvaluationRegistry
from prime_local.identifiers import Identifiers
from prime_local.storage import Objects, Storage
from prime_local.training.external import KIND as RUNS
from prime_local.training.external import METRICS, ExternalRunRegistry

# Under which the only user there is owns environments.
_USER_SLUG = "local-user"


class Recording:
    """The registries of what is recorded since the last reset.

    Args:
        clock: dates what happens.
        identifiers: makes ids.
        storage: keeps all of it.
        user_id: the only user there is.
    """

    def __init__(
        self, clock: PlatformClock, identifiers: Identifiers, storage: Storage, user_id: str
    ) -> None:
        self.environments = EnvironmentRegistry(clock, identifiers, storage, _USER_SLUG)
        self.evaluations = EvaluationRegistry(clock, identifiers, storage, self.environments)
        self.external_runs = ExternalRunRegistry(clock, identifiers, storage, user_id)

    def take_over(self, objects: Objects) -> None:
        """Take over what an earlier platform kept."""

        def kept(kind: str) -> list[dict[str, object]]:
            return [dict(row) for row in objects.get(kind, {}).values()]

        self.environments.take_over(kept(ENVIRONMENTS))
        self.evaluations.take_over(kept(EVALUATIONS), kept(SAMPLES))
        self.external_runs.take_over(kept(RUNS), kept(METRICS))
