"""The examples of docs/cli.md."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from test_cli import call

GUIDE = Path(__file__).parents[1] / "docs" / "cli.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_every_example_of_the_guide_runs_and_prints_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in blocks("python"):
        exec(compile(code, str(GUIDE), "exec"), {})
    examples = blocks("console")
    assert len(examples) > 8
    for example in examples:
        joined = example.removeprefix("$ mercat ").replace("\\\n", " ")
        command, _, shown = joined.partition("\n")
        code, out, err = call(*shlex.split(command))
        expected = int(re.search(r"\[(\d)\]\n$", shown)[1]) if shown.endswith("]\n") else 0
        assert code == expected, err
        said = out if code == 0 else f"{err}[{code}]\n"
        checker = doctest.OutputChecker()
        assert checker.check_output(shown, said, FLAGS), f"{command}\n{said}\nis not\n{shown}"


def test_samples_fit_a_page():
    samples = re.findall(r"^```\w+\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert [line for sample in samples for line in sample.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    "command", sorted({"embed", "transform", "ingest", "evaluate", "view", "compare", "info"})
)
def test_the_guide_shows_every_command(command):
    assert f"$ mercat {command} " in GUIDE.read_text()


def test_the_guide_lists_the_exit_codes():
    from mercat.cli import _problems

    table = set(re.findall(r"^\| (\d+) \|", GUIDE.read_text(), re.MULTILINE))
    kinds = [k for k in vars(_problems).values() if isinstance(k, type)]
    assert table == {"0", "2", *(str(k.exit_code) for k in kinds if hasattr(k, "exit_code"))}
