"""Uses everything that the vendor's client offers, and prints as JSON which methods it called.

    python vendor_scenario.py sync|async

Each answer is checked where it comes. Runs in an environment that holds the vendor's package, not
ours.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import io
import json
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

from vendor_support import PATIENCE, Counted, equal, methods, raises, until

from prime_sandboxes import (
    APIClient,
    APIError,
    AsyncAPIClient,
    AsyncImageClient,
    AsyncSandboxClient,
    AsyncSandboxProcess,
    BuildImageRequest,
    CommandTimeoutError,
    CreateSandboxRequest,
    ImageClient,
    ImageUpdateItem,
    ImageUpdatePatch,
    ImageUpdateSource,
    LanRule,
    Sandbox,
    SandboxClient,
    SandboxFileNotFoundError,
    SandboxNotRunningError,
    StartCommand,
    UpdateImagesRequest,
    VolumeMount,
)

# Its private half was thrown away.
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXhFWFSkaWSzEan2yiepw/+XVnAq/su4+u/VmcjjHKK"
DOCKERFILE = """\
FROM python:3.11-slim
ENV BUILT=yes
WORKDIR /workspace
COPY note .
RUN tr a-z A-Z < note > loud
"""


def request(name: str, **fields: Any) -> CreateSandboxRequest:
    return CreateSandboxRequest(**{"name": name, "docker_image": "python:3.11-slim", **fields})


async def lifecycle(client: Any) -> Sandbox:
    started = StartCommand(executable="/bin/sh", args=["-c", "echo started; sleep 60"])
    fields = {"environment_vars": {"A": "env"}, "secrets": {"B": "secret"}, "cpu_cores": 2}
    made = await client.create(request("main", labels=["main"], timeout_minutes=30, **fields))
    others = [await client.create(request("other", start_command=started)) for _ in range(2)]
    ids = [other.id for other in others]
    await client.wait_for_creation(made.id)
    equal(await client.bulk_wait_for_creation(ids), dict.fromkeys(ids, "RUNNING"))
    found: Sandbox = await client.get(made.id)
    equal((found.status, found.labels, found.cpu_cores), ("RUNNING", ["main"], 2))
    equal([each.id for each in (await client.list(labels=["main"])).sandboxes], [made.id])
    page = await client.list(per_page=2)
    equal((page.total, len(page.sandboxes), page.has_next), (3, 2, True))
    looked = await client.get_sandbox_statuses([made.id, "sbx_none"])
    equal([each.sandbox_id for each in looked.statuses], [made.id])
    equal([each.code for each in looked.errors], ["NOT_FOUND"])
    await until(lambda: client.get_logs(ids[0]), lambda logs: bool(logs == "started\n"))
    await client.delete(ids[0])
    with raises(SandboxNotRunningError):
        await client.execute_command(ids[0], "true")
    deleted = await client.bulk_delete([ids[1], "sbx_none"])
    equal((deleted.succeeded, len(deleted.failed)), ([ids[1]], 1))
    return found


async def commands(client: Any, box: str) -> None:
    done = await client.execute_command(box, "echo $A $B $C; echo err >&2; exit 3", env={"C": "c"})
    equal((done.stdout, done.stderr, done.exit_code), ("env secret c\n", "err\n", 3))
    equal((await client.execute_command(box, "pwd", working_dir="/")).stdout, "/\n")
    await client.clear_auth_cache()
    large = await client.execute_command(box, "head -c 3000000 /dev/zero | tr '\\0' x")
    equal(len(large.stdout), 3_000_000)
    with raises(CommandTimeoutError):
        await client.execute_command(box, "sleep 20", timeout=1)


async def live_process(client: Any, calls: list[str], box: str) -> None:
    opened = await client.open_process(box, "cat; exit 4", env={"X": "x"})
    process = Counted(opened, calls)
    await process.write_stdin(b"spoken\n")
    equal(await anext(aiter(opened.stdout)), b"spoken\n")
    await process.terminate()
    equal(await process.wait() != 0, True)
    equal(opened.returncode is not None, True)
    with raises(BrokenPipeError):
        await process.write_stdin(b"late")
    await process.aclose()
    stubborn = await client.open_process(box, "trap '' TERM; echo $$; while :; do sleep 1; done")
    first = await anext(aiter(stubborn.stdout))
    equal(int(first) > 0, True)
    await Counted(stubborn, calls).kill()
    await Counted(stubborn, calls).wait()
    await Counted(stubborn, calls).aclose()


async def files(client: Any, box: str) -> None:
    local, back = Path("local.bin"), Path("back.bin")
    content = bytes(range(256)) * 4096
    await asyncio.to_thread(local.write_bytes, content)
    sent = await client.upload_file(box, "/workspace/in/one.bin", str(local))
    equal((sent.success, sent.size), (True, len(content)))
    sent = await client.upload_bytes(box, "/workspace/é :%2f", b"text", "text")
    equal((sent.path, sent.size), ("/workspace/é :%2f", 4))
    equal((await client.read_file(box, "/workspace/é :%2f")).content, "text")
    await client.download_file(box, "/workspace/in/one.bin", str(back))
    equal(await asyncio.to_thread(back.read_bytes) == content, True)
    with raises(SandboxFileNotFoundError):
        await client.read_file(box, "/workspace/none")
    with raises(APIError):
        await client.download_file(box, "/workspace/none", str(back))


async def jobs(client: Any, box: str) -> None:
    started = [
        await client.start_background_job(box, f"echo {code}; exit {code}") for code in (0, 7)
    ]
    ended = await until(
        lambda: client.get_background_job_statuses(started),
        lambda states: all(state.completed for state in states),
    )
    equal([state.exit_code for state in ended], [0, 7])
    equal((await client.get_background_job_status(box, started[1])).exit_code, 7)
    equal((await client.get_background_job(box, started[1])).stdout, "7\n")
    equal([job.stdout for job in await client.get_background_jobs(started)], ["0\n", "7\n"])
    ran = await client.run_background_job(box, "echo ran; exit 8", timeout=20, poll_interval=1)
    equal((ran.exit_code, ran.stdout), (8, "ran\n"))


async def fork(client: Any, source: Sandbox) -> None:
    await client.execute_command(source.id, "echo saved > note")
    begun = await client.checkpoint(source.id)
    durable = await client.wait_for_checkpoint(begun.id, timeout_seconds=PATIENCE)
    equal((durable.state, durable.sandbox_id), ("DURABLE", source.id))
    equal((await client.get_checkpoint(begun.id)).state, "DURABLE")
    many = await client.get_checkpoints([begun.id, "ckpt_none"])
    equal([each.id for each in many.checkpoints], [begun.id])
    equal([each.code for each in many.errors], ["NOT_FOUND"])
    inherited: dict[str, Any] = {"cpu_cores": source.cpu_cores, "memory_gb": source.memory_gb}
    inherited |= {"timeout_minutes": source.timeout_minutes, "labels": source.labels}
    restored = await client.create(
        CreateSandboxRequest(name=f"{source.name}-fork", checkpoint_id=begun.id, **inherited)
    )
    await client.wait_for_creation(restored.id)
    equal((await client.get(restored.id)).docker_image, source.docker_image)
    equal((await client.execute_command(restored.id, "cat note")).stdout, "saved\n")
    kept = await client.delete_sandbox_checkpoints(source.id)
    equal(([each.code for each in kept.errors], kept.deleted), (["CONFLICT"], []))
    await client.delete(restored.id)
    await client.delete_checkpoint(begun.id)
    equal(await client.list_checkpoints(source.id), [])


async def volumes(client: Any) -> None:
    equal((await client.volumes.create("data")).head_checkpoint_id, None)
    with raises(APIError, "HTTP 409"):
        await client.volumes.create("data")
    mounts = [VolumeMount(name="data", mount_path="/data")]
    writer, stale = [await client.create(request(each, volumes=mounts)) for each in ("w", "s")]
    await client.bulk_wait_for_creation([writer.id, stale.id])
    await client.execute_command(writer.id, "echo hello > /data/note")
    head = await client.volumes.publish(writer.id, "data")
    equal((await client.volumes.get("data")).head_checkpoint_id, head.id)
    with raises(APIError, "HTTP 409"):
        await client.volumes.publish(stale.id, "data")
    mounts = [VolumeMount(name="data", mount_path="/data", read_only=True)]
    reader = await client.create(request("reader", volumes=mounts))
    await client.wait_for_creation(reader.id)
    equal((await client.execute_command(reader.id, "cat /data/note")).stdout, "hello\n")
    with raises(APIError, "HTTP 400"):
        await client.volumes.publish(reader.id, "data")
    with raises(APIError, "HTTP 409"):
        await client.volumes.delete("data")
    forced = await client.volumes.publish(stale.id, "data", force=True, wait=False)
    equal((await client.wait_for_checkpoint(forced.id)).state, "DURABLE")
    await client.bulk_delete([writer.id, stale.id, reader.id])
    equal([each.name for each in (await client.volumes.list(per_page=10)).volumes], ["data"])
    await client.volumes.delete("data")
    equal((await client.volumes.list()).total, 0)


async def networks(client: Any, box: str) -> None:
    saved = await client.set_network(box, allow=["Example.com", "10.1.2.3"])
    equal(saved.policy.allowlist, ["example.com", "10.1.2.3/32"])
    equal((await client.get_network(box)).generation, saved.generation)
    closed = await client.set_network(box, deny=["*"])
    equal((closed.policy.allowlist, closed.policy.denylist), ([], None))
    network = await client.create_lan_network("demo")
    equal([(rule.from_, rule.to) for rule in network.rules], [("*", "*")])
    joined = await client.add_lan_member(network.id, box, tags=["web"])
    equal((joined.sandbox_id, joined.tags), (box, ["web"]))
    equal([each.tags for each in (await client.get_lan_network(network.id)).members], [["web"]])
    rules = [LanRule(from_="tag:web", to="tag:db", ports=[5432])]
    equal((await client.set_lan_rules(network.id, rules)).rules, rules)
    equal([each.name for each in await client.list_lan_networks()], ["demo"])
    await client.remove_lan_member(network.id, box)
    equal((await client.get_lan_network(network.id)).members, [])
    await client.delete_lan_network(network.id)
    with raises(APIError, "HTTP 404"):
        await client.get_lan_network(network.id)


async def ssh(client: Any, box: str) -> None:
    session = await client.create_ssh_session(box, PUBLIC_KEY, ttl_seconds=60)
    equal((session.sandbox_id, session.ttl_seconds), (box, 60))
    await client.close_ssh_session(box, session.session_id)


def context() -> bytes:
    """A build context as the vendor's command line packs it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in (("Dockerfile", DOCKERFILE), ("note", "from the context\n")):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue())


def put(url: str, body: bytes) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    sending = urllib.request.Request(url, body, headers, method="PUT")
    with urllib.request.urlopen(sending, timeout=PATIENCE) as answer:
        equal(answer.status, 200)


async def images(client: Any, images: Any, api: Any) -> None:
    build = await images.initiate_build(BuildImageRequest(image_name="app", image_tag="v1"))
    await asyncio.to_thread(put, build.upload_url, context())
    await images.start_build(build.build_id)
    over = ("COMPLETED", "FAILED", "CANCELLED")
    for begun in (build, await images.transfer_image("debian:12", owner_scope="platform")):
        ended = await until(
            functools.partial(images.get_build_status, begun.build_id),
            lambda found: found["status"] in over,
        )
        equal(ended["status"], "COMPLETED")
    box = await client.create(request("built", docker_image=build.full_image_path))
    await client.wait_for_creation(box.id)
    seen = await client.execute_command(box.id, "echo $BUILT; pwd; cat loud")
    equal(seen.stdout, "yes\n/workspace\nFROM THE CONTEXT\n")
    await client.delete(box.id)
    listed = await images.list(search="app", limit=10)
    equal(
        [(row.image_name, row.image_tag, row.visibility.value) for row in listed.data][:1],
        [("app", "v1", "PRIVATE")],
    )
    change = ImageUpdateItem(
        source=ImageUpdateSource(reference=build.full_image_path), set=ImageUpdatePatch(tag="v2")
    )
    for dry_run, tag in ((True, "v1"), (False, "v2")):
        changed = await images.update_images(UpdateImagesRequest(dry_run=dry_run, updates=[change]))
        equal((changed.success, changed.results[0].after.tag), (True, "v2"))
        equal({row.image_tag for row in (await images.list(search="app")).data}, {tag})
    # What the client has no method for.
    builds = await api.get("/images/builds")
    equal(build.build_id in json.dumps(builds), True)
    await api.delete("/images/app/v2")
    equal((await images.list(search="app")).data, [])


async def use(kind: str) -> dict[str, list[str]]:
    calls: list[str] = []
    asynchronous = kind == "async"
    api: Any = AsyncAPIClient() if asynchronous else APIClient()
    bare: Any = AsyncSandboxClient() if asynchronous else SandboxClient(api)
    bare_images: Any = AsyncImageClient(api) if asynchronous else ImageClient(api)
    client = Counted(bare, calls)
    box = await lifecycle(client)
    await commands(client, box.id)
    await files(client, box.id)
    await jobs(client, box.id)
    await fork(client, box)
    await volumes(client)
    await networks(client, box.id)
    await ssh(client, box.id)
    await images(client, Counted(bare_images, calls), Counted(api, calls))
    offered: list[Any] = [bare, bare.volumes, bare_images]
    if asynchronous:
        await live_process(client, calls, box.id)
        offered.append(AsyncSandboxProcess)
    await client.delete(box.id)
    equal((await client.list(exclude_terminated=True)).total, 0)
    if asynchronous:
        for each in (client, Counted(bare_images, calls), Counted(api, calls)):
            await each.aclose()
    return {"calls": calls, "offered": [name for each in offered for name in methods(each)]}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(use(sys.argv[1]))))
