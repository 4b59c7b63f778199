"""The sandbox API at a glance: one row per route."""

from __future__ import annotations

from prime_core.operations import Operation, RateLimit, RateScope

# An account may create 192 sandboxes per 10 seconds ("sandboxes/overview", "Limits").
CREATE_SCOPE = RateScope("sandbox-create", RateLimit(192, 10))
READ_SCOPE = RateScope("sandbox-read")
DELETE_SCOPE = RateScope("sandbox-delete")
AUTH_SCOPE = RateScope("sandbox-auth")
NETWORK_SCOPE = RateScope("sandbox-network")
GATEWAY_SCOPE = RateScope("sandbox-gateway")
SSH_SCOPE = RateScope("sandbox-ssh")
CHECKPOINT_SCOPE = RateScope("sandbox-checkpoint")
VOLUME_SCOPE = RateScope("sandbox-volume")

CREATE_SANDBOX = Operation(
    "create_sandbox",
    "POST",
    "/api/v1/sandbox",
    "keyed",
    scope=CREATE_SCOPE,
    team="body",
    key_field="idempotency_key",
)
LIST_SANDBOXES = Operation(
    "list_sandboxes", "GET", "/api/v1/sandbox", "safe", scope=READ_SCOPE, team="query"
)
BULK_DELETE_SANDBOXES = Operation(
    "bulk_delete_sandboxes", "DELETE", "/api/v1/sandbox", "safe", scope=DELETE_SCOPE
)
BATCH_GET_SANDBOX_STATUSES = Operation(
    "batch_get_sandbox_statuses",
    "POST",
    "/api/v1/sandbox/status:batchGet",
    "safe",
    scope=READ_SCOPE,
)
GET_SANDBOX = Operation(
    "get_sandbox", "GET", "/api/v1/sandbox/{sandbox_id}", "safe", scope=READ_SCOPE
)
DELETE_SANDBOX = Operation(
    "delete_sandbox", "DELETE", "/api/v1/sandbox/{sandbox_id}", "safe", scope=DELETE_SCOPE
)
GET_SANDBOX_LOGS = Operation(
    "get_sandbox_logs", "GET", "/api/v1/sandbox/{sandbox_id}/logs", "safe", scope=READ_SCOPE
)
GET_SANDBOX_ERROR_CONTEXT = Operation(
    "get_sandbox_error_context",
    "GET",
    "/api/v1/sandbox/{sandbox_id}/error-context",
    "safe",
    scope=READ_SCOPE,
)
CREATE_SANDBOX_AUTH_TOKEN = Operation(
    "create_sandbox_auth_token",
    "POST",
    "/api/v1/sandbox/{sandbox_id}/auth",
    "safe",
    scope=AUTH_SCOPE,
)
# Files. A transfer may hold its connection for hours, so it is not among the short calls.
UPLOAD_FILE = Operation(
    "upload_file",
    "POST",
    "/{user_ns}/{job_id}/upload",
    "safe",
    scope=GATEWAY_SCOPE,
    pool="stream",
)
DOWNLOAD_FILE = Operation(
    "download_file",
    "GET",
    "/{user_ns}/{job_id}/download",
    "safe",
    scope=GATEWAY_SCOPE,
    pool="stream",
)
READ_FILE = Operation(
    "read_file", "GET", "/{user_ns}/{job_id}/read-file", "safe", scope=GATEWAY_SCOPE
)

# Commands.
# Starting again after an answer may have been lost attaches to the same session, but what it
# wrote in between is gone: a result with a hole is worse than an error, so this is unsafe.
COMMAND_SESSION_START = Operation(
    "command_session_start",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/Start",
    "unsafe",
    scope=GATEWAY_SCOPE,
    pool="stream",
)
COMMAND_SESSION_CONNECT = Operation(
    "command_session_connect",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/Connect",
    "safe",
    scope=GATEWAY_SCOPE,
    pool="stream",
)
COMMAND_SESSION_LIST = Operation(
    "command_session_list",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/List",
    "safe",
    scope=GATEWAY_SCOPE,
)
COMMAND_SESSION_UPDATE = Operation(
    "command_session_update",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/Update",
    "safe",
    scope=GATEWAY_SCOPE,
)
COMMAND_SESSION_STREAM_INPUT = Operation(
    "command_session_stream_input",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/StreamInput",
    "unsafe",
    scope=GATEWAY_SCOPE,
    pool="stream",
)
COMMAND_SESSION_SEND_INPUT = Operation(
    "command_session_send_input",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/SendInput",
    "keyed",
    scope=GATEWAY_SCOPE,
)
COMMAND_SESSION_SEND_SIGNAL = Operation(
    "command_session_send_signal",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/SendSignal",
    "keyed",
    scope=GATEWAY_SCOPE,
)

# Outbound rules and private networks.
GET_EGRESS_POLICY = Operation(
    "get_egress_policy",
    "GET",
    "/api/v1/sandbox/{sandbox_id}/egress-policy",
    "safe",
    scope=NETWORK_SCOPE,
)
SET_EGRESS_POLICY = Operation(
    "set_egress_policy",
    "PUT",
    "/api/v1/sandbox/{sandbox_id}/egress-policy",
    "safe",
    scope=NETWORK_SCOPE,
)
# Without a key a second create would make a second network.
CREATE_LAN_NETWORK = Operation(
    "create_lan_network",
    "POST",
    "/api/v1/sandbox/networks",
    "unsafe",
    scope=NETWORK_SCOPE,
    team="body",
)
LIST_LAN_NETWORKS = Operation(
    "list_lan_networks",
    "GET",
    "/api/v1/sandbox/networks",
    "safe",
    scope=NETWORK_SCOPE,
    team="query",
)
GET_LAN_NETWORK = Operation(
    "get_lan_network",
    "GET",
    "/api/v1/sandbox/networks/{network_id}",
    "safe",
    scope=NETWORK_SCOPE,
)
DELETE_LAN_NETWORK = Operation(
    "delete_lan_network",
    "DELETE",
    "/api/v1/sandbox/networks/{network_id}",
    "safe",
    scope=NETWORK_SCOPE,
)
SET_LAN_RULES = Operation(
    "set_lan_rules",
    "PUT",
    "/api/v1/sandbox/networks/{network_id}/rules",
    "safe",
    scope=NETWORK_SCOPE,
)
PUT_LAN_MEMBER = Operation(
    "put_lan_member",
    "PUT",
    "/api/v1/sandbox/networks/{network_id}/members/{sandbox_id}",
    "safe",
    scope=NETWORK_SCOPE,
)
REMOVE_LAN_MEMBER = Operation(
    "remove_lan_member",
    "DELETE",
    "/api/v1/sandbox/networks/{network_id}/members/{sandbox_id}",
    "safe",
    scope=NETWORK_SCOPE,
)

# Background jobs
BATCH_GET_BACKGROUND_JOB_STATUSES = Operation(
    "batch_get_background_job_statuses",
    "POST",
    "/api/v1/sandbox/background-jobs/status:batchGet",
    "safe",
    scope=READ_SCOPE,
)

# SSH
CREATE_SSH_SESSION = Operation(
    "create_ssh_session",
    "POST",
    "/api/v1/sandbox/{sandbox_id}/ssh-session",
    "unsafe",
    scope=SSH_SCOPE,
)
CLOSE_SSH_SESSION = Operation(
    "close_ssh_session",
    "DELETE",
    "/api/v1/sandbox/{sandbox_id}/ssh-session/{session_id}",
    "safe",
    scope=SSH_SCOPE,
)

# Checkpoints and volumes
CREATE_CHECKPOINT = Operation(
    "create_checkpoint",
    "POST",
    "/api/v1/sandbox/{sandbox_id}/checkpoints",
    "unsafe",
    scope=CHECKPOINT_SCOPE,
)
LIST_CHECKPOINTS = Operation(
    "list_checkpoints",
    "GET",
    "/api/v1/sandbox/{sandbox_id}/checkpoints",
    "safe",
    scope=READ_SCOPE,
)
DELETE_SANDBOX_CHECKPOINTS = Operation(
    "delete_sandbox_checkpoints",
    "DELETE",
    "/api/v1/sandbox/{sandbox_id}/checkpoints",
    "safe",
    scope=DELETE_SCOPE,
)
GET_CHECKPOINT = Operation(
    "get_checkpoint",
    "GET",
    "/api/v1/sandbox/checkpoints/{checkpoint_id}",
    "safe",
    scope=READ_SCOPE,
)
DELETE_CHECKPOINT = Operation(
    "delete_checkpoint",
    "DELETE",
    "/api/v1/sandbox/checkpoints/{checkpoint_id}",
    "safe",
    scope=DELETE_SCOPE,
)
BATCH_GET_CHECKPOINTS = Operation(
    "batch_get_checkpoints",
    "POST",
    "/api/v1/sandbox/checkpoints:batchGet",
    "safe",
    scope=READ_SCOPE,
)
CREATE_SANDBOX_VOLUME = Operation(
    "create_sandbox_volume",
    "POST",
    "/api/v1/sandbox/volumes",
    "unsafe",
    scope=VOLUME_SCOPE,
    team="body",
)
LIST_SANDBOX_VOLUMES = Operation(
    "list_sandbox_volumes",
    "GET",
    "/api/v1/sandbox/volumes",
    "safe",
    scope=VOLUME_SCOPE,
    team="query",
)
GET_SANDBOX_VOLUME = Operation(
    "get_sandbox_volume",
    "GET",
    "/api/v1/sandbox/volumes/{name}",
    "safe",
    scope=VOLUME_SCOPE,
    team="query",
)
DELETE_SANDBOX_VOLUME = Operation(
    "delete_sandbox_volume",
    "DELETE",
    "/api/v1/sandbox/volumes/{name}",
    "safe",
    scope=VOLUME_SCOPE,
    team="query",
)
PUBLISH_SANDBOX_VOLUME = Operation(
    "publish_sandbox_volume",
    "POST",
    "/api/v1/sandbox/{sandbox_id}/volumes/{name}/publish",
    "unsafe",
    scope=VOLUME_SCOPE,
)

# Images.
IMAGE_LIST_SCOPE = RateScope("image-list", RateLimit(300, 60))
IMAGE_BUILD_SCOPE = RateScope("image-build", RateLimit(150, 60))
IMAGE_UPDATE_SCOPE = RateScope("image-update", RateLimit(50, 60))
IMAGE_DELETE_SCOPE = RateScope("image-delete", RateLimit(100, 60))
IMAGE_READ_SCOPE = RateScope("image-read")
IMAGE_UPLOAD_SCOPE = RateScope("image-upload")

LIST_IMAGES = Operation("list_images", "GET", "/api/v1/images", "safe", scope=IMAGE_LIST_SCOPE)
UPDATE_IMAGES = Operation(
    "update_images", "PATCH", "/api/v1/images", "unsafe", scope=IMAGE_UPDATE_SCOPE
)
# It has no key: a second request would begin a second build.
INITIATE_IMAGE_BUILD = Operation(
    "initiate_image_build", "POST", "/api/v1/images/build", "unsafe", scope=IMAGE_BUILD_SCOPE
)
GET_IMAGE_BUILD = Operation(
    "get_image_build", "GET", "/api/v1/images/build/{build_id}", "safe", scope=IMAGE_READ_SCOPE
)
START_IMAGE_BUILD = Operation(
    "start_image_build",
    "POST",
    "/api/v1/images/build/{build_id}/start",
    "unsafe",
    scope=IMAGE_READ_SCOPE,
)
LIST_IMAGE_BUILDS = Operation(
    "list_image_builds", "GET", "/api/v1/images/builds", "safe", scope=IMAGE_READ_SCOPE
)
DELETE_IMAGE = Operation(
    "delete_image",
    "DELETE",
    "/api/v1/images/{image_name}/{image_tag}",
    "safe",
    scope=IMAGE_DELETE_SCOPE,
    raw=frozenset({"image_name"}),
)
# On the upload store's host, which sees neither the API key nor the team.
UPLOAD_BUILD_CONTEXT = Operation(
    "upload_build_context",
    "PUT",
    "/{presigned_upload}",
    "safe",
    scope=IMAGE_UPLOAD_SCOPE,
)
