"""Live processes over the gateway's routes: input, attaching again, signals, terminals."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from prime_local import Assumptions, LocalPlatform

if TYPE_CHECKING:
    from conftest import CommandResult, OpenPlatform, PlatformOfMode, RawClient

SERVICE = "command_session.CommandSession"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass
class Live:
    """A command in a sandbox, by its session uuid."""

    client: RawClient
    helpers: Any
    box: dict[str, Any]
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def selector(self) -> dict[str, str]:
        return {"sessionUuid": self.uuid}

    def _stream(
        self, method: str, *messages: object
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        payloads = [json.dumps(message).encode() for message in messages]
        body = b"".join(b"\0" + len(data).to_bytes(4, "big") + data for data in payloads)
        headers = self.client.gateway_headers(self.box, "application/connect+json")
        url = self.client.gateway(self.box, f"{SERVICE}/{method}")
        return self.client.session.post(url, data=body, headers=headers)

    def start(
        self, script: str, **fields: object
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        command = {"cmd": "/bin/bash", "args": ["-c", script]}
        message = {"command": command, "stdin": True, "sessionUuid": self.uuid, **fields}
        return self._stream("Start", message)

    def connect(
        self, **selector: object
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._stream("Connect", {"session": selector or self.selector})

    async def connected(self, **selector: object) -> CommandResult:
        async with self.connect(**selector) as response:
            result: CommandResult = await self.helpers.read_stream(response)
            return result

    async def stream_input(self, *messages: object) -> dict[str, Any]:
        """The end of the answer's stream."""
        async with self._stream("StreamInput", *messages) as response:
            result = None
            while True:
                flags, message = await self.helpers.read_event(response)
                if flags & 2:
                    return {"result": result, **message}
                result = message

    async def unary(
        self, method: str, message: object, timeout_ms: int | None = None
    ) -> tuple[int, dict[str, Any]]:
        headers = self.client.gateway_headers(self.box, "application/json")
        if timeout_ms is not None:
            headers["Connect-Timeout-Ms"] = str(timeout_ms)
        url = self.client.gateway(self.box, f"{SERVICE}/{method}")
        data = json.dumps(message)
        async with self.client.session.post(url, data=data, headers=headers) as response:
            return response.status, await response.json()

    async def write(
        self, data: bytes, *, key: str | None = None, kind: str = "stdin", timeout_ms: int = 5_000
    ) -> tuple[int, dict[str, Any]]:
        message: dict[str, Any] = {"session": self.selector, "input": {kind: encoded(data)}}
        if key is not None:
            message["inputUuid"] = key
        return await self.unary("SendInput", message, timeout_ms)

    async def until_wrote(
        self, response: aiohttp.ClientResponse, text: bytes, kind: str = "stdout"
    ) -> bytes:
        """Reads events until the output holds a text."""
        seen = b""
        while text not in seen:
            flags, message = await asyncio.wait_for(self.helpers.read_event(response), 10)
            assert not flags & 2, (message, seen)
            data = message.get("event", {}).get("data", {})
            seen += base64.b64decode(data.get(kind, ""))
        return seen


@pytest.fixture(params=["process", "bwrap", "full"])
async def live(
    request: pytest.FixtureRequest,
    helpers: Any,
    prime_platform: LocalPlatform,
    platform_of_mode: PlatformOfMode,
) -> AsyncIterator[Live]:
    """A session to be started, in each isolation mode."""
    mode = request.param
    platform = prime_platform if mode == "process" else platform_of_mode(mode)
    async with helpers.client_of(platform) as client:
        yield Live(client, helpers, await client.running())


@pytest.fixture
async def plain(helpers: Any, prime_platform: LocalPlatform) -> AsyncIterator[Live]:
    """A session to be started, where the mode makes no difference."""
    async with helpers.client_of(prime_platform) as client:
        yield Live(client, helpers, await client.running())


async def test_what_is_written_is_read_by_the_command(live: Live) -> None:
    async with live.start("while read -r line; do echo got $line; done") as response:
        for word in (b"one", b"two"):
            assert await live.write(word + b"\n") == (200, {})
            await live.until_wrote(response, b"got " + word)
        await live.client.signal(live.box, session=live.selector, signal="SIGNAL_SIGKILL")
        result = await live.helpers.read_stream(response)
    assert result.exit_code == 137


async def test_input_larger_than_a_pipe_arrives_whole(live: Live) -> None:
    data = bytes(range(256)) * 12_000
    digest = hashlib.md5(data).hexdigest().encode()
    async with live.start("head -c 3072000 | md5sum; head -c 3") as response:
        assert await live.write(data) == (200, {})
        await live.until_wrote(response, digest)
        await live.write(b"end")
        assert (await live.helpers.read_stream(response)).stdout.strip() == "end"


async def test_without_stdin_the_input_is_empty_and_closed(live: Live) -> None:
    async with live.start("cat; echo done; sleep 0.5", stdin=False) as response:
        await live.until_wrote(response, b"done")
        status, error = await live.write(b"x")
    assert (status, error["code"]) == (400, "failed_precondition")


async def test_input_of_an_ended_or_unknown_session_is_not_found(plain: Live) -> None:
    async with plain.start("true") as response:
        await plain.helpers.read_stream(response)
    assert (await plain.write(b"x"))[1]["code"] == "not_found"
    assert (await Live(plain.client, plain.helpers, plain.box).write(b"x"))[0] == 404


async def test_input_that_the_command_does_not_read_waits_and_then_says_so(plain: Live) -> None:
    async with plain.start("read -r line; sleep 0.8; head -c 1000000 | wc -c; read x") as response:
        await plain.write(b"go\n")
        key = str(uuid.uuid4())
        data = b"y" * 1_000_000
        status, error = await plain.write(data, key=key, timeout_ms=200)
        assert (status, error["code"]) == (504, "deadline_exceeded")
        # The write goes on; the same request waits for it and does not write again.
        assert (await plain.write(data, key=key)) == (200, {})
        assert b"1000000\n" in await plain.until_wrote(response, b"\n")


async def test_a_closed_input_is_a_failed_precondition(live: Live) -> None:
    async with live.start("exec <&-; echo closed; sleep 5") as response:
        await live.until_wrote(response, b"closed")
        assert (await live.write(b"x"))[1]["code"] == "failed_precondition"


async def test_a_repeated_input_uuid_is_written_once(plain: Live) -> None:
    key = str(uuid.uuid4())
    async with plain.start("cat") as response:
        answers = await asyncio.gather(*(plain.write(b"once\n", key=key) for _ in range(4)))
        assert answers == [(200, {})] * 4
        status, error = await plain.write(b"else\n", key=key)
        assert (status, error["code"]) == (400, "failed_precondition")
        await plain.write(b"last\n")
        assert await plain.until_wrote(response, b"last") == b"once\nlast\n"


async def test_more_waiting_input_than_16_mib_is_refused(plain: Live) -> None:
    async with plain.start("sleep 20"):
        writes = [plain.write(b"z" * 6_000_000, timeout_ms=1_500) for _ in range(3)]
        codes = [error["code"] for _, error in await asyncio.gather(*writes)]
    assert sorted(codes) == ["deadline_exceeded", "deadline_exceeded", "resource_exhausted"]


async def test_attaching_again_announces_the_start_and_goes_on(live: Live) -> None:
    async with live.start("echo before; read -r line; echo after $line; exit 5") as response:
        _, begun = await live.helpers.read_event(response)
        await live.until_wrote(response, b"before")
        response.close()
    async with live.connect() as response:
        _, again = await live.helpers.read_event(response)
        assert again == begun
        await live.write(b"word\n")
        result = await live.helpers.read_stream(response)
    assert (result.stdout, result.exit_code) == ("after word\n", 5)


async def test_an_ended_session_can_be_attached_to_by_uuid_and_by_pid(live: Live) -> None:
    async with live.start("echo lost; exit 6") as response:
        first = await live.helpers.read_stream(response)
    pid = first.events[0]["start"]["pid"]
    for again in (await live.connected(), await live.connected(pid=pid)):
        assert again.events == [first.events[0], first.events[-1]]


async def test_an_unknown_session_cannot_be_attached_to(plain: Live) -> None:
    assert (await plain.connected()).error_code == "not_found"
    assert (await plain.connected(pid=4_000_000)).error_code == "not_found"


async def test_an_ended_session_is_forgotten_after_its_retention(
    open_platform: OpenPlatform, helpers: Any
) -> None:
    for seconds, later, found in ((60.0, 61, False), (60.0, 30, True), (None, 10_000, True)):
        assumptions = Assumptions(session_retention=seconds)
        platform, client = await open_platform(assumptions=assumptions)
        live = Live(client, helpers, await client.running(timeout_minutes=-1))
        async with live.start("exit 3") as response:
            await helpers.read_stream(response)
        await platform.advance(later)
        again = await live.connected()
        assert (again.error_code != "not_found") is found, seconds


async def test_a_command_waits_for_its_streams_reader_but_not_for_one_that_left(
    plain: Live,
) -> None:
    async with plain.start("head -c 50000000 /dev/zero") as response:
        await plain.helpers.read_event(response)
        await asyncio.sleep(0.5)
        assert len((await plain.unary("List", {}))[1]["sessions"]) == 1
    # Nobody is attached now: what it writes is lost, and it ends.
    assert (await asyncio.wait_for(plain.connected(), 20)).exit_code == 0


async def test_streamed_input_is_written_in_order(live: Live) -> None:
    start = {"start": {"session": live.selector}}
    pieces = [{"data": {"input": {"stdin": encoded(b"%d\n" % n)}}} for n in range(50)]
    script = "while read -r line; do echo $line; done"
    async with live.start(script) as response:
        end = await live.stream_input(start, *pieces, {"keepalive": {}})
        assert end == {"result": {}}
        seen = await live.until_wrote(response, b"49\n")
    assert seen.split() == [b"%d" % n for n in range(50)]


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([], "invalid_argument"),
        ([{"data": {"input": {"stdin": ""}}}], "invalid_argument"),
        ([{"start": {"session": {"pid": 4_000_000}}}], "not_found"),
        ([{"start": {"session": {"sessionUuid": "mine"}}}, {"data": {}}], "invalid_argument"),
    ],
)
async def test_wrong_streamed_input_ends_with_its_code(
    plain: Live, messages: list[dict[str, Any]], code: str
) -> None:
    given = json.loads(json.dumps(messages).replace("mine", plain.uuid))
    async with plain.start("sleep 5") as response:
        await plain.helpers.read_event(response)
        assert (await plain.stream_input(*given))["error"]["code"] == code


async def test_a_terminal_has_a_size_and_control_characters(live: Live) -> None:
    script = "tty -s && stty size; trap 'stty size' WINCH; while read -r l; do echo [$l]; done"
    size = {"size": {"cols": 100, "rows": 30}}
    async with live.start(script, stdin=False, pty=size) as response:
        await live.until_wrote(response, b"30 100", "pty")
        await live.write(b"hello\n", kind="pty")
        await live.until_wrote(response, b"[hello]", "pty")
        larger = {"session": live.selector, "pty": {"size": {"cols": 120, "rows": 40}}}
        assert await live.unary("Update", larger) == (200, {})
        await live.write(b"again\n", kind="pty")
        await live.until_wrote(response, b"40 120", "pty")
        # The shell takes no Ctrl-C for its own while it waits for stty.
        await live.write(b"last\n", kind="pty")
        await live.until_wrote(response, b"[last]", "pty")
        await asyncio.sleep(0.1)
        await live.write(b"\x03", kind="pty")  # Ctrl-C
        result = await asyncio.wait_for(live.helpers.read_stream(response), 5)
    assert result.exit_code == 130


async def test_what_is_no_terminal_has_no_size_and_no_terminal_input(plain: Live) -> None:
    size = {"size": {"cols": 120, "rows": 40}}
    async with plain.start("sleep 5") as response:
        await plain.helpers.read_event(response)
        answer = await plain.unary("Update", {"session": plain.selector, "pty": size})
        assert answer[1]["code"] == "failed_precondition"
        assert (await plain.write(b"x", kind="pty"))[1]["code"] == "failed_precondition"
        too_large = {"size": {"cols": 70_000, "rows": 1}}
        answer = await plain.unary("Update", {"session": plain.selector, "pty": too_large})
        assert answer[1]["code"] == "invalid_argument"


async def test_the_end_of_the_sandbox_ends_streams_and_input_at_once(live: Live) -> None:
    async with live.start("sleep 30") as response:
        await live.helpers.read_event(response)
        blocked = asyncio.create_task(live.write(b"w" * 4_000_000))
        await asyncio.sleep(0.2)
        began = asyncio.get_running_loop().time()
        await live.client.call("DELETE", f"/api/v1/sandbox/{live.box['id']}")
        result = await asyncio.wait_for(live.helpers.read_stream(response), 5)
        assert result.error_code == "not_found"
        assert (await blocked)[1]["code"] == "not_found"
    assert asyncio.get_running_loop().time() - began < 3
