"""Creating, finding and deleting sandboxes."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from prime_core.creation import create_once
from prime_core.errors import NotFoundError
from prime_core.models import encode_request
from prime_core.pagination import Page, iterate_pages
from prime_core.reaper import Obligation
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes.arguments import check_ids, check_labels
from prime_sandboxes.models import (
    CREATE_TRANSPORT_FIELDS,
    BulkDeleteSandboxRequest,
    BulkDeleteSandboxResponse,
    CreatedSandbox,
    CreateSandboxRequest,
    Sandbox,
    SandboxListResponse,
    SandboxLogsResponse,
)
from prime_sandboxes.networks import PendingJoin
from prime_sandboxes.operations import (
    BULK_DELETE_SANDBOXES,
    CREATE_SANDBOX,
    DELETE_SANDBOX,
    GET_SANDBOX,
    GET_SANDBOX_LOGS,
    LIST_SANDBOXES,
)

__all__ = ["AsyncSandboxLifecycle"]

JSONObject: TypeAlias = dict[str, Any]

# The most ids of one bulk delete, and the sandboxes of a page that `iter` reads.
BATCH = 100


class AsyncSandboxLifecycle(AsyncSandboxResource):
    """The part of the client that creates, finds and deletes sandboxes."""

    async def create(self, request: CreateSandboxRequest) -> Sandbox:
        """Creates a sandbox, once, however often the request has to be sent.

        Without an ``idempotency_key`` the call makes a fresh one, which is not stored on the
        request. Calls are paced to the documented 192 creates per 10 s. When the caller is
        cancelled, or the program ends other than by being killed, while the request may have
        left, the sandbox is deleted in the background. So it is after a failure that leaves the
        outcome open, unless the request has a key of its own: then send it again.

        A ``lan_network_id`` is not sent: `wait_for_creation` and `bulk_wait_for_creation` of
        this client join the sandbox to that network.

        Follows the documented page "sandboxes/lifecycle".

        Args:
            request: what to create; ``team_id`` goes before the configured team.

        Returns:
            The sandbox, usually PENDING; see `wait_for_creation`.

        Raises:
            PaymentRequiredError: the balance is too low.
            QuotaExceededError: an account limit is reached.
            ValidationError: the platform found the request invalid.
            APIError: any other failure.
        """
        return await self._create(request)

    async def _create(
        self,
        request: CreateSandboxRequest,
        obligation: Obligation | None = None,
        discard: Callable[[str], Coroutine[Any, Any, None]] | None = None,
    ) -> Sandbox:
        """Creates a sandbox; an obligation that is given is kept, and discards it later."""
        if not isinstance(request, CreateSandboxRequest):
            raise TypeError(f"pass a CreateSandboxRequest, not {type(request).__name__}")
        undo = discard or self._discard
        created = await create_once(
            self._transport,
            CREATE_SANDBOX,
            CreatedSandbox,
            body=encode_request(request, exclude=CREATE_TRANSPORT_FIELDS),
            key=request.idempotency_key,
            team=request.team_id,
            description=f"Sandbox {request.name!r}",
            discard=lambda made: undo(made.id),
            obligation=obligation,
        )
        if created.gateway_auth is not None:
            self._gateway.seed(created.id, created.gateway_auth)
            created.gateway_auth = None
        if request.lan_network_id is not None:
            self._joins.note(created.id, PendingJoin(request.lan_network_id, request.lan_tags))
        return created

    async def _discard(self, sandbox_id: str) -> None:
        with contextlib.suppress(NotFoundError):
            await self._transport.request(DELETE_SANDBOX, path={"sandbox_id": sandbox_id})

    def _forget(self, sandbox_id: str) -> None:
        self._gateway.forget(sandbox_id)
        self._joins.pop(sandbox_id, None)

    async def get(self, sandbox_id: str) -> Sandbox:
        """Reads a sandbox.

        Args:
            sandbox_id: the sandbox.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        return await self._transport.request(GET_SANDBOX, Sandbox, path={"sandbox_id": sandbox_id})

    async def list(
        self,
        team_id: str | None = None,
        status: str | None = None,
        labels: Sequence[str] | None = None,
        page: int = 1,
        per_page: int = 50,
        exclude_terminated: bool | None = None,
        user_id: str | None = None,
    ) -> SandboxListResponse:
        """Reads a page of the sandboxes; `iter` reads all of them.

        Follows the documented page "sandboxes/lifecycle".

        Args:
            team_id: the team, by default the configured one; "" is the personal account.
            status: a state, such as ``RUNNING``.
            labels: labels that a sandbox must all have.
            page: number of the page, from 1.
            per_page: sandboxes a page, 1 to 1,000.
            exclude_terminated: leaves ended sandboxes out.
            user_id: another user's sandboxes; needs team admin.
        """
        if page < 1 or not 1 <= per_page <= 1000:
            raise ValueError("page is at least 1, per_page 1 to 1,000")
        query: dict[str, str | int | bool | Sequence[str] | None] = {
            "user_id": user_id,
            "status": status,
            "labels": check_labels(labels),
            "is_active": True if exclude_terminated else None,
            "page": page,
            "per_page": per_page,
        }
        return await self._transport.request(
            LIST_SANDBOXES, SandboxListResponse, query=query, team=team_id
        )

    async def iter(
        self,
        team_id: str | None = None,
        status: str | None = None,
        labels: Sequence[str] | None = None,
        exclude_terminated: bool | None = None,
        user_id: str | None = None,
    ) -> AsyncIterator[Sandbox]:
        """Reads all sandboxes, page after page; the arguments are those of `list`.

        What is listed all the while is yielded once, whatever comes and goes meanwhile.
        """

        async def fetch(number: int) -> Page[Sandbox]:
            page = await self.list(
                team_id, status, labels, number, BATCH, exclude_terminated, user_id
            )
            return Page(page.sandboxes, page.total, page.has_next)

        async for sandbox in iterate_pages(fetch, BATCH, lambda sandbox: sandbox.id):
            yield sandbox

    async def delete(self, sandbox_id: str) -> JSONObject:
        """Ends and deletes a sandbox.

        Follows the documented page "sandboxes/lifecycle".

        Args:
            sandbox_id: the sandbox; one that has ended already is no error.

        Returns:
            The platform's answer, such as ``{"success": true}``; empty when an earlier
            attempt of this call had deleted it without being answered.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        answer = await self._transport.request(DELETE_SANDBOX, path={"sandbox_id": sandbox_id})
        self._forget(sandbox_id)
        return answer

    async def bulk_delete(
        self,
        sandbox_ids: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        team_id: str | None = None,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> BulkDeleteSandboxResponse:
        """Deletes sandboxes by their ids, or those that carry all of some labels.

        Ids are sent in chunks of 100. A call that names neither is refused, because the
        platform would delete every active sandbox in scope.

        Follows the documented page "sandboxes/lifecycle".

        Args:
            sandbox_ids: ids, any number.
            labels: 1 to 50 labels; excludes ids.
            team_id: the team whose sandboxes are meant; needed with ``all_users``.
            user_id: another user's sandboxes; needs team admin.
            all_users: the whole team's sandboxes; needs team admin.

        Returns:
            The ids that were deleted, those that failed with their error, and a message.

        Raises:
            ValueError: neither ids nor labels, or both.
            APIError: a chunk failed; those before it are deleted.
        """
        ids = None if sandbox_ids is None else check_ids(sandbox_ids)
        if ids is None and not labels:
            raise ValueError("bulk_delete needs sandbox_ids or labels")
        if ids is not None and labels:
            raise ValueError("bulk_delete takes sandbox_ids or labels, not both")
        if ids is None:
            chunks: builtins.list[builtins.list[str] | None] = [None]
        else:
            chunks = [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]
        answers = []
        for chunk in chunks:
            request = BulkDeleteSandboxRequest(
                sandbox_ids=chunk,
                labels=check_labels(labels) if chunk is None else None,
                team_id=team_id or None,
                user_id=user_id,
                all_users=all_users,
            )
            answers.append(
                await self._transport.request(
                    BULK_DELETE_SANDBOXES,
                    BulkDeleteSandboxResponse,
                    body=encode_request(request),
                    team=team_id,
                )
            )
        for sandbox_id in ids or ():
            self._forget(sandbox_id)
        return BulkDeleteSandboxResponse(
            succeeded=[key for answer in answers for key in answer.succeeded],
            failed=[failure for answer in answers for failure in answer.failed],
            message="; ".join(answer.message for answer in answers),
        )

    async def sweep(self, label: str) -> BulkDeleteSandboxResponse:
        """Deletes every sandbox that carries a label, such as a crashed fleet's strays.

        Args:
            label: the label, such as `AsyncFleet.label`.

        Returns:
            As `bulk_delete`, for the configured team or the personal account.
        """
        if not label:
            raise ValueError("sweep needs a label")
        return await self.bulk_delete(labels=[label], team_id=self.client.config.team_id)

    async def get_logs(self, sandbox_id: str) -> str:
        """Reads a sandbox's log text.

        Args:
            sandbox_id: the sandbox, also an ended one.

        Returns:
            All that its start command wrote, as far as the platform keeps it.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
        """
        answer = await self._transport.request(
            GET_SANDBOX_LOGS, SandboxLogsResponse, path={"sandbox_id": sandbox_id}
        )
        return answer.logs
