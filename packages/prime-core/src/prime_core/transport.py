"""How a call travels: prepared from its `Operation`, sent past the gates, retried, decoded.

The first attempt runs bare; tenacity is entered only after a failure, because its loop costs
three times what pydantic needs to read an answer.
"""

from __future__ import annotations

import asyncio
import math
import platform
import re
import ssl
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from pydantic import BaseModel
from tenacity import AsyncRetrying, retry_if_result
from yarl import URL

from prime_core.attempts import attempt
from prime_core.calls import Call, Headers, Reader, Target, new_request_id
from prime_core.config import Config
from prime_core.decoding import JSONObject, NoBody, model_reader, read_object
from prime_core.encoding import Query, join_url, splice
from prime_core.errors import ConfigurationError
from prime_core.failures import finished
from prime_core.operations import Operation, RateLimit
from prime_core.outcomes import Failure, Outcome
from prime_core.retries import MAX_ATTEMPTS, Retries, RetryQuota, ThrottleLog
from prime_core.sessions import LoopState, LoopStates, proxy_for
from prime_core.uploads import Upload

__all__ = ["AsyncTransport", "TransportSettings"]

_HEADER_TEXT = re.compile(r"[\x21-\x7e]+")

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class TransportSettings:
    """How a client's calls travel.

    Attributes:
        user_agent: ``<package>/<version>`` of the client.
        require_auth: whether a call without an API key is refused before it is sent.
        timeout: seconds for a whole call, retries included; waits that the platform's rate
            limits ask for are not counted.
        queue_timeout: seconds that a call may wait for the rate limit's turn.
        max_throttle_wait: seconds that a call may wait because the platform refused it
            with 429, in all.
        max_connections: connections for short calls; streams have a pool of their own.
        limits: rate limits by scope name, over the documented ones; None switches one off.
        ssl_context: for a private CA; ``SSL_CERT_FILE`` works too.
    """

    user_agent: str = "prime-core/0.1.0"
    require_auth: bool = True
    timeout: float = 60.0
    queue_timeout: float = 3600.0
    max_throttle_wait: float = 120.0
    max_connections: int = 128
    limits: Mapping[str, RateLimit | None] = field(default_factory=dict)
    ssl_context: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        for name in ("timeout", "queue_timeout", "max_throttle_wait", "max_connections"):
            value = getattr(self, name)
            _check_positive(name, value)


class AsyncTransport:
    """The core of every client: one configuration, one session per event loop, one quota."""

    def __init__(self, config: Config, settings: TransportSettings) -> None:
        self.config = config
        self.settings = settings
        self.user_agent = f"{settings.user_agent} python/{platform.python_version()}"
        self._quota = RetryQuota()
        self._throttle_log = ThrottleLog()
        self._states = LoopStates(
            max_connections=settings.max_connections,
            limits=settings.limits,
            ssl_context=settings.ssl_context,
        )
        headers = self._headers(config.api_key, config.team_id)
        self._services = {
            "control": Target.of(config.base_url, headers),
            "traces": Target.of(config.traces_url, headers),
            "inference": Target.of(config.inference_url, headers),
        }
        proxy_for(config.base_url)  # one that can't be used is refused here, not at the first call
        self._static_urls: dict[str, URL] = {}

    def _headers(self, api_key: str, team_id: str | None) -> Headers:
        headers = Headers({"User-Agent": self.user_agent, "Accept": "application/json"})
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        if team_id:
            headers["X-Prime-Team-ID"] = team_id
        return headers

    @overload
    async def request(
        self,
        operation: Operation,
        response: type[M],
        *,
        path: Mapping[str, str] | None = ...,
        query: Query | None = ...,
        body: bytes | None = ...,
        key: str | None = ...,
        team: str | None = ...,
        timeout: float | None = ...,
    ) -> M: ...

    @overload
    async def request(
        self,
        operation: Operation,
        response: None = ...,
        *,
        path: Mapping[str, str] | None = ...,
        query: Query | None = ...,
        body: bytes | None = ...,
        key: str | None = ...,
        team: str | None = ...,
        timeout: float | None = ...,
    ) -> JSONObject: ...

    async def request(
        self,
        operation: Operation,
        response: type[M] | None = None,
        *,
        path: Mapping[str, str] | None = None,
        query: Query | None = None,
        body: bytes | None = None,
        key: str | None = None,
        team: str | None = None,
        timeout: float | None = None,
    ) -> M | JSONObject:
        """Sends a call to one of the platform's services and reads its answer.

        Args:
            operation: the row of the route.
            response: model of the answer; without one it is any JSON object, and an empty
                answer is an empty object.
            path: values of the path's parameters, unencoded.
            query: query parameters; None leaves one out, a sequence repeats its key.
            body: a JSON object's bytes.
            key: idempotency key, for a ``keyed`` row.
            team: the caller's team for this call; the configured one by default.
            timeout: seconds for this call, over the client's.

        Raises:
            APIError: one of its subclasses says what failed.
            ConfigurationError: without an API key; nothing was sent.
        """
        read = read_object if response is None else model_reader(response)
        call: Call[Any] = self.prepare(operation, read, path, query, body, key, team, timeout)
        result: M | JSONObject = await self.perform(call)
        return result

    def prepare(
        self,
        operation: Operation,
        read: Reader[T] | None,
        path: Mapping[str, str] | None = None,
        query: Query | None = None,
        body: bytes | Upload | None = None,
        key: str | None = None,
        team: str | None = None,
        timeout: float | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        idle: float | None = None,
    ) -> Call[T]:
        """Puts a call to one of the platform's services together without sending it.

        Args:
            operation: the row of the route.
            read: makes the result of a success; without it the result is an `OpenStream`,
                which the caller reads and closes.
            path: values of the path's parameters, unencoded.
            query: query parameters.
            body: a JSON object's bytes, or what is read while it is sent, whose content type
                stands in ``headers``.
            key: idempotency key, for a ``keyed`` row.
            team: the caller's team for this call; the configured one by default.
            timeout: seconds for this call, over the client's; with ``idle`` there is no limit
                by default.
            headers: further headers.
            idle: seconds without progress after which the call is given up.
        """
        if self.settings.require_auth and not (self.config.api_key or operation.keyless):
            raise ConfigurationError(
                "No API key: set PRIME_API_KEY, pass api_key=, or log in with the CLI."
            )
        if timeout is not None:
            _check_positive("timeout", timeout)
        if idle is not None:
            _check_positive("idle", idle)
        if team and not _HEADER_TEXT.fullmatch(team):
            raise ValueError(f"team_id is an id of ASCII characters without blanks, not {team!r}")
        team = self.config.team_id if team is None else team or None
        if team and operation.team == "query":
            query = {operation.team_name: team, **(query or {})}
        fields: dict[str, str] = {}
        if team and operation.team == "body":
            fields[operation.team_name] = team
        if key is not None and operation.key_field is not None:
            fields[operation.key_field] = key
        if fields:
            assert not isinstance(body, Upload)
            body = splice(body or b"{}", fields)
        target = self._services[operation.service]
        named = Headers(target.headers)
        if team != self.config.team_id:
            named.pop("X-Prime-Team-ID", None)
            if team:
                named["X-Prime-Team-ID"] = team
        if key is not None and operation.key_header is not None:
            named[operation.key_header] = key
        if isinstance(body, bytes):
            named["Content-Type"] = "application/json"
        if headers is not None:
            named.update(headers)
        if timeout is None and idle is None:
            timeout = self.settings.timeout
        url = self._url(operation, path, query)
        return self._call(operation, read, target, url, named, body, timeout, idle)

    def prepare_create(
        self, operation: Operation, response: type[M], *, body: bytes, key: str, team: str | None
    ) -> Call[M]:
        """Puts a keyed create together without sending it."""
        return self.prepare(operation, model_reader(response), body=body, key=key, team=team)

    def prepare_elsewhere(
        self,
        operation: Operation,
        read: Reader[T] | None,
        target: Target,
        *,
        path: Mapping[str, str] | None = None,
        query: Query | None = None,
        headers: Mapping[str, str],
        body: bytes | Upload | None = None,
        timeout: float | None,
        idle: float | None = None,
    ) -> Call[T]:
        """Puts a call to another host than the control plane together, such as a gateway.

        The host sees the target's headers only: never the API key, never the team.

        Args:
            operation: the row of the route.
            read: makes the result of a success; without it the result is an `OpenStream`,
                which the caller reads and closes.
            target: the host.
            path: values of the path's parameters, unencoded.
            query: query parameters.
            headers: further headers.
            body: what is sent; an `Upload` is read while it is sent.
            timeout: seconds for the whole call; None, only with ``idle``, sets no limit.
            idle: seconds without progress after which the call is given up.
        """
        named = Headers({**target.headers, **headers})
        url = join_url(target.base_url, operation, path, query)
        return self._call(operation, read, target, url, named, body, timeout, idle)

    def _call(
        self,
        operation: Operation,
        read: Reader[T] | None,
        target: Target,
        url: URL,
        headers: Headers,
        body: bytes | Upload | None,
        timeout: float | None,
        idle: float | None,
    ) -> Call[T]:
        request_id = new_request_id()
        headers["X-Request-Id"] = request_id
        if isinstance(body, Upload) and body.size is not None:
            headers["Content-Length"] = str(body.size)
        return Call(
            operation=operation,
            target=target,
            url=url,
            headers=headers,
            body=body,
            read=read,
            timeout=timeout,
            queue_timeout=self.settings.queue_timeout,
            request_id=request_id,
            idle=idle,
        )

    async def perform(self, call: Call[T]) -> T:
        """Sends a prepared call, retries it as its row allows, and returns its result.

        Raises:
            APIError: the last real failure, with attempts and elapsed time.
        """
        state = self._states.get()
        result = await attempt(call, state)
        if isinstance(result, Failure):
            result = await self._try_again(call, result, state)
            if isinstance(result, Failure):
                if isinstance(call.body, Upload) and call.body.failure is not None:
                    raise call.body.failure  # the caller's own source
                if _deleted_before(call, result):
                    assert call.read is not None  # no DELETE stays open
                    return await call.read(204, NoBody())
                try:
                    raise finished(call, result)
                finally:
                    # A task in pure Python (nest_asyncio's, for one) resumes us within its
                    # handler of the transport's exception, whose frames hold the key.
                    result.error.__context__ = None
        return result

    async def _try_again(self, call: Call[T], failure: Failure, state: LoopState) -> T | Failure:
        loop = asyncio.get_running_loop()
        budgets = Retries(
            call.operation,
            self._quota,
            self._throttle_log,
            self.settings.max_throttle_wait,
            call.max_attempts or MAX_ATTEMPTS,
            counted=call.max_attempts is not None,
            limited=call.timeout is not None,
            # Of a call that is made on and on by its caller, what came before counts too.
            transient=call.ambiguous - (failure.outcome is Outcome.AMBIGUOUS),
        )
        first: Failure | None = failure

        async def again() -> T | Failure:
            nonlocal first, state
            if first is not None:  # tenacity starts from the failure that we have already
                known, first = first, None
                return known
            state = self._states.get()  # a new one when the client was closed meanwhile
            return await attempt(call, state)

        def granted(result: T | Failure) -> bool:
            if isinstance(result, Failure) and result.throttled and not call.patient:
                self._throttle_log.count += 1
                return False
            return (
                isinstance(result, Failure)
                and not call.spent
                and budgets.grant(
                    result,
                    state.scope(call.operation.scope),
                    state.host(call.target.origin),
                    call.deadline - loop.time(),
                    call.throttled,
                )
            )

        retrying = AsyncRetrying(retry=retry_if_result(granted), wait=lambda _: budgets.delay)
        result: T | Failure = await retrying(again)
        if not isinstance(result, Failure):
            budgets.succeeded()
        return result

    def _url(
        self, operation: Operation, path: Mapping[str, str] | None, query: Query | None
    ) -> URL:
        base_url = self._services[operation.service].base_url
        # The address of this service holds it: it is handed to other programs too.
        root = "/api/v1" if operation.service == "inference" else ""
        if path is None and query is None and operation.named:
            url = self._static_urls.get(operation.id)
            if url is None:
                url = join_url(base_url, operation, None, None, root)
                self._static_urls[operation.id] = url
            return url
        return join_url(base_url, operation, path, query, root)

    def want_streams(self, count: int) -> LoopState:
        """Makes room for so many streams on this loop, as far as the system allows it.

        Returns:
            What this loop has here, whose session closes with the client.
        """
        self._states.want_streams(count)
        return self._states.get()

    @property
    def throttled(self) -> int:
        """How many answers refused a call because of a rate limit."""
        return self._throttle_log.count

    async def aclose(self) -> None:
        """Closes the connections of every event loop."""
        await self._states.aclose()

    def __del__(self) -> None:
        states = getattr(self, "_states", None)
        if states is not None and states.open:
            warnings.warn(
                f"unclosed Prime client ({self.user_agent}); use `async with` or `aclose()`",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )
            states.dispose()


def _check_positive(name: str, value: float) -> None:
    """A finite number above 0; a deadline of NaN or infinity would never come."""
    if not (isinstance(value, (int, float)) and 0 < value < math.inf):
        raise ValueError(f"{name} is a number above 0, not {value!r}")


def _deleted_before(call: Call[Any], failure: Failure) -> bool:
    """Whether a DELETE finds nothing because an attempt without an answer deleted it."""
    operation = call.operation
    return (
        operation.method == "DELETE"
        and operation.safety == "safe"
        and failure.error.status_code == 404
        and call.ambiguous > 0
    )
