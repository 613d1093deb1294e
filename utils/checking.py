"""The door: every complaint about what a caller passes, naming the thing, the value and the remedy.

The parts of the model check shapes only. What can be wrong with values is looked at here once, where the model is
called, and not while torch traces it (`torch.compile`, `torch.export`), when there are no values yet.
"""

import math
from collections.abc import Collection, Sequence
from numbers import Integral

import torch
from torch import Tensor

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# Configurations and weights


def require_config(config):
    """Return the configuration; ValueError, naming the field, if it is beyond a BERT encoder with learned positions."""
    position_type = getattr(config, "position_embedding_type", "absolute")
    if position_type != "absolute":
        raise ValueError(f'position_embedding_type="{position_type}" is not built here: use "absolute"')
    for field in ("is_decoder", "add_cross_attention"):
        if getattr(config, field, False):
            raise ValueError(f"{field}=True makes a decoder, and this is an encoder: use {field}=False")
    return config


def require_heads(hidden_size: int, num_heads: int) -> int:
    """Return the number of heads; ValueError unless it divides the hidden size."""
    if hidden_size % num_heads:
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


def require_weight_names(missing, unexpected, misshaped) -> None:
    """Raise a ValueError that lists the weights which do not fit; return silently when there are none."""
    problems = {"missing": missing, "unexpected": unexpected, "mis-shaped": misshaped}
    lines = [f"{kind}: {', '.join(sorted(names))}" for kind, names in problems.items() if names]
    if lines:
        raise ValueError("weights do not fit the configuration; " + "; ".join(lines))


# What goes into the model


def require_shapes(input_ids: Tensor, token_type_ids: Tensor, positions: int) -> None:
    """ValueError unless both are (B, S), not empty, and no longer than the model has positions."""
    if input_ids.dim() != 2 or 0 in input_ids.shape:
        shape = tuple(input_ids.shape)
        raise ValueError(f"input_ids must be (B, S), got {shape}: one sentence is a batch, ids[None]")
    require_same_shape("token_type_ids", token_type_ids, input_ids.shape)
    if (S := input_ids.size(1)) > positions:
        raise ValueError(f"{S} tokens, but only {positions} positions: tokenize with max_length={positions}")


def require_input(
    input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None, config
) -> Tensor | None:
    """The attention_mask, or None where it hides nothing; ValueError for ids and masks that the encoder cannot take.

    All are (B, S). The values come from the device in one read.
    """
    if torch.compiler.is_compiling():
        return attention_mask
    types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    require_shapes(input_ids, types, config.max_position_embeddings)
    require_same_shape("attention_mask", mask, input_ids.shape)
    real = mask != 0
    facts = [*input_ids.aminmax(), *types.aminmax(), real.any(dim=-1).all(), real.all()]
    *limits, all_rows_real, nothing_hidden = torch.stack([fact.long() for fact in facts]).tolist()
    require_entries("input_ids", limits[:2], config.vocab_size)
    require_entries("token_type_ids", limits[2:], config.type_vocab_size)
    require_real_tokens(all_rows_real)
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
        require_real_tokens((attention_mask != 0).any(dim=-1).all())


def require_real_tokens(all_rows_real) -> None:
    """ValueError unless every row of a mask leaves a token to see."""
    if not all_rows_real:
        raise ValueError("attention_mask masks every token of a row: leave at least one 1 in each")


# Texts, vocabularies and labels


def require_special_tokens(vocab: dict[str, int]) -> None:
    """Raise ValueError naming the special tokens that a vocabulary lacks."""
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise ValueError(f"the vocabulary lacks {', '.join(missing)}: pass BERT's whole, token to id")


def require_vocabulary(vocab: dict[str, int], vocab_size: int) -> None:
    """ValueError, with both sizes, unless the vocabulary's ids are those of the model."""
    ids = set(vocab.values())
    if ids != set(range(vocab_size)):
        last = max(ids, default=None)
        sizes = f"{len(ids)} tokens with ids up to {last}, and the model's vocab_size is {vocab_size}"
        raise ValueError(f"the tokenizer has {sizes}: take both from one checkpoint with its vocabulary")


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
    """ValueError, naming the text, for a label that is none of the model's classes."""
    for number, label in enumerate(labels):
        if not isinstance(label, Integral) or not 0 <= label < num_labels:
            classes = f"the classes 0 … {num_labels - 1} of the model"
            raise ValueError(f"label {label!r} of text {number} is outside {classes}")


# Training and search


def require_finite(loss: float, step: int, learning_rate: float) -> None:
    """FloatingPointError, with the step and the remedy, for a loss that is infinite or not a number."""
    if not math.isfinite(loss):
        found = f"the loss is {loss} at step {step}, with a learning rate of {learning_rate:.2g}"
        raise FloatingPointError(f"{found}: train again with a lower one (2e-5 … 1e-4 suits BERT)")


def require_vectors(vectors: Tensor) -> None:
    """ValueError unless there are vectors, (N, H), and all of them have length 1."""
    if vectors.dim() != 2 or not len(vectors):
        shape = tuple(vectors.shape)
        raise ValueError(f"vectors must be (N, H) with one or more, got {shape}: embed some texts first")
    if not torch.allclose(vectors.norm(dim=-1), torch.ones(len(vectors)), atol=1e-3):
        raise ValueError("vectors must have length 1, so that products are cosines: take them from embed()")


def require_queries(queries: Tensor, size: int, k: int, total: int) -> None:
    """ValueError for queries of another width than the vectors, and for more neighbours than there are vectors."""
    if queries.dim() != 2 or queries.size(1) != size:
        raise ValueError(f"queries must be (Q, {size}) as the vectors are, got {tuple(queries.shape)}")
    if not 1 <= k <= total:
        raise ValueError(f"k={k}, but there are {total} vectors to search: use k from 1 to {total}")
