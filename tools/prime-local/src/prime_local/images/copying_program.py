"""What COPY and ADD do: a program that runs inside the sandbox of a build.

There every path means what it means in the image, and no link leads anywhere else. It stands
alone: only the standard library of whatever Python the sandbox has.
"""

import glob
import grp
import json
import os
import pwd
import shutil
import sys
import tarfile


class Style:
    """The mode and the owner (uid and gid) that what is copied gets, or None to leave them."""

    def __init__(self, mode: "int | None", owner: "tuple[int, int] | None") -> None:
        self._mode = mode
        self._owner = owner

    def apply(self, place: str) -> None:
        if self._owner is not None:
            os.chown(place, *self._owner, follow_symlinks=False)
        if self._mode is not None and not os.path.islink(place):
            os.chmod(place, self._mode)


def main() -> None:
    """Copy what the JSON object in the first argument says; the exit code tells whether it did."""
    wanted = json.loads(sys.argv[1])
    context, target = wanted["context"], wanted["target"]
    style = Style(wanted["mode"], _owner(wanted["owner"]))
    found = []
    for source in wanted["sources"]:
        matches = sorted(_match(_below(context, source)))
        if not matches:
            sys.exit(f"{source}: not found in the context (does .dockerignore leave it out?)")
        found += [_resolve(context, match, source) for match in matches]
    into_folder = target.endswith("/") or len(found) > 1 or os.path.isdir(target)
    for path in found:
        if wanted["unpack"] and os.path.isfile(path) and tarfile.is_tarfile(path):
            os.makedirs(target, exist_ok=True)
            with tarfile.open(path) as archive:
                _extract(archive, target)
        elif os.path.isdir(path):
            _copy_folder(path, target, style)
        else:
            place = os.path.join(target, os.path.basename(path)) if into_folder else target
            os.makedirs(os.path.dirname(place) or "/", exist_ok=True)
            _copy_file(path, place, style)


def _extract(archive: tarfile.TarFile, target: str) -> None:
    if hasattr(tarfile, "tar_filter"):
        archive.extractall(target, filter="tar")
    else:  # an older Python: what leads out of the target stays in the sandbox all the same
        archive.extractall(target)


def _match(pattern: str) -> "list[str]":
    if sys.version_info >= (3, 11):
        return glob.glob(pattern, include_hidden=True)
    return glob.glob(pattern)  # which leaves hidden files out


def _below(context: str, source: str) -> str:
    # Docker reads every source from the context's root, however it begins.
    path = os.path.normpath("/" + source).lstrip("/")
    return os.path.join(glob.escape(context), path) if path else context


def _resolve(context: str, match: str, source: str) -> str:
    real = os.path.realpath(match)
    if real != context and not real.startswith(context + "/"):
        sys.exit(f"{source}: it is a link that leads out of the context")
    return real


def _owner(wanted: "str | None") -> "tuple[int, int] | None":
    """Return uid and gid of `account` or `account:group`; a lone account's number is both."""
    if wanted is None:
        return None
    user, _, group = wanted.partition(":")
    try:
        uid = int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
        gid = uid
        if group:
            gid = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError:
        sys.exit(f"{wanted}: the image has no such account")
    return uid, gid


def _copy_folder(source: str, target: str, style: Style) -> None:
    if not os.path.isdir(target):
        os.makedirs(target)
        style.apply(target)
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        place = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False):
            if not os.path.isdir(place):
                _remove(place)
                os.mkdir(place)
                os.chmod(place, entry.stat().st_mode & 0o777)
                style.apply(place)
            _copy_folder(entry.path, place, style)
        else:
            _copy_file(entry.path, place, style)


def _copy_file(source: str, place: str, style: Style) -> None:
    if os.path.isdir(place) and not os.path.islink(place):
        sys.exit(f"{place} is a folder, which a file can't replace")
    _remove(place)
    if os.path.islink(source):
        os.symlink(os.readlink(source), place)
    else:
        shutil.copyfile(source, place)
        shutil.copystat(source, place)
    style.apply(place)


def _remove(place: str) -> None:
    if os.path.lexists(place):
        os.unlink(place)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"{error.filename or ''}: {error.strerror or error}")
