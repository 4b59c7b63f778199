"""Options of the command line that change how the platform behaves, in real subprocesses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from prime_local import ContractViolation, FaultRule, PlatformProcess

PRIME_LOCAL = [sys.executable, "-m", "prime_local"]
# Run by the interpreter of the platform before anything else.
BREAKS_THE_CONTRACT = """
from prime_local import control
from prime_local.calls import Reply

async def broken(call):
    return Reply({"id": 5})

control.HANDLERS["get_sandbox"] = broken
"""


@pytest.fixture
def breaking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every platform process that starts from here on breaks the contract in one route."""
    (tmp_path / "sitecustomize.py").write_text(BREAKS_THE_CONTRACT)
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(tmp_path), *([inherited] if inherited else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


async def test_options_reach_the_platform(tmp_path: Path, helpers: Any) -> None:
    rules = tmp_path / "faults.json"
    rules.write_text(json.dumps({"rules": [{"operation": "get_sandbox_logs", "status": 599}]}))
    options = (
        "--isolation process --strict-limits --start-delay 60 --gateway-delay 60"
        " --image-build-time 60 --network-delay 60 --assume unenforced_rules=applied"
        " --latency 0.05 --clock-skew -86400 --noise --assume replayed_create=200"
        " --assume retry_after=date"
    )
    with PlatformProcess([*options.split(), "--faults", str(rules)]) as server:
        async with helpers.client_of(server) as client:
            started = time.monotonic()
            box = await client.create(idempotency_key="k")
            assert time.monotonic() - started >= 0.05
            assert box["createdAt"] < time.strftime("%Y-%m-%dT%H:%M", time.gmtime())[:11]
            assert (box["status"], "noiseAdded" in box) == ("PENDING", True)
            assert box["pendingImageBuildId"] is not None
            server.advance(61)
            assert (await client.get(box))["status"] == "WARMING_NOISE"
            server.advance(61)
            assert (await client.get(box))["status"] == "RUNNING"
            assert (await client.run(box, "true")).body["code"] == "unavailable"
            server.advance(61)
            assert (await client.run(box, "true")).exit_code == 0
            networks = "/api/v1/sandbox/networks"
            made = (await client.call("POST", networks, {"name": "lan"})).body
            server.advance(59)
            assert not (await client.call("GET", f"{networks}/{made['id']}")).body["synced"]
            server.advance(2)
            assert (await client.call("GET", f"{networks}/{made['id']}")).body["synced"]
            body = {"name": "x", "docker_image": "python", "idempotency_key": "k"}
            assert (await client.call("POST", "/api/v1/sandbox", body)).status == 200
            path = f"/api/v1/sandbox/{box['id']}"
            assert (await client.call("GET", f"{path}/logs")).status == 599
            answers = [await client.call("DELETE", "/api/v1/sandbox", {}) for _ in range(51)]
            assert answers[-1].status == 429
            assert answers[-1].headers["Retry-After"].endswith("GMT")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--no-limits", "--strict-limits"], "not allowed with"),
        (["--latency", "-1"], "at least 0"),
        (["--assume", "replayed_create=418"], "replayed_create: 201 or 200"),
        (["--faults", "no-such-file"], "no-such-file"),
        (["--clock-skew", "inf"], "--clock-skew"),
    ],
)
def test_option_that_makes_no_sense_is_explained(options: list[str], reason: str) -> None:
    done = subprocess.run(
        [*PRIME_LOCAL, "serve", *options], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["{", "[]", '{"rules": [{"operation": "nothing"}]}'])
def test_fault_file_that_makes_no_sense_is_explained(tmp_path: Path, text: str) -> None:
    file = tmp_path / "faults.json"
    file.write_text(text)
    done = subprocess.run(
        [*PRIME_LOCAL, "serve", "--faults", str(file)], capture_output=True, text=True, timeout=20
    )
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_process_that_broke_the_contract_fails_whoever_leaves_it(breaking: None) -> None:
    with pytest.raises(ContractViolation, match=r"get_sandbox 200 answer\.name: Field required"):
        _use(PlatformProcess())


def test_nothing_is_checked_where_that_is_switched_off(breaking: None) -> None:
    _use(PlatformProcess(validate_responses=False))


def test_answer_of_a_fault_rule_breaks_no_contract() -> None:
    with PlatformProcess() as server:
        server.add_faults(FaultRule("get_sandbox", status=200, body="{}"))
        _get(server)


def _use(process: PlatformProcess) -> None:
    with process as server:
        _get(server)


def _get(server: PlatformProcess) -> None:
    subprocess.run([sys.executable, "-c", GET, server.url, server.api_key], check=True, timeout=20)


GET = """
import sys, urllib.request
url, key = sys.argv[1:]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
request = urllib.request.Request(
    url + "/api/v1/sandbox/sbx_1", headers={"Authorization": "Bearer " + key}
)
opener.open(request, timeout=5).close()
"""


def test_run_and_serve_end_with_1_after_a_broken_contract(breaking: None) -> None:
    script = GET.replace("sys.argv[1:]", "__import__('os').environ['PRIME_BASE_URL'], K")
    script = "K = __import__('os').environ['PRIME_API_KEY']\n" + script
    command = [*PRIME_LOCAL, "run", "--validate-responses", "--", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "prime-local broke the contract" in done.stderr
    assert "Traceback" not in done.stderr


def test_shared_server_fails_the_test_that_made_it_break_the_contract(
    breaking: None, tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        "import urllib.error, urllib.request, pytest\n"
        "def get(server, path):\n"
        "    headers = {'Authorization': 'Bearer ' + server.api_key}\n"
        "    request = urllib.request.Request(server.url + path, headers=headers)\n"
        "    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
        "    opener.open(request, timeout=5).close()\n"
        "def test_before(prime_platform_server):\n"
        "    get(prime_platform_server, '/api/v1/sandbox')\n"
        "def test_breaking(prime_platform_server):\n"
        "    get(prime_platform_server, '/api/v1/sandbox/sbx_1')\n"
        "def test_after(prime_platform_server):\n"
        "    get(prime_platform_server, '/api/v1/sandbox')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert re.search(r"3 passed,.* 1 error", done.stdout), done.stdout
    assert "ERROR test_it.py::test_breaking" in done.stdout
