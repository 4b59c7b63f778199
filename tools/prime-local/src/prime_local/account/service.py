"""All that belongs to an account."""

from __future__ import annotations

from prime_local.account.keys import KIND as KEY
from prime_local.account.keys import ApiKeys
from prime_local.account.people import KIND as USER
from prime_local.account.people import People
from prime_local.account.secrets import KIND as SECRET
from prime_local.account.secrets import Secrets
from prime_local.account.ssh_keys import KIND as SSH_KEY
from prime_local.account.ssh_keys import SshKeys
from prime_local.clock import PlatformClock
from prime_local.identifiers import Identifiers
from prime_local.login.challenges import Challenges
from prime_local.storage import Objects, Storage


class Account:
    """The caller's account.

    Args:
        clock: the platform's.
        identifiers: makes ids.
        storage: keeps it.
        user_id: the caller.
        api_key: the platform's own key.
        role: what the caller is in every team.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        *,
        user_id: str,
        api_key: str,
        role: str,
    ) -> None:
        self.people = People(clock, storage, user_id, role)
        self.keys = ApiKeys(clock, identifiers, storage, api_key)
        self.ssh_keys = SshKeys(clock, identifiers, storage, user_id)
        self.secrets = Secrets(clock, identifiers, storage)
        self.challenges = Challenges(clock, identifiers, self.keys)

    def take_over(self, objects: Objects) -> None:
        """Go on with what an earlier platform had; logins under way have lapsed."""
        user = objects.get(USER, {}).get(self.people.user_id)
        self.people.take_over(None if user is None else dict(user))
        self.keys.take_over(objects.get(KEY, {}).values())
        self.ssh_keys.take_over(objects.get(SSH_KEY, {}).values())
        self.secrets.take_over(objects.get(SECRET, {}).values())
