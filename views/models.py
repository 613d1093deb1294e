"""Read tokens, queries, keys and attention weights from a model and its text."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from utils.attention import MultiHeadAttention
from utils.support.batches import CHANGING, device_of, evaluation_mode
from utils.support.checks import check_tokenizer, has_rows_for, vocabulary_of
from views.any_model import (
    Layers,
    NotPlainSoftmax,
    accepted,
    family_of,
    has_two_sides,
    is_official,
    read_neurons,
    read_weights,
    takes,
)
from views.inputs import check_weights, prettify

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# what some models read besides a text, by the name of the parameter
OTHER_INPUTS = {
    "bbox": "the boxes of words on a page",
    "image": "a picture",
    "visual_feats": "the objects of a picture",
    "langs": "a language for each token",
}
JOINERS = "\u200c\u200d"
WRAPPERS = {  # class that contains a model: where the model is
    "SentenceTransformer": "model[0].auto_model, with model.tokenizer",
    "PeftModel": "model.merge_and_unload()",
}


class Text(NamedTuple):
    """A tokenized text or pair: S tokens to show, the input of the model, and the words that the tokens belong to."""

    tokens: list[str]
    inputs: dict[str, Tensor]
    sentence_b_start: int | None
    words: list[int]  # index of each token's word; a special token counts as a word


class Heads(NamedTuple):
    """The attention of a model on a text or pair of S tokens; the last six fields are those of `Layers`."""

    tokens: list[str]
    sentence_b_start: int | None
    words: list[int]  # index of each token's word
    weights: Tensor  # (L, A, S, S)
    queries: Tensor | None
    keys: Tensor | None
    values: Tensor | None
    hidden: Tensor | None
    outputs: Sequence[nn.Module]


def read_heads(model, tokenizer, sentence_a, sentence_b: str | None = None, *, neurons: bool = True) -> Heads:
    """Run a model of the series or of transformers on a text or pair, and return what each head computes.

    ValueError or TypeError for a model or tokenizer that is not supported, and for a text that the model cannot read.
    """
    check_model(model)
    if has_two_sides(model):
        raise ValueError(
            f"a {family_of(model)} has an encoder and a decoder: pass one of them, model.get_encoder() or "
            "model.get_decoder(); head_view and model_view take the whole model"
        )
    if isinstance(sentence_a, Tensor):
        text = image_patches(model, sentence_a)
    else:
        text = require_tokens("sentence_a", tokenize_for_view(model, tokenizer, sentence_a, sentence_b))
    with inference(model):
        try:
            layers = read_layers(model, on_device(model, text.inputs), neurons=neurons)
        except NotPlainSoftmax as reason:
            remedy = "use head_view or model_view"
            raise ValueError(f"neuron_view needs plain softmax attention, but {reason}: {remedy}") from None
    tokens, words = text.tokens, text.words
    if isinstance(sentence_a, Tensor):
        tokens = tokens_before_patches(model, layers.weights.size(-1) - len(tokens)) + tokens
        words = [*range(len(tokens))]
    return Heads(tokens, text.sentence_b_start, words, *layers)


def read_layers(model, inputs: dict[str, Tensor], *, neurons: bool = True) -> Layers:
    """Return what each layer of a model computes in attention, in float32; NotPlainSoftmax as for `read_neurons`."""
    if is_series_model(model):
        return read_series_model(model, inputs)
    return read_neurons(model, inputs) if neurons else Layers(read_weights(model, inputs)["all"])


def kind_of(model: nn.Module) -> str:
    """Return the family of a model of transformers, or the class of another one."""
    return family_of(model) if is_official(model) else type(model).__name__


def hidden_states(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """Return the vectors (L + 1, B, S, H) of the embedding and after each layer, in float32.

    ValueError for vectors without a direction.
    """
    options = {"output_hidden_states": True} | ({"return_dict": True} if is_official(model) else {})
    states = model(**inputs, **options).hidden_states
    states = torch.stack([state.float() for state in states]).cpu()
    lengths = states.norm(dim=-1)
    if (wrong := ~(lengths.isfinite() & (lengths > 0))).any():
        layer, *rest = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"after layer {layer} of a {kind_of(model)}, a vector has the length {lengths[layer, *rest]:.0f}, so it "
            "has no direction: load trained weights without nan"
        )
    return states


def on_device(model, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the inputs on the model's device."""
    return {name: tensor.to(device_of(model)) for name, tensor in inputs.items()}


def read_two_sides(
    model: "PreTrainedModel", tokenizer, source: str, target: str | None = None
) -> dict[str, list | dict]:
    """Return attentions and tokens of an encoder–decoder, by the names of a view's arguments, and `words` by tokens."""
    if target is None:
        raise ValueError(f"a {family_of(model)} reads one text and writes another: pass the second as sentence_b")
    read, written = (
        require_tokens(name, tokenize_for_view(model, tokenizer, text, None, is_target=name == "sentence_b"))
        for name, text in (("sentence_a", source), ("sentence_b", target))
    )
    inputs = read.inputs | {"decoder_input_ids": written.inputs["input_ids"]}
    with inference(model):
        given = read_weights(model, on_device(model, inputs))
    sides = {f"{kind}_attention": weights.split(1) for kind, weights in given.items()}
    sides |= {"encoder_tokens": read.tokens, "decoder_tokens": written.tokens}
    return sides | {"words": {"encoder_tokens": read.words, "decoder_tokens": written.words}}


@contextmanager
def inference(model) -> Iterator[None]:
    """Evaluation mode without gradients, in one thread at a time; the mode is restored afterwards.

    Reading changes the attention and the hooks of the model.
    """
    with CHANGING, evaluation_mode(model), torch.no_grad():
        yield


def name_of(model: nn.Module) -> str:
    """Return the name of the model's checkpoint or of its folder; an empty string if it has none."""
    return Path(getattr(model.config, "name_or_path", "") or "").name


def unwrap(model):
    """Return the model inside nn.DataParallel, nn.parallel.DistributedDataParallel and torch.compile."""
    while isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)) or hasattr(model, "_orig_mod"):
        model = model._orig_mod if hasattr(model, "_orig_mod") else model.module
    return model


def check_model(model) -> None:
    """Raise ValueError unless the model is from this series or from transformers."""
    for kind in type(model).__mro__:
        if kind.__name__ in WRAPPERS:
            raise ValueError(f"a {kind.__name__} contains the model to draw: pass {WRAPPERS[kind.__name__]}")
    if not is_official(model) and not is_series_model(model):
        raise ValueError(
            f"views do not support a {type(model).__name__}: pass a model of this series or of transformers (for a "
            "model of this series with a head, its .encoder); head_view and model_view draw attentions of any model"
        )


def is_series_model(model) -> bool:
    """Return whether all layers of a model have the attention of this series."""
    layers = getattr(model, "layers", None)
    return isinstance(layers, nn.ModuleList) and all(
        isinstance(getattr(layer, "attention", None), MultiHeadAttention) for layer in layers
    )


def tokenize_for_view(model, tokenizer, sentence_a: str, sentence_b: str | None, *, is_target: bool = False) -> Text:
    """Convert a text or pair to tokens and ids (1, S), with our tokenizer or one of transformers."""
    if is_official(model):
        check_vocabulary(tokenizer, embedding_count(model))
    else:
        check_tokenizer(tokenizer, model.config.vocab_size)
    texts = {"sentence_a": sentence_a}
    if sentence_b is not None:
        texts["sentence_b"] = sentence_b
    for name, text in texts.items():
        if not isinstance(text, str):  # a list would be tokenized as a batch
            raise ValueError(f"{name} must be one string, got {text!r:.60}: a view shows one text or pair")
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        given = {"text_target": sentence_a} if is_target else {"text": sentence_a, "text_pair": sentence_b}
        batch = tokenizer(**given, return_tensors="pt", return_token_type_ids=True)
        tokens = readable_tokens(tokenizer, batch)
        if is_official(model):
            check_token_ids(tokens, batch["input_ids"][0].tolist(), embedding_count(model))
    else:
        batch = tokenizer(sentence_a, sentence_b)
        tokens = [tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]]
    if 0 < (longest := positions_of(model)) < len(tokens):
        raise ValueError(
            f"the text has {len(tokens)} tokens, but the model has {longest} positions "
            "(max_position_embeddings): shorten the text"
        )
    start = None if sentence_b is None else find_sentence_b(tokenizer, batch, sentence_b)
    return Text(tokens, accepted(model, batch), start, word_indices(tokens, batch))


def require_tokens(name: str, text: Text) -> Text:
    """Return the text; ValueError if it has no token, as an empty text without special tokens."""
    if not text.tokens:
        raise ValueError(f"{name} has no token: pass a text of at least one word")
    return text


def positions_of(model) -> int:
    """Return the maximum number of tokens of a model, 0 if there is no limit."""
    for name, module in model.named_modules():  # RoBERTa reserves the positions up to the padding id
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return module.num_embeddings - module.padding_idx - 1
    return getattr(model.config, "max_position_embeddings", None) or 0


def embedding_count(model: "PreTrainedModel") -> int:
    """Return the number of token embeddings; ValueError if the model reads no token ids, or more than a text gives."""
    for name, meaning in OTHER_INPUTS.items():
        if name in takes(model) and (name != "langs" or getattr(model.config, "use_lang_emb", False)):
            raise ValueError(
                f"a {family_of(model)} also reads {meaning} ({name}), which a text does not give: call the model with "
                "output_attentions=True, and pass its attentions and the tokens to the view"
            )
    if "input_ids" in takes(model):
        with suppress(AttributeError, NotImplementedError):
            return model.get_input_embeddings().num_embeddings
        raise ValueError(
            f"a {family_of(model)} has no plain table of token embeddings, by which the tokenizer is compared: "
            "use a model that has one, such as a BERT"
        )
    raise ValueError(
        f"a {family_of(model)} reads no token ids (its input is {model.main_input_name}): for an image model, pass "
        "its pixel_values instead of the text"
    )


def check_vocabulary(tokenizer, rows: int) -> None:
    """Raise ValueError if a tokenizer does not fit the embeddings; unused rows and added tokens are allowed."""
    vocab = vocabulary_of(tokenizer)
    added = tokenizer.get_added_vocab() if hasattr(tokenizer, "get_added_vocab") else {}
    last = max(vocab.values(), default=-1)
    own = max((token_id for token, token_id in vocab.items() if token not in added), default=-1)
    if own >= rows or (last < rows and not has_rows_for(last + 1, rows, multiple=1)):
        raise ValueError(
            f"the tokenizer has ids up to {last}, but the model has {rows} token embeddings: load both from the same "
            "checkpoint"
        )


def check_token_ids(tokens: list[str], ids: list[int], rows: int) -> None:
    """Raise ValueError for a token without an embedding."""
    for token, token_id in zip(tokens, ids, strict=True):
        if not 0 <= token_id < rows:
            raise ValueError(
                f"the token {token!r} has the id {token_id}, but the model has {rows} token embeddings: add embeddings "
                "with model.resize_token_embeddings(len(tokenizer)), and train them"
            )


def find_sentence_b(tokenizer, batch, sentence_b: str) -> int:
    """Return the index of the first token of sentence B; ValueError if it has no token."""
    if getattr(batch, "is_fast", False):
        sides = batch.sequence_ids(0)
        if 1 in sides:
            return sides.index(1)
    elif (batch["token_type_ids"] == 1).any():
        return int((batch["token_type_ids"][0] == 1).nonzero()[0])
    else:  # a slow tokenizer of a model without token types
        ids = batch["input_ids"][0].tolist()
        own = tokenizer(sentence_b, add_special_tokens=False)["input_ids"]
        starts = [start for start in range(len(ids)) if own and ids[start : start + len(own)] == own]
        if starts:
            return starts[-1]
    raise ValueError(f"sentence_b={sentence_b!r:.60} has no token: pass a text of at least one word")


def word_indices(tokens: list[str], batch) -> list[int]:
    """Return the index of each token's word, from a fast tokenizer, or from the ## of WordPiece."""
    if getattr(batch, "is_fast", False):
        known = list(zip(batch.sequence_ids(0), batch.word_ids(0), strict=True))
        begins = [word == (None, None) or word != before for before, word in zip([None, *known], known, strict=False)]
    else:
        begins = [not token.startswith("##") for token in tokens]
    return [number - 1 for number in itertools.accumulate(map(int, begins))]


def readable_tokens(tokenizer, batch) -> list[str]:
    """Return the tokens of a transformers tokenizer as text, also those that are bytes.

    If a character takes several tokens, each shows the character and its own position: 🙂·1, 🙂·2.
    """
    ids = batch["input_ids"][0].tolist()
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder, splits = (str(getattr(backend, part, "")) for part in ("decoder", "pre_tokenizer"))
    if "ByteLevel" not in decoder and "ByteFallback" not in decoder:
        tokens = [visible(token) for token in tokenizer.convert_ids_to_tokens(ids)]
        if "ByteLevel" in splits:  # with a decoder that leaves its letters for bytes as they are
            return [prettify(token) for token in tokens]
        return [token.replace("▁", " ").removesuffix("</w>") for token in tokens]  # Ġ stays: it is a letter of Maltese
    shown = [tokenizer.decode([token_id], clean_up_tokenization_spaces=False) for token_id in ids]
    for start in range(len(ids)):
        if "\ufffd" not in shown[start]:
            continue
        for end in range(start + 2, min(start + 5, len(ids)) + 1):  # a character has at most four bytes
            whole = tokenizer.decode(ids[start:end], clean_up_tokenization_spaces=False)
            if "\ufffd" not in whole:
                shown[start:end] = [f"{whole}·{part}" for part in range(1, end - start + 1)]
                break
    return [visible(token) for token in shown]


def visible(token: str) -> str:
    """Write invisible characters as Python does, such as \\n, and a token of spaces as ␣.

    Joiners inside words, as in Persian or Hindi, stay: they only shape the letters around them.
    """
    if not token.strip(" ▁"):
        return "␣" * len(token)
    kept = JOINERS if token.strip(JOINERS) else ""
    return "".join(
        letter if letter.isprintable() or letter in kept else letter.encode("unicode_escape").decode()
        for letter in token
    )


def image_patches(model, pixel_values: Tensor) -> Text:
    """Return the patches of an image as tokens named by row and column."""
    side = getattr(model.config, "patch_size", None)
    if getattr(model, "main_input_name", "") != "pixel_values" or not isinstance(side, int):
        raise ValueError(f"a {family_of(model)} reads no square patches of an image: pass a text")
    if pixel_values.dim() != 4 or len(pixel_values) != 1:
        raise ValueError(
            f"pixel_values must have the shape (1, channels, height, width), got {tuple(pixel_values.shape)}"
        )
    rows, columns = (size // side for size in pixel_values.shape[-2:])
    patches = [f"{row},{column}" for row in range(rows) for column in range(columns)]
    return Text(patches, {"pixel_values": pixel_values}, None, [*range(len(patches))])


def tokens_before_patches(model, count: int) -> list[str]:
    """Return names for the tokens before the patches: [CLS], then their numbers."""
    if count < 0:
        raise ValueError(f"a {family_of(model)} has fewer positions than patches, so its tokens cannot be named")
    return ["[CLS]", *(f"[{number}]" for number in range(1, count))] if count else []


def read_series_model(model: nn.Module, inputs: dict[str, Tensor]) -> Layers:
    """Return what the layers of a model of the series compute, from the states that this thread gives them."""
    thread, states = get_ident(), []

    def keep(_, arguments: tuple) -> None:
        if get_ident() == thread:
            states.append(arguments[0])

    hooks = [layer.register_forward_pre_hook(keep) for layer in model.layers]
    try:
        weights = torch.cat(model(**inputs, output_attentions=True).attentions).float()
    finally:
        for hook in hooks:
            hook.remove()
    check_weights(weights, f"the attention of a {family_of(model)}")
    projected = [
        layer.attention.project(layer.attention_input(state)) for layer, state in zip(model.layers, states, strict=True)
    ]
    queries, keys, values = (torch.cat(parts).float() for parts in zip(*projected, strict=True))
    hidden = (weights == 0).all(dim=1, keepdim=True)  # by all heads of a layer
    return Layers(weights, queries, keys, values, hidden, [layer.attention.output for layer in model.layers])
