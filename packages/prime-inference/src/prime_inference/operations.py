"""Each route of the inference service, and what may be done with it."""

from __future__ import annotations

from prime_core.operations import Operation, RateScope

# Its limits are not published; calls that are refused wait together.
INFERENCE = RateScope("inference")

# Models

LIST_INFERENCE_MODELS = Operation(
    id="list_inference_models",
    method="GET",
    path="/api/v1/models",
    safety="safe",
    service="inference",
    keyless=True,
)
GET_INFERENCE_MODEL = Operation(
    id="get_inference_model",
    method="GET",
    path="/api/v1/models/{model_id}",
    safety="safe",
    service="inference",
    keyless=True,
    raw=frozenset({"model_id"}),
)

# Chat

CREATE_CHAT_COMPLETION = Operation(
    id="create_chat_completion",
    method="POST",
    path="/api/v1/chat/completions",
    safety="unsafe",
    scope=INFERENCE,
    service="inference",
    pool="stream",
)

# Evaluation models

CREATE_INFERENCE_EVALUATION = Operation(
    id="create_inference_evaluation",
    method="POST",
    path="/api/v1/evaluations",
    safety="unsafe",
    scope=INFERENCE,
    service="inference",
    pool="stream",
)
CREATE_INFERENCE_EVALUATION_V4 = Operation(
    id="create_inference_evaluation_v4",
    method="POST",
    path="/v4/ai/evaluation-model",
    safety="unsafe",
    scope=INFERENCE,
    service="inference",
    pool="stream",
)
