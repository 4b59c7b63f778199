"""The command `prime-local`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from prime_local.platform import LocalPlatform

logger = logging.getLogger("prime_local")

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    command: list[str] = []
    if "--" in words:
        end = words.index("--")
        words, command = words[:end], words[end + 1 :]
    parser = _parser()
    options = parser.parse_args(words)
    if bool(command) != (options.command == "run"):
        parser.error("`run` needs a command after --, `serve` takes none")
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="prime-local: %(levelname)s: %(message)s"
    )
    platform = LocalPlatform(
        limits=not options.no_limits,
        start_delay=options.start_delay,
        seed=options.seed,
        data_dir=options.data_dir,
        token_lifetime=options.token_lifetime,
        validate_responses=False,
        host=options.host,
        port=options.port,
    )
    _warn(options.host)
    try:
        if options.command == "serve":
            from prime_local.serving import serve

            return asyncio.run(serve(platform))
        from prime_local.running import run

        return asyncio.run(run(platform, command))
    except OSError as error:
        logger.error("cannot start: %s", error)
        return 1


def _parser() -> argparse.ArgumentParser:
    settings = argparse.ArgumentParser(add_help=False)
    settings.add_argument("--host", default="127.0.0.1", help="address to listen on")
    settings.add_argument("--port", type=int, default=0, help="port; 0 picks a free one")
    settings.add_argument(
        "--data-dir", type=Path, help="folder for sandboxes' files; default: a temporary one"
    )
    settings.add_argument("--seed", type=int, help="make ids and the API key repeatable")
    settings.add_argument(
        "--no-limits", action="store_true", help="enforce no creation and account limits"
    )
    settings.add_argument(
        "--start-delay",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="time between a create and RUNNING",
    )
    settings.add_argument(
        "--token-lifetime",
        type=_seconds,
        default=1800.0,
        metavar="SECONDS",
        help="how long a gateway token is good for",
    )
    parser = argparse.ArgumentParser(
        prog="prime-local", description="A local stand-in for the Prime Intellect platform."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "serve", parents=[settings], help="serve until SIGTERM or SIGINT; one ready line on stdout"
    )
    commands.add_parser(
        "run",
        parents=[settings],
        usage="prime-local run [options] -- COMMAND [ARGUMENT ...]",
        help="serve while a command runs, its environment set",
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError("must be at least 0")
    return seconds


def _warn(host: str) -> None:
    logger.warning(
        "SIMULATION, not the real platform. Sandboxes run in process mode: their commands are "
        "processes of this machine and account, and NOTHING isolates them from it."
    )
    if host not in _LOOPBACK:
        logger.warning("%s is no loopback address: whoever has the key can run commands here", host)
