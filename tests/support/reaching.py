"""For each operation of the sandboxes' contract: how a user's program comes to call it.

Only public methods are used, and each must succeed; a test compares the keys with the contract.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from prime_sandboxes import (
    AsyncImageClient,
    AsyncSandboxClient,
    BuildImageRequest,
    BuildImageResponse,
    CreateSandboxRequest,
    ImageUpdateItem,
    ImageUpdatePatch,
    ImageUpdateSource,
    LanNetwork,
    LanRule,
    SandboxCheckpoint,
    SSHSession,
    UpdateImagesRequest,
    VolumeMount,
)

# Its private half was thrown away.
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXhFWFSkaWSzEan2yiepw/+XVnAq/su4+u/VmcjjHKK"
FILE = "/tmp/reached"


@dataclass(frozen=True)
class Ground:
    """What every operation finds there.

    Args:
        client: a client of the platform.
        images: its images.
        box: the id of a running sandbox.
        folder: an empty folder of this machine.
    """

    client: AsyncSandboxClient
    images: AsyncImageClient
    box: str
    folder: Path

    async def checkpoint(self) -> SandboxCheckpoint:
        begun = await self.client.checkpoint(self.box)
        return await self.client.wait_for_checkpoint(begun.id, timeout_seconds=20)

    async def network(self) -> LanNetwork:
        return await self.client.create_lan_network("reached")

    async def session(self) -> SSHSession:
        return await self.client.create_ssh_session(self.box, PUBLIC_KEY)

    async def build(self) -> BuildImageResponse:
        begun = await self.images.initiate_build(
            BuildImageRequest(image_name="reached", image_tag="v1")
        )
        assert isinstance(begun, BuildImageResponse)
        return begun

    async def image(self) -> None:
        """Build `reached:v1`."""
        (self.folder / "Dockerfile").write_text("FROM python:3.11-slim\n")
        await self.images.build("reached:v1", self.folder, timeout=20)


def request(name: str = "reached", **fields: object) -> CreateSandboxRequest:
    return CreateSandboxRequest.model_validate(
        {"name": name, "docker_image": "python:3.11-slim", **fields}
    )


async def issue_a_token(ground: Ground) -> None:
    ground.client.clear_auth_cache()
    await ground.client.execute_command(ground.box, "true")


async def start_a_process(ground: Ground) -> None:
    assert (await ground.client.execute_command(ground.box, "echo $0")).exit_code == 0


async def attach(ground: Ground) -> None:
    async with await ground.client.open_process(ground.box, "sleep 30") as process:
        again = await ground.client.attach_process(ground.box, process.session_uuid)
        assert again.pid == process.pid
        await again.aclose()


async def list_processes(ground: Ground) -> None:
    async with await ground.client.open_process(ground.box, "sleep 30") as process:
        listed = await ground.client.list_processes(ground.box)
        assert process.pid in [each.pid for each in listed]


async def resize(ground: Ground) -> None:
    async with await ground.client.open_process(
        ground.box, "sleep 30", terminal=(80, 24)
    ) as process:
        await process.resize_terminal(100, 50)


async def write_input(ground: Ground) -> None:
    async with await ground.client.open_process(ground.box, "read line; exit 3") as process:
        await process.write_stdin(b"a line\n")
        assert await process.wait() == 3


async def stream_input(ground: Ground) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a "
        yield b"line\n"

    async with await ground.client.open_process(ground.box, "read line; exit 3") as process:
        await process.write_stdin_from(pieces())
        assert await process.wait() == 3


async def signal(ground: Ground) -> None:
    async with await ground.client.open_process(ground.box, "sleep 30") as process:
        await process.kill()
        assert await process.wait() != 0


async def look_at_jobs(ground: Ground) -> None:
    job = await ground.client.start_background_job(ground.box, "true")
    (state,) = await ground.client.get_background_job_statuses([job])
    assert state.job_id == job.job_id


async def upload(ground: Ground) -> None:
    sent = await ground.client.upload_bytes(ground.box, FILE, b"content", "reached")
    assert sent.size == 7


async def download(ground: Ground) -> None:
    await upload(ground)
    await ground.client.download_file(ground.box, FILE, str(ground.folder / "back"))
    assert (ground.folder / "back").read_bytes() == b"content"


async def read(ground: Ground) -> None:
    await upload(ground)
    assert (await ground.client.read_file(ground.box, FILE)).content == "content"


async def publish(ground: Ground) -> None:
    await ground.client.volumes.create("reached")
    mount = VolumeMount(name="reached", mount_path="/data")
    writer = await ground.client.create(request(volumes=[mount]))
    await ground.client.wait_for_creation(writer.id)
    await ground.client.volumes.publish(writer.id, "reached")


async def rename(ground: Ground) -> None:
    await ground.image()
    (image,) = (await ground.images.list(search="reached")).data
    change = ImageUpdateItem(
        source=ImageUpdateSource(reference=image.full_image_path or ""),
        set=ImageUpdatePatch(tag="v2"),
    )
    assert (await ground.images.update_images(UpdateImagesRequest(updates=[change]))).success


async def set_rules(ground: Ground) -> None:
    rules = [LanRule(from_="tag:web", to="tag:db", ports=[5432])]
    network = await ground.network()
    assert (await ground.client.set_lan_rules(network.id, rules)).rules == rules


async def join(ground: Ground) -> None:
    joined = await ground.client.add_lan_member((await ground.network()).id, ground.box)
    assert joined.sandbox_id == ground.box


async def leave(ground: Ground) -> None:
    network = await ground.network()
    await ground.client.add_lan_member(network.id, ground.box)
    await ground.client.remove_lan_member(network.id, ground.box)
    assert not (await ground.client.get_lan_network(network.id)).members


async def delete_network(ground: Ground) -> None:
    await ground.client.delete_lan_network((await ground.network()).id)
    assert not await ground.client.list_lan_networks()


async def get_checkpoint(ground: Ground) -> None:
    made = await ground.checkpoint()
    assert (await ground.client.get_checkpoint(made.id)).state == "DURABLE"


async def delete_checkpoint(ground: Ground) -> None:
    await ground.client.delete_checkpoint((await ground.checkpoint()).id)
    assert not await ground.client.list_checkpoints(ground.box)


async def delete_checkpoints(ground: Ground) -> None:
    made = await ground.checkpoint()
    assert (await ground.client.delete_sandbox_checkpoints(ground.box)).deleted == [made.id]


async def look_at_checkpoints(ground: Ground) -> None:
    made = await ground.checkpoint()
    found = await ground.client.get_checkpoints([made.id])
    assert [each.id for each in found.checkpoints] == [made.id]


async def close_session(ground: Ground) -> None:
    await ground.client.close_ssh_session(ground.box, (await ground.session()).session_id)


async def delete_volume(ground: Ground) -> None:
    await ground.client.volumes.create("reached")
    await ground.client.volumes.delete("reached")
    assert (await ground.client.volumes.list()).total == 0


async def get_volume(ground: Ground) -> None:
    made = await ground.client.volumes.create("reached")
    assert (await ground.client.volumes.get("reached")).id == made.id


async def get_network(ground: Ground) -> None:
    made = await ground.network()
    assert (await ground.client.get_lan_network(made.id)).name == "reached"


async def get_build(ground: Ground) -> None:
    begun = await ground.build()
    assert (await ground.images.get_build_status(begun.build_id))["status"] == "PENDING"


async def delete_image(ground: Ground) -> None:
    await ground.image()
    await ground.images.delete("reached:v1")
    assert not (await ground.images.list(search="reached")).data


REACH: dict[str, Callable[[Ground], Awaitable[object]]] = {
    "create_sandbox": lambda ground: ground.client.create(request()),
    "list_sandboxes": lambda ground: ground.client.list(),
    "bulk_delete_sandboxes": lambda ground: ground.client.bulk_delete([ground.box]),
    "batch_get_sandbox_statuses": lambda ground: ground.client.get_sandbox_statuses([ground.box]),
    "get_sandbox": lambda ground: ground.client.get(ground.box),
    "delete_sandbox": lambda ground: ground.client.delete(ground.box),
    "get_sandbox_logs": lambda ground: ground.client.get_logs(ground.box),
    "get_sandbox_error_context": lambda ground: ground.client.get_error_context(ground.box),
    "create_sandbox_auth_token": issue_a_token,
    "get_egress_policy": lambda ground: ground.client.get_network(ground.box),
    "set_egress_policy": lambda ground: ground.client.set_network(ground.box, deny=["*"]),
    "create_ssh_session": lambda ground: ground.session(),
    "close_ssh_session": close_session,
    "create_checkpoint": lambda ground: ground.checkpoint(),
    "list_checkpoints": lambda ground: ground.client.list_checkpoints(ground.box),
    "delete_sandbox_checkpoints": delete_checkpoints,
    "get_checkpoint": get_checkpoint,
    "delete_checkpoint": delete_checkpoint,
    "batch_get_checkpoints": look_at_checkpoints,
    "batch_get_background_job_statuses": look_at_jobs,
    "create_lan_network": lambda ground: ground.network(),
    "list_lan_networks": lambda ground: ground.client.list_lan_networks(),
    "get_lan_network": get_network,
    "delete_lan_network": delete_network,
    "set_lan_rules": set_rules,
    "put_lan_member": join,
    "remove_lan_member": leave,
    "create_sandbox_volume": lambda ground: ground.client.volumes.create("reached"),
    "list_sandbox_volumes": lambda ground: ground.client.volumes.list(),
    "get_sandbox_volume": get_volume,
    "delete_sandbox_volume": delete_volume,
    "publish_sandbox_volume": publish,
    "list_images": lambda ground: ground.images.list(),
    "update_images": rename,
    "initiate_image_build": lambda ground: ground.build(),
    "get_image_build": get_build,
    "start_image_build": lambda ground: ground.image(),
    "list_image_builds": lambda ground: ground.images.list_builds(),
    "delete_image": delete_image,
    "upload_build_context": lambda ground: ground.image(),
    "upload_file": upload,
    "download_file": download,
    "read_file": read,
    "command_session_start": start_a_process,
    "command_session_connect": attach,
    "command_session_list": list_processes,
    "command_session_update": resize,
    "command_session_stream_input": stream_input,
    "command_session_send_input": write_input,
    "command_session_send_signal": signal,
}
# A volume is mounted for these, which the mode `process` cannot do.
MOUNTING = {"publish_sandbox_volume"}
