"""A server that streams completions, at next to no cost: `python -m bench.stream_stub`.

Arguments: how many chunks a completion has, and the seconds between two of them; 0 sends all at
once. It ends with its standard input; each line of that asks for the address.
"""

from __future__ import annotations

import asyncio
import json
import sys

from bench.stub import Connection
from bench.workers import raise_descriptor_limit

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Inference-Id: inf_01JCB6R7Q2T9\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def event(choices: list[dict[str, object]], **fields: object) -> bytes:
    """A chunk of a completion as an event, in an HTTP chunk of its own."""
    data = {
        "id": "chatcmpl-9f2c4b1d7e3a4f0c",
        "object": "chat.completion.chunk",
        "created": 1793404800,
        "model": "z-ai/glm-5.3",
        "choices": choices,
        **fields,
    }
    return framed(b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n")


def framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def choice(text: str, reason: str | None = None) -> dict[str, object]:
    return {"index": 0, "delta": {"content": text}, "finish_reason": reason}


TEXT = event([choice(" mutex")])
END = (
    event([choice("", "stop")])
    + event([], usage={"prompt_tokens": 18, "completion_tokens": 200, "total_tokens": 218})
    + framed(b"data: [DONE]\n\n")
    + b"0\r\n\r\n"
)


class StreamStub:
    """The streams under way; all of them get their next chunk in the same moment.

    Args:
        chunks: of a completion's text.
        pause: seconds between two of them.
    """

    def __init__(self, chunks: int, pause: float) -> None:
        self._chunks = chunks
        self._pause = pause
        self._streams: dict[asyncio.Transport, int] = {}
        self._ticking = False
        self.connections = 0

    def take(self, request: bytes, transport: asyncio.Transport) -> None:
        """Answers a request with a stream."""
        if not self._pause:
            transport.write(HEAD + TEXT * self._chunks + END)
            return
        transport.write(HEAD)
        self._streams[transport] = self._chunks
        if not self._ticking:
            self._ticking = True
            asyncio.get_running_loop().call_later(self._pause, self._tick)

    def _tick(self) -> None:
        began = asyncio.get_running_loop().time()
        for transport, left in list(self._streams.items()):
            if left:
                transport.write(TEXT)
                self._streams[transport] = left - 1
            else:
                transport.write(END)
                del self._streams[transport]
        self._ticking = bool(self._streams)
        if self._ticking:
            asyncio.get_running_loop().call_at(began + self._pause, self._tick)


async def serve(chunks: int, pause: float) -> None:
    """Serves until standard input ends."""
    loop = asyncio.get_running_loop()
    stub = StreamStub(chunks, pause)
    server = await loop.create_server(lambda: Connection(stub), "127.0.0.1", 0, backlog=4096)
    host, port = server.sockets[0].getsockname()
    ended = asyncio.Event()

    def asked() -> None:
        if sys.stdin.readline():
            print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
        else:
            ended.set()

    loop.add_reader(sys.stdin, asked)
    await ended.wait()


if __name__ == "__main__":
    raise_descriptor_limit()
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
