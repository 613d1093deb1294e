"""What a view reads from a model and its text: tokens, queries, keys and attention weights."""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import BertModel

from utils.attention import scaled_dot_product_attention
from utils.batches import device_of, evaluation_mode
from utils.checks import check_tokenizer
from utils.encoder import TransformerEncoder


class Heads(NamedTuple):
    """What a model made of a text or pair: S tokens, where sentence B starts, and what each head computed."""

    tokens: list[str]
    sentence_b_start: int | None
    queries: Tensor  # (L, A, S, D)
    keys: Tensor  # (L, A, S, D)
    weights: Tensor  # (L, A, S, S)


def read_heads(encoder, tokenizer, sentence_a: str, sentence_b: str | None = None) -> Heads:
    """Let our encoder or a `BertModel` read a text or pair, and keep what each head computes.

    ValueError or TypeError for a model or tokenizer that a view cannot read, and a text that the model cannot take.
    """
    check_model(encoder)
    tokens, input_ids, token_type_ids = tokenize_for_view(encoder, tokenizer, sentence_a, sentence_b)
    sentence_b_start = None if sentence_b is None else int((token_type_ids == 0).sum())
    read = read_encoder if isinstance(encoder, TransformerEncoder) else read_bert_model
    device = device_of(encoder)
    with evaluation_mode(encoder), torch.no_grad():
        queries, keys, weights = read(encoder, input_ids.to(device), token_type_ids.to(device))
    return Heads(tokens, sentence_b_start, queries, keys, weights)


def name_of(model: nn.Module) -> str:
    """Return the name of the checkpoint, or of its folder, that the model came from; "" if it came from none."""
    return Path(model.config.name_or_path or "").name


def check_model(model) -> None:
    """Raise ValueError for a model whose attention is not the softmax of its queries and keys, or is not known here."""
    if not isinstance(model, (TransformerEncoder, BertModel)):
        raise ValueError(
            f"a view cannot read a {type(model).__name__}: pass a TransformerEncoder of this series or a "
            "transformers BertModel (of a model with a task head, its .encoder or .bert); head_view and model_view "
            "take the attentions of any model"
        )
    positions = getattr(model.config, "position_embedding_type", "absolute")
    is_decoder = getattr(model.config, "is_decoder", False)
    if positions != "absolute" or is_decoder:
        raise ValueError(
            "the view of a text shows softmax(q · k / √D), which a BertModel with "
            f"position_embedding_type={positions!r} and is_decoder={is_decoder} does not compute: pass an absolute "
            "encoder"
        )


def tokenize_for_view(
    model, tokenizer, sentence_a: str, sentence_b: str | None
) -> tuple[list[str], Tensor, Tensor]:
    """Turn a text or pair into tokens, input_ids and token_type_ids (1, S), by our tokenizer or transformers' own."""
    check_tokenizer(tokenizer, model.config.vocab_size)
    texts = {"sentence_a": sentence_a}
    if sentence_b is not None:
        texts["sentence_b"] = sentence_b
    for name, text in texts.items():
        if not isinstance(
            text, str
        ):  # a list would be tokenized as a batch, of which a view shows the first alone
            raise ValueError(
                f"{name} must be one string, got {text!r:.60}: a view shows one text or one pair"
            )
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        batch = tokenizer(sentence_a, sentence_b, return_tensors="pt", return_token_type_ids=True)
        tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
    else:
        batch = tokenizer(sentence_a, sentence_b)
        tokens = [tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]]
    if len(tokens) > model.config.max_position_embeddings:
        raise ValueError(
            f"the text has {len(tokens)} tokens and the model {model.config.max_position_embeddings} positions "
            "(max_position_embeddings): shorten the text"
        )
    return tokens, batch["input_ids"], batch["token_type_ids"]


def read_encoder(
    encoder: TransformerEncoder, input_ids: Tensor, token_type_ids: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries and keys (L, A, S, D) and weights (L, A, S, S) as our encoder itself gives them."""
    output = encoder(
        input_ids, token_type_ids=token_type_ids, output_attentions=True, output_queries_keys=True
    )
    return torch.cat(output.queries), torch.cat(output.keys), torch.cat(output.attentions)


def read_bert_model(
    model: BertModel, input_ids: Tensor, token_type_ids: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the same from what comes into each layer, so that any attention implementation will do."""
    output = model(input_ids, token_type_ids=token_type_ids, output_hidden_states=True)
    A, queries, keys = model.config.num_attention_heads, [], []
    for layer, x in zip(model.encoder.layer, output.hidden_states, strict=False):  # the last one comes out
        attention = layer.attention.self
        queries.append(attention.query(x).unflatten(-1, (A, -1)).transpose(1, 2))  # (1, A, S, D)
        keys.append(attention.key(x).unflatten(-1, (A, -1)).transpose(1, 2))
    queries, keys = torch.cat(queries), torch.cat(keys)
    return queries, keys, scaled_dot_product_attention(queries, keys, keys)[1]
