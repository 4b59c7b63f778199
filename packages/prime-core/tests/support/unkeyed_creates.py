"""Creates that have no key, and a platform that makes a thing a request."""

from __future__ import annotations

import asyncio

from raw_server import Received
from rows import POKE, Thing
from scripted_platform import ScriptedPlatform

from prime_core.creation import create_unkeyed
from prime_core.reaper import Obligation, reaper
from prime_core.transport import AsyncTransport

__all__ = ["Marked", "Platform", "owed"]


class Platform(ScriptedPlatform):
    """Makes a thing a request."""

    made = 0

    def make(self, request: Received) -> str:
        self.made += 1
        return f"t{self.made}"


class Marked:
    """What a create has made, as a list of the platform tells it."""

    def __init__(self, transport: AsyncTransport, *lists: list[str] | Exception) -> None:
        self.transport = transport
        self.lists = list(lists)
        self.looks = 0
        self.discarded: list[str] = []

    async def find(self) -> list[Thing]:
        self.looks += 1
        found = self.lists.pop(0) if self.lists else []
        if isinstance(found, Exception):
            raise found
        return [Thing(id=each) for each in found]

    async def discard(self, made: Thing) -> None:
        self.discarded.append(made.id)

    def create(
        self, *, marked: bool = True, obligation: Obligation | None = None
    ) -> asyncio.Task[Thing]:
        return asyncio.ensure_future(
            create_unkeyed(
                self.transport,
                POKE,
                Thing,
                body=b'{"name": "a-mark"}',
                description="A thing",
                discard=self.discard,
                find=self.find,
                marked=marked,
                obligation=obligation,
            )
        )


def owed(transport: AsyncTransport) -> list[Obligation]:
    return [obligation for obligation in reaper._owed if obligation.owner is transport]
