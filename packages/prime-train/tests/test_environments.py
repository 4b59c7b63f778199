"""The environments hub: what is pushed comes back, and nothing is written or shown elsewhere."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    APIError,
    AsyncTrainClient,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnsafeArchiveError,
)
from prime_train.environment_source import content_hash, source_files
from prime_train.environment_unpacking import unpack_source

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = pytest.mark.timeout(30)

SLUG = "local-user/word-ladder"
METADATA = """Metadata-Version: 2.4
Name: word-ladder
Version: {version}
Summary: Climbs ladders of words
Keywords: words,games
Requires-Python: >=3.11
Requires-Dist: verifiers>=0.2.0

Text
"""


def source(folder: Path, version: str = "0.1.0") -> Path:
    """An environment's folder, with what belongs to it and what does not, and its wheel."""
    texts = {
        "pyproject.toml": f'[project]\nname = "word-ladder"\nversion = "{version}"\n',
        "README.md": "# Words\n",
        "word_ladder.py": "def load_environment():\n    return None\n",
        "data/words.txt": "cold\nwarm\n",
        ".env": "KEY=hidden\n",
        "notes.txt": "not at the top\n",
        "outputs/run.jsonl": "{}\n",
        "pkg/__pycache__/x.pyc": "x",
        "ignored/big.bin": "x",
        ".gitignore": "ignored/\n",
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "link.py").symlink_to("word_ladder.py")
    (folder / "dist").mkdir(exist_ok=True)
    wheel = folder / "dist" / f"word_ladder-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            f"word_ladder-{version}.dist-info/METADATA", METADATA.format(version=version)
        )
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


BELONGING = ["README.md", "data/words.txt", "pyproject.toml", "word_ladder.py"]


def test_a_source_is_what_the_hub_counts(tmp_path: Path) -> None:
    folder = source(tmp_path)
    assert source_files(folder) == BELONGING
    expected = hashlib.sha256()
    for name in BELONGING:
        expected.update(f"file:{name}".encode() + (folder / name).read_bytes())
    assert content_hash(folder, BELONGING) == expected.hexdigest()


async def test_what_is_pushed_is_pulled(client: AsyncTrainClient, tmp_path: Path) -> None:
    folder = source(tmp_path / "here")
    pushed = await client.environments.push(folder)
    assert (pushed.name, pushed.version, pushed.created) == ("word-ladder", "0.1.0", True)
    found = await client.environments.get(SLUG)
    assert (found.semantic_version, found.content_hash) == ("0.1.0", pushed.content_hash)
    assert found.metadata is not None
    assert found.metadata["requires_dist"] == ["verifiers>=0.2.0"]
    await client.environments.pull(SLUG, tmp_path / "there")
    there = [path for path in (tmp_path / "there").rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path / "there")) for path in there) == BELONGING
    assert (tmp_path / "there" / "data" / "words.txt").read_text() == "cold\nwarm\n"
    wheel = await client.environments.download_wheel(SLUG, tmp_path / "wheels")
    assert wheel.name == "word_ladder-0.1.0-py3-none-any.whl"
    assert wheel.read_bytes() == (folder / "dist" / wheel.name).read_bytes()
    with pytest.raises(FileExistsError):
        await client.environments.pull(SLUG, tmp_path / "there")


async def test_versions_are_listed_inspected_and_deleted(
    client: AsyncTrainClient, tmp_path: Path
) -> None:
    first = await client.environments.push(source(tmp_path / "a"))
    second = await client.environments.push(source(tmp_path / "b", "0.2.0"))
    versions = await client.environments.versions(SLUG)
    assert [each.version for each in versions] == ["0.2.0", "0.1.0"]
    status = await client.environments.status(SLUG)
    assert status.latest_version is not None
    assert status.latest_version.content_hash == second.content_hash
    older = await client.environments.get(SLUG, version="0.1.0")
    assert older.content_hash == first.content_hash
    top = await client.environments.inspect(SLUG)
    assert [each.name for each in top.entries or ()] == sorted(
        ["README.md", "data", "pyproject.toml", "word_ladder.py"]
    )
    seen = await client.environments.inspect(SLUG, "data/words.txt", max_bytes=4)
    assert (seen.content, seen.truncated, seen.total_bytes) == ("cold", True, 10)
    await client.environments.delete_version(SLUG, second.content_hash[:12])
    assert [each.version for each in await client.environments.versions(SLUG)] == ["0.1.0"]
    with pytest.raises(ValueError, match="content_hash"):
        await client.environments.delete_version(SLUG, "latest")
    await client.environments.delete(first.environment_id)
    with pytest.raises(NotFoundError):
        await client.environments.status(SLUG)


async def test_the_same_source_is_published_once(client: AsyncTrainClient, tmp_path: Path) -> None:
    folder = source(tmp_path)
    await client.environments.push(folder)
    with pytest.raises(ConflictError):
        await client.environments.push(folder)


async def test_a_lost_answer_of_the_publishing_is_found_out(
    platform: LocalPlatform, client: AsyncTrainClient, tmp_path: Path
) -> None:
    platform.add_faults(FaultRule("finalize_environment_source", reset="after_commit"))
    await client.environments.push(source(tmp_path))
    assert len(await client.environments.versions(SLUG)) == 1


async def test_a_push_that_broke_off_is_made_again(
    platform: LocalPlatform, client: AsyncTrainClient, tmp_path: Path
) -> None:
    folder = source(tmp_path)
    platform.add_faults(FaultRule("register_environment_source", nth=1, status=400))
    with pytest.raises(APIError):
        await client.environments.push(folder)
    assert await client.environments.versions(SLUG) == []
    await client.environments.push(folder)
    assert len(await client.environments.versions(SLUG)) == 1


async def test_a_push_without_a_wheel_sends_nothing(
    platform: LocalPlatform, client: AsyncTrainClient, tmp_path: Path
) -> None:
    folder = source(tmp_path)
    (wheel,) = (folder / "dist").iterdir()
    wheel.write_bytes(b"no wheel")
    with pytest.raises(ValueError, match="wheel"):
        await client.environments.push(folder)
    wheel.unlink()
    with pytest.raises(FileNotFoundError, match="uv build"):
        await client.environments.push(folder)
    assert platform.ledger()["requests"] == {}


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped", "a/../../escaped"])
@pytest.mark.parametrize("mode", ["w:gz", "w"])
async def test_a_hostile_archive_writes_nowhere(tmp_path: Path, name: str, mode: str) -> None:
    archive = tmp_path / "source.tar.gz"
    with tarfile.open(archive, mode) as tar:  # type: ignore[call-overload]
        info = tarfile.TarInfo(name)
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    with pytest.raises(UnsafeArchiveError):
        await unpack_source(archive, tmp_path / "folder")
    assert os.listdir(tmp_path) == ["source.tar.gz"]


async def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_train.environment_unpacking._MOST_BYTES", 1_000_000)
    archive = tmp_path / "source.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("zeros")
        info.size = 20_000_000
        tar.addfile(info, io.BytesIO(bytes(info.size)))
    with pytest.raises(UnsafeArchiveError, match="larger"):
        await unpack_source(archive, tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


async def test_lists_know_filters(client: AsyncTrainClient, tmp_path: Path) -> None:
    await client.environments.push(source(tmp_path), visibility="PUBLIC")
    await client.environments.resolve("private-one", visibility="PRIVATE")
    slugs = [each.slug async for each in client.environments.iter()]
    assert "primeintellect/gsm8k" in slugs
    mine = [each.slug async for each in client.environments.iter(mine_only=True)]
    assert mine == ["local-user/private-one", SLUG]
    tagged = await client.environments.list(tags=["words"], search="ladders", owner="local-user")
    assert [each.slug for each in tagged.environments] == [SLUG]


async def test_a_fork_has_the_files(client: AsyncTrainClient, tmp_path: Path) -> None:
    team = "cmb4f0k2p0001l8zq7h3n9x5t"
    await client.environments.push(source(tmp_path / "a"), visibility="PUBLIC")
    fork = await client.environments.fork(SLUG, team_id=team)
    assert fork.slug == f"{team}/word-ladder"
    await client.environments.pull(fork.slug, tmp_path / "b")
    assert (tmp_path / "b" / "README.md").exists()
    with pytest.raises(ConflictError):
        await client.environments.fork(SLUG, team_id=team)


async def test_somebody_elses_environment_is_not_changed(client: AsyncTrainClient) -> None:
    found = await client.environments.get("primeintellect/gsm8k")
    assert found.id is not None
    with pytest.raises(ForbiddenError):
        await client.environments.delete(found.id)


@pytest.mark.parametrize("value", ["sk-hidden", SecretStr("sk-hidden")])
async def test_a_secret_is_never_shown(
    client: AsyncTrainClient, value: str | SecretStr, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    environment_id = (await client.environments.resolve("mine")).id
    made = await client.environments.create_secret(environment_id, "OPENAI_API_KEY", value)
    listed = await client.environments.list_secrets(environment_id)
    with pytest.raises(ConflictError) as taken:
        await client.environments.create_secret(environment_id, "OPENAI_API_KEY", value)
    changed = await client.environments.update_secret(environment_id, made.id, value=value)
    assert [each.id for each in listed] == [made.id] == [changed.id]
    shown = [repr(made), repr(listed), made.model_dump_json(), str(taken.value), caplog.text]
    assert "sk-hidden" not in "".join(shown)
    await client.environments.delete_secret(environment_id, made.id)
    assert await client.environments.list_secrets(environment_id) == []


async def test_an_error_that_quotes_a_secret_withholds_it(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    quoting = '{"detail":"value sk-hidden-0123456789 is refused"}'
    platform.add_faults(FaultRule("create_environment_secret", status=400, body=quoting))
    with pytest.raises(BadRequestError) as failure:
        await client.environments.create_secret("e", "A", "sk-hidden-0123456789")
    assert "sk-hidden" not in f"{failure.value} {failure.value.body} {failure.value.args}"


async def test_a_masked_value_is_dropped(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    body = '{"data":[{"id":"s","name":"A","value":"sk-****"}]}'
    platform.add_faults(FaultRule("list_environment_secrets", status=200, body=body))
    (found,) = await client.environments.list_secrets("e")
    assert "sk-" not in found.model_dump_json()


async def test_a_secret_of_the_account_is_linked(client: AsyncTrainClient) -> None:
    environment_id = (await client.environments.resolve("mine")).id
    made = await client.client.post("/secrets/", {"name": "JUDGE_KEY", "value": "sk-hidden"})
    link = await client.environments.link_secret(environment_id, made["data"]["id"])
    assert link.secret_name == "JUDGE_KEY"
    (listed,) = await client.environments.list_secrets(environment_id)
    assert (link.secret_name, listed.source) == (listed.name, "global-linked")
    await client.environments.unlink_secret(environment_id, link.secret_id)
    with pytest.raises(NotFoundError):
        await client.environments.unlink_secret(environment_id, link.secret_id)
    with pytest.raises(NotFoundError):
        await client.environments.link_secret(environment_id, "unknown")


async def test_variables_are_kept(client: AsyncTrainClient) -> None:
    environment_id = (await client.environments.resolve("mine")).id
    made = await client.environments.create_variable(environment_id, "LEVEL", "hard")
    changed = await client.environments.update_variable(environment_id, made.id, value="easy")
    assert (changed.name, changed.value) == ("LEVEL", "easy")
    assert await client.environments.list_variables(environment_id) == [changed]
    await client.environments.delete_variable(environment_id, made.id)
    assert await client.environments.list_variables(environment_id) == []


@pytest.mark.parametrize("name", ["lower", "1ST", "A-B", ""])
async def test_an_impossible_name_is_not_sent(
    platform: LocalPlatform, client: AsyncTrainClient, name: str
) -> None:
    with pytest.raises(ValueError, match="name"):
        await client.environments.create_secret("e", name, "v")
    assert platform.ledger()["requests"] == {}


@pytest.mark.parametrize("slug", ["name", "/name", "owner/", "a/b/c", "a/b@1"])
async def test_an_impossible_slug_is_not_sent(client: AsyncTrainClient, slug: str) -> None:
    with pytest.raises(ValueError, match="owner/name"):
        await client.environments.get(slug)


async def test_the_hub_survives_a_restart(
    start_platform: StartPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def used(work: Any) -> Any:
        async with LocalPlatform(data_dir=tmp_path / "data", limits=False) as platform:
            for name, value in platform.env.items():
                monkeypatch.setenv(name, value)
            async with AsyncTrainClient() as client:
                return await work(client)

    (tmp_path / "data").mkdir()
    await used(lambda client: client.environments.push(source(tmp_path / "a")))
    await used(lambda client: client.environments.pull(SLUG, tmp_path / "b"))
    assert (tmp_path / "b" / "pyproject.toml").exists()
