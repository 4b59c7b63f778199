"""Evaluations that the platform runs."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Mapping, Sequence

from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id, check_ids, check_seconds
from prime_core.creation import create_unkeyed
from prime_core.errors import ConflictError, NotFoundError
from prime_core.marks import carries, marked, new_mark
from prime_core.models import encode_request
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_train.hosted_waiting import (
    check_complete,
    is_transient,
    late,
    log_text,
    wait_until_over,
)
from prime_train.log_following import LogSource, Phase, follow_log
from prime_train.models.evaluations import (
    FINAL_EVALUATION_STATUSES,
    Evaluation,
    EvaluationList,
    EvaluationStatus,
)
from prime_train.models.hosted_evaluations import (
    CancelledEvaluation,
    CreatedHostedEvaluation,
    CreateHostedBody,
    HostedEvalConfig,
    HostedEvaluationLogs,
    InferenceModel,
    InferenceModelList,
    PutLogsBody,
)
from prime_train.operations import (
    CANCEL_HOSTED_EVALUATION,
    CREATE_HOSTED_EVALUATION,
    GET_EVALUATION,
    GET_HOSTED_EVALUATION_LOGS,
    LIST_EVALUATIONS,
    LIST_HOSTED_EVALUATION_MODELS,
    PUT_HOSTED_EVALUATION_LOGS,
)

__all__ = ["AsyncHostedEvaluations"]

# How many of the newest evaluations a create without an answer is looked for among.
LOOKED_AT = 100


class AsyncHostedEvaluations(AsyncResource):
    """Starts, follows and cancels hosted evaluations. Made by `AsyncTrainClient`.

    They are read, listed, changed and deleted as all others, by `AsyncEvaluations`.

    Follows the documented page "tutorials-environments/hosted-evaluations".

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._schedules = PerLoop(lambda: PollSchedule(self._look, transient=is_transient, batch=1))

    async def create(
        self,
        environment_ids: Sequence[str],
        inference_model: str,
        eval_config: HostedEvalConfig | None = None,
        *,
        name: str | None = None,
        team_id: str | None = None,
    ) -> CreatedHostedEvaluation:
        """Starts a hosted evaluation; its model and its sandboxes cost money while it runs.

        It is sent once, under a name with a mark such as ``-3f9a2c41d0``, by which the evaluation
        is found when the answer is lost. When the caller is cancelled meanwhile, or the program
        ends, what was started is cancelled.

        Follows the documented page "api-reference/hosted-evaluations/create-hosted-evaluation".

        Args:
            environment_ids: ids of the environments, at least one; each has an evaluation.
            inference_model: one of `models`.
            eval_config: how it runs; 5 examples with 3 rollouts each by default.
            name: what to call it; the mark is added.
            team_id: the owning team; None takes the client's, "" is the personal account.

        Raises:
            PaymentRequiredError: the wallet can't pay for it.
            NotFoundError: there is no such environment.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        ids = check_ids("environment_ids", environment_ids)
        if not ids:
            raise ValueError("environment_ids names at least one environment")
        config = HostedEvalConfig() if eval_config is None else eval_config
        mark = new_mark()
        body = CreateHostedBody(
            environment_ids=ids,
            inference_model=check_id("inference_model", inference_model),
            eval_config=config.model_dump(exclude_unset=True, exclude_none=True, mode="json"),
            name=marked(name, mark, "evaluation"),
        )

        async def find() -> builtins.list[CreatedHostedEvaluation]:
            query = {"skip": 0, "limit": LOOKED_AT}
            page = await self._transport.request(
                LIST_EVALUATIONS, EvaluationList, query=query, team=team_id
            )
            found = [each for each in page.evaluations if carries(each.name, mark)]
            if not found:
                return []
            return [
                CreatedHostedEvaluation(
                    evaluation_id=found[0].evaluation_id,
                    evaluation_ids=[each.evaluation_id for each in found],
                    status=str(found[0].status),
                )
            ]

        return await create_unkeyed(
            self._transport,
            CREATE_HOSTED_EVALUATION,
            CreatedHostedEvaluation,
            body=encode_request(body),
            team=team_id,
            description=f"Hosted evaluation {body.name!r}",
            discard=self._discard,
            find=find,
        )

    async def _discard(self, made: CreatedHostedEvaluation) -> None:
        for evaluation_id in made.ids:
            try:
                await self.cancel(evaluation_id)
            except (ConflictError, NotFoundError):
                continue  # it is over

    async def models(self) -> builtins.list[InferenceModel]:
        """Reads which models hosted evaluations can use.

        Raises:
            APIError: the call failed.
        """
        found = await self._transport.request(LIST_HOSTED_EVALUATION_MODELS, InferenceModelList)
        return found.models

    async def cancel(self, evaluation_id: str) -> CancelledEvaluation:
        """Cancels an evaluation; one that is cancelled already stays so.

        Args:
            evaluation_id: the evaluation.

        Raises:
            ConflictError: it has ended otherwise.
            NotFoundError: there is no such evaluation.
            APIError: any other failure.
        """
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        try:
            return await self._transport.request(
                CANCEL_HOSTED_EVALUATION, CancelledEvaluation, path=path
            )
        except ConflictError:
            found = await self._read(evaluation_id)
            if found.status != EvaluationStatus.CANCELLED:
                raise
            return CancelledEvaluation(evaluation_id=evaluation_id, status=str(found.status))

    async def get_logs(self, evaluation_id: str) -> str:
        """Reads the log so far; empty while the platform has none.

        Args:
            evaluation_id: the evaluation.

        Raises:
            NotFoundError: there is no such evaluation.
            APIError: any other failure.
        """
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        found = await self._transport.request(
            GET_HOSTED_EVALUATION_LOGS, HostedEvaluationLogs, path=path
        )
        return log_text(found.logs)

    async def put_logs(self, evaluation_id: str, logs: str) -> None:
        """Stores the final log, from within the evaluation's own sandbox and with its own key.

        Args:
            evaluation_id: the evaluation.
            logs: all of it.

        Raises:
            ForbiddenError: another key.
            APIError: any other failure.
        """
        path = {"evaluation_id": check_id("evaluation_id", evaluation_id)}
        body = encode_request(PutLogsBody(logs=logs))
        await self._transport.request(PUT_HOSTED_EVALUATION_LOGS, path=path, body=body)

    async def follow_logs(
        self, evaluation_id: str, *, timeout: float = 24 * 3600
    ) -> AsyncIterator[str]:
        """Yields the lines of the log as they come, to the evaluation's end, however it ends.

        Each line comes once. Failures that pass by themselves, and 429s, are waited for.

        Args:
            evaluation_id: the evaluation.
            timeout: seconds for all of it, above 0.

        Raises:
            HostedEvaluationTimeoutError: a ``TimeoutError``; it goes on, and costs money.
            NotFoundError: there is no such evaluation.
            APIError: any other failure.
        """
        check_id("evaluation_id", evaluation_id)
        check_seconds("timeout", timeout)
        status: str | None = None

        async def phase() -> Phase:
            nonlocal status
            status = (await self._read(evaluation_id)).status
            if status in FINAL_EVALUATION_STATUSES:
                return Phase.OVER
            return Phase.WAITING if status == EvaluationStatus.PENDING else Phase.RUNNING

        source = LogSource(
            phase=phase,
            read=lambda lines: self.get_logs(evaluation_id),
            is_absent=lambda error: False,
            late=lambda: late(evaluation_id, status),
            whole=True,
        )
        async for line in follow_log(source, timeout):
            yield line

    async def wait(self, evaluation_id: str, *, timeout: float = 24 * 3600) -> Evaluation:
        """Waits until an evaluation is complete.

        Args:
            evaluation_id: the evaluation.
            timeout: seconds, above 0.

        Raises:
            HostedEvaluationError: a ``RuntimeError``; it failed, timed out or was cancelled.
            HostedEvaluationTimeoutError: a ``TimeoutError``; it goes on, and costs money.
            NotFoundError: there is no such evaluation.
            APIError: its state could not be read.
        """
        check_id("evaluation_id", evaluation_id)
        check_seconds("timeout", timeout)
        found = await wait_until_over(self._schedules.get(), evaluation_id, timeout)
        return check_complete(found)

    async def _read(self, evaluation_id: str) -> Evaluation:
        path = {"evaluation_id": evaluation_id}
        return await self._transport.request(GET_EVALUATION, Evaluation, path=path)

    async def _look(self, evaluation_ids: builtins.list[str]) -> Mapping[str, Evaluation]:
        """States for the poll schedule, which asks for one evaluation at a time."""
        return {each: await self._read(each) for each in evaluation_ids}

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)
