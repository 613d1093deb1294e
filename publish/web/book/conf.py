"""Sphinx's settings for the book; publish/book.py lays out the pages and calls Sphinx."""

from publish.book import read_version

extensions = ["myst_nb", "publish.book"]
project = "Anatomy of a Transformer Encoder"
author = "The founders"
language = "en"
highlight_language = "none"
smartquotes = False  # a text in quotes would have other tokens
pygments_style = "default"

html_math_renderer = "svg"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_copy_source = False

epub_basename = "anatomy-of-a-transformer-encoder"
epub_title = project
epub_description = "Build BERT in notebooks, and compare each part with the official implementation"
epub_identifier = epub_basename
epub_uid = epub_basename
version = release = read_version()
epub_copyright = "MIT licence"
epub_show_urls = "no"

nb_execution_mode = "off"  # the notebooks are already executed
nb_ipywidgets_js = {}
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "publish.book.slug"
suppress_warnings = ["myst.header", "myst.xref_missing", "epub.unknown_project_files"]
