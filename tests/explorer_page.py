"""Pages of the explorer in a browser: functions that open, inspect and operate them."""

from __future__ import annotations

import math
import time
from io import BytesIO

import numpy as np
import pytest

from mercat import Uncertainty
from mercat._math.sphere import fibonacci_grid, from_lonlat, tangent_frame
from mercat.viewer import to_html

GPU_STALL = "GPU stall due to ReadPixels"  # message that Chromium logs without GPU compositing
TIMEOUT_MS = 120_000  # generous, for busy machines
WIDE = {"width": 1100, "height": 560}


@pytest.fixture
def visit(browser, tmp_path):
    """Open a page; on teardown, check that it logged nothing and requested nothing else."""
    contexts, complaints, requests = [], [], []

    def listen(message):
        if GPU_STALL not in message.text:
            complaints.append(f"{message.type}: {message.text}")

    def open_page(points, frame=None, *, context=None, ready=True, **options):
        path = to_html(points, frame, tmp_path / "page.html", **options)
        settings = {"viewport": WIDE, "reduced_motion": "reduce", **(context or {})}
        contexts.append(browser.new_context(**settings))
        contexts[-1].set_default_timeout(TIMEOUT_MS)
        page = contexts[-1].new_page()
        page.on("console", listen)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        if ready:
            page.wait_for_selector("html[data-ready=true]")
        assert requests == [path.as_uri()]
        return page

    yield open_page
    allowed = [f"file://{tmp_path}/page.html"]
    assert complaints == []
    assert [url for url in requests if not url.startswith("blob:")] == allowed
    for context in contexts:
        context.close()


# Six distant positions with five points each
LONGITUDE = np.radians([0, 60, -60, 20, 180, -20])
LATITUDE = np.radians([0, 10, -10, 50, 0, -50])
CENTERS = from_lonlat(LONGITUDE, LATITUDE)
NAMES = ["front", "east", "west", "north", "back", "south"]


def clusters():
    rng = np.random.default_rng(0)
    points = np.repeat(CENTERS, 5, axis=0) + rng.normal(scale=0.02, size=(30, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    frame = {
        "place": np.repeat(NAMES, 5),
        "height": np.where(np.arange(30) == 7, np.nan, np.arange(30) / 2),
        "rank": np.arange(30) % 3,
        "note": [None if row % 4 else f"note {row}" for row in range(30)],
    }
    return points, frame


def error_bars(n=40):
    """Ellipses twice as long as wide; one point has an alternative position."""
    places = fibonacci_grid(n, np)
    U, V = tangent_frame(places)
    alternative = np.full((n, 3), np.nan)
    alternative[3] = -places[3]
    numbers = np.where(np.arange(n) == 3, 0.25, np.nan)
    return places, Uncertainty(
        places=places,
        axes=np.stack([0.2 * U, 0.1 * V], axis=1),
        alternative=alternative,
        alternative_gap=numbers,
        alternative_wins=numbers,
        torn=np.linspace(0, 1, n),
        p_value=np.linspace(0.1, 1, n),
        stability=0.9,
        stability_by_chance=0.3,
        n_maps=20,
        n_comparisons=20,
        sizes=np.full(20, 1.0),
    )


@pytest.fixture
def page(visit):
    return visit(*clusters(), title="Six places", theme="dark")


def spot(page, row, pane="map"):
    """Position of a row in window pixels, or None if it is not visible."""
    at = page.evaluate("([row, pane]) => mercat.project(row, pane)", [row, pane])
    if at is None:
        return None
    box = page.locator(".stage").bounding_box()
    return box["x"] + at[0], box["y"] + at[1]


def spots(page, rows, pane="map"):
    """Positions of visible rows, in pixels of the stage."""
    where = "([rows, pane]) => rows.map((row) => mercat.project(row, pane))"
    return np.array(page.evaluate(where, [list(rows), pane]))


def state(page):
    return page.evaluate("mercat.state()")


def until(condition):
    """Wait for something that comes with a later frame."""
    end = time.monotonic() + TIMEOUT_MS / 1000
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def pause(page, milliseconds):
    """Wait on the page's own clock, so that shorter timers set before have fired."""
    page.evaluate(
        """(milliseconds) => new Promise((done) => requestAnimationFrame(() =>
            requestAnimationFrame(() => setTimeout(done, milliseconds))))""",
        milliseconds,
    )


def hold_still(page):
    """Freeze the clock of the page; only `page.clock.run_for` advances it."""
    page.clock.install(time=0)
    page.clock.pause_at(1000)


def color_by(page, name):
    """Click a column's name, unless it already colours the points."""
    button = page.get_by_role("button", name=f"Colour by {name}", exact=True)
    if button.get_attribute("aria-pressed") == "false":
        button.click()


def display(page, control):
    """Return a control of the Display menu, which is opened if necessary."""
    if not page.locator(".gear").evaluate("(gear) => gear.open"):
        page.get_by_label("Display", exact=True).click()
    return page.locator(".display").get_by_label(control)


def column(page, name):
    return page.locator(".column", has=page.locator(f".name[title='{name}']"))


def value(page, name):
    return page.locator(".values [role=option]", has_text=name).first


def drag(page, start, end, steps=6):
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=steps)
    page.mouse.up()


def circle(page, center, radius=30):
    turn = [2 * math.pi * k / 10 for k in range(11)]
    points = [(center[0] + radius * math.cos(a), center[1] + radius * math.sin(a)) for a in turn]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point)
    page.mouse.up()


def screenshot(page):
    from PIL import Image

    return Image.open(BytesIO(page.screenshot())).convert("RGB")


def pixel(page, at):
    return screenshot(page).getpixel((round(at[0]), round(at[1])))


def centroid(image, at, color, reach=14):
    """Centroid of the pixels of a colour near a position; infinite if there are none."""
    left, top = round(at[0]) - reach, round(at[1]) - reach
    box = np.asarray(image.crop((left, top, left + 2 * reach + 1, top + 2 * reach + 1)), float)
    rows, columns = np.nonzero(np.linalg.norm(box - color, axis=2) < 80)
    if len(rows) == 0:
        return math.inf, math.inf
    return left + columns.mean() + 0.5, top + rows.mean() + 0.5
