"""The client that the packages share: one account, one set of connections."""

from __future__ import annotations

import json as jsonlib
import ssl
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeAlias

from typing_extensions import Self

from prime_core.config import Config
from prime_core.operations import RateLimit, unnamed_operation
from prime_core.reaper import reaper
from prime_core.transport import AsyncTransport, TransportSettings

__all__ = ["AsyncAPIClient"]

JSONObject: TypeAlias = dict[str, Any]

_SAFE_METHODS = frozenset({"GET", "PUT", "DELETE"})


class AsyncAPIClient:
    """One account's connections to the platform, shared by the clients that are given it.

    Each client makes its own when it is given none. It works on any number of event loops,
    one after the other or at once, and in forked children; it pickles as its configuration,
    without the key unless ``config`` is a portable one.

    Follows the documented page "sandboxes/sdk".

    Args:
        api_key: the API key; by default the environment's, then the configuration file's.
        require_auth: whether a call without a key is refused before it is sent.
        user_agent: ``<name>/<version>`` to go by.
        config: a ready configuration, in place of ``api_key``.
        timeout: seconds for a whole call, retries included, above 0. Not counted are waits that
            a refusal asks for, which ``max_throttle_wait`` bounds, and those for a rate limit's
            turn, which ``queue_timeout`` bounds.
        queue_timeout: seconds that a call may wait for a rate limit's turn, above 0.
        max_throttle_wait: seconds that a call may wait in all because the platform answered
            429, or 503 with a ``Retry-After``.
        max_connections: connections for short calls, at least 1. Streams don't use them.
        limits: rate limits by scope name, over the documented ones, such as
            ``{"sandbox-create": None}``, which switches that one off.
        ssl_context: for a private CA; the variable ``SSL_CERT_FILE`` works too.

    Raises:
        ConfigurationError: the configuration can't be used, or the proxy that it names.
        ValueError: a number out of its range.
    """

    def __init__(
        self,
        api_key: str | None = None,
        require_auth: bool = True,
        user_agent: str | None = None,
        *,
        config: Config | None = None,
        timeout: float = 60.0,
        queue_timeout: float = 3600.0,
        max_throttle_wait: float = 120.0,
        max_connections: int = 128,
        limits: Mapping[str, RateLimit | None] | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if config is not None and api_key is not None:
            raise ValueError("pass api_key or config, not both")
        self.config: Config = config if config is not None else Config(api_key)
        settings = TransportSettings(
            user_agent=user_agent or TransportSettings.user_agent,
            require_auth=require_auth,
            timeout=timeout,
            queue_timeout=queue_timeout,
            max_throttle_wait=max_throttle_wait,
            max_connections=max_connections,
            limits=dict(limits or {}),
            ssl_context=ssl_context,
        )
        self._transport = AsyncTransport(self.config, settings)
        # The clients that use these connections; the last to close closes them.
        self._users: weakref.WeakSet[object] = weakref.WeakSet()

    def _share(self, user: object) -> AsyncTransport:
        self._users.add(user)
        return self._transport

    async def _release(self, user: object) -> None:
        self._users.discard(user)
        if self._users:
            await reaper.drain(self._transport)
        else:
            await self.aclose()

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.config, self._transport.settings)

    @property
    def api_key(self) -> str:
        """The API key in use; empty when there is none."""
        return self.config.api_key

    @property
    def require_auth(self) -> bool:
        """Whether a call without a key is refused before it is sent."""
        return self._transport.settings.require_auth

    @property
    def base_url(self) -> str:
        """The control plane's URL, without ``/api/v1``."""
        return self.config.base_url

    @property
    def throttled(self) -> int:
        """How many answers so far refused a call because of a rate limit."""
        return self._transport.throttled

    async def request(
        self,
        method: str,
        endpoint: str,
        params: Mapping[str, str | int | bool | list[str] | None] | None = None,
        json: JSONObject | None = None,
        timeout: float | None = None,
        idempotent_post: bool = False,
    ) -> JSONObject:
        """Calls a control-plane route that has no method of its own.

        Args:
            method: GET, POST, PUT, PATCH or DELETE.
            endpoint: the path below ``/api/v1``, percent-encoded, such as ``/user/whoami``.
            params: query parameters; None leaves one out, a list repeats its key.
            json: the request's JSON object.
            timeout: seconds for the whole call, over the client's; likewise without the waits
                that a refusal asks for.
            idempotent_post: whether a POST may be sent again when it may have arrived.

        Returns:
            The answer's JSON object; an empty one for an empty answer.

        Raises:
            APIError: one of its subclasses says what failed.
            ConfigurationError: without an API key.
            ValueError: an unknown method, or an endpoint that is no encoded path.
        """
        verb = method.upper()
        if verb not in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            raise ValueError(f"method is GET, POST, PUT, PATCH or DELETE, not {method!r}")
        if "?" in endpoint and params:
            raise ValueError(
                f"the query stands in params or in the endpoint {endpoint!r}, not both"
            )
        repeatable = verb in _SAFE_METHODS or (verb == "POST" and idempotent_post)
        operation = unnamed_operation(verb, endpoint, "safe" if repeatable else "unsafe")  # type: ignore[arg-type]
        body = None if json is None else jsonlib.dumps(json).encode()
        return await self._transport.request(operation, query=params, body=body, timeout=timeout)

    async def get(
        self,
        endpoint: str,
        params: Mapping[str, str | int | bool | list[str] | None] | None = None,
    ) -> JSONObject:
        """Reads a route; see `request`."""
        return await self.request("GET", endpoint, params)

    async def post(self, endpoint: str, json: JSONObject | None = None) -> JSONObject:
        """Posts to a route, once unless it surely did not arrive; see `request`."""
        return await self.request("POST", endpoint, json=json)

    async def patch(self, endpoint: str, json: JSONObject | None = None) -> JSONObject:
        """Patches a route, once unless it surely did not arrive; see `request`."""
        return await self.request("PATCH", endpoint, json=json)

    async def delete(self, endpoint: str) -> JSONObject:
        """Deletes at a route; see `request`."""
        return await self.request("DELETE", endpoint)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Waits, at most 15 s, for clean-up under way, then closes the connections.

        A later call opens new ones.
        """
        await reaper.drain(self._transport)
        await self._transport.aclose()

    def __repr__(self) -> str:
        return f"AsyncAPIClient({self.config!r})"


def _restore(
    cls: type[AsyncAPIClient], config: Config, settings: TransportSettings
) -> AsyncAPIClient:
    return cls(config=config, **vars(settings))
