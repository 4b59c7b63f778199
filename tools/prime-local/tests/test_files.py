"""File routes of the gateway: limits, forms, tokens, clocks and faults."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from prime_local import FaultRule, LocalPlatform
from prime_local.assumptions import Assumptions
from prime_local.files import agent

if TYPE_CHECKING:
    from conftest import Files, OpenPlatform, RawClient

pytestmark = pytest.mark.timeout(60)

Json = dict[str, Any]
MIB = 1024 * 1024


async def test_ten_mebibytes_are_the_most_that_is_read_directly(files: Files) -> None:
    await files.run(f"head -c {10 * MIB} /dev/zero > most; head -c {10 * MIB + 1} /dev/zero > more")
    assert (await files.read("most")).body["size"] == 10 * MIB
    answer = await files.read("more")
    assert (answer.status, answer.body["code"]) == (413, 413)


@pytest.mark.parametrize(
    ("query", "content", "offset", "truncated"),
    [
        ({}, "0123456789", 0, False),
        ({"offset": 3}, "3456789", 3, True),
        ({"offset": 3, "length": 2}, "34", 3, True),
        ({"offset": -2}, "89", 8, True),
        ({"offset": -20, "length": 3}, "012", 0, True),
        ({"offset": 20}, "", 10, True),
        ({"length": 0}, "", 0, True),
    ],
)
async def test_a_window_has_an_effect_only_where_that_is_assumed(
    open_platform: OpenPlatform,
    files: Files,
    query: dict[str, int],
    content: str,
    offset: int,
    truncated: bool,
) -> None:
    await files.upload("digits", b"0123456789")
    assert (await files.read("digits", **query)).body == {"content": "0123456789", "size": 10}
    _, client = await open_platform(assumptions=Assumptions(read_window="honoured"))
    windowed = client.files(await client.running())
    await windowed.upload("digits", b"0123456789")
    assert (await windowed.read("digits", **query)).body == {
        "content": content,
        "size": len(content),
        "total_size": 10,
        "offset": offset,
        "truncated": truncated,
    }


async def test_what_is_no_text_is_replaced_or_refused(
    open_platform: OpenPlatform, files: Files
) -> None:
    await files.upload("binary", b"a\xffb")
    assert (await files.read("binary")).body == {"content": "a�b", "size": 3}
    _, client = await open_platform(assumptions=Assumptions(binary_file="refused"))
    strict = client.files(await client.running())
    await strict.upload("binary", b"a\xffb")
    assert (await strict.read("binary")).status == 400


async def test_a_token_is_needed(files: Files) -> None:
    files.token = "gwt_wrong"
    for answer in (await files.upload("x"), await files.download("x"), await files.read("x")):
        assert (answer.status, answer.body["error"]) == (401, "gateway_error")


async def test_an_ended_sandbox_is_gone(open_platform: OpenPlatform, files: Files) -> None:
    await files.client.call("DELETE", f"/api/v1/sandbox/{files.box['id']}")
    for answer in (await files.upload("x"), await files.download("x"), await files.read("x")):
        assert (answer.status, answer.body["error"]) == (410, "sandbox_terminated")
    _, client = await open_platform(assumptions=Assumptions(ended_gateway="bad_gateway"))
    routed = client.files(await client.running())
    await client.call("DELETE", f"/api/v1/sandbox/{routed.box['id']}")
    answer = await routed.read("x")
    assert (answer.status, answer.body["error"]) == (502, "sandbox_not_found")


async def test_a_sandbox_that_is_not_ready_is_a_conflict(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(gateway_delay=60)
    files = client.files(await client.running())
    answer = await files.read("x")
    assert (answer.status, answer.body["error"]) == (409, "gateway_error")
    await platform.advance(61)
    assert (await files.read("x")).status == 404


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        ("application/octet-stream", b"content"),
        ("multipart/form-data", b"content"),
        ("multipart/form-data; boundary=b", b"no boundary"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\ncontent\r\n--b--\r\n"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="other"; filename="x"\r\n\r\n1'
            b"\r\n--b--\r\n",
        ),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nhalf',
        ),
    ],
)
async def test_a_body_that_is_no_form_changes_nothing(
    files: Files, content_type: str, data: bytes
) -> None:
    await files.upload("x", b"old")
    url = files.url("upload", path="x")
    answer = await files.send(url, data, **{"Content-Type": content_type})
    assert answer.status == 400, answer.body
    while (left := await files.run("cat x; ls -A")) != "oldx\n":
        assert ".upload-" in left  # what had come is soon removed
        await asyncio.sleep(0.05)


async def test_an_upload_that_breaks_off_changes_nothing(files_of_mode: Files) -> None:
    files = files_of_mode
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * MIB
            begun.set()
            await asyncio.sleep(0.01)

    await files.upload("x", b"old")
    sending = asyncio.create_task(files.upload("x", endless()))
    await begun.wait()
    await asyncio.sleep(0.1)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    await asyncio.sleep(0.3)
    assert await files.run("cat x; ls -A") == "oldx\n"


async def test_a_download_that_nobody_takes_ends(files: Files) -> None:
    await files.run("head -c 50000000 /dev/zero > unwanted")
    url = files.url("download", path="unwanted")
    async with files.client.session.get(url, headers=files.headers) as response:
        await response.content.readany()
        assert agents("unwanted")
        response.close()
    deadline = time.monotonic() + 5
    while agents("unwanted"):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def agents(path: str) -> list[str]:
    """The processes that read a file for the gateway."""
    return [
        folder
        for folder in os.listdir("/proc")
        if folder.isdigit() and b"\0read\0" + path.encode() + b"\0" in command_line(folder)
    ]


def command_line(pid: str) -> bytes:
    try:
        return Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("route", ["upload", "download", "read-file"])
async def test_a_file_call_puts_the_idle_timeout_off(
    open_platform: OpenPlatform, route: str
) -> None:
    platform, client = await open_platform()
    files = client.files(await client.running(idle_timeout_minutes=1))
    await files.upload("x")
    for _ in range(3):
        await platform.advance(50)
        assert (await client.get(files.box))["status"] == "RUNNING"
        answer = await (files.upload("x") if route == "upload" else files.get(route, "x"))
        assert answer.status == 200
    await platform.advance(61)
    ended = await client.until(files.box, "TERMINATED")
    assert ended["terminationReason"] == "idle_timeout"


async def test_a_running_transfer_holds_the_idle_timeout(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    files = client.files(await client.running(idle_timeout_minutes=1))
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def content() -> AsyncIterator[bytes]:
        yield b"x"
        begun.set()
        await go_on.wait()

    sending = asyncio.create_task(files.upload("x", content()))
    await begun.wait()
    await asyncio.sleep(0.1)
    await platform.advance(600)
    go_on.set()
    assert (await sending).status == 200


async def test_the_end_of_a_sandbox_ends_its_transfers(files_of_mode: Files) -> None:
    files = files_of_mode
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            begun.set()
            await asyncio.sleep(0.001)

    sending = asyncio.create_task(files.upload("x", endless()))
    await begun.wait()
    await asyncio.sleep(0.2)
    await files.client.call("DELETE", f"/api/v1/sandbox/{files.box['id']}")
    answer = await asyncio.wait_for(sending, 10)
    assert (answer.status, answer.body["error"]) == (410, "sandbox_terminated")


@pytest.mark.parametrize("size", [0, 100_000, 299_999])
async def test_a_rule_cuts_a_download_at_the_byte(
    files: Files, prime_platform: LocalPlatform, size: int
) -> None:
    await files.upload("x", b"x" * 300_000)
    prime_platform.add_faults(FaultRule("download_file", truncate=size))
    url = files.url("download", path="x")
    got = bytearray()

    async def take(response: aiohttp.ClientResponse) -> None:
        async for piece in response.content.iter_any():
            got.extend(piece)

    async with files.client.session.get(url, headers=files.headers) as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await take(response)
    assert len(got) == size


@pytest.mark.parametrize(("limit", "said"), [(5, b"ok 5\n"), (4, b"error 28 no space left")])
def test_a_file_has_at_most_the_size_of_the_disk(tmp_path: Path, limit: int, said: bytes) -> None:
    pieces = b"".join(len(piece).to_bytes(4, "big") + piece for piece in (b"123", b"45", b""))
    words = [sys.executable, "-I", "-S", agent.__file__, "write", str(tmp_path / "x"), str(limit)]
    answer = subprocess.run(words, input=pieces, stdout=subprocess.PIPE, check=True).stdout
    assert answer.startswith(said)
    assert os.listdir(tmp_path) == (["x"] if limit == 5 else [])


async def test_the_variables_of_a_sandbox_do_not_reach_its_agent(client: RawClient) -> None:
    variables = {"PATH": "/nowhere", "PYTHONHOME": "/nowhere", "PYTHONSTARTUP": "/nowhere"}
    files = client.files(await client.running(environment_vars=variables))
    assert (await files.upload("x")).status == 200
    assert (await files.read("x")).body["content"] == "content"
