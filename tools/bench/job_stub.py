"""A server that starts background jobs, at next to no cost: `python -m bench.job_stub SECONDS`.

A job ends after half to one and a half times so many seconds. Each line of standard input asks
for the address and the counts since the last one; with its end the server ends.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import time
from collections import Counter

from bench.stub import Connection
from bench.workers import raise_descriptor_limit
from prime_sandboxes._proto.command_session_pb2 import CommandSessionEvent as Event
from prime_sandboxes._proto.command_session_pb2 import StartResponse

EXIT_OF_OUTPUT = 64  # both logs could be read


class JobStub:
    """The state of every job that was asked for, and the answers.

    Args:
        seconds: how long a job lasts on average, from the first question about it.
    """

    def __init__(self, seconds: float) -> None:
        self.url = ""
        self.connections = 0
        self.counts: Counter[str] = Counter()
        self._seconds = seconds
        self._ends: dict[str, float] = {}
        # By a word of its script: a launch, a look at the output, any other look.
        self._commands = (
            (b"mkdir", command_answer(b"started\n", 0)),
            (b"tail", command_answer(b"output\n", EXIT_OF_OUTPUT)),
            (b"", command_answer(b"running\n", 0)),
        )

    def take(self, request: bytes, transport: asyncio.Transport) -> None:
        """Answers a request by its path, and a command by its script."""
        path = request.split(b" ", 2)[1]
        kind = "application/json"
        if path.endswith(b"/auth"):
            self.counts["tokens"] += 1
            answer = json.dumps(self._token(path.decode())).encode()
        elif path.endswith(b"status:batchGet"):
            self.counts["looks"] += 1
            body = json.loads(request.partition(b"\r\n\r\n")[2])
            answer = json.dumps({"statuses": self._states(body["jobs"]), "errors": []}).encode()
        else:
            self.counts["commands"] += 1
            kind = "application/connect+proto"
            answer = next(answer for word, answer in self._commands if word in request)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(answer)}\r\n\r\n"
        transport.write(head.encode() + answer)

    def _token(self, path: str) -> dict[str, str]:
        return {
            "gateway_url": self.url,
            "user_ns": "ns-1",
            "job_id": path.split("/")[-2],
            "token": "gwt_bench",
            "expires_at": "2099-01-01T00:00:00Z",
        }

    def _states(self, jobs: list[dict[str, str]]) -> list[dict[str, object]]:
        now = time.monotonic()
        states: list[dict[str, object]] = []
        for job in jobs:
            # The id is random, so the ends are spread evenly.
            lasts = self._seconds * (0.5 + int(job["job_id"], 16) / 2**32)
            ended = now >= self._ends.setdefault(job["job_id"], now + lasts)
            states.append({**job, "completed": ended, "exit_code": 0 if ended else None})
        return states

    def report(self) -> dict[str, object]:
        counts, self.counts = self.counts, Counter()
        return {"url": self.url, **counts}


def command_answer(output: bytes, exit_code: int) -> bytes:
    """The stream of a command that writes something and ends."""
    events = (
        Event(data=Event.DataEvent(stdout=output)),
        Event(end=Event.EndEvent(exit_code=exit_code, exited=True)),
    )
    messages = [StartResponse(event=event).SerializeToString() for event in events]
    envelopes = [struct.pack(">BI", 0, len(message)) + message for message in messages]
    return b"".join([*envelopes, struct.pack(">BI", 2, 2), b"{}"])


async def serve(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    stub = JobStub(seconds)
    ended = asyncio.Event()
    server = await loop.create_server(lambda: Connection(stub), "127.0.0.1", 0, backlog=4096)
    host, port = server.sockets[0].getsockname()
    stub.url = f"http://{host}:{port}"

    def asked() -> None:
        if sys.stdin.readline():
            print(json.dumps(stub.report()), flush=True)
        else:
            ended.set()

    loop.add_reader(sys.stdin, asked)
    await ended.wait()


if __name__ == "__main__":
    raise_descriptor_limit()
    asyncio.run(serve(float(sys.argv[1])))
