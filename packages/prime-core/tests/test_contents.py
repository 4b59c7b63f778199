"""What can be uploaded, and the forms that it is sent in."""

from __future__ import annotations

import asyncio
import io
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.contents import upload_of
from prime_core.local_files import CHUNK
from prime_core.uploads import PIECE, Upload, multipart


def nothing() -> None:
    """Nobody asks for progress."""


async def sent(upload: Upload) -> bytes:
    return b"".join([piece async for piece in upload.chunks(nothing, nothing)])


def content_of(kind: str, data: bytes, folder: Path) -> Any:
    """The same data as each kind of content."""
    path = folder / "data"
    path.write_bytes(data)

    async def chunks() -> AsyncIterator[bytes]:
        yield data[:3]
        yield data[3:]

    def plain() -> Iterator[bytes]:
        yield data[:3]
        yield data[3:]

    return {
        "path": path,
        "text path": str(path),
        "bytes": data,
        "bytearray": bytearray(data),
        "memoryview": memoryview(data),
        "file": path.open("rb"),
        "memory file": io.BytesIO(data),
        "list": [data[:3], data[3:]],
        "iterator": plain(),
        "async iterator": chunks(),
    }[kind]


SIZED = ["path", "text path", "bytes", "bytearray", "memoryview", "file", "memory file"]
ONCE = ["iterator", "async iterator"]


@pytest.mark.parametrize("kind", [*SIZED, "list", *ONCE])
async def test_every_kind_of_content_is_sent_whole(kind: str, tmp_path: Path) -> None:
    data = os.urandom(2 * CHUNK + 17)
    content = content_of(kind, data, tmp_path)
    upload = await upload_of(content)
    assert upload.size == (len(data) if kind in SIZED else None)
    assert upload.rewindable == (kind not in ONCE)
    assert await sent(upload) == data
    if upload.rewindable:
        assert await sent(upload) == data
    if isinstance(content, io.BufferedReader):
        assert not content.closed
        content.close()


async def test_an_open_file_is_sent_from_where_it_stands(tmp_path: Path) -> None:
    file = io.BytesIO(b"0123456789")
    file.seek(4)
    upload = await upload_of(file)
    assert upload.size == 6
    assert await sent(upload) == b"456789"
    assert await sent(upload) == b"456789"


async def test_a_pipe_is_sent_once_with_no_size() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as file:
        with os.fdopen(writer, "wb") as end:
            end.write(b"through the pipe")
        upload = await upload_of(file)
        assert upload.size is None
        assert not upload.rewindable
        assert await sent(upload) == b"through the pipe"


async def test_large_chunks_are_handed_on_in_small_pieces() -> None:
    """An idle limit begins anew with each piece."""
    upload = await upload_of(b"x" * (5 * PIECE + 1))
    sizes = [len(piece) async for piece in upload.chunks(nothing, nothing)]
    assert sizes == [PIECE] * 5 + [1]


async def test_what_is_appended_meanwhile_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one")
    upload = await upload_of(path)
    with path.open("ab") as file:
        file.write(b"two")
    assert await sent(upload) == b"one"


@pytest.mark.parametrize("opened", [False, True])
async def test_a_file_that_became_shorter_is_an_error(tmp_path: Path, opened: bool) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"123456")
    with path.open("rb") as file:
        upload = await upload_of(file if opened else path)
        os.truncate(path, 3)
        with pytest.raises(OSError, match="became shorter"):
            await sent(upload)


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        await upload_of(tmp_path / "nowhere")


async def test_a_folder_is_no_content(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        await upload_of(tmp_path)


async def test_a_device_is_no_content() -> None:
    with pytest.raises(ValueError, match="no regular file"):
        await upload_of("/dev/null")


async def test_a_text_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("x")
    with path.open() as file, pytest.raises(TypeError, match="'rb'"):
        await upload_of(file)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 5, object()])
async def test_anything_else_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="can be uploaded"):
        await upload_of(wrong)


@pytest.mark.parametrize("wrong", [["text"], [1], "ab".__iter__()])
async def test_chunks_that_are_no_bytes_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="is bytes"):
        await sent(await upload_of(wrong))


async def test_a_source_is_closed_when_its_upload_is_given_up() -> None:
    closed = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.set()

    chunks = (await upload_of(source())).chunks(nothing, nothing)
    async for _ in chunks:
        break
    await chunks.aclose()
    assert closed.is_set()


async def test_a_cancelled_read_closes_its_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"x" * (3 * CHUNK))
    before = set(os.listdir("/dev/fd"))
    chunks = (await upload_of(path)).chunks(nothing, nothing)
    await chunks.__anext__()
    assert len(os.listdir("/dev/fd")) > len(before)
    await chunks.aclose()
    assert set(os.listdir("/dev/fd")) == before


async def test_progress_tells_of_every_piece_and_begins_anew_with_a_repeat() -> None:
    told: list[tuple[int, int | None]] = []
    upload = (await upload_of(b"x" * (PIECE + 1))).watched(lambda *now: told.append(now))
    form, _ = multipart(upload, field="file", filename="x")
    size = PIECE + 1
    for _ in range(2):
        await sent(form)
        assert told == [(0, size), (PIECE, size), (size, size)]
        told.clear()


filenames = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(filename=filenames, data=st.binary(max_size=300))
def test_a_form_holds_the_file_under_any_name(filename: str, data: bytes) -> None:
    upload, content_type = asyncio.run(_form(filename, data))
    body = asyncio.run(sent(upload))
    assert upload.size == len(body)
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    [part] = message.iter_parts()
    assert part.get_payload(decode=True) == data
    # What would end the header or the quotes must not be in it as it is.
    line = body.split(b"\r\n")[1]
    quoted = line.removeprefix(b'Content-Disposition: form-data; name="file"; filename="')[:-1]
    assert b'"' not in quoted
    assert min(quoted, default=32) >= 32


async def _form(filename: str, data: bytes) -> tuple[Upload, str]:
    return multipart(await upload_of(data), field="file", filename=filename)


async def test_a_name_that_is_no_unicode_is_sent_somehow(tmp_path: Path) -> None:
    form, _ = multipart(await upload_of(b"x"), field="file", filename=os.fsdecode(b"a\xff"))
    assert b'filename="a?"' in await sent(form)


async def test_a_temporary_file_can_be_uploaded() -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"content")
        file.seek(0)
        assert await sent(await upload_of(file)) == b"content"


@pytest.mark.parametrize("as_a_form", [False, True])
@pytest.mark.parametrize("whole", [True, False])
async def test_an_open_file_stands_where_it_stood(
    tmp_path: Path, whole: bool, as_a_form: bool
) -> None:
    (tmp_path / "data").write_bytes(b"skipped" + b"x" * (3 * CHUNK))
    with (tmp_path / "data").open("rb") as file:
        file.seek(7)
        upload = await upload_of(file)
        if as_a_form:
            watched = upload.watched(lambda done, size: None)
            upload, _ = multipart(watched, field="file", filename="data")
        if whole:
            assert len(await sent(upload)) >= 3 * CHUNK
        else:
            pieces = upload.chunks(nothing, nothing)
            for _ in range(3):
                await pieces.__anext__()
            await pieces.aclose()
        assert file.tell() == 7


async def test_a_pipe_is_refused_without_waiting_for_its_other_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no regular file"):
        await asyncio.wait_for(upload_of(tmp_path / "pipe"), 5)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc here")
def test_a_file_that_hides_its_size_is_sent_whole() -> None:
    async def sent_of(content: Any) -> bytes:
        return await sent(await upload_of(content))

    path = Path("/proc/self/limits")
    expected = path.read_bytes()
    assert expected
    assert asyncio.run(sent_of(path)) == expected
    with path.open("rb") as file:
        assert asyncio.run(sent_of(file)) == expected
