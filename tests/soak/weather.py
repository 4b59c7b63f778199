"""Random faults for a while: what goes wrong with which requests."""

from __future__ import annotations

import random
from dataclasses import replace

from prime_local.faults import FaultRule

# "*" is every operation.
OPERATIONS = (
    "create_sandbox",
    "bulk_delete_sandboxes",
    "delete_sandbox",
    "batch_get_sandbox_statuses",
    "create_sandbox_auth_token",
    "*",
)


def weather(chance: random.Random) -> list[FaultRule]:
    """Returns rules that spoil about every fifth request; some days hold one kind, some all."""
    kinds = [*call_faults(chance), *stream_faults(chance)]
    chosen = chance.sample(kinds, chance.randint(1, len(kinds)))
    share = chance.uniform(0.1, 0.4) / len(chosen)
    return [replace(rule, probability=share, seed=chance.randrange(2**31)) for rule in chosen]


def call_faults(chance: random.Random) -> list[FaultRule]:
    def retry_after() -> dict[str, str]:
        return {"Retry-After": f"{chance.uniform(0.05, 0.5):.2f}"}

    kinds = [
        FaultRule(reset="before_commit"),
        FaultRule(reset="after_commit"),
        FaultRule(reset="after_commit", delay_after=0.3),
        FaultRule(status=429),
        FaultRule(status=429, headers=retry_after()),
        FaultRule(status=503),
        FaultRule(status=503, headers=retry_after()),
        *(FaultRule(status=status) for status in (500, 502, 504)),
        FaultRule(status=502, body="<html>bad gateway</html>"),
        FaultRule(garbage=True),
        FaultRule(truncate=chance.randint(0, 60)),
        FaultRule(bad_chunk=chance.randint(0, 60)),
        FaultRule(delay_before=chance.uniform(0.1, 1.0)),
        FaultRule(delay_after=chance.uniform(0.1, 1.0)),
        FaultRule(stall=chance.uniform(0.2, 2.0)),
        FaultRule(trickle=0.002),
    ]
    return [replace(rule, operation=chance.choice(OPERATIONS)) for rule in kinds]


def stream_faults(chance: random.Random) -> list[FaultRule]:
    """Returns what goes wrong in the middle of a command's output."""
    kinds = [
        FaultRule(reset="after_commit"),
        FaultRule(truncate=chance.randint(0, 8)),
        FaultRule(bad_chunk=chance.randint(0, 8)),
        FaultRule(garbage=True),
        FaultRule(stall=chance.uniform(0.2, 2.0)),
        FaultRule(omit="end_event"),
        FaultRule(omit="end_envelope"),
    ]
    return [
        replace(rule, operation="command_session_start", after_envelopes=chance.randint(0, 3))
        for rule in kinds
    ]
