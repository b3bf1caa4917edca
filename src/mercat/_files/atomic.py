"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place when the block ends well.

    Whatever interrupts the block, `path` holds what it held before, or the whole new content. The part
    has the ending of `path`, for writers that go by it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/note.txt") as part:
    ...         _ = part.write_text("all of it")
    ...     [entry.name for entry in Path(folder).iterdir()]
    ['note.txt']
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {target.parent}.")
    if target.is_dir():
        raise IsADirectoryError(f"{target} cannot be written: it is a folder.")
    ending = "".join(target.suffixes[-2:])
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=ending)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o666 & ~_umask())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
