"""Small notebooks: one with four views, one with draggable figures, and one with `explore`."""

from pathlib import Path

import nbformat

SETUP = """\
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer
from views import attention_in_the_plane, explore, head_view, model_view, neuron_view, sharpness

encoder = TransformerEncoder.from_checkpoint("all-MiniLM-L6-v2")
tokenizer = WordPieceTokenizer.from_checkpoint("all-MiniLM-L6-v2")
pair = ("I called Ian.", "I got his answering machine.")
batch = tokenizer(*pair)
attentions = encoder(**batch, output_attentions=True).attentions
tokens = [tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]]"""
LAYERS = [0, 5]  # of the model view, which draws 2,028 lines a layer
VIEWS = {
    "head": "head_view(attentions, tokens, 6)",
    "model": f"model_view(attentions, tokens, 6, include_layers={LAYERS})",
    "neuron": "neuron_view(encoder, tokenizer, *pair, layer=1, head=3)",
    "second neuron": 'neuron_view(encoder, tokenizer, *pair, layer=4, head=9, display_mode="dark")',
}
FIGURES = {
    "attention_in_the_plane": """attention_in_the_plane(
    [0.6, 0.9], [[2, 2.5], [-2.5, 1], [1.5, -2.5]], [[1, 4], [-4, -1], [3, 0]], ["time", "flies", "arrow"], asking=1
)""",
    "sharpness": 'sharpness([2.5, 1, -3], tokens=["time", "flies", "arrow"])',
}
EXPLORE = {"explore": "explore(encoder, tokenizer)"}


def write_notebook(folder: Path, name: str = "views", cells: dict[str, str] = VIEWS) -> Path:
    """Write a notebook of this name with the set-up and these cells."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, *cells.values())]
    path = folder / f"{name}.ipynb"
    nbformat.write(notebook, path)
    return path
