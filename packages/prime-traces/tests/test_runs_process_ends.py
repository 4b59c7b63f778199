"""Ends of processes: what was logged arrives or is on disk, and the run is not left open."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import Any

import pytest
from run_ground import Ground, trace
from run_ground import ground as ground
from run_ground import platform_process as platform_process

from prime_local import FaultRule, PlatformProcess

BEGIN = """
import asyncio, json, os, signal, sys, time, uuid
import prime_traces.runs as prime_runs

def trace():
    return {"id": uuid.uuid4().hex, "timing": {"start": time.time()}}

def begun(run):
    print(run.id, flush=True)
    return run

def init(**options):
    return begun(prime_runs.init(environments=["primeintellect/gsm8k"], **options))
"""


def started(ground: Ground, script: str) -> tuple[subprocess.Popen[str], str]:
    """Starts a program and returns it with the id of its run."""
    process = ground.start(BEGIN + script)
    assert process.stdout is not None
    run_id = process.stdout.readline().strip()
    assert run_id, process.communicate()[1]
    return process, run_id


def ended(process: subprocess.Popen[str], seconds: float = 30) -> tuple[int, str, str]:
    """The exit code, output and errors of a program that ends by itself."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"it hangs: {process.communicate()}")
    return process.returncode, out, err


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        ("", 0, "crashed: the process ended without finishing the run"),
        ("sys.exit(4)", 4, "crashed: the process ended without finishing the run"),
        ("raise RuntimeError('out of luck')", 1, "crashed: RuntimeError: out of luck"),
    ],
)
def test_a_run_left_open_is_sent_and_reported_as_crashed(
    ground: Ground, end: str, code: int, message: str
) -> None:
    log = "run.log_traces([trace(), trace()])\nrun.log_metrics({'x': 1})\n"
    process, run_id = started(ground, f"run = init()\n{log}{end}")
    returned, _, err = ended(process)
    assert returned == code, err
    assert ("Traceback" in err) == (code == 1)
    found = ground.evaluation(run_id)
    assert (found["status"], found["error_message"]) == ("FAILED", message)
    assert found["metrics"]["x"] == 1
    assert len(ground.traces(run_id)) == 2


def test_a_finished_run_is_left_alone_at_exit(ground: Ground) -> None:
    process, run_id = started(ground, "run = init()\nrun.finish()\n")
    assert ended(process)[0] == 0
    assert ground.evaluation(run_id)["status"] == "COMPLETED"
    assert ground.requests("update_evaluation") == 0


def test_exit_is_bounded_and_keeps_what_the_platform_does_not_take(ground: Ground) -> None:
    ground.platform.add_faults(FaultRule("upload_traces", delay_before=60))
    process, run_id = started(
        ground,
        "import prime_traces.runs.lifecycle as lifecycle\n"
        "lifecycle.EXIT_PATIENCE = 1.0\n"
        "run = init()\nrun.log_traces([trace(), trace()])\nrun.log_traces([trace()])\n",
    )
    began = time.monotonic()
    code, _, err = ended(process)
    assert code == 0
    assert time.monotonic() - began < 8
    assert len(ground.unsent(run_id, "traces.jsonl")) == 3
    assert "3 records were not sent" in err
    assert ground.evaluation(run_id)["status"] == "FAILED"


WORK = """
with init() as run:
    run.log_traces([trace()])
    print("working", flush=True)
    time.sleep(60)
"""
ASYNC_WORK = """
async def main():
    run = begun(await prime_runs.async_init(environments=["primeintellect/gsm8k"]))
    async with run:
        await run.log_traces([trace()])
        print("working", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("script", [WORK, ASYNC_WORK], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, {1, -2, 130}), (signal.SIGTERM, {143})]
)
def test_a_signal_cancels_the_run(
    ground: Ground, script: str, number: signal.Signals, code: set[int]
) -> None:
    process, run_id = started(ground, script)
    wait_for(process, "working")
    process.send_signal(number)
    returned, _, err = ended(process)
    assert returned in code, err
    assert ground.evaluation(run_id)["status"] == "CANCELLED"
    assert len(ground.traces(run_id)) == 1


@pytest.mark.parametrize("script", [WORK, ASYNC_WORK], ids=["sync", "async"])
def test_more_than_one_ctrl_c_loses_nothing(ground: Ground, script: str) -> None:
    ground.platform.add_faults(FaultRule("upload_traces", delay_before=2.0))
    process, run_id = started(ground, script)
    wait_for(process, "working")
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    ended(process)
    assert ground.evaluation(run_id)["status"] == "CANCELLED"
    assert len(ground.traces(run_id)) == 1


@pytest.mark.parametrize("async_", [False, True], ids=["sync", "async"])
def test_a_run_whose_making_is_interrupted_is_not_left_open(ground: Ground, async_: bool) -> None:
    ground.platform.add_faults(FaultRule("create_evaluation", delay_after=1.5))
    call = (
        "asyncio.run(prime_runs.async_init(environments=['primeintellect/gsm8k']))"
        if async_
        else "prime_runs.init(environments=['primeintellect/gsm8k'])"
    )
    script = f"""
print('making', flush=True)
try:
    {call}
except KeyboardInterrupt:
    time.sleep(3)
os._exit(0)  # no exit hook does it
"""
    process = ground.start(BEGIN + script)
    wait_for(process, "making")
    deadline = time.monotonic() + 20
    while not ground.requests("create_evaluation"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    ended(process)
    assert ground.requests("update_evaluation") == 1


def test_a_forked_child_logs_to_the_run_and_does_not_end_it(ground: Ground) -> None:
    process, run_id = started(
        ground,
        """
run = init()
run.log_traces([trace()])
child = os.fork()
if child == 0:
    run.log_traces([trace(), trace()])
    sys.exit(0)
os.waitpid(child, 0)
print(run.status, flush=True)
child = os.fork()
if child == 0:
    run.log_metrics({"x": 1})
    run.finish()
    os._exit(0 if run.unsent_records == 0 else 1)
print(os.waitpid(child, 0)[1], flush=True)
run.log_traces([trace()])
run.finish()
""",
    )
    code, out, err = ended(process)
    assert (code, out.split()) == (0, ["running", "0"]), err
    assert "Unclosed" not in err
    assert len(ground.traces(run_id)) == 4
    assert ground.evaluation(run_id)["status"] == "COMPLETED"


def test_a_child_of_a_run_that_is_busy_sends_nothing_twice(ground: Ground) -> None:
    ground.platform.add_faults(FaultRule("upload_traces", delay_before=0.5))
    process, run_id = started(
        ground,
        """
run = init()
for _ in range(20):
    run.log_traces([trace()])
if os.fork() == 0:
    sys.exit(0)
os.wait()
run.finish()
""",
    )
    code, _, err = ended(process)
    assert code == 0, err
    assert len(ground.traces(run_id)) == 20
    assert ground.requests("upload_traces") <= 3
    assert ground.evaluation(run_id)["status"] == "COMPLETED"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_of_multiprocessing_sends_what_it_has_logged(ground: Ground, method: str) -> None:
    program = ground.folder / "program.py"
    program.write_text(
        BEGIN
        + """
import multiprocessing

def work(run_id, method):
    run = RUN if method == "fork" else prime_runs.init(id=run_id)
    run.log_traces([trace()])

if __name__ == "__main__":
    RUN = init()
    method = sys.argv[1]
    child = multiprocessing.get_context(method).Process(target=work, args=(RUN.id, method))
    child.start()
    child.join()
    RUN.finish()
"""
    )
    process = ground.run(program, method)
    code, out, err = ended(process)
    assert code == 0, err
    assert len(ground.traces(out.strip())) == 1, err


def test_a_process_that_is_killed_has_lost_its_queue_alone(ground: Ground) -> None:
    process, run_id = started(
        ground,
        """
run = init()
run.log_traces([trace()])
assert run.flush()
print("sent", flush=True)
time.sleep(60)
""",
    )
    wait_for(process, "sent")
    process.kill()
    ended(process)
    assert len(ground.traces(run_id)) == 1
    assert ground.evaluation(run_id)["status"] == "PENDING"


def test_a_platform_that_is_gone_at_the_end_leaves_everything_on_disk(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PlatformProcess() as doomed:
        for name, value in doomed.env.items():
            monkeypatch.setenv(name, value)
        process, run_id = started(
            ground,
            """
import prime_traces.runs.lifecycle as lifecycle, prime_traces.runs.recorder as recorder
lifecycle.EXIT_PATIENCE = recorder.REPORT_PATIENCE = 1.0
run = init()
time.sleep(1.5)
run.log_traces([trace(), trace()])
""",
        )
        doomed.close()
        code, _, err = ended(process)
    assert code == 0, err
    assert len(ground.unsent(run_id, "traces.jsonl")) == 2
    end: dict[str, Any] = json.loads(
        (ground.folder / "prime-runs" / run_id / "run.json").read_text()
    )
    assert end["status"] == "crashed"
    assert "prime-runs" in err


def test_traces_that_are_logged_by_many_threads_all_arrive(ground: Ground) -> None:
    import threading

    import prime_traces.runs as prime_runs

    given = [[trace() for _ in range(10)] for _ in range(8)]
    with prime_runs.init(environments=["primeintellect/gsm8k"], finish_timeout=20) as run:
        threads = [threading.Thread(target=run.log_traces, args=(each,)) for each in given]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert ground.trace_ids(run.id) == {each["id"] for some in given for each in some}
