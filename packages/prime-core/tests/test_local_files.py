"""Downloads to files: whole or not at all."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from prime_core.local_files import (
    CHUNK,
    SLICE_CHUNK,
    LocalFailure,
    PartialFile,
    slice_upload,
)


class Chunks:
    """An answer's body that is made of chunks; an exception among them is raised."""

    def __init__(self, *chunks: bytes | Exception, hang: bool = False) -> None:
        self._chunks = chunks
        self._hang = hang
        self.begun = asyncio.Event()

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
        self.begun.set()
        if self._hang:
            await asyncio.get_running_loop().create_future()


async def save(path: Path, *chunks: bytes | Exception) -> int:
    async with PartialFile(path) as target:
        return await target.receive(Chunks(*chunks).iter_any(), None)


async def test_a_file_takes_its_place_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"old")
    async with PartialFile(path) as target:
        await target.receive(Chunks(b"n" * CHUNK, b"ew").iter_any(), None)
        assert path.read_bytes() == b"old"
        assert len(os.listdir(tmp_path)) == 2
    assert path.read_bytes() == b"n" * CHUNK + b"ew"
    assert os.listdir(tmp_path) == ["report"]


async def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    assert await save(tmp_path / "empty") == 0
    assert (tmp_path / "empty").read_bytes() == b""


async def test_missing_folders_are_made(tmp_path: Path) -> None:
    await save(tmp_path / "a" / "b" / "c", b"x")
    assert (tmp_path / "a" / "b" / "c").read_bytes() == b"x"


async def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"old")
    with pytest.raises(ConnectionError):
        await save(path, b"x" * 2 * CHUNK, ConnectionError("broke off"))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["report"]


async def test_another_attempt_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "report"
    async with PartialFile(path) as target:
        chunks = Chunks(b"x" * 2 * CHUNK, ConnectionError("broke off"))
        with pytest.raises(ConnectionError):
            await target.receive(chunks.iter_any(), None)
        await target.receive(Chunks(b"whole").iter_any(), None)
    assert path.read_bytes() == b"whole"


@pytest.mark.parametrize("twice", [False, True])
async def test_a_cancellation_leaves_nothing_behind(tmp_path: Path, twice: bool) -> None:
    body = Chunks(b"x" * 2 * CHUNK, hang=True)

    async def receive() -> None:
        async with PartialFile(tmp_path / "report") as target:
            await target.receive(body.iter_any(), None)

    task = asyncio.create_task(receive())
    await body.begun.wait()
    assert os.listdir(tmp_path)
    task.cancel()
    if twice:
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if twice:
        await asyncio.sleep(0.2)  # the thread has the rest to do
    assert os.listdir(tmp_path) == []


async def test_a_cancellation_at_any_moment_leaves_all_or_nothing(tmp_path: Path) -> None:
    for moment in range(40):
        path = tmp_path / "report"
        path.write_bytes(b"old")
        task = asyncio.create_task(save(path, b"new"))
        await asyncio.sleep(moment * 0.0001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert path.read_bytes() in (b"old", b"new")
        assert os.listdir(tmp_path) == ["report"]


async def test_the_mode_is_that_of_the_file_before(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_bytes(b"")
    path.chmod(0o750)
    await save(path, b"x")
    assert path.stat().st_mode & 0o777 == 0o750


async def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    await save(tmp_path / "new", b"x")
    (tmp_path / "plain").touch()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


async def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    await save(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"x"


async def test_a_folder_is_refused_before_anything_comes(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        await save(tmp_path, b"x")


async def test_a_place_that_cannot_be_written_is_the_systems_own_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        await save(tmp_path / "file" / "below", b"x")


async def test_an_error_of_the_file_is_told_apart_while_the_answer_is_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    target = await PartialFile(tmp_path / "file" / "below").__aenter__()
    with pytest.raises(LocalFailure) as caught:
        await target.receive(Chunks(b"x").iter_any(), None)
    assert isinstance(caught.value.cause, FileExistsError)


async def test_progress_is_told_and_its_error_is_the_callers(tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    async with PartialFile(tmp_path / "a", lambda *now: told.append(now)) as target:
        await target.receive(Chunks(b"x" * CHUNK, b"y").iter_any(), CHUNK + 1)
    assert told == [(0, CHUNK + 1), (CHUNK, CHUNK + 1), (CHUNK + 1, CHUNK + 1)]

    def raise_error(done: int, size: int | None) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        async with PartialFile(tmp_path / "b", raise_error) as target:
            await target.receive(Chunks(b"x").iter_any(), None)
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("linked", [False, True])
async def test_what_is_no_regular_file_is_refused_and_stays(tmp_path: Path, linked: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    place = tmp_path / "pipe"
    if linked:
        place = tmp_path / "link"
        place.symlink_to("pipe")
    with pytest.raises(ValueError, match="no regular file"):
        async with PartialFile(place):
            pytest.fail("nothing is to be fetched")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


async def test_what_became_no_regular_file_meanwhile_stays(tmp_path: Path) -> None:
    async def receive() -> None:
        async with PartialFile(tmp_path / "report") as target:
            await target.receive(Chunks(b"x").iter_any(), None)
            os.mkfifo(tmp_path / "report")

    with pytest.raises(ValueError, match="no regular file"):
        await receive()
    assert stat.S_ISFIFO(os.stat(tmp_path / "report").st_mode)
    assert os.listdir(tmp_path) == ["report"]


async def test_a_path_of_bytes_is_a_path(tmp_path: Path) -> None:
    async with PartialFile(os.fsencode(tmp_path / "new" / "b")) as target:
        await target.receive(Chunks(b"x").iter_any(), None)
    assert (tmp_path / "new" / "b").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("offset", "size"), [(0, 0), (0, 5), (3, 4), (100, 2 * SLICE_CHUNK), (1, 3 * SLICE_CHUNK + 7)]
)
async def test_a_slice_is_that_part_of_the_file_as_often_as_it_is_sent(
    tmp_path: Path, offset: int, size: int
) -> None:
    content = os.urandom(4 * SLICE_CHUNK)
    (tmp_path / "file").write_bytes(content)
    upload = slice_upload(tmp_path / "file", offset, size)
    assert (upload.size, upload.rewindable) == (size, True)
    for _ in range(2):
        chunks = [chunk async for chunk in upload.chunks(lambda: None, lambda: None)]
        assert b"".join(chunks) == content[offset : offset + size]


async def test_a_slice_of_a_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    upload = slice_upload(tmp_path / "file", 3, 4)
    with pytest.raises(OSError, match="became shorter"):
        async for _ in upload.chunks(lambda: None, lambda: None):
            pass
