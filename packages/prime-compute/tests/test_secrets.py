"""Secrets of people and teams, whose values are never seen again."""

from __future__ import annotations

import base64
import json
import logging
import pickle
from functools import partial
from typing import Any

import pytest
from pydantic import SecretStr

from prime_compute import (
    APIError,
    AsyncComputeClient,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ServerError,
)
from prime_compute.models import SecretRequest
from prime_local import FaultRule, LocalPlatform

VALUE = 'hunter2 "quoted"\nläßt'
FOREIGN = "cmg0team5x0002zz4m1k6w7bd"


async def test_a_secret_lives_its_life(client: AsyncComputeClient) -> None:
    made = await client.secrets.create("JUDGE_KEY", VALUE, description="judge")
    assert (made.name, made.description, made.is_file, made.team_id) == (
        "JUDGE_KEY",
        "judge",
        False,
        None,
    )
    assert await client.secrets.get(made.id) == made
    changed = await client.secrets.update(made.id, name="JUDGE_KEY_2", description="")
    assert (changed.name, changed.description) == ("JUDGE_KEY_2", None)
    assert (await client.secrets.update(made.id, value=SecretStr("other"))).name == "JUDGE_KEY_2"
    assert [secret.id async for secret in client.secrets.iter()] == [made.id]
    await client.secrets.delete(made.id)
    assert (await client.secrets.list()).total_count == 0
    with pytest.raises(NotFoundError):
        await client.secrets.get(made.id)


async def test_a_name_is_used_once_in_a_scope(client: AsyncComputeClient) -> None:
    team = (await client.teams.list()).data[0].team_id
    await client.secrets.create("KEY", "a")
    of_team = await client.secrets.create("KEY", "a", team_id=team)
    assert of_team.team_id == team
    with pytest.raises(ConflictError):
        await client.secrets.create("KEY", "b")
    other = await client.secrets.create("OTHER", "b")
    with pytest.raises(ConflictError):
        await client.secrets.update(other.id, name="KEY")
    assert [each.id async for each in client.secrets.iter(team_id=team)] == [of_team.id]
    with pytest.raises(NotFoundError):
        await client.secrets.get(of_team.id, team_id="")
    with pytest.raises(ForbiddenError):
        await client.secrets.create("KEY", "a", team_id=FOREIGN)


async def test_a_file_is_base64(client: AsyncComputeClient) -> None:
    content = base64.b64encode(bytes(64 * 1024)).decode()
    assert (await client.secrets.create("FILE", content, is_file=True)).is_file


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"name": "lower"}, "name"),
        ({"name": "KEY\n"}, "name"),
        ({"name": "K" * 256}, "name"),
        ({"value": ""}, "value"),
        ({"value": SecretStr("")}, "value"),
        ({"value": "hunter2\ud800"}, "value"),
        ({"value": "hunter2!", "is_file": True}, "base64"),
        ({"value": base64.b64encode(bytes(64 * 1024 + 1)).decode(), "is_file": True}, "65537"),
        ({"description": "d" * 501}, "description"),
    ],
)
async def test_an_impossible_secret_is_not_sent_nor_shown(
    arguments: dict[str, Any], named: str, platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        await client.secrets.create(**{"name": "KEY", "value": "hunter2", **arguments})
    assert "hunter2" not in f"{caught.value} {caught.value!r}"
    assert caught.value.__cause__ is None
    assert "create_secret" not in platform.ledger()["requests"]


async def test_a_value_of_another_kind_is_a_type_error(client: AsyncComputeClient) -> None:
    with pytest.raises(TypeError, match="value"):
        await client.secrets.create("KEY", b"hunter2")  # type: ignore[arg-type]


async def test_an_update_changes_something(client: AsyncComputeClient) -> None:
    with pytest.raises(ValueError, match="nothing to change"):
        await client.secrets.update("any")


@pytest.mark.parametrize("form", ["detail", "problems"])
async def test_no_error_and_no_log_line_has_the_value(
    form: str,
    platform: LocalPlatform,
    client: AsyncComputeClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    problem = {"loc": ["body", "value"], "msg": f"not {VALUE}", "input": VALUE}
    detail = [problem] if form == "problems" else f"can't store {VALUE}"
    made = await client.secrets.create("KEY", VALUE)
    for escaped in (True, False):
        body = json.dumps({"detail": detail}, ensure_ascii=escaped)
        platform.clear_faults()
        for operation in ("create_secret", "update_secret"):
            platform.add_faults(FaultRule(operation, status=422, body=body))
        for call in (
            partial(client.secrets.create, "OTHER"),
            partial(client.secrets.update, made.id),
        ):
            with pytest.raises(APIError, match="HTTP 422") as caught:
                await call(value=VALUE)
            pickled = pickle.loads(pickle.dumps(caught.value))
            for error in (caught.value, pickled):
                assert "hunter2" not in f"{error} {error!r} {vars(error)}"
    assert "hunter2" not in caplog.text


def test_a_request_shows_no_value() -> None:
    request = SecretRequest(name="KEY", value=SecretStr("hunter2"))
    assert "hunter2" not in f"{request!r} {request}"


async def test_a_create_without_an_answer_is_not_sent_again(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    platform.add_faults(FaultRule("create_secret", status=502))
    with pytest.raises(ServerError, match="may have done it"):
        await client.secrets.create("KEY", "a")
    assert platform.ledger()["requests"]["create_secret"] == 1
