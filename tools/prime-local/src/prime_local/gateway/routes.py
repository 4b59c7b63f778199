"""Routes of the gateway: commands are started, followed and listed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from prime_local.calls import Call, Handler, Reply
from prime_local.gateway import inputs
from prime_local.gateway.access import canonical, failure, open_gateway
from prime_local.gateway.connect import (
    Codec,
    EventStream,
    open_envelope,
    read_timeout,
    unary_reply,
)
from prime_local.sandboxes.commands import Command, CommandFault
from prime_local.sandboxes.life import ANONYMOUS, SandboxLife
from prime_local.sandboxes.session import CommandSession
from prime_local.sandboxes.terminals import Stdin

Find = Callable[[Call, SandboxLife, Codec, bytes], tuple[CommandSession, float | None]]


async def command_session_start(call: Call) -> Reply | web.StreamResponse:
    return await _follow(call, "StartResponse", _start)


async def command_session_connect(call: Call) -> Reply | web.StreamResponse:
    return await _follow(call, "ConnectResponse", _find)


async def _follow(call: Call, message: str, find: Find) -> Reply | web.StreamResponse:
    """Stream the events of a command to its end."""
    try:
        life = open_gateway(call)
        codec = Codec.of(call, stream=True)
    except CommandFault as fault:
        return failure(fault)
    body = await call.request.read()
    stream = EventStream(call, codec, message)
    try:
        await stream.open()
        try:
            session, seconds = find(call, life, codec, body)
            outcome = await _watch(session, stream, seconds)
        except CommandFault as fault:
            outcome = fault
        await stream.close(outcome)
    except ConnectionError:
        # The caller has left; its command goes on.
        pass
    return stream.response


def _start(
    call: Call, life: SandboxLife, codec: Codec, body: bytes
) -> tuple[CommandSession, float | None]:
    """Return the session that a request starts or attaches to, and the limit of its stream."""
    timeout = read_timeout(call.request.headers.get("connect-timeout-ms"))
    message = codec.parse(open_envelope(body), call.core.messages.new("StartRequest"))
    command = _read_command(message)
    session_uuid = canonical(message.session_uuid, "session_uuid")
    runs_on = call.assumptions.timed_out_command == "runs_on"
    session = life.start_session(session_uuid, command, None if runs_on else timeout)
    return session, timeout if runs_on else None


def _find(
    call: Call, life: SandboxLife, codec: Codec, body: bytes
) -> tuple[CommandSession, float | None]:
    """Return the session that a request names, and the limit of its stream."""
    timeout = read_timeout(call.request.headers.get("connect-timeout-ms"))
    message = codec.parse(open_envelope(body), call.core.messages.new("ConnectRequest"))
    wanted = message.session
    session = life.sessions.select(pid=wanted.pid, session_uuid=wanted.session_uuid, ended=True)
    return session, timeout


async def _watch(
    session: CommandSession, stream: EventStream, seconds: float | None
) -> CommandFault | None:
    try:
        async with stream.kept_alive():
            outcome = await asyncio.wait_for(session.watch(stream), seconds)
    except asyncio.TimeoutError:
        return CommandFault("deadline_exceeded", f"no end of the command within {seconds:g} s")
    return outcome if isinstance(outcome, CommandFault) else None


async def command_session_list(call: Call) -> Reply:
    new = call.core.messages.new
    try:
        life = open_gateway(call)
        codec = Codec.of(call, stream=False)
        codec.parse(await call.request.read(), new("ListRequest"))
    except CommandFault as fault:
        return failure(fault)
    sessions = [
        new(
            "CommandSessionInfo",
            command=new(
                "CommandSpec",
                cmd=session.command.argv[0],
                args=session.command.argv[1:],
                envs=session.command.env,
                cwd=session.command.cwd,
                user=session.command.user,
            ),
            pid=session.pid or 0,
            session_uuid=None if name.startswith(ANONYMOUS) else name,
        )
        for name, session in life.sessions.running
    ]
    return unary_reply(codec, new("ListResponse", sessions=sessions))


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        command_session_start,
        command_session_connect,
        command_session_list,
        inputs.command_session_update,
        inputs.command_session_stream_input,
        inputs.command_session_send_input,
        inputs.command_session_send_signal,
    )
}


def _read_command(message: Any) -> Command:
    spec = message.command
    words = (spec.cmd, *spec.args)
    settings = (*spec.envs, *spec.envs.values())
    if not spec.cmd or any("\0" in text for text in (*words, *settings, spec.cwd, spec.user)):
        raise CommandFault("invalid_argument", "command words must be non-empty and free of NUL")
    if any("=" in name or not name for name in spec.envs):
        raise CommandFault("invalid_argument", "a variable's name must be non-empty without '='")
    return Command(
        argv=words,
        env=dict(spec.envs),
        cwd=spec.cwd if spec.HasField("cwd") else None,
        user=spec.user if spec.HasField("user") else None,
        stdin=_read_stdin(message),
    )


def _read_stdin(message: Any) -> Stdin:
    if message.HasField("pty"):
        return inputs.read_size(message.pty)
    return "pipe" if message.stdin else "none"
