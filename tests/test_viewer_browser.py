"""The viewer in Chromium, with WebGL2 in software."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from explorer_page import (
    CENTERS,
    NAMES,
    WIDE,
    centroid,
    circle,
    clusters,
    color_by,
    column,
    display,
    drag,
    hold_still,
    pixel,
    screenshot,
    spot,
    state,
    until,
    value,
)

from mercat._math.sphere import fibonacci_grid, from_lonlat
from mercat.viewer import to_html


def test_the_shader_draws_points_where_the_geometry_puts_them(visit):
    page = visit(
        CENTERS, {"place": NAMES}, theme="dark", context={"reduced_motion": "no-preference"}
    )
    hold_still(page)
    for key in ("n", "g", "i", "ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    colors = {4: (0, 114, 178), 1: (230, 159, 0), 0: (0, 158, 115), 3: (213, 94, 0)}

    def drawn(pane, *rows):
        page.clock.run_for(1000 / 60)
        image = screenshot(page)
        places = {row: spot(page, row, pane) for row in rows}
        return all(
            at is not None and math.dist(centroid(image, at, colors[row]), at) < 1
            for row, at in places.items()
        )

    for projection in ("mercator", "equal_earth"):
        display(page, "Map projection").select_option(projection)
        page.keyboard.press("Escape")  # closes the sheet
        until(lambda: drawn("map", 0, 1, 3, 4))
        page.keyboard.press("1")
        seen = set()
        while state(page)["unfold"] > 0:  # on the way from the map to the globe
            page.clock.run_for(150)
            seen.add(state(page)["unfold"])
            until(lambda: drawn("globe", 0, 1, 3))
        assert len(seen) > 4
        assert spot(page, 4, "globe") is None  # it is on the far side
        page.keyboard.press("2")
        page.clock.run_for(1300)


def test_points_on_the_back_of_the_globe_are_dimmed_or_hidden(visit):
    page = visit(CENTERS, {"place": NAMES}, theme="dark")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "g", "n", "i", "1"):
        page.keyboard.press(key)
    globe = page.evaluate("mercat.panes()[0]")
    box = page.locator(".stage").bounding_box()
    front = spot(page, 0, "globe")
    behind = (  # "back" is opposite
        2 * box["x"] + globe["width"] - front[0],
        2 * box["y"] + globe["height"] - front[1],
    )

    def stands_out():
        image = screenshot(page)
        body = image.getpixel((round(behind[0]), round(behind[1]) + 25))
        return math.dist(image.getpixel((round(behind[0]), round(behind[1]))), body)

    until(lambda: stands_out() > 30)
    assert math.dist(pixel(page, behind), (0, 114, 178)) > 100
    page.keyboard.press("b")
    until(lambda: stands_out() < 5)


def nearby(n=400):
    """A disc of points with a radius of 20 degrees, slightly off centre."""
    rng = np.random.default_rng(0)
    away, angle = np.radians(20) * np.sqrt(rng.uniform(size=n)), rng.uniform(0, 2 * np.pi, n)
    longitude = np.radians(3) + away * np.cos(angle)
    return from_lonlat(longitude, np.radians(-4) + away * np.sin(angle))


def bounds(page, pane, n=400):
    """Bounding box of all points on a pane, in units from -1 to 1."""
    at = page.evaluate(f"[...Array({n}).keys()].map((row) => mercat.project(row, '{pane}'))")
    rect = next(one for one in page.evaluate("mercat.panes()") if one["name"] == pane)
    corner, size = np.array([rect["x"], rect["y"]]), np.array([rect["width"], rect["height"]])
    place = 2 * (np.array(at) - corner) / size - 1
    return place.min(axis=0), place.max(axis=0)


def test_the_first_view_is_filled_by_the_data(visit):
    page = visit(nearby(), projection="mercator")
    for projection, least in [("mercator", 0.75), ("equal_earth", 0.35)]:
        display(page, "Map projection").select_option(projection)
        low, high = bounds(page, "map")
        np.testing.assert_allclose(low, -high, atol=0.01)  # in the middle
        assert least < high.max() < 0.95
    low, high = bounds(page, "globe")
    assert 0.35 < max(-low.min(), high.max()) < 0.8
    start = page.evaluate("mercat.view()")
    page.keyboard.press("Escape")
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    display(page, "Map projection").select_option("mercator")
    page.locator("[data-action=reset]").click()
    start["map"] = page.evaluate("mercat.view().map")
    assert page.evaluate("mercat.view()") == start
    assert start["map"][0] > 5


def test_the_inset_is_a_small_whole_view_and_a_click_swaps_it_with_the_large_one(page):
    large, small = page.evaluate("mercat.panes()")
    assert (large["name"], small["name"]) == ("map", "globe")
    stage = page.locator(".stage").bounding_box()
    assert (large["width"], large["height"]) == (stage["width"], stage["height"])
    assert 90 < small["width"] < 0.4 * stage["width"]
    page.mouse.wheel(0, 0)
    at = (
        stage["x"] + small["x"] + small["width"] / 2,
        stage["y"] + small["y"] + small["height"] / 2,
    )
    page.mouse.click(*at)
    assert [pane["name"] for pane in page.evaluate("mercat.panes()")] == ["globe", "map"]
    page.get_by_role("button", name="Unfold").click()
    assert [pane["name"] for pane in page.evaluate("mercat.panes()")] == ["map", "globe"]
    page.get_by_role("button", name="Enlarge the globe").click()
    assert state(page)["layout"] == "globe"
    page.keyboard.press("u")
    assert (state(page)["layout"], state(page)["unfold"]) == ("map", 0)
    page.keyboard.press("i")
    assert len(page.evaluate("mercat.panes()")) == 1
    assert page.locator(".inset").is_hidden()


def test_the_inset_can_be_moved_and_turned_but_not_off_the_stage(page):
    before = page.evaluate("mercat.panes()[1]")
    grip = page.locator(".grip").bounding_box()
    start = (grip["x"] + 10, grip["y"] + 10)
    drag(page, start, (start[0] + 200, start[1] - 100))
    after = page.evaluate("mercat.panes()[1]")
    assert (after["x"] - before["x"], after["y"] - before["y"]) == pytest.approx((200, -100), abs=2)
    drag(page, (start[0] + 200, start[1] - 100), (5000, 5000))
    last, stage = page.evaluate("mercat.panes()[1]"), page.locator(".stage").bounding_box()
    assert last["x"] + last["width"] < stage["width"]
    assert last["y"] + last["height"] < stage["height"]
    middle = (
        stage["x"] + last["x"] + last["width"] / 2,
        stage["y"] + last["y"] + last["height"] / 2,
    )
    drag(page, middle, (middle[0] + 30, middle[1]))
    assert page.evaluate("mercat.view().rotation[0]") < -0.2
    assert state(page)["layout"] == "map"  # a drag is not a click


def test_unfolding_a_zoomed_globe_ends_at_the_zoomed_map(visit):
    page = visit(nearby(), context={"reduced_motion": "no-preference"})
    hold_still(page)
    chart = bounds(page, "map")
    page.keyboard.press("1")
    page.clock.run_for(16)
    np.testing.assert_allclose(bounds(page, "globe"), chart, atol=0.05)  # it begins as the map
    page.clock.run_for(500)
    low, high = bounds(page, "globe")
    assert 0.4 < max(-low.min(), high.max()) < 0.95  # all points fit, and are large
    page.clock.run_for(1300)
    assert page.evaluate("mercat.view().globe") == [1, 0, 0]
    page.keyboard.press("2")
    page.clock.run_for(1300)
    np.testing.assert_allclose(bounds(page, "map"), chart, atol=1e-6)


def test_dragging_the_globe_turns_it_and_recenters_the_map(page):
    page.keyboard.press("1")
    before = spot(page, 0, "map")
    start = spot(page, 0, "globe")
    drag(page, start, (start[0] + 60, start[1] - 30))
    after = spot(page, 0, "globe")
    assert math.dist(after, (start[0] + 60, start[1] - 30)) < 1.5  # it stays under the pointer
    assert math.dist(spot(page, 0, "map"), before) > 5
    longitude, latitude, _ = page.evaluate("mercat.view()")["rotation"]
    assert longitude < -0.1
    assert latitude < -0.05


def test_dragging_the_map_turns_the_globe(page):
    before = spot(page, 0, "globe")
    start = spot(page, 0, "map")
    drag(page, start, (start[0] + 40, start[1]))
    assert math.dist(spot(page, 0, "map"), (start[0] + 40, start[1])) < 1.5
    assert spot(page, 0, "globe")[0] > before[0] + 5


def test_a_thrown_globe_continues_to_turn(visit):
    page = visit(*clusters(), context={"reduced_motion": "no-preference"})
    page.keyboard.press("1")
    until(lambda: state(page)["unfold"] == 0)
    x, y = spot(page, 0, "globe")
    send = page.context.new_cdp_session(page).send
    now = time.time()

    def mouse(kind, dx, seconds):
        event = {"type": kind, "x": x + dx, "y": y, "timestamp": now + seconds}
        send("Input.dispatchMouseEvent", {**event, "button": "left", "buttons": 1, "clickCount": 1})

    mouse("mousePressed", 0, 0)
    for k in range(1, 6):
        mouse("mouseMoved", 10 * k, 0.016 * k)
    mouse("mouseReleased", 50, 0.09)
    radius = 0.92 * page.evaluate("mercat.panes()[0].height") / 2
    dragged = math.asin(50 / radius)
    until(lambda: page.evaluate("mercat.view().rotation[0]") < -dragged - 0.05)


@pytest.mark.parametrize("pane", ["globe", "map"])
def test_the_lasso_selects_the_right_points_on_either_view(page, pane):
    page.keyboard.press("1" if pane == "globe" else "2")
    page.keyboard.press("l")
    circle(page, spot(page, 7, pane))
    assert page.evaluate("mercat.selection()") == list(range(5, 10))
    assert page.locator(".selection-panel").inner_text().count("5 points selected")
    page.keyboard.down("Control")
    circle(page, spot(page, 12, pane))
    page.keyboard.up("Control")
    assert page.evaluate("mercat.selection()") == list(range(5, 15))
    page.keyboard.press("Escape")
    assert page.evaluate("mercat.selection()") == []


def test_the_lasso_does_not_select_points_on_the_far_side(page):
    page.keyboard.press("1")
    page.keyboard.press("l")
    circle(page, spot(page, 2, "globe"), radius=120)
    assert set(page.evaluate("mercat.selection()")).isdisjoint(range(20, 25))


def test_dragging_with_shift_also_draws_a_lasso(page):
    page.keyboard.down("Shift")
    circle(page, spot(page, 0, "map"))
    page.keyboard.up("Shift")
    assert page.evaluate("mercat.selection()") == list(range(5))


@pytest.mark.parametrize("pane", ["globe", "map"])
def test_hovering_shows_the_values_of_the_point(page, pane):
    page.keyboard.press("1" if pane == "globe" else "2")
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


def test_values_can_be_hidden_isolated_and_restored(page):
    shown = page.locator(".points")
    assert shown.inner_text() == "30 points"
    value(page, "east").locator(".swatch").click()
    assert shown.inner_text() == "25 of 30 points"
    page.mouse.move(*spot(page, 7))
    assert state(page)["hover"] is None  # hidden points are not found
    page.get_by_role("button", name="Show all").click()
    assert shown.inner_text() == "30 points"
    value(page, "west").click()
    assert shown.inner_text() == "5 of 30 points"
    value(page, "east").click(modifiers=["Control"])
    assert shown.inner_text() == "10 of 30 points"
    page.get_by_label("Clear the filter of place").click()
    assert shown.inner_text() == "30 points"
    value(page, "west").click()
    value(page, "west").click()
    assert shown.inner_text() == "30 points"


def test_points_can_be_coloured_by_any_column(visit):
    points, frame = clusters()
    page = visit(points, frame, point_loss=np.linspace(0, 1, 30))
    names = page.locator(".column-name .name").all_inner_texts()
    assert names == ["place", "height", "rank", "note", "point loss"]
    color_by(page, "height")
    height = column(page, "height")
    assert height.locator(".ends").inner_text().split() == ["0", "14.5"]
    assert height.locator(".missing").inner_text() == "1 missing"
    assert height.locator(".bar").is_visible()
    assert column(page, "point loss").locator(".badge-quiet").inner_text() == "Trust"
    color_by(page, "point loss")
    # A hidden chart is updated when it becomes visible.
    until(lambda: "trusted" in column(page, "point loss").inner_text())
    color_by(page, "note")
    missing = column(page, "note").locator("[role=option]", has_text="missing")
    assert missing.inner_text().split("\n")[-1] == "22"
    page.get_by_role("button", name="Colour by note").click()  # a second click removes the colours
    assert state(page)["colorBy"] == -1
    color_by(page, "rank")
    assert column(page, "rank").locator("[role=option]").count() == 3
    column(page, "rank").get_by_role("button", name="as a scale").click()
    assert column(page, "rank").locator(".histogram").is_visible()


def test_search_selects_matches_and_turns_to_them(page):
    page.keyboard.press("/")
    page.keyboard.type("BACK")
    page.locator(".found").get_by_role("option", name="back").wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("mercat.selection()") == list(range(20, 25))
    assert spot(page, 20, "globe") is not None  # it was on the far side
    longitude = page.evaluate("mercat.view().rotation[0]")
    assert abs(abs(longitude) - math.pi) < 0.1
    box = page.get_by_role("combobox", name="Search labels")
    box.fill("nowhere")
    page.locator(".found").get_by_text("No match").wait_for()
    box.press("Enter")
    assert len(page.evaluate("mercat.selection()")) == 5


KEYS_AT_ONCE = """([text, ...keys]) => {
    const box = document.querySelector("[role=combobox]");
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    for (const key of keys) box.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""


def test_keys_use_the_list_of_the_current_search_text(page):
    box = page.get_by_label("Search labels")
    box.fill("st")
    page.locator(".found").get_by_role("option", name="west").wait_for()
    box.press("ArrowDown")
    box.press("ArrowDown")
    page.evaluate(KEYS_AT_ONCE, ["north", "Enter"])  # the marked entry was in a previous list
    assert page.evaluate("mercat.selection()") == list(range(15, 20))
    page.evaluate(KEYS_AT_ONCE, ["o", "ArrowDown", "Enter"])  # "front", "north", ...
    assert page.evaluate("mercat.selection()") == list(range(5))
    page.evaluate(KEYS_AT_ONCE, ["no such label", "ArrowDown", "Enter"])
    assert len(page.evaluate("mercat.selection()")) == 5
    page.locator("[data-action=reset]").click()
    for key in ("ArrowDown", "Enter"):
        box.press(key)
    assert page.evaluate("mercat.selection()") == []


def test_finding_a_label_without_points_does_not_move_the_view(visit):
    points, frame = clusters()
    place = pd.Categorical(frame["place"], categories=[*NAMES, "nowhere"])
    page = visit(points, pd.DataFrame({"place": place}))
    before = page.evaluate("mercat.view()")
    page.get_by_label("Search labels").fill("nowhere")
    page.locator(".found").get_by_role("option", name="nowhere").wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("mercat.selection()") == []
    assert page.evaluate("mercat.view()") == before


def test_zooming_keeps_the_position_and_panning_moves_the_plane(page):
    at = spot(page, 7, "map")
    page.mouse.move(*at)
    page.mouse.wheel(0, -400)
    until(lambda: page.evaluate("mercat.view().map[0]") > 1.5)
    assert math.dist(spot(page, 7, "map"), at) < 1
    assert page.evaluate("mercat.view().globe") == [1, 0, 0]
    page.keyboard.down("Alt")
    drag(page, at, (at[0] + 50, at[1] + 20))
    page.keyboard.up("Alt")
    assert math.dist(spot(page, 7, "map"), (at[0] + 50, at[1] + 20)) < 1.5
    assert page.evaluate("mercat.view().rotation") == [0, 0, 0]


def test_a_double_click_centres_a_position(page):
    page.mouse.dblclick(*spot(page, 15, "map"))
    _, latitude, _ = page.evaluate("mercat.view()")["rotation"]
    assert abs(latitude - math.radians(50)) < 0.1


def test_selections_follow_the_projection(page):
    display(page, "Map projection").select_option("equal_earth")
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    circle(page, spot(page, 7, "map"), radius=30)
    assert page.evaluate("mercat.selection()") == list(range(5, 10))


def test_points_beyond_the_edge_of_mercator_are_counted(visit):
    page = visit(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]))
    note = page.locator(".note.beyond")
    until(lambda: note.inner_text().startswith("2 points beyond the edge"))
    display(page, "Map projection").select_option("equal_earth")
    until(note.is_hidden)


def test_the_theme_changes_the_stage_and_the_controls(page):
    corner = (300, 200)
    dark = pixel(page, corner)
    assert sum(dark) < 120
    page.keyboard.press("d")
    until(lambda: sum(pixel(page, corner)) > 650)
    assert page.locator("#mercat").get_attribute("data-theme") == "light"


def test_the_auto_theme_follows_the_system_of_the_reader(visit):
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
    assert explorer.get_by_label("Search labels").input_value() == "kept"  # it was not reloaded
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


def test_the_picture_has_both_views_a_title_and_a_legend(page, tmp_path):
    from PIL import Image

    with page.expect_download() as download:
        page.locator("[data-action=picture]").click()
    assert download.value.suggested_filename == "six-places.png"
    download.value.save_as(tmp_path / "picture.png")
    picture = Image.open(tmp_path / "picture.png").convert("RGB")
    stage = page.locator(".stage").bounding_box()
    assert picture.size == (2 * round(stage["width"] + 220), 2 * round(stage["height"] + 48))
    colors = {color for _, color in picture.getcolors(1 << 24)}
    assert (0, 114, 178) in colors  # the first entry of the legend
    x, y = page.evaluate("mercat.project(22, 'map')")
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
    value(page, "north").click()
    color_by(page, "height")
    display(page, "Map projection").select_option("equal_earth")
    page.locator("[data-control=size]").fill("1")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    changed = page.evaluate("[mercat.view(), mercat.state(), mercat.selection()]")
    assert all(a != b for a, b in zip(first, changed, strict=True))
    page.locator("[data-action=reset]").click()
    assert page.evaluate("[mercat.view(), mercat.state(), mercat.selection()]") == first
    page.locator(".toast").get_by_role("button", name="Undo").click()
    undone = page.evaluate("[mercat.view(), mercat.state(), mercat.selection()]")
    undone[1]["tool"] = "lasso"  # undo does not change the tool
    assert undone == changed


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
            e.checkVisibility() &&
            !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label"))).length"""
    )
    assert nameless == 0


def test_touch_gestures_turn_zoom_and_pin(visit):
    phone = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
    page = visit(*clusters(), context=phone)
    page.touchscreen.tap(*spot(page, 7))
    (row,) = state(page)["pins"]
    assert page.locator(".tooltip").is_visible()  # a tap shows the card
    assert f"Row {row}" in page.locator(".tooltip").inner_text()
    assert page.locator(".points").inner_text() == "30 points"
    assert "east" in page.locator(".key").inner_text()  # the legend
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
    assert page.evaluate("mercat.view().map[0]") == pytest.approx(2, rel=0.1)
    page.get_by_role("button", name="Columns and selection").tap()
    assert page.get_by_role("button", name="Colour by height").is_visible()
    page.get_by_role("button", name="Close the panel").tap()
    assert page.get_by_role("button", name="Colour by height").is_hidden()


def test_resizing_keeps_the_views_in_place(page):
    page.set_viewport_size({"width": 700, "height": 900})
    until(lambda: page.evaluate("mercat.panes()[0].width") == 700)
    box = page.locator(".stage").bounding_box()
    canvas = page.locator("canvas.points-layer")
    assert canvas.evaluate("(c) => c.width") == round(box["width"])
    page.mouse.move(*spot(page, 7))
    assert state(page)["hover"] in range(5, 10)
    inset, frame = page.evaluate("mercat.panes()[1]"), page.locator(".inset").bounding_box()
    assert frame["x"] == pytest.approx(box["x"] + inset["x"], abs=1)
    assert frame["y"] == pytest.approx(box["y"] + inset["y"], abs=1)


@pytest.mark.parametrize("width", [390, 600, 760, 900, 1050, 1280, 2560])
def test_nothing_is_cut_off_at_any_width(visit, width):
    page = visit(*clusters(), context={"viewport": {"width": width, "height": 800}})
    out = page.evaluate(
        """() => [...document.querySelectorAll(
                ".head button, .head input, .tools button, .tools summary, .drawer-bar, .hint")]
            .filter((e) => e.checkVisibility())
            .filter((e) => { const box = e.getBoundingClientRect();
                const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                return box.left < 0 || box.right > innerWidth || !(e.contains(top) || top?.contains(e)); })
            .map((e) => e.outerHTML)"""
    )
    assert out == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_lost_graphics_context_is_restored(page):
    page.keyboard.press("n")
    page.mouse.move(2, 2)
    at = spot(page, 15, "map")
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


def test_hostile_text_is_shown_unchanged_and_not_run(visit):
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
    assert page.locator(".values .name").first.inner_text() == HOSTILE
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


def test_the_widget_renders_and_exchanges_data_with_its_model(browser):
    pytest.importorskip("anywidget", reason="needs anywidget: pip install anywidget")
    from mercat.viewer import Explorer

    points, frame = clusters()
    widget = Explorer(points, frame, height=500)
    page = browser.new_page(viewport=WIDE, reduced_motion="reduce")
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(f"<img id='{widget._still}' alt='still'><div id='cell'></div>")
    assert page.get_by_alt_text("still").is_visible()
    page.add_style_tag(content=widget._css)
    page.evaluate(
        """async ([code, payload, still]) => {
            const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
            const widget = (await import(url)).default;
            const bytes = Uint8Array.from(payload);
            const rows = (...list) => new DataView(Uint32Array.from(list).buffer);
            const values = {
                _payload: new DataView(bytes.buffer), height: 500, selection: rows(), sets: {}, _still: still,
                view: { rotation: [1, 0, 0], globe: [1, 0, 0], map: [1, 0, 0], flat: [1, 0, 0] },
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
        [widget._esm, list(widget._payload), widget._still],
    )
    assert page.get_by_alt_text("still").is_hidden()  # the widget is there instead
    assert page.locator(".mercat").bounding_box()["height"] == 500
    page.evaluate("select(3, 4)")
    assert "2 points selected" in page.locator(".rail").inner_text()
    page.get_by_role("button", name="Clear", exact=True).click()
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
    """Points in the coordinates of the view: x towards the viewer, y right, z up."""
    longitude, latitude, roll = page.evaluate("mercat.view().rotation")
    front = from_lonlat(np.array(longitude), np.array(latitude))
    right = np.array([-math.sin(longitude), math.cos(longitude), 0])
    up = np.cross(front, right)
    c, s = math.cos(roll), math.sin(roll)
    return points @ np.stack([front, c * right - s * up, s * right + c * up], axis=1)


def within_decagon(view, radius):
    """Points inside the lasso of circle(), a decagon around the centre of the globe."""
    normals = np.pi * (0.1 + 0.2 * np.arange(10))
    across = view[:, 1:2] * np.cos(normals) + view[:, 2:3] * np.sin(normals)
    return (view[:, 0] > 0) & (across.max(axis=1) < radius * math.cos(math.pi / 10))


def test_a_hundred_thousand_points_need_little_memory_and_stay_responsive(visit):
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
    page.keyboard.press("1")
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    drag(page, middle, (middle[0] + 80, middle[1]), steps=10)
    assert (
        page.evaluate("mercat.frames()") >= start + 3
    )  # drawn while dragging, not only at the end
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
