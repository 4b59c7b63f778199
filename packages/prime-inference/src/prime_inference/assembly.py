"""Puts a completion together from the pieces of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prime_core.repairs import repaired_data
from prime_inference.models import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessage,
    Choice,
    ChoiceLogprobs,
    ChunkChoice,
    CompletionUsage,
    CustomToolCall,
    FunctionCall,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
)

__all__ = ["CompletionAssembler", "from_whole"]

T = TypeVar("T")


def from_whole(chunk: ChatCompletionChunk) -> ChatCompletionChunk:
    """A whole completion that was read as a chunk, as one: its messages are the pieces.

    Raises:
        ValueError: it is none, or a message is.
    """
    if "choices" not in chunk.model_fields_set:
        raise ValueError("it has no choices")
    data = chunk.model_dump(exclude_unset=True)
    choices = data["choices"]
    numbered = len({choice["index"] for choice in choices}) == len(choices)
    for number, choice in enumerate(choices):
        message = choice.pop("message", None)
        if message is not None:
            choice["delta"] = message
            _number(message)
        if not numbered:
            choice["index"] = number
    whole = repaired_data(ChatCompletionChunk, data)
    if whole is None:
        raise ValueError("a message of it is none")
    whole.object = "chat.completion.chunk"
    return whole


def _number(message: object) -> None:
    """Numbers the tools' calls of a whole message, which stand in their order."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    for number, call in enumerate(calls if isinstance(calls, list) else []):
        if isinstance(call, dict):
            call["index"] = number


@dataclass
class _Tool:
    """What came of a tool's call."""

    id: str = ""
    type: str = "function"
    name: str = ""
    text: list[str] = field(default_factory=list)
    custom: bool = False
    extra: dict[str, Any] = field(default_factory=dict)
    called_extra: dict[str, Any] = field(default_factory=dict)  # of its function

    def add(self, piece: ToolCallDelta) -> None:
        self.id = self.id or piece.id or ""
        self.type = piece.type or self.type
        self.extra.update(vars(piece))
        if piece.function is not None:
            self.name = self.name or piece.function.name or ""
            self.text.append(piece.function.arguments or "")
            self.called_extra.update(vars(piece.function))
        elif piece.custom is not None:
            self.custom = True
            self.name = self.name or piece.custom.name or ""
            self.text.append(piece.custom.input or "")
            self.called_extra.update(vars(piece.custom))

    def whole(self) -> ToolCall:
        called = {**self.called_extra, "name": self.name}
        text = "".join(self.text)
        call = {**self.extra, "id": self.id, "type": self.type}
        if self.custom:
            return ToolCall(**{**call, "custom": CustomToolCall(**{**called, "input": text})})
        return ToolCall(**{**call, "function": FunctionCall(**{**called, "arguments": text})})


@dataclass(slots=True)
class _Answer:
    """What came of one answer. Texts are kept in pieces: joining each time would be quadratic.

    What has not come has no list: thousands of streams would hold thousands of empty ones, which
    the garbage collector goes through again and again.
    """

    role: str | None = None
    finish_reason: str | None = None
    content: list[str] | None = None
    refusal: list[str] | None = None
    reasoning_content: list[str] | None = None
    reasoning: list[str] | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tools: dict[int, _Tool] | None = None
    logprobs: list[ChoiceLogprobs] | None = None
    extra: dict[str, Any] | None = None
    message_extra: dict[str, Any] | None = None

    def add(self, choice: ChunkChoice) -> None:
        delta = choice.delta
        if delta.content is not None:
            if self.content is None:
                self.content = [delta.content]
            else:  # as nearly always: without a call
                self.content.append(delta.content)
        if choice.finish_reason is not None:
            self.finish_reason = choice.finish_reason
        if choice.logprobs is not None:
            self.logprobs = _with(self.logprobs, choice.logprobs)
        if not self.role:
            self.role = delta.role
        if delta.refusal is not None:
            self.refusal = _with(self.refusal, delta.refusal)
        if delta.reasoning_content is not None:
            self.reasoning_content = _with(self.reasoning_content, delta.reasoning_content)
        if delta.reasoning is not None:
            self.reasoning = _with(self.reasoning, delta.reasoning)
        if delta.reasoning_details:
            details = self.reasoning_details = self.reasoning_details or []
            details += delta.reasoning_details
        if delta.tool_calls:
            tools = self.tools = self.tools or {}
            for piece in delta.tool_calls:
                tools.setdefault(_place(piece, tools), _Tool()).add(piece)
        if vars(choice):
            self.extra = _updated(self.extra, vars(choice))
        if vars(delta):
            self.message_extra = _updated(self.message_extra, vars(delta))

    def whole(self, index: int) -> Choice:
        tools = self.tools or {}
        message = {
            **(self.message_extra or {}),
            "role": self.role or "assistant",
            "content": _joined(self.content),
            "refusal": _joined(self.refusal),
            "reasoning_content": _joined(self.reasoning_content),
            "reasoning": _joined(self.reasoning),
            "reasoning_details": self.reasoning_details,
            "tool_calls": [tools[place].whole() for place in sorted(tools)] or None,
        }
        choice = {
            **(self.extra or {}),
            "index": index,
            "message": ChatCompletionMessage(**message),
            "finish_reason": self.finish_reason,
            "logprobs": self._logprobs(),
        }
        return Choice(**choice)

    def _logprobs(self) -> ChoiceLogprobs | None:
        if self.logprobs is None:
            return None
        content = [part.content for part in self.logprobs if part.content is not None]
        refusal = [part.refusal for part in self.logprobs if part.refusal is not None]
        return ChoiceLogprobs(content=_flat(content), refusal=_flat(refusal))


def _with(pieces: list[T] | None, piece: T) -> list[T]:
    """The pieces and one more."""
    if pieces is None:
        return [piece]
    pieces.append(piece)
    return pieces


def _updated(fields: dict[str, Any] | None, more: dict[str, Any]) -> dict[str, Any]:
    """The fields and more of them."""
    if fields is None:
        return dict(more)
    fields.update(more)
    return fields


def _place(piece: ToolCallDelta, tools: Mapping[int, _Tool]) -> int:
    """Which call a piece belongs to; without a number, another id or name begins another."""
    if piece.index is not None:
        return piece.index
    for place, tool in tools.items():
        if piece.id and tool.id == piece.id:
            return place
    if not tools:
        return 0
    last = max(tools)
    part = piece.custom if piece.function is None else piece.function
    name = None if part is None else part.name
    return last + 1 if piece.id or (name and tools[last].name not in ("", name)) else last


def _joined(pieces: list[str] | None) -> str | None:
    return None if pieces is None else "".join(pieces)


def _flat(lists: list[list[TokenLogprob]]) -> list[TokenLogprob] | None:
    return [token for tokens in lists for token in tokens] if lists else None


class CompletionAssembler:
    """Takes chunks as they come; answers may interleave.

    Thousands of streams take turns, so that hardly anything of one is in a cache when its next
    chunk comes: what is looked at for each chunk is kept close together.
    """

    __slots__ = (
        "_answer",
        "_answers",
        "_created",
        "_extra",
        "_id",
        "_index",
        "_model",
        "_named",
        "_service_tier",
        "_system_fingerprint",
        "_usage",
    )

    def __init__(self) -> None:
        self._answers: dict[int, _Answer] = {}
        self._answer = _Answer()  # the one of the piece before, and its number
        self._index: int | None = None
        self._extra: dict[str, Any] | None = None
        self._named = False  # whether the next three have come, which each counts as it comes first
        self._id = ""
        self._created: int | None = None
        self._model = ""
        self._usage: CompletionUsage | None = None
        self._service_tier: str | None = None
        self._system_fingerprint: str | None = None

    def is_complete(self) -> bool:
        """Whether there is an answer, and each has its end."""
        answers = self._answers.values()
        return bool(answers) and all(answer.finish_reason is not None for answer in answers)

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Takes a chunk."""
        if not self._named:
            self._name(chunk)
        if chunk.__pydantic_extra__:
            self._extra = _updated(self._extra, chunk.__pydantic_extra__)
        for choice in chunk.choices:
            if choice.index != self._index:
                self._index = choice.index
                self._answer = self._answers.setdefault(choice.index, _Answer())
            self._answer.add(choice)
            if choice.usage is not None and chunk.usage is None:
                self._usage = choice.usage
        if chunk.usage is not None:
            self._usage = chunk.usage
        if chunk.service_tier is not None:
            self._service_tier = chunk.service_tier
        if chunk.system_fingerprint is not None:
            self._system_fingerprint = chunk.system_fingerprint

    def _name(self, chunk: ChatCompletionChunk) -> None:
        self._id = self._id or chunk.id
        self._created = chunk.created if self._created is None else self._created
        self._model = self._model or chunk.model
        self._named = bool(self._id and self._model and self._created is not None)

    def completion(self, inference_id: str | None) -> ChatCompletion:
        """What came so far, as a completion."""
        completion = {
            **(self._extra or {}),
            "id": self._id,
            "created": self._created,
            "model": self._model,
            "choices": [self._answers[index].whole(index) for index in sorted(self._answers)],
            "usage": self._usage,
            "service_tier": self._service_tier,
            "system_fingerprint": self._system_fingerprint,
            "inference_id": inference_id,
        }
        return ChatCompletion(**completion)
