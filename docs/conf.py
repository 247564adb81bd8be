"""How the documentation is built: ``make docs``."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "sf2el"
copyright = "the sf2el developers"
release = version = installed("sf2el")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "commands",
    "mathml",
]
exclude_patterns = ["_build", "gallery/*.rst", "**/README.rst"]
nitpicky = False
suppress_warnings = ["config.cache"]
smartquotes = False  # a command in a docstring is to be copied as it stands

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = False
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "thumbnail_size": (520, 230),
    "download_all_examples": False,
    "show_signature": False,
}

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"sf2el {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False


def drop_missing_study(app, docname, source):
    """Leave the study of the default model out of the contents where it is not there."""
    if docname == "index" and not (HERE / "default.md").exists():
        lines = source[0].splitlines(keepends=True)
        source[0] = "".join(line for line in lines if not line.rstrip().endswith("<default>"))


def setup(app):
    """Register what is above."""
    app.connect("source-read", drop_missing_study)
