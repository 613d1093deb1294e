"""The complete encoder: embeddings and a stack of layers, with BERT's pretrained weights. Built in notebook 06."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import BertConfig

from utils.embeddings import Embeddings
from utils.encoder_layer import TransformerEncoderLayer
from utils.support.checkpoint import read_checkpoint
from utils.support.checks import check_config, checked_mask
from utils.weights import rename_weight, rename_weights


class EncoderOutput(NamedTuple):
    """The encoder's output; a field is None if it was not requested. Built in notebook 06, exercise 6.1."""

    last_hidden_state: Tensor  # (B, S, H)
    hidden_states: tuple[Tensor, ...] | None = None  # L + 1 times (B, S, H): the embeddings, then each layer
    attentions: tuple[Tensor, ...] | None = None  # L times (B, A, S, S)
    queries: tuple[Tensor, ...] | None = None  # L times (B, A, S, D)
    keys: tuple[Tensor, ...] | None = None  # L times (B, A, S, D)


class TransformerEncoder(nn.Module):
    """BERT's encoder without its pooler (Devlin et al. 2019); `norm_first` makes it the textbook's pre-LN variant.

    Built in notebook 06, exercise 6.1.
    """

    rename_weight = staticmethod(rename_weight)

    def __init__(self, config: BertConfig, norm_first: bool = False):
        """Initialize the weights at random, in training mode. ValueError for an unsupported configuration."""
        super().__init__()
        check_config(config)
        self.config = config
        self.embeddings = Embeddings(config)
        layers = [TransformerEncoderLayer(config, norm_first) for _ in range(config.num_hidden_layers)]
        self.layers = nn.ModuleList(layers)
        initialize(self, config.initializer_range)

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None):
        """Load pretrained weights, in evaluation mode: the embedded checkpoint, a local folder or a name on the Hub."""
        config, weights = read_checkpoint(checkpoint)
        encoder = cls(config)
        encoder.load_bert_weights(weights)
        return encoder.eval()

    def load_bert_weights(self, state_dict: dict[str, Tensor]) -> None:
        """Copy a Hugging Face `BertModel`'s weights; ValueError lists what is missing, unexpected or mis-shaped."""
        self.load_state_dict(rename_weights(state_dict, self.state_dict(), self.rename_weight))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        output_queries_keys: bool = False,
    ) -> EncoderOutput:
        """Map input_ids, attention_mask and token_type_ids (B, S) to `EncoderOutput`; ValueError for invalid input."""
        attention_mask = checked_mask(input_ids, attention_mask, token_type_ids, self.config)
        hidden_states = self.embeddings(input_ids, token_type_ids)
        stream = (hidden_states,) if output_hidden_states else ()
        attentions, queries, keys = (), (), ()
        for layer in self.layers:
            if output_queries_keys:
                query, key = layer.project(hidden_states)
                queries, keys = (*queries, query), (*keys, key)
            hidden_states, attention_weights = layer(hidden_states, attention_mask, output_attentions)
            if output_attentions:
                attentions = (*attentions, attention_weights)
            if output_hidden_states:
                stream = (*stream, hidden_states)
        return EncoderOutput(hidden_states, stream or None, attentions or None, queries or None, keys or None)


def initialize(module: nn.Module, std: float) -> None:
    """Draw weights as transformers' BertModel does: normal with deviation `std`, biases 0, and the row of padding 0.

    They are drawn on the CPU, so that a seed gives the same weights on every device. Built in notebook 06,
    exercise 6.1.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            drawn = nn.init.normal_(torch.empty(part.weight.shape, dtype=part.weight.dtype), std=std)
            part.weight.data.copy_(drawn)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding) and part.padding_idx is not None:
            nn.init.zeros_(part.weight[part.padding_idx])
