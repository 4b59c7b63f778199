"""Gateway tokens."""

from __future__ import annotations

from collections import defaultdict

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import Sandbox, wire_date


class GatewayTokens:
    """Issues and checks the bearer tokens of sandboxes' gateways.

    Args:
        clock: tokens live on the platform clock.
        identifiers: makes the tokens.
        lifetime: seconds a token is good for.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers, lifetime: float) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._lifetime = lifetime
        self._expiry: dict[str, dict[str, float]] = defaultdict(dict)

    def issue(self, sandbox: Sandbox, gateway_url: str) -> JsonObject:
        """Return a new `GatewayAuth` object for a sandbox."""
        now = self._clock.now()
        tokens = self._expiry[sandbox.id]
        for old in [token for token, expiry in tokens.items() if expiry <= now]:
            del tokens[old]
        token = self._identifiers.make("gwt_", 40)
        tokens[token] = now + self._lifetime
        return {
            "gateway_url": gateway_url,
            "user_ns": user_namespace(sandbox),
            "job_id": sandbox.job_id,
            "token": token,
            "expires_at": wire_date(self._clock.date(self._lifetime)),
        }

    def accepts(self, sandbox_id: str, token: str) -> bool:
        """Say whether a token opens this sandbox's gateway now."""
        return self._expiry.get(sandbox_id, {}).get(token, 0.0) > self._clock.now()

    def revoke(self, sandbox_id: str) -> None:
        """Drop all tokens of a sandbox."""
        self._expiry.pop(sandbox_id, None)


def user_namespace(sandbox: Sandbox) -> str:
    """Return the first path segment of a sandbox's gateway."""
    return "ns-" + sandbox.owner.user_id.removeprefix("usr_")
