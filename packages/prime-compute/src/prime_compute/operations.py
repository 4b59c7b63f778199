"""Each route of compute and account, and what may be done with it."""

from __future__ import annotations

from prime_core.operations import Operation

# Availability

LIST_GPU_AVAILABILITY = Operation(
    id="list_gpu_availability", method="GET", path="/api/v1/availability/gpus", safety="safe"
)
LIST_MULTINODE_AVAILABILITY = Operation(
    id="list_multinode_availability",
    method="GET",
    path="/api/v1/availability/multi-node",
    safety="safe",
)
LIST_DISK_AVAILABILITY = Operation(
    id="list_disk_availability", method="GET", path="/api/v1/availability/disks", safety="safe"
)
GET_GPU_SUMMARY = Operation(
    id="get_gpu_summary", method="GET", path="/api/v1/availability/gpu-summary", safety="safe"
)
GET_MULTINODE_SUMMARY = Operation(
    id="get_multinode_summary",
    method="GET",
    path="/api/v1/availability/multi-node-summary",
    safety="safe",
)
LIST_LEGACY_CLUSTER_AVAILABILITY = Operation(
    id="list_legacy_cluster_availability",
    method="GET",
    path="/api/v1/availability/clusters",
    safety="safe",
)
LIST_LEGACY_GPU_AVAILABILITY = Operation(
    id="list_legacy_gpu_availability", method="GET", path="/api/v1/availability/", safety="safe"
)

# Pods

LIST_PODS = Operation(id="list_pods", method="GET", path="/api/v1/pods/", safety="safe")
CREATE_POD = Operation(
    id="create_pod",
    method="POST",
    path="/api/v1/pods/",
    safety="unsafe",
    team="body",
    team_name="team.teamId",
)
LIST_POD_HISTORY = Operation(
    id="list_pod_history", method="GET", path="/api/v1/pods/history", safety="safe"
)
GET_PODS_STATUS = Operation(
    id="get_pods_status", method="GET", path="/api/v1/pods/status", safety="safe"
)
GET_POD = Operation(id="get_pod", method="GET", path="/api/v1/pods/{pod_id}", safety="safe")
DELETE_POD = Operation(
    id="delete_pod", method="DELETE", path="/api/v1/pods/{pod_id}", safety="safe"
)
GET_POD_LOG = Operation(
    id="get_pod_log", method="GET", path="/api/v1/pods/{pod_id}/log", safety="safe"
)

# Disks

LIST_DISKS = Operation(id="list_disks", method="GET", path="/api/v1/disks/", safety="safe")
CREATE_DISK = Operation(
    id="create_disk",
    method="POST",
    path="/api/v1/disks/",
    safety="unsafe",
    team="body",
    team_name="team.teamId",
)
GET_DISK = Operation(id="get_disk", method="GET", path="/api/v1/disks/{disk_id}", safety="safe")
UPDATE_DISK = Operation(
    id="update_disk", method="PATCH", path="/api/v1/disks/{disk_id}", safety="safe"
)
DELETE_DISK = Operation(
    id="delete_disk", method="DELETE", path="/api/v1/disks/{disk_id}", safety="safe"
)

# SSH keys

LIST_SSH_KEYS = Operation(id="list_ssh_keys", method="GET", path="/api/v1/ssh_keys/", safety="safe")
UPLOAD_SSH_KEY = Operation(
    id="upload_ssh_key", method="POST", path="/api/v1/ssh_keys/", safety="unsafe"
)
SET_PRIMARY_SSH_KEY = Operation(
    id="set_primary_ssh_key", method="PATCH", path="/api/v1/ssh_keys/{key_id}", safety="safe"
)
DELETE_SSH_KEY = Operation(
    id="delete_ssh_key", method="DELETE", path="/api/v1/ssh_keys/{key_id}", safety="safe"
)

# Teams

LIST_TEAM_MEMBERS = Operation(
    id="list_team_members", method="GET", path="/api/v1/teams/{team_id}/members", safety="safe"
)

# The caller

GET_WHOAMI = Operation(
    id="get_whoami",
    method="GET",
    path="/api/v1/user/whoami",
    safety="safe",
    team="query",
    team_name="teamId",
)
LIST_MY_TEAMS = Operation(
    id="list_my_teams", method="GET", path="/api/v1/user/teams", safety="safe"
)
SET_USER_SLUG = Operation(
    id="set_user_slug", method="PATCH", path="/api/v1/user/slug", safety="unsafe"
)

# API tokens

LIST_TOKENS = Operation(id="list_tokens", method="GET", path="/api/v1/tokens/", safety="safe")
DELETE_TOKEN = Operation(
    id="delete_token", method="DELETE", path="/api/v1/tokens/{token_id}", safety="safe"
)
DISABLE_TOKEN = Operation(
    id="disable_token", method="POST", path="/api/v1/tokens/{token_id}/disable", safety="safe"
)

# Secrets

LIST_SECRETS = Operation(
    id="list_secrets",
    method="GET",
    path="/api/v1/secrets/",
    safety="safe",
    team="query",
    team_name="teamId",
)
CREATE_SECRET = Operation(
    id="create_secret",
    method="POST",
    path="/api/v1/secrets/",
    safety="unsafe",
    team="body",
    team_name="teamId",
)
GET_SECRET = Operation(
    id="get_secret",
    method="GET",
    path="/api/v1/secrets/{secret_id}",
    safety="safe",
    team="query",
    team_name="teamId",
)
UPDATE_SECRET = Operation(
    id="update_secret",
    method="PATCH",
    path="/api/v1/secrets/{secret_id}",
    safety="safe",
    team="query",
    team_name="teamId",
)
DELETE_SECRET = Operation(
    id="delete_secret",
    method="DELETE",
    path="/api/v1/secrets/{secret_id}",
    safety="safe",
    team="query",
    team_name="teamId",
)

# Wallet and usage

GET_WALLET = Operation(
    id="get_wallet",
    method="GET",
    path="/api/v1/billing/wallet",
    safety="safe",
    team="query",
    team_name="teamId",
)
GET_RUN_USAGE = Operation(
    id="get_run_usage", method="GET", path="/api/v1/billing/runs/{run_id}/usage", safety="safe"
)

# Feedback

SUBMIT_FEEDBACK = Operation(
    id="submit_feedback", method="POST", path="/api/v1/feedback", safety="unsafe"
)

# Slurm clusters

LIST_SLURM_CLUSTERS = Operation(
    id="list_slurm_clusters", method="GET", path="/api/v1/slurm-clusters/{team_id}", safety="safe"
)
DEPLOY_SLURM_CLUSTER = Operation(
    id="deploy_slurm_cluster",
    method="POST",
    path="/api/v1/slurm-clusters/{team_id}/deploy",
    safety="unsafe",
)
GET_SLURM_CONNECTION = Operation(
    id="get_slurm_connection",
    method="GET",
    path="/api/v1/slurm-clusters/{cluster_id}/connection",
    safety="safe",
)
LIST_SLURM_MEMBERS = Operation(
    id="list_slurm_members",
    method="GET",
    path="/api/v1/slurm-clusters/{team_id}/{job_id}/members",
    safety="safe",
)
ADD_SLURM_MEMBER = Operation(
    id="add_slurm_member",
    method="POST",
    path="/api/v1/slurm-clusters/{team_id}/{job_id}/members",
    safety="unsafe",
)
REMOVE_SLURM_MEMBER = Operation(
    id="remove_slurm_member",
    method="DELETE",
    path="/api/v1/slurm-clusters/{team_id}/{job_id}/members/{username}",
    safety="safe",
)
RESIZE_SLURM_CLUSTER = Operation(
    id="resize_slurm_cluster",
    method="POST",
    path="/api/v1/slurm-clusters/{team_id}/{job_id}/resize",
    safety="unsafe",
)

# Model Factory

GET_FACTORY_STATUS = Operation(
    id="get_factory_status",
    method="GET",
    path="/api/v1/factory/status",
    safety="safe",
    team="query",
)
GET_FACTORY_NODES = Operation(
    id="get_factory_nodes", method="GET", path="/api/v1/factory/nodes", safety="safe", team="query"
)
GET_FACTORY_UTILIZATION = Operation(
    id="get_factory_utilization",
    method="GET",
    path="/api/v1/factory/utilization",
    safety="safe",
    team="query",
)
LIST_FACTORY_WORKLOADS = Operation(
    id="list_factory_workloads",
    method="GET",
    path="/api/v1/factory/workloads",
    safety="safe",
    team="query",
)
