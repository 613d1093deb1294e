"""What a view or figure draws."""

import math
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from transformers import BertConfig, BertModel

from tests.helpers import TINY, tiny_tokenizer
from tests.reference.bad_input import Bad, Good, each
from tests.reference.bad_input.models import IDS, classifier, encoder
from utils.support.checkpoint import load_tokenizer
from utils.support.plots import heatmap
from utils.tokenization import WordPieceTokenizer
from views import head_view, model_view, neuron_view, sentence_view

GOOD = [torch.full((1, 3, 4, 4), 0.25)] * 2
WORDS = ["[CLS]", "a", "b", "[SEP]"]


def drawn(text: str):
    """Whether a figure with this text as its label draws, and draws it as it stands."""

    def call(folder: Path) -> bool:
        heatmap([[1.0]], [text], [text], title=text)
        ax = plt.gcf().axes[0]
        plt.gcf().canvas.draw()
        return all(label.get_text().replace(r"\$", "$") == text for label in (ax.title, ax.get_xticklabels()[0]))

    return call


DRAWN = lambda _: head_view(encoder(), tiny_tokenizer(), "a", "b")  # noqa: E731

VIEW = [
    Bad(
        "`include_heads=` for head_view",
        lambda _: head_view(GOOD, WORDS, include_heads=[0]),
        "got an unexpected keyword argument 'include_heads': heads=[…] selects the heads shown at first",
        lambda _: head_view(GOOD, WORDS, heads=[0]),
        error=TypeError,
    ),
    Bad(
        "`attention=` for neuron_view",
        lambda _: neuron_view(attention=GOOD, tokens=WORDS),
        "got an unexpected keyword argument 'attention': attentions hold no queries and keys",
        lambda _: neuron_view(encoder(), tiny_tokenizer(), "a"),
        error=TypeError,
    ),
    Bad(
        "`words='yes'`",
        lambda _: model_view(GOOD, WORDS, words="yes"),
        "words must be True, for whole words, or False",
        each(*(lambda _, words=words: model_view(GOOD, WORDS, words=words) for words in (True, False))),
        error=TypeError,
    ),
    Bad(
        "`heads=3` of 3",
        lambda _: head_view(GOOD, WORDS, heads=3),
        "heads names 3, but there are 3: use 0 to 2",
        lambda _: head_view(GOOD, WORDS, heads=[0, 2]),
    ),
    Good(
        "`heads=2`, not in a list",
        lambda _: head_view(GOOD, WORDS, heads=2).page == head_view(GOOD, WORDS, heads=[2]).page,
    ),
    Good(
        "`sentence_b_start=tensor(2)`",
        lambda _: head_view(GOOD, WORDS, torch.tensor(2)).page == head_view(GOOD, WORDS, 2).page,
    ),
    Bad(
        "three tokens for four positions",
        lambda _: head_view(GOOD, WORDS[:3]),
        "3 tokens: pass the tokens of the same input, special tokens such as [CLS] and [SEP] included",
        lambda _: head_view(GOOD, WORDS),
    ),
    *(
        Good(
            f"the token {token!r}, as it is typed",
            lambda _, token=token, model=model: (
                sentence_view(model, tiny_tokenizer(), "a b", token=token).page
                == sentence_view(model, tiny_tokenizer(), "a b", token="b").page
            ),
        )
        for model in (encoder(),)
        for token in ("B", " b ", "b\u0301")
    ),
    Bad(
        "a model that returned no weights",
        lambda _: head_view((None, None), WORDS),
        'attn_implementation="eager"',
        lambda _: head_view(
            BertModel(BertConfig(**TINY, attn_implementation="eager"))(IDS[:1], output_attentions=True).attentions,
            WORDS[:3],
        ),
    ),
    Good(
        "attention as NumPy arrays",
        lambda _: head_view([layer.numpy() for layer in GOOD], WORDS).page == head_view(GOOD, WORDS).page,
    ),
    Bad(
        "a model's whole output",
        lambda _: head_view({"attentions": GOOD}, WORDS),
        "attention is the whole output of a model: pass its attentions, output.attentions",
        lambda _: head_view(encoder()(IDS[:1], output_attentions=True).attentions, WORDS[:3]),
        error=TypeError,
    ),
    Bad(
        "the attentions of generate()",
        lambda _: model_view((tuple(GOOD), tuple(GOOD)), WORDS),
        "attention contains tuples of tensors, as in the output of generate(), or in a whole output with",
        lambda _: model_view(tuple(GOOD), WORDS),
        error=TypeError,
    ),
    Bad(
        "words for attention",
        lambda _: head_view(["a", "b"], WORDS),
        "attention must be one tensor per layer (",
        each(DRAWN, lambda _: head_view(GOOD, WORDS)),
        error=TypeError,
    ),
    Bad(
        "a batch of two texts",
        lambda _: head_view([torch.ones(2, 3, 4, 4)], WORDS),
        "is of a batch of 2, and a view shows one text: pass [layer[i : i + 1] for layer in attention]",
        lambda _: head_view([layer[1:2] for layer in [torch.full((2, 3, 4, 4), 0.25)]], WORDS),
    ),
    Bad(
        "attention with NaN",
        lambda _: model_view([torch.full((1, 1, 4, 4), math.nan)], WORDS),
        "attention holds nan or inf: look for a row of the attention mask that is all 0",
        lambda _: model_view(GOOD, WORDS),
    ),
    Bad(
        "a text where the tokenizer belongs",
        lambda _: neuron_view(encoder(), "a", "b"),
        "tokenizer must be a WordPieceTokenizer or transformers' own, got str",
        each(
            *(
                lambda folder, read=read: neuron_view(encoder(), read(folder), "a", "b")
                for read in (load_tokenizer, WordPieceTokenizer.from_checkpoint)
            )
        ),
        error=TypeError,
    ),
    Bad(
        "another model",
        lambda _: neuron_view(torch.nn.Linear(2, 2), tiny_tokenizer(), "a"),
        "do not support a Linear: pass a model of this series or of transformers",
        each(
            lambda _: neuron_view(encoder(), tiny_tokenizer(), "a"),
            lambda _: head_view(GOOD, WORDS),
            lambda _: neuron_view(classifier().eval().encoder, tiny_tokenizer(), "a"),
        ),
    ),
    Bad(
        "a tokenizer where the encoder belongs",
        lambda _: model_view(tiny_tokenizer(), encoder(), "a"),
        "attention must be one tensor per layer, got WordPieceTokenizer: pass (model, tokenizer, sentence_a",
        DRAWN,
        error=TypeError,
    ),
    Bad(
        "an encoder and no text",
        lambda _: head_view(encoder(), tiny_tokenizer()),
        "sentence_a must be one string, got None",
        DRAWN,
    ),
    Bad(
        "an encoder, a text and tokens",
        lambda _: head_view(encoder(), tiny_tokenizer(), "a", encoder_tokens=WORDS),
        "encoder_tokens cannot be combined with a model and its text: pass (model",
        each(DRAWN, lambda _: head_view(encoder_attention=GOOD, encoder_tokens=WORDS)),
        error=TypeError,
    ),
    Bad(
        "tokens by name without an attention",
        lambda _: head_view(encoder_tokens=WORDS),
        "encoder_tokens without an attention: pass (model, tokenizer, sentence_a",
        each(DRAWN, lambda _: head_view(encoder_attention=GOOD, encoder_tokens=WORDS)),
        error=TypeError,
    ),
    *(Good(f"the label {text}", drawn(text)) for text in ("from $5 to $10", r"$\bad{$", "$", "\\$1")),
    Bad(
        "the misspelled option `anotate=True`",
        lambda _: heatmap([[1.0]], ["a"], ["a"], anotate=True),
        "'anotate'",
        lambda _: heatmap([[1.0]], ["a"], ["a"], title="b", xlabel="c", ylabel="d", note="e"),
        error=TypeError,
    ),
]
