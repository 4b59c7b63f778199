"""Routes of the login, which need no API key."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply, bearer
from prime_local.contract.document import JsonObject


async def generate_auth_challenge(call: Call) -> Reply:
    limits = call.body.get("limits") or {}
    challenge = call.core.account.challenges.begin(call.body["encryptionPublicKey"], limits)
    answer: JsonObject = {
        "challenge": challenge.code,
        "status_auth_token": challenge.token,
    }
    if limits and call.assumptions.login_limits == "confirmed":
        answer["limits"] = limits
    return Reply(answer)


async def get_auth_challenge_status(call: Call) -> Reply:
    code, token = call.parameters["challenge"], bearer(call.request)
    result = call.core.account.challenges.status(code, token)
    return Reply({"result": result})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler for handler in (generate_auth_challenge, get_auth_challenge_status)
}
