"""Streams of completions that are dropped, closed under their reader, or shared."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
from chats import HEAD, HELLO, STORY, Endless, streamed
from raw_server import RawServer, Received, Wire

from prime_inference import InferenceClient, StreamStateError


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


def test_a_stream_is_read_by_one_thread(server: RawServer, sync_client: InferenceClient) -> None:
    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD)
        await wire.reader.read()

    server.steps = [step]
    stream = sync_client.chat.completions.create(**HELLO, stream=True)
    ended: list[BaseException] = []

    def read() -> None:
        try:
            next(stream)
        except BaseException as error:
            ended.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [type(error) for error in ended] == [StreamStateError] * 2
    assert any("two at once" in str(error) for error in ended)


def test_a_stream_that_is_closed_while_it_is_read_says_so(
    server: RawServer, sync_client: InferenceClient
) -> None:
    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD)
        await wire.reader.read()

    server.steps = [step]
    stream = sync_client.chat.completions.create(**HELLO, stream=True)
    threading.Timer(0.1, stream.close).start()
    with pytest.raises(StreamStateError, match="closed while it was read"):
        next(stream)
