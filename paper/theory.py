"""Simulations of the paper's theory: its two theorems and its subsampling.

Both theorems are about the spiked model X = U Y^T + Z (`mercat.datasets.spiked`), the angles between rows
of U, and three estimators of them: from the leading left singular vectors of X (the theorem's), from its
principal components (Algorithm 1: singular vectors times singular values), and from X itself (naive).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from benchmarks.harness import data, methods
from benchmarks.harness.record import stamp
from benchmarks.scale import exponent
from mercat import datasets
from mercat._data.threads import Workers
from mercat._math.definition import triple_cosines
from mercat._solve.algorithm1 import N_LEGS, batch_loss, draw_legs
from mercat._solve.initial import pca_positions

from .experiment import store
from .numbers import Records, shown

TABLE = "theory"
N, D = 500, 1000
STRENGTHS = [1.5, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096]
PROFILES = {"equal strengths": [1.0, 1.0, 1.0], "strengths 16 : 4 : 1": [16.0, 4.0, 1.0]}
SIZES = [125, 250, 500, 1000, 2000]
LEGS = [4, 8, 16, 32, 64, 128, 256]
REPEATS = 3
MANY = 10  # small, noisy draws


def limit(sigma: np.ndarray, phi: float) -> np.ndarray:
    """1 - f(sigma): the fraction of u u^T that the estimate loses, by Theorem 1."""
    root = np.sqrt(phi)
    return (1 + root * sigma) / (sigma * (sigma + root))


def estimates(X: np.ndarray, r: int) -> dict[str, np.ndarray]:
    """Points whose angles estimate those of U."""
    n = len(X)
    squares, vectors = scipy.linalg.eigh(X @ X.T, subset_by_index=(n - r, n - 1))
    return {"singular vectors": vectors, "components": vectors * np.sqrt(squares), "naive": X}


def angles(V: np.ndarray, triples: np.ndarray) -> np.ndarray:
    return np.arccos(np.clip(triple_cosines(V, triples), -1, 1))


def strength(folder: str | None) -> dict[str, object]:
    """Simulate the mean error of the angles by strength of the signal."""
    rows = []
    for profile, shape in PROFILES.items():
        for s in STRENGTHS:
            for repeat in range(REPEATS):
                X, U, _ = datasets.spiked(N, D, s * np.array(shape), random_state=repeat)
                rng = np.random.default_rng(repeat)
                triples = rng.permuted(np.tile(np.arange(N), (4000, 1)), axis=1)[:, :3]
                truth = angles(U, triples)
                for name, V in estimates(X, len(shape)).items():
                    error = float(np.mean(np.abs(angles(V, triples) - truth)))
                    rows.append([profile, s, repeat, name, round(error, 6)])
    return {"n": N, "d": D, "columns": ["profile", "strength", "seed", "of", "error"], "rows": rows}


def convergence(folder: str | None) -> dict[str, object]:
    """Simulate the loss of u u^T and its limit, by strength and size."""
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
    """Simulate the error of loss and gradient at the start by number of legs per apex."""
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


PARTS = {"strength": strength, "convergence": convergence, "subsampling": subsampling}


def main(folder: str | None) -> None:
    results = store(TABLE)
    for name, part in PARTS.items():
        if name not in results:
            results.put(name, stamp(status="ok", **part(folder)))


# ------------------------------------------------------------------ what the report says


def section(records: Records) -> str:
    if not set(PARTS) <= set(records):
        return ""
    return (
        "## Theory\n\n"
        + _theorem1(records["convergence"]["rows"], records["strength"]["rows"])
        + _theorem2(records["strength"]["rows"])
        + _subsampling(records["subsampling"]["rows"])
    )


def means(rows: Any, by: int, of: int) -> dict[float, float]:
    """The mean of column `of` for each value of column `by`, in order."""
    groups: dict[float, list[float]] = {}
    for row in rows:
        groups.setdefault(row[by], []).append(row[of])
    return {key: float(np.mean(groups[key])) for key in sorted(groups)}


def errors(rows: Any, profile: str, estimator: str) -> dict[float, float]:
    """Mean error of the angles by the strength of the signal."""
    return means([row for row in rows if (row[0], row[3]) == (profile, estimator)], 1, 4)


def _theorem1(rows: Any, strength: Any) -> str:
    strong = [row for row in rows if row[0] == N and row[1] >= 3]
    ratio = np.array([row[3] / row[4] for row in strong])
    equal, _ = PROFILES
    by_strength = errors(strength, equal, "singular vectors")
    slope = exponent({s: error for s, error in by_strength.items() if s >= 4})
    at_four = [[n, abs(lost - predicted)] for n, s, _, lost, predicted in rows if s == 4]
    off = means(at_four, 0, 1)
    return (
        f"**Theorem 1** (spiked model, {N} points in {D} dimensions). The part of the signal that the "
        "estimate misses agrees with the predicted limit: the ratio of simulation and prediction is "
        f"{shown(ratio.mean())} ± {shown(ratio.std())} for signal strengths of at least 3. At strength 4, "
        f"the deviation from the limit decreases from {shown(off[min(off)], 3)} at n = {min(off)} to "
        f"{shown(off[max(off)], 3)} at n = {max(off)}, in proportion to n to the power "
        f"{shown(exponent(off))} (-.5 in the theorem). The mean error of angles is proportional to the "
        f"strength to the power {shown(slope)}.\n\n"
    )


def _theorem2(rows: Any) -> str:
    equal, unequal = PROFILES
    last = max(STRENGTHS)
    at = {w: errors(rows, unequal, w)[last] for w in ("singular vectors", "components", "naive")}
    same = {w: errors(rows, equal, w)[last] for w in ("components", "naive")}
    return (
        f"**Theorem 2.** With {unequal}, the naive estimator is biased for any strength of the signal: at "
        f"strength {last}, its mean error is {shown(at['naive'])} rad, and that of the singular vectors "
        f"{shown(at['singular vectors'], 3)} rad. The bias in the proof comes from the unequal strengths, so "
        f"principal components, which Algorithm 1 uses, are biased, too ({shown(at['components'])} rad): "
        "they estimate the angles of the signal in the data, in which factors are weighted by their "
        "strengths, not the angles of the orthonormal factors. With equal strengths, their error is small "
        f"({shown(same['components'], 3)} rad; naive estimator: {shown(same['naive'], 3)} rad).\n\n"
    )


def _subsampling(rows: Any) -> str:
    parts = []
    for name in dict.fromkeys(row[0] for row in rows):
        of_set = [row for row in rows if row[0] == name]
        loss, gradient = means(of_set, 1, 3), means(of_set, 1, 4)
        parts.append(
            f"{100 * loss[N_LEGS]:.1f} % and {100 * gradient[N_LEGS]:.0f} % on {data.SETS[name].title} (the "
            "error of the gradient is proportional to the number of legs to the power "
            f"{shown(exponent(gradient))})"
        )
    return (
        f"**Subsampling.** With {N_LEGS} legs per apex, as in the paper, the mean relative errors of the "
        f"loss and of its gradient at the start are {'; '.join(parts)}. A few angles thus determine the "
        "loss, but not the gradient. Algorithm 1 needs a thousand iterations because Adam has to average "
        "many inaccurate gradients; the solver with the exact gradient needs far fewer.\n"
    )
