"""The page that explains one sentence: explorer.html, its scripts, and what builds it."""
