"""Simulations of the paper's theory: its two theorems and its subsampling.

Both theorems speak of the spiked model X = U Y^T + Z (`mercat.datasets.spiked`), of the angles
between rows of U, and of three estimators of them: from the leading left singular vectors of X
(the theorem's), from its principal components (which Algorithm 1 uses: the singular vectors times
their singular values), and from X itself (the naive one).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from benchmarks.harness import data, methods
from benchmarks.harness.record import stamp
from mercat import datasets
from mercat._algorithm1 import batch_loss, draw_legs
from mercat._backend import Workers
from mercat._initial import pca_positions

from .experiment import store

TABLE = "theory"
N, D = 500, 1000
STRENGTHS = [1.5, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096]
PROFILES = {"equal strengths": [1.0, 1.0, 1.0], "strengths 16 : 4 : 1": [16.0, 4.0, 1.0]}
SIZES = [125, 250, 500, 1000, 2000]
LEGS = [4, 8, 16, 32, 64, 128, 256]
REPEATS = 3
MANY = 10  # where a draw is cheap and noisy


def limit(sigma: np.ndarray, phi: float) -> np.ndarray:
    """1 - f(sigma): how much of u u^T the estimate loses, by Theorem 1."""
    root = np.sqrt(phi)
    return (1 + root * sigma) / (sigma * (sigma + root))


def estimates(X: np.ndarray, r: int) -> dict[str, np.ndarray]:
    """Points whose angles estimate those of U."""
    n = len(X)
    squares, vectors = scipy.linalg.eigh(X @ X.T, subset_by_index=(n - r, n - 1))
    return {"singular vectors": vectors, "components": vectors * np.sqrt(squares), "naive": X}


def angles(V: np.ndarray, triples: np.ndarray) -> np.ndarray:
    i, j, k = triples
    a, b = V[j] - V[i], V[k] - V[i]
    cosines = np.sum(a * b, axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return np.arccos(np.clip(cosines, -1, 1))


def strength() -> dict[str, object]:
    """Mean error of the angles against the strength of the signal."""
    rows = []
    for profile, shape in PROFILES.items():
        for s in STRENGTHS:
            for repeat in range(REPEATS):
                X, U, _ = datasets.spiked(N, D, s * np.array(shape), random_state=repeat)
                rng = np.random.default_rng(repeat)
                triples = rng.permuted(np.tile(np.arange(N), (4000, 1)), axis=1)[:, :3].T
                truth = angles(U, triples)
                for name, V in estimates(X, len(shape)).items():
                    error = float(np.mean(np.abs(angles(V, triples) - truth)))
                    rows.append([profile, s, repeat, name, round(error, 6)])
    return {"n": N, "d": D, "columns": ["profile", "strength", "seed", "of", "error"], "rows": rows}


def convergence() -> dict[str, object]:
    """What is lost of u u^T against the limit, over strengths and over sizes."""
    rows = []
    cases = [(N, s) for s in STRENGTHS if s <= 64] + [(n, 4.0) for n in SIZES]
    for n, s in dict.fromkeys(cases):
        for repeat in range(MANY):
            X, U, sigma = datasets.spiked(n, 2 * n, [s], random_state=repeat)
            vectors = estimates(X, 1)["singular vectors"]
            lost = 1 - float((vectors.T @ U)[0, 0] ** 2)
            predicted = float(limit(sigma, 0.5)[0])
            rows.append([n, s, repeat, round(lost, 7), round(predicted, 7)])
    return {"columns": ["n", "strength", "seed", "lost", "predicted"], "rows": rows}


def subsampling(folder: str | None) -> dict[str, object]:
    """Error of loss and gradient at the start, against the number of legs an apex."""
    rows, missing = [], {}
    for name in ("gauss10", "paul15"):
        try:
            X = data.load(name, folder).X
        except FileNotFoundError as error:
            missing[name] = str(error)
            continue
        chosen = np.random.default_rng(1).permutation(len(X))[:1000]
        X = methods.principal_components(X, 50)[chosen].astype(np.float64)
        Y, apices = pca_positions(X), np.arange(len(X))
        rng = np.random.default_rng(1)
        with Workers(1) as workers:
            legs = draw_legs(apices, len(X), len(X), rng)
            loss, gradient = batch_loss(X, Y, apices, legs, workers)
            for m in LEGS:
                for repeat in range(MANY):
                    legs = draw_legs(apices, len(X), m, rng)
                    part, slope = batch_loss(X, Y, apices, legs, workers)
                    error = np.linalg.norm(slope - gradient) / np.linalg.norm(gradient)
                    off = abs(part / loss - 1)
                    rows.append([name, m, repeat, round(off, 7), round(float(error), 6)])
    columns = ["set", "legs", "seed", "loss_error", "gradient_error"]
    return {"columns": columns, "rows": rows, "missing": missing}


def main(folder: str | None) -> None:
    results = store(TABLE)
    parts = {
        "strength": strength,
        "convergence": convergence,
        "subsampling": lambda: subsampling(folder),
    }
    for name, part in parts.items():
        if name not in results:
            results.put(name, stamp(status="ok", **part()))
