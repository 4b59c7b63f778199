"""What a run takes: GPUs, money per hour, and room for its checkpoints.

Follows the pages "hosted-training/billing" and "hosted-training/volume-capacity".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from prime_train.configs.loading import TrainConfig
from prime_train.configs.sections.training import Checkpoints
from prime_train.configs.sizes import GIB, check_volume_size
from prime_train.configs.sizing import (
    GpuCount,
    count_gpus,
    pinned_checkpoints,
    saved_checkpoints,
)

__all__ = ["ByteRange", "CheckpointNeed", "RunEstimate", "checkpoint_need", "estimate"]

LOW_BYTES = 11
HIGH_BYTES = 12


@dataclass(frozen=True)
class ByteRange:
    """A size that is known about.

    Attributes:
        low: bytes at least.
        high: bytes at most.
    """

    low: int
    high: int


@dataclass(frozen=True)
class CheckpointNeed:
    """Room that checkpoints take on a volume.

    An RL run's traces come on top, in files of about 5 GiB, as long as it trains.

    Attributes:
        count: checkpoints on disk at most; one more than are kept, since the new one is written
            before the oldest is deleted.
        checkpoint: bytes of one.
        needed: bytes of all, and of what else is on the volume.
        recommended: the same with 20 % on top.
    """

    count: int
    checkpoint: ByteRange
    needed: ByteRange
    recommended: ByteRange

    @property
    def volume_size(self) -> str:
        """The smallest size of a volume that holds what is recommended, such as ``1228Gi``."""
        return f"{-(-self.recommended.high // GIB)}Gi"

    def fits(self, size: str) -> bool:
        """Whether a volume of a size surely holds what is needed, without room to spare.

        Args:
            size: whole Gi or Ti, such as ``1536Gi``.
        """
        return self.needed.high <= check_volume_size(size) * GIB


@dataclass(frozen=True)
class RunEstimate:
    """What a run takes.

    Attributes:
        gpus: GPUs that it holds.
        gpu_type: their type; `None` leaves it to the platform.
        price_per_gpu_hour: USD for one GPU; `None` without a type or its price.
        price_per_hour: USD for all. Queueing and pulling the image cost nothing; it is billed to
            the second while the pods are ready, until the run ends or is paused.
        checkpoints: room for checkpoints; `None` when none are saved, the number of parameters
            is not given, or their number has no bound because the run has no last step.
    """

    gpus: GpuCount
    gpu_type: str | None
    price_per_gpu_hour: Decimal | None
    price_per_hour: Decimal | None
    checkpoints: CheckpointNeed | None


def estimate(
    config: TrainConfig,
    *,
    prices: Mapping[str, Decimal | float] | None = None,
    gpu_type: str | None = None,
    parameters: int | None = None,
    uploads: int = 0,
    other_runs: int = 0,
) -> RunEstimate:
    """Estimate what a run takes.

    Args:
        config: the config.
        prices: USD per GPU and hour, by type of GPU.
        gpu_type: type of GPU; by default the config's own.
        parameters: parameters of the model, for the size of its checkpoints.
        uploads: bytes of data and models on the volume.
        other_runs: bytes of other runs' outputs on the volume.

    Returns:
        The estimate; what can't be told is `None`.

    Raises:
        ValueError: the deployment does not say how many nodes it takes, the type of GPU has no
            price, or a number is negative.
    """
    chosen = gpu_type or config.knobs.gpu_type
    gpus = count_gpus(config.settings)
    rate = _rate(prices, chosen)
    count = _peak(config)
    need = None
    if count is not None and parameters is not None:
        need = checkpoint_need(parameters, count, uploads=uploads, other_runs=other_runs)
    return RunEstimate(
        gpus=gpus,
        gpu_type=chosen,
        price_per_gpu_hour=rate,
        price_per_hour=None if rate is None else rate * gpus.total,
        checkpoints=need,
    )


def checkpoint_need(
    parameters: int, count: int = 1, *, uploads: int = 0, other_runs: int = 0
) -> CheckpointNeed:
    """Give the room that checkpoints take: 11 to 12 bytes a parameter each.

    Args:
        parameters: parameters of the model, at least 1.
        count: checkpoints on disk at once.
        uploads: bytes of data and models on the volume.
        other_runs: bytes of other runs' outputs on the volume.

    Raises:
        ValueError: a number is negative, or there are no parameters.
    """
    if parameters < 1 or min(count, uploads, other_runs) < 0:
        raise ValueError("parameters are at least 1, the other numbers at least 0")
    one = ByteRange(LOW_BYTES * parameters, HIGH_BYTES * parameters)
    beside = uploads + other_runs
    needed = ByteRange(count * one.low + beside, count * one.high + beside)
    recommended = ByteRange(_with_headroom(needed.low), _with_headroom(needed.high))
    return CheckpointNeed(count, one, needed, recommended)


def _with_headroom(size: int) -> int:
    return -(-size * 6 // 5)


def _peak(config: TrainConfig) -> int | None:
    """Checkpoints on disk at most; `None` when none are saved, or without a bound."""
    checkpoints: Checkpoints | None = config.settings.ckpt
    if checkpoints is None:
        return None
    steps = config.settings.max_steps
    if checkpoints.keep_last is None:
        return saved_checkpoints(steps, checkpoints)
    pinned = pinned_checkpoints(steps, checkpoints)
    return None if pinned is None else checkpoints.keep_last + 1 + pinned


def _rate(prices: Mapping[str, Decimal | float] | None, gpu_type: str | None) -> Decimal | None:
    if prices is None or gpu_type is None:
        return None
    if gpu_type not in prices:
        raise ValueError(f"prices has no {gpu_type}; it has {', '.join(sorted(prices)) or 'none'}")
    # Through text: 2.69 is meant, not the nearest binary fraction.
    return Decimal(str(prices[gpu_type]))
