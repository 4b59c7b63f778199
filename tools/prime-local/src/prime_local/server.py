"""The network side: from an HTTP request to a handler and back, over one port."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from email.utils import format_datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from prime_local import control, jobs, local_routes
from prime_local.account import routes as account_routes
from prime_local.availability import routes as availability_routes
from prime_local.billing import routes as billing_routes
from prime_local.calls import GATEWAY_PREFIX, Call, Handler, Reply, bearer, http_response
from prime_local.checkpoints import routes as checkpoint_routes
from prime_local.contract import Operation, Problem, RouteMatch
from prime_local.contract.document import CONTROL, GATEWAY, INFERENCE, STORE, TRACES, JsonObject
from prime_local.contract.validation import QueryValues
from prime_local.core import PlatformCore
from prime_local.disks import routes as disk_routes
from prime_local.environments import routes as environment_routes
from prime_local.environments import store as hub_store
from prime_local.errors import PlatformError, invalid, not_simulated
from prime_local.evaluations import routes as evaluation_routes
from prime_local.factory import routes as factory_routes
from prime_local.faults import FaultRule
from prime_local.files import routes as file_routes
from prime_local.gateway import routes as gateway_routes
from prime_local.images import routes as image_routes
from prime_local.inference import routes as inference_routes
from prime_local.inference.errors import error_body
from prime_local.inference.receiving import read_json
from prime_local.login import routes as login_routes
from prime_local.networks import routes as network_routes
from prime_local.noise import NOISE_HEADERS, add_noise
from prime_local.pods import routes as pod_routes
from prime_local.s3 import routes as s3_routes
from prime_local.s3.operations import PREFIX as S3_PREFIX
from prime_local.slurm import routes as slurm_routes
from prime_local.spoiling import abort, reset, send_injected, send_spoiled
from prime_local.ssh.routes import SshRoutes
from prime_local.traces import routes as trace_routes
from prime_local.training import routes as training_routes
from prime_local.training import sample_store
from prime_local.training.capacity import routes as capacity_routes
from prime_local.training.outputs import routes as output_routes
from prime_local.training.runs import routes as run_routes
from prime_local.training.volumes import routes as volume_routes

logger = logging.getLogger("prime_local")

TRACES_PREFIX, INFERENCE_PREFIX = "/traces", "/inference"
_SERVICES = (
    (GATEWAY_PREFIX + "/", GATEWAY),
    ("/store/", STORE),
    (TRACES_PREFIX + "/", TRACES),
    (INFERENCE_PREFIX + "/", INFERENCE),
    ("/api/", CONTROL),
)
_BODY_LIMIT_BYTES = 64 * 1024 * 1024
_BACKLOG = 4096
_SHUTDOWN_SECONDS = 0.5
# aiohttp has typed keys since 3.14, and warns of others.
_Process = Callable[[FaultRule | None], Awaitable[Reply | web.StreamResponse]]
_INFERENCE_ID: Any = getattr(web, "RequestKey", lambda name, kind: name)("inference_id", str)


class PlatformServer:
    """Serves a platform on one port.

    Args:
        core: the platform.
        host: address to listen on.
        port: port to listen on; 0 picks a free one.
    """

    def __init__(self, core: PlatformCore, host: str, port: int) -> None:
        self._core = core
        self._host = host
        self._port = port
        self._ssh = SshRoutes(core, host)
        self._handlers: dict[str, Handler] = {
            **control.HANDLERS,
            **account_routes.HANDLERS,
            **availability_routes.HANDLERS,
            **billing_routes.HANDLERS,
            **disk_routes.HANDLERS,
            **factory_routes.HANDLERS,
            **login_routes.HANDLERS,
            **pod_routes.HANDLERS,
            **slurm_routes.HANDLERS,
            **checkpoint_routes.HANDLERS,
            **image_routes.HANDLERS,
            **gateway_routes.HANDLERS,
            **inference_routes.HANDLERS,
            **jobs.HANDLERS,
            **network_routes.HANDLERS,
            **file_routes.HANDLERS,
            **trace_routes.HANDLERS,
            **environment_routes.HANDLERS,
            **evaluation_routes.HANDLERS,
            **capacity_routes.HANDLERS,
            **run_routes.HANDLERS,
            **output_routes.HANDLERS,
            **training_routes.HANDLERS,
            **volume_routes.HANDLERS,
            **self._ssh.handlers,
        }
        app = web.Application(client_max_size=_BODY_LIMIT_BYTES)
        app.router.add_route("*", "/{path:(?s:.*)}", self._serve)
        app.on_response_prepare.append(self._set_headers)
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        self._site: web.TCPSite | None = None
        self._stopping = False

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address cannot be bound.
        """
        await self._runner.setup()
        await self._listen()
        self._port = self._runner.addresses[0][1]

    def stop(self) -> None:
        """From now on answer every request with 503, so that nothing new begins."""
        self._stopping = True

    async def close(self) -> None:
        """Stop listening; streams that are still open are cut after 0.5 s."""
        self.stop()
        await self._ssh.close()
        await self._runner.cleanup()

    async def outage(self, seconds: float, spared: asyncio.BaseTransport | None = None) -> None:
        """Break every connection and refuse new ones for some time; sandboxes live on.

        Args:
            seconds: how long, in real time.
            spared: the connection that asked for it over HTTP.
        """
        assert self._site is not None
        assert self._runner.server is not None
        await self._site.stop()
        for connection in list(self._runner.server.connections):
            transport = connection.transport
            if transport is not None and transport is not spared:
                abort(transport)
        await asyncio.sleep(seconds)
        if not self._stopping:
            await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, self._host, self._port, backlog=_BACKLOG)
        await self._site.start()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if path.startswith(INFERENCE_PREFIX + "/"):
            request[_INFERENCE_ID] = self._core.identifiers.make("inf_")
        try:
            if self._stopping:
                raise _stopping()
            if path.startswith("/_local/") or path in local_routes.DOCUMENTS:
                return http_response(await local_routes.serve(self._core, request, self.outage))
            if path.startswith(hub_store.PREFIX):
                return http_response(await hub_store.serve(self._core, request))
            if path.startswith(S3_PREFIX + "/"):
                return await self._serve_s3(request)
            if path.startswith(sample_store.PREFIX):
                return http_response(await sample_store.serve(self._core, request))
            operation, match = self._find(request.method, path)
        except PlatformError as error:
            return http_response(self._error_reply(error, request))
        return await self._counted(
            request, operation.id, partial(self._process, request, operation, match), _injected
        )

    async def _serve_s3(self, request: web.Request) -> web.StreamResponse:
        operation = s3_routes.find(request)
        process = partial(s3_routes.answer, self._core, request, operation)
        if operation is None:
            return _response(await process(None))
        injected = partial(s3_routes.refusal, request)
        return await self._counted(request, operation.name, process, injected)

    async def _counted(
        self,
        request: web.Request,
        name: str,
        process: _Process,
        injected: Callable[[int], Reply],
    ) -> web.StreamResponse:
        """Process a request to an operation, note it, and spoil it where a fault rule says so."""
        ledger = self._core.ledger
        ledger.request(name)
        if self._core.settings.latency:
            await asyncio.sleep(self._core.settings.latency)
        rule = self._core.faults.choose(name, request.rel_url.raw_path)
        if rule is None:
            response = _response(await process(None))
        else:
            response = await _process_spoiled(request, process, rule, injected)
        # An answer that a fault cut off is not counted: nobody could read its status.
        if request.transport is not None and not request.transport.is_closing():
            ledger.response(response.status)
        return response

    def _find(self, method: str, path: str) -> tuple[Operation, RouteMatch]:
        for prefix, service in _SERVICES:
            if path.startswith(prefix):
                rest = path if service == CONTROL else path[len(prefix) - 1 :]
                match = self._core.contract.find(service, method, rest)
                if match is None:
                    break
                if match.operation is None:
                    raise PlatformError(
                        405, "Method Not Allowed", {"Allow": ", ".join(match.allowed)}
                    )
                return match.operation, match
        raise PlatformError(404, "Not Found")

    async def _process(
        self,
        request: web.Request,
        operation: Operation,
        match: RouteMatch,
        rule: FaultRule | None,
    ) -> Reply | web.StreamResponse:
        try:
            handler = self._admit(request, operation, match)
            call = await self._read(request, operation, match, rule)
            if self._stopping:
                raise _stopping()
            reply = await handler(call)
        except PlatformError as error:
            reply = self._error_reply(error, request, operation)
        except (ConnectionError, web.RequestPayloadError):
            broken = PlatformError(422, "The request body broke off")
            reply = self._error_reply(broken, request, operation)
        except web.HTTPException:
            raise
        except Exception:
            logger.exception("%s failed", operation.id)
            self._core.violations.append(f"{operation.id}: unexpected error, see the log")
            reply = Reply({"detail": "Internal error of prime-local, see its log"}, 500)
        if isinstance(reply, Reply):
            self._check_answer(operation, reply)
            plain = reply.is_map or isinstance(reply.body, bytes)
            if self._core.settings.noise and not plain:
                reply = replace(reply, body=add_noise(reply.body))
        return reply

    def _admit(self, request: web.Request, operation: Operation, match: RouteMatch) -> Handler:
        """Return the handler, once the caller may use it now.

        Raises:
            PlatformError: 401, 404, 405, 429 or 501.
        """
        core = self._core
        missing = core.settings.assumptions.batch_routes
        if missing != "served" and operation.path.endswith(":batchGet"):
            raise PlatformError(missing, "Not Found" if missing == 404 else "Method Not Allowed")
        if operation.service == TRACES:
            self._authorize(request, operation)
            core.traces.admit(operation)
        if operation.service in (CONTROL, INFERENCE):
            # A login is called before there is a key. Other routes need none either, but if there
            # is one it must be right.
            login = operation.id in login_routes.HANDLERS
            keyless = {} in operation.spec.get("security", ())
            if not login and (not keyless or "Authorization" in request.headers):
                self._authorize(request, operation)
        if operation.service == CONTROL:
            sandbox_id = match.parameters.get("sandbox_id", "")
            core.rates.admit(operation, request.remote or "", sandbox_id)
        handler = self._handlers.get(operation.id)
        if handler is None:
            raise not_simulated(operation.id)
        return handler

    def _authorize(self, request: web.Request, operation: Operation) -> None:
        key = self._core.account.keys.find(bearer(request))
        if key is None:
            raise PlatformError(401, "Invalid API key", code="unauthenticated")
        key.check(operation.spec.get("x-permission", {}))

    async def _read(
        self,
        request: web.Request,
        operation: Operation,
        match: RouteMatch,
        rule: FaultRule | None,
    ) -> Call:
        """Check a request against the contract.

        Raises:
            PlatformError: 422 with every problem found.
        """
        checks = self._core.checks
        query = QueryValues(parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True))
        values, problems = checks.parameters(operation, query, match.parameters)
        body = None
        if operation.service == CONTROL and "requestBody" in operation.spec:
            body, unreadable = _parse_json(await request.read())
            problems += unreadable or checks.body(operation, body)
        if operation.service == INFERENCE and "requestBody" in operation.spec:
            body = await read_json(request)
        if problems and operation.service == TRACES:
            raise PlatformError(400, problems[0].text, code="invalid_filter")
        if problems:
            raise invalid(problems)
        inference_id = request.get(_INFERENCE_ID, "")
        return Call(self._core, request, operation, values, body, rule, inference_id)

    def _check_answer(self, operation: Operation, reply: Reply) -> None:
        if not self._core.settings.validate_responses or isinstance(reply.body, bytes):
            return
        if reply.status == 501:
            # What is not simulated keeps no contract.
            return
        status = reply.contract_status or reply.status
        for problem in self._core.checks.answer(operation, status, reply.body):
            self._core.violations.append(f"{operation.id} {reply.status} {problem.text}")

    async def _set_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        if _INFERENCE_ID in request:
            response.headers["X-Inference-Id"] = request[_INFERENCE_ID]
        response.headers["Date"] = format_datetime(self._core.clock.date(), usegmt=True)
        if self._core.settings.noise:
            response.headers.update(NOISE_HEADERS)

    def _error_reply(
        self, error: PlatformError, request: web.Request, operation: Operation | None = None
    ) -> Reply:
        if _INFERENCE_ID in request:
            told = error_body(error, request[_INFERENCE_ID])
            return Reply(told, error.status, error.headers)
        if operation is not None and operation.service == GATEWAY:
            return Reply(_gateway_error(error, operation), error.status, error.headers)
        if operation is not None and operation.service == TRACES and error.status != 501:
            text = {"code": error.code, "message": error.detail}
            return Reply({"error": text}, error.status, error.headers)
        body: JsonObject = {"detail": error.detail}
        form = self._core.settings.assumptions.validation_error
        if form == "errors" and isinstance(error.detail, list):
            body = {"errors": [_field_error(problem) for problem in error.detail]}
        return Reply(body, error.status, error.headers)


def _parse_json(data: bytes) -> tuple[Any, list[Problem]]:
    if not data:
        return None, [Problem(("body",), "Field required", "missing")]
    try:
        return json.loads(data), []
    except (ValueError, RecursionError):
        return None, [Problem(("body",), "Not valid JSON", "json_invalid")]


def _stopping() -> PlatformError:
    return PlatformError(503, "prime-local is stopping", {"Connection": "close"})


def _gateway_error(error: PlatformError, operation: Operation) -> JsonObject:
    text = str(error.detail)
    if "x-rpc" in operation.spec:
        code = "unimplemented" if error.status == 501 else "invalid_argument"
        return {"code": code, "message": text}
    return {"error": "gateway_error", "message": text, "code": error.status}


def _field_error(problem: JsonObject) -> JsonObject:
    """Return a problem in the form of the older public description."""
    return {"param": ".".join(map(str, problem["loc"])), "details": problem["msg"]}


def _response(reply: Reply | web.StreamResponse) -> web.StreamResponse:
    return http_response(reply) if isinstance(reply, Reply) else reply


async def _process_spoiled(
    request: web.Request, process: _Process, rule: FaultRule, injected: Callable[[int], Reply]
) -> web.StreamResponse:
    await asyncio.sleep(rule.delay_before)
    if rule.reset == "before_commit":
        return reset(request)
    if rule.status is not None:
        return await send_injected(request, injected(rule.status), rule)
    reply = await process(rule)
    if isinstance(reply, web.StreamResponse):
        return reply
    return await send_spoiled(request, reply, rule)


def _injected(status: int) -> Reply:
    return Reply({"detail": "Injected fault"}, status)
