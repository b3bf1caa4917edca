"""Generators against the paper's description, loaders on small files with the real layouts."""

import gzip
import json
import pickle
import struct

import numpy as np
import pytest
from scipy import sparse

from mercat import datasets
from mercat.datasets import Dataset

GENERATORS = [
    datasets.smiley,
    datasets.circle,
    datasets.unif5,
    datasets.gauss5,
    datasets.gauss10,
    datasets.gauss5_s,
    datasets.gauss5_d,
]
LOADERS = [
    datasets.mnist_even,
    datasets.mammoth,
    datasets.paul15,
    datasets.pancreas,
    datasets.tabula_sapiens_blood,
    datasets.hela_cell_cycle,
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# --- generators -----------------------------------------------------------------------------


@pytest.mark.parametrize("generate", GENERATORS)
def test_generators_repeat_with_a_seed(generate):
    X, labels = generate(random_state=3)
    again = generate(random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(again.X, X)
    np.testing.assert_array_equal(again.labels, labels)
    assert not np.array_equal(generate(random_state=4).X, X)
    assert len(X) == len(labels)


def test_smiley_has_the_parts_of_a_face():
    X, labels = datasets.smiley()
    X = X / 2
    parts = {part: X[labels == part] for part in np.unique(labels)}
    assert {part: len(P) for part, P in parts.items()} == {
        "left eye": 375,
        "right eye": 375,
        "outline": 1500,
        "mouth": 750,
    }
    for eye, center in (("left eye", [-0.25, 0.25]), ("right eye", [0.25, 0.25])):
        assert np.all(np.linalg.norm(parts[eye] - center, axis=1) <= 0.1)
    outline = np.linalg.norm(parts["outline"], axis=1)
    assert 0.9 <= outline.min() < outline.max() <= 1
    mouth = np.linalg.norm(parts["mouth"], axis=1)
    assert 0.45 <= mouth.min() < mouth.max() <= 0.55
    # A smile: below the centre, with ends to the left and right.
    assert parts["mouth"][:, 1].max() <= 0
    assert parts["mouth"][:, 0].min() < -0.5
    assert parts["mouth"][:, 0].max() > 0.5
    # Uniform in area: the squared radius is, with mean (0.9^2 + 1) / 2.
    assert np.mean(outline**2) == pytest.approx(0.905, abs=4 * 0.19 / np.sqrt(12 * 1500))


def test_circle_has_radius_three_and_the_given_noise():
    X, angle = datasets.circle(20_000, noise=0.2)
    truth = 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    assert np.std(X - truth) == pytest.approx(0.2, rel=0.02)
    exact = datasets.circle(noise=0)
    assert np.hypot(*exact.X.T) == pytest.approx(3)
    assert len(exact.X) == 900


def test_uniform_clusters_fill_unit_cubes():
    X, labels = datasets.unif5()
    assert X.shape == (500, 50)
    for cluster in range(5):
        C = X[labels == cluster]
        assert len(C) == 100
        assert np.all(np.ptp(C, axis=0) < 1)
        assert np.mean(np.ptp(C, axis=0)) > 0.95
        assert np.ptp(C.min(axis=0)) > 15  # corners over U(-10, 10)


@pytest.mark.parametrize(
    ("generate", "sizes"),
    [
        (datasets.gauss5, [100] * 5),
        (datasets.gauss10, [100] * 10),
        (datasets.gauss5_s, [50, 100, 150, 200, 250]),
    ],
)
def test_gaussian_clusters_have_their_sizes_and_spreads(generate, sizes):
    X, labels = generate()
    assert np.bincount(labels).tolist() == sizes
    assert X.shape == (sum(sizes), 50)
    deviations = np.array([X[labels == c].std(axis=0) for c in range(len(sizes))])
    assert np.mean(deviations) == pytest.approx(1.25, abs=0.1)
    assert deviations.min() < 0.7
    assert deviations.max() > 1.8
    means = np.array([X[labels == c].mean(axis=0) for c in range(len(sizes))])
    assert np.std(means) == pytest.approx(20 / np.sqrt(12), rel=0.1)


def test_gaussian_densities_differ():
    X, labels = datasets.gauss5_d()
    variances = [X[labels == c].var(axis=0, ddof=1).mean() for c in range(5)]
    assert variances == pytest.approx([1, 2, 3, 4, 5], rel=0.1)


def test_spiked_follows_its_covariance(rng):
    n, d, sigma = 30, 20_000, np.array([3.0, 2.0])
    X, U, strengths = datasets.spiked(n, d, sigma)
    np.testing.assert_allclose(U.T @ U, np.eye(2), atol=1e-12)
    np.testing.assert_array_equal(strengths, sigma)
    expected = np.eye(n) + np.sqrt(n / d) * (U * sigma) @ U.T
    assert np.abs(X @ X.T / d - expected).max() < 6 * np.sqrt(2 / d) * 1.2
    given = np.linalg.qr(rng.normal(size=(n, 2)))[0]
    np.testing.assert_array_equal(datasets.spiked(n, 5, sigma, U=given).U, given)


def test_spiked_signal_is_detectable_above_one():
    # The leading eigenvalue of XX^T / sqrt(dn) tends to tau(s) = r + 1/r + s + 1/s, r = phi^.5.
    n, d, s = 400, 200, 4.0
    X, _, _ = datasets.spiked(n, d, [s])
    phi = n / d
    limit = phi**0.5 + phi**-0.5 + s + 1 / s
    assert np.linalg.norm(X, 2) ** 2 / np.sqrt(d * n) == pytest.approx(limit, rel=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.smiley(7), "^n_samples .*got 7"),
        (lambda: datasets.circle(2.5), r"^n_samples .*got 2\.5"),
        (lambda: datasets.circle(noise=-1), "^noise .*got -1"),
        (lambda: datasets.unif5(random_state="x"), r"^random_state .*got 'x'"),
        (lambda: datasets.spiked(10, 0, [2]), "^d .*got 0"),
        (lambda: datasets.spiked(10, 5, [1, 2]), r"positive and descending, got \[1.0, 2.0\]"),
        (lambda: datasets.spiked(10, 5, [0]), "positive and descending"),
        (lambda: datasets.spiked(1, 5, [2, 1]), r"1 to n = 1 strengths, got shape \(2,\)"),
        (lambda: datasets.spiked(4, 5, [2], U=np.ones((4, 1))), "^U .*orthonormal"),
        (lambda: datasets.mammoth(".", size="1k"), "^size .*got '1k'"),
    ],
)
def test_bad_parameters_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- a data set -----------------------------------------------------------------------------


def test_dataset_unpacks_and_can_be_copied():
    whole = Dataset(np.eye(2), ["a", "b"], feature_names=["x", "y"], source="here")
    X, labels = copy = pickle.loads(pickle.dumps(whole))
    assert (X.tolist(), labels.tolist()) == ([[1, 0], [0, 1]], ["a", "b"])
    assert copy.feature_names.tolist() == ["x", "y"]
    assert copy.sample_names is None
    assert repr(copy) == "Dataset(2 x 2, 2 labels, from here)"


# --- missing files --------------------------------------------------------------------------


@pytest.mark.parametrize("load", LOADERS)
def test_a_missing_file_says_what_to_download(load, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="https://"):
        load(tmp_path)
    monkeypatch.delenv("MERCAT_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"MERCAT_DATA.*https://"):
        load()


def test_folder_comes_from_the_environment(tmp_path, monkeypatch):
    np.savez(tmp_path / "paul15.npz", X=np.eye(2), labels=["a", "b"])
    monkeypatch.setenv("MERCAT_DATA", str(tmp_path))
    assert datasets.paul15().labels.tolist() == ["a", "b"]


# --- prepared files -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "name"),
    [
        (datasets.mammoth, "mammoth_10k"),
        (datasets.paul15, "paul15"),
        (datasets.pancreas, "pancreas"),
        (datasets.tabula_sapiens_blood, "tabula_sapiens_blood"),
        (datasets.hela_cell_cycle, "hela_cell_cycle"),
    ],
)
def test_prepared_files_are_used_unchanged(load, name, tmp_path):
    np.savez(tmp_path / f"{name}.npz", X=np.eye(2) * 3, labels=[1, 0], genes=["g", "h"])
    data = load(tmp_path)
    assert data.X.tolist() == [[3, 0], [0, 3]]
    assert data.labels.tolist() == [1, 0]
    assert data.feature_names.tolist() == ["g", "h"]
    assert data.source == str(tmp_path / f"{name}.npz")


def test_prepared_files_are_checked_and_never_unpickled(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=np.eye(2), labels=np.array(["a", None], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        datasets.from_npz(path)
    np.savez(path, X=np.eye(2))
    with pytest.raises(ValueError, match=r"labels.*\['X'\]"):
        datasets.from_npz(path)
    np.savez(path, X=np.eye(2), labels=[1])
    with pytest.raises(ValueError, match=r"\(2, 2\).*\(1,\)"):
        datasets.from_npz(path)


# --- MNIST ----------------------------------------------------------------------------------

DIGITS = np.array([4, 7, 0, 1, 8], dtype=np.uint8)
IMAGES = np.arange(5 * 6, dtype=np.uint8).reshape(5, 2, 3)


def idx(array):
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def check_even_digits(data):
    assert data.labels.tolist() == [4, 0, 8]
    np.testing.assert_array_equal(data.X, IMAGES.reshape(5, 6)[[0, 2, 4]])
    assert data.X.dtype == np.float32


@pytest.mark.parametrize("compressed", [True, False])
def test_mnist_from_idx(tmp_path, compressed):
    for name, array in (("images-idx3", IMAGES), ("labels-idx1", DIGITS)):
        path = tmp_path / f"train-{name}-ubyte{'.gz' if compressed else ''}"
        path.write_bytes(gzip.compress(idx(array)) if compressed else idx(array))
    check_even_digits(datasets.mnist_even(tmp_path))


def test_mnist_from_a_broken_idx(tmp_path):
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(idx(IMAGES)[:-1])
    with pytest.raises(ValueError, match=r"29.*\(5, 2, 3\)"):
        datasets.mnist_even(tmp_path)
    path.write_bytes(b"<html>")
    with pytest.raises(ValueError, match="IDX"):
        datasets.mnist_even(tmp_path)


@pytest.mark.parametrize("name", ["52667/mnist_784.arff.gz", "52667.gz"])
def test_mnist_from_the_cache_of_openml(tmp_path, name):
    path = tmp_path / "openml/openml.org/data/v1/download" / name
    path.parent.mkdir(parents=True)
    lines = ["% a comment", "@RELATION mnist_784", *(f"@ATTRIBUTE p{i} real" for i in range(6))]
    lines += ["@ATTRIBUTE class {0,1,4,7,8}", "@DATA"]
    lines += [
        ",".join(map(str, [*x, y])) for x, y in zip(IMAGES.reshape(5, 6), DIGITS, strict=True)
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    check_even_digits(datasets.mnist_even(tmp_path))


def test_mnist_prepared_and_from_keras(tmp_path, monkeypatch):
    from mercat.datasets import _real

    X = IMAGES.reshape(5, 6)
    test_set = np.full((1, 6), 9), [2]  # rows after the training set are not used
    monkeypatch.setattr(_real, "N_TRAIN", 5)
    prepared = tmp_path / "mnist.npz"
    np.savez(prepared, X=np.vstack([X, test_set[0]]), labels=np.append(DIGITS, test_set[1]))
    check_even_digits(datasets.mnist_even(tmp_path))
    np.savez(prepared, x_train=IMAGES, y_train=DIGITS, x_test=IMAGES, y_test=DIGITS)
    check_even_digits(datasets.mnist_even(tmp_path))


# --- mammoth --------------------------------------------------------------------------------


def test_mammoth_from_json(tmp_path):
    points = [[0.0, 1, 2], [3, 4, 5], [6, 7, 8]]
    (tmp_path / "mammoth_3d.json").write_text(json.dumps(points))
    assert datasets.mammoth(tmp_path).labels.tolist() == [0, 0, 0]
    parts = tmp_path / "mammoth_10k_encoded.json"
    parts.write_text(json.dumps({"projections": {}, "labelOffsets": [1, 2]}))
    X, labels = datasets.mammoth(tmp_path)
    assert X.tolist() == points
    assert labels.tolist() == [0, 1, 1]
    parts.write_text(json.dumps({"labelOffsets": [1]}))
    with pytest.raises(ValueError, match=r"3.*got 1"):
        datasets.mammoth(tmp_path)
    (tmp_path / "mammoth_3d_50k.json").write_text(json.dumps(points[:1]))
    assert datasets.mammoth(tmp_path, size="50k").X.tolist() == points[:1]


# --- single cells ---------------------------------------------------------------------------

GTF = "#!genome-build\n" + "".join(
    f'{where}\tsource\t{what}\t1\t9\t.\t+\t.\tgene_id "{gene}"; {kind}; gene_name "{name}";\n'
    for where, what, gene, kind, name in [
        ("chr1", "gene", "ENSG01.5", 'gene_type "protein_coding"', "Coding"),
        ("chr1", "transcript", "ENSG02.1", 'gene_type "protein_coding"', "Noncoding"),
        ("chr1", "gene", "ENSG02.1", 'gene_type "lncRNA"', "Noncoding"),
        ("chrM", "gene", "ENSG03", 'gene_biotype "protein_coding"', "mt-A"),
        ("1", "gene", "ENSG04", 'gene_biotype "protein_coding"', "Silent"),
    ]
)
GENES = ["Coding", "Noncoding", "mt-A", "Silent"]
EXPRESSION = np.array([[1, 2, 3, 0], [4, 5, 6, 0], [7, 8, 9, 0.5]], dtype=np.float32)


def write_h5ad(path, obs, *, index=GENES, var=None, dense=False):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    X = EXPRESSION if dense else sparse.csr_matrix(EXPRESSION)
    data = anndata.AnnData(
        X,
        obs=pd.DataFrame(obs, index=["c1", "c2", "c3"]),
        var=pd.DataFrame(var or {}, index=index),
    )
    data.write_h5ad(path)


def test_pancreas_keeps_coding_and_expressed_genes(tmp_path):
    pd = pytest.importorskip("pandas")
    clusters = pd.Categorical(["Alpha", None, "Beta"])
    write_h5ad(tmp_path / "GSE132188_adata.h5ad.h5", {"clusters_fig3_final": clusters})
    with gzip.open(tmp_path / "Mus_musculus.GRCm39.110.gtf.gz", "wt") as file:
        file.write(GTF)
    data = datasets.pancreas(tmp_path)
    assert data.labels.tolist() == ["Alpha", "unassigned", "Beta"]
    assert data.feature_names.tolist() == ["Coding", "mt-A", "Silent"]
    assert data.sample_names.tolist() == ["c1", "c2", "c3"]
    assert sparse.issparse(data.X)
    np.testing.assert_array_equal(data.X.toarray(), EXPRESSION[:, [0, 2, 3]])


def test_tabula_sapiens_keeps_one_assay_and_no_mitochondrion(tmp_path):
    path = tmp_path / "tabula_sapiens_blood.h5ad"
    obs = {"assay": ["10x 3' v3", "10x 3' v3", "Smart-seq2"], "cell_type": ["B", "T", "B"]}
    ids = ["ENSG01", "ENSG02", "ENSG03", "ENSG04"]
    write_h5ad(path, obs, index=ids, var={"feature_name": GENES}, dense=True)
    (tmp_path / "gencode.v38.annotation.gtf").write_text(GTF)
    data = datasets.tabula_sapiens_blood(tmp_path)
    # Silent is expressed in the cell of the other assay only.
    assert data.feature_names.tolist() == ["Coding"]
    assert data.X.tolist() == [[1], [4]]
    assert data.labels.tolist() == ["B", "T"]
    everything = datasets.tabula_sapiens_blood(tmp_path, protein_coding=False)
    assert everything.feature_names.tolist() == GENES[:3]
    write_h5ad(path, {**obs, "assay": "Smart-seq2"}, index=ids)
    with pytest.raises(ValueError, match="assay"):
        datasets.tabula_sapiens_blood(tmp_path, protein_coding=False)


def test_genes_can_be_listed_or_read_from_another_file(tmp_path):
    write_h5ad(tmp_path / "pancreas.h5ad", {"clusters_fig3_final": list("abc")})
    with pytest.raises(FileNotFoundError, match=r"ftp.ensembl.org.*protein_coding=False"):
        datasets.pancreas(tmp_path)
    listed = datasets.pancreas(tmp_path, protein_coding=["Silent", "Unknown"])
    assert listed.feature_names.tolist() == ["Silent"]
    other = tmp_path / "other.gtf"
    other.write_text(GTF)
    assert datasets.pancreas(tmp_path, protein_coding=other).X.shape == (3, 3)
    with pytest.raises(ValueError, match="Coding, Noncoding, mt-A"):
        datasets.pancreas(tmp_path, protein_coding=["ENSMUSG1"])


def test_missing_annotation_is_named(tmp_path):
    write_h5ad(tmp_path / "pancreas.h5ad", {"day": list("abc")})
    with pytest.raises(ValueError, match=r"clusters_fig3_final.*\['day', 'name'\]"):
        datasets.pancreas(tmp_path, protein_coding=False)


def test_h5ad_with_the_old_layout(tmp_path):
    """As written by anndata in 2019: tables as records, categories separate from codes."""
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("anndata")
    with h5py.File(tmp_path / "GSE132188_adata.h5ad.h5", "w") as file:
        X = sparse.csr_matrix(EXPRESSION)
        group = file.create_group("X")
        group.attrs["h5sparse_format"] = "csr"
        group.attrs["h5sparse_shape"] = X.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(X, name)
        cells = [(b"c1", 1), (b"c2", -1), (b"c3", 0)]
        file["obs"] = np.array(cells, dtype=[("index", "S2"), ("clusters_fig3_final", "i1")])
        file["var"] = np.array([(g.encode(),) for g in GENES], dtype=[("index", "S9")])
        file["uns/clusters_fig3_final_categories"] = np.array([b"Alpha", b"Beta"])
    data = datasets.pancreas(tmp_path, protein_coding=False)
    assert data.labels.tolist() == ["Beta", "unassigned", "Alpha"]
    assert data.feature_names.tolist() == GENES
    np.testing.assert_array_equal(data.X.toarray(), EXPRESSION)


def test_cells_from_loom(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "pancreas.loom", "w") as file:
        file["matrix"] = EXPRESSION.T
        file["row_attrs/Gene"] = np.array([g.encode() for g in GENES])
        file["row_attrs/Accession"] = np.array([b"ENSG01", b"ENSG02", b"ENSG03", b"ENSG04"])
        file["col_attrs/CellID"] = np.array(["c1", "c2", "c3"], dtype=h5py.string_dtype())
        file["col_attrs/clusters_fig3_final"] = np.array([b"Alpha", b"Beta", b"Alpha"])
        file["col_attrs/n_counts"] = np.arange(3)
    data = datasets.pancreas(tmp_path, protein_coding=["ENSG02.7", "mt-A"])
    assert data.labels.tolist() == ["Alpha", "Beta", "Alpha"]
    assert data.sample_names.tolist() == ["c1", "c2", "c3"]
    assert data.feature_names.tolist() == ["Noncoding", "mt-A"]
    np.testing.assert_array_equal(data.X, EXPRESSION[:, 1:3])


def test_paul15_from_h5(tmp_path):
    h5py = pytest.importorskip("h5py")
    counts = np.array([[1, 3, 0], [5, 5, 5], [2, 0, 0], [1, 1, 0]])
    with h5py.File(tmp_path / "paul15.h5", "w") as file:
        file["data.debatched"] = counts  # genes by cells
        file["data.debatched_rownames"] = np.array([b"Zfp;Old", b"Other", b"Actb", b"Actb;Twice"])
        file["data.debatched_colnames"] = np.array([b"W1", b"W2", b"W3"])
        file["cluster.id"] = np.array([[7.0], [1.0], [19.0]])
        file["info.genes_strings"] = np.array([b"Actb", b"Zfp", b"Corrupt"])
    data = datasets.paul15(tmp_path, normalize=False)
    assert data.labels.tolist() == ["7MEP", "1Ery", "19Lymph"]
    assert data.feature_names.tolist() == ["Actb", "Zfp"]
    assert data.sample_names.tolist() == ["W1", "W2", "W3"]
    assert data.X.tolist() == [[2, 1], [0, 3], [0, 0]]
    logged = datasets.paul15(tmp_path).X
    expected = np.log1p([[2e4 / 3, 1e4 / 3], [0, 1e4], [0, 0]])
    np.testing.assert_allclose(logged, expected, rtol=1e-6)


@pytest.mark.parametrize("corner", ["GENE\t", ""])
def test_hela_from_a_table_of_counts(tmp_path, corner):
    name = "GSM4224315_out_gene_exon_tagged.dge_exonssf002_WT.txt.gz"
    table = f"{corner}AAA\tCCC\tGGG\nCCNB1\t1\t0\t3\nONLY_C\t0\t9\t0\nTOP2A\t1\t2\t1\n"
    (tmp_path / name).write_bytes(gzip.compress(table.encode()))
    with pytest.raises(FileNotFoundError, match=r"hela_phases.csv.*write.csv"):
        datasets.hela_cell_cycle(tmp_path)
    phases = tmp_path / "hela_phases.csv"
    phases.write_text('"cell","phase"\n"GGG","G2.M"\n"AAA","G1.S"\n')
    data = datasets.hela_cell_cycle(tmp_path, normalize=False)
    assert data.X.tolist() == [[1, 1], [3, 1]]
    assert data.labels.tolist() == ["G1.S", "G2.M"]
    assert data.feature_names.tolist() == ["CCNB1", "TOP2A"]
    assert data.sample_names.tolist() == ["AAA", "GGG"]
    logged = datasets.hela_cell_cycle(tmp_path).X
    np.testing.assert_allclose(logged, np.log1p([[5000, 5000], [7500, 2500]]), rtol=1e-6)
    phases.write_text("cell,stage\nAAA,G1\n")
    with pytest.raises(ValueError, match=r"cell, phase.*\['cell', 'stage'\]"):
        datasets.hela_cell_cycle(tmp_path)
    phases.write_text("cell,phase\nTTT,G1\n")
    with pytest.raises(ValueError, match="cell"):
        datasets.hela_cell_cycle(tmp_path)


def test_ragged_tables_are_refused(tmp_path):
    name = "GSM4224315_out_gene_exon_tagged.dge_exonssf002_WT.txt"
    (tmp_path / name).write_text("GENE,A,B\nx,1,2\ny,1\n")
    (tmp_path / "hela_phases.csv").write_text("cell,phase\nA,G1\n")
    with pytest.raises(ValueError, match="header"):
        datasets.hela_cell_cycle(tmp_path)
