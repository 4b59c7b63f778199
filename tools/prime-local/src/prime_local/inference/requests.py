"""Requests for chat completions: what they ask for, read from their bodies."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema_rs
import msgspec

from prime_local.calls import Call
from prime_local.contract.document import JsonObject
from prime_local.inference import catalogue
from prime_local.inference.calling import team_of
from prime_local.inference.catalogue import ECHO, Model
from prime_local.inference.errors import InferenceError, refused
from prime_local.inference.text import count_tokens

_DEFAULT_MAX_TOKENS = 4_096
# What changes an answer; the rest, such as `stream` and `usage`, only changes its form.
_DECISIVE = ("model", "messages", "seed", "temperature", "top_p", "tools", "response_format")
_NO_REASONING = (None, "none")


@dataclass(frozen=True)
class Tool:
    """A tool that an answer may call; a custom one takes a text instead of arguments."""

    name: str
    kind: Literal["function", "custom"]
    schema: JsonObject


@dataclass(frozen=True)
class ChatRequest:
    """A request for a chat completion.

    Args:
        model: the entry of the catalogue.
        body: the request as it came.
        digest: the same for requests that have the same answers.
        prompt_tokens: how long the prompt is.
        max_tokens: how long each answer may be.
        stops: texts that end an answer.
        calls: the tools that the answer calls, or none.
    """

    model: Model
    body: JsonObject
    digest: str
    prompt_tokens: int
    max_tokens: int
    stops: tuple[str, ...]
    calls: tuple[Tool, ...]

    @property
    def n(self) -> int:
        return self.body.get("n") or 1

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def top_logprobs(self) -> int | None:
        """How many alternatives of each token are wanted; None for no probabilities at all."""
        return (self.body.get("top_logprobs") or 0) if self.body.get("logprobs") else None

    @property
    def priced(self) -> bool:
        """Whether counts and cost are wanted."""
        return bool(self.body.get("usage", {}).get("include"))

    @property
    def totals(self) -> bool:
        """Whether a stream is to end with a chunk of counts."""
        return bool((self.body.get("stream_options") or {}).get("include_usage"))

    @property
    def ignores_end(self) -> bool:
        """Whether the answer goes on to `max_tokens`: an extra that serving engines know."""
        return bool(self.body.get("ignore_eos"))

    @property
    def reasons(self) -> bool:
        if not self.model.reasoning:
            return False
        enabled = self.body.get("reasoning", {}).get("enabled")
        return bool(enabled) or self.body.get("reasoning_effort") not in _NO_REASONING

    @property
    def echo(self) -> str | None:
        """What the model that repeats is to say; None for other models."""
        return said(self.body["messages"][-1]) if self.model.id == ECHO else None


def read(call: Call) -> ChatRequest:
    """Check a request further, once it keeps the contract, and read it.

    Raises:
        InferenceError: 400 or 404.
    """
    body: JsonObject = call.body
    model = find_model(call, body["model"])
    if model.evaluates:
        raise refused(
            "model", f"{model.id} is an evaluation model: use /evaluations", "unsupported_model"
        )
    if body.get("stream_options") and not body.get("stream"):
        raise refused("stream_options", "stream_options needs stream to be true")
    if body.get("top_logprobs") and not body.get("logprobs"):
        raise refused("top_logprobs", "top_logprobs needs logprobs to be true")
    tools = _tools(body)
    prompt = sum(count_tokens(said(message)) + 3 for message in body["messages"])
    if model.context is not None and prompt > model.context:
        text = f"The prompt has {prompt} tokens, the model's context {model.context}"
        raise refused("messages", text, "context_length_exceeded")
    stop = body.get("stop") or ()
    decisive = msgspec.json.encode([body.get(name) for name in _DECISIVE])
    return ChatRequest(
        model=model,
        body=body,
        digest=hashlib.sha256(decisive).hexdigest(),
        prompt_tokens=prompt,
        max_tokens=_max_tokens(body, model),
        stops=(stop,) if isinstance(stop, str) else tuple(filter(None, stop)),
        calls=_calls(body, tools),
    )


def check(call: Call) -> None:
    """Check a request against the contract.

    Raises:
        InferenceError: 400.
    """
    problems = call.core.checks.body(call.operation, call.body)
    if problems:
        where = ".".join(map(str, problems[0].loc[1:]))
        raise refused(where or None, f"{where or 'The body'}: {problems[0].msg}")


def find_model(call: Call, model_id: str) -> Model:
    """Return a model that can be used.

    Raises:
        InferenceError: 404.
    """
    model = catalogue.find(model_id, team_of(call))
    if model is None or model.withdrawn:
        raise unknown_model(call, model_id)
    return model


def unknown_model(call: Call, model_id: str) -> InferenceError:
    """The 404 for a model that is not there."""
    if call.assumptions.unknown_model == "observed":
        return InferenceError(404, "Model not found", code="not_found_error")
    text = f"No model named {model_id!r}"
    return InferenceError(404, text, kind="invalid_request_error", code="model_not_found")


def said(message: JsonObject) -> str:
    """Return the text of a message."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _max_tokens(body: JsonObject, model: Model) -> int:
    wanted = body.get("max_completion_tokens") or body.get("max_tokens") or _DEFAULT_MAX_TOKENS
    most = model.max_output
    if most is not None and wanted > most:
        name = "max_completion_tokens" if body.get("max_completion_tokens") else "max_tokens"
        raise refused(name, f"{model.id} answers with at most {most} tokens")
    return int(wanted)


def _tools(body: JsonObject) -> dict[str, Tool]:
    found = {}
    for place, tool in enumerate(body.get("tools") or ()):
        kind = tool["type"]
        schema = tool[kind].get("parameters", {}) if kind == "function" else {}
        _check_schema(schema, f"tools.{place}.function.parameters")
        found[tool[kind]["name"]] = Tool(tool[kind]["name"], kind, schema)
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema = wanted["json_schema"].get("schema", {})
        _check_schema(schema, "response_format.json_schema.schema")
    return found


def _check_schema(schema: JsonObject, where: str) -> None:
    if not jsonschema_rs.meta.is_valid(schema):
        raise refused(where, f"{where} is not a valid JSON schema")


def _calls(body: JsonObject, tools: dict[str, Tool]) -> tuple[Tool, ...]:
    """Return the tools to call: one that is forced, else, of those that the user's text names,
    all, or the first, when the last word is the user's."""
    choice: Any = body.get("tool_choice") or "auto"
    allowed = list(tools.values())
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        options = choice["allowed_tools"]
        names = {each.get(each.get("type"), {}).get("name") for each in options.get("tools", ())}
        allowed = [tool for tool in allowed if tool.name in names]
        choice = options.get("mode", "auto")
    if isinstance(choice, dict):
        name = choice[choice["type"]]["name"]
        if name not in tools:
            raise refused("tool_choice", f"There is no tool {name!r}")
        return (tools[name],)
    if choice == "required" and not allowed:
        raise refused("tool_choice", "tool_choice needs tools")
    last = body["messages"][-1]
    if not allowed or choice == "none" or (choice == "auto" and last["role"] != "user"):
        return ()
    text = said(last)
    named = [tool for tool in allowed if tool.name in text]
    return tuple(
        named if body.get("parallel_tool_calls", True) and named else (named or allowed)[:1]
    )
