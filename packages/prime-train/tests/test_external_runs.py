"""Runs that are executed elsewhere: registered once, logged, closed."""

from __future__ import annotations

import asyncio
import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    APIConnectionError,
    APIError,
    AsyncTrainClient,
    ConfigurationError,
    ExternalRun,
    ExternalRunEnvironment,
    ForbiddenError,
    NotFoundError,
    TrainClient,
)

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_looks")]

TEAM = "cmb4f0k2p0001l8zq7h3n9x5t"
PARQUET = b"PAR1 columns and a footer PAR1"


@pytest.fixture
async def client(platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PRIME_TEAM_ID", TEAM)
    async with AsyncTrainClient() as client:
        yield client


async def read(platform: LocalPlatform, path: str) -> Any:
    key = {"Authorization": f"Bearer {platform.api_key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(platform.url + path, headers=key) as answer,
    ):
        return await answer.json()


async def runs(platform: LocalPlatform, team: str = TEAM) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await read(platform, f"/api/v1/rft/runs?team_id={team}"))["runs"]
    return found


async def metrics(platform: LocalPlatform, run: ExternalRun) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await read(platform, f"/api/v1/rft/runs/{run.id}/metrics"))[
        "metrics"
    ]
    return found


async def samples(platform: LocalPlatform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await read(platform, "/_local/training/samples"))["files"]
    return found


async def test_a_run_is_registered(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    made = await client.external_runs.create(
        "Qwen/Qwen3-8B",
        [
            "primeintellect/gsm8k",
            {"id": "wordle", "version_id": "v1"},
            ExternalRunEnvironment(id="mine"),
        ],
        name="mine",
        max_steps=100,
        batch_size=64,
        run_config={"lr": 1e-6},
    )
    assert made.name is not None
    assert made.name.startswith("mine-")
    (row,) = await runs(platform)
    assert (row["id"], row["name"], row["kind"], row["status"]) == (
        made.id,
        made.name,
        "EXTERNAL",
        "RUNNING",
    )
    assert row["environments"] == [
        {"id": "primeintellect/gsm8k"},
        {"id": "wordle", "version_id": "v1"},
        {"id": "mine"},
    ]
    assert (row["maxSteps"], row["batchSize"], row["runConfig"]) == (100, 64, {"lr": 1e-6})


async def test_what_is_not_known_is_left_out(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.external_runs.create("m", team_id="cother000000000000000000x")
    (row,) = await runs(platform, "cother000000000000000000x")
    assert (row["maxSteps"], row["environments"], row["seqLen"]) == (0, [], None)
    assert row["name"].startswith("run-")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"base_model": ""}, "base_model"),
        ({"max_steps": -1}, "max_steps"),
        ({"batch_size": 0}, "batch_size"),
        ({"environments": "primeintellect/gsm8k"}, "environments"),
        ({"environments": [{"slug": "a/b"}]}, "environments"),
        ({"environments": [""]}, "environments"),
    ],
)
async def test_a_wrong_argument_is_named_before_anything_is_sent(
    platform: LocalPlatform, client: AsyncTrainClient, asked: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValueError, match=field):
        await client.external_runs.create(**{"base_model": "m", **asked})
    assert platform.ledger()["requests"] == {}


@pytest.mark.parametrize("team", [None, ""])
async def test_a_run_belongs_to_a_team(platform: LocalPlatform, team: str | None) -> None:
    async with AsyncTrainClient() as client:
        with pytest.raises(ConfigurationError, match="team_id"):
            await client.external_runs.create("m", team_id=team)
    assert platform.ledger()["requests"] == {}


async def test_a_team_that_is_not_enabled_is_told(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.set_training_access(external_runs=False)
    with pytest.raises(ForbiddenError, match="external runs"):
        await client.external_runs.create("m")


async def test_a_run_whose_answer_is_lost_is_found(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.external_runs.create("m", name="same")
    platform.add_faults(FaultRule("create_external_run", nth=1, reset="after_commit"))
    made = await client.external_runs.create("m", name="same")
    rows = await runs(platform)
    assert len(rows) == 2
    assert made.id == rows[0]["id"]
    assert platform.ledger()["requests"]["create_external_run"] == 2


async def test_a_run_that_was_not_made_is_not_made_twice(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("create_external_run", reset="before_commit"))
    with pytest.raises(APIConnectionError):
        await client.external_runs.create("m")
    assert platform.ledger()["requests"]["create_external_run"] == 1
    assert await runs(platform) == []


async def test_a_run_whose_caller_is_cancelled_is_closed(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("create_external_run", delay_after=0.3))
    creating = asyncio.ensure_future(client.external_runs.create("m"))
    while not await runs(platform):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    await client.aclose()
    (row,) = await runs(platform)
    assert row["status"] == "FAILED"


async def test_metrics_of_a_step_are_one_row(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    made = await client.external_runs.create("m")
    platform.add_faults(FaultRule("log_external_run_metrics", nth=1, reset="after_commit"))
    await client.external_runs.log_metrics(made.id, {"reward/all/mean": 0.41}, step=3)
    await client.external_runs.log_metrics(
        made.id, {"note": "x", "ok": True, "_timestamp": 5}, step=3
    )
    await client.external_runs.log_metrics(made.id, {"step": 4, "none": None}, step=4)
    first, second = await metrics(platform, made)
    assert (first["reward/all/mean"], first["note"], first["ok"]) == (0.41, "x", True)
    assert (first["step"], first["_timestamp"]) == (3, 5)
    assert (second["step"], second["none"]) == (4, None)
    assert second["_timestamp"] > 1e9


class Scalar:
    """As numpy and torch have them."""

    def __init__(self, value: object) -> None:
        self.value = value

    def item(self) -> object:
        if isinstance(self.value, list):
            raise ValueError("more than one element")
        return self.value


async def test_a_scalar_of_an_array_library_is_a_number(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    made = await client.external_runs.create("m")
    await client.external_runs.log_metrics(made.id, {"loss": Scalar(1.5)}, step=0)
    assert (await metrics(platform, made))[0]["loss"] == 1.5


@pytest.mark.parametrize(
    ("values", "step", "error", "text"),
    [
        ({"loss": math.nan}, 0, ValueError, "loss is nan"),
        ({"loss": -math.inf}, 0, ValueError, "loss is -inf"),
        ({"loss": Scalar(math.inf)}, 0, ValueError, "loss is inf"),
        ({"loss": [1]}, 0, ValueError, "loss is no single value"),
        ({"loss": {"a": 1}}, 0, ValueError, "loss is no single value"),
        ({"loss": Scalar([1, 2])}, 0, ValueError, "loss is no single value"),
        ({"step": 1}, 2, ValueError, "step 1, not 2"),
        ({}, -1, ValueError, "at least 0"),
        ({}, True, TypeError, "bool"),
        ([1], 0, TypeError, "list"),
    ],
)
async def test_metrics_that_have_no_place_in_a_row_are_not_sent(
    platform: LocalPlatform,
    client: AsyncTrainClient,
    values: Any,
    step: int,
    error: type[Exception],
    text: str,
) -> None:
    with pytest.raises(error, match=text):
        await client.external_runs.log_metrics("run", values, step=step)
    assert platform.ledger()["requests"] == {}


async def test_samples_are_uploaded_and_confirmed(
    platform: LocalPlatform, client: AsyncTrainClient, tmp_path: Path
) -> None:
    made = await client.external_runs.create("m")
    path = tmp_path / "samples.parquet"
    path.write_bytes(PARQUET)
    await client.external_runs.push_samples(made.id, 10, path)
    await client.external_runs.push_samples(made.id, 20, PARQUET)
    await client.external_runs.push_samples(made.id, 20, PARQUET)
    found = await samples(platform)
    assert [(each["step"], each["confirmed"]) for each in found] == [(10, True), (20, True)]
    assert {each["sha256"] for each in found} == {hashlib.sha256(PARQUET).hexdigest()}


async def test_samples_come_through_lost_answers(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    made = await client.external_runs.create("m")
    platform.add_faults(
        FaultRule("presign_external_run_samples", nth=1, reset="after_commit"),
        FaultRule("confirm_external_run_samples", nth=1, reset="after_commit"),
        FaultRule("confirm_external_run_samples", nth=2, status=503),
    )
    await client.external_runs.push_samples(made.id, 10, PARQUET)
    assert [each["confirmed"] for each in await samples(platform)] == [True]


@pytest.mark.parametrize("data", [b"", b"PAR1PAR1", b"PAR1 no end", b"no begin PAR1"])
@pytest.mark.parametrize("kind", ["bytes", "path"])
async def test_what_is_no_parquet_file_is_not_sent(
    platform: LocalPlatform, client: AsyncTrainClient, tmp_path: Path, data: bytes, kind: str
) -> None:
    path = tmp_path / "samples.parquet"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="no Parquet file"):
        await client.external_runs.push_samples("run", 10, data if kind == "bytes" else path)
    with pytest.raises(FileNotFoundError):
        await client.external_runs.push_samples("run", 10, tmp_path / "other")
    with pytest.raises(TypeError, match="path or bytes"):
        await client.external_runs.push_samples("run", 10, 7)  # type: ignore[arg-type]
    assert platform.ledger()["requests"] == {}


async def test_a_run_is_closed_once(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    made = await client.external_runs.create("m")
    await client.external_runs.set_status(made.id, "failed", "crashed: OutOfMemoryError")
    await client.external_runs.set_status(made.id, "completed")
    await client.external_runs.finalize(made.id)
    (row,) = await runs(platform)
    assert (row["status"], row["errorMessage"]) == ("FAILED", "crashed: OutOfMemoryError")
    with pytest.raises(ValueError, match="status"):
        await client.external_runs.set_status(made.id, "stopped")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        await client.external_runs.set_status("unknown", "completed")


@pytest.mark.parametrize(("code", "status"), [(0, "COMPLETED"), (3, "FAILED")])
async def test_a_run_is_closed_by_its_exit_code(
    platform: LocalPlatform, client: AsyncTrainClient, code: int, status: str
) -> None:
    made = await client.external_runs.create("m")
    platform.add_faults(FaultRule("finalize_external_run", nth=1, reset="after_commit"))
    await client.external_runs.finalize(made.id, code)
    assert [each["status"] for each in await runs(platform)] == [status]


async def test_a_store_that_refuses_confirms_nothing(
    start_platform: StartPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three tries at most, with the type that was signed, without key and without redirects."""
    seen: list[dict[str, str]] = []

    async def refuse(request: web.BaseRequest) -> web.Response:
        seen.append(dict(request.headers))
        await request.read()
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    store = web.ServerRunner(web.Server(refuse))
    await store.setup()
    site = web.TCPSite(store, "127.0.0.1", 0)
    await site.start()
    try:
        platform = await start_platform()
        monkeypatch.setenv("PRIME_TEAM_ID", TEAM)
        host, port = store.addresses[0][:2]
        ticket = f'{{"presigned_url": "http://{host}:{port}/put?sig=x", "s3_key": "key"}}'
        platform.add_faults(FaultRule("presign_external_run_samples", status=200, body=ticket))
        async with AsyncTrainClient() as client:
            for status, tries in ((500, 3), (403, 1), (307, 1)):
                seen.clear()
                with pytest.raises(APIError):
                    await client.external_runs.push_samples("run", 1, PARQUET)
                assert len(seen) == tries, status
                assert {each["Content-Type"] for each in seen} == {"application/parquet"}
                assert not any(
                    name.lower() in ("authorization", "x-prime-team-id", "cookie")
                    for each in seen
                    for name in each
                )
        assert "confirm_external_run_samples" not in platform.ledger()["requests"]
    finally:
        await store.cleanup()


async def test_the_synchronous_client_records_runs(
    platform: LocalPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", TEAM)

    def record() -> str:
        with TrainClient() as client:
            made = client.external_runs.create("m", ["primeintellect/gsm8k"])
            client.external_runs.log_metrics(made.id, {"loss": 1.0}, step=1)
            client.external_runs.push_samples(made.id, 10, PARQUET)
            client.external_runs.finalize(made.id)
            return made.id

    made = await asyncio.to_thread(record)
    assert [(row["id"], row["status"]) for row in await runs(platform)] == [(made, "COMPLETED")]
