"""What tests of live processes share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

# Answers each line that it reads.
ECHO = 'while read -r line; do echo "got $line"; done'


async def rest(output: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in output])


async def until(output: AsyncIterator[bytes], text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += await asyncio.wait_for(output.__anext__(), 10)
    return seen


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def until_dead(pid: int) -> None:
    deadline = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        await asyncio.sleep(0.01)


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def until_written(path: Path) -> str:
    deadline = time.monotonic() + 10
    while not (text := text_of(path)).endswith("\n"):
        assert time.monotonic() < deadline, f"nothing in {path}"
        await asyncio.sleep(0.01)
    return text
