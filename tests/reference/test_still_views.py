"""The still pictures of the views draw the weights they are given, and name bad input."""

import math

import matplotlib.pyplot as plt
import pytest
import torch

from utils.views.still import head_lines, layer_head_grid, query_key_detail

L, A, S, D = 3, 4, 5, 6
TOKENS = ["[CLS]", "a", "$", "b", "[SEP]"]  # a dollar sign is no formula


@pytest.fixture(scope="module")
def queries_and_keys() -> tuple[torch.Tensor, torch.Tensor]:
    """Of every layer and head, (L, A, S, D) each."""
    return tuple(torch.randn(2, L, A, S, D, generator=torch.Generator().manual_seed(0)))


@pytest.fixture(scope="module")
def attention(queries_and_keys) -> tuple[torch.Tensor, ...]:
    queries, keys = queries_and_keys
    return tuple((queries @ keys.mT / math.sqrt(D)).softmax(-1)[:, None])


@pytest.fixture
def figures(monkeypatch):
    """What was shown; drawn once and closed in the end."""
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    yield shown
    for figure in shown:
        figure.canvas.draw()
        plt.close(figure)


def test_lines_are_as_opaque_as_the_weights(attention, figures):
    head_lines(attention, TOKENS, layer=2, heads=[3, 1], title="a claim")
    (figure,) = figures
    for head, lines in zip((3, 1), figure.axes[0].collections, strict=True):
        assert abs(lines.get_alpha().reshape(S, S) - attention[2][0, head].numpy()).max() < 1e-6
        assert lines.get_label() == f"head {head}"
    assert figure.axes[0].get_title() == "a claim"
    assert [text.get_text() for text in figure.axes[0].texts] == TOKENS + TOKENS


def test_numbers_are_written_at_the_lines_of_large_weights(attention, figures):
    head_lines(attention, TOKENS, layer=2, heads=[3], numbers_from=0.3)
    weights = attention[2][0, 3]
    written = [text.get_text() for text in figures[0].axes[0].texts if text.get_text() not in TOKENS]
    assert written == [f"{weight:.2f}" for weight in weights[weights >= 0.3]]
    assert written


def test_lines_between_two_texts(attention, figures):
    source = ["x", "y", "z"]
    head_lines([layer[..., :3] for layer in attention], TOKENS, source, layer=1, heads=[0])
    (figure,) = figures
    (lines,) = figure.axes[0].collections
    assert abs(lines.get_alpha().reshape(S, 3) - attention[1][0, 0, :, :3].numpy()).max() < 1e-6
    assert [text.get_text() for text in figure.axes[0].texts] == TOKENS + source
    with pytest.raises(ValueError, match="3 positions, but there are 5 tokens"):
        head_lines([layer[..., :3] for layer in attention], TOKENS)


def test_the_grid_has_a_map_for_each_head_of_each_layer(attention, figures):
    layer_head_grid(attention, title="a claim", framed=[(1, 2)])
    layer_head_grid(attention, include_layers=[1], include_heads=[2, 0])
    whole, chosen = ([ax.images[0].get_array() for ax in figure.axes if ax.images] for figure in figures)
    weights = torch.cat(attention).flatten(0, 1)
    assert len(whole) == L * A
    assert all(abs(drawn - wanted.numpy()).max() < 1e-6 for drawn, wanted in zip(whole, weights, strict=True))
    for drawn, head in zip(chosen, (2, 0), strict=True):
        assert abs(drawn - weights[A + head].numpy()).max() < 1e-6
    assert figures[0].get_suptitle() == "a claim"
    frames = [ax.spines["top"].get_edgecolor() == (1, 0, 0, 1) for ax in figures[0].axes if ax.images]
    assert [place for place, framed in enumerate(frames) if framed] == [A + 2]


def test_the_detail_ends_in_the_weights_of_the_query(attention, queries_and_keys, figures):
    queries, keys = (vectors[1, 2] for vectors in queries_and_keys)
    query_key_detail(queries, keys, TOKENS, 3, title="a claim")
    (figure,) = figures
    widths = [bar.get_width() for bar in figure.axes[4].patches]
    assert abs(torch.tensor(widths) - attention[1][0, 2, 3]).max() < 1e-5
    assert figure.get_suptitle() == "a claim"


def test_bad_input_is_named(attention):
    with pytest.raises(ValueError, match=r"5 positions.*2 tokens"):
        head_lines(attention, ["a", "b"])
    with pytest.raises(ValueError, match="heads names 4"):
        head_lines(attention, TOKENS, heads=[4])
    with pytest.raises(ValueError, match="layer names 3"):
        head_lines(attention, TOKENS, layer=3)
    with pytest.raises(ValueError, match="include_layers names 6"):
        layer_head_grid(attention, include_layers=[6])
    vectors = torch.ones(3, 2)
    with pytest.raises(ValueError, match=r"\(3, 2\).*2 tokens do not fit"):
        query_key_detail(vectors, vectors, ["a", "b"], 0)
    with pytest.raises(ValueError, match=r"query_index names 3.*0 to 2"):
        query_key_detail(vectors, vectors, ["a", "b", "c"], 3)
