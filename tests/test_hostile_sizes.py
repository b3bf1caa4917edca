"""Small files that unfold to far more than their size are refused, or read in bounded memory."""

# ruff: noqa: F811, fixtures of another file
from __future__ import annotations

from test_hostile_files import MTX, check, read, samples  # noqa: F401, fixtures


def test_info_does_not_make_sparse_matrices_dense(read, tmp_path):
    path = tmp_path / "a.mtx"
    for shape in ("80000 80000", "50 167000", "167000 50"):
        path.write_text(f"{MTX}coordinate real general\n{shape} 2\n1 1 1\n2 2 2\n")
        answer = read("info", path)
        check(answer, path)
        assert answer["outcome"] == "read"
