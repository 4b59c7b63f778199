"""Signature version 4: who sent a request, and that nobody changed it."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from urllib.parse import quote, unquote

from aiohttp import web

from prime_local.s3.errors import S3Error

_ALGORITHM = "AWS4-HMAC-SHA256"
_SKEW = timedelta(minutes=15)
_CREDENTIAL = re.compile(r"([^/]+)/(\d{8})/([^/]+)/s3/aws4_request")
_EMPTY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Authorization:
    """The Authorization header of a request.

    Args:
        access_key: whose signature it claims to be.
        scope: date, region and service, as they are signed.
        signed: names of the headers that are signed.
        signature: hexadecimal.
    """

    access_key: str
    scope: str
    signed: tuple[str, ...]
    signature: str


def read_authorization(request: web.Request) -> Authorization:
    """Read the Authorization header.

    Raises:
        S3Error: there is none, or another scheme's.
    """
    algorithm, _, rest = request.headers.get("Authorization", "").partition(" ")
    fields = {
        name.strip(): value.strip()
        for name, _, value in (part.partition("=") for part in rest.split(","))
    }
    credential = _CREDENTIAL.fullmatch(fields.get("Credential", ""))
    signed = tuple(fields.get("SignedHeaders", "").split(";"))
    if algorithm != _ALGORITHM or credential is None or "host" not in signed:
        raise S3Error("AccessDenied", "A request is signed with signature version 4 in its header")
    scope = credential[0].partition("/")[2]
    return Authorization(credential[1], scope, signed, fields.get("Signature", ""))


def check_signature(request: web.Request, authorization: Authorization, secret: str) -> None:
    """Refuse a request that the holder of this secret has not signed, or not lately.

    Its date is compared with this machine's: the platform's may be hours ahead of who signs.

    Args:
        request: its body is vouched for by the digest among its headers, or by nothing.
        authorization: what it says of itself.
        secret: the secret of that access key.

    Raises:
        S3Error: `AccessDenied`, `RequestTimeTooSkewed` or `SignatureDoesNotMatch`.
    """
    for name in request.headers:
        if name.lower().startswith("x-amz-") and name.lower() not in authorization.signed:
            raise S3Error("AccessDenied", f"The header {name.lower()} is not signed")
    date = request.headers.get("x-amz-date", "")
    try:
        signed_at = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        raise S3Error("AccessDenied", "x-amz-date must say when the request was signed") from None
    if abs(signed_at - datetime.now(timezone.utc)) > _SKEW:
        raise S3Error("RequestTimeTooSkewed", "The request was signed at another time than now")
    digest = hashlib.sha256(_canonical(request, authorization.signed).encode()).hexdigest()
    text = "\n".join((_ALGORITHM, date, authorization.scope, digest))
    key = f"AWS4{secret}".encode()
    for part in authorization.scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    expected = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), authorization.signature.encode()):
        raise S3Error("SignatureDoesNotMatch", "The signature is not that of this request")


def _canonical(request: web.Request, signed: tuple[str, ...]) -> str:
    pairs = sorted(
        tuple(quote(unquote(part), safe="") for part in pair.partition("=")[::2])
        for pair in request.rel_url.raw_query_string.split("&")
        if pair
    )
    headers = (
        f"{name}:{','.join(' '.join(value.split()) for value in request.headers.getall(name, ()))}"
        for name in signed
    )
    return "\n".join(
        (
            request.method,
            quote(unquote(request.rel_url.raw_path), safe="/"),
            "&".join("=".join(pair) for pair in pairs),
            *headers,
            "",
            ";".join(signed),
            request.headers.get("x-amz-content-sha256", _EMPTY),
        )
    )
