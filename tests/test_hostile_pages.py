"""Malicious text in pages, in a browser: no script runs, no dialog opens, no request is sent."""

from __future__ import annotations

import base64
import dataclasses
import json

import numpy as np
import pytest
from click.testing import CliRunner
from explorer_page import TIMEOUT_MS, error_bars, pause

from mercat import Mercat
from mercat._math.sphere import fibonacci_grid
from mercat.cli._app import app
from mercat.viewer import to_html

pd = pytest.importorskip("pandas")

ATTACKS = [
    "</script><script>hurt()</script>",
    "<img src=x onerror=hurt()>",
    "<svg onload=hurt()>",
    "\"><script>hurt()</script>",
    "'\"` onmouseover=hurt() style=position:fixed;inset:0 ",
    "\" autofocus onfocus=hurt() tabindex=0 x=\"",
    "javascript:hurt()",
    "<a href=javascript:hurt() ping=https://evil.invalid/>x</a>",
    "<iframe srcdoc='<script>parent.hurt()</script>'></iframe>",
    "<iframe src=https://evil.invalid/></iframe>",
    "<!--<script>hurt()",
    "--><script>hurt()</script>",
    "</title><script>hurt()</script>",
    "</style><script>hurt()</script>",
    "</textarea></select></option><script>hurt()</script>",
    "]]><script>hurt()</script>",
    "<noscript><p title='</noscript><img src=x onerror=hurt()>'>",
    "<template><script>hurt()</script></template>",
    "<details open ontoggle=hurt()>",
    "<video><source onerror=hurt()></video>",
    "<math><mtext><table><mglyph><style><img src=x onerror=hurt()>",
    "<object data=https://evil.invalid/></object><embed src=https://evil.invalid/>",
    "<link rel=stylesheet href=https://evil.invalid/x.css>",
    "<link rel=dns-prefetch href=https://evil.invalid/>",
    "<style>@import 'https://evil.invalid/x.css';*{background:url(https://evil.invalid/)}</style>",
    "<meta http-equiv=refresh content='0;url=https://evil.invalid/'>",
    "<base href=https://evil.invalid/>",
    "<form action=https://evil.invalid/><input type=submit autofocus></form>",
    "&lt;script&gt;hurt()&lt;/script&gt;&#60;img src=x onerror=hurt()&#62;",
    "${hurt()}{{hurt()}}{title}{payload}%s%(x)s",
    "\\u003cscript\\u003ehurt()\\u003c/script\\u003e\\x3cimg src=x onerror=hurt()\\x3e",
    "\u2028hurt()\u2029",
    "\u202etxet sdrawkcab\u2066",
    "\ufeff\u0001\u001b[2J",
    "__proto__",
    "constructor",
    "$\\frac{hurt}$ $x_{$",
    "=HYPERLINK(\"https://evil.invalid/\")",
]  # fmt: skip
EVERYTHING = " ".join(ATTACKS)
# Waits until a picture that cannot be shown has failed, as those of the attacks before it must have.
FAIL = """() => new Promise((failed) => {
  const image = new Image();
  image.onerror = () => failed();
  image.src = "data:,";
})"""
WATCH = "window.hurts = 0; window.hurt = () => { window.hurts += 1; };"


@pytest.fixture
def watched(browser):
    """Open a page and check that it requested only itself and ran no injected code."""
    context = browser.new_context(viewport={"width": 1100, "height": 560}, reduced_motion="reduce")
    context.set_default_timeout(TIMEOUT_MS)
    asked, heard, opened = [], [], []

    def answer(route):
        asked.append(route.request.url)
        if route.request.url.startswith("file:") and len(asked) == 1:
            route.continue_()
        else:
            route.abort()

    context.route("**/*", answer)
    context.add_init_script(WATCH)
    context.on("page", lambda page: opened.append(page))
    page = context.new_page()
    page.on("dialog", lambda dialog: heard.append(dialog.message))
    page.on("pageerror", lambda error: heard.append(str(error)))

    def visit(path):
        page.goto(path.as_uri())
        return page

    yield visit
    page.evaluate(FAIL)
    assert [frame.evaluate("window.hurts") for frame in page.frames] == [0]
    assert len(asked) == 1
    assert heard == []
    assert opened == [page]
    context.close()


def check_that_hurt_is_counted(page):
    """Check that the page counts calls of `hurt`, so that the tests can fail."""
    assert page.evaluate("hurt(); window.hurts") == 1
    page.evaluate("window.hurts = 0")


def explore(page, n_columns=3):
    """Show columns and labels of an explorer in every possible way."""
    page.wait_for_selector("html[data-ready=true]")
    check_that_hurt_is_counted(page)
    at = page.evaluate("mercat.project(7, 'map')")
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    colors = page.locator("button.column-name")
    for k in range(3):
        colors.nth(k).click()
    for k in range(n_columns):
        colors.nth(k).evaluate("button => button.click()")
        page.locator(".column").nth(k).inner_text()
    page.locator(".values [role=option]").first.hover()
    search = page.get_by_label("Search labels")
    for text in ("script", "hurt", "evil"):
        search.fill(text)
        page.locator(".found [role=option]").first.hover()
    page.locator(".found [role=option]").first.click()
    page.locator(".drawer-bar").click()
    page.locator(".rows td").first.hover()
    with page.expect_download():
        page.locator("[data-action=picture]").click()
    with page.expect_download():
        page.get_by_role("button", name="Save CSV").click()


def attacked(n):
    """A table whose names and labels are all attacks, and two numeric columns."""
    numbers = np.random.default_rng(0).normal(size=(n, 2))
    columns = {name: np.roll(np.resize(ATTACKS, n), k) for k, name in enumerate(ATTACKS)}
    return pd.DataFrame({**columns, "height": numbers[:, 0], "weight": numbers[:, 1]})


def test_the_explorer(watched, tmp_path):
    n = len(ATTACKS)
    path = to_html(fibonacci_grid(n, np), attacked(n), tmp_path / "page.html", title=EVERYTHING)
    page = watched(path)
    explore(page, n_columns=n)
    # A page's title has its white space folded; the heading shows every character.
    assert page.locator("h1").evaluate("e => e.textContent") == EVERYTHING
    names = page.locator(".column-name .name").evaluate_all("e => e.map(o => o.textContent)")
    assert sorted(names[:n]) == sorted(ATTACKS)
    assert set(page.locator(".card dt").evaluate_all("e => e.map(o => o.textContent)")) >= set(
        ATTACKS
    )
    for tag in ("iframe", "img", "object", "embed", "form", "meta", "link", "base", "template"):
        assert page.locator(f".mercat {tag}").count() == 0


def test_error_bars_with_non_finite_values(watched, tmp_path):
    """Hostile columns with ellipses of zero or infinite size and non-finite numbers."""
    n = len(ATTACKS)
    places, bars = error_bars(n)
    odd = np.resize([np.nan, np.inf, -np.inf, 0.0, 1e300], n)
    axes = bars.axes * np.resize([1.0, 0.0, 1e30, np.nan, -1.0], n)[:, None, None]
    bars = dataclasses.replace(
        bars, axes=axes, alternative_gap=odd, alternative_wins=odd, torn=odd, p_value=odd
    )
    with np.errstate(all="ignore"):
        path = to_html(places, attacked(n), tmp_path / "page.html", uncertainty=bars)
    page = watched(path)
    explore(page)
    box = page.locator(".stage").bounding_box()
    for row in range(5):
        at = page.evaluate("(row) => mercat.project(row, 'map')", row)
        if at is not None:
            page.mouse.move(box["x"] + at[0], box["y"] + at[1])


def test_genes_neighbours_images_and_embeddings(watched, tmp_path):
    """Hostile names of genes and embeddings, and images whose bytes are markup."""
    n, g = 40, len(ATTACKS)
    rng = np.random.default_rng(0)
    text = (EVERYTHING.encode("utf-8") * 20)[: n * 8 * 8 * 3]
    path = to_html(
        {attack: fibonacci_grid(n, np) for attack in ATTACKS},
        {"kind": np.arange(n) % 2},
        tmp_path / "page.html",
        genes=(rng.poisson(1.0, (n, g)), ATTACKS),
        neighbors=rng.integers(0, n, (n, 3)),
        images=np.resize(np.frombuffer(text, np.uint8), (n, 8, 8, 3)),
    )
    page = watched(path)
    page.wait_for_selector("html[data-ready=true]")
    check_that_hurt_is_counted(page)
    box = page.locator(".stage").bounding_box()
    at = page.evaluate("mercat.project(7, 'map')")
    page.mouse.click(box["x"] + at[0], box["y"] + at[1])
    find = page.get_by_label(f"Find a column or one of {g} genes")
    for word in ("script", "proto", "constructor"):
        find.fill(word)
        page.locator(".genes-found button").first.click()
    assert page.locator(".column-name .name").first.text_content() == "constructor"
    page.get_by_role("button", name="Select its neighbours").click()
    page.get_by_role("button", name="Keep").click()
    for attack in ATTACKS:
        name = page.locator(".sets input")
        name.fill(attack[:60])
        name.press("Enter")
    page.get_by_role("button", name="Genes", exact=True).click()
    page.locator(".effects li").first.wait_for()
    page.locator(".effects button").first.click()
    with page.expect_download():
        page.get_by_role("button", name="Save this list").click()
    for k in range(1, 4):
        page.get_by_label("Embedding").select_option(str(k))
    pause(page, 600)  # until the URL is updated
    for tag in (
        "iframe",
        "img",
        "object",
        "embed",
        "form",
        "meta",
        "link",
        "base",
        "template",
        "b",
    ):
        assert page.locator(f".mercat {tag}").count() == 0


def states():
    """States of links that no explorer wrote."""
    yield from ["", "%00", "e30", "A" * 100_000, "<script>hurt()</script>", EVERYTHING]
    hostile = [
        None,
        0,
        -1,
        1e308,
        "x",
        EVERYTHING,
        [],
        {},
        [[]],
        {"__proto__": {"hurt": 1}},
        [1e9] * 5,
    ]
    keys = [
        "view", "layout", "projection", "embedding", "color", "scales", "genes", "filters", "selection",
        "sets", "pins", "size", "on",
    ]  # fmt: skip
    for value in hostile:
        yield json.dumps({"version": 1, **dict.fromkeys(keys, value)})
    yield json.dumps(
        {"version": 1, "filters": {name: {"in": ATTACKS} for name in [*ATTACKS, "height"]}}
    )
    yield json.dumps(
        {"version": 1, "sets": {attack: [1, 2] for attack in ATTACKS}, "pins": [1] * 10**5}
    )
    yield '{"version": 1, "__proto__": {"pins": [1]}, "constructor": {"prototype": {"hurt": 1}}}'


FOLLOW = """(part) => new Promise((followed) => {
  history.replaceState(null, "", location.pathname);
  addEventListener("hashchange", () => requestAnimationFrame(followed), { once: true });
  location.hash = `view=${encodeURIComponent(part)}`;
})"""


def test_hostile_links(watched, tmp_path):
    n = len(ATTACKS)
    path = to_html(fibonacci_grid(n, np), attacked(n), tmp_path / "page.html")
    page = watched(path)
    page.wait_for_selector("html[data-ready=true]")
    check_that_hurt_is_counted(page)
    for state in states():
        page.keyboard.press("r")  # back to the first view
        text = base64.urlsafe_b64encode(state.encode()).decode().rstrip("=")
        for part in (text, state):
            page.evaluate(FOLLOW, part[:50_000])
        said = state[:200]
        assert page.evaluate("({}).hurt") is None, said
        assert page.evaluate("({}).pins") is None, said
        page.keyboard.press("ArrowLeft")
        assert page.evaluate("mercat.project(3, mercat.panes()[0].name)") is not None, said
        assert page.evaluate("mercat.view().map.every(Number.isFinite)"), said
        assert page.locator(".mercat iframe, .mercat img, .mercat form").count() == 0, said


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output


@pytest.fixture
def table(tmp_path):
    """The attacks as a CSV file with a hostile name."""
    path = tmp_path / '<img src=x onerror=hurt()>&lt;".csv'
    rows = attacked(2 * len(ATTACKS))
    rows.to_csv(path, index=False, encoding="utf-8")
    return path


def test_embed_writes_a_page(watched, table, tmp_path):
    page = tmp_path / "page.html"
    run("embed", table, "--html", page, "--label", ATTACKS[0], "--quiet")
    explore(watched(page))


def test_view_writes_a_page(watched, table, tmp_path):
    frame = pd.read_csv(table).drop(columns=["height", "weight"])
    points = fibonacci_grid(len(frame), np)
    frame = frame.assign(x=points[:, 0], y=points[:, 1], z=points[:, 2])
    frame.to_csv(tmp_path / "map.csv", index=False)
    run(
        "view",
        tmp_path / "map.csv",
        "-o",
        tmp_path / "page.html",
        "--no-open",
        "--title",
        EVERYTHING,
    )
    explore(watched(tmp_path / "page.html"))


def test_compare_writes_a_report(watched, table, tmp_path):
    report = tmp_path / "report.html"
    run("compare", table, "-o", report, "--label", ATTACKS[1], "--method", "pca", "--quiet")
    page = watched(report)
    check_that_hurt_is_counted(page)
    assert page.locator("h1").inner_text() == f"{table.stem}: maps compared"
    shown = page.locator(".legend li").evaluate_all("e => e.map(o => o.textContent)")
    assert set(shown) == set(ATTACKS)
    assert page.locator("img").count() == 2  # the two maps
    assert page.locator("script, iframe, form, object, a, meta[http-equiv=refresh]").count() == 0


def test_html_representation_of_a_model(watched, tmp_path):
    """As in a notebook: the markup within a page."""
    frame = attacked(30)[["height", "weight"]].assign(third=1.0)
    frame.columns = ATTACKS[:3]
    models = [Mercat(metric=text) for text in ATTACKS]
    models.append(Mercat(random_state=0).fit(frame))
    markup = "".join(model._repr_html_() for model in models)
    path = tmp_path / "cell.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{markup}", encoding="utf-8")
    page = watched(path)
    check_that_hurt_is_counted(page)
    assert page.locator(".sk-top-container").count() == len(models)
    assert page.locator("iframe, form, object, embed, base").count() == 0
