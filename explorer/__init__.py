"""A page that computes in the browser: explorer.html takes one sentence through the encoder."""
