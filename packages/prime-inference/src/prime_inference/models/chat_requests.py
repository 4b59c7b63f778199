"""What can be asked of a chat, in OpenAI's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from typing_extensions import Required, TypedDict

from prime_core.models import RequestModel
from prime_inference.models.chat import ChatCompletionMessage

JSONObject: TypeAlias = Mapping[str, Any]
Message: TypeAlias = Mapping[str, Any] | ChatCompletionMessage
"""A message of a chat: a mapping with ``role`` and ``content``, or what a model said before."""


class ChatOptions(TypedDict, total=False):
    """How a completion is made. What a model takes depends on the model.

    `ChatCompletionRequest` explains the keys. A value that is `None` is not sent.
    """

    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    max_completion_tokens: int | None
    n: int | None
    stop: str | Sequence[str] | None
    seed: int | None
    frequency_penalty: float | None
    presence_penalty: float | None
    logit_bias: Mapping[str, float] | None
    logprobs: bool | None
    top_logprobs: int | None
    tools: Sequence[JSONObject] | None
    tool_choice: str | JSONObject | None
    parallel_tool_calls: bool | None
    response_format: JSONObject | None
    reasoning_effort: str | None
    reasoning: JSONObject | None
    verbosity: str | None
    usage: JSONObject | None
    stream_options: JSONObject | None
    service_tier: str | None
    modalities: Sequence[str] | None
    audio: JSONObject | None
    prediction: JSONObject | None
    metadata: Mapping[str, str] | None
    store: bool | None
    user: str | None
    safety_identifier: str | None
    prompt_cache_key: str | None
    prompt_cache_retention: str | None
    web_search_options: JSONObject | None
    chat_template_kwargs: JSONObject | None


class ChatRequest(ChatOptions, total=False):
    """A whole request as a dict: what ``create`` of chat completions takes.

    `ChatCompletionRequest` explains the keys.
    """

    model: Required[str]
    messages: Required[Sequence[Message]]
    extra_body: JSONObject | None


def _plain(value: object) -> object:
    """A message that can be sent: what a model said, as it was received or dumped.

    Content may be null only beside tool calls; some models take none even there.
    """
    if isinstance(value, BaseModel):
        message = value.model_dump(mode="json", by_alias=True, exclude_none=True)
        message.setdefault("content", None)
    elif isinstance(value, Mapping) and None in value.values():
        # Null is no value of theirs: it is how a dump says that there is none.
        message = {name: item for name, item in value.items() if item is not None}
        if "content" in value:
            message.setdefault("content", None)
        if isinstance(calls := message.get("tool_calls"), Sequence):
            message["tool_calls"] = [_without_nulls(call) for call in calls]
    else:
        return value
    if "content" in message and message["content"] is None and not message.get("tool_calls"):
        message["content"] = ""
    return message


def _without_nulls(call: object) -> object:
    if not isinstance(call, Mapping):
        return call
    return {name: item for name, item in call.items() if item is not None}


class _Message(RequestModel):
    """What each message has, whatever else its role gives it."""

    model_config = ConfigDict(extra="allow")

    role: str = Field(min_length=1)


_Messages: TypeAlias = list[Annotated[_Message, BeforeValidator(_plain)]]
_Unit: TypeAlias = Annotated[float, Field(ge=0, le=1)]
_Penalty: TypeAlias = Annotated[float, Field(ge=-2, le=2)]
_Count: TypeAlias = Annotated[int, Field(ge=1)]


class ChatCompletionRequest(RequestModel):
    """A request that has been checked. Follows the page "api-reference/inference-chat-completions".

    What a model takes depends on the model. A value that is `None` is not sent.

    Attributes:
        model: id of the model.
        messages: the chat so far, at least one message: mappings with ``role`` and ``content``,
            or what a model said before.
        temperature: 0 to 2; 0 is the least random.
        top_p: 0 to 1: choose among the likeliest tokens that make up this probability.
        max_tokens: the most tokens to write, at least 1; what most models here understand.
        max_completion_tokens: the same by its newer name, thoughts counted.
        n: answers to make, 1 to 128.
        stop: up to 4 texts that end an answer.
        seed: for answers that repeat.
        frequency_penalty: -2 to 2.
        presence_penalty: -2 to 2.
        logit_bias: by token id as text, -100 to 100.
        logprobs: whether to tell how likely the tokens were.
        top_logprobs: how many likely tokens to tell of at each place, 0 to 20.
        tools: the tools that the model may use.
        tool_choice: ``none``, ``auto``, ``required``, or the tool to use.
        parallel_tool_calls: whether it may use several tools at once.
        response_format: the answer's form, such as a JSON schema.
        reasoning_effort: how much to think, such as ``low``.
        reasoning: the same for models that want it in parts.
        verbosity: how much to say, such as ``low``.
        usage: ``{"include": True}`` asks for counts and cost; the platform's own.
        stream: whether to answer in pieces; ``create`` sets it.
        stream_options: ``{"include_usage": True}`` asks a stream for counts.
        service_tier: how to be served.
        modalities: kinds of answers, such as ``text``.
        audio: the voice and form of answers that are sound.
        prediction: text that the answer will largely repeat.
        metadata: up to 16 texts by name, to be stored with it.
        store: whether the provider may keep it.
        user: who asks, by an id of the caller's own.
        safety_identifier: the same, for the provider's checks.
        prompt_cache_key: what requests that begin alike have in common.
        prompt_cache_retention: such as ``24h``.
        web_search_options: for models that search.
        chat_template_kwargs: for the template of some hosted models.
        extra_body: further parameters, sent as they are: those that have no name here.
    """

    omits_null = True

    model: str = Field(min_length=1)
    messages: _Messages = Field(min_length=1)
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: _Unit | None = None
    max_tokens: _Count | None = None
    max_completion_tokens: _Count | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    seed: int | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    reasoning: dict[str, Any] | None = None
    verbosity: str | None = None
    usage: dict[str, Any] | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    service_tier: str | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    web_search_options: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    extra_body: dict[str, Any] | None = None

    @field_validator("extra_body")
    @classmethod
    def _check_extra_body(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        for name in value or ():
            if name in cls.model_fields:
                raise ValueError(f"{name} is a parameter of its own: pass it by its name")
        return value
