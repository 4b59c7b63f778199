"""The files of `~/.prime`, written: only a login does that."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from prime_core.config import CONTEXT_NAME
from prime_core.errors import ConfigurationError

__all__ = ["refuse_temporary_context", "store"]

Settings = Mapping[str, str | None]


def refuse_temporary_context() -> None:
    """A context chosen for this process alone is not to be written to.

    Raises:
        ConfigurationError: `PRIME_CONTEXT` is set.
    """
    if os.environ.get("PRIME_CONTEXT", "").strip():
        raise ConfigurationError(
            "PRIME_CONTEXT chooses a context for this process alone, which a login must not "
            "change: unset it first."
        )


def store(settings: Settings) -> None:
    """Puts settings into the configuration file, and into the active context's.

    All else that the files hold stays. Each is whole at every moment, and only for its owner to
    read; a symbolic link is followed.

    Args:
        settings: by their names in the file; None is null.

    Raises:
        ConfigurationError: a file can't be understood, and so it is left alone; or a context is
            chosen for this process alone.
        OSError: a file can't be written.
    """
    refuse_temporary_context()
    try:
        folder = Path.home() / ".prime"
    except RuntimeError as error:
        raise ConfigurationError("No home directory is known: set HOME.") from error
    paths = [folder / "config.json"]
    stored = [_read(paths[0]) or {}]
    context = stored[0].get("current_environment")
    if isinstance(context, str) and context.strip().lower() not in ("", "production"):
        paths.append(_context_file(folder, context.strip()))
        stored.append(_read(paths[1]) or {})
    for path, content in zip(paths, stored, strict=True):
        _write(path, {**content, **settings})


def _context_file(folder: Path, name: str) -> Path:
    path = folder / "environments" / f"{name}.json"
    if not CONTEXT_NAME.fullmatch(name) or not path.is_file():
        raise ConfigurationError(
            f"The context {name!r}, taken from current_environment of config.json, does not exist."
        )
    return path


def _read(path: Path) -> dict[str, object] | None:
    """The object in a JSON file; None when there is no such file."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} holds no JSON object: correct it or move it away.")
    return content


def _write(path: Path, content: Mapping[str, object]) -> None:
    target = Path(os.path.realpath(path))
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # somebody else's folder, where we may write all the same
        path.parent.chmod(0o700)
    # It is made with the mode 0600, whatever the umask.
    descriptor, part = tempfile.mkstemp(prefix=".config-", suffix=".part", dir=target.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
