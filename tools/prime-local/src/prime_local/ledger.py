"""The ledger: what a test may ask about the platform's past."""

from __future__ import annotations

from collections import Counter
from typing import TypedDict

from prime_local.inference.tally import InferenceCounts, InferenceTally


class Counts(TypedDict):
    live: int
    peak: int
    created: int
    deleted: int


class LedgerSnapshot(TypedDict):
    """The ledger as `/_local/ledger` answers it."""

    sandboxes: Counts
    pods: Counts
    disks: Counts
    training_volumes: Counts
    runs: Counts
    creates_per_key: dict[str, int]
    requests: dict[str, int]
    responses: dict[str, int]
    inference: InferenceCounts


class Tally:
    """Counts things of a kind that come and go."""

    def __init__(self) -> None:
        self._live = self._peak = self._created = self._deleted = 0

    def made(self) -> None:
        self._created += 1
        self._live += 1
        self._peak = max(self._peak, self._live)

    def ended(self, *, deleted: bool) -> None:
        self._live -= 1
        self._deleted += deleted

    def counts(self) -> Counts:
        return {
            "live": self._live,
            "peak": self._peak,
            "created": self._created,
            "deleted": self._deleted,
        }


class Ledger:
    """Counts since the start or the last reset.

    Of sandboxes, pods, disks, training volumes and hosted runs, `live` are those in no final state,
    `peak` the most of them at once, `deleted` those ended by a delete call. `creates_per_key` says
    how many sandboxes each idempotency key made: 1 when all is well. `requests` counts arrivals per
    operation, `responses` statuses sent. `inference` says how many calls of models are under way,
    were so at once, and ended before their answers did, and what each account has used.
    """

    def __init__(self) -> None:
        self.sandboxes, self.pods, self.disks = Tally(), Tally(), Tally()
        self.training_volumes, self.runs = Tally(), Tally()
        self.inference = InferenceTally()
        self._creates_per_key: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()
        self._responses: Counter[str] = Counter()

    def request(self, operation_id: str) -> None:
        self._requests[operation_id] += 1

    def response(self, status: int) -> None:
        self._responses[str(status)] += 1

    def created(self, idempotency_key: str | None) -> None:
        self.sandboxes.made()
        if idempotency_key is not None:
            self._creates_per_key[idempotency_key] += 1

    def snapshot(self) -> LedgerSnapshot:
        return {
            "sandboxes": self.sandboxes.counts(),
            "pods": self.pods.counts(),
            "disks": self.disks.counts(),
            "training_volumes": self.training_volumes.counts(),
            "runs": self.runs.counts(),
            "creates_per_key": dict(self._creates_per_key),
            "requests": dict(self._requests),
            "responses": dict(self._responses),
            "inference": self.inference.counts(),
        }
