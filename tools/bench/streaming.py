"""What streams of completions cost in one process: `python -m bench.streaming SIDE URL`."""

from __future__ import annotations

import asyncio
import json
import platform
import sys
from typing import Protocol

import aiohttp

from bench.sides import KEY
from bench.workers import Answer, Stopwatch, answer_questions
from prime_inference import AsyncAPIClient, AsyncInferenceClient, Config

MODEL = "z-ai/glm-5.3"
QUESTION = {"role": "user", "content": "What is a mutex?"}


class Side(Protocol):
    """A client that streams completions."""

    async def read(self) -> int:
        """Reads a completion to its end and returns how many chunks it had."""

    async def aclose(self) -> None: ...


class Ours:
    """Our client: typed chunks, and the completion put together from them."""

    def __init__(self, url: str, streams: int) -> None:
        config = Config(KEY, inference_url=f"{url}/api/v1")
        self._client = AsyncInferenceClient(client=AsyncAPIClient(config=config))
        self._client.client._transport.want_streams(streams)

    async def read(self) -> int:
        count = 0
        stream = await self._client.chat.completions.create(
            model=MODEL, messages=[QUESTION], stream=True
        )
        async for _ in stream:
            count += 1
        return count

    async def aclose(self) -> None:
        await self._client.aclose()


class Raw:
    """aiohttp, and the least that reads the same events."""

    def __init__(self, url: str, streams: int) -> None:
        self._url = f"{url}/api/v1/chat/completions"
        self._body = json.dumps({"model": MODEL, "messages": [QUESTION], "stream": True}).encode()
        self._headers = {
            "User-Agent": f"bench/0.1.0 python/{platform.python_version()}",
            "Accept": "text/event-stream, application/json",
            "Authorization": f"Bearer {KEY}",
            "Content-Type": "application/json",
        }
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=streams))

    async def read(self) -> int:
        count = 0
        rest = b""
        async with self._session.post(
            self._url, data=self._body, headers=self._headers, timeout=aiohttp.ClientTimeout(600)
        ) as response:
            async for piece in response.content.iter_any():
                *events, rest = (rest + piece).split(b"\n\n")
                for event in events:
                    data = event.removeprefix(b"data: ")
                    if data == b"[DONE]":
                        return count
                    _ = json.loads(data)  # kept until the next comes, as whoever reads it does
                    count += 1
        raise RuntimeError("the stream was cut short")

    async def aclose(self) -> None:
        await self._session.close()


async def measure(name: str, url: str, streams: int) -> Answer:
    """Reads so many streams at once."""
    side: Side = Ours(url, streams) if name == "ours" else Raw(url, streams)
    try:
        watch = Stopwatch()
        chunks = sum(await asyncio.gather(*[side.read() for _ in range(streams)]))
        return {**watch.read(), "chunks": chunks}
    finally:
        await side.aclose()


def main(name: str, url: str) -> None:
    answer_questions(lambda **question: asyncio.run(measure(name, url, **question)))


if __name__ == "__main__":
    main(*sys.argv[1:])
