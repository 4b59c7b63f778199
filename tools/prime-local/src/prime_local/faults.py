"""Faults: rules that spoil chosen requests."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Reset = Literal["before_commit", "after_commit"]
Omit = Literal["end_event", "end_envelope"]
StreamForm = Literal[
    "no_space",
    "crlf",
    "cr",
    "crlf_split",
    "comments",
    "multi_line",
    "bom",
    "fields",
    "empty_events",
    "bare_json",
    "bad_utf8",
    "usage_in_choices",
    "huge_event",
    "bad_json",
    "error_object",
    "error_event",
    "error_text",
    "cut",
    "cut_in_event",
    "no_done",
    "no_last_blank",
    "after_done",
    "empty",
    "json",
    "json_error",
]

_COUNT = {"type": ["integer", "null"], "minimum": 0}
_ORDINAL = {"type": ["integer", "null"], "minimum": 1}
_SECONDS = {"type": "number", "minimum": 0}
_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "operation": {"type": "string"},
        "path_prefix": {"type": "string"},
        "nth": {"anyOf": [_ORDINAL, {"type": "array", "items": {"type": "integer", "minimum": 1}}]},
        "every": _ORDINAL,
        "times": _COUNT,
        "probability": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "seed": {"type": "integer"},
        "status": {"type": ["integer", "null"], "minimum": 200, "maximum": 599},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "body": {"type": ["string", "null"]},
        "delay_before": _SECONDS,
        "delay_after": _SECONDS,
        "reset": {"enum": ["before_commit", "after_commit", None]},
        "garbage": {"type": "boolean"},
        "truncate": _COUNT,
        "bad_chunk": _COUNT,
        "trickle": {"anyOf": [_SECONDS, {"type": "null"}]},
        "stall": {"anyOf": [_SECONDS, {"type": "null"}]},
        "after_envelopes": {"type": "integer", "minimum": 0},
        "omit": {"enum": ["end_event", "end_envelope", None]},
        "stream_form": {"enum": [*get_args(StreamForm), None]},
        "fails": {"type": ["string", "null"]},
    },
}


@dataclass(frozen=True)
class FaultRule:
    """Which requests to spoil, and how.

    A request is matched when `operation` and `path_prefix` fit; of those, `nth`, `every` and
    `probability` choose, and `times` ends the rule. The first rule that chooses a request acts.

    On a stream, what spoils a body acts on the first message after `after_envelopes` good ones;
    `trickle` on all from there on.

    Args:
        operation: an operationId of the contract, or `*` for all.
        path_prefix: start of the request path, e.g. `/api/v1/sandbox/sbx_1`.
        nth: which matching requests, counted from 1; a number or several.
        every: every n-th matching request.
        times: how often the rule acts at most.
        probability: chance of 0 to 1 that a matching request is chosen.
        seed: makes `probability` repeatable.
        status: answer this status; the request is not processed.
        headers: further headers of that answer.
        body: body of that answer, as text; by default `{"detail": "Injected fault"}`.
        delay_before: seconds to wait before processing.
        delay_after: seconds to wait between processing and answering.
        reset: break the connection instead of answering, before or after processing.
        garbage: process, then answer 200 with HTML instead of JSON; a stream breaks off after it.
        truncate: process, then close the connection after this many bytes of the body.
        bad_chunk: process, then send this many bytes of the body and break the chunked encoding.
        trickle: process, then send byte by byte, with a pause of this many seconds after each.
        stall: process, send half of the body and pause this many seconds before the rest.
        after_envelopes: how many messages of a stream pass unspoiled: envelopes of a command,
            chunks of a completion.
        omit: leave the EndEvent, or the end-of-stream envelope, out of a command's stream.
        stream_form: send the events of a completion in an odd form, end them early or with an
            error, or answer a streamed request with JSON.
        fails: process and answer, but let the checkpoint or the publish that was begun end as
            FAILED, with this error, or the installation of the pod.
    """

    operation: str = "*"
    path_prefix: str = ""
    nth: int | Sequence[int] | None = None
    every: int | None = None
    times: int | None = None
    probability: float | None = None
    seed: int = 0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    delay_before: float = 0.0
    delay_after: float = 0.0
    reset: Reset | None = None
    garbage: bool = False
    truncate: int | None = None
    bad_chunk: int | None = None
    trickle: float | None = None
    stall: float | None = None
    after_envelopes: int = 0
    omit: Omit | None = None
    stream_form: StreamForm | None = None
    fails: str | None = None


def read_rules(document: object) -> list[FaultRule]:
    """Read rules from JSON, `{"rules": [...]}` with the fields of `FaultRule`.

    Raises:
        ValueError: it says which rule is wrong, and why.
    """
    import jsonschema_rs  # Whoever only sends rules need not load it.

    rules = document.get("rules") if isinstance(document, dict) else None
    if not isinstance(rules, list):
        raise ValueError('expected {"rules": [...]}')
    validator = jsonschema_rs.Draft202012Validator(_SCHEMA)
    problems = [
        f"rule {number}: {'.'.join(map(str, problem.instance_path))} {problem.message}"
        for number, rule in enumerate(rules, 1)
        for problem in validator.iter_errors(rule)
    ]
    if problems:
        raise ValueError("; ".join(problems))
    return [FaultRule(**rule) for rule in rules]


class _Armed:
    """A rule with its counts."""

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.matched = 0
        self.hits = 0
        self._random = random.Random(rule.seed)
        self._nth = (rule.nth,) if isinstance(rule.nth, int) else rule.nth

    def chooses(self, operation_id: str, path: str) -> bool:
        rule = self.rule
        if rule.operation not in ("*", operation_id) or not path.startswith(rule.path_prefix):
            return False
        self.matched += 1
        chosen = (
            (self._nth is None or self.matched in self._nth)
            and (rule.every is None or self.matched % rule.every == 0)
            and (rule.probability is None or self._random.random() < rule.probability)
            and (rule.times is None or self.hits < rule.times)
        )
        self.hits += chosen
        return chosen


class FaultRules:
    """The rules in force, in order.

    Args:
        operations: the operationIds that a rule may name.
    """

    def __init__(self, operations: Iterable[str]) -> None:
        self._operations = frozenset({"*", *operations})
        self._armed: list[_Armed] = []

    def add(self, rules: Iterable[FaultRule]) -> None:
        """Put rules in force, after those that are.

        Raises:
            ValueError: a rule that could never act, since no operation has its name.
        """
        armed = [_Armed(rule) for rule in rules]
        for new in armed:
            if new.rule.operation not in self._operations:
                raise ValueError(f"no operation is called {new.rule.operation!r}")
        self._armed += armed

    def clear(self) -> None:
        self._armed.clear()

    def choose(self, operation_id: str, path: str) -> FaultRule | None:
        """Return the rule that spoils this request, if any; counts the request."""
        for armed in self._armed:
            if armed.chooses(operation_id, path):
                return armed.rule
        return None

    def to_wire(self) -> list[dict[str, Any]]:
        """Return the rules with `matched` and `hits`, how many requests they saw and spoiled."""
        return [
            {**asdict(armed.rule), "matched": armed.matched, "hits": armed.hits}
            for armed in self._armed
        ]
