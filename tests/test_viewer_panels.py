"""The explorer's panels in Chromium: columns and filters, selection, table, undo, search."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chromium import missing
from explorer_page import (
    CENTERS,
    NAMES,
    circle,
    clusters,
    color_by,
    column,
    drag,
    error_bars,
    pause,
    pixel,
    screenshot,
    spot,
    spots,
    state,
    until,
    value,
)

from mercat._math.sphere import fibonacci_grid
from mercat.viewer import to_html


def shown(page):
    return page.evaluate("mercat.shown()")


def brush(page, name, start, end):
    """Drag over a histogram, between two fractions of its width."""
    chart = column(page, name).locator(".histogram")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    at = [(box["x"] + part * box["width"], box["y"] + box["height"] / 2) for part in (start, end)]
    drag(page, *at)


def many(n=4000, seed=0):
    """Points with columns of all types."""
    rng = np.random.default_rng(seed)
    start = datetime.date(2024, 1, 1)
    return fibonacci_grid(n, np), pd.DataFrame(
        {
            "kind": rng.choice(["a", "b", "c"], n),
            "size": rng.normal(size=n),
            "day": [start + datetime.timedelta(days=int(k)) for k in rng.integers(0, 365, n)],
            "good": rng.random(n) < 0.3,
            "level": rng.integers(0, 5, n),
            "name": [f"point {k}" for k in range(n)],
        }
    )


def test_every_kind_of_column_has_a_chart(visit):
    page = visit(*many())
    for name in ("size", "day"):
        assert column(page, name).locator(".histogram").is_visible()
    for name, count in (("kind", 3), ("good", 2), ("level", 5)):
        assert column(page, name).locator("[role=option]").count() == count
    assert column(page, "day").locator(".ends").inner_text().split() == ["2024-01-01", "2024-12-30"]
    # Names of points are not classes: they are searched and shown on cards, but not as colours.
    assert "4,000 distinct values" in column(page, "name").inner_text()
    assert column(page, "name").get_by_role("button").count() == 0
    page.get_by_label("Search labels").fill("point 17")
    page.locator(".found").get_by_role("option", name="point 17", exact=False).first.wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("mercat.selection()") == [17]


def test_filters_of_several_columns_are_combined(visit):
    points, frame = many()
    page = visit(points, frame)
    brush(page, "size", 0.5, 0.999)
    low, high = frame["size"].min(), frame["size"].max()
    # Forty bars: the brush began in the twentieth.
    half = frame["size"] >= low + 20 / 40 * (high - low)
    assert shown(page) == half.sum()
    counts = {
        item.locator(".name").inner_text(): int(
            item.locator(".count").inner_text().replace(",", "")
        )
        for item in column(page, "kind").locator("[role=option]").all()
    }
    assert counts == frame["kind"][half].value_counts().to_dict()
    value(page, "a").click()
    both = half & (frame["kind"] == "a")
    assert shown(page) == both.sum()
    # A column's own chart still shows values that it filters out, so that they can be selected.
    assert (
        int(value(page, "b").locator(".count").inner_text().replace(",", ""))
        == (half & (frame["kind"] == "b")).sum()
    )
    good = column(page, "good").locator("[role=option]", has_text="True")
    assert int(good.locator(".count").inner_text()) == (both & frame["good"]).sum()
    assert "2 filters" in page.locator(".filtered").inner_text()
    page.keyboard.press("Control+z")
    assert shown(page) == half.sum()
    page.keyboard.press("Control+Shift+z")
    assert shown(page) == both.sum()
    page.get_by_role("button", name="Show all").click()
    assert shown(page) == len(frame)


def test_a_brush_is_moved_by_its_ends_and_its_middle_and_removed_by_a_click(visit):
    points, frame = many()
    page = visit(points, frame)
    brush(page, "day", 0.25, 0.5)
    first = shown(page)
    assert first == pytest.approx(1000, abs=150)
    brush(page, "day", 0.375, 0.625)  # by its middle
    assert shown(page) == pytest.approx(1000, abs=150)
    brush(page, "day", 0.75, 0.99)  # by its right end
    assert shown(page) == pytest.approx(2000, abs=200)
    says = column(page, "day").locator(".ends").inner_text()
    assert "from 2024-0" in says
    box = column(page, "day").locator(".histogram").bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + 20)
    assert shown(page) == 4000


def test_brushes_can_be_set_by_keyboard(visit):
    points, frame = many()
    page = visit(points, frame)
    page.get_by_role("slider", name="Least size shown").focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    low, high = frame["size"].min(), frame["size"].max()
    assert shown(page) == (frame["size"] >= low + (high - low) / 2).sum()
    assert (
        page.get_by_role("slider", name="Least size shown").get_attribute("aria-valuenow") == "20"
    )


def test_missing_numbers_are_hidden_by_a_brush_and_by_their_button(visit):
    points, frame = clusters()
    page = visit(points, frame)
    column(page, "height").locator(".missing").click()
    assert shown(page) == 29
    column(page, "height").locator(".missing").click()
    assert shown(page) == 30
    brush(page, "height", 0.5, 0.999)
    assert shown(page) == 15


def test_a_list_of_values_is_a_single_tab_stop(page):
    page.get_by_role("button", name="Colour by place").focus()
    page.keyboard.press("Tab")
    inside = "document.activeElement.closest('.values') !== null"
    assert page.evaluate(inside)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # the second alone
    assert page.locator(".points").inner_text() == "5 of 30 points"
    page.keyboard.press("Enter")
    page.keyboard.press(" ")  # without the second
    assert page.locator(".points").inner_text() == "25 of 30 points"
    page.keyboard.press("Tab")
    assert not page.evaluate(inside)


def test_focus_rings_in_lists_are_not_cut_off(page):
    value(page, "east").focus()
    page.keyboard.press("ArrowDown")
    ring = page.evaluate(
        """() => {
            const e = document.activeElement, s = getComputedStyle(e);
            return [s.outlineStyle, parseFloat(s.outlineOffset) + parseFloat(s.outlineWidth)];
        }"""
    )
    assert ring == ["solid", 0]  # within the row, so that it is not cut off


def classes(k, n=None):
    """k separate classes."""
    n = n or 4 * k
    return fibonacci_grid(n, np), {"class": [f"class {i * k // n:03}" for i in range(n)]}


def test_thirty_classes_are_listed_without_scrolling(visit):
    page = visit(*classes(30), context={"viewport": {"width": 1280, "height": 1100}})
    options = page.locator(".values [role=option]")
    assert options.count() == 30
    assert page.evaluate(
        "[...document.querySelectorAll('.values')].every((e) => e.scrollHeight <= e.clientHeight + 1)"
    )


def test_five_hundred_classes_can_be_searched_and_listed_completely(visit):
    page = visit(*classes(500))
    color_by(page, "class")
    options = page.locator(".values [role=option]")
    assert options.count() == 30
    assert page.get_by_role("button", name="and 470 more").is_visible()
    page.get_by_label("Search values of class").fill("class 49")
    assert options.count() == 10
    options.first.click()
    assert shown(page) == 4
    page.get_by_label("Search values of class").fill("")
    page.get_by_role("button", name="and 470 more").click()
    assert options.count() == 500


def pixels(page, region, condition):
    """Number of pixels of a part of the overlay whose colour (r, g, b, a) fulfils a condition."""
    return page.evaluate(
        f"""([x, y, width, height]) => {{
            const copy = document.createElement("canvas");
            [copy.width, copy.height] = [width, height];
            const context = copy.getContext("2d", {{ willReadFrequently: true }});
            context.drawImage(document.querySelector("canvas.overlay"), -x, -y);
            const {{ data }} = context.getImageData(0, 0, width, height);
            let count = 0;
            for (let i = 0; i < data.length; i += 4) {{
                const [r, g, b, a] = data.subarray(i, i + 4);
                if ({condition}) count++;
            }}
            return count;
        }}""",
        region,
    )


def ink(page, region):
    """Number of pixels of a part of the overlay that are drawn on."""
    return pixels(page, region, "a > 0")


def test_more_of_over_forty_classes_are_named_when_zoomed_in(visit):
    page = visit(*classes(60))
    note = page.locator(".names-left")
    until(lambda: note.is_visible())
    left = int(note.inner_text().split()[0])
    assert 0 < left < 60  # some are written, and it says how many are not
    stage = page.locator(".stage").bounding_box()
    assert ink(page, [0, 0, int(stage["width"]), int(stage["height"])]) > 1000
    page.mouse.move(stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2)
    page.mouse.wheel(0, -1200)
    until(lambda: not note.is_visible() or int(note.inner_text().split()[0]) < left)


def test_a_name_wider_than_the_stage_is_still_written(visit):
    points, _ = clusters()
    phone = {"viewport": {"width": 390, "height": 700}}
    page = visit(
        points[:5],
        {"place": ["a very long name " * 12] * 5, "k": [1, 1, 2, 2, 2]},
        color="place",
        context=phone,
    )
    box = page.locator(".stage").bounding_box()
    until(lambda: ink(page, [0, 0, int(box["width"]), int(box["height"]) - 150]) > 300)


def test_a_single_match_is_ringed_and_zoomed_to(page):
    before = page.evaluate("mercat.view().map[0]")
    page.get_by_label("Search labels").fill("note 12")
    page.locator(".found").get_by_role("option", name="note 12").wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("mercat.selection()") == [12]
    assert page.evaluate("mercat.view().map[0]") > 3 * before
    box = page.locator(".stage").bounding_box()
    x, y = spot(page, 12)
    assert math.dist((x, y), (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)) < 2
    page.keyboard.press("n")
    until(lambda: 60 < ink(page, [int(x - box["x"]) - 12, int(y - box["y"]) - 12, 24, 24]) < 500)


def test_enter_selects_only_the_exact_match(visit):
    points, _ = clusters()
    page = visit(points, {"type": ["T", "T cell", "NK T"] * 10})
    search = page.get_by_label("Search labels")
    search.fill("t")
    page.locator(".found").get_by_role("option", name="NK T").wait_for()
    search.press("Enter")
    assert page.evaluate("mercat.selection()") == list(range(0, 30, 3))
    search.fill("T c")
    search.press("Enter")
    assert page.evaluate("mercat.selection()") == list(range(1, 30, 3))


def test_numbers_and_rows_are_found(visit):
    points, _ = clusters()
    page = visit(points, {"id": np.arange(30) * 1001 + 7, "share": np.arange(30) / 10})
    search = page.get_by_label("Search labels")
    search.fill("4011")
    page.locator(".found").get_by_role("option", name="4011").wait_for()
    search.press("Enter")
    assert page.evaluate("mercat.selection()") == [4]
    search.fill("2.9")
    page.locator(".found").get_by_role("option", name="2.9").wait_for()
    search.press("Enter")
    assert page.evaluate("mercat.selection()") == [29]
    search.fill("12")
    page.locator(".found").get_by_role("option", name="Row 12").wait_for()
    search.press("Enter")
    assert page.evaluate("mercat.selection()") == [12]


def test_a_selection_summarises_numbers(page):
    color_by(page, "height")
    page.keyboard.press("l")
    circle(page, spot(page, 12))
    text = page.locator(".selection-panel").inner_text()
    assert "5 points selected" in text
    assert "median\n6" in text
    assert "5 to 7" in text


def test_a_selection_of_many_classes_counts_those_not_listed(visit):
    page = visit(*classes(40, 80))
    page.keyboard.press("l")
    box = page.locator(".stage").bounding_box()
    circle(page, (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), radius=150)
    rows = len(page.evaluate("mercat.selection()"))
    kinds = len({row // 2 for row in page.evaluate("mercat.selection()")})
    assert kinds > 8
    panel = page.locator(".selection-panel")
    assert f"{rows} points selected" in panel.inner_text()
    panel.get_by_role("button", name=f"and {kinds - 6} more").click()
    assert panel.locator(".divided li").count() == kinds


def test_the_table_lists_the_selected_rows(page):
    page.locator(".drawer-bar").click()
    assert "Select points" in page.locator(".drawer-sheet").inner_text()
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.keyboard.press("l")
    circle(page, spot(page, 7))
    rows = page.locator(".rows tbody tr")
    until(lambda: rows.count() == 5)
    assert rows.count() == 5
    assert rows.nth(2).locator("td").all_inner_texts() == ["east", "missing", "1", "missing"]
    rows.nth(2).get_by_role("button").click()
    assert page.evaluate("mercat.view().map[0]") > 1.5


def test_a_lasso_cancelled_by_escape_leaves_nothing(page):
    page.keyboard.press("n")
    page.keyboard.press("l")
    x, y = spot(page, 7)
    box = page.locator(".stage").bounding_box()
    region = [int(x - box["x"]) - 40, int(y - box["y"]) - 40, 80, 80]
    page.mouse.move(x - 30, y - 30)
    page.mouse.down()
    for dx, dy in ((30, -30), (30, 30), (-30, 30)):
        page.mouse.move(x + dx, y + dy)
    until(lambda: ink(page, region) > 500)
    page.keyboard.press("Escape")
    until(lambda: ink(page, region) == 0)
    page.mouse.move(x - 32, y)
    page.mouse.up()
    assert page.evaluate("mercat.selection()") == []
    until(lambda: ink(page, region) == 0)


def test_the_note_for_first_visitors_is_shown_once(visit):
    page = visit(*clusters())
    hint = page.locator(".hint")
    assert "Nearby points are similar" in hint.inner_text()
    page.get_by_role("button", name="Close this note").click()
    assert hint.is_hidden()
    again = page.context.new_page()
    again.goto(page.evaluate("location.href"))
    again.wait_for_selector("html[data-ready=true]")
    assert again.locator(".hint").is_hidden()


def test_there_is_one_main_landmark(page):
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("main").locator(".stage").count() == 1


def test_switching_embeddings_keeps_selection_and_colours(visit):
    points, frame = clusters()
    flat = np.stack([np.arange(30.0), np.arange(30) % 5], axis=1)
    other = np.roll(points, 5, axis=0)
    page = visit({"detail 0": points, "detail 1": other, "UMAP": flat}, frame)
    page.keyboard.press("l")
    circle(page, spot(page, 7))
    before = spot(page, 7)
    value(page, "east").click()
    chooser = page.get_by_label("Embedding")
    assert chooser.locator("option").all_inner_texts() == ["detail 0", "detail 1", "UMAP"]
    chooser.select_option("detail 1")
    assert spot(page, 12) == pytest.approx(before, abs=0.1)  # the view stayed, the points moved
    chooser.select_option("UMAP")
    assert [pane["name"] for pane in page.evaluate("mercat.panes()")] == ["map"]
    assert page.get_by_role("button", name="Fold").is_hidden()
    assert page.evaluate("mercat.selection()") == list(range(5, 10))
    assert shown(page) == 5
    (x0, _), (x1, _) = spot(page, 0), spot(page, 29)
    box = page.locator(".stage").bounding_box()
    assert x1 - x0 == pytest.approx(0.92 * box["width"], rel=0.01)
    page.mouse.move(*spot(page, 7))
    assert state(page)["hover"] == 7
    start = spot(page, 7)
    page.keyboard.press("t")
    drag(page, start, (start[0] + 50, start[1] + 20))  # the plane is moved, not turned
    assert spot(page, 7) == pytest.approx((start[0] + 50, start[1] + 20), abs=1)
    page.mouse.wheel(0, -300)
    until(lambda: page.evaluate("mercat.view().flat[0]") > 1.2)
    page.keyboard.press("Control+z")


def test_an_embedding_opens_in_its_home_view_unless_the_view_has_moved(visit):
    rng = np.random.default_rng(0)

    def patch(reach):
        points = np.c_[np.ones(200), rng.uniform(-reach, reach, (200, 2))]
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    page = visit({"small": patch(0.1), "large": patch(0.8)}, {"x": np.arange(200.0)})
    box = page.locator(".stage").bounding_box()

    def inside():
        places = spots(page, range(200))
        return np.sum(np.all((places >= 0) & (places <= (box["width"], box["height"])), axis=1))

    chooser = page.get_by_label("Embedding")
    chooser.select_option("large")
    assert inside() > 190
    chooser.select_option("small")
    width = np.ptp(spots(page, range(200))[:, 0])
    assert width > 0.3 * box["width"]  # and small ones do not stay small
    page.get_by_role("button", name="Zoom in").click()
    before = page.evaluate("mercat.view().map")
    chooser.select_option("large")
    assert page.evaluate("mercat.view().map") == before


def test_the_move_tool_moves_the_plane(visit):
    points, frame = clusters()
    page = visit({"map": points, "UMAP": points[:, :2]}, frame)
    tool = page.locator("[data-value=turn]")
    assert tool.inner_text() == "Turn"
    page.get_by_label("Embedding").select_option("UMAP")
    assert tool.inner_text() == "Move"
    assert "move" in tool.get_attribute("aria-label")


def test_points_are_drawn_during_and_after_a_transition(visit):
    flat = np.array([[0.0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]])
    frame = {"place": NAMES}
    page = visit(
        {"sphere": CENTERS, "plane": flat},
        frame,
        theme="dark",
        context={"reduced_motion": "no-preference"},
    )
    page.keyboard.press("n")
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.get_by_label("Embedding").select_option("plane")
    page.clock.run_for(600)
    moving = screenshot(page)
    page.clock.run_for(1300)
    orange = (230, 159, 0)  # "east"
    assert math.dist(pixel(page, spot(page, 1)), orange) < 60
    x, y = spot(page, 1)
    assert math.dist(moving.getpixel((round(x), round(y))), orange) > 60


def pancreas(n=600, g=50):
    """Cells of two types; the first ten genes are higher in the first type."""
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 2
    rates = np.where((kind[:, None] == 0) & (np.arange(g) < 10), 3.0, 0.3)
    matrix = rng.poisson(rates)
    frame = {"kind": np.array(["alpha", "beta"])[kind], "depth": matrix.sum(axis=1)}
    return fibonacci_grid(n, np), frame, (matrix, [f"Gene{k}" for k in range(g)])


def test_genes_can_be_found_coloured_by_filtered_and_closed(visit):
    points, frame, genes = pancreas()
    page = visit(points, frame, genes=genes)
    page.get_by_label("Find a column or one of 50 genes").fill("gene7")
    page.get_by_role("button", name="Gene7", exact=True).click()
    assert (
        page.get_by_role("button", name="Colour by Gene7").get_attribute("aria-pressed") == "true"
    )
    assert state(page)["colorBy"] == 2 + 7
    brush(page, "Gene7", 0.5, 0.999)
    top = genes[0][:, 7].max()
    assert shown(page) == (genes[0][:, 7] >= (top + 1) // 2).sum()  # the bar where it began
    page.get_by_role("button", name="Close Gene7").click()
    assert (shown(page), state(page)["colorBy"]) == (600, 0)
    page.get_by_label("Search labels").fill("Gene12")
    page.locator(".found").get_by_role("option", name="Gene12").wait_for()
    page.keyboard.press("Enter")
    assert state(page)["colorBy"] == 2 + 12


def test_classes_that_colour_the_first_view_keep_their_names(visit):
    points, frame = clusters()
    page = visit(points, frame, color="place")
    names = set(page.evaluate("mercat.names()"))
    assert names >= {"front", "east", "west"}
    color_by(page, "height")
    assert set(page.evaluate("mercat.names()")) == names


def test_two_sets_are_compared_over_columns_and_genes(visit, tmp_path):
    points, frame, genes = pancreas()
    page = visit(points, frame, genes=genes)
    page.get_by_label("Search labels").fill("alpha")
    page.locator(".found").get_by_role("option", name="alpha").wait_for()
    page.keyboard.press("Enter")
    panel = page.locator(".compare-panel")
    lines = panel.locator(".effects li")
    lines.first.wait_for()
    name, chance, effect = lines.first.inner_text().split("\n")[:3]
    assert (name, effect) == ("kind", "1.00")  # the selection against the rest
    assert re.fullmatch("p \\d+e\N{MINUS SIGN}\\d+", chance)
    assert panel.locator(".volcano").is_hidden()  # two columns do not make a volcano plot
    assert "100 % | 0 %" in lines.first.inner_text()
    page.get_by_role("button", name="Keep").click()
    page.get_by_label("Name of set A").fill("alpha cells")
    page.get_by_label("Name of set A").press("Enter")
    page.get_by_label("Search labels").fill("beta")
    page.locator(".found").get_by_role("option", name="beta").wait_for()
    page.keyboard.press("Enter")
    page.get_by_label("Set A", exact=True).select_option("alpha cells")
    page.get_by_label("Set B", exact=True).select_option("the selection")
    panel.get_by_role("button", name="Genes").click()
    until(lambda: lines.count() == 12 and "Gene" in lines.first.inner_text())
    top = {line.locator(".name").first.inner_text() for line in lines.all()[:10]}
    assert top == {f"Gene{k}" for k in range(10)}
    from scipy.stats import false_discovery_control, mannwhitneyu

    name, chance, effect = lines.first.inner_text().split("\n")[:3]
    x = genes[0][:, int(name[4:])]
    test = mannwhitneyu(x[::2], x[1::2], method="asymptotic", use_continuity=False)
    assert float(effect) == pytest.approx(2 * test.statistic / 300**2 - 1, abs=0.006)
    volcano = panel.locator(".volcano svg")
    assert volcano.locator("path.more").get_attribute("d").count("M") == 10
    named = volcano.locator("text").all_text_contents()
    assert named
    assert set(named) <= top
    with page.expect_download() as download:
        panel.get_by_role("button", name="Save this list").click()
    download.value.save_as(tmp_path / "list.csv")
    table = pd.read_csv(tmp_path / "list.csv")
    assert len(table) == 50
    assert table["mean or share of alpha cells"][0] == pytest.approx(x[::2].mean(), rel=1e-4)
    assert table["minus log10 p"][0] == pytest.approx(-np.log10(test.pvalue), rel=1e-4)
    p = np.array([mannwhitneyu(g[::2], g[1::2], method="asymptotic").pvalue for g in genes[0].T])
    order = [int(gene[4:]) for gene in table["name"]]
    rates = false_discovery_control(p)[order]
    np.testing.assert_allclose(
        table["minus log10 adjusted p"], -np.log10(rates), rtol=0.01, atol=0.01
    )
    lines.first.locator("button").click()
    assert state(page)["colorBy"] == 2 + int(name[4:])
    page.get_by_role("button", name="Delete set alpha cells").click()
    assert panel.locator(".sets li").count() == 0


def test_a_dot_of_the_volcano_plot_sets_colours_and_overlapping_sets_have_no_p_values(visit):
    points, frame, genes = pancreas()
    page = visit(points, frame, genes=genes)
    page.get_by_label("Search labels").fill("alpha")
    page.locator(".found").get_by_role("option", name="alpha").wait_for()
    page.keyboard.press("Enter")
    panel = page.locator(".compare-panel")
    panel.get_by_role("button", name="Genes").click()
    volcano = panel.locator(".volcano")
    volcano.wait_for()
    dots = volcano.locator("path.none")
    until(lambda: dots.get_attribute("d"))  # drawn after the panel is shown
    at = dots.get_attribute("d").split("M")[1].split("h")[0].split(" ")
    volcano.scroll_into_view_if_needed()
    box = volcano.locator("svg").bounding_box()
    scale = box["width"] / 300
    page.mouse.move(box["x"] + scale * float(at[0]), box["y"] + scale * float(at[1]))
    assert volcano.locator("p").inner_text().startswith("Gene")
    name = volcano.locator("p").inner_text()
    page.mouse.down()
    page.mouse.up()
    assert state(page)["colorBy"] == 2 + int(name[4:])
    page.get_by_role("button", name="Keep").click()
    page.get_by_label("Set B", exact=True).select_option("A")
    until(lambda: volcano.is_hidden())
    assert "p " not in panel.locator(".effects li").first.inner_text()


def reddish(page, region):
    """Number of pixels of a part of the overlay as red as the lines to torn neighbours."""
    return pixels(page, region, "a > 120 && r > 180 && g < 140")


def test_lines_lead_to_neighbours_in_the_data_and_torn_ones_are_red(visit):
    n = 60
    points = fibonacci_grid(n, np)
    near = np.argsort(-(points @ points.T), axis=1)[:, 1:3]
    rows = near.copy()
    rows[5, 1] = np.argmin(points @ points[5])  # torn away: on the other side
    page = visit(points, {"k": np.arange(n) % 2}, neighbors=rows)
    page.keyboard.press("n")
    box = page.locator(".stage").bounding_box()
    whole = [0, 0, int(box["width"]), int(box["height"])]
    page.mouse.move(*spot(page, 20))
    text = page.locator(".tooltip").inner_text()
    assert "neighbours\n2" in text
    assert "torn away" not in text
    until(lambda: ink(page, whole) > 100)
    assert reddish(page, whole) == 0
    page.mouse.move(*spot(page, 5))
    assert "2, 1 torn away" in page.locator(".tooltip").inner_text()
    until(lambda: reddish(page, whole) > 60)
    page.mouse.click(*spot(page, 5))
    page.mouse.move(2, 2)
    until(lambda: reddish(page, whole) > 60)  # a pinned point keeps its lines
    page.get_by_role("button", name="Select its neighbours").click()
    assert page.evaluate("mercat.selection()") == sorted([5, *rows[5].tolist()])
    color_by(page, "torn neighbours")
    until(lambda: "trusted" in column(page, "torn neighbours").inner_text())
    page.get_by_label("Display", exact=True).click()
    page.get_by_label("Lines to neighbours in the data").uncheck()
    until(lambda: reddish(page, whole) == 0)


def test_hovering_draws_the_ellipse_and_the_alternative_position(visit):
    """The next four points are at the ends of the axes of the first, the last at its alternative position."""
    _, bars = error_bars(6)
    places = np.tile([1.0, 0.0, 0.0], (6, 1))
    axes = np.tile([[[0.0, 0.2, 0.0], [0.0, 0.0, 0.1]]], (6, 1, 1))
    bars = dataclasses.replace(bars, places=places, axes=axes)
    places[1:5] = bars.ellipses(0.9, rows=[0], n_vertices=4)[0]
    places[5] = [0.0, -1.0, 0.0]
    alternative = np.full((6, 3), np.nan)
    alternative[0] = places[5]
    bars = dataclasses.replace(bars, places=places, alternative=alternative)
    page = visit(places, {"k": np.arange(6) % 2}, uncertainty=bars)
    page.keyboard.press("n")
    box = page.locator(".stage").bounding_box()

    def drawn(at, reach):
        x, y = (int(v - b) - reach for v, b in zip(at, (box["x"], box["y"]), strict=True))
        return ink(page, [x, y, 2 * reach, 2 * reach])

    at = [np.array(spot(page, row)) for row in range(6)]
    until(lambda: all(drawn(place, 8) == 0 for place in at))  # the names are gone
    page.mouse.move(*at[0])
    for place in at[1:]:
        until(lambda place=place: drawn(place, 8) > 10)
    assert drawn((at[0] + at[1]) / 2, 5) == 0  # an outline, and the dashed line leads the other way
    assert drawn((at[0] + at[5]) / 2, 8) > 5
    page.mouse.click(*at[0])
    page.mouse.move(2, 2)
    until(lambda: drawn(at[2], 8) > 10)  # a pinned point keeps its ellipse
    color_by(page, "spread (degrees)")
    until(lambda: "trusted" in column(page, "spread (degrees)").inner_text())


def test_a_card_of_long_texts_stays_on_the_stage_and_shows_all_fields(visit):
    points, frame = clusters()
    texts = np.array(["word " * 600, "x" * 3000])[np.arange(30) % 2]
    page = visit(points, {"text": texts, "name " * 300: np.arange(30.0), **frame})
    page.mouse.move(*spot(page, 7))
    page.locator(".tooltip").wait_for()
    card, stage = (page.locator(one).bounding_box() for one in (".tooltip", ".stage"))
    assert card["y"] + card["height"] <= stage["y"] + stage["height"]
    assert "east" in page.locator(".tooltip").inner_text()
    page.mouse.click(*spot(page, 7))
    assert (
        len(page.locator(".card dd").first.inner_text()) == 3000
    )  # the card of a pinned point shows the whole text


def test_images_are_on_the_cards(visit):
    points, frame = clusters()
    images = np.zeros((30, 4, 6, 3), dtype=np.uint8)
    images[..., 0] = np.arange(30)[:, None, None] * 8
    images[:, 0, 0] = (1, 2, 3)
    page = visit(points, frame, images=images)
    page.mouse.click(*spot(page, 7))
    (row,) = state(page)["pins"]
    pixels = """(canvas) => [canvas.width, canvas.height,
        ...canvas.getContext("2d").getImageData(0, 0, 2, 1).data]"""
    expected = [6, 4, 1, 2, 3, 255, 8 * row, 0, 0, 255]
    assert page.locator(".card canvas").evaluate(pixels) == expected
    x, y = spot(page, row)
    page.mouse.move(x + 1, y)
    assert page.locator(".tooltip canvas").evaluate(pixels) == expected
    box = page.locator(".tooltip canvas").bounding_box()
    assert (box["width"], box["height"]) == (120, 80)


def test_contours_are_drawn_at_rest_where_points_are_dense(visit):
    rng = np.random.default_rng(0)
    points = CENTERS[rng.integers(0, 3, 3000)] + rng.normal(scale=0.12, size=(3000, 3))
    page = visit(points / np.linalg.norm(points, axis=1, keepdims=True))
    box = page.locator(".stage").bounding_box()
    whole = [0, 0, int(box["width"]), int(box["height"])]
    assert ink(page, whole) == 0  # not needed for a few thousand points
    page.keyboard.press("c")
    until(lambda: ink(page, whole) > 500)
    page.keyboard.press("ArrowLeft")
    until(lambda: ink(page, whole) > 500)
    page.keyboard.press("c")
    until(lambda: ink(page, whole) == 0)


def test_the_url_contains_the_state_and_a_link_restores_it(visit, browser):
    points, frame = clusters()
    page = visit({"a": points, "b": points[:, :2]}, frame)
    page.keyboard.press("l")
    circle(page, spot(page, 7))
    page.keyboard.press("Enter")
    value(page, "east").click()
    color_by(page, "height")
    brush(page, "height", 0.1, 0.5)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("1")
    state_of = "[mercat.view(), {...mercat.state(), tool: 0, hover: 0}, mercat.selection(), mercat.shown()]"
    seen = page.evaluate(state_of)
    until(lambda: "view=" in page.evaluate("location.href"))
    pause(page, 600)
    other = browser.new_page(viewport=page.viewport_size, reduced_motion="reduce")
    other.goto(page.evaluate("location.href"))
    other.wait_for_selector("html[data-ready=true]")
    opened = other.evaluate(state_of)
    assert opened[1:] == seen[1:]
    for key, numbers in seen[0].items():
        assert opened[0][key] == pytest.approx(numbers, abs=1e-9)
    assert other.locator(".points").inner_text() == page.locator(".points").inner_text()
    other.close()


def test_a_link_is_copied(browser, tmp_path):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    path = to_html(*clusters(), tmp_path / "page.html")
    page.goto(f"{path.as_uri()}#theme=light")
    page.wait_for_selector("html[data-ready=true]")
    value(page, "east").click()
    page.locator("[data-action=link]").click()
    page.get_by_text("Link copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{path.as_uri()}#theme=light&view=")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-ready=true]")
    assert shown(page) == 5
    assert state(page)["theme"] == "light"
    context.close()


def axe(page):
    """Violations found by axe-core in both themes: rules, with the elements that break them."""
    path = Path(__file__).parents[1] / "js" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        missing("axe-core is missing: run 'npm ci' in js/.")
    if not page.evaluate("'axe' in window"):
        page.evaluate(path.read_text(encoding="utf-8"))
    found = []
    for theme in ("dark", "light"):
        page.evaluate(f"location.hash = 'theme={theme}'")
        until(lambda theme=theme: state(page)["theme"] == theme)
        found += page.evaluate(
            """async () => {
                const { violations } = await axe.run();
                return violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]);
            }"""
        )
    return found


@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing(browser, tmp_path, width):
    points, frame = many(200)
    rng = np.random.default_rng(0)
    path = to_html(
        {"a": points, "b": points[:, :2]},
        frame,
        tmp_path / "page.html",
        point_loss=rng.random(200),
        genes=(rng.poisson(1.0, (200, 5)), list("VWXYZ")),
        neighbors=rng.integers(0, 200, (200, 3)),
        images=rng.random((200, 4, 4)),
        uncertainty=error_bars(200)[1],
    )
    # The policy of the page would block axe.
    size = {"width": width, "height": 800}
    context = browser.new_context(viewport=size, reduced_motion="reduce", bypass_csp=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    assert axe(page) == []
    search = page.get_by_label("Search labels")
    search.fill("a")
    page.locator(".found [role=option]").first.wait_for()
    assert axe(page) == []
    search.press("Enter")
    page.mouse.click(*spot(page, 17))
    page.locator(".drawer-bar").click()
    page.get_by_label("Display", exact=True).click()
    assert axe(page) == []
    page.keyboard.press("Escape")
    if width < 700:
        page.get_by_role("button", name="Columns and selection").click()
        page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Keep").click()
    value(page, "b").click()
    page.locator(".effects li").first.wait_for()
    assert axe(page) == []
    context.close()
