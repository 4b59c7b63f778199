"""Routes of volumes, their sessions and their transfers."""

from __future__ import annotations

from prime_core.operations import Operation

# Volumes

LIST_VOLUMES = Operation(
    id="list_volumes",
    method="GET",
    path="/api/v1/training/volumes",
    safety="safe",
    team="query",
    team_name="teamId",
)
CREATE_VOLUME = Operation(
    id="create_volume",
    method="POST",
    path="/api/v1/training/volumes",
    safety="unsafe",
    team="body",
    team_name="teamId",
)
EXPAND_VOLUME = Operation(
    id="expand_volume",
    method="PATCH",
    path="/api/v1/training/volumes/{name}",
    safety="unsafe",
    team="body",
    team_name="teamId",
)
DELETE_VOLUME = Operation(
    id="delete_volume",
    method="DELETE",
    path="/api/v1/training/volumes/{name}",
    safety="safe",
    team="query",
    team_name="teamId",
)
GET_VOLUME_USAGE = Operation(
    id="get_volume_usage",
    method="GET",
    path="/api/v1/training/volumes/usage",
    safety="safe",
    team="query",
    team_name="teamId",
)

# Sessions of volumes

LIST_VOLUME_SESSIONS = Operation(
    id="list_volume_sessions",
    method="GET",
    path="/api/v1/training/volumes/{name}/sessions",
    safety="safe",
    team="query",
    team_name="teamId",
)
CREATE_VOLUME_SESSION = Operation(
    id="create_volume_session",
    method="POST",
    path="/api/v1/training/volumes/{name}/sessions",
    safety="unsafe",
    team="body",
    team_name="teamId",
)
GET_VOLUME_SESSION = Operation(
    id="get_volume_session",
    method="GET",
    path="/api/v1/training/volumes/{name}/sessions/{session_id}",
    safety="safe",
    team="query",
    team_name="teamId",
)
STOP_VOLUME_SESSION = Operation(
    id="stop_volume_session",
    method="DELETE",
    path="/api/v1/training/volumes/{name}/sessions/{session_id}",
    safety="safe",
    team="query",
    team_name="teamId",
)

# Transfers of volumes

ROUTE_VOLUME_TRANSFER = Operation(
    id="route_volume_transfer",
    method="POST",
    path="/api/v1/training/volumes/{name}/transfer",
    safety="unsafe",
    team="body",
    team_name="teamId",
)
RELEASE_VOLUME_TRANSFER = Operation(
    id="release_volume_transfer",
    method="POST",
    path="/api/v1/training/volumes/{name}/transfer/release",
    safety="safe",
    team="body",
    team_name="teamId",
)
CREATE_BUCKET_TRANSFER = Operation(
    id="create_bucket_transfer",
    method="POST",
    path="/api/v1/training/volumes/{name}/transfers",
    safety="unsafe",
    team="body",
    team_name="teamId",
)
LIST_BUCKET_TRANSFERS = Operation(
    id="list_bucket_transfers",
    method="GET",
    path="/api/v1/training/volumes/{name}/transfers",
    safety="safe",
    team="query",
    team_name="teamId",
)
GET_BUCKET_TRANSFER = Operation(
    id="get_bucket_transfer",
    method="GET",
    path="/api/v1/training/volumes/{name}/transfers/{transfer_id}",
    safety="safe",
    team="query",
    team_name="teamId",
)
CANCEL_BUCKET_TRANSFER = Operation(
    id="cancel_bucket_transfer",
    method="DELETE",
    path="/api/v1/training/volumes/{name}/transfers/{transfer_id}",
    safety="safe",
    team="query",
    team_name="teamId",
)
