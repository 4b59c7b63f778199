"""The routes of the inference service."""

from __future__ import annotations

from prime_local.calls import Handler
from prime_local.inference.chat import create_chat_completion
from prime_local.inference.evaluations import (
    create_inference_evaluation,
    create_inference_evaluation_v4,
)
from prime_local.inference.models import get_inference_model, list_inference_models

HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_inference_models,
        get_inference_model,
        create_chat_completion,
        create_inference_evaluation,
        create_inference_evaluation_v4,
    )
}
