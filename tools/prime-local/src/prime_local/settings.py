"""How a platform behaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from prime_local.assumptions import Assumptions
from prime_local.rentals import RentalSettings
from prime_local.sandboxes.isolation.base import WantedMode
from prime_local.training.runs.registry import RunPace


@dataclass(frozen=True)
class Settings:
    """Each setting, which `LocalPlatform` explains."""

    limits: bool = True
    strict_limits: bool = False
    start_delay: float = 0.0
    gateway_delay: float = 0.0
    image_build_time: float = 0.0
    network_delay: float = 0.0
    checkpoint_time: float = 0.0
    removal_time: float = 0.0
    rollout_time: float = 0.0
    volume_time: float = 0.0
    training: RunPace = field(default_factory=RunPace)
    trace_index_delay: float = 0.0
    seed: int | None = None
    data_dir: Path | None = None
    isolation: WantedMode = "process"
    token_lifetime: float = 1800.0
    inference_upstream: str | None = None
    latency: float = 0.0
    clock_skew: float = 0.0
    noise: bool = False
    assumptions: Assumptions = field(default_factory=Assumptions)
    rentals: RentalSettings = field(default_factory=RentalSettings)
    validate_responses: bool = False

    def __post_init__(self) -> None:
        if self.strict_limits and not self.limits:
            raise ValueError("strict_limits adds to the documented limits: it needs limits")
