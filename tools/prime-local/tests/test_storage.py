"""What a data directory remembers, in real files and across real crashes."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sqlite3
import stat
import time
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_local import Assumptions, ContractViolation, LocalPlatform, PlatformProcess
from prime_local.limits import Resources
from prime_local.sandboxes.record import Attachment, Owner, Sandbox, StartCommand, Status
from prime_local.sandboxes.rows import dump_record, load_record
from prime_local.storage import SqliteStorage

if TYPE_CHECKING:
    from conftest import OpenPlatform

NOW = datetime(2026, 11, 20, 9, 15, tzinfo=timezone.utc)
RECORD = Sandbox(
    id="sbx_1",
    job_id="job-1",
    owner=Owner("usr_1", None),
    name="box",
    docker_image="python",
    resources=Resources(1, 2, 5),
    workspace="/somewhere",
    created_at=NOW,
    updated_at=NOW,
    timeout_minutes=60,
)
TEXT = st.text(max_size=20)


def _call(server: PlatformProcess, method: str, path: str, body: object = None) -> Any:
    request = urllib.request.Request(
        server.url + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {server.api_key}"},
        method=method,
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as response:
        return json.load(response)


async def test_restart_knows_key_and_records_and_replays_idempotency_keys(
    tmp_path: Path, helpers: Any
) -> None:
    async with (
        LocalPlatform(data_dir=tmp_path) as platform,
        helpers.client_of(platform) as client,
    ):
        key = platform.api_key
        done = await client.create(name="done", labels=["a"], idempotency_key="k")
        await client.call("DELETE", f"/api/v1/sandbox/{done['id']}")
        deleted = await client.get(done)
        alive = await client.running(name="alive", environment_vars={"A": "1"})
    async with (
        LocalPlatform(data_dir=tmp_path) as platform,
        helpers.client_of(platform) as client,
    ):
        assert platform.api_key == key
        assert await client.get(done) == deleted
        found = await client.get(alive)
        assert (found["status"], found["terminationReason"]) == ("TERMINATED", "platform_stopped")
        assert found["environmentVars"] == {"A": "1"}
        listed = (await client.call("GET", "/api/v1/sandbox")).body["sandboxes"]
        assert [box["name"] for box in listed] == ["alive", "done"]
        assert (await client.create(name="again", idempotency_key="k"))["id"] == done["id"]
        assert platform.ledger()["sandboxes"]["created"] == 0


def test_crash_loses_no_answered_create_and_ends_what_ran(tmp_path: Path, helpers: Any) -> None:
    script = f"setsid sleep 60 & echo $! > {tmp_path}/child; wait"
    start = {"executable": "/bin/bash", "args": ["-c", script]}
    body = {"name": "x", "docker_image": "python", "secrets": {"S": "hush-hush"}}
    data = tmp_path / "data"
    options = ["--isolation", "process", "--data-dir", str(data), "--seed", "1"]
    with PlatformProcess(options) as server:
        made = [_call(server, "POST", "/api/v1/sandbox", body) for _ in range(20)]
        made.append(_call(server, "POST", "/api/v1/sandbox", {**body, "start_command": start}))
        child = int(helpers.wait_for_line(tmp_path / "child"))
        os.kill(server.pid, signal.SIGKILL)
    assert helpers.process_exists(child)
    with PlatformProcess(options) as server:
        assert not helpers.process_exists(child)
        for sandbox in made:
            found = _call(server, "GET", f"/api/v1/sandbox/{sandbox['id']}")
            assert (found["status"], found["errorType"]) == ("ERROR", "PLATFORM_RESTARTED")
            assert found["terminatedAt"] is not None
        context = _call(server, "GET", f"/api/v1/sandbox/{made[0]['id']}/error-context")
        assert context["errorType"] == "PLATFORM_RESTARTED"
        fresh = _call(server, "POST", "/api/v1/sandbox", body)
        assert fresh["id"] not in {sandbox["id"] for sandbox in made}
        assert server.ledger()["sandboxes"]["live"] == 1
    files = [path for path in data.rglob("*") if path.is_file() and path.name.startswith("plat")]
    assert files
    for file in files:
        assert b"hush-hush" not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_reset_forgets_the_stored_records_and_keeps_the_key(
    tmp_path: Path, helpers: Any
) -> None:
    async with (
        LocalPlatform(data_dir=tmp_path) as platform,
        helpers.client_of(platform) as client,
    ):
        key = platform.api_key
        old = await client.create(idempotency_key="k")
        await platform.reset()
        new = await client.create(idempotency_key="k")
    async with (
        LocalPlatform(data_dir=tmp_path) as platform,
        helpers.client_of(platform) as client,
    ):
        assert platform.api_key == key
        listed = (await client.call("GET", "/api/v1/sandbox")).body["sandboxes"]
        assert [box["id"] for box in listed] == [new["id"]]
        assert (await client.call("GET", f"/api/v1/sandbox/{old['id']}")).status == 404


async def test_deleted_stays_deleted_and_time_goes_on_after_a_restart(
    tmp_path: Path, helpers: Any
) -> None:
    forgets = Assumptions(deleted_sandbox="missing", idempotency_window=3600)
    async with (
        LocalPlatform(data_dir=tmp_path, assumptions=forgets) as platform,
        helpers.client_of(platform) as client,
    ):
        gone, kept = await client.create(), await client.create(idempotency_key="k")
        await client.call("DELETE", f"/api/v1/sandbox/{gone['id']}")
        await platform.advance(3000)
    async with (
        LocalPlatform(data_dir=tmp_path, assumptions=forgets) as platform,
        helpers.client_of(platform) as client,
    ):
        assert (await client.call("GET", f"/api/v1/sandbox/{gone['id']}")).status == 404
        assert (await client.create(idempotency_key="k"))["id"] == kept["id"]
        await platform.advance(601)
        later = await client.create(idempotency_key="k")
        assert later["id"] != kept["id"]
        assert later["createdAt"] > kept["createdAt"]


async def test_data_directory_may_be_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with LocalPlatform(data_dir="data"):
        monkeypatch.chdir("/")
    assert list((tmp_path / "data").rglob("traces.sqlite3"))


async def test_data_directory_in_use_is_refused_and_stays_usable(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    _, client = await open_platform(data_dir=tmp_path)
    with pytest.raises(OSError, match="in use by another prime-local"):
        async with LocalPlatform(data_dir=tmp_path):
            pass
    assert len([name for name in os.listdir(tmp_path) if name.startswith("prime-local-")]) == 1
    assert (await client.create())["status"] == "PENDING"


async def test_file_that_is_no_storage_of_ours_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "platform.sqlite3"
    file.write_bytes(b"something else" * 100)
    with pytest.raises(OSError, match="cannot be used"):
        async with LocalPlatform(data_dir=tmp_path):
            pass
    assert file.read_bytes() == b"something else" * 100
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(OSError, match="another version"):
        async with LocalPlatform(data_dir=tmp_path):
            pass
    assert os.listdir(tmp_path) == ["platform.sqlite3"]


def test_create_that_cannot_be_stored_is_a_500_and_stored_with_the_next(tmp_path: Path) -> None:
    body = {"name": "x", "docker_image": "python"}
    with PlatformProcess(["--data-dir", str(tmp_path)]) as server:
        _call(server, "POST", "/api/v1/sandbox", body)
        unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, unlimited[1]))
        with pytest.raises(urllib.error.HTTPError, match="500"):
            _call(server, "POST", "/api/v1/sandbox", {**body, "name": "unlucky"})
        with pytest.raises(ContractViolation, match="create_sandbox: unexpected error"):
            server.check_contract()
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited)
        assert _call(server, "POST", "/api/v1/sandbox", body)["status"] == "PENDING"
        os.kill(server.pid, signal.SIGKILL)
    with PlatformProcess(["--data-dir", str(tmp_path)]) as server:
        listed = _call(server, "GET", "/api/v1/sandbox")["sandboxes"]
    assert [box["name"] for box in listed] == ["x", "unlucky", "x"]


async def test_opening_that_is_cancelled_lets_go_of_the_file(tmp_path: Path) -> None:
    opening = asyncio.create_task(SqliteStorage.open(tmp_path / "file"))
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait({opening})
    deadline = time.monotonic() + 5
    while True:
        try:
            await (await SqliteStorage.open(tmp_path / "file")).close()
        except OSError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        else:
            break


@given(
    labels=st.lists(TEXT, max_size=3),
    variables=st.none() | st.dictionaries(TEXT, TEXT, max_size=3),
    start=st.none() | st.builds(StartCommand, TEXT, st.lists(TEXT, max_size=3).map(tuple)),
    status=st.sampled_from(Status),
    seconds=st.none() | st.integers(0, 10**9),
    team=st.none() | TEXT,
    attachments=st.lists(
        st.builds(Attachment, TEXT, TEXT, TEXT, st.booleans(), st.none() | TEXT), max_size=2
    ),
)
def test_record_comes_back_as_it_was_but_for_its_secrets(
    labels: list[str],
    variables: dict[str, str] | None,
    start: StartCommand | None,
    status: Status,
    seconds: int | None,
    team: str | None,
    attachments: list[Attachment],
) -> None:
    ended = None if seconds is None else NOW + timedelta(microseconds=seconds)
    record = replace(
        RECORD,
        owner=Owner("usr_1", team),
        labels=tuple(labels),
        environment_vars=variables,
        start_command=start,
        status=status,
        terminated_at=ended,
        deleted=ended is not None,
        advanced_configs={"a": [1, None]},
        idempotency_key=team,
        checkpoint_id=team,
        attachments=tuple(attachments),
    )
    assert load_record(dump_record(vars(replace(record, secrets={"A": "hush"})))) == record
