"""The login by a browser, from the challenge to the file, against the local platform."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from prime_core import (
    APIResponseError,
    AsyncAPIClient,
    AsyncLogin,
    BadRequestError,
    Config,
    ConfigurationError,
    ForbiddenError,
    Login,
    LoginExpiredError,
    LoginLimits,
    LoginTimeoutError,
    UnauthorizedError,
)
from prime_local import Assumptions, FaultRule, LocalPlatform, PlatformProcess

pytestmark = pytest.mark.usefixtures("clean_environment")

START, STATUS = "generate_auth_challenge", "get_auth_challenge_status"


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalPlatform]:
    monkeypatch.setattr("prime_core._async.login.PAUSE", 0.05)
    monkeypatch.setattr("prime_core.polling.TICK", 0.05)
    monkeypatch.setattr("prime_core.retries.BASE_DELAY", 0.01)
    async with LocalPlatform(limits=False) as platform:
        monkeypatch.setenv("PRIME_BASE_URL", platform.url)
        yield platform


@pytest.fixture
async def login(platform: LocalPlatform) -> AsyncIterator[AsyncLogin]:
    async with AsyncLogin() as login:
        yield login


async def test_a_login_brings_a_key_and_keeps_it(
    platform: LocalPlatform,
    login: AsyncLogin,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    challenge = await login.begin()
    assert challenge.url == (
        f"https://app.primeintellect.ai/dashboard/tokens/challenge?code={challenge.code}"
    )
    waiting = asyncio.create_task(login.finish(challenge))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    platform.approve_login(challenge.code)
    result = await asyncio.wait_for(waiting, 5)
    assert (result.user_name, [team.slug for team in result.teams]) == (
        "Ada",
        ["research-lab", "duo"],
    )
    await login.save(result, team=result.teams[0])
    config = Config()
    assert (config.api_key, config.team_id) == (result.key.reveal(), result.teams[0].id)
    stored = json.loads((tmp_path / ".prime" / "config.json").read_text())
    assert (stored["user_name"], stored["team_role"]) == ("Ada", "ADMIN")
    async with AsyncAPIClient() as client:
        assert (await client.get("/user/whoami"))["data"]["name"] == "Ada"
    key = result.key.reveal()
    assert key not in caplog.text
    assert key not in f"{result} {result!r} {challenge!r}"
    assert key.encode() not in pickle.dumps(result)


async def test_the_personal_account_is_the_default(
    platform: LocalPlatform, login: AsyncLogin
) -> None:
    challenge = await login.begin()
    platform.approve_login(challenge.code)
    await login.save(await login.finish(challenge))
    assert Config().team_id is None


async def test_neither_key_nor_team_of_the_configuration_is_sent(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_API_KEY", "pit_of_somebody_else")
    async with AsyncLogin() as login:
        challenge = await login.begin()
        platform.approve_login(challenge.code)
        assert (await login.finish(challenge)).key.reveal() != "pit_of_somebody_else"


async def test_a_challenge_holds_its_secrets(login: AsyncLogin) -> None:
    challenge = await login.begin()
    assert "status_" not in repr(challenge) + str(vars(challenge))
    with pytest.raises(TypeError, match="private key"):
        pickle.dumps(challenge)


async def test_the_limits_of_a_key_are_asked_for(
    platform: LocalPlatform, login: AsyncLogin
) -> None:
    challenge = await login.begin(limits=LoginLimits(max_concurrent_tunnels=2))
    platform.approve_login(challenge.code)
    key = (await login.finish(challenge)).key.reveal()
    async with AsyncAPIClient(key) as client:
        limits = (await client.get("/user/whoami"))["data"]["key_limits"]
    assert limits["max_concurrent_tunnels"] == 2
    with pytest.raises(ValueError, match="max_tunnel_ttl_hours"):
        LoginLimits(max_tunnel_ttl_hours=0)


async def test_limits_that_are_not_confirmed_are_warned_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = Assumptions(login_limits="silent")
    async with LocalPlatform(assumptions=silent) as platform:
        monkeypatch.setenv("PRIME_BASE_URL", platform.url)
        async with AsyncLogin() as login:
            with pytest.warns(UserWarning, match="does not confirm"):
                await login.begin(limits=LoginLimits(max_concurrent_tunnels=2))


async def test_what_may_pass_is_waited_for(platform: LocalPlatform, login: AsyncLogin) -> None:
    challenge = await login.begin()
    platform.approve_login(challenge.code)
    platform.add_faults(
        FaultRule(STATUS, times=4, status=503),
        FaultRule(STATUS, times=4, reset="before_commit"),
    )
    assert (await login.finish(challenge, timeout=10)).user_name == "Ada"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BadRequestError),
        (401, UnauthorizedError),
        (403, ForbiddenError),
        (404, LoginExpiredError),
        (410, LoginExpiredError),
    ],
)
async def test_a_refusal_ends_the_wait(
    status: int, error: type[Exception], platform: LocalPlatform, login: AsyncLogin
) -> None:
    challenge = await login.begin()
    platform.add_faults(FaultRule(STATUS, status=status))
    with pytest.raises(error):
        await login.finish(challenge)
    assert platform.ledger()["requests"][STATUS] == 1


async def test_a_challenge_expires(platform: LocalPlatform, login: AsyncLogin) -> None:
    challenge = await login.begin()
    await platform.advance(600)
    with pytest.raises(LoginExpiredError):
        await login.finish(challenge)


async def test_a_wait_has_a_deadline(login: AsyncLogin) -> None:
    challenge = await login.begin()
    began = time.monotonic()
    with pytest.raises(LoginTimeoutError) as caught:
        await login.finish(challenge, timeout=0.3)
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - began < 5
    with pytest.raises(ValueError, match="timeout"):
        await login.finish(challenge, timeout=0)


@pytest.mark.parametrize("result", ["bm90IGVuY3J5cHRlZA==", "no base64", "ä"])
async def test_a_result_that_can_not_be_decrypted_is_an_error(
    result: str, platform: LocalPlatform, login: AsyncLogin
) -> None:
    challenge = await login.begin()
    platform.add_faults(FaultRule(STATUS, status=200, body=json.dumps({"result": result})))
    with pytest.raises(APIResponseError, match="decrypted"):
        await login.finish(challenge)


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", '{"challenge":"","status_auth_token":"a"}'])
async def test_an_answer_of_another_form_is_an_error(
    body: str, platform: LocalPlatform, login: AsyncLogin
) -> None:
    platform.add_faults(FaultRule(START, status=200, body=body))
    with pytest.raises(APIResponseError):
        await login.begin()


@pytest.mark.parametrize("operation", ["get_whoami", "list_my_teams"])
async def test_a_key_is_not_lost_when_its_user_can_not_be_read(
    operation: str, platform: LocalPlatform, login: AsyncLogin
) -> None:
    challenge = await login.begin()
    platform.approve_login(challenge.code)
    platform.add_faults(FaultRule(operation, status=403))
    with pytest.warns(UserWarning, match="could not be read"):
        result = await login.finish(challenge)
    assert result.key
    assert result.teams == ()


@pytest.mark.parametrize("variable", ["PRIME_BASE_URL", "PRIME_FRONTEND_URL"])
async def test_what_is_not_https_is_refused_before_anything_is_sent(
    variable: str, platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "http://prime.example")
    async with AsyncLogin() as login:
        with pytest.raises(ConfigurationError, match=f"{variable} is not https"):
            await login.begin()
    assert START not in platform.ledger()["requests"]


async def test_a_context_for_this_process_alone_is_refused(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_CONTEXT", "production")
    async with AsyncLogin() as login:
        with pytest.raises(ConfigurationError, match="PRIME_CONTEXT"):
            await login.begin()
    assert START not in platform.ledger()["requests"]


async def test_without_its_package_a_login_says_how_to_get_it(
    login: AsyncLogin, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("cryptography.hazmat.primitives")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(ConfigurationError, match=r"prime-core\[login\]"):
        await login.begin()


def test_the_sync_login_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_core._async.login.PAUSE", 0.05)
    with PlatformProcess() as platform:
        monkeypatch.setenv("PRIME_BASE_URL", platform.url)
        with Login() as login:
            challenge = login.begin()
            threading.Timer(0.2, platform.approve_login, (challenge.code,)).start()
            result = login.finish(challenge, timeout=20)
            login.save(result)
        assert Config().api_key == result.key.reveal()
