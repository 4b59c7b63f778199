"""Access to a sandbox's gateway."""

from __future__ import annotations

from pydantic import ConfigDict, SecretStr

from prime_core.models import ResponseModel, UtcDatetime


class GatewayAuth(ResponseModel):
    """Where a sandbox's gateway is and the token that opens it.

    Unknown fields are dropped rather than kept, since they may be secrets too.

    Attributes:
        gateway_url: base URL of the gateway; may end in a slash.
        user_ns: first path segment of the sandbox's gateway routes.
        job_id: second path segment.
        token: the bearer token, masked when printed.
        expires_at: end of the token's life, 30 minutes after it was issued. It is checked when a
            request starts; a running command outlives it.
    """

    model_config = ConfigDict(extra="ignore")

    gateway_url: str
    user_ns: str
    job_id: str
    token: SecretStr
    expires_at: UtcDatetime
