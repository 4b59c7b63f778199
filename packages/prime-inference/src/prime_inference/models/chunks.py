"""The pieces of a completion that is streamed, in OpenAI's shapes."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from prime_core.models import ResponseModel, ResponsePart
from prime_inference.models.chat import ESSENTIAL, ChoiceLogprobs, CompletionUsage


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class FunctionCallDelta(ResponsePart):
    """A piece of a function's call.

    Attributes:
        name: the function, in the first piece.
        arguments: text to append to what came of the arguments.
    """

    name: str | None = None
    arguments: str | None = None


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class CustomToolCallDelta(ResponsePart):
    """A piece of a custom tool's call.

    Attributes:
        name: the tool, in the first piece.
        input: text to append to what came of the input.
    """

    name: str | None = None
    input: str | None = None


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class ToolCallDelta(ResponsePart):
    """A piece of a tool's call.

    Attributes:
        index: which of the message's calls it belongs to.
        id: the call's id, in the first piece.
        type: the call's type, in the first piece.
        function: a piece of a function's call.
        custom: a piece of a custom tool's call.
    """

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionCallDelta | None = None
    custom: CustomToolCallDelta | None = None


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class ChoiceDelta(ResponsePart):
    """A piece of an answer; texts are to be appended to what came of them.

    Attributes:
        role: who speaks, in the first piece.
        content: of the answer's text.
        refusal: of the reason why there is no answer.
        reasoning_content: of the model's thoughts.
        reasoning: of the same, under the name that some models use.
        reasoning_details: further parts of the thoughts.
        tool_calls: pieces of the tools' calls.
    """

    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[ToolCallDelta] | None = None


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class ChunkChoice(ResponsePart):
    """A piece of one of the answers.

    Attributes:
        index: which of them.
        delta: the piece.
        finish_reason: in the last piece, why the model stopped.
        logprobs: how likely the tokens of the piece were.
        usage: what the call used, where that is told here.
    """

    index: int = 0
    delta: ChoiceDelta = field(default_factory=ChoiceDelta)
    finish_reason: str | None = None
    logprobs: ChoiceLogprobs | None = None
    usage: CompletionUsage | None = None


class ChatCompletionChunk(ResponseModel):
    """A piece of a completion. Follows the page "api-reference/inference-chat-completions".

    Attributes:
        id: the completion's.
        object: ``chat.completion.chunk``.
        created: when the completion was begun, in seconds since 1970.
        model: the model that makes it.
        choices: pieces of the answers; none where only the totals come.
        usage: what the call used, in the last chunk, if that is told.
        service_tier: how it is served.
        system_fingerprint: names the configuration that makes it.
    """

    essential = ESSENTIAL

    id: str = ""
    object: str = "chat.completion.chunk"
    created: int | None = None
    model: str = ""
    choices: list[ChunkChoice] = Field(default_factory=list)
    usage: CompletionUsage | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
