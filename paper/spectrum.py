"""Singular values and effective ranks of the matrices of cosines, on 500 points of Paul15.

At each point i, Theta_i holds the cosines of the angles at i between all pairs of other points. Its
effective rank (Roy and Vetterli 2007) is the exponential of the entropy of its normalized singular values.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import data, methods
from benchmarks.harness.record import stamp

from .experiment import SCALINGS, store
from .numbers import Records, shown

TABLE = "spectrum"
PAPER_RANK = 13.8  # the paper's mean effective rank, the only number in its text
N_POINTS = 500
N_SHOWN = 50
QUANTILES = (0, 0.05, 0.5, 0.95, 1)


def singular_values(X: np.ndarray) -> np.ndarray:
    """Singular values of Theta_i that may be nonzero, in descending order, for each row i of X.

    Theta_i = A A^T with the unit directions from i to the others as rows of A: its singular values
    are also those of A^T A, which is smaller if X has few columns.
    """
    values = []
    for i in range(len(X)):
        A = np.delete(X, i, axis=0) - X[i]
        A /= np.maximum(np.linalg.norm(A, axis=1, keepdims=True), np.finfo(float).tiny)
        gram = A.T @ A if A.shape[1] < len(A) else A @ A.T
        values.append(np.linalg.eigvalsh(gram)[::-1])
    return np.maximum(values, 0)


def effective_rank(values: np.ndarray) -> np.ndarray:
    share = values / values.sum(axis=1, keepdims=True)
    return np.exp(-np.sum(share * np.log(np.where(share > 0, share, 1)), axis=1))


def variants(X: np.ndarray) -> dict[str, np.ndarray]:
    """Variants of the data in which the paper may have computed angles."""
    return {
        "50 components": methods.principal_components(X, 50),
        "all genes": X,
        "50 components of 1000 variable genes, standardized": (
            methods.principal_components(SCALINGS["1000 most variable, standardized"](X), 50)
        ),
    }


def main(folder: str | None) -> None:
    results = store(TABLE)
    if "paul15" in results:
        return
    try:
        X, _, note = data.load("paul15", folder)
    except FileNotFoundError as error:
        results.put("paul15", stamp(status="no data", reason=str(error)))
        return
    rows = np.sort(np.random.default_rng(1).choice(len(X), N_POINTS, replace=False))
    found = {}
    for name, V in variants(X).items():
        values = singular_values(V[rows].astype(np.float64))
        ranks = effective_rank(values)
        quantiles = np.quantile(values[:, :N_SHOWN], QUANTILES, axis=0)
        found[name] = {
            "mean_effective_rank": float(ranks.mean()),
            "effective_ranks": np.round(ranks, 3).tolist(),
            "singular_values": np.round(quantiles, 4).tolist(),
        }
    results.put(
        "paul15", stamp(status="ok", seed=1, note=note, quantiles=QUANTILES, variants=found)
    )


# ------------------------------------------------------------------ what the report says


def section(records: Records) -> str:
    record = records.get("paul15")
    if record is None:
        return ""
    if record["status"] != "ok":
        return f"## Rank of the matrices of angles\n\nNot run: {record['reason']}\n"
    ranks = ", ".join(
        f"{shown(found['mean_effective_rank'], 1)} ({name})"
        for name, found in record["variants"].items()
    )
    return (
        f"## Rank of the matrices of angles\n\nAt each of {N_POINTS} random points of Paul15, the matrix of "
        "the cosines of all angles has a low effective rank. Therefore, the angles with a few other points "
        f"are enough to estimate the loss. The mean effective rank is {ranks}; the paper has {PAPER_RANK}. "
        "It depends on how the data are preprocessed, which the paper does not say.\n"
    )
