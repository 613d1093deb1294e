"""One encoder layer: attention and feed-forward network, each with residual connection and LayerNorm.

Built in notebook 05.
"""

from functools import partial

from torch import Tensor, nn

from utils.attention import MultiHeadAttention
from utils.support.checks import check_activation

# what makes an activation: each layer gets a module of its own, so that a hook on one never fires in another
ACTIVATIONS = {"gelu": nn.GELU, "gelu_new": partial(nn.GELU, approximate="tanh"), "relu": nn.ReLU}


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, for each token alone (Vaswani et al. 2017, section 3.3).

    Built in notebook 05, exercise 5.3.
    """

    def __init__(self, config):
        super().__init__()
        check_activation(config.hidden_act, ACTIVATIONS)
        self.intermediate = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = ACTIVATIONS[config.hidden_act]()
        self.output = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Map (…, H) to (…, I) and back to (…, H)."""
        return self.output(self.activation(self.intermediate(hidden_states)))


class TransformerEncoderLayer(nn.Module):
    """Attention, then the feed-forward network; post-LN as in BERT, or with `norm_first` pre-LN (Xiong et al. 2020).

    Built in notebook 05, exercise 5.5.
    """

    def __init__(self, config, norm_first: bool = False):
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.norm_first = norm_first

    def attention_input(self, hidden_states: Tensor) -> Tensor:
        """Return the input of attention, (B, S, H): the normalized stream in pre-LN, the stream itself in post-LN."""
        return self.attention_norm(hidden_states) if self.norm_first else hidden_states

    def project(self, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the layer's query and key, (B, A, S, D) each, which views need."""
        query, key, _ = self.attention.project(self.attention_input(hidden_states))
        return query, key

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, output_attentions: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Map hidden_states (B, S, H) to (B, S, H), and to attention_weights (B, A, S, S) or None."""
        attended, weights = self.attention(self.attention_input(hidden_states), attention_mask, output_attentions)
        hidden_states = hidden_states + self.dropout(attended)
        if self.norm_first:
            transformed = self.feed_forward(self.feed_forward_norm(hidden_states))
            return hidden_states + self.dropout(transformed), weights
        hidden_states = self.attention_norm(hidden_states)
        transformed = self.feed_forward(hidden_states)
        return self.feed_forward_norm(hidden_states + self.dropout(transformed)), weights
