"""What uploaded records hold, as far as anything is derived from it.

Producers vary: a field of an unexpected kind counts as absent, and never spoils the rest.
"""

from __future__ import annotations

import types
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

T = TypeVar("T")

_NULL = Raw(b"null")
_UNIONS = (Union, types.UnionType)


class Span(Struct):
    start: Any = None
    end: Any = None


class Timing(Struct):
    start: Any = None
    boot: Span | None = None
    setup: Span | None = None
    agent: Span | None = None
    finalize: Span | None = None
    scoring: Span | None = None


class Work(Struct):
    step: Any = None


class Run(Struct):
    id: Any = None
    work: Work | None = None


class TaskData(Struct):
    id: Any = None
    name: Any = None


class Task(Struct):
    key: Any = None
    hash: Any = None
    data: TaskData | None = None


class Client(Struct):
    base_url: Any = None


class Config(Struct):
    model: Any = None
    client: Client | None = None


class Agent(Struct):
    name: Any = None
    config: Config | None = None


class Message(Struct):
    role: Any = None
    content: Raw = _NULL
    reasoning_content: Any = None
    tool_calls: Raw = _NULL
    tool_call_id: Any = None
    name: Any = None
    tool_name: Any = None


class Node(Struct):
    parent: Any = None
    semantic_parents: Any = None
    timestamp: Any = None
    sampled: Any = None
    message: Message | None = None


class Usage(Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    cached_input_tokens: Any = None
    total_tokens: Any = None


class Call(Struct):
    node: Any = None
    model: Any = None
    endpoint: Any = None
    finish_reason: Any = None
    usage: Usage | None = None
    time: Span | None = None
    error: Any = None


class Reward(Struct):
    score: Any = None
    weight: Any = 1.0


class TraceRecord(Struct):
    id: Any = None
    timing: Timing | None = None
    episode_id: Any = None
    run: Run | None = None
    task: Task | None = None
    agent: Agent | None = None
    tools: Any = None
    nodes: list[Node | None] | None = None
    calls: list[Call | None] | None = None
    rewards: dict[str, Reward | None] | None = None
    metrics: Any = None
    ok: Any = UNSET
    errors: Any = None
    stop_condition: Any = None
    traces: Raw | UnsetType = UNSET


class Environment(Struct):
    id: Any = None


class EpisodeRecord(Struct):
    id: Any = None
    env: Environment | None = None
    run: Run | None = None
    outcome: Any = None
    ok: Any = UNSET
    errors: Any = None
    traces: list[Raw] | None = None


class SessionUsage(Struct, rename="camel"):
    total_tokens: Any = None


class SessionMessage(Struct, rename="camel"):
    role: Any = None
    content: Raw = _NULL
    model: Any = None
    provider: Any = None
    usage: SessionUsage | None = None
    stop_reason: Any = None
    tool_name: Any = None
    tool_call_id: Any = None


class SessionEntry(Struct, rename="camel"):
    type: Any = None
    id: Any = None
    parent_id: Any = None
    timestamp: datetime | None = None
    message: SessionMessage | None = None


def read(source: bytes | Raw, kind: type[T]) -> T | None:
    """Read JSON as `kind`; what does not fit is left out, and None is what does not fit at all.

    Raises:
        msgspec.DecodeError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    value: T | None = _read(source, kind)
    return value


def _read(source: bytes | Raw, kind: Any) -> Any:
    try:
        return _decoder(kind).decode(source)
    except msgspec.ValidationError:
        pass
    # The usual record took the fast road above. This one is taken apart, so that one unexpected
    # value costs only itself.
    for option in get_args(kind) if get_origin(kind) in _UNIONS else (kind,):
        inner = get_args(option)
        if isinstance(option, type) and issubclass(option, Struct):
            members = _try(source, dict[str, Raw])
            if members is not None:
                return option(
                    **{
                        field.name: _read(members[field.encode_name], field.type)
                        for field in msgspec.structs.fields(option)
                        if field.encode_name in members
                    }
                )
        elif get_origin(option) is list:
            items = _try(source, list[Raw])
            if items is not None:
                return [_read(item, inner[0]) for item in items]
        elif get_origin(option) is dict:
            members = _try(source, dict[str, Raw])
            if members is not None:
                return {name: _read(item, inner[1]) for name, item in members.items()}
    return None


def _try(source: bytes | Raw, kind: Any) -> Any:
    try:
        return _decoder(kind).decode(source)
    except msgspec.ValidationError:
        return None


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
