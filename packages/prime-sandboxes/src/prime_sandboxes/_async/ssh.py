"""SSH sessions into sandboxes."""

from __future__ import annotations

from prime_core.errors import APIError
from prime_core.models import encode_request
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes.arguments import check_id
from prime_sandboxes.models import CreateSSHSessionRequest, SSHSession
from prime_sandboxes.operations import CLOSE_SSH_SESSION, CREATE_SSH_SESSION

__all__ = ["AsyncSandboxSSH"]


class AsyncSandboxSSH(AsyncSandboxResource):
    """The part of the client that opens SSH sessions."""

    async def create_ssh_session(
        self, sandbox_id: str, public_key: str, ttl_seconds: int | None = None
    ) -> SSHSession:
        """Lets a key in over SSH for some time: interactive shells and remote commands.

        It is sent once: after an error the session may be there, until its time is over. It is
        no use without the private key. SSH does not put off the sandbox's idle timeout, and
        forwarding, scp and sftp are not supported.

        Follows the documented page "sandboxes/commands".

        Args:
            sandbox_id: a running sandbox.
            public_key: an OpenSSH public key, one line such as ``ssh-ed25519 AAAA... comment``;
                best of a pair that was made for this session.
            ttl_seconds: how long the session lives, 1 to 3,600 seconds; 900 by default.

        Returns:
            Where and how to connect.

        Raises:
            NotFoundError: there is no such sandbox.
            ConflictError: the sandbox does not run.
            ValueError: an argument is wrong; nothing was sent.
            APIError: any other failure.
        """
        check_id(sandbox_id)
        request = CreateSSHSessionRequest(public_key=public_key, ttl_seconds=ttl_seconds)
        return await self._transport.request(
            CREATE_SSH_SESSION,
            SSHSession,
            path={"sandbox_id": sandbox_id},
            body=encode_request(request),
        )

    async def close_ssh_session(self, sandbox_id: str, session_id: str) -> None:
        """Ends an SSH session and its connections; one that is gone already is no failure.

        Follows the documented page "sandboxes/commands".

        Args:
            sandbox_id: the session's sandbox.
            session_id: the session.

        Raises:
            ValueError: an argument is wrong; nothing was sent.
            APIError: the session may go on until its time is over.
        """
        check_id(sandbox_id)
        check_id(session_id, "session_id", "ssh_3b1")
        try:
            await self._transport.request(
                CLOSE_SSH_SESSION, path={"sandbox_id": sandbox_id, "session_id": session_id}
            )
        except APIError as error:
            if error.status_code != 404:
                raise
