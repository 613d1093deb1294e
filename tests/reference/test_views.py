"""The views: same data as the model, small, safe, whole or not at all; and every bad input is a helpful ValueError."""

import copy
import re

import pytest
import torch
from transformers import BertConfig, BertModel

from tests.helpers import PAIR, data_of
from utils.encoder import TransformerEncoder
from utils.support.checkpoint import DEFAULT_CHECKPOINT
from views import head_view, inputs, model_view, neuron_view, path_view, sentence_view
from views import page as views_page

HALF_A_DIGIT = 0.5e-4 + 1e-9


def random_attention(L: int, A: int, S: int, T: int | None = None) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(S)
    return tuple(torch.randn(L, 1, A, S, T or S, generator=generator).mul(2).softmax(-1))


# Same data


def test_neuron_view_reads_any_attention_implementation(encoder, tokenizer, official_tokenizer, reference):
    ours = data_of(neuron_view(encoder, tokenizer, *PAIR))["attention"]["all"]
    sdpa = BertModel._from_config(copy.deepcopy(reference.config), attn_implementation="sdpa")
    sdpa.load_state_dict(reference.state_dict())
    modes = [module.training for module in sdpa.modules()]
    for model in (reference, sdpa):
        official = data_of(neuron_view(model, official_tokenizer, *PAIR))["attention"]["all"]
        assert official["left_text"] == ours["left_text"]
        for name in ("attn", "queries", "keys"):
            assert (official[name] - ours[name]).abs().max() <= 1.1e-4, name  # a last digit may round differently
    assert [module.training for module in sdpa.modules()] == modes


@pytest.mark.parametrize("draw", [head_view, model_view])
@pytest.mark.parametrize("sentences", [PAIR[:1], PAIR], ids=["text", "pair"])
def test_text_and_its_attentions_give_the_same_view(draw, sentences, encoder, tokenizer, official_tokenizer, reference):
    batch = tokenizer(*sentences)
    with torch.no_grad():
        attention = encoder(**batch, output_attentions=True).attentions
    tokens = [tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]]
    start = (batch["token_type_ids"] == 0).sum() if len(sentences) == 2 else None  # a tensor, as in examples of bertviz
    expected = draw(attention, tokens, start, include_layers=[4, 5], name=DEFAULT_CHECKPOINT).page
    assert draw(encoder, tokenizer, *sentences, include_layers=[4, 5]).page == expected
    official = data_of(draw(reference, official_tokenizer, *sentences))
    assert official["sentence_b_start"] == start
    assert (official["attention"]["all"]["attn"] - torch.cat(attention)).abs().max() <= 1.1e-4


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16, torch.float64])
def test_views_accept_any_precision_and_gradients(precision):
    attention = [layer.to(precision).requires_grad_() for layer in random_attention(2, 2, 3)]
    panel = data_of(model_view(attention, ["a", "b", "c"]))["attention"]["all"]
    assert (panel["attn"] - torch.cat(attention).double()).abs().max() <= HALF_A_DIGIT


def test_included_layers_and_heads_keep_their_order():
    attention, tokens = random_attention(4, 5, 2), ["a", "b"]
    view = data_of(model_view(attention, tokens, include_layers=[3, 1], include_heads=(4, 0, 2)))
    weights = torch.cat(attention)[[3, 1]][:, [4, 0, 2]]
    assert (view["attention"]["all"]["attn"] - weights).abs().max() <= HALF_A_DIGIT
    assert view["include_layers"] == [3, 1]
    assert view["include_heads"] == [4, 0, 2]
    assert view["total_heads"] == 5
    view = data_of(head_view(attention, tokens, layer=3, heads=[1], include_layers=range(2, 4)))
    assert view["include_layers"] == [2, 3]
    assert view["layer"] == 3
    assert view["heads"] == [1]


def test_encoder_decoder_arguments():
    source, target = ["the", "cat", "sat"], ["▁die", "▁katze"]
    arguments = {
        "encoder_attention": random_attention(2, 4, 3),
        "decoder_attention": random_attention(2, 4, 2),
        "cross_attention": random_attention(2, 4, 2, 3),
        "encoder_tokens": source,
        "decoder_tokens": target,
    }
    for draw in (head_view, model_view):
        view = draw(**arguments)
        panels = data_of(view)["attention"]
        assert list(panels) == ["encoder", "decoder", "cross"]
        assert panels["cross"]["left_text"] == [" die", " katze"]
        assert panels["cross"]["right_text"] == source
        for name, panel in panels.items():
            weights = torch.cat(arguments[f"{name}_attention"])
            assert (panel["attn"] - weights).abs().max() <= HALF_A_DIGIT
            assert f'<option value="{name}">{name.capitalize()}</option>' in view.page
        assert data_of(draw(**arguments, prettify_tokens=False))["attention"]["cross"]["left_text"] == target
    deep = arguments | {"encoder_attention": random_attention(3, 4, 3)}
    assert data_of(head_view(**deep, include_layers=[0, 1]))["include_layers"] == [0, 1]


# Small


@pytest.mark.parametrize(("L", "A", "S", "limit"), [(12, 12, 64, 5.5e6), (6, 12, 13, 0.45e6)])
def test_model_view_is_small(L, A, S, limit):
    view = model_view(random_attention(L, A, S), ["token"] * S, S // 2)
    assert len(view._repr_html_().encode()) < limit
    assert len(view.page.encode()) < limit


def test_parts_of_a_pair_are_not_stored_twice(pair):
    with_parts = model_view(pair.attentions, pair.tokens, pair.start)
    assert list(data_of(with_parts)["attention"]) == ["all"]
    assert with_parts.page.count('<option value="') == 5 + 2  # attention, two orders


def test_too_large_a_view_raises(monkeypatch):
    monkeypatch.setattr(inputs, "MAX_NUMBERS", 6 * 2 * 10 * 10 - 1)
    attention, tokens = random_attention(6, 2, 10), ["a"] * 10
    message = r"a view of 6 × 2 × 10 × 10 numbers .*is more than a browser can hold .*include_layers=\[…\]"
    for draw in (head_view, model_view):
        with pytest.raises(ValueError, match=message):
            draw(attention, tokens)
        assert draw(attention, tokens, include_layers=[1]).page
    assert model_view(attention, tokens, include_heads=[1]).page


# Safe


def test_pages_fetch_nothing(encoder, tokenizer, pair):
    of_pair = (draw(pair.attentions, pair.tokens) for draw in (head_view, model_view))
    for view in (*of_pair, neuron_view(encoder, tokenizer, "Hi!")):
        assert not re.search(r"<link|\ssrc=|@import|url\(|cdnjs|import\(", view.page)
        assert "default-src 'none'" in view.page
        hosts = set(re.findall(r"https?://[\w.]+", view.page))
        assert hosts <= {"http://www.w3.org"}  # names of XML namespaces


# Shown and saved


def test_view_describes_itself_without_javascript(pair):
    view = head_view(pair.attentions, pair.tokens)
    for text in (repr(view), view._repr_html_()):
        assert "Head view of 6 layers × 12 heads on 13 tokens, “[CLS] i called ian" in text
        assert "run the cells above, then this one" in text
    assert view._repr_html_().startswith("<div><iframe ")


def test_title_names_a_known_model(encoder, tokenizer, reference, pair):
    models, draws = (encoder, reference), (head_view, model_view, neuron_view)
    views = [draw(model, tokenizer, *PAIR) for draw in draws for model in models]
    for view in views:
        assert " view of all-MiniLM-L6-v2, 6 layers × 12 heads on 13 tokens" in repr(view)
    assert "Head view of his & hers, 6 layers" in repr(head_view(pair.attentions, pair.tokens, name="his & hers"))
    assert "<title>Head view of his &amp; hers, 6" in head_view(pair.attentions, pair.tokens, name="his & hers").page
    untold = TransformerEncoder(BertConfig(vocab_size=encoder.config.vocab_size, num_hidden_layers=2))
    assert "Head view of 2 layers × 12 heads on 4 tokens" in repr(head_view(untold, tokenizer, "Hi!"))


def test_lone_surrogate_is_saved_as_question_mark(tmp_path):
    view = head_view(random_attention(1, 1, 2), ["a\ud800", "b"])
    assert "a? b" in view.save(tmp_path / "view.html").read_text("utf-8")
    assert data_of(view)["attention"]["all"]["left_text"] == ["a\ud800", "b"]


BERTVIZ = {"attention": random_attention(2, 3, 4), "tokens": ["a", "b", "c", "d"], "sentence_b_start": 2}


@pytest.mark.parametrize(
    ("draw", "options"),
    [
        (head_view, {"layer": 1, "heads": [0, 2], "include_layers": [1], "prettify_tokens": False}),
        (model_view, {"include_layers": [0], "include_heads": [1, 2], "display_mode": "light"}),
    ],
)
def test_bertvizs_own_call_is_taken(draw, options, monkeypatch):
    returned = draw(**BERTVIZ, **options, html_action="return")
    assert returned.data == returned.page == draw(*BERTVIZ.values(), **options).page
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    assert draw(**BERTVIZ, **options, html_action="view") is None
    assert shown == [returned]
    with pytest.raises(ValueError, match=r'html_action must be "view", "return" or None, .* got .save'):
        draw(**BERTVIZ, html_action="save")


@pytest.mark.parametrize(
    ("draw", "argument", "instead"),
    [(model_view, "layer", "include_layers="), (sentence_view, "heads", "head="), (sentence_view, "colour", "")],
)
def test_arguments_without_a_meaning_are_refused_by_name(draw, argument, instead):
    with pytest.raises(TypeError, match=rf"{draw.__name__}\(\) got an .* '{argument}'.*{instead}"):
        draw(None, **{argument: 1})


def test_attentions_without_the_axis_of_the_batch_are_taken(pair):
    plain = [layer[0] for layer in pair.attentions]
    assert head_view(plain, pair.tokens).page == head_view(pair.attentions, pair.tokens).page


@pytest.mark.parametrize("ids", [[101, 1045, 102, 7], torch.tensor([[1, 2, 3, 4]])])
def test_ids_in_place_of_tokens_are_refused_with_their_function(ids):
    with pytest.raises(TypeError, match=r"got the ids \[1.*pass tokenizer.convert_ids_to_tokens\(ids\)"):
        head_view(random_attention(2, 3, 4), ids)


def test_bertvizs_positional_model_type_is_refused_with_a_remedy(encoder, tokenizer):
    with pytest.raises(TypeError, match=r"takes no model type, got 'bert': the model knows its own type"):
        neuron_view(encoder, "bert", tokenizer, "a", "b")


# Bad input


@pytest.mark.parametrize("draw", [head_view, model_view, neuron_view, sentence_view, path_view])
def test_nan_among_a_models_weights_is_refused(draw, encoder, tokenizer, reference, official_tokenizer):
    broken = copy.deepcopy(encoder), copy.deepcopy(reference)
    for model in broken:
        next(model.parameters()).data.fill_(torch.nan)
    for model, own in zip(broken, (tokenizer, official_tokenizer), strict=True):
        with pytest.raises(ValueError, match=r"holds nan or inf: .*nan among the model|length nan, .*: load trained"):
            draw(model, own, PAIR[0])


GOOD = random_attention(2, 3, 4)
WORDS = ["a", "b", "c", "d"]
SIDES = {"encoder_attention": GOOD, "encoder_tokens": WORDS, "decoder_tokens": WORDS}
FEWER = random_attention(2, 2, 4)
BAD = {
    "empty attention": (
        {"attention": (), "tokens": WORDS},
        r"\(\): .*transformers 5.*outputs.cross_attentions; pass outputs.attentions\..*eager",
    ),
    "two dimensions": ({"attention": [torch.ones(4, 4)], "tokens": WORDS}, r"\(4, 4\): .*\(1, heads.*outputs.attent"),
    "layers differ": ({"attention": [*GOOD, torch.ones(1, 3, 5, 5)], "tokens": WORDS}, r"layer 2.*\(1, 3, 5, 5\)"),
    "scores": ({"attention": [torch.full((1, 1, 4, 4), -0.5)], "tokens": WORDS}, "from -0.50 to -0.50.*softmax"),
    "weights with dropout": ({"attention": [torch.full((1, 1, 4, 4), 1.11)], "tokens": WORDS}, r"to 1.11.*model.eval"),
    "no layer": ({"attention": GOOD, "tokens": WORDS, "include_layers": []}, r"include_layers=\[\] .*leave it out"),
    "empty sentence A": ({"attention": GOOD, "tokens": WORDS, "sentence_b_start": 0}, "1 to 3.*got 0"),
    "empty sentence B": ({"attention": GOOD, "tokens": WORDS, "sentence_b_start": torch.tensor(4)}, "1 to 3.*got 4"),
    "a start in letters": ({"attention": GOOD, "tokens": WORDS, "sentence_b_start": "2"}, "1 to 3.*got '2'"),
    "display mode": ({"attention": GOOD, "tokens": WORDS, "display_mode": "blue"}, r"display_mode must .*, got .blue"),
    "unequal layers": (SIDES | {"decoder_attention": GOOD[:1]}, r"\(2, 3\), 'decoder': \(1, 3\).*layers=range\(1\)"),
    "unequal heads": (SIDES | {"decoder_attention": FEWER}, r"'encoder': \(2, 3\), 'decoder': \(2, 2\).*one at a time"),
}


@pytest.mark.parametrize("draw", [head_view, model_view])
@pytest.mark.parametrize("case", BAD)
def test_invalid_attention_raises(draw, case):
    arguments, message = BAD[case]
    options = dict(arguments)
    given = [options.pop(name, None) for name in ("attention", "tokens", "sentence_b_start")]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        draw(*given, **options)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"layer": 6}, "layer names 6.*0 to 5"), ({"head": -1}, "head names -1.*0 to 11")]
)
def test_invalid_input_of_neuron_view_raises(encoder, tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        neuron_view(encoder, tokenizer, **{"sentence_a": "Hi!"} | arguments)


MIXED = {
    "attentions of both kinds": ((GOOD, WORDS), {"cross_attention": GOOD}),
    "a second text with attentions": ((GOOD, WORDS, 2, "b"), {}),
    "no tokens": ((GOOD,), {}),
}


@pytest.mark.parametrize("case", MIXED)
def test_mixed_attentions_and_texts_raise(case):
    arguments, options = MIXED[case]
    with pytest.raises(TypeError, match=r"pass \(model, tokenizer, sentence_a, .*\(attention, tokens, "):
        head_view(*arguments, **options)


@pytest.mark.parametrize(
    ("package", "version", "error", "message"),
    [
        ("no_such_package", "", ModuleNotFoundError, "the views need no_such_package: pip install no_such_package"),
        ("bertviz", "0.9", RuntimeError, r"need bertviz 0.9, but bertviz \S+ is installed: pip install bertviz==0.9"),
    ],
)
def test_missing_package_or_other_version_raises(package, version, error, message):
    with pytest.raises(error, match=message):
        views_page.package_text(package, "bertviz/head_view.js", version)
