"""Chromium for tests of pages, with WebGL2 in software."""

from __future__ import annotations

import os
import shutil

import pytest

from benchmarks.harness.browser import FLAGS

# Compositing without software OpenGL takes half the time. WebGL2 is not affected.
QUICK = ["--disable-gpu-compositing"]


def missing(what):
    """Skip with the reason, or fail if CI is set."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def find_chromium():
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return missing(
        "No Chromium: run `make browser`, or name one in the environment variable CHROMIUM."
    )


@pytest.fixture(scope="module")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is missing: pip install playwright")
    path = find_chromium()
    with sync_playwright() as playwright:
        # Playwright gives each launch a fresh, empty profile.
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *QUICK])
        yield browser
        browser.close()
