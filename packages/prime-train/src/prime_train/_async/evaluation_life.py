"""What becomes of evaluations, from their creation to their end."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from prime_core.arguments import build, check_id, check_ids
from prime_core.decoding import model_reader
from prime_core.errors import APIError, ConflictError, NotFoundError
from prime_core.models import encode_request
from prime_core.offsets import check_window, iterate_offsets
from prime_train._async.environment_lookup import AsyncEnvironmentLookup
from prime_train._async.evaluation_samples import AsyncEvaluationSamples
from prime_train.models.evaluation_requests import (
    BulkDeleteBody,
    CreateEvaluationBody,
    FinalizeBody,
    UpdateEvaluationBody,
)
from prime_train.models.evaluations import (
    CreatedEvaluation,
    DeletedEvaluations,
    EnvironmentReference,
    Evaluation,
    EvaluationList,
    EvaluationStatus,
    FinalizedEvaluation,
    UpdatedEvaluation,
)
from prime_train.operations import (
    BULK_DELETE_EVALUATIONS,
    CREATE_EVALUATION,
    DELETE_EVALUATION,
    FINALIZE_EVALUATION,
    GET_EVALUATION,
    LIST_EVALUATIONS,
    UPDATE_EVALUATION,
)

__all__ = ["AsyncEvaluationLife", "EnvironmentLike"]

# The most evaluations of a list's part, and of a bulk delete.
PAGE = 100
LONGEST_REASON = 4096

EnvironmentLike: TypeAlias = "str | EnvironmentReference | Mapping[str, str]"


class AsyncEvaluationLife(AsyncEvaluationSamples):
    """The part of `AsyncEvaluations` that creates, reads, changes and deletes them."""

    async def create(
        self,
        name: str,
        *,
        environments: Sequence[EnvironmentLike] | None = None,
        suite_id: str | None = None,
        run_id: str | None = None,
        model_name: str | None = None,
        dataset: str | None = None,
        framework: str | None = None,
        task_type: str | None = None,
        description: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        is_public: bool = False,
        team_id: str | None = None,
    ) -> CreatedEvaluation:
        """Creates an evaluation to push samples into; `finalize` completes it.

        It is sent once: after a lost answer, `iter` tells whether it was made.

        Follows the documented page "api-reference/evals/create-evaluation".

        Args:
            name: what to call it.
            environments: what is evaluated, each by slug (``owner/name``), by a name of the
                caller's own, which is made if there is none of it, as a mapping with ``id``,
                ``slug`` or ``name``, or as an `EnvironmentReference`.
            suite_id: a suite, in place of environments.
            run_id: a training run, likewise.
            model_name: the model that is evaluated.
            dataset: the data set.
            framework: what runs it, such as ``verifiers``.
            task_type: the kind of its tasks.
            description: in your words.
            tags: labels.
            metadata: a JSON object of your own.
            metrics: figures of your own.
            is_public: whether whoever has the link can see it.
            team_id: the owning team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such environment, by slug or id.
            ValueError: neither environments nor a suite nor a run; nothing was sent.
            APIError: any other failure.
        """
        check_id("name", name)
        if isinstance(environments, str):
            raise ValueError("environments is a list, not one string")
        if not (environments or suite_id or run_id):
            raise ValueError("environments, suite_id or run_id is needed")
        body = build(
            CreateEvaluationBody,
            {
                "name": name,
                "suite_id": suite_id,
                "run_id": run_id,
                "model_name": model_name,
                "dataset": dataset,
                "framework": framework,
                "task_type": task_type,
                "description": description,
                "tags": _tags(tags),
                "metadata": metadata,
                "metrics": metrics,
                "is_public": is_public,
            },
        )
        lookup = AsyncEnvironmentLookup(self._client)
        found = [await lookup.reference(each, team_id) for each in environments or ()]
        body = body.model_copy(update={"environments": found or None})
        return await self._transport.request(
            CREATE_EVALUATION, CreatedEvaluation, body=encode_request(body), team=team_id
        )

    async def get(self, evaluation_id: str) -> Evaluation:
        """Reads an evaluation.

        Args:
            evaluation_id: the evaluation.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        return await self._transport.request(GET_EVALUATION, Evaluation, path=path)

    async def list(
        self,
        *,
        environment_id: str | None = None,
        environment_name: str | None = None,
        suite_id: str | None = None,
        skip: int = 0,
        limit: int = 50,
        team_id: str | None = None,
    ) -> EvaluationList:
        """Reads a part of the list of evaluations, newest first; `iter` reads all of them.

        Follows the documented page "api-reference/evals/list-evaluations".

        Args:
            environment_id: only those of this environment.
            environment_name: likewise, by ``owner/name`` or name.
            suite_id: only those of this suite.
            skip: evaluations to skip, at least 0.
            limit: most evaluations to return, 1 to 100.
            team_id: the team whose evaluations; None takes the client's, "" is personal.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(skip, limit, most=PAGE)
        query = {
            "environment_id": environment_id,
            "environment_name": environment_name,
            "suite_id": suite_id,
            "skip": skip,
            "limit": limit,
        }
        return await self._transport.request(
            LIST_EVALUATIONS, EvaluationList, query=query, team=team_id
        )

    async def iter(
        self,
        *,
        environment_id: str | None = None,
        environment_name: str | None = None,
        suite_id: str | None = None,
        team_id: str | None = None,
    ) -> AsyncIterator[Evaluation]:
        """Reads all evaluations, part after part; the filters are those of `list`."""

        async def fetch(offset: int) -> tuple[Sequence[Evaluation], int]:
            part = await self.list(
                environment_id=environment_id,
                environment_name=environment_name,
                suite_id=suite_id,
                skip=offset,
                limit=PAGE,
                team_id=team_id,
            )
            return part.evaluations, part.total

        async for evaluation in iterate_offsets(fetch, PAGE, lambda each: each.evaluation_id):
            yield evaluation

    async def update(
        self,
        evaluation_id: str,
        *,
        name: str | None = None,
        model_name: str | None = None,
        dataset: str | None = None,
        framework: str | None = None,
        task_type: str | None = None,
        description: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        is_public: bool | None = None,
        replace: bool = False,
    ) -> UpdatedEvaluation:
        """Changes what is said of an evaluation; what is None stays as it is.

        The platform replaces ``metadata`` and ``metrics`` as a whole. So that nothing is wiped,
        they are read first and sent back with the keys that are given here, whose values are
        replaced, objects too; of two calls that do that at once, the last one wins. ``tags``, a
        list, is what is given.

        Follows the documented page "api-reference/evals/update-evaluation".

        Args:
            evaluation_id: the evaluation.
            name: as for `create`, like all up to ``is_public``.
            model_name: see there.
            dataset: see there.
            framework: see there.
            task_type: see there.
            description: see there.
            tags: all tags that it is to have.
            metadata: keys to set in the document.
            metrics: likewise.
            is_public: whether whoever has the link can see it.
            replace: send ``metadata`` and ``metrics`` as they are: other keys go.

        Raises:
            NotFoundError: there is no such evaluation.
            ValueError: nothing to change; nothing was sent.
            APIError: any other failure.
        """
        fields = {
            "name": name,
            "model_name": model_name,
            "dataset": dataset,
            "framework": framework,
            "task_type": task_type,
            "description": description,
            "tags": None if tags is None else _tags(tags),
            "metadata": metadata,
            "metrics": metrics,
            "is_public": is_public,
        }
        given = {key: value for key, value in fields.items() if value is not None}
        if not given:
            raise ValueError("nothing to change is given")
        body = build(UpdateEvaluationBody, given)
        if not replace and (body.metadata is not None or body.metrics is not None):
            known = await self.get(evaluation_id)
            if body.metadata is not None:
                body.metadata = {**(known.metadata or {}), **body.metadata}
            if body.metrics is not None:
                body.metrics = {**(known.metrics or {}), **body.metrics}
        return await self._update(evaluation_id, body)

    async def _update(self, evaluation_id: str, body: UpdateEvaluationBody) -> UpdatedEvaluation:
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        return await self._transport.request(
            UPDATE_EVALUATION, UpdatedEvaluation, path=path, body=encode_request(body)
        )

    async def close(
        self,
        evaluation_id: str,
        status: Literal["FAILED", "CANCELLED"],
        error_message: str | None = None,
    ) -> Evaluation:
        """Closes an evaluation that is not going to be complete.

        Args:
            evaluation_id: the evaluation.
            status: how it ended.
            error_message: why; of more than 4096 characters the first are sent.

        Returns:
            The evaluation; one that is closed that way already is left as it is.

        Raises:
            ConflictError: it has ended in another way.
            NotFoundError: there is no such evaluation.
            APIError: any other failure.
        """
        text = None if error_message is None else error_message[:LONGEST_REASON]
        body = build(UpdateEvaluationBody, {"status": status, "error_message": text})
        try:
            await self._update(evaluation_id, body)
        except ConflictError:
            # Of an earlier attempt, perhaps, whose answer was lost.
            found = await self.get(evaluation_id)
            if found.status != status:
                raise
            return found
        return await self.get(evaluation_id)

    async def finalize(
        self, evaluation_id: str, *, metrics: Mapping[str, Any] | None = None
    ) -> FinalizedEvaluation:
        """Completes an evaluation: its figures are computed, and no more samples come.

        It is sent once. When its answer is lost, the evaluation's state tells whether it arrived.

        Follows the documented page "api-reference/evals/finalize-evaluation".

        Args:
            evaluation_id: the evaluation.
            metrics: figures of your own, in place of earlier ones.

        Raises:
            ConflictError: it is closed already.
            NotFoundError: there is no such evaluation.
            APIError: any other failure.
        """
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        call = self._transport.prepare(
            FINALIZE_EVALUATION,
            model_reader(FinalizedEvaluation),
            path,
            body=encode_request(build(FinalizeBody, {"metrics": metrics})),
        )
        try:
            return await self._transport.perform(call)
        except APIError:
            if not call.unresolved:
                raise
            found = await self.get(evaluation_id)
            if found.status not in (EvaluationStatus.COMPLETED, EvaluationStatus.PROCESSING):
                raise
            return FinalizedEvaluation.model_validate(found.model_dump())

    async def delete(self, evaluation_id: str) -> None:
        """Deletes an evaluation and its samples.

        Args:
            evaluation_id: the evaluation.

        Raises:
            NotFoundError: there is no such evaluation.
            APIError: any other failure.
        """
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        await self._transport.request(DELETE_EVALUATION, path=path)

    async def bulk_delete(self, evaluation_ids: Sequence[str]) -> DeletedEvaluations:
        """Deletes evaluations and their samples, a hundred at a time.

        Follows the documented page "api-reference/evals/bulk-delete-evaluations".

        Args:
            evaluation_ids: which, any number of them.

        Returns:
            Which are gone, and which are not.

        Raises:
            APIError: a request failed; those before it are done.
        """
        ids = check_ids("evaluation_ids", evaluation_ids)
        gone: builtins.list[str] = []
        left: builtins.list[str] = []
        for start in range(0, len(ids), PAGE):
            body = encode_request(BulkDeleteBody(evaluation_ids=ids[start : start + PAGE]))
            call = self._transport.prepare(
                BULK_DELETE_EVALUATIONS, model_reader(DeletedEvaluations), body=body
            )
            done = await self._transport.perform(call)
            gone += done.successful_ids
            for evaluation_id in done.failed_ids:
                # What an attempt without an answer has deleted comes back as failed.
                deleted = call.ambiguous and await self._is_gone(evaluation_id)
                (gone if deleted else left).append(evaluation_id)
        return DeletedEvaluations(successful_ids=gone, failed_ids=left)

    async def _is_gone(self, evaluation_id: str) -> bool:
        try:
            await self.get(evaluation_id)
        except NotFoundError:
            return True
        return False


def _tags(tags: Sequence[str]) -> builtins.list[str]:
    """Tags as they are sent; one text is no list of letters."""
    if isinstance(tags, str):
        raise ValueError("tags is a list, not one string")
    return builtins.list(tags)
