"""The Python side of the viewer: contents of pages and widgets, and errors."""

from __future__ import annotations

import base64
import datetime
import html
import json
import os
import re
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from explorer_page import error_bars
from sklearn.neighbors import NearestNeighbors

from mercat import Mercat
from mercat._data.columns import ColoredColumn
from mercat._draw.colors import make_coloring
from mercat._draw.palette import MISSING, MISSING_ON_DARK, on_dark, to_rgb
from mercat._math.sphere import fibonacci_grid, geodesic
from mercat.cli._outputs import color_column
from mercat.cli._table import Table
from mercat.metrics import torn_neighbors
from mercat.projections import project
from mercat.viewer import to_html
from mercat.viewer._columns import Categories, Numbers, read_frame
from mercat.viewer._embeddings import to_octahedral
from mercat.viewer._encode import encode, pack, prepare
from mercat.viewer._home import home
from mercat.viewer._neighbors import find_torn, read_neighbors, torn_fractions

Y = fibonacci_grid(5, np)


def unpack(payload):
    """Read a payload as js/src/data/decode.js does."""
    data = zlib.decompress(payload)
    length = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8

    def read(note):
        assert note["offset"] % 8 == 0
        dtype = np.dtype(note["dtype"]).newbyteorder("<")
        return np.frombuffer(data, dtype, note["length"], start + note["offset"])

    return header, read


def unfold(codes):
    """Decode octahedral coordinates to unit vectors, independently of the encoder."""
    u, v = (codes.reshape(-1, 2) / 32767.0).T
    z = 1 - abs(u) - abs(v)
    x = np.where(z >= 0, u, (1 - abs(v)) * np.where(u < 0, -1, 1))
    y = np.where(z >= 0, v, (1 - abs(u)) * np.where(v < 0, -1, 1))
    points = np.stack([x, y, z], axis=1)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def payload_of(path):
    text = path.read_text(encoding="utf-8")
    return base64.b64decode(re.search(r'id="mercat-payload">([^<]*)<', text)[1])


# Home


def cap(longitude, latitude, radius, n=200):
    """Points around a centre, up to a radius in degrees."""
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(n)
    away = np.radians(radius) * np.sqrt((np.arange(n) + 1) / n)
    ring = np.stack([np.cos(away), *(np.sin(away) * [np.cos(angle), np.sin(angle)])], axis=1)
    lon, lat = np.radians([longitude, latitude])
    tilt = np.array([[np.cos(lat), 0, -np.sin(lat)], [0, 1, 0], [np.sin(lat), 0, np.cos(lat)]])
    turn = np.array([[np.cos(lon), -np.sin(lon), 0], [np.sin(lon), np.cos(lon), 0], [0, 0, 1]])
    return ring @ tilt.T @ turn.T


def test_home_view_faces_the_data():
    np.testing.assert_allclose(home(cap(120, -40, 20))["rotation"], np.radians([120, -40, 0]))
    assert home(cap(3, -4, 20))["rotation"] == [0, 0, 0]  # without roll, if nearly level


@pytest.mark.parametrize("projection", ["mercator", "equal_earth"])
@pytest.mark.parametrize("place", [(0, 0), (4, -3), (120, -40)])
def test_home_view_fits_all_points(projection, place):
    points = cap(*place, 25)
    start = home(points)
    zoom, *middle = start["map"][projection]
    center = np.degrees(start["rotation"][:2])
    # At a zoom of 1, half of the map's sides are visible on each side.
    reach = np.array({"mercator": [np.pi, np.pi], "equal_earth": [2.7066, 1.3174]}[projection])
    away = np.abs(project(points, projection, center=center) - middle).max(axis=0) / (reach / zoom)
    assert 0.9 < away.max() < 0.96


def test_home_view_shows_the_whole_globe():
    assert home(cap(0, 0, 10))["globe"] == [1, 0, 0]


def test_home_view_of_points_all_over_the_sphere_is_the_sphere():
    whole = {"mercator": [1, 0, 0], "equal_earth": [1, 0, 0]}
    everywhere = {"rotation": [0, 0, 0], "globe": [1, 0, 0], "map": whole}
    assert home(fibonacci_grid(500, np)) == everywhere
    assert home(cap(100, 20, 150)) == everywhere
    header, _ = unpack(encode(fibonacci_grid(500, np)))
    assert header["embeddings"][0]["home"] == everywhere


def test_home_view_of_one_point_has_a_margin():
    assert 100 < home(np.array([[1.0, 0, 0]]))["map"]["mercator"][0] < 200


# Positions


def test_octahedral_coordinates_are_accurate_to_0_004_degrees():
    points = np.concatenate([fibonacci_grid(20_000, np), np.eye(3), -np.eye(3)])
    back = unfold(to_octahedral(points))
    assert np.degrees(geodesic(points, back)).max() < 0.004


def test_payload_contains_positions_and_title():
    header, read = unpack(encode(Y, title="Été"))
    assert (header["n"], header["title"], header["columns"]) == (5, "Été", [])
    assert geodesic(unfold(read(header["embeddings"][0]["positions"])), Y).max() < 1e-4


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros((4, 4)), "Y must .*, got .*4, 4"),
        (np.zeros((0, 3)), "^Y "),
        ([[1, 0, 0], [np.nan, 0, 1]], "^Y .*1 of 2 rows.*row 1"),
        (
            [[1, 0, 0], [0, 0, 1], [0, 1.1, 0]],
            "^Y .*1 of 3 rows.*row 2.*1.1",
        ),
        (np.zeros((1, 3)), "^Y .*row 0 of length 0"),
    ],
)
def test_points_off_the_sphere_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        encode(points)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_lower_precision_unit_vectors_are_accepted(dtype):
    encode(Y.astype(dtype))


# Columns


def read_one(values, n):
    (column,) = read_frame({"c": values}, n)
    return column


@pytest.mark.parametrize(
    "values",
    [
        ["b", None, "a", "b"],
        pd.Series(["b", None, "a", "b"]),
        pd.Series(["b", None, "a", "b"], dtype=object),
        pd.Series(["b", None, "a", "b"], dtype="category"),
        pl.Series(["b", None, "a", "b"]),
        pl.Series(["b", None, "a", "b"], dtype=pl.Categorical),
        np.array(["b", float("nan"), "a", "b"], dtype=object),
        ["b", float("nan"), "a", "b"],
    ],
)
def test_text_is_encoded_and_missing_values_are_kept(values):
    column = read_one(values, 4)
    assert isinstance(column, Categories)
    assert [None if code == 0 else column.labels[code - 1] for code in column.codes] == [
        "b",
        None,
        "a",
        "b",
    ]


def test_categories_keep_their_order_and_equal_labels_are_merged():
    sizes = pd.Categorical(["S", "L"], categories=["S", "M", "L"])
    column = read_one(pd.Series(sizes), 2)
    assert column.labels == ["S", "M", "L"]
    assert column.codes.tolist() == [1, 3]
    mixed = read_one(pd.Series(pd.Categorical([1, "1"], categories=[1, "1"])), 2)
    assert (mixed.labels, mixed.codes.tolist()) == (["1"], [1, 1])


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False]),
        pd.Series([True, False]),
        pl.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
    ],
)
def test_booleans_are_categories(values):
    column = read_one(values, 2)
    assert (column.labels, column.codes.tolist()) == (["False", "True"], [2, 1])


def test_a_boolean_with_a_missing_value():
    column = read_one(pd.Series([True, None], dtype="boolean"), 2)
    assert (column.labels, column.codes.tolist()) == (["True"], [1, 0])


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5, None],
        np.array([1, 2.5, np.nan]),
        pd.Series([1, 2.5, None]),
        pl.Series([1.0, 2.5, None]),
        pd.Series([1, 2.5, None], dtype="Float64"),
    ],
)
def test_numbers_keep_missing_values_as_nan(values):
    column = read_one(values, 3)
    assert isinstance(column, Numbers)
    np.testing.assert_array_equal(column.values.astype(float), [1, 2.5, np.nan])


@pytest.mark.parametrize("values", [pd.Series([3, None], dtype="Int64"), pl.Series([3, None])])
def test_integers_with_a_missing_value_stay_numbers(values):
    np.testing.assert_array_equal(read_one(values, 2).values, [3, np.nan])


def test_an_empty_column_is_shown_as_missing():
    assert read_one([None, None], 2).codes.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (pd.Index(list("abcde")), "name"),
        (pd.Index(list("abcde"), name="x"), None),  # the name of a column
        (pd.RangeIndex(5), None),
        (pd.Index([4, 2, 3, 1, 0]), None),  # sampled rows, which have no names
        (pd.Index([4, 2, 3, 1, 0], name="id"), "id"),
        (pd.date_range("2024-01-01", periods=5, name="day"), "day"),
        (pd.MultiIndex.from_product([[1], range(5)], names=["a", "b"]), None),
    ],
)
def test_the_names_of_rows_are_a_column(index, name):
    frame = pd.DataFrame({"x": np.arange(5.0)}, index=index)
    header, _ = prepare(Y, frame)
    expected = ["x"] if name is None else [name, "x"]
    assert [column["name"] for column in header["columns"]] == expected


@pytest.mark.parametrize(
    ("values", "got"),
    [
        (np.zeros((2, 1)), r"shape \(2, 1\)"),
        ([[1], [2, 3]], "values of type list"),
        ("ab", "be a sequence, got str"),
        (7, "be a sequence, got int"),
        (["a", 1], "text and numbers together"),
        (np.array([1, 2], dtype="timedelta64[D]"), "dtype timedelta64"),
        ([datetime.date(2024, 1, 1), "b"], "dates and other values together"),
        (np.array([1j, 2j]), "dtype complex128"),
        ([{"a": 1}, {"b": 2}], "values of type dict"),
        ([b"a", "b"], "values of type bytes"),
        (np.array(["a", 1], dtype=object), "text and numbers together"),
        (np.array([True, 1], dtype=object), "text and numbers together"),
        (pl.Series([[1], [2]]), "values of type ndarray"),
    ],
)
def test_a_column_neither_numeric_nor_text_is_refused(values, got):
    with pytest.raises((TypeError, ValueError), match=rf"'c' of frame .*{got}"):
        read_frame({"c": values}, 2)


@pytest.mark.parametrize(
    "values",
    [
        np.array(["1970-01-02", "NaT", "2024-02-29"], dtype="datetime64[D]"),
        pd.Series(pd.to_datetime(["1970-01-02", None, "2024-02-29"])),
        pd.Series(pd.to_datetime(["1970-01-02 01:00", None, "2024-02-29 01:00"])).dt.tz_localize(
            "Europe/Berlin"
        ),
        pd.DatetimeIndex(["1970-01-02", None, "2024-02-29"]),
        pl.Series([datetime.date(1970, 1, 2), None, datetime.date(2024, 2, 29)]),
        pl.Series([datetime.datetime(1970, 1, 2), None, datetime.datetime(2024, 2, 29)]),
        [datetime.date(1970, 1, 2), None, datetime.date(2024, 2, 29)],
        [pd.Timestamp("1970-01-02T02:00+02:00"), pd.NaT, pd.Timestamp("2024-02-29")],
    ],
)
def test_dates_are_milliseconds_since_1970_in_utc(values):
    header, read = unpack(encode(Y[:3], {"when": values}))
    (note,) = header["columns"]
    assert note["kind"] == "date"
    day = 86_400_000
    np.testing.assert_array_equal(read(note), [day, np.nan, 19782 * day])


def test_nearly_unique_text_is_an_id_unless_selected():
    n = 120
    points = fibonacci_grid(n, np)
    frame = {"cell": [f"cell {k}" for k in range(n)], "half": [f"{k % 60}" for k in range(n)]}
    header, _ = unpack(encode(points, frame))
    assert [note["role"] for note in header["columns"]] == ["id", None]
    assert header["options"]["color"] == "half"
    header, _ = unpack(encode(points, frame, color="cell"))
    assert [note["role"] for note in header["columns"]] == [None, None]
    header, _ = unpack(encode(points[:50], {"cell": frame["cell"][:50]}))
    assert header["columns"][0]["role"] is None  # few enough for a legend


def test_several_embeddings_are_stored_and_planar_ones_are_scaled():
    flat = np.array([[0.0, 0.0], [4.0, 2.0], [2.0, 1.0], [1.0, 0.5], [4.0, 0.0]])
    header, read = unpack(encode({"Mercat": Y, "UMAP": flat}, None))
    sphere, plane = header["embeddings"]
    assert (sphere["name"], sphere["kind"], plane["name"], plane["kind"]) == (
        "Mercat",
        "sphere",
        "UMAP",
        "plane",
    )
    back = read(plane["positions"]).reshape(-1, 2) / 32767
    np.testing.assert_allclose(back, (flat - [2, 1]) / 2, atol=2e-5)
    assert plane["home"] == {"half": [1.0, 0.5]}


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        ({}, "^Y "),
        ({"a": Y, "b": Y[:4]}, r"^Y\['b'\] .*5.*got 4"),
        ({"a": Y, "b": np.full((5, 2), np.nan)}, r"^Y\['b'\] .*NaN"),
        ({"a": Y, "b": 2 * Y}, r"^Y\['b'\] .*length 1"),
        ({"1": Y, 1: Y}, "unique, got '1'"),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(embeddings, message):
    with pytest.raises(ValueError, match=message):
        encode(embeddings)


def test_integers_too_large_to_show_exactly_are_refused():
    for values in (np.array([2**53 + 2]), np.array([2**53 + 2], dtype=object)):
        with pytest.raises(ValueError, match=r"2\*\*53"):
            read_frame({"id": values}, 1)


def test_wrong_lengths_and_double_names_are_refused():
    with pytest.raises(ValueError, match=r"'c' .*5.*got 4"):
        read_frame({"a": np.arange(5), "c": np.arange(4)}, 5)
    double = pd.DataFrame(np.zeros((5, 2)), columns=["a", "a"])
    with pytest.raises(ValueError, match="unique, got 'a'"):
        read_frame(double, 5)
    with pytest.raises(ValueError, match="unique, got '1'"):
        read_frame({1: np.zeros(5), "1": np.zeros(5)}, 5)
    with pytest.raises(TypeError, match=r"^frame .*got list"):
        read_frame([1, 2], 5)


def test_pandas_polars_and_dict_give_the_same_payload():
    columns = {"k": ["a", "b", None, "a", "c"], "v": [0.5, 1.5, None, 2.5, 1.0]}
    payloads = {
        encode(Y, columns),
        encode(Y, pd.DataFrame(columns)),
        encode(Y, pl.DataFrame(columns)),
    }
    assert len(payloads) == 1


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.array([0, 255]), "uint8"),
        ([0, 255], "uint8"),
        (np.array([-1, 127]), "int8"),
        (np.array([0, 256]), "uint16"),
        (np.array([-129, 0]), "int16"),
        (np.array([0, 2**32 - 1]), "uint32"),
        (np.array([-(2**31), 0]), "int32"),
        (np.array([0, 2**53]), "float64"),
        (np.array([0.1, 0.2]), "float32"),
        (np.array([1.7e9, 1.7e9 + 1]), "float64"),
        (np.array([1e300, 0]), "float64"),
        (np.array([np.nan, np.nan]), "float32"),
        (np.array([np.inf, 0.5]), "float32"),
    ],
)
def test_numbers_are_stored_in_the_narrowest_type(values, dtype):
    header, read = unpack(encode(Y[:2], {"v": values}))
    (note,) = header["columns"]
    assert note["dtype"] == dtype
    np.testing.assert_allclose(read(note), values, rtol=1e-7)


@pytest.mark.parametrize(("kinds", "dtype"), [(255, "uint8"), (256, "uint16")])
def test_labels_are_stored_in_the_narrowest_type(kinds, dtype):
    labels = [f"{k:03}" for k in range(kinds)]
    header, read = unpack(encode(fibonacci_grid(kinds, np), {"k": labels}))
    (note,) = header["columns"]
    assert (note["dtype"], note["labels"]) == (dtype, labels)
    assert read(note).tolist() == list(range(1, kinds + 1))


# Genes


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_genes_are_stored_as_sparse_columns(kind):
    dense = np.array([[0, 3.5, 0], [5, 0, 0], [0, 0, 0], [1, -1, 0], [0, 3, 0]])
    header, read = unpack(encode(Y, genes=(kind(dense), ["a", "b", "c"])))
    genes = header["genes"]
    starts, gaps, values = (read(genes[key]) for key in ("starts", "gaps", "values"))
    back = np.zeros_like(dense)
    for column in range(3):
        part = slice(starts[column], starts[column + 1])
        back[np.cumsum(gaps[part]) - 1, column] = values[part]
    np.testing.assert_array_equal(back, dense)
    assert genes["names"] == ["a", "b", "c"]
    assert unpack(encode(Y))[0]["genes"] is None


def test_counts_of_genes_take_one_byte_each():
    header, read = unpack(encode(Y, genes=(np.full((5, 2), 200), ["a", "b"])))
    assert read(header["genes"]["values"]).dtype == np.uint8
    assert read(header["genes"]["gaps"]).tolist() == [1] * 10


@pytest.mark.parametrize(
    ("genes", "message"),
    [
        (np.zeros((5, 2)), "^genes .*got ndarray"),
        ((np.zeros((4, 2)), ["a", "b"]), "^genes .*5.*got 4"),
        ((np.zeros((5, 2)), ["a"]), "^genes .*2.*got 1"),
        ((np.zeros((5, 2)), ["a", "a"]), "genes .*unique, got 'a'"),
        ((np.zeros((5, 2001)), range(2001)), "^genes .*2000.*got 2001"),
        ((np.full((5, 1), np.nan), ["a"]), "^genes .*NaN"),
        ((np.full((5, 1), "x"), ["a"]), "^genes .*<U1"),
        ((np.zeros(5), ["a"]), r"^genes .*got \(5,\)"),
    ],
)
def test_genes_that_do_not_fit_are_refused(genes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        encode(Y, genes=genes)


# Neighbours


def test_torn_neighbours_are_outside_the_nearest_five_per_cent():
    rng = np.random.default_rng(0)
    points = fibonacci_grid(300, np)
    rows = rng.integers(0, 300, (300, 4))
    neighbors = read_neighbors(rows, 300)
    flags = find_torn(points, neighbors)
    angle = np.arccos(np.clip(points @ points.T, -1, 1))
    np.fill_diagonal(angle, np.inf)
    rank = angle.argsort(axis=1).argsort(axis=1)  # 0 is the nearest
    k = 0
    for i in range(300):
        for j in rows[i]:
            if i == j:
                continue  # a point is not its own neighbour
            if abs(rank[i, j] - 14.5) > 1:  # of equally distant points, either is correct
                assert flags[k] == (rank[i, j] >= 15), (i, j)
            k += 1
    assert k == len(flags)
    share = torn_fractions(flags, neighbors)
    assert share[7] == flags[neighbors.starts[7] : neighbors.starts[8]].mean()


def test_at_least_k_points_are_near():
    points = fibonacci_grid(20, np)
    nearest = np.argsort(-(points @ points.T), axis=1)[:, 1:6]
    assert not find_torn(points, read_neighbors(nearest, 20)).any()  # 5 % would be one point


@pytest.mark.parametrize("n", [90, 399, 1999])
def test_torn_neighbours_are_those_of_the_measure(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4))
    points = X[:, :3] / np.linalg.norm(X[:, :3], axis=1, keepdims=True)
    k = 6
    nearest = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)
    graph = read_neighbors(nearest, n)
    measured = torn_neighbors(X, points, k=k)
    np.testing.assert_allclose(torn_fractions(find_torn(points, graph), graph), measured)
    assert 0.02 < measured.mean() < 0.9


def test_torn_neighbours_of_a_large_set_are_estimated_from_a_sample():
    points = fibonacci_grid(6000, np)
    near, far = np.roll(np.arange(6000), -21), 5999 - np.arange(6000)
    neighbors = read_neighbors(np.stack([near, far], axis=1), 6000)
    flags = find_torn(points, neighbors).reshape(-1, 2)
    cosine = (points[:, None] * points[np.stack([near, far], axis=1)]).sum(axis=2)
    share = (1 - cosine) / 2  # of the sphere that is nearer
    np.testing.assert_array_equal(flags[share < 0.03], False)
    np.testing.assert_array_equal(flags[share > 0.08], True)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_a_graph_and_an_array_of_neighbours_give_the_same_page(shift):
    n = 60
    flat = np.random.default_rng(0).normal(size=(n, 2)) + shift
    rows = np.argsort(((flat[:, None] - flat) ** 2).sum(axis=2), axis=1)[:, 1:4]
    graph = scipy.sparse.csr_matrix((np.ones(3 * n), (np.repeat(np.arange(n), 3), rows.ravel())))
    embeddings = {"sphere": fibonacci_grid(n, np), "flat": flat}
    headers = []
    for neighbors in (np.sort(rows, axis=1), graph):
        header, read = unpack(encode(embeddings, neighbors=neighbors))
        note = header["neighbors"]
        np.testing.assert_array_equal(read(note["rows"]).reshape(n, 3), np.sort(rows, axis=1))
        assert read(note["starts"]).tolist() == list(range(0, 3 * n + 1, 3))
        bits = [np.unpackbits(read(one), count=3 * n, bitorder="little") for one in note["torn"]]
        assert not bits[1].any()
        assert bits[0].any()
        columns = {column["name"]: read(column) for column in header["columns"]}
        np.testing.assert_allclose(
            columns["torn neighbours (sphere)"], bits[0].reshape(n, 3).mean(axis=1), rtol=1e-6
        )
        assert all(column["role"] == "torn" for column in header["columns"])
        headers.append(header)
    assert headers[0] == headers[1]


@pytest.mark.parametrize(
    ("neighbors", "message"),
    [
        (np.zeros((4, 2), int), r"^neighbors .*\(5, k\).*\(4, 2\)"),
        (np.zeros((5, 2)), "^neighbors .*float64"),
        (np.full((5, 2), 5), "^neighbors .*0 to 4, got 5"),
        (scipy.sparse.eye_array(4), r"^neighbors .*\(5, 5\), got \(4, 4\)"),
    ],
)
def test_neighbours_that_do_not_fit_are_refused(neighbors, message):
    with pytest.raises((TypeError, ValueError), match=message):
        encode(Y, neighbors=neighbors)


def test_a_column_named_as_the_torn_neighbours_is_refused():
    with pytest.raises(ValueError, match=r"'torn neighbours'.*neighbors"):
        encode(Y, {"torn neighbours": np.zeros(5)}, neighbors=np.zeros((5, 1), int))


# Images


@pytest.mark.parametrize(
    ("images", "channels"),
    [
        (np.arange(5 * 12, dtype=np.uint8).reshape(5, 3, 4), 1),
        (np.arange(5 * 12).reshape(5, 3, 4), 1),
        (np.arange(5 * 36, dtype=np.uint8).reshape(5, 3, 4, 3) / 255, 3),
        (np.arange(5 * 48).reshape(5, 3, 4, 4) % 256, 4),
    ],
)
def test_images_are_stored_as_raw_bytes(images, channels):
    header, read = unpack(encode(Y, images=images))
    note = header["images"]
    assert (note["height"], note["width"], note["channels"]) == (3, 4, channels)
    expected = np.arange(5 * 12 * channels) % 256
    np.testing.assert_array_equal(read(note["pixels"]), expected)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (
            np.zeros((4, 3, 3)),
            r"^images .*\(5, height, width\).*\(4, 3, 3\)",
        ),
        (np.zeros((5, 3, 3, 2)), "^images .*channels"),
        (np.zeros((5, 3, 300)), "^images .*256.*3 x 300"),
        (np.full((5, 3, 3), 300), r"int64 .*\[0, 255\].*300"),
        (np.full((5, 3, 3), np.nan), r"\[0, 1\].*nan"),
        (np.full((5, 3, 3), "x"), "^images "),
    ],
)
def test_images_that_do_not_fit_are_refused(images, message):
    with pytest.raises((TypeError, ValueError), match=message):
        encode(Y, images=images)


# Options


def test_the_loss_becomes_a_marked_column():
    header, read = unpack(encode(Y, {"k": list("abcde")}, point_loss=np.arange(5) / 4))
    note = header["columns"][1]
    assert (note["name"], note["role"]) == ("point loss", "loss")
    np.testing.assert_allclose(read(note), np.arange(5) / 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"color": "q"}, "^color .*'k'.*'q'"),
        ({"theme": "blue"}, "^theme .*got 'blue'"),
        (
            {"projection": "globe"},
            "^projection .*got 'globe'",
        ),
        ({"point_loss": np.zeros(4)}, r"^point_loss .*5.*\(4,\)"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(tmp_path, options, message):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ValueError, match=message):
        to_html(Y, {"k": list("abcde")}, path, **options)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_column_named_as_the_loss_is_refused():
    with pytest.raises(ValueError, match="'point loss'"):
        encode(Y, {"point loss": np.zeros(5)}, point_loss=np.zeros(5))


@pytest.mark.parametrize(
    ("kinds", "n", "groups"),
    [
        (1, 200, False),
        (2, 200, True),
        (50, 200, True),
        (51, 200, False),
        (4, 8, True),
        (5, 8, False),
    ],
)
@pytest.mark.parametrize("of", [str, int, lambda kind: kind / 4])
def test_the_first_column_with_few_classes_is_the_default_colour(kinds, n, groups, of):
    frame = pd.DataFrame(
        {
            "id": [f"p{row}" for row in range(n)],
            "kind": [of(row % kinds) for row in range(n)],
            "later": np.arange(n) < n / 2,
        }
    )
    header, _ = unpack(encode(fibonacci_grid(n, np), frame))
    assert header["options"]["color"] == ("kind" if groups else "later")
    table = Table(Path("cells.csv"), None, None, frame, "id", lambda *_: "")
    assert color_column(table, None) == header["options"]["color"]


def test_missing_values_and_empty_categories_are_not_counted_as_classes():
    frame = {
        "unused": pd.Categorical(["a"] * 8, categories=["a", "b"]),
        "missing": ["a", None] * 4,
        "nan": [1.0, np.nan] * 4,
    }
    points = fibonacci_grid(8, np)
    assert unpack(encode(points, frame))[0]["options"]["color"] == "unused"
    frame["two"] = ["a", "b"] * 4
    assert unpack(encode(points, frame))[0]["options"]["color"] == "two"


def test_without_columns_points_have_one_colour():
    assert unpack(encode(Y))[0]["options"]["color"] is None


# The page


def test_to_html_writes_the_data_and_returns_the_path(tmp_path):
    path = to_html(Y, {"k": list("abcde")}, tmp_path / "page.html", color="k")
    assert path == tmp_path / "page.html"
    header, _ = unpack(payload_of(path))
    expected = {"color": "k", "names": "k", "theme": "auto", "projection": "mercator"}
    assert header["options"] == expected


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u2028"


def test_hostile_text_reaches_the_page_only_escaped_or_in_base64(tmp_path):
    path = to_html(Y, {HOSTILE: [HOSTILE] * 5}, tmp_path / "page.html", title=HOSTILE)
    text = path.read_text(encoding="utf-8")
    assert "alert(1)" in html.unescape(text)
    assert "<script>alert" not in text
    assert "<img" not in text
    assert text.count("<script") == 2
    header, _ = unpack(payload_of(path))
    assert header["columns"][0]["name"] == header["title"] == HOSTILE


def test_the_policy_allows_only_the_code_of_the_page(tmp_path):
    import hashlib

    text = to_html(Y, path=tmp_path / "page.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag, directive in [('script type="module"', "script-src"), ("style", "style-src")]:
        inner = re.search(rf"<{tag}>(.*?)</{tag.split()[0]}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_an_interrupted_write_leaves_only_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        to_html(Y, path=path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        to_html(Y, path=tmp_path / "nowhere" / "page.html")


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
def test_the_file_has_the_default_mode(tmp_path):
    (tmp_path / "plain").write_text("")
    page = to_html(Y, path=tmp_path / "page.html")
    assert page.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_million_points_with_a_category_take_less_than_15_megabytes(tmp_path):
    n = 1_000_000
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    kinds = pd.Categorical.from_codes(rng.integers(0, 30, n), [f"kind {k}" for k in range(30)])
    path = to_html(points, pd.DataFrame({"kind": kinds}), tmp_path / "page.html")
    assert path.stat().st_size < 15_000_000


# The widget


def explorer(*args, **kwargs):
    pytest.importorskip("anywidget", reason="needs anywidget: pip install anywidget")
    from mercat.viewer import Explorer

    return Explorer(*args, **kwargs)


def test_the_widget_has_the_payload_and_code_of_the_page(tmp_path):
    widget = explorer(Y, {"k": list("abcde")}, title="T", height=400)
    path = to_html(Y, {"k": list("abcde")}, tmp_path / "page.html", title="T")
    assert widget._payload == payload_of(path)
    assert widget._esm in path.read_text(encoding="utf-8")
    assert widget.height == 400


def test_selection_is_sorted_and_sent_as_bytes():
    widget = explorer(Y)
    assert widget.selection.tolist() == []
    widget.selection = [3, 1, 3]
    assert widget.selection.tolist() == [1, 3]
    state = widget.get_state("selection")
    assert np.frombuffer(state["selection"], "<u4").tolist() == [1, 3]
    widget.set_state({"selection": memoryview(np.array([0, 4], "<u4").tobytes())})
    assert widget.selection.tolist() == [0, 4]
    widget.selection = np.array([True, False, False, False, True])
    assert widget.selection.tolist() == [0, 4]
    widget.selection = []
    assert widget.selection.tolist() == []


def test_observers_are_notified_of_selections():
    widget = explorer(Y)
    told = []
    widget.observe(lambda change: told.append(change["new"].tolist()), "selection")
    widget.set_state({"selection": memoryview(np.array([2], "<u4").tobytes())})
    widget.selection = [1, 2]
    assert told == [[2], [1, 2]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([5], "0 to 4, got 5"),
        ([-1], "0 to 4, got -1"),
        ([0.5], "float64"),
        ([[1]], r"\(1, 1\)"),
        (np.array([True, False]), r"\(5,\), got \(2,\)"),
    ],
)
def test_bad_selections_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        explorer(Y).selection = rows


def test_to_html_of_an_explorer_equals_the_page(tmp_path):
    options = {"title": "T", "color": "k"}
    widget = explorer(Y, {"k": list("abcde")}, **options)
    page = to_html(Y, {"k": list("abcde")}, tmp_path / "a.html", **options)
    written = widget.to_html(tmp_path / "b.html")
    assert written == tmp_path / "b.html"
    assert written.read_text() == page.read_text()


def test_sets_are_sent_to_the_page_and_back():
    widget = explorer(Y)
    assert widget.sets == {}
    widget.sets = {"stem": [3, 1, 3], "rest": np.array([True, False, True, False, True])}
    assert {name: rows.tolist() for name, rows in widget.sets.items()} == {
        "stem": [1, 3],
        "rest": [0, 2, 4],
    }
    sent = widget.get_state(["sets"])["sets"]
    assert np.frombuffer(sent["stem"], "<u4").tolist() == [1, 3]
    widget.set_state({"sets": {"A": np.array([4, 0], dtype="<u4").tobytes()}})
    assert {name: rows.tolist() for name, rows in widget.sets.items()} == {"A": [0, 4]}
    with pytest.raises(ValueError, match=r"^sets\['A'\] .*0 to 4, got 5"):
        widget.sets = {"A": [5]}
    with pytest.raises(ValueError, match=r"^sets .*got list"):
        widget.sets = [1]


def test_view_fills_in_missing_keys():
    widget = explorer(fibonacci_grid(500, np))  # all over the sphere
    start = {"rotation": [0, 0, 0], "globe": [1, 0, 0], "map": [1, 0, 0], "flat": [1, 0, 0]}
    assert widget.view == start
    widget.view = {"map": (2, 0.5, 0)}
    assert widget.view == {**start, "map": [2, 0.5, 0]}


@pytest.mark.parametrize("projection", ["mercator", "equal_earth"])
def test_view_starts_where_the_data_are(projection):
    near = cap(40, 0, 15)
    start = home(near)
    view = explorer(near, projection=projection).view
    assert view == {**start, "map": start["map"][projection], "flat": [1, 0, 0]}
    assert view["map"][0] > 4


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ({"zoom": [1, 0, 0]}, "^view .*'zoom'"),
        (
            {"rotation": [0, 0]},
            r"^view\['rotation'\] .*\[0.0, 0.0\]",
        ),
        ({"rotation": [0, np.nan, 0]}, r"^view\['rotation'\] .*nan"),
        ({"map": [0, 0, 0]}, r"^view\['map'\] .*got 0.0"),
    ],
)
def test_bad_views_are_refused(view, message):
    with pytest.raises(ValueError, match=message):
        explorer(Y).view = view


def test_the_widget_checks_its_input():
    with pytest.raises(ValueError, match="row 0 of length 2"):
        explorer(2 * Y)


def described(values, n):
    """Description of a column in the payload."""
    header, _ = unpack(encode(fibonacci_grid(n, np), {"k": values}))
    return header["columns"][0]


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([7, 2, 7], [2, 7]),
        (np.array([3.0, np.nan, -1.0]), [-1, 3]),
        (np.array([0.0, 16777217.0, 3e7]), [0, 16777216, 3e7]),  # as 32-bit floats hold them
        (range(20), list(range(20))),
        (range(21), None),
        ([1.5, 2.0], None),
        ([1.0, np.inf], None),
        (np.array([np.nan, np.nan]), []),
    ],
)
def test_integers_with_few_values_may_be_classes(values, classes):
    column = described(values, len(values))
    assert column["kind"] == "number"
    assert column["classes"] == classes
    assert len(column["colors"]["light"]) == 1 + len(classes or [])


@pytest.mark.parametrize("n", [3, 25, 300])
def test_classes_have_the_colours_of_the_static_maps(n):
    names = [f"class {k}" for k in range(n)]
    colors = described(names, n)["colors"]
    drawn = make_coloring(names, n).colors[:200]
    np.testing.assert_allclose([to_rgb(color) for color in colors["light"][1:]], drawn[:, :3])
    assert colors["light"][0] == MISSING
    assert colors["dark"][0] == MISSING_ON_DARK
    assert colors["dark"][1:] == list(on_dark(tuple(colors["light"][1:])))


def test_a_column_with_more_classes_than_colours_is_not_larger():
    assert len(described([f"id {k}" for k in range(5000)], 5000)["colors"]["dark"]) == 201


def test_given_colours_are_shown():
    chosen = {"b": "#ff0000", "a": "#000080", "unused": "red"}
    colors = described(ColoredColumn(["a", "b", None], chosen), 3)["colors"]
    assert colors["light"][1:] == ["#000080", "#ff0000"]
    assert colors["dark"][1:] == list(on_dark(("#000080", "#ff0000")))


@pytest.mark.parametrize("odd", ["red", "#ff00", "#ff0000ff", "#ff0000\n", "</script>", None])
def test_only_six_digit_hexadecimal_colours_are_written(odd):
    chosen = {"a": "#ff0000"} if odd is None else {"a": "#ff0000", "b": odd}
    colors = described(ColoredColumn(["a", "b"], chosen), 2)["colors"]
    assert colors == described(["a", "b"], 2)["colors"]


@pytest.mark.parametrize(
    "values",
    [
        ["cluster 10", "cluster 2", "cluster 2", None],
        pd.Series(["b", "a", "c", "a"], dtype=pd.CategoricalDtype(["c", "a", "b"])),
        pd.Categorical(["b", "a", "c", None], categories=["c", "a", "b"]),
        pl.Series(["b", "a", "c", None], dtype=pl.Enum(["c", "a", "b"])),
        np.array([True, False, True, True]),
    ],
    ids=["text", "a series of categories", "categories", "polars", "yes and no"],
)
def test_classes_come_in_the_order_of_the_static_maps(values):
    """They thus have the same colours."""
    (column,) = read_frame({"kind": values}, 4)
    drawn = make_coloring(values, 4)
    assert column.labels == drawn.names
    np.testing.assert_array_equal(column.codes - 1, drawn.codes)


@pytest.mark.parametrize("title", ["caf\udce9", "\ud800"])
def test_an_invalid_title_is_refused(tmp_path, title):
    with pytest.raises(ValueError, match=r"^title "):
        to_html(np.eye(3), None, tmp_path / "a.html", title=title)
    assert list(tmp_path.iterdir()) == []


# --- error bars ----------------------------------------------------------------------------


def test_error_bars_are_columns_axes_and_alternative_positions():
    places, bars = error_bars()
    header, read = unpack(encode(places, uncertainty=bars))
    axes = read(header["places"]["axes"]).reshape(-1, 4)
    scale = bars.factor(0.9)
    np.testing.assert_allclose(axes[:, :3], scale * bars.axes[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(axes[:, 3], 0.1 * scale, rtol=1e-5)
    codes = read(header["places"]["alternative"]).reshape(-1, 2)
    assert (codes[np.arange(40) != 3] == -32768).all()
    np.testing.assert_array_equal(codes[3], to_octahedral(-places[3:4])[0])
    columns = {column["name"]: read(column) for column in header["columns"]}
    np.testing.assert_allclose(columns["spread (degrees)"], np.degrees(bars.spread), rtol=1e-6)
    np.testing.assert_allclose(columns["torn neighbours"], bars.torn, atol=1e-6)
    np.testing.assert_allclose(columns["p value"], bars.p_value, atol=1e-6)
    assert columns["alternative wins"][3] == 0.25
    assert unpack(encode(places))[0]["places"] is None


def test_error_bars_that_do_not_fit_are_refused():
    places, bars = error_bars()
    with pytest.raises(ValueError, match=r"^uncertainty .*5.*40"):
        encode(places[:5], uncertainty=bars)
    with pytest.raises(TypeError, match="uncertainty"):
        encode(places, uncertainty={"spread": [1]})
    with pytest.raises(ValueError, match=r"^uncertainty "):
        encode({"flat": places[:, :2]}, uncertainty=bars)
    with pytest.raises(ValueError, match=r"'p value'.*uncertainty"):
        encode(places, {"p value": np.zeros(40)}, uncertainty=bars)


def test_a_fitted_model_is_shown_with_its_losses():
    model = Mercat(random_state=0).fit(np.random.default_rng(0).normal(size=(80, 4)))
    header, _ = prepare(model, None)
    assert [(one["name"], one["kind"]) for one in header["embeddings"]] == [("Mercat", "sphere")]
    assert [column["role"] for column in header["columns"]] == ["loss"]
    assert pack(*prepare(model, None)) == pack(
        *prepare(model.embedding_, None, point_loss=model.point_loss_)
    )
    flat = model.embedding_[:, :2]
    several, _ = prepare({"a": model, "b": SimpleNamespace(get_params=1, embedding_=flat)}, None)
    assert [one["kind"] for one in several["embeddings"]] == ["sphere", "plane"]
    assert [one["kind"] for one in prepare(flat, None)[0]["embeddings"]] == ["plane"]
    with pytest.raises(ValueError, match=r"^Y .*fitted"):
        prepare(Mercat(), None)
