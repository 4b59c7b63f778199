"""Routes of the gateway that act on a running command: input, signals, the terminal's size."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from aiohttp import web

from prime_local.calls import Call, Reply
from prime_local.gateway.access import canonical, failure, open_gateway
from prime_local.gateway.connect import (
    Codec,
    EnvelopeStream,
    read_envelopes,
    read_timeout,
    unary_reply,
)
from prime_local.sandboxes.commands import CommandFault
from prime_local.sandboxes.life import SandboxLife
from prime_local.sandboxes.session import CommandSession
from prime_local.sandboxes.terminals import TerminalSize

_SIGNALS = {9: signal.SIGKILL, 15: signal.SIGTERM}
# For a request that names no deadline.
_LONGEST_WAIT = 60.0


async def command_session_send_input(call: Call) -> Reply:
    try:
        life, codec, data, message = await _read(call, "SendInputRequest")
        input_uuid = canonical(message.input_uuid, "input_uuid")
        session = _select(life, message.session)
        write = life.deliveries.once(input_uuid, data, lambda: _write(session, message.input))
        await _within_deadline(call, write)
    except CommandFault as fault:
        return failure(fault)
    return unary_reply(codec, call.core.messages.new("Empty"))


async def command_session_send_signal(call: Call) -> Reply:
    try:
        life, codec, data, message = await _read(call, "SendSignalRequest")
        number = _SIGNALS.get(message.signal)
        if number is None:
            raise CommandFault("invalid_argument", "signal must be SIGTERM or SIGKILL")
        signal_uuid = canonical(message.signal_uuid, "signal_uuid")

        async def deliver() -> None:
            await _select(life, message.session).signal(number)

        await _within_deadline(call, life.deliveries.once(signal_uuid, data, deliver))
    except CommandFault as fault:
        return failure(fault)
    return unary_reply(codec, call.core.messages.new("Empty"))


async def command_session_update(call: Call) -> Reply:
    try:
        life, codec, _, message = await _read(call, "UpdateRequest")
        session = _select(life, message.session)
        if message.HasField("pty"):
            await session.resize(read_size(message.pty))
    except CommandFault as fault:
        return failure(fault)
    return unary_reply(codec, call.core.messages.new("Empty"))


async def command_session_stream_input(call: Call) -> Reply | web.StreamResponse:
    try:
        life = open_gateway(call)
        codec = Codec.of(call, stream=True)
    except CommandFault as fault:
        return failure(fault)
    answer = EnvelopeStream(call, codec)
    try:
        outcome: CommandFault | None = None
        try:
            await _within_deadline(call, _write_all(call, life, codec))
        except CommandFault as fault:
            outcome = fault
        await answer.open()
        if outcome is None:
            await answer.send_message(call.core.messages.new("Empty"))
        await answer.close(outcome)
    except ConnectionError:
        # The caller has left; what it sent whole has been written.
        pass
    return answer.response


async def _write_all(call: Call, life: SandboxLife, codec: Codec) -> None:
    session: CommandSession | None = None
    async for message in _messages(call, codec):
        kind = message.WhichOneof("event")
        if (kind == "start") != (session is None):
            raise CommandFault("invalid_argument", "one start comes first, and only once")
        if session is None:
            session = _select(life, message.start.session)
        elif kind == "data":
            await _write(session, message.data.input)
    if session is None:
        raise CommandFault("invalid_argument", "the stream has no start")


async def _messages(call: Call, codec: Codec) -> AsyncIterator[Any]:
    async for payload in read_envelopes(call.request.content):
        yield codec.parse(payload, call.core.messages.new("StreamInputRequest"))


async def _write(session: CommandSession, given: Any) -> None:
    kind = given.WhichOneof("input")
    if kind is None:
        raise CommandFault("invalid_argument", "the input is missing")
    await session.write(getattr(given, kind), terminal=kind == "pty")


async def _read(call: Call, message: str) -> tuple[SandboxLife, Codec, bytes, Any]:
    life = open_gateway(call)
    codec = Codec.of(call, stream=False)
    data = await call.request.read()
    return life, codec, data, codec.parse(data, call.core.messages.new(message))


def _select(life: SandboxLife, selector: Any) -> CommandSession:
    return life.sessions.select(pid=selector.pid, session_uuid=selector.session_uuid)


def read_size(pty: Any) -> TerminalSize:
    """Read the size of a terminal.

    Raises:
        CommandFault: `invalid_argument` for one that no terminal has.
    """
    size = TerminalSize(pty.size.cols, pty.size.rows)
    if max(size.columns, size.rows) > 0xFFFF:
        raise CommandFault("invalid_argument", "a terminal has at most 65,535 columns and rows")
    return size


async def _within_deadline(call: Call, work: Awaitable[None]) -> None:
    seconds = read_timeout(call.request.headers.get("connect-timeout-ms")) or _LONGEST_WAIT
    try:
        await asyncio.wait_for(work, seconds)
    except asyncio.TimeoutError:
        raise CommandFault("deadline_exceeded", f"not done within {seconds:g} s") from None
