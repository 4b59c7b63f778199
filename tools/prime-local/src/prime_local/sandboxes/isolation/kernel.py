"""The few system calls that Python before 3.12 does not offer, for the launcher alone."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
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


class Capabilities:
    """What root may do beyond its own files, to be given up for good."""

    def __init__(self) -> None:
        self._last = int(_LAST_CAPABILITY.read_text())
        # A version and a process, 0 for oneself; effective, permitted and inheritable, twice each.
        self._header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        self._none = (ctypes.c_uint32 * 6)()

    def drop(self) -> None:
        """Give up every capability, and the way to gain one by executing a program."""
        _control(_PR_SET_NO_NEW_PRIVS, 1)
        for number in range(self._last + 1):
            _control(_PR_CAPBSET_DROP, number)
        _checked(_capset(self._header, self._none), "capset")


def _control(option: int, value: int) -> None:
    _checked(_prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")
