"""What students and teachers get wrong, said in words: the thing, the value and the remedy.

A `check_…` raises or does nothing; an `as_…` converts, and a `read_…` reads. The parts of the model look at shapes
only: what can be wrong with values is looked at once, where the model is called, and not while torch traces it
(`torch.compile`, `torch.export`), when there are no values yet.
"""

import inspect
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from weakref import WeakKeyDictionary

import psutil
import torch
from torch import Tensor

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# what is built of a configuration's choices
BUILT = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False, "pruned_heads": {}}
MODERN_COUNTS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    "max_position_embeddings",
)
COUNTS = (*MODERN_COUNTS, "type_vocab_size")
MOST_LAYERS = 1000  # building more would take hours
SPARE = 1024  # rows without a token, by which models fill up their table of embeddings
SHARES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps", "norm_eps", "initializer_range")
MODERN_LAYERS = ("full_attention", "sliding_attention")  # of ModernBERT: global and local ones
MOST_CHARACTERS = 5_000_000  # of one text: a long novel has three million, and they take seconds
IDS = (torch.int64, torch.int32)
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DTYPES = {  # of tensors, by what they hold, and the method that converts others
    "ids": (IDS, "whole numbers", "long"),
    "choices": ((torch.bool,), "True and False", "bool"),
    "numbers": ((*FLOATS, *IDS, torch.bool, torch.int16, torch.int8, torch.uint8), "real numbers", "float"),
}
COMPARED = WeakKeyDictionary()  # tokenizers whose ids were found to be those of a model of this size


# A number, a configuration, weights


def is_integer(number) -> bool:
    """Whether this is a whole number, of any library; True and False are none."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def check_size(name: str, size, minimum: int = 1, maximum: float = math.inf) -> None:
    """Refuse a count that is no whole number from `minimum` to `maximum`."""
    if not is_integer(size) or not minimum <= size <= maximum:
        limits = f"of {minimum} or more" if maximum == math.inf else f"from {minimum} to {maximum:,}"
        raise ValueError(f"{name}={size!r:.80} must be a whole number {limits}")


def check_between(name: str, number, low: float, high: float, usual: str) -> None:
    """Check that this is a number between two limits, which are not allowed themselves."""
    if not isinstance(number, Real) or isinstance(number, bool) or not low < number < high:
        raise ValueError(f"{name}={number!r:.80} must lie between {low:g} and {high:g}: {usual}")


def check_share(name: str, share) -> None:
    """Check that this is a number from 0 to 1."""
    if not isinstance(share, Real) or isinstance(share, bool) or not 0 <= share <= 1:  # NaN is neither
        raise ValueError(f"{name}={share!r:.80} must be a number from 0 to 1")


SETTINGS = {  # of models and of training: what checks each, and its limits
    **dict.fromkeys((*COUNTS, "batch_size", "steps", "rank"), (check_size,)),
    **dict.fromkeys(SHARES, (check_share,)),
    "num_hidden_layers": (check_size, 1, MOST_LAYERS),
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
    """Refuse a configuration beyond a BERT encoder with learned positions; the error names the field."""
    for field, built in BUILT.items():
        if (found := getattr(config, field, built)) != built:
            raise ValueError(f"{field}={found!r} is not built here: use {built!r}")
    check_numbers(config, COUNTS)
    rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    check_memory(config, rows, matrices=2)


def check_classes(config) -> None:
    """Refuse a classifier of fewer than two classes, and one that does not give each text one of them."""
    if (kind := getattr(config, "problem_type", None)) not in (None, "single_label_classification"):
        raise ValueError(f"problem_type={kind!r} is not built here: use a classifier that gives each text one label")
    check_size("num_labels", config.num_labels, minimum=2)


def check_numbers(config, counts: Collection[str]) -> None:
    """Refuse counts, shares and a deviation with which no model works, and weights that are stored as codes."""
    if getattr(config, "quantization_config", None):
        raise ValueError("the checkpoint holds quantized weights (quantization_config): save the model as float32")
    check_settings(**{field: getattr(config, field) for field in (*counts, *SHARES) if hasattr(config, field)})
    if config.pad_token_id is not None:
        check_size("pad_token_id", config.pad_token_id, 0, config.vocab_size - 1)


def check_memory(config, rows: int, matrices: int) -> None:
    """Check that the weights fit into free memory: a table of so many rows, and layers of so many (H, I) matrices."""
    H, layer = config.hidden_size, 4 * config.hidden_size + matrices * config.intermediate_size
    needed, free = 4 * H * (rows + config.num_hidden_layers * layer), psutil.virtual_memory().available
    if needed > free:
        sizes = f"weights of {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB of memory are free"
        raise ValueError(f"hidden_size={H} and the other sizes make {sizes}: use smaller ones")


def check_modern_config(config) -> None:
    """Refuse a configuration of another family, and what is not built of ModernBERT; the error names the field."""
    if (family := getattr(config, "model_type", None)) != "modernbert":
        raise ValueError(f'model_type="{family}" is no ModernBERT: use a "modernbert", or TransformerEncoder')
    for layer_type in config.layer_types:
        if layer_type not in MODERN_LAYERS:
            known = " or ".join(MODERN_LAYERS)
            raise ValueError(f'layer_types hold "{layer_type}", which is not built here: use {known}')
        if (kind := config.rope_parameters[layer_type]["rope_type"]) != "default":
            raise ValueError(f'rope_type="{kind}" in {layer_type} is not built here: use "default"')
    for field in ("embedding_dropout", "attention_dropout", "mlp_dropout"):
        if rate := getattr(config, field):
            raise ValueError(f"{field}={rate} is not built here: use 0.0, as ModernBERT does")
    check_numbers(config, MODERN_COUNTS)
    check_memory(config, config.vocab_size, matrices=3)
    check_heads(config.hidden_size, config.num_attention_heads)
    check_even(config.hidden_size // config.num_attention_heads)


def check_heads(hidden_size: int, num_heads: int) -> None:
    """Refuse a number of heads that does not divide the hidden size."""
    if num_heads < 1 or hidden_size % num_heads:
        sizes = f"hidden_size={hidden_size} is not divisible by num_attention_heads={num_heads}"
        raise ValueError(f"{sizes}: change one")


def check_even(head_size: int) -> None:
    """Refuse heads of an odd size, whose numbers make no pairs to be turned by their position."""
    if head_size % 2:
        raise ValueError(f"a head of {head_size} numbers cannot be turned in pairs: use an even size")


def check_activation(name: str, known: Collection[str], field: str = "hidden_act") -> None:
    """Refuse an activation that is not among the known ones, and list those."""
    if not isinstance(name, str) or name not in known:
        raise ValueError(f'{field}="{name}" is not built here: use one of {", ".join(known)}')


def check_fit(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Refuse weights unless names and shapes agree; the error lists what is missing, unexpected and mis-shaped."""
    shared = found.keys() & wanted.keys()
    problems = {
        "missing": wanted.keys() - shared,
        "unexpected": found.keys() - shared,
        "mis-shaped": [
            f"{name} {tuple(found[name].shape)} for {tuple(wanted[name].shape)}"
            for name in shared
            if found[name].shape != wanted[name].shape
        ],
    }
    check_no_problems("weights do not fit the configuration", problems)


def check_no_problems(what: str, problems: Mapping[str, Collection[str]]) -> None:
    """Refuse weights of which any kind of problem has names, and list the first of them."""
    lines = []
    for kind, names in problems.items():
        first, more = ", ".join(sorted(names)[:8]), len(names) - 8
        lines += [f"{kind}: {first}" + (f" and {more} more" if more > 0 else "")] if names else []
    if lines:
        raise ValueError(f"{what}; {'; '.join(lines)}")


def check_tied(name: str, weight: Tensor, other: Tensor | None) -> None:
    """Refuse a weight that differs from the other one of the same name, if there is one."""
    if other is not None and not torch.equal(weight, other):
        raise ValueError(f"{name} differs from the word embeddings or bias that it is tied to: tie them")


def check_finite_weights(weights: Mapping[str, Tensor]) -> None:
    """Refuse a weight with NaN or inf in it, or of whole numbers or 8 bits, which mean something else than they say."""
    for name, weight in weights.items():
        if not weight.is_floating_point() or weight.itemsize < 2:
            raise ValueError(f"{name} holds {weight.dtype}: save the model with weights of float32")
        if not weight.isfinite().all():
            raise ValueError(f"{name} holds NaN or inf: take the weights from before training went wrong")


# What goes into the model


def check_tensor(name: str, value, kind: str = "numbers", remedy: str = "") -> None:
    """Check that this is a tensor that has its values in memory, and holds what `kind` says in `DTYPES`."""
    if not isinstance(value, Tensor):
        remedy = remedy or "torch.tensor([ids]) makes one, and a tokenizer's dictionary goes in as **batch"
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}: {remedy}")
    dtypes, content, method = DTYPES[kind]
    if torch.compiler.is_compiling():
        return
    if value.is_nested or value.layout != torch.strided:
        layout = "a nested one" if value.is_nested else value.layout
        raise ValueError(f"{name} must be a dense tensor, got {layout}: convert it, or pad its rows")
    if value.is_meta:
        raise ValueError(f"{name} must hold values, and a tensor on the device meta has none: make it on a CPU or GPU")
    if value.dtype not in dtypes:
        raise ValueError(f"{name} must hold {content}, got {value.dtype}: convert with .{method}()")


def check_ids(name: str, ids: Tensor, size: int | None = None) -> None:
    """Check that ids are (B, S), not empty, whole, and rows of a table of this size, if it is given."""
    check_tensor(name, ids, "ids")
    if ids.dim() != 2 or 0 in ids.shape:
        raise ValueError(f"{name} must be (B, S), got {tuple(ids.shape)}: one sentence is a batch, ids[None]")
    if size is not None:
        check_entries(name, *torch.stack(ids.aminmax()).tolist(), size)


def check_shapes(input_ids: Tensor, token_type_ids: Tensor, positions: int) -> None:
    """Refuse ids unless both are (B, S), whole, not empty, and no longer than the model has positions."""
    check_ids("input_ids", input_ids)
    check_same_shape("token_type_ids", token_type_ids, input_ids.shape, "ids")
    if (S := input_ids.size(1)) > positions:
        raise ValueError(f"{S} tokens, but only {positions} positions: tokenize with max_length={positions}")


def check_same_shape(name: str, tensor: Tensor, shape: tuple[int, ...], kind: str = "numbers") -> None:
    """Refuse what goes with the input unless it is a tensor of this kind with the input's shape, (B, S)."""
    check_tensor(name, tensor, kind)
    if tensor.shape != shape:
        raise ValueError(f"{name} must have the shape {tuple(shape)} of the input, got {tuple(tensor.shape)}")


def checked_mask(
    input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None, config
) -> Tensor | None:
    """Check what the encoder is called with, (B, S) each; return the attention_mask, None where it hides nothing.

    ValueError for ids that are in no table and for a mask that leaves a row nothing. Values are read from the device
    once.
    """
    if torch.compiler.is_compiling():
        return attention_mask
    check_ids("input_ids", input_ids)
    types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
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
    """Refuse ids that are no row of a table of this size."""
    for limit in (lowest, highest):
        if not 0 <= limit < size:
            raise ValueError(f"{name} hold {limit}, outside 0 … {size - 1}: the table has {size} entries")


def check_mask(name: str, mask: Tensor) -> None:
    """Check the values of a mask, except while torch traces: there are none yet."""
    check_tensor(name, mask)
    if not torch.compiler.is_compiling():
        check_mask_facts(name, *torch.stack(mask_facts(mask)).tolist())


def mask_facts(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Whether a mask holds NaN or less than 0, and whether each of its rows leaves a token to see."""
    return (~(mask >= 0)).any(), (mask != 0).any(dim=-1).all()


def check_mask_facts(name: str, is_other, every_row_sees) -> None:
    """Refuse a mask with NaN, one to be added to scores (0 and −10,000), and one that leaves a row no token to see."""
    if is_other:
        raise ValueError(f"{name} holds NaN or less than 0: use 1 for a real token and 0 for padding")
    if not every_row_sees:
        raise ValueError(f"{name} masks every token of a row: leave at least one 1 in each")


def check_attention_mask(attention_mask: Tensor, query: Tensor, key: Tensor) -> None:
    """Refuse a mask unless it broadcasts to scores (…, S, T) and leaves each query a key to see."""
    check_mask("attention_mask", attention_mask)
    leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    shape = (*leading, query.size(-2), key.size(-2))
    sizes = zip(reversed(attention_mask.shape), reversed(shape), strict=False)
    if attention_mask.dim() > len(shape) or any(size not in (1, wanted) for size, wanted in sizes):
        found = tuple(attention_mask.shape)
        raise ValueError(f"attention_mask of shape {found} does not fit scores of shape {shape}")


# Texts, vocabularies, labels


def check_string(text) -> None:
    """Refuse what is no string, with a TypeError."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}: pass one string or a list")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"text has {len(text):,} characters: pass parts of at most {MOST_CHARACTERS:,}")


def check_texts(texts: Sequence[str]) -> None:
    """Refuse no texts and an empty one; TypeError for what is no list of strings."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        kind = type(texts).__name__
        raise TypeError(f"texts must be a list of strings, got {kind}: wrap one text in a list")
    if not texts:
        raise ValueError("got an empty list: pass one text or more")
    for number, text in enumerate(each_text(texts)):
        if not text.strip():
            raise ValueError(f"text {number} is empty, so there is nothing to read in it: leave it out")


def each_text(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts of a list or stream; TypeError for anything else, ValueError where there is no text at all."""
    if isinstance(texts, (str, Mapping)) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be a list or stream of strings, got {type(texts).__name__}")
    number = -1
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} must be a string, got {type(text).__name__}")
        yield text
    if number < 0:
        raise ValueError("got no text: pass one or more, in a list or in a stream that has not been read before")


def as_pairs(texts, pairs) -> list[tuple]:
    """(text, pair) for each text of one or a list, pair None if there are none; ValueError for unequal counts."""
    texts, pairs = ([item] if isinstance(item, str) else item for item in (texts, pairs))
    if not isinstance(texts, (list, tuple)):
        raise TypeError(f"texts must be a string or a list of strings, got {type(texts).__name__}")
    pairs = [None] * len(texts) if pairs is None else pairs
    if not texts or len(texts) != len(pairs):
        counts = f"{len(texts)} texts and {len(pairs)} pairs"
        raise ValueError(f"got {counts}: pass one text or more, and a pair for each")
    return list(zip(texts, pairs, strict=True))


def check_max_length(max_length: int, special: int, text: int = 0) -> None:
    """Refuse a length without room for so many special tokens and tokens of text."""
    check_size("max_length", max_length, 0)
    if max_length < special + text:
        needed = f"{special} special tokens" + (f" and {text} of text" if text else "")
        raise ValueError(f"max_length={max_length} is too small for {needed}: use {special + text} or more")


def check_vocabulary(vocab: Mapping[str, int]) -> None:
    """Refuse a vocabulary that lacks a special token or gives two tokens one id; TypeError for no dictionary."""
    if not isinstance(vocab, Mapping):
        kind = type(vocab).__name__
        raise TypeError(f"the vocabulary must be a dictionary, token to id, got {kind}: number its tokens")
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise ValueError(f"the vocabulary lacks {', '.join(missing)}: pass BERT's whole, token to id")
    for token, token_id in vocab.items():
        if not is_integer(token_id) or token_id < 0:
            raise ValueError(f"the vocabulary gives {token!r} the id {token_id!r}: ids are whole numbers from 0")
    several = [token_id for token_id, tokens in Counter(vocab.values()).items() if tokens > 1]
    if several:
        raise ValueError(f"the vocabulary gives several tokens the id {several[0]}: each needs one of its own")


def vocabulary_of(tokenizer) -> Mapping[str, int]:
    """Return a tokenizer's vocabulary, token to id; TypeError for anything that turns no text into ids."""
    check_is_tokenizer(tokenizer)
    has_vocab = inspect.getattr_static(tokenizer, "vocab", None) is not None  # those in Python have get_vocab alone
    return tokenizer.vocab if has_vocab else tokenizer.get_vocab()


def check_is_tokenizer(tokenizer) -> None:
    """Refuse with a TypeError what cannot be called or has no vocabulary, whose dictionary is not made here."""
    static = [inspect.getattr_static(tokenizer, name, None) for name in ("vocab", "get_vocab")]
    if not callable(tokenizer) or static == [None, None]:
        kind = type(tokenizer).__name__
        raise TypeError(f"tokenizer must be a WordPieceTokenizer or transformers' own, got {kind}")


def has_rows_for(tokens: int, rows: int, multiple: int = 8) -> bool:
    """Return whether a table of embeddings has a row for each token, and spare ones up to a multiple, for speed.

    Models in the wild have up to 1,024 to spare, and never as many as they use; not all of them a multiple of 8.
    """
    return tokens == rows or (rows % multiple == 0 and 0 < rows - tokens <= min(SPARE, tokens))


def check_vocabulary_size(vocab: Mapping[str, int], vocab_size: int) -> None:
    """Refuse a vocabulary whose ids are not those of the model; the error has both sizes."""
    ids = set(vocab.values())
    if ids != set(range(len(ids))) or not has_rows_for(len(ids), vocab_size):
        last = max(ids, default=None)
        sizes = f"{len(ids)} tokens with ids up to {last}, and the model's vocab_size is {vocab_size}"
        raise ValueError(f"the tokenizer has {sizes}: take both from one checkpoint with its vocabulary")


def check_tokenizer(tokenizer, vocab_size: int) -> None:
    """Refuse a tokenizer whose vocabulary is not the model's; TypeError for what turns no text into ids.

    The ids are compared once for each tokenizer, and its vocabulary is made no second time: either takes longer than a
    hundred texts.
    """
    check_is_tokenizer(tokenizer)
    if COMPARED.get(tokenizer) != vocab_size:
        check_vocabulary_size(vocabulary_of(tokenizer), vocab_size)
        COMPARED[tokenizer] = vocab_size


def check_labels(labels: Sequence[int], num_labels: int) -> None:
    """Refuse a label that is none of the model's classes, and name its text; TypeError for no whole number."""
    for number, label in enumerate(labels):
        if not isinstance(label, Integral):
            found = f"got {type(label).__name__}: {label!r:.80} of text {number}"
            raise TypeError(f"labels must be whole numbers, {found}: int(label)")
        if not 0 <= label < num_labels:
            classes = f"the classes 0 … {num_labels - 1} of the model"
            raise ValueError(f"label {label!r} of text {number} is outside {classes}")


def check_finite(loss: float, step: int, learning_rate: float) -> None:
    """Refuse a loss that is infinite or not a number, with a FloatingPointError that names step and remedy."""
    if not math.isfinite(loss):
        found = f"the loss is {loss} at step {step}, with a learning rate of {learning_rate:.2g}"
        raise FloatingPointError(f"{found}: train again with a lower one (2e-5 … 1e-4 suits BERT)")
