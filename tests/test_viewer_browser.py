"""The viewer in a real browser: Chromium with WebGL2 in software."""

from __future__ import annotations

import math
import time
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mercat._math.sphere import fibonacci_grid, from_lonlat
from mercat.viewer import to_html

WIDE = {"width": 1100, "height": 560}


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a page of points; at the end there must be no complaint and no request."""
    contexts, complaints, requests = [], [], []

    def open_page(points, frame=None, *, context=None, ready=True, **options):
        path = to_html(points, frame, tmp_path / "page.html", **options)
        settings = {"viewport": WIDE, "reduced_motion": "reduce", **(context or {})}
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
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


# Six places that are easy to tell apart, five points each
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


@pytest.fixture
def page(visit):
    return visit(*clusters(), title="Six places", theme="dark")


def spot(page, row, pane="globe"):
    """Where a row is, in the window's pixels; None if it is not in sight."""
    at = page.evaluate("([row, pane]) => mercat.project(row, pane)", [row, pane])
    if at is None:
        return None
    box = page.locator(".stage").bounding_box()
    return box["x"] + at[0], box["y"] + at[1]


def state(page):
    return page.evaluate("mercat.state()")


def until(condition):
    """Wait for something that comes with a later frame."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


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
    """The middle of what has a colour near a place; far away if nothing does."""
    left, top = round(at[0]) - reach, round(at[1]) - reach
    box = np.asarray(image.crop((left, top, left + 2 * reach + 1, top + 2 * reach + 1)), float)
    rows, columns = np.nonzero(np.linalg.norm(box - color, axis=2) < 80)
    if len(rows) == 0:
        return math.inf, math.inf
    return left + columns.mean() + 0.5, top + rows.mean() + 0.5


def test_the_shader_draws_points_where_the_geometry_puts_them(visit):
    page = visit(CENTERS, {"place": NAMES}, theme="dark")
    page.locator("label", has_text="Names").click()
    page.locator("label", has_text="Graticule").click()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "."):
        page.keyboard.press(key)
    colors = {4: (0, 114, 178), 1: (230, 159, 0), 0: (0, 158, 115), 3: (213, 94, 0)}

    def drawn(pane, *rows):
        image = screenshot(page)
        places = {row: spot(page, row, pane) for row in rows}
        return all(
            at is not None and math.dist(centroid(image, at, colors[row]), at) < 1
            for row, at in places.items()
        )

    for projection in ("mercator", "equal_earth"):
        page.get_by_label("Map projection").select_option(projection)
        for unfold in ("0", "0.3", "0.7"):
            page.locator("[data-control=unfold]").fill(unfold)
            page.mouse.move(2, 2)
            until(lambda: drawn("globe", 0, 1, 3))
        until(lambda: drawn("map", 0, 1, 3, 4))
    page.locator("[data-control=unfold]").fill("0")
    assert spot(page, 4, "globe") is None  # it is on the far side


def test_the_back_of_the_globe_shows_dimmed_or_not_at_all(visit):
    page = visit(CENTERS, {"place": NAMES}, theme="dark")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "g", "n"):
        page.keyboard.press(key)
    globe = page.evaluate("mercat.panes()[0]")
    top = page.locator(".stage").bounding_box()["y"]
    front = spot(page, 0)
    behind = (globe["width"] - front[0], 2 * top + globe["height"] - front[1])  # "back" is opposite

    def stands_out():
        image = screenshot(page)
        body = image.getpixel((round(behind[0]), round(behind[1]) + 25))
        return math.dist(image.getpixel((round(behind[0]), round(behind[1]))), body)

    until(lambda: stands_out() > 30)
    assert math.dist(pixel(page, behind), (0, 114, 178)) > 100
    page.keyboard.press("b")
    until(lambda: stands_out() < 5)


def nearby(n=400):
    """A disc of points, 20 degrees about a place a little off the middle."""
    rng = np.random.default_rng(0)
    away, angle = np.radians(20) * np.sqrt(rng.uniform(size=n)), rng.uniform(0, 2 * np.pi, n)
    longitude = np.radians(3) + away * np.cos(angle)
    return from_lonlat(longitude, np.radians(-4) + away * np.sin(angle))


def bounds(page, pane, n=400):
    """The box of all points on a pane, in parts of the pane, from -1 to 1."""
    at = page.evaluate(f"[...Array({n}).keys()].map((row) => mercat.project(row, '{pane}'))")
    rect = next(one for one in page.evaluate("mercat.panes()") if one["name"] == pane)
    corner, size = np.array([rect["x"], rect["y"]]), np.array([rect["width"], rect["height"]])
    place = 2 * (np.array(at) - corner) / size - 1
    return place.min(axis=0), place.max(axis=0)


def test_the_first_view_is_filled_by_the_data(visit):
    page = visit(nearby(), projection="mercator")
    for projection, least in [("mercator", 0.75), ("equal_earth", 0.35)]:
        page.get_by_label("Map projection").select_option(projection)
        low, high = bounds(page, "map")
        np.testing.assert_allclose(low, -high, atol=0.01)  # in the middle
        assert least < high.max() < 0.95
    low, high = bounds(page, "globe")
    assert 0.35 < max(-low.min(), high.max()) < 0.8
    start = page.evaluate("mercat.view()")
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    page.get_by_label("Map projection").select_option("mercator")
    page.locator("[data-action=reset]").click()
    start["map"] = page.evaluate("mercat.view().map")
    assert page.evaluate("mercat.view()") == start
    assert start["map"][0] > 5


def test_unfolding_a_near_view_ends_at_the_near_map(visit):
    page = visit(nearby())
    folded = page.evaluate("mercat.view().globe")
    for unfold in ("0.5", "1"):
        page.locator("[data-control=unfold]").fill(unfold)
        low, high = bounds(page, "globe")
        assert 0.4 < max(-low.min(), high.max()) < 0.95  # all of it, large, all the way
    np.testing.assert_allclose(bounds(page, "globe"), bounds(page, "map"), atol=1e-6)
    page.get_by_label("Map projection").select_option("equal_earth")
    view = page.evaluate("mercat.view()")
    np.testing.assert_allclose(view["globe"], view["map"])
    page.keyboard.press("u")
    np.testing.assert_allclose(page.evaluate("mercat.view().globe"), folded)


def test_dragging_the_globe_turns_it_and_recenters_the_map(page):
    before = spot(page, 0, "map")
    start = spot(page, 0, "globe")
    drag(page, start, (start[0] + 60, start[1] - 30))
    after = spot(page, 0, "globe")
    assert math.dist(after, (start[0] + 60, start[1] - 30)) < 1.5  # it stays under the pointer
    assert math.dist(spot(page, 0, "map"), before) > 20
    longitude, latitude, _ = page.evaluate("mercat.view()")["rotation"]
    assert longitude < -0.1
    assert latitude < -0.05


def test_dragging_the_map_turns_the_globe(page):
    before = spot(page, 0, "globe")
    start = spot(page, 0, "map")
    drag(page, start, (start[0] + 40, start[1]))
    assert math.dist(spot(page, 0, "map"), (start[0] + 40, start[1])) < 1.5
    assert spot(page, 0, "globe")[0] > before[0] + 20


def test_a_thrown_globe_goes_on_turning(visit):
    page = visit(*clusters(), context={"reduced_motion": "no-preference"})
    x, y = spot(page, 0)
    send = page.context.new_cdp_session(page).send
    now = time.time()

    def mouse(kind, dx, seconds):
        event = {"type": kind, "x": x + dx, "y": y, "timestamp": now + seconds}
        send("Input.dispatchMouseEvent", {**event, "button": "left", "buttons": 1, "clickCount": 1})

    mouse("mousePressed", 0, 0)
    for k in range(1, 6):
        mouse("mouseMoved", 10 * k, 0.016 * k)
    mouse("mouseReleased", 50, 0.09)
    radius = 0.92 * page.evaluate("mercat.panes()[0].width") / 2
    dragged = math.asin(50 / radius)
    until(lambda: page.evaluate("mercat.view().rotation[0]") < -dragged - 0.05)


@pytest.mark.parametrize("pane", ["globe", "map"])
def test_the_lasso_selects_the_right_points_on_either_view(page, pane):
    page.keyboard.press("l")
    circle(page, spot(page, 7, pane))
    assert page.evaluate("mercat.selection()") == list(range(5, 10))
    assert page.locator("section", has_text="Selection").inner_text().count("5 points selected")
    page.keyboard.down("Control")
    circle(page, spot(page, 12, pane))
    page.keyboard.up("Control")
    assert page.evaluate("mercat.selection()") == list(range(5, 15))
    page.keyboard.press("Escape")
    assert page.evaluate("mercat.selection()") == []


def test_the_lasso_leaves_the_far_side_alone(page):
    page.keyboard.press("l")
    circle(page, spot(page, 2), radius=120)
    assert set(page.evaluate("mercat.selection()")).isdisjoint(range(20, 25))


def test_shift_and_drag_is_a_lasso_too(page):
    page.keyboard.down("Shift")
    circle(page, spot(page, 0, "map"))
    page.keyboard.up("Shift")
    assert page.evaluate("mercat.selection()") == list(range(5))


@pytest.mark.parametrize("pane", ["globe", "map"])
def test_hovering_shows_the_record(page, pane):
    page.mouse.move(*spot(page, 7, pane))
    row = state(page)["hover"]
    assert math.dist(spot(page, row, pane), spot(page, 7, pane)) < 1e-6
    text = page.locator(".tooltip").inner_text()
    assert f"Row {row}" in text
    assert "east" in text
    assert ("missing" in text) == (row == 7 or row % 4 != 0)
    page.mouse.move(5, 5)
    assert page.locator(".tooltip").is_hidden()


def test_clicking_pins_and_unpins(page):
    at = spot(page, 7)
    page.mouse.click(*at)
    (row,) = state(page)["pins"]
    card = page.locator(".card")
    assert f"Row {row}" in card.inner_text()
    assert "place" in card.inner_text()
    page.get_by_role("button", name=f"Unpin Row {row}").click()
    assert state(page)["pins"] == []


def test_the_legend_hides_isolates_and_shows_all(page):
    shown = page.locator(".points")
    assert shown.inner_text() == "30 points"
    page.locator(".entry", has_text="east").click()
    assert shown.inner_text() == "25 of 30 points"
    page.mouse.move(*spot(page, 7))
    assert state(page)["hover"] is None  # what is hidden is not found
    page.get_by_role("button", name="Show all").click()
    assert shown.inner_text() == "30 points"
    page.locator("li", has_text="west").hover()
    page.get_by_role("button", name="Show only west").click()
    assert shown.inner_text() == "5 of 30 points"
    page.locator(".entry", has_text="west").dblclick()
    assert shown.inner_text() == "30 points"


def test_colours_follow_any_column(visit):
    points, frame = clusters()
    page = visit(points, frame, point_loss=np.linspace(0, 1, 30))
    color = page.get_by_label("Colour by")
    assert color.locator("option").all_inner_texts() == [
        "place",
        "height",
        "rank",
        "note",
        "Trust (point loss)",
        "One colour",
    ]
    color.select_option("height")
    assert page.locator(".scale").inner_text().startswith("0\n14.5")
    assert page.locator(".entry", has_text="missing").inner_text().endswith("1")
    page.get_by_label("Least height shown").fill("500")
    assert page.locator(".points").inner_text() == "16 of 30 points"  # the upper half and missing
    color.select_option("rank")
    assert page.locator(".entry .name").all_inner_texts() == ["0", "1", "2"]
    page.get_by_label("As a scale").check()
    assert page.locator(".scale").is_visible()
    color.select_option("Trust (point loss)")
    assert "trusted" in page.locator(".scale").inner_text()
    color.select_option("note")
    assert page.locator(".entry", has_text="missing").inner_text().split("\n")[-1] == "22"
    color.select_option("One colour")
    assert "No column" in page.locator(".legend").inner_text()


def test_search_selects_and_turns_to_what_it_finds(page):
    page.keyboard.press("/")
    page.keyboard.type("BACK")
    page.get_by_role("option", name="back").wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("mercat.selection()") == list(range(20, 25))
    assert spot(page, 20) is not None  # it was on the far side
    longitude = page.evaluate("mercat.view().rotation[0]")
    assert abs(abs(longitude) - math.pi) < 0.1
    box = page.get_by_role("combobox", name="Search labels")
    box.fill("nowhere")
    page.get_by_text("No label holds this").wait_for()
    box.press("Enter")
    assert len(page.evaluate("mercat.selection()")) == 5


KEYS_AT_ONCE = """([text, ...keys]) => {
    const box = document.querySelector("[role=combobox]");
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    for (const key of keys) box.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""


def test_keys_meet_the_list_of_the_text_as_it_stands(page):
    box = page.get_by_label("Search labels")
    box.fill("st")
    page.get_by_role("option", name="west").wait_for()
    box.press("ArrowDown")
    box.press("ArrowDown")
    page.evaluate(KEYS_AT_ONCE, ["north", "Enter"])  # the mark was on another list
    assert page.evaluate("mercat.selection()") == list(range(15, 20))
    page.evaluate(KEYS_AT_ONCE, ["o", "ArrowDown", "Enter"])  # "front", "north", ...
    assert page.evaluate("mercat.selection()") == list(range(5))
    page.evaluate(KEYS_AT_ONCE, ["no such label", "ArrowDown", "Enter"])
    assert len(page.evaluate("mercat.selection()")) == 5
    page.locator("[data-action=reset]").click()
    for key in ("ArrowDown", "Enter"):
        box.press(key)
    assert page.evaluate("mercat.selection()") == []


def test_finding_a_label_without_points_leaves_the_view_where_it_is(visit):
    points, frame = clusters()
    place = pd.Categorical(frame["place"], categories=[*NAMES, "nowhere"])
    page = visit(points, pd.DataFrame({"place": place}))
    before = page.evaluate("mercat.view()")
    page.get_by_label("Search labels").fill("nowhere")
    page.get_by_role("option", name="nowhere").wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("mercat.selection()") == []
    assert page.evaluate("mercat.view()") == before


def test_zoom_keeps_the_place_and_pan_moves_the_plane(page):
    at = spot(page, 7, "map")
    page.mouse.move(*at)
    page.mouse.wheel(0, -400)
    until(lambda: page.evaluate("mercat.view().map[0]") > 1.5)
    assert math.dist(spot(page, 7, "map"), at) < 1
    assert page.evaluate("mercat.view().globe") == [1, 0, 0]
    page.keyboard.press("p")
    drag(page, at, (at[0] + 50, at[1] + 20))
    assert math.dist(spot(page, 7, "map"), (at[0] + 50, at[1] + 20)) < 1.5
    assert page.evaluate("mercat.view().rotation") == [0, 0, 0]


def test_a_double_click_brings_a_place_to_the_middle(page):
    page.mouse.dblclick(*spot(page, 15, "map"))
    _, latitude, _ = page.evaluate("mercat.view()")["rotation"]
    assert abs(latitude - math.radians(50)) < 0.1


def test_unfolding_ends_at_the_map(page):
    page.keyboard.press("u")
    assert state(page)["unfold"] == 1
    panes = {pane["name"]: pane for pane in page.evaluate("mercat.panes()")}
    left, right = spot(page, 20, "globe"), spot(page, 20, "map")
    assert abs(right[0] - left[0] - panes["map"]["x"]) < 1
    assert abs(right[1] - left[1]) < 1
    page.locator("[data-control=unfold]").fill("0.5")
    halfway = spot(page, 15)
    assert state(page)["unfold"] == 0.5
    page.mouse.move(*halfway)
    assert state(page)["hover"] in range(15, 20)  # picking works on the way
    page.keyboard.press("u")
    assert state(page)["unfold"] == 0


def test_keys_choose_the_layout_and_selections_follow_the_projection(page):
    for key, names in [("1", ["globe"]), ("3", ["map"]), ("2", ["globe", "map"])]:
        page.keyboard.press(key)
        assert [pane["name"] for pane in page.evaluate("mercat.panes()")] == names
    page.get_by_label("Map projection").select_option("equal_earth")
    page.keyboard.press("l")
    circle(page, spot(page, 7, "map"), radius=30)
    assert page.evaluate("mercat.selection()") == list(range(5, 10))


def test_points_past_the_edge_of_mercator_are_counted(visit):
    page = visit(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]))
    note = page.locator(".note")
    assert note.inner_text().startswith("2 points beyond the edge")
    page.get_by_label("Map projection").select_option("equal_earth")
    assert note.is_hidden()


def test_the_theme_changes_the_stage_and_the_controls(page):
    corner = (20, 100)
    dark = pixel(page, corner)
    assert sum(dark) < 100
    page.keyboard.press("d")
    until(lambda: sum(pixel(page, corner)) > 650)
    assert page.locator("#mercat").get_attribute("data-theme") == "light"


def test_auto_follows_the_reader_s_system(visit):
    page = visit(*clusters(), context={"color_scheme": "light"})
    assert state(page)["theme"] == "light"


def test_an_explorer_in_a_page_of_the_site_takes_its_theme(browser, tmp_path):
    to_html(*clusters(), tmp_path / "page.html")
    script = Path(__file__).parents[1] / "docs" / "_static" / "explorer.js"
    (tmp_path / "index.html").write_text(
        f"""<!doctype html><body data-theme="dark"><script src="{script.as_uri()}"></script>
        <iframe class="explorer" src="page.html" width="900" height="500"></iframe>"""
    )
    page = browser.new_page(color_scheme="light", reduced_motion="reduce")
    page.goto((tmp_path / "index.html").as_uri())
    explorer = page.frame_locator("iframe").locator("#mercat")

    def shows(theme):
        page.frame_locator("iframe").locator(f"#mercat[data-theme={theme}]").wait_for()

    shows("dark")
    explorer.get_by_label("Search labels").fill("kept")
    for theme, shown in [("light", "light"), ("dark", "dark"), ("auto", "light")]:
        page.evaluate("(theme) => { document.body.dataset.theme = theme; }", theme)
        shows(shown)
    assert explorer.get_by_label("Search labels").input_value() == "kept"  # it was not loaded anew
    assert page.evaluate("history.length") == 2
    page.close()


@pytest.mark.parametrize("wish", ["", "#theme=", "#theme=toString", "#theme=<b>", "#dark"])
def test_an_address_that_names_no_theme_changes_nothing(browser, tmp_path, wish):
    path = to_html(*clusters(), tmp_path / "page.html", theme="dark")
    page = browser.new_page(color_scheme="light")
    page.goto(path.as_uri() + wish)
    page.wait_for_selector("html[data-ready=true]")
    assert state(page)["theme"] == "dark"
    page.close()


def test_the_picture_has_both_views_a_title_and_a_key(page, tmp_path):
    from PIL import Image

    with page.expect_download() as download:
        page.locator("[data-action=picture]").click()
    assert download.value.suggested_filename == "six-places.png"
    download.value.save_as(tmp_path / "picture.png")
    picture = Image.open(tmp_path / "picture.png").convert("RGB")
    stage = page.locator(".stage").bounding_box()
    assert picture.size == (2 * round(stage["width"] + 220), 2 * round(stage["height"] + 48))
    colors = {color for _, color in picture.getcolors(1 << 24)}
    assert (0, 114, 178) in colors  # the first entry of the key
    x, y = page.evaluate("mercat.project(20, 'map')")
    seen = picture.getpixel((round(2 * x), round(2 * (y + 48))))
    assert seen[2] > 120
    assert seen[0] < 90


def test_rows_are_saved_as_csv(page, tmp_path):
    page.keyboard.press("l")
    circle(page, spot(page, 7))
    with page.expect_download() as download:
        page.get_by_role("button", name="Save CSV").click()
    download.value.save_as(tmp_path / "rows.csv")
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert lines[0] == "row,place,height,rank,note"
    assert lines[1:4] == ["5,east,2.5,2,", "6,east,3,0,", "7,east,,1,"]


def test_reset_undoes_everything(page):
    first = page.evaluate("[mercat.view(), mercat.state(), mercat.selection()]")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("+")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("l")
    circle(page, spot(page, 7, "map"))
    page.keyboard.press("Enter")
    page.locator(".entry", has_text="north").click()
    page.get_by_label("Colour by").select_option("height")
    page.get_by_label("Map projection").select_option("equal_earth")
    page.locator("[data-control=size]").fill("1")
    page.locator("[data-control=unfold]").fill("0.3")
    page.keyboard.press("1")
    changed = page.evaluate("[mercat.view(), mercat.state(), mercat.selection()]")
    assert all(a != b for a, b in zip(first, changed, strict=True))
    page.locator("[data-action=reset]").click()
    assert page.evaluate("[mercat.view(), mercat.state(), mercat.selection()]") == first


def test_the_keyboard_turns_zooms_and_shows_help(page):
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    longitude, latitude, _ = page.evaluate("mercat.view()")["rotation"]
    assert longitude == pytest.approx(math.radians(6), abs=0.01)
    assert latitude == pytest.approx(math.radians(6), abs=0.01)
    page.keyboard.press("]")
    assert state(page)["size"] == pytest.approx(1.25)
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Help").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog", name="Help").is_hidden()


def test_every_control_has_a_name(page):
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, input, select, [tabindex='0']")].filter((e) =>
            !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label"))).length"""
    )
    assert nameless == 0


def test_fingers_turn_pinch_and_pin(visit):
    phone = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
    page = visit(*clusters(), context=phone)
    globe, chart = page.evaluate("mercat.panes()")
    assert chart["y"] == pytest.approx(globe["height"])  # stacked
    page.touchscreen.tap(*spot(page, 7))
    assert len(state(page)["pins"]) == 1
    send = page.context.new_cdp_session(page).send
    x, y = spot(page, 0)

    def touch(kind, *points):
        touches = [{"x": a, "y": b, "id": k} for k, (a, b) in enumerate(points)]
        send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    touch("touchStart", (x, y))
    touch("touchMove", (x + 20, y))
    touch("touchMove", (x + 40, y))
    touch("touchEnd")
    assert page.evaluate("mercat.view().rotation[0]") < -0.1
    touch("touchStart", (x - 30, y), (x + 30, y))
    touch("touchMove", (x - 60, y), (x + 60, y))
    touch("touchEnd")
    assert page.evaluate("mercat.view().globe[0]") == pytest.approx(2, rel=0.1)
    page.get_by_role("button", name="Colours and details").tap()
    assert page.get_by_label("Colour by").is_visible()


def test_resizing_keeps_the_views_in_place(page):
    page.set_viewport_size({"width": 700, "height": 900})
    until(lambda: page.evaluate("mercat.panes()[1].y") > 0)
    box = page.locator(".stage").bounding_box()
    globe, _ = page.evaluate("mercat.panes()")
    assert globe["width"] == pytest.approx(box["width"])
    canvas = page.locator("canvas.points-layer")
    assert canvas.evaluate("(c) => c.width") == round(box["width"])
    page.mouse.move(*spot(page, 7))
    assert state(page)["hover"] in range(5, 10)


def test_a_lost_graphics_context_comes_back(page):
    page.locator("label", has_text="Names").click()
    page.mouse.move(2, 2)
    at = spot(page, 20, "map")
    before = pixel(page, at)
    page.evaluate(
        """async () => {
            const canvas = document.querySelector("canvas.points-layer");
            const lost = canvas.getContext("webgl2").getExtension("WEBGL_lose_context");
            const happens = (name) => new Promise((resolve) =>
                canvas.addEventListener(name, () => setTimeout(resolve)));  // when all have heard
            const gone = happens("webglcontextlost"), back = happens("webglcontextrestored");
            lost.loseContext();
            await gone;
            lost.restoreContext();
            await back;
        }"""
    )
    until(lambda: pixel(page, at) == before)


HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=2'>\"'&<b>"


def test_hostile_text_runs_nothing_and_reads_as_it_is(visit):
    points, _ = clusters()
    frame = {HOSTILE: [HOSTILE] * 30, "javascript:hurt()": ["<svg onload=window.hurt=3>"] * 30}
    page = visit(points, frame, title=HOSTILE)
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.title() == HOSTILE
    page.mouse.move(*spot(page, 7))
    page.mouse.click(*spot(page, 7))
    page.get_by_label("Search labels").fill("script")
    page.locator(".found [role=option]").first.click()
    assert page.locator(".card dd").first.inner_text() == HOSTILE
    assert page.locator(".entry .name").first.inner_text() == HOSTILE
    with page.expect_download():
        page.locator("[data-action=picture]").click()
    assert page.evaluate("window.hurt") is None
    assert page.locator(".mercat img").count() == 0
    assert page.locator(".mercat b").count() == 0


def test_the_policy_stops_scripts_and_requests(browser, tmp_path):
    path = to_html(*clusters(), tmp_path / "page.html")
    page = browser.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.hurt = 1";
            document.body.append(script);
            const image = new Image();
            image.src = "https://example.invalid/x.png";
            fetch("https://example.invalid/").catch(() => {});
        }"""
    )
    for what in ("script-src", "img-src", "connect-src"):
        until(
            lambda what=what: any("Content Security" in text and what in text for text in refused)
        )
    assert page.evaluate("window.hurt") is None
    page.close()


def test_the_widget_renders_and_talks_to_its_model(browser):
    pytest.importorskip("anywidget", reason='needs anywidget: pip install "mercat[viewer]"')
    from mercat.viewer import Explorer

    points, frame = clusters()
    widget = Explorer(points, frame, height=500)
    page = browser.new_page(viewport=WIDE, reduced_motion="reduce")
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content("<div id='cell'></div>")
    page.add_style_tag(content=widget._css)
    page.evaluate(
        """async ([code, payload]) => {
            const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
            const widget = (await import(url)).default;
            const bytes = Uint8Array.from(payload);
            const rows = (...list) => new DataView(Uint32Array.from(list).buffer);
            const values = {
                _payload: new DataView(bytes.buffer), height: 500, selection: rows(),
                view: { rotation: [1, 0, 0], globe: [1, 0, 0], map: [1, 0, 0] },
            };
            const handlers = {};
            window.model = {
                get: (key) => values[key],
                set: (key, value) => { values[key] = value; },
                save_changes: () => {},
                on: (event, handler) => { handlers[event] = handler; },
                off: (event) => { delete handlers[event]; },
            };
            window.select = (...list) => {
                values.selection = rows(...list);
                handlers["change:selection"]();
            };
            window.chosen = () => [...new Uint32Array(values.selection.buffer)];
            const el = document.getElementById("cell");
            window.leave = await widget.render({ model: window.model, el });
        }""",
        [widget._esm, list(widget._payload)],
    )
    assert page.locator(".mercat").bounding_box()["height"] == 500
    page.evaluate("select(3, 4)")
    assert "2 points selected" in page.locator(".panel").inner_text()
    page.get_by_role("button", name="Clear").click()
    assert page.evaluate("chosen()") == []
    page.get_by_label("Search labels").fill("west")
    page.locator(".found [role=option]").first.click()
    assert page.evaluate("chosen()") == list(range(10, 15))
    west = math.radians(-60)
    until(lambda: abs(page.evaluate("model.get('view').rotation[0]") - west) < 0.05)
    page.evaluate("leave()")
    assert page.locator(".mercat canvas").count() == 0
    assert complaints == []
    page.close()


def turned(points, page):
    """The points in the view's frame: x to the reader, y right, z up."""
    longitude, latitude, roll = page.evaluate("mercat.view().rotation")
    front = from_lonlat(np.array(longitude), np.array(latitude))
    right = np.array([-math.sin(longitude), math.cos(longitude), 0])
    up = np.cross(front, right)
    c, s = math.cos(roll), math.sin(roll)
    return points @ np.stack([front, c * right - s * up, s * right + c * up], axis=1)


def within_decagon(view, radius):
    """What the lasso of circle(), ten straight lines, holds about the globe's middle."""
    normals = np.pi * (0.1 + 0.2 * np.arange(10))
    across = view[:, 1:2] * np.cos(normals) + view[:, 2:3] * np.sin(normals)
    return (view[:, 0] > 0) & (across.max(axis=1) < radius * math.cos(math.pi / 10))


def test_a_hundred_thousand_points_load_small_and_stay_responsive(visit):
    n = 100_000
    kinds = np.arange(n) * 12 // n
    frame = {"kind": [f"kind {k}" for k in kinds], "value": np.linspace(0, 1, n)}
    points = fibonacci_grid(n, np)
    page = visit(points, frame)
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    assert usage["backingStorageSize"] > 12 * n  # the arrays are counted
    assert usage["usedSize"] + usage["backingStorageSize"] < 25e6
    start = page.evaluate("mercat.frames()")
    box = page.locator(".stage").bounding_box()
    middle = (box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    drag(page, middle, (middle[0] + 80, middle[1]), steps=10)
    assert page.evaluate("mercat.frames()") >= start + 3  # it drew along the way
    assert page.evaluate("mercat.view().rotation[0]") < -0.2
    page.mouse.move(middle[0], middle[1] + 20)
    assert state(page)["hover"] is not None
    page.keyboard.press("l")
    circle(page, middle, radius=60)
    chosen = page.evaluate("mercat.selection().length")
    globe = page.evaluate("mercat.panes()[0]")
    inside = within_decagon(
        turned(points, page), 60 / (0.46 * min(globe["width"], globe["height"]))
    )
    assert chosen == pytest.approx(inside.sum(), rel=0.002)
