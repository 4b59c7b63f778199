"""What every gateway route begins with: the way to the sandbox, and what a refusal looks like."""

from __future__ import annotations

import json
import uuid

from prime_local.calls import Call, Reply
from prime_local.gateway.connect import failure_reply
from prime_local.sandboxes.commands import CommandFault
from prime_local.sandboxes.life import SandboxLife
from prime_local.tokens import user_namespace


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


def failure(fault: CommandFault) -> Reply:
    """The answer of a call that fails before any message is sent."""
    if isinstance(fault, Unreachable) and fault.by_router:
        body = {"error": "sandbox_not_found", "message": fault.message, "code": 502}
        # In bytes: the contract lists only what the Connect server answers.
        return Reply(json.dumps(body).encode(), 502)
    return failure_reply(fault)


def canonical(text: str, name: str) -> str | None:
    """Return a uuid, None for an empty text.

    Raises:
        CommandFault: `invalid_argument` for any other form than the canonical one.
    """
    if not text:
        return None
    try:
        is_canonical = str(uuid.UUID(text)) == text
    except ValueError:
        is_canonical = False
    if not is_canonical:
        raise CommandFault("invalid_argument", f"{name} must be a canonical lower-case UUID")
    return text
