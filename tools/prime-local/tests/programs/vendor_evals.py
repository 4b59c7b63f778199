"""Uses everything that the vendor's evaluations client offers, and prints its calls, as JSON.

    python vendor_evals.py sync|async

Each answer is checked where it comes. Runs in an environment that holds the vendor's package, not
ours; hosted evaluations take a second a rollout.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from prime_evals import (
    APIClient,
    AsyncEvalsClient,
    EvalsAPIError,
    EvalsClient,
    InvalidEvaluationError,
)
from vendor_support import Counted, equal, methods, raises

GSM8K = "cpublishedgsm8k0000000000"
VECTOR = [{"x": "a"}, {"x": "b" * 50}, {"x": "c"}]


async def push(client: Any) -> str:
    """Create an evaluation, fill it, complete it and read it again."""
    created = await client.create_evaluation(
        "baseline",
        environments=["primeintellect/gsm8k", {"name": "mine"}, {"id": GSM8K}],
        model_name="m",
        tags=["a"],
        metadata={"n": 1},
    )
    evaluation_id = str(created["evaluation_id"])
    told: list[int] = []
    done = await client.push_samples(
        evaluation_id, VECTOR, max_payload_bytes=35, progress_callback=told.append
    )
    equal(done, {"samples_pushed": 2, "samples_skipped": 1})
    equal(told, [1, 1, 1])
    scored = [{"example_id": number, "reward": 1.0} for number in range(3)]
    await client.push_samples(evaluation_id, scored)
    finished = await client.finalize_evaluation(evaluation_id, metrics={"acc": 1.0})
    equal((finished["status"], finished["total_samples"]), ("COMPLETED", 5))
    found = await client.get_evaluation(evaluation_id)
    equal((found["tags"], found["metadata"], found["avg_score"]), (["a"], {"n": 1}, 1.0))
    page = await client.get_samples(evaluation_id, page=1, limit=2)
    equal((page["total"], len(page["samples"]), page["total_pages"]), (5, 2, 3))
    return evaluation_id


async def change(client: Any, evaluation_id: str) -> None:
    await client.update_evaluation(evaluation_id, name="renamed", tags=["b"])
    listed = await client.list_evaluations(env_name="primeintellect/gsm8k")
    equal([(each["name"], each["tags"]) for each in listed["evaluations"]], [("renamed", ["b"])])
    with raises(InvalidEvaluationError):
        await client.create_evaluation("none", environments=["primeintellect/none"])
    with raises(EvalsAPIError):
        await client.push_samples(evaluation_id, [{"x": 1}])  # it is closed


async def host(client: Any) -> None:
    config = {"num_examples": 2, "rollouts_per_example": 1}
    made = await client.create_hosted_evaluation([GSM8K], "openai/gpt-4.1-mini", config, name="h")
    cancelled = await client.cancel_hosted_evaluation(made["evaluation_id"])
    equal(cancelled["status"], "CANCELLED")


async def use(client: Any) -> None:
    await change(client, await push(client))
    await host(client)


async def main(kind: str) -> None:
    calls: list[str] = []
    offered: list[str] = []
    if kind == "sync":
        wrapped: Any = EvalsClient(APIClient())
        await use(Counted(wrapped, calls))
    else:
        async with AsyncEvalsClient() as wrapped:
            await use(Counted(wrapped, calls))
    offered = [name for name in methods(wrapped) if not name.endswith(".aclose")]
    print(json.dumps({"calls": calls, "offered": offered}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
