"""What runs in a sandbox fails with its end, soon and by the documented error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from prime_local import LocalPlatform
from prime_sandboxes import (
    AsyncSandboxClient,
    Sandbox,
    SandboxNotRunningError,
    SandboxOOMError,
    SandboxTimeoutError,
)

StartPlatform = Callable[..., Awaitable[LocalPlatform]]
Running = Callable[..., Awaitable[Sandbox]]
End = Callable[[AsyncSandboxClient, LocalPlatform, Sandbox], Awaitable[object]]
MEMORY_GB = 0.125


async def delete(client: AsyncSandboxClient, platform: LocalPlatform, box: Sandbox) -> None:
    await client.delete(box.id)


async def outlive(client: AsyncSandboxClient, platform: LocalPlatform, box: Sandbox) -> None:
    await platform.advance(61)


async def use_all_memory(client: AsyncSandboxClient, platform: LocalPlatform, box: Sandbox) -> None:
    with pytest.raises(SandboxOOMError):
        await client.execute_command(box.id, "python -c 'x = bytearray(1 << 30)'")


async def command(client: AsyncSandboxClient, box: Sandbox) -> None:
    await client.execute_command(box.id, "sleep 60")


async def process(client: AsyncSandboxClient, box: Sandbox) -> None:
    opened = await client.open_process(box.id, "sleep 60")
    await opened.wait()


async def silent_process(client: AsyncSandboxClient, box: Sandbox) -> None:
    opened = await client.open_process(box.id, "sleep 60")
    async for _ in opened.stdout:
        pass


async def download(client: AsyncSandboxClient, box: Sandbox) -> None:
    path = f"{box.disk_mount_path}/large"
    await client.execute_command(box.id, f"truncate -s 2G {path}")
    async for _ in client.iter_file(box.id, path):
        await asyncio.sleep(0.02)  # slow enough to be under way when the end comes


async def upload(client: AsyncSandboxClient, box: Sandbox) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 4096
            await asyncio.sleep(0.02)

    await client.upload_file(box.id, f"{box.disk_mount_path}/endless", endless())


CALLS = (command, process, silent_process, download, upload)


async def errors_of(
    client: AsyncSandboxClient, platform: LocalPlatform, box: Sandbox, end: End
) -> tuple[dict[str, BaseException | None], float]:
    """What all calls raise when the sandbox ends under them, and how long after it."""
    work = [asyncio.ensure_future(call(client, box)) for call in CALLS]
    await asyncio.sleep(1.0)
    assert not [each for each in work if each.done()], work
    await end(client, platform, box)
    began = time.monotonic()
    results = await asyncio.gather(*work, return_exceptions=True)
    took = time.monotonic() - began
    return dict(zip([call.__name__ for call in CALLS], results, strict=True)), took


@pytest.mark.parametrize(
    ("end", "error"), [(delete, SandboxNotRunningError), (outlive, SandboxTimeoutError)]
)
async def test_all_that_runs_fails_within_a_second(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    end: End,
    error: type[SandboxNotRunningError],
) -> None:
    box = await running(client, timeout_minutes=1)
    errors, took = await errors_of(client, platform, box, end)
    assert {name: type(raised) for name, raised in errors.items()} == dict.fromkeys(errors, error)
    assert took < 1


async def test_a_lack_of_memory_is_named_within_a_second(
    start_isolated: StartPlatform, running: Running
) -> None:
    platform = await start_isolated(isolation="full")
    async with AsyncSandboxClient() as client:
        box = await running(client, memory_gb=MEMORY_GB)
        errors, took = await errors_of(client, platform, box, use_all_memory)
    assert {name: type(raised) for name, raised in errors.items()} == dict.fromkeys(
        errors, SandboxOOMError
    )
    assert took < 1
