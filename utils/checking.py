"""The door: every complaint about what a caller passes, naming the thing, the value and the remedy.

The parts of the model check shapes only. What can be wrong with values is looked at here once, where the model is
called, and not while torch traces it (`torch.compile`, `torch.export`), when there are no values yet.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from numbers import Integral, Real
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PRECISIONS = ("F64", "F32", "F16", "BF16")  # safetensors' names
# tokenizers whose ids were found to be a model's: with which size and vocabulary
COMPARED = WeakKeyDictionary()

# Configurations and weights


SIZES = {  # the fields of a configuration that are counts, with the most that is believed
    "vocab_size": 10_000_000,
    "hidden_size": 100_000,
    "num_hidden_layers": 1_000,
    "num_attention_heads": 10_000,
    "intermediate_size": 1_000_000,
    "max_position_embeddings": 1_000_000,
    "type_vocab_size": 10_000,
}
PROBABILITIES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
MOST_PARAMETERS = 4_000_000_000  # 16 GB; BERT-large has 340 million


def require_config(config):
    """Return the configuration; ValueError, naming the field, if it is beyond a BERT encoder with learned positions."""
    position_type = getattr(config, "position_embedding_type", "absolute")
    if position_type != "absolute":
        raise ValueError(f'position_embedding_type="{position_type}" is not built here: use "absolute"')
    for field in ("is_decoder", "add_cross_attention"):
        if getattr(config, field, False):
            raise ValueError(f"{field}=True makes a decoder, and this is an encoder: use {field}=False")
    if heads := getattr(config, "pruned_heads", None):
        raise ValueError(f"pruned_heads={heads} is not built here: save the model with all its heads")
    sizes = {field: require_size(field, getattr(config, field), most) for field, most in SIZES.items()}
    V, H, L, _, I, *tables = sizes.values()  # noqa: E741 - the series' name for it
    if (parameters := H * (V + sum(tables)) + L * H * (4 * H + 2 * I)) > MOST_PARAMETERS:
        raise ValueError(
            f"this configuration has {parameters:,} weights, above {MOST_PARAMETERS:,}: make it smaller"
        )
    require_heads(H, sizes["num_attention_heads"])
    for field in PROBABILITIES:
        require_range(field, getattr(config, field, None) or 0, 0, 1)
    require_range("layer_norm_eps", config.layer_norm_eps, 1e-30, 1)
    require_range("initializer_range", config.initializer_range, 0, 100)
    pad_id = config.pad_token_id
    if pad_id is not None and not (is_whole(pad_id) and 0 <= pad_id < V):
        raise ValueError(f"pad_token_id={pad_id!r} is no id of the vocabulary, 0 … {V - 1}: use 0, or None")
    return config


def is_whole(number) -> bool:
    """Whether this is a whole number, of any library; True and False are none."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def require_size(name: str, size, most: int, least: int = 1) -> int:
    """Return a count; ValueError unless it is a whole number from `least` to `most`."""
    if not is_whole(size) or not least <= size <= most:
        raise ValueError(f"{name}={size!r:.80} must be a whole number from {least} to {most:,}")
    return int(size)


def require_range(name: str, number, low: float, high: float) -> None:
    """ValueError unless this is a number from `low` to `high`, which NaN is not."""
    if not isinstance(number, Real) or isinstance(number, bool) or not low <= number <= high:
        raise ValueError(f"{name}={number!r:.80} must be a number from {low:g} to {high:g}")


def require_heads(hidden_size: int, num_heads: int) -> int:
    """Return the number of heads; ValueError unless it divides the hidden size."""
    if num_heads < 1 or hidden_size % num_heads:
        sizes = f"hidden_size={hidden_size} is not divisible by num_attention_heads={num_heads}"
        raise ValueError(f"{sizes}: change one")
    return num_heads


def require_activation(name: str, known: Collection[str]) -> str:
    """Return the activation's name; ValueError, listing the known ones, for another."""
    if name not in known:
        raise ValueError(f'hidden_act="{name}" is not built here: use one of {", ".join(known)}')
    return name


def require_num_labels(num_labels: int) -> int:
    """Return the number of classes; ValueError for fewer than two, between which there is nothing to choose."""
    if num_labels < 2:
        raise ValueError(f"num_labels={num_labels}: a classifier needs two classes or more")
    return num_labels


def require_label_names(names: Sequence[str], num_labels: int) -> list[str]:
    """Return the names of the classes; ValueError unless there is one for each, and no name twice."""
    if isinstance(names, str) or len(names) != num_labels or len(set(names)) != num_labels:
        raise ValueError(f"labels={names!r:.80} must be {num_labels} different names, one a class")
    return [str(name) for name in names]


def require_head(found: int, wanted: int) -> None:
    """ValueError if a stored head distinguishes another number of labels than wanted."""
    if found != wanted:
        remedy = f"num_labels={found}, or from_checkpoint(…, num_labels={wanted}) with an untrained head"
        raise ValueError(f"the stored head has {found} labels, and {wanted} are wanted: ask for {remedy}")


def require_fit(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """ValueError that lists missing, unexpected and mis-shaped weights, unless names and shapes agree."""
    misshaped = [
        f"{name} {tuple(found[name].shape)} for {tuple(wanted[name].shape)}"
        for name in found.keys() & wanted.keys()
        if tuple(found[name].shape) != tuple(wanted[name].shape)
    ]
    problems = {
        "missing": wanted.keys() - found.keys(),
        "unexpected": found.keys() - wanted.keys(),
        "mis-shaped": misshaped,
    }
    lines = [f"{kind}: {', '.join(sorted(names))}" for kind, names in problems.items() if names]
    if lines:
        raise ValueError("weights do not fit the configuration; " + "; ".join(lines))


def require_once(name: str, found: Collection[str], place) -> None:
    """ValueError for a weight that is stored twice, so that nobody knows which is meant."""
    if name in found:
        raise ValueError(f"{place} holds {name} a second time: save the model again")


def require_precision(precisions: Mapping[str, str]) -> None:
    """ValueError for stored weights of whole numbers or of 8 bits, which mean something else than they say."""
    for name, precision in precisions.items():
        if precision not in PRECISIONS:
            known = ", ".join(PRECISIONS)
            raise ValueError(f"{name} is stored as {precision}, not as one of {known}: save it as float32")


def require_finite_weights(weights: Mapping[str, Tensor]) -> None:
    """ValueError for a weight with NaN or inf in it, or of no floating-point numbers."""
    for name, weight in weights.items():
        if not weight.is_floating_point() or weight.itemsize < 2:
            raise ValueError(
                f"{name} holds {weight.dtype}, no floating-point numbers: convert it with .float()"
            )
        if not weight.isfinite().all():
            raise ValueError(f"{name} holds NaN or inf: take the weights from before training went wrong")


# What goes into the model


def require_tensor(name: str, value, remedy: str = "") -> None:
    """TypeError unless this is a tensor, which lists, arrays, texts and a tokenizer's dictionary are not."""
    if not isinstance(value, Tensor):
        remedy = remedy or "torch.tensor([ids]) makes one, and a tokenizer's dictionary goes in as **batch"
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}: {remedy}")


def require_shapes(input_ids: Tensor, token_type_ids: Tensor, positions: int) -> None:
    """ValueError unless both are (B, S), not empty, and no longer than the model has positions."""
    if input_ids.dim() != 2 or 0 in input_ids.shape:
        shape = tuple(input_ids.shape)
        raise ValueError(f"input_ids must be (B, S), got {shape}: one sentence is a batch, ids[None]")
    for name, ids in (("input_ids", input_ids), ("token_type_ids", token_type_ids)):
        if ids.dtype not in (torch.int64, torch.int32):
            raise ValueError(f"{name} are of {ids.dtype}, not whole numbers: convert them with .long()")
    require_same_shape("token_type_ids", token_type_ids, input_ids.shape)
    if (S := input_ids.size(1)) > positions:
        raise ValueError(f"{S} tokens, but only {positions} positions: tokenize with max_length={positions}")


def require_input(
    input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None, config
) -> Tensor | None:
    """The attention_mask, or None where it hides nothing; ValueError for ids and masks that the encoder cannot take.

    All are (B, S), or TypeError for what is no tensor. The values come from the device in one read.
    """
    if torch.compiler.is_compiling():
        return attention_mask
    require_tensor("input_ids", input_ids)
    types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    require_tensor("token_type_ids", types)
    require_tensor("attention_mask", mask)
    require_shapes(input_ids, types, config.max_position_embeddings)
    require_same_shape("attention_mask", mask, input_ids.shape)
    facts = [*input_ids.aminmax(), *types.aminmax(), *mask_facts(mask), (mask != 0).all()]
    *limits, has_nan, all_rows_real, nothing_hidden = torch.stack([fact.long() for fact in facts]).tolist()
    require_entries("input_ids", limits[:2], config.vocab_size)
    require_entries("token_type_ids", limits[2:], config.type_vocab_size)
    require_real_tokens("attention_mask", has_nan, all_rows_real)
    return None if nothing_hidden else attention_mask


def require_same_shape(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """ValueError unless what goes with the input has its shape, (B, S)."""
    if tensor.shape != shape:
        raise ValueError(f"{name} must have the shape {tuple(shape)} of the input, got {tuple(tensor.shape)}")


def require_entries(name: str, limits: Sequence[int], size: int) -> None:
    """ValueError if the smallest or the largest id is no row of a table of this size."""
    for limit in limits:
        if not 0 <= limit < size:
            raise ValueError(f"{name} hold {limit}, outside 0 … {size - 1}: the table has {size} entries")


def require_attention_mask(attention_mask: Tensor, query: Tensor, key: Tensor) -> None:
    """ValueError unless the mask broadcasts to scores (…, S, T) and leaves each query a key to see."""
    leading = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    shape = (*leading, query.size(-2), key.size(-2))
    sizes = zip(reversed(attention_mask.shape), reversed(shape), strict=False)
    if attention_mask.dim() > len(shape) or any(size not in (1, wanted) for size, wanted in sizes):
        found = tuple(attention_mask.shape)
        raise ValueError(f"attention_mask of shape {found} does not fit scores of shape {shape}")
    if not torch.compiler.is_compiling():
        require_real_tokens("attention_mask", *mask_facts(attention_mask))


def mask_facts(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Whether a mask holds NaN, and whether each of its rows leaves a token to see."""
    return mask.isnan().any(), (mask != 0).any(dim=-1).all()


def require_real_tokens(name: str, has_nan, all_rows_real) -> None:
    """ValueError for a mask with NaN, and for one that leaves a row no token to see."""
    if has_nan:
        raise ValueError(f"{name} holds NaN: use 1 for a real token and 0 for padding")
    if not all_rows_real:
        raise ValueError(f"{name} masks every token of a row: leave at least one 1 in each")


# Texts, vocabularies and labels


def require_tokens(vocab: Mapping[str, int]) -> None:
    """Raise for what is no vocabulary: TypeError for no dictionary, ValueError for lacking tokens and equal ids."""
    if not isinstance(vocab, Mapping):
        kind = type(vocab).__name__
        raise TypeError(f"the vocabulary must be a dictionary, token to id, got {kind}: number its tokens")
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise ValueError(f"the vocabulary lacks {', '.join(missing)}: pass BERT's whole, token to id")
    tokens = {}
    for token, token_id in vocab.items():
        if not is_whole(token_id) or token_id < 0:
            raise ValueError(
                f"the vocabulary gives {token!r} the id {token_id!r}: ids are whole numbers from 0"
            )
        if tokens.setdefault(token_id, token) != token:
            both = f"{tokens[token_id]!r} and {token!r}"
            raise ValueError(
                f"the vocabulary gives {both} the id {token_id}: each token needs one of its own"
            )


def require_vocabulary(vocab: Mapping[str, int], vocab_size: int) -> None:
    """ValueError, with both sizes, unless the vocabulary's ids are those of the model."""
    ids = set(vocab.values())
    if ids != set(range(vocab_size)):
        last = max(ids, default=None)
        sizes = f"{len(ids)} tokens with ids up to {last}, and the model's vocab_size is {vocab_size}"
        raise ValueError(f"the tokenizer has {sizes}: take both from one checkpoint with its vocabulary")


def require_no_added_tokens(added: Collection[str], special: Mapping[str, str]) -> None:
    """ValueError for special tokens beyond BERT's five, and for one of them under another name."""
    wanted = {f"{token.strip('[]').lower()}_token": token for token in SPECIAL_TOKENS}
    named = [f"{name} {token!r}" for name, token in special.items() if wanted.get(name) != token]
    named += [f"added {token!r}" for token in added if token not in (*SPECIAL_TOKENS, *special.values())]
    if named:
        named = ", ".join(named)
        raise ValueError(
            f"the tokenizer has other special tokens than BERT's, {named}: use one with BERT's five"
        )


def require_tokenizer(tokenizer, vocab_size: int) -> None:
    """TypeError for what turns no text into ids; ValueError for a vocabulary that is not the model's.

    The ids are compared once for each tokenizer and size, and again when the vocabulary has grown or shrunk since, or
    is another dictionary.
    """
    facts = None
    with suppress(TypeError):  # from what has no vocabulary, or cannot be remembered
        vocab = vars(tokenizer).get("vocab")  # transformers' tokenizers build theirs anew at each look
        facts = (vocab_size, len(tokenizer if vocab is None else vocab), id(vocab))
        if COMPARED.get(tokenizer) == facts:
            return
    if not callable(tokenizer) or not isinstance(getattr(tokenizer, "vocab", None), Mapping):
        kind = type(tokenizer).__name__
        raise TypeError(f"tokenizer must be a WordPieceTokenizer or transformers' own, got {kind}")
    require_vocabulary(tokenizer.vocab, vocab_size)
    with suppress(TypeError):
        COMPARED[tokenizer] = facts


def require_known_ids(ids, tokens: dict[int, str]) -> None:
    """Raise ValueError naming the first id that is no key of `tokens`."""
    for token_id in ids:
        if int(token_id) not in tokens:
            raise ValueError(f"id {int(token_id)} is outside the vocabulary of {len(tokens)} tokens")


def require_string(text) -> str:
    """Return the text; TypeError if it is no string."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}: pass one string or a list")
    return text


def require_texts(texts: Sequence[str]) -> None:
    """ValueError for no texts or an empty one, TypeError for what is no list of strings."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        kind = type(texts).__name__
        raise TypeError(f"texts must be a list of strings, got {kind}: wrap one text in a list")
    if not texts:
        raise ValueError("got an empty list: pass one text or more")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} must be a string, got {type(text).__name__}")
        if not text.strip():
            raise ValueError(f"text {number} is empty, so there is nothing to read in it: leave it out")


def match_pairs(texts, pairs) -> list[tuple]:
    """(text, pair) for each text, pair None if there are none. ValueError for no texts or unequal counts."""
    texts, pairs = ([item] if isinstance(item, str) else item for item in (texts, pairs))
    if not isinstance(texts, (list, tuple)):
        raise TypeError(f"texts must be a string or a list of strings, got {type(texts).__name__}")
    pairs = [None] * len(texts) if pairs is None else pairs
    if not texts or len(texts) != len(pairs):
        counts = f"{len(texts)} texts and {len(pairs)} pairs"
        raise ValueError(f"got {counts}: pass one text or more, and a pair for each")
    return list(zip(texts, pairs, strict=True))


def room_for_text(max_length: int, special: int, least: int = 0) -> int:
    """How many of `max_length` ids the special tokens leave; ValueError if that is less than wanted."""
    if (room := max_length - special) < least:
        needed = f"{special} special tokens" + f" and {least} of text" * (least > 0)
        raise ValueError(f"max_length={max_length} is too small for {needed}: use {special + least} or more")
    return room


def require_labels(labels: Sequence[int], num_labels: int) -> None:
    """ValueError, naming the text, for a label that is none of the model's classes; TypeError for no whole number."""
    for number, label in enumerate(labels):
        if not isinstance(label, Integral):
            kind = type(label).__name__
            raise TypeError(
                f"labels must be whole numbers, got {kind}: {label!r:.80} of text {number}: int(label)"
            )
        if not 0 <= label < num_labels:
            classes = f"the classes 0 … {num_labels - 1} of the model"
            raise ValueError(f"label {label!r} of text {number} is outside {classes}")


# Training and search


def require_probability(probability: float) -> None:
    """ValueError unless a share of the words may be asked for: more than none, fewer than all."""
    if not isinstance(probability, Real) or isinstance(probability, bool) or not 0 < probability < 1:
        raise ValueError(f"probability={probability!r:.80} must lie between 0 and 1: BERT's is 0.15")


def require_words(words: Tensor) -> None:
    """ValueError unless some place holds a word, which can be asked for."""
    if not words.any():
        raise ValueError("these rows hold special tokens only, so no word can be asked for: use rows of text")


def require_finite(loss: float, step: int, learning_rate: float) -> None:
    """FloatingPointError, with the step and the remedy, for a loss that is infinite or not a number."""
    if not math.isfinite(loss):
        found = f"the loss is {loss} at step {step}, with a learning rate of {learning_rate:.2g}"
        raise FloatingPointError(f"{found}: train again with a lower one (2e-5 … 1e-4 suits BERT)")


def require_vectors(vectors, name: str = "vectors", size: int | None = None) -> Tensor:
    """Vectors of length 1 as (N, H) float32 on the CPU, whatever held them; ValueError for any others.

    `size` is the H that they must have, if that is known.
    """
    try:
        if isinstance(vectors, (list, tuple)):
            vectors = torch.stack([torch.as_tensor(vector) for vector in vectors])
        vectors = torch.as_tensor(vectors).detach().to("cpu", torch.float32).contiguous()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be numbers, (N, H), as embed() returns them ({error})") from error
    if vectors.dim() != 2 or not len(vectors) or vectors.size(1) != (size or vectors.size(1)):
        wanted = "(N, H) with one or more" if size is None else f"(Q, {size}) as the vectors are"
        raise ValueError(f"{name} must be {wanted}, got {tuple(vectors.shape)}: take them from embed()")
    if not vectors.isfinite().all():
        raise ValueError(f"{name} hold NaN or inf: look for what embedded them")
    if not torch.allclose(vectors.norm(dim=-1), torch.ones(len(vectors)), atol=1e-3):
        raise ValueError(f"{name} must have length 1, so that products are cosines: take them from embed()")
    return vectors


def require_queries(queries, size: int, k: int, total: int) -> Tensor:
    """Queries as `require_vectors` gives them; ValueError for another width, and for more neighbours than vectors."""
    queries = require_vectors(queries, "queries", size)
    if not is_whole(k) or not 1 <= k <= total:
        raise ValueError(f"k={k!r}, but there are {total} vectors to search: use k from 1 to {total}")
    return queries
