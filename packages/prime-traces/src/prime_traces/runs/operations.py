"""The routes of the platform that run logging uses beside those of the traces service."""

from __future__ import annotations

from prime_core.operations import Operation

__all__ = [
    "CREATE_EVALUATION",
    "CREATE_EXTERNAL_RUN",
    "FINALIZE_EVALUATION",
    "FINALIZE_EXTERNAL_RUN",
    "GET_ENVIRONMENT",
    "GET_EVALUATION",
    "GET_TRAINING_RUN",
    "LOG_EXTERNAL_RUN_METRICS",
    "PUSH_EVALUATION_SAMPLES",
    "RESOLVE_ENVIRONMENT",
    "SET_EXTERNAL_RUN_STATUS",
    "UPDATE_EVALUATION",
]

GET_ENVIRONMENT = Operation(
    id="get_environment",
    method="GET",
    path="/api/v1/environmentshub/{owner}/{name}/@{version}",
    safety="safe",
    keyless=True,
)
RESOLVE_ENVIRONMENT = Operation(
    id="resolve_environment",
    method="POST",
    path="/api/v1/environmentshub/resolve",
    safety="safe",
    team="body",
)
CREATE_EVALUATION = Operation(
    id="create_evaluation",
    method="POST",
    path="/api/v1/evaluations/",
    safety="unsafe",
    team="body",
)
GET_EVALUATION = Operation(
    id="get_evaluation",
    method="GET",
    path="/api/v1/evaluations/{evaluation_id}",
    safety="safe",
)
UPDATE_EVALUATION = Operation(
    id="update_evaluation",
    method="PUT",
    path="/api/v1/evaluations/{evaluation_id}",
    safety="safe",
)
FINALIZE_EVALUATION = Operation(
    id="finalize_evaluation",
    method="POST",
    path="/api/v1/evaluations/{evaluation_id}/finalize",
    safety="unsafe",
)
PUSH_EVALUATION_SAMPLES = Operation(
    id="push_evaluation_samples",
    method="POST",
    path="/api/v1/evaluations/{evaluation_id}/samples",
    safety="unsafe",
)
CREATE_EXTERNAL_RUN = Operation(
    id="create_external_run",
    method="POST",
    path="/api/v1/rft/external-runs",
    safety="unsafe",
    team="body",
)
GET_TRAINING_RUN = Operation(
    id="get_training_run",
    method="GET",
    path="/api/v1/rft/runs/{run_id}",
    safety="safe",
)
SET_EXTERNAL_RUN_STATUS = Operation(
    id="set_external_run_status",
    method="PUT",
    path="/api/v1/rft/external-runs/{run_id}/status",
    safety="safe",
)
FINALIZE_EXTERNAL_RUN = Operation(
    id="finalize_external_run",
    method="POST",
    path="/api/v1/rft/finalize",
    safety="safe",
)
LOG_EXTERNAL_RUN_METRICS = Operation(
    id="log_external_run_metrics",
    method="POST",
    path="/api/v1/rft/metrics",
    safety="safe",
)
