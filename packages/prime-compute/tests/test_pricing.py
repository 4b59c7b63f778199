"""The cost of configurations, by the documented rules and examples."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prime_compute import (
    DiskOffer,
    GpuOffer,
    ResourceSpec,
    StepFit,
    check_amount,
    disk_cost,
    hourly_cost,
    resource_cost,
    step_fit,
    token_cost,
)

DISK = """{"minCount": 50, "defaultCount": 100, "maxCount": 1000, "pricePerUnit": 0.0003,
    "step": 10, "defaultIncludedInPrice": false}"""
VCPU = """{"minCount": 4, "defaultCount": 16, "maxCount": 32, "pricePerUnit": 0.004,
    "step": 2, "defaultIncludedInPrice": true}"""
AMOUNTS = st.none() | st.integers(1, 10_000)
PRICES = st.decimals(0, 1000, places=20)


def offer(disk: str, vcpu: str, memory: str, prices: str = '{"onDemand": 2.69}') -> GpuOffer:
    return GpuOffer.model_validate_json(
        f"""{{"cloudId": "c", "gpuType": "H100_80GB", "provider": "hyperstack", "gpuCount": 1,
        "disk": {disk}, "vcpu": {vcpu}, "memory": {memory}, "prices": {prices}}}"""
    )


A = offer(DISK, VCPU, '{"defaultCount": 180}')
B = offer(
    '{"minCount": 80, "defaultCount": 80, "maxCount": 1000, "pricePerUnit": 0.00014, "step": 1}',
    '{"defaultCount": 16}',
    '{"defaultCount": 251}',
)


def spec(**fields: Any) -> ResourceSpec:
    return ResourceSpec.model_validate(fields)


@pytest.mark.parametrize(
    ("given", "amounts", "disk", "vcpu", "total"),
    [
        (A, {}, "0.03", "0", "2.72"),
        (A, {"disk_size": 200}, "0.06", "0", "2.75"),
        (A, {"vcpus": 20}, "0.03", "0.08", "2.80"),
        (A, {"vcpus": 10}, "0.03", "0.04", "2.76"),
        (A, {"vcpus": 20, "disk_size": 200}, "0.06", "0.08", "2.83"),
        (B, {}, "0.0112", "0", "2.7012"),
    ],
)
def test_the_documented_examples(
    given: GpuOffer, amounts: dict[str, int], disk: str, vcpu: str, total: str
) -> None:
    cost = hourly_cost(given, **amounts)
    assert (cost.base, cost.memory + cost.shared_disk) == (Decimal("2.69"), Decimal(0))
    assert (cost.disk, cost.vcpu, cost.total) == (Decimal(disk), Decimal(vcpu), Decimal(total))


def test_the_documented_disk_example() -> None:
    found = DiskOffer.model_validate_json(
        '{"provider": "hyperstack", "spec": {"minCount": 0, "defaultCount": 0,'
        ' "maxCount": 100000, "pricePerUnit": 0.00015, "step": 1}}'
    )
    assert disk_cost(found, 500) == Decimal("0.075")
    with pytest.raises(ValueError, match="size is at least 0 and at most 100000"):
        disk_cost(found, 100_001)


def test_the_documented_run_example() -> None:
    costs = [
        token_cost(5_000_000, Decimal("2.5")),
        token_cost(1_000_000, Decimal("0.5")),
        token_cost(3_000_000, Decimal("1.5")),
    ]
    assert costs == [Decimal("12.5"), Decimal("0.5"), Decimal("4.5")]
    assert token_cost(7, None) == 0


@given(PRICES, AMOUNTS, AMOUNTS, st.none() | st.booleans())
def test_an_amount_costs_all_of_it_unless_it_is_an_included_default(
    price: Decimal, default: int | None, amount: int | None, included: bool | None
) -> None:
    given = spec(defaultCount=default, pricePerUnit=price, defaultIncludedInPrice=included)
    count = default if amount is None else amount
    free = count is None or (included and count == default)
    assert Fraction(resource_cost(given, amount)) == (0 if free else (count or 0) * Fraction(price))


@given(st.lists(PRICES, min_size=4, max_size=4), st.integers(1, 10**9))
def test_nothing_is_rounded_whatever_the_caller_rounds_to(
    prices: list[Decimal], amount: int
) -> None:
    disk, vcpu, memory = [
        f'{{"defaultCount": {amount}, "pricePerUnit": {price:f}}}' for price in prices[:3]
    ]
    given = offer(disk, vcpu, memory, f'{{"onDemand": {prices[3]:f}}}')
    with localcontext() as context:
        context.prec = 2
        total = hourly_cost(given).total
    expected = sum(amount * Fraction(price) for price in prices[:3]) + Fraction(prices[3])
    assert Fraction(total) == expected


def test_a_shared_disk_is_paid_for() -> None:
    shared = spec(defaultCount=1000, pricePerUnit="0.0001", defaultIncludedInPrice=False)
    given = A.model_copy(update={"shared_disk": shared})
    assert hourly_cost(given).total == Decimal("2.82")


@pytest.mark.parametrize(
    ("security", "prices", "base"),
    [
        ("community_cloud", '{"onDemand": 2, "communityPrice": 1.5}', "1.5"),
        ("secure_cloud", '{"onDemand": 2, "communityPrice": 1.5}', "2"),
        ("secure_cloud", '{"onDemand": null, "communityPrice": 1.5}', "1.5"),
    ],
)
def test_a_community_offer_has_the_community_price(security: str, prices: str, base: str) -> None:
    given = offer("null", "null", "null", prices).model_copy(update={"security": security})
    assert hourly_cost(given).total == Decimal(base)


def test_an_offer_without_a_price_has_no_cost() -> None:
    with pytest.raises(ValueError, match="'c' names no price"):
        hourly_cost(offer("null", "null", "null", "{}"))


@pytest.mark.parametrize(
    ("amounts", "problem"),
    [
        ({"disk_size": 40}, "disk_size is at least 50 and at most 1000 in this offer, not 40"),
        ({"disk_size": 1010}, "disk_size is at least 50"),
        ({"disk_size": 205}, "disk_size goes by steps of 10"),
        ({"vcpus": 34}, "vcpus is at least 4"),
        ({"vcpus": 5}, "vcpus goes by steps of 2"),
        ({"memory": 200}, "memory can't be chosen: the offer has 180 of it"),
        ({"memory": 0}, "memory is a whole number of at least 1"),
        ({"vcpus": True}, "vcpus is a whole number"),
    ],
)
def test_an_amount_that_an_offer_lacks_has_no_cost(amounts: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        hourly_cost(A, **amounts)


def test_the_default_of_a_fixed_resource_can_be_named() -> None:
    assert hourly_cost(A, memory=180).total == Decimal("2.72")


def test_a_resource_that_is_not_mentioned_can_not_be_chosen() -> None:
    with pytest.raises(ValueError, match="vcpus can't be chosen: the offer does not mention it"):
        check_amount("vcpus", None, 4)


@given(st.integers(1, 50), st.integers(0, 60), st.integers(1, 500))
def test_an_amount_is_sure_to_fit_only_when_steps_from_0_and_from_the_minimum_reach_it(
    step: int, least: int, amount: int
) -> None:
    assume(amount > least)
    from_zero = amount in range(0, 501, step)
    from_least = amount in range(least, 501, step)
    fits = step_fit(spec(minCount=least, pricePerUnit="1", step=step), amount)
    if from_zero and from_least:
        assert fits is StepFit.YES
    elif from_zero or from_least:
        assert fits is StepFit.UNKNOWN
    else:
        assert fits is StepFit.NO


def test_the_bounds_and_the_default_fit_any_step() -> None:
    given = spec(minCount=5, defaultCount=17, maxCount=33, step=10, pricePerUnit="1")
    assert [step_fit(given, amount) for amount in (5, 17, 33)] == [StepFit.YES] * 3


def test_an_amount_that_may_fit_is_left_to_the_platform() -> None:
    given = spec(minCount=5, maxCount=100, step=10, pricePerUnit="1")
    assert [check_amount("disk_size", given, amount) for amount in (15, 20)] == [15, 20]
