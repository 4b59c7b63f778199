"""The gateway of a sandbox: its tokens, and calls that carry them."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from prime_core.calls import Body, Call, Reader, Target
from prime_core.connect import unary_headers
from prime_core.encoding import Query
from prime_core.errors import APIResponseError, UnauthorizedError
from prime_core.operations import Operation
from prime_core.per_loop import PerLoop
from prime_core.single_flight import SingleFlight
from prime_core.transport import AsyncTransport
from prime_core.uploads import Upload
from prime_sandboxes.models import GatewayAuth
from prime_sandboxes.operations import CREATE_SANDBOX_AUTH_TOKEN

__all__ = ["Access", "Gateway"]

T = TypeVar("T")
M = TypeVar("M", bound=Message)

# A token is renewed so many seconds before its end.
RENEW_EARLY = 60.0


class Access:
    """A token, and what follows from it once it is used; many that come with a create never are.

    Attributes:
        user_ns, job_id: the path's parameters, which name the sandbox.
        renew_at: when to fetch another, in seconds since the epoch.
    """

    # Slots, and no more than texts in them: one is kept for each sandbox that was created.
    __slots__ = ("_target", "_token", "_url", "job_id", "renew_at", "user_ns")

    def __init__(self, auth: GatewayAuth) -> None:
        self._url = auth.gateway_url
        self._token = auth.token.get_secret_value()
        self._target: Target | None = None
        self.user_ns = auth.user_ns
        self.job_id = auth.job_id
        self.renew_at = auth.expires_at.timestamp() - RENEW_EARLY

    def target(self, user_agent: str) -> Target:
        """The host, with the headers that only it may see."""
        if self._target is None:
            headers = {"User-Agent": user_agent, "Authorization": f"Bearer {self._token}"}
            self._target = Target.of(self._url.rstrip("/"), headers)
        return self._target


class Gateway:
    """Calls to the gateways of a client's sandboxes.

    Tokens are kept in memory only, one refresh at a time is under way for a sandbox, and
    a call that is refused with 401 is made once more with a new token.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._access: dict[str, Access] = {}
        self._lock = threading.Lock()  # a fleet's deletes forget tokens on the loop thread
        self._refresh = PerLoop(lambda: SingleFlight(self._fetch))

    @property
    def transport(self) -> AsyncTransport:
        """The connections that its calls travel over."""
        return self._transport

    def seed(self, sandbox_id: str, auth: GatewayAuth) -> None:
        """Keeps a token that came with another answer."""
        self._keep(sandbox_id, auth)

    def forget(self, sandbox_id: str) -> None:
        """Drops the token of a sandbox."""
        with self._lock:
            self._access.pop(sandbox_id, None)

    def clear(self) -> None:
        """Drops every token."""
        self._access.clear()

    def _keep(self, sandbox_id: str, auth: GatewayAuth) -> Access:
        access = Access(auth)
        now = time.time()
        with self._lock:
            self._access.pop(sandbox_id, None)
            # Tokens stand in the order of their issue, which is that of their ends.
            while self._access and next(iter(self._access.values())).renew_at <= now:
                del self._access[next(iter(self._access))]
            self._access[sandbox_id] = access
        return access

    async def _fetch(self, sandbox_id: str) -> Access:
        auth = await self._transport.request(
            CREATE_SANDBOX_AUTH_TOKEN, GatewayAuth, path={"sandbox_id": sandbox_id}
        )
        return self._keep(sandbox_id, auth)

    async def authorized(
        self,
        sandbox_id: str,
        call: Callable[[Access], Awaitable[T]],
        body: bytes | Upload | None = None,
    ) -> T:
        """Makes a call with a valid token; a token refused with 401 is replaced once.

        Args:
            sandbox_id: the sandbox.
            call: makes the call; called again after an `UnauthorizedError`.
            body: what it sends: one that is spent can't be sent with another token.
        """
        access = self._access.get(sandbox_id)
        if access is None or access.renew_at <= time.time():
            access = await self._refresh.get().do(sandbox_id)
        try:
            return await call(access)
        except UnauthorizedError:
            if self._access.get(sandbox_id) is access:
                self.forget(sandbox_id)
            if isinstance(body, Upload) and body.spent:
                raise
        access = self._access.get(sandbox_id) or await self._refresh.get().do(sandbox_id)
        return await call(access)

    def prepare(
        self,
        access: Access,
        operation: Operation,
        read: Reader[T] | None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | Upload | None = None,
        timeout: float | None,
        idle: float | None = None,
    ) -> Call[T]:
        """Puts a call together, with the arguments of `AsyncTransport.prepare_elsewhere`."""
        return self._transport.prepare_elsewhere(
            operation,
            read,
            access.target(self._transport.user_agent),
            path={"user_ns": access.user_ns, "job_id": access.job_id},
            query=query,
            headers=headers or {},
            body=body,
            timeout=timeout,
            idle=idle,
        )

    async def perform(self, call: Call[T]) -> T:
        """Sends a call that was put together."""
        return await self._transport.perform(call)

    async def request(
        self,
        sandbox_id: str,
        operation: Operation,
        read: Reader[T] | None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | Upload | None = None,
        timeout: float | None,
        idle: float | None = None,
    ) -> T:
        """Makes a call to a sandbox's gateway, with the arguments of `prepare`.

        Raises:
            APIError: it failed.
        """

        async def send(access: Access) -> T:
            call = self.prepare(
                access,
                operation,
                read,
                query=query,
                headers=headers,
                body=body,
                timeout=timeout,
                idle=idle,
            )
            return await self._transport.perform(call)

        return await self.authorized(sandbox_id, send, body)

    async def unary(
        self,
        sandbox_id: str,
        operation: Operation,
        message: Message,
        response: type[M],
        *,
        timeout: float,
    ) -> M:
        """Calls a method of a Connect service that takes and returns one message.

        Args:
            sandbox_id: the sandbox.
            operation: the method's row.
            message: what it takes; the same bytes are sent by every attempt.
            response: what it returns.
            timeout: seconds for the whole call.

        Raises:
            APIError: it failed, with the Connect code as its ``code``.
        """
        return await self.request(
            sandbox_id,
            operation,
            _message_reader(response),
            headers=unary_headers(round(timeout * 1000)),
            body=message.SerializeToString(),
            timeout=timeout,
        )


def _message_reader(response: type[M]) -> Reader[M]:
    async def read(status: int, body: Body) -> M:
        try:
            return response.FromString(await body.read())
        except DecodeError as error:
            raise APIResponseError(f"The gateway's answer can't be decoded: {error}") from None

    return read
