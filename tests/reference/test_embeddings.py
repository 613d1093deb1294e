"""Embeddings alone, as in notebook 02."""

import pytest
import torch
from transformers import BertConfig

from tests.helpers import SMALL, shaken
from utils.embeddings import Embeddings
from utils.encoder import TransformerEncoder

IDS = torch.tensor([[5, 7, 5]])


@pytest.fixture
def embeddings() -> Embeddings:
    torch.manual_seed(0)
    return shaken(Embeddings(BertConfig(**SMALL)))


def test_embeddings_are_added_then_normalized(embeddings):
    types = torch.tensor([[0, 1, 1]])
    found = embeddings(IDS, types)
    tables = (embeddings.word_embeddings, embeddings.token_type_embeddings, embeddings.position_embeddings)
    ids = IDS, types, torch.arange(3)
    word, token_type, position = (table.weight[rows] for table, rows in zip(tables, ids, strict=True))
    assert torch.allclose(found, embeddings.layer_norm(word + token_type + position), atol=1e-6)


def test_embeddings_default_to_token_type_0(embeddings):
    assert torch.equal(embeddings(IDS), embeddings(IDS, torch.zeros_like(IDS)))
    assert not torch.allclose(embeddings(IDS), embeddings(IDS, torch.ones_like(IDS)))


def test_padding_embedding_is_zero_and_never_trained():
    config = BertConfig(**SMALL, pad_token_id=3)
    embeddings = TransformerEncoder(config).embeddings
    (embeddings(torch.tensor([[5, 3]])) * torch.randn(1, 2, 8)).sum().backward()
    table = embeddings.word_embeddings.weight
    assert not table[3].any()
    assert not table.grad[3].any()
    assert table[0].any()
    assert table.grad[5].any()


def test_embedding_dropout_follows_the_configuration():
    embeddings = Embeddings(BertConfig(**SMALL, hidden_dropout_prob=1.0))
    assert not embeddings.train()(IDS).any()
    assert embeddings.eval()(IDS).any()
