"""Figures: positions, colours and order of points, labels and legends."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
from matplotlib.collections import (  # noqa: E402
    LineCollection,
    PolyCollection,
)
from matplotlib.colors import to_hex, to_rgba  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402

from mercat import Mercat, Uncertainty, metrics, plot  # noqa: E402
from mercat._draw import chart as _chart  # noqa: E402
from mercat._draw import labels as _labels  # noqa: E402
from mercat._draw import legend as _legend  # noqa: E402
from mercat._draw import marks as _marks  # noqa: E402
from mercat._draw import trust as _trust  # noqa: E402
from mercat._draw import window as _window  # noqa: E402
from mercat._draw.colors import Categories, Scale, read_column  # noqa: E402
from mercat._draw.palette import (  # noqa: E402
    MISSING,
    MISSING_ON_DARK,
    OKABE_ITO,
    categorical,
    on_dark,
    perceived,
    to_rgb,
)
from mercat._math.sphere import (  # noqa: E402
    fibonacci_grid,
    from_lonlat,
    normalize,
    tangent_frame,
)
from mercat.projections import NAMES, far_side, project  # noqa: E402

DIGITS = load_digits()
Y = normalize(PCA(3, random_state=0).fit_transform(DIGITS.data))[:600]
DIGIT = DIGITS.target[:600]
NAMED = np.array([f"digit {digit}" for digit in DIGIT])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def at(longitude, latitude):
    return from_lonlat(np.deg2rad(np.atleast_1d(longitude)), np.deg2rad(np.atleast_1d(latitude)))


def drawn(ax):
    """Positions and colours of all points on the axes, excluding other artists."""
    P = np.concatenate([np.asarray(points.get_offsets()) for points in ax.collections])
    rgba = np.concatenate([points.get_facecolor() for points in ax.collections])
    return P, rgba


def rows_of(P, expected):
    """Row of each drawn position."""
    from scipy.spatial import cKDTree

    distance, rows = cKDTree(expected).query(P)
    assert distance.max() < 1e-9
    return rows


def legend_names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- colours -------------------------------------------------------------------------------


def test_palette_extends_okabe_ito():
    assert categorical(8) == OKABE_ITO
    assert categorical(30)[:20] == categorical(20)
    assert len(set(categorical(60))) == 60
    assert categorical(450) == (*categorical(200), *categorical(200), *categorical(50))


@pytest.mark.parametrize(("n", "least"), [(8, 0.07), (20, 0.07), (30, 0.05)])
def test_palette_is_distinguishable_with_any_colour_vision(n, least):
    # For comparison: Okabe and Ito's own eight come as close as 0.076.
    assert closest((*categorical(n), MISSING)) > least


def closest(colors):
    """Smallest distance between two colours over all kinds of colour vision."""
    lab = perceived(np.array([to_rgb(color) for color in colors]))
    distance = np.linalg.norm(lab[:, :, None] - lab[:, None], axis=-1)
    distance[:, np.arange(len(colors)), np.arange(len(colors))] = np.inf
    return distance.min()


@pytest.mark.parametrize(("n", "least"), [(8, 0.07), (20, 0.05), (30, 0.025)])
def test_palette_is_distinguishable_on_a_dark_background(n, least):
    assert closest((*on_dark(categorical(n)), MISSING_ON_DARK)) > least


def luminance(color):
    rgb = to_rgb(color)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_colours_on_a_dark_background_keep_their_hue_and_are_not_darker():
    colors = categorical(200)
    for color, shown in zip(colors, on_dark(colors), strict=True):
        contrast = (luminance(shown) + 0.05) / (
            luminance("#192130") + 0.05
        )  # the colour of the globe at its centre
        assert contrast > 2.5
        if shown != color:
            before, after = perceived(np.array([to_rgb(color), to_rgb(shown)]))[0]
            assert after[0] > before[0]
            turn = np.arctan2(before[1], before[2]) - np.arctan2(after[1], after[2])
            assert color == "#000000" or np.cos(turn) > np.cos(np.radians(30))
    assert sum(a != b for a, b in zip(colors[:8], on_dark(colors[:8]), strict=True)) == 1  # black
    assert on_dark(()) == ()


def test_seen_colours_are_those_of_oklab():
    # White and black by definition of OKLab; greys are grey to everyone; red in Ottosson's table.
    grey = perceived(np.array([[1, 1, 1], [0, 0, 0], [0.5, 0.5, 0.5]], dtype=float))
    np.testing.assert_allclose(grey[:, 0], np.tile([1, 0, 0], (4, 1)), atol=1e-4)
    np.testing.assert_allclose(grey[:, 1], 0, atol=1e-6)
    np.testing.assert_allclose(grey[:, 2, 1:], 0, atol=1e-4)
    red = perceived(np.array([[1.0, 0, 0]]))[0, 0]
    np.testing.assert_allclose(red, [0.62796, 0.22486, 0.12585], atol=1e-4)


@pytest.mark.parametrize(
    ("column", "codes", "names"),
    [
        (["b10", "b9", None], [1, 0, -1], ["b9", "b10"]),
        (["b", float("nan"), "a"], [1, -1, 0], ["a", "b"]),
        (np.array(["x", "y", "x"]), [0, 1, 0], ["x", "y"]),
        ([3, 1, None], [1, 0, -1], ["1", "3"]),
        (np.array([7, 7, 5]), [1, 1, 0], ["5", "7"]),
        ([True, None, False], [1, -1, 0], ["False", "True"]),
        ([None, None, None], [-1, -1, -1], []),
        (pd.Series(["a", None, "b"]), [0, -1, 1], ["a", "b"]),
        (pd.Series([2, pd.NA, 1], dtype="Int64"), [1, -1, 0], ["1", "2"]),
        (pd.array([2, None, 1], dtype="Int64"), [1, -1, 0], ["1", "2"]),
        (pd.array([True, None, False], dtype="boolean"), [1, -1, 0], ["False", "True"]),
        (pd.array(["b", None, "a"], dtype="string"), [1, -1, 0], ["a", "b"]),
        (pd.Categorical(["x", None, "y"], ["y", "z", "x"]), [2, -1, 0], ["y", "z", "x"]),
        (pd.Series(pd.Categorical([3, 1, None])), [1, 0, -1], ["1", "3"]),
        (pl.Series(["u", None, "v"]), [0, -1, 1], ["u", "v"]),
        (pl.Series([2, None, 1]), [1, -1, 0], ["1", "2"]),
        (pl.Series(["a", "b", None], dtype=pl.Enum(["b", "a"])), [1, 0, -1], ["b", "a"]),
        (pl.Series(["b", "a", None], dtype=pl.Categorical), [1, 0, -1], ["a", "b"]),
    ],
)
def test_names_are_read_as_categories(column, codes, names):
    categories = read_column(column, 3)
    assert isinstance(categories, Categories)
    assert categories.codes.tolist() == codes
    assert categories.names == names


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.5, np.nan, 3]),
        [1.5, None, 3],
        pd.Series([1.5, None, 3]),
        pd.Series([1.5, pd.NA, 3], dtype="Float64"),
        pd.array([1.5, None, 3], dtype="Float64"),
        pl.Series([1.5, None, 3]),
    ],
)
def test_numbers_are_read_as_a_scale(column):
    scale = read_column(column, 3)
    assert isinstance(scale, Scale)
    np.testing.assert_array_equal(scale.values, [1.5, np.nan, 3])


def test_many_integers_are_numbers():
    assert isinstance(read_column(np.arange(20), 20), Categories)
    assert isinstance(read_column(np.arange(21), 21), Scale)


@pytest.mark.parametrize(
    ("color", "message"),
    [
        ([1, 2], "^color .*600.*got 2"),
        (np.ones((600, 3)), r"^color .*\(600, 3\)"),
        (pd.DataFrame({"a": DIGIT}), r"^color .*\(600, 1\)"),
        (pl.DataFrame({"a": DIGIT}), r"^color .*\(600, 1\)"),
        (np.full(600, 1j), "^color .*complex128"),
        ([object()] * 600, "^color .*object"),
        (np.full(600, np.inf), "^color .*infinity"),
        ("no colour", "^color .*'no colour'"),
    ],
)
def test_bad_colors_are_refused(color, message):
    with pytest.raises(ValueError, match=message):
        plot.map(Y, color)
    assert plt.get_fignums() == []


def test_palettes_colour_categories_or_are_refused():
    names = np.where(Y[:, 0] > 0, "a", "b")
    for palette in ({"a": "red", "b": "blue", "c": "green"}, ["red", "blue"]):
        P, rgba = drawn(plot.map(Y, names, palette=palette, center=(0, 0), extent="world"))
        east = names[rows_of(P, np.clip(project(Y), -np.pi, np.pi))] == "a"
        assert (rgba[east, 0] == 1).all()
        assert (rgba[~east, 2] == 1).all()
    for palette, message in [
        ({"a": "red"}, r"^palette .*\['b'\]"),
        (["red"], "^palette .*2 colours.*got 1"),
        ("nope", "^palette .*'nope'"),
    ]:
        with pytest.raises(ValueError, match=message):
            plot.map(Y, names, palette=palette)
    with pytest.raises(ValueError, match=r"^palette .*'nope'"):
        plot.map(Y, Y[:, 0], palette="nope")
    with pytest.raises(ValueError, match=r"^palette .*color"):
        plot.map(Y, palette="viridis")


def test_colour_maps_colour_categories():
    names = np.array(["a", "b", "c"])[np.arange(len(Y)) % 3]

    def colors(palette):
        handles = plot.map(Y, names, palette=palette).get_legend().legend_handles
        return [to_hex(handle.get_color()) for handle in handles]

    assert colors("tab20") == ["#1f77b4", "#aec7e8", "#ff7f0e"]
    assert colors("viridis") == ["#440154", "#21918c", "#fde725"]
    assert colors(plt.get_cmap("Set1")) == ["#e41a1c", "#377eb8", "#4daf4a"]
    with pytest.raises(ValueError, match=r"^palette .*12 colours.*got 9"):
        plot.map(Y[:12], [f"c{k}" for k in range(12)], palette="Set1")


@pytest.mark.parametrize("value", [0.0, 3.0, -2.5])
def test_a_constant_is_in_the_middle_of_its_scale(value):
    ax = plot.map(Y, np.full(len(Y), value))
    assert to_hex(ax.collections[0].get_facecolor()[0]) == "#21918c"
    low, high = ax.child_axes[-1].get_ylim()
    np.testing.assert_allclose((low + high) / 2, value, atol=1e-12)
    assert low < high


# --- points --------------------------------------------------------------------------------


@pytest.mark.parametrize("projection", NAMES)
@pytest.mark.parametrize("center", [(0, 0), (70, -40)])
def test_every_point_is_drawn_at_its_position_in_its_colour(projection, center):
    ax = plot.map(Y, DIGIT, projection=projection, center=center, extent="world")
    P, rgba = drawn(ax)
    expected = project(Y, projection, center=center)
    if projection == "mercator":
        expected[:, 1] = np.clip(expected[:, 1], -np.pi, np.pi)
    rows = rows_of(P, expected)
    assert sorted(rows) == list(range(len(Y)))
    colors = np.array([to_rgba(color)[:3] for color in categorical(10)])
    np.testing.assert_allclose(rgba[:, :3], colors[DIGIT[rows]])
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    assert (low < P).all()
    assert (high > P).all()


def test_numbers_follow_the_color_map():
    values = np.linspace(-1, 3, len(Y))
    P, rgba = drawn(plot.map(Y, values, projection="lambert", center=(0, 0), palette="cividis"))
    rows = rows_of(P, project(Y, "lambert"))
    expected = matplotlib.colormaps["cividis"]((values[rows] + 1) / 4)
    np.testing.assert_allclose(rgba[:, :3], expected[:, :3])


def test_drawing_order_is_random_and_deterministic():
    sorted_classes = np.sort(DIGIT)
    first, second = (
        drawn(plot.map(Y, sorted_classes, projection="lambert", center=(0, 0)))[0] for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    rows = rows_of(first, project(Y, "lambert"))
    # The last tenth drawn has all ten classes, not only the last.
    assert len(set(sorted_classes[rows[-60:]])) == 10


def test_style_by_hand():
    # 1000 points that share 40,000 points squared: half of it, over 1000, is 20.
    assert _marks.marker_style(1000, 40_000) == (20.0, 0.9)
    assert _marks.marker_style(100, 40_000)[0] == 36
    size, alpha = _marks.marker_style(1_000_000, 40_000)
    assert size == 0.25
    np.testing.assert_allclose(alpha, 0.9 * 0.08**0.4)
    alphas = [_marks.marker_style(10**k, 40_000)[1] for k in range(2, 9)]
    assert alphas == sorted(alphas, reverse=True)
    assert alphas[-1] == 0.1


def test_cover_is_the_area_covered_by_points():
    low, high = np.zeros(2), np.array([2.0, 1.0])
    whole = _window.Window(low, high, False, low, high)
    rng = np.random.default_rng(0)
    even = rng.uniform(size=(20_000, 2)) * [2, 1]
    np.testing.assert_allclose(whole.cover(even), 1, rtol=0.02)
    eighth = even * [0.25, 0.5] + [0.5, 0.25]
    np.testing.assert_allclose(whole.cover(eighth), 1 / 8, rtol=0.02)
    stray = np.concatenate([eighth, rng.uniform(size=(100, 2)) * [2, 1]])
    np.testing.assert_allclose(whole.cover(stray), 1 / 8, rtol=0.03)
    assert whole.cover(even[:1]) == 1
    np.testing.assert_allclose(whole.cover(np.zeros((5, 2))), 1 / 24**2)


def test_points_are_smaller_on_crowded_maps():
    crowd = at(*(np.random.default_rng(0).normal(0, 5, size=(2, 6000))))
    sizes = [
        plot.map(crowd, extent=extent).collections[0].get_sizes()[0] for extent in _window.EXTENTS
    ]
    assert sizes[0] > 1.3 * sizes[1]
    few = plot.map(crowd[:500], extent="world").collections[0]
    assert few.get_sizes()[0] == 4  # two points across


def test_size_and_alpha_are_used():
    ax = plot.map(Y, size=5, alpha=0.5, projection="lambert")
    assert ax.collections[0].get_sizes().tolist() == [5]
    assert (ax.collections[0].get_facecolor()[:, 3] == 0.5).all()


def test_many_points_are_rasterized():
    few, many = fibonacci_grid(20_000, np), fibonacci_grid(20_001, np)
    assert not plot.map(few).collections[0].get_rasterized()
    assert plot.map(many).collections[0].get_rasterized()


def test_points_beyond_mercator_are_marked_and_counted():
    poles = np.concatenate([Y[:50], [[0, 0, 1], [0, 0, -1]], at(30, 86), at(30, 85)])
    ax = plot.map(poles, center=(0, 0))
    inside, north, south = ax.collections
    beyond = np.abs(np.rad2deg(np.arcsin(poles[:, 2]))) > 85.0511
    assert beyond[-4:].tolist() == [True, True, True, False]
    assert len(inside.get_offsets()) == (~beyond).sum()
    np.testing.assert_allclose(north.get_offsets()[:, 1], np.pi)
    np.testing.assert_allclose(south.get_offsets()[:, 1], -np.pi)
    assert len(north.get_offsets()) + len(south.get_offsets()) == beyond.sum()
    assert np.isclose(north.get_offsets()[:, 0], np.deg2rad(30)).any()
    assert f"{beyond.sum()} of 54 points are beyond 85.05°" in ax.get_xlabel().replace("\n", " ")


def scattered(n, *far):
    """n points around (0, 0) within 20 degrees, and some more, by longitude and latitude."""
    rng = np.random.default_rng(0)
    return np.concatenate([at(*rng.uniform(-20, 20, size=(2, n))), *(at(*place) for place in far)])


def test_a_few_far_points_are_marked_at_the_edge_of_the_window():
    far = [(120, 0), (-130, 5), (10, 70), (0, -75)]
    ax = plot.map(scattered(2000, *far), center=(0, 0))
    inside, *triangles = ax.collections
    assert len(inside.get_offsets()) == 2000
    (right,), (left,), (up,), (down,) = (t.get_offsets() for t in triangles)
    (u0, u1), (v0, v1) = ax.get_xlim(), ax.get_ylim()
    assert np.deg2rad(20) < u1 < np.deg2rad(45)
    assert u0 < left[0] < inside.get_offsets()[:, 0].min()
    assert inside.get_offsets()[:, 0].max() < right[0] < u1
    assert v0 < down[1] < -np.deg2rad(19)
    assert np.deg2rad(19) < up[1] < v1
    np.testing.assert_allclose(
        [left[1], up[0]], [np.arcsinh(np.tan(np.deg2rad(5))), np.deg2rad(10)]
    )
    note = ax.get_xlabel().replace("\n", " ")
    assert (
        "4 of 2,004 points are farther off, at the edge (triangles); extent=1.0 shows all." in note
    )


def test_clusters_of_far_points_are_inside_the_window():
    """Ten of a thousand points are kept if they are close together, but not if they are scattered."""
    crowd = np.random.default_rng(0).uniform(-0.1, 0.1, size=(1000, 2))
    together = [0.02, 0.2] + np.random.default_rng(1).normal(size=(10, 2)) * 0.001
    too_far = together + np.array([0, 1])
    apart = [0.02, 0.2] + np.random.default_rng(1).uniform(-0.03, 0.03, size=(10, 2)) * [20, 1]

    def outside(far):
        P = np.concatenate([crowd, far])
        shown = _window.choose_window("mercator", P)
        assert (shown.filled(P) >= 0.39).all()
        return shown.beyond(P).sum()

    assert outside(together[:5]) == outside(together) == 0
    assert outside(together[:4]) == 4
    assert outside(too_far) == 10
    assert outside(apart) > 0


def test_many_or_less_distant_far_points_are_inside_the_window():
    many = [(120, k) for k in range(22)]
    near = [(22, 0), (-22, 5), (0, 22)]
    for far in (many, near):
        ax = plot.map(scattered(2000, *far), center=(0, 0))
        (inside,) = ax.collections
        assert len(inside.get_offsets()) == 2000 + len(far)
        assert ax.get_xlabel() == ""


@pytest.mark.parametrize(("height", "is_shown"), [(28.5, True), (36, False)])
def test_the_window_is_slightly_enlarged_if_that_shows_all_points(height, is_shown):
    Z = scattered(2000, (0, height))
    ax = plot.map(Z, center=(0, 0))
    P = project(Z, center=(0, 0))
    low, high = np.quantile(P, [0.01, 0.99], axis=0)
    filled = (high - low) / [np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())]
    assert (filled >= (0.7 if is_shown else 0.8) - 1e-9).all()
    assert len(ax.collections) == (1 if is_shown else 2)
    assert bool(ax.get_xlabel()) != is_shown


def test_triangles_at_the_edge_look_like_points():
    Z = scattered(2000, (120, 0), (0, -75))
    for size in (None, 30):
        inside, *triangles = plot.map(Z, center=(0, 0), size=size).collections
        assert len(triangles) == 2
        for triangle in triangles:
            assert triangle.get_sizes()[0] <= max(1.5 * inside.get_sizes()[0], 8)
            assert triangle.get_linewidths()[0] == inside.get_linewidths()[0]


def test_a_fraction_crops_to_that_fraction_of_points():
    straggling = [(60 + 0.2 * k, 0.1 * k) for k in range(150)]
    Y = scattered(1850, *straggling)
    ax = plot.map(Y, center=(0, 0), extent=0.8)
    (inside,) = ax.collections
    u = project(Y, center=(0, 0))[:, 0]
    west, east = np.quantile(u, [0.1, 0.9])
    assert ax.get_xlim()[0] < west < east < ax.get_xlim()[1] < np.deg2rad(50)
    left_out = 2000 - len(inside.get_offsets())
    assert 400 <= left_out <= 800
    note = ax.get_xlabel().replace("\n", " ")
    assert f"{left_out} of 2,000 points are farther off; extent=1.0 shows all." in note
    assert len(plot.map(Y, center=(0, 0), extent=1.0).collections[0].get_offsets()) == 2000


def test_the_world_and_maps_of_few_points_include_far_points():
    for Y, extent in ((scattered(90, (120, 0)), "data"), (scattered(2000, (120, 0)), "world")):
        assert len(plot.map(Y, center=(0, 0), extent=extent).collections) == 1


def test_world_of_mercator_extends_to_the_farthest_point():
    ax = plot.map(np.concatenate([at(0, 70), at(10, -10)]), center=(0, 0), extent="world")
    bottom, top = ax.get_ylim()
    np.testing.assert_allclose(top, np.arcsinh(np.tan(np.deg2rad(70))) + 0.06)
    np.testing.assert_allclose(bottom, -np.arcsinh(1) - 0.06)
    np.testing.assert_allclose(ax.get_xlim(), [-np.pi - 0.06, np.pi + 0.06])
    assert ax.get_xlabel() == ""


def test_mercator_shows_its_stretch():
    ax = plot.map(at([0, 0], [80, -80]), center=(0, 0))
    (right,) = ax.child_axes
    ticks = {
        label.get_text(): abs(where)
        for label, where in zip(right.get_yticklabels(), right.get_yticks(), strict=True)
    }
    # A stretch of 2 is at 60 degrees, which is drawn at ln(2 + sqrt 3).
    np.testing.assert_allclose(ticks["\N{MULTIPLICATION SIGN}2"], np.log(2 + np.sqrt(3)))
    assert ticks["\N{MULTIPLICATION SIGN}1"] == 0
    assert "\N{MULTIPLICATION SIGN}10" not in ticks  # beyond 80 degrees, where it is 5.8


def test_stretch_scale_is_finer_near_the_equator():
    (right,) = plot.map(at([-20, 20], [20, -20]), center=(0, 0)).child_axes
    names = {label.get_text() for label in right.get_yticklabels()}
    assert names == {f"\N{MULTIPLICATION SIGN}{factor}" for factor in (1, 1.02, 1.05)}


def test_flat_maps_and_maps_side_by_side_have_no_stretch_scale():
    low, high = at([-10, 10], [10, -10]), at([-10, 10], [64, 67])
    assert plot.map(low, center=(0, 0)).child_axes == []
    assert len(plot.map(high, center=(0, 0)).child_axes) == 1
    assert len(plot.compare({"a": high}, center=(0, 0))[0].child_axes) == 1
    for ax in plot.compare({"a": high, "b": high}, center=(0, 0)):
        assert ax.child_axes == []


def test_globe_dims_and_counts_the_far_side():
    ax = plot.globe(Y, DIGIT, center=(20, 10))
    P, rgba = drawn(ax)
    far = far_side(Y, center=(20, 10))
    assert f"{far.sum()} of 600 points are on the far side" in ax.get_xlabel().replace("\n", " ")
    # The far side is drawn first, below the near side.
    faint = rgba[:, 3] < 0.5 * rgba[:, 3].max()
    assert faint.tolist() == [True] * far.sum() + [False] * (~far).sum()
    expected = project(Y, "orthographic", center=(20, 10))
    assert sorted(rows_of(P[faint], expected)) == np.flatnonzero(far).tolist()


# --- chart ---------------------------------------------------------------------------------


def test_crossings_by_hand():
    x = np.linspace(0, 4, 41)
    where, levels = _chart.crossings(x, (x - 2) ** 2, np.array([1, 4, 9]))
    np.testing.assert_allclose(where, [1, 3, 0, 4], atol=1e-9)
    assert levels == [1, 1, 4, 4]


@pytest.mark.parametrize("projection", NAMES)
def test_graticule_has_no_line_across_the_map(projection):
    for center in [(0, 0), (50, 35), (10, 90)]:
        shown = _window.choose_window(projection, np.zeros((1, 2)), "world")
        steps = np.diff(_chart.graticule(projection, center, shown), axis=0)
        length = np.linalg.norm(steps, axis=1)
        assert np.isnan(length).any()
        assert np.nanmax(length) < 1


def ticks(axis):
    labels = [label.get_text() for label in axis.get_ticklabels()]
    return dict(zip(labels, axis.get_ticklocs(), strict=True))


def test_edge_labels_show_latitude_and_longitude():
    ax = plot.map(at([0, 0], [70, -70]), center=(40, 0), extent="world")
    longitudes = ticks(ax.xaxis)
    assert list(longitudes) == ["120°W", "60°W", "0°", "60°E", "120°E", "180°"]
    np.testing.assert_allclose(longitudes["0°"], np.deg2rad(-40), atol=1e-6)
    np.testing.assert_allclose(ticks(ax.yaxis)["60°S"], -np.log(2 + np.sqrt(3)), atol=1e-6)


@pytest.mark.parametrize(
    ("radius", "step"), [(60, 30), (45, 15), (30, 10), (17, 5), (7, 2), (3.5, 1)]
)
def test_edge_labels_are_finer_in_a_smaller_window(radius, step):
    ax = plot.map(at([-radius, radius, 0, 0], [0, 0, radius, -radius]), center=(0, 0))
    longitudes = ticks(ax.xaxis)
    assert {"0°", f"{step}°E", f"{step}°W"} <= set(longitudes)
    np.testing.assert_allclose(longitudes[f"{step}°E"], np.deg2rad(step), atol=1e-6)
    np.testing.assert_allclose(np.diff(sorted(longitudes.values())), np.deg2rad(step), atol=1e-6)
    assert {"0°", f"{step}°N", f"{step}°S"} <= set(ticks(ax.yaxis))


@pytest.mark.parametrize("radius", [0.6, 0.03, 4e-5])
@pytest.mark.parametrize("projection", ["mercator", "lambert", "equal_earth", "orthographic"])
def test_small_maps_fill_their_frame(projection, radius):
    middle = np.array([[130.04], [23.456]])
    tiny = at(*(middle + radius * np.random.default_rng(0).uniform(-1, 1, size=(2, 1000))))
    ax = plot.map(tiny, projection=projection, extent="data")
    P, _ = drawn(ax)
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    assert (np.ptp(P, axis=0) >= 0.8 * (high - low)).all()
    np.testing.assert_allclose(P.min(axis=0) - low, high - P.max(axis=0), rtol=0.02)
    for axis in (ax.xaxis, ax.yaxis):
        assert 2 <= len(ticks(axis)) == len(axis.get_ticklocs()) <= 12  # all different
    lines = ax.lines[0].get_xydata()
    assert ((lines > low) & (lines < high)).all(axis=1).sum() > 300


def test_small_maps_at_a_pole_have_few_lines():
    pole = normalize([0, 0, 1] + 1e-5 * np.random.default_rng(0).normal(size=(500, 3)))
    ax = plot.map(pole, projection="lambert", center=(0, 90))
    ax.figure.canvas.draw()
    assert np.ptp(ax.get_xlim()) < 1e-4
    assert len(ax.lines[0].get_xydata()) < 100_000


def test_edge_labels_of_a_window_of_a_disc():
    ax = plot.map(at([-30, 30, 0, 0], [0, 0, 30, -30]), projection="lambert", center=(0, 0))
    # The equator is a straight line through the middle; so is the meridian of the centre.
    assert ticks(ax.yaxis)["0°"] == pytest.approx(0, abs=1e-6)
    assert ticks(ax.xaxis)["0°"] == pytest.approx(0, abs=1e-6)
    where = ticks(ax.xaxis)["10°E"]
    (place,) = _chart.inverse([[where, ax.get_ylim()[0]]], "lambert")
    np.testing.assert_allclose(np.arctan2(place[1], place[0]), np.deg2rad(10), atol=1e-6)


# --- extent --------------------------------------------------------------------------------


@pytest.mark.parametrize("projection", NAMES)
def test_the_window_contains_all_points_with_little_margin(projection):
    rng = np.random.default_rng(0)
    cap = at(rng.normal(12, 8, 300), rng.normal(-5, 8, 300))
    ax = plot.map(cap, projection=projection, extent="data")
    P, _ = drawn(ax)
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    side = np.ptp(P, axis=0)
    assert (P.min(axis=0) - low >= 0.029 * side).all()
    assert (high - P.max(axis=0) >= 0.029 * side).all()
    assert (high - low <= 1.07 * side).all()
    lines = ax.lines[0].get_xydata()
    inside = ((lines > low) & (lines < high)).all(axis=1)
    assert inside.sum() > 300  # there are lines to check
    everything = plot.map(cap, projection=projection, extent="world")
    assert np.ptp(everything.get_xlim()) > 2 * np.ptp(ax.get_xlim())


@pytest.mark.parametrize("projection", NAMES)
def test_points_all_over_the_sphere_show_the_whole_sphere(projection):
    data, world = (
        plot.map(fibonacci_grid(500, np), projection=projection, extent=extent)
        for extent in _window.EXTENTS
    )
    np.testing.assert_allclose(data.get_xlim(), world.get_xlim(), rtol=0.05)
    if projection != "mercator":  # whose poles are far away
        assert data.get_ylim() == world.get_ylim()


@pytest.mark.parametrize("projection", NAMES)
@pytest.mark.parametrize("tails", [2.0, 3.0, 30.0])
def test_the_window_crops_to_most_points_and_marks_others_at_the_edge(projection, tails):
    rng = np.random.default_rng(0)
    places = rng.standard_t(tails, size=(2, 3000)) * [[9], [4]]
    cloud = at(places[0], np.clip(places[1], -89, 89))
    ax = plot.map(cloud, projection=projection, center=(0, 0), extent="data")
    P = project(cloud, projection, center=(0, 0))
    size = np.array([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())])
    low, high = np.quantile(P, [0.01, 0.99], axis=0)
    assert (high - low >= 0.8 * size - 1e-9).all()
    inside, *triangles = ax.collections
    n_marked = sum(len(t.get_offsets()) for t in triangles)
    assert len(inside.get_offsets()) + n_marked == 3000
    assert n_marked <= 0.04 * 3000
    if n_marked:
        assert f"{n_marked:,} of 3,000 points are farther off" in ax.get_xlabel().replace("\n", " ")
    corners = np.array([ax.get_xlim(), ax.get_ylim()]).T
    for some in ax.collections:
        assert ((some.get_offsets() > corners[0]) & (some.get_offsets() < corners[1])).all()


def test_the_aspect_ratio_of_the_window_is_bounded():
    row = plot.map(at(np.linspace(-40, 40, 50), np.zeros(50)), center=(0, 0))
    assert np.ptp(row.get_xlim()) / np.ptp(row.get_ylim()) == pytest.approx(4)
    column = plot.map(at(np.zeros(50), np.linspace(-40, 40, 50)), center=(0, 0))
    assert np.ptp(column.get_xlim()) / np.ptp(column.get_ylim()) == pytest.approx(1 / 2)
    one = plot.map(at(20, 30), center=(0, 0))
    assert 1.9 < np.rad2deg(np.ptp(one.get_xlim())) < 2.5


def test_a_globe_is_not_cropped_by_default():
    cap = at([-10, 10, 0], [0, 5, 10])
    np.testing.assert_allclose(plot.globe(cap).get_xlim(), [-1, 1], atol=0.1)
    assert np.ptp(plot.globe(cap, extent="data").get_xlim()) < 0.5


def test_compare_and_trust_accept_extent():
    cap = at([-10, 10, 0], [0, 5, 10])
    near, _ = plot.compare({"a": cap, "b": cap[:, :2]})
    far, _ = plot.compare({"a": cap, "b": cap[:, :2]}, extent="world")
    assert np.ptp(near.get_xlim()) < 0.5
    assert np.ptp(far.get_xlim()) > 2 * np.pi
    model = SimpleNamespace(embedding_=cap, point_loss_=[0.1, 0.2, 0.3])
    assert np.ptp(plot.trust(model).get_xlim()) < 0.5
    assert np.ptp(plot.trust(model, extent="world").get_xlim()) > 2 * np.pi


def test_default_center_cuts_where_it_is_empty():
    rng = np.random.default_rng(0)

    def around(longitude):
        return at(longitude + rng.normal(0, 20, 400), rng.normal(0, 20, 400))

    assert _chart.default_center(around(0), "mercator") == (0, 0)
    longitude, latitude = _chart.default_center(around(180), "mercator")
    assert latitude == 0
    assert abs(longitude) > 150  # the middle of the gap, not its first empty meridian
    # All meridians are crowded but one, at -50 degrees, with fewer points on it than elsewhere.
    rest = np.setdiff1d(np.arange(-180, 180, 10), [-50])
    ring = at(np.concatenate([np.repeat(rest, 9), [-50] * 3]), np.zeros(9 * 35 + 3))
    assert _chart.default_center(ring, "mercator") == (130, 0)
    assert _chart.default_center(around(100), "lambert") == (100, 0)
    assert _chart.default_center(fibonacci_grid(5000, np), "mollweide") == (0, 0)


# --- legend --------------------------------------------------------------------------------


def assert_beside(ax, artist):
    figure = ax.figure
    figure.canvas.draw()
    box = artist.get_window_extent()
    assert box.x0 > ax.bbox.x1
    assert box.x1 <= figure.bbox.x1
    assert box.y0 >= 0
    for child in ax.child_axes:
        if child is not artist:
            assert box.x0 >= child.get_tightbbox().x1 - 1


@pytest.mark.parametrize("layout", ["new", "none", "constrained"])
@pytest.mark.parametrize("projection", ["mercator", "mollweide", "orthographic"])
def test_legend_covers_nothing(projection, layout):
    ax = None if layout == "new" else plt.subplots(layout=layout)[1]
    ax = plot.map(Y, NAMED, projection=projection, ax=ax)
    assert legend_names(ax) == [f"digit {k}" for k in range(10)]
    assert_beside(ax, ax.get_legend())
    ax = None if layout == "new" else plt.subplots(layout=layout)[1]
    ax = plot.map(Y, Y[:, 0], projection=projection, ax=ax)
    assert_beside(ax, ax.child_axes[-1])


def test_maps_and_legends_share_small_figures():
    names = np.array(["CD4+/CD45RA+/CD25- Naive T", "B", "CD14+ Monocyte"])[np.arange(len(Y)) % 3]
    figure, axes = plt.subplots(2, 3, figsize=(9, 5))
    slot = axes[0, 0].bbox.width
    left, right = axes[0, 0], axes[0, 2]
    plot.map(Y, names, ax=left)
    plot.map(Y, np.where(np.arange(len(Y)) % 4, Y[:, 0], np.nan), ax=right)
    figure.canvas.draw()
    for ax in (left, right):
        assert ax.bbox.width > 0.35 * slot
    assert left.get_legend().get_window_extent().x1 < axes[0, 1].bbox.x0
    first, second, *_ = (text.get_text() for text in left.get_legend().get_texts())
    assert first == "B"
    assert second.startswith("CD4+/CD")
    assert second.endswith("…")
    (missing,) = right.get_legend().get_texts()
    assert missing.get_text().startswith("missing (")
    assert right.child_axes[-1].get_window_extent().y0 > missing.get_window_extent().y1


def test_legend_does_not_overlap_the_next_axes():
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    plot.map(Y, NAMED, ax=left)
    left.figure.canvas.draw()
    assert left.get_legend().get_window_extent().x1 <= right.bbox.x0


def test_notes_stay_within_small_figures():
    ax = plot.map(fibonacci_grid(2000, np), ax=plt.subplots(figsize=(3, 2))[1])
    ax.figure.canvas.draw()
    assert "farther off" in ax.get_xlabel().replace("\n", " ")
    assert ax.xaxis.label.get_window_extent().y0 >= 0


def test_missing_values_are_grey_in_the_legend_and_drawn_first():
    names = NAMED.astype(object)
    names[::3] = None
    for color in (names, pd.Series(names, name="digit"), np.where(DIGIT > 4, np.nan, 1.0 * DIGIT)):
        missing = pd.isna(color)
        ax = plot.map(Y, color, projection="lambert", center=(0, 0))
        P, rgba = drawn(ax)
        rows = rows_of(P, project(Y, "lambert"))
        grey = np.isclose(rgba[:, :3], to_rgba(MISSING)[:3]).all(axis=1)
        np.testing.assert_array_equal(grey, np.asarray(missing)[rows])
        assert grey[: grey.sum()].all()
        assert legend_names(ax)[-1] == f"missing ({missing.sum()})"


def test_titles_come_from_the_column():
    ax = plot.map(Y, pd.Series(NAMED, name="cell_type"))
    assert ax.get_legend().get_title().get_text() == "cell_type"
    ax = plot.map(Y, pl.Series("depth", Y[:, 0]))
    assert ax.child_axes[-1].get_ylabel() == "depth"


def test_names_are_taken_literally():
    names = np.where(Y[:, 0] > 0, "_private", r"$\frac{$")
    ax = plot.map(Y, names, labels=True)
    assert legend_names(ax) == [r"$\frac{$", "_private"]
    ax.figure.canvas.draw()


def test_long_legends_count_omitted_categories():
    names = np.array([f"group {k}" for k in np.arange(600) % 100])
    ax = plot.map(Y, names)
    n_shown = len(legend_names(ax))
    assert 40 <= n_shown <= 60
    assert legend_names(ax)[-1] == f"and {100 - n_shown + 1} more"
    ax = plt.subplots(figsize=(5, 4))[1]
    width = ax.bbox.width
    plot.map(Y, names, ax=ax)
    shown = legend_names(ax)
    assert shown[-1] == f"and {100 - len(shown) + 1} more"
    assert ax.get_legend().get_window_extent().width <= width / 2


def test_unused_categories_keep_their_colours():
    column = pd.Categorical(["b"] * 600, ["a", "b", "c"])
    ax = plot.map(Y, column)
    assert legend_names(ax) == ["b"]
    np.testing.assert_allclose(drawn(ax)[1][0, :3], to_rgba(OKABE_ITO[1])[:3])


def test_limits_are_marked_in_the_colorbar():
    ax = plot.map(Y, np.linspace(0, 10, 600), limits=(2, 20))
    scale = ax.child_axes[-1]
    assert scale.get_ylim() == (2, 20)
    assert scale._colorbar.extend == "min"
    for limits, message in [((3, 3), r"^limits .*\(3, 3\)"), (4, "^limits .*got 4")]:
        with pytest.raises(ValueError, match=message):
            plot.map(Y, Y[:, 0], limits=limits)
    with pytest.raises(ValueError, match=r"^limits .*color"):
        plot.map(Y, NAMED, limits=(0, 1))


# --- names on the map ----------------------------------------------------------------------


ROOM = np.array([[0.0, 0.0], [100.0, 100.0]])


def overlapping(centers, sizes):
    """Number of overlapping pairs of boxes."""
    gap = np.abs(centers[:, None] - centers)
    clash = (gap < (sizes[:, None] + sizes) / 2 - 1e-6).all(axis=2)
    return (clash.sum() - len(centers)) // 2


def place(anchors, sizes, points=(), owners=None):
    """Place names in ROOM; by default, the points are in no group."""
    points = np.reshape(points, (-1, 2))
    owners = np.full(len(points), -1) if owners is None else owners
    counts = _labels.PointCounts(points, owners, len(anchors), ROOM)
    return _labels.place(anchors, sizes, ROOM, counts)


def test_names_stay_if_they_cover_nothing():
    sizes = np.tile([20.0, 10.0], (3, 1))
    anchors = np.array([[15.0 + 30 * k, 50] for k in range(3)])
    np.testing.assert_array_equal(place(anchors, sizes), anchors)


def test_names_do_not_overlap_within_the_axes():
    sizes = np.tile([20.0, 10.0], (8, 1))
    moved = place(np.full((8, 2), 50.0), sizes)
    assert overlapping(moved, sizes) == 0
    assert (moved >= [10, 5]).all()
    assert (moved <= [90, 95]).all()


def test_names_avoid_crowded_areas():
    crowd = np.random.default_rng(0).normal([50, 50], 6, size=(2000, 2))
    (moved,) = place(np.array([[50.0, 50.0]]), np.array([[20.0, 10.0]]), crowd)
    hidden = (np.abs(crowd - moved) < [10, 5]).all(axis=1).mean()
    assert hidden < 0.1  # more than half at the anchor
    assert np.linalg.norm(moved - 50) < 30


def test_names_that_do_not_fit_are_omitted_and_the_first_is_kept():
    sizes = np.tile([45.0, 30.0], (12, 1))
    anchors = np.random.default_rng(0).uniform(0, 100, size=(12, 2))
    placed = place(anchors, sizes)
    kept = ~np.isnan(placed[:, 0])
    assert 2 <= kept.sum() <= 6
    assert kept[0]
    assert overlapping(placed[kept], sizes[kept]) == 0


def test_names_hide_at_most_a_third_of_any_group():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(0, 100, (2000, 2)), rng.normal(50, 2, (8, 2)), [[52, 60]]])
    owners = np.repeat([0, 1, 2], [2000, 8, 1])
    anchors, sizes = np.array([[52.0, 60], [50, 50], [52, 60]]), np.tile([20.0, 10.0], (3, 1))
    placed = place(anchors, sizes, points, owners)
    for center, size in zip(placed, sizes, strict=True):
        hidden = (np.abs(points - center) < size / 2).all(axis=1)
        assert (np.bincount(owners[hidden], minlength=3) <= [667, 2, 0]).all()
    assert np.linalg.norm(placed - anchors, axis=1).max() < 30
    nowhere = np.argwhere(np.ones((21, 21))) * 5.0  # one group for each point
    groups = np.arange(len(nowhere))
    counts = _labels.PointCounts(nowhere, groups, len(groups), ROOM)
    assert np.isnan(_labels.place(nowhere[:1], sizes[:1], ROOM, counts)).all()


def names_in_picture(ax, Y, groups):
    """For each name on the map with center (0, 0), the fractions of the groups that it hides."""
    ax.figure.canvas.draw()
    P = ax.transData.transform(project(Y, center=(0, 0)))
    hidden = {}
    for text in ax.texts:
        if text.get_text():
            box = text.get_window_extent()
            below = (np.abs(P - (box.min + box.max) / 2) < box.size / 2).all(axis=1)
            hidden[text.get_text()] = {g: below[groups == g].mean() for g in np.unique(groups)}
    return hidden


def test_names_do_not_hide_rare_groups():
    rng = np.random.default_rng(0)
    middles = np.repeat([[-15, 0], [15, 0], [0, -20]], [1000, 1000, 8], axis=0)
    spread = np.repeat([[4.0], [4.0], [0.4]], [1000, 1000, 8], axis=0)
    Z = at(*(middles + spread * rng.normal(size=(2008, 2))).T)
    groups = np.repeat(["T cells", "B cells", "rare"], [1000, 1000, 8])
    ax = plot.map(Z, groups, labels=True, center=(0, 0))
    hidden = names_in_picture(ax, Z, groups)
    assert set(hidden) == {"T cells", "B cells", "rare"}
    assert max(max(fractions.values()) for fractions in hidden.values()) <= 1 / 3


def test_names_of_rings_are_at_their_own_ring():
    turn = np.linspace(0, 2 * np.pi, 1500)
    noise = np.random.default_rng(0).normal(0, 0.3, size=(2, 1500))
    rings = [np.rad2deg([0.2 * np.cos(turn), 0.2 * np.sin(turn)]) + noise for _ in range(2)]
    Z = np.concatenate([at(*(rings[0] + [[-6], [0]])), at(*(rings[1] + [[6], [0]]))])
    groups = np.repeat(["west", "east"], 1500)
    ax = plot.map(Z, groups, labels=True, center=(0, 0))
    hidden = names_in_picture(ax, Z, groups)
    assert hidden["west"]["east"] <= hidden["west"]["west"]
    assert hidden["east"]["west"] <= hidden["east"]["east"]
    P = project(Z, center=(0, 0))
    for text in ax.texts:
        if text.get_text():  # the nearest point is one of its own
            nearest = np.argmin(np.linalg.norm(P - text.xy, axis=1))
            assert groups[nearest] == text.get_text()


def test_names_point_to_a_region_of_their_own():
    rng = np.random.default_rng(0)
    own = np.concatenate([rng.normal([30, 30], 4, (60, 2)), rng.normal([70, 70], 4, (45, 2))])
    others = rng.normal([30, 30], 4, (200, 2))  # share the larger half
    points, owners = np.concatenate([own, others]), np.repeat([0, 1], [105, 200])
    counts = _labels.PointCounts(points, owners, 2, ROOM)
    assert counts.anchor(0, own) >= 60
    assert np.linalg.norm(others[counts.anchor(1, others)] - 30) < 4
    stray = np.concatenate(
        [rng.normal([30, 30], 1, (6, 2)), [[95, 95]]]
    )  # six are among the others
    points, owners = np.concatenate([stray, others]), np.repeat([0, 1], [7, 200])
    assert _labels.PointCounts(points, owners, 2, ROOM).anchor(0, stray) < 6


def test_names_are_placed_on_the_final_axes():
    ax = plot.map(Y, NAMED, labels=True)
    placed = ax.bbox.get_points()
    ax.figure.canvas.draw()
    np.testing.assert_allclose(ax.bbox.get_points(), placed, atol=1.5)  # pixels


def test_the_note_counts_names_that_are_not_written():
    rng = np.random.default_rng(0)
    many = np.array([f"a rather long name of group {k}" for k in range(60)])
    groups = many[np.concatenate([np.arange(60), rng.integers(0, 20, 540)])]
    ax = plot.map(Y, groups, labels=True, legend=False, ax=plt.subplots(figsize=(4, 3))[1])
    ax.figure.canvas.draw()
    texts = [text for text in ax.texts if text.get_text()]
    note = ax.get_xlabel().replace("\n", " ")
    assert f"{60 - len(texts)} of 60 names are left out for lack of space." in note
    sizes = {name: (groups == name).sum() for name in many}
    written = [sizes[text.get_text()] for text in texts]
    assert np.mean(written) > np.mean([*sizes.values()])  # the smallest groups give way
    boxes = [text.get_window_extent() for text in texts]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])


def test_moved_names_have_a_leader_line():
    dense = normalize(np.random.default_rng(0).normal([1, 0, 0], 0.003, size=(3000, 3)))
    names = [f"name {k % 8}" for k in range(3000)]
    frame = at([-20, 20], [-20, 20])
    ax = plot.map(np.concatenate([dense, frame]), [*names, None, None], labels=True, extent=1.0)
    lines = [text for text in ax.texts if text.arrow_patch is not None]
    assert 3 <= len(lines) <= 8
    assert {tuple(line.xy) for line in lines} <= {tuple(t.xy) for t in ax.texts if t.get_text()}


@pytest.mark.parametrize("projection", NAMES)
def test_labels_do_not_overlap(projection):
    ax = plot.map(Y, DIGIT, labels=NAMED, projection=projection)
    ax.figure.canvas.draw()
    texts = [text for text in ax.texts if text.get_text().startswith("digit")]
    assert sorted(text.get_text() for text in texts) == sorted(set(NAMED))
    boxes = [text.get_window_extent() for text in texts]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])


def test_labels_are_at_the_middle_of_their_points():
    Z = np.concatenate([at([-60, -50, -40], [10, 10, 10]), at([60, 61, 62], [-30, -30, -30])])
    ax = plot.map(Z, list("aaabbb"), labels=True, center=(0, 0))
    where = {text.get_text(): text.xy for text in ax.texts}
    np.testing.assert_allclose(where["a"], project(at(-50, 10))[0], atol=0.02)
    np.testing.assert_allclose(where["b"], project(at(61, -30))[0], atol=0.02)


def test_bad_labels_are_refused():
    with pytest.raises(ValueError, match=r"^labels=True .*color"):
        plot.map(Y, labels=True)
    with pytest.raises(ValueError, match=r"^labels .*600"):
        plot.map(Y, labels=["a"])
    with pytest.raises(ValueError, match=r"^labels .*numbers"):
        plot.map(Y, labels=Y[:, 0])


def test_high_values_are_opaque_and_drawn_on_top():
    value = np.random.default_rng(0).permutation(600).astype(float)
    value[:5] = np.nan
    P, rgba = drawn(plot.map(Y, value, extent="world", center=(0, 0)))
    rows = rows_of(P, np.clip(project(Y), -np.pi, np.pi))
    assert np.isnan(value[rows[:5]]).all()
    assert (np.diff(value[rows[5:595]]) > 0).mean() > 0.98  # points beyond the edge are drawn last
    assert (rgba[:, 3] == 1).all()
    shuffled, _ = drawn(plot.map(Y, value, extent="world", center=(0, 0), sort_order=False))
    assert not np.array_equal(P, shuffled)


def dates(kind):
    days = np.datetime64("2024-01-01") + np.arange(600)
    missing = days.copy()
    missing[:7] = np.datetime64("NaT")
    return {
        "numpy": days,
        "missing": missing,
        "pandas": pd.Series(missing),
        "zoned": pd.Series(pd.to_datetime(days)).dt.tz_localize("Europe/Madrid"),
        "polars": pl.Series(days),
        "objects": np.array(days.tolist(), dtype=object),
        "times": [*pd.to_datetime(days[:599]), None],
    }[kind]


@pytest.mark.parametrize(
    "kind", ["numpy", "missing", "pandas", "zoned", "polars", "objects", "times"]
)
def test_dates_have_a_scale_of_dates(kind):
    ax = plot.map(Y, dates(kind))
    ax.figure.canvas.draw()
    bar = ax.child_axes[-1]
    ticks = [text.get_text() for text in bar.get_yticklabels()]
    assert any(tick in ("2024", "2025", "Jul", "Jan") for tick in ticks)
    low, high = (matplotlib.dates.num2date(end) for end in bar.get_ylim())
    assert (low.year, high.year) in ((2024, 2025), (2023, 2025))  # midnight in Madrid is in 2023
    n_missing = {"missing": 7, "pandas": 7, "times": 1}.get(kind, 0)
    assert (legend_names(ax) if n_missing else []) == [f"missing ({n_missing})"][: n_missing > 0]


def test_limits_of_dates_are_dates():
    first, last = np.datetime64("2024-03-01"), np.datetime64("2024-04-01")
    ax = plot.map(Y, dates("numpy"), limits=(first, last))
    ends = [matplotlib.dates.num2date(end).date() for end in ax.child_axes[-1].get_ylim()]
    assert ends == [first.item(), last.item()]


def test_durations_are_numbers_of_days():
    shades = read_column(np.arange(600) * np.timedelta64(12, "h"), 600)
    np.testing.assert_allclose(shades.values, np.arange(600) / 2)
    assert shades.title == "time (days)"


def test_object_arrays_are_read_by_their_values():
    from decimal import Decimal
    from enum import Enum

    Kind = Enum("Kind", ["A", "B"])
    numbers = read_column(np.array([Decimal("1.5"), 2, None, np.float32(3)], dtype=object), 4)
    np.testing.assert_array_equal(numbers.values, [1.5, 2, np.nan, 3])
    for values, names in (
        (np.array(["b", 1, None, True], dtype=object), ["1", "True", "b"]),
        (np.array([Kind.A, Kind.B, Kind.A, None], dtype=object), ["Kind.A", "Kind.B"]),
        (
            pd.Series(pd.period_range("2024-01", periods=4, freq="M")),
            [f"2024-0{k}" for k in range(1, 5)],
        ),
    ):
        assert read_column(values, 4).names == names
    nested = np.empty(2, dtype=object)
    nested[:] = [[1], [2]]
    with pytest.raises(ValueError, match=r"^color .*list"):
        plot.map(Y[:2], nested)


def test_a_fitted_model_is_drawn_by_its_embedding():
    model = SimpleNamespace(embedding_=Y)
    for draw in (plot.map, plot.globe):
        expected, _ = drawn(draw(Y, DIGIT))
        np.testing.assert_array_equal(drawn(draw(model, DIGIT))[0], expected)
    assert len(plot.compare({"model": model, "array": Y})) == 2
    with pytest.raises(ValueError, match=r"^Y .*embedding_"):
        plot.map(Mercat())


@pytest.mark.parametrize("tall", [1.0, 0.2])
@pytest.mark.parametrize(("n_names", "length"), [(12, 60), (60, 40), (200, 25), (3, 8)])
def test_legends_take_less_than_a_quarter_of_the_picture(n_names, length, tall):
    flat = normalize(Y * [1, 1, tall])
    names = np.array([f"{k:03} " + length * "n" for k in range(n_names)])[np.arange(600) % n_names]
    ax = plot.map(flat, names)
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    whole = ax.figure.get_tightbbox().size * ax.figure.dpi
    assert box.width < 0.25 * whole[0]
    assert box.width * box.height < 0.25 * whole.prod()


# --- trust, compare ------------------------------------------------------------------------


def with_error_bars(n=300):
    """A map with equal error bars, except for one point with an alternative position."""
    places = fibonacci_grid(n, np)
    U, V = tangent_frame(places)
    alternative = np.full((n, 3), np.nan)
    alternative[7] = places[20]
    bars = Uncertainty(
        places=places,
        axes=np.stack([0.1 * U, 0.05 * V], axis=1),
        alternative=alternative,
        alternative_gap=np.full(n, np.nan),
        alternative_wins=np.full(n, np.nan),
        torn=np.linspace(0, 1, n),
        p_value=np.linspace(0.01, 1, n),
        stability=0.9,
        stability_by_chance=0.3,
        n_maps=20,
        n_comparisons=20,
        sizes=np.full(20, 1.0),
    )
    return SimpleNamespace(embedding_=places, point_loss_=np.linspace(0.1, 0.2, n)), bars


def test_trust_says_what_is_drawn():
    model, bars = with_error_bars()
    note = plot.trust(model, bars).get_xlabel()
    assert note.endswith("Ellipses: 90% regions; haze: 45% regions")  # none with an alternative
    note = plot.trust(model, bars, rows=[7], level=0.5).get_xlabel()
    assert note.endswith("Ellipses: 50% regions; haze: 25% regions; dashed: alternative positions")
    assert "regions" not in plot.trust(model).get_xlabel()


def test_colours_of_trust_leave_outliers_out():
    values = np.linspace(1, 2, 100)
    assert _trust.limits_of(values) is None
    values[7] = 50
    lowest, most = _trust.limits_of(values)
    assert lowest == 1
    assert most == pytest.approx(2, abs=0.05)
    assert _trust.limits_of(np.full(5, np.nan)) is None
    assert _trust.limits_of(-values) is None


def collections(ax, kind):
    return [c for c in ax.collections if isinstance(c, kind)]


@pytest.mark.parametrize("projection", NAMES)
def test_trust_draws_ellipses_of_few_points_and_haze_for_many(projection):
    model, bars = with_error_bars(40)
    few = SimpleNamespace(embedding_=model.embedding_, point_loss_=model.point_loss_)
    ax = plot.trust(few, bars, projection=projection, extent="world")
    assert not collections(ax, PolyCollection)
    outlines = collections(ax, LineCollection)
    drawn = sum(len(c.get_paths()) for c in outlines)
    far = 0.3 if projection == "orthographic" else 0.9
    assert drawn >= far * 40
    many, bars = with_error_bars(150)
    ax = plot.trust(many, bars, projection=projection)
    assert len(collections(ax, PolyCollection)) == 1
    outlines, *_ = collections(ax, LineCollection)
    assert len(outlines.get_paths()) <= 40


def test_outlines_match_the_regions_and_never_cross_the_map():
    model, bars = with_error_bars(60)
    ax = plot.trust(model, bars, rows=[5], extent="world", center=(0, 0), level=0.5)
    (line,) = collections(ax, LineCollection)
    (path,) = line.get_paths()
    outline = bars.ellipses(0.5, rows=[5])[0]
    expected = project(np.vstack([outline, outline[:1]]), "mercator", center=(0, 0))
    np.testing.assert_allclose(path.vertices, expected)
    ax = plot.trust(model, bars, extent="world", center=(0, 0))
    for line in collections(ax, LineCollection):
        for path in line.get_paths():
            assert np.abs(np.diff(path.vertices[:, 0])).max() < 3


def test_a_dashed_line_leads_to_the_alternative_position():
    model, bars = with_error_bars(60)
    ax = plot.trust(model, bars, rows=[7], projection="lambert", center=(0, 0), extent="world")
    _, way = collections(ax, LineCollection)
    ends = np.concatenate([path.vertices for path in way.get_paths()])[[0, -1]]
    expected = project(model.embedding_[[7, 20]], "lambert", center=(0, 0))
    np.testing.assert_allclose(ends, expected, atol=1e-9)
    assert len(collections(plot.trust(model, bars, rows=[8]), LineCollection)) == 1
    assert not collections(plot.trust(model, bars, rows=[]), LineCollection)


def test_trust_is_coloured_by_any_attribute():
    model, bars = with_error_bars(40)
    for by, values in {
        "loss": model.point_loss_,
        "torn": bars.torn,
        "p_value": bars.p_value,
        tuple(bars.torn**2): bars.torn**2,
    }.items():
        ax = plot.trust(model, bars, by=by, rows=[], projection="lambert", center=(0, 0))
        P, rgba = drawn(ax)
        rows = rows_of(P, project(model.embedding_, "lambert"))
        scaled = (values - values.min()) / np.ptp(values)
        expected = matplotlib.colormaps["viridis_r"](scaled[rows])
        np.testing.assert_allclose(rgba[:, :3], expected[:, :3], atol=0.02)
    assert "spread" in plot.trust(model, bars).child_axes[-1].get_ylabel()
    with pytest.raises(ValueError, match=r"^by='torn' .*uncertainty"):
        plot.trust(model, by="torn")
    with pytest.raises(ValueError, match="by"):
        plot.trust(model, bars, by="angle")
    with pytest.raises(ValueError, match=r"^uncertainty .*39.*40"):
        plot.trust(SimpleNamespace(embedding_=model.embedding_[:39], point_loss_=np.ones(39)), bars)
    for rows in ([40], [-1], [0.5], [[1]]):
        with pytest.raises(ValueError, match="rows"):
            plot.trust(model, bars, rows=rows)
    with pytest.raises(TypeError, match=r"^uncertainty must be what .*, got int\."):
        plot.trust(model, 3)
    turned = SimpleNamespace(embedding_=model.embedding_[:, [1, 2, 0]], point_loss_=np.ones(40))
    with pytest.raises(ValueError, match="uncertainty must belong to the same map"):
        plot.trust(turned, bars)
    with pytest.raises(ValueError, match=r"^by must be one of 'loss', .* or numbers, got \['a'"):
        plot.trust(model, bars, by=["a"] * 40)


def test_trust_colours_points_by_their_loss():
    model = SimpleNamespace(embedding_=Y, point_loss_=np.linspace(0, 1, 600))
    ax = plot.trust(model, projection="lambert", center=(0, 0))
    P, rgba = drawn(ax)
    rows = rows_of(P, project(Y, "lambert"))
    expected = matplotlib.colormaps["viridis_r"](model.point_loss_[rows])
    np.testing.assert_allclose(rgba[:, :3], expected[:, :3])
    assert "angle loss" in ax.child_axes[-1].get_ylabel()
    with pytest.raises(ValueError, match="embedding_ and point_loss_"):
        plot.trust(SimpleNamespace())
    model.point_loss_ = [1.0]
    with pytest.raises(ValueError, match=r"^model\.point_loss_ "):
        plot.trust(model)


def test_compare_draws_each_embedding_under_one_legend():
    flat = DIGITS.data[:600, 20:22] + 0.0
    axes = plot.compare({"globe": Y, "plane": flat, "again": Y}, NAMED, center=(0, 0))
    assert [ax.get_title() for ax in axes] == ["globe", "plane", "again"]
    P, _ = drawn(axes[1])
    np.testing.assert_array_equal(np.sort(P, axis=0), np.sort(flat, axis=0))
    np.testing.assert_allclose(
        np.sort(drawn(axes[0])[0][:, 0]), np.sort(project(Y)[:, 0]), atol=1e-12
    )
    figure = axes[0].figure
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == sorted(set(NAMED))
    figure.canvas.draw()
    for ax in axes:
        assert ax.get_legend() is None
        assert ax.get_tightbbox().x1 < legend.get_window_extent().x0


def test_compare_on_given_axes_and_with_numbers():
    _, given = plt.subplots(2, 1, layout="constrained")
    axes = plot.compare({"a": Y, "b": Y[:, :2]}, Y[:, 0], axes=given, labels=NAMED)
    assert list(axes) == list(given)
    assert_beside(axes[1], axes[1].child_axes[-1])
    axes = plot.compare({"a": Y, "b": Y, "c": Y, "d": Y}, Y[:, 0])
    assert len(axes[0].figure.axes) == 5  # with the colour bar


@pytest.mark.parametrize("layout", ["none", "constrained"])
def test_legend_of_a_comparison_stays_on_the_figure(layout):
    turn = np.linspace(0, 2 * np.pi, 600)
    ring = np.column_stack([np.cos(turn), np.sin(turn)])
    names = np.where(turn < 3, "left eye", "right eye")
    figure, given = plt.subplots(1, 2, figsize=(9.4, 4.2), layout=layout)
    maps = {"plane": ring, "map": _chart.inverse(0.45 * ring)}
    _, right = plot.compare(maps, names, axes=given)
    figure.canvas.draw()
    assert right.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_bad_comparisons_are_refused():
    with pytest.raises(ValueError, match=r"^embeddings .*\{'a': 600, 'b': 3"):
        plot.compare({"a": Y, "b": Y[:3]})
    with pytest.raises(ValueError, match=r"^embeddings "):
        plot.compare({})
    with pytest.raises(ValueError, match=r"^embeddings\['b'\] .*length 1"):
        plot.compare({"a": Y, "b": 2 * Y})
    with pytest.raises(ValueError, match=r"^embeddings\['a'\] "):
        plot.compare({"a": np.full((3, 2), np.nan)})
    with pytest.raises(ValueError, match=r"^axes .*2.*got 1"):
        plot.compare({"a": Y, "b": Y}, axes=[plt.subplots()[1]])


# --- manners -------------------------------------------------------------------------------


def test_draws_on_the_given_axes_and_changes_no_settings():
    before = dict(matplotlib.rcParams)
    _, (left, right) = plt.subplots(1, 2)
    plt.sca(right)
    assert plot.map(Y, NAMED, labels=True, ax=left) is left
    assert plot.globe(Y, Y[:, 0], ax=left) is left
    assert plt.gca() is right
    assert not right.has_data()
    assert len(plt.get_fignums()) == 1
    assert dict(matplotlib.rcParams) == before


def test_given_axes_do_not_need_pyplot():
    code = """
import sys
from mercat import metrics, plot
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
for layout in (None, "constrained"):
    ax = Figure(layout=layout).subplots()
    plot.map([[1, 0, 0], [0, 1, 0]], ["a", "b"], labels=True, ax=ax)
    plot.globe([[1, 0, 0], [0, 1, 0]], [0.5, None], ax=ax.figure.add_subplot(212))
    ax.figure.canvas.draw()
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"projection": "peters"},
            "^projection .*'mercator', 'lambert'.*'peters'",
        ),
        (
            {"extent": "all"},
            "^extent .*got 'all'",
        ),
        ({"extent": 0}, "^extent .*got 0"),
        ({"extent": True}, "^extent .*got True"),
        ({"center": (0, 100)}, "^center .*-90 to 90"),
        ({"size": 0}, "^size .*got 0"),
        ({"alpha": 1.5}, "^alpha .*got 1.5"),
        ({"ax": "here"}, "^ax .*got 'here'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        plot.map(Y, **options)
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (plot.map, {"cmap": "magma"}, r"^plot\.map has no parameter 'cmap'\. Use palette=\.$"),
        (plot.map, {"s": 3}, r"^plot\.map .*'s'\. Use size=\.$"),
        (plot.map, {"c": DIGIT}, r"^plot\.map .*'c'\. Use color=\.$"),
        (plot.map, {"title": "digits"}, r"^plot\.map .*'title'\. Use set_title of the axes"),
        (plot.map, {"label": True}, r"^plot\.map .*Did you mean labels=\?$"),
        (plot.map, {"xyz": True}, r"^plot\.map .*Parameters are Y, color, .*legend, ax\.$"),
        (plot.globe, {"vmin": 0}, r"^plot\.globe .*'vmin'\. Use limits="),
        (plot.globe, {"projection": "lambert"}, r"^plot\.globe has no parameter 'projection'"),
        (plot.trust, {"color": DIGIT}, r"^plot\.trust .*'color'\. Use by=, or plot\.map\.$"),
        (plot.trust, {"groups": DIGIT}, r"^plot\.trust has no parameter 'groups'"),
        (plot.compare, {"ax": None}, r"^plot\.compare .*'ax'\. Use axes=\.$"),
    ],
)
def test_unknown_keywords_are_refused_by_the_public_name(function, options, message):
    model = SimpleNamespace(embedding_=Y, point_loss_=np.ones(600))
    with pytest.raises(TypeError, match=message):
        function({"a": model} if function is plot.compare else model, **options)
    assert plt.get_fignums() == []


def test_options_are_passed_on():
    model = SimpleNamespace(embedding_=Y, point_loss_=np.ones(600))
    plot.globe(Y, DIGIT, labels=True, palette="tab10", size=3, alpha=1, legend=False)
    plot.trust(model, extent="world", labels=NAMED, size=3, alpha=1, legend=False, sort_order=False)


def test_the_step_of_a_pipeline_to_pass_is_named():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), Mercat(random_state=0)).fit(DIGITS.data[:60])
    for draw in (plot.map, plot.globe, plot.trust, lambda Y: plot.compare({"a": Y})):
        with pytest.raises(ValueError, match=r"got Pipeline without .*pipeline\['mercat'\]\.$"):
            draw(pipeline)
    plot.map(pipeline["mercat"])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.where(Y > 0.99, np.nan, Y), "^Y .*NaN"),
        (3 * Y, "^Y .*length 1"),
        (Y[:, :2], r"^Y .*\(600, 2\)"),
        (Y[:0], "^Y .*none"),
    ],
)
def test_bad_embeddings_are_refused(bad, message):
    for function in (plot.map, plot.globe):
        with pytest.raises(ValueError, match=message):
            function(bad)


def test_three_dimensional_axes_are_refused():
    ax = plt.figure().add_subplot(projection="polar")
    with pytest.raises(ValueError, match=r"^ax "):
        plot.map(Y, ax=ax)


def test_one_point_and_constant_numbers():
    plot.map([[1, 0, 0]], [2.5], labels=["only"]).figure.canvas.draw()
    plot.globe([[0, 0, -1]], [None]).figure.canvas.draw()


def test_map_and_legend_fit_in_a_subfigure():
    figure = plt.figure(figsize=(10, 4))
    _, right = figure.subfigures(1, 2)
    ax = plot.map(Y, NAMED, ax=right.subplots())
    figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x1 <= figure.bbox.x1
    assert ax.bbox.width > 100


def test_tradeoff_draws_the_measures():
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = X / np.linalg.norm(X, axis=1, keepdims=True)
    axes = plot.tradeoff(X, {0.0: Y, 0.3: X}, {"flat $": X[:, :2]}, k=5)
    kept = [float(metrics.neighborhood_preservation(X, Z, k=5)) for Z in (Y, X, X[:, :2])]
    for ax, measure in zip(
        axes, (metrics.angle_preservation, metrics.distance_preservation), strict=True
    ):
        line, point = ax.get_lines()
        np.testing.assert_allclose(line.get_xdata(), kept[:2])
        np.testing.assert_allclose(line.get_ydata(), [measure(X, Y), 1.0])
        np.testing.assert_allclose(point.get_ydata(), [measure(X, X[:, :2])])
        assert [text.get_text() for text in ax.texts] == ["0", "0.3", "flat $"]
    with pytest.raises(ValueError, match=r"^dial "):
        plot.tradeoff(X, {})
    with pytest.raises(ValueError, match=r"^axes .*2"):
        plot.tradeoff(X, {0.0: Y}, axes=[axes[0]])


def test_embeddings_to_compare_need_names():
    Y = fibonacci_grid(20, np)
    with pytest.raises(ValueError, match=r"^embeddings .*list"):
        plot.compare([Y, Y])


def test_names_with_equal_beginnings_are_shortened_in_the_middle():
    names = ["CD4+/CD45RA+ Naive", "CD4+/CD45RO+ Memory", "B", "Dendritic cells of blood"]
    assert _legend.shortened(names, 11) == [
        "CD4+/…Naive",
        "CD4+/…emory",
        "B",
        "Dendritic …",
    ]


def test_names_of_any_length_leave_room_for_the_map(monkeypatch):
    made, draw = [], _legend._draw_list
    monkeypatch.setattr(_legend, "_draw_list", lambda *args: made.append(1) or draw(*args))
    places = fibonacci_grid(60, np)
    names = np.array(["x" * 5000, "y" * 3000], dtype=object)[np.arange(60) % 2]
    ax = plot.map(places, pd.Series(names, name="kind" * 1000), labels=True)
    ax.figure.canvas.draw()
    assert len(made) < 15  # at most a few attempts, not one per letter
    assert ax.bbox.width > 0.5 * ax.figure.bbox.width
    longest = max(len(text.get_text()) for text in [*ax.texts, ax.get_legend().get_title()])
    assert longest <= 60
    bar = plot.map(places, pd.Series(places[:, 0], name="size" * 1000)).child_axes[-1]
    assert len(bar.get_ylabel()) <= 60


# --- text that cannot be written -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_lone_surrogates_in_names_are_replaced(kind, tmp_path):
    """Names from files may contain them: names stay distinct, and the figure can be saved."""
    places = fibonacci_grid(60, np)
    names = np.array(["a\ud800b", "plain", "x\udfff"], dtype=object)[np.arange(60) % 3]
    palette = {"a\ud800b": "red", "plain": "blue", "x\udfff": "green"}
    ax = plot.map(places, pd.Series(names, name="kind\udc80"), labels=True, palette=palette)
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a\ufffdb", "plain", "x\ufffd"]
    assert legend.get_title().get_text() == "kind\ufffd"
    assert {text.get_text() for text in ax.texts} >= {"a\ufffdb", "plain", "x\ufffd"}
    _, rgba = drawn(ax)
    assert {to_hex(color) for color in rgba} >= {to_hex(c) for c in palette.values()}
    axes = plot.compare({"map\ud801": places}, names)
    assert axes[0].get_title() == "map\ufffd"
    trust = SimpleNamespace(embedding_=places, point_loss_=np.ones(60))
    for made in (ax, axes[0], plot.globe(places, names), plot.trust(trust, labels=names)):
        made.figure.savefig(tmp_path / f"map.{kind}")
