"""Names of dense regions on the map at several zoom levels."""

from __future__ import annotations

import numpy as np
import pytest
from explorer_page import pause

from mercat.viewer import _encode
from mercat.viewer._regions import modes, squared_distances


def tree(n=1200, seed=0):
    """Two distant groups of three near clusters, and the cluster of each point."""
    rng = np.random.default_rng(seed)
    continent = np.arange(n) % 2
    island = np.arange(n) // 2 % 3
    longitude = np.where(continent == 0, -0.9, 0.9) + 0.35 * np.cos(2.1 * island)
    latitude = 0.35 * np.sin(2.1 * island)
    longitude, latitude = (x + rng.normal(scale=0.05, size=n) for x in (longitude, latitude))
    points = np.c_[
        np.cos(latitude) * np.cos(longitude),
        np.cos(latitude) * np.sin(longitude),
        np.sin(latitude),
    ]
    return points, continent, island, rng


def regions(points, frame, **options):
    header, _ = _encode.prepare(points, frame, **options)
    return [(one["level"], one["text"]) for one in header["embeddings"][0]["regions"]]


def test_regions_are_found_at_every_scale():
    points, continent, island, _ = tree()
    assert len(np.unique(modes(squared_distances(points), 0.8))) == 2
    fine = modes(squared_distances(points), 0.25)
    assert len(np.unique(fine)) == 6
    for k in range(6):  # none contains points of two clusters
        assert len(np.unique((3 * continent + island)[fine == k])) == 1


def test_regions_are_named_by_words_of_texts():
    points, continent, island, rng = tree()
    words = np.array([["lion", "rose"], ["tiger", "tulip"], ["lynx", "daisy"]])
    texts = [
        f"The {words[i, c]} is one of the {['cats', 'flowers'][c]} number {rng.integers(1e6)}"
        for i, c in zip(island, continent, strict=True)
    ]
    found = regions(points, {"text": texts, "x": rng.random(len(points))}, color="x")
    assert {text.split(",")[0] for level, text in found if level == 0} == {"cats", "flowers"}
    finest = max(level for level, _ in found)
    assert {text.split(",")[0] for level, text in found if level == finest} == set(words.ravel())


def test_regions_are_named_by_classes_numbers_dates_and_genes():
    points, continent, island, rng = tree()
    height = continent + rng.normal(scale=0.1, size=len(points))
    assert set(regions(points, {"height": height})) == {(0, "high height"), (0, "low height")}
    days = np.datetime64("2024-01-01") + (100 * height).astype("timedelta64[D]")
    assert set(regions(points, {"day": days})) == {(0, "late day"), (0, "early day")}
    named = regions(points, {"wet": continent == 0, "height": height})
    assert {text for level, text in named if level == 0} == {"wet: True", "wet: False"}
    genes = rng.poisson(np.where((3 * continent + island)[:, None] == np.arange(12) % 6, 5.0, 0.1))
    found = regions(points, None, genes=(genes, [f"G{k}" for k in range(12)]))
    named = [set(text.split(", ")) for _, text in found]
    assert sorted(map(sorted, named)) == sorted(sorted([f"G{k}", f"G{k + 6}"]) for k in range(6))
    assert {level for level, _ in found} == {
        0
    }  # visible at first, since no gene distinguishes a larger region


def test_regions_without_distinguishing_or_known_values_have_no_names():
    points, _, _, rng = tree()
    assert regions(points, {"noise": rng.random(len(points))}) == []
    assert regions(points, None) == []
    most = np.arange(len(points)) % 10 > 0  # nearly all of them in one cluster
    here = np.where(most[:, None], points[0] + 0.01 * rng.normal(size=points.shape), -points[0])
    here /= np.linalg.norm(here, axis=1, keepdims=True)
    assert [text for _, text in regions(here, {"most": most})] == ["most: False"]
    assert regions(points[:40], {"height": points[:40, 1]}) == []
    assert regions(points, {"height": points[:, 1]}, labels=[]) == []


def test_labels_must_be_columns_of_classes():
    points, continent, _, rng = tree()
    frame = {"continent": continent.astype(str), "height": rng.random(len(points))}
    for wrong in ("height", "nowhere", ["continent", "height"]):
        with pytest.raises(ValueError, match=r"^labels .*'cont"):
            _encode.prepare(points, frame, labels=wrong)
    with pytest.raises(TypeError, match=r"^labels .*int"):
        _encode.prepare(points, frame, labels=5)
    with pytest.raises(ValueError, match=r"^labels .*once"):
        _encode.prepare(points, frame, labels=["continent", "continent"])


def names(page):
    pause(page, 100)
    return set(page.evaluate("mercat.names()"))


def test_zooming_in_replaces_coarse_names_by_finer_ones(visit):
    points, continent, island, _ = tree()
    frame = {
        "continent": np.array(["Africa", "America"])[continent],
        "island": [f"isle {c}{i}" for c, i in zip(continent, island, strict=True)],
    }
    page = visit(points, frame, labels=["continent", "island"], color="island")
    everything = {f"isle {c}{i}" for c in range(2) for i in range(3)}
    first = names(page)
    assert first == {"Africa", "America"} | (first & everything)
    assert len(first & everything) < 6
    page.mouse.move(250, 330)
    seen = set()
    for _ in range(14):
        page.mouse.wheel(0, -200)
        seen |= names(page)
    assert seen >= {"Africa"}
    assert seen & everything
    assert not names(page) & {"Africa", "America"}


def test_a_hostile_region_stays_text(visit):
    points, continent, _, rng = tree()
    evil = np.array(["<img src=x onerror=alert(1)>", "</script><b>bold"])[continent]
    page = visit(points, {"kind": evil, "x": rng.random(len(points))}, color="x")
    assert names(page) == {"<img src=x onerror=alert(1)>", "</script><b>bold"}
    assert page.locator("img, b").count() == 0
