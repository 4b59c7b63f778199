"""Puts a completion together from the pieces of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from prime_core.repairs import repaired_data
from prime_inference.models import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionMessage,
    Choice,
    ChoiceDelta,
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


def from_whole(chunk: ChatCompletionChunk) -> ChatCompletionChunk:
    """A whole completion that was read as a chunk, as one: its messages are the pieces.

    Raises:
        ValueError: it is none, or a message is.
    """
    if "choices" not in chunk.model_fields_set:
        raise ValueError("it has no choices")
    for choice in chunk.choices:
        message = (choice.model_extra or {}).pop("message", None)
        if message is not None:
            delta = repaired_data(ChoiceDelta, message)
            if delta is None:
                raise ValueError(f"choices.{choice.index}.message is no message")
            choice.delta = delta
    chunk.object = "chat.completion.chunk"
    return chunk


@dataclass
class _Tool:
    """What came of a tool's call."""

    id: str = ""
    type: str = "function"
    name: str = ""
    text: list[str] = field(default_factory=list)
    custom: bool = False

    def add(self, piece: ToolCallDelta) -> None:
        self.id = self.id or piece.id or ""
        self.type = piece.type or self.type
        if piece.function is not None:
            self.name = self.name or piece.function.name or ""
            self.text.append(piece.function.arguments or "")
        elif piece.custom is not None:
            self.custom = True
            self.name = self.name or piece.custom.name or ""
            self.text.append(piece.custom.input or "")

    def whole(self) -> ToolCall:
        text = "".join(self.text)
        if self.custom:
            call = CustomToolCall(name=self.name, input=text)
            return ToolCall(id=self.id, type=self.type, custom=call)
        function = FunctionCall(name=self.name, arguments=text)
        return ToolCall(id=self.id, type=self.type, function=function)


@dataclass(slots=True)
class _Answer:
    """What came of one answer. Texts are kept in pieces: joining each time would be quadratic."""

    role: str | None = None
    finish_reason: str | None = None
    content: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    reasoning_content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    reasoning_details: list[dict[str, Any]] = field(default_factory=list)
    tools: dict[int, _Tool] = field(default_factory=dict)
    logprobs: list[ChoiceLogprobs] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def add(self, choice: ChunkChoice) -> None:
        delta = choice.delta
        if delta.content is not None:
            self.content.append(delta.content)
        if choice.finish_reason is not None:
            self.finish_reason = choice.finish_reason
        if choice.logprobs is not None:
            self.logprobs.append(choice.logprobs)
        # Most pieces are a few characters of text and have none of the rest.
        if delta.model_fields_set != _TEXT_ONLY:
            self._add_others(delta)

    def _add_others(self, delta: ChoiceDelta) -> None:
        self.role = self.role or delta.role
        if delta.refusal is not None:
            self.refusal.append(delta.refusal)
        if delta.reasoning_content is not None:
            self.reasoning_content.append(delta.reasoning_content)
        if delta.reasoning is not None:
            self.reasoning.append(delta.reasoning)
        self.reasoning_details += delta.reasoning_details or ()
        for piece in delta.tool_calls or ():
            self.tools.setdefault(self._place(piece), _Tool()).add(piece)
        if delta.model_extra:
            self.extra.update(delta.model_extra)

    def _place(self, piece: ToolCallDelta) -> int:
        """Which call a piece belongs to; without a number, one with an id begins another."""
        if piece.index is not None:
            return piece.index
        last = max(self.tools, default=-1)
        return last + 1 if piece.id or last < 0 else last

    def whole(self, index: int) -> Choice:
        message = ChatCompletionMessage(
            role=self.role or "assistant",
            content=_joined(self.content),
            refusal=_joined(self.refusal),
            reasoning_content=_joined(self.reasoning_content),
            reasoning=_joined(self.reasoning),
            reasoning_details=self.reasoning_details or None,
            tool_calls=[self.tools[place].whole() for place in sorted(self.tools)] or None,
            **self.extra,
        )
        return Choice(
            index=index,
            message=message,
            finish_reason=self.finish_reason,
            logprobs=self._logprobs(),
        )

    def _logprobs(self) -> ChoiceLogprobs | None:
        if not self.logprobs:
            return None
        content = [part.content for part in self.logprobs if part.content is not None]
        refusal = [part.refusal for part in self.logprobs if part.refusal is not None]
        return ChoiceLogprobs(content=_flat(content), refusal=_flat(refusal))


_TEXT_ONLY = {"content"}


def _joined(pieces: list[str]) -> str | None:
    return "".join(pieces) if pieces else None


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
        "_head",
        "_index",
        "_named",
        "_service_tier",
        "_system_fingerprint",
        "_usage",
    )

    def __init__(self) -> None:
        self._answers: dict[int, _Answer] = {}
        self._answer = _Answer()  # the one of the piece before, and its number
        self._index: int | None = None
        self._head: ChatCompletionChunk | None = None
        self._named = False  # whether the head has an id
        self._usage: CompletionUsage | None = None
        self._service_tier: str | None = None
        self._system_fingerprint: str | None = None

    @property
    def complete(self) -> bool:
        """Whether there is an answer, and each has its end."""
        answers = self._answers.values()
        return bool(answers) and all(answer.finish_reason is not None for answer in answers)

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Takes a chunk."""
        if not self._named:
            self._head = chunk
            self._named = bool(chunk.id)
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

    def completion(self, inference_id: str | None) -> ChatCompletion:
        """What came so far, as a completion."""
        head = self._head or ChatCompletionChunk()
        return ChatCompletion(
            id=head.id,
            created=head.created,
            model=head.model,
            choices=[self._answers[index].whole(index) for index in sorted(self._answers)],
            usage=self._usage,
            service_tier=self._service_tier,
            system_fingerprint=self._system_fingerprint,
            inference_id=inference_id,
        )
