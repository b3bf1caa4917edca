"""The viewer's JavaScript: its own tests, and the committed bundle is up to date."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from mercat.projections import project
from mercat.viewer._home import MAPS

JS = Path(__file__).parents[1] / "js"


def missing(what):
    """Skip with the reason, or fail if CI is set."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def run(*command):
    done = subprocess.run(command, cwd=JS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def node():
    if not JS.is_dir():
        missing("The viewer's JavaScript source (js/) is not here: this is not a checkout.")
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing("Node.js is missing: install nodejs (20 or newer) and npm.")


def test_tests_of_the_source_pass(node):
    tests = sorted(str(path) for path in (JS / "test").glob("*.test.js"))
    assert tests
    run("node", "--test", *tests)


PLACES = """
import { PROJECTIONS, place } from "./src/geometry/projections.js";
const points = JSON.parse(process.argv[1]);
const placed = (name) => [name, points.map((v) => place([], ...v, 1, name).slice(0, 2))];
console.log(JSON.stringify(Object.fromEntries(Object.keys(PROJECTIONS).map(placed))));
"""


SCORES = """
import { effectOf, membership } from "./src/data/effects.js";
import { logUpperGamma } from "./src/data/tests.js";
const { values, codes, inA, gamma } = JSON.parse(process.argv[1]);
const marks = membership(inA, null, codes.length);
const score = (column) => effectOf(column, marks).score;
const numbers = values.map((one) => score({ kind: "number", values: Float64Array.from(one) }));
const classes = score({ kind: "category", codes: Uint8Array.from(codes), labels: ["p", "q", "r", "s"] });
console.log(JSON.stringify({ numbers, classes, gamma: gamma.map(([a, x]) => logUpperGamma(a, x)) }));
"""


def test_p_values_of_the_explorer_equal_those_of_scipy(node):
    rng = np.random.default_rng(0)
    inside = np.arange(400) < 130
    values = [rng.normal(size=400) + inside, rng.poisson(1.0, 400) + 0.2 * inside, rng.random(400)]
    codes = np.where(inside, rng.integers(0, 4, 400), rng.integers(0, 5, 400))
    gamma = [(0.5, 0.01), (0.5, 3.0), (1.5, 40.0), (49.5, 30.0), (49.5, 90.0)]
    given = {
        "values": [v.tolist() for v in values],
        "codes": codes.tolist(),
        "inA": np.flatnonzero(inside).tolist(),
        "gamma": [*gamma, (0.5, 800.0)],
    }
    found = json.loads(
        run("node", "--input-type=module", "--eval", SCORES, "--", json.dumps(given))
    )
    for score, v in zip(found["numbers"], values, strict=True):
        test = stats.mannwhitneyu(v[inside], v[~inside], method="asymptotic", use_continuity=False)
        assert score == pytest.approx(-np.log10(test.pvalue), rel=1e-9)
    table = [[np.sum(codes[part] == k) for k in range(1, 5)] for part in (inside, ~inside)]
    test = stats.chi2_contingency(table, correction=False)
    assert found["classes"] == pytest.approx(-np.log10(test.pvalue), rel=1e-9)
    for (a, x), logarithm in zip(gamma, found["gamma"], strict=False):
        assert logarithm == pytest.approx(np.log(special.gammaincc(a, x)), rel=1e-9)
    assert found["gamma"][-1] == pytest.approx(np.log(2) + stats.norm.logsf(40.0))  # p = 1e-349


def test_projections_of_the_explorer_equal_those_of_python(node):
    Y = np.random.default_rng(0).normal(size=(50, 3))
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    assert np.abs(Y[:, 2]).max() < np.sin(np.deg2rad(85))  # where the explorer's Mercator ends
    out = run("node", "--input-type=module", "--eval", PLACES, "--", json.dumps(Y.tolist()))
    found = json.loads(out)
    assert sorted(found) == sorted(MAPS)
    for name in MAPS:
        np.testing.assert_allclose(found[name], project(Y, name), atol=1e-12)


def test_the_committed_bundle_is_what_the_source_builds(node, tmp_path):
    if not (JS / "node_modules" / "esbuild").is_dir():
        try:
            run("npm", "ci", "--no-audit", "--no-fund")
        except (AssertionError, subprocess.TimeoutExpired) as error:
            missing(f"esbuild is missing, and 'npm ci' in js/ did not install it: {error}")
    run("node", "build.js", str(tmp_path))
    committed = files("mercat.viewer") / "static"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["style.css", "viewer.js"]
    for name in names:
        built = (tmp_path / name).read_text(encoding="utf-8")
        assert built == (committed / name).read_text(encoding="utf-8"), (
            f"{name} is not what js/ builds: run 'npm run build' in js/ and commit the result."
        )


def test_the_bundle_can_be_embedded_in_a_page():
    committed = files("mercat.viewer") / "static"
    script = (committed / "viewer.js").read_text(encoding="utf-8")
    style = (committed / "style.css").read_text(encoding="utf-8")
    assert "</script" not in script.lower()
    assert "<!--" not in script
    assert "</style" not in style.lower()
    for word in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert word not in script
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "@import", "url("):
        assert word not in script + style
