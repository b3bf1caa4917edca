"""Projections against values by hand, PROJ, and numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from mercat import projections
from mercat._math.sphere import fibonacci_grid, from_lonlat
from mercat.projections import NAMES, far_side, inverse, project, scale_factors

EVERYWHERE = fibonacci_grid(2000, np)
CENTERS = [(0, 0), (40, 0), (-120, 35), (75, -90), (180, 90)]

PROJ = {
    "mercator": "merc",
    "lambert": "laea",
    "equal_earth": "eqearth",
    "mollweide": "moll",
    "orthographic": "ortho",
}


def at(longitude: float, latitude: float) -> np.ndarray:
    return from_lonlat(np.deg2rad([longitude]), np.deg2rad([latitude]))


@pytest.mark.parametrize(
    ("projection", "longitude", "latitude", "expected"),
    [
        # Mercator: v = ln tan(45° + latitude / 2), which is ln(2 + sqrt 3) at 60°.
        ("mercator", 90, 60, (np.pi / 2, np.log(2 + np.sqrt(3)))),
        ("mercator", -180 + 1e-9, 0, (-np.pi, 0)),
        # Lambert: the chord to the centre, sqrt 2 at 90° and 1 at 60°.
        ("lambert", 90, 0, (np.sqrt(2), 0)),
        ("lambert", 0, -60, (0, -1)),
        ("lambert", 0, 90, (0, np.sqrt(2))),
        # Equal Earth: the height of the pole, and half the equator's length, as published.
        ("equal_earth", 0, 90, (0, 1.3173627591574133)),
        ("equal_earth", 180, 0, (2.7066299836960748, 0)),
        # Mollweide: half-axes 2 sqrt 2 and sqrt 2.
        ("mollweide", 180, 0, (2 * np.sqrt(2), 0)),
        ("mollweide", 0, -90, (0, -np.sqrt(2))),
        # Orthographic: the sines.
        ("orthographic", 30, 0, (0.5, 0)),
        ("orthographic", 0, 30, (0, 0.5)),
    ],
)
def test_values_by_hand(projection, longitude, latitude, expected):
    np.testing.assert_allclose(project(at(longitude, latitude), projection)[0], expected, atol=1e-8)


def test_lambert_oblique_by_hand():
    # From the north pole, the point at 0° latitude on the centre's meridian lies straight down.
    np.testing.assert_allclose(
        project(at(20, 0), "lambert", center=(20, 90)), [[0, -np.sqrt(2)]], atol=1e-12
    )
    np.testing.assert_allclose(
        project(at(110, 0), "lambert", center=(20, 90)), [[np.sqrt(2), 0]], atol=1e-12
    )


@pytest.mark.parametrize("center", CENTERS)
@pytest.mark.parametrize("projection", NAMES)
def test_agrees_with_proj(projection, center):
    pyproj = pytest.importorskip("pyproj")
    longitude, latitude = center
    Y = EVERYWHERE
    if projection in ("lambert", "orthographic"):
        definition = f"+proj={PROJ[projection]} +lon_0={longitude} +lat_0={latitude}"
        Y = Y[~far_side(Y, center=center)] if projection == "orthographic" else Y
    else:
        # PROJ needs the latitude of the old north pole on the rotated globe. It must be at most 90°; for
        # southern centres, the globe is rotated the other way.
        pole, turn = (90 - latitude, 0) if latitude >= 0 else (90 + latitude, 180)
        definition = (
            f"+proj=ob_tran +o_proj={PROJ[projection]} +o_lat_p={pole} +o_lon_p={turn} "
            f"+lon_0={longitude + turn}"
        )
    transform = pyproj.Proj(f"{definition} +R=1")
    degrees = np.rad2deg(np.arctan2(Y[:, 1], Y[:, 0])), np.rad2deg(np.arcsin(Y[:, 2]))
    expected = np.column_stack(transform(*degrees))
    np.testing.assert_allclose(project(Y, projection, center=center), expected, atol=2e-8)


@pytest.mark.parametrize("center", CENTERS)
@pytest.mark.parametrize("projection", NAMES)
def test_inverse_undoes_project(projection, center):
    Y = EVERYWHERE
    if projection == "orthographic":
        Y = Y[~far_side(Y, center=center)]
    P = project(Y, projection, center=center)
    np.testing.assert_allclose(inverse(P, projection, center=center), Y, atol=2e-8)


@pytest.mark.parametrize("projection", NAMES)
def test_poles_are_kept(projection):
    poles = np.array([[0, 0, 1.0], [0, 0, -1.0]])
    P = project(poles, projection)
    assert not np.isnan(P).any()
    assert (P[:, 0] == 0).all()
    np.testing.assert_allclose(inverse(P, projection), poles, atol=1e-12)
    if projection == "mercator":
        assert P[:, 1].tolist() == [np.inf, -np.inf]
    else:
        assert np.isfinite(P).all()


@pytest.mark.parametrize("projection", NAMES)
def test_inverse_undoes_project_close_to_the_poles(projection):
    colatitude = np.logspace(-12, -1, 45)
    Y = np.column_stack([np.sin(colatitude) * 0.6, np.sin(colatitude) * 0.8, np.cos(colatitude)])
    back = inverse(project(Y, projection), projection)
    np.testing.assert_allclose(back, Y, atol=3e-8)


def test_lambert_maps_the_antipode_to_the_rim():
    assert project([[-1, 0, 0]], "lambert").tolist() == [[2, 0]]
    near = np.array([[-np.cos(1e-9), np.sin(1e-9) * 0.6, -np.sin(1e-9) * 0.8]])
    np.testing.assert_allclose(project(near, "lambert"), [[1.2, -1.6]], atol=1e-9)
    np.testing.assert_allclose(inverse([[1.2, -1.6]], "lambert"), [[-1, 0, 0]], atol=1e-7)


@pytest.mark.parametrize(
    ("projection", "off"),
    [
        ("lambert", (1.5, 1.5)),
        ("equal_earth", (2.6, 1.2)),
        ("equal_earth", (0, 1.4)),
        ("mollweide", (2.5, 1.0)),
        ("orthographic", (0.8, 0.8)),
    ],
)
def test_inverse_is_nan_off_the_map(projection, off):
    assert np.isnan(inverse([off, (0, 0)], projection)).all(axis=1).tolist() == [True, False]


def test_right_angles_are_exact():
    # Seen from the north pole, the map's own north is at longitude 180 degrees.
    assert project([[-1, 0, 0]], center=(0, 90)).tolist() == [[0, np.inf]]


def test_mercator_wraps_around():
    np.testing.assert_allclose(inverse([[0.5 + 2 * np.pi, 0.3]]), inverse([[0.5, 0.3]]), atol=1e-12)


@pytest.mark.parametrize("center", [(0, 0), (-120, 35)])
@pytest.mark.parametrize("projection", NAMES)
def test_scale_factors_are_singular_values_of_the_derivative(projection, center):
    # Points within 140° of the centre, so that no step crosses the seam.
    Y = EVERYWHERE[::7]
    facing = at(*center)[0]
    Y = Y[Y @ facing > np.cos(np.deg2rad(140))]
    step = 1e-6
    east = np.cross([0.3, -0.2, 0.9], Y)
    east /= np.linalg.norm(east, axis=1)[:, None]
    north = np.cross(Y, east)

    def derivative(tangent):
        ahead, behind = (Y * np.cos(s) + tangent * np.sin(s) for s in (step, -step))
        return (
            project(ahead, projection, center=center) - project(behind, projection, center=center)
        ) / (2 * step)

    jacobian = np.stack([derivative(east), derivative(north)], axis=2)
    across_seam = np.abs(jacobian).max(axis=(1, 2)) > 1e4
    assert across_seam.mean() < 0.02
    expected = np.linalg.svd(jacobian[~across_seam], compute_uv=False)
    factors = scale_factors(Y, projection, center=center)[~across_seam]
    np.testing.assert_allclose(factors, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("projection", ["lambert", "equal_earth", "mollweide"])
def test_equal_area_maps_preserve_areas(projection):
    np.testing.assert_allclose(scale_factors(EVERYWHERE, projection).prod(axis=1), 1, rtol=1e-9)


def test_mercator_scale_is_the_secant():
    factors = scale_factors(at(10, 60), "mercator")
    np.testing.assert_allclose(factors, [[2, 2]])
    assert scale_factors([[0, 0, 1]], "mercator").tolist() == [[np.inf, np.inf]]


@pytest.mark.parametrize("projection", ["equal_earth", "mollweide"])
def test_scale_at_the_pole_is_infinite_in_one_direction_and_zero_in_the_other(projection):
    assert scale_factors([[0, 0, 1]], projection).tolist() == [[np.inf, 0]]


@pytest.mark.parametrize("projection", NAMES)
def test_rim_encloses_the_map(projection):
    rim = projections.lookup(projection).rim()
    if projection == "mercator":
        assert rim is None
        return
    P = project(EVERYWHERE, projection)
    assert (np.abs(P) <= np.abs(rim).max(axis=0) + 1e-9).all()
    np.testing.assert_allclose(rim[0], rim[-1], atol=1e-12)
    u, v = rim.T
    area = 0.5 * abs(np.sum(u[:-1] * v[1:] - u[1:] * v[:-1]))
    np.testing.assert_allclose(
        area, np.pi if projection == "orthographic" else 4 * np.pi, rtol=1e-3
    )


def test_far_side_is_beyond_90_degrees():
    Y = np.concatenate([at(29, 0), at(31, 0), at(-149, 0)])
    assert far_side(Y, center=(-60, 0)).tolist() == [False, True, False]
    assert not far_side([[0, 1, 0], [0, 0, 1]]).any()


def test_half_precision_unit_vectors_are_accepted():
    Y = EVERYWHERE.astype(np.float16)
    np.testing.assert_allclose(
        np.linalg.norm(inverse(project(Y, "equal_earth"), "equal_earth"), axis=1), 1
    )


def test_empty_arrays_are_projected():
    for projection in NAMES:
        assert project(np.empty((0, 3)), projection).shape == (0, 2)


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.ones((4, 2)), r"^Y .*\(4, 2\)"),
        ([1.0, 0, 0], r"got \(3,\)"),
        ([[1, 0, 0], [np.nan, 0, 1]], "^Y .*NaN.*1 of 2 rows.*row 1"),
        ([[1, 0, 0], [3, 0, 4]], "^Y .*1 of 2 rows.*row 1 of length 5"),
        ([["a", "b", "c"]], "^Y "),
    ],
)
def test_bad_vectors_are_refused(Y, message):
    for function in (project, scale_factors, far_side):
        with pytest.raises(ValueError, match=message):
            function(Y)


def test_bad_arguments_are_named():
    Y = [[1.0, 0, 0]]
    with pytest.raises(ValueError, match=r"^projection .*got 'merc'"):
        project(Y, "merc")
    with pytest.raises(ValueError, match=r"^center .*got \(0, 91\)"):
        project(Y, center=(0, 91))
    with pytest.raises(ValueError, match=r"^center .*got 3"):
        project(Y, center=3)
    with pytest.raises(ValueError, match=r"^P .*got \(1, 3\)"):
        inverse(Y)
