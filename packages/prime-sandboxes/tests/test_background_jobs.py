"""Background jobs: started once, looked at, waited for, killed, and what they wrote."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import pytest

from prime_local import Assumptions, FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    APIError,
    APIResponseError,
    AsyncSandboxClient,
    BackgroundJob,
    BackgroundJobLostError,
    BackgroundJobStatus,
    BatchStatusUnsupportedError,
    SandboxNotRunningError,
    SandboxTimeoutError,
)
from prime_sandboxes import job_states as waits

if TYPE_CHECKING:
    from conftest import Running, StartPlatform

pytestmark = pytest.mark.timeout(60)

Lost = Literal["before_commit", "after_commit"]

START = "command_session_start"
BATCH = "batch_get_background_job_statuses"


async def finished(client: AsyncSandboxClient, job: BackgroundJob) -> BackgroundJobStatus:
    """The job's state and output, once it has ended."""
    deadline = time.monotonic() + 10
    while not (status := await client.get_background_job(job.sandbox_id, job)).completed:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return status


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 10
    while not await check():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_a_job_leaves_exit_code_and_both_outputs(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    job = await either.start_background_job(box.id, "echo out; echo err >&2; exit 3")
    status = await finished(either, job)
    assert status == BackgroundJobStatus(
        job_id=job.job_id, completed=True, exit_code=3, stdout="out\n", stderr="err\n"
    )


async def test_a_running_job_has_no_output_yet(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    job = await either.start_background_job(box.id, "echo out; sleep 60")
    status = await either.get_background_job(box.id, job)
    assert status == BackgroundJobStatus(job_id=job.job_id, completed=False)
    snapshot = await either.get_background_job_status(box.id, job)
    assert (snapshot.sandbox_id, snapshot.completed, snapshot.exit_code) == (box.id, False, None)


async def test_a_handle_names_the_documented_files(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    job = await client.start_background_job(box.id, "true")
    assert len(job.job_id) == 8
    assert int(job.job_id, 16) >= 0
    stem = f"/tmp/job_{job.job_id}"
    files = (f"{stem}.stdout.log", f"{stem}.stderr.log", f"{stem}.exit")
    assert (job.stdout_log_file, job.stderr_log_file, job.exit_file) == files


async def test_a_job_gets_its_folder_and_variables_letter_by_letter(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    odd = 'it\'s "$HOME" `id` \\ \n é'
    job = await client.start_background_job(
        box.id, "pwd; printf %s \"$ODD\"; [[ 'a' == a* ]]", "/usr", {"ODD": odd, "PATH": "/none"}
    )
    assert (await finished(client, job)).stdout == f"/usr\n{odd}"


async def test_a_missing_folder_ends_the_job_with_1(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    job = await client.start_background_job(box.id, "echo never", "/no/such/folder")
    status = await finished(client, job)
    assert (status.exit_code, status.stdout) == (1, "")
    assert "/no/such/folder" in (status.stderr or "")


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 255", 255), ("kill -9 $$", 137), ("no-such-program", 127), ("syntax ( error", 2)],
)
async def test_every_end_of_a_command_is_told(
    client: AsyncSandboxClient, running: Running, command: str, code: int
) -> None:
    box = await running(client)
    job = await client.start_background_job(box.id, command)
    assert (await finished(client, job)).exit_code == code


async def test_a_job_outlives_its_client_and_its_handle_pickles(
    platform: LocalPlatform, running: Running
) -> None:
    async with AsyncSandboxClient() as first:
        box = await running(first)
        job = await first.start_background_job(box.id, "sleep 0.3; echo late")
    async with AsyncSandboxClient() as second:
        assert (await finished(second, pickle.loads(pickle.dumps(job)))).stdout == "late\n"


@pytest.mark.parametrize("lost", ["before_commit", "after_commit"])
async def test_a_launch_whose_answer_was_lost_starts_one_job(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running, lost: Lost
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(START, nth=1, reset=lost))
    job = await client.start_background_job(box.id, "echo ran >>ran")
    await finished(client, job)
    assert (await client.execute_command(box.id, "cat ran")).stdout == "ran\n"


async def test_a_launch_that_is_sent_while_the_first_one_runs_starts_one_job(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(START, times=2, after_envelopes=1, truncate=0))
    job = await client.start_background_job(box.id, "echo ran >>ran")
    await finished(client, job)
    assert (await client.execute_command(box.id, "cat ran")).stdout == "ran\n"


async def test_a_launch_that_never_gets_through_raises_its_last_failure(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(START, reset="before_commit"))
    with pytest.raises(APIConnectionError):
        await client.start_background_job(box.id, "echo ran >>ran")
    platform.clear_faults()
    assert (await client.execute_command(box.id, "cat ran")).exit_code == 1


async def test_a_launch_without_a_place_for_its_files_says_why(
    start_platform: StartPlatform, running: Running
) -> None:
    await start_platform(isolation="process")
    async with AsyncSandboxClient() as client:
        box = await running(client, environment_vars={"PATH": "/none"})
        with pytest.raises(APIError, match=r"not started: .*mkdir"):
            await client.start_background_job(box.id, "true")


async def test_a_job_that_was_killed_from_outside_is_lost(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    job = await either.start_background_job(box.id, "sleep 60")
    await either.execute_command(box.id, f"kill -9 -$(cat /tmp/job_{job.job_id}.launch/pid)")
    with pytest.raises(BackgroundJobLostError) as caught:
        await either.get_background_job(box.id, job)
    assert (caught.value.sandbox_id, caught.value.job_id) == (box.id, job.job_id)
    assert job.job_id in str(pickle.loads(pickle.dumps(caught.value)))


async def test_a_wait_notices_that_its_job_is_lost(
    client: AsyncSandboxClient, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "FIRST_CHECK", 0.5)
    box = await running(client)
    with pytest.raises(BackgroundJobLostError):
        await client.run_background_job(box.id, "kill -9 -$PPID", timeout=None)


async def test_an_empty_exit_file_does_not_count(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    job = await client.start_background_job(box.id, "sleep 60")
    await client.execute_command(box.id, f": >{job.exit_file}")
    assert not (await client.get_background_job_status(box.id, job)).completed
    assert not (await client.get_background_job_statuses([job]))[0].completed


async def test_a_nonsensical_exit_file_is_an_error(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    job = await client.start_background_job(box.id, "sleep 60")
    await client.execute_command(box.id, f"echo x >{job.exit_file}")
    with pytest.raises(APIResponseError, match=job.job_id):
        await client.get_background_job_status(box.id, job)
    with pytest.raises(APIError, match="RUNTIME_ERROR"):
        await client.get_background_job_statuses([job])


async def test_many_jobs_are_one_question(
    platform: LocalPlatform, either: AsyncSandboxClient, running: Running
) -> None:
    boxes = [await running(either) for _ in range(2)]
    jobs = [
        await either.start_background_job(box.id, f"echo {box.id}; exit {number}")
        for number in range(2)
        for box in boxes
    ]
    for job in jobs:
        await finished(either, job)
    asked = platform.ledger()["requests"][START]
    snapshots = await either.get_background_job_statuses(jobs)
    assert platform.ledger()["requests"][START] == asked
    assert platform.ledger()["requests"][BATCH] == 1
    assert [(row.job_id, row.exit_code) for row in snapshots] == [
        (job.job_id, number // 2) for number, job in enumerate(jobs)
    ]
    statuses = await either.get_background_jobs(jobs)
    assert [status.stdout for status in statuses] == [f"{job.sandbox_id}\n" for job in jobs]


@pytest.mark.parametrize("status", [404, 405])
async def test_without_the_batch_route_each_job_is_asked_for(
    start_platform: StartPlatform, running: Running, status: int
) -> None:
    platform = await start_platform(assumptions=Assumptions(batch_routes=status))  # type: ignore[arg-type]
    async with AsyncSandboxClient() as client:
        box = await running(client)
        first = await client.start_background_job(box.id, "exit 4")
        second = await client.start_background_job(box.id, "sleep 60")
        await finished(client, first)
        for _ in range(2):
            rows = await client.get_background_job_statuses([first, second])
            assert [row.exit_code for row in rows] == [4, None]
        assert (await client.run_background_job(box.id, "echo x")).stdout == "x\n"
        assert platform.ledger()["requests"][BATCH] == 1  # remembered


async def test_jobs_of_what_is_no_vm_have_an_error_of_their_own(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    job = await client.start_background_job(box.id, "sleep 60")
    error = {"sandbox_id": box.id, "job_id": job.job_id, "code": "NOT_VM", "message": "no VM"}
    answer = json.dumps({"statuses": [], "errors": [error]})
    platform.add_faults(FaultRule(BATCH, status=200, body=answer))
    with pytest.raises(BatchStatusUnsupportedError, match="no VM"):
        await client.get_background_job_statuses([job])


async def test_a_job_that_the_answer_leaves_out_is_an_error(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    job = await client.start_background_job(box.id, "sleep 60")
    row = {"sandbox_id": box.id, "job_id": job.job_id, "completed": True}
    bodies: list[dict[str, object]] = [
        {"statuses": [], "errors": []},
        {"statuses": [row], "errors": []},
    ]
    for body in bodies:
        platform.add_faults(FaultRule(BATCH, status=200, body=json.dumps(body), times=1))
        with pytest.raises(APIResponseError, match=job.job_id):
            await client.get_background_job_statuses([job])


async def test_the_end_of_a_sandbox_is_told_by_every_look(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(either, timeout_minutes=5)
    job = await either.start_background_job(box.id, "sleep 600")
    waiting = asyncio.create_task(either.run_background_job(box.id, "sleep 600", poll_interval=0.2))
    await asyncio.sleep(0.3)
    await platform.advance(301)
    looks: list[Awaitable[object]] = [
        waiting,
        either.get_background_job(box.id, job),
        either.get_background_job_status(box.id, job),
        either.get_background_job_statuses([job]),
        either.get_background_jobs([job]),
        either.start_background_job(box.id, "true"),
    ]
    for look in looks:
        with pytest.raises(SandboxTimeoutError):
            await look


async def test_an_unknown_sandbox_is_not_running(client: AsyncSandboxClient) -> None:
    job = BackgroundJob(
        job_id="0123abcd",
        sandbox_id="sbx_unknown",
        stdout_log_file="/tmp/job_0123abcd.stdout.log",
        stderr_log_file="/tmp/job_0123abcd.stderr.log",
        exit_file="/tmp/job_0123abcd.exit",
    )
    with pytest.raises(SandboxNotRunningError) as caught:
        await client.get_background_job_statuses([job])
    assert caught.value.error_type == "SANDBOX_NOT_FOUND"
    with pytest.raises(SandboxNotRunningError):
        await client.get_background_job("sbx_unknown", job)


async def test_a_paused_sandbox_is_waited_for(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    waiting = asyncio.create_task(
        client.run_background_job(box.id, "sleep 0.3; echo x", poll_interval=0.2)
    )
    await asyncio.sleep(0.2)
    platform.pause(box.id)
    await asyncio.sleep(1.2)
    platform.resume(box.id)
    assert (await waiting).stdout == "x\n"
