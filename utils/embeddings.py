"""Ids to vectors: word, position and token-type embeddings. Built in notebook 02."""

import torch
from torch import Tensor, nn
from transformers import BertConfig


class Embeddings(nn.Module):
    """Sum of word, position and token-type embeddings, then LayerNorm and dropout (Devlin et al. 2019, section 3)."""

    def __init__(self, config: BertConfig):
        super().__init__()
        H = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, H, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, H)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, H)
        self.layer_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """`input_ids` and `token_type_ids` (B, S) to hidden_states (B, S, H); without token types all are 0.

        Raises ValueError for more tokens than positions, ids outside the vocabulary and token types of another shape.
        """
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        check_ids(input_ids, token_type_ids, self.word_embeddings, self.token_type_embeddings)
        check_length(input_ids, self.position_embeddings)
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)  # (B, S, H)
        embeddings = embeddings + self.position_embeddings.weight[: input_ids.size(1)]  # (S, H) for every row
        return self.dropout(self.layer_norm(embeddings))


def check_ids(
    input_ids: Tensor,
    token_type_ids: Tensor,
    word_embeddings: nn.Embedding,
    token_type_embeddings: nn.Embedding,
) -> None:
    """Raise ValueError unless both are (B, S), not empty, and hold rows of their embedding tables only."""
    if input_ids.dim() != 2 or 0 in input_ids.shape:
        raise ValueError(
            f"input_ids must be (B, S), got {tuple(input_ids.shape)}: one sentence is a batch, ids[None]"
        )
    if token_type_ids.shape != input_ids.shape:
        shapes = f"{tuple(token_type_ids.shape)}, input_ids {tuple(input_ids.shape)}"
        raise ValueError(f"token_type_ids have the shape {shapes}: the two must agree")
    tables = {
        "input_ids": (input_ids, word_embeddings),
        "token_type_ids": (token_type_ids, token_type_embeddings),
    }
    for name, (ids, table) in tables.items():
        size, limits = table.num_embeddings, [int(limit) for limit in ids.aminmax()]
        wrong = [limit for limit in limits if not 0 <= limit < size]
        if wrong:
            raise ValueError(
                f"{name} hold {wrong[0]}, outside 0 … {size - 1}: the vocabulary has {size} entries"
            )


def check_length(input_ids: Tensor, position_embeddings: nn.Embedding) -> None:
    """Raise ValueError for more tokens than the model has positions, naming both and the remedy."""
    length, positions = input_ids.size(1), position_embeddings.num_embeddings
    if length > positions:
        raise ValueError(
            f"{length} tokens, but only {positions} positions: tokenize with max_length={positions}"
        )
