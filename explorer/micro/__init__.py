"""The page that runs microbert.py in the reader's browser: microbert.html, its scripts, and what builds it."""
