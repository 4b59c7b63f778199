"""What the parts of the client share."""

from __future__ import annotations

from prime_core._async.api_client import AsyncAPIClient
from prime_core.errors import PrimeError
from prime_sandboxes._proto.command_session_pb2 import CommandSpec
from prime_sandboxes.commands import run_in_sandbox
from prime_sandboxes.gateway import Gateway
from prime_sandboxes.models import CommandResponse, ErrorContext
from prime_sandboxes.networks import PendingJoins
from prime_sandboxes.operations import GET_SANDBOX_ERROR_CONTEXT

__all__ = ["AsyncSandboxResource"]

ERROR_CONTEXT_TIMEOUT = 10.0


class AsyncSandboxResource:
    """The connections of a client, and what it knows of its sandboxes.

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        self._client = client
        self._transport = client._share(self)
        self._gateway = Gateway(self._transport)
        self._joins = PendingJoins()

    @property
    def client(self) -> AsyncAPIClient:
        """The connections, to share with other clients."""
        return self._client

    def _close_schedules(self) -> None:
        """Ends every wait of this client; each part that waits adds its own."""

    async def get_error_context(self, sandbox_id: str) -> ErrorContext:
        """Reads a sandbox's state and the cause of its failure, at less cost than `get`.

        Args:
            sandbox_id: the sandbox, also an ended one.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
        """
        return await self._transport.request(
            GET_SANDBOX_ERROR_CONTEXT,
            ErrorContext,
            path={"sandbox_id": sandbox_id},
            timeout=ERROR_CONTEXT_TIMEOUT,
        )

    async def _run_in_sandbox(
        self, sandbox_id: str, command: str, spec: CommandSpec, timeout: float
    ) -> CommandResponse:
        return await run_in_sandbox(
            self._gateway, self._error_context, sandbox_id, command, spec, timeout
        )

    async def _error_context(self, sandbox_id: str) -> ErrorContext:
        """The error context as far as it can be had: a failure here must not hide another."""
        try:
            return await self.get_error_context(sandbox_id)
        except PrimeError:
            return ErrorContext()
