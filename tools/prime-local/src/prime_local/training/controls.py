"""What a test can turn about training."""

from __future__ import annotations

from decimal import Decimal

from prime_local.billing.runs import RunTokens
from prime_local.core import PlatformCore


class TrainingControls:
    """The part of `LocalPlatform` that is about training."""

    @property
    def _core(self) -> PlatformCore:
        raise NotImplementedError

    def set_training_pace(self, **times: float) -> None:
        """Say how fast hosted runs are that are dispatched from now on; other times stay.

        Args:
            times: `step_time` and `setup_time`, in seconds on the platform clock, as
                `training_step_time` and `training_setup_time` above.

        Raises:
            ValueError: there is no such time, or it has no such value.
        """
        runs = self._core.recording.runs
        runs.pace = runs.pace.changed(times)

    def fail_run(self, run_id: str, reason: str) -> None:
        """Let a hosted run fail; a fault rule's `fails` does it from the create on.

        Args:
            run_id: a run that goes on.
            reason: what the platform says of it.

        Raises:
            ValueError: no such run goes on.
        """
        self._core.recording.runs.fail(run_id, reason)

    def set_training_access(self, **switches: bool | None) -> None:
        """Say who may train; switches that are not named stay.

        Args:
            switches: `on_demand` and `external_runs`, as in
                `prime_local.training.capacity.offers.TrainingAccess`.

        Raises:
            ValueError: there is no such switch, or it has no such value.
        """
        capacity = self._core.recording.capacity
        capacity.access = capacity.access.changed(switches)

    def set_training_capacity(
        self,
        gpu_type: str,
        *,
        free: int | None = None,
        price: Decimal | float | str | None = None,
        reserved: bool = False,
    ) -> None:
        """Change what training runs can have of a type of GPU.

        Args:
            gpu_type: the type.
            free: GPUs that are not in use from now on; a run that needs more of them waits.
            price: USD for one and an hour, for runs to come.
            reserved: of those that a team has reserved, not of those on demand.

        Raises:
            ValueError: there are no such GPUs, or a number is wrong.
        """
        self._core.recording.capacity.change(gpu_type, free=free, price=price, reserved=reserved)

    def put_run(self, run_id: str, tokens: RunTokens) -> None:
        """Note what a training run has used so far, for its usage route."""
        self._core.rentals.runs.put(run_id, tokens)
