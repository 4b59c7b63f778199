"""Routes of evaluations, hosted ones too."""

from __future__ import annotations

from prime_core.operations import Operation

# Evaluations

LIST_EVALUATIONS = Operation(
    id="list_evaluations", method="GET", path="/api/v1/evaluations/", safety="safe", team="query"
)
CREATE_EVALUATION = Operation(
    id="create_evaluation", method="POST", path="/api/v1/evaluations/", safety="unsafe", team="body"
)
BULK_DELETE_EVALUATIONS = Operation(
    id="bulk_delete_evaluations",
    method="POST",
    path="/api/v1/evaluations/bulk-delete",
    safety="safe",
)
GET_EVALUATION = Operation(
    id="get_evaluation", method="GET", path="/api/v1/evaluations/{evaluation_id}", safety="safe"
)
UPDATE_EVALUATION = Operation(
    id="update_evaluation", method="PUT", path="/api/v1/evaluations/{evaluation_id}", safety="safe"
)
DELETE_EVALUATION = Operation(
    id="delete_evaluation",
    method="DELETE",
    path="/api/v1/evaluations/{evaluation_id}",
    safety="safe",
)
FINALIZE_EVALUATION = Operation(
    id="finalize_evaluation",
    method="POST",
    path="/api/v1/evaluations/{evaluation_id}/finalize",
    safety="unsafe",
)
GET_EVALUATION_SAMPLES = Operation(
    id="get_evaluation_samples",
    method="GET",
    path="/api/v1/evaluations/{evaluation_id}/samples",
    safety="safe",
)
PUSH_EVALUATION_SAMPLES = Operation(
    id="push_evaluation_samples",
    method="POST",
    path="/api/v1/evaluations/{evaluation_id}/samples",
    safety="unsafe",
)

# Hosted evaluations

CREATE_HOSTED_EVALUATION = Operation(
    id="create_hosted_evaluation",
    method="POST",
    path="/api/v1/hosted-evaluations",
    safety="unsafe",
    team="body",
)
LIST_HOSTED_EVALUATION_MODELS = Operation(
    id="list_hosted_evaluation_models",
    method="GET",
    path="/api/v1/hosted-evaluations/models",
    safety="safe",
)
CANCEL_HOSTED_EVALUATION = Operation(
    id="cancel_hosted_evaluation",
    method="PATCH",
    path="/api/v1/hosted-evaluations/{evaluation_id}/cancel",
    safety="safe",
)
GET_HOSTED_EVALUATION_LOGS = Operation(
    id="get_hosted_evaluation_logs",
    method="GET",
    path="/api/v1/hosted-evaluations/{evaluation_id}/logs",
    safety="safe",
)
PUT_HOSTED_EVALUATION_LOGS = Operation(
    id="put_hosted_evaluation_logs",
    method="PUT",
    path="/api/v1/hosted-evaluations/{evaluation_id}/logs",
    safety="safe",
)
