"""What training runs can have, what it costs, and which run has what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from prime_local.billing.amounts import read_usd
from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.training.capacity.clusters import (
    MODELS,
    UNKNOWN_MODEL,
    Cluster,
    TrainingModel,
    make_clusters,
)

_VOLUME = "/volume/"


@dataclass(frozen=True)
class Placement:
    """Where a run is.

    Args:
        cluster_id: the cluster.
        gpu_type: type of its GPUs.
        gpus: how many of them.
        price: USD for one and an hour, 0 when it is reserved.
        reserved: whether they are the team's own.
        cached: whether the model is there already.
    """

    cluster_id: str
    gpu_type: str
    gpus: int
    price: Decimal
    reserved: bool
    cached: bool


@dataclass(frozen=True)
class TrainingAccess:
    """Who may do what; a test can change it.

    Args:
        on_demand: whether accounts may train on demand; None when they may and are not told so.
        external_runs: whether teams may record runs of elsewhere.

    Raises:
        ValueError: it is neither true nor false.
    """

    on_demand: bool | None = True
    external_runs: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.on_demand, (bool, type(None))):
            raise ValueError("on_demand is true, false or null")
        if not isinstance(self.external_runs, bool):
            raise ValueError("external_runs is true or false")

    def changed(self, changes: Mapping[str, Any]) -> TrainingAccess:
        """Return this with changes.

        Raises:
            ValueError: there is no such switch, or it has no such value.
        """
        unknown = [name for name in changes if name not in ("on_demand", "external_runs")]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is none of on_demand, external_runs")
        return replace(self, **changes)


class TrainingCapacity:
    """All clusters for training, and who is on them.

    Args:
        clock: dates the caches.
        team_id: the team that has reserved a cluster.
    """

    def __init__(self, clock: PlatformClock, team_id: str) -> None:
        self._synced_at = clock.date()
        self._clusters = make_clusters(team_id)
        self._placements: dict[str, Placement] = {}
        self.access = TrainingAccess()
        self.on_freed: Callable[[], None] = lambda: None
        """Called when there may be room for a run that waits; set by what has such runs."""

    def model(self, name: str) -> TrainingModel:
        """Return what is known of a model, or a guess at one that is unknown."""
        return MODELS.get(name, UNKNOWN_MODEL)

    def price(self, gpu_type: str) -> Decimal:
        """Return what a GPU costs in USD per hour on demand.

        Raises:
            PlatformError: 400, it is not sold on demand.
        """
        for cluster in self._clusters:
            if cluster.gpu_type == gpu_type and not cluster.reserved:
                return cluster.price
        raise PlatformError(400, f"No GPUs of type {gpu_type} are sold on demand")

    def admit(
        self,
        team_id: str | None,
        gpu_type: str | None,
        gpus: int,
        *,
        model: str,
        volume: bool = False,
    ) -> str:
        """Return on which type of GPU a run is to be, though there may be no room right now.

        Args:
            team_id: the owner; None is the caller.
            gpu_type: what was asked for; None leaves it to the platform.
            gpus: how many it needs.
            model: its model, which may be a path on a volume.
            volume: whether it has a volume.

        Raises:
            PlatformError: 400, or 403 without access to on-demand training; it could never run.
        """
        of_type = [each for each in self._clusters if gpu_type in (None, each.gpu_type)]
        if not of_type:
            raise PlatformError(400, f"No cluster has GPUs of type {gpu_type}")
        fitting = [each for each in of_type if not volume or each.shared_storage]
        own = [each for each in fitting if each.reserved and each.team_id == team_id]
        cached = [each for each in own if _starts_there(each, model)]
        # Where the platform chooses, a download on demand is still to be had.
        if own and not cached and gpu_type is not None:
            names = ", ".join(each.name for each in own)
            raise PlatformError(400, f"Model {model} is not cached on {names}")
        barred = self.access.on_demand is False
        if barred and not cached:
            raise PlatformError(403, "On-demand training is in beta: this account has no access")
        on_demand = [each for each in fitting if not each.reserved and not barred]
        if not on_demand and not cached:
            raise PlatformError(
                400,
                f"No on-demand gpu_type={gpu_type} cluster has ReadWriteMany storage for a volume",
            )
        large = [each for each in (*cached, *on_demand) if each.gpus >= gpus]
        if not large:
            raise PlatformError(400, f"No cluster has {gpus} GPUs of type {gpu_type or 'any'}")
        return min(large, key=lambda each: _order(each, gpus, model)).gpu_type

    def reserve(
        self,
        run_id: str,
        gpu_type: str,
        gpus: int,
        *,
        team_id: str | None = None,
        model: str = "",
        volume: bool = False,
    ) -> Placement | None:
        """Take GPUs for a run: the owner's reserved ones if there are enough, else on demand.

        Args:
            run_id: the run; one that has GPUs already keeps them.
            gpu_type: as `admit` chose it.
            gpus: how many.
            team_id: the owner; None is the caller.
            model: its model.
            volume: whether it has a volume.

        Returns:
            Where it is; None when there is no room.
        """
        if run_id in self._placements:
            return self._placements[run_id]
        fitting = [
            each
            for each in self._clusters
            if each.gpu_type == gpu_type
            and each.free >= gpus
            and (not volume or each.shared_storage)
            and (
                each.team_id == team_id and _starts_there(each, model)
                if each.reserved
                else self.access.on_demand is not False
            )
        ]
        if not fitting:
            return None
        cluster = min(fitting, key=lambda each: _order(each, gpus, model))
        cluster.taken += gpus
        cached = _starts_there(cluster, model)
        placement = Placement(cluster.id, gpu_type, gpus, cluster.price, cluster.reserved, cached)
        self._placements[run_id] = placement
        return placement

    def release(self, run_id: str) -> None:
        """Give back what a run has, if it has any."""
        placement = self._placements.pop(run_id, None)
        if placement is not None:
            self._cluster(placement.cluster_id).taken -= placement.gpus
            self.on_freed()

    def available_models(self, team_id: str | None) -> JsonObject:
        """Return the `AvailableFftModels` object of the contract."""
        seen = self._seen_by(team_id)
        models = []
        for name in MODELS:
            clusters = [each for each in seen if each.has_cached(name)]
            if clusters:
                wire = [each.to_wire(self._synced_at) for each in clusters]
                models.append({"name": name, "clusters": wire})
        offers = [each.to_offer_wire() for each in seen if not each.reserved]
        return {"models": models, "onDemand": offers, "onDemandBetaAccess": self.access.on_demand}

    def gpu_types(self, team_id: str | None) -> list[str]:
        """Return the types of GPU that an owner's runs can be on."""
        return sorted({each.gpu_type for each in self._seen_by(team_id)})

    def state(self) -> list[JsonObject]:
        """Return every cluster, for tests."""
        return [each.to_state() for each in self._clusters]

    def change(
        self,
        gpu_type: str,
        *,
        free: int | None = None,
        price: Decimal | float | str | None = None,
        reserved: bool = False,
    ) -> None:
        """Change what there is of a type of GPU.

        Args:
            gpu_type: the type.
            free: GPUs that are not in use from now on.
            price: USD for one and an hour, for runs to come.
            reserved: of the cluster that a team has reserved, not of the one on demand.

        Raises:
            ValueError: there is no such cluster, or a number is wrong.
        """
        if free is not None and (type(free) is not int or free < 0):
            raise ValueError("free is a number of GPUs, at least 0")
        usd = None if price is None else read_usd("price", price)
        if usd is not None and (reserved or usd < 0):
            raise ValueError("price is at least 0, and reserved GPUs have none")
        for cluster in self._clusters:
            if cluster.gpu_type == gpu_type and cluster.reserved is reserved:
                break
        else:
            raise ValueError(f"no such GPUs: {gpu_type!r}")
        cluster.price = cluster.price if usd is None else usd
        if free is not None:
            cluster.withheld = cluster.gpus - cluster.taken - free
            self.on_freed()

    def _seen_by(self, team_id: str | None) -> list[Cluster]:
        return [
            each
            for each in self._clusters
            if (each.team_id == team_id if each.reserved else self.access.on_demand is not False)
        ]

    def _cluster(self, cluster_id: str) -> Cluster:
        return next(each for each in self._clusters if each.id == cluster_id)


def _starts_there(cluster: Cluster, model: str) -> bool:
    """Say whether a run of a model needs no download: its weights are cached, or on its volume."""
    return model.startswith(_VOLUME) or cluster.has_cached(model)


def _order(cluster: Cluster, gpus: int, model: str) -> tuple[bool, bool, bool, Decimal]:
    """What is preferred: reserved, then with room, then with the model, then what costs least."""
    return (
        not cluster.reserved,
        cluster.free < gpus,
        not _starts_there(cluster, model),
        cluster.price,
    )
