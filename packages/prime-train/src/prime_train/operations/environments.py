"""Routes of the environments hub."""

from __future__ import annotations

from prime_core.operations import Operation

# Environments hub

LIST_ENVIRONMENTS = Operation(
    id="list_environments",
    method="GET",
    path="/api/v1/environmentshub/",
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
LOOKUP_ENVIRONMENT = Operation(
    id="lookup_environment", method="POST", path="/api/v1/environmentshub/lookup", safety="safe"
)
GET_ENVIRONMENT = Operation(
    id="get_environment",
    method="GET",
    path="/api/v1/environmentshub/{owner}/{name}/@{version}",
    safety="safe",
    keyless=True,
)
DELETE_ENVIRONMENT_VERSION = Operation(
    id="delete_environment_version",
    method="DELETE",
    path="/api/v1/environmentshub/{owner}/{name}/@{version}",
    safety="safe",
)
INSPECT_ENVIRONMENT = Operation(
    id="inspect_environment",
    method="GET",
    path="/api/v1/environmentshub/{owner}/{name}/@{version}/inspect",
    safety="safe",
    keyless=True,
)
GET_ENVIRONMENT_STATUS = Operation(
    id="get_environment_status",
    method="GET",
    path="/api/v1/environmentshub/{owner}/{name}/status",
    safety="safe",
    keyless=True,
)
LIST_ENVIRONMENT_VERSIONS = Operation(
    id="list_environment_versions",
    method="GET",
    path="/api/v1/environmentshub/{owner}/{name}/versions",
    safety="safe",
    keyless=True,
)
FORK_ENVIRONMENT = Operation(
    id="fork_environment",
    method="POST",
    path="/api/v1/environmentshub/{owner}/{name}/fork",
    safety="unsafe",
    team="body",
)
REGISTER_ENVIRONMENT_WHEEL = Operation(
    id="register_environment_wheel",
    method="POST",
    path="/api/v1/environmentshub/{environment_id}/wheels",
    safety="unsafe",
)
FINALIZE_ENVIRONMENT_WHEEL = Operation(
    id="finalize_environment_wheel",
    method="POST",
    path="/api/v1/environmentshub/{environment_id}/wheels/{wheel_id}/finalize",
    safety="unsafe",
)
REGISTER_ENVIRONMENT_SOURCE = Operation(
    id="register_environment_source",
    method="POST",
    path="/api/v1/environmentshub/{environment_id}/versions",
    safety="unsafe",
)
FINALIZE_ENVIRONMENT_SOURCE = Operation(
    id="finalize_environment_source",
    method="POST",
    path="/api/v1/environmentshub/{environment_id}/versions/{version_id}/finalize",
    safety="unsafe",
)
DELETE_ENVIRONMENT = Operation(
    id="delete_environment",
    method="DELETE",
    path="/api/v1/environmentshub/{environment_id}",
    safety="safe",
)
LIST_ENVIRONMENT_SECRETS = Operation(
    id="list_environment_secrets",
    method="GET",
    path="/api/v1/environmentshub/{environment_id}/secrets",
    safety="safe",
)
CREATE_ENVIRONMENT_SECRET = Operation(
    id="create_environment_secret",
    method="POST",
    path="/api/v1/environmentshub/{environment_id}/secrets",
    safety="unsafe",
)
UPDATE_ENVIRONMENT_SECRET = Operation(
    id="update_environment_secret",
    method="PATCH",
    path="/api/v1/environmentshub/{environment_id}/secrets/{secret_id}",
    safety="safe",
)
DELETE_ENVIRONMENT_SECRET = Operation(
    id="delete_environment_secret",
    method="DELETE",
    path="/api/v1/environmentshub/{environment_id}/secrets/{secret_id}",
    safety="safe",
)
LINK_ENVIRONMENT_SECRET = Operation(
    id="link_environment_secret",
    method="POST",
    path="/api/v1/environmentshub/{environment_id}/secrets/link/{global_secret_id}",
    safety="unsafe",
)
UNLINK_ENVIRONMENT_SECRET = Operation(
    id="unlink_environment_secret",
    method="DELETE",
    path="/api/v1/environmentshub/{environment_id}/secrets/link/{global_secret_id}",
    safety="safe",
)
LIST_ENVIRONMENT_VARIABLES = Operation(
    id="list_environment_variables",
    method="GET",
    path="/api/v1/environmentshub/{environment_id}/variables",
    safety="safe",
)
CREATE_ENVIRONMENT_VARIABLE = Operation(
    id="create_environment_variable",
    method="POST",
    path="/api/v1/environmentshub/{environment_id}/variables",
    safety="unsafe",
)
UPDATE_ENVIRONMENT_VARIABLE = Operation(
    id="update_environment_variable",
    method="PATCH",
    path="/api/v1/environmentshub/{environment_id}/variables/{variable_id}",
    safety="safe",
)
DELETE_ENVIRONMENT_VARIABLE = Operation(
    id="delete_environment_variable",
    method="DELETE",
    path="/api/v1/environmentshub/{environment_id}/variables/{variable_id}",
    safety="safe",
)
