"""Logs of runs: read within the limits, and followed line by line, with nothing lost or doubled."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions, FaultRule, LocalPlatform, PlatformProcess
from prime_local.training.outputs.components import Component
from prime_local.training.outputs.logs import ComponentLog
from prime_local.training.runs.record import Run as RunRecord
from prime_train import (
    AsyncAPIClient,
    AsyncTrainClient,
    BadRequestError,
    LogGap,
    NotFoundError,
    RunComponent,
    RunTimeoutError,
    parse_log_line,
)

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = pytest.mark.timeout(60)

DISPATCHES = "/training/runs"
REPEATED = "Waiting for rollouts"


async def dispatched(client: AsyncTrainClient, max_steps: int = 10) -> str:
    config = {
        "max_steps": max_steps,
        "model": {"name": "Qwen/Qwen3-4B-Instruct-2507"},
        "orchestrator": {
            "batch_size": 16,
            "train": {"source": [{"name": "sort", "env": {"taskset": {"id": "alphabet-sort"}}}]},
        },
        "inference": {},
    }
    made = await client.client.post(DISPATCHES, {"config": config, "gpuType": "H200_141GB"})
    return str(made["runId"])


async def all_of(lines: AsyncIterator[str]) -> list[str]:
    return [line async for line in lines]


async def some_of(lines: AsyncIterator[str], count: int) -> list[str]:
    return [await lines.__anext__() for _ in range(count)]


@pytest.fixture
async def slow(start_platform: StartPlatform) -> LocalPlatform:
    """A platform whose steps take ten seconds of its clock, and each state before 20."""
    return await start_platform(training_step_time=10, training_setup_time=20)


async def test_a_log_is_read(slow: LocalPlatform, client_of_slow: AsyncTrainClient) -> None:
    client = client_of_slow
    run_id = await dispatched(client)
    with pytest.raises(NotFoundError, match="not available yet"):
        await client.runs.get_logs(run_id)
    await slow.advance(90)
    text = await client.runs.get_logs(run_id)
    assert "simulated by prime-local" in text.split("\n")[0]
    assert (await client.runs.get_logs(run_id, 1)) == text.split("\n")[-1]
    filtered = await client.runs.get_logs(run_id, search="Step \\d", regex=True, level="success")
    lines = [parse_log_line(line) for line in filtered.split("\n")]
    assert {line.level for line in lines} == {"SUCCESS"}
    assert all(line.timestamp is not None and "Reward" in line.message for line in lines)
    with pytest.raises(BadRequestError, match="no pattern"):
        await client.runs.get_logs(run_id, search="(", regex=True)
    for component in (None, RunComponent.ENV_SERVER):
        text = await client.runs.get_logs(run_id, env_name="sort", component=component)
        assert "env-server is up" in text
    assert "env-server is up" in await client.runs.get_env_server_logs(run_id, "sort")
    recent = await client.runs.get_logs(run_id, since_seconds=60, component="trainer", pod_index=0)
    assert "[rank0]" in recent
    servers = await client.runs.list_env_servers(run_id)
    assert [(each.env_name, each.env_index, each.status) for each in servers] == [
        ("sort", 0, "Running")
    ]


@pytest.fixture
async def client_of_slow(slow: LocalPlatform) -> AsyncIterator[AsyncTrainClient]:
    async with AsyncTrainClient() as client:
        yield client


@pytest.mark.parametrize(
    "wrong",
    [
        {"tail_lines": 0},
        {"tail_lines": 5001},
        {"tail_lines": "100"},
        {"tail_lines": True},
        {"search": ""},
        {"search": 5},
        {"regex": True},
        {"level": "TRACE"},
        {"since_seconds": 59},
        {"since_seconds": 86401},
        {"component": "sidecar"},
        {"component": "env-server"},
        {"component": "trainer", "env_name": "sort"},
        {"env_name": ""},
        {"pod_index": -1},
    ],
)
async def test_a_wrong_read_is_refused_by_name_before_it_is_sent(
    platform: LocalPlatform, client: AsyncTrainClient, wrong: dict[str, Any]
) -> None:
    name = list(wrong)[-1].replace("component", "(component|env_name)")
    with pytest.raises(ValueError, match=name):
        await client.runs.get_logs("run", **wrong)
    with pytest.raises(ValueError, match=name):
        await all_of(client.runs.follow_logs("run", **wrong))
    assert platform.ledger()["requests"] == {}


@pytest.mark.parametrize(
    "wrong", [{"env_name": ""}, {"env_index": -1}, {"tail_lines": 5001}, {"level": "loud"}]
)
async def test_a_wrong_read_of_an_environment_server_is_refused_by_name(
    platform: LocalPlatform, client: AsyncTrainClient, wrong: dict[str, Any]
) -> None:
    asked = {"env_name": "sort", **wrong}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        await client.runs.get_env_server_logs("run", **asked)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        await all_of(client.runs.follow_env_server_logs("run", **asked))
    for timeout in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="timeout"):
            await all_of(client.runs.follow_logs("run", timeout=timeout))
    assert platform.ledger()["requests"] == {}


@pytest.mark.usefixtures("quick_polls")
async def test_a_run_is_followed_from_its_queue_to_its_end(
    slow: LocalPlatform, client_of_slow: AsyncTrainClient
) -> None:
    run_id = await dispatched(client_of_slow)

    async def pass_time() -> None:
        for _ in range(19):
            await asyncio.sleep(0.06)
            await slow.advance(10)

    passing = asyncio.ensure_future(pass_time())
    lines = await all_of(client_of_slow.runs.follow_logs(run_id, timeout=20))
    await passing
    assert lines == (await client_of_slow.runs.get_logs(run_id, 5000)).split("\n")
    assert len(lines) == 3 + 10 * 12 + 1


@pytest.mark.usefixtures("quick_polls")
async def test_of_a_log_that_is_there_the_newest_lines_come_first(
    slow: LocalPlatform, client_of_slow: AsyncTrainClient
) -> None:
    run_id = await dispatched(client_of_slow)
    await slow.advance(200)
    whole = (await client_of_slow.runs.get_logs(run_id, 5000)).split("\n")
    assert await all_of(client_of_slow.runs.follow_logs(run_id, tail_lines=5)) == whole[-5:]
    assert await all_of(client_of_slow.runs.follow_logs(run_id)) == whole


@pytest.mark.usefixtures("quick_polls")
async def test_a_log_that_goes_away_with_its_pods_ends_with_a_gap(
    slow: LocalPlatform, client_of_slow: AsyncTrainClient
) -> None:
    run_id = await dispatched(client_of_slow)
    await slow.advance(90)
    runs = client_of_slow.runs
    inference = runs.follow_logs(run_id, component="inference", timeout=20)
    server = runs.follow_env_server_logs(run_id, "sort", timeout=20)
    for follow in (inference, server):
        assert "simulated" in await follow.__anext__()
    await slow.advance(100)
    for follow in (inference, server):
        rest = await all_of(follow)
        assert isinstance(rest[-1], LogGap)
        assert not any(isinstance(line, LogGap) for line in rest[:-1])


@pytest.mark.usefixtures("quick_polls")
async def test_a_follow_has_a_deadline_and_knows_its_run(
    slow: LocalPlatform, client_of_slow: AsyncTrainClient
) -> None:
    run_id = await dispatched(client_of_slow)
    with pytest.raises(RunTimeoutError, match="PENDING") as late:
        await all_of(client_of_slow.runs.follow_logs(run_id, timeout=0.2))
    assert isinstance(late.value, TimeoutError)
    assert (late.value.run_id, late.value.status) == (run_id, "PENDING")
    with pytest.raises(NotFoundError, match="Run not found"):
        await all_of(client_of_slow.runs.follow_logs("unknown"))


@pytest.mark.usefixtures("quick_polls")
async def test_a_log_that_does_not_begin_is_given_up_after_18_looks(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    run_id = await dispatched(client, max_steps=1000)
    absent = json.dumps({"detail": "Pod is initializing"})
    platform.add_faults(FaultRule("get_run_logs", status=404, body=absent))
    with pytest.raises(NotFoundError, match="initializing"):
        await all_of(client.runs.follow_logs(run_id, timeout=30))
    assert platform.ledger()["requests"]["get_run_logs"] == 18


@pytest.mark.usefixtures("quick_polls")
async def test_other_refusals_end_a_follow(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    run_id = await dispatched(client, max_steps=1000)
    with pytest.raises(NotFoundError, match="no pod 9"):
        await all_of(client.runs.follow_logs(run_id, component="trainer", pod_index=9))
    platform.add_faults(FaultRule("get_run_logs", status=403))
    with pytest.raises(Exception, match="Injected fault"):
        await all_of(client.runs.follow_logs(run_id))


async def test_pauses_after_429s_grow(slow: LocalPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    slept = []

    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds < 10:
            await real_sleep(seconds)
            return
        slept.append(seconds)
        if len(slept) == 4:
            slow.clear_faults()
            await slow.advance(200)

    monkeypatch.setattr("prime_train.log_following.asyncio.sleep", sleep)
    monkeypatch.setattr("prime_train.log_pace.LOG_PAUSE", 0.05)
    async with (
        AsyncAPIClient(max_throttle_wait=0.001) as connections,
        AsyncTrainClient(client=connections) as client,
    ):
        run_id = await dispatched(client)
        await slow.advance(70)
        slow.add_faults(FaultRule("get_run_logs", status=429))
        lines = await all_of(client.runs.follow_logs(run_id))
    assert slept[:4] == [10.0, 10.0, 30.0, 30.0]
    assert len(lines) == 3 + 10 * 12 + 1


@pytest.mark.usefixtures("quick_polls")
async def test_where_lines_were_lost_a_gap_says_so_and_none_is_doubled(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform(training_step_time=1000, training_log_lines=4000)
    async with AsyncTrainClient() as client:
        run_id = await dispatched(client, max_steps=6)
        follow = client.runs.follow_logs(run_id, since_seconds=86400, timeout=30)
        lines = await some_of(follow, 2)
        # The last line is held back, until it is clear that it does not go on.
        for seconds, come in ((500, 2000), (500, 2000), (3000, 5001), (500, 2000), (500, 2000)):
            await platform.advance(seconds)
            lines += await some_of(follow, come)
        await platform.advance(1100)
        lines += await all_of(follow)
    gaps = [place for place, line in enumerate(lines) if isinstance(line, LogGap)]
    assert len(gaps) == 1
    assert "More than 5000 lines came" in lines[gaps[0]]
    numbered = [line for line in lines if "is scored" in line]
    assert len(set(numbered)) == len(numbered)
    assert "Training finished" in lines[-1]


@pytest.mark.usefixtures("quick_polls")
async def test_a_window_that_seems_to_go_on_with_a_repeated_line_is_read_again_larger(
    start_platform: StartPlatform,
) -> None:
    """What was read ends with the line that the next window, which is of later, begins with."""
    platform = await start_platform(training_step_time=40_000, training_log_lines=4000)
    async with AsyncTrainClient() as client:
        run_id = await dispatched(client, max_steps=3)
        await platform.advance(8065)
        follow = client.runs.follow_logs(run_id, tail_lines=5000, since_seconds=86400)
        lines = await some_of(follow, 3 + 805)
        assert lines[-1] == REPEATED
        await platform.advance(11_970)
        whole = (await client.runs.get_logs(run_id, 5000, since_seconds=86400)).split("\n")
        assert whole[-1000] == REPEATED
        lines += await some_of(follow, len(whole) - 1 - len(lines))
        assert lines == whole[:-1]
        # And in a window that is as large as can be, nobody knows.
        await platform.advance(61_960)
        lines += await some_of(follow, 5000)
    assert [place for place, line in enumerate(lines) if isinstance(line, LogGap)] == [3 + 2003]
    numbered = [line for line in lines if "is scored" in line]
    assert len(set(numbered)) == len(numbered)


async def test_looks_come_as_often_as_the_lines_demand(
    start_platform: StartPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 lines a second of real time: looks at the longest interval would miss a third."""
    monkeypatch.setattr("prime_train.log_pace.FIRST_PAUSE", 0.2)
    monkeypatch.setattr("prime_train.log_pace.LOG_PAUSE", 1.5)
    await start_platform(training_step_time=0.5, training_log_lines=2500)
    async with AsyncTrainClient() as client:
        run_id = await dispatched(client, max_steps=6)
        lines = await all_of(client.runs.follow_logs(run_id, tail_lines=5000, timeout=30))
    assert [line for line in lines if isinstance(line, LogGap)] == []
    assert len(lines) == 3 + 6 * 2500 + 1


async def test_narrow_windows_are_noticed_before_a_line_is_lost(
    start_platform: StartPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 lines a window, 300 lines a second."""
    monkeypatch.setattr("prime_train.log_pace.FIRST_PAUSE", 0.2)
    monkeypatch.setattr("prime_train.log_pace.LOG_PAUSE", 1.0)
    narrow = Assumptions(log_window="narrow")
    await start_platform(training_step_time=0.5, training_log_lines=150, assumptions=narrow)
    async with AsyncTrainClient() as client:
        run_id = await dispatched(client, max_steps=6)
        lines = await all_of(client.runs.follow_logs(run_id, timeout=30))
    assert [line for line in lines if isinstance(line, LogGap)] == []
    assert len(lines) == 3 + 6 * 150 + 1


async def test_200_000_lines_are_followed_with_none_lost_and_none_doubled(
    tmp_path: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch, quick_polls: None
) -> None:
    """Over 429s, broken connections and a restart of the platform; a quarter of the lines repeat.

    The clock runs ahead of what has come by 4,000 lines each time.
    """
    options = ["--no-limits", "--data-dir", str(tmp_path), "--training-step-time", "20"]
    options += ["--training-log-lines", "500"]
    platforms = [PlatformProcess(options)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(platforms[0])
        for name, value in platforms[0].env.items():
            monkeypatch.setenv(name, value)
        port = platforms[0].url.rpartition(":")[2]
        platforms.append(PlatformProcess([*options, "--port", port]))
        async with (
            AsyncAPIClient(max_throttle_wait=0.5) as connections,
            AsyncTrainClient(client=connections) as client,
        ):
            run_id = await dispatched(client, max_steps=400)
            spoil(platforms[0])
            follow = client.runs.follow_logs(run_id, tail_lines=5000, timeout=50)
            lines = await some_of(follow, 2)
            for stride in range(50):
                if stride == 25:
                    await asyncio.to_thread(platforms.pop(0).close)
                    await asyncio.to_thread(stack.enter_context, platforms[0])
                    spoil(platforms[0])
                await asyncio.to_thread(platforms[0].advance, 160)
                lines += await some_of(follow, 4000)
            lines += await all_of(follow)
    assert lines == whole_log(tmp_path, run_id)
    assert len(lines) == 3 + 200_000 + 1
    assert lines.count(REPEATED) > 40_000


def spoil(platform: PlatformProcess) -> None:
    platform.add_faults(
        FaultRule("get_run_logs", every=7, status=429, headers={"Retry-After": "0"}),
        FaultRule("get_run_logs", every=11, status=429, headers={"Retry-After": "9"}),
        FaultRule("get_run_logs", every=13, reset="after_commit"),
        FaultRule("get_run_logs", every=17, truncate=1000),
        FaultRule("get_training_run", every=9, reset="before_commit"),
        FaultRule("get_training_run", every=19, status=503),
    )


def whole_log(data_dir: Path, run_id: str) -> list[str]:
    """All that the run has logged, made at once, of what the platform kept of it."""
    with sqlite3.connect(data_dir / "platform.sqlite3") as database:
        rows = database.execute("SELECT record FROM objects WHERE kind = 'hosted_run'").fetchall()
    (record,) = [RunRecord.from_row(json.loads(text)) for (text,) in rows]
    assert record.id == run_id
    log = ComponentLog(record, Component("orchestrator"), record.updated_at + 1)
    return [log.line(index).text for index in range(len(log))]
