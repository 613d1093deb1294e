"""Translate Hugging Face's names of weights into ours. Built in notebook 06."""

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor

from utils.support.checkpoint import BUFFERS, canonical_name, is_encoder_weight
from utils.support.checks import check_finite_weights, check_tied, check_weights
from utils.support.saving import SavedModel
from utils.support.weight_names import HEADS, RENAMES

IGNORED_PREFIXES = ("pooler.", "cls.seq_relationship.")  # ignored where our model has no such head


def rename_weight(name: str) -> str | None:
    """Return our name for a weight of a `BertModel`, such as layers.0.attention.query.weight; None for its pooler's.

    Built in notebook 06, exercise 6.3.
    """
    if not is_encoder_weight(name):
        return None
    for theirs, ours in RENAMES.items():
        name = name.replace(theirs, ours)
    return name


def rename_weights(
    state_dict: Mapping[str, Tensor], wanted: Mapping[str, Tensor], rename: Callable[[str], str | None] = rename_weight
) -> dict[str, Tensor]:
    """Return official weights under our names. ValueError unless they fit the wanted ones exactly, tied ones equal.

    `rename` maps an official name to ours, or to None for a weight that our model does not have. Built in notebook 06,
    section “A strict load”.
    """
    found = {}
    for name, weight in state_dict.items():
        if ours := rename(name):
            check_tied(name, weight, found.get(ours))
            found[ours] = weight
    check_weights(found, wanted)
    check_finite_weights(found)
    return found


def rename_headed_weight(name: str, architecture: str) -> str | None:
    """Return our name for a weight of a transformers model with a head; None if our model has no such weight.

    Built in notebook 06, section “A strict load”.
    """
    name = canonical_name(name)
    for theirs, ours in HEADS[architecture].items():
        if name.startswith(canonical_name(theirs)):
            return name.replace(canonical_name(theirs), ours)
    if name.startswith(IGNORED_PREFIXES) or name.endswith(BUFFERS):
        return None
    return f"encoder.{rename_weight(name)}" if is_encoder_weight(name) else name


def rename_decoder_weight(name: str) -> str | None:
    """Return our name for a weight of `BertLMHeadModel`, such as head.bias; None for its buffers.

    Built in notebook 06, section “A strict load”.
    """
    name = rename_headed_weight(name, "BertForMaskedLM")
    return name and name.removeprefix("encoder.").replace("crossattention", "cross_attention")


class HeadedModel(SavedModel):
    """A model with a head on the encoder, which loads the weights of a transformers model with the same head.

    Built in notebook 06, section “A strict load”.
    """

    def load_bert_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Copy the weights of the transformers model. ValueError lists those that do not fit."""
        rename = partial(rename_headed_weight, architecture=self.architecture)
        self.load_state_dict(rename_weights(state_dict, self.state_dict(), rename))
