"""Uploads and downloads: what arrives, and what is refused before anything is sent."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prime_local import LocalPlatform
from prime_sandboxes import (
    AsyncSandboxClient,
    BadRequestError,
    SandboxFileNotFoundError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(30)

MIB = 1024 * 1024
NAMES = [
    "with space",
    "é",
    "a:b",
    "100%2f",
    'quo"te',
    "new\nline",
    "a&path=b",
    "a+b",
    "#x",
    "'日本'",
]


def leftovers(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".part"))


async def in_sandbox(client: AsyncSandboxClient, box_id: str, command: str) -> str:
    result = await client.execute_command(box_id, command)
    assert result.exit_code == 0, result
    return result.stdout


async def test_a_file_goes_in_and_comes_back_the_same(
    either: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(either)
    data = os.urandom(3 * MIB + 1)
    (tmp_path / "model.bin").write_bytes(data)
    there = f"{box.disk_mount_path}/new/folder/model.bin"
    answer = await either.upload_file(box.id, there, str(tmp_path / "model.bin"))
    assert (answer.success, answer.path, answer.size) == (True, there, len(data))
    assert answer.timestamp.tzinfo is not None
    await either.download_file(box.id, there, str(tmp_path / "made" / "back.bin"))
    assert (tmp_path / "made" / "back.bin").read_bytes() == data
    assert leftovers(tmp_path / "made") == []


async def test_an_upload_replaces_what_is_there(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"a long first text", "x")
    await client.upload_bytes(box.id, "x", b"second", "x")
    assert await in_sandbox(client, box.id, "cat x") == "second"


@pytest.mark.parametrize("name", NAMES)
async def test_any_name_is_taken_as_it_is(
    client: AsyncSandboxClient, running: Running, tmp_path: Path, name: str
) -> None:
    box = await running(client)
    (tmp_path / name).write_bytes(b"content")
    await client.upload_file(box.id, name, tmp_path / name)
    command = 'cat "$NAME"; find . -type f -printf " one"'
    listed = await client.execute_command(box.id, command, env={"NAME": name})
    assert listed.stdout == "content one"
    await client.download_file(box.id, name, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"


async def test_chunks_made_meanwhile_are_uploaded(
    client: AsyncSandboxClient, running: Running
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(3):
            await asyncio.sleep(0.01)
            yield f"{number}\n".encode()

    box = await running(client)
    await client.upload_file(box.id, "a", chunks())
    await client.upload_file(box.id, "b", io.BytesIO(b"open file"))
    await client.upload_file(box.id, "c", iter([b"plain ", b"iterator"]))
    assert await in_sandbox(client, box.id, "cat a b c") == "0\n1\n2\nopen fileplain iterator"


async def test_an_empty_file_goes_both_ways(
    client: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    assert (await client.upload_bytes(box.id, "empty", b"", "empty")).size == 0
    await client.download_file(box.id, "empty", tmp_path / "empty")
    assert (tmp_path / "empty").read_bytes() == b""
    assert [piece async for piece in client.iter_file(box.id, "empty")] == []


async def test_a_file_is_iterated_as_it_arrives(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    data = os.urandom(2 * MIB)
    await either.upload_bytes(box.id, "x", data, "x")
    pieces = [piece async for piece in either.iter_file(box.id, "x")]
    assert b"".join(pieces) == data
    assert len(pieces) > 2


async def test_leaving_an_iteration_early_gives_the_connection_back(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"x" * 20 * MIB, "x")
    state = client._transport._states.get()
    before = state.stream._value
    pieces = client.iter_file(box.id, "x")
    async for _ in pieces:
        assert state.stream._value == before - 1
        break
    await pieces.aclose()  # type: ignore[attr-defined]
    assert state.stream._value == before


async def test_a_missing_local_file_is_noticed_before_anything_is_sent(
    either: AsyncSandboxClient, platform: LocalPlatform, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        await either.upload_file("sbx_1", "/x", str(tmp_path / "nowhere"))
    with pytest.raises(IsADirectoryError):
        await either.upload_file("sbx_1", "/x", str(tmp_path))
    with pytest.raises(IsADirectoryError):
        await either.download_file("sbx_1", "/x", str(tmp_path))
    assert not platform.ledger()["requests"]


@pytest.mark.parametrize("path", ["", "a\0b", "dir/", "..", "\udcff"])
async def test_an_impossible_path_is_refused_before_anything_is_sent(
    client: AsyncSandboxClient, platform: LocalPlatform, tmp_path: Path, path: str
) -> None:
    with pytest.raises(ValueError, match=r"path|folder"):
        await client.upload_bytes("sbx_1", path, b"", "x")
    with pytest.raises(ValueError, match=r"path|folder"):
        await client.download_file("sbx_1", path, tmp_path / "x")
    with pytest.raises(ValueError, match=r"path|folder"):
        client.iter_file("sbx_1", path)
    assert not platform.ledger()["requests"]


async def test_wrong_bytes_and_names_are_refused_before_anything_is_sent(
    client: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    with pytest.raises(TypeError, match="file_bytes"):
        await client.upload_bytes("sbx_1", "x", "text", "x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="filename"):
        await client.upload_bytes("sbx_1", "x", b"", "")
    with pytest.raises(ValueError, match="timeout"):
        await client.upload_bytes("sbx_1", "x", b"", "x", timeout=-1)
    assert not platform.ledger()["requests"]


async def test_a_missing_file_in_the_sandbox_leaves_the_local_one(
    either: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(either)
    (tmp_path / "old").write_bytes(b"old")
    with pytest.raises(SandboxFileNotFoundError, match="'nope'") as caught:
        await either.download_file(box.id, "nope", tmp_path / "old")
    assert caught.value.operation == "download_file"
    assert (tmp_path / "old").read_bytes() == b"old"
    assert leftovers(tmp_path) == []
    with pytest.raises(SandboxFileNotFoundError):
        await anext(aiter(either.iter_file(box.id, "nope")))


async def test_a_folder_is_no_file(
    client: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    await in_sandbox(client, box.id, "mkdir folder; touch file")
    with pytest.raises(BadRequestError, match="directory"):
        await client.download_file(box.id, "folder", tmp_path / "x")
    with pytest.raises(BadRequestError, match="directory"):
        await client.upload_bytes(box.id, "folder", b"", "x")
    with pytest.raises(BadRequestError):
        await client.upload_bytes(box.id, "file/below", b"", "x")


async def test_progress_is_told_both_ways(
    either: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(either)
    up: list[tuple[int, int | None]] = []
    down: list[tuple[int, int | None]] = []
    data = b"x" * (3 * MIB)
    await either.upload_bytes(box.id, "x", data, "x", progress=lambda *now: up.append(now))
    await either.download_file(box.id, "x", tmp_path / "x", progress=lambda *now: down.append(now))
    for told in (up, down):
        assert told[0] == (0, 3 * MIB)
        assert told[-1] == (3 * MIB, 3 * MIB)
        assert told == sorted(told)
        assert len(told) > 3


async def test_a_hundred_transfers_at_once(
    client: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(client)

    async def there_and_back(number: int) -> None:
        data = f"{number}".encode() * 1000
        await client.upload_bytes(box.id, f"{number}", data, "x")
        await client.download_file(box.id, f"{number}", tmp_path / f"{number}")
        assert (tmp_path / f"{number}").read_bytes() == data

    await asyncio.gather(*map(there_and_back, range(100)))
