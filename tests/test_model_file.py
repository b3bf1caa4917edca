"""Model files: the same bits after loading, and a clear error for bad files."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import mercat
from mercat import Mercat
from mercat._detail.affinities import DECAY
from mercat._files.encoding import _upgraded
from mercat._files.model import VERSION, read_model, write_model
from mercat._files.schema import RULES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)) @ RNG.normal(size=(7, 7))
NEW = RNG.normal(size=(20, 7))
SETTINGS = {
    "exact": {},
    "landmarks": {"solver": "landmarks", "n_landmarks": 30},
    "absolute": {"objective": "absolute", "n_spectral": 3},
    "auto": {"n_spectral": "auto"},
    "raw": {"n_spectral": None},
    "detail": {"detail": 0.3, "solver": "landmarks", "n_landmarks": 30},
    "cosine": {"metric": "cosine", "n_spectral": 4},
    "correlation": {"metric": "correlation"},
    "algorithm1": {"solver": "algorithm1", "objective": "absolute", "max_iter": 5},
    "given": {"init": NEW[RNG.integers(0, 20, 60), :3]},
}


def distances(A, B):
    return np.linalg.norm(A[:, None] - B[None], axis=2)


def same(a, b):
    """Whether two values are equal in type, memory order and bits."""
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.flags.f_contiguous == b.flags.f_contiguous
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert set(a) == set(b)
        for name in a:
            same(a[name], b[name])
    elif isinstance(a, tuple):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    else:
        assert a == b or (a != a and b != b)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small model, its file, and the file's parts."""
    model = Mercat(random_state=3).fit(X)
    path = mercat.save(model, tmp_path_factory.mktemp("model") / "m.mercat")
    with zipfile.ZipFile(path) as archive:
        return model, path, {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.filterwarnings("ignore::mercat.TrustWarning")
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_loaded_model_equals_the_saved_model(setting, tmp_path):
    model = Mercat(random_state=0, **SETTINGS[setting]).fit(X)
    again = mercat.load(mercat.save(model, tmp_path / "m.mercat"))
    same(vars(model), vars(again))
    np.testing.assert_array_equal(model.transform(NEW), again.transform(NEW))
    np.testing.assert_array_equal(model.transform(NEW[:1]), again.transform(NEW[:1]))


def test_models_of_precomputed_sparse_and_named_data_are_restored(tmp_path):
    pandas = pytest.importorskip("pandas")
    D, D_new = distances(X, X), distances(NEW, X)
    model = Mercat(metric="precomputed", random_state=0).fit(D)
    again = mercat.load(mercat.save(model, tmp_path / "d.mercat"))
    np.testing.assert_array_equal(model.transform(D_new), again.transform(D_new))

    sparse = scipy.sparse.csr_array(np.where(X > 0, X, 0).astype(np.float32))
    model = Mercat(random_state=0).fit(sparse)
    again = mercat.load(mercat.save(model, tmp_path / "s.mercat"))
    np.testing.assert_array_equal(model.transform(sparse), again.transform(sparse))

    frame = pandas.DataFrame(X, columns=[f"ö{k}" for k in range(7)])
    model = Mercat(random_state=0).fit(frame)
    again = mercat.load(mercat.save(model, tmp_path / "f.mercat"))
    assert again.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(model.transform(frame), again.transform(frame))
    assert again.set_output(transform="pandas").transform(frame).shape == (60, 3)


def test_the_same_model_gives_the_same_bytes(saved, tmp_path):
    model, path, _ = saved
    again = mercat.save(mercat.load(path), tmp_path / "again.mercat")
    assert path.read_bytes() == again.read_bytes()
    assert mercat.save(model, tmp_path / "third").read_bytes() == path.read_bytes()
    refitted = Mercat(random_state=3, metric="cosine").fit(X[:, :5]).set_params(metric="euclidean")
    mercat.save(refitted.fit(X), tmp_path / "fourth")
    assert (tmp_path / "fourth").read_bytes() == path.read_bytes()


def test_numpy_reads_the_arrays(saved):
    model, path, _ = saved
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["state.embedding_"], model.embedding_)


def test_every_array_of_a_fit_has_a_rule():
    for kind, rules in RULES.items():
        if kind is not Mercat:
            assert set(rules) == set(kind._fields)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcdefg"))
    model = Mercat(random_state=0).fit(frame)
    assert set(vars(model)) - set(model.get_params()) == set(RULES[Mercat])


def test_notes_are_restored_and_prepared_data_are_reported(saved, tmp_path):
    model = saved[0]
    notes = {"prepared": "log1p", "features": ["a", "b"], "scale": np.arange(3.0), "rep": None}
    path = write_model(model, tmp_path / "m.mercat", notes)
    same(notes["scale"], read_model(path)[1]["scale"])
    assert read_model(path)[1]["features"] == ["a", "b"]
    with pytest.warns(UserWarning, match=r"\(log1p\)"):
        mercat.load(path)


def test_text_of_a_file_is_escaped(saved, tmp_path):
    """Warnings and errors may be printed on a terminal."""
    evil = "\x1b]0;hurt\x07\x1b[2J"
    path = write_model(saved[0], tmp_path / "m.mercat", {"prepared": evil})
    with pytest.warns(UserWarning, match=r"\(\\x1b\]0;hurt\\x07\\x1b\[2J\)"):
        mercat.load(path)
    parts = saved[2]
    newer = edited(parts, lambda header: header.update(version=99, mercat=evil))
    array = npy(np.zeros(3, dtype="<i2"))
    for each in (newer, parts | {f"{evil}.npy": array}, parts | {f"{evil}.npy": b"{evil}"}):
        message = refusal(write(path, each))
        assert "\\x1b]0;hurt" in message
        assert "\x1b" not in message


def test_models_that_cannot_be_saved_are_refused(tmp_path):
    path = tmp_path / "m.mercat"
    with pytest.raises(TypeError, match=r"^model .*dict"):
        mercat.save({}, path)
    with pytest.raises(ValueError, match="not fitted"):
        mercat.save(Mercat(), path)
    model = Mercat(random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"^callback "):
        mercat.save(model.set_params(callback=print), path)
    model.set_params(callback=None, random_state=np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"^random_state .*Generator"):
        mercat.save(model, path)
    model.set_params(random_state=None)
    model.embedding_ = {1, 2}
    with pytest.raises(TypeError, match=r"state\.embedding_ .*set"):
        mercat.save(model, path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("output", ["pandas", "polars", "default"])
def test_set_output_is_restored(output, tmp_path):
    pytest.importorskip("pandas" if output == "default" else output)
    model = Mercat(random_state=0).fit(X).set_output(transform=output)
    again = mercat.load(mercat.save(model, tmp_path / "m.mercat"))
    assert type(again.transform(NEW)) is type(model.transform(NEW))
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))
    again.set_output(transform="default")
    assert isinstance(again.transform(NEW), np.ndarray)


def test_attributes_that_no_fit_sets_are_refused_by_name(tmp_path):
    model = Mercat(random_state=0).fit(X)
    model.note = "mine"
    with pytest.raises(ValueError, match=r"'note'.*del model\.note"):
        mercat.save(model, tmp_path / "m.mercat")
    del model.note
    model.set_output(transform="cuneiform")
    with pytest.raises(ValueError, match=r"set_output.*got 'cuneiform'"):
        mercat.save(model, tmp_path / "m.mercat")
    assert list(tmp_path.iterdir()) == []


CHANGES = {
    "metric": lambda model: model.set_params(metric="cosine"),
    "distances": lambda model: model.set_params(metric="precomputed"),
    "n_landmarks": lambda model: model.set_params(n_landmarks=2),
    "tol": lambda model: model.set_params(tol="small"),
    "embedding_": lambda model: setattr(model, "embedding_", model.embedding_[:7]),
    "loss_": lambda model: setattr(model, "loss_", 1),
    "history_": lambda model: delattr(model, "history_"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_could_not_be_loaded_is_not_saved(change, tmp_path):
    model = Mercat(random_state=0).fit(X)
    CHANGES[change](model)
    with pytest.raises(ValueError, match="could not be loaded"):
        mercat.save(model, tmp_path / "m.mercat")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"detail": 0.5},
        {"n_jobs": 1},
        {"verbose": np.False_},
        {"max_iter": 7},
        {"n_spectral": 3},
        {"init": X[:9, :3].tolist()},
    ],
)
def test_compatible_parameters_may_be_changed_after_the_fit(change, tmp_path):
    model = Mercat(random_state=0).fit(X).set_params(**change)
    again = mercat.load(mercat.save(model, tmp_path / "m.mercat"))
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(model.transform(NEW), again.transform(NEW))


def test_subclasses_are_not_saved(tmp_path):
    class Mine(Mercat):
        def transform(self, X):
            return -super().transform(X)

    with pytest.raises(TypeError, match="got Mine"):
        mercat.save(Mine(random_state=0).fit(X), tmp_path / "m.mercat")


def test_names_with_lone_surrogates_are_restored(tmp_path):
    """As in names of files that are not UTF-8."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"caf\udce9 {k}" for k in range(7)])
    path = tmp_path / "caf\udce9.mercat"
    again = mercat.load(mercat.save(Mercat(random_state=0).fit(frame), path))
    assert again.feature_names_in_.tolist() == list(frame.columns)


# ------------------------------------------------------------------ bad files


def write(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def npy(array, **changes):
    """Bytes of an array in .npy format with changed header entries."""
    stream = io.BytesIO()
    entries = np.lib.format.header_data_from_array_1_0(array) | changes
    np.lib.format.write_array_header_1_0(stream, entries)
    return stream.getvalue() + array.tobytes()


def edited(parts, change):
    header = json.loads(parts["model.json"])
    change(header)
    return parts | {"model.json": json.dumps(header)}


def refusal(path):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        mercat.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_newer_model_raises_a_clear_error(saved, tmp_path):
    parts = edited(saved[2], lambda h: h.update(version=VERSION + 1, mercat="9.1"))
    message = refusal(write(tmp_path / "new.mercat", parts))
    assert f"written by mercat 9.1 in version {VERSION + 1} of the model format" in message
    assert "pip install --upgrade mercat" in message


def test_other_parameters_or_fields_are_named(saved, tmp_path):
    path = tmp_path / "m"
    parts = edited(saved[2], lambda h: h["parameters"]["dict"].pop("tol"))
    message = refusal(write(path, parts))
    assert "the parameters in the file differ" in message
    assert "missing ['tol']" in message
    parts = edited(saved[2], lambda h: h["parameters"]["dict"].update(warp=1))
    assert "unknown ['warp']" in refusal(write(path, parts))
    parts = edited(saved[2], lambda h: h["state"]["dict"].pop("embedding_"))
    assert "missing ['embedding_']" in refusal(write(path, parts))
    parts = edited(saved[2], lambda h: h["parameters"]["dict"].update(n_landmarks=1))
    assert "n_landmarks must be an integer of at least 4, got 1." in refusal(write(path, parts))


def test_files_of_other_kinds_are_refused(saved, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(b"")
    assert "not a valid model file" in refusal(path)
    path.write_bytes(pickle.dumps(saved[0].get_params()))
    assert "not a valid model file" in refusal(path)
    np.savez(tmp_path / "data.npz", X=X)
    assert "it has no model.json" in refusal(tmp_path / "data.npz")
    assert "not that of a model" in refusal(write(path, {"model.json": '{"format": "other"}'}))
    assert "not that of a model" in refusal(write(path, {"model.json": "[]"}))
    assert refusal(write(path, {"model.json": "["}))
    assert refusal(write(path, {"model.json": "[" * 100_000}))
    with pytest.raises(FileNotFoundError):
        mercat.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"], ids=["null", "surrogate"])
def test_invalid_file_names_are_escaped(name, tmp_path):
    with pytest.raises(ValueError, match="cannot be read: a file cannot have this name") as caught:
        mercat.load(f"{tmp_path}/{name}")
    assert str(caught.value).isprintable()


def test_bombs_are_refused_before_decompression(saved, tmp_path):
    path, parts, name = tmp_path / "m", saved[2], "state.embedding_.npy"
    zeros = parts | {name: npy(np.zeros((10**6, 3)))}
    assert "compressed parts" in refusal(write(path, zeros, zipfile.ZIP_DEFLATED))
    huge = npy(np.zeros((60, 3)), shape=(10**12, 3))
    assert "claims the shape (1000000000000, 3)" in refusal(write(path, parts | {name: huge}))
    assert "claims the shape" in refusal(
        write(path, parts | {name: npy(np.zeros(4), shape=(-2, -2))})
    )
    many = parts | {f"{k}.npy": b"" for k in range(1001)}
    assert "at most 1000 parts" in refusal(write(path, many))


@pytest.mark.parametrize(
    ("part", "array", "reason"),
    [
        ("embedding_", np.ones((60, 2)), "must be 3"),
        ("embedding_", np.ones((60, 3)), "rows of length 1"),
        ("embedding_", np.full((60, 3), np.nan), "must be finite"),
        ("embedding_", np.ones((60, 3), dtype=int), "kind 'f'"),
        ("point_loss_", np.ones(59), "must be 60"),
        ("landmarks_", np.full(60, 60), "rows of the 60 points"),
        ("landmarks_", np.full(60, -1), "rows of the 60 points"),
        ("landmarks_", np.arange(5), "rows of the 60 points"),
        ("_rotation", np.zeros((3, 3)), "rows of length 1"),
        ("mean_", np.ones(8), "must be 7"),
        ("explained_variance_", np.ones(6), "must have 7 values, got 6"),
        ("history_", np.ones(2), "must have n_iter_ entries"),
        ("_placer.against.X", np.ones((60, 3), np.float32), "must be"),
        ("_placer.against.Y", np.ones((60, 3), np.float32), "rows of length 1"),
        ("_placer.against.sigma12", np.ones(4, np.float32), "must be"),
        ("_placer.against.candidates", np.ones((512, 3), np.float32), "rows of length 1"),
        ("_placer.against.P", np.ones((2, 60, 4), np.float32), "must be"),
    ],
)
def test_arrays_that_do_not_fit_are_named(saved, tmp_path, part, array, reason):
    parts = saved[2] | {f"state.{part}.npy": npy(array)}
    message = refusal(write(tmp_path / "m", parts))
    assert part.split(".")[-1] in message
    assert reason in message


@pytest.mark.parametrize("part", ["against.Y", "against.anchors.Y"])
def test_positions_of_a_map_with_detail_are_checked_too(tmp_path, part):
    blobs = X + 9 * np.eye(7)[np.arange(60) % 3]
    path = mercat.save(Mercat(random_state=0, detail=0.3).fit(blobs), tmp_path / "m.mercat")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = f"state._placer.{part}.npy"
    array = np.load(io.BytesIO(parts[name]))
    message = refusal(write(path, parts | {name: npy(2 * array)}))
    assert f"_placer.{part} must have rows of length 1" in message


def test_a_missing_array_is_named(saved, tmp_path):
    parts = {k: v for k, v in saved[2].items() if k != "state.embedding_.npy"}
    message = refusal(write(tmp_path / "m", parts))
    assert "its array 'state.embedding_.npy' is absent" in message


def test_object_arrays_and_odd_types_are_refused(saved, tmp_path):
    stream = io.BytesIO()
    np.save(stream, np.array([print], dtype=object), allow_pickle=True)
    path = write(tmp_path / "m", saved[2] | {"state.history_.npy": stream.getvalue()})
    assert "pickled objects are not loaded" in refusal(path)
    path = write(tmp_path / "m", saved[2] | {"state.history_.npy": npy(np.ones(3, "<c16"))})
    assert "must hold one of the types" in refusal(path)


def test_values_of_the_wrong_kind_are_refused(saved, tmp_path):
    def state(**values):
        return edited(saved[2], lambda h: h["state"]["dict"].update(values))

    for values in (
        {"n_features_in_": 8},
        {"n_features_in_": True},
        {"loss_": "low"},
        {"status_": {"status": "__class__"}},
        {"calibration_": {"tuple": [1.0]}},
        {"_placer": None},
        {"_placer": {"Landmarks": {}}},
        {"history_": {"array": "elsewhere.npy"}},
        {"history_": {"os.system": ["true"]}},
        {"history_": {}},
    ):
        assert refusal(write(tmp_path / "m", state(**values)))
    parts = edited(saved[2], lambda h: h["parameters"]["dict"].update(metric="cosine"))
    assert "two metrics" in refusal(write(tmp_path / "m", parts))
    parts = edited(saved[2], lambda h: h["parameters"]["dict"].update(metric="precomputed"))
    assert "does not match" in refusal(write(tmp_path / "m", parts))


def test_a_damaged_file_raises_valueerror_and_nothing_else(saved, tmp_path):
    content = saved[1].read_bytes()
    path, rng = tmp_path / "m", np.random.default_rng(1)
    for cut in rng.integers(0, len(content), 30):
        path.write_bytes(content[:cut])
        refusal(path)
    # The header and the directory at the end, where damage has the most varied effects.
    places = np.concatenate([rng.integers(0, 3000, 100), len(content) - rng.integers(1, 3000, 100)])
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            loaded = mercat.load(path)
        except ValueError:
            continue
        same(vars(loaded), vars(saved[0]))  # a bit without effect, such as of a date


def test_an_interrupted_save_leaves_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "m.mercat"
    path.write_text("old")

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", interrupt)
    with pytest.raises(KeyboardInterrupt):
        mercat.save(saved[0], path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["plain", "landmarks", "detail", "precomputed"])
def test_model_files_of_version_0_1_are_loaded(kind):
    folder = Path(__file__).parent / "models"  # written by mercat 0.1.0, with what it computed
    with np.load(folder / "expected.npz") as expected:
        model = mercat.load(folder / f"{kind}.mercat")
        np.testing.assert_array_equal(model.embedding_, expected[kind])
        new = expected["new"]
        if kind == "precomputed":
            new = np.linalg.norm(new[:, None] - expected["X"][None], axis=2)
        # New points end within a fraction of a step of their minimum; rounding can move them as far.
        np.testing.assert_allclose(model.transform(new), expected[f"{kind}_new"], atol=5e-4)


def forget_ranks(model: Mercat) -> None:
    """Place new points by distances only, as models of mercat 0.1 do."""
    against = model._placer.against
    terms = tuple(term._replace(scale=None) for term in against.terms)
    model._placer = model._placer._replace(against=against._replace(terms=terms))


def test_ranks_are_restored_and_files_without_ranks_use_distances(tmp_path):
    points = np.random.default_rng(0).normal(size=(150, 6)) * np.linspace(3, 0.2, 6)
    new = points[:20] + 0.3
    model = Mercat(random_state=0).fit(points)
    path = mercat.save(model, tmp_path / "m.mercat")
    (term,), (again,) = (m._placer.against.terms for m in (model, mercat.load(path)))
    np.testing.assert_array_equal(again.scale.quantiles, term.scale.quantiles)
    assert again.scale.deviation == term.scale.deviation
    np.testing.assert_array_equal(mercat.load(path).transform(new), model.transform(new))
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}

    def entry_of(header):
        fields = header["state"]["dict"]["_placer"]["Placer"]["against"]["Landmarks"]
        return fields["terms"]["tuple"][0]["PlacedTerm"]

    def falling(header):
        entry_of(header)["scale"]["HalfRanks"]["deviation"] = -1.0

    with pytest.raises(ValueError, match="must increase"):
        mercat.load(write(tmp_path / "odd", edited(parts, falling)))
    old = mercat.load(
        write(tmp_path / "old", edited(parts, lambda header: entry_of(header).pop("scale")))
    )
    before = model.transform(new)
    forget_ranks(model)
    np.testing.assert_array_equal(old.transform(new), model.transform(new))
    assert np.abs(old.transform(new) - before).max() > 1e-4


@pytest.mark.parametrize("how", [{}, {"detail": 0.3}])
def test_files_with_only_the_distance_term_are_loaded(how, tmp_path):
    """The placers had a field `distances` before they had `terms`."""
    points = np.random.default_rng(0).normal(size=(150, 6)) + 9 * np.eye(6)[np.arange(150) % 3]
    model = Mercat(random_state=0, **how).fit(points)
    if not how:
        forget_ranks(model)
    path = mercat.save(model, tmp_path / "m.mercat")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}

    def before(header):
        fields = header["state"]["dict"]["_placer"]["Placer"]["against"]
        (fields,) = fields.values()
        ((_, entry),) = fields.pop("terms")["tuple"][0].items()
        line = entry["term"]["DistanceTerm"]
        fields["distances"] = {"DistanceLine": line}
        if not how:
            weight = entry["weight"] / line.pop("variance")
            fields["distances"] = {"PlacedDistances": line | {"weight": weight}}

    again = mercat.load(write(tmp_path / "old", edited(parts, before)))
    np.testing.assert_array_equal(
        again.transform(points[:20] + 0.1), model.transform(points[:20] + 0.1)
    )


@pytest.mark.parametrize(("perplexity", "decay"), [(0.0, 0.0), (5.0, DECAY)])
def test_shares_of_models_by_perplexity(perplexity, decay):
    """Equal shares stay equal; others are converted to the current form."""
    fields = _upgraded("Surroundings", {"k": 30, "perplexity": perplexity})
    assert fields == {"k": 30, "decay": decay}
