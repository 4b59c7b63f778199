"""Routes of runs: dispatch, capacity, what a run shows, and runs of other places."""

from __future__ import annotations

from prime_core.operations import Operation

# Dispatch

CREATE_TRAINING_RUN = Operation(
    id="create_training_run",
    method="POST",
    path="/api/v1/training/runs",
    safety="unsafe",
    team="body",
    team_name="teamId",
)
PREPARE_TRAINING_RUN = Operation(
    id="prepare_training_run",
    method="POST",
    path="/api/v1/training/runs/prepare",
    safety="safe",
    team="body",
    team_name="teamId",
)
DELETE_TRAINING_RUN = Operation(
    id="delete_training_run", method="DELETE", path="/api/v1/training/runs/{run_id}", safety="safe"
)
PAUSE_TRAINING_RUN = Operation(
    id="pause_training_run",
    method="POST",
    path="/api/v1/training/runs/{run_id}/pause",
    safety="unsafe",
)
RESUME_TRAINING_RUN = Operation(
    id="resume_training_run",
    method="POST",
    path="/api/v1/training/runs/{run_id}/resume",
    safety="unsafe",
)

# Capacity

LIST_AVAILABLE_FFT_MODELS = Operation(
    id="list_available_fft_models",
    method="GET",
    path="/api/v1/training/available-fft-models",
    safety="safe",
    team="query",
)
LIST_AVAILABLE_GPU_TYPES = Operation(
    id="list_available_gpu_types",
    method="GET",
    path="/api/v1/training/available-gpu-types",
    safety="safe",
    team="query",
)

# Runs

LIST_TRAINING_RUNS = Operation(
    id="list_training_runs", method="GET", path="/api/v1/rft/runs", safety="safe", team="query"
)
GET_TRAINING_RUN = Operation(
    id="get_training_run", method="GET", path="/api/v1/rft/runs/{run_id}", safety="safe"
)
DELETE_RUN = Operation(
    id="delete_run", method="DELETE", path="/api/v1/rft/runs/{run_id}", safety="safe"
)
STOP_RUN = Operation(
    id="stop_run", method="PUT", path="/api/v1/rft/runs/{run_id}/stop", safety="safe"
)
RESTART_RUN = Operation(
    id="restart_run", method="PUT", path="/api/v1/rft/runs/{run_id}/restart", safety="unsafe"
)
GET_RUN_LOGS = Operation(
    id="get_run_logs", method="GET", path="/api/v1/rft/runs/{run_id}/logs", safety="safe"
)
LIST_RUN_ENV_SERVERS = Operation(
    id="list_run_env_servers",
    method="GET",
    path="/api/v1/rft/runs/{run_id}/env-servers",
    safety="safe",
)
GET_RUN_ENV_SERVER_LOGS = Operation(
    id="get_run_env_server_logs",
    method="GET",
    path="/api/v1/rft/runs/{run_id}/env-server-logs",
    safety="safe",
)
GET_RUN_METRICS = Operation(
    id="get_run_metrics", method="GET", path="/api/v1/rft/runs/{run_id}/metrics", safety="safe"
)
GET_RUN_SAMPLES = Operation(
    id="get_run_samples", method="GET", path="/api/v1/rft/runs/{run_id}/samples", safety="safe"
)
GET_RUN_PROGRESS = Operation(
    id="get_run_progress", method="GET", path="/api/v1/rft/runs/{run_id}/progress", safety="safe"
)
GET_RUN_DISTRIBUTIONS = Operation(
    id="get_run_distributions",
    method="GET",
    path="/api/v1/rft/runs/{run_id}/distributions",
    safety="safe",
)
LIST_RUN_CHECKPOINTS = Operation(
    id="list_run_checkpoints",
    method="GET",
    path="/api/v1/rft/runs/{run_id}/checkpoints",
    safety="safe",
)

# External runs

CREATE_EXTERNAL_RUN = Operation(
    id="create_external_run",
    method="POST",
    path="/api/v1/rft/external-runs",
    safety="unsafe",
    team="body",
)
SET_EXTERNAL_RUN_STATUS = Operation(
    id="set_external_run_status",
    method="PUT",
    path="/api/v1/rft/external-runs/{run_id}/status",
    safety="safe",
)
FINALIZE_EXTERNAL_RUN = Operation(
    id="finalize_external_run", method="POST", path="/api/v1/rft/finalize", safety="safe"
)
LOG_EXTERNAL_RUN_METRICS = Operation(
    id="log_external_run_metrics", method="POST", path="/api/v1/rft/metrics", safety="safe"
)
PRESIGN_EXTERNAL_RUN_SAMPLES = Operation(
    id="presign_external_run_samples",
    method="POST",
    path="/api/v1/rft/samples/presign",
    safety="safe",
)
CONFIRM_EXTERNAL_RUN_SAMPLES = Operation(
    id="confirm_external_run_samples",
    method="POST",
    path="/api/v1/rft/samples/confirm",
    safety="safe",
)
