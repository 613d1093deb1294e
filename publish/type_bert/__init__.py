"""Type BERT in the page: a reader types parts of microbert.py, each is checked, and the real model runs with it."""
