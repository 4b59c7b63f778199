"""Challenges of logins: a code that somebody approves, and a key for whoever waits for that."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from prime_local.account.keys import ApiKeys
from prime_local.clock import PlatformClock
from prime_local.contract import Problem
from prime_local.errors import PlatformError, invalid
from prime_local.identifiers import Identifiers

# Not published; long enough for somebody who looks for a password.
LIFETIME = 600.0


@dataclass
class Challenge:
    """A login under way.

    Args:
        code: what is shown to people.
        token: what asks for the result.
        public_key: encrypts the key, PEM.
        limits: of the key, under the names of the request.
        deadline: on the platform clock.
        result: the encrypted key, in base64.
    """

    code: str
    token: str
    public_key: str
    limits: Mapping[str, int]
    deadline: float
    result: str | None = None


class Challenges:
    """Every login under way; none survives the platform.

    Args:
        clock: ends them.
        identifiers: makes codes.
        keys: makes the keys.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers, keys: ApiKeys) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._keys = keys
        self._challenges: dict[str, Challenge] = {}

    def begin(self, public_key: str, limits: Mapping[str, int]) -> Challenge:
        """Begin a login.

        Raises:
            PlatformError: 422.
        """
        _encrypt(public_key, "")
        code = self._identifiers.make("", 8).upper()
        challenge = Challenge(
            f"{code[:4]}-{code[4:]}",
            self._identifiers.make("status_", 32),
            public_key,
            limits,
            self._clock.now() + LIFETIME,
        )
        self._challenges[challenge.code] = challenge
        return challenge

    def approve(self, code: str) -> None:
        """Approve a login, as its user does in the dashboard: a new key is made for it.

        Raises:
            ValueError: no such login waits.
        """
        challenge = self._live(code)
        if challenge is None or challenge.result is not None:
            raise ValueError(f"no login {code!r} waits")
        key = self._keys.make(f"login {code}", limits=challenge.limits)
        challenge.result = _encrypt(challenge.public_key, key)

    def status(self, code: str, token: str) -> str | None:
        """Return the result of a login, None before it is approved.

        Raises:
            PlatformError: 401 or 404.
        """
        challenge = self._live(code)
        if challenge is None:
            raise PlatformError(404, "Challenge not found or expired")
        if not hmac.compare_digest(
            token.encode("utf-8", "surrogateescape"), challenge.token.encode()
        ):
            raise PlatformError(401, "Invalid status token")
        return challenge.result

    def _live(self, code: str) -> Challenge | None:
        challenge = self._challenges.get(code)
        if challenge is not None and challenge.deadline <= self._clock.now():
            del self._challenges[code]
            return None
        return challenge


def _encrypt(public_key: str, text: str) -> str:
    """Encrypt with RSA-OAEP over SHA-256.

    Raises:
        PlatformError: 422.
    """
    # Loads in 0.1 s, which a platform without logins need not wait for.
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(public_key.encode())
    except ValueError:
        key = None
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size < 2048:
        raise invalid([Problem(("body", "encryptionPublicKey"), "Not an RSA key", "value")])
    oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
    return base64.b64encode(key.encrypt(text.encode(), oaep)).decode()
