"""Tests of docs/promises.md, "Nothing is misread": arrays are read correctly or refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp
from processes import python

from mercat import Mercat, TrustWarning, metrics
from mercat._data.sparse import checked_csr
from mercat.viewer._genes import read_genes
from mercat.viewer._neighbors import read_neighbors

RNG = np.random.default_rng(0)
COUNTS = np.where(RNG.random((60, 8)) < 0.4, RNG.gamma(1.0, 2.0, (60, 8)), 0.0)


# ------------------------------------------------------------------ sparse matrices


def broken(format, change):
    X = sp.coo_array(COUNTS).asformat(format)
    change(X)
    return X


def put(X, part, at, value):
    getattr(X, part)[at] = value


BROKEN = {
    "csr, a column beyond": ("csr", lambda X: put(X, "indices", 3, 10**6), "0..7, got 1000000"),
    "csr, a negative column": ("csr", lambda X: put(X, "indices", 3, -5), "0..7, got -5"),
    "csr, rows that fall": ("csr", lambda X: put(X, "indptr", 3, 10**6), "indptr must not decrease"),
    "csr, rows beyond": ("csr", lambda X: put(X, "indptr", -1, 10**6), "must end within"),
    "csr, rows from 5 on": ("csr", lambda X: put(X, "indptr", 0, 5), "starting at 0"),
    "csr, too few rows": ("csr", lambda X: setattr(X, "indptr", X.indptr[:-2]), "61 numbers"),
    "csr, too few data": ("csr", lambda X: setattr(X, "data", X.data[:5]), "do not match"),
    "csr, fractions": ("csr", lambda X: setattr(X, "indices", X.indices + 0.5), "of integers"),
    "csc, a row beyond": ("csc", lambda X: put(X, "indices", 3, 60), "0..59, got 60"),
    "bsr, a block beyond": ("bsr", lambda X: put(X, "indices", 3, 10**6), "got 1000000"),
    "coo, a row beyond": ("coo", lambda X: put(X, "row", 3, 10**9), "0..59, got 1000000000"),
    "coo, a negative column": ("coo", lambda X: put(X, "col", 3, -1), "0..7, got -1"),
    "dia, too few offsets": ("dia", lambda X: setattr(X, "offsets", X.offsets[:2]), "offsets"),
    "bytes in another order": (
        "csr", lambda X: setattr(X, "data", X.data.astype(">f8")), "byte order"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_sparse_data_are_refused(case):
    format, change, reason = BROKEN[case]
    model = Mercat(random_state=0).fit(COUNTS)
    for call in (Mercat(random_state=0).fit, model.transform):
        with pytest.raises(ValueError, match=r"^X ") as caught:
            call(broken(format, change))
        assert reason in str(caught.value)


def test_lil_indices_out_of_bounds_are_refused():
    X = sp.lil_array(COUNTS)
    X.rows[0][0] = 10**6
    with pytest.raises(ValueError, match=r"^X .*0\.\.7, got 1000000"):
        Mercat(random_state=0).fit(X)
    X.rows[0][0] = 0.5
    with pytest.raises(ValueError, match=r"^X .*rows\[0\] must be integers, got float64"):
        Mercat(random_state=0).fit(X)
    X = sp.lil_array(COUNTS)
    X.data[0].append(1.0)
    with pytest.raises(ValueError, match=r"^X .*row 0 has"):
        Mercat(random_state=0).fit(X)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ((1.5, 3), "axis 0 must be integers, got float64"),
        ((60, 3), r"axis 0 must be in 0\.\.59, got 60"),
        ((2, -1), r"axis 1 must be in 0\.\.7, got -1"),
    ],
)
def test_dok_keys_out_of_bounds_or_fractional_are_refused(key, reason):
    X = sp.dok_array(COUNTS)
    X._dict[key] = 1.0
    with pytest.raises(ValueError, match=rf"^X is not a valid sparse matrix \(dok\): .*{reason}"):
        Mercat(random_state=0).fit(X)


def test_a_broken_graph_of_neighbours_is_refused():
    graph = sp.csr_array(np.roll(np.eye(60), 1, axis=1))
    graph.indices[4] = 10**7
    with pytest.raises(ValueError, match=r"^neighbors .*0\.\.59, got 10000000"):
        Mercat(detail=0.3, neighbors=graph).fit(COUNTS)


def test_broken_matrices_of_anndata_are_refused():
    anndata = pytest.importorskip("anndata")
    import mercat

    X = sp.csr_matrix(COUNTS)
    adata = anndata.AnnData(X)
    adata.X.indices[2] = 10**6
    with pytest.raises(ValueError, match=r"0\.\.7, got 1000000"):
        mercat.tl.mercat(adata, random_state=0)


#: Calls on an AnnData object that has a map: the code, the name in the error, and the matrix to corrupt.
USES = {
    "ingest into": ("mercat.tl.ingest(whole, broken)", "reference.X", 'broken.X'),
    "ingest": ("mercat.tl.ingest(broken, whole)", "query.X", 'broken.X'),
    "uncertainty": ("mercat.tl.uncertainty(broken, n_maps=4)", "adata.X", 'broken.X'),
    "colour": ("mercat.pl.map(broken, color='3')", "adata.X", 'broken.X'),
    "colour, layer": (
        "mercat.pl.map(broken, color='3', layer='a')", "adata.layers['a']", "broken.layers['a']"
    ),
    "colour, raw": ("mercat.pl.map(broken, color='3')", "adata.raw.X", 'broken.raw.X'),
    "explore": ("mercat.pl.explore(broken, 'a.html', keys=['3'])", "adata.X", 'broken.X'),
    "genes": ("mercat.pl.explore(broken, 'a.html', genes=3)", "adata.X", 'broken.X'),
    "graph": (
        "mercat.tl.mercat(broken, detail=0.1)", "adata.obsp['distances']", "broken.obsp['distances']"
    ),
    "components": (
        "mercat.tl.mercat(broken, use_rep='C', n_pcs=4)", "adata.obsm['C']", "broken.obsm['C']"
    ),
    "neighbours of the viewer": (
        "to_html(Y, None, 'a.html', neighbors=broken.obsp['distances'])", "neighbors",
        "broken.obsp['distances']",
    ),
    "genes of the viewer": (
        "to_html(Y, None, 'a.html', genes=(broken.X, list('abcdefgh')))", "genes", 'broken.X'
    ),
}  # fmt: skip


def test_broken_matrices_are_refused_wherever_they_are_read(tmp_path):
    """Runs in a separate process, since an unchecked matrix could crash it."""
    for library in ("anndata", "matplotlib"):
        pytest.importorskip(library)
    messages = python(
        f"""
import json, os, warnings
import anndata, matplotlib
import numpy as np, scipy.sparse as sp
import mercat
from mercat.viewer import to_html

os.chdir({str(tmp_path)!r})
matplotlib.use("Agg")
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = sp.csr_matrix(np.where(rng.random((60, 8)) < 0.4, rng.gamma(1.0, 2.0, (60, 8)), 0.0))
whole = anndata.AnnData(X)
mercat.tl.mercat(whole)
Y = whole.obsm["X_mercat_sphere"]
messages = {{}}
for use, (call, _, matrix) in {USES!r}.items():
    for part in ("indices", "indptr"):
        broken = whole.copy()
        if "raw" in use:
            broken.raw = broken
        broken.layers["a"], broken.obsm["C"] = X.copy(), X.copy()
        broken.obsp["distances"] = sp.random(60, 60, 0.2, format="csr", random_state=0)
        broken.uns["neighbors"] = {{"distances_key": "distances", "params": {{"use_rep": "X"}}}}
        getattr(eval(matrix), part)[5] = 2**30
        try:
            eval(call)
        except ValueError as error:
            messages[f"{{use}}, {{part}}"] = str(error)
print(json.dumps(messages))
"""
    )
    for use, (_, name, _) in USES.items():
        for part in ("indices", "indptr"):
            begin = f"{name} is not a valid sparse matrix (csr): {part}"
            assert messages.get(f"{use}, {part}", "").startswith(begin), (use, part)


def test_displayed_matrices_are_not_changed():
    """Stored zeros are dropped from a copy only."""
    graph = sp.csr_array(np.roll(np.eye(60), 1, axis=1))
    genes = sp.csc_array(COUNTS)
    for matrix in (graph, genes):
        matrix.data[:5] = 0
    before = [matrix.copy() for matrix in (graph, genes)]
    assert read_neighbors(graph, 60).max_count == 1
    assert len(read_genes((genes, list("abcdefgh")), 60).gaps) == genes.nnz - 5
    for matrix, expected in zip((graph, genes), before, strict=True):
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(matrix, part), getattr(expected, part))


def test_broken_chunks_of_dask_are_refused():
    da = pytest.importorskip("dask.array")

    def break_one(rows):
        rows = sp.csr_array(rows)
        rows.indices[1] = 10**6
        return rows

    X = da.from_array(COUNTS, chunks=(30, 8)).map_blocks(break_one, meta=sp.csr_array((0, 8)))
    with pytest.raises(ValueError, match=r"^X .*0\.\.7, got 1000000"):
        Mercat(random_state=0).fit(X)


def test_broken_data_do_not_crash_the_process():
    """Unchecked indices would cause a segmentation fault."""
    message = python("""
import json
import numpy as np
import scipy.sparse as sp
from mercat import Mercat

X = sp.random(500, 4000, 0.01, format="csr", random_state=0)
X.indices[::7] = 2**31 - 1 - 2**20
try:
    Mercat(random_state=0).fit(X)
except ValueError as error:
    print(json.dumps(str(error)))
""")
    assert message.startswith("X is not a valid sparse matrix")


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("container", [sp.coo_array, sp.coo_matrix])
def test_all_formats_are_read_alike(format, container):
    X = container(COUNTS).asformat(format)
    before = X.copy()
    expected = Mercat(random_state=0).fit(sp.csr_array(COUNTS)).embedding_
    np.testing.assert_array_equal(Mercat(random_state=0).fit(X).embedding_, expected)
    assert (abs(X.tocsr() - before.tocsr())).nnz == 0


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_duplicates_are_summed_and_order_does_not_matter(metric):
    whole = sp.csr_array(COUNTS)
    entries = whole.tocoo()
    twice = [np.concatenate([part, part])[::-1] for part in (entries.row, entries.col)]
    halves = np.concatenate([0.25 * entries.data, 0.75 * entries.data])[::-1]
    jumbled = sp.csr_array((60, 8))
    order = np.argsort(twice[0], kind="stable")
    jumbled.indices, jumbled.data = twice[1][order].astype(np.int32), halves[order]
    jumbled.indptr = np.searchsorted(twice[0][order], np.arange(61)).astype(np.int32)
    jumbled.has_sorted_indices = jumbled.has_canonical_format = True  # as SciPy may still believe
    given = jumbled.indices.copy()
    np.testing.assert_array_equal(checked_csr(jumbled, "X").indices, whole.indices)
    model = Mercat(metric=metric, random_state=0).fit(whole)
    found = Mercat(metric=metric, random_state=0).fit(jumbled)
    assert found.loss_ == pytest.approx(model.loss_, rel=1e-6)
    np.testing.assert_allclose(found.mean_, model.mean_, rtol=1e-12)
    np.testing.assert_allclose(model.transform(jumbled), model.transform(whole), atol=1e-5)
    np.testing.assert_array_equal(jumbled.indices, given)


def test_valid_matrices_are_not_copied():
    X = sp.csr_array(COUNTS)
    assert checked_csr(X, "X") is X
    assert checked_csr(sp.csr_array((5, 3)), "X").nnz == 0


def test_wide_sparse_data_stay_sparse():
    """Memory is needed for the stored entries and the components, not for rows times columns."""
    peak, correlation = python("""
import json, resource, warnings
import numpy as np
import scipy.sparse as sp
from mercat import Mercat

rng = np.random.default_rng(0)
rows, columns = np.repeat(np.arange(200), 30), rng.integers(0, 200_000, 6_000)
X = sp.csr_array((rng.gamma(1, 1, 6_000), (rows, columns)), shape=(200, 200_000))
model = Mercat(n_spectral=5, random_state=0, n_jobs=1, tol=0.01)
warnings.simplefilter("ignore")  # of what five components leave out
model.fit(X[:, :2000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.fit(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([(after - before) / 1024, model.correlation_]))
""")
    assert peak < 200  # MB; X in full is 320
    assert np.isfinite(correlation)


# ------------------------------------------------------------------ data frames


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda X: X[[]], "at least one column, got none"),
        (lambda X: X.set_axis(list("aabcdefg"), axis=1), "distinct names, got 'a' twice"),
        (lambda X: X.assign(c="x"), "numbers, got the column 'c' of type object"),
        (
            lambda X: X.assign(c="1"),
            r"numbers, got the column 'c' of type object: .* \.astype\(float\)",
        ),
        (lambda X: X.assign(c=pd.Series("1", X.index, "string")), "'c' of type string"),
        (lambda X: X.assign(c=pd.Series(1, X.index, "category")), "'c' of type category"),
        (lambda X: X.assign(c=pd.Series("1", X.index, "category")), "'c' of type category"),
        (
            lambda X: polars.DataFrame({"c": ["1"] * len(X)}),
            r"'c' of type String: .* \.cast\(float\)",
        ),
        (lambda X: polars.LazyFrame(X.to_dict("list")), "in memory, got a LazyFrame"),
        (lambda X: X.mask(X > 4), r"no NaN or infinity, got nan in row .* \('"),
    ],
)
def test_invalid_frames_are_refused(change, rule):
    X = pd.DataFrame(COUNTS, columns=list("abcdefgh"))
    wrong = change(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of polars, for columns of a LazyFrame
        for name, call in [
            ("X", lambda: Mercat().fit(wrong)),
            ("X", lambda: metrics.report(wrong, X)),
            ("Y", lambda: metrics.report(X, wrong)),
        ]:
            with pytest.raises((TypeError, ValueError), match=f"^{name} must .*{rule}"):
                call()


@pytest.mark.parametrize("dtype", ["bool", "boolean", object, "Int64"])
def test_frames_of_truth_values_and_integers_hold_numbers(dtype):
    X = pd.DataFrame(COUNTS[:50], columns=list("abcdefgh"))
    flags = X["a"] > X["a"].median()
    Y = Mercat(random_state=0).fit_transform(X.assign(z=flags.astype(dtype)))
    np.testing.assert_array_equal(Y, Mercat(random_state=0).fit_transform(X.assign(z=flags * 1.0)))


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(str),
        lambda X: X.astype(bytes),
        lambda X: X.astype(str).astype(object),
        lambda X: X.astype(str).tolist(),
    ],
)
def test_arrays_of_text_are_refused(convert):
    wrong = convert(COUNTS)
    for name, call in [
        ("X", lambda: Mercat().fit(wrong)),
        ("X", lambda: metrics.report(wrong, COUNTS)),
        ("Y", lambda: metrics.report(COUNTS, wrong)),
    ]:
        with pytest.raises(ValueError, match=f"^{name} must hold numbers, got text in an array"):
            call()


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "f2"])
def test_byte_order_does_not_matter(dtype):
    X = (8 * COUNTS).astype(f"<{dtype}")
    expected = Mercat(random_state=0).fit(X)
    model = Mercat(random_state=0).fit(X.astype(f">{dtype}"))
    assert model.embedding_.dtype == expected.embedding_.dtype
    assert model.embedding_.dtype.isnative
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)
    placed = model.transform(X.astype(f">{dtype}"))
    assert placed.dtype == expected.embedding_.dtype
    np.testing.assert_array_equal(placed, expected.transform(X))


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e148])
@pytest.mark.parametrize(
    "way", [{}, {"metric": "cosine"}, {"metric": "correlation"}, {"n_spectral": None}]
)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_numbers_of_any_size_raise_no_warning(scale, way, container):
    X = container(np.ceil(COUNTS * 1000) / 1000 * scale)  # subnormal numbers keep a few digits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TrustWarning)
        model = Mercat(random_state=0, **way).fit(X)
        model.transform(X)
    assert model.correlation_ > 0.5


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e148])
def test_distances_of_any_size_raise_no_warning(scale):
    D = np.linalg.norm(COUNTS[:, None] - COUNTS[None], axis=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Mercat(metric="precomputed", random_state=0).fit(D * scale)
        model.transform(D * scale)
    assert model.correlation_ > 0.5
