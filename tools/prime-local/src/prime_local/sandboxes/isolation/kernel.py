"""The few system calls that Python before 3.12 does not offer, for the launcher alone."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Callable, Collection
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
EVERY_NAMESPACE = (
    CLONE_NEWUSER
    | CLONE_NEWNS
    | CLONE_NEWPID
    | CLONE_NEWNET
    | CLONE_NEWIPC
    | CLONE_NEWUTS
    | CLONE_NEWCGROUP
)

MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x4000, 0x40000

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1
_CAPABILITY_VERSION_3 = 0x20080522

# Loaded at once: after a process has entered a sandbox it must load no more code from files.
_libc = ctypes.CDLL(None, use_errno=True)
_prctl, _capset = _libc.prctl, _libc.capset
_setns, _unshare, _mount = _libc.setns, _libc.unshare, _libc.mount
_LAST_CAPABILITY = Path("/proc/sys/kernel/cap_last_cap")


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the namespaces that `flags` names for new ones."""
    _checked(_unshare(flags), "unshare")


def new_user_namespace(most: int) -> int:
    """Make a user namespace that knows this machine's accounts under their own numbers.

    Args:
        most: how many, from 0 on; no more than this process knows itself.

    Returns a descriptor of it, which must be closed.
    """
    made, tell_made = os.pipe()
    finish, tell_finish = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(CLONE_NEWUSER)
            os.write(tell_made, b"1")
            os.close(tell_finish)
            os.read(finish, 1)
        finally:
            os._exit(0)
    os.close(tell_made)
    try:
        if not os.read(made, 1):
            raise OSError("no user namespace can be made")
        for name in ("uid_map", "gid_map"):
            inside, _, length = Path(f"/proc/self/{name}").read_text().split()[:3]
            count = min(most, int(length) if inside == "0" else 1)
            Path(f"/proc/{child}/{name}").write_text(f"0 0 {count}")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for descriptor in (made, finish, tell_finish):
            os.close(descriptor)
        os.waitpid(child, 0)


def setns(descriptor: int, flags: int) -> None:
    """Join the namespaces of the process behind a pidfd."""
    _checked(_setns(descriptor, flags), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mount, or change how something is mounted."""
    words = [word and os.fsencode(word) for word in (source, target, kind)]
    _checked(_mount(*words, ctypes.c_ulong(flags), os.fsencode(options)), f"mount {target}")


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has ended."""
    _control(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """Be killed when the parent process ends, or end now if it has ended already."""
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def forget_keys() -> None:
    """Leave the session keyring that this process was started with for one of its own.

    Keys of the platform's user may be in it, and whoever has the keyring can read them.
    """
    number = _KEYCTL.get(platform.machine())
    if number is not None:
        # It fails where the kernel has no keyrings, or the account has made too many.
        _libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def hide_from_peers() -> None:
    """Close this process's files, folders and memory to others of the same account.

    It holds for children, until they execute a program.
    """
    _control(_PR_SET_DUMPABLE, 0)


# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETGID and SETUID: what builds do to files and accounts.
BUILD_CAPABILITIES = frozenset({0, 1, 3, 4, 6, 7})


class Capabilities:
    """What root may do beyond its own files, to be given up for good."""

    def __init__(self) -> None:
        self._last = int(_LAST_CAPABILITY.read_text())
        # A version and a process, 0 for oneself; effective, permitted and inheritable, twice each.
        self._header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)

    def drop(self, become: Callable[[], None], kept: Collection[int] = ()) -> None:
        """Give up every capability, and the way to gain one by executing a program.

        Args:
            become: called while all can still be used, to change the account.
            kept: capabilities to keep, all of them below 32; for root alone.
        """
        _control(_PR_SET_NO_NEW_PRIVS, 1)
        for number in range(self._last + 1):
            if number not in kept:
                _control(_PR_CAPBSET_DROP, number)
        become()
        mask = sum(1 << number for number in kept)
        _checked(_capset(self._header, (ctypes.c_uint32 * 6)(mask, mask)), "capset")


def _control(option: int, value: int) -> None:
    _checked(_prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")
