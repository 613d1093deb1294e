"""ModernBERT, built from BERT's parts: what changed in encoders between 2018 and 2024. Built in notebook 14."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig, ModernBertConfig

from utils.attention import MultiHeadAttention
from utils.encoder import EncoderOutput, initialize
from utils.encoder_layer import ACTIVATIONS, FeedForward, TransformerEncoderLayer
from utils.support.checkpoint import read_checkpoint
from utils.support.checks import check_activation, check_even, check_modern_config, checked_mask
from utils.support.weight_names import rename_modern_weight, split_modern_weights
from utils.weights import rename_weights


def rotary(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """Rotate vectors by their positions: x (…, S, D) and positions (S,) to (…, S, D) (Su et al. 2021, section 3.2).

    Coordinates i and i + D/2 of a vector are a point in the plane. At position p it is rotated by the angle
    p · base^(−2i/D): by p radians for the first point, and more slowly for each following one. The dot product of two
    rotated vectors depends only on the distance between their positions. ValueError for an odd D.
    Built in notebook 14, exercise 14.2.
    """
    D = x.size(-1)
    check_even(D)
    speeds = 1 / base ** (torch.arange(0, D, 2, dtype=torch.float, device=x.device) / D)  # (D/2,)
    angles = positions[..., None].float() * speeds  # (S, D/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    # angles and points are computed in float32 in every precision, as in the official code: otherwise a model in
    # float64 would agree with it only to within 1e-5
    first, second = x.float().chunk(2, dim=-1)  # (…, S, D/2) each
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


def local_mask(mask: Tensor | None, S: int, reach: int, device: torch.device | None = None) -> Tensor:
    """Return a mask that is True where a query may attend to a key at most `reach` positions away.

    Its shape is (B, 1, S, S), or (S, S) if `mask` is None. `mask` (B, 1, 1, S) is True at real tokens. A token always
    attends to itself: padding far from the text would otherwise have no key, and softmax would divide 0 by 0. Built in
    notebook 14, section “Change 4: windows”.
    """
    positions = torch.arange(S, device=device)
    distance = (positions[:, None] - positions).abs()  # (S, S)
    return distance <= reach if mask is None else (distance <= reach) & mask | (distance == 0)


def local_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, reach: int) -> Tensor:
    """Compute attention under `local_mask` in blocks: query, key and value (B, A, S, D) to context (B, A, S, D).

    The queries are split into blocks of size R = `reach`. Each block attends to three blocks of keys: its own, the
    previous and the next. This computes S · 3R scores instead of S · S (Beltagy et al. 2020, appendix A). `mask`
    (B, 1, 1, S) is True at real tokens. Built in notebook 14, proof 14.2.
    """
    S, R = query.size(2), reach
    rest = -S % R  # positions missing from the last block
    query = F.pad(query, (0, 0, 0, rest)).unflatten(2, (-1, R))  # (B, A, S/R, R, D)
    key, value = (F.pad(x, (0, 0, R, R + rest)).unfold(2, 3 * R, R).mT for x in (key, value))
    near = local_mask(None, 3 * R, R, query.device)[R : 2 * R]  # (R, 3R): the middle block's queries
    real = F.pad(mask, (R, R + rest)).unfold(3, 3 * R, R).transpose(2, 3)  # (B, 1, S/R, 1, 3R)
    itself = torch.eye(3 * R, dtype=torch.bool, device=query.device)[R : 2 * R]
    context = F.scaled_dot_product_attention(query, key, value, near & real | itself)
    return context.flatten(2, 3)[:, :, :S]


def bert_config(config: ModernBertConfig) -> BertConfig:
    """Return the settings that BERT's parts read, under BERT's names and without dropout.

    Built in notebook 14, section “Into your attention”.
    """
    check_activation(config.hidden_activation, ACTIVATIONS, "hidden_activation")
    return BertConfig(
        hidden_size=config.hidden_size,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
        hidden_act=config.hidden_activation,
        layer_norm_eps=config.norm_eps,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


def drop_biases(part: nn.Module) -> None:
    """Remove the biases of the linear layers of a part.

    Built in notebook 14, section “Into your attention”.
    """
    for layer in part.children():
        if isinstance(layer, nn.Linear):
            layer.bias = None


class RotaryAttention(MultiHeadAttention):
    """BERT's attention with rotated queries and keys.

    Built in notebook 14, section “Into your attention”.
    """

    def __init__(self, config: ModernBertConfig, base: float):
        super().__init__(bert_config(config))
        self.base = base
        if not config.attention_bias:
            drop_biases(self)

    def project(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map hidden_states (B, S, H) to the rotated query, the rotated key, and the value, (B, A, S, D) each."""
        query, key, value = super().project(hidden_states)
        positions = torch.arange(hidden_states.size(1), device=hidden_states.device)
        return rotary(query, positions, self.base), rotary(key, positions, self.base), value


class WindowAttention(RotaryAttention):
    """Rotary attention of a local layer: a token sees the tokens at most `reach` positions away.

    Built in notebook 14, section “Change 4: windows”.
    """

    def __init__(self, config: ModernBertConfig, base: float, reach: int):
        super().__init__(config, base)
        self.reach = reach

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as BERT does, (B, A, S, D) to (B, A, S, D), within the window."""
        mask = local_mask(mask, query.size(2), self.reach, query.device)
        return super().attend(query, key, value, mask, output_attentions)


class Gate(nn.Module):
    """Activation of which one half of the coordinates gates the other: GeGLU if it is GELU (Shazeer 2020).

    Built in notebook 14, section “Change 2: a gate”.
    """

    def __init__(self, activation: nn.Module):
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Map content and gate, (…, 2I) together, to their product (…, I)."""
        content, gate = x.chunk(2, dim=-1)
        return self.activation(content) * gate


class GatedFeedForward(FeedForward):
    """BERT's feed-forward network, with the same `forward`, whose activation is a gate.

    Built in notebook 14, section “Change 2: a gate”.
    """

    def __init__(self, config: ModernBertConfig):
        super().__init__(bert_config(config))
        self.intermediate = nn.Linear(config.hidden_size, 2 * config.intermediate_size)  # content and gate
        self.activation = Gate(self.activation)
        if not config.mlp_bias:
            drop_biases(self)


class ModernEncoderLayer(TransformerEncoderLayer):
    """BERT's layer as pre-LN, with the same `forward`, whose parts are exchanged for those above.

    Built in notebook 14, section “Assemble: the layer and the model”.
    """

    def __init__(self, config: ModernBertConfig, number: int):
        super().__init__(bert_config(config), norm_first=True)
        kind = config.layer_types[number]
        base, reach = config.rope_parameters[kind]["rope_theta"], config.local_attention // 2
        is_local = kind == "sliding_attention"
        self.attention = WindowAttention(config, base, reach) if is_local else RotaryAttention(config, base)
        self.feed_forward = GatedFeedForward(config)
        first = number == 0  # the embeddings are already normalised
        self.attention_norm = nn.Identity() if first else make_norm(config)
        self.feed_forward_norm = make_norm(config)


class ModernEncoder(nn.Module):
    """ModernBERT's encoder (Warner et al. 2024, section 2.1): no position table, a norm before and after the layers.

    Built in notebook 14, section “Is it ModernBERT?”.
    """

    def __init__(self, config: ModernBertConfig):
        """Initialize the weights at random, in training mode. ValueError for an unsupported configuration."""
        super().__init__()
        check_modern_config(config)
        self.config = config
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.embedding_norm = make_norm(config)
        layers = [ModernEncoderLayer(config, number) for number in range(config.num_hidden_layers)]
        self.layers = nn.ModuleList(layers)
        self.final_norm = make_norm(config)
        initialize(self, config.initializer_range)

    @classmethod
    def from_checkpoint(cls, checkpoint: str):
        """Load pretrained weights, in evaluation mode, from a folder that transformers saved or a name on the Hub."""
        config, weights = read_checkpoint(checkpoint, "modernbert")
        encoder = cls(config)
        encoder.load_weights(weights)
        return encoder.eval()

    def load_weights(self, state_dict: dict[str, Tensor]) -> None:
        """Copy the weights of a `ModernBertModel`; ValueError lists those that do not fit."""
        state_dict = split_modern_weights(state_dict)
        self.load_state_dict(rename_weights(state_dict, self.state_dict(), rename_modern_weight))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """Map input_ids and attention_mask (B, S) to `EncoderOutput`; ValueError for invalid input.

        hidden_states are the embeddings, then each layer's output; the last one has passed the final norm.
        """
        attention_mask = checked_mask(input_ids, attention_mask, None, self.config)
        hidden_states = self.embedding_norm(self.word_embeddings(input_ids))
        stream, attentions = (), ()
        for layer in self.layers:
            stream = (*stream, hidden_states)
            hidden_states, attention_weights = layer(hidden_states, attention_mask, output_attentions)
            attentions = (*attentions, attention_weights)
        hidden_states = self.final_norm(hidden_states)
        stream = (*stream, hidden_states) if output_hidden_states else None
        return EncoderOutput(hidden_states, stream, attentions if output_attentions else None)


def make_norm(config: ModernBertConfig) -> nn.LayerNorm:
    """Return a LayerNorm of the hidden size, with a bias only if the configuration has norm_bias.

    Built in notebook 14, section “Assemble: the layer and the model”.
    """
    return nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=config.norm_bias)
