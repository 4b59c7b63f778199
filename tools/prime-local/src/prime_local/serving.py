"""`prime-local serve`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal
import sys

from prime_local.platform import LocalPlatform
from prime_local.sandboxes.isolation.base import ModeName

logger = logging.getLogger("prime_local")

_WARNINGS: dict[ModeName, str] = {
    "full": "Sandboxes run in full isolation; they share this machine's kernel.",
    "bwrap": "Sandboxes run in bwrap isolation: nothing limits their memory and processors.",
    "process": "Sandboxes run in process mode: their commands are processes of this machine and "
    "account, and NOTHING isolates them from it.",
}


class _UntilEnd(asyncio.Protocol):
    """Sets an event at the end of a pipe."""

    def __init__(self, ended: asyncio.Event) -> None:
        self._ended = ended

    def connection_lost(self, error: Exception | None) -> None:
        self._ended.set()


async def serve(platform: LocalPlatform, *, until_eof: bool = False) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP, then end every sandbox; returns the exit code.

    With `until_eof` it also stops when stdin, which is a pipe, ends.

    Prints one JSON line on stdout once requests are answered.
    """
    raise_descriptor_limit()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if until_eof:
        await loop.connect_read_pipe(lambda: _UntilEnd(stop), sys.stdin)
    async with platform:
        warn_of_isolation(platform)
        print(ready_line(platform), flush=True)
        await stop.wait()
        logger.info("stopping")
    return 0


def ready_line(platform: LocalPlatform) -> str:
    return json.dumps(
        {
            "event": "ready",
            "url": platform.url,
            "api_key": platform.api_key,
            "pid": os.getpid(),
            "isolation": platform.isolation,
            "public_url": platform.public_url,
            "env": platform.env,
        }
    )


def warn_of_isolation(platform: LocalPlatform) -> None:
    """Say in the log what this is not, and what keeps sandboxes from this machine."""
    logger.warning("SIMULATION, not the real platform. %s", _WARNINGS[platform.isolation])


def raise_descriptor_limit() -> None:
    """Allow as many descriptors as the system lets us: a stream each for 1,000 sandboxes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        logger.info("at most %s descriptors", soft)
