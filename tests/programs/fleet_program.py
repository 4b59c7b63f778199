"""A program under test: runs a fleet of 200, and is interrupted or ends itself in the middle.

Usage: fleet_program.py {async|sync} {wait|body|exit}

It prints ``working`` once twenty sandboxes work, and ends then by itself for ``body`` (an
exception in the loop's body) and ``exit`` (SystemExit in the function).
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time

from prime_sandboxes import (
    AsyncSandboxClient,
    AsyncSandboxHandle,
    CreateSandboxRequest,
    SandboxClient,
    SandboxHandle,
)

REQUEST = CreateSandboxRequest(name="fleet", docker_image="python:3.11-slim")
ITEMS = 200
LIMIT = 60
ENOUGH = 20
EXIT_CODE = 7


class Program:
    def __init__(self, how: str) -> None:
        self.how = how
        self.working = 0
        self.lock = threading.Lock()

    def starts_working(self) -> bool:
        """Counts an item; whether its work ends at once, while the others' outlasts the test."""
        with self.lock:
            self.working += 1
            enough = self.working == ENOUGH
        if enough:
            print("working", flush=True)
            if self.how == "exit":
                raise SystemExit(EXIT_CODE)
        return enough and self.how == "body"

    def take(self) -> None:
        if self.how == "body":
            raise ValueError("the body failed")


async def run_async(program: Program) -> None:
    async def work(sandbox: AsyncSandboxHandle, item: int) -> None:
        if not program.starts_working():
            await sandbox.execute_command("sleep 60")

    async with AsyncSandboxClient() as client, client.fleet(limit=LIMIT) as fleet:
        async for _ in fleet.map(work, range(ITEMS), request=REQUEST):
            program.take()


def run_sync(program: Program) -> None:
    def work(sandbox: SandboxHandle, item: int) -> None:
        if not program.starts_working():
            # Even work that can't be interrupted must not hold the exit up.
            time.sleep(60)

    with SandboxClient() as client, client.fleet(limit=LIMIT) as fleet:
        for _ in fleet.map(work, range(ITEMS), request=REQUEST):
            program.take()


if __name__ == "__main__":
    style, how = sys.argv[1:]
    if style == "async":
        asyncio.run(run_async(Program(how)))
    else:
        run_sync(Program(how))
