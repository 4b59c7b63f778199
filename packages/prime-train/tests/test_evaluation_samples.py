"""Samples on their way: batched by bytes, several at once, each sent once, all accounted for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    AsyncTrainClient,
    ConflictError,
    InvalidSampleError,
    NotFoundError,
    PushSamplesError,
)
from prime_train.sample_batches import SampleCutter

pytestmark = pytest.mark.timeout(30)

# Vector of the contract: at 35 bytes the first and the last fit alone, the other nowhere.
VECTOR = [{"x": "a"}, {"x": "b" * 50}, {"x": "c"}]
SMALL = 60


@pytest.fixture
async def evaluation_id(client: AsyncTrainClient) -> str:
    created = await client.evaluations.create("e", environments=["mine"])
    return created.evaluation_id


async def stored(client: AsyncTrainClient, evaluation_id: str) -> list[dict[str, Any]]:
    return [sample async for sample in client.evaluations.iter_samples(evaluation_id, page_size=7)]


async def streamed(samples: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for sample in samples:
        yield sample


@pytest.mark.parametrize("form", ["list", "iterator", "async"])
async def test_the_documented_vector_is_kept(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str, form: str
) -> None:
    samples: Any = {"list": VECTOR, "iterator": iter(VECTOR), "async": streamed(VECTOR)}[form]
    told: list[int] = []
    done = await client.evaluations.push_samples(
        evaluation_id, samples, max_payload_bytes=35, progress_callback=told.append
    )
    assert (done.samples_pushed, done.samples_skipped, done.skipped) == (2, 1, [1])
    assert (done.requests, told) == (2, [1, 1, 1])
    assert platform.ledger()["requests"]["push_evaluation_samples"] == 2
    assert sorted(map(str, await stored(client, evaluation_id))) == ["{'x': 'a'}", "{'x': 'c'}"]


async def test_no_samples_are_no_request(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str
) -> None:
    done = await client.evaluations.push_samples(evaluation_id, [])
    assert (done.samples_pushed, done.samples_skipped, done.requests) == (0, 0, 0)
    assert "push_evaluation_samples" not in platform.ledger()["requests"]


@given(
    st.lists(st.dictionaries(st.text(max_size=9), st.text(max_size=30), max_size=4), max_size=30),
    st.integers(30, 300),
)
def test_no_body_is_too_large_and_no_sample_is_lost(
    samples: list[dict[str, str]], most: int
) -> None:
    cutter = SampleCutter(most)
    batches = list(cutter.cut(samples))
    assert all(len(batch.body) <= most for batch in batches)
    sent = {
        index: sample
        for batch in batches
        for index, sample in zip(batch.indexes, json.loads(batch.body)["samples"], strict=True)
    }
    assert sorted([*sent, *cutter.skipped]) == list(range(len(samples)))
    assert all(sample == samples[index] for index, sample in sent.items())
    for index in cutter.skipped:
        line = json.dumps(samples[index], ensure_ascii=False, separators=(",", ":")).encode()
        assert len(line) + 1 + 20 > most


async def test_a_body_of_just_the_cap_is_accepted(
    client: AsyncTrainClient, evaluation_id: str
) -> None:
    fitting = {"x": "é" * ((26_214_400 - 21 - 8) // 2)}
    done = await client.evaluations.push_samples(evaluation_id, [fitting, {"x": fitting["x"] * 2}])
    assert (done.samples_pushed, done.skipped) == (1, [1])


@pytest.mark.parametrize("status", [500, 502, 504])
@pytest.mark.parametrize("kind", ["status", "reset"])
async def test_a_request_whose_answer_is_lost_is_not_sent_again(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str, status: int, kind: str
) -> None:
    rule = (
        FaultRule("push_evaluation_samples", reset="after_commit")
        if kind == "reset"
        else FaultRule("push_evaluation_samples", status=status)
    )
    platform.add_faults(rule)
    with pytest.raises(PushSamplesError) as failure:
        await client.evaluations.push_samples(evaluation_id, [{"a": 1}])
    assert platform.ledger()["requests"]["push_evaluation_samples"] == 1
    (failed,) = failure.value.failed
    assert (failed.indexes, failed.stored) == ([0], "unknown")


async def test_a_refused_request_is_sent_again(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str
) -> None:
    wait = {"Retry-After": "0"}
    platform.add_faults(FaultRule("push_evaluation_samples", nth=1, status=429, headers=wait))
    done = await client.evaluations.push_samples(evaluation_id, [{"a": 1}])
    assert done.samples_pushed == 1
    assert await stored(client, evaluation_id) == [{"a": 1}]


async def test_a_failure_tells_what_is_stored_and_where_to_go_on(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str
) -> None:
    samples = [{"number": number, "text": "t" * 20} for number in range(10)]
    platform.add_faults(FaultRule("push_evaluation_samples", nth=4, status=400))
    with pytest.raises(PushSamplesError) as failure:
        await client.evaluations.push_samples(
            evaluation_id, samples, max_payload_bytes=SMALL + 10, max_concurrent=1
        )
    error = failure.value
    assert error.samples_pushed == 3
    assert [(each.indexes, each.stored) for each in error.failed] == [([3], "no")]
    left = [index for each in error.failed for index in each.indexes]
    left += range(error.next_index, len(samples))
    await client.evaluations.push_samples(evaluation_id, [samples[index] for index in left])
    assert await stored(client, evaluation_id) == samples


async def test_a_push_that_stored_nothing_raises_the_failure_itself(
    client: AsyncTrainClient, evaluation_id: str
) -> None:
    with pytest.raises(NotFoundError):
        await client.evaluations.push_samples("unknown", [{"a": 1}])
    await client.evaluations.finalize(evaluation_id)
    with pytest.raises(ConflictError):
        await client.evaluations.push_samples(evaluation_id, [{"a": 1}])


@pytest.mark.parametrize("sample", [{"x": float("nan")}, {"x": object()}, {"x": "\ud800"}, 3])
async def test_a_sample_that_is_no_json_is_named(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str, sample: Any
) -> None:
    with pytest.raises(InvalidSampleError, match="Sample 1 ") as failure:
        await client.evaluations.push_samples(evaluation_id, [{"a": 1}, sample])
    assert failure.value.index == 1
    assert "push_evaluation_samples" not in platform.ledger()["requests"]


async def test_models_are_samples(client: AsyncTrainClient, evaluation_id: str) -> None:
    class Mine(BaseModel):
        reward: float

    await client.evaluations.push_samples(evaluation_id, [Mine(reward=1)])
    assert await stored(client, evaluation_id) == [{"reward": 1.0}]


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"max_payload_bytes": 26_214_401}, ValueError),
        ({"max_concurrent": 0}, ValueError),
        ({"samples": {"a": 1}}, TypeError),
        ({"samples": "text"}, TypeError),
        ({"evaluation_id": ""}, ValueError),
    ],
)
async def test_a_wrong_argument_is_named(
    client: AsyncTrainClient, wrong: dict[str, Any], kind: type[Exception]
) -> None:
    asked: dict[str, Any] = {"evaluation_id": "e", "samples": [], **wrong}
    with pytest.raises(kind, match=next(iter(wrong))):
        await client.evaluations.push_samples(**asked)


async def test_samples_are_taken_as_they_are_needed(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str
) -> None:
    platform.add_faults(FaultRule("push_evaluation_samples", delay_before=0.2))
    taken = 0

    def samples() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield {"number": number, "text": "t" * 30}

    push = asyncio.ensure_future(
        client.evaluations.push_samples(
            evaluation_id, samples(), max_payload_bytes=80, max_concurrent=2
        )
    )
    await asyncio.sleep(0.1)
    assert taken <= 4  # two in flight, and the sample that filled the second
    push.cancel()
    with pytest.raises(asyncio.CancelledError):
        await push


async def test_a_cancelled_push_closes_its_source(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str
) -> None:
    platform.add_faults(FaultRule("push_evaluation_samples", delay_before=5))
    closed = asyncio.Event()

    async def samples() -> AsyncIterator[dict[str, Any]]:
        try:
            for number in range(40):
                yield {"number": number, "text": "t" * 30}
        finally:
            closed.set()

    push = asyncio.ensure_future(
        client.evaluations.push_samples(evaluation_id, samples(), max_payload_bytes=80)
    )
    await asyncio.sleep(0.1)
    push.cancel()
    with pytest.raises(asyncio.CancelledError):
        await push
    assert closed.is_set()


async def test_several_requests_are_under_way_at_once(
    platform: LocalPlatform, client: AsyncTrainClient, evaluation_id: str
) -> None:
    platform.add_faults(FaultRule("push_evaluation_samples", delay_before=0.2))
    samples = [{"number": number, "text": "t" * 30} for number in range(8)]
    started = asyncio.get_running_loop().time()
    done = await client.evaluations.push_samples(evaluation_id, samples, max_payload_bytes=80)
    assert done.requests == 8
    assert asyncio.get_running_loop().time() - started < 1.2  # one by one: 1.6
    numbers = [sample["number"] for sample in await stored(client, evaluation_id)]
    assert sorted(numbers) == list(range(8))
