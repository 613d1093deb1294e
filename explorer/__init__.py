"""Two pages that compute in the browser: explorer.html explains one sentence, and microbert.html runs microbert.py."""
