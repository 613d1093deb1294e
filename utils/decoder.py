"""The decoder, and the encoder–decoder that reads one text and writes another. Built in notebook 12."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig

from utils.attention import MultiHeadAttention, causal_mask, extend_attention_mask
from utils.embeddings import Embeddings
from utils.encoder import TransformerEncoder, initialize
from utils.encoder_layer import TransformerEncoderLayer
from utils.generation import greedy_search
from utils.masked_lm import LanguageModelHead
from utils.support.batches import evaluation_mode
from utils.support.beam_search import beam_search
from utils.support.checks import checked_mask
from utils.support.decoding import DecoderStep, as_limits, check_cache, check_decoder_config, check_source
from utils.weights import rename_decoder_weight, rename_weights

# The model


class EncodedText(NamedTuple):
    """The source of a decoder: the encoder's output for a text, and the mask of its tokens.

    Built in notebook 12, section “The decoder layer”.
    """

    states: Tensor  # (B, S, H), the encoder's last_hidden_state
    mask: Tensor | None = None  # (B, 1, 1, S), True at real tokens


class LayerCache:
    """The keys and values, (B, A, …, D) each, that a layer caches: of the text so far, and of the source.

    Built in notebook 12, section “The cache: compute nothing twice”.
    """

    def __init__(self):
        self.text: tuple[Tensor, Tensor] | None = None
        self.source: tuple[Tensor, Tensor] | None = None
        self.given: tuple = ()  # the inputs that they were computed from, set by the decoder

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append the new tokens' keys and values, (B, A, T, D), and return those of the whole text."""
        if self.text is not None:
            key, value = torch.cat([self.text[0], key], dim=2), torch.cat([self.text[1], value], dim=2)
        self.text = key, value
        return self.text

    def reorder(self, rows: Tensor) -> None:
        """Continue with these rows (B,) of the batch; the source stays, because a beam keeps its source."""
        self.text = self.text[0][rows], self.text[1][rows]
        if self.given:
            self.given = (self.given[0][rows], *self.given[1:])

    def __len__(self) -> int:
        """Return the number of cached tokens of the text."""
        return 0 if self.text is None else self.text[0].size(2)


class TransformerDecoderLayer(TransformerEncoderLayer):
    """The encoder's layer, with cross-attention between its two parts (Vaswani et al. 2017, section 3.1).

    Built in notebook 12, section “The decoder layer”.
    """

    def __init__(self, config):
        super().__init__(config)
        if config.add_cross_attention:
            self.cross_attention = MultiHeadAttention(config)
            self.cross_attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def cross_attend(
        self, hidden_states: Tensor, source: EncodedText, cache: LayerCache, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from the text (B, T, H) to the source, whose keys and values are computed once per cache."""
        cross = self.cross_attention
        query = cross.split_heads(cross.query(hidden_states))  # (B, A, T, D), from the text
        if cache.source is None:
            key, value = cross.key(source.states), cross.value(source.states)  # (B, S, H) each, from the source
            cache.source = cross.split_heads(key), cross.split_heads(value)  # (B, A, S, D) each
        return cross.attend(query, *cache.source, source.mask, output_attentions)

    def forward(
        self,
        hidden_states: Tensor,
        mask: Tensor,
        source: EncodedText | None,
        cache: LayerCache,
        output_attentions: bool,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Map hidden_states (B, T, H) and a causal mask to (B, T, H), and optionally both attention weights."""
        # 1. look back, under the causal mask
        query, key, value = self.attention.project(hidden_states)  # (B, A, T, D) each
        key, value = cache.extend(key, value)
        attended, weights = self.attention.attend(query, key, value, mask, output_attentions)
        hidden_states = self.attention_norm(hidden_states + self.dropout(attended))  # (B, T, H)
        # 2. look across
        cross_weights = None
        if source is not None:
            attended, cross_weights = self.cross_attend(hidden_states, source, cache, output_attentions)
            hidden_states = self.cross_attention_norm(hidden_states + self.dropout(attended))
        # 3. each token alone
        transformed = self.feed_forward(hidden_states)
        hidden_states = self.feed_forward_norm(hidden_states + self.dropout(transformed))
        return hidden_states, weights, cross_weights


class DecoderEmbeddings(Embeddings):
    """Embeddings that count positions from each row's first real token, so that padding in front moves nothing.

    Built in notebook 12, section “The whole decoder”.
    """

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Map ids and mask (B, T) to hidden_states (B, T, H)."""
        if attention_mask is None:
            return super().forward(input_ids)
        positions = ((attention_mask != 0).cumsum(dim=1) - 1).clamp(min=0)  # (B, T): 0 at the first real token
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings.weight[0]  # (B, T, H)
        return self.dropout(self.layer_norm(embeddings + self.position_embeddings(positions)))


class DecoderOutput(NamedTuple):
    """The decoder's output; a field is None if it was not requested or does not exist.

    Built in notebook 12, section “The whole decoder”.
    """

    logits: Tensor  # (B, T, V)
    attentions: tuple[Tensor, ...] | None = None  # L times (B, A, T, T)
    cross_attentions: tuple[Tensor, ...] | None = None  # L times (B, A, T, S)


class TransformerDecoder(nn.Module):
    """BERT's layers as a decoder with a language-model head, and with cross-attention if `add_cross_attention`.

    Built in notebook 12, section “The whole decoder”.
    """

    causal_mask = staticmethod(causal_mask)

    def __init__(self, config: BertConfig):
        """Initialize at random, in training mode. ValueError unless `config.is_decoder`, or as for the encoder."""
        super().__init__()
        check_decoder_config(config)
        self.config = config
        self.embeddings = DecoderEmbeddings(config)
        self.layers = nn.ModuleList(TransformerDecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.head = LanguageModelHead(config)
        initialize(self, config.initializer_range)

    def load_bert_weights(self, state_dict: dict[str, Tensor]) -> None:
        """Copy the weights of a `BertLMHeadModel`; ValueError lists those that do not fit."""
        self.load_state_dict(rename_weights(state_dict, self.state_dict(), rename_decoder_weight))

    def new_cache(self) -> list[LayerCache]:
        """Return an empty cache for a new text: one for each layer."""
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
        """Map input_ids and mask (B, T), and the encoder's states (B, S, H) and mask (B, S), to `DecoderOutput`.

        Positions are counted from the mask, so that padding in front of a text changes nothing. With a `cache` (a
        `new_cache()` for each text and its source) the input is still the whole text, but only the tokens that are not
        cached yet are computed and returned. ValueError for invalid input, for a text without new tokens, for a source
        that is missing or does not fit, and for the cache of another text or source.
        """
        given = (encoder_hidden_states, encoder_attention_mask, self)
        attention_mask = checked_mask(input_ids, attention_mask, None, self.config)
        check_source(self.config, len(input_ids), *given[:2])
        cache = cache or self.new_cache()
        cached = len(cache[0])  # tokens
        check_cache(cached, cache[0].given, input_ids, *given)
        cache[0].given = (input_ids, *given)

        mask = self.causal_mask(input_ids, attention_mask, cached)  # (B, 1, T - cached, T)
        source = None
        if encoder_hidden_states is not None:
            source_mask = encoder_attention_mask
            source_mask = None if source_mask is None else extend_attention_mask(source_mask, *source_mask.shape)
            source = EncodedText(encoder_hidden_states, source_mask)
        hidden_states = self.embeddings(input_ids, attention_mask)[:, cached:]  # (B, T - cached, H)
        attentions, cross_attentions = [], []
        for layer, past in zip(self.layers, cache, strict=True):
            hidden_states, weights, across = layer(hidden_states, mask, source, past, output_attentions)
            attentions.append(weights)
            cross_attentions.append(across)
        logits = self.head(hidden_states, self.embeddings.word_embeddings.weight)  # (B, T - cached, V)
        if not output_attentions:
            return DecoderOutput(logits)
        return DecoderOutput(logits, tuple(attentions), None if source is None else tuple(cross_attentions))


# Reading and writing


class EncoderDecoder(nn.Module):
    """An encoder that reads a text, and a decoder that writes another (Vaswani et al. 2017, section 3).

    Built in notebook 12, section “The cache: compute nothing twice”.
    """

    def __init__(self, encoder_config: BertConfig, decoder_config: BertConfig):
        """Initialize at random; the decoder needs `add_cross_attention` and the encoder's hidden size."""
        super().__init__()
        sizes = (encoder_config.hidden_size, decoder_config.hidden_size)
        if sizes[0] != sizes[1]:
            raise ValueError(f"hidden_size is {sizes[0]} in the encoder, {sizes[1]} in the decoder: use one")
        self.encoder = TransformerEncoder(encoder_config)
        self.decoder = TransformerDecoder(decoder_config)

    def load_bert_weights(self, state_dict: dict[str, Tensor]) -> None:
        """Copy the weights of an `EncoderDecoderModel`; ValueError lists those that do not fit."""
        weights = {"encoder": {}, "decoder": {}}
        for name, weight in state_dict.items():
            part, _, own_name = name.partition(".")
            if part not in weights:
                raise ValueError(f"unexpected weight {name}: pass those of an EncoderDecoderModel")
            weights[part][own_name] = weight
        self.encoder.load_bert_weights(weights["encoder"])
        self.decoder.load_bert_weights(weights["decoder"])

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        decoder_input_ids: Tensor,
        decoder_attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Map the source's ids and mask (B, S) and the text's (B, T) to logits (B, T, V) of each next token."""
        states = self.encoder(input_ids, attention_mask).last_hidden_state  # (B, S, H), read once
        return self.decoder(decoder_input_ids, decoder_attention_mask, states, attention_mask).logits

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
        """Map source ids and mask (B, S) to the texts written, (B, up to max_length), from start to end token, padded.

        Dropout is off; the decoder's `bos_token_id` starts a text and `eos_token_id` ends it. Greedy search for one
        beam, otherwise beam search: the text with the best mean log-probability per token. ValueError for sizes and
        tokens that allow no text.
        """
        limits = as_limits(self.decoder.config, max_length, num_beams)
        with evaluation_mode(self):
            states = self.encoder(input_ids, attention_mask).last_hidden_state
            writer = DecoderStep(self.decoder, states, attention_mask, limits, use_cache)
            if num_beams > 1:
                return beam_search(writer, limits)
            ids = greedy_search(writer.next_logits, writer.begin(limits), limits.end, max_length)
        after_end = F.pad((ids[:, 1:-1] == limits.end).cumsum(dim=1), (2, 0))  # (B, T): above 0 after an end token
        return ids.masked_fill(after_end > 0, limits.pad)
