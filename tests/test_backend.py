"""Blocks, tiles and threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from kernels import blas_threads

from mercat._data.arrays import TILE, blocks, in_tiles, namespace
from mercat._data.threads import Workers

pytestmark = pytest.mark.usefixtures("two_blas_threads")


def test_blocks_cover_the_range_once():
    for n, size in ((10, 3), (9, 3), (2, 5), (0, 4)):
        covered = [i for block in blocks(n, size) for i in range(n)[block]]
        assert covered == list(range(n))
        assert all(block.stop - block.start <= size for block in blocks(n, size))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_map_keeps_the_order(n_jobs):
    def slow_for_the_first(i):
        if i == 0:
            threading.Event().wait(0.02)
        return i * i

    with Workers(n_jobs) as workers:
        assert list(workers.map(slow_for_the_first, range(50))) == [i * i for i in range(50)]


def test_map_raises_exceptions_of_workers():
    def fails_at_three(i):
        if i == 3:
            raise ValueError("three")
        return i

    with Workers(2) as workers, pytest.raises(ValueError, match="three"):
        list(workers.map(fails_at_three, range(10)))


def test_threads_end_with_the_context():
    before = threading.active_count()
    with Workers(3) as workers:
        list(workers.map(lambda i: i, range(100)))
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_blas_has_one_thread_until_the_last_context_ends():
    """A context that ends must not lift the limit of another."""
    outside = blas_threads()
    first, second = Workers(1), Workers(2)
    first.__enter__()
    assert blas_threads() == {1}
    second.__enter__()
    first.__exit__()
    assert blas_threads() == {1}
    second.__exit__()
    assert blas_threads() == outside


def test_contexts_in_different_threads_limit_blas():
    outside = blas_threads()
    with Workers(1):
        pass
    seen, first = [], Workers(1)

    def in_another_thread():
        with Workers(1):
            seen.append(blas_threads())
        first.__enter__()

    thread = threading.Thread(target=in_another_thread)
    thread.start()
    thread.join()
    seen.append(blas_threads())
    first.__exit__()
    assert seen == [{1}, {1}]
    assert blas_threads() == outside


@pytest.mark.parametrize("n", [1, TILE - 1, TILE, 2 * TILE + 7])
def test_tiles_have_one_shape_and_give_each_row_once(n):
    seen = []

    def function(a, b):
        seen.append((a.shape, b.shape))
        return a + 1, b[:, 0] * 2

    a, b = np.arange(2.0 * n).reshape(n, 2), np.arange(3.0 * n).reshape(n, 3)
    plus, twice = in_tiles(function, a, b)
    np.testing.assert_array_equal(plus, a + 1)
    np.testing.assert_array_equal(twice, b[:, 0] * 2)
    assert set(seen) == {((TILE, 2), (TILE, 3))}


def test_namespace_of_numpy_has_the_standard_names():
    assert {"concat", "vecdot", "permute_dims", "astype"} <= set(dir(namespace(np.zeros(1))))
