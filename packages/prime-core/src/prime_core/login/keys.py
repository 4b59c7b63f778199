"""The pair of keys by which a login's result stays between the platform and this process."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from prime_core.errors import APIResponseError, ConfigurationError
from prime_core.secret import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

__all__ = ["KeyPair"]

BITS = 2048
EXPONENT = 65537


class KeyPair:
    """An RSA key pair that lives in memory alone. Making one takes a tenth of a second or so.

    Raises:
        ConfigurationError: the package that makes it is not installed.
    """

    def __init__(self) -> None:
        try:
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.asymmetric import rsa
        except ImportError as error:
            raise ConfigurationError(
                "A login needs the package cryptography: pip install 'prime-core[login]'."
            ) from error
        self._private: RSAPrivateKey = rsa.generate_private_key(EXPONENT, BITS)
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        public = self._private.public_key().public_bytes(serialization.Encoding.PEM, form)
        self.public_pem = public.decode("ascii")

    def decrypt(self, text: str) -> Secret:
        """What was encrypted with the public key, by RSA-OAEP over SHA-256.

        Args:
            text: in base64.

        Raises:
            APIResponseError: it was not.
        """
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
        try:
            data = self._private.decrypt(base64.b64decode(text, validate=True), oaep)
            return Secret(data.decode())
        except (binascii.Error, ValueError):
            raise APIResponseError("The login's result can't be decrypted: begin again.") from None
