"""What disk to create."""

from __future__ import annotations

from pydantic import Field

from prime_compute.models.availability import DiskOffer
from prime_compute.models.disks import MAX_DISK_NAME
from prime_core.arguments import build
from prime_core.marks import MARK_LENGTH, marked
from prime_core.models import RequestModel, encode_request


class DiskRequest(RequestModel):
    """A disk to create; `from_offer` fills in what belongs to an offer.

    Follows the page "api-reference/managing-disks".

    Attributes:
        size: GB, at least 1; it can't be changed later.
        provider: who runs it.
        name: at most 244 characters. A create adds a mark such as ``-3f9a2c41d0``, by which it
            finds the disk again when its answer is lost; `AsyncDisks.rename` takes it off.
        data_center_id: the offer's data centre, if it names one.
        country: likewise.
        cloud_id: the offer's plan, likewise.
        team_id: the owning team; None takes the client's, "" is the personal account.

    Raises:
        pydantic.ValidationError: a `ValueError`; a limit above is not kept.
    """

    size: int = Field(ge=1)
    provider: str = Field(min_length=1)
    name: str | None = Field(default=None, min_length=1, max_length=MAX_DISK_NAME - MARK_LENGTH)
    data_center_id: str | None = None
    country: str | None = None
    cloud_id: str | None = None
    team_id: str | None = None

    @classmethod
    def from_offer(
        cls, offer: DiskOffer, *, size: int, name: str | None = None, team_id: str | None = None
    ) -> DiskRequest:
        """Makes a request for an offer: copies its place and plan, and checks the size by it.

        Args:
            offer: from `AsyncComputeClient.availability`.
            size: GB, within the offer's minimum, maximum and step.
            name: as the attribute.
            team_id: as the attribute.

        Raises:
            ValueError: the offer does not allow it; it names the field.
        """
        from prime_compute.pricing import check_amount  # which builds on the models

        return build(
            cls,
            {
                "size": check_amount("size", offer.spec, size),
                "provider": str(offer.provider),
                "name": name,
                "data_center_id": offer.data_center,
                "country": offer.country,
                "cloud_id": offer.cloud_id,
                "team_id": team_id,
            },
        )


class _DiskBody(RequestModel):
    """The body of a create, as it goes on the wire."""

    disk: dict[str, object]
    provider: dict[str, str]


def disk_body(request: DiskRequest, mark: str) -> bytes:
    """The body that creates a disk under its marked name, but for the team."""
    disk: dict[str, object] = {"size": request.size, "name": marked(request.name, mark, "disk")}
    for wire, value in (
        ("dataCenterId", request.data_center_id),
        ("country", request.country),
        ("cloudId", request.cloud_id),
    ):
        if value is not None:
            disk[wire] = value
    return encode_request(_DiskBody(disk=disk, provider={"type": request.provider}))
