"""SSH keys, teams, the caller, API keys and feedback, against the local platform."""

from __future__ import annotations

import asyncio

import pytest

from prime_compute import (
    APIConnectionError,
    APIResponseError,
    AsyncComputeClient,
    ComputeClient,
    ConfigurationError,
    ConflictError,
    EffectiveLimits,
    ForbiddenError,
    NotFoundError,
    ServerError,
    TeamRole,
    UnauthorizedError,
    Whoami,
    effective_limits,
)
from prime_local import FaultRule, LocalPlatform

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExhFWFSkaWSzEan2yiepw ada@laptop"
# Not in one piece, lest it be taken for a real one.
PRIVATE_KEY = "-----BEGIN OPENSSH {}-----\nb3BlbnNzaC1rZXk".format("PRIVATE KEY")
TEAM = "cmg0team5x0002zz4m1k6w7bd"


async def test_ssh_keys_come_change_and_go(client: AsyncComputeClient) -> None:
    first = await client.ssh_keys.upload("laptop", f" {PUBLIC_KEY}\n")
    second = await client.ssh_keys.upload("desk", PUBLIC_KEY)
    assert first.public_key == PUBLIC_KEY
    assert (await client.ssh_keys.set_primary(first.id)).updated_fields == {"isPrimary": True}
    keys = [key async for key in client.ssh_keys.iter()]
    assert [(key.id, key.is_primary) for key in keys] == [(first.id, True), (second.id, False)]
    page = await client.ssh_keys.list(offset=1, limit=1)
    assert (page.total_count, page.offset, page.limit) == (2, 1, 1)
    assert [key.id for key in page.data] == [second.id]
    await client.ssh_keys.delete(first.id)
    assert (await client.ssh_keys.list()).total_count == 1
    with pytest.raises(NotFoundError):
        await client.ssh_keys.delete(first.id)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519",
        f"{PUBLIC_KEY}\n{PUBLIC_KEY}",
        PRIVATE_KEY,
    ],
)
async def test_what_is_no_public_key_is_never_sent_nor_shown(
    text: str, platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    with pytest.raises(ValueError, match="public_key") as caught:
        await client.ssh_keys.upload("laptop", text)
    assert "b3Blb" not in str(caught.value)
    assert "upload_ssh_key" not in platform.ledger()["requests"]


async def test_an_upload_without_an_answer_is_not_sent_again(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    platform.add_faults(FaultRule("upload_ssh_key", reset="after_commit"))
    with pytest.raises(APIConnectionError, match="may have done it"):
        await client.ssh_keys.upload("laptop", PUBLIC_KEY)
    assert platform.ledger()["requests"]["upload_ssh_key"] == 1
    assert [key.name async for key in client.ssh_keys.iter()] == ["laptop"]


async def test_a_delete_whose_answer_is_lost_is_done(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    key = await client.ssh_keys.upload("laptop", PUBLIC_KEY)
    platform.add_faults(FaultRule("delete_ssh_key", nth=1, reset="after_commit"))
    await client.ssh_keys.delete(key.id)
    assert platform.ledger()["responses"]["404"] == 1


async def test_teams_and_their_members_are_read(client: AsyncComputeClient) -> None:
    lab, duo = [team async for team in client.teams.iter()]
    assert (lab.name, lab.role) == ("Research Lab", TeamRole.ADMIN)
    assert [member.user_name async for member in client.teams.iter_members(duo.team_id)] == [
        "Ada",
        "Bob",
    ]
    page = await client.teams.list_members(lab.team_id, offset=1, limit=2)
    assert (page.total_count, [each.user_name for each in page.data]) == (4, ["Bob", "Carol"])
    with pytest.raises(ForbiddenError):
        await client.teams.list_members(TEAM)


async def test_the_configured_team_stands_in_and_none_is_an_error_before_sending(
    platform: LocalPlatform, client: AsyncComputeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="team_id="):
        await client.teams.list_members()
    with pytest.raises(ConfigurationError, match="team_id="):
        await client.teams.list_members("")
    team = (await client.teams.list()).data[0].team_id
    monkeypatch.setenv("PRIME_TEAM_ID", team)
    async with AsyncComputeClient() as configured:
        assert (await configured.teams.list_members()).total_count == 4
    assert platform.ledger()["requests"]["list_team_members"] == 1


def test_roles_are_compared_without_case() -> None:
    assert TeamRole("admin") is TeamRole.ADMIN


async def test_whoami_tells_limits_of_the_account_and_of_the_key(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    limits = {"maxConcurrentTunnels": 2, "maxConcurrentSandboxes": 10, "maxTunnelTtlHours": 500}
    capped = platform.add_key("capped", limits=limits)
    async with AsyncComputeClient(capped) as other:
        me = await other.account.whoami()
    assert (me.name, me.email, me.scope["traces"]) == (
        "Ada",
        "ada@example.com",
        (await client.account.whoami()).scope["traces"],
    )
    assert effective_limits(me) == EffectiveLimits(
        concurrent_sandboxes=10,
        sandbox_creations_per_hour=None,
        sandbox_creations_per_10_s=50,
        sandbox_cpu_cores=4096,
        concurrent_vm_sandboxes=1024,
        sandbox_gpus=0,
        concurrent_tunnels=2,
        tunnel_creations_per_hour=256,
        tunnel_ttl_hours=168,
    )


def test_limits_that_nobody_sets_are_none() -> None:
    nothing = effective_limits(Whoami(email="ada@example.com"))
    assert set(vars(nothing).values()) == {None}


async def test_whoami_names_the_team_whose_limits_are_asked_for(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    team = (await client.teams.list()).data[0].team_id
    assert (await client.account.whoami(team_id=team)).email == "ada@example.com"
    with pytest.raises(ForbiddenError):
        await client.account.whoami(team_id=TEAM)
    platform.add_faults(FaultRule("get_whoami", status=200, body='{"data":null}'))
    with pytest.raises(APIResponseError):
        await client.account.whoami()


async def test_a_slug_is_chosen_once(platform: LocalPlatform, client: AsyncComputeClient) -> None:
    for wrong in ("ab", "Ada", "a" * 31, "ada\n"):
        with pytest.raises(ValueError, match="slug"):
            await client.account.set_slug(wrong)
    assert "set_user_slug" not in platform.ledger()["requests"]
    with pytest.raises(ConflictError):
        await client.account.set_slug("prime")
    assert (await client.account.set_slug("ada-1")).slug == "ada-1"
    assert (await client.account.whoami()).slug == "ada-1"
    with pytest.raises(ConflictError):
        await client.account.set_slug("ada-2")


async def test_keys_are_listed_disabled_and_deleted(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    value = platform.add_key("spare")
    other = platform.add_key("other")
    tokens = [token async for token in client.tokens.iter()]
    names = {token.model_dump()["name"]: token.id for token in tokens}
    assert names.keys() == {"local", "spare", "other"}
    assert not any(value in token.model_dump_json() for token in tokens)
    await client.tokens.disable(names["spare"])
    await client.tokens.delete(names["other"])
    for key in (value, other):
        async with AsyncComputeClient(key) as refused:
            with pytest.raises(UnauthorizedError) as caught:
                await refused.account.whoami()
            assert key not in f"{caught.value!r} {caught.value.body}"
    assert (await client.tokens.list()).total_count == 2
    for call in (client.tokens.disable, client.tokens.delete):
        with pytest.raises(NotFoundError):
            await call("unknown")


async def test_an_expired_key_is_refused(platform: LocalPlatform) -> None:
    async with AsyncComputeClient(platform.add_key("brief", lifetime=60)) as brief:
        await brief.account.whoami()
        await platform.advance(60)
        with pytest.raises(UnauthorizedError):
            await brief.account.whoami()


async def test_feedback_is_sent_once(platform: LocalPlatform, client: AsyncComputeClient) -> None:
    for message, run_id in (("", None), ("a" * 2049, None), ("a", "r" * 129)):
        with pytest.raises(ValueError, match="message" if run_id is None else "run_id"):
            await client.feedback.submit(message, run_id=run_id)
    with pytest.raises(ValueError, match="category"):
        await client.feedback.submit("a", category="praise")  # type: ignore[arg-type]
    assert "submit_feedback" not in platform.ledger()["requests"]
    await client.feedback.submit("Disks stay PENDING", category="bug", run_id="run_1")
    platform.add_faults(FaultRule("submit_feedback", status=503))
    with pytest.raises(ServerError):
        await client.feedback.submit("again")
    assert platform.ledger()["requests"]["submit_feedback"] == 2


async def test_the_sync_client_has_it_all(platform: LocalPlatform) -> None:
    def use() -> list[object]:
        with ComputeClient() as client:
            key = client.ssh_keys.upload("laptop", PUBLIC_KEY)
            client.ssh_keys.delete(key.id)
            return [
                client.account.whoami().name,
                [team.name for team in client.teams.iter()],
                len(list(client.tokens.iter())),
                client.secrets.create("KEY", "value").name,
            ]

    assert await asyncio.to_thread(use) == ["Ada", ["Research Lab", "Duo"], 1, "KEY"]
