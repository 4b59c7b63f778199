"""Noise: answers as a newer server might give them."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st
from trace_queries import Traces, saying

from prime_local.contract import load_contract
from prime_local.contract.protobuf import CommandMessages
from prime_local.noise import add_noise, add_stream_noise

if TYPE_CHECKING:
    from conftest import OpenPlatform

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


async def test_every_object_of_an_answer_has_an_unknown_field(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(noise=True, start_delay=600)
    box = await client.create(environment_vars={"A": "1"}, labels=["x"])
    assert box["status"] == "QUEUED_NOISE"
    assert "noiseAdded" in box
    assert "noiseAdded" in box["gatewayAuth"]
    assert (box["environmentVars"], box["labels"]) == ({"A": "1"}, ["x"])
    listed = await client.call("GET", "/api/v1/sandbox")
    assert listed.headers["X-Prime-Noise"] == "1"
    assert "noiseAdded" in listed.body
    assert "noiseAdded" in listed.body["sandboxes"][0]
    refused = await client.call("POST", "/api/v1/sandbox", {})
    assert (refused.status, "noiseAdded" in refused.body) == (422, True)


async def test_what_callers_wrote_comes_back_as_it_is(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(noise=True)
    traces = Traces(platform, client.session)
    part = {"type": "text", "text": "look"}
    record = saying("t", [part], metrics={"turns": 4})
    await traces.upload(record, context={"source": "nightly"})
    summary = await traces.get("traces/t")
    assert (summary["context"], summary["metrics"]) == ({"source": "nightly"}, {"turns": 4})
    run = await traces.get("runs/run-1")
    assert (run["context"], "noiseAdded" in run) == ({"source": "nightly"}, True)
    node = (await traces.get("traces/t/nodes"))["items"][0]
    assert (node["message"]["content"], "noiseAdded" in node["message"]) == ([part], True)


async def test_states_that_matter_keep_their_names(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(noise=True, image_build_time=60, start_delay=60)
    box = await client.create()
    assert box["status"] == "PENDING"
    await platform.advance(61)
    assert (await client.until(box, "WARMING_NOISE"))["pendingImageBuildId"] is None
    await platform.advance(61)
    assert (await client.get(box))["status"] == "RUNNING"
    await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    found = await client.get(box)
    assert (found["status"], found["terminationReason"]) == ("TERMINATED", "noise_reason")


async def test_noisy_stream_says_the_same_and_more(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(noise=True)
    result = await client.run(await client.running(), "echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert {} in result.events
    assert {"keepalive": {}} in result.events
    assert result.end is not None
    assert result.end["metadata"] == {"x-prime-noise": ["1"]}


async def test_noisy_protobuf_parses(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(noise=True)
    box = await client.running()
    messages = CommandMessages(load_contract())
    spec = messages.new("CommandSpec", cmd="/bin/echo", args=["hi"])
    payload = messages.new("StartRequest", command=spec).SerializeToString()
    headers = client.gateway_headers(box, "application/connect+proto")
    data = b"\0" + struct.pack(">I", len(payload)) + payload
    async with client.session.post(client.gateway(box), data=data, headers=headers) as response:
        body = await response.read()
    events = []
    while body and not body[0] & 2:
        size = int.from_bytes(body[1:5], "big")
        message = messages.new("StartResponse")
        message.ParseFromString(body[5 : 5 + size])
        assert len(message.SerializeToString()) == size
        events.append(message.event)
        body = body[5 + size :]
    assert events[0].HasField("start")
    assert b"".join(event.data.stdout for event in events) == b"hi\n"
    assert events[-1].HasField("end")


@given(JSON)
def test_noise_only_adds(body: Any) -> None:
    assert _without_noise(add_noise(body)) == _without_noise(body)


@given(st.integers(0, 2**32 - 1))
def test_stream_noise_leaves_the_known_fields(pid: int) -> None:
    messages = CommandMessages(load_contract())
    sent = messages.new("StartEvent", pid=pid)
    got = messages.new("StartEvent")
    got.ParseFromString(add_stream_noise(sent.SerializeToString(), "proto"))
    assert got.pid == pid


def _without_noise(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_noise(item) for item in value]
    if isinstance(value, dict):
        # Values of these names may be replaced.
        skipped = ("noiseAdded", "status", "terminationReason")
        return {key: _without_noise(item) for key, item in value.items() if key not in skipped}
    return value


async def test_latency_holds_every_answer_back(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(latency=0.3)
    for path, status in (("/api/v1/sandbox", 200), ("/api/v1/sandbox/sbx_nope", 404)):
        started = time.monotonic()
        assert (await client.call("GET", path)).status == status
        assert time.monotonic() - started >= 0.3
    started = time.monotonic()
    await client.call("GET", "/_local/ledger")
    assert time.monotonic() - started < 0.3
