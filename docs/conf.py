"""Settings of the documentation site, which `make docs` builds with Sphinx from Markdown and docstrings."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

project = "pairscale"
author = "The pairscale authors"
version = release = installed_version(project)
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "reference", "docstrings"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = project
html_copy_source = False
copybutton_prompt_text = ">>> "

myst_heading_anchors = 3  # pages link to headings as on GitHub
suppress_warnings = ["ref.python"]  # two classes of one name in two rooms
default_role = "code"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # those of other libraries
autodoc_typehints_format = "short"
autodoc_class_signature = "separated"  # a configuration has thirty fields: its table is in the reference
