"""The decoder and the encoder–decoder, from the encoder's parts. Built in notebook 12."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import BertConfig

from utils.attention import MultiHeadAttention, causal_mask, extend_attention_mask
from utils.batches import evaluation_mode
from utils.checking_decoder import (
    check_decoder_config,
    check_generation,
    check_new_tokens,
    check_pair,
    check_source,
)
from utils.checks import check_fit, read_input
from utils.embeddings import Embeddings
from utils.encoder import TransformerEncoder, initialize
from utils.encoder_layer import TransformerEncoderLayer
from utils.generation import LayerCache, Limits, Writer, beam_search, greedy_search
from utils.masked_lm import LanguageModelHead
from utils.weights import rename_decoder_weight, rename_tied


class DecoderOutput(NamedTuple):
    """What the decoder returns; None where it was not asked for, or is not there."""

    logits: Tensor  # (B, T, V)
    attentions: tuple[Tensor, ...] | None = None  # L times (B, A, T, T)
    cross_attentions: tuple[Tensor, ...] | None = None  # L times (B, A, T, S)


class Source(NamedTuple):
    """What a decoder looks at across: an encoder's states (B, S, H), and a mask (B, S) that is 0 at padding."""

    states: Tensor | None = None
    mask: Tensor | None = None


class TransformerDecoderLayer(TransformerEncoderLayer):
    """The encoder's layer, with cross-attention between its two parts (Vaswani et al. 2017, section 3.1)."""

    def __init__(self, config):
        super().__init__(config)
        if config.add_cross_attention:
            self.cross_attention = MultiHeadAttention(config)
            self.cross_attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def look_across(
        self, hidden_states: Tensor, source: Source, cache: LayerCache, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Queries from the text (B, T, H), keys and values from the source, which are projected once a cache."""
        cross, mask = self.cross_attention, source.mask
        query = cross.split_heads(cross.query(hidden_states))  # (B, A, T, D)
        if cache.source is None:
            cache.states = source.states
            cache.source = tuple(cross.split_heads(part(source.states)) for part in (cross.key, cross.value))
        if mask is not None:
            mask = extend_attention_mask(mask, *mask.shape)  # (B, 1, 1, S)
        return cross.attend(query, *cache.source, mask, output_attentions)

    def forward(
        self, hidden_states: Tensor, mask: Tensor, source: Source, cache: LayerCache, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """hidden_states (B, T, H) and a causal mask to (B, T, H), and the weights of both attentions, if asked for."""
        query, key, value = self.attention.project(hidden_states)
        attended, weights = self.attention.attend(query, *cache.extend(key, value), mask, output_attentions)
        hidden_states = self.attention_norm(hidden_states + self.dropout(attended))
        cross_weights = None
        if source.states is not None:
            attended, cross_weights = self.look_across(hidden_states, source, cache, output_attentions)
            hidden_states = self.cross_attention_norm(hidden_states + self.dropout(attended))
        transformed = self.feed_forward(hidden_states)
        hidden_states = self.feed_forward_norm(hidden_states + self.dropout(transformed))
        return hidden_states, weights, cross_weights


class TransformerDecoder(nn.Module):
    """BERT's layers as a decoder, with cross-attention if `config.add_cross_attention` says so, and a score a token."""

    def __init__(self, config: BertConfig):
        """Random weights, in training mode. ValueError unless `config.is_decoder`, and as for the encoder."""
        super().__init__()
        self.config = check_decoder_config(config)
        self.embeddings = Embeddings(config)
        layers = [TransformerDecoderLayer(config) for _ in range(config.num_hidden_layers)]
        self.layers = nn.ModuleList(layers)
        self.head = LanguageModelHead(config)
        initialize(self, config.initializer_range)

    def load_bert_weights(self, state_dict: dict[str, Tensor]) -> None:
        """Copy a Hugging Face `BertLMHeadModel`'s weights; ValueError lists those that do not fit."""
        self.load_state_dict(rename_tied(state_dict, rename_decoder_weight, self.state_dict()))

    def new_cache(self) -> list[LayerCache]:
        """An empty cache for a text that is to be written: one for each layer."""
        return [LayerCache() for _ in self.layers]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        *,
        output_attentions: bool = False,
        cache: list[LayerCache] | None = None,
    ) -> DecoderOutput:
        """input_ids and attention_mask (B, T), the encoder's (B, S, H) and (B, S), to `DecoderOutput`.

        With a `cache` (`new_cache()`) the input is the whole text too, and only the tokens that it does not know yet
        are computed and returned. ValueError for bad input, for a source that is missing or does not fit, and for one
        that is not the cache's.
        """
        attention_mask = read_input(input_ids, attention_mask, None, self.config)
        cache = cache or self.new_cache()
        source = Source(encoder_hidden_states, encoder_attention_mask)
        check_source(self.config, len(input_ids), *source, cache[0].states)
        known = check_new_tokens(len(cache[0]), input_ids.size(1))
        mask = causal_mask(input_ids, attention_mask, known)
        hidden_states, attentions, cross_attentions = self.embeddings(input_ids)[:, known:], (), ()
        for layer, kept in zip(self.layers, cache, strict=True):
            hidden_states, *weights = layer(hidden_states, mask, source, kept, output_attentions)
            attentions, cross_attentions = (*attentions, weights[0]), (*cross_attentions, weights[1])
        logits = self.head(hidden_states, self.embeddings.word_embeddings.weight)
        if not output_attentions:
            return DecoderOutput(logits)
        return DecoderOutput(logits, attentions, None if source.states is None else cross_attentions)


class EncoderDecoder(nn.Module):
    """An encoder that reads a text, and a decoder that writes another (Vaswani et al. 2017, section 3)."""

    def __init__(self, encoder_config: BertConfig, decoder_config: BertConfig):
        """Random weights, in training mode. ValueError for a decoder that cannot read this encoder."""
        super().__init__()
        check_pair(encoder_config, decoder_config)
        self.encoder = TransformerEncoder(encoder_config)
        self.decoder = TransformerDecoder(decoder_config)

    def load_bert_weights(self, state_dict: dict[str, Tensor]) -> None:
        """Copy a Hugging Face `EncoderDecoderModel`'s weights; ValueError lists those that do not fit."""
        parts = {"encoder.": self.encoder, "decoder.": self.decoder}
        check_fit({name: w for name, w in state_dict.items() if not name.startswith((*parts,))}, {})
        for prefix, part in parts.items():
            own = {name: weight for name, weight in state_dict.items() if name.startswith(prefix)}
            part.load_bert_weights({name.removeprefix(prefix): weight for name, weight in own.items()})

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        decoder_input_ids: Tensor,
        decoder_attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Source ids and mask (B, S), and the text's (B, T), to logits (B, T, V) of each next token."""
        source = self.encoder(input_ids, attention_mask).last_hidden_state
        return self.decoder(decoder_input_ids, decoder_attention_mask, source, attention_mask).logits

    @torch.no_grad()
    def generate(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        max_length: int,
        num_beams: int = 1,
        use_cache: bool = True,
    ) -> Tensor:
        """Source ids and mask (B, S) to the texts written, (B, up to max_length), from start to end token, then padded.

        Dropout is off; the decoder's `bos_token_id` starts a text, `eos_token_id` ends it. Greedy for one beam, else
        the text with the best mean log-probability a token. ValueError for sizes and tokens that allow no text.
        """
        limits = Limits(*check_generation(self.decoder.config, max_length, num_beams))
        search = greedy_search if num_beams == 1 else beam_search
        with evaluation_mode(self):
            states = self.encoder(input_ids, attention_mask).last_hidden_state
            return search(Writer(self.decoder, states, attention_mask, limits, use_cache), limits)
