"""Waiting for background jobs: in few questions, up to a deadline, with checked arguments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    AsyncSandboxClient,
    BackgroundJob,
    CommandTimeoutError,
    SandboxNotRunningError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(60)

START = "command_session_start"
BATCH = "batch_get_background_job_statuses"


async def test_a_run_returns_the_end_and_the_output(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    status = await either.run_background_job(
        box.id, "pwd; echo $A >&2; sleep 0.2; exit 4", 10, "/usr", {"A": "b"}, poll_interval=0.5
    )
    assert (status.completed, status.exit_code) == (True, 4)
    assert (status.stdout, status.stderr) == ("/usr\n", "b\n")


async def test_many_runs_share_their_questions(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    boxes = [await running(client) for _ in range(6)]
    runs = [
        client.run_background_job(box.id, f"sleep 1.5; echo {number}", poll_interval=1)
        for box in boxes
        for number in range(20)
    ]
    statuses = await asyncio.gather(*runs)
    assert [int(status.stdout or "") for status in statuses] == list(range(20)) * 6
    # 120 jobs travel in two batches; a few looks each, some while jobs still start.
    assert platform.ledger()["requests"][BATCH] <= 30


async def test_at_its_deadline_a_job_is_killed_with_its_group(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    command = "echo part; echo e >&2; sleep 600 & echo $! >child; wait"
    started = time.monotonic()
    with pytest.raises(CommandTimeoutError) as caught:
        await either.run_background_job(box.id, command, timeout=0.5, poll_interval=0.1)
    assert time.monotonic() - started < 5
    error = caught.value
    assert (error.sandbox_id, error.command, error.timeout) == (box.id, command, 0.5)
    assert (error.stdout, error.stderr) == ("part\n", "e\n")
    child = (await either.execute_command(box.id, "cat child")).stdout.strip()
    assert child
    deadline = time.monotonic() + 5
    while (await either.execute_command(box.id, f"kill -0 {child}")).exit_code == 0:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_a_killed_job_reads_as_ended_by_sigkill(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    with pytest.raises(CommandTimeoutError):
        await client.run_background_job(box.id, "sleep 600", timeout=0.2, poll_interval=0.1)
    listed = await client.execute_command(box.id, "cat /tmp/job_*.exit")
    assert "137" in listed.stdout.split()


async def test_a_job_that_ends_at_its_deadline_is_a_result(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    # The looks fail, so only the kill finds that the job has ended by itself.
    platform.add_faults(FaultRule(BATCH, status=500))
    status = await client.run_background_job(box.id, "echo x; exit 9", timeout=0.5)
    assert (status.exit_code, status.stdout) == (9, "x\n")


async def test_a_deadline_holds_while_nothing_answers(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(BATCH, status=500))
    platform.add_faults(FaultRule(START, nth=2, status=500), FaultRule(START, nth=3, status=500))
    with pytest.raises(CommandTimeoutError) as caught:
        await client.run_background_job(box.id, "sleep 600", timeout=0.5)
    assert caught.value.stdout == ""


async def test_a_deleted_sandbox_ends_the_wait(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    waiting = asyncio.create_task(
        client.run_background_job(box.id, "sleep 600", timeout=None, poll_interval=0.2)
    )
    await asyncio.sleep(0.5)
    await client.delete(box.id)
    with pytest.raises(SandboxNotRunningError) as caught:
        await asyncio.wait_for(waiting, 5)
    assert caught.value.status == "TERMINATED"


async def test_a_cancelled_wait_leaves_the_job(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    waiting = asyncio.create_task(client.run_background_job(box.id, "sleep 0.5; touch done"))
    await asyncio.sleep(0.3)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    deadline = time.monotonic() + 5
    while (await client.execute_command(box.id, "test -e done")).exit_code:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_closing_the_client_ends_its_waits(platform: LocalPlatform, running: Running) -> None:
    async with AsyncSandboxClient() as client:
        box = await running(client)
        waiting = asyncio.create_task(client.run_background_job(box.id, "sleep 600"))
        await asyncio.sleep(0.5)
    with pytest.raises(RuntimeError, match="closed"):
        await asyncio.wait_for(waiting, 5)


def handle(sandbox_id: str = "sbx_1", job_id: str = "0123abcd", **changed: str) -> BackgroundJob:
    stem = f"/tmp/job_{job_id}"
    fields = {
        "stdout_log_file": f"{stem}.stdout.log",
        "stderr_log_file": f"{stem}.stderr.log",
        "exit_file": f"{stem}.exit",
        **changed,
    }
    return BackgroundJob(job_id=job_id, sandbox_id=sandbox_id, **fields)


Ask = Callable[[AsyncSandboxClient], Any]
WRONG: dict[str, tuple[Ask, str]] = {
    "an empty command": (lambda c: c.start_background_job("sbx_1", " "), "command"),
    "NUL": (lambda c: c.start_background_job("sbx_1", "a\0b"), "NUL"),
    "an empty folder": (lambda c: c.start_background_job("sbx_1", "a", ""), "working_dir"),
    "an empty user": (lambda c: c.start_background_job("sbx_1", "a", user=""), "user"),
    "an odd variable": (lambda c: c.start_background_job("sbx_1", "a", env={"a-b": ""}), "a-b"),
    "no sandbox": (lambda c: c.start_background_job("", "a"), "sandbox_id"),
    "no time": (lambda c: c.run_background_job("sbx_1", "a", timeout=0), "timeout"),
    "no pause": (lambda c: c.run_background_job("sbx_1", "a", poll_interval=0), "poll_interval"),
    "another sandbox": (lambda c: c.get_background_job("sbx_2", handle()), "sbx_1, not in sbx_2"),
    "no job id": (lambda c: c.get_background_job("sbx_1", handle(job_id="x")), "job_id"),
    "no path": (lambda c: c.get_background_job("sbx_1", handle(exit_file="")), "path"),
    "no seconds": (lambda c: c.get_background_job("sbx_1", handle(), -1), "timeout"),
    "no jobs": (lambda c: c.get_background_job_statuses([]), "1 to 100"),
    "101 jobs": (
        lambda c: c.get_background_jobs([handle(job_id=f"{n:08x}") for n in range(101)]),
        "1 to 100",
    ),
    "a job twice": (lambda c: c.get_background_job_statuses([handle(), handle()]), "repeated"),
    "a changed handle": (
        lambda c: c.get_background_job_statuses([handle(exit_file="/tmp/x")]),
        "was changed",
    ),
}


@pytest.mark.parametrize(("ask", "text"), WRONG.values(), ids=WRONG)
async def test_wrong_arguments_are_refused_before_anything_is_sent(
    platform: LocalPlatform, client: AsyncSandboxClient, ask: Ask, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        await ask(client)
    assert not platform.ledger()["requests"]


async def test_what_is_no_handle_is_refused(client: AsyncSandboxClient) -> None:
    with pytest.raises(TypeError, match="BackgroundJob"):
        await client.get_background_job("sbx_1", "0123abcd")  # type: ignore[arg-type]


async def test_a_changed_handle_is_looked_at_where_it_says(
    client: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    job = handle(box.id, exit_file=f"{tmp_path}/code", stdout_log_file=f"{tmp_path}/log")
    await client.execute_command(box.id, f"echo 8 >{job.exit_file}; echo x >{job.stdout_log_file}")
    status = await client.get_background_job(box.id, job)
    assert (status.exit_code, status.stdout, status.stderr) == (8, "x\n", "")
