"""`explore`, driven as a reader drives it: by its boxes and choices, without a kernel."""

import json
import re
import sys

import pytest
import torch
from transformers import BertConfig

from tests.helpers import TINY, data_of, tiny_tokenizer
from utils.encoder import TransformerEncoder
from views import explore, head_view, model_view, neuron_view, path_view, sentence_view
from views.explore import SENTENCE, WIDGET

HOSTILE = "<img src=x onerror=alert(1)> </script> $x$"


@pytest.fixture(scope="module")
def model() -> tuple:
    """An encoder of 2 layers, 3 heads and 16 positions, and its tokenizer, which knows letters and numbers."""
    return TransformerEncoder(BertConfig(**TINY)).eval(), tiny_tokenizer()


@pytest.fixture
def explorer(model):
    return explore(*model, "a b")


def shown(explorer) -> str:
    """The page in the frame, which is that of the view that one can save."""
    assert explorer.frame.value == explorer.view._repr_html_()
    return explorer.view.page


def tokens_and_ids(explorer) -> list[tuple[str, str]]:
    return re.findall(r"<span>(.*?)<br><small>(.*?)</small></span>", explorer.tokens.value)


def drawn(model, *text) -> str:
    """The page of a head view of a text, as `explore` begins with it."""
    return head_view(*model, *text, layer=1, heads=[1]).page


def test_explore_starts_with_one_head(model, explorer):
    assert shown(explorer) == drawn(model, "a b")
    assert tokens_and_ids(explorer) == [("[CLS]", "2"), ("a", "5"), ("b", "6"), ("[SEP]", "3")]
    assert explorer.message.value == ""


def test_explore_starts_with_default_sentence_and_head(encoder, tokenizer):
    explorer = explore(encoder, tokenizer)
    assert explorer.sentence_a.value == SENTENCE
    assert "[UNK]" not in tokenizer.tokenize(SENTENCE)
    data = data_of(explorer.view)
    layer, [head] = data["layer"], data["heads"]
    tokens = data["attention"]["all"]["left_text"]
    weights = data["attention"]["all"]["attn"][layer][head][tokens.index("it")]
    assert tokens[max(range(len(tokens)), key=weights.tolist().__getitem__)] == "animal"


def test_typed_sentences_are_drawn(model, explorer):
    explorer.sentence_a.value = "b c d"
    assert shown(explorer) == drawn(model, "b c d")
    explorer.sentence_b.value = " e "
    assert shown(explorer) == drawn(model, "b c d", "e")
    assert [token for token, _ in tokens_and_ids(explorer)] == ["[CLS]", "b", "c", "d", "[SEP]", "e", "[SEP]"]
    explorer.sentence_b.value = "  "  # as good as empty
    assert shown(explorer) == drawn(model, "b c d")


def test_chosen_view_is_kept_for_the_next_text(model):
    explorer = explore(*model, "a b", layer=0, head=2)
    assert shown(explorer) == head_view(*model, "a b", layer=0, heads=[2]).page
    explorer.kind.value = "neuron view"
    assert shown(explorer) == neuron_view(*model, "a b", layer=0, head=2).page
    explorer.sentence_a.value = "c"
    assert shown(explorer) == neuron_view(*model, "c", layer=0, head=2).page
    explorer.kind.value = "sentence view"
    assert shown(explorer) == sentence_view(*model, "c", layer=0, head=2).page
    explorer.kind.value = "model view"
    assert shown(explorer) == model_view(*model, "c").page
    explorer.kind.value = "path view"
    assert shown(explorer) == path_view(*model, "c").page
    explorer.sentence_b.value = "d"
    assert "Not drawn: the path view shows one text: empty sentence B." in explorer.message.value


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("a " * 15, r"the text has 17 tokens, but the model has 16 positions \(max_position_embeddings\): shorten.*"),
        ("", "sentence A is empty: type a word or more"),
        (" \u200b ", "sentence A is empty: type a word or more"),
    ],
)
def test_error_is_shown_and_last_view_is_kept(explorer, typed, words):
    before = shown(explorer), explorer.tokens.value
    explorer.sentence_a.value = typed
    shown_error = rf'<p role="alert".*Not drawn: {words}\. The last view is still shown below\.</p>'
    assert re.search(shown_error, explorer.message.value)
    assert (shown(explorer), explorer.tokens.value) == before
    explorer.kind.value = "model view"  # of the same sentence
    assert (shown(explorer), explorer.tokens.value) == before
    explorer.sentence_a.value = "c"
    assert explorer.message.value == ""
    assert shown(explorer) != before[0]


def test_any_error_is_shown(monkeypatch, model, explorer):
    def fail(*arguments, **options):
        raise torch.OutOfMemoryError("<b>full</b>")

    monkeypatch.setattr(model[0], "forward", fail)
    before = shown(explorer)
    explorer.sentence_a.value = "c"
    assert "Not drawn: OutOfMemoryError(&#x27;&lt;b&gt;full&lt;/b&gt;&#x27;)." in explorer.message.value
    assert shown(explorer) == before


def test_hostile_text_is_text(encoder, tokenizer):
    explorer = explore(encoder, tokenizer, HOSTILE, HOSTILE)
    for text in (explorer.tokens.value, explorer.frame.value.split("srcdoc")[0]):
        assert "<img" not in text
        assert "</script" not in text
    assert ("&lt;", "1026") in tokens_and_ids(explorer)
    assert json.loads(re.search(r'id="data">(.*?)</script>', explorer.view.page)[1])["attention"]["all"]["left_text"]


@pytest.mark.parametrize(("given", "message"), [([""], "sentence A is empty"), (["a", 3], "sentence_b must be one")])
def test_invalid_first_arguments_raise(model, given, message):
    with pytest.raises(ValueError, match=message):
        explore(*model, *given)


def test_display_has_widgets_and_a_static_fallback(monkeypatch, explorer):
    shown = []
    module = sys.modules["views.explore"]  # whose name the function has
    monkeypatch.setattr(module, "display", lambda bundle, raw: shown.append(bundle))
    explorer._ipython_display_()
    instead, boxes = shown
    assert boxes == {WIDGET: explorer.box._repr_mimebundle_()[WIDGET]}
    assert explorer.view._repr_html_() in instead["text/html"]
    assert "In a running notebook, boxes for your own sentences appear here." in instead["text/html"]
    assert instead["text/plain"].startswith("Boxes for your own sentences, and the attention in them. Head view of 2")
    assert "run the cells above, then this one" in instead["text/plain"]
