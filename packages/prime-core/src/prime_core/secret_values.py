"""Values of secrets: checked before they are sent, and kept out of errors."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import SecretStr

from prime_core.errors import APIError, ServerError, ValidationError

__all__ = ["MAX_FILE", "check_value", "kept_out_of_errors"]

# Bytes of a file. Whether the documented limit is meant before or after decoding is not said:
# what is larger after it is too large either way.
MAX_FILE = 64 * 1024
# Characters of a value by which it is recognised.
QUOTED = 16
WITHHELD = "the platform's words hold the value that was sent, and are withheld"
OPEN_OUTCOME = "the platform may have done it: check before you send it again"


def check_value(value: str | SecretStr, *, is_file: bool) -> SecretStr:
    """A value that can be stored.

    Raises:
        TypeError: it is no text.
        ValueError: it is empty, no Unicode, or no base64 of at most 64 KiB; the value is not shown.
    """
    if not isinstance(value, (str, SecretStr)):
        raise TypeError(f"value is a string or a SecretStr, not {type(value).__name__}")
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not text:
        raise ValueError("value is a text that is not empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("value holds characters that are no Unicode text") from None
    if is_file:
        try:
            size = len(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            raise ValueError("value of a file is its content in base64") from None
        if size > MAX_FILE:
            raise ValueError(f"value of a file holds at most {MAX_FILE} bytes, not {size}")
    return SecretStr(text)


@contextmanager
def kept_out_of_errors(value: SecretStr | None) -> Iterator[None]:
    """Withholds the platform's text in errors of a call that sent a value, if it quotes that."""
    try:
        yield
    except APIError as error:
        if value and _quotes(error, value.get_secret_value()):
            _withhold(error)
        raise


def _quotes(error: APIError, text: str) -> bool:
    # A long value may be quoted in part.
    head = text[:QUOTED]
    forms = (head, json.dumps(head)[1:-1], json.dumps(head, ensure_ascii=False)[1:-1])
    shown = _flat(f"{error.args} {error.body}")
    return any(_flat(form) in shown for form in forms)


def _flat(text: str) -> str:
    """A text without white space, which messages don't keep as it was."""
    return "".join(text.split())


def _withhold(error: APIError) -> None:
    open_outcome = f"; {OPEN_OUTCOME}" if isinstance(error, ServerError) else ""
    error.args = (f"HTTP {error.status_code}: {WITHHELD}{open_outcome}",)
    error.body = None
    if isinstance(error, ValidationError):
        error.problems = [(path, WITHHELD) for path, _ in error.problems]
