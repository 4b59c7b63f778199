"""What the documentation prints becomes models, and the same JSON again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from code_blocks import code_blocks
from pydantic import BaseModel, ValidationError

from prime_compute import (
    Disk,
    DiskList,
    DiskOfferPage,
    GpuOffer,
    GpuOfferPage,
    GpuType,
    LegacyOffers,
    Pod,
    PodStatusSnapshot,
    PriceSummary,
    ResourceSpec,
    StockStatus,
)

SHARED = os.environ.get("PRIME_SHARED")
SPECS = ("disk", "vcpu")


def exact(text: str) -> Any:
    """JSON whose numbers are their source text."""
    return json.loads(text, parse_float=str, parse_int=str)


def again(model: BaseModel) -> Any:
    return exact(model.model_dump_json(by_alias=True, exclude_unset=True))


def documented() -> list[str]:
    assert SHARED is not None
    text = (Path(SHARED) / "docs" / "platform-docs.txt").read_text("utf-8")
    return [code for _, code in code_blocks(text, "json") if "pricePerUnit" in code]


@pytest.mark.skipif(SHARED is None, reason="PRIME_SHARED does not name the documentation")
def test_every_documented_offer_is_read_and_written_the_same() -> None:
    read = []
    for code in documented():
        if code.startswith("["):
            items = DiskOfferPage.model_validate_json(code).items
            assert [again(item) for item in items] == exact(code)
        elif '"totalCount"' in code:
            page = GpuOfferPage if '"gpuType"' in code else DiskOfferPage
            assert again(page.model_validate_json(code)) == exact(code)
        elif '"cloudId"' in code:
            assert again(GpuOffer.model_validate_json(code)) == exact(code)
        else:
            specs = "{" + code.strip().rstrip(",") + "}"
            for spec in exact(specs).values():
                assert again(ResourceSpec.model_validate_json(json.dumps(spec))) == spec
        read.append(code)
    assert len(read) == 5


def zoned(value: Any) -> Any:
    """JSON whose times say UTC, which is what a time without a zone is."""
    if isinstance(value, dict):
        return {
            name: f"{item}Z" if name.endswith("At") and item else zoned(item)
            for name, item in value.items()
        }
    return [zoned(item) for item in value] if isinstance(value, list) else value


@pytest.mark.skipif(SHARED is None, reason="PRIME_SHARED does not name the documentation")
def test_every_documented_pod_and_disk_is_read_and_written_the_same() -> None:
    assert SHARED is not None
    text = (Path(SHARED) / "docs" / "platform-docs.txt").read_text("utf-8")
    read = []
    for _, code in code_blocks(text, "json"):
        model: type[BaseModel]
        if '"podId"' in code:
            model = PodStatusSnapshot
        elif '"installationStatus"' in code:
            model = Pod
        elif '"clusters"' in code:
            model = DiskList if '"totalCount"' in code else Disk
        else:
            continue
        # Of two documented names the contract's is written.
        code = code.replace('"costPerHr"', '"priceHr"').replace('"totalCount"', '"total_count"')
        assert again(model.model_validate_json(code)) == zoned(exact(code))
        read.append(model)
    assert set(read) == {Pod, PodStatusSnapshot, Disk, DiskList}


LINE = """{"cloudId":"c","gpuType":"H100_80GB","provider":"p","gpuCount":8,
    "prices":{"onDemand":1.10,"currency":"USD"}}"""


def test_both_spellings_are_read() -> None:
    snake = """{"items":[{"cloud_id":"c","gpu_type":"H100_80GB","provider":"p","gpu_count":8,
        "shared_disk":{"price_per_unit":1.5},"prices":{"on_demand":1.10}}],"total_count":1}"""
    page = GpuOfferPage.model_validate_json(snake)
    offer = page.items[0]
    assert page.total_count == 1
    assert offer.shared_disk is not None
    assert (str(offer.shared_disk.price_per_unit), str(offer.prices.on_demand)) == ("1.5", "1.10")


def test_what_a_newer_platform_adds_is_kept() -> None:
    text = LINE.replace("H100_80GB", "X1000_1TB").replace('"USD"', '"USD","newPrice":0.10')
    offer = GpuOffer.model_validate_json(text)
    assert offer.gpu_type == "X1000_1TB"
    assert not isinstance(offer.gpu_type, GpuType)
    assert again(offer) == exact(text)


def test_a_known_word_is_a_member() -> None:
    offer = GpuOffer.model_validate_json(LINE[:-1] + ',"stockStatus":"Low"}')
    assert (offer.gpu_type, offer.stock_status) == (GpuType.H100_80GB, StockStatus.LOW)
    assert isinstance(offer.gpu_type, GpuType)


@pytest.mark.parametrize("model", [GpuOfferPage, DiskOfferPage, LegacyOffers, PriceSummary])
@pytest.mark.parametrize("text", ["", "null", '"text"', "3"])
def test_an_answer_of_nothing_is_no_list(model: type[BaseModel], text: str) -> None:
    with pytest.raises(ValidationError):
        model.model_validate_json(text)


def test_a_page_of_no_offers_is_one() -> None:
    assert GpuOfferPage.model_validate_json('{"items":[],"totalCount":0}').items == []
    assert LegacyOffers.model_validate_json("{}").root == {}


def test_a_summary_is_read_and_written_the_same() -> None:
    text = """{"H100_80GB":{"8":{"cheapest":{"onDemand":15.90,"communityPrice":null,
        "spotPrice":7.5},"united_states":null}}}"""
    summary = PriceSummary.model_validate_json(text)
    cheapest = summary.root["H100_80GB"]["8"]["cheapest"]
    assert cheapest is not None
    assert str(cheapest.on_demand) == "15.90"
    assert again(summary) == exact(text)
