"""Uses the vendor's client, sync or async, and prints as JSON what it saw.

    python vendor_client.py sync|async|volumes

Runs in an environment that holds the vendor's package, not ours.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from prime_sandboxes import (
    APIClient,
    APIError,
    AsyncSandboxClient,
    CommandTimeoutError,
    CreateSandboxRequest,
    SandboxClient,
    SandboxImagePullError,
    SandboxNotRunningError,
    StartCommand,
    VolumeMount,
)

# Its private half was thrown away.
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXhFWFSkaWSzEan2yiepw/+XVnAq/su4+u/VmcjjHKK"


def request(name: str, **fields: Any) -> CreateSandboxRequest:
    image = fields.pop("docker_image", "python:3.11-slim")
    return CreateSandboxRequest(name=name, docker_image=image, labels=["vendor"], **fields)


def use_sync() -> dict[str, Any]:
    client = SandboxClient(APIClient())
    seen: dict[str, Any] = {}
    made = client.create(request("one", environment_vars={"A": "env"}, secrets={"B": "secret"}))
    others = [client.create(request(f"other-{number}")) for number in range(3)]
    client.wait_for_creation(made.id)
    seen["waited"] = sorted(client.bulk_wait_for_creation([box.id for box in others]).values())
    done = client.execute_command(made.id, "echo $A $B; echo err >&2; exit 3", timeout=20)
    seen["command"] = [done.stdout, done.stderr, done.exit_code]
    seen["directory"] = client.execute_command(made.id, "pwd", working_dir="/").stdout
    try:
        client.execute_command(made.id, "sleep 20", timeout=1)
    except CommandTimeoutError:
        seen["timed_out"] = True
    use_jobs(client, made.id, seen)
    use_ssh(client, made.id, seen)
    seen["listed"] = client.list(labels=["vendor"]).total
    seen["status"] = client.get(made.id).status
    starting = StartCommand(executable="/bin/sh", args=["-c", "echo started; sleep 60"])
    logging = client.create(request("logging", start_command=starting))
    client.wait_for_creation(logging.id)
    deadline = time.monotonic() + 10
    while not (logs := client.get_logs(logging.id)) and time.monotonic() < deadline:
        time.sleep(0.05)
    seen["logs"] = logs
    seen["restored"] = save_and_restore(client, made.id)
    client.delete(made.id)
    try:
        client.execute_command(made.id, "true")
    except SandboxNotRunningError as error:
        seen["gone"] = error.status
    seen["deleted"] = len(client.bulk_delete([logging.id, *(box.id for box in others)]).succeeded)
    seen["left"] = client.list(labels=["vendor"], exclude_terminated=True).total
    return seen


def use_jobs(client: SandboxClient, sandbox_id: str, seen: dict[str, Any]) -> None:
    jobs = [client.start_background_job(sandbox_id, f"exit {code}") for code in (0, 7)]
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        states = client.get_background_job_statuses(jobs)
        if all(state.completed for state in states):
            break
        time.sleep(0.05)
    seen["jobs"] = [state.exit_code for state in states]
    seen["job"] = client.get_background_job_status(sandbox_id, jobs[1]).exit_code
    ran = client.run_background_job(sandbox_id, "exit 8", timeout=20, poll_interval=1)
    seen["ran"] = [ran.completed, ran.exit_code]


def use_ssh(client: SandboxClient, sandbox_id: str, seen: dict[str, Any]) -> None:
    session = client.create_ssh_session(sandbox_id, PUBLIC_KEY, ttl_seconds=60)
    seen["ssh"] = [session.sandbox_id == sandbox_id, session.ttl_seconds]
    client.close_ssh_session(sandbox_id, session.session_id)


def save_and_restore(client: SandboxClient, sandbox_id: str) -> list[Any]:
    client.execute_command(sandbox_id, "echo saved > note")
    checkpoint = client.checkpoint(sandbox_id)
    durable = client.wait_for_checkpoint(checkpoint.id, timeout_seconds=20)
    listed = client.list_checkpoints(sandbox_id, checkpoint_id=checkpoint.id)
    restored = client.create(CreateSandboxRequest(name="restored", checkpoint_id=checkpoint.id))
    client.wait_for_creation(restored.id)
    note = client.execute_command(restored.id, "cat note").stdout
    kept = client.delete_sandbox_checkpoints(sandbox_id).errors
    client.delete(restored.id)
    client.delete_checkpoint(client.get_checkpoint(checkpoint.id).id)
    left = client.list_checkpoints(sandbox_id)
    return [durable.state, len(listed), note, [error.code for error in kept], left]


def use_volumes() -> dict[str, Any]:
    client = SandboxClient(APIClient())
    seen: dict[str, Any] = {"created": client.volumes.create("data").head_checkpoint_id}
    mount = VolumeMount(name="data", mount_path="/data")
    writer = client.create(request("writer", volumes=[mount]))
    stale = client.create(request("stale", volumes=[mount]))
    client.wait_for_creation(writer.id)
    client.wait_for_creation(stale.id)
    client.execute_command(writer.id, "echo hello > /data/note")
    head = client.volumes.publish(writer.id, "data")
    seen["head"] = client.volumes.get("data").head_checkpoint_id == head.id
    found = client.get_checkpoints([head.id, "ckpt_none"])
    seen["found"] = [len(found.checkpoints), [error.code for error in found.errors]]
    seen["refused"] = refusals(
        lambda: client.volumes.publish(stale.id, "data"),
        lambda: client.volumes.create("data"),
        lambda: client.volumes.delete("data"),
    )
    read_only = VolumeMount(name="data", mount_path="/data", read_only=True)
    reader = client.create(request("reader", volumes=[read_only]))
    client.wait_for_creation(reader.id)
    seen["read"] = client.execute_command(reader.id, "cat /data/note").stdout
    seen["listed"] = [volume.name for volume in client.volumes.list(per_page=10).volumes]
    forced = client.volumes.publish(stale.id, "data", force=True, wait=False)
    seen["forced"] = client.wait_for_checkpoint(forced.id).state
    client.bulk_delete([writer.id, stale.id, reader.id])
    client.volumes.delete("data")
    seen["left"] = client.volumes.list().total
    return seen


def refusals(*calls: Any) -> list[str]:
    """What the platform says to each call, which it must refuse."""
    said = []
    for call in calls:
        try:
            call()
        except APIError as error:
            said.append(str(error)[:8])
    return said


async def use_async() -> dict[str, Any]:
    seen: dict[str, Any] = {}
    async with AsyncSandboxClient() as client:
        made = await asyncio.gather(*(client.create(request(f"box-{n}")) for n in range(5)))
        await asyncio.gather(*(client.wait_for_creation(box.id) for box in made))
        done = await asyncio.gather(
            *(client.execute_command(made[n % 5].id, f"echo {n}") for n in range(30))
        )
        seen["commands"] = [result.stdout for result in done] == [f"{n}\n" for n in range(30)]
        large = await client.execute_command(made[0].id, "head -c 1000000 /dev/zero | tr '\\0' x")
        seen["large"] = len(large.stdout)
        script = "read -r line; echo got $line; echo err >&2; exit 7"
        process = await client.open_process(made[0].id, script, env={"A": "1"})
        await process.write_stdin(b"word\n")
        out = b"".join([piece async for piece in process.stdout])
        err = b"".join([piece async for piece in process.stderr])
        seen["process"] = [out.decode(), err.decode(), await process.wait()]
        other = await client.open_process(made[1].id, "trap '' TERM; echo on; sleep 60")
        async for _ in other.stdout:
            break
        await other.terminate()
        await other.kill()
        seen["killed"] = await other.wait()
        await other.aclose()
        failing = await client.create(request("failing", docker_image="acme/nothing:v1"))
        try:
            await client.wait_for_creation(failing.id)
        except SandboxImagePullError:
            seen["pull_failed"] = True
        seen["listed"] = (await client.list(labels=["vendor"], per_page=2)).has_next
        saved = [await client.checkpoint(box.id) for box in made]
        await asyncio.gather(*(client.wait_for_checkpoint(each.id) for each in saved))
        seen["saved"] = {(await client.get_checkpoint(each.id)).state for each in saved} == {
            "DURABLE"
        }
        for box in made:
            await client.delete(box.id)
        left = await client.list(labels=["vendor"], exclude_terminated=True)
        seen["left"] = left.total
    return seen


if __name__ == "__main__":
    uses = {"sync": use_sync, "async": lambda: asyncio.run(use_async()), "volumes": use_volumes}
    print(json.dumps(uses[sys.argv[1]]()))
