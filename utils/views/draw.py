"""The head, model and neuron view, each as a function of attentions or of a model and its text.

Each function returns a `View`: Jupyter displays it, and its `.save(path)` writes a page that any browser opens.
bertviz's templates get their libraries and data inside one frame, so that nothing is fetched and views do not meet.
"""

from collections.abc import Sequence

from torch import Tensor

from utils.checks import is_whole
from utils.views.inputs import (
    describe,
    every_source,
    most_lines,
    pack,
    pack_panels,
    prettify,
    read_panels,
    check_drawable,
    check_indices,
    check_layers,
    check_sentence_b_start,
    warn_if_many,
    without_html_action,
)
from utils.views.models import name_of, of_texts_too, read_text
from utils.views.page import HEAD_VIEW, MODEL_VIEW, NEURON_VIEW, View, make_view


@of_texts_too
def head_view(
    attention: Sequence[Tensor] | None = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    *,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Sequence[Tensor] | None = None,
    decoder_attention: Sequence[Tensor] | None = None,
    cross_attention: Sequence[Tensor] | None = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    prettify_tokens: bool = True,
    display_mode: str | None = None,
    name: str | None = None,
) -> View:
    """Lines between two columns of tokens, one colour a head: all heads of one layer at a time.

    Of a model and its text:  head_view(encoder, tokenizer, "I called Ian.", "I got his answering machine.")
    Of any model's attentions, as bertviz is called:  head_view(attention, tokens, sentence_b_start)

    `attention` holds one tensor (1, A, S, S) a layer and `tokens` the S tokens; `sentence_b_start`, the index of a
    second sentence's first token, adds a drop-down for the attention within and between the sentences. A model and its
    text work these three out, as in `neuron_view`; `sentence_b` can be left out. An encoder–decoder model's three
    attentions and two texts have arguments of their own. `layer` and `heads` are shown at first; `include_layers`
    leaves the other layers out. `name` is what the title calls the model, whose checkpoint's name it is by default
    where a model is passed. ValueError or TypeError names what does not fit and the remedy; a
    UserWarning, more lines than a browser draws in ten seconds.
    """
    panels = read_panels(
        *every_source(
            *(attention, encoder_attention, decoder_attention, cross_attention),
            *(tokens, encoder_tokens, decoder_tokens),
        ),
        prettify_tokens=prettify_tokens,
    )
    A, layers = panels[0].weights.size(1), check_layers(panels, include_layers)
    if layer is not None and (not is_whole(layer) or layer not in layers):
        raise ValueError(f"layer={layer!r} is not among the layers shown, {layers}: use one of them")
    heads = check_indices("heads", heads, A)
    warn_if_many("head view", len(heads) * most_lines(panels), "shorten the text, or pass heads=[…]")
    return make_view(
        HEAD_VIEW,
        pack_panels(panels, layers),
        display_mode=display_mode,
        summary=describe(name, len(layers), A, [panel.left_tokens for panel in panels]),
        sentence_b_start=check_sentence_b_start(sentence_b_start, panels[0]),
        width=max(HEAD_VIEW.width, 26 * A),  # a tile a head
        layer=None if layer is None else int(layer),
        heads=heads,
        include_layers=layers,
    )


@of_texts_too
def model_view(
    attention: Sequence[Tensor] | None = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    *,
    encoder_attention: Sequence[Tensor] | None = None,
    decoder_attention: Sequence[Tensor] | None = None,
    cross_attention: Sequence[Tensor] | None = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    prettify_tokens: bool = True,
    display_mode: str | None = None,
    name: str | None = None,
) -> View:
    """Every head of every layer as a small drawing in a grid; a click enlarges one.

    Of a model and its text:  model_view(encoder, tokenizer, "I called Ian.", "I got his answering machine.")
    Of any model's attentions, as bertviz is called:  model_view(attention, tokens, sentence_b_start)

    The arguments are those of `head_view`. `include_layers` and `include_heads` leave the others out.
    """
    panels = read_panels(
        *every_source(
            *(attention, encoder_attention, decoder_attention, cross_attention),
            *(tokens, encoder_tokens, decoder_tokens),
        ),
        prettify_tokens=prettify_tokens,
    )
    A, layers = panels[0].weights.size(1), check_layers(panels, include_layers)
    heads = check_indices("include_heads", include_heads, A)
    lines = len(layers) * len(heads) * most_lines(panels)
    warn_if_many("model view", lines, "pass include_layers=[…] or include_heads=[…], or shorten the text")
    return make_view(
        MODEL_VIEW,
        pack_panels(panels, layers, heads),
        display_mode=display_mode,
        summary=describe(name, len(layers), len(heads), [panel.left_tokens for panel in panels]),
        sentence_b_start=check_sentence_b_start(sentence_b_start, panels[0]),
        include_layers=layers,
        include_heads=heads,
        total_heads=A,
    )


@without_html_action
def neuron_view(
    encoder,
    tokenizer,
    sentence_a: str,
    sentence_b: str | None = None,
    *,
    layer: int = 0,
    head: int = 0,
    display_mode: str | None = None,
    name: str | None = None,
) -> View:
    """How one head's query and keys, neuron by neuron, make its attention: softmax(q · k / √D).

    For example:  neuron_view(encoder, tokenizer, "I called Ian.", "I got his answering machine.", layer=5, head=5)

    `encoder` is a `TransformerEncoder` or a transformers `BertModel` with any attention implementation, `tokenizer`
    ours or the official one, of the same checkpoint. `layer` and `head` are shown at first. ValueError for another
    model, a layer or head that does not exist, and a text that the model cannot take.
    """
    reading = read_text(encoder, tokenizer, sentence_a, sentence_b)
    L, A, S, _ = reading.queries.shape
    [layer], [head] = check_indices("layer", [layer], L), check_indices("head", [head], A)
    check_drawable(L, A, S, S)
    warn_if_many("neuron view", S * S, "shorten the text, or use head_view")
    tokens = [prettify(token) for token in reading.tokens]
    vectors = {"attn": reading.weights, "queries": reading.queries, "keys": reading.keys}
    panel = {name: pack(values) for name, values in vectors.items()}
    return make_view(
        NEURON_VIEW,
        {"all": panel | {"left_text": tokens, "right_text": tokens}},
        display_mode=display_mode,
        summary=describe(name or name_of(encoder), L, A, [tokens]),
        sentence_b_start=reading.sentence_b_start,
        bidirectional=True,
        layer=layer,
        head=head,
    )
