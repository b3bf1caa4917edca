"""Atomic writes of one or several files."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .untrusted import kind_of_file

_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)


class PartlyWritten(OSError):
    """Some files were replaced, and could not be restored after another one failed."""


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` if the block ends without an error.

    If the block is interrupted, `path` is unchanged. The temporary file is in the same folder and has the
    same suffix as `path`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/note.txt") as part:
    ...         _ = part.write_text("all of it")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['note.txt']
    """
    with whole_files([path]) as (part,):
        yield part


@contextmanager
def whole_files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[Path]]:
    """Like `whole_file`, for several files: either all or none are replaced.

    If one cannot be replaced, the others are restored; if that fails, `PartlyWritten` names the new files. (A
    power failure between two renames leaves some replaced.)
    """
    targets = [check_target(Path(path)) for path in paths]
    parts: list[Path] = []
    try:
        for target in targets:
            parts.append(_new_file_beside(target))
        yield list(parts)
        for part, target in zip(parts, targets, strict=True):
            if (mode := _mode_of(target)) is not None:
                part.chmod(mode)
        _replace_all(parts, targets)
    finally:
        for part in parts:
            with suppress(OSError):  # the outcome, or the error, is what matters
                remove(part)


def remove(path: Path) -> None:
    """Delete a file, or a folder that a writer created instead, such as a zarr store."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def check_target(path: Path) -> Path:
    """Resolve links of a path to write; it must be a regular file or absent, in an existing folder.

    Raises OSError otherwise, for example for a device, which a rename would replace.
    """
    try:
        target = Path(os.path.realpath(path))
        kind = kind_of_file(target)
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror}.") from error
    except ValueError as error:  # text that is not Unicode, or a null character
        raise OSError(f"{str(path)!r} cannot be written: a file cannot have this name.") from error
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {target.parent}.")
    if kind == "a folder":
        raise IsADirectoryError(f"{path} cannot be written: it is a folder.")
    if kind not in ("a file", "absent"):
        raise OSError(f"{path} cannot be written: it is {kind}, not a file.")
    return target


def _new_file_beside(target: Path) -> Path:
    """Create an empty file with the permissions of `target`, or those of the umask."""
    ending = "".join(target.suffixes[-2:])
    mode = _mode_of(target)
    while True:
        # The name of the target may have the maximum length already.
        part = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}{ending[-20:]}")
        try:
            os.close(os.open(part, _NEW, 0o666 if mode is None else 0o600 | mode))
        except FileExistsError:
            continue
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from error
        return part


def _mode_of(target: Path) -> int | None:
    """Permissions of the file at `target`, None if it does not exist."""
    try:
        return stat.S_IMODE(target.stat().st_mode) & 0o777
    except FileNotFoundError:
        return None


def _replace_all(parts: list[Path], targets: list[Path]) -> None:
    """Rename each part to its target; if one rename fails, undo the others."""
    backups: list[Path] = []  # backups of the targets
    try:
        for target in targets if len(targets) > 1 else ():
            backups.append(target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.old"))
            _back_up(target, backups[-1])
        for part, target in zip(parts, targets, strict=True):
            os.replace(part, target)
    except BaseException as error:
        messages = [
            message
            for part, target, old in zip(parts, targets, backups, strict=False)
            if (message := _restore(part, target, old))
        ]
        if messages:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise PartlyWritten(f"{reason}. Not restored: {', '.join(messages)}") from error
        raise
    for old in backups:
        with suppress(OSError):
            old.unlink(missing_ok=True)


def _back_up(target: Path, old: Path) -> None:
    """Back up the file at `target`, if it exists, under the name `old`."""
    if target.exists():
        try:
            os.link(target, old)
        except OSError:  # a file system without links, or a file of another user
            os.rename(target, old)


def _restore(part: Path, target: Path, old: Path) -> str | None:
    """Restore the previous content of `target`; return a message if that fails."""
    try:
        if part.exists() and target.exists():  # not replaced
            old.unlink(missing_ok=True)
        elif old.exists():
            os.replace(old, target)
        elif not part.exists():
            remove(target)
    except OSError:
        return f"{target} (its previous content is {old})" if old.exists() else str(target)
    return None
