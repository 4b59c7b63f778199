"""Streams of completions that are dropped, closed under their reader, or shared."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from chats import HEAD, HELLO, STORY, Endless, event, streamed, wire_chunk
from raw_server import RawServer, Received, Wire

from prime_inference import APIError, ChatCompletionStream, InferenceClient, StreamStateError


async def silent(wire: Wire, _: Received) -> None:
    await wire.send(HEAD)
    await wire.reader.read()


def test_a_stream_is_neither_pickled_nor_copied(
    server: RawServer, sync_client: InferenceClient
) -> None:
    server.steps = [streamed(STORY)]
    with sync_client.chat.completions.create(**HELLO, stream=True) as stream:
        for refused in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="stream of a completion"):
                refused(stream)


def test_a_sync_stream_that_is_dropped_is_closed(
    server: RawServer, sync_client: InferenceClient
) -> None:
    server.steps = [endless := Endless()]
    held = [sync_client.chat.completions.create(**HELLO, stream=True)]
    assert next(held[0]).id == "c1"
    with pytest.warns(ResourceWarning, match="unread"):
        held.clear()  # at once: nothing refers to it in a circle
    assert endless.gone.wait(5)


@pytest.mark.parametrize("read", [next, list, ChatCompletionStream.get_final_completion])
def test_a_second_reader_leaves_the_first_one_its_stream(
    server: RawServer,
    sync_client: InferenceClient,
    read: Callable[[ChatCompletionStream], object],
) -> None:
    refused = threading.Event()

    async def step(wire: Wire, received: Received) -> None:
        await wire.send(HEAD + wire_chunk(event(STORY[0])))
        await asyncio.to_thread(refused.wait, 10)
        for chunk in STORY[1:]:
            await wire.send(wire_chunk(event(chunk)))
        await wire.send(b"0\r\n\r\n")

    server.steps = [step]
    stream = sync_client.chat.completions.create(**HELLO, stream=True)
    next(stream)
    with ThreadPoolExecutor() as pool:
        whole = pool.submit(stream.get_final_completion)
        time.sleep(0.1)
        with pytest.raises(StreamStateError, match="two at once"):
            read(stream)
        refused.set()
        assert whole.result(10).choices[0].message.content == "A lock."


def test_a_client_that_is_closed_ends_its_streams(
    server: RawServer, sync_client: InferenceClient
) -> None:
    server.steps = [silent]
    stream = sync_client.chat.completions.create(**HELLO, stream=True)
    threading.Timer(0.1, sync_client.close).start()
    with pytest.raises(APIError, match="client was closed"):
        next(stream)


def test_a_stream_that_is_closed_while_it_is_read_says_so(
    server: RawServer, sync_client: InferenceClient
) -> None:
    server.steps = [silent]
    stream = sync_client.chat.completions.create(**HELLO, stream=True)
    threading.Timer(0.1, stream.close).start()
    with pytest.raises(StreamStateError, match="closed while it was read"):
        next(stream)
