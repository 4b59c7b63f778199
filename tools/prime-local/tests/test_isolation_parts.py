"""The parts of isolation by themselves, on real files and the kernel's own groups."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_local.sandboxes.isolation import leases
from prime_local.sandboxes.isolation.cgroups import (
    CgroupsUnavailable,
    Hierarchy,
    Limits,
    PlatformGroups,
    find_hierarchies,
    remove_groups,
)
from prime_local.sandboxes.isolation.leases import Belongings, Lease, sweep
from prime_local.sandboxes.isolation.view import HostView
from prime_local.sandboxes.removal import remove_tree

UNIFIED = Path("/sys/fs/cgroup/unified")


def process_folder(folder: Path, mounts: list[str], memberships: list[str]) -> Path:
    folder.mkdir()
    (folder / "mountinfo").write_text("\n".join(mounts))
    (folder / "cgroup").write_text("\n".join(memberships))
    return folder


def test_groups_of_version_1_are_made_below_the_platforms_own(tmp_path: Path) -> None:
    for name in ("memory/service", "pids", "cpu,cpuacct/service"):
        (tmp_path / name).mkdir(parents=True)
    process = process_folder(
        tmp_path / "self",
        [
            f"30 25 0:26 / {tmp_path}/memory rw shared:1 - cgroup cgroup rw,memory",
            f"31 25 0:27 / {tmp_path}/pids rw - cgroup cgroup rw,pids",
            f"32 25 0:28 / {tmp_path}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
            "33 25 0:29 / /elsewhere rw - cgroup cgroup rw,freezer",
        ],
        ["5:cpu,cpuacct:/service", "4:memory:/service", "3:pids:/", "0::/"],
    )
    found = find_hierarchies(process)
    assert {(each.folder.relative_to(tmp_path), each.controllers) for each in found} == {
        (Path("memory/service"), ("memory",)),
        (Path("pids"), ("pids",)),
        (Path("cpu,cpuacct/service"), ("cpu",)),
    }
    assert not any(each.unified for each in found)


def test_groups_of_a_container_are_found_where_its_own_are_mounted(tmp_path: Path) -> None:
    for name in ("memory", "pids"):
        (tmp_path / name / "inner").mkdir(parents=True)
    process = process_folder(
        tmp_path / "self",
        [
            f"30 25 0:26 /pod/box {tmp_path}/{name} rw - cgroup cgroup rw,{name}"
            for name in ("memory", "pids")
        ],
        ["4:memory:/pod/box/inner", "3:pids:/pod/other"],
    )
    folders = {each.folder.relative_to(tmp_path) for each in find_hierarchies(process)}
    # A group that is not mounted here cannot be used; the mounted one can.
    assert folders == {Path("memory/inner"), Path("pids")}


def test_group_of_version_2_is_made_where_controllers_are_passed_on(tmp_path: Path) -> None:
    own = tmp_path / "user.slice" / "session.scope"
    own.mkdir(parents=True)
    (own / "cgroup.subtree_control").write_text("")
    (own.parent / "cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    process = process_folder(
        tmp_path / "self",
        [f"30 25 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw"],
        ["0::/user.slice/session.scope"],
    )
    assert find_hierarchies(process) == [Hierarchy(own.parent, ("memory", "pids"), True)]


@pytest.mark.parametrize(
    ("mounts", "reason"),
    [
        ([], "memory and pids"),
        (["30 25 0:26 / /nowhere rw - cgroup cgroup rw,memory"], "limit pids"),
        (["30 25 0:26 / /nowhere rw - cgroup2 cgroup2 rw"], "memory and pids"),
    ],
)
def test_machine_that_cannot_limit_says_what_is_missing(
    tmp_path: Path, mounts: list[str], reason: str
) -> None:
    process = process_folder(tmp_path / "self", mounts, ["0::/"])
    with pytest.raises(CgroupsUnavailable, match=reason):
        find_hierarchies(process)


@pytest.fixture(params=["own", "unified"])
def groups(request: pytest.FixtureRequest, helpers: Any) -> Iterator[PlatformGroups]:
    """The kernel's groups: those that limit here, and an empty tree of version 2."""
    if request.param == "own":
        try:
            hierarchies = find_hierarchies()
        except CgroupsUnavailable as error:
            helpers.require_or_skip(str(error))
    else:
        hierarchies = [Hierarchy(UNIFIED, (), True)]
    if not all(os.access(each.folder / "cgroup.procs", os.W_OK) for each in hierarchies):
        pytest.skip("no control groups that this account may write to")
    groups = PlatformGroups(hierarchies, f"prime-local-test-{os.getpid()}")
    groups.create()
    yield groups
    remove_groups(groups.folders)


def in_group(join: Callable[[], None], script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/bash", "-c", script], preexec_fn=join)


def test_command_is_killed_with_all_its_children_and_no_other(groups: PlatformGroups) -> None:
    groups.add("box", Limits(memory=2**28, processes=100, cpus=1))
    for command in ("1", "2"):
        groups.add_command("box", command)
    script = "for n in 1 2 3; do (setsid env -i sleep 60 &); done; sleep 60"
    victim = in_group(lambda: groups.join("box", "1"), script)
    other = in_group(lambda: groups.join("box", "2"), "sleep 60")
    time.sleep(0.2)
    deadline = time.monotonic() + 5
    while not groups.kill_command("box", "1"):
        assert time.monotonic() < deadline
    assert victim.wait(5) == -signal.SIGKILL
    assert other.poll() is None
    remove_groups(groups.folders)
    assert other.wait(5) == -signal.SIGKILL
    assert not any(folder.exists() for folder in groups.folders)


def test_folder_is_deleted_however_deep_and_closed_it_is(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    root = tmp_path / "root"
    (root / "closed" / "inner").mkdir(parents=True)
    (root / "link").symlink_to(outside)
    (root / "closed" / "link").symlink_to("/")
    (root / "closed").chmod(0)
    script = "import os\nfor _ in range(1100): os.mkdir('folder'); os.chdir('folder')"
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True)
    remove_tree(root)
    assert not root.exists()
    assert (outside / "file").exists()


trees = st.recursive(
    st.just(None), lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
)


@given(tree=trees)
def test_any_folder_is_deleted_whole(
    tmp_path_factory: pytest.TempPathFactory, tree: object
) -> None:
    root = tmp_path_factory.mktemp("tree") / "root"

    def make(path: Path, node: object) -> None:
        if isinstance(node, dict):
            path.mkdir()
            for name, inner in node.items():
                make(path / name, inner)
        else:
            path.touch()

    make(root, {"top": tree})
    remove_tree(root)
    assert not root.exists()


def test_deleting_what_is_not_there_is_harmless(tmp_path: Path) -> None:
    remove_tree(tmp_path / "missing")


def test_view_covers_private_folders_only_where_sandboxes_would_see_them(tmp_path: Path) -> None:
    private = [
        Path("/opt/data"),
        Path("/opt/data/root"),
        Path("/usr/x"),
        Path("/", "home", "me", "data"),
    ]
    view = HostView.around(private, tmp_path)
    covered = [path for path in view.secrets if path.parts[1] != "etc"]
    assert covered == [Path("/opt/data"), Path("/usr/x")]


def test_view_covers_what_others_may_not_read_in_etc(tmp_path: Path) -> None:
    view = HostView.around([], tmp_path)
    assert all(not path.stat().st_mode & 0o004 or path.is_dir() for path in view.secrets)
    shadow = Path("/etc/shadow")
    assert (shadow in view.secrets) == (shadow.exists() and not shadow.stat().st_mode & 0o004)


@pytest.fixture
def lease_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(leases, "lease_folder", lambda: tmp_path)
    return tmp_path


def test_lease_that_is_held_protects_its_folder(lease_folder: Path) -> None:
    kept = lease_folder / "kept"
    kept.mkdir()
    lease = Lease.take(Belongings("alive", str(kept)))
    assert lease is not None
    sweep()
    assert kept.exists()
    lease.release()
    assert list(lease_folder.iterdir()) == [kept]


def test_lease_of_the_dead_is_carried_out(lease_folder: Path) -> None:
    left = lease_folder / "left"
    (left / "sandboxes").mkdir(parents=True)
    script = """
import json, sys
from pathlib import Path
from prime_local.sandboxes.isolation import leases
leases.lease_folder = lambda: Path(sys.argv[1])
leases.Lease.take(leases.Belongings("dead", sys.argv[2]))
"""
    subprocess.run([sys.executable, "-c", script, lease_folder, left], check=True)
    assert len(list(lease_folder.iterdir())) == 2
    sweep()
    assert list(lease_folder.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"instance": "x"}'])
def test_damaged_lease_is_dropped_and_an_empty_one_left(lease_folder: Path, text: str) -> None:
    (lease_folder / "damaged.json").write_text(text)
    (lease_folder / "new.json").touch()
    sweep()
    assert [path.name for path in lease_folder.iterdir()] == ["new.json"]
