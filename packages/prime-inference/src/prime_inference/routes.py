"""The rows of calls that are paid for, as the caller wants them handled."""

from __future__ import annotations

from dataclasses import replace

from prime_core.arguments import check_flag
from prime_core.operations import Operation
from prime_inference.operations import (
    CREATE_CHAT_COMPLETION,
    CREATE_INFERENCE_EVALUATION,
    CREATE_INFERENCE_EVALUATION_V4,
)

__all__ = ["chat_operation", "evaluation_operation"]


def chat_operation(*, retry_ambiguous: bool) -> Operation:
    """The row of a chat's completion.

    Args:
        retry_ambiguous: whether the caller would rather pay twice than have no answer.
    """
    return _with_retries(CREATE_CHAT_COMPLETION, retry_ambiguous)


def evaluation_operation(*, gateway_protocol: bool, retry_ambiguous: bool) -> Operation:
    """The row of an evaluation, on either of its paths; see `chat_operation`."""
    check_flag("gateway_protocol", gateway_protocol)
    row = CREATE_INFERENCE_EVALUATION_V4 if gateway_protocol else CREATE_INFERENCE_EVALUATION
    return _with_retries(row, retry_ambiguous)


def _with_retries(operation: Operation, retry_ambiguous: bool) -> Operation:
    permitted = check_flag("retry_ambiguous", retry_ambiguous)
    return replace(operation, safety="permitted") if permitted else operation
