"""Evaluations that the platform runs: simulated, on its clock, with scores out of nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from prime_local.billing.wallets import Wallets
from prime_local.clock import PlatformClock, Timer
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.evaluations.record import Evaluation, Status
from prime_local.evaluations.registry import EvaluationRegistry
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import Owner, wire_date

MODELS = ("openai/gpt-4.1-mini", "qwen/qwen3-30b-a3b-instruct", "z-ai/glm-5.3")
# What -1 stands for: no data set is really there.
_ALL_EXAMPLES = 10
# More rollouts are not simulated one by one.
_MOST_ROLLOUTS = 1000
_LONGEST_MINUTES = 1440
_NO_LOGS = "Waiting for container to start..."
_LOST = "The local platform ended, and the evaluation with it"


@dataclass
class _Run:
    """One evaluation at work."""

    evaluation: Evaluation
    rollouts: int
    per_example: int
    next: Timer | None = None
    limit: Timer | None = None
    lines: list[str] = field(default_factory=list)

    def stop(self) -> None:
        for timer in (self.next, self.limit):
            if timer is not None:
                timer.cancel()


class HostedEvaluations:
    """Runs evaluations.

    Args:
        clock: what they run on.
        identifiers: makes the ids of their sandboxes.
        evaluations: keeps them.
        wallets: what they are paid from.
        rollout_time: seconds that a rollout takes, and so does the start.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        evaluations: EvaluationRegistry,
        wallets: Wallets,
        rollout_time: float,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._evaluations = evaluations
        self._wallets = wallets
        self._rollout_time = rollout_time
        self._runs: dict[str, _Run] = {}

    def take_over(self) -> None:
        """Fail what an earlier platform left unfinished."""
        for evaluation in self._evaluations.all():
            if evaluation.hosted is not None and not evaluation.closed:
                self._evaluations.end_hosted(evaluation, Status.FAILED, _LOST)

    def create(self, asked: JsonObject, owner: Owner) -> list[Evaluation]:
        """Start an evaluation of each environment that is named.

        Args:
            asked: a `CreateHostedEvaluationRequest` of the contract.
            owner: whose they are.

        Raises:
            PlatformError: 400, 402 or 404; nothing was started.
        """
        self._wallets.check(owner.team_id)
        if asked["inference_model"] not in MODELS and not asked["eval_config"].get("api_base_url"):
            raise PlatformError(400, f"Model {asked['inference_model']} is not available")
        config = dict(asked["eval_config"])
        config.pop("custom_secrets", None)
        made = []
        for environment_id in dict.fromkeys(asked["environment_ids"]):
            self._evaluations.known_environment(environment_id)
        for environment_id in dict.fromkeys(asked["environment_ids"]):
            described = {
                "name": asked.get("name") or f"Hosted evaluation of {environment_id}",
                "environments": [{"id": environment_id}],
                "model_name": asked["inference_model"],
                "inference_model": asked["inference_model"],
                "framework": "verifiers",
                "eval_config": config,
            }
            evaluation = self._evaluations.create(described, owner)
            evaluation.hosted = {"sandbox_id": self._identifiers.make("sbx_"), "log": ""}
            self._evaluations.save(evaluation)
            self._begin(evaluation, config)
            made.append(evaluation)
        return made

    def log(self, evaluation: Evaluation) -> str:
        """Return the log so far, or the text that stands in its place.

        Raises:
            PlatformError: 404 for an evaluation that is not hosted.
        """
        hosted = self._hosted(evaluation)
        run = self._runs.get(evaluation.id)
        if run is None:
            return str(hosted["log"])
        return "".join(line + "\n" for line in run.lines) or _NO_LOGS

    def store_log(self, evaluation: Evaluation, text: str) -> None:
        """Replace the log of an evaluation.

        Raises:
            PlatformError: 404 for an evaluation that is not hosted.
        """
        self._hosted(evaluation)["log"] = text
        run = self._runs.get(evaluation.id)
        if run is not None:
            run.lines = text.splitlines()
        self._evaluations.save(evaluation)

    def cancel(self, evaluation: Evaluation) -> None:
        """End an evaluation.

        Raises:
            PlatformError: 404 for one that is not hosted, 409 for one that is over.
        """
        self._hosted(evaluation)
        if evaluation.closed:
            raise PlatformError(409, f"The evaluation is {evaluation.status.value} already")
        self._end(self._runs[evaluation.id], Status.CANCELLED, "Cancelled")

    def forget(self, evaluation_id: str) -> None:
        """Stop what was deleted."""
        run = self._runs.pop(evaluation_id, None)
        if run is not None:
            run.stop()

    def clear(self) -> None:
        """Stop everything."""
        for evaluation_id in list(self._runs):
            self.forget(evaluation_id)

    @staticmethod
    def _hosted(evaluation: Evaluation) -> JsonObject:
        if evaluation.hosted is None:
            raise PlatformError(404, "The evaluation is not hosted")
        return evaluation.hosted

    def _begin(self, evaluation: Evaluation, config: JsonObject) -> None:
        examples, per_example = config["num_examples"], config["rollouts_per_example"]
        rollouts = (_ALL_EXAMPLES if examples < 0 else examples) * per_example
        run = _Run(evaluation, min(rollouts, _MOST_ROLLOUTS), per_example)
        self._runs[evaluation.id] = run
        seconds = 60 * (config.get("timeout_minutes") or _LONGEST_MINUTES)
        run.limit = self._clock.call_later(
            seconds, lambda: self._end(run, Status.TIMEOUT, "Out of time")
        )
        run.next = self._clock.call_later(self._rollout_time, lambda: self._start(run))

    def _start(self, run: _Run) -> None:
        evaluation = run.evaluation
        names = ", ".join(each["name"] for each in evaluation.environments)
        self._say(run, f"Running evaluation: {names} (simulated by prime-local)")
        self._say(run, f"Model: {evaluation.described['inference_model']}")
        self._evaluations.begin_hosted(evaluation)
        run.next = self._clock.call_later(self._rollout_time, lambda: self._step(run, 0))

    def _step(self, run: _Run, number: int) -> None:
        """Do a rollout, if one is left."""
        evaluation = run.evaluation
        if number >= run.rollouts:
            mean = evaluation.figures()["avg_score"]
            self._say(run, f"Evaluation finished: average reward {mean}")
            self._end(run, Status.COMPLETED, None)
            return
        sample = _rollout(evaluation, number // run.per_example, number % run.per_example)
        self._evaluations.push(evaluation, [sample])
        self._say(run, f"Rollout {number + 1}/{run.rollouts}: reward {sample['reward']}")
        run.next = self._clock.call_later(self._rollout_time, lambda: self._step(run, number + 1))

    def _say(self, run: _Run, text: str) -> None:
        run.lines.append(f"{wire_date(self._clock.date())} {text}")

    def _end(self, run: _Run, status: Status, reason: str | None) -> None:
        run.stop()
        if reason is not None:
            self._say(run, reason)
        assert run.evaluation.hosted is not None
        run.evaluation.hosted["log"] = "".join(line + "\n" for line in run.lines)
        del self._runs[run.evaluation.id]
        self._evaluations.end_hosted(run.evaluation, status, reason)


def _rollout(evaluation: Evaluation, example: int, number: int) -> JsonObject:
    """Return a sample whose reward is made of its names, the same each time."""
    names = (
        f"{evaluation.described['inference_model']} {evaluation.environments} {example} {number}"
    )
    reward = hashlib.sha256(names.encode()).digest()[0] % 5 / 4
    return {
        "example_id": example,
        "rollout_number": number,
        "prompt": [{"role": "user", "content": f"Example {example}"}],
        "completion": [{"role": "assistant", "content": "A simulated answer"}],
        "reward": reward,
    }
