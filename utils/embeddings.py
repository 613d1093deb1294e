"""Map ids to vectors: word, position and token-type embeddings. Built in notebook 02."""

import torch
from torch import Tensor, nn

from utils.support.checks import check_shapes


class Embeddings(nn.Module):
    """Sum of word, position and token-type embeddings, then LayerNorm and dropout (Devlin et al. 2019, section 3).

    Built in notebook 02, exercise 2.4.
    """

    def __init__(self, config):
        super().__init__()
        H = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, H, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, H)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, H)
        self.layer_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Map `input_ids` and `token_type_ids` (B, S) to hidden_states (B, S, H); without token types all are 0.

        Raises ValueError for more tokens than positions, and for ids and token types of other shapes.
        """
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        check_shapes(input_ids, token_type_ids, self.position_embeddings.num_embeddings)
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)  # (B, S, H)
        embeddings = embeddings + self.position_embeddings.weight[: input_ids.size(1)]  # (S, H) for every row
        return self.dropout(self.layer_norm(embeddings))
