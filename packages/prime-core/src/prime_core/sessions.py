"""Connections: one aiohttp session per event loop, its two pools, proxies, TLS.

The pools are semaphores of ours over one unlimited connector, so that a call waiting for a
connection surely was not sent, streams never starve short calls, and waiting is fair.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import sys
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.request import (  # type: ignore[attr-defined]  # one is missing in typeshed
    getproxies_environment,
    proxy_bypass_environment,
)

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.resolver import ThreadedResolver

from prime_core.errors import ConfigurationError
from prime_core.limits import Scope
from prime_core.operations import RateLimit, RateScope
from prime_core.outages import HostHealth
from prime_core.per_loop import PerLoop

try:
    import resource
except ImportError:  # Windows has no such limit for sockets
    resource = None  # type: ignore[assignment]

__all__ = ["LoopState", "LoopStates", "proxy_for"]

logger = logging.getLogger("prime_core")

KEEP_ALIVE = 15.0
DNS_CACHE = 300
# Descriptors kept back for the control pool's peers: files, pipes, other libraries' sockets.
DESCRIPTOR_RESERVE = 64

# Held until they are closed: the garbage collector would have aiohttp close them on whichever
# thread it runs on, while the loop's own thread may use them.
_open: set[aiohttp.BaseConnector] = set()


@dataclass
class LoopState:
    """All that belongs to one event loop: session, pools, rate-limit scopes, host health."""

    session: aiohttp.ClientSession
    control: asyncio.Semaphore
    stream: asyncio.Semaphore
    stream_places: int
    limits: Mapping[str, RateLimit | None]
    scopes: dict[str, Scope] = field(default_factory=dict)
    hosts: dict[str, HostHealth] = field(default_factory=dict)

    def scope(self, row: RateScope) -> Scope:
        scope = self.scopes.get(row.name)
        if scope is None:
            limit = self.limits.get(row.name, row.limit)
            scope = self.scopes[row.name] = Scope(limit)
        return scope

    def host(self, origin: str) -> HostHealth:
        health = self.hosts.get(origin)
        if health is None:
            health = self.hosts[origin] = HostHealth()
        return health


class LoopStates:
    """The states of one transport, by event loop."""

    def __init__(
        self,
        *,
        max_connections: int,
        limits: Mapping[str, RateLimit | None],
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self._max_connections = max_connections
        self._limits = limits
        self._ssl_context = ssl_context
        self._states = PerLoop(self._new, _dispose)

    def get(self) -> LoopState:
        """The running loop's state, made when first needed."""
        return self._states.get()

    def _new(self) -> LoopState:
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=KEEP_ALIVE,
            ttl_dns_cache=DNS_CACHE,
            resolver=_ExitSafeResolver(),
            socket_factory=_keepalive_socket,
            ssl=self._ssl_context if self._ssl_context is not None else True,
        )
        protocol = partial(_Protocol, asyncio.get_running_loop())
        connector._factory = protocol  # type: ignore[assignment]  # partial is invariant
        session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        )
        for left in list(_open):
            if left._loop.is_closed():
                _close_idle(left)
        _open.add(connector)
        # aiohttp would silently send GET and DELETE again after a dropped connection: then a
        # delete that was done answers 404 to what looks like a first attempt.
        session._retry_connection = False
        places = stream_places(self._max_connections)
        return LoopState(
            session=session,
            control=asyncio.Semaphore(self._max_connections),
            stream=asyncio.Semaphore(places),
            stream_places=places,
            limits=self._limits,
        )

    def want_streams(self, count: int) -> None:
        """Makes room for so many streams on this loop, as far as the system allows it."""
        raise_descriptor_limit(count + self._max_connections + DESCRIPTOR_RESERVE)
        state = self.get()
        for _ in range(stream_places(self._max_connections) - state.stream_places):
            state.stream_places += 1
            state.stream.release()

    async def aclose(self) -> None:
        """Closes every loop's session: this loop's here, another's on it if it runs."""
        here = asyncio.get_running_loop()
        for loop, state in self._states.pop_all():
            if loop is here:
                if state.session.connector is not None:
                    _open.discard(state.session.connector)
                await state.session.close()
            else:
                _dispose(loop, state)

    def dispose(self) -> None:
        """Closes every loop's session from anywhere, without waiting for it."""
        self._states.dispose()

    @property
    def open(self) -> bool:
        """Whether any session is open."""
        return bool(self._states)


def _dispose(loop: asyncio.AbstractEventLoop, state: LoopState) -> None:
    """Closes a session's connections without waiting, wherever its loop stands."""
    connector = state.session.connector
    state.session.detach()
    if connector is None:
        return
    if loop.is_running():
        with contextlib.suppress(RuntimeError):  # it was closed in this moment
            loop.call_soon_threadsafe(_close_idle, connector)
    else:
        _close_idle(connector)


def _close_idle(connector: aiohttp.BaseConnector) -> None:
    _open.discard(connector)
    connector._force_close = True  # what is in flight is not kept afterwards
    connections = [protocol for pool in connector._conns.values() for protocol, _ in pool]
    connector._conns.clear()
    for protocol in connections:
        transport: Any = protocol.transport
        with contextlib.suppress(RuntimeError):  # of a loop that is closed
            protocol.close()
        if protocol._loop.is_closed():  # it will never get round to closing the socket
            inner = getattr(transport, "_ssl_protocol", None)
            plain = getattr(inner, "_transport", None) or transport
            if getattr(plain, "_sock", None) is not None:
                plain._sock.close()
                plain._sock = None


class _Protocol(ResponseHandler):
    """Tells a body's reader at once that the body can't be parsed any further, or is closed.

    aiohttp tells only those who wait for the head of an answer: after a bad chunk further on, or
    when the client is closed, the body's reader would wait for its deadline, which for a
    command's stream may be hours, or for ever.

    Its limit of silence is kept by one timer that looks again, not by a new one a packet, which
    would cost as much as what is done with the packet of a stream of events.
    """

    _silent_until = 0.0
    _timer_limit: float | None = None  # what the timer was set for

    def _reschedule_timeout(self) -> None:
        limit = self._read_timeout
        if limit:
            self._silent_until = self._loop.time() + limit
            if limit == self._timer_limit and self._read_timeout_handle is not None:
                return
            self._timer_limit = limit
        super()._reschedule_timeout()

    def _on_read_timeout(self) -> None:
        self._read_timeout_handle = None
        if self._loop.time() < self._silent_until:
            self._read_timeout_handle = self._loop.call_at(
                self._silent_until, self._on_read_timeout
            )
        else:
            super()._on_read_timeout()

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        super().set_exception(exc, *cause)
        if isinstance(exc, HttpProcessingError):
            _fail(self._payload, aiohttp.ClientPayloadError(exc.message))

    def close(self) -> None:
        body = self._payload
        super().close()
        _fail(body, aiohttp.ClientConnectionError("The client was closed."))

    def abort(self) -> None:
        body = self._payload
        super().abort()
        _fail(body, aiohttp.ClientConnectionError("The client was closed."))


def _fail(body: aiohttp.StreamReader | None, error: aiohttp.ClientError) -> None:
    if body is not None and not body.is_eof() and body.exception() is None:
        body.set_exception(error)


def _keepalive_socket(address: tuple[object, ...]) -> socket.socket:
    """A socket with TCP keep-alive, so that a connection a NAT dropped is noticed."""
    family, kind, protocol, _, _ = address
    sock = socket.socket(family=family, type=kind, proto=protocol)  # type: ignore[arg-type]
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
    return sock


class _ExitSafeResolver(ThreadedResolver):
    """Resolves on the thread pool, or in place when the interpreter's exit has closed it.

    The clean-up at exit still has names to resolve; nothing else runs on its loop then.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        try:
            return await super().resolve(host, port, family)
        except RuntimeError:
            infos = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
            return [
                aiohttp.abc.ResolveResult(
                    hostname=host,
                    host=str(address[0]),
                    port=int(address[1]),
                    family=kind,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST,
                )
                for kind, _, protocol, _, address in infos
            ]


def stream_places(max_connections: int) -> int:
    """How many long-lived streams the descriptor limit leaves room for."""
    if resource is None:
        return 8_192
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 65_536
    return max(16, soft - max_connections - DESCRIPTOR_RESERVE)


def raise_descriptor_limit(wanted: int) -> None:
    """Raises the process's soft limit of descriptors towards the hard one, and says so."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if reachable > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
        except (OSError, ValueError):  # macOS has a limit of its own below an infinite one
            reachable = soft
    if reachable < wanted:
        logger.warning(
            "The descriptor limit of %d leaves fewer connections than asked for; some work "
            "will wait for others. Raise it with ulimit -n %d.",
            reachable,
            wanted,
        )
    else:
        logger.info("Raised the descriptor limit from %d to %d.", soft, reachable)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL, minding NO_PROXY, or None.

    Raises:
        ConfigurationError: for a proxy that is not an HTTP one.
    """
    parts = urllib.parse.urlsplit(url)
    proxies = getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    where = parts.netloc.rpartition("@")[2]
    if not proxy or proxy_bypass_environment(where, proxies):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    scheme = urllib.parse.urlsplit(proxy).scheme
    if scheme not in ("http", "https"):
        raise ConfigurationError(
            f"The environment names a {scheme} proxy for {parts.hostname}; only HTTP proxies "
            "work here. Set NO_PROXY for this host, or an HTTP proxy."
        )
    return proxy
