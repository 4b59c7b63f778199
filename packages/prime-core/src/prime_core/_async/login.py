"""The login by a browser."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import re
import warnings
from collections.abc import Mapping
from types import TracebackType
from urllib.parse import quote, urlsplit

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_core.calls import Reader, Target
from prime_core.config import Config
from prime_core.decoding import model_reader
from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    ConfigurationError,
    LoginExpiredError,
    LoginTimeoutError,
    RateLimitError,
    ServerError,
    rebuilt,
)
from prime_core.login.keys import KeyPair
from prime_core.login.models import (
    ChallengeAnswer,
    ChallengeRequest,
    ChallengeStatus,
    LoginChallenge,
    LoginLimits,
    LoginResult,
    LoginTeam,
)
from prime_core.login.operations import GENERATE_AUTH_CHALLENGE, GET_AUTH_CHALLENGE_STATUS
from prime_core.login.stored import refuse_temporary_context, store
from prime_core.models import encode_request
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, PollTimeout, close_schedules
from prime_core.secret import Secret
from prime_core.sync import in_thread

__all__ = ["AsyncLogin"]

# Seconds between two looks, and for a single call.
PAUSE = 5.0
CALL_TIMEOUT = 30.0
TEAMS_PAGE = 100

_HEADER_TEXT = re.compile(r"[\x21-\x7e]+")


class AsyncLogin:
    """Brings an API key to this machine: somebody approves a challenge in a browser.

    `begin` shows where to approve it, `finish` waits for that, `save` keeps the key in
    `~/.prime`. It needs the package cryptography: ``pip install 'prime-core[login]'``.

    Follows the documented page "cli-reference/introduction".

    Args:
        client: names the addresses to log in at, by default the configured ones. No key of
            it is used.
    """

    def __init__(self, client: AsyncAPIClient | None = None) -> None:
        self._client = client or AsyncAPIClient()
        self._client._share(self)
        self._schedules = PerLoop(lambda: PollSchedule(self._look, transient=_may_pass, batch=1))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._client,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._client!r})"

    async def begin(self, *, limits: LoginLimits | None = None) -> LoginChallenge:
        """Begins a login. Show its ``url`` and its ``code`` to whoever is to approve it.

        Args:
            limits: of the key, besides those of the account. A platform that does not confirm
                them is warned of: the key may have none.

        Raises:
            ConfigurationError: an address is not https, the package cryptography is missing,
                or `PRIME_CONTEXT` chooses a context for this process alone; nothing was sent.
            APIError: any other failure.
        """
        refuse_temporary_context()
        config = self._client.config
        for name, url in (("base_url", config.base_url), ("frontend_url", config.frontend_url)):
            _check_secure(name, url, config.sources[name])
        keys = await in_thread(KeyPair)()
        asked = {} if limits is None else limits.model_dump(by_alias=True, exclude_none=True)
        request = ChallengeRequest(encryption_public_key=keys.public_pem)
        if asked:
            request.limits = asked
        answer = await self._client._transport.perform(
            self._client._transport.prepare_elsewhere(
                GENERATE_AUTH_CHALLENGE,
                model_reader(ChallengeAnswer),
                self._target({}),
                headers={"Content-Type": "application/json"},
                body=encode_request(request),
                timeout=CALL_TIMEOUT,
            )
        )
        confirmed = answer.limits or {}
        if any(confirmed.get(name) != most for name, most in asked.items()):
            warnings.warn(
                "The platform does not confirm the limits of the key: it may have none. See "
                "`whoami` before you hand it on.",
                stacklevel=2,
            )
        code = answer.challenge
        url = f"{config.frontend_url}/dashboard/tokens/challenge?code={quote(code, safe='')}"
        return LoginChallenge(code, url, Secret(answer.status_auth_token), keys)

    async def finish(self, challenge: LoginChallenge, *, timeout: float = 600) -> LoginResult:
        """Waits until a login is approved, and reads whose key it brought.

        It asks at once, and then every 5 s. What may pass, such as an outage, is waited for.

        Args:
            challenge: from `begin`.
            timeout: seconds, above 0.

        Returns:
            The key, which nothing holds yet but this: see `save`.

        Raises:
            LoginTimeoutError: a ``TimeoutError``; nobody approved it in time.
            LoginExpiredError: the platform knows of it no more: begin again.
            APIError: the platform refused it.
            ValueError: a wrong timeout.
        """
        if not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            text = await self._schedules.get().wait(
                challenge, bool, deadline, interval=PAUSE, longest=PAUSE
            )
        except PollTimeout as late:
            raise LoginTimeoutError(
                f"The login was not approved within {timeout:g} s: begin again."
            ) from late.last_error
        except APIError as error:
            if error.status_code in (404, 410):
                raise rebuilt(LoginExpiredError, error) from error.__cause__
            raise
        key = challenge._keys.decrypt(text)
        if not _HEADER_TEXT.fullmatch(key.reveal()):
            raise APIResponseError("The login brought no API key: begin again.")
        return await self._whose(key)

    async def save(self, result: LoginResult, *, team: LoginTeam | None = None) -> None:
        """Keeps a login's key in `~/.prime`, for this and all later programs.

        The file is only for its owner to read, and is replaced at once; what else it holds stays.
        While a named context is active, its file is changed too. The variable `PRIME_API_KEY`
        wins over the file.

        Args:
            result: from `finish`.
            team: the team to act for; None is the personal account.

        Raises:
            ConfigurationError: a file there can't be understood, and so it is left alone.
            OSError: a file there can't be written.
        """
        await in_thread(store)(
            {
                "api_key": result.key.reveal(),
                "user_id": result.user_id,
                "user_name": result.user_name,
                "team_id": None if team is None else team.id,
                "team_name": None if team is None else team.name,
                "team_role": None if team is None else team.role,
            }
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections; a shared client's are closed by the last that uses them."""
        close_schedules(self._schedules)
        await self._client._release(self)

    async def _look(self, challenges: list[LoginChallenge]) -> Mapping[LoginChallenge, str]:
        """Results for the poll schedule, which asks for one at a time; empty before the end."""
        read: Reader[ChallengeStatus] = model_reader(ChallengeStatus)
        found = {}
        for challenge in challenges:
            call = self._client._transport.prepare_elsewhere(
                GET_AUTH_CHALLENGE_STATUS,
                read,
                self._target({"Authorization": f"Bearer {challenge._token.reveal()}"}),
                query={"challenge": challenge.code},
                headers={},
                timeout=CALL_TIMEOUT,
            )
            found[challenge] = (await self._client._transport.perform(call)).result or ""
        return found

    def _target(self, headers: Mapping[str, str]) -> Target:
        """The control plane, without key and team."""
        own = {"User-Agent": self._client._transport.user_agent, "Accept": "application/json"}
        return Target.of(self._client.config.base_url, {**own, **headers})

    async def _whose(self, key: Secret) -> LoginResult:
        """Adds what is known of a key's user; a failure to read that must not lose the key."""
        user: Mapping[str, object] = {}
        teams: list[LoginTeam] = []
        config = Config(key.reveal(), team_id="", base_url=self._client.config.base_url)
        async with AsyncAPIClient(config=config, timeout=CALL_TIMEOUT) as client:
            try:
                answer = await client.get("/user/whoami")
                user = answer["data"]
                teams = await _teams(client)
            except (APIError, KeyError, TypeError) as error:
                warnings.warn(
                    f"Whose key it is could not be read ({type(error).__name__}).", stacklevel=3
                )
        return LoginResult(key, _text(user, "id"), _text(user, "name"), tuple(teams))


async def _teams(client: AsyncAPIClient) -> list[LoginTeam]:
    teams: list[LoginTeam] = []
    while True:
        page = await client.get("/user/teams", {"offset": len(teams), "limit": TEAMS_PAGE})
        teams += [
            LoginTeam(row["teamId"], row["name"], _text(row, "slug"), _text(row, "role"))
            for row in page["data"]
        ]
        total = page.get("total_count") or page.get("totalCount") or 0
        if not page["data"] or len(teams) >= total:
            return teams


def _text(values: Mapping[str, object] | None, name: str) -> str | None:
    value = None if values is None else values.get(name)
    return value if isinstance(value, str) else None


def _may_pass(error: Exception) -> bool:
    return isinstance(error, (APIConnectionError, ServerError, RateLimitError))


def _check_secure(name: str, url: str, source: str) -> None:
    """A login sends and opens pages that bring a key: nobody on the way may change them."""
    parts = urlsplit(url)
    if parts.scheme == "https" or _is_loopback(parts.hostname or ""):
        return
    raise ConfigurationError(
        f"The {name} taken from {source} is not https: a login's key could be taken on the way."
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
