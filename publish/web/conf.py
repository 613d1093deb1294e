"""Sphinx's settings for the site; publish/website.py lays out the pages and calls Sphinx."""

extensions = ["myst_nb", "sphinx.ext.mathjax"]
project = html_title = "Anatomy of a Transformer Encoder"
language = "en"
highlight_language = "none"
smartquotes = False  # a text in quotes would have other tokens

html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("views.js", {"defer": "defer"}), ("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # site.js enables it if a server delivers the pages
pygments_style, pygments_dark_style = "default", "github-dark"
templates_path = []

nb_execution_mode = "off"  # the notebooks are already executed
nb_ipywidgets_js = {}  # would be loaded from a CDN
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "publish.website.anchor"
suppress_warnings = ["myst.header"]  # solutions skip from # to ###

mathjax_path = "tex-svg-full.js"  # one file: extensions and glyphs included
mathjax3_config = {"options": {"enableMenu": False}}
