"""What a view reads from a model and its text: tokens, queries, keys and attention weights."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import BertModel

from utils.attention import scaled_dot_product_attention
from utils.batches import device_of, evaluation_mode
from utils.checks import check_tokenizer
from utils.encoder import TransformerEncoder
from utils.views.inputs import refuse_html_action

OF_ATTENTIONS = {  # what says in bertviz's way what is drawn, and so excludes a model and its text
    *("attention", "tokens", "sentence_b_start", "encoder_attention", "decoder_attention", "cross_attention"),
    *("encoder_tokens", "decoder_tokens"),
}


class Reading(NamedTuple):
    """What a model made of a text or pair: S tokens, where sentence B starts, and what each head computed."""

    tokens: list[str]
    sentence_b_start: int | None
    queries: Tensor  # (L, A, S, D)
    keys: Tensor  # (L, A, S, D)
    weights: Tensor  # (L, A, S, S)


def read_text(encoder, tokenizer, sentence_a: str, sentence_b: str | None = None) -> Reading:
    """Read a text or pair; ValueError for another model than a view can read, and a text that it cannot take."""
    check_model(encoder)
    tokens, input_ids, token_type_ids = tokenize_for_view(encoder, tokenizer, sentence_a, sentence_b)
    start = None if sentence_b is None else int((token_type_ids == 0).sum())
    return Reading(tokens, start, *read_model(encoder, input_ids, token_type_ids))


def of_texts_too(draw: Callable) -> Callable:
    """The view function, which then takes (encoder, tokenizer, sentence_a, sentence_b=None) as well.

    They stand for attention, tokens and sentence_b_start; TypeError for a mixture of both. Its signature has them all:
    the first three share their places, sentence_b comes fourth, and each can be named.
    """
    text, signature = inspect.signature(read_text), inspect.signature(draw)

    @wraps(draw)
    def view(*arguments, **options):
        refuse_html_action(options)
        given = {name: options.pop(name) for name in text.parameters if name in options}
        if not given and not (arguments and isinstance(arguments[0], nn.Module)):
            return draw(*arguments, **options)
        way = f"{draw.__name__}(encoder, tokenizer, sentence_a, sentence_b=None)"
        if mixed := sorted(OF_ATTENTIONS & options.keys()):
            raise TypeError(
                f"{way} works {', '.join(mixed)} out itself: leave it out, or pass no model and text"
            )
        try:
            bound = text.bind(*arguments, **given)
        except TypeError as error:
            raise TypeError(f"{way}: {error}") from None
        reading = read_text(*bound.args, **bound.kwargs)
        options["name"] = options.get("name") or name_of(bound.arguments["encoder"])
        return draw(reading.weights.split(1), reading.tokens, reading.sentence_b_start, **options)

    own, names = list(signature.parameters.values()), ("encoder", "tokenizer", "sentence_a")
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]
    parameters = [*own[:3], text.parameters["sentence_b"], *named, *own[3:]]
    view.__signature__ = signature.replace(parameters=parameters)
    return view


def name_of(model: nn.Module) -> str:
    """The name of the checkpoint, or of its folder, that the model came from; "" for one that came from none."""
    return Path(model.config.name_or_path or "").name


def tokenize_for_view(
    model, tokenizer, sentence_a: str, sentence_b: str | None
) -> tuple[list[str], Tensor, Tensor]:
    """Tokens, input_ids and token_type_ids (1, S) of a text or pair, from our tokenizer or transformers' own."""
    check_tokenizer(tokenizer, model.config.vocab_size)
    for name, text in (("sentence_a", sentence_a), ("sentence_b", sentence_b)):
        if not isinstance(text, str) and (name == "sentence_a" or text is not None):
            raise ValueError(
                f"{name} must be one string, got {text!r:.60}: a view shows one text or one pair"
            )
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        batch = tokenizer(sentence_a, sentence_b, return_tensors="pt", return_token_type_ids=True)
        tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
    else:
        batch = tokenizer(sentence_a, sentence_b)
        tokens = [tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]]
    return tokens, batch["input_ids"], batch["token_type_ids"]


def read_model(model, input_ids: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries and keys (L, A, S, D) and attention weights (L, A, S, S) of our encoder or of a `BertModel`."""
    check_positions(model.config, input_ids)
    device = device_of(model)
    with evaluation_mode(model), torch.no_grad():
        read = read_encoder if isinstance(model, TransformerEncoder) else read_bert_model
        return read(model, input_ids.to(device), token_type_ids.to(device))


def check_model(model) -> None:
    """Raise ValueError for a model whose attention is not the softmax of its queries and keys, or is not known here."""
    if not isinstance(model, (TransformerEncoder, BertModel)):
        raise ValueError(
            f"a view cannot read a {type(model).__name__}: pass a TransformerEncoder of this series or a "
            "transformers BertModel (of a model with a task head, its .encoder or .bert); head_view and model_view "
            "take the attentions of any model"
        )
    positions = getattr(model.config, "position_embedding_type", "absolute")
    if positions != "absolute" or getattr(model.config, "is_decoder", False):
        raise ValueError(
            "the view of a text shows softmax(q · k / √D), which a BertModel with "
            f"position_embedding_type={positions!r} and is_decoder={getattr(model.config, 'is_decoder', False)} does "
            "not compute: pass an absolute encoder"
        )


def check_positions(config, input_ids: Tensor) -> None:
    """Raise ValueError for a text longer than the model's positions."""
    if input_ids.size(1) > config.max_position_embeddings:
        raise ValueError(
            f"the text has {input_ids.size(1)} tokens and the model {config.max_position_embeddings} positions "
            "(max_position_embeddings): shorten the text"
        )


def read_encoder(
    encoder: TransformerEncoder, input_ids: Tensor, token_type_ids: Tensor
) -> tuple[Tensor, ...]:
    """What our encoder itself returns: queries, keys and weights."""
    output = encoder(
        input_ids, token_type_ids=token_type_ids, output_attentions=True, output_queries_keys=True
    )
    return torch.cat(output.queries), torch.cat(output.keys), torch.cat(output.attentions)


def read_bert_model(model: BertModel, input_ids: Tensor, token_type_ids: Tensor) -> tuple[Tensor, ...]:
    """Queries, keys and weights from what comes into each layer, so that any attention implementation will do."""
    hidden_states = model(input_ids, token_type_ids=token_type_ids, output_hidden_states=True).hidden_states
    A, queries, keys = model.config.num_attention_heads, [], []
    for layer, x in zip(model.encoder.layer, hidden_states, strict=False):  # the last one comes out
        for projection, vectors in ((layer.attention.self.query, queries), (layer.attention.self.key, keys)):
            vectors.append(projection(x).unflatten(-1, (A, -1)).transpose(1, 2))  # (1, A, S, D)
    queries, keys = torch.cat(queries), torch.cat(keys)
    return queries, keys, scaled_dot_product_attention(queries, keys, keys)[1]
