"""Chat completions, whole and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec
from aiohttp import web

from prime_local.calls import Call, Reply
from prime_local.contract.document import JsonObject
from prime_local.inference import catalogue, requests
from prime_local.inference.calling import team_of
from prime_local.inference.choices import Choice, logprobs_of, message_of
from prime_local.inference.events import DONE, Events
from prime_local.inference.forms import ERROR, framed, odd
from prime_local.inference.relay import relay
from prime_local.inference.requests import ChatRequest
from prime_local.inference.tally import BilledCall, Outcome
from prime_local.noise import add_noise
from prime_local.spoiling import ResponseBody, response_body

# Several events go out in one write: what a write costs is most of what an event costs.
_BATCH = 16
_COMMENT = b": keep-alive\n\n"
# Keeps the pieces of an odd stream apart on their way.
_ODD_PAUSE = 0.001
# How often a slow stream looks whether its reader is still there.
_LOOK_SECONDS = 0.02


async def create_chat_completion(call: Call) -> Reply | web.StreamResponse:
    requests.check(call)
    service = call.core.inference
    if service.upstream is not None and not catalogue.is_evaluation_model(call.body["model"]):
        with service.under_way(team_of(call)):
            return await relay(call, service.upstream)
    request = requests.read(call)
    with service.under_way(team_of(call)):
        completion = _Completion(call, request)
        form = None if call.fault is None else call.fault.stream_form
        if form == "json_error" and request.streams:
            return Reply(ERROR)
        if request.streams and form != "json":
            return await completion.stream()
        return await completion.whole()


@dataclass
class _Completion:
    """One call and its answer."""

    call: Call
    request: ChatRequest
    choices: list[Choice] = field(init=False)
    head: JsonObject = field(init=False)

    def __post_init__(self) -> None:
        name = self.call.assumptions.reasoning_field
        self.choices = [Choice(self.request, index, name) for index in range(self.request.n)]
        core = self.call.core
        self.head = {
            "id": core.identifiers.make("chatcmpl-", 24),
            "created": int(core.clock.date().timestamp()),
            "model": self.request.model.id,
            "system_fingerprint": "fp_prime_local",
        }

    async def whole(self) -> Reply:
        answers = []
        for choice in self.choices:
            answers.append(self._answer(choice))
            await asyncio.sleep(0)  # A long answer takes time to make up.
        await asyncio.sleep(self.call.core.inference.switches.token_time * self._tokens)
        self._charge("completed", streamed=False)
        body = {
            "object": "chat.completion",
            **self.head,
            "choices": answers,
            "usage": self._usage(),
        }
        return Reply(body)

    def _answer(self, choice: Choice) -> JsonObject:
        deltas = list(choice.deltas())
        logprobs = None
        if self.request.top_logprobs is not None:
            tokens = (delta for delta in deltas if isinstance(delta, str))
            most = self.request.top_logprobs
            entries = [logprobs_of(token, most) for token in tokens]
            logprobs = {"content": entries, "refusal": None}
        return {
            "index": choice.index,
            "message": message_of(deltas),
            "finish_reason": choice.finish_reason,
            "logprobs": logprobs,
        }

    async def stream(self) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        response = web.StreamResponse(headers=headers)
        body = response_body(self.call.request, response, self.call.fault)
        outcome: Outcome = "abandoned"
        try:
            await body.start()
            await self._send_to_reader(body)
            await body.end()
            outcome = "completed"
        except ConnectionError:
            # The reader went away, or a fault rule cut the stream.
            pass
        finally:
            self._charge(outcome, streamed=True)
        return response

    def _events(self) -> Iterator[bytes]:
        core = self.call.core
        head = {"object": "chat.completion.chunk", **self.head}
        if core.settings.noise:
            head = add_noise(head)
        events = Events(head, self.request.top_logprobs)
        yield from events.of_choices(self.choices)
        alone = self.call.assumptions.stream_totals == "either"
        if self.request.totals or (self.request.priced and alone):
            yield events.totals(self._usage())
        yield DONE

    def _checked(self, events: Iterator[bytes]) -> Iterator[bytes]:
        core, operation = self.call.core, self.call.operation
        for event in events:
            data = event.decode() if event == DONE else msgspec.json.decode(event)
            for problem in core.checks.event(operation, data):
                core.violations.append(f"{operation.id} event {problem.text}")
            yield event

    async def _send_to_reader(self, body: ResponseBody) -> None:
        """Send the stream; pauses of a slow one end with its reader's connection.

        Raises:
            ConnectionError: the reader went away, or a fault rule cut the stream.
        """
        if self.call.fault is None and not self.call.core.inference.switches.token_time:
            await self._send(body)
            return
        sending = asyncio.create_task(self._send(body))
        try:
            while not (await asyncio.wait({sending}, timeout=_LOOK_SECONDS))[0]:
                if self.call.request.transport is None:
                    raise ConnectionResetError("the reader went away")
        finally:
            sending.cancel()
            await asyncio.wait({sending})
        await sending

    async def _send(self, body: ResponseBody) -> None:
        rule = self.call.fault
        pause = self.call.core.inference.switches.token_time
        quiet = self.call.assumptions.stream_keep_alive
        events = self._events()
        if self.call.core.settings.validate_responses:
            events = self._checked(events)
        pieces = framed(events)
        if rule is not None and rule.stream_form is not None:
            pieces = odd(rule.stream_form, events, rule.after_envelopes)
            pause, quiet = max(pause, _ODD_PAUSE), None
        # A rule counts events, so that each must be a write.
        most = 1 if rule is not None or pause else _BATCH
        ready: list[bytes] = [] if quiet is None else [_COMMENT]
        for piece in pieces:
            ready.append(piece)
            if len(ready) >= most:
                await body.write(b"".join(ready))
                ready.clear()
                await _pause(body, pause, quiet)
        if ready:
            await body.write(b"".join(ready))

    @property
    def _tokens(self) -> int:
        return sum(choice.tokens for choice in self.choices)

    @property
    def _cost(self) -> Decimal:
        return self.request.model.cost(self.request.prompt_tokens, self._tokens)

    def _usage(self) -> JsonObject:
        prompt, answer = self.request.prompt_tokens, self._tokens
        thoughts = sum(choice.reasoning_tokens for choice in self.choices)
        usage: JsonObject = {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": thoughts},
        }
        if self.request.priced:
            usage.update(input_tokens=prompt, output_tokens=answer, cost=float(self._cost))
        return usage

    def _charge(self, outcome: Outcome, *, streamed: bool) -> None:
        call = self.call
        billed = BilledCall(
            inference_id=call.inference_id,
            operation=call.operation.id,
            model=self.request.model.id,
            team_id=team_of(call),
            prompt_tokens=self.request.prompt_tokens,
            completion_tokens=self._tokens,
            cost_usd=float(self._cost),
            streamed=streamed,
            outcome=outcome,
        )
        call.core.inference.charge(billed, self._cost)


async def _pause(body: ResponseBody, seconds: float, quiet: float | None) -> None:
    """Wait for the next token, with a comment now and then where that takes long."""
    while quiet is not None and seconds > quiet:
        await asyncio.sleep(quiet)
        await body.write(_COMMENT)
        seconds -= quiet
    await asyncio.sleep(seconds)
