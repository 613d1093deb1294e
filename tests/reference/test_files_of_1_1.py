"""Files that version 1.1.0 wrote are read by this one: parts, answers handed in, calls, a checkpoint.

Version 1.1.0 itself wrote `files_of_1_1.json`: parts by `check`, the configuration and names of weights by `save`, and
the calls stand in its notebooks. The changelog names what is gone, and what to use instead.
"""

import inspect
import json
from pathlib import Path
from pkgutil import resolve_name

import nbformat
import pytest
import torch
from safetensors.torch import save_file
from transformers import pipeline

from exercises import parts
from exercises.grading import grade
from tests.helpers import ROOT
from utils.classifier import TransformerForSequenceClassification

FILES = json.loads(Path(__file__).parents[1].joinpath("files_of_1_1.json").read_text("utf-8"))
GONE = {"utils.generation:beam_search", "utils.pretraining:text_pairs", "utils.search:shares_of_cosine"}
GONE |= {"views:graph_walk", "views:why_near"}


def test_parts_run_the_model(tmp_path, monkeypatch, encoder):
    monkeypatch.setenv("MINE", str(tmp_path))
    for name, text in FILES["parts"].items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    assert set(parts.saved_parts()) == set(parts.PARTS)
    ids = torch.tensor([[101, 2051, 10029, 102]])
    mine = parts.my_encoder()(ids).last_hidden_state
    torch.testing.assert_close(mine, encoder(ids).last_hidden_state, rtol=0, atol=1e-5)


def test_answers_are_right(tmp_path):
    original = ROOT / "notebooks" / "03_self_attention.ipynb"
    handed_in = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in FILES["hand_in"].values()])
    nbformat.write(handed_in, tmp_path / "Ada.ipynb")
    [row] = grade(original, [tmp_path / "Ada.ipynb"])
    assert {number: row.verdicts[number][0] for number in FILES["hand_in"]} == dict.fromkeys(
        FILES["hand_in"], "correct"
    )


@pytest.mark.parametrize("name", sorted(FILES["calls"].keys() - GONE))
def test_calls_of_notebooks_fit(name):
    signature, given = inspect.signature(resolve_name(name)), FILES["calls"][name]
    signature.bind_partial(*range(given["positional"]))
    signature.bind_partial(**dict.fromkeys(given["keywords"]))


def test_checkpoint_loads_and_predicts(tmp_path):
    written = FILES["checkpoint"]
    for name, text in written["files"].items():
        (tmp_path / name).write_text(text, "utf-8")
    weights = {name: torch.rand(shape) for name, shape in written["weights"].items()}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    model = TransformerForSequenceClassification.from_checkpoint(tmp_path)
    assert torch.equal(
        model.encoder.embeddings.word_embeddings.weight, weights["bert.embeddings.word_embeddings.weight"]
    )
    assert torch.equal(model.classifier.weight, weights["classifier.weight"])
    [found] = pipeline("text-classification", model=str(tmp_path))("a good film .")
    ids = torch.tensor([[2, 5, 6, 7, 10, 3]])
    assert found["label"] == ["no", "perhaps", "yes"][int(model(ids).argmax())]
