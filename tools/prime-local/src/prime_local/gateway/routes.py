"""Routes of the gateway."""

from __future__ import annotations

import asyncio
import json
import signal
import uuid
from typing import Any

from aiohttp import web

from prime_local.calls import Call, Handler, Reply
from prime_local.gateway.connect import (
    Codec,
    EventStream,
    failure_reply,
    open_envelope,
    read_timeout,
)
from prime_local.sandboxes.commands import Command, CommandFault
from prime_local.sandboxes.life import SandboxLife
from prime_local.tokens import user_namespace

_SIGNALS = {9: signal.SIGKILL, 15: signal.SIGTERM}


async def command_session_start(call: Call) -> Reply | web.StreamResponse:
    try:
        life = open_gateway(call)
        codec = Codec.of(call, stream=True)
    except CommandFault as fault:
        return _failure(fault)
    body = await call.request.read()
    stream = EventStream(call, codec)
    try:
        await stream.open()
        await stream.close(await _follow_command(call, life, codec, body, stream))
    except ConnectionError:
        # The caller has left; its command goes on.
        pass
    return stream.response


async def _follow_command(
    call: Call, life: SandboxLife, codec: Codec, body: bytes, stream: EventStream
) -> CommandFault | None:
    try:
        timeout = read_timeout(call.request.headers.get("connect-timeout-ms"))
        message = codec.parse(open_envelope(body), call.core.messages.new("StartRequest"))
        command = _read_command(message)
        session_uuid = _canonical(message.session_uuid, "session_uuid")
        runs_on = call.assumptions.timed_out_command == "runs_on"
        session = life.start_session(session_uuid, command, None if runs_on else timeout)
    except CommandFault as fault:
        return fault
    try:
        async with stream.kept_alive():
            outcome = await asyncio.wait_for(session.watch(stream), timeout if runs_on else None)
    except asyncio.TimeoutError:
        return CommandFault("deadline_exceeded", f"no end of the command within {timeout:g} s")
    return outcome if isinstance(outcome, CommandFault) else None


async def command_session_send_signal(call: Call) -> Reply:
    try:
        life = open_gateway(call)
        codec = Codec.of(call, stream=False)
        message = codec.parse(
            await call.request.read(), call.core.messages.new("SendSignalRequest")
        )
        number = _SIGNALS.get(message.signal)
        if number is None:
            raise CommandFault("invalid_argument", "signal must be SIGTERM or SIGKILL")
        signal_uuid = _canonical(message.signal_uuid, "signal_uuid")
        if not life.has_seen_signal(signal_uuid):
            selector = message.session
            session = life.find_session(pid=selector.pid, session_uuid=selector.session_uuid)
            life.remember_signal(signal_uuid)
            await session.signal(number)
    except CommandFault as fault:
        return _failure(fault)
    return _unary(codec, call.core.messages.new("Empty"))


async def command_session_list(call: Call) -> Reply:
    new = call.core.messages.new
    try:
        life = open_gateway(call)
        codec = Codec.of(call, stream=False)
        codec.parse(await call.request.read(), new("ListRequest"))
    except CommandFault as fault:
        return _failure(fault)
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
            session_uuid=None if name.startswith("anonymous-") else name,
        )
        for name, session in life.sessions
    ]
    return _unary(codec, new("ListResponse", sessions=sessions))


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (command_session_start, command_session_send_signal, command_session_list)
}


class Unreachable(CommandFault):
    """No way to a sandbox that has ended, or is not ready.

    `form` is a Connect code, or `bad_gateway` for a router's answer.
    """

    def __init__(self, form: str, message: str, *, ended: bool) -> None:
        super().__init__("unavailable" if form == "bad_gateway" else form, message)
        self.by_router = form == "bad_gateway"
        self.ended = ended


def open_gateway(call: Call) -> SandboxLife:
    """Return the sandbox that a request names, once its token has been checked.

    Raises:
        CommandFault: `unauthenticated`, or what is assumed for sandboxes that have ended, or that
            are not reachable yet.
    """
    life = call.core.sandboxes.find_job(call.parameters["job_id"])
    if (
        life is None
        or not life.record.live
        or user_namespace(life.record) != call.parameters["user_ns"]
    ):
        text = "no such sandbox, or it has ended"
        raise Unreachable(call.assumptions.ended_gateway, text, ended=True)
    scheme, _, token = call.request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not call.core.tokens.accepts(life.record.id, token.strip()):
        raise CommandFault("unauthenticated", "gateway token missing, unknown or expired")
    if not life.gateway_ready:
        text = f"no way to the sandbox ({life.record.status.value})"
        raise Unreachable(call.assumptions.early_gateway, text, ended=False)
    return life


def _failure(fault: CommandFault) -> Reply:
    """The answer of a call that fails before any message is sent."""
    if isinstance(fault, Unreachable) and fault.by_router:
        body = {"error": "sandbox_not_found", "message": fault.message, "code": 502}
        # In bytes: the contract lists only what the Connect server answers.
        return Reply(json.dumps(body).encode(), 502)
    return failure_reply(fault)


def _read_command(message: Any) -> Command:
    spec = message.command
    if message.HasField("pty") or message.stdin:
        raise CommandFault("unimplemented", "pty and stdin are not simulated yet")
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
    )


def _canonical(text: str, name: str) -> str | None:
    if not text:
        return None
    try:
        canonical = str(uuid.UUID(text)) == text
    except ValueError:
        canonical = False
    if not canonical:
        raise CommandFault("invalid_argument", f"{name} must be a canonical lower-case UUID")
    return text


def _unary(codec: Codec, message: Any) -> Reply:
    return Reply(codec.dump(message), content_type=f"application/{codec.name}")
