"""What a configuration costs an hour, by the documented rules, exact to the digit.

Follows the pages "api-reference/check-gpu-availability" and "api-reference/provision-gpu".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from enum import Enum

from prime_compute.models import DiskOffer, GpuOffer, ResourceSpec, SecurityType

__all__ = [
    "HourlyCost",
    "StepFit",
    "check_amount",
    "disk_cost",
    "hourly_cost",
    "resource_cost",
    "step_fit",
    "token_cost",
]

# Whoever calls may round to few digits; money is not rounded here. The limit is one of memory.
_EXACT = Context(prec=1000, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
_ZERO = Decimal(0)


class StepFit(Enum):
    """Whether an amount is one that a step allows."""

    YES = "yes"
    UNKNOWN = "unknown"  # it depends on where the platform begins to count, which it doesn't say
    NO = "no"


@dataclass(frozen=True)
class HourlyCost:
    """The price of a configuration for an hour, and what it is made of.

    Attributes:
        base: of the GPUs and all that is included.
        disk: of the local disk.
        shared_disk: of the disk that nodes share.
        vcpu: of the virtual CPUs.
        memory: of the RAM.
        currency: of all of them.
    """

    base: Decimal
    disk: Decimal = _ZERO
    shared_disk: Decimal = _ZERO
    vcpu: Decimal = _ZERO
    memory: Decimal = _ZERO
    currency: str = "USD"

    @property
    def total(self) -> Decimal:
        """All of it together."""
        return _sum([self.base, self.disk, self.shared_disk, self.vcpu, self.memory])


def hourly_cost(
    offer: GpuOffer,
    *,
    disk_size: int | None = None,
    vcpus: int | None = None,
    memory: int | None = None,
) -> HourlyCost:
    """Computes the full hourly cost of an offer, its adjustable resources included.

    Where ``prepaid_time`` is set, that many hours are charged at once.

    Args:
        offer: the offer.
        disk_size: GB of local disk; the offer's default without it.
        vcpus: virtual CPUs; the offer's default without it.
        memory: GB of RAM; the offer's default without it.

    Raises:
        ValueError: the offer names no price, or does not come with such an amount.
    """
    base = _base_price(offer)
    if base is None:
        raise ValueError(f"the offer {offer.cloud_id!r} names no price")
    return HourlyCost(
        base,
        _checked_cost("disk_size", offer.disk, disk_size),
        resource_cost(offer.shared_disk),
        _checked_cost("vcpus", offer.vcpu, vcpus),
        _checked_cost("memory", offer.memory, memory),
        offer.prices.currency,
    )


def resource_cost(spec: ResourceSpec | None, amount: int | None = None) -> Decimal:
    """Computes what an amount of a resource adds to the hourly price of its offer.

    An amount other than an included default costs its whole price, be it more or less.

    Args:
        spec: the resource, of which nothing is checked.
        amount: how much; the default without it.
    """
    if spec is None or spec.price_per_unit is None:
        return _ZERO
    if amount is None:
        amount = spec.default_count
    if amount is None or (spec.default_included_in_price and amount == spec.default_count):
        return _ZERO
    return _EXACT.multiply(Decimal(amount), spec.price_per_unit)


def disk_cost(offer: DiskOffer, size: int) -> Decimal:
    """Computes the hourly cost of a disk; it is due from creation to termination.

    Args:
        offer: the offer.
        size: in GB.

    Raises:
        ValueError: the offer names no price, or does not come in such a size.
    """
    if offer.spec.price_per_unit is None:
        raise ValueError(f"the disk offer of {offer.provider} names no price")
    check_amount("size", offer.spec, size)
    return _EXACT.multiply(Decimal(size), offer.spec.price_per_unit)


def token_cost(tokens: int, per_million: Decimal | None) -> Decimal:
    """Computes the price of a run's tokens.

    Args:
        tokens: how many.
        per_million: the price of a million; nothing is due without one.
    """
    if per_million is None:
        return _ZERO
    return _EXACT.multiply(Decimal(tokens), _EXACT.scaleb(per_million, Decimal(-6)))


def check_amount(name: str, spec: ResourceSpec | None, amount: int) -> int:
    """Returns an amount that an offer may come with.

    An amount that fits the step only by one way of counting passes: the platform decides.

    Args:
        name: what the amount is called in an error.
        spec: the resource.
        amount: how much.

    Raises:
        ValueError: the offer does not come with it.
    """
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
        raise ValueError(f"{name} is a whole number of at least 1, not {amount!r}")
    if spec is None:
        raise ValueError(f"{name} can't be chosen: the offer does not mention it")
    if not is_adjustable(spec):
        if amount != spec.default_count:
            raise ValueError(f"{name} can't be chosen: the offer has {spec.default_count} of it")
    elif not within_bounds(spec, amount):
        raise ValueError(
            f"{name} is {_bounds(spec)} in this offer, not {amount}; "
            f"without {name} it is {spec.default_count}"
        )
    elif step_fit(spec, amount) is StepFit.NO:
        raise ValueError(f"{name} goes by steps of {spec.step} in this offer, unlike {amount}")
    return amount


def step_fit(spec: ResourceSpec, amount: int) -> StepFit:
    """Tells whether an amount is one of the steps.

    Where they are counted from, 0 or the minimum, is not documented. The bounds and the default
    always fit, and what fits both ways.
    """
    step, least = spec.step or 1, spec.min_count or 0
    if amount in (spec.min_count, spec.default_count, spec.max_count):
        return StepFit.YES
    ways = {amount % step == 0, (amount - least) % step == 0}
    if len(ways) == 2:
        return StepFit.UNKNOWN
    return StepFit.YES if ways == {True} else StepFit.NO


def is_adjustable(spec: ResourceSpec) -> bool:
    """Whether another amount than the default can be chosen."""
    return spec.price_per_unit is not None


def within_bounds(spec: ResourceSpec, amount: int) -> bool:
    """Whether an amount is neither too small nor too large."""
    return (spec.min_count is None or spec.min_count <= amount) and (
        spec.max_count is None or amount <= spec.max_count
    )


def _bounds(spec: ResourceSpec) -> str:
    least = f"at least {spec.min_count}" if spec.min_count is not None else ""
    most = f"at most {spec.max_count}" if spec.max_count is not None else ""
    return " and ".join(part for part in (least, most) if part)


def _checked_cost(name: str, spec: ResourceSpec | None, amount: int | None) -> Decimal:
    if amount is not None:
        check_amount(name, spec, amount)
    return resource_cost(spec, amount)


def _base_price(offer: GpuOffer) -> Decimal | None:
    prices = offer.prices
    if offer.security == SecurityType.COMMUNITY_CLOUD and prices.community_price is not None:
        return prices.community_price
    return prices.on_demand if prices.on_demand is not None else prices.community_price


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    total = _ZERO
    for amount in amounts:
        total = _EXACT.add(total, amount)
    return total
