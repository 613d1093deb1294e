"""`why_near`: the cosine of two texts, shared out among all pairs of their tokens. Used in notebook 09."""

from torch import Tensor
from torch.nn import functional as F

from utils.search import shares_of_cosine
from utils.support.batches import device_of
from utils.support.checkpoint import check_mean_pooling
from views.figures import make_figure
from views.models import Text, check_model, reading, tokenize_for_view, unwrap
from views.page import View

MOST_TOKENS = 256  # of a text: 65,536 shares on a page


def why_near(encoder, tokenizer, text: str, other: str, *, control: str | None = None) -> View:
    """Draw why two texts are near: each pair of tokens by its share of the cosine of the two mean vectors.

    For example:  why_near(encoder, tokenizer, "fizzy drink", "Coca-Cola sells soft drinks.", control="It rains.")

    The shares add up to the cosine. Words are drawn, or their pieces if the reader asks for them. A `control` is
    another text in the place of the first, to look at in turn. `encoder` is one of this series or of transformers
    whose sentence vectors are the means of its tokens' vectors, and `tokenizer` its own. ValueError for another model,
    an empty text and one of more than 256 tokens.
    """
    encoder = unwrap(encoder)
    check_model(encoder)
    check_mean_pooling(encoder)
    texts = {"text": text, "other": other} | ({} if control is None else {"control": control})
    read = {name: read_states(encoder, tokenizer, name, given) for name, given in texts.items()}
    comparisons = [compare(read[name], read["other"]) for name in texts if name != "other"]
    return make_figure(
        "why_near",
        {"comparisons": comparisons},
        summary=f"Why two texts are near: “{text:.60}” and “{other:.60}”",
        before=("shares",),
    )


def read_states(encoder, tokenizer, name: str, text: str) -> tuple[Text, Tensor]:
    """Let the encoder read a text: its tokens, and its vectors (S, H) in float64."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{name}={text!r:.60} is no text: pass a string with a word or more")
    read = tokenize_for_view(encoder, tokenizer, text, None)
    if len(read.tokens) > MOST_TOKENS:
        raise ValueError(f"{name} has {len(read.tokens)} tokens, and the view has room for {MOST_TOKENS}: shorten it")
    with reading(encoder):
        output = encoder(**{key: ids.to(device_of(encoder)) for key, ids in read.inputs.items()})
    states = getattr(output, "last_hidden_state", None)
    if states is None:
        raise ValueError(f"a {type(encoder).__name__} returns no last_hidden_state: pass the encoder without its head")
    return read, states[0].cpu().double()


def compare(one: tuple[Text, Tensor], other: tuple[Text, Tensor]) -> dict:
    """Put together what the page draws of two texts."""
    shares = shares_of_cosine(one[1], other[1])
    sides = [{"tokens": read.tokens, "words": read.words} for read, _ in (one, other)]
    return {
        "sides": sides,
        "shares": shares.tolist(),
        "cosine": F.cosine_similarity(one[1].mean(dim=0), other[1].mean(dim=0), dim=0).item(),
    }
