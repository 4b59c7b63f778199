"""Traces as an RL run makes them: 10 KB of messages, calls and scores each, most of it text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

__all__ = ["trace_records"]

# So many are made; those that follow differ by their id, since making them is not measured.
DISTINCT = 500
SIZE = 10_400
TURNS = 6


def trace_records(total: int) -> Iterator[dict[str, Any]]:
    """Traces that come to so many bytes as lines, more or less."""
    made = distinct_traces()
    for number in range(total // SIZE):
        yield {**made[number % DISTINCT], "id": f"tr-{number:012}"}


@cache
def distinct_traces() -> list[dict[str, Any]]:
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 10))) for _ in range(5000)]
    return [trace(chance, words) for _ in range(DISTINCT)]


def trace(chance: random.Random, words: list[str]) -> dict[str, Any]:
    start = 1_785_600_000 + chance.random()

    def text(count: int) -> str:
        return " ".join(chance.choices(words, k=count)) + '\n"quoted" \u00e9 \U0001f642'

    return {
        "id": "",
        "run": {"id": "run-bench", "work": {"step": chance.randrange(100)}},
        "timing": {"start": start, "scoring": {"end": start + 40}},
        "rewards": {"solved": {"score": chance.random(), "weight": 1.0}},
        "metrics": {f"metric_{number}": chance.random() for number in range(8)},
        "nodes": [
            {
                "parent": turn - 1 if turn else None,
                "timestamp": start + turn + chance.random(),
                "sampled": turn % 2 == 1,
                "message": {
                    "role": "assistant" if turn % 2 else "user",
                    "content": text(110),
                    "reasoning_content": text(60),
                    "tool_calls": [{"id": f"call-{turn}", "name": "run", "arguments": text(12)}],
                },
            }
            for turn in range(TURNS)
        ],
        "calls": [
            {
                "node": turn,
                "model": "bench/model",
                "start": start + turn,
                "end": start + turn + chance.random(),
                "usage": {"prompt_tokens": 3000, "completion_tokens": chance.randrange(1000)},
                "error": None,
            }
            for turn in range(TURNS)
        ],
        "ok": True,
        "errors": [],
        "stop_condition": "done",
    }
