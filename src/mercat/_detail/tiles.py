"""Nearest neighbours on a device, by a few products of large matrices.

As in `neighbors.py`, the search is exact up to a number of points; for more, it is restricted to the nearest
cells. To make work uniform, cells are padded to whole tiles of points, and each tile is compared with the
same number of tiles, from the cells nearest to its own. An exact search for a sample of points determines
this number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._data.arrays import Array, blocks, device_blocks

_TILE = 64  # points
_GROUP = 32  # points represented by their smallest distance in a first selection
_ALL_PAIRS_UP_TO = 100_000  # largest number of points for the exact search
_POINTS_PER_CELL = 500  # more for very many points, so that there are at most ...
_MAX_CELLS = 32768  # ... this number of cells
_POINTS_PER_CENTRE = 20  # points per centre used to compute the centres
_N_ROUNDS = 4  # rounds of Lloyd's algorithm
_MIN_TILES = 160  # minimum number of tiles searched: ten thousand points
# Maximum, to bound the time; in ten million points of noise, fewer neighbours are found.
_MAX_TILES = 1600
_N_TEST_POINTS = 256  # points with an exact search, which determine the number of tiles ...
_MIN_RECALL = 0.97  # ... such that this fraction of their neighbours is found
_NUMBERS = 1 << 28  # maximum number of products computed at a time


class Neighbors(NamedTuple):
    """Nearest neighbours of each point (n x k), nearest first, their distances, and an order of points.

    In that order, points that are near in the data are near in memory.
    """

    indices: Array
    distances: Array
    order: Array


def nearest(X: Any, k: int, rng: np.random.Generator) -> Neighbors:
    """Nearest neighbours of each row of a float32 tensor X (n x r), without the row itself."""
    import torch

    n = X.shape[0]
    if n <= _ALL_PAIRS_UP_TO:
        columns = _with_norms(X, torch.arange(n, device=X.device))
        parts = [
            _in_order(X, X[b], _among(_products(X[b], columns), min(k + 1, n)), k, b.start)
            for b in blocks(n, max(1, _NUMBERS // columns.shape[0]))
        ]
        indices, distances = (torch.cat(p) for p in zip(*parts, strict=True))
        return Neighbors(indices, distances, torch.arange(n, device=X.device))
    return _nearest_in_cells(X, k, rng)


def nearest_to(X: Any, queries: Any, k: int) -> tuple[Any, Any]:
    """Indices (q x k) of the rows of X nearest to each query, nearest first, and distances."""
    import torch

    columns = _with_norms(X, torch.arange(X.shape[0], device=X.device))
    parts = [
        _in_order(X, queries[b], _among(_products(queries[b], columns), k), k)
        for b in blocks(queries.shape[0], max(1, _NUMBERS // columns.shape[0]))
    ]
    found, distances = (torch.cat(p) for p in zip(*parts, strict=True))
    return found, distances


def _with_norms(X: Any, rows: Any) -> Any:
    """Rows of X, padded to whole tiles, with half their squared norms as a further column.

    A row of -1 is padding, with an infinite norm.
    """
    import torch

    missing = -len(rows) % _TILE
    rows = torch.cat([rows, rows.new_full((missing,), -1)])
    points = X[rows.clamp(min=0)]
    half = 0.5 * (points * points).sum(1, keepdim=True)
    points = torch.where(rows[:, None] < 0, 0.0, points)
    half = torch.where(rows[:, None] < 0, torch.inf, half)
    return torch.cat([points, half], dim=1)


def _products(queries: Any, columns: Any) -> Any:
    """|x|^2 / 2 - x.q (... x q x n), which sorts like the distances from points x to a query q."""
    import torch

    with_one = torch.cat([-queries, torch.ones_like(queries[..., :1])], dim=-1)
    return with_one @ columns.mT


def _among(D: Any, k: int) -> Any:
    """Columns (q x k) of the k smallest numbers in each row of D (q x whole groups), unordered.

    The columns are split into groups; the k groups with the smallest minima contain the k smallest numbers.
    """
    grouped = D.reshape(D.shape[0], _GROUP, -1)
    n_groups = grouped.shape[2]
    k_groups = min(k, n_groups)
    groups = grouped.amin(1).topk(k_groups, dim=1, largest=False, sorted=False)[1]
    candidates = grouped.gather(2, groups[:, None, :].expand(-1, _GROUP, -1)).flatten(1)
    which = candidates.topk(k, dim=1, largest=False, sorted=False)[1]
    return groups.gather(1, which % k_groups) + n_groups * (which // k_groups)


def _in_order(
    X: Any, queries: Any, found: Any, k: int, start: int | Any | None = None
) -> tuple[Any, Any]:
    """The k nearest of the points found, nearest first, ties by index, and distances.

    `start` is the row of the first query, or the row of each query; these rows are excluded.
    """
    import torch

    ids, distances = [], []
    for b in device_blocks(queries, found.shape[1] * X.shape[1]):
        some = found[b].sort(dim=1)[0]
        difference = X[some] - queries[b][:, None, :]
        squared = (difference * difference).sum(2)
        if start is not None:
            own = (
                torch.arange(start + b.start, start + b.stop, device=X.device)
                if isinstance(start, int)
                else start[b]
            )
            squared = torch.where(some == own[:, None], torch.inf, squared)
        order = squared.argsort(dim=1, stable=True)[:, :k]
        ids.append(some.gather(1, order))
        distances.append(squared.gather(1, order).sqrt())
    return torch.cat(ids), torch.cat(distances)


# ------------------------------------------------------------------ search in cells


class _Cells(NamedTuple):
    """Points sorted by cell, padded to whole tiles."""

    centres: Any  # (c, r)
    members: Any  # (tiles, _TILE) rows, or -1
    columns: Any  # (tiles, _TILE, r + 1), see `_with_norms`
    cell: Any  # (tiles,) cell of each tile
    first: Any  # (c,) first tile of each cell
    number: Any  # (c,) number of tiles per cell


def _nearest_in_cells(X: Any, k: int, rng: np.random.Generator) -> Neighbors:
    """Approximate nearest neighbours: the nearest points in the nearest cells."""
    import torch

    n = X.shape[0]
    cells, order = _cells(X, rng)
    n_tiles = len(cells.members)
    reach = min(_reach(X, cells, k, rng), n_tiles)
    while True:  # tiles may be nearly empty: add tiles until they hold k other points
        lists = _lists(cells, reach)
        if reach == n_tiles or int(_sizes(cells)[lists].sum(1).min()) > k:
            break
        reach = min(2 * reach, n_tiles)
    indices = torch.empty((n, k), dtype=torch.int64, device=X.device)
    distances = torch.empty((n, k), dtype=X.dtype, device=X.device)
    for some in blocks(n_tiles, max(1, _NUMBERS // (_TILE * _TILE * reach))):
        others = lists[cells.cell[some]]  # (tiles, reach)
        columns = cells.columns[others].reshape(len(others), reach * _TILE, -1)
        queries = cells.columns[some][..., :-1]
        found = _among(_products(queries, columns).reshape(-1, reach * _TILE), k + 1)
        # Convert positions in the lists to rows of X.
        tile = others.repeat_interleave(_TILE, dim=0).gather(1, found // _TILE)
        found = cells.members[tile, found % _TILE]
        rows = cells.members[some].reshape(-1)
        real = rows >= 0
        rows, found = rows[real], found[real]
        indices[rows], distances[rows] = _in_order(X, X[rows], found, k, rows)
    return Neighbors(indices, distances, order)


def _sizes(cells: _Cells) -> Any:
    return (cells.members >= 0).sum(1)


def _cells(X: Any, rng: np.random.Generator) -> tuple[_Cells, Any]:
    """Cells of X, and its rows sorted by cell."""
    import torch

    n = X.shape[0]
    centres = _centres(X, min(max(1, n // _POINTS_PER_CELL), _MAX_CELLS), rng)
    cell = _nearest_centres(X, centres)
    order = cell.argsort(stable=True)
    counts = torch.bincount(cell, minlength=len(centres))
    number = -(-counts // _TILE)
    first = number.cumsum(0) - number
    at = torch.arange(n, device=X.device) - (counts.cumsum(0) - counts)[cell[order]]
    members = torch.full((int(number.sum()) * _TILE,), -1, device=X.device)
    members[first[cell[order]] * _TILE + at] = order
    columns = _with_norms(X, members).reshape(-1, _TILE, X.shape[1] + 1)
    of_tile = torch.arange(len(centres), device=X.device).repeat_interleave(number)
    cells = _Cells(centres, members.reshape(-1, _TILE), columns, of_tile, first, number)
    return cells, order


def _nearest_centres(X: Any, centres: Any) -> Any:
    """Index of the centre nearest to each row of X."""
    import torch

    half = 0.5 * (centres * centres).sum(1)
    parts = [
        torch.addmm(half, X[b], centres.T, alpha=-1).argmin(1)
        for b in device_blocks(X, len(centres))
    ]
    return torch.cat(parts)


def _centres(X: Any, n_cells: int, rng: np.random.Generator) -> Any:
    """Centres of cells, by a few rounds of Lloyd's algorithm on a sample of the points.

    Sums are computed with integers, since the order of additions on a device differs between runs.
    """
    import torch

    size = min(len(X), _POINTS_PER_CENTRE * n_cells)
    sample = X[torch.as_tensor(rng.integers(len(X), size=size), device=X.device)]
    centres = sample[torch.as_tensor(rng.choice(size, n_cells, replace=False), device=X.device)]
    unit = 2.0**40 / max(float(sample.abs().max()), 1e-30)
    whole = (sample.double() * unit).round().long()
    for _ in range(_N_ROUNDS):
        cell = _nearest_centres(sample, centres)
        sums = torch.zeros((n_cells, X.shape[1]), dtype=torch.int64, device=X.device)
        sums.index_add_(0, cell, whole)
        counts = torch.bincount(cell, minlength=n_cells)[:, None]
        means = (sums.double() / (unit * counts.clamp(min=1))).to(X.dtype)
        centres = torch.where(counts > 0, means, centres)
    return centres


def _apart(centres: Any, some: Any) -> Any:
    """Squared distances from some centres to all; -1 to themselves."""
    squares = (centres * centres).sum(1)
    D = squares[some][:, None] + squares - 2 * (centres[some] @ centres.T)
    return D.scatter_(1, some[:, None], -1.0)  # so that the cell itself comes first


def _lists(cells: _Cells, reach: int) -> Any:
    """The first `reach` tiles (c x reach) of the cells nearest to each cell, its own first."""
    import torch

    centres, parts = cells.centres, []
    for b in device_blocks(centres, 2 * len(centres)):
        some = torch.arange(b.start, b.stop, device=centres.device)
        near = _apart(centres, some).argsort(dim=1, stable=True)
        number = cells.number[near]
        stops = number.cumsum(1)
        slots = torch.arange(reach, device=centres.device).expand(len(some), -1).contiguous()
        at = torch.searchsorted(stops, slots, right=True)  # index of the near cell of a slot
        start = (stops - number).gather(1, at)
        parts.append(cells.first[near.gather(1, at)] + slots - start)
    return torch.cat(parts)


def _reach(X: Any, cells: _Cells, k: int, rng: np.random.Generator) -> int:
    """Number of tiles that contain nearly all neighbours of a sample of points."""
    import torch

    n, device = len(X), X.device
    rows = torch.as_tensor(np.sort(rng.integers(n, size=_N_TEST_POINTS)), device=device)
    all_columns = cells.columns.reshape(-1, X.shape[1] + 1)
    members = cells.members.reshape(-1)
    slot = torch.empty(n, dtype=torch.int64, device=device)
    slot[members[members >= 0]] = torch.nonzero(members >= 0)[:, 0]
    needed = []
    for b in blocks(len(rows), max(1, _NUMBERS // len(all_columns))):
        found = members[_among(_products(X[rows[b]], all_columns), k + 1)]
        own, there = cells.cell[slot[rows[b]] // _TILE], slot[found] // _TILE
        near = _apart(cells.centres, own).argsort(dim=1, stable=True)
        rank = torch.empty_like(near)
        number = cells.number[near]
        rank.scatter_(1, near, number.cumsum(1) - number)  # tiles before those of each cell
        cell = cells.cell[there]
        needed.append(rank.gather(1, cell) + there - cells.first[cell] + 1)
    needed = torch.cat(needed).reshape(-1).sort()[0]
    enough = int(needed[min(len(needed) - 1, int(np.ceil(_MIN_RECALL * (len(needed) - 1))))])
    return min(max(enough, _MIN_TILES), _MAX_TILES)
