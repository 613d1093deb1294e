"""The head that gives every token of the vocabulary a score, for masked words or next ones. Built in notebook 11."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.checking import require_activation, require_finite_weights, require_fit
from utils.encoder_layer import ACTIVATIONS

HEAD = "cls.predictions."  # in Hugging Face's names
# those of its weights, and ours; the last two are stored twice there
RENAMES = {
    HEAD + "transform.dense": "head.transform",
    HEAD + "transform.LayerNorm": "head.layer_norm",
    HEAD + "bias": "head.bias",
    HEAD + "decoder.bias": "head.bias",
    HEAD + "decoder.weight": "embeddings.word_embeddings.weight",
}


class LanguageModelHead(nn.Module):
    """Transform, LayerNorm, product with the word embeddings, bias (Devlin et al. 2019, section 3.1).

    The product's matrix is handed over at every call, so nothing can untie it.
    """

    def __init__(self, config):
        super().__init__()
        H = config.hidden_size
        self.transform = nn.Linear(H, H)
        self.activation = ACTIVATIONS[require_activation(config.hidden_act, ACTIVATIONS)]()
        self.layer_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden_states: Tensor, word_embeddings: Tensor) -> Tensor:
        """hidden_states (…, H) and the word embeddings (V, H) to logits (…, V)."""
        transformed = self.layer_norm(self.activation(self.transform(hidden_states)))
        return F.linear(transformed, word_embeddings, self.bias)


def rename_head(name: str) -> str:
    """Our name for one of the head's weights, such as head.bias for cls.predictions.bias; others as they are."""
    for theirs, ours in RENAMES.items():
        if name.startswith(theirs):
            return name.replace(theirs, ours)
    return name


def rename_tied(
    state_dict: dict[str, Tensor], rename: Callable[[str], str | None], wanted: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Official weights under our names; ValueError unless they fit the wanted ones exactly, tied ones equal.

    `rename` gives our name, None for a weight that nobody wants.
    """
    found = {}
    for name, weight in state_dict.items():
        if (ours := rename(name)) is None:
            continue
        first = found.setdefault(ours, weight)
        if first is not weight and not torch.equal(first, weight):
            raise ValueError(f"{name} differs from the word embeddings or bias that it is tied to: tie them")
    require_fit(found, wanted)
    require_finite_weights(found)
    return found
