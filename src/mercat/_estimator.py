"""`Mercat`, the estimator: open the data, reduce them, solve, place, add detail, rotate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ._data.arrays import blocks, is_dask, to_numpy
from ._data.checks import as_numbers, generator, warn_caller
from ._data.open import open_source
from ._data.source import RowSource
from ._data.threads import Workers, n_threads
from ._kernels import device as device_kernels
from ._math.angles import ABSOLUTE
from ._math.orientation import orthogonal_onto
from ._math.sphere import geodesic
from ._parameters import DEFAULTS, reject_unknown_parameters
from ._progress import Progress
from ._reduce.components import ComponentReducer
from ._reduce.reducer import Reducer, fit_reducer, full_rows
from ._solve.anchors import Anchors
from ._solve.detail import add_detail
from ._solve.diagnostics import Diagnostics
from ._solve.pipeline import Plan, Solved, solve
from ._solve.rotated import judge, output_type, place, rotated, rotation_of
from ._solve.status import Status
from ._solve.trust import TrustWarning, trust_warnings
from ._validation import (
    check_data,
    check_init,
    check_parameters,
    check_positions,
    neighbors_of,
    require_supported,
    rows_with_detail,
)

# To check that a model is a map of the first rows of X, this many of them are placed on it. Their median
# distance to the training points must be at most this fraction of the median distance of unrelated points.
_N_COMPARED, _MAX_RELATIVE_SHIFT = 200, 0.5
_SCORE_ROWS, _SCORE_APICES = 2000, 1000  # largest samples of rows and of apices in `score`


class Mercat(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Map of high-dimensional data on the unit sphere that preserves angles and, less strictly, distances.

    Points are placed on :math:`S^2` such that the angles between the geodesics of any three points match the
    angles in the data and, with half the weight, arc lengths match distances.

    Parameters
    ----------
    objective : {"calibrated", "absolute"}, default="calibrated"
        "calibrated" fits the cosines a of the angles in the data by a = alpha + beta b, where b are the
        cosines on the map, and so maximises their Pearson correlation. For more than 100 points, unless
        angles are preserved almost exactly, it includes distances: it is the unexplained fraction of the
        variance of the cosines, plus half that of distances averaged with their ranks. "absolute" is the
        loss of the paper (arXiv:2406.09876), the root mean squared difference between a and b.
    detail : float, default=0.0
        Weight of neighbourhoods relative to angles; 0 ignores neighbourhoods. A value of 0.03 loses little
        angle preservation; values from 0.3 to 1 pull neighbours together as t-SNE and UMAP do, but preserve
        more of the global structure.
    neighbors : int, sparse matrix of shape (n, n) or None, default=None
        Number of nearest neighbours in the reduced data (see `n_spectral`), used if `detail` > 0; None means
        n // 20, but at least 10 and at most 30 (and at most n // 3). Alternatively, a graph whose stored
        entries are the edges from each point (row) to its neighbours; their values are ignored, so scanpy's
        distances and connectivities both work.
    n_detail : int or None, default=None
        Number of rows sampled for `detail`; the others are placed among them as `transform` does. None means
        all rows of data in memory or on a device, and at most 1,000,000 rows of a Dask array or memory map.
        The sample must fit in memory.
    n_spectral : int, "auto" or None, default=50
        Number of principal components to which the data are reduced. "auto" chooses the number by ScreeNOT
        (at least two). None uses the data as they are. `loss_` and `correlation_` refer to the reduced data.
    metric : str or callable, default="euclidean"
        Distance between rows: "euclidean", "cosine", "correlation", "manhattan", "hamming" (the fraction of
        columns that differ), "jaccard" (of the nonzero entries), "precomputed", or a function of two rows
        that returns their distance. For "cosine", "correlation", "manhattan", "hamming" and "jaccard", points
        are represented in a Euclidean space in which squared distances equal those of the metric (twice those
        for "cosine" and "correlation"). Distances from a function or "precomputed" are used unchanged, except
        for the part that no Euclidean space can represent. For "precomputed", X is a square matrix, or a
        matrix of shape (n, w) of the distances to the first w rows, which serve as landmarks.
    solver : {"auto", "exact", "landmarks", "algorithm1"}, default="auto"
        "exact" uses all triples, in O(n^2) per iteration. "landmarks" does so for a sample of the points and
        places all others against it, in O(n). "auto" is "exact" for up to 2000 points, or up to 1000 if
        `detail` is 0.2 or more, and "landmarks" for more. "algorithm1" is the paper's Algorithm 1, for
        comparison; it requires objective="absolute".
    n_landmarks : int, default=1000
        Number of landmarks. More landmarks give a slightly better map; the time to solve them grows
        quadratically.
    init : "auto", "pca" or array of shape (n, 3), default="auto"
        Initial positions. "pca" is the paper's initialisation: two principal components wrapped around half
        of the sphere. "auto" compares it with six others on a sample of points and uses the better of the two
        most promising; for "algorithm1" it is "pca". The rows of an array are normalised to unit length.
    max_iter : int or None, default=None
        Maximum number of iterations of the solver. None means 500; for "algorithm1", 1000 as in the paper, or
        250 with mini-batches (for more than 10,000 points).
    tol : float, default=1e-4
        Tolerance: the solver stops when the loss in `history_` decreases by less than tol * max(loss, 0.1)
        per iteration; for landmarks, by less than three times that. Not used by "algorithm1".
    random_state : int, numpy Generator or RandomState, or None, default=None
        Seed of the approximate neighbour search in large data (with `detail`), of the choice of rows with
        `align_to`, and of "algorithm1". All other samples, such as the landmarks, depend only on the values
        of the rows. With the same seed, results are bit-identical for any number of threads.
    device : str, torch.device or None, default=None
        Torch device to compute on: "cuda", "cuda:1", "mps" or "cpu"; an unavailable device raises an error.
        None means NumPy with threads, or the device of X if X is a torch tensor on a device. Data in host
        memory are streamed to the device. The embedding is a tensor on the device of X if X is a tensor, else
        an array.
    n_jobs : int or None, default=-1
        Number of threads. -1 means all cores, or one thread within a worker of joblib, Dask or a process
        pool; None means 1 unless in a joblib context. The result does not depend on the number.
    verbose : bool, default=False
        Show progress bars.
    callback : callable or None, default=None
        Called as ``callback(iteration, loss, Y)`` after each iteration, with the current positions: those of
        the landmarks while these are solved, and those of all points during the descent with `detail`. If it
        returns a true value, the solver stops and the map is completed from the current positions, without
        `detail` if its descent has not begun. If it raises an exception, or on Ctrl-C, the model is left
        unchanged.

    Attributes
    ----------
    embedding_ : array of shape (n, 3)
        Unit vectors, rotated so that most points lie near the equator and the fewest near the seam of flat
        maps. For data with two columns, the map has the orientation of their scatter plot. A lazy Dask array
        if X is one; a tensor on the device of X if X is a tensor.
    landmarks_ : array of int
        Indices of the landmarks: the rows of X that `transform` places new points against.
    loss_ : float
        Root mean squared residual of the cosines, without distances. For "exact", over all triples; for
        "landmarks", over all points as apices (10,000 points of a Dask array), with at least 32 landmarks as
        legs for each.
    correlation_ : float
        Pearson correlation between the cosines of data and map, over the same triples. With few landmarks,
        `loss_` and `correlation_` are optimistic, since points are evaluated with the landmarks that they
        were placed against. To compare settings, use `mercat.metrics.angle_preservation`.
    calibration_ : tuple (alpha, beta)
        The linear fit of the cosines; (0, 1) for "absolute".
    point_loss_ : array of shape (n,)
        Loss at each point. Do not trust the map where it is high.
    history_ : array
        Loss after each iteration of the solver: the square root of the smoothed objective, including the
        distance term, in the unit of `loss_`. With `detail`, it is followed by the angle loss on a sample of
        triples after each iteration of the descent, which increases.
    n_iter_ : int
        Number of iterations.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence. CONVERGED and PRECISION mean that it converged.
    components_ : array of shape (r, n_features) or None
        Principal axes. None for n_spectral=None and for metrics other than "euclidean", "cosine" and
        "correlation".
    mean_ : array of shape (n_features,) or None
        Mean of the rows after the transformation by the metric. None for metrics without principal axes.
    explained_variance_ : array of shape (r,)
        Variance along each axis.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Names of the features, if X has names.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercat import Mercat
    >>> X, labels = load_digits(return_X_y=True)
    >>> model = Mercat(random_state=0)
    >>> Y = model.fit_transform(X)
    >>> Y.shape
    (1797, 3)
    >>> print(model.status_)
    The loss stopped falling: the fit converged.
    >>> model.transform(X[:5]).shape
    (5, 3)
    """

    @reject_unknown_parameters
    def __init__(
        self,
        *,
        objective: str = DEFAULTS["objective"],
        detail: float = DEFAULTS["detail"],
        neighbors: Any = DEFAULTS["neighbors"],
        n_detail: int | None = DEFAULTS["n_detail"],
        n_spectral: int | str | None = DEFAULTS["n_spectral"],
        metric: Any = DEFAULTS["metric"],
        solver: str = DEFAULTS["solver"],
        n_landmarks: int = DEFAULTS["n_landmarks"],
        init: Any = DEFAULTS["init"],
        max_iter: int | None = DEFAULTS["max_iter"],
        tol: float = DEFAULTS["tol"],
        random_state: Any = DEFAULTS["random_state"],
        device: Any = DEFAULTS["device"],
        n_jobs: int | None = DEFAULTS["n_jobs"],
        verbose: bool = DEFAULTS["verbose"],
        callback: Callable[[int, float, np.ndarray], Any] | None = DEFAULTS["callback"],
    ) -> None:
        self.objective = objective
        self.detail = detail
        self.neighbors = neighbors
        self.n_detail = n_detail
        self.n_spectral = n_spectral
        self.metric = metric
        self.solver = solver
        self.n_landmarks = n_landmarks
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    # ------------------------------------------------------------------ public methods

    def fit(self, X: Any, y: Any = None, *, align_to: Any = None) -> Mercat:
        """Fit the map.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Dask array or torch tensor of shape (n, n_features)
            The data; for metric="precomputed", distances of shape (n, n) or (n, n_landmarks).
        y : ignored
        align_to : Mercat, array of shape (n, 3) or None, default=None
            Another map of some of the points, to stay close to: a fitted model whose training data are the
            first rows of X, or unit vectors, with NaN in the rows of points that are not on that map. The fit
            starts from that map and moves points only as far as the angles require. The result is rotated or
            mirrored onto the other map instead of towards the equator. With `detail`, the points of the other
            map stay fixed and new ones are placed among them, unless a new map preserves angles or neighbours
            clearly better.

        Returns
        -------
        self : Mercat
        """
        self._fit(X, align_to)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, align_to: Any = None) -> Any:
        """Fit the map and return `embedding_`.

        Parameters
        ----------
        X, y, align_to
            As in `fit`.

        Returns
        -------
        Y : array of shape (n, 3)
            Unit vectors.
        """
        return self._fit(X, align_to).embedding_

    def transform(self, X: Any) -> Any:
        """Place points on the fitted map, each independently of the others.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Dask array or torch tensor of shape (m, n_features)
            New data; for metric="precomputed", their distances to the training points, or to the landmarks.

        Returns
        -------
        Y : array of shape (m, 3)
            Unit vectors.
        """
        check_is_fitted(self)
        model = self._snapshot()  # other threads may refit the model meanwhile
        with model._workers_and_progress() as (workers, progress):
            return model._place_all(model._open(X, workers, fitting=False), progress)

    def turn(self, points: Any, onto: Any) -> Mercat:
        """Rotate or mirror the fitted map so that given points come close to given positions.

        This changes `embedding_` and `transform`, but not angles and distances.

        Parameters
        ----------
        points : array of shape (k, 3)
            Points of this map, such as centres of classes; they need not be unit vectors.
        onto : array of shape (k, 3)
            Target positions, such as the corresponding points of another map.

        Returns
        -------
        self : Mercat

        Examples
        --------
        >>> import numpy as np
        >>> from mercat import Mercat
        >>> X = np.random.default_rng(0).normal(size=(60, 3))
        >>> one, other = (Mercat(random_state=seed).fit(X) for seed in (0, 1))
        >>> other = other.turn(other.embedding_, one.embedding_)
        >>> float(np.sum(one.embedding_ * other.embedding_, axis=1).mean()) > 0.8
        True
        """
        check_is_fitted(self)
        points, onto = (
            as_numbers(name, to_numpy(P)) for name, P in (("points", points), ("onto", onto))
        )
        if points.ndim != 2 or points.shape[1] != 3 or points.shape != onto.shape:
            raise ValueError(
                f"points and onto must have the same shape (k, 3), got {points.shape} and {onto.shape}."
            )
        for name, P in (("points", points), ("onto", onto)):
            if not np.isfinite(P).all():
                raise ValueError(f"{name} must be finite, got NaN or infinity.")
        # Units do not matter, but products of very large numbers would overflow.
        points, onto = (np.ldexp(P, -np.frexp(np.abs(P).max(initial=0))[1]) for P in (points, onto))
        R = orthogonal_onto(points, onto)
        state = self.__dict__
        before = dict(state)
        Y = before["embedding_"]
        dtype = "float32" if str(Y.dtype).endswith("float32") else "float64"
        Y_rotated = (
            Y.map_blocks(rotated, R, dtype, dtype=dtype) if is_dask(Y) else rotated(Y, R, dtype)
        )
        # One update, since other threads may be reading. A fit that ended meanwhile has replaced the dict.
        state.update({"embedding_": Y_rotated, "_rotation": R @ before["_rotation"]})
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Measure the angle preservation of rows, such as held-out ones, placed by `transform`.

        Angles are compared with those in the unreduced data, so that values of `n_spectral` can be compared;
        for metrics other than "euclidean", "cosine" and "correlation", with those in the reduced data.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Dask array or torch tensor of shape (m, n_features)
            At least three rows. If there are more than 2000, a fixed random sample of 2000 is scored.
        y : ignored

        Returns
        -------
        score : float
            Pearson correlation of the angles, as `mercat.metrics.angle_preservation` measures it.
        """
        from .metrics import angle_preservation

        check_is_fitted(self)
        model = self._snapshot()
        with model._workers_and_progress() as (workers, _):
            source = model._open(X, workers, fitting=False)
            n = source.shape[0]
            if n < 3:
                raise ValueError(f"X must have at least 3 rows to be scored, got {n}.")
            sample = np.random.default_rng(0).permutation(n)[:_SCORE_ROWS]
            rows = source.take(np.sort(sample))
            placer = source.to_device(model._placer)
            Y = to_numpy(place(placer, model._rotation, "float64", rows, 0))
            X_sample = to_numpy(full_rows(placer.spectral, rows))
        return float(angle_preservation(X_sample, Y, n_points=_SCORE_APICES, random_state=0))

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, align_to: Any = None) -> Mercat:
        """Fit a new model with the same parameters, copy its fitted attributes, and return it.

        A fit that fails or is interrupted leaves this model unchanged, and other threads see the model before
        or after the fit, never in between. Attributes set meanwhile are kept, unless this fit sets them, too.
        """
        model = object.__new__(type(self))
        model.__dict__ = {k: v for k, v in dict(vars(self)).items() if k in DEFAULTS}
        model._fit_in_place(X, align_to)
        fitted = {k: v for k, v in vars(model).items() if k not in DEFAULTS}
        others = {k: v for k, v in dict(vars(self)).items() if k != "feature_names_in_"}
        self.__dict__ = others | fitted
        return model

    def _snapshot(self) -> Mercat:
        """Shallow copy of the model, which shares its arrays."""
        model = object.__new__(type(self))
        model.__dict__ = dict(vars(self))
        return model

    def _fit_in_place(self, X: Any, align_to: Any) -> None:
        """Fit this model, which no other thread may use."""
        check_parameters(self)
        rng = generator(self.random_state)
        with self._workers_and_progress() as (workers, progress):
            source = self._open(X, workers, fitting=True, align_to=align_to)
            device_kernels.prepare(source.device, detail=self.detail > 0)
            init = check_init(self.init, source.shape[0])
            anchors = anchors_of(align_to, source)
            progress.phase("denoising", None, "")
            reducer = fit_reducer(source, self.n_spectral, metric=self.metric)
            fit_source, fit_rows = source, rows_with_detail(self, source)
            if self.detail > 0:
                fit_source = source.part(fit_rows)
            if fit_rows is not None:
                init = init if isinstance(init, str) else init[fit_rows]
                anchors = None if anchors is None else anchors.of_rows(fit_rows)
            plan = self._plan(fit_source, reducer, rng, progress)._replace(
                init=init,
                callback=self.callback,
                neighbors=neighbors_of(self, fit_source.shape[0]),
                anchors=anchors,
            )
            solved = solve(plan)
            if self.detail > 0:
                with fit_source.memory_advice():
                    solved = add_detail(solved, plan)
            if fit_rows is not None:
                solved = solved._replace(landmarks=fit_rows[solved.landmarks])
            self._set_fitted_attributes(source, reducer, solved, anchors, progress)
        self._warn(solved.diagnostics)

    def _plan(
        self, source: RowSource, reducer: Reducer, rng: np.random.Generator, progress: Progress
    ) -> Plan:
        """Plan of a fit with the parameters of this model and the default start."""
        return Plan(
            source=source,
            reducer=reducer,
            solver=self.solver,
            line=ABSOLUTE if self.objective == "absolute" else None,
            init="auto",
            n_landmarks=self.n_landmarks,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=None,
            rng=rng,
            progress=progress,
            detail=float(self.detail),
            neighbors=None,
        )

    def _open(self, X: Any, workers: Workers, *, fitting: bool, align_to: Any = None) -> RowSource:
        """Open X as a source of rows, and validate it."""
        source = open_source(X, self.device, workers)
        require_supported(self, source, fitting=fitting, align_to=align_to)
        check_data(self, X, source, fitting=fitting)
        return source

    def _set_fitted_attributes(
        self,
        source: RowSource,
        reducer: Reducer,
        solved: Solved,
        anchors: Anchors | None,
        progress: Progress,
    ) -> None:
        """Set the attributes of a finished fit."""
        self.components_ = self.mean_ = None  # distances have no columns
        if isinstance(reducer, ComponentReducer):
            self.components_, self.mean_ = reducer.components, reducer.mean
        self.explained_variance_ = reducer.explained_variance
        fit, self.landmarks_ = solved.fit, solved.landmarks
        self._placer, self._rotation = solved.placement.placer, rotation_of(solved, anchors)
        self.embedding_, self.point_loss_ = self._positions_and_losses(source, solved, progress)
        self._n_features_out = 3
        self.loss_ = float(fit.angle_fit.loss)
        self.correlation_ = float(fit.angle_fit.correlation)
        self.calibration_ = tuple(float(v) for v in fit.angle_fit.calibration)
        self.history_ = np.array(fit.history)
        self.n_iter_ = len(fit.history)
        self.status_ = fit.status

    def _warn(self, diagnostics: Diagnostics) -> None:
        """Warn about everything that makes the map less trustworthy."""
        if self.status_ is Status.MAX_ITER:
            current = "by default" if self.max_iter is None else f"now {self.max_iter}"
            advice = f"Raise max_iter ({current}) or tol ({self.tol})."
            warn_caller(f"{self.status_} {advice}", ConvergenceWarning)
        if self.neighbors is not None and self.detail == 0:
            warn_caller("neighbors has no effect at detail=0: raise detail.", UserWarning)
        for sentence in trust_warnings(self, diagnostics):
            warn_caller(sentence, TrustWarning)

    @contextmanager
    def _workers_and_progress(self) -> Iterator[tuple[Workers, Progress]]:
        """Open the worker threads and the progress bars of a computation."""
        progress = Progress(self.verbose)
        with progress, Workers(n_threads(self.n_jobs), progress.pulse) as workers:
            yield workers, progress

    def _place_all(self, rows: RowSource, progress: Progress) -> Any:
        """Positions of all rows on the rotated map."""
        placer, dtype = rows.to_device(self._placer), output_type(rows)
        place_rows = functools.partial(place, placer, self._rotation, dtype)
        return rows.results(place_rows, (3,), dtype, progress)

    def _positions_and_losses(
        self, rows: RowSource, solved: Solved, progress: Progress
    ) -> tuple[Any, Any]:
        """Positions and losses of all points, as lazy arrays if X is a Dask array."""
        fit, dtype = solved.fit, output_type(rows)
        if len(fit.Y) < rows.shape[0]:  # only a sample has been placed so far
            losses_of = functools.partial(judge, rows.to_device(solved.placement))
            return self._place_all(rows, progress), rows.results(losses_of, (), "float64", progress)
        Y = rows.empty(fit.Y.shape, dtype)
        for block in blocks(len(Y), rows.block):
            rows.store(rotated(fit.Y[block], self._rotation, dtype), Y, block)
        return rows.like_input(Y), rows.like_input(fit.angle_fit.point_loss)

    def __sklearn_is_fitted__(self) -> bool:
        # By default, scikit-learn iterates over the attributes, which other threads may be adding to.
        return "embedding_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.metric != "precomputed"
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.positive_only = self.metric == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def embed(X: Any, **parameters: Any) -> Any:
    """Embed the rows of X on the unit sphere: `Mercat(**parameters).fit_transform(X)`.

    Parameters
    ----------
    X : array, sparse matrix, data frame, Dask array or torch tensor of shape (n, n_features)
        The data; for metric="precomputed", distances of shape (n, n) or (n, n_landmarks).
    **parameters
        Parameters of `Mercat`.

    Returns
    -------
    Y : array of shape (n, 3)
        Unit vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from mercat import embed
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> embed(X, random_state=0).shape
    (100, 3)
    """
    return Mercat(**parameters).fit_transform(X)


def anchors_of(align_to: Any, source: RowSource) -> Anchors | None:
    """Validate `align_to`, and return the positions of points on the other map, if any."""
    if align_to is None or isinstance(align_to, Anchors):
        return align_to
    n = source.shape[0]
    if not isinstance(align_to, Mercat):
        return Anchors(check_positions(align_to, n))
    check_is_fitted(align_to)
    align_to = align_to._snapshot()  # other threads may refit it meanwhile
    m = len(align_to.embedding_)
    if m > n:
        raise ValueError(
            f"align_to must be a map of the first rows of X, which has {n} rows, got a map of {m} points."
        )
    Y = to_numpy(align_to.embedding_).astype(np.float64)
    if source.shape[1] == align_to.n_features_in_:
        rows = np.linspace(0, m - 1, min(m, _N_COMPARED)).astype(int)
        Y_placed = to_numpy(
            place(align_to._placer, align_to._rotation, "float64", source.take(rows), 0)
        )
        shift = float(np.median(geodesic(Y_placed, Y[rows])))
        Y_rolled = np.roll(Y[rows], len(rows) // 2, axis=0)
        if shift > _MAX_RELATIVE_SHIFT * float(np.median(geodesic(Y[rows], Y_rolled))) + 1e-6:
            raise ValueError(
                "align_to must be a map of the first rows of X, got a model that places these at a median "
                f"of {np.degrees(shift):.0f} degrees from its training points: pass unit vectors, with NaN "
                "for points that are not on its map."
            )
    positions = np.full((n, 3), np.nan)
    positions[:m] = Y
    return Anchors(positions, align_to.landmarks_)
