"""Each Triton kernel against its definition in torch, by Triton's interpreter; see test_torch_detail."""

from __future__ import annotations

import inspect

import numpy as np
import torch

from mercat import Mercat
from mercat._data.threads import Workers
from mercat._data.torch_source import upload_all
from mercat._detail.affinities import edge_lengths, longest_steps
from mercat._detail.descent import Forces, _moved, attraction
from mercat._detail.graphs import Graph, graph_of, with_its_transpose
from mercat._detail.repulsion import Kernel
from mercat._detail.terms import AngleTerm, PairForces, anchors_at, pairs_of
from mercat._kernels import _triton, device
from mercat._math.angles import Calibration
from mercat._math.distances import DistanceTerm, half_ranks
from mercat._math.sphere import normalize
from mercat._solve.energy import energy_of
from mercat._solve.placement import placed_moments


def compare(name, function, tolerance=1e-5):
    """Compare kernels with torch, relative to the largest number."""
    with_kernels = function()
    device._wanted = False
    expected = function()
    device._wanted = True
    for found, true in zip(with_kernels, expected, strict=True):
        found, true = torch.as_tensor(found), torch.as_tensor(true)
        apart = float((found - true).abs().max() / true.abs().max())
        assert apart < tolerance, (name, apart)


def what_is_compiled_ahead_is_what_is_called() -> None:
    for name, variants in {**device._PLACING, **device._DESCENT}.items():
        parameters = inspect.signature(getattr(_triton, name).fn).parameters.values()
        sizes = {p.name for p in parameters if p.annotation is not inspect.Parameter.empty}
        for signature, given in variants:
            assert len(signature) == len(parameters) - len(sizes), name
            assert given.keys() - {"num_warps"} == sizes, name


def main() -> None:
    what_is_compiled_ahead_is_what_is_called()
    rng = np.random.default_rng(0)
    n = 333
    X = torch.as_tensor(rng.normal(size=(n, 13)).astype(np.float32))
    X[3] = X[10]
    Y = torch.as_tensor(normalize(rng.normal(size=(n, 3))).astype(np.float32))
    assert device.supports(X)
    rows = np.arange(0, 330, 10)
    anchors = anchors_at(X[rows], Y[rows], 1e-4)
    pairs = pairs_of(X, anchors)
    angles, distances = (
        AngleTerm(Calibration(0.3, 0.7), 0.05),
        PairForces(DistanceTerm(0.5, 1.2, 0.3), 1.0),
    )
    scale = half_ranks(X)
    compare("half_ranks", lambda: [scale.inverse(pairs.inverse_distance)])
    compare("inverse_distances", lambda: [pairs_of(X, anchors).inverse_distance])
    compare("angle_force", lambda: angles.force(pairs, Y, anchors))
    compare("arc_residuals", lambda: distances.force(pairs, Y, anchors), 1e-4)
    graph = graph_of(torch.as_tensor(rng.integers(0, n, size=(n, 9))))
    graph = with_its_transpose(Graph(graph.indices, graph.indptr, torch.rand(9 * n)))
    velocity, pull, push, far = (0.01 * torch.randn(n, 3) for _ in range(4))
    curvatures = torch.rand(n, 1) + 0.5, torch.rand(n, 1)
    forces = Forces(
        pull, push, far, *curvatures, (0.3, torch.tensor(2.0, dtype=torch.float64), 0.1)
    )
    with Workers(1) as workers:
        compare("attraction", lambda: [attraction(graph, Y, 0.1, workers)])
        for r, edges in ((3, graph), (70, graph_of(torch.randint(n, (n, 40))))):
            points = torch.as_tensor(rng.normal(size=(n, r)), dtype=torch.float32)
            lengths = edge_lengths(points, edges, workers)
            compare("paths", lambda a=(points, edges, lengths): [longest_steps(*a, workers)])
        compare("move", lambda: _moved(Y, velocity, forces, 0.5, 0.05, workers))

        def field():
            found = Kernel(0.1, workers, Y).field(Y)
            return found.values, *found.at(Y)

        compare("spread and read_field", field)
    data = rng.normal(size=(300, 12)) + 3 * rng.normal(size=(5, 12))[rng.integers(5, size=300)]
    model = Mercat(n_landmarks=120, random_state=0, solver="landmarks").fit(data)
    X_hat = torch.as_tensor(model._placer.block(data[:25] + 0.01)[0])
    Y = Y[: len(X_hat)]
    landmarks = upload_all(model._placer.against, torch.device("cpu"))
    assert landmarks.terms[0].scale is not None
    compare("place, no steps", lambda: energy_of(X_hat, landmarks)(Y), 1e-4)
    compare("place", lambda: [landmarks.place(X_hat)], 1e-3)
    compare("place_roughly", lambda: [P.double() for P in landmarks.place_roughly(X_hat)], 1e-3)
    starts = torch.stack([Y, Y[torch.randperm(len(Y))]], dim=1)
    compare("place_from", lambda: landmarks.place_from(X_hat, starts), 1e-3)
    against = X_hat[3:], Y[3:]
    compare("moments", lambda: placed_moments(X_hat, Y, *against, 15, 20, 16), 1e-4)


if __name__ == "__main__":
    main()
