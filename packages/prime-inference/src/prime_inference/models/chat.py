"""Completions of chats, in OpenAI's shapes; the attributes are theirs unless said otherwise.

Roles, finish reasons, types and service tiers are open sets: plain text.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from prime_core.models import ResponseModel

# What an answer is about: an odd value of these spoils it, one of the others does not.
ESSENTIAL = frozenset(
    {
        "choices",
        "index",
        "delta",
        "message",
        "content",
        "refusal",
        "tool_calls",
        "function",
        "custom",
        "name",
        "arguments",
        "input",
    }
)


class FunctionCall(ResponseModel):
    """A function that the model wants to be called.

    Attributes:
        name: the function.
        arguments: its arguments as the model wrote them: usually JSON, which may be invalid.
    """

    name: str = ""
    arguments: str = ""


class CustomToolCall(ResponseModel):
    """A tool of free form that the model wants to be used.

    Attributes:
        name: the tool.
        input: what to give it.
    """

    name: str = ""
    input: str = ""


class ToolCall(ResponseModel):
    """A tool that the model wants to be used.

    Attributes:
        id: to be named by the message that holds the tool's result.
        type: such as ``function``.
        function: the call, where that is its type.
        custom: the call, where that is its type.
    """

    id: str = ""
    type: str = "function"
    function: FunctionCall | None = None
    custom: CustomToolCall | None = None


class ChatCompletionMessage(ResponseModel):
    """What the model said; it can be passed on as one of the next call's messages.

    Attributes:
        role: ``assistant``.
        content: the answer's text.
        refusal: why there is no answer.
        reasoning_content: the model's thoughts.
        reasoning: another name for the same, which some models use.
        reasoning_details: thoughts in parts, to be passed on as they are.
        tool_calls: the tools that it wants to be used.
    """

    role: str = "assistant"
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[ToolCall] | None = None


class TopLogprob(ResponseModel):
    """A token that was likely at some place.

    Attributes:
        token: its text.
        logprob: logarithm of its probability; -9999.0 is very unlikely.
        bytes: its text in UTF-8, where that is known.
    """

    token: str
    logprob: float
    bytes: list[int] | None = None


class TokenLogprob(TopLogprob):
    """A token of the answer.

    Attributes:
        top_logprobs: the likeliest tokens at its place.
    """

    top_logprobs: list[TopLogprob] = Field(default_factory=list)


class ChoiceLogprobs(ResponseModel):
    """How likely the tokens of an answer were.

    Attributes:
        content: those of the text.
        refusal: those of the refusal.
    """

    content: list[TokenLogprob] | None = None
    refusal: list[TokenLogprob] | None = None


class Choice(ResponseModel):
    """One answer.

    Attributes:
        index: its number, from 0.
        message: what the model said.
        finish_reason: why it stopped, such as ``stop``, ``length`` or ``tool_calls``.
        logprobs: how likely its tokens were.
    """

    index: int = 0
    message: ChatCompletionMessage = Field(default_factory=ChatCompletionMessage)
    finish_reason: str | None = None
    logprobs: ChoiceLogprobs | None = None


class PromptTokensDetails(ResponseModel):
    """Of the tokens of the request, how many were of a kind.

    Attributes:
        cached_tokens: were read from a cache.
        cache_write_tokens: were put into a cache.
        audio_tokens: were sound.
    """

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: int | None = None


class CompletionTokensDetails(ResponseModel):
    """Of the tokens of the answer, how many were of a kind.

    Attributes:
        reasoning_tokens: were thoughts.
        audio_tokens: were sound.
    """

    reasoning_tokens: int | None = None
    audio_tokens: int | None = None


class CompletionUsage(ResponseModel):
    """What a call used. Follows the page "api-reference/inference-chat-completions".

    Attributes:
        prompt_tokens: tokens of the request.
        completion_tokens: tokens of the answers.
        total_tokens: both.
        input_tokens: ``prompt_tokens`` by another name.
        output_tokens: ``completion_tokens`` by another name.
        cost: what was charged, in USD; the call has to ask with ``usage={"include": True}``.
        prompt_tokens_details: kinds of tokens of the request.
        completion_tokens_details: kinds of tokens of the answers.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    prompt_tokens_details: PromptTokensDetails | None = None
    completion_tokens_details: CompletionTokensDetails | None = None


class ChatCompletion(ResponseModel):
    """A completed chat. Follows the page "api-reference/inference-chat-completions".

    Attributes:
        id: the completion's.
        object: ``chat.completion``.
        created: when it was made, in seconds since 1970.
        model: the model that made it.
        choices: the answers, as many as were asked for.
        usage: what it used, if that is told.
        service_tier: how it was served.
        system_fingerprint: names the configuration that made it.
        inference_id: id of the call, to quote to the platform's support; ours.
    """

    essential = ESSENTIAL

    id: str = ""
    object: str = "chat.completion"
    created: int | None = None
    model: str = ""
    choices: list[Choice]
    usage: CompletionUsage | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    inference_id: str | None = None
