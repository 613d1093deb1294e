"""A small encoder that several modules share."""

import copy

import pytest
import torch
from transformers import BertConfig

from tests.helpers import shaken
from utils.encoder import TransformerEncoder


@pytest.fixture(scope="module")
def small() -> TransformerEncoder:
    """Return an encoder whose random weights are large enough for attention to prefer some tokens."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 32}
    return shaken(TransformerEncoder(BertConfig(**sizes, vocab_size=30)), std=0.5)


@pytest.fixture(scope="module")
def precise(small) -> TransformerEncoder:
    """Return the same encoder in double precision, where rounding is far smaller than any error."""
    return copy.deepcopy(small).double()
