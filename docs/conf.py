"""The documentation site; `make site` builds it. Warnings are errors, and nothing is fetched from a network."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "crfkit"
author = "The crfkit developers"
copyright = "The crfkit developers"
release = version = version_of("crfkit")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "generated",
    "links",
]
exclude_patterns = ["_build", "_ext", "figures", "Thumbs.db"]
nitpicky = False
default_role = "code"
smartquotes = False  # options begin with two dashes
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = [
    "config.cache",
    "ref.python",  # a type in a signature that several modules have, such as Evaluation; it stays without a link
]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "abort_on_example_error": True,
    "min_reported_time": 1000,
    "write_computation_times": False,
    "subsection_order": [f"../examples/{name}" for name in ("chains", "images", "graphs", "structure", "solvers")],
    "within_subsection_order": "NumberOfCodeLinesSortKey",  # the shortest first
    "plot_gallery": os.environ.get("GALLERY") != "0",
}

html_theme = "pydata_sphinx_theme"
html_title = "crfkit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_sidebars = {"index": [], "changelog": []}
html_theme_options = {
    "github_url": "https://github.com/crfkit/crfkit",
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "monokai",
    "show_prev_next": True,
}
