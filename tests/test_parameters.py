"""Declarations of parameters match the signature, docstring and errors of `Mercat`."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from mercat import Mercat
from mercat._parameters import DEFAULTS, PARAMETERS
from mercat._validation import check_parameters, require_supported

X = np.random.default_rng(0).normal(size=(20, 4))


def test_the_signature_has_the_declared_defaults_in_order():
    signature = inspect.signature(Mercat).parameters
    assert [(name, p.default) for name, p in signature.items()] == list(DEFAULTS.items())


def test_the_docstring_has_the_declared_defaults_in_order():
    section = Mercat.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
    found = re.findall(r"^    (\w+) : .*default=(\S+)$", section, flags=re.MULTILINE)
    written = [(name, str(value).replace("'", '"')) for name, value in DEFAULTS.items()]
    shown = [(name, value.strip('"')) for name, value in found]
    assert [n for n, _ in shown] == list(DEFAULTS)
    for (name, value), (_, default) in zip(shown, written, strict=True):
        same = float(value) == float(default) if name == "tol" else value == default
        assert same, f"{name}: the docstring of Mercat says default={value}, declared is {default}"


@pytest.mark.parametrize("name", PARAMETERS)
def test_defaults_are_allowed_and_help_is_one_sentence(name):
    declared = PARAMETERS[name]
    declared.check(name, declared.default)
    assert declared.rule
    assert declared.help.endswith(".")
    assert "\n" not in declared.help


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("objective", "angles"),
        ("metric", "minkowski"),
        ("solver", 3),
        ("detail", -0.1),
        ("detail", np.nan),
        ("detail", 2e6),
        ("neighbors", 0),
        ("neighbors", 2.5),
        ("n_spectral", 0),
        ("n_spectral", 2.5),
        ("n_spectral", "many"),
        ("n_landmarks", 3),
        ("n_landmarks", None),
        ("n_landmarks", True),
        ("max_iter", 0),
        ("tol", -1.0),
        ("tol", 1),
        ("tol", "small"),
        ("init", "random"),
        ("n_jobs", 0),
        ("n_jobs", "2"),
        ("random_state", -1),
        ("random_state", "x"),
        ("callback", "stop"),
    ],
)
def test_bad_values_are_named_with_their_parameter_and_its_rule(name, value):
    with pytest.raises(ValueError, match=f"^{name} ") as error:
        Mercat(**{name: value}).fit(X)
    assert str(error.value) == f"{name} must be {PARAMETERS[name].rule}, got {value!r}."


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("metric", "cosin", "cosine"),
        ("metric", "Euclidean", "euclidean"),
        ("metric", "cityblock", "manhattan"),
        ("metric", "l1", "manhattan"),
        ("metric", "l2", "euclidean"),
        ("solver", "landmark", "landmarks"),
        ("init", "PCA", "pca"),
    ],
)
def test_misspelt_values_and_names_of_other_libraries_are_recognised(name, value, meant):
    with pytest.raises(ValueError, match=rf"got {value!r}\. Did you mean {meant!r}\?$"):
        Mercat(**{name: value}).fit(X)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("detail", 0),
        ("detail", np.float32(0.5)),
        ("neighbors", sp.eye_array(3)),
        ("n_spectral", "auto"),
        ("n_spectral", None),
        ("n_landmarks", np.int64(4)),
        ("tol", 0),
        ("n_jobs", -2),
        ("n_jobs", None),
        ("init", np.eye(3)),
        ("callback", print),
    ],
)
def test_good_values_are_allowed(name, value):
    check_parameters(Mercat(**{name: value}))


@pytest.mark.parametrize(
    ("other", "named"),
    [({}, "objective"), ({"objective": "absolute", "detail": 0.1}, "detail")],
)
def test_algorithm1_requires_the_objective_of_the_paper_and_no_detail(other, named):
    with pytest.raises(ValueError, match=f"^solver='algorithm1'.*got {named}="):
        Mercat(solver="algorithm1", **other).fit(X)


# ------------------------------------------------------------------ what runs where

MEMORY = SimpleNamespace(lazy=False, device=None, sparse=False)
SPARSE = SimpleNamespace(lazy=False, device=None, sparse=True)
DEVICE = SimpleNamespace(lazy=False, device="cuda:0", sparse=False)
MPS = SimpleNamespace(lazy=False, device="mps:0", sparse=False)
DASK = SimpleNamespace(lazy=True, device=None, sparse=False)
ALGORITHM1 = {"solver": "algorithm1", "objective": "absolute"}


@pytest.mark.parametrize("fitting", [True, False])
@pytest.mark.parametrize(
    ("parameters", "source", "named"),
    [
        ({"detail": 0.3}, MPS, "detail"),
        ({"metric": "precomputed"}, DEVICE, "metric"),
        ({"metric": "precomputed"}, DASK, "metric"),
        ({"metric": "precomputed"}, SPARSE, "metric"),
        ({"device": "cuda"}, DASK, "device"),
    ],
)
def test_unsupported_combinations_are_refused(parameters, source, named, fitting):
    with pytest.raises((ValueError, TypeError), match=f"^{named}"):
        require_supported(Mercat(**parameters), source, fitting=fitting)


@pytest.mark.parametrize("source", [MEMORY, SPARSE, DEVICE, DASK])
def test_detail_runs_in_memory_on_a_device_and_on_dask(source):
    require_supported(Mercat(detail=0.3), source, fitting=True)
    require_supported(Mercat(detail=0.3), source, fitting=False)


def test_algorithm1_runs_in_memory_and_its_maps_anywhere():
    model = Mercat(**ALGORITHM1)
    with pytest.raises(ValueError, match=r"^solver"):
        require_supported(model, DEVICE, fitting=True)
    require_supported(model, DEVICE, fitting=False)
    require_supported(model, DASK, fitting=True)


@pytest.mark.parametrize("parameters", [{}, {"detail": 0.3}, {"metric": "precomputed"}, ALGORITHM1])
def test_everything_runs_in_memory(parameters):
    require_supported(Mercat(**parameters), MEMORY, fitting=True)


@pytest.mark.parametrize("init", [sp.eye_array(20, 3), "pca of mine", [["a"] * 3] * 20])
def test_init_that_is_no_array_of_numbers_is_named(init):
    with pytest.raises(ValueError, match=r"^init "):
        Mercat(init=init).fit(np.random.default_rng(0).normal(size=(20, 4)))
