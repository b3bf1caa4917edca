"""Samples of the rows by their values."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2, kstest

from mercat import Mercat
from mercat._data.sampling import random_sample, row_keys, sample_of
from mercat._data.source import RowSource
from mercat._data.threads import Workers

X = np.random.default_rng(0).normal(size=(5000, 7))


def sample(rows, size):
    with Workers(2) as workers:
        return sample_of(RowSource(rows, workers), size)


def test_the_sample_does_not_depend_on_the_order_of_the_rows():
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(order[sample(X[order], 300).rows], sample(X, 300).rows)


def test_small_samples_are_subsets_of_large_ones():
    np.testing.assert_array_equal(sample(X, 2000).rows[:300], sample(X, 300).rows)


def test_parts_of_the_data_have_the_same_sample():
    kept = np.sort(np.random.default_rng(2).permutation(len(X))[: int(0.95 * len(X))])
    ours, theirs = sample(X, 1000), sample(X[kept], 1000)
    shared = np.intersect1d(ours.rows, kept[theirs.rows])
    assert len(shared) > 0.93 * 1000
    for step in range(20):
        shared = np.intersect1d(ours.subsample(step, 100), kept[theirs.subsample(step, 100)])
        assert len(shared) > 70


@pytest.mark.parametrize("form", [np.float32, np.float64, np.int16, bool])
def test_keys_are_uniform(form):
    rows = (
        (10 * X).astype(form)[:, :7]
        if form is not bool
        else np.unpackbits(
            np.arange(5000, dtype=">u2").view(np.uint8).reshape(-1, 2), axis=1
        ).astype(bool)
    )
    keys = sample(rows, len(rows)).keys / 2.0**64 + 0.5
    assert kstest(keys, "uniform").pvalue > 1e-3


def test_each_row_is_as_likely_as_any_other():
    """Over many data sets, samples do not depend on the order or size of the rows."""
    rng = np.random.default_rng(3)
    counts = np.zeros((2, 10))
    for _ in range(300):
        rows = np.sort(rng.exponential(size=(100, 1)), axis=0)
        chosen = sample(rows, 20).rows
        counts[0] += np.bincount(chosen // 10, minlength=10)
        counts[1] += np.bincount(chosen[:10] // 10, minlength=10)
    for found in counts:
        expected = found.sum() / 10
        assert np.sum((found - expected) ** 2 / expected) < chi2.ppf(0.999, 9)


def test_equal_rows_are_sampled_in_proportion():
    rows = np.zeros((4000, 3))
    rows[:2000] = np.random.default_rng(4).normal(size=(2000, 3))
    chosen = sample(rows, 1000).rows
    assert len(np.unique(chosen)) == 1000
    assert 400 < np.sum(chosen >= 2000) < 600
    assert len(np.unique(sample(np.zeros((50, 2)), 20).rows)) == 20


def test_signs_of_zero_and_stored_zeros_do_not_matter():
    rows = np.where(X > 0.5, X, 0.0)
    stored = sp.csr_array(rows)
    explicit = sp.csr_array(np.ones_like(rows))
    explicit.data[:] = rows.ravel()
    expected = row_keys(rows)
    for form in (-1.0 * -rows, np.where(rows == 0, -0.0, rows), stored, explicit):
        np.testing.assert_array_equal(row_keys(form), expected)
    empty = sp.csr_array((4, 7))
    np.testing.assert_array_equal(row_keys(empty), np.zeros(4))


def test_dask_arrays_have_the_sample_of_arrays():
    da = pytest.importorskip("dask.array")
    from mercat._data.dask_source import DaskSource

    with Workers(1) as workers:
        lazy = DaskSource(da.from_array(X, chunks=(700, 7)), workers)
        np.testing.assert_array_equal(sample_of(lazy, 400).rows, sample(X, 400).rows)


def test_tensors_have_the_sample_of_arrays():
    torch = pytest.importorskip("torch")
    from mercat._data.torch_source import TorchSource

    with Workers(1) as workers:
        there = TorchSource(torch.as_tensor(X), workers, torch.device("cpu"))
        np.testing.assert_array_equal(sample_of(there, 400).rows, sample(X, 400).rows)


def test_powers_of_two_and_memory_layout_do_not_matter():
    for rows in (X, np.where(X > 1, X, 0), (X > 0.5).astype(float)):
        expected = row_keys(rows)
        for form in (4 * rows, rows.astype(np.float32) / 1024, sp.csr_array(8 * rows)):
            np.testing.assert_array_equal(row_keys(form), expected)
    assert len(np.unique(row_keys(np.eye(50)))) == 50


def test_parts_cover_the_sample():
    found = random_sample(3000, 1000, np.random.default_rng(0))
    seen = np.concatenate([found.subsample(step, 50) for step in range(60)])
    assert len(np.unique(seen)) > 900
    assert all(len(np.unique(found.subsample(step, 50))) == 50 for step in range(60))


@pytest.mark.parametrize("detail", [0, 0.3])
def test_other_seeds_and_orders_of_rows_give_the_same_map(detail):
    rows = X[:1500] * np.linspace(2, 0.3, 7)
    first = Mercat(detail=detail, random_state=0).fit(rows)
    again = Mercat(detail=detail, random_state=1).fit(rows)
    np.testing.assert_array_equal(first.embedding_, again.embedding_)
    order = np.random.default_rng(1).permutation(len(rows))
    turned = Mercat(detail=detail, random_state=0).fit(rows[order]).embedding_
    apart = np.linalg.norm(turned - first.embedding_[order], axis=1)
    assert np.median(apart) < (0.01 if detail == 0 else 0.05)
