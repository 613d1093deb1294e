"""A reader's parts: kept when they are right, and then what the model runs on; no other model changes."""

import copy
import os
import re
import shutil
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import BertConfig, BertModel

from exercises import check, parts
from exercises.framework import Hint
from exercises.part_checks import try_part
from exercises.picture import arch, can_draw
from exercises.saving_parts import save_part
from tests.exercises.parts import RIGHT, WRONG
from tests.helpers import ROOT, TINY, ragged_batch, run_python, shaken
from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.search import embed
from utils.support.checkpoint import load_reference_model, load_tokenizer, read_checkpoint
from utils.support.comparisons import compare_rungs

TEXTS = ["I called Ian. I got his answering machine.", "time flies", "a"]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """An empty folder of parts."""
    monkeypatch.setenv("MINE", str(tmp_path / "mine"))
    return tmp_path / "mine"


@torch.inference_mode()
def states(encoder, batch):
    """All hidden states of the real tokens, then the attention weights of the first text."""
    found = encoder(**batch, output_hidden_states=True, output_attentions=True)
    real = batch["attention_mask"].bool()
    return [state[real] for state in found.hidden_states], [weights[0] for weights in found.attentions]


def expect_the_same(encoder, finished, batch):
    for ours, theirs in zip(states(encoder, batch), states(finished, batch), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", parts.PARTS)
def test_plain_part_passes_everywhere(name):
    try_part(name, RIGHT[name])


@pytest.mark.parametrize(("name", "wrong"), WRONG, ids=lambda item: getattr(item, "source", item))
def test_part_wrong_somewhere_is_refused(name, wrong):
    with pytest.raises(Hint, match=r"^(?!.*NameError)"):  # which a row of the table would cause itself
        try_part(name, wrong.make())


# In the first and the second, every part runs that the third has; multi_head_attention runs instead of two others.
CHOSEN = [
    ("embeddings", "attention_weights", "feed_forward", "encoder"),
    pytest.param(("word_pieces", "split_heads", "encoder_layer", "rename_weight"), marks=pytest.mark.long),
    pytest.param(tuple(parts.PARTS), marks=pytest.mark.long),
]


@pytest.mark.parametrize("chosen", CHOSEN, ids=len)
def test_model_with_parts_gives_the_same(mine, encoder, tokenizer, chosen):
    for count, name in enumerate(chosen, 1):
        assert save_part(name, RIGHT[name]).startswith(f"It is a part of your BERT now ({count} of 9 are yours).")
    assert tuple(parts.saved_parts()) == chosen
    batch = parts.my_tokenizer()(TEXTS, ["Yes.", "No, it does not.", "b"])
    assert torch.equal(batch["input_ids"], tokenizer(TEXTS, ["Yes.", "No, it does not.", "b"])["input_ids"])
    expect_the_same(parts.my_encoder(), encoder, batch)


def test_model_calls_each_part(tokenizer):
    """Each part is called, and every other model stays without."""
    called = []

    def noted(name):
        return lambda *given: called.append(name) or RIGHT[name](*given)

    finished = TransformerEncoder(BertConfig(**TINY)).eval()
    ids = torch.tensor([[1, 2, 3]])
    before = finished(ids).last_hidden_state
    own = copy.deepcopy(finished)
    for name in RIGHT.keys() - {"multi_head_attention", "word_pieces"}:
        parts.install(name, noted(name), own)
    torch.testing.assert_close(own(ids).last_hidden_state, before)
    own.load_bert_weights(BertModel(BertConfig(**TINY), add_pooling_layer=False).state_dict())
    parts.install(
        "multi_head_attention", noted("multi_head_attention"), own
    )  # it runs instead of those that are its parts
    own(ids)
    cuts = copy.copy(tokenizer)
    parts.install("word_pieces", noted("word_pieces"), cuts)
    cuts.tokenize("flies")
    assert set(called) == set(parts.PARTS)
    called.clear()
    finished(ids)
    tokenizer.tokenize("flies")
    assert not called


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A folder with every part, saved once."""
    place = tmp_path_factory.mktemp("parts") / "mine"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINE", str(place))
        for name, part in RIGHT.items():
            save_part(name, part)
    return place


@pytest.fixture
def all_parts(mine, saved) -> Path:
    """The folder of parts with all of them."""
    return Path(shutil.copytree(saved, mine))


@pytest.mark.long
def test_model_with_parts_copies_hooks_and_trains(all_parts, encoder):
    mine_, ids = parts.my_encoder(), torch.tensor([[101, 2051, 102]])
    assert mine_.state_dict().keys() == encoder.state_dict().keys()
    twin = copy.deepcopy(mine_)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert mine_(ids).last_hidden_state.abs().sum() > 0  # a copy's methods belong to the copy
    assert twin(ids).last_hidden_state.abs().sum() == 0
    seen = []
    mine_.layers[1].attention.register_forward_hook(lambda *call: seen.append(call[2][0].shape))
    mine_(ids)
    assert seen == [(1, 3, 384)]
    classifier = parts.my_classifier(num_labels=3)
    torch.nn.functional.cross_entropy(classifier.train()(ids), torch.tensor([2])).backward()
    assert all(p.grad is not None for name, p in classifier.named_parameters() if "token_type" not in name)


@pytest.mark.long
def test_model_with_parts_packs_and_embeds(all_parts, encoder, tokenizer):
    batch, own = tokenizer(TEXTS), parts.my_encoder()
    torch.testing.assert_close(encode_packed(own, **batch), encode_packed(encoder, **batch), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(embed(TEXTS, own, tokenizer), embed(TEXTS, encoder, tokenizer), rtol=1e-4, atol=1e-5)
    queries = own(**batch, output_queries_keys=True).queries
    torch.testing.assert_close(queries[3], encoder(**batch, output_queries_keys=True).queries[3], rtol=1e-4, atol=1e-4)


def test_check_of_a_stub_says_since_when_a_part_is_yours(mine, capsys):
    for saved, words in (("", "not attempted yet"), ("feed_forward", r"already yours since \d+ \w+ \d{4}\. Your BERT")):
        if saved:
            save_part(saved, RIGHT[saved])
        check("5.3", ...)
        assert re.match(f"Exercise 5.3: {words}", capsys.readouterr().out)


def test_error_in_a_part_names_file_and_remedy(mine):
    save_part("feed_forward", RIGHT["feed_forward"])
    path = mine / "feed_forward.py"
    path.write_text(path.read_text("utf-8").replace("self.activation", "self.activatoin"), "utf-8")
    with pytest.raises(AttributeError) as raised:
        parts.my_encoder()(torch.tensor([[101, 102]]))
    (note,) = raised.value.__notes__
    assert str(path) in note
    assert "line " in note
    assert "MINE=off" in note
    path.write_text("def forward(", "utf-8")
    with pytest.raises(SyntaxError) as raised:
        parts.my_encoder()
    assert "delete the file" in raised.value.__notes__[0]


def test_folder_of_parts(tmp_path, monkeypatch):
    monkeypatch.delenv("MINE")
    copy_of_the_series = tmp_path / "encoder" / "notebooks" / "solutions"
    copy_of_the_series.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert parts.folder() == ROOT / "mine"  # a notebook that lies anywhere
    (copy_of_the_series.parent / parts.MARKER_NOTEBOOK).touch()
    monkeypatch.chdir(copy_of_the_series)
    assert parts.folder() == tmp_path / "encoder" / "mine"
    monkeypatch.setattr(os, "access", lambda *_: False)  # as where a hub's series belongs to its administrator
    assert parts.folder() == copy_of_the_series / "mine"
    monkeypatch.undo()
    monkeypatch.delenv("MINE")
    monkeypatch.setattr("exercises.parts.ROOT", tmp_path / "site-packages")  # as on Colab
    monkeypatch.chdir(tmp_path)
    assert parts.folder() == tmp_path / "mine"
    monkeypatch.setenv("MINE", "~/mine")
    assert parts.folder() == Path.home() / "mine"
    monkeypatch.setenv("MINE", "OFF")
    assert parts.folder() is None


@pytest.mark.long
def test_mine_off_saves_and_uses_no_parts(all_parts, monkeypatch, capsys):
    monkeypatch.setenv("MINE", "off")
    assert not parts.saved_parts()
    monkeypatch.setattr("exercises.parts.ANNOUNCED", set())
    for note in ("MINE=off, so no answer becomes a part of your BERT.", ""):
        assert save_part("word_pieces", RIGHT["word_pieces"]) == note
    assert "forward" not in vars(parts.my_encoder().embeddings)
    assert capsys.readouterr().out == ""
    assert str(parts.show_parts()).startswith("0 of the 9 parts")
    assert parts.save_page("", "", []).names == []
    assert "MINE=off saves none" in capsys.readouterr().out


# What `check` keeps, and what it says


def run_cells(folder, *cells: str) -> str:
    """What cells of a notebook print, run as a kernel runs them."""
    code = "from IPython.core.interactiveshell import InteractiveShell as Shell\nshell = Shell.instance()\n"
    code += "\n".join(f"shell.run_cell({cell!r}, store_history=True)" for cell in cells)
    return run_python("-c", code, MINE=str(folder), IPYTHONDIR=str(folder / "ipython")).stdout


@pytest.mark.long
def test_part_is_saved_with_what_it_uses(tmp_path):
    first = "import torch.nn.functional as Fn\nimport math\nFACTOR = 1\nwide = {}\nscale = __import__('torch').ones(2)"
    helper = "def halves(x, num_heads):\n    return x.chunk(num_heads, dim=-1)"
    good = """
from exercises import check
def split_heads(x: Tensor, num_heads: int) -> Tensor:
    import torch
    \"\"\"My own.\"\"\"
    return FACTOR * torch.stack(halves(x, num_heads), dim=1)
check("4.2", split_heads)"""
    uses_x, wrong = good.replace("FACTOR *", "scale[0] *"), good.replace("dim=1", "dim=2")
    said = run_cells(tmp_path, f"from torch import Tensor\n{first}", helper, good, uses_x, wrong)
    saved, not_saved, refused = re.findall("(?m)^Exercise 4.2: .*", said)
    assert "correct." in saved
    assert "(1 of 9 are yours)" in saved
    assert "uses scale, of type Tensor, from another cell" in not_saved
    assert "not yet" in refused
    text = (tmp_path / "split_heads.py").read_text("utf-8")
    assert "def halves" in text
    assert "FACTOR = 1" in text
    assert "return FACTOR * torch.stack(halves(x, num_heads), dim=1)" in text


def test_unwritable_folder_is_reported(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("MINE", str(tmp_path / "file"))
    assert "Set MINE to a folder that can be written" in save_part("split_heads", RIGHT["split_heads"])


def test_answer_without_def_is_not_saved(mine):
    assert "defined with def" in save_part("split_heads", lambda x, num_heads: RIGHT["split_heads"](x, num_heads))
    assert "defined with def" in save_part("split_heads", torch.chunk)
    assert not mine.exists()


def test_drawing_colours_parts_and_links_notebooks(mine):
    for name in ("word_pieces", "encoder_layer"):
        save_part(name, RIGHT[name])
    drawn = parts.show_parts()._repr_mimebundle_()
    assert drawn["image/svg+xml"].count("stroke-dasharray") == len(parts.PARTS) - 2
    assert drawn["text/html"].count("<a href=") == len(parts.PARTS)
    for part in parts.PARTS.values():
        assert f'href="{part.notebook}.ipynb"' in drawn["text/html"]
        assert (ROOT / "notebooks" / f"{part.notebook}.ipynb").exists()
    assert drawn["text/plain"].startswith("2 of the 9 parts")


def test_wrong_answer_mentions_the_earlier_part(mine, capsys):
    still = "Your earlier version, which was right, still runs in your BERT."
    answers = (lambda self, x: x), RIGHT["feed_forward"], (lambda self, x: x), (lambda self, x: x / "a"), ...
    for answer in answers:
        check("5.3", answer)
    assert [line.endswith(still) for line in capsys.readouterr().out.splitlines()] == [False, False, True, True, False]


# What later notebooks do with a model


@pytest.fixture
def both(all_parts) -> tuple[TransformerEncoder, TransformerEncoder]:
    """A small encoder with every part in it, loaded as `my_encoder` loads them, and the same without."""
    torch.manual_seed(0)
    finished = shaken(TransformerEncoder(BertConfig(**TINY))).eval()
    return parts.with_parts(copy.deepcopy(finished)), finished


@pytest.mark.long
def test_model_with_parts_compiles(both, fresh_compiler):
    own, finished = both
    compiled = torch.compile(own, backend="eager")
    for lengths in ([7, 4], [9, 2, 5]):
        expect_the_same(compiled, finished, ragged_batch(lengths))


@pytest.mark.parametrize("name", ["embeddings", "encoder_layer", "encoder"])
def test_a_part_made_wrong_alone_turns_the_ladder_red(name, tokenizer):
    config, weights = read_checkpoint()
    model = TransformerEncoder(config)
    assert parts.install(name, next(wrong.make() for its_name, wrong in WRONG if its_name == name), model)
    model.load_bert_weights(weights)
    theirs = load_tokenizer()(*parts.LADDER, padding=True, return_tensors="pt")
    rungs = compare_rungs(model.eval(), load_reference_model(), tokenizer(*parts.LADDER), theirs)
    assert len(rungs) == 13
    assert sum(difference > 1e-5 for difference in rungs.values()) > 5


PART = """# Part 3
from __future__ import annotations

import math

def weights(query, key, attention_mask=None):  # <mine>
    scores = query @ key.transpose(-2, -1) / math.sqrt({})
    if attention_mask is not None:
        scores = scores.masked_fill(attention_mask == 0, -math.inf)
    return scores.softmax(dim=-1)

part = weights
"""


def test_the_page_has_what_it_draws_and_says():
    ends = arch(100, 300, 200, half=15).vertices[[0, 3, 4, 7]].tolist()
    assert ends == [[85, 380], [315, 380], [285, 380], [115, 380]]
    assert parts.DOES.keys() == parts.PARTS.keys()
    assert [can_draw(name) for name in ("Ada $x$ Łukasz", "Юлия", "李")] == [True, True, False]


@pytest.mark.parametrize(("divisor", "agrees"), [("query.size(-1)", True), ("33", False)])
def test_the_page_measures_the_readers_model(mine, divisor, agrees, capsys):
    mine.mkdir()
    (mine / "attention_weights.py").write_text(PART.format(divisor), "utf-8")
    texts = ["time flies <b>", "the hours pass quickly"]
    drawing = parts.save_page("Ada & Co", "It was too tired.", texts)
    page = (mine / "my_bert.html").read_text("utf-8")
    with Image.open(mine / "my_bert.png") as picture:
        assert picture.size == (1720, 1040)
        assert 0.005 < (np.asarray(picture.convert("RGB"))[200:760].std(axis=2) > 20).mean() < 0.5  # blue ribbons
    assert drawing.names == ["attention_weights"]
    assert ("no number differs from the official BERT" in page) == agrees
    assert ("it differs by 0." in page) == (not agrees)
    assert ("The first difference is here: layer 0, attention weights." in page) == (not agrees)
    assert "Ada &amp; Co wrote 1 of the 9 parts of this BERT" in page
    assert "# &lt;mine&gt;" in page
    assert "computed with 6 lines of Ada &amp; Co’s" in " ".join(page.split())
    assert '<meter value="1.0000"></meter> 1.00<td>time flies &lt;b&gt;' in page
    assert page.index("<iframe") < page.index("What is this?") < page.index('class="drawing"')
    assert len(page) <= 200_000
    assert set(re.findall(r"https?://[^\s\"'&<]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert str(mine / "my_bert.html") in capsys.readouterr().out


def test_a_page_without_parts_or_with_odd_input(mine, capsys):
    assert parts.save_page("", "", []).names == []
    assert "None of the parts is yours yet" in capsys.readouterr().out
    mine.mkdir()
    (mine / "attention_weights.py").write_text(PART.format("query.size(-1)"), "utf-8")
    parts.save_page(None, None, None, None)
    page = (mine / "my_bert.html").read_text("utf-8")
    assert "1 of the 9 parts of this BERT is my own code" in page
    assert f"The model is all-MiniLM-L6-v2, on {date.today():%d %B %Y}." in page
    assert "To show it to others: show_parts().save()" in repr(parts.show_parts())
    assert parts.show_parts().save().names == ["attention_weights"]
    assert "no number differs from the official BERT" in (mine / "my_bert.html").read_text("utf-8")
