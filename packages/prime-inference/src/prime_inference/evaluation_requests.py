"""Requests for evaluations: the documented limits, checked before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from prime_core.models import RequestBody
from prime_inference.encoding import encode_json
from prime_inference.models import JSONText, Question

__all__ = ["MAX_BODY", "encode_evaluation"]

MAX_QUESTIONS = 64
MAX_OPTIONS = 255
LEVELS = range(2, 11)
MAX_BODY = 16 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")


def encode_evaluation(
    model: str,
    state: JSONText,
    questions: Mapping[str, Question],
    images: Sequence[str],
    provider_options: Mapping[str, Any] | None,
) -> bytes:
    """The body of a request for an evaluation.

    Args:
        model: id of the model.
        state: what is judged.
        questions: by id.
        images: data URLs that have been checked.
        provider_options: sent as they are.

    Raises:
        ValueError: a limit is passed; it names the place.
    """
    if not isinstance(model, str) or not model:
        raise ValueError(f"model is an id such as cloudflare/clef, not {model!r}")
    if not isinstance(state, str | Mapping | Sequence) or isinstance(state, bytes | bytearray):
        raise ValueError(f"state is text, an object or a list, not {type(state).__name__}")
    fields: dict[str, object] = {"model": model, "state": state}
    fields["questions"] = _checked_questions(questions)
    if images:
        fields["images"] = images
    if provider_options is not None:
        fields["providerOptions"] = provider_options
    parts = [b'"%s":%s' % (name.encode(), encode_json(name, fields[name])) for name in fields]
    body = RequestBody(b"{" + b",".join(parts) + b"}")
    if len(body) > MAX_BODY:
        raise ValueError(
            f"the request is {len(body)} bytes long, of at most {MAX_BODY}: send a shorter state "
            "or smaller images"
        )
    return body


def _checked_questions(questions: Mapping[str, Question]) -> dict[str, dict[str, Any]]:
    if not isinstance(questions, Mapping):
        raise ValueError(f"questions is an object by id, not {type(questions).__name__}")
    if not 1 <= len(questions) <= MAX_QUESTIONS:
        raise ValueError(f"questions holds 1 to {MAX_QUESTIONS} questions, not {len(questions)}")
    return {_checked_id(id): _checked_question(id, item) for id, item in questions.items()}


def _checked_id(id: str) -> str:
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise ValueError(
            f"questions: an id is 1 to 100 ASCII letters, digits, '_', '.' and '-', not {id!r:.120}"
        )
    return id


def _checked_question(id: str, question: Question) -> dict[str, Any]:
    path = f"questions.{id}"
    if isinstance(question, BaseModel):
        question = question.model_dump(exclude_unset=True)
    elif not isinstance(question, Mapping):
        raise ValueError(f"{path} is a question, not {type(question).__name__}")
    # What is None is left out; only an option may have no description.
    plain = {name: value for name, value in question.items() if value is not None}
    kind = plain.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        raise ValueError(f"{path}.type is boolean, choice or score, not {kind!r:.120}")
    check(f"{path}.criteria", plain.get("criteria"))
    return plain


def _check_boolean(path: str, criteria: object) -> None:
    if criteria is None:
        return
    if not isinstance(criteria, Mapping):
        raise ValueError(f"{path} is an object, not {type(criteria).__name__}")
    for name in criteria:
        if name not in ("true", "false"):
            raise ValueError(f"{path} holds 'true', 'false' or both, not {name!r:.120}")


def _check_choice(path: str, criteria: object) -> None:
    if not isinstance(criteria, Mapping):
        raise ValueError(f"{path} is an object of options, not {type(criteria).__name__}")
    if not 1 <= len(criteria) <= MAX_OPTIONS:
        raise ValueError(f"{path} holds 1 to {MAX_OPTIONS} options, not {len(criteria)}")
    for name in criteria:
        if not isinstance(name, str):
            raise ValueError(f"{path}: the name of an option is text, not {name!r:.120}")


def _check_score(path: str, criteria: object) -> None:
    if not isinstance(criteria, Sequence) or isinstance(criteria, str | bytes):
        raise ValueError(f"{path} is a list of levels, not {type(criteria).__name__}")
    if len(criteria) not in LEVELS:
        raise ValueError(
            f"{path} holds {LEVELS[0]} to {LEVELS[-1]} levels, from the lowest to the highest, "
            f"not {len(criteria)}"
        )


_CHECKS = {"boolean": _check_boolean, "choice": _check_choice, "score": _check_score}
