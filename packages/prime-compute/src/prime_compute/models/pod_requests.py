"""What to rent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from pydantic import Field, field_validator, model_validator

from prime_compute.models.availability import GpuOffer
from prime_core.arguments import build, check_texts
from prime_core.exact import ExactNumbers, Price
from prime_core.marks import MARK_LENGTH, marked
from prime_core.models import RequestModel, encode_request

DEFAULT_IMAGE = "ubuntu_22_cuda_12"
CUSTOM_TEMPLATE = "custom_template"
MAX_POD_NAME = 255 - MARK_LENGTH


class PodRequest(RequestModel):
    """A pod to create; `from_offer` fills in what belongs to an offer.

    Follows the page "api-reference/provision-gpu".

    Attributes:
        name: at most 244 characters. A create adds a mark such as ``-3f9a2c41d0``, by which it
            finds the pod again when its answer is lost.
        cloud_id: the offer's plan.
        gpu_type: model of the GPUs.
        socket: their form.
        gpu_count: how many, at least 1.
        provider: who runs it.
        data_center_id: the offer's data centre, if it names one.
        country: likewise.
        security: likewise.
        disk_size: GB; the offer's default without it.
        vcpus: virtual CPUs, likewise.
        memory: GB, likewise.
        max_price: USD an hour above which nothing is provisioned; the price may move later.
        image: what to boot, one of the offer's images; `ubuntu_22_cuda_12` without it.
        custom_template_id: the template, with the image `custom_template` only.
        env_vars: environment variables. Left out of `repr`.
        jupyter_password: left out of `repr`.
        ssh_key_id: an uploaded key to install in place of the primary one.
        auto_restart: restart by itself.
        prepaid_for_hr: hours to pay ahead, above 0, for reserved offers.
        disks: ids of ACTIVE disks in the same data centre to attach, each at most once.
        team_id: the owning team; None takes the client's, "" is the personal account.
        shared_with_team: install the SSH keys of all members of the team.
        team_member_ids: users to share with, unless it is shared with the whole team.

    Raises:
        pydantic.ValidationError: a `ValueError`; a limit above is not kept.
    """

    name: str | None = Field(default=None, min_length=1, max_length=MAX_POD_NAME)
    cloud_id: str = Field(min_length=1)
    gpu_type: str = Field(min_length=1)
    socket: str = Field(min_length=1)
    gpu_count: int = Field(ge=1)
    provider: str = Field(min_length=1)
    data_center_id: str | None = None
    country: str | None = None
    security: str | None = None
    disk_size: int | None = Field(default=None, ge=1)
    vcpus: int | None = Field(default=None, ge=1)
    memory: int | None = Field(default=None, ge=1)
    max_price: Price | None = Field(default=None, ge=0)
    image: str | None = Field(default=None, min_length=1)
    custom_template_id: str | None = Field(default=None, min_length=1)
    env_vars: dict[str, str] | None = Field(default=None, repr=False)
    jupyter_password: str | None = Field(default=None, repr=False)
    ssh_key_id: str | None = None
    auto_restart: bool | None = None
    prepaid_for_hr: Price | None = Field(default=None, gt=0)
    disks: list[str] | None = None
    team_id: str | None = None
    shared_with_team: bool = False
    team_member_ids: list[str] | None = None

    @field_validator("disks")
    @classmethod
    def _check_disks(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and (not all(value) or len(set(value)) < len(value)):
            raise ValueError("it holds ids of disks, each once")
        return value

    @model_validator(mode="after")
    def _check_template(self) -> PodRequest:
        if (self.image == CUSTOM_TEMPLATE) != (self.custom_template_id is not None):
            raise ValueError(f"custom_template_id goes with the image {CUSTOM_TEMPLATE}, only")
        return self

    @classmethod
    def from_offer(
        cls,
        offer: GpuOffer,
        *,
        name: str | None = None,
        image: str | None = None,
        disk_size: int | None = None,
        vcpus: int | None = None,
        memory: int | None = None,
        max_price: Decimal | str | int | None = None,
        disks: Sequence[str] | None = None,
        env_vars: Mapping[str, str] | None = None,
        custom_template_id: str | None = None,
        ssh_key_id: str | None = None,
        team_id: str | None = None,
        shared_with_team: bool = False,
        team_member_ids: Sequence[str] | None = None,
    ) -> PodRequest:
        """Makes a request for an offer: copies its place and plan, and checks the rest by it.

        Follows the page "api-reference/provision-gpu".

        Args:
            offer: from `AsyncComputeClient.availability`.
            name: as the attribute.
            image: as the attribute; the offer must have it.
            disk_size: GB, within the offer's minimum, maximum and step.
            vcpus: likewise.
            memory: GB, likewise.
            max_price: USD an hour; wise where the offer's price is variable.
            disks: as the attribute.
            env_vars: as the attribute.
            custom_template_id: as the attribute.
            ssh_key_id: as the attribute.
            team_id: as the attribute.
            shared_with_team: as the attribute.
            team_member_ids: as the attribute.

        Raises:
            ValueError: the offer does not allow it; it names the field.
        """
        from prime_compute.pricing import check_amount  # which builds on the models

        wanted = image or DEFAULT_IMAGE
        if offer.images and wanted not in offer.images:
            known = ", ".join(map(str, offer.images))
            raise ValueError(f"image: the offer has no {wanted!r}, but {known}")
        for field, amount, spec in (
            ("disk_size", disk_size, offer.disk),
            ("vcpus", vcpus, offer.vcpu),
            ("memory", memory, offer.memory),
        ):
            if amount is not None:
                check_amount(field, spec, amount)
        given = {
            "name": name,
            "image": image,
            "disk_size": disk_size,
            "vcpus": vcpus,
            "memory": memory,
            "max_price": max_price,
            "disks": None if disks is None else check_texts("disks", disks),
            "env_vars": dict(env_vars) if isinstance(env_vars, Mapping) else env_vars,
            "custom_template_id": custom_template_id,
            "ssh_key_id": ssh_key_id,
            "team_id": team_id,
            "team_member_ids": (
                None if team_member_ids is None else check_texts("team_member_ids", team_member_ids)
            ),
            "data_center_id": offer.data_center,
            "country": offer.country,
            "security": offer.security,
        }
        return build(
            cls,
            {
                "cloud_id": offer.cloud_id,
                "gpu_type": offer.gpu_type,
                "socket": offer.socket,
                "gpu_count": offer.gpu_count,
                "provider": offer.provider,
                "shared_with_team": shared_with_team,
                **{field: value for field, value in given.items() if value is not None},
            },
        )


_SPEC = {
    "cloud_id": "cloudId",
    "gpu_type": "gpuType",
    "socket": "socket",
    "gpu_count": "gpuCount",
    "disk_size": "diskSize",
    "vcpus": "vcpus",
    "memory": "memory",
    "max_price": "maxPrice",
    "image": "image",
    "custom_template_id": "customTemplateId",
    "data_center_id": "dataCenterId",
    "country": "country",
    "security": "security",
    "jupyter_password": "jupyterPassword",
    "ssh_key_id": "sshKeyId",
    "auto_restart": "autoRestart",
    "prepaid_for_hr": "prepaidForHr",
}


class _PodBody(ExactNumbers, RequestModel):
    """The body of a create, as it goes on the wire."""

    pod: dict[str, object] = Field(repr=False)
    provider: dict[str, str]
    disks: list[str] | None = None
    sharedWithTeam: bool | None = None
    teamMemberIds: list[str] | None = None


def pod_body(request: PodRequest, mark: str) -> bytes:
    """The body that creates a pod under its marked name, but for the team."""
    pod: dict[str, object] = {
        wire: getattr(request, field)
        for field, wire in _SPEC.items()
        if getattr(request, field) is not None
    }
    pod["name"] = marked(request.name, mark, "pod")
    if request.env_vars is not None:
        pod["envVars"] = [{"key": key, "value": value} for key, value in request.env_vars.items()]
    body = _PodBody(pod=pod, provider={"type": request.provider})
    if request.disks:
        body.disks = request.disks
    if request.shared_with_team:
        body.sharedWithTeam = True
    if request.team_member_ids is not None:
        body.teamMemberIds = request.team_member_ids
    return encode_request(body)
