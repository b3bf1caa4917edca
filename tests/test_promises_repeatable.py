"""Tests of docs/promises.md, "Repeatable": the same seed gives the same bits."""

from __future__ import annotations

import platform

import numpy as np
import pytest
import scipy.sparse as sp
from fingerprints import fingerprint
from kernels import largest_distance
from processes import python
from scipy.spatial.distance import cdist

from mercat import Mercat

DETAILS = [0.0, 0.3]
TOLERANCE = 0.01  # of the loss and the correlation, between kernels of BLAS
IN_ANOTHER_PROCESS = """
import json
from fingerprints import fingerprint
from threadpoolctl import threadpool_info
found = {str(detail): fingerprint(2, detail) for detail in (0.0, 0.3)}
blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
kernels = sorted(str(library.get("architecture")) for library in blas)
print(json.dumps({"kernels": kernels, **found}))
"""


@pytest.fixture(scope="module")
def here() -> dict:
    return {str(detail): fingerprint(1, detail) for detail in DETAILS}


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_runs_and_threads_give_the_same_bits(n_jobs, detail, here):
    assert fingerprint(n_jobs, detail) == here[str(detail)]


def test_another_process_gives_the_same_bits(here):
    there = python(IN_ANOTHER_PROCESS, env={"PYTHONHASHSEED": "7"})
    assert {detail: there[detail] for detail in here} == here


WAYS = {
    "cosine": {"metric": "cosine"},
    "correlation": {"metric": "correlation", "n_landmarks": 100, "solver": "landmarks"},
    "precomputed": {"metric": "precomputed"},
    "the paper's loss": {"objective": "absolute", "solver": "landmarks", "n_landmarks": 100},
    "no denoising": {"n_spectral": None},
    "sparse": {},
    "detail": {"detail": 0.3},
    "single precision": {"detail": 0.1},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("brief_descent")
def test_a_single_row_has_the_same_position_as_in_a_batch(way, digits):
    X, new = digits[:300], digits[300:900] + 0.25 * (digits[300:900] > 0)
    if way == "precomputed":
        X, new = cdist(X, X), cdist(new, X)
    elif way == "sparse":
        X, new = sp.csr_array(X), sp.csr_array(new)
    elif way == "single precision":
        X, new = X.astype(np.float32), new.astype(np.float32)
    model = Mercat(**{"random_state": 0, **WAYS[way]}).fit(X)
    batch = model.transform(new)
    for i in (0, 7, 511, 512, 599):
        assert largest_distance(model.transform(new[i : i + 1]), batch[i : i + 1]) == 0


ALONE = """
import json
import numpy as np
from sklearn.datasets import load_digits
from mercat import Mercat
from mercat._data.arrays import blas_is_batch_invariant
from mercat._detail import descent

descent.N_ITER = 30
X, found = load_digits().data.astype(np.float32), []
new = X[300:900] + 0.25
for detail in (0.0, 0.3):
    parameters = {"solver": "landmarks", "n_landmarks": 150, "tol": 0.01, "random_state": 0}
    model = Mercat(detail=detail, **parameters).fit(X[:200])
    batch = model.transform(new)
    same = [bool((model.transform(new[i : i + 1]) == batch[i]).all()) for i in range(24)]
    parts = [model.transform(part) for part in (new[:7], new[7:590], new[590:])]
    found.append([all(same), bool((np.concatenate(parts) == batch).all())])
print(json.dumps([blas_is_batch_invariant(), *found]))
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names kernels of x86")
def test_single_rows_match_batches_with_other_blas_kernels():
    """OpenBLAS for AVX2 adds up rows 6 to 11 of every twelve in another order, in single precision.

    `make numpy` runs this without the compiled kernels.
    """
    even, plain, detailed = python(ALONE, env={"OPENBLAS_CORETYPE": "Haswell"})
    if even:
        pytest.skip("needs an OpenBLAS with its kernels for AVX2")
    assert plain == [True, True]  # alone and in parts
    assert detailed == [True, True]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names kernels of x86")
def test_other_kernels_of_blas_give_maps_of_the_same_quality():
    """Sums have another order: the bits differ, but not the quality of the map."""
    one, two = (
        python(IN_ANOTHER_PROCESS, env={"OPENBLAS_CORETYPE": core})
        for core in ("Nehalem", "Haswell")
    )
    if one["kernels"] == two["kernels"]:
        pytest.skip("needs an OpenBLAS with several kernels")
    for detail in map(str, DETAILS):
        for found in (one, two):
            assert found[detail]["a row alone"] == 0
        for measure in ("loss", "correlation"):
            assert one[detail][measure] == pytest.approx(two[detail][measure], abs=TOLERANCE)
