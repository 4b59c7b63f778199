"""A platform in a process of its own, for tests without an event loop."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from prime_local.errors import ContractViolation
from prime_local.faults import FaultRule
from prime_local.ledger import LedgerSnapshot

if TYPE_CHECKING:
    from prime_local.billing.runs import RunTokens
    from prime_local.sandboxes.isolation.base import WantedMode

_READY_SECONDS = 20.0
_CALL_SECONDS = 20.0
_STOP_SECONDS = 10.0


class PlatformProcess:
    """`prime-local serve` as a subprocess and context manager.

    Args:
        options: command-line options of `serve`, e.g. `("--no-limits",)`.
        isolation: `process`, `bwrap`, `full` or `auto`; see `LocalPlatform`.
        validate_responses: check each answer against the contract.

    Raises:
        RuntimeError: on entering, when the platform does not come up within 20 s.
        ContractViolation: on leaving without another exception, when an answer broke the contract.
    """

    def __init__(
        self,
        options: Sequence[str] = (),
        *,
        isolation: WantedMode = "process",
        validate_responses: bool = True,
    ) -> None:
        self._command = [
            *(sys.executable, "-m", "prime_local", "serve"),
            "--until-eof",  # which comes too when this process is killed outright
            *("--isolation", isolation),
        ]
        self._command += options
        if validate_responses:
            self._command.append("--validate-responses")
        self._process: subprocess.Popen[bytes] | None = None
        # A proxy of this machine must not come between.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.url = ""
        self.api_key = ""
        self.pid = 0
        self.env: dict[str, str] = {}
        # Where ports that an `internet` rule exposes are served, a template for `str.format`.
        self.public_url = ""
        # How sandboxes are isolated: what `auto` came to.
        self.isolation = isolation

    def __enter__(self) -> PlatformProcess:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        try:
            ready = json.loads(self._ready_line(self._process))
        except BaseException:
            self.close()
            raise
        self.url, self.api_key, self.pid = ready["url"], ready["api_key"], ready["pid"]
        self.env, self.isolation = ready["env"], ready["isolation"]
        self.public_url = ready["public_url"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.check_contract()
        finally:
            self.close()

    def check_contract(self) -> None:
        """Raise for the answers that broke the contract since the last call.

        Raises:
            ContractViolation: there are such answers, and they have been validated.
        """
        # A platform that was ended, or that refuses connections, can say nothing.
        with contextlib.suppress(OSError):
            answer = self._call("DELETE", "/_local/violations")
            if answer["violations"]:
                raise ContractViolation(answer["violations"])

    def close(self) -> None:
        """Stop the platform and every sandbox; harmless when repeated."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.stdout.close()
        self._log.close()

    def ledger(self) -> LedgerSnapshot:
        """Return what happened since the start or the last reset."""
        return cast(LedgerSnapshot, self._call("GET", "/_local/ledger"))

    def reset(self) -> None:
        """End every sandbox and forget all but the API key and the time."""
        self._call("POST", "/_local/reset", {})

    def advance(self, seconds: float) -> None:
        """Move the platform clock forward by `seconds`, at least 0."""
        self._call("POST", "/_local/clock/advance", {"seconds": seconds})

    def name_sandboxes(self, *ids: str) -> None:
        """Give the sandboxes that are created next these ids; see `LocalPlatform`."""
        self._call("POST", "/_local/sandbox-ids", {"ids": ids})

    def pause(self, sandbox_id: str) -> None:
        """Move a RUNNING sandbox to PAUSED."""
        self._call("POST", "/_local/pause", {"sandbox_id": sandbox_id})

    def resume(self, sandbox_id: str) -> None:
        """Move a PAUSED sandbox back to RUNNING."""
        self._call("POST", "/_local/resume", {"sandbox_id": sandbox_id})

    def set_traces(self, **switches: Any) -> None:
        """Turn switches of the traces service; see `LocalPlatform`."""
        self._call("POST", "/_local/traces", switches)

    def set_inference(self, **switches: Any) -> None:
        """Turn switches of the inference service; see `LocalPlatform`."""
        self._call("POST", "/_local/inference", switches)

    def set_balance(self, usd: float | str, team_id: str | None = None) -> None:
        """Say what a wallet has left; see `LocalPlatform`."""
        self._call("POST", "/_local/balance", {"usd": usd, "team_id": team_id})

    def set_training_pace(self, **times: float) -> None:
        """Say how fast hosted runs are; see `LocalPlatform`."""
        self._call("POST", "/_local/training/pace", times)

    def fail_run(self, run_id: str, reason: str) -> None:
        """Let a hosted run fail; see `LocalPlatform`."""
        self._call("POST", "/_local/training/fail", {"run_id": run_id, "reason": reason})

    def set_training_access(self, **switches: bool | None) -> None:
        """Say who may train; see `LocalPlatform`."""
        self._call("POST", "/_local/training/access", switches)

    def set_training_capacity(
        self,
        gpu_type: str,
        *,
        free: int | None = None,
        price: float | str | None = None,
        reserved: bool = False,
    ) -> None:
        """Change what training runs can have of a type of GPU; see `LocalPlatform`."""
        body = {"gpu_type": gpu_type, "free": free, "price": price, "reserved": reserved}
        self._call("POST", "/_local/training/capacity", body)

    def inference_calls(self) -> list[dict[str, Any]]:
        """Return the last calls of models that were paid for; see `LocalPlatform`."""
        calls: list[dict[str, Any]] = self._call("GET", "/_local/inference/calls")["calls"]
        return calls

    def sell_out(
        self, cloud_id: str, data_center_id: str | None = None, *, sold_out: bool = True
    ) -> None:
        """Make offers of GPUs or disks unavailable, or available again."""
        body = {"cloud_id": cloud_id, "data_center_id": data_center_id, "sold_out": sold_out}
        self._call("POST", "/_local/sell-out", body)

    def fail_pod(self, pod_id: str, reason: str) -> None:
        """Let a pod's installation fail."""
        self._call("POST", "/_local/pods/fail", {"pod_id": pod_id, "reason": reason})

    def vanish_pod(self, pod_id: str) -> None:
        """Let a provider take a pod away."""
        self._call("POST", "/_local/pods/vanish", {"pod_id": pod_id})

    def put_run(self, run_id: str, tokens: RunTokens) -> None:
        """Note what a training run has used so far; see `LocalPlatform`."""
        self._call("POST", "/_local/runs", {"run_id": run_id, **asdict(tokens)})

    def add_bucket(self, name: str) -> dict[str, str]:
        """Make a bucket of one's own and return its keys; see `LocalPlatform`."""
        keys: dict[str, str] = self._call("POST", "/_local/buckets", {"name": name})
        return keys

    def approve_login(self, code: str) -> None:
        """Approve a login that waits; see `LocalPlatform`."""
        self._call("POST", "/_local/login/approve", {"challenge": code})

    def add_key(self, name: str, **settings: Any) -> str:
        """Make an API key and return its value; see `LocalPlatform`."""
        answer = self._call("POST", "/_local/keys", {"name": name, **settings})
        return str(answer["api_key"])

    def add_faults(self, *rules: FaultRule) -> None:
        self._call("POST", "/_local/faults", {"rules": [asdict(rule) for rule in rules]})

    def clear_faults(self) -> None:
        self._call("DELETE", "/_local/faults")

    def outage(self, seconds: float) -> None:
        """Begin an outage: every connection breaks, new ones are refused for `seconds`."""
        self._call("POST", "/_local/outage", {"seconds": seconds})

    def _call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        with self._opener.open(request, timeout=_CALL_SECONDS) as response:
            return json.load(response)

    def _ready_line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + _READY_SECONDS
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([process.stdout], [], [], deadline - time.monotonic())
            piece = process.stdout.read1() if readable else b""  # type: ignore[attr-defined]
            if not piece:
                raise RuntimeError(f"prime-local did not come up:\n{self._log_text()}")
            line += piece
        return line

    def _log_text(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._log.seek(0)
            return self._log.read().decode(errors="replace")
        return ""
