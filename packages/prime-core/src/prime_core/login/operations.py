"""The routes of the login. They never see an API key or a team: see `AsyncLogin`."""

from __future__ import annotations

from prime_core.operations import Operation

GENERATE_AUTH_CHALLENGE = Operation(
    id="generate_auth_challenge",
    method="POST",
    path="/api/v1/auth_challenge/generate",
    safety="safe",
)
GET_AUTH_CHALLENGE_STATUS = Operation(
    id="get_auth_challenge_status",
    method="GET",
    path="/api/v1/auth_challenge/status",
    safety="safe",
)
