"""Mask tokens and predict them: the masking rule, the head and the model. Built in notebook 11."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig

from utils.encoder import TransformerEncoder, initialize
from utils.encoder_layer import ACTIVATIONS
from utils.support.checks import SPECIAL_TOKENS, check_activation, check_ids, check_same_shape, check_settings
from utils.weights import HeadedModel


class LanguageModelHead(nn.Module):
    """Transform, LayerNorm, product with the word embeddings, bias (Devlin et al. 2019, section 3.1).

    The embedding matrix is passed to every call, so it cannot become untied. Built in notebook 11, exercise 11.2.
    """

    def __init__(self, config):
        super().__init__()
        H = config.hidden_size
        check_activation(config.hidden_act, ACTIVATIONS)
        self.transform = nn.Linear(H, H)
        self.activation = ACTIVATIONS[config.hidden_act]()
        self.layer_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden_states: Tensor, word_embeddings: Tensor) -> Tensor:
        """Return logits (…, V) for hidden_states (…, H) and the word embeddings (V, H)."""
        transformed = self.layer_norm(self.activation(self.transform(hidden_states)))  # (…, H)
        return F.linear(transformed, word_embeddings, self.bias)  # (…, V): a dot product with each row, plus the bias


class TransformerForMaskedLM(HeadedModel):
    """BERT for masked language modelling: an encoder, and a head that ends with the encoder's word embeddings.

    Built in notebook 11, section “The whole model”.
    """

    architecture = "BertForMaskedLM"
    without_head = "use one that was saved as a BertForMaskedLM, such as bert-base-uncased"

    def __init__(self, config: BertConfig):
        """Initialize the weights at random, in training mode. ValueError for an unsupported configuration."""
        super().__init__()
        if not getattr(config, "tie_word_embeddings", True):
            raise ValueError("tie_word_embeddings=False is not supported: use True, as BERT does")
        self.config = config
        self.encoder = TransformerEncoder(config)
        self.head = LanguageModelHead(config)
        initialize(self.head, config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        where: Tensor | None = None,
    ) -> Tensor:
        """Return logits (B, S, V), or (N, V) only for the positions where `where` (B, S) is True.

        input_ids, attention_mask (1 = real token) and token_type_ids have the shape (B, S).
        """
        hidden_states = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state  # (B, S, H)
        if where is not None:
            check_same_shape("where", where, input_ids.shape, "choices")
            hidden_states = hidden_states[where]  # (N, H)
        return self.head(hidden_states, self.encoder.embeddings.word_embeddings.weight)


def mask_tokens(
    input_ids: Tensor, tokenizer, probability: float = 0.15, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Return ids (B, S) with words masked, and labels (B, S): the original ids at selected positions, -100 elsewhere.

    Selects each word with this probability, and at least one in the batch. Of the selected words, 80 % become [MASK],
    10 % a random word, and 10 % stay (Devlin et al. 2019, section 3.1). Special tokens are never selected. The
    generator is on the CPU. ValueError for a probability outside (0, 1), and for rows without a word. Built in notebook
    11, exercise 11.1.
    """
    check_settings(probability=probability)
    check_ids("input_ids", input_ids, len(tokenizer.vocab))
    special = torch.tensor([tokenizer.vocab[token] for token in SPECIAL_TOKENS], device=input_ids.device)
    words = torch.tensor(sorted(set(tokenizer.vocab.values()) - set(special.tolist())))
    select_draw, action_draw = torch.rand(2, *input_ids.shape, generator=generator).to(input_ids.device)  # (B, S) each
    random_words = words[torch.randint(len(words), input_ids.shape, generator=generator)].to(input_ids.device)
    select_draw = select_draw.masked_fill(torch.isin(input_ids, special), 1.0)  # never selected
    if not (select_draw < 1).any():
        raise ValueError("input_ids contain only special tokens: use rows of text")
    selected = (select_draw < probability) | (select_draw == select_draw.min())  # at least one word
    hidden = torch.where(selected & (action_draw < 0.8), tokenizer.vocab["[MASK]"], input_ids)
    hidden = torch.where(selected & (action_draw >= 0.9), random_words, hidden)
    return hidden, input_ids.masked_fill(~selected, -100)
