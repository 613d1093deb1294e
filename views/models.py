"""What a view reads from a model and its text: tokens, queries, keys and attention weights."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from utils.attention import MultiHeadAttention
from utils.batches import device_of, evaluation_mode
from utils.checks import check_tokenizer
from utils.encoder import TransformerEncoder
from views.any_model import accepted, family_of, has_two_sides, is_official, read_neurons, read_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SPARE = 1024  # rows without a token, by which models fill up their table of embeddings


class Text(NamedTuple):
    """A text or pair as a model reads it: S tokens to show, what is passed to the model, what belongs together."""

    tokens: list[str]
    inputs: dict[str, Tensor]
    sentence_b_start: int | None
    words: list[int]  # for each token the number of its word; a special token is one of its own


class Heads(NamedTuple):
    """What a model made of a text or pair: S tokens, where sentence B starts, and what each head computed."""

    tokens: list[str]
    sentence_b_start: int | None
    queries: Tensor | None  # (L, A, S, D); None where only the weights were asked for
    keys: Tensor | None  # (L, A, S, D)
    weights: Tensor  # (L, A, S, S)


def read_heads(model, tokenizer, sentence_a, sentence_b: str | None = None, *, neurons: bool = True) -> Heads:
    """Let a model of the series or of transformers read a text or pair, and keep what each head computes.

    ValueError or TypeError for a model or tokenizer that a view cannot read, and a text that the model cannot take.
    """
    check_model(model)
    if has_two_sides(model):
        raise ValueError(
            f"a {family_of(model)} has an encoder and a decoder: pass one of them, model.get_encoder() or "
            "model.get_decoder(); head_view and model_view take the whole model"
        )
    if isinstance(sentence_a, Tensor):
        text = as_patches(model, sentence_a)
    else:
        text = tokenize_for_view(model, tokenizer, sentence_a, sentence_b)
    with reading(model):
        inputs = {name: tensor.to(device_of(model)) for name, tensor in text.inputs.items()}
        if isinstance(model, TransformerEncoder):
            queries, keys, weights = read_encoder(model, inputs)
        elif is_ours(model):
            queries, keys, weights = read_ours(model, inputs)
        elif neurons:
            queries, keys, weights = read_neurons(model, inputs)
        else:
            queries, keys, weights = None, None, read_weights(model, inputs)["all"]
    return Heads(text.tokens, text.sentence_b_start, queries, keys, weights)


def read_two_sides(model: "PreTrainedModel", tokenizer, source: str, target: str | None) -> dict[str, list]:
    """Return the attentions and tokens of an encoder–decoder, under the names by which a view is given them."""
    if target is None:
        raise ValueError(
            f"a {family_of(model)} reads one text and writes another: pass the second, too, as sentence_b"
        )
    read, written = (tokenize_for_view(model, tokenizer, text, None) for text in (source, target))
    inputs = read.inputs | {"decoder_input_ids": written.inputs["input_ids"]}
    with reading(model):
        given = read_weights(model, {name: ids.to(device_of(model)) for name, ids in inputs.items()})
    sides = {f"{kind}_attention": weights.split(1) for kind, weights in given.items()}
    return sides | {"encoder_tokens": read.tokens, "decoder_tokens": written.tokens}


@contextmanager
def reading(model) -> Iterator[None]:
    """Put a model in evaluation mode, without gradients; afterwards it is as it was."""
    with evaluation_mode(model), torch.no_grad():
        yield


def name_of(model: nn.Module) -> str:
    """Return the name of the checkpoint, or of its folder, that the model came from; "" if it came from none."""
    return Path(getattr(model.config, "name_or_path", "") or "").name


def check_model(model) -> None:
    """Raise ValueError for what is no model of this series and none of transformers."""
    if not is_official(model) and not is_ours(model):
        raise ValueError(
            f"a view cannot read a {type(model).__name__}: pass a model of this series or of transformers (of ours "
            "with a task head, its .encoder); head_view and model_view take the attentions of any model"
        )


def is_ours(model) -> bool:
    """Whether a model's layers have the attention of this series, as those of its notebooks have."""
    layers = getattr(model, "layers", None)
    return isinstance(layers, nn.ModuleList) and all(
        isinstance(getattr(layer, "attention", None), MultiHeadAttention) for layer in layers
    )


def tokenize_for_view(model, tokenizer, sentence_a: str, sentence_b: str | None) -> Text:
    """Turn a text or pair into tokens and ids (1, S), by our tokenizer or by any of transformers'."""
    if is_official(model):
        check_vocabulary(tokenizer, model.get_input_embeddings().num_embeddings)
    else:
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
        batch = tokenizer(*texts.values(), return_tensors="pt", return_token_type_ids=True)
        tokens = readable_tokens(tokenizer, batch)
    else:
        batch = tokenizer(sentence_a, sentence_b)
        tokens = [tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]]
    longest = getattr(model.config, "max_position_embeddings", None)
    if longest is not None and len(tokens) > longest:
        raise ValueError(
            f"the text has {len(tokens)} tokens and the model {longest} positions "
            "(max_position_embeddings): shorten the text"
        )
    start = None if sentence_b is None else start_of_b(batch)
    return Text(tokens, accepted(model, batch), start, words_of(tokens, batch))


def check_vocabulary(tokenizer, rows: int) -> None:
    """Refuse a tokenizer whose ids do not fill a model's embeddings, but for the rows that many have to spare."""
    if not callable(tokenizer) or not hasattr(tokenizer, "vocab"):
        raise TypeError(
            f"tokenizer must be one of this series or of transformers, got {type(tokenizer).__name__}"
        )
    last = max(tokenizer.vocab.values(), default=-1)
    if not rows - SPARE <= last + 1 <= rows:
        raise ValueError(
            f"the tokenizer has ids up to {last}, and the model {rows} rows of embeddings: take both from one "
            "checkpoint"
        )


def start_of_b(batch) -> int:
    """Return the index of the second sentence's first token."""
    if getattr(batch, "is_fast", False):
        return batch.sequence_ids(0).index(1)
    return int((batch["token_type_ids"] == 0).sum())


def words_of(tokens: list[str], batch) -> list[int]:
    """Number the words that tokens belong to, as a fast tokenizer knows them, or by the ## of WordPiece."""
    if getattr(batch, "is_fast", False):
        known = list(zip(batch.sequence_ids(0), batch.word_ids(0), strict=True))
        begins = [
            word == (None, None) or word != before
            for before, word in zip([None, *known], known, strict=False)
        ]
    else:
        begins = [not token.startswith("##") for token in tokens]
    return [number - 1 for number in itertools.accumulate(map(int, begins))]


def readable_tokens(tokenizer, batch) -> list[str]:
    """Return the tokens of a transformers tokenizer; those that hold bytes are shown as their part of the text.

    Where one character takes several tokens, each shows it with its number: 🙂·1, 🙂·2.
    """
    ids = batch["input_ids"][0].tolist()
    tokens = tokenizer.convert_ids_to_tokens(ids)
    if "ByteLevel" not in str(getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", "")):
        return tokens
    shown = [tokenizer.decode([token_id], clean_up_tokenization_spaces=False) for token_id in ids]
    for start in range(len(ids)):
        if "\ufffd" not in shown[start]:
            continue
        for end in range(start + 2, min(start + 5, len(ids)) + 1):  # a character has four bytes at most
            whole = tokenizer.decode(ids[start:end], clean_up_tokenization_spaces=False)
            if "\ufffd" not in whole:
                shown[start:end] = [f"{whole}·{part}" for part in range(1, end - start + 1)]
                break
    return shown


def as_patches(model, pixel_values: Tensor) -> Text:
    """Name the tokens of an image model: its patches by row and column, after what stands before them."""
    side = getattr(model.config, "patch_size", None)
    if getattr(model, "main_input_name", "") != "pixel_values" or not isinstance(side, int):
        raise ValueError(f"a {family_of(model)} reads no pixels in square patches: pass a text")
    rows, columns = (size // side for size in pixel_values.shape[-2:])
    patches = [f"{row},{column}" for row in range(rows) for column in range(columns)]
    return Text(["[CLS]", *patches], {"pixel_values": pixel_values}, None, [*range(len(patches) + 1)])


def read_encoder(encoder: TransformerEncoder, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries and keys (L, A, S, D) and weights (L, A, S, S) as our encoder itself gives them."""
    output = encoder(**inputs, output_attentions=True, output_queries_keys=True)
    return torch.cat(output.queries), torch.cat(output.keys), torch.cat(output.attentions)


def read_ours(model: nn.Module, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same from another model of the series, from what its layers' self-attention is given."""
    found, own = [], [layer.attention for layer in model.layers]

    def remembering(attention: MultiHeadAttention):
        project = attention.project

        def run(hidden_states):
            query, key, value = project(hidden_states)
            found.append((query, key))
            return query, key, value

        return run

    try:
        for attention in own:
            attention.project = remembering(attention)
        output = model(**inputs, output_attentions=True)
    finally:
        for attention in own:
            attention.__dict__.pop("project", None)
    queries, keys = (torch.cat([pair[part] for pair in found]) for part in (0, 1))
    return queries, keys, torch.cat(output.attentions)
