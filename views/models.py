"""What a view reads from a model and its text: tokens, queries, keys and attention weights."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from utils.attention import MultiHeadAttention
from utils.encoder import TransformerEncoder
from utils.support.batches import device_of, evaluation_mode
from utils.support.checks import check_tokenizer, has_rows_for, vocabulary_of
from views.any_model import accepted, family_of, has_two_sides, is_official, read_neurons, read_weights, takes
from views.inputs import prettify

if TYPE_CHECKING:
    from transformers import PreTrainedModel

JOINERS = "\u200c\u200d"
WRAPPERS = {  # what holds a model, and where
    "SentenceTransformer": "model[0].auto_model, with model.tokenizer",
    "PeftModel": "model.merge_and_unload()",
}


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
    hidden: Tensor | None  # (L, A, S, S), True where a mask hides a token; None as above


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
        text = check_some_tokens("sentence_a", tokenize_for_view(model, tokenizer, sentence_a, sentence_b))
    hidden = None
    with reading(model):
        inputs = {name: tensor.to(device_of(model)) for name, tensor in text.inputs.items()}
        if isinstance(model, TransformerEncoder):
            queries, keys, weights = read_encoder(model, inputs)
        elif is_ours(model):
            queries, keys, weights = read_ours(model, inputs)
        elif neurons:
            queries, keys, weights, hidden = read_neurons(model, inputs)
        else:
            queries, keys, weights = None, None, read_weights(model, inputs)["all"]
    tokens = text.tokens
    if isinstance(sentence_a, Tensor):
        tokens = before_patches(model, weights.size(-1) - len(tokens)) + tokens
    return Heads(tokens, text.sentence_b_start, queries, keys, weights, hidden)


def read_two_sides(model: "PreTrainedModel", tokenizer, source: str, target: str | None) -> dict[str, list]:
    """Return the attentions and tokens of an encoder–decoder, under the names by which a view is given them."""
    if target is None:
        raise ValueError(f"a {family_of(model)} reads one text and writes another: pass the second, too, as sentence_b")
    read, written = (
        check_some_tokens(name, tokenize_for_view(model, tokenizer, text, None, is_target=name == "sentence_b"))
        for name, text in (("sentence_a", source), ("sentence_b", target))
    )
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


def unwrap(model):
    """Return the model inside nn.DataParallel, nn.parallel.DistributedDataParallel and torch.compile."""
    while isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)) or hasattr(model, "_orig_mod"):
        model = model._orig_mod if hasattr(model, "_orig_mod") else model.module
    return model


def check_model(model) -> None:
    """Raise ValueError for what is no model of this series and none of transformers."""
    for kind in type(model).__mro__:
        if kind.__name__ in WRAPPERS:
            raise ValueError(f"a {kind.__name__} holds the model that a view reads: pass {WRAPPERS[kind.__name__]}")
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


def tokenize_for_view(model, tokenizer, sentence_a: str, sentence_b: str | None, *, is_target: bool = False) -> Text:
    """Turn a text or pair into tokens and ids (1, S), by our tokenizer or by any of transformers'."""
    if is_official(model):
        check_vocabulary(tokenizer, rows_of(model))
    else:
        check_tokenizer(tokenizer, model.config.vocab_size)
    texts = {"sentence_a": sentence_a}
    if sentence_b is not None:
        texts["sentence_b"] = sentence_b
    for name, text in texts.items():
        if not isinstance(text, str):  # a list would be tokenized as a batch, of which a view shows the first alone
            raise ValueError(f"{name} must be one string, got {text!r:.60}: a view shows one text or one pair")
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        given = {"text_target": sentence_a} if is_target else {"text": sentence_a, "text_pair": sentence_b}
        batch = tokenizer(**given, return_tensors="pt", return_token_type_ids=True)
        tokens = readable_tokens(tokenizer, batch)
        if is_official(model):
            check_rows(tokens, batch["input_ids"][0].tolist(), rows_of(model))
    else:
        batch = tokenizer(sentence_a, sentence_b)
        tokens = [tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]]
    if 0 < (longest := positions_of(model)) < len(tokens):
        raise ValueError(
            f"the text has {len(tokens)} tokens and the model {longest} positions "
            "(max_position_embeddings): shorten the text"
        )
    start = None if sentence_b is None else start_of_b(tokenizer, batch, sentence_b)
    return Text(tokens, accepted(model, batch), start, words_of(tokens, batch))


def check_some_tokens(name: str, text: Text) -> Text:
    """Return a text; ValueError for an empty one, of which a tokenizer without special tokens makes nothing."""
    if not text.tokens:
        raise ValueError(f"{name} has no token: pass a text with a word or more")
    return text


def positions_of(model) -> int:
    """Return how many tokens a model has positions for, 0 where there is no limit."""
    for name, module in model.named_modules():  # RoBERTa and its like leave out those up to the padding's id
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return module.num_embeddings - module.padding_idx - 1
    return getattr(model.config, "max_position_embeddings", None) or 0


def rows_of(model: "PreTrainedModel") -> int:
    """Return how many tokens a model has embeddings for; ValueError for one that reads no ids."""
    if "input_ids" in takes(model):
        with suppress(AttributeError, NotImplementedError):
            return model.get_input_embeddings().num_embeddings
    raise ValueError(
        f"a {family_of(model)} reads no tokens of a vocabulary (its input is {model.main_input_name}): of an image "
        "model pass its pixel_values in the place of the text"
    )


def check_vocabulary(tokenizer, rows: int) -> None:
    """Refuse a tokenizer whose ids do not fill a model's embeddings, but for spare rows and for tokens added later."""
    vocab = vocabulary_of(tokenizer)
    added = tokenizer.get_added_vocab() if hasattr(tokenizer, "get_added_vocab") else {}
    last = max(vocab.values(), default=-1)
    own = max((token_id for token, token_id in vocab.items() if token not in added), default=-1)
    if own >= rows or (last < rows and not has_rows_for(last + 1, rows, multiple=1)):
        raise ValueError(
            f"the tokenizer has ids up to {last}, and the model {rows} rows of embeddings: take both from one "
            "checkpoint"
        )


def check_rows(tokens: list[str], ids: list[int], rows: int) -> None:
    """Refuse a text with a token that the model has no embedding for."""
    for token, token_id in zip(tokens, ids, strict=True):
        if not 0 <= token_id < rows:
            raise ValueError(
                f"the token {token!r} has the id {token_id}, and the model {rows} rows of embeddings: add rows for new "
                "tokens with model.resize_token_embeddings(len(tokenizer)), and train them"
            )


def start_of_b(tokenizer, batch, sentence_b: str) -> int:
    """Return the index of the second sentence's first token; ValueError for a sentence without a token."""
    if getattr(batch, "is_fast", False):
        sides = batch.sequence_ids(0)
        if 1 in sides:
            return sides.index(1)
    elif (batch["token_type_ids"] == 1).any():
        return int((batch["token_type_ids"][0] == 1).nonzero()[0])
    else:  # a tokenizer in Python, of a model without token types
        ids = batch["input_ids"][0].tolist()
        own = tokenizer(sentence_b, add_special_tokens=False)["input_ids"]
        starts = [start for start in range(len(ids)) if own and ids[start : start + len(own)] == own]
        if starts:
            return starts[-1]
    raise ValueError(f"sentence_b={sentence_b!r:.60} has no token: pass a text with a word or more")


def words_of(tokens: list[str], batch) -> list[int]:
    """Number the words that tokens belong to, as a fast tokenizer knows them, or by the ## of WordPiece."""
    if getattr(batch, "is_fast", False):
        known = list(zip(batch.sequence_ids(0), batch.word_ids(0), strict=True))
        begins = [word == (None, None) or word != before for before, word in zip([None, *known], known, strict=False)]
    else:
        begins = [not token.startswith("##") for token in tokens]
    return [number - 1 for number in itertools.accumulate(map(int, begins))]


def readable_tokens(tokenizer, batch) -> list[str]:
    """Return the tokens of a transformers tokenizer; those that hold bytes are shown as their part of the text.

    Where one character takes several tokens, each shows it with its number: 🙂·1, 🙂·2.
    """
    ids = batch["input_ids"][0].tolist()
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder, splits = (str(getattr(backend, part, "")) for part in ("decoder", "pre_tokenizer"))
    if "ByteLevel" not in decoder and "ByteFallback" not in decoder:
        tokens = [visible(token) for token in tokenizer.convert_ids_to_tokens(ids)]
        if "ByteLevel" in splits:  # and nothing that decodes its letters for bytes
            return [prettify(token) for token in tokens]
        return [token.replace("▁", " ").removesuffix("</w>") for token in tokens]  # Ġ is a letter here, of Maltese
    shown = [tokenizer.decode([token_id], clean_up_tokenization_spaces=False) for token_id in ids]
    for start in range(len(ids)):
        if "\ufffd" not in shown[start]:
            continue
        for end in range(start + 2, min(start + 5, len(ids)) + 1):  # a character has four bytes at most
            whole = tokenizer.decode(ids[start:end], clean_up_tokenization_spaces=False)
            if "\ufffd" not in whole:
                shown[start:end] = [f"{whole}·{part}" for part in range(1, end - start + 1)]
                break
    return [visible(token) for token in shown]


def visible(token: str) -> str:
    """Write what no reader sees as Python does, such as \\n, and a token of spaces alone as ␣.

    The joiners inside words of Persian or Hindi stay, since they only shape the letters around them.
    """
    if not token.strip(" ▁"):
        return "␣" * len(token)
    kept = JOINERS if token.strip(JOINERS) else ""
    return "".join(
        letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode()
        for letter in token
    )


def as_patches(model, pixel_values: Tensor) -> Text:
    """Name the patches of an image by row and column."""
    side = getattr(model.config, "patch_size", None)
    if getattr(model, "main_input_name", "") != "pixel_values" or not isinstance(side, int):
        raise ValueError(f"a {family_of(model)} reads no pixels in square patches: pass a text")
    if pixel_values.dim() != 4 or len(pixel_values) != 1:
        raise ValueError(
            f"the pixel_values have the shape {tuple(pixel_values.shape)}: pass one image, (1, channels, height, width)"
        )
    rows, columns = (size // side for size in pixel_values.shape[-2:])
    patches = [f"{row},{column}" for row in range(rows) for column in range(columns)]
    return Text(patches, {"pixel_values": pixel_values}, None, [*range(len(patches))])


def before_patches(model, count: int) -> list[str]:
    """Name the tokens that an image model puts before its patches: [CLS], and further ones by their number."""
    if count < 0:
        raise ValueError(f"a {family_of(model)} has fewer places than patches, so no view can name them")
    return ["[CLS]", *(f"[{number}]" for number in range(1, count))] if count else []


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
