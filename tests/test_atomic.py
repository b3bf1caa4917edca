"""Atomic writes of one or several files, and their permissions."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from mercat._files import atomic
from mercat._files.atomic import PartlyWritten, whole_file, whole_files

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs modes and links of POSIX")


def contents(folder):
    return {entry.name: entry.read_text() for entry in folder.iterdir()}


def write_both(folder, *names):
    with whole_files([folder / name for name in names]) as parts:
        for part in parts:
            part.write_text("new")


def test_an_error_in_the_block_changes_nothing(tmp_path):
    (tmp_path / "a").write_text("old")

    def break_off():
        with whole_file(tmp_path / "a") as part:
            part.write_text("half")
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        break_off()
    assert contents(tmp_path) == {"a": "old"}


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("error", [OSError(5, "disk on fire"), KeyboardInterrupt()])
def test_a_failed_rename_leaves_all_files_unchanged(tmp_path, monkeypatch, at, links, error):
    for name in ("a", "c"):
        (tmp_path / name).write_text("old")
    replace, calls = os.replace, []

    def failing(source, target):
        calls.append(target)
        if len(calls) == at + 1:
            raise error
        replace(source, target)

    def no_links(source, target):
        raise OSError("no links here")

    monkeypatch.setattr(atomic.os, "replace", failing)
    if not links:
        monkeypatch.setattr(atomic.os, "link", no_links)
    with pytest.raises(type(error)):
        write_both(tmp_path, "a", "b", "c")
    assert contents(tmp_path) == {"a": "old", "c": "old"}


def test_files_that_cannot_be_restored_are_reported_and_kept(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")
    replace, calls = os.replace, []

    def only_once(source, target):
        calls.append(target)
        if len(calls) > 1:
            raise OSError(5, "disk on fire")
        replace(source, target)

    monkeypatch.setattr(atomic.os, "replace", only_once)
    with pytest.raises(PartlyWritten, match="disk on fire") as caught:
        write_both(tmp_path, "a", "b")
    assert str(tmp_path / "a") in str(caught.value)
    found = contents(tmp_path)
    assert found.pop("a") == "new"
    assert found.pop("b") == "old"
    assert "old" in found.values()  # the only copy of the old "a"
    assert all(name in str(caught.value) for name in found if name.startswith(".a"))


@pytest.mark.parametrize("broken", [False, True])
def test_temporary_files_that_cannot_be_removed_do_not_change_the_outcome(
    tmp_path, monkeypatch, broken
):
    targets = [tmp_path / name for name in "ab"]

    def fails(*_, **__):
        raise PermissionError("no")

    monkeypatch.setattr(Path, "unlink", fails)
    with contextlib.ExitStack() as stack:
        if broken:
            stack.enter_context(pytest.raises(RuntimeError, match="broken off"))
        for part in stack.enter_context(whole_files(targets)):
            part.write_text("new")
        if broken:
            raise RuntimeError("broken off")
    assert [target.exists() for target in targets] == [not broken] * 2


def test_several_files_are_replaced_together(tmp_path):
    (tmp_path / "a").write_text("old")
    write_both(tmp_path, "a", "b")
    assert contents(tmp_path) == {"a": "new", "b": "new"}


@posix
def test_saving_does_not_touch_the_umask(tmp_path, monkeypatch):
    """All threads share the umask: files created by other threads could become accessible to everybody."""
    before, asked = os.umask(0o027), []
    try:
        monkeypatch.setattr(atomic.os, "umask", lambda mask: asked.append(mask) or 0)
        write_both(tmp_path, "a", "b")
        monkeypatch.undo()
        assert asked == []
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    finally:
        os.umask(before)


@posix
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_file_keeps_its_mode(tmp_path, mode):
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(mode)
    with whole_file(tmp_path / "a") as part:
        meanwhile = stat.S_IMODE(part.stat().st_mode)
        part.write_text("new")
    assert meanwhile & 0o600 == 0o600
    assert meanwhile & 0o077 & ~mode == 0  # the temporary file was not readable by others either
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


@posix
def test_symbolic_links_are_kept(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with whole_file(tmp_path / "link") as part:
        part.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@posix
def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    for name, reason in (("pipe", "a pipe"), ("loop", "loop"), ("folder", "a folder")):
        with pytest.raises(OSError, match=reason), whole_file(tmp_path / name):
            pass
    with pytest.raises(OSError, match="a device"), whole_file(os.devnull):
        pass
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"], ids=["null", "surrogate"])
def test_invalid_file_names(tmp_path, name):
    with pytest.raises(OSError, match="cannot be written: a file cannot have this name"):  # noqa: SIM117
        with whole_file(tmp_path / name):
            pass


def test_file_names_of_maximal_length(tmp_path):
    name = "n" * 240 + ".csv"
    write_both(tmp_path, name, "b")
    assert set(contents(tmp_path)) == {name, "b"}


def test_threads_may_write_the_same_file(tmp_path):
    def write(text):
        for _ in range(20):
            with whole_file(tmp_path / "a") as part:
                part.write_text(text)

    threads = [threading.Thread(target=write, args=(text * 100,)) for text in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set((tmp_path / "a").read_text())) == 1
    assert len(list(tmp_path.iterdir())) == 1
