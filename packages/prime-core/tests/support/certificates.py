"""A certificate authority of the tests' own, made with the openssl program."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

CONFIG = """
[req]
distinguished_name = name
x509_extensions = ca
prompt = no
[name]
CN = Test CA
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = IP:127.0.0.1
"""
NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


@dataclass(frozen=True)
class Authority:
    """A CA's file for clients, and the TLS settings of a server that it vouches for."""

    file: Path
    server: ssl.SSLContext

    @cached_property
    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))


def make_authority(folder: Path) -> Authority:
    """Makes a CA and a certificate of it for 127.0.0.1."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("certificates are made with the openssl program")
    (folder / "config").write_text(CONFIG)

    def run(*arguments: str) -> None:
        subprocess.run(
            [program, *arguments], cwd=folder, check=True, capture_output=True, timeout=30
        )

    config = ["-config", "config"]
    run("req", "-x509", *config, *NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30")
    run("req", *config, *NEW_KEY, "-keyout", "server.key", "-out", "server.csr")
    signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30"]
    extensions = ["-extfile", "config", "-extensions", "server"]
    run("x509", "-req", "-in", "server.csr", *signing, *extensions, "-out", "server.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return Authority(folder / "ca.pem", context)
