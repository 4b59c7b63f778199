"""The hub: a network namespace that the sandboxes of a platform hang on, each by a cable.

It routes and filters between them, and has a cable to this machine. Nobody in a sandbox can get
at it. When the launcher ends, the hub does, and every cable with it, this machine's end too.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from prime_local.networks.addresses import MACHINE
from prime_local.networks.ruleset import UPLINK
from prime_local.sandboxes.isolation import kernel
from prime_local.sandboxes.isolation.relaying import relay

# Where sandboxes send what is not for themselves.
_GATEWAY = IPv4Address("198.19.255.253")
# The hub's own address towards this machine: one of 2 ** 14, as other platforms have theirs.
_OWN_FIRST = int(IPv4Address("198.19.128.0"))
_OWN_BITS = 14
_SETTINGS = Path("/proc/sys/net")

Work = Callable[[], None]


@dataclass(frozen=True)
class Programs:
    """Paths of the programs that make cables and filters."""

    ip: str
    nft: str


class Hub:
    """The hub of a launcher, which makes it and keeps it alive.

    Each piece of work is to be run in a process of its own: it changes that one's namespaces.

    Args:
        programs: what to work with.
        link: name of the cable's end at this machine.
    """

    def __init__(self, programs: Programs, link: str) -> None:
        self._programs = programs
        self._link = link
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY)
        self._namespace: int | None = None

    def plan(self, descriptors: Sequence[int], work: str, **facts: Any) -> Work:
        """Return a piece of work by the name of its method.

        Raises:
            OSError: there is no hub yet, and another piece than `open` is wanted.
        """
        methods: dict[str, Callable[..., Work]] = {
            "open": self.open,
            "connect": self.connect,
            "enforce": self.enforce,
            "dial": self.dial,
        }
        return methods[work](*descriptors, **facts)

    def open(self) -> Work:
        """Make the namespace, in the calling process; the work sets it up.

        One that was made before, and could not be set up, ends.
        """
        if self._namespace is not None:
            os.close(self._namespace)
            self._namespace = None
        kernel.unshare(kernel.CLONE_NEWNET)
        try:
            namespace = self._namespace = os.open("/proc/self/ns/net", os.O_RDONLY)
        finally:
            kernel.setns(self._home, kernel.CLONE_NEWNET)

        def work() -> None:
            kernel.setns(namespace, kernel.CLONE_NEWNET)
            _forbid_ipv6()
            # Refusals come at once, however many there are.
            _set("ipv4/icmp_ratelimit", "0")
            own = self._free_address()
            here = [
                f"link add {self._link} type veth peer name {UPLINK} netns {os.getpid()}",
                f"link set dev {self._link} addrgenmode none",
                f"address add {MACHINE}/32 peer {own}/32 dev {self._link}",
                f"link set dev {self._link} up",
            ]
            self._ip(here, self._home)
            there = [
                "link set dev lo up",
                f"address add {_GATEWAY}/32 dev lo",
                f"address add {own}/32 dev {UPLINK}",
                f"link set dev {UPLINK} up",
                # For all that is outside, so that the filter can refuse it.
                f"route add default dev {UPLINK} src {own}",
            ]
            self._ip(there, namespace)

        return work

    def connect(self, inmate: int, address: str, number: int) -> Work:
        """Return the work that gives a sandbox a cable.

        Args:
            inmate: a pidfd of one of the sandbox's processes.
            address: its address.
            number: of the cable, never used before.
        """
        namespace = self._opened()

        def work() -> None:
            kernel.setns(namespace, kernel.CLONE_NEWNET)
            end = f"box{number}"
            inside = [
                f"link add eth0 type veth peer name {end} netns {os.getpid()}",
                f"address add {address}/32 dev eth0",
                "link set dev eth0 up",
                f"route add {_GATEWAY}/32 dev eth0",
                f"route add default via {_GATEWAY} dev eth0 src {address}",
            ]
            self._ip(inside, inmate, _forbid_ipv6)
            self._ip([f"link set dev {end} up", f"route add {address}/32 dev {end}"], namespace)

        return work

    def enforce(self, ruleset: int) -> Work:
        """Return the work that replaces the filter.

        Args:
            ruleset: a descriptor to read it from.
        """
        namespace = self._opened()

        def work() -> None:
            _execute([self._programs.nft, "-f", "-"], ruleset, namespace)
            # Not before there is a filter.
            kernel.setns(namespace, kernel.CLONE_NEWNET)
            _set("ipv4/ip_forward", "1")

        return work

    def dial(self, end: int, address: str, port: int) -> Work:
        """Return the work that connects a descriptor with a port of a sandbox; see `relay`."""
        namespace = self._opened()

        def work() -> None:
            kernel.setns(namespace, kernel.CLONE_NEWNET)
            relay(end, address, port)

        return work

    def _opened(self) -> int:
        if self._namespace is None:
            raise OSError(errno.ENOTCONN, "there is no hub")
        return self._namespace

    def _free_address(self) -> IPv4Address:
        """Return an address that no other platform's hub has towards this machine."""
        while True:
            address = IPv4Address(_OWN_FIRST + secrets.randbits(_OWN_BITS))
            routes = os.memfd_create("routes")
            words = [self._programs.ip, "-4", "route", "show", f"{address}/32"]
            _execute(words, os.open(os.devnull, os.O_RDONLY), self._home, output=routes)
            if os.fstat(routes).st_size == 0:
                return address

    def _ip(
        self, lines: Sequence[str], namespace: int, before: Callable[[], None] | None = None
    ) -> None:
        batch = os.memfd_create("batch")
        os.write(batch, "\n".join(lines).encode())
        os.lseek(batch, 0, os.SEEK_SET)
        _execute([self._programs.ip, "-batch", "-"], batch, namespace, before=before)


def _execute(
    words: Sequence[str],
    source: int,
    namespace: int,
    *,
    output: int | None = None,
    before: Callable[[], None] | None = None,
) -> None:
    """Run a program in a network namespace, and wait for its end.

    Args:
        words: its path and its arguments.
        source: a descriptor that it reads.
        namespace: a descriptor of the namespace, or a pidfd of a process in it.
        output: a descriptor that it writes to.
        before: done in the namespace before it.

    Raises:
        OSError: it failed; the text is what it complained about.
    """
    errors = os.memfd_create("errors")
    child = os.fork()
    if child == 0:
        try:
            kernel.setns(namespace, kernel.CLONE_NEWNET)
            if before is not None:
                before()
            for target, descriptor in enumerate((source, errors if output is None else output)):
                os.dup2(descriptor, target)
            os.dup2(errors, 2)
            os.execve(words[0], list(words), {})
        except BaseException as error:
            os.write(errors, str(error).encode(errors="replace"))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if status != 0:
        complaint = os.pread(errors, 4096, 0).decode(errors="replace").strip()
        raise OSError(errno.EIO, f"{os.path.basename(words[0])}: {complaint}")


def _set(name: str, value: str) -> None:
    """Change a setting of the calling process's network namespace."""
    descriptor = os.open(_SETTINGS / name, os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def _forbid_ipv6() -> None:
    """Let no interface that is made from now on speak IPv6: nothing here filters that."""
    if (_SETTINGS / "ipv6").exists():
        _set("ipv6/conf/default/disable_ipv6", "1")
