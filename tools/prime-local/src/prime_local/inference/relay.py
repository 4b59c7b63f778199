"""Completions that the upstream server makes."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from prime_local.calls import Call, Reply
from prime_local.contract.document import JsonObject
from prime_local.inference.calling import team_of
from prime_local.inference.tally import BilledCall, Outcome
from prime_local.inference.upstream import Tail, Upstream, read_json
from prime_local.spoiling import ResponseBody, response_body

_PASSED_HEADERS = ("Retry-After",)


async def relay(call: Call, upstream: Upstream) -> Reply | web.StreamResponse:
    """Answer a request, whose body was checked, with what the upstream server answers.

    Raises:
        InferenceError: 502.
    """
    async with upstream.complete(call.body) as response:
        if response.content_type == "text/event-stream" and response.status == 200:
            return await _stream(call, response)
        headers = {
            name: response.headers[name] for name in _PASSED_HEADERS if name in response.headers
        }
        answer = await read_json(response)
        if response.status != 200 or not isinstance(answer, dict):
            data = await response.read()
            return Reply(data, response.status, headers, response.content_type)
    usage = answer.get("usage") or {}
    _charge(call, usage, "completed", streamed=False)
    if call.body.get("usage", {}).get("include"):
        answer["usage"] = {**usage, **_extension(usage)}
    # It need not keep our contract, so that it is not checked against it.
    return Reply(msgspec.json.encode(answer))


async def _stream(call: Call, source: aiohttp.ClientResponse) -> web.StreamResponse:
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    response = web.StreamResponse(headers=headers)
    body = response_body(call.request, response, call.fault)
    tail = Tail()
    outcome: Outcome = "abandoned"
    try:
        await body.start()
        # Reading waits for writing: nothing piles up here.
        async for piece in source.content.iter_any():
            tail.feed(piece)
            await body.write(piece)
        await body.end()
        outcome = "completed"
    except ConnectionError:
        pass
    except aiohttp.ClientError:
        error = {"message": "The upstream server's stream broke off", "type": "server_error"}
        await _send_last(body, b"data: " + msgspec.json.encode({"error": error}) + b"\n\n")
    finally:
        _charge(call, tail.usage(), outcome, streamed=True)
    return response


async def _send_last(body: ResponseBody, event: bytes) -> None:
    try:
        await body.write(event)
        await body.end()
    except ConnectionError:
        pass


def _extension(usage: Mapping[str, Any]) -> JsonObject:
    return {
        "input_tokens": usage.get("prompt_tokens", 0),
        "output_tokens": usage.get("completion_tokens", 0),
        # Nobody knows the prices of the other server.
        "cost": None,
    }


def _charge(call: Call, usage: Mapping[str, Any], outcome: Outcome, *, streamed: bool) -> None:
    billed = BilledCall(
        inference_id=call.inference_id,
        operation=call.operation.id,
        model=call.body["model"],
        team_id=team_of(call),
        prompt_tokens=usage.get("prompt_tokens") or 0,
        completion_tokens=usage.get("completion_tokens") or 0,
        cost_usd=0.0,
        streamed=streamed,
        outcome=outcome,
    )
    call.core.inference.charge(billed, Decimal(0))
