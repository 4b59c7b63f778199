"""What one attempt came to, and what its failure allows: pure functions, no I/O."""

from __future__ import annotations

import email.utils
import enum
import json
import re
import time
from dataclasses import dataclass
from datetime import timezone
from typing import NamedTuple

from prime_core.errors import (
    APIError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PaymentRequiredError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    UnauthorizedError,
    ValidationError,
)

__all__ = [
    "MAX_ERROR_BODY",
    "Failure",
    "HeldError",
    "Outcome",
    "classify_status",
    "error_in_answer",
    "error_of",
    "holds_error",
    "is_refusal",
    "parse_retry_after",
    "shown_id",
]


class Outcome(enum.Enum):
    """Whether a failed attempt may have had an effect."""

    NOT_SENT = "not sent"  # the platform can't have seen it
    REFUSED = "refused"  # the platform says that it did not process it
    AMBIGUOUS = "ambiguous"  # it may have been processed
    FINAL = "final"  # it was answered; asking again changes nothing


@dataclass(frozen=True)
class Failure:
    """A failed attempt: what it means, the error to raise, and the wait that was asked for.

    ``unavailable`` says that the service itself seems down, not only this call refused.
    """

    outcome: Outcome
    error: APIError
    retry_after: float | None = None
    unavailable: bool = False

    @property
    def throttled(self) -> bool:
        return self.outcome is Outcome.REFUSED


# Those between us and the platform among them: 421 and 425, and 52x of a content network.
_OPEN_STATUSES = frozenset({408, 421, 425, 500, 502, 503, 504, *range(520, 525), 529})


# Those that say that a request was read and turned down, or is to be sent elsewhere.
_REFUSALS = frozenset(
    {300, 301, 304, 305, 307, 308}
    | {400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 422}
    | {423, 424, 426, 428, 429, 431, 451}
)


def is_refusal(status: int) -> bool:
    """Whether an answer of this status settles that nothing was done.

    302 and 303, which may lead to what was made, and a status such as 499 that programs between us
    and the platform have made up, do not.
    """
    return status < 300 or status >= 500 or status in _REFUSALS


def classify_status(status: int, *, retry_after: float | None, final: bool) -> Outcome:
    """Sorts an error status by what it allows.

    Args:
        status: the HTTP status, 300 or above.
        retry_after: seconds that the answer asked to wait, or None.
        final: whether the answer says that waiting changes nothing: an account limit, or an
            object that is gone.
    """
    if final:
        return Outcome.FINAL
    if status == 429:
        return Outcome.REFUSED
    if status == 503 and retry_after is not None:
        return Outcome.REFUSED
    if status in _OPEN_STATUSES:
        return Outcome.AMBIGUOUS
    return Outcome.FINAL


def parse_retry_after(value: str | None, now: float | None = None) -> float | None:
    """Reads a Retry-After header: seconds, fractions of them, or an RFC 9110 date.

    Returns:
        Seconds to wait, never negative, or None without a readable value.
    """
    if value is None:
        return None
    text = value.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        seconds = float(text)
    elif re.fullmatch(r"-\d+(\.\d+)?", text):
        return 0.0
    else:
        try:
            date = email.utils.parsedate_to_datetime(text)
        except (TypeError, ValueError, IndexError, OverflowError):
            return None
        if date.tzinfo is None:  # "-0000": UTC without a claim about local time
            date = date.replace(tzinfo=timezone.utc)
        seconds = date.timestamp() - (time.time() if now is None else now)
    # A wait of more than a day is not a wait; this also keeps infinity out of timers.
    return min(max(seconds, 0.0), 86_400.0)


MAX_ERROR_BODY = 64 * 1024

_CLASSES: dict[int, type[APIError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    402: PaymentRequiredError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    429: RateLimitError,
}
_NEXT_STEP = {
    400: "correct the request",
    401: "check PRIME_API_KEY and the key's permissions",
    402: "top up the account's balance",
    403: "check the key's permissions and the team that it acts for",
    404: "check the id, and that the key and the team may see it",
    409: "look at the object's present state before trying again",
    422: "correct the request",
    429: "try again later, or send fewer calls at once",
}
_QUOTA_STEP = "free something, or ask for a higher limit"
_QUOTA_CODES = frozenset({"insufficient_quota", "quota_exceeded", "limit_reached"})
_QUOTA_TEXT = re.compile(r"limit (has been )?(reached|exceeded)|quota|maximum number of", re.I)
_LIMIT_TEXT = re.compile(r"\blimit\b|_limit|quota", re.I)
# The inference service names the reason, with whatever status.
_CODE_CLASSES: dict[str, type[APIError]] = {"insufficient_funds": PaymentRequiredError}
# The gateway says with a 502 that a sandbox is gone for good.
_GONE_CODES = frozenset({"sandbox_not_found", "sandbox_terminated"})
# An unclosed element reaches to the end, so that reading stays linear.
_MARKUP = re.compile(r"<(script|style).*?(?:</\1>|\Z)|<[^>]{0,500}>", re.S)
_RATE_TEXT = re.compile(r"rate.?limit|too many requests", re.I)


def error_of(
    status: int,
    body: bytes,
    *,
    reason: str | None,
    retry_after: float | None,
    request_id: str | None,
) -> Failure:
    """Makes the typed error of an error answer, whatever its body looks like."""
    text = body.decode("utf-8", "replace")
    message, code, problems, inference_id = _read_body(text)
    quota = (
        status == 429
        and retry_after is None
        and (
            code in _QUOTA_CODES
            or bool(_QUOTA_TEXT.search(message) and not _RATE_TEXT.search(message))
        )
    )
    shown = f"HTTP {status}: {message or reason or 'no explanation'}"
    named = _CODE_CLASSES.get(code or "")
    # 402 means the balance, or what may be stored: only its text tells.
    full = status == 402 and named is None and bool(_LIMIT_TEXT.search(f"{message} {code}"))
    step = _QUOTA_STEP if quota or full else _NEXT_STEP.get(402 if named else status)
    if step is not None:
        shown += f"; {step}"
    if retry_after is not None:
        shown += f"; the platform asks to wait {retry_after:g} s"
    if status == 422 and named is None:
        error: APIError = ValidationError(shown, problems=problems)
    elif quota:
        error = QuotaExceededError(shown)
    else:
        error = (named or _class_of(status))(shown)
    error.status_code = status
    error.code = code
    error.request_id = shown_id(request_id)
    error.inference_id = inference_id
    error.retry_after = retry_after
    error.body = text
    final = quota or named is not None or code in _GONE_CODES
    outcome = classify_status(status, retry_after=retry_after, final=final)
    return Failure(
        outcome,
        error,
        retry_after=retry_after,
        # A code is the word of something behind the gateway that does answer.
        unavailable=outcome is Outcome.AMBIGUOUS and status in (502, 503, 504) and code is None,
    )


def error_in_answer(text: str, where: str) -> APIError:
    """Makes the typed error that an answer holds whose status promised well.

    Its code, where that is a number, stands for the status that an answer would have had.
    """
    message, code, _, inference_id = _read_body(text)
    status = int(code) if code is not None and re.fullmatch(r"[45]\d\d", code) else 0
    named = _CODE_CLASSES.get(code or "")
    shown = f"{where}: {message or 'no explanation'}"
    step = _NEXT_STEP.get(402 if named else status)
    error = (named or _class_of(status))(shown if step is None else f"{shown}; {step}")
    error.status_code = 200
    error.code = None if code == message else code
    error.inference_id = inference_id
    error.body = text[:MAX_ERROR_BODY]
    return error


class HeldError(Exception):
    """An answer holds an error, whatever its status says.

    Args:
        data: the answer.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__("the answer holds an error")
        self.data = data


def holds_error(data: bytes) -> bool:
    """Whether a JSON object has an error in it; looked at closely only where the word is."""
    if b'"error"' not in data:
        return False
    try:
        item = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(item, dict) and bool(item.get("error"))


def shown_id(text: str | None) -> str | None:
    """An id of the platform's as it may be shown."""
    return None if text is None else _printable(text[:200])


def _class_of(status: int) -> type[APIError]:
    return _CLASSES.get(status, ServerError if status >= 500 else APIError)


class _Told(NamedTuple):
    """What an error body says."""

    message: str
    code: str | None
    problems: list[tuple[str, str]]
    inference_id: str | None


def _read_body(text: str) -> _Told:
    """Reads an error body in any of its published shapes."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return _Told(_plain(text), None, [], None)
    if not isinstance(data, dict):
        return _Told(_plain(text), None, [], None)
    detail = data.get("detail")
    error = data.get("error")
    code = data.get("code")
    if isinstance(error, dict):
        code = error.get("code", code)
        message = error.get("message")
    elif isinstance(error, str):  # the gateway: {"error": CODE, "message": …}
        code = error
        message = data.get("message", error)
    else:
        message = data.get("message")
    problems = _problems(detail) + _problems(data.get("errors"))
    if problems:
        message = "; ".join(f"{path}: {text}" if path else text for path, text in problems)
    elif isinstance(detail, str):
        message = detail
    elif detail is not None:
        message = json.dumps(detail)
    shown = _printable(message[:2_000]) if isinstance(message, str) else _plain(text)
    inference_id = data.get("inference_id")
    return _Told(
        shown,
        _printable(str(code)) if isinstance(code, (str, int)) else None,
        problems,
        shown_id(inference_id) if isinstance(inference_id, str) else None,
    )


def _problems(items: object) -> list[tuple[str, str]]:
    """Field problems of both published 422 shapes: ``loc``/``msg`` and ``param``/``details``."""
    problems: list[tuple[str, str]] = []
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        location = item.get("loc")
        if isinstance(location, list):
            path = ".".join(str(part) for part in location)
        else:
            path = str(item.get("param", ""))
        message = item.get("msg", item.get("details"))
        if message is not None:
            path = path.removeprefix("body").removeprefix(".")
            problems.append((_printable(path), _printable(str(message))))
    return problems


def _printable(text: str) -> str:
    """The text as a terminal may show it: no control sequences, no halves of characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " for c in text)


def _plain(text: str) -> str:
    """The gist of a text or HTML body: tags dropped, white space folded, cut."""
    return _printable(" ".join(_MARKUP.sub(" ", text[:20_000]).split())[:300])
