"""Validate input: every error names the input, its value and how to fix it.

A `check_…` raises or does nothing, and an `as_…` converts. The parts of the model check shapes only. Values are checked
once, where the model is called, and not while torch traces it (`torch.compile`, `torch.export`), because there are no
values yet.
"""

import inspect
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from numbers import Integral, Real
from pathlib import Path
from weakref import WeakKeyDictionary

import psutil
import torch
from torch import Tensor

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# the only supported values of these settings
SUPPORTED_VALUES = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
SUPPORTED_VALUES |= {"pruned_heads": {}}
MODERN_COUNTS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    "max_position_embeddings",
)
COUNTS = (*MODERN_COUNTS, "type_vocab_size")
MAX_LAYERS = 1000  # building more would take hours
MAX_SPARE_ROWS = 1024  # some models pad their embedding table with rows that have no token
FRACTIONS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps", "norm_eps", "initializer_range")
MODERN_LAYER_TYPES = ("full_attention", "sliding_attention")  # of ModernBERT: global and local attention
MAX_CHARACTERS = 5_000_000  # per text: a long novel has three million, which take seconds
IDS = (torch.int64, torch.int32)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DTYPES = {  # content of a tensor: the valid dtypes, their name in messages, and the method that converts others
    "ids": (IDS, "integers", "long"),
    "choices": ((torch.bool,), "True and False", "bool"),
    "numbers": ((*FLOATS, *IDS, torch.bool, torch.int16, torch.int8, torch.uint8), "real numbers", "float"),
}
FOREIGN_NAMES = {  # the end or a part of a weight's name that is not the model's own: what to do before it is saved
    r"lora_|\.(base_layer|modules_to_save)\.|\.(down|up)$": "merge LoRA (merge_lora, or merge_and_unload of peft)",
    r"(weight|bias)_mask$": "call torch.nn.utils.prune.remove for what is pruned",
    r"\.parametrizations\.": "call torch.nn.utils.parametrize.remove_parametrizations",
    r"weight_g$": "call torch.nn.utils.remove_weight_norm",
    r"weight_u$": "call torch.nn.utils.remove_spectral_norm",
    r"_packed_params|zero_point$|qweight|absmax$|\.SCB$": "take the model from before it was quantized",
    r"(^|\.)(module|_orig_mod)\.": "take the model out of its wrapper: model.module or model._orig_mod",
    r"^(optimizer|\w*scheduler|scaler|ema)\.|exp_avg": "leave out the states of the training",
}
VALIDATED_TOKENIZERS = WeakKeyDictionary()  # tokenizer: the vocab_size that its vocabulary was found to fit


# A number, a configuration, weights


def is_integer(number) -> bool:
    """Return whether this is an integer of any library, and not True or False."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def check_size(name: str, size, minimum: int = 1, maximum: float = math.inf) -> None:
    """Raise ValueError unless `size` is an integer from `minimum` to `maximum`."""
    if not is_integer(size) or not minimum <= size <= maximum:
        limits = f"an integer of at least {minimum}" if minimum != 1 else "a positive integer"
        limits = limits if maximum == math.inf else f"an integer from {minimum} to {maximum:,}"
        raise ValueError(f"{name} must be {limits}, got {size!r:.80}")


def check_between(name: str, number, low: float, high: float, usual: str) -> None:
    """Raise ValueError unless low < number < high."""
    if not isinstance(number, Real) or isinstance(number, bool) or not low < number < high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {number!r:.80}: {usual}")


def check_share(name: str, share) -> None:
    """Raise ValueError unless this is a number from 0 to 1."""
    if not isinstance(share, Real) or isinstance(share, bool) or not 0 <= share <= 1:  # NaN is neither
        raise ValueError(f"{name} must be a number from 0 to 1, got {share!r:.80}")


SETTINGS = {  # of models and of training: the function that checks each, and its limits
    **dict.fromkeys((*COUNTS, "batch_size", "steps", "rank"), (check_size,)),
    **dict.fromkeys(FRACTIONS, (check_share,)),
    "num_hidden_layers": (check_size, 1, MAX_LAYERS),
    "epochs": (check_size, 1, 10_000),
    "patience": (check_size, 0),
    "seed": (check_size, 0, 10**9),
    "probability": (check_between, 0, 1, "BERT's is 0.15"),
    "learning_rate": (check_between, 0, math.inf, "use a small one such as 5e-5"),
    "alpha": (check_between, 0, math.inf, "16 is usual"),
}


def check_settings(**settings) -> None:
    """Check each setting by its row of `SETTINGS`."""
    for name, value in settings.items():
        check, *limits = SETTINGS[name]
        check(name, value, *limits)


def check_config(config) -> None:
    """Raise ValueError for anything but a BERT encoder with learned positions; the error names the field."""
    for field, supported in SUPPORTED_VALUES.items():
        if (value := getattr(config, field, supported)) != supported:
            raise ValueError(f"{field}={value!r} is not supported: use {supported!r}")
    check_numbers(config, COUNTS)
    rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    check_memory(config, rows, matrices=2)


def check_classes(config) -> None:
    """Raise ValueError for fewer than two classes, and for a classifier that does not give each text exactly one."""
    if (problem := getattr(config, "problem_type", None)) not in (None, "single_label_classification"):
        raise ValueError(f"problem_type={problem!r} is not supported: use a classifier that gives each text one label")
    check_size("num_labels", config.num_labels, minimum=2)
    if (ids := sorted(config.id2label)) != [*range(config.num_labels)]:
        listed = ", ".join(map(str, ids[:20]))
        raise ValueError(f"the ids of the classes are {listed}: number them 0, 1, … in id2label and label2id")


def check_numbers(config, counts: Collection[str]) -> None:
    """Raise ValueError for invalid counts and fractions, and for quantized weights."""
    if getattr(config, "quantization_config", None):
        raise ValueError("quantized weights (quantization_config) are not supported: save the model as float32")
    check_settings(**{field: getattr(config, field) for field in (*counts, *FRACTIONS) if hasattr(config, field)})
    if config.pad_token_id is not None:
        check_size("pad_token_id", config.pad_token_id, 0, config.vocab_size - 1)


def check_memory(config, rows: int, matrices: int) -> None:
    """Raise ValueError unless an embedding table and layers with this many (H, I) matrices fit into free memory."""
    H, I = config.hidden_size, config.intermediate_size  # noqa: E741
    layer = 4 * H + matrices * I
    needed, free = 4 * H * (rows + config.num_hidden_layers * layer), psutil.virtual_memory().available
    if needed > free and torch.get_default_device().type != "meta":
        raise ValueError(
            f"the weights need {needed / 1e9:,.1f} GB, but {free / 1e9:,.1f} GB of memory are free: "
            f"use smaller sizes than hidden_size={H}, intermediate_size={I}, "
            f"num_hidden_layers={config.num_hidden_layers} and {rows:,} embeddings"
        )


def check_modern_config(config) -> None:
    """Raise ValueError for another family and for settings of ModernBERT that are not supported."""
    if (family := getattr(config, "model_type", None)) != "modernbert":
        raise ValueError(f'model_type="{family}" is not a ModernBERT: use "modernbert", or TransformerEncoder')
    for layer_type in config.layer_types:
        if layer_type not in MODERN_LAYER_TYPES:
            raise ValueError(
                f'layer_types contain "{layer_type}", which is not supported: use {" or ".join(MODERN_LAYER_TYPES)}'
            )
        if (rope_type := config.rope_parameters[layer_type]["rope_type"]) != "default":
            raise ValueError(f'rope_type="{rope_type}" in {layer_type} is not supported: use "default"')
    for field in ("embedding_dropout", "attention_dropout", "mlp_dropout"):
        if rate := getattr(config, field):
            raise ValueError(f"{field}={rate} is not supported: use 0.0, as ModernBERT does")
    check_numbers(config, MODERN_COUNTS)
    check_memory(config, config.vocab_size, matrices=3)
    check_heads(config.hidden_size, config.num_attention_heads)
    check_even(config.hidden_size // config.num_attention_heads)


def check_heads(hidden_size: int, num_heads: int) -> None:
    """Raise ValueError unless the number of heads divides the hidden size."""
    if num_heads < 1 or hidden_size % num_heads:
        raise ValueError(
            f"hidden_size={hidden_size} is not divisible by num_attention_heads={num_heads}: change one of them"
        )


def check_even(head_size: int) -> None:
    """Raise ValueError for an odd head size: rotary positions rotate pairs of coordinates."""
    if head_size % 2:
        raise ValueError(f"a head size of {head_size} cannot be rotated in pairs: use an even one")


def check_activation(name: str, known: Collection[str], field: str = "hidden_act") -> None:
    """Raise ValueError for an unknown activation; the error lists the known ones."""
    if not isinstance(name, str) or name not in known:
        raise ValueError(f'{field}="{name}" is not supported: use one of {", ".join(known)}')


def check_names(where: Path | str, names: Iterable[str]) -> None:
    """Raise ValueError, with what to do, for a weight whose name comes from a wrapper, LoRA, pruning and the like."""
    for pattern, remedy in FOREIGN_NAMES.items():
        if found := min(filter(re.compile(pattern).search, names), default=""):
            raise ValueError(f"{where} has the weight {found}: {remedy}, and save the model again")


def check_prefix(where: Path | str, names: Iterable[str]) -> None:
    """Raise ValueError if the weights of a BERT are there only under other names, as those of a part of a model."""
    end = "embeddings.word_embeddings.weight"
    if (prefixes := sorted({name.removesuffix(end) for name in names if name.endswith(end)})) and prefixes[0]:
        raise ValueError(
            f"{where} has its weights under {' and '.join(prefixes)}: save this part of the model alone, or remove "
            f"{prefixes[0]!r} from the names of its weights"
        )


def check_weights(stored: Mapping[str, Tensor], expected: Mapping[str, Tensor], remedy: str = "") -> None:
    """Raise ValueError unless names and shapes agree; the error lists missing, unexpected and mis-shaped weights."""
    shared = stored.keys() & expected.keys()
    problems = {
        "missing": expected.keys() - shared,
        "unexpected": stored.keys() - shared,
        "mis-shaped": [
            f"{name} {tuple(stored[name].shape)} for {tuple(expected[name].shape)}"
            for name in shared
            if stored[name].shape != expected[name].shape
        ],
    }
    raise_if_any("weights do not fit the configuration", problems, remedy)


def raise_if_any(message: str, problems: Mapping[str, Collection[str]], remedy: str = "") -> None:
    """Raise ValueError if any kind of problem has names; the error lists the first ones."""
    lines = []
    for problem, names in problems.items():
        first, more = ", ".join(sorted(names)[:8]), len(names) - 8
        lines += [f"{problem}: {first}" + (f" and {more} more" if more > 0 else "")] if names else []
    if lines:
        raise ValueError(f"{message}; {'; '.join(lines)}{remedy}")


def check_tied(name: str, weight: Tensor, other: Tensor | None) -> None:
    """Raise ValueError if a weight differs from the one that it is tied to, if there is one."""
    if other is not None and not torch.equal(weight, other):
        raise ValueError(
            f"{name} must equal the word embeddings or bias it is tied to: save the model with tied weights"
        )


def check_finite_weights(weights: Mapping[str, Tensor]) -> None:
    """Raise ValueError for a weight with NaN, inf or no values, and for integer or 8-bit ones, which are quantized."""
    for name, weight in weights.items():
        if weight.is_meta:
            raise ValueError(f"{name} has no values (device meta): load it into memory")
        if not weight.is_floating_point() or weight.itemsize < 2:
            raise ValueError(f"{name} has the type {weight.dtype}: save the model with float32 weights")
        if not weight.isfinite().all():
            raise ValueError(f"{name} contains NaN or inf: use weights from before training went wrong")


# Inputs of the model


def check_tensor(name: str, value, kind: str = "numbers", remedy: str = "", *, needs_values: bool = True) -> None:
    """Raise an error unless this is a dense tensor of the `kind` in `DTYPES`, with values unless only shapes matter."""
    if not isinstance(value, Tensor):
        remedy = remedy or "use torch.tensor with a row for each text, or **batch for a tokenizer's dictionary"
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}: {remedy}")
    dtypes, content, method = DTYPES[kind]
    if torch.compiler.is_compiling():
        return
    if value.is_nested or value.layout != torch.strided:
        layout = "a nested one" if value.is_nested else value.layout
        raise ValueError(f"{name} must be a dense tensor, got {layout}: convert it, or pad its rows")
    if needs_values and value.is_meta:
        raise ValueError(
            f"{name} must have values, but a tensor on the device meta has none: create it on a CPU or GPU"
        )
    if value.dtype not in dtypes:
        conversion = f".real.{method}()" if value.is_complex() else f".{method}()"
        raise ValueError(f"{name} must contain {content}, got {value.dtype}: convert with {conversion}")


def check_ids(name: str, ids: Tensor, size: int | None = None, *, needs_values: bool = True) -> None:
    """Raise an error unless ids are integers (B, S), not empty, and below `size`, if it is given."""
    check_tensor(name, ids, "ids", needs_values=needs_values)
    if ids.dim() != 2 or 0 in ids.shape:
        remedy = "use ids[None] for a single sentence" if ids.dim() == 1 else "use a row of ids for each text"
        raise ValueError(f"{name} must be (B, S), got {tuple(ids.shape)}: {remedy}")
    if size is not None:
        check_entries(name, *torch.stack(ids.aminmax()).tolist(), size)


def check_shapes(input_ids: Tensor, token_type_ids: Tensor, positions: int) -> None:
    """Raise ValueError unless both are integers (B, S), not empty, and not longer than the model's positions."""
    check_ids("input_ids", input_ids, needs_values=False)
    check_same_shape("token_type_ids", token_type_ids, input_ids.shape, "ids", needs_values=False)
    if (S := input_ids.size(1)) > positions:
        raise ValueError(f"{S} tokens, but only {positions} positions: tokenize with max_length={positions}")


def check_same_shape(
    name: str, tensor: Tensor, shape: tuple[int, ...], kind: str = "numbers", *, needs_values: bool = True
) -> None:
    """Raise an error unless this is a tensor of this kind with the shape of the input, (B, S)."""
    check_tensor(name, tensor, kind, needs_values=needs_values)
    if tensor.shape != shape:
        raise ValueError(f"{name} must have the shape {tuple(shape)} of the input, got {tuple(tensor.shape)}")


def checked_mask(
    input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None, config
) -> Tensor | None:
    """Check an encoder's input, (B, S) each, and return the attention_mask, or None if it hides nothing.

    ValueError for ids outside the tables and for a mask that hides a whole row. Needs a single copy from the device.
    """
    if torch.compiler.is_compiling():
        return attention_mask
    check_ids("input_ids", input_ids)
    types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    check_tensor("token_type_ids", types, "ids")
    check_shapes(input_ids, types, config.max_position_embeddings)
    check_same_shape("attention_mask", mask, input_ids.shape)
    facts = [*input_ids.aminmax(), *types.aminmax(), *mask_facts(mask), (mask != 0).all()]
    lowest, highest, lowest_type, highest_type, is_other, every_row_sees, nothing_hidden = torch.stack(
        [fact.long() for fact in facts]
    ).tolist()
    check_entries("input_ids", lowest, highest, config.vocab_size)
    check_entries("token_type_ids", lowest_type, highest_type, getattr(config, "type_vocab_size", 1))
    check_mask_facts("attention_mask", is_other, every_row_sees)
    return None if nothing_hidden else attention_mask


def check_entries(name: str, lowest: int, highest: int, size: int) -> None:
    """Raise ValueError for ids outside a table of this size."""
    for limit in (lowest, highest):
        if not 0 <= limit < size:
            raise ValueError(f"{name} contain {limit}, but valid ids are 0 to {size - 1}")


def check_mask(name: str, mask: Tensor) -> None:
    """Raise ValueError for invalid values of a mask (…, S), except while torch traces, when there are none yet."""
    check_tensor(name, mask)
    if not torch.compiler.is_compiling():
        check_mask_facts(name, *torch.stack(mask_facts(mask)).tolist())


def mask_facts(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether a mask (…, S) contains NaN or less than 0, and whether each row leaves a visible token."""
    return (~(mask >= 0)).any(), (mask != 0).any(dim=-1).all()


def check_mask_facts(name: str, is_other, every_row_sees) -> None:
    """Raise ValueError for a mask with NaN or negative numbers, and for one that hides a whole row."""
    if is_other:
        raise ValueError(f"{name} contains NaN or less than 0: use 1 for real tokens and 0 for padding")
    if not every_row_sees:
        raise ValueError(f"{name} masks every token of a row: leave at least one 1 in each")


def check_attention_mask(attention_mask: Tensor, query: Tensor, key: Tensor) -> None:
    """Raise ValueError unless a mask broadcasts to scores (…, S, T) and leaves each query a visible key."""
    check_mask("attention_mask", attention_mask)
    leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    shape = (*leading, query.size(-2), key.size(-2))
    sizes = zip(reversed(attention_mask.shape), reversed(shape), strict=False)
    if attention_mask.dim() > len(shape) or any(size not in (1, expected) for size, expected in sizes):
        raise ValueError(f"attention_mask of shape {tuple(attention_mask.shape)} does not fit scores of shape {shape}")


# Texts, vocabularies, labels


def check_string(text) -> None:
    """Raise TypeError unless `text` is a string, and ValueError if it is too long."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}: pass one string")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"text has {len(text):,} characters: split it into parts of at most {MAX_CHARACTERS:,}")


def check_listed(name: str, values) -> None:
    """Raise TypeError unless these are the values of a list, an array, a Series of pandas or a stream.

    Texts, dictionaries, sets and tables can be iterated, too, but not in the order or by the rows that are meant.
    """
    is_other = isinstance(values, (str, bytes, Mapping, Set)) or hasattr(values, "columns")
    if is_other or not isinstance(values, Iterable):
        remedy = "wrap one text in a list" if isinstance(values, str) else "pass a list, or one column of a table"
        raise TypeError(f"{name} must be a list, got {type(values).__name__}: {remedy}")


def as_list(name: str, values: Iterable) -> list:
    """Return the values that `check_listed` accepts as a list."""
    check_listed(name, values)
    return values.tolist() if hasattr(values, "tolist") else list(values)


def as_texts(texts: Iterable[str]) -> list[str]:
    """Return a list of strings; TypeError for anything but strings, ValueError for no text and for an empty one."""
    texts = as_list("texts", texts)
    if not texts:
        raise ValueError("got no texts: pass a list, or a stream that has not been read before")
    for number, text in enumerate(each_text(texts)):
        if not text.strip():
            raise ValueError(f"text {number} is empty: leave it out")
    return texts


def each_text(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts of a list or stream; TypeError for anything else, ValueError for no texts."""
    check_listed("texts", texts)
    number = -1
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} must be a string, got {type(text).__name__}: convert it, or leave it out")
        yield text
    if number < 0:
        raise ValueError("got no texts: pass a list, or a stream that has not been read before")


def as_pairs(texts, pairs) -> list[tuple]:
    """Return (text, pair) for one text or each of a list, with None without pairs; ValueError for unequal counts."""
    texts = [texts] if isinstance(texts, str) else as_list("texts", texts)
    pairs = [None] * len(texts) if pairs is None else [pairs] if isinstance(pairs, str) else as_list("pairs", pairs)
    if not texts or len(texts) != len(pairs):
        raise ValueError(
            f"got {len(texts)} texts but {len(pairs)} pairs: pass at least one text, and one pair per text"
        )
    return list(zip(texts, pairs, strict=True))


def check_max_length(max_length: int, special: int, text: int = 0) -> None:
    """Raise ValueError unless the special tokens and this many tokens of text fit into the length."""
    check_size("max_length", max_length, 0 if is_integer(max_length) else special + text)
    if max_length < special + text:
        needed = f"{special} special tokens" + (f" and {text} of text" if text else "")
        raise ValueError(f"max_length={max_length} is too small for {needed}: use at least {special + text}")


def check_vocabulary(vocab: Mapping[str, int]) -> None:
    """Raise ValueError for a missing special token or a duplicate id, TypeError unless this is a dictionary."""
    if not isinstance(vocab, Mapping):
        raise TypeError(f"the vocabulary must be a dictionary from token to id, got {type(vocab).__name__}")
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise ValueError(f"the vocabulary lacks {', '.join(missing)}: pass BERT's complete vocabulary")
    for token, token_id in vocab.items():
        if not is_integer(token_id) or token_id < 0:
            raise ValueError(f"the vocabulary gives {token!r} the id {token_id!r}: ids must be integers of at least 0")
    several = [token_id for token_id, tokens in Counter(vocab.values()).items() if tokens > 1]
    if several:
        raise ValueError(f"the vocabulary gives several tokens the id {several[0]}: use each id once")


def vocabulary_of(tokenizer) -> Mapping[str, int]:
    """Return a tokenizer's vocabulary, token to id; TypeError for anything but a tokenizer."""
    check_is_tokenizer(tokenizer)
    has_vocab = inspect.getattr_static(tokenizer, "vocab", None) is not None  # tokenizers in Python have only get_vocab
    return tokenizer.vocab if has_vocab else tokenizer.get_vocab()


def check_is_tokenizer(tokenizer) -> None:
    """Raise TypeError unless this is callable and has a vocabulary, which is not read here, because that is slow."""
    static = [inspect.getattr_static(tokenizer, name, None) for name in ("vocab", "get_vocab")]
    if not callable(tokenizer) or static == [None, None]:
        raise TypeError(f"tokenizer must be a WordPieceTokenizer or transformers' own, got {type(tokenizer).__name__}")


def has_rows_for(tokens: int, rows: int, multiple: int = 8) -> bool:
    """Return whether an embedding table has a row for each token, and at most the usual padding.

    Published models are padded by up to 1,024 rows for speed, mostly but not always to a multiple of 8.
    """
    return tokens == rows or (rows % multiple == 0 and 0 < rows - tokens <= min(MAX_SPARE_ROWS, tokens))


def check_vocabulary_size(vocab: Mapping[str, int], vocab_size: int) -> None:
    """Raise ValueError unless a vocabulary fits the model; the error has both sizes."""
    ids = set(vocab.values())
    if ids != set(range(len(ids))) or not has_rows_for(len(ids), vocab_size):
        raise ValueError(
            f"the tokenizer has {len(ids)} tokens with ids up to {max(ids, default=None)}, but the model's vocab_size "
            f"is {vocab_size}: load both from the same checkpoint, and look for added tokens, and for empty or "
            "repeated lines in vocab.txt"
        )


def check_tokenizer(tokenizer, vocab_size: int) -> None:
    """Raise ValueError unless a tokenizer has the model's vocabulary, TypeError for anything but a tokenizer.

    The result is cached for each tokenizer, because the comparison takes longer than tokenizing a hundred texts.
    """
    check_is_tokenizer(tokenizer)
    if VALIDATED_TOKENIZERS.get(tokenizer) != vocab_size:
        check_vocabulary_size(vocabulary_of(tokenizer), vocab_size)
        VALIDATED_TOKENIZERS[tokenizer] = vocab_size


def check_labels(labels: Sequence[int], num_labels: int) -> None:
    """Raise ValueError for a label that is not a class of the model, TypeError for one that is not an integer."""
    for number, label in enumerate(labels):
        if not isinstance(label, Integral):
            raise TypeError(
                f"labels must be integers, got {type(label).__name__}: {label!r:.80} of text {number}: "
                "use the number of its class"
            )
        if not 0 <= label < num_labels:
            raise ValueError(f"labels must be from 0 to {num_labels - 1}, got {label!r} for text {number}")


def check_finite(loss: float, step: int, learning_rate: float) -> None:
    """Raise FloatingPointError, with the step and a remedy, for a loss that is infinite or NaN."""
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"the loss is {loss} at step {step}, with a learning rate of {learning_rate:.2g}: "
            "use a lower one (2e-5 to 1e-4 suits BERT)"
        )
