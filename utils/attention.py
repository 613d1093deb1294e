"""Self-attention: the formula and one head (built in notebook 03), all heads (04), and masks (04 and 12)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.support.checks import check_attention_mask, check_heads, check_same_shape


def compute_attention_weights(query: Tensor, key: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Return softmax(query · keyᵀ / √D), from (…, S, D) and (…, T, D) to (…, S, T) (Vaswani et al. 2017, 3.2.1).

    Built in notebook 03, exercise 3.2.
    """
    attention_scores = query @ key.transpose(-2, -1) * query.size(-1) ** -0.5  # (…, S, T), divided by √D
    if attention_mask is not None:
        attention_scores = attention_scores.masked_fill(attention_mask == 0, -math.inf)
    return attention_scores.softmax(dim=-1)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return softmax(query · keyᵀ / √D) · value and the weights (Vaswani et al. 2017, 3.2.1).

    Shapes: query (…, S, D), key and value (…, T, D); `attention_mask` broadcasts to (…, S, T) and is 0 where a query
    must not see a key. Returns the context (…, S, D) and the attention_weights (…, S, T), whose rows sum to 1. Raises
    ValueError for a mask that does not fit or leaves a query nothing to see. Built in notebook 03,
    section “The complete formula”.
    """
    if attention_mask is not None:
        check_attention_mask(attention_mask, query, key)
    attention_weights = compute_attention_weights(query, key, attention_mask)
    return attention_weights @ value, attention_weights


class AttentionHead(nn.Module):
    """One self-attention head: its own query, key and value projections of the whole input.

    Built in notebook 03, exercise 3.3.
    """

    def __init__(self, hidden_size: int, head_size: int):
        super().__init__()
        self.query = nn.Linear(hidden_size, head_size)
        self.key = nn.Linear(hidden_size, head_size)
        self.value = nn.Linear(hidden_size, head_size)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map hidden_states (B, S, H) and mask (B, S) to context (B, S, D) and attention_weights (B, S, S)."""
        query, key, value = self.query(hidden_states), self.key(hidden_states), self.value(hidden_states)
        if attention_mask is not None:
            attention_mask = attention_mask[:, None, :]  # (B, 1, S): the same keys for every query
        return scaled_dot_product_attention(query, key, value, attention_mask)


class MultiHeadAttention(nn.Module):
    """All heads in one reshaped matrix product, joined by an output projection (Vaswani et al. 2017, section 3.2.2).

    `config` is a transformers `BertConfig`, here and in the other parts of the encoder.
    Built in notebook 04, exercise 4.5.
    """

    compute_attention_weights = staticmethod(compute_attention_weights)

    def __init__(self, config):
        super().__init__()
        H = config.hidden_size
        check_heads(H, config.num_attention_heads)
        self.num_heads = config.num_attention_heads
        self.query = nn.Linear(H, H)
        self.key = nn.Linear(H, H)
        self.value = nn.Linear(H, H)
        self.output = nn.Linear(H, H)
        self.dropout_p = config.attention_probs_dropout_prob

    def split_heads(self, x: Tensor) -> Tensor:
        """Split (B, S, H) into heads, (B, A, S, D)."""
        B, S, _ = x.shape
        return x.view(B, S, self.num_heads, -1).transpose(1, 2)  # (B, A, S, D)

    def project(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map hidden_states (B, S, H) to query, key and value, (B, A, S, D) each."""
        query = self.split_heads(self.query(hidden_states))  # (B, S, H) → (B, A, S, D)
        key = self.split_heads(self.key(hidden_states))
        value = self.split_heads(self.value(hidden_states))
        return query, key, value

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Map query (B, A, S, D), key and value (B, A, T, D) to (B, S, H), and optionally the weights (B, A, S, T).

        `mask` broadcasts to the weights and is True where a query may see a key, or is a function that attends
        (`utils.packing`). Without weights to return, torch's fused kernel computes the same.
        """
        B, _, S, _ = query.shape
        dropout_p = self.dropout_p if self.training else 0.0
        if output_attentions:
            attention_weights = self.compute_attention_weights(query, key, mask)  # (B, A, S, T)
            context = F.dropout(attention_weights, dropout_p) @ value  # (B, A, S, D)
        elif callable(mask):  # texts packed into one row, in notebook 13
            context, attention_weights = mask(query, key, value, dropout_p), None
        else:
            attention_weights = None
            # PyTorch's own function: the same context, and no weights are kept
            context = F.scaled_dot_product_attention(query, key, value, mask, dropout_p)
        return self.output(context.transpose(1, 2).reshape(B, S, -1)), attention_weights

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, output_attentions: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Map hidden_states (B, S, H) to (B, S, H), and to attention_weights (B, A, S, S) or None.

        `attention_mask` (B, S) is 0 at padding.
        """
        B, S, _ = hidden_states.shape
        mask = extend_attention_mask(attention_mask, B, S) if isinstance(attention_mask, Tensor) else attention_mask
        return self.attend(*self.project(hidden_states), mask, output_attentions)


def extend_attention_mask(attention_mask: Tensor, B: int, S: int) -> Tensor:
    """Turn a (B, S) mask of 1 and 0 into (B, 1, 1, S), True for the keys that every head and query may see.

    Built in notebook 04, exercise 4.5.
    """
    check_same_shape("attention_mask", attention_mask, (B, S))
    return attention_mask[:, None, None, :] != 0


def causal_mask(input_ids: Tensor, attention_mask: Tensor | None = None, cached: int = 0) -> Tensor:
    """Turn ids and mask (B, T) into a mask (B, 1, T − cached, T): True for real tokens up to the query, and itself.

    The first `cached` tokens have no queries: a cache keeps their keys and values. Built in notebook 12, section
    “The whole decoder”.
    """
    T = input_ids.size(1)
    earlier = torch.ones(T, T, dtype=torch.bool, device=input_ids.device).tril()
    itself = torch.eye(T, dtype=torch.bool, device=input_ids.device)
    real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    visible = earlier & (real[:, None, None, :] != 0) | itself  # (B, 1, T, T)
    return visible[..., cached:, :]
