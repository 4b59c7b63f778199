"""`prime-local serve`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import signal

from prime_local.platform import LocalPlatform

logger = logging.getLogger("prime_local")


async def serve(platform: LocalPlatform) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP, then end every sandbox; returns the exit code.

    Prints one JSON line on stdout once requests are answered.
    """
    raise_descriptor_limit()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    async with platform:
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
            "isolation": "process",
            "env": platform.env,
        }
    )


def raise_descriptor_limit() -> None:
    """Allow as many descriptors as the system lets us: a stream each for 1,000 sandboxes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        logger.info("at most %s descriptors", soft)
