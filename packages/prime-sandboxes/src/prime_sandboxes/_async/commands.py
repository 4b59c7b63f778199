"""Running commands in sandboxes."""

from __future__ import annotations

from collections.abc import Mapping

from prime_sandboxes import commands
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes.arguments import check_id
from prime_sandboxes.models import CommandResponse

__all__ = ["AsyncSandboxCommands"]


class AsyncSandboxCommands(AsyncSandboxResource):
    """The part of the client that runs commands."""

    def clear_auth_cache(self) -> None:
        """Forgets every gateway token; the next command in a sandbox fetches a new one."""
        self._gateway.clear()

    async def execute_command(
        self,
        sandbox_id: str,
        command: str,
        working_dir: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
    ) -> CommandResponse:
        """Runs a command with bash and waits for its end.

        It is sent once: when the connection breaks after that, the command may have run.
        A cancellation ends the wait at once, and the command in the background.

        Follows the documented page "sandboxes/commands".

        Args:
            sandbox_id: a running sandbox.
            command: a bash command line.
            working_dir: where to run it, a path in the sandbox.
            env: further environment variables.
            timeout: seconds that the command may run, above 0; 300 by default. The platform
                kills it then.
            user: an account of the sandbox to run it as.

        Returns:
            Standard output, standard error and exit code. A non-zero exit code is a result,
            not an error. Bytes that are not UTF-8 are replaced.

        Raises:
            CommandTimeoutError: the limit was reached; it holds the output so far.
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure.
        """
        check_id(sandbox_id)
        spec = commands.command_spec(command, working_dir, env, user)
        limit = commands.check_timeout(timeout)
        return await self._run_in_sandbox(sandbox_id, command, spec, limit)
