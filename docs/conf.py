"""The site: `make docs` writes it to docs/_build/html. It loads nothing from the network."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT / "tools"), str(ROOT)]
os.environ.setdefault("MPLBACKEND", "Agg")
(HERE / "generated" / "pages").mkdir(parents=True, exist_ok=True)  # for html_extra_path

import matplotlib.pyplot as plt

import mercat

# The theme installs a handler that would print all messages, not only warnings.
logging.getLogger("mercat").setLevel(logging.WARNING)

project = "Mercat"
author = "The Mercat developers"
copyright = "The Mercat developers"
version = release = mercat.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "generate",
]
exclude_patterns = ["_build", "conftest.py", "generated/*.md", "**/sg_execution_times.rst"]
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings cannot be pickled

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Names in backticks in docstrings link to the reference.
default_role = "autolink"
autosummary_generate = True
autodoc_typehints = "none"  # docstrings describe types
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def larger_text(gallery_conf: dict[str, Any], file: str) -> None:
    """Enlarge the text of examples, so that thumbnails are legible."""
    del gallery_conf, file
    plt.rcParams["font.size"] = 16


sphinx_gallery_conf = {
    "reset_modules": ("matplotlib", larger_text),
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": "/",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "plot_gallery": True,
    "within_subsection_order": "FileNameSortKey",
    "min_reported_time": 1e6,
    "thumbnail_size": (720, 504),
}

html_theme = "furo"
html_title = f"Mercat {release}"
html_static_path = ["_static"]
html_css_files = ["mercat.css"]
html_js_files = ["explorer.js"]
html_extra_path = ["generated/pages"]  # explorers, as separate files
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

linkcheck_anchors = False
