"""Size of the viewer's page, and its load, frame and filter times in a browser.

    python -m benchmarks.viewer [--sizes 10000 100000] [--chromium /usr/bin/chromium] [--gpu]

Results go to benchmarks/results/viewer.json.

Without --gpu, Chromium draws in software (SwiftShader), the slowest case. A "full" frame draws every point;
a "moving" one is shown while the map turns, when a slow machine draws a sample. "Load" ends when all points
are drawn; "memory" is that of the page's objects and arrays, without the browser's own. "Filter" is the
time from a step of a brush until all charts and colours are updated, with four columns.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright

from benchmarks.harness.browser import FLAGS
from benchmarks.harness.record import Store, stamp
from mercat.viewer import to_html

RESULTS = Path(__file__).parent / "results" / "viewer.json"
SIZES = [10_000, 100_000, 1_000_000, 5_000_000]
GPU_FLAGS = [flag for flag in FLAGS if "swiftshader" not in flag] + [
    "--ignore-gpu-blocklist",
    "--use-angle=vulkan",
]

DRAWN = """() => {
    const gl = document.querySelector("canvas.points-layer").getContext("webgl2");
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
}"""

# A frame is complete when one of its pixels can be read back.
TURN = """async (turns) => {
    const stage = document.querySelector(".stage");
    const gl = document.querySelector("canvas.points-layer").getContext("webgl2");
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const times = [];
    for (let k = 0; k < turns; k++) {
        const start = performance.now();
        stage.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
        await frame();
        gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
        times.push(performance.now() - start);
    }
    return times;
}"""

# One step of a brush by keyboard: the handler updates charts and colours before it returns.
FILTER = """async (steps) => {
    const handle = document.querySelector("[role=slider]");
    const gl = document.querySelector("canvas.points-layer").getContext("webgl2");
    const times = [];
    for (let k = 0; k < steps; k++) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        gl.finish();
        const start = performance.now();
        handle.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        times.push(performance.now() - start);
    }
    return times;
}"""

FULL = """async () => {
    const gl = document.querySelector("canvas.points-layer").getContext("webgl2");
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const start = performance.now();
    for (let k = 0; k < 2; k++) {
        // Switching the graticule redraws all points at rest.
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "g", bubbles: true }));
        await new Promise((resolve) => requestAnimationFrame(resolve));
        gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    }
    return (performance.now() - start) / 2;
}"""


def write_page(n: int, folder: str) -> tuple[Path, float]:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(30, 3))
    kinds = rng.integers(0, 30, n)
    points = centers[kinds] / np.linalg.norm(centers[kinds], axis=1, keepdims=True)
    points += rng.normal(scale=0.15, size=(n, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    frame = pd.DataFrame(
        {
            "kind": pd.Categorical.from_codes(kinds, [f"kind {k}" for k in range(30)]),
            "size": rng.normal(size=n).astype(np.float32),
            "level": rng.integers(0, 100, n),
            "good": rng.random(n) < 0.3,
        }
    )
    start = time.perf_counter()
    path = to_html(points, frame, Path(folder) / "page.html")
    return path, time.perf_counter() - start


def measure(n: int, chromium: str, flags: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path, written = write_page(n, folder)
        size = path.stat().st_size
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        start = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]", timeout=300_000)
        page.evaluate(DRAWN)
        loaded = time.perf_counter() - start
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        usage = session.send("Runtime.getHeapUsage")
        heap = usage["usedSize"] + usage["backingStorageSize"]
        full = page.evaluate(FULL)
        moving = page.evaluate(TURN, 40)
        filtered = page.evaluate(FILTER, 12)
        sample = page.evaluate("mercat.budget()")
        browser.close()
    return {
        "megabytes": round(size / 1e6, 2),
        "write seconds": round(written, 2),
        "load seconds": round(loaded, 2),
        "memory megabytes": round(heap / 1e6),
        "full frame milliseconds": round(full, 1),
        "moving frame milliseconds": round(float(np.median(moving[20:])), 1),
        "points while moving": sample,
        "filter milliseconds": round(float(np.median(filtered)), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--chromium", default=os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    parser.add_argument("--gpu", action="store_true", help="draw with the machine's graphics card")
    options = parser.parse_args()
    flags = GPU_FLAGS if options.gpu else FLAGS
    drawing = "gpu" if options.gpu else "software"
    store = Store(RESULTS)
    for n in options.sizes:
        measures = measure(n, options.chromium, flags)
        store.put(f"{drawing}/{n}", stamp(n=n, drawing=drawing, measures=measures))
        print(n, measures, flush=True)


if __name__ == "__main__":
    main()
