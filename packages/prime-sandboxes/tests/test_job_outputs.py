"""What finished background jobs wrote: size limits, failures, memory and turns."""

from __future__ import annotations

import asyncio
import pickle
import time
from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import AsyncSandboxClient, BackgroundJob, BackgroundJobStatus, SandboxClient
from prime_sandboxes import job_output as outputs

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(60)

START = "command_session_start"


async def ended(client: AsyncSandboxClient, sandbox_id: str, command: str) -> BackgroundJob:
    """A job that has ended, whose output nobody has read."""
    job = await client.start_background_job(sandbox_id, command)
    deadline = time.monotonic() + 10
    while not (await client.get_background_job_status(sandbox_id, job)).completed:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return job


async def test_of_a_log_of_more_than_10_mib_the_end_is_read(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    most = 10 * 1024 * 1024
    command = f"head -c {most} /dev/zero | tr '\\0' x; echo end; head -c {most} /dev/zero >&2"
    job = await ended(either, box.id, command)
    status = await either.get_background_job(box.id, job)
    assert status.stdout == "x" * (most - 4) + "end\n"
    assert status.stderr is not None
    assert len(status.stderr) == most
    assert (status.stdout_truncated, status.stderr_truncated) == (True, False)
    assert status.stdout_error is status.stderr_error is None


async def test_a_cut_through_a_character_leaves_no_broken_one(
    client: AsyncSandboxClient, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "MOST_BYTES", 5)
    box = await running(client)
    job = await ended(client, box.id, "printf 'ab€€'; printf '\\x80\\x81' >&2")
    status = await client.get_background_job(box.id, job)
    assert (status.stdout, status.stdout_truncated) == ("€", True)
    assert (status.stderr, status.stderr_truncated) == ("\ufffd\ufffd", False)


async def test_a_missing_log_is_an_empty_one(client: AsyncSandboxClient, running: Running) -> None:
    box = await running(client)
    job = await ended(client, box.id, "echo out; echo err >&2")
    await client.execute_command(box.id, f"rm {job.stdout_log_file}")
    status = await client.get_background_job(box.id, job)
    assert (status.stdout, status.stderr) == ("", "err\n")
    assert status.stdout_error is None


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_log_that_cannot_be_read_leaves_the_rest(
    client: AsyncSandboxClient, running: Running, stream: str
) -> None:
    box = await running(client)
    job = await ended(client, box.id, "echo text | tee /dev/stderr; exit 5")
    log = getattr(job, f"{stream}_log_file")
    await client.execute_command(box.id, f"rm {log}; mkdir {log}")
    status = await client.get_background_job(box.id, job)
    other = "stderr" if stream == "stdout" else "stdout"
    assert (status.completed, status.exit_code) == (True, 5)
    assert getattr(status, stream) is None
    assert getattr(status, f"{stream}_error")
    assert getattr(status, other) == "text\n"
    assert getattr(status, f"{other}_error") is None


async def test_a_failure_to_read_the_output_keeps_the_exit_code(
    platform: LocalPlatform, either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    job = await ended(either, box.id, "echo out; exit 6")
    platform.add_faults(FaultRule(START, nth=2, status=500, body='{"code":"internal"}'))
    status = await either.get_background_job(box.id, job)
    assert (status.completed, status.exit_code) == (True, 6)
    assert status.stdout is status.stderr is None
    assert "500" in str(status.stdout_error)
    assert "500" in str(status.stderr_error)
    # It was not taken for the output.
    assert (await either.get_background_job(box.id, job)).stdout == "out\n"


async def test_output_that_was_read_is_not_read_again(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    job = await ended(client, box.id, "echo out")
    first = await client.get_background_job(box.id, job)
    asked = platform.ledger()["requests"][START]
    assert await client.get_background_jobs([job]) == [first]
    assert platform.ledger()["requests"][START] == asked


async def test_output_is_kept_up_to_the_memory_for_it(
    platform: LocalPlatform, running: Running
) -> None:
    async with AsyncSandboxClient(background_job_output_cache_bytes=3000) as client:
        box = await running(client)
        jobs = [
            await ended(client, box.id, f"head -c {size} /dev/zero")
            for size in (1000, 1000, 1000, 5000)
        ]
        for job in jobs[:3]:  # the first makes room for the third
            await client.get_background_job(box.id, job)
        asked = platform.ledger()["requests"][START]
        await client.get_background_jobs(jobs[1:3])
        assert platform.ledger()["requests"][START] == asked
        await client.get_background_jobs(jobs[:1])
        assert platform.ledger()["requests"][START] == asked + 1
        for _ in range(2):  # too large to be kept
            await client.get_background_jobs(jobs[3:])
        assert platform.ledger()["requests"][START] == asked + 3
    async with AsyncSandboxClient(background_job_output_cache_bytes=0) as client:
        for _ in range(2):
            await client.get_background_jobs(jobs[:1])
    assert platform.ledger()["requests"][START] == asked + 5


async def test_outputs_are_read_a_few_at_a_time(platform: LocalPlatform, running: Running) -> None:
    async with AsyncSandboxClient(background_job_output_concurrency=2) as client:
        box = await running(client)
        jobs = [await ended(client, box.id, "echo out") for _ in range(6)]
        platform.add_faults(FaultRule(START, delay_before=0.2))
        started = time.monotonic()
        rows = await client.get_background_jobs(jobs)
        assert time.monotonic() - started >= 0.6
        assert [row.stdout for row in rows] == ["out\n"] * 6


async def test_a_client_keeps_its_limits_in_a_pickle(
    platform: LocalPlatform, running: Running
) -> None:
    client = AsyncSandboxClient(
        background_job_output_concurrency=3,
        background_job_output_queue_size=4,
        background_job_output_cache_bytes=0,
    )
    async with client, pickle.loads(pickle.dumps(client)) as copy:
        box = await running(copy)
        job = await ended(copy, box.id, "echo out")
        for _ in range(2):
            assert (await copy.get_background_job(box.id, job)).stdout == "out\n"
        # A job is started, its end is looked at at least once, and twice with its output.
        looks = platform.ledger()["requests"][START]
        await copy.get_background_jobs([job])
        assert platform.ledger()["requests"][START] == looks + 1  # nothing was kept


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("concurrency", 0, ValueError),
        ("concurrency", 1.5, TypeError),
        ("queue_size", 0, ValueError),
        ("cache_bytes", -1, ValueError),
        ("cache_bytes", True, TypeError),
    ],
)
def test_limits_that_cannot_be_are_refused(
    platform: LocalPlatform, name: str, value: object, error: type[Exception]
) -> None:
    keyword = f"background_job_output_{name}"
    for cls in (AsyncSandboxClient, SandboxClient):
        with pytest.raises(error, match=keyword):
            cls(**{keyword: value})  # type: ignore[arg-type]


def test_a_state_compares_with_its_documented_fields() -> None:
    assert BackgroundJobStatus(job_id="0123abcd", completed=False).model_dump() == {
        "job_id": "0123abcd",
        "completed": False,
        "exit_code": None,
        "stdout": None,
        "stderr": None,
        "stdout_error": None,
        "stderr_error": None,
        "stdout_truncated": False,
        "stderr_truncated": False,
    }
