"""What requests for pods and disks copy from offers, check, and send."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from prime_compute import DiskOffer, DiskRequest, GpuOffer, PodRequest
from prime_compute.models.disk_requests import disk_body
from prime_compute.models.pod_requests import pod_body
from prime_core.marks import carries, marked, new_mark

OFFER: dict[str, Any] = {
    "cloudId": "n3-H100x1",
    "gpuType": "H100_80GB",
    "socket": "PCIe",
    "provider": "hyperstack",
    "dataCenter": "CANADA-1",
    "country": "CA",
    "security": "secure_cloud",
    "gpuCount": 1,
    "gpuMemory": 80,
    "disk": {
        "minCount": 50,
        "defaultCount": 100,
        "maxCount": 1000,
        "pricePerUnit": 0.0003,
        "step": 10,
    },
    "vcpu": {"minCount": 4, "defaultCount": 16, "maxCount": 32, "pricePerUnit": 0.004, "step": 2},
    "memory": {"defaultCount": 180},
    "prices": {"onDemand": 2.69, "currency": "USD"},
    "images": ["ubuntu_22_cuda_12", "custom_template"],
}


def offer(**fields: Any) -> GpuOffer:
    return GpuOffer.model_validate_json(json.dumps({**OFFER, **fields}))


def sent(request: PodRequest) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(pod_body(request, "-mark"), parse_float=Decimal)
    return body


def test_the_documented_request_is_made_from_the_documented_offer() -> None:
    request = PodRequest.from_offer(
        offer(), name="My first pod", image="ubuntu_22_cuda_12", disk_size=200, vcpus=20
    )
    assert sent(request) == {
        "pod": {
            "name": "My first pod-mark",
            "cloudId": "n3-H100x1",
            "gpuType": "H100_80GB",
            "socket": "PCIe",
            "gpuCount": 1,
            "image": "ubuntu_22_cuda_12",
            "dataCenterId": "CANADA-1",
            "country": "CA",
            "security": "secure_cloud",
            "diskSize": 200,
            "vcpus": 20,
        },
        "provider": {"type": "hyperstack"},
    }


def test_what_an_offer_does_not_name_is_not_sent() -> None:
    body = sent(PodRequest.from_offer(offer(dataCenter=None, country=None, security=None)))
    assert body["pod"].keys() == {"name", "cloudId", "gpuType", "socket", "gpuCount"}
    assert body["pod"]["name"] == "pod-mark"


def test_everything_else_travels_where_the_contract_has_it() -> None:
    request = PodRequest.from_offer(
        offer(),
        image="custom_template",
        custom_template_id="cmj6",
        env_vars={"HF_HOME": "/data/hf"},
        disks=["d1"],
        max_price="2.70",
        shared_with_team=True,
        team_member_ids=["u1"],
        ssh_key_id="k1",
        team_id="team-a",
    )
    body = sent(request)
    assert body["disks"] == ["d1"]
    assert (body["sharedWithTeam"], body["teamMemberIds"]) == (True, ["u1"])
    assert "team" not in body, "the transport's business"
    pod = body["pod"]
    assert pod["envVars"] == [{"key": "HF_HOME", "value": "/data/hf"}]
    assert (pod["image"], pod["customTemplateId"]) == ("custom_template", "cmj6")
    assert pod["sshKeyId"] == "k1"
    assert b'"maxPrice":2.70' in pod_body(request, "-mark"), "with the digits that were given"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"disk_size": 40}, "disk_size"),
        ({"disk_size": 1010}, "disk_size"),
        ({"disk_size": 105}, "disk_size"),
        ({"vcpus": 3}, "vcpus"),
        ({"vcpus": 5}, "vcpus"),
        ({"memory": 64}, "memory"),
        ({"image": "flux"}, "image"),
        ({"image": "custom_template"}, "custom_template_id"),
        ({"custom_template_id": "x"}, "custom_template_id"),
        ({"disks": ["d1", "d1"]}, "disks"),
        ({"name": "n" * 245}, "name"),
        ({"max_price": 0.1}, "max_price"),
    ],
    ids=str,
)
def test_what_the_offer_does_not_allow_is_refused_by_name(
    options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        PodRequest.from_offer(offer(), **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"disks": "nope"}, "disks is a list of ids, not 'nope'"),
        ({"disks": 3}, "disks is a list of ids, not 3"),
        ({"team_member_ids": "user"}, "team_member_ids is a list of ids, not 'user'"),
        ({"disks": ["a", "a"]}, "disks: it holds ids of disks, each once"),
        ({"disks": [1]}, "disks.0: Input should be a valid string"),
        ({"env_vars": ["A=1"]}, "env_vars: Input should be a valid dictionary"),
        ({"env_vars": {"A": 1}}, "env_vars.A: Input should be a valid string"),
        ({"max_price": 1.5}, "max_price: a price is a Decimal"),
        ({"name": ""}, "name: String should have at least 1 character"),
        ({"custom_template_id": "t"}, "custom_template_id goes with the image"),
    ],
    ids=str,
)
def test_what_is_wrong_by_itself_is_refused_by_name_and_without_links(
    wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        PodRequest.from_offer(offer(), **wrong)
    assert type(caught.value) is ValueError
    assert str(caught.value).startswith(message)
    assert "http" not in str(caught.value)


def test_a_wrong_request_for_a_disk_is_refused_by_name() -> None:
    found = DiskOffer.model_validate(
        {"provider": "p", "cloudId": "c", "spec": {"pricePerUnit": "1"}}
    )
    with pytest.raises(ValueError, match=r"^name: String should have at least 1") as caught:
        DiskRequest.from_offer(found, size=1, name="")
    assert type(caught.value) is ValueError


def test_an_offer_without_the_default_image_needs_one_to_be_named() -> None:
    special = offer(images=["flux"])
    with pytest.raises(ValueError, match="image: the offer has no 'ubuntu_22_cuda_12', but flux"):
        PodRequest.from_offer(special)
    assert PodRequest.from_offer(special, image="flux").image == "flux"


def test_secrets_are_not_shown() -> None:
    request = PodRequest.from_offer(offer(), env_vars={"TOKEN": "hf_secret"})
    request.jupyter_password = "open sesame"
    assert "hf_secret" not in repr(request)
    assert "sesame" not in repr(request)
    assert "hf_secret" not in repr(pod_body(request, "-mark"))


def test_the_documented_disk_request_is_made_from_the_documented_offer() -> None:
    found = DiskOffer.model_validate_json(
        '{"cloudId":null,"provider":"hyperstack","dataCenter":"US-1","country":"US",'
        '"spec":{"minCount":0,"maxCount":100000,"pricePerUnit":0.00015,"step":1}}'
    )
    request = DiskRequest.from_offer(found, size=500, name="ml-training-data")
    assert json.loads(disk_body(request, "-mark")) == {
        "disk": {
            "size": 500,
            "name": "ml-training-data-mark",
            "dataCenterId": "US-1",
            "country": "US",
        },
        "provider": {"type": "hyperstack"},
    }
    with pytest.raises(ValueError, match="size"):
        DiskRequest.from_offer(found, size=200_000)
    with pytest.raises(ValueError, match="size"):
        DiskRequest.from_offer(found, size=0)


def test_a_mark_is_found_again_and_never_twice() -> None:
    marks = {new_mark() for _ in range(1000)}
    assert len(marks) == 1000
    mark = marks.pop()
    assert carries(marked("a pod", mark, "pod"), mark)
    assert carries(marked("a pod", mark, "pod").upper(), mark)
    assert not carries(marked("a pod", marks.pop(), "pod"), mark)
    assert not carries(None, mark)
