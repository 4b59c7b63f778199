"""Choosing the cheapest of many offers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from prime_compute.errors import NoOfferError
from prime_compute.models import GpuOffer, GpuType, ResourceSpec, StockStatus
from prime_compute.pricing import (
    HourlyCost,
    StepFit,
    hourly_cost,
    is_adjustable,
    resource_cost,
    step_fit,
    within_bounds,
)

__all__ = ["Cheapest", "PricedOffer", "Wishes", "read_price"]


@dataclass(frozen=True)
class PricedOffer:
    """An offer, the amounts to order with it, and what that costs.

    An amount of `None` is the offer's default, and is not named in the order.

    Attributes:
        offer: the offer.
        cost: of an hour.
        disk_size: GB of local disk to order.
        vcpus: virtual CPUs to order.
        memory: GB of RAM to order.
    """

    offer: GpuOffer
    cost: HourlyCost
    disk_size: int | None = None
    vcpus: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Wishes:
    """What an offer must have; None asks for nothing.

    Attributes:
        gpu_type: the model that the offers were asked for by, if any.
        disk_size: GB of local disk, at least.
        vcpus: virtual CPUs, at least.
        memory: GB of RAM, at least.
        gpu_memory: GB of one GPU, at least.
        interconnect: Gbps between GPUs or nodes, at least.
        interconnect_type: its technology, in any case.
        provider: who rents it out.
        image: an image that it boots.
        max_price: an hour's full cost, at most.
        currency: of the prices; those of different currencies can't be compared.
        spot: whether the provider may take it back.
        prepaid: whether hours may be charged ahead.
    """

    gpu_type: str | None = None
    disk_size: int | None = None
    vcpus: int | None = None
    memory: int | None = None
    gpu_memory: int | None = None
    interconnect: int | None = None
    interconnect_type: str | None = None
    provider: str | None = None
    image: str | None = None
    max_price: Decimal | None = None
    currency: str = "USD"
    spot: bool = False
    prepaid: bool = False

    def __post_init__(self) -> None:
        for name in ("disk_size", "vcpus", "memory", "gpu_memory", "interconnect"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name} is a whole number of at least 1, not {value!r}")

    def fit(self, offer: GpuOffer) -> PricedOffer | str:
        """The cheapest way to have all this from an offer, or what it lacks."""
        for lacks, test in _TESTS.items():
            if not test(self, offer):
                return lacks
        chosen: dict[str, int | None] = {}
        for name, spec in (
            ("disk_size", offer.disk),
            ("vcpus", offer.vcpu),
            ("memory", offer.memory),
        ):
            least = getattr(self, name)
            if least is not None:
                amounts = list(_amounts(spec, least))
                if not amounts:
                    return name
                chosen[name] = min(amounts, key=lambda amount: resource_cost(spec, amount))
        try:
            cost = hourly_cost(offer, **chosen)
            total = cost.total
        except (ValueError, ArithmeticError):
            return "price"
        if self.max_price is not None and total > self.max_price:
            return "max_price"
        return PricedOffer(offer, cost, **chosen)


def read_price(price: Decimal | str | int) -> Decimal:
    """A price that was given as it was, not as a float that lost its digits."""
    if isinstance(price, bool) or not isinstance(price, (Decimal, str, int)):
        raise TypeError(f"max_price is a Decimal, or text such as '2.69', not {price!r}")
    try:
        found = Decimal(price)
    except InvalidOperation:
        raise ValueError(f"max_price is a number such as '2.69', not {price!r}") from None
    if not (found.is_finite() and found > 0):
        raise ValueError(f"max_price is a number above 0, not {price!r}")
    return found


class Cheapest:
    """Keeps the cheapest of the offers that it is shown; the first of equals.

    Args:
        wishes: what an offer must have.
    """

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes
        self._best: PricedOffer | None = None
        self._lacking: Counter[str] = Counter()

    def show(self, offer: GpuOffer) -> None:
        found = self._wishes.fit(offer)
        if isinstance(found, str):
            self._lacking[found] += 1
        elif self._best is None or found.cost.total < self._best.cost.total:
            self._best = found

    def result(self) -> PricedOffer:
        """
        Raises:
            NoOfferError: no offer fits.
        """
        if self._best is not None:
            return self._best
        if not self._lacking:
            raise NoOfferError("There is no offer of this kind: ask for another GPU or place.")
        reasons = ", ".join(f"{count} {name}" for name, count in self._lacking.most_common())
        raise NoOfferError(f"None of {self._lacking.total()} offers fits; they fail on: {reasons}.")


def _amounts(spec: ResourceSpec | None, least: int) -> Iterator[int | None]:
    """The default, if it suffices, and the smallest amounts that surely can be chosen."""
    if spec is None:
        return
    if spec.default_count is not None and spec.default_count >= least:
        yield None
    if not is_adjustable(spec):
        return
    start = max(least, spec.min_count or 0)
    step = spec.step or 1
    for amount in (start, -(-start // step) * step, spec.max_count):
        if (
            amount is not None
            and amount >= start
            and within_bounds(spec, amount)
            and step_fit(spec, amount) is StepFit.YES
        ):
            yield amount
            return


_TESTS: dict[str, Callable[[Wishes, GpuOffer], bool]] = {
    # Machines without a GPU are listed among the others, as a model of their own.
    "gpu_type": lambda wishes, offer: (
        wishes.gpu_type is not None or offer.gpu_type != GpuType.CPU_NODE
    ),
    "stock": lambda wishes, offer: offer.stock_status != StockStatus.UNAVAILABLE,
    "currency": lambda wishes, offer: offer.prices.currency == wishes.currency,
    "spot": lambda wishes, offer: wishes.spot or not offer.is_spot,
    "prepaid": lambda wishes, offer: wishes.prepaid or not offer.prepaid_time,
    "provider": lambda wishes, offer: wishes.provider in (None, offer.provider),
    "image": lambda wishes, offer: wishes.image is None or wishes.image in offer.images,
    "gpu_memory": lambda wishes, offer: (offer.gpu_memory or 0) >= (wishes.gpu_memory or 0),
    "interconnect": lambda wishes, offer: (offer.interconnect or 0) >= (wishes.interconnect or 0),
    "interconnect_type": lambda wishes, offer: (
        wishes.interconnect_type is None
        or (offer.interconnect_type or "").casefold() == wishes.interconnect_type.casefold()
    ),
}
