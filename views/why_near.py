"""`why_near`: the cosine of two texts, divided among all pairs of their tokens."""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F

from utils.support.batches import device_of
from utils.support.sentence_settings import sentence_length
from views.figures import make_figure
from views.models import Text, check_model, inference, tokenize_for_view, unwrap
from views.page import View

MAX_TOKENS = 256  # of a text: 65,536 shares on a page


def why_near(encoder, tokenizer, text: str, other: str, *, control: str | Sequence[str] | None = None) -> View:
    """Draw why two texts are near: the share of each pair of tokens in the cosine of the two mean vectors.

    For example:  why_near(encoder, tokenizer, "fizzy drink", "Coca-Cola sells soft drinks.", control="It rains.")

    The shares add up to the cosine. The view shows words, or their pieces on request. ValueError for another model, an
    empty text or a text of more than 256 tokens.

    Parameters:
        encoder: a model of this series or of transformers whose sentence vectors are the means of its token vectors.
        tokenizer: its tokenizer.
        text, other: the two texts.
        control: another text that can take the place of the first, or a list of up to 5 such texts.
    """
    encoder = unwrap(encoder)
    check_model(encoder)
    sentence_length(encoder)  # raises for another pooling
    controls = [] if control is None else list(control) if isinstance(control, list | tuple) else [control]
    if len(controls) > 5:
        raise ValueError(f"control has {len(controls)} texts, but this view draws at most 5: leave some out")
    on_the_left = [("text", text), *(("control", each) for each in controls)]
    read = [read_states(encoder, tokenizer, name, value) for name, value in on_the_left]
    right = read_states(encoder, tokenizer, "other", other)
    return make_figure(
        "why_near",
        {
            "comparisons": [share_cosine(left, right) for left in read],
            "names": [shorten(each, 40) for _, each in on_the_left],
            "other": shorten(other),
        },
        title="Every pair of words adds its share to the cosine of two texts",
        details=f"“{shorten(text)}” and “{shorten(other)}”",
        before=("shares",),
    )


def shares_of_cosine(states: Tensor, other_states: Tensor) -> Tensor:
    """Split the cosine of two mean vectors among pairs of tokens: (S, H) and (T, H) to (S, T), which sum to the cosine.

    The product of two means is the mean of the products of all pairs.
    """
    S, T = len(states), len(other_states)
    lengths = states.mean(dim=0).norm() * other_states.mean(dim=0).norm()
    return states @ other_states.T / (S * T * lengths)


def shorten(text: str, most: int = 60) -> str:
    """Return at most so many characters of a text, which ends in … if it is longer."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def read_states(encoder, tokenizer, name: str, text: str) -> tuple[Text, Tensor]:
    """Return the tokens of a text and the encoder's vectors (S, H) in float64."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{name} must be a string with at least one word, got {text!r:.60}")
    read = tokenize_for_view(encoder, tokenizer, text, None)
    if len(read.tokens) > MAX_TOKENS:
        raise ValueError(f"{name} has {len(read.tokens)} tokens, but this view draws at most {MAX_TOKENS}: shorten it")
    with inference(encoder):
        output = encoder(**{key: ids.to(device_of(encoder)) for key, ids in read.inputs.items()})
    states = getattr(output, "last_hidden_state", None)
    if states is None:
        raise ValueError(f"a {type(encoder).__name__} returns no last_hidden_state: pass the encoder without its head")
    return read, states[0].cpu().double()


def share_cosine(one: tuple[Text, Tensor], other: tuple[Text, Tensor]) -> dict:
    """Divide the cosine of two texts among all pairs of their tokens, for the page to draw."""
    shares = shares_of_cosine(one[1], other[1])
    sides = [{"tokens": read.tokens, "words": read.words} for read, _ in (one, other)]
    return {
        "sides": sides,
        "shares": shares.tolist(),
        "cosine": F.cosine_similarity(one[1].mean(dim=0), other[1].mean(dim=0), dim=0).item(),
    }
