"""Open questions about the real platform, each with the answers that can be tried here."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Assumptions:
    """What this platform does where no source says what the real one does.

    ASSUMPTIONS.md explains each question. The defaults are what we believe; a client should work
    with every other answer too.

    Args:
        replayed_create: status of a create that repeats an idempotency key.
        reused_key: answer the earlier sandbox when a key comes with another body, or 409.
        idempotency_window: seconds on the platform clock that a key is remembered; None for ever.
        account_limit: status of a create that an account limit refuses.
        retry_after: form of Retry-After on a rate limit's 429: seconds, HTTP date, or no header.
        validation_error: key under which a 422 lists its problems.
        team_header: whether X-Prime-Team-ID stands in for a `team_id` that a request leaves out.
        batch_routes: serve the `:batchGet` routes, or answer them like a server without them.
        deleted_sandbox: whether a deleted sandbox can still be read, as TERMINATED, or is 404.
        create_token: whether the reply to a create carries a gateway token.
        gateway_url: whether the gateway's address ends in a slash.
        list_paging: spelling of a list's paging keys, `per_page` or `perPage`.
        team_role: what the caller is in every team.
        platform_role: what the caller is with regard to images of the platform.
        image_limit: how many images the account may have; None for no limit.
        image_storage_limit: how many bytes they may take; None for no limit.
        unfinished_checkpoint: state of a checkpoint before it is DURABLE or FAILED.
        login_limits: whether a login's answer confirms the limits that were asked for.
        secrets: whether a sandbox shows its secrets' names, masked.
        early_gateway: answer of a gateway that does not reach its sandbox yet: Connect
            `unavailable`, Connect `not_found`, or a router's 502 `sandbox_not_found`.
        ended_gateway: answer of an ended sandbox's gateway, likewise.
        json_codec: whether the gateway speaks JSON besides protobuf.
        timed_out_command: what happens to a command at its deadline.
        signalled_exit_code: exit code of a command that signal N ended: 128 + N, or -1.
        retained_sessions: how many ended commands of a sandbox can still be attached to.
        session_retention: for how many seconds on the platform clock; None for ever.
        unenforced_rules: what network rules say that nothing here enforces: that they are pending,
            or that they are applied.
        keep_alive: seconds between KeepAlive events on a command's stream; None for no events.
        read_window: whether `offset` and `length` of a read have an effect.
        step_anchor: from where the steps of an offer's amounts are counted.
        unknown_model: which body the 404 of an unknown model has: the one that was observed, or
            that of the older documentation.
        reasoning_field: under which name a model's thoughts come.
        stream_totals: whether `usage.include` brings a stream's chunk of counts too, or
            `stream_options.include_usage` alone.
        stream_keep_alive: seconds of silence after which a completion's stream gets a comment;
            it begins with one, too. None for no comments.
        binary_file: what a read makes of bytes that are no UTF-8 text: U+FFFD, or an error.
        search_budget: how many characters the pages of one trace search may read together.
        search_page: how many one page reads before it ends, whatever it has found.
        log_window: how much of a run's log a read without filters brings: what it asks for, or
            200 lines at most.

    Raises:
        ValueError: a value that is not one of the answers.
    """

    replayed_create: Literal[201, 200] = 201
    reused_key: Literal["earlier", "conflict"] = "earlier"
    idempotency_window: float | None = None
    account_limit: Literal[429, 403] = 429
    retry_after: Literal["seconds", "date", "absent"] = "seconds"
    validation_error: Literal["detail", "errors"] = "detail"
    team_header: Literal["ignored", "honoured"] = "ignored"
    batch_routes: Literal["served", 404, 405] = "served"
    deleted_sandbox: Literal["terminated", "missing"] = "terminated"
    create_token: Literal["included", "absent"] = "included"
    gateway_url: Literal["bare", "slash"] = "bare"
    list_paging: Literal["snake_case", "camelCase"] = "snake_case"
    team_role: Literal["admin", "member"] = "admin"
    platform_role: Literal["admin", "member"] = "admin"
    image_limit: float | None = None
    image_storage_limit: float | None = None
    unfinished_checkpoint: Literal["PENDING", "UPLOADING"] = "PENDING"
    login_limits: Literal["confirmed", "silent"] = "confirmed"
    secrets: Literal["absent", "masked"] = "absent"
    early_gateway: Literal["unavailable", "not_found", "bad_gateway"] = "unavailable"
    ended_gateway: Literal["not_found", "bad_gateway"] = "not_found"
    json_codec: Literal["served", "refused"] = "served"
    timed_out_command: Literal["killed", "runs_on"] = "killed"
    signalled_exit_code: Literal["shell", "minus_one"] = "shell"
    retained_sessions: int = 256
    session_retention: float | None = 600.0
    unenforced_rules: Literal["pending", "applied"] = "pending"
    keep_alive: float | None = None
    read_window: Literal["ignored", "honoured"] = "ignored"
    step_anchor: Literal["minimum", "zero"] = "minimum"
    unknown_model: Literal["observed", "older"] = "observed"
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    stream_totals: Literal["either", "stream_options"] = "either"
    stream_keep_alive: float | None = 15.0
    binary_file: Literal["replaced", "refused"] = "replaced"
    search_budget: int = 256 * 1024 * 1024
    search_page: int = 32 * 1024 * 1024
    log_window: Literal["asked", "narrow"] = "asked"

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            if not _fits(getattr(self, name), kind):
                raise ValueError(f"{name}: {_answers(kind)}, not {getattr(self, name)!r}")

    @classmethod
    def parse(cls, settings: Iterable[str]) -> Assumptions:
        """Read `NAME=VALUE` texts.

        Raises:
            ValueError: an unknown name, or a value that is not one of the answers.
        """
        kinds = get_type_hints(cls)
        values: dict[str, Any] = {}
        for setting in settings:
            name, _, text = setting.partition("=")
            if name not in kinds:
                raise ValueError(f"{name!r} is none of {', '.join(kinds)}")
            values[name] = _read(text, kinds[name])
        return cls(**values)


def _fits(value: object, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind is int:
        return isinstance(value, int) and value >= 0
    return value is None or (isinstance(value, (int, float)) and 0 < value < math.inf)


def _answers(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return "a whole number of at least 0" if kind is int else "seconds above 0"


def _read(text: str, kind: Any) -> object:
    """Return the value that a text means; the text itself when it means none."""
    if get_origin(kind) is Literal:
        return next((value for value in get_args(kind) if str(value) == text), text)
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text
