"""Fixtures shared by several test files."""

from __future__ import annotations

import os

# Before NumPy is imported: lets scikit-learn's checks of array API input run instead of skipping them.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from chromium import browser  # noqa: F401, a fixture
from explorer_page import page, visit  # noqa: F401, fixtures
from hypothesis import settings
from kernels import blas_threads
from threadpoolctl import threadpool_limits

# No doctests here; docs/ has a file of the same name. Atheris is not part of `.[dev]`.
collect_ignore = ["conftest.py", "fuzz_coverage.py", "triton_kernels.py"]
settings.register_profile("default", deadline=None, max_examples=15, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=2_500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    """Scikit-learn's bundled digits: real data of 1797 x 64."""
    from sklearn.datasets import load_digits

    return load_digits().data


@pytest.fixture
def brief_descent(monkeypatch):
    """A tenth of the iterations with detail, for tests that do not check the map."""
    monkeypatch.setattr("mercat._detail.descent.N_ITER", 30)


@pytest.fixture
def two_blas_threads():
    """BLAS with two threads, so that a limit of one has an effect (`make test` allows one per process)."""
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("needs a BLAS whose number of threads can be set")
        yield
