"""The command `prime-local`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from prime_local.assumptions import Assumptions
from prime_local.errors import ContractViolation
from prime_local.faults import FaultRule, read_rules
from prime_local.inference.upstream import KEY_VARIABLE
from prime_local.platform import LocalPlatform
from prime_local.sandboxes.isolation.base import IsolationError
from prime_local.training.runs.record import LOG_LINES

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
    try:
        platform = _platform(options)
    except ValueError as error:
        parser.error(str(error))
    _warn(options.host)
    try:
        if options.command == "serve":
            from prime_local.serving import serve

            return asyncio.run(serve(platform, until_eof=options.until_eof))
        from prime_local.running import run

        return asyncio.run(run(platform, command))
    except (OSError, ValueError, IsolationError) as error:
        logger.error("cannot start: %s", error)
        return 1
    except ContractViolation as error:
        logger.error("%s", error)
        return 1


def _platform(options: argparse.Namespace) -> LocalPlatform:
    """Make the platform that the options describe.

    Raises:
        ValueError: an option's value is of no use.
    """
    faults: list[FaultRule] = []
    if options.faults is not None:
        try:
            faults = read_rules(json.loads(options.faults.read_bytes()))
        except (OSError, ValueError) as error:
            raise ValueError(f"--faults {options.faults}: {error}") from error
    return LocalPlatform(
        limits=not options.no_limits,
        strict_limits=options.strict_limits,
        start_delay=options.start_delay,
        gateway_delay=options.gateway_delay,
        image_build_time=options.image_build_time,
        network_delay=options.network_delay,
        checkpoint_time=options.checkpoint_time,
        removal_time=options.removal_time,
        rollout_time=options.rollout_time,
        volume_time=options.volume_time,
        training_step_time=options.training_step_time,
        training_setup_time=options.training_setup_time,
        training_log_lines=options.training_log_lines,
        trace_index_delay=options.trace_index_delay,
        provisioning_time=options.provisioning_time,
        provisioning_reads=options.provisioning_reads,
        detach_time=options.detach_time,
        balance=options.balance,
        seed=options.seed,
        data_dir=options.data_dir,
        isolation=options.isolation,
        token_lifetime=options.token_lifetime,
        inference_upstream=options.inference_upstream,
        latency=options.latency,
        clock_skew=options.clock_skew,
        noise=options.noise,
        faults=faults,
        assumptions=Assumptions.parse(options.assume),
        validate_responses=options.validate_responses,
        host=options.host,
        port=options.port,
    )


def _settings() -> argparse.ArgumentParser:
    settings = argparse.ArgumentParser(add_help=False)
    settings.add_argument("--host", default="127.0.0.1", help="address to listen on")
    settings.add_argument("--port", type=int, default=0, help="port; 0 picks a free one")
    settings.add_argument(
        "--data-dir",
        type=Path,
        help="folder that remembers sandboxes and traces; default: a temporary one",
    )
    settings.add_argument(
        "--isolation",
        choices=("auto", "full", "bwrap", "process"),
        default="auto",
        help="how sandboxes are kept from this machine; auto: the strongest that works here",
    )
    settings.add_argument("--seed", type=int, help="make ids and the API key repeatable")
    limits = settings.add_mutually_exclusive_group()
    limits.add_argument("--no-limits", action="store_true", help="enforce no limits")
    limits.add_argument(
        "--strict-limits", action="store_true", help="enforce those of older descriptions as well"
    )
    for name, default, text in (
        ("--start-delay", 0.0, "time between a create and RUNNING"),
        ("--gateway-delay", 0.0, "time between RUNNING and a gateway that answers"),
        ("--image-build-time", 0.0, "how long the first use of an image waits"),
        ("--network-delay", 0.0, "time between a change of network rules and its effect"),
        ("--checkpoint-time", 0.0, "how long a checkpoint takes to be DURABLE"),
        ("--removal-time", 0.0, "how long a deleted checkpoint is DELETING"),
        ("--rollout-time", 0.0, "how long each rollout of a hosted evaluation takes"),
        ("--volume-time", 0.0, "how long each state of a training volume's sessions takes"),
        ("--training-step-time", 1.0, "how long a step of a hosted run takes"),
        ("--training-setup-time", 0.0, "how long it is in each state before RUNNING"),
        ("--trace-index-delay", 0.0, "time between an upload of traces and their index"),
        ("--provisioning-time", 0.0, "how long each step of a pod or a disk takes"),
        ("--detach-time", 0.0, "time between the end of a pod and the release of its disks"),
        ("--token-lifetime", 1800.0, "how long a gateway token is good for"),
        ("--latency", 0.0, "time that each request waits before it is processed"),
    ):
        settings.add_argument(name, type=_seconds, default=default, metavar="SECONDS", help=text)
    settings.add_argument(
        "--provisioning-reads",
        type=int,
        default=0,
        metavar="COUNT",
        help="how often a pod or a disk must be read for each step, in place of the time",
    )
    settings.add_argument(
        "--training-log-lines",
        type=int,
        default=LOG_LINES,
        metavar="COUNT",
        help="how many lines each component of a hosted run logs in a step",
    )
    settings.add_argument(
        "--balance", default="1000", metavar="USD", help="what each wallet begins with"
    )
    settings.add_argument(
        "--inference-upstream",
        metavar="URL",
        help="server that makes the text of completions, such as http://localhost:8000/v1; "
        f"its key is in {KEY_VARIABLE}",
    )
    settings.add_argument(
        "--clock-skew",
        type=_finite,
        default=0.0,
        metavar="SECONDS",
        help="how far the platform's dates are ahead; negative when they are late",
    )
    settings.add_argument(
        "--noise", action="store_true", help="add unknown fields and enum values to every answer"
    )
    settings.add_argument("--faults", type=Path, metavar="FILE", help="fault rules, as JSON")
    settings.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="answer an open question of ASSUMPTIONS.md; can be repeated",
    )
    settings.add_argument(
        "--validate-responses",
        action="store_true",
        help="check each answer against the contract; exit with 1 if one broke it",
    )
    return settings


def _parser() -> argparse.ArgumentParser:
    settings = _settings()
    parser = argparse.ArgumentParser(
        prog="prime-local", description="A local stand-in for the Prime Intellect platform."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser(
        "serve", parents=[settings], help="serve until SIGTERM or SIGINT; one ready line on stdout"
    )
    serve.add_argument(
        "--until-eof",
        action="store_true",
        help="stop also when stdin, a pipe, ends: whoever started the server is gone",
    )
    commands.add_parser(
        "run",
        parents=[settings],
        usage="prime-local run [options] -- COMMAND [ARGUMENT ...]",
        help="serve while a command runs, its environment set",
    )
    return parser


def _seconds(text: str) -> float:
    seconds = _finite(text)
    if seconds < 0:
        raise argparse.ArgumentTypeError("must be at least 0")
    return seconds


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError("must be finite")
    return number


def _warn(host: str) -> None:
    if host not in _LOOPBACK:
        logger.warning("%s is no loopback address: whoever has the key can run commands here", host)
