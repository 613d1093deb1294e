"""Self-attention: the formula, one head, all heads. Built in notebooks 03 and 04."""

import math

from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig

from utils.memory import check_memory


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None, dropout_p: float = 0.0
) -> tuple[Tensor, Tensor]:
    """softmax(query · keyᵀ / √D) · value (Vaswani et al. 2017, section 3.2.1).

    Shapes: query (…, S, D), key and value (…, T, D); `attention_mask` broadcasts to (…, S, T) and is 0 where a query
    must not see a key. Returns the context (…, S, D) and the attention_weights (…, S, T), whose rows sum to 1.
    `dropout_p` is for training. Raises ValueError for a mask that does not fit or leaves a query nothing to see.
    """
    head_size = query.size(-1)
    attention_scores = query @ key.transpose(-2, -1) * head_size**-0.5  # (…, S, T), divided by √D
    if attention_mask is not None:
        check_attention_mask(attention_mask, attention_scores.shape)
        attention_scores = attention_scores.masked_fill(attention_mask == 0, -math.inf)
    attention_weights = attention_scores.softmax(dim=-1)
    context = F.dropout(attention_weights, dropout_p) @ value  # (…, S, D)
    return context, attention_weights


def check_attention_mask(attention_mask: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the mask broadcasts to scores of this shape and leaves each query a key to see."""
    sizes = zip(reversed(attention_mask.shape), reversed(shape), strict=False)
    if attention_mask.dim() > len(shape) or any(size not in (1, wanted) for size, wanted in sizes):
        raise ValueError(
            f"attention_mask of shape {tuple(attention_mask.shape)} does not fit scores of shape {tuple(shape)}"
        )
    if not (attention_mask != 0).any(dim=-1).all():
        raise ValueError(
            "attention_mask masks every token of a row: leave at least one 1 in each (a text has its [CLS])"
        )


class AttentionHead(nn.Module):
    """One self-attention head: its own query, key and value projections of the whole input."""

    def __init__(self, hidden_size: int, head_size: int):
        super().__init__()
        self.query = nn.Linear(hidden_size, head_size)
        self.key = nn.Linear(hidden_size, head_size)
        self.value = nn.Linear(hidden_size, head_size)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """hidden_states (B, S, H) to context (B, S, D) and attention_weights (B, S, S); attention_mask (B, S)."""
        query, key, value = self.query(hidden_states), self.key(hidden_states), self.value(hidden_states)
        if attention_mask is not None:
            attention_mask = attention_mask[:, None, :]  # (B, 1, S): the same keys for every query
        return scaled_dot_product_attention(query, key, value, attention_mask)


class MultiHeadAttention(nn.Module):
    """All heads in one reshaped matrix product, joined by an output projection (Vaswani et al. 2017, section 3.2.2)."""

    def __init__(self, config: BertConfig):
        super().__init__()
        H, self.num_heads = config.hidden_size, config.num_attention_heads
        if H % self.num_heads != 0:
            raise ValueError(
                f"hidden_size={H} is not divisible by num_attention_heads={self.num_heads}: change one"
            )
        self.query, self.key, self.value, self.output = (nn.Linear(H, H) for _ in range(4))
        self.dropout_p = config.attention_probs_dropout_prob

    def project(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """hidden_states (B, S, H) to query, key and value, (B, A, S, D) each."""
        B, S, _ = hidden_states.shape
        projections = (self.query(hidden_states), self.key(hidden_states), self.value(hidden_states))
        return tuple(x.view(B, S, self.num_heads, -1).transpose(1, 2) for x in projections)

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, output_attentions: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """hidden_states (B, S, H) to (B, S, H) and, if asked for, attention_weights (B, A, S, S), else None.

        `attention_mask` (B, S) is 0 at padding. Without weights to return, torch's fused kernel does the same sum.
        MemoryError for weights that do not fit into memory.
        """
        B, S, H = hidden_states.shape
        query, key, value = self.project(hidden_states)
        dropout_p = self.dropout_p if self.training else 0.0
        if attention_mask is not None:
            attention_mask = extend_attention_mask(attention_mask, B, S)
        if output_attentions:
            check_weights_fit(query)
            context, attention_weights = scaled_dot_product_attention(
                query, key, value, attention_mask, dropout_p
            )
        else:
            context = F.scaled_dot_product_attention(query, key, value, attention_mask, dropout_p)
            attention_weights = None
        return self.output(context.transpose(1, 2).reshape(B, S, H)), attention_weights


def extend_attention_mask(attention_mask: Tensor, B: int, S: int) -> Tensor:
    """(B, S) mask of 1 and 0 to (B, 1, 1, S), True for the keys that every head and query may see."""
    if attention_mask.shape != (B, S):
        raise ValueError(
            f"attention_mask must have the shape {(B, S)} of the input, got {tuple(attention_mask.shape)}"
        )
    extended = attention_mask[:, None, None, :] != 0
    check_attention_mask(extended, (B, 1, 1, S))
    return extended


def check_weights_fit(query: Tensor) -> None:
    """MemoryError, before the kernel dies of it, where attention weights of (B, A, S, D) queries would not fit."""
    B, A, S, _ = query.shape
    if query.device.type == "cpu":  # a GPU's own error leaves the kernel alive
        check_memory(
            3 * B * A * S * S * query.element_size(),  # scores, masked scores and weights
            f"computing attention weights of shape {(B, A, S, S)}",
            "take fewer or shorter texts at once, or do without output_attentions",
        )
