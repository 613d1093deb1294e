"""Embeddings alone, as in notebook 02."""

import torch
from transformers import BertConfig

from tests.helpers import SMALL
from utils.encoder import TransformerEncoder

IDS = torch.tensor([[5, 7, 5]])


def test_padding_embedding_is_zero_and_never_trained():
    config = BertConfig(**SMALL, pad_token_id=3)
    embeddings = TransformerEncoder(config).embeddings
    (embeddings(torch.tensor([[5, 3]])) * torch.randn(1, 2, 8)).sum().backward()
    table = embeddings.word_embeddings.weight
    assert not table[3].any()
    assert not table.grad[3].any()
    assert table[0].any()
    assert table.grad[5].any()
