"""The answers of a chat completion, token by token."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator

from prime_local.contract.document import JsonObject
from prime_local.inference.requests import ChatRequest, Tool, said
from prime_local.inference.samples import Sampler
from prime_local.inference.text import Writer, pieces

_NAME = re.compile(r"\b[^\W\d_]\w*")
# A token of content, or another delta as it goes over the wire.
Delta = str | JsonObject


class Choice:
    """One answer.

    Iterate `deltas` to make it; the counts and the reason of its end are right afterwards.

    Args:
        request: what is answered.
        index: which of its `n` answers this is.
        reasoning_name: under which name thoughts are sent.
    """

    def __init__(self, request: ChatRequest, index: int, reasoning_name: str) -> None:
        self.index = index
        self.tokens = 0
        self.reasoning_tokens = 0
        self.finish_reason = "stop"
        self._request = request
        self._reasoning_name = reasoning_name
        self._writer = Writer(f"{request.digest} {index}")

    def deltas(self) -> Iterator[Delta]:
        """Make the answer: tokens of content as texts, thoughts and tool calls as objects."""
        for delta in self._all():
            if self.tokens == self._request.max_tokens:
                self.finish_reason = "length"
                return
            self.tokens += 1
            yield delta

    def _all(self) -> Iterator[Delta]:
        request = self._request
        if request.reasons:
            for token in self._writer.passage():
                self.reasoning_tokens += 1
                yield {self._reasoning_name: token}
        if request.calls:
            for place, tool in enumerate(request.calls):
                yield from self._call(place, tool)
            self.finish_reason = "tool_calls"
            return
        yield from before_stop(self._content(), request.stops)

    def _content(self) -> Iterator[str]:
        request = self._request
        if request.echo is not None:
            return pieces(request.echo)
        wanted = request.body.get("response_format") or {}
        if wanted.get("type") == "json_object":
            return pieces(json.dumps({"answer": self._writer.word()}))
        if wanted.get("type") == "json_schema":
            schema = wanted["json_schema"].get("schema", {})
            value = Sampler(schema, self._writer).sample()
            return pieces(json.dumps(value, ensure_ascii=False))
        return self._writer.endless() if request.ignores_end else self._writer.passage()

    def _call(self, place: int, tool: Tool) -> Iterator[JsonObject]:
        """Make a call of a tool, about the last thing that the prompt names."""
        names = _NAME.findall(said(self._request.body["messages"][-1]))
        capitals = [name for name in names if name[0].isupper()] or names
        word = capitals[-1] if capitals else None
        if tool.kind == "custom":
            key, text = "input", word or self._writer.word()
        else:
            value = Sampler({"type": "object", **tool.schema}, self._writer, word).sample()
            key, text = "arguments", json.dumps(value, ensure_ascii=False)
        call_id = f"call_{self._request.digest[:16]}{self.index}{place}"
        first = {"index": place, "id": call_id, "type": tool.kind}
        yield {"tool_calls": [{**first, tool.kind: {"name": tool.name, key: ""}}]}
        for piece in pieces(text):
            yield {"tool_calls": [{"index": place, tool.kind: {key: piece}}]}


def before_stop(tokens: Iterable[str], stops: tuple[str, ...]) -> Iterator[str]:
    """Yield tokens until one of some texts begins, and nothing of that."""
    if not stops:
        yield from tokens
        return
    longest = max(map(len, stops))
    held: list[str] = []
    for token in tokens:
        held.append(token)
        text = "".join(held)
        found = [text.find(stop) for stop in stops if stop in text]
        if found:
            yield from _first(held, min(found))
            return
        # What is older than this can't be the beginning of one.
        while held and len(text) - len(held[0]) >= longest - 1:
            text = text[len(held[0]) :]
            yield held.pop(0)
    yield from held


def _first(tokens: list[str], length: int) -> Iterator[str]:
    """Yield as much of some tokens as makes so many characters."""
    for token in tokens:
        if length <= 0:
            return
        yield token[:length]
        length -= len(token)


def message_of(deltas: Iterable[Delta]) -> JsonObject:
    """Put a whole answer together."""
    content: list[str] = []
    texts: dict[str, list[str]] = {}
    calls: list[JsonObject] = []
    for delta in deltas:
        if isinstance(delta, str):
            content.append(delta)
        elif "tool_calls" in delta:
            _add_call(calls, delta["tool_calls"][0])
        else:
            for name, text in delta.items():
                texts.setdefault(name, []).append(text)
    message: JsonObject = {"role": "assistant", "content": "".join(content)}
    if calls:
        message.update(content="".join(content) or None, tool_calls=calls)
    message.update({name: "".join(parts) for name, parts in texts.items()})
    return message


def _add_call(calls: list[JsonObject], fragment: JsonObject) -> None:
    if "id" in fragment:
        calls.append({name: value for name, value in fragment.items() if name != "index"})
        return
    call = calls[fragment["index"]]
    kind = call["type"]
    for key, text in fragment[kind].items():
        call[kind][key] += text


def logprobs_of(token: str, alternatives: int) -> JsonObject:
    """Return plausible probabilities of a token: the same whenever it is chosen."""
    draw = hashlib.blake2b(token.encode(errors="replace"), digest_size=8).digest()
    chance = 0.35 + 0.6 * draw[0] / 255
    entry = _logprob(token, chance)
    top = [entry]
    left = 1 - chance
    for place in range(alternatives - 1):
        left /= 2
        top.append(_logprob(f" {draw.hex()[: place % 6 + 1]}{place}", left * 0.9))
    return {**entry, "top_logprobs": top[:alternatives]}


def _logprob(token: str, chance: float) -> JsonObject:
    data = list(token.encode(errors="replace"))
    return {"token": token, "logprob": round(math.log(chance), 6), "bytes": data}
