"""Every pod, and what happens to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from prime_local.availability.catalogue import Catalogue
from prime_local.availability.offers import GpuOffer
from prime_local.billing.wallets import Wallets
from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.disks.registry import DiskRegistry
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.ledger import Tally
from prime_local.pods.offers import exact, find_gpu_offer, sold_out
from prime_local.pods.pace import Pace, Steps
from prime_local.pods.record import INSTALLING, READY, Pod
from prime_local.sandboxes.record import Owner
from prime_local.storage import Storage

KIND = "pod"
_GPUS_OF_A_NODE = 8


class PodRegistry:
    """Every pod, by its id, those that have ended too.

    Args:
        clock: the platform's.
        identifiers: makes their ids.
        storage: keeps them.
        catalogue: the offers that they are made from.
        wallets: what they are paid from.
        disks: what can be attached to them.
        pace: what each step takes.
        tally: counts them.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        catalogue: Catalogue,
        wallets: Wallets,
        disks: DiskRegistry,
        pace: Pace,
        tally: Tally,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._catalogue = catalogue
        self._wallets = wallets
        self._disks = disks
        self._pace = pace
        self._tally = tally
        self._pods: dict[str, Pod] = {}
        self._steps: dict[str, Steps] = {}
        self._offers: dict[str, GpuOffer] = {}  # of which something was taken

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the pods of an earlier platform."""
        for row in rows:
            pod = Pod.from_row(row)
            if pod.live:
                self._begin(pod).start()
            else:
                self._pods[pod.id] = pod

    def create(self, body: JsonObject, owner: Owner, doom: str | None) -> JsonObject:
        """Make a pod and return its wire form, PROVISIONING.

        Args:
            body: a `PodCreateRequest` of the contract.
            owner: whose it is.
            doom: why its installation is going to fail.

        Raises:
            PlatformError: 400, 402, 404, 409 or 422.
        """
        spec = body["pod"]
        _check_sharing(body)
        offer = find_gpu_offer(self._catalogue, body)
        price = offer.hourly(spec.get("diskSize"), spec.get("vcpus"), spec.get("memory"))
        if spec.get("maxPrice") is not None and price > exact(spec["maxPrice"]):
            raise PlatformError(400, f"The price is {price}, above maxPrice")
        prepaid = exact(spec.get("prepaidForHr") or offer.prepaid)
        self._wallets.check(owner.team_id, prepaid * price)
        disks = self._disks.attachable(body.get("disks") or (), offer.place)
        if not offer.stock.take():
            raise sold_out()
        now = self._clock.date()
        pod_id = self._identifiers.make("", 32)
        pod = Pod(
            id=pod_id,
            owner=owner,
            wallet_id=self._wallets.wallet_id(owner.team_id),
            name=spec.get("name") or f"pod-{pod_id[:6]}",
            offer=offer.to_wire(),
            spec=spec,
            price=price,
            created_at=now,
            updated_at=now,
            addresses=self._addresses(offer in self._catalogue.clusters, offer.gpu_count),
            doom=doom,
            disks=disks,
        )
        self._offers[pod_id] = offer
        self._disks.attach(disks, pod_id)
        steps = self._begin(pod, prepaid)
        wire = pod.to_wire()
        steps.start()
        return wire

    def _begin(self, pod: Pod, prepaid: Decimal = Decimal(0)) -> Steps:
        def take() -> bool:
            return pod.live and self._step(pod)

        def rate() -> Decimal:
            return pod.price if pod.charged else Decimal(0)

        self._pods[pod.id] = pod
        steps = self._steps[pod.id] = Steps(self._pace, take)
        self._tally.made()
        self._touch(pod)
        self._wallets.meter(
            "compute", pod.id, pod.owner.team_id, rate, prepaid_hours=prepaid, price=pod.price
        )
        return steps

    def _step(self, pod: Pod) -> bool:
        if pod.stage < READY and pod.failure is None:
            pod.stage += 1
            if pod.stage == INSTALLING:
                pod.failure = pod.doom
            self._touch(pod)
        return pod.stage < READY and pod.failure is None

    def live(self) -> list[Pod]:
        """Return the pods that live, newest first."""
        return [pod for pod in reversed(self._pods.values()) if pod.live]

    def ended(self) -> list[Pod]:
        """Return the pods that have ended."""
        return [pod for pod in self._pods.values() if not pod.live]

    def get(self, pod_id: str) -> Pod:
        """Return a pod that lives.

        Raises:
            PlatformError: 404.
        """
        pod = self._pods.get(pod_id)
        if pod is None or not pod.live:
            raise PlatformError(404, "Pod not found")
        return pod

    def find(self, pod_ids: Iterable[str]) -> list[Pod]:
        """Return those of some pods that live."""
        found = (self._pods.get(pod_id) for pod_id in pod_ids)
        return [pod for pod in found if pod is not None and pod.live]

    def read(self, pod: Pod) -> JsonObject:
        """Return a pod's wire form to a caller, which may move the pod on."""
        wire = pod.to_wire()
        self._steps[pod.id].read()
        return wire

    def read_status(self, pod: Pod) -> JsonObject:
        """Return a pod's state to a caller, which may move the pod on."""
        wire = pod.to_status_wire()
        self._steps[pod.id].read()
        return wire

    def history(self, pod: Pod) -> JsonObject:
        return pod.to_history_wire(self._wallets.amount(pod.id), pod.owner.user_id)

    def end(self, pod: Pod, *, deleted: bool) -> None:
        """End a pod: it moves into the history, and its disks are released."""
        self._steps.pop(pod.id).stop()
        pod.terminated_at = self._clock.date()
        self._touch(pod)
        self._wallets.stop(pod.id)
        self._disks.release(pod.disks, pod.id)
        if (offer := self._offers.pop(pod.id, None)) is not None:
            offer.stock.give_back()
        self._tally.ended(deleted=deleted)

    def end_all_of(self, team_id: str | None) -> None:
        """End the pods of an owner whose credits have run out."""
        for pod in self.live():
            if pod.owner.team_id == team_id:
                self.end(pod, deleted=False)

    def fail(self, pod_id: str, reason: str) -> None:
        """Let a pod's installation fail, or its machine, with this text.

        Raises:
            ValueError: no such pod lives.
        """
        pod = self._living(pod_id)
        pod.failure = reason
        self._touch(pod)

    def vanish(self, pod_id: str) -> None:
        """Let a provider take a pod away, without a word.

        Raises:
            ValueError: no such pod lives.
        """
        self.end(self._living(pod_id), deleted=False)

    def _addresses(self, multinode: bool, gpu_count: int) -> list[str]:
        nodes = max(2, gpu_count // _GPUS_OF_A_NODE) if multinode else 1
        first = len(self._pods)
        return [f"203.0.113.{(first + node) % 254 + 1}" for node in range(nodes)]

    def clear(self) -> None:
        for steps in self._steps.values():
            steps.stop()
        self._steps.clear()
        self._offers.clear()
        self._pods.clear()

    def _living(self, pod_id: str) -> Pod:
        pod = self._pods.get(pod_id)
        if pod is None or not pod.live:
            raise ValueError(f"there is no live pod {pod_id}")
        return pod

    def _touch(self, pod: Pod) -> None:
        pod.updated_at = self._clock.date()
        self._storage.save_object(KIND, pod.id, pod.to_row())


def _check_sharing(body: JsonObject) -> None:
    if body.get("sharedWithTeam") and not body.get("team"):
        raise PlatformError(400, "sharedWithTeam needs a team")
    spec = body["pod"]
    if (spec.get("image") == "custom_template") != (spec.get("customTemplateId") is not None):
        raise PlatformError(400, "customTemplateId goes with the image custom_template, only")
