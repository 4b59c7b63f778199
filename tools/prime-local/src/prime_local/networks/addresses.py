"""Addresses in the network of a platform, and names that lead to them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Iterable
from ipaddress import IPv4Address, IPv4Network

# The documented range. Each platform has a network of its own, so all of them use it alike.
RANGE = IPv4Network("198.18.0.0/15")
# This machine, as sandboxes reach it.
MACHINE = IPv4Address("198.19.255.254")
MACHINE_NAME = "prime-local.internal"
MEMBER_DOMAIN = "sandbox.internal"
# Of the first half; the rest of the range is for the platform's own links.
_FIRST, _COUNT = int(RANGE.network_address) + 1, 2**16 - 2
_LOOKUP_SECONDS = 2.0
_RESOLVER = """
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def look_up(name):
    try:
        infos = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return
    for info in infos:
        sys.stdout.write(f"{name} {info[4][0]}\\n")
        sys.stdout.flush()
ThreadPoolExecutor(32).map(look_up, sys.argv[1:])
"""


class AddressPool:
    """Hands out addresses; one that is given back is used again as late as possible."""

    def __init__(self) -> None:
        self._used: set[IPv4Address] = set()
        self._next = 0

    def take(self) -> IPv4Address:
        """Return a free address.

        Raises:
            OSError: all are in use.
        """
        for _ in range(_COUNT):
            address = IPv4Address(_FIRST + self._next)
            self._next = (self._next + 1) % _COUNT
            if address not in self._used:
                self._used.add(address)
                return address
        raise OSError("no address is left")

    def give_back(self, address: IPv4Address) -> None:
        self._used.discard(address)


async def look_up(names: Iterable[str]) -> dict[str, list[IPv4Address]]:
    """Return the addresses of host names as sandboxes would reach them, at most 2 s later.

    A name of this machine leads to `MACHINE`. One that is not found in time leads nowhere, and so
    does `*.example.com`, unless the machine's name is meant.
    """
    found: dict[str, list[IPv4Address]] = {}
    unknown = []
    for name in names:
        if name == MACHINE_NAME or (name.startswith("*.") and MACHINE_NAME.endswith(name[1:])):
            found[name] = [MACHINE]
        else:
            found[name] = []
            if not name.startswith("*."):
                unknown.append(name)
    async for name, address in _resolved(unknown):
        reached = MACHINE if _is_ours(address) else address
        if reached not in found[name]:
            found[name].append(reached)
    return found


async def _resolved(names: list[str]) -> AsyncIterator[tuple[str, IPv4Address]]:
    """Yield names with addresses, until all are found or 2 s are over.

    In a process of its own: a look-up that hangs can be killed there, in a thread it cannot.
    """
    if not names:
        return
    words = (sys.executable, "-I", "-S", "-c", _RESOLVER, *names)
    process = await asyncio.create_subprocess_exec(*words, stdin=DEVNULL, stdout=PIPE, env={})
    assert process.stdout is not None
    deadline = asyncio.get_running_loop().time() + _LOOKUP_SECONDS
    try:
        while True:
            left = deadline - asyncio.get_running_loop().time()
            line = await asyncio.wait_for(process.stdout.readline(), max(0.0, left))
            if not line:
                return
            name, address = line.decode().split()
            yield name, IPv4Address(address)
    except asyncio.TimeoutError:
        return
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _is_ours(address: IPv4Address) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
