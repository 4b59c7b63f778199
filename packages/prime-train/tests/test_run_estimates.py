"""What a run takes follows the documented formulas; the figures are the documentation's."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import unhurried

from prime_train.configs.estimates import ByteRange, checkpoint_need, estimate
from prime_train.configs.loading import load_config
from prime_train.configs.sections.training import Checkpoints
from prime_train.configs.sizes import GIB, check_volume_size, volume_price
from prime_train.configs.sizing import pinned_checkpoints, saved_checkpoints

PRICES: dict[str, Decimal | float] = {"H200_141GB": 2.69, "B200_180GB": Decimal("4.20")}


@pytest.mark.parametrize(
    ("deployment", "gpus"),
    [
        ({}, (1, 1)),
        ({"num_train_gpus": 2, "num_infer_gpus": 6}, (2, 6)),
        ({"type": "multi_node", "num_train_nodes": 2, "num_infer_nodes": 2}, (16, 16)),
        (
            {
                "type": "multi_node",
                "num_train_nodes": 1,
                "num_infer_nodes": 2,
                "num_infer_replicas": 3,
                "gpus_per_node": 4,
            },
            (4, 24),
        ),
    ],
)
def test_gpus_of_rl_are_those_of_the_trainer_and_of_all_replicas(
    deployment: dict[str, object], gpus: tuple[int, int]
) -> None:
    found = estimate(load_config({"deployment": deployment, "inference": {}})).gpus
    assert (found.trainer, found.inference) == gpus
    assert found.total == sum(gpus)


@pytest.mark.parametrize(
    ("extra", "gpus"),
    [
        ({}, (4, 0)),
        ({"eval": {}, "inference": {}}, (4, 2)),
        ({"eval": {}, "inference": "None"}, (4, 0)),
    ],
)
def test_gpus_of_sft_count_inference_for_online_evals_alone(
    extra: dict[str, object], gpus: tuple[int, int]
) -> None:
    deployment = {"num_train_gpus": 4, "num_infer_gpus": 2}
    found = estimate(load_config({"data": {}, "deployment": deployment}, extra)).gpus
    assert (found.trainer, found.inference) == gpus


def test_made_up_batches_need_no_inference() -> None:
    assert estimate(load_config({"trainer": {"data": {"fake": {}}}})).gpus.total == 1


def test_inference_nodes_may_stand_with_inference() -> None:
    found = estimate(
        load_config(
            {
                "deployment": {"type": "multi_node", "num_train_nodes": 1},
                "inference": {"deployment": {"type": "multi_node", "num_nodes": 3}},
            }
        )
    )
    assert found.gpus.inference == 24


@pytest.mark.parametrize(
    "deployment", [{"type": "multi_node"}, {"type": "multi_node", "num_train_nodes": 1}]
)
def test_nodes_that_are_not_said_are_not_guessed(deployment: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"needs num_(train|infer)_nodes"):
        estimate(load_config({"deployment": deployment, "inference": {}}))


def test_the_price_is_exact_and_for_all_gpus() -> None:
    config = load_config({"gpu_type": "H200_141GB", "deployment": {"num_train_gpus": 2}})
    found = estimate(config, prices=PRICES)
    assert found.gpu_type == "H200_141GB"
    assert found.price_per_gpu_hour == Decimal("2.69")
    assert found.price_per_hour == Decimal("8.07")
    assert estimate(config, prices=PRICES, gpu_type="B200_180GB").price_per_hour == Decimal("12.6")
    assert estimate(config).price_per_hour is None
    assert estimate(load_config({}), prices=PRICES).price_per_hour is None
    with pytest.raises(ValueError, match="has no H100_80GB; it has B200_180GB, H200_141GB"):
        estimate(config, prices=PRICES, gpu_type="H100_80GB")


@pytest.mark.parametrize(
    ("parameters", "low", "high", "measured"),
    [
        (600_000_000, 6.6e9, 7.2e9, 7.2e9),
        (8_000_000_000, 88e9, 96e9, None),
        (30_500_000_000, 335.5e9, 366e9, 341e9),
        (100_000_000_000, 1.1e12, 1.2e12, None),
    ],
)
def test_one_checkpoint(parameters: int, low: float, high: float, measured: float | None) -> None:
    need = checkpoint_need(parameters)
    assert need.checkpoint == need.needed == ByteRange(int(low), int(high))
    if measured is not None:
        assert low <= measured <= high


def test_the_worked_example_of_30b() -> None:
    config = load_config({"data": {}, "max_steps": 100, "ckpt": {"interval": 50, "keep_last": 2}})
    need = estimate(config, parameters=30_500_000_000).checkpoints
    assert need is not None
    assert need.count == 3
    assert need.needed == ByteRange(1_006_500_000_000, 1_098_000_000_000)
    assert need.recommended == ByteRange(1_207_800_000_000, 1_317_600_000_000)
    assert (need.recommended.low / GIB, need.recommended.high / GIB) == pytest.approx(
        (1124.9, 1227.1), abs=0.1
    )
    assert need.volume_size == "1228Gi"
    assert check_volume_size("1536Gi") * GIB == pytest.approx(1649.3e9, rel=1e-4)
    assert need.fits("1536Gi")
    assert not checkpoint_need(30_500_000_000).fits("200Gi")
    assert checkpoint_need(30_500_000_000).checkpoint.low > 200 * GIB


def test_uploads_and_other_runs_are_on_the_volume_too() -> None:
    need = checkpoint_need(10, 2, uploads=100, other_runs=50)
    assert need.needed == ByteRange(370, 390)
    assert need.recommended == ByteRange(444, 468)
    assert checkpoint_need(1, 1).recommended == ByteRange(14, 15)


@pytest.mark.parametrize(("interval", "count"), [(30, 4), (50, 2), (None, 1), (100, 1), (101, 1)])
def test_without_keep_last_all_saved_checkpoints_stay(interval: int | None, count: int) -> None:
    checkpoints = {} if interval is None else {"interval": interval}
    config = load_config({"data": {}, "max_steps": 100, "ckpt": checkpoints})
    need = estimate(config, parameters=1).checkpoints
    assert need is not None
    assert need.count == count


def test_what_has_no_bound_or_no_size_is_not_estimated() -> None:
    endless = {"data": {}, "ckpt": {"interval": 5}}
    assert estimate(load_config(endless), parameters=1).checkpoints is None
    pinned = {"ckpt": {"keep_last": 1, "keep_interval": 10}}
    assert estimate(load_config(endless, pinned), parameters=1).checkpoints is None
    rolling = estimate(load_config(endless, {"ckpt": {"keep_last": 1}}), parameters=1).checkpoints
    assert rolling is not None
    assert rolling.count == 2
    assert estimate(load_config(endless, {"max_steps": 5})).checkpoints is None
    assert estimate(load_config({"data": {}}), parameters=1).checkpoints is None


@unhurried
@given(
    steps=st.integers(1, 60),
    interval=st.integers(1, 20),
    keep_last=st.integers(0, 5),
    keep_interval=st.integers(1, 30),
)
def test_pinned_checkpoints_are_those_that_a_run_would_keep(
    steps: int, interval: int, keep_last: int, keep_interval: int
) -> None:
    settings = Checkpoints(interval=interval, keep_last=keep_last, keep_interval=keep_interval)
    saved = [step for step in range(1, steps + 1) if step % interval == 0 or step == steps]
    older = saved[: len(saved) - keep_last - 1] if len(saved) > keep_last + 1 else []
    assert saved_checkpoints(steps, settings) == len(saved)
    assert pinned_checkpoints(steps, settings) == sum(step % keep_interval == 0 for step in older)


def test_pinned_checkpoints_of_a_long_run_are_counted_without_listing_them() -> None:
    settings = Checkpoints(interval=1, keep_last=1, keep_interval=2)
    assert pinned_checkpoints(10**15, settings) == 5 * 10**14 - 1


@pytest.mark.parametrize(
    "arguments",
    [{"parameters": 0}, {"parameters": 1, "count": -1}, {"parameters": 1, "uploads": -1}],
)
def test_negative_numbers_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least"):
        checkpoint_need(**arguments)


@pytest.mark.parametrize(
    ("size", "monthly"),
    [
        ("100Gi", "9.00"),
        ("500Gi", "45.00"),
        ("1Ti", "92.16"),
        ("1536Gi", "138.24"),
        ("5Ti", "460.80"),
        ("20Ti", "1843.20"),
    ],
)
def test_the_price_of_a_volume_goes_by_its_size(size: str, monthly: str) -> None:
    price = volume_price(size)
    assert price.monthly == Decimal(monthly)
    assert price.hourly * 720 == price.monthly


@pytest.mark.parametrize(
    "size",
    ["", "0Gi", "05Gi", "1.5Ti", "1Pi", "1gi", "20481Gi", "21Ti", "9" * 9999 + "Gi", "1Ti\n"],
)
def test_sizes_that_no_volume_has_are_refused(size: str) -> None:
    with pytest.raises(ValueError, match="volume"):
        check_volume_size(size)
