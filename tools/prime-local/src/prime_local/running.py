"""`prime-local run -- COMMAND`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from prime_local.platform import LocalPlatform
from prime_local.sandboxes.commands import shell_exit_code
from prime_local.sandboxes.processes import watch_exit
from prime_local.serving import raise_descriptor_limit, warn_of_isolation

logger = logging.getLogger("prime_local")

# They would point the command at another account, or at another host before PRIME_BASE_URL.
_REMOVED = ("PRIME_TEAM_ID", "PRIME_USER_ID", "PRIME_CONTEXT", "PRIME_API_BASE_URL")
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


async def run(platform: LocalPlatform, words: Sequence[str]) -> int:
    """Run a command against the platform and outlive it.

    SIGTERM, SIGINT and SIGHUP are passed on to the command, so that it can clean up while the
    platform still answers.

    Args:
        platform: not yet entered.
        words: the command and its arguments.

    Returns the command's exit code, 128 + N when signal N ended it.
    """
    raise_descriptor_limit()
    async with platform:
        warn_of_isolation(platform)
        try:
            return await _run_command(words, _environment(platform))
        except FileNotFoundError as error:
            logger.error("cannot run %s: %s", words[0], error.strerror)
            return _NOT_FOUND
        except OSError as error:
            logger.error("cannot run %s: %s", words[0], error.strerror)
            return _NOT_EXECUTABLE


async def _run_command(words: Sequence[str], environment: dict[str, str]) -> int:
    loop = asyncio.get_running_loop()
    shares_terminal = _in_foreground()
    waiting: list[signal.Signals] = []
    process: subprocess.Popen[bytes] | None = None
    exited: asyncio.Future[int] = loop.create_future()

    def pass_on(number: signal.Signals) -> None:
        if process is None:
            waiting.append(number)
        elif not exited.done() and not (shares_terminal and number is not signal.SIGTERM):
            process.send_signal(number)

    # Before the start: a signal must neither be lost nor end the platform under the command.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, pass_on, number)
    # The terminal sends Ctrl-C to its whole foreground group, and the command shares ours, so it
    # gets its own copy. Elsewhere it has a group of its own and gets exactly what we pass on.
    process = await asyncio.to_thread(
        subprocess.Popen, words, env=environment, start_new_session=not shares_terminal
    )
    watch_exit(process, exited)
    for number in waiting:
        pass_on(number)
    return shell_exit_code(await exited)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp() if sys.__stdin__ else False
    except (OSError, ValueError):
        return False


def _environment(platform: LocalPlatform) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _REMOVED}
    environment.update(platform.env)
    for name in ("NO_PROXY", "no_proxy"):
        # A proxy of this machine's user cannot reach the platform.
        present = environment.get(name)
        environment[name] = ",".join(filter(None, (present, "127.0.0.1", "localhost", "::1")))
    return environment
