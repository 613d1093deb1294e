"""Test a part on everything that later notebooks may pass to it, and compare it with ours."""

import re
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from transformers import BertConfig

from exercises.framework import CHANGES_INPUT, CUT_OFF, Hint, close, expect, expect_gradients, find_remedy, raised_words
from exercises.parts import PARTS, install
from utils.tokenization import word_pieces
from utils.weights import rename_weight

SIZES = {"H = 12 and 3 heads": (12, 3), "H = 20 and 5 heads": (20, 5)}
KINDS = {"float32": torch.float32, "float64": torch.float64}
BYPASSED = (
    "The values are right, but {path} is never called. Call it as a function, {path}(…). Code that uses its weights or "
    "its .forward bypasses the module, and then nobody can watch it at work, as later notebooks do."
)
VOCAB = ("fly", "flies", "fl", "##ies", "##y", "##ing", "f", "##l", "##i", "##e", "##s", "##n", "##g", "l", "é")
EXAMPLES = ("flies", "flying", "fly", "flyies", "lies", "f", "é", "flé", "x", "flix", "nf", "flieslies", "lgnies")


def try_part(name: str, function: Callable) -> None:
    """Raise `Hint` unless the function does what ours does wherever the model calls it."""
    {"word_pieces": try_word_pieces, "rename_weight": try_rename_weight}.get(name, try_on_tensors)(name, function)


def part_hint(situation: str, problem: str) -> Hint:
    """Return the hint for a part that is right in the exercise but not everywhere."""
    return Hint(f"Right so far, but as a part of BERT it also has to work {situation}, and there {problem}")


def try_word_pieces(name: str, function: Callable) -> None:
    """Compare words of known and unknown pieces with ours."""
    vocab = {piece: number for number, piece in enumerate(VOCAB)}
    for word in EXAMPLES:
        given = dict(vocab)
        found, wanted = function(word, given), word_pieces(word, vocab)
        expect(given == vocab, "Your function changes the vocabulary. Work on a copy of what you need.")
        if list(found) != wanted:
            raise part_hint(f"for “{word}” with the vocabulary {' '.join(VOCAB)}", f"it gives {found}, not {wanted}.")


def try_rename_weight(name: str, function: Callable) -> None:
    """Compare all names of a model of twelve layers, and two more of old checkpoints, with ours."""
    from transformers import BertModel  # here: it takes as long to import as torch

    with torch.device("meta"):
        names = [*BertModel(BertConfig()).state_dict(), "embeddings.position_ids", "embeddings.token_type_ids"]
    function = getattr(function, "itself", function)  # it may return None
    for official in names:
        if function(official) != rename_weight(official):
            raise part_hint(f"for {official}", f"it gives {function(official)!r}, not {rename_weight(official)!r}.")


def try_on_tensors(name: str, function: Callable) -> None:
    """Compare a module's outputs with and without the part, for several sizes, dtypes, masks and modes."""
    for size, (H, A) in SIZES.items():
        for kind, dtype in KINDS.items():
            for training in (False, True):
                module = random_module(name, H, A, dtype, training)
                cases = list(inputs(name, H, A, dtype))
                wanted = [run_and_watch(name, module, case) for _, case in cases]
                install(name, function, module)
                mode = "in training" if training else "in evaluation"
                for (situation, case), right in zip(cases, wanted, strict=True):
                    compare_part(name, module, case, right, f"{situation} ({size}, {kind}, {mode})")


def run_and_watch(name: str, module: nn.Module, case: tuple) -> tuple[list[Tensor], list[str]]:
    """Return the module's outputs, and the paths of its submodules that were called as functions."""
    called: dict[str, None] = {}
    hooks = [
        inner.register_forward_pre_hook(lambda *_, path=path: called.setdefault(path))
        for path, inner in module.named_modules(prefix="self")
        if inner is not module and not isinstance(inner, nn.Embedding)  # a table may be read row by row, as weight[ids]
    ]
    try:
        return outputs(name, module, case), [re.sub(r"\.(\d+)", r"[\1]", path) for path in called]
    finally:
        for hook in hooks:
            hook.remove()


def compare_part(name: str, module: nn.Module, case: tuple, wanted: tuple[list, list], situation: str) -> None:
    """Raise `Hint` unless one input gives the right outputs and gradients, and is left unchanged."""
    before = [item.clone() if isinstance(item, Tensor) else item for item in case]
    try:
        (found, called), (right, needed) = run_and_watch(name, module, case), wanted
    except Hint:
        raise
    except Exception as error:
        known = find_remedy(error)
        raise part_hint(situation, f"it raises {raised_words(error, bool(known))}. {known}".rstrip()) from error
    for item, was in zip(case, before, strict=True):
        same = not isinstance(item, Tensor) or torch.equal(item, was)
        expect(same, CHANGES_INPUT)
    if len(found) != len(right):
        raise part_hint(situation, f"it returns {len(found)} tensors, not {len(right)}.")
    for theirs, ours in zip(found, right, strict=True):
        if not isinstance(theirs, Tensor) or theirs.shape != ours.shape:
            shape = tuple(theirs.shape) if isinstance(theirs, Tensor) else f"a {type(theirs).__name__}"
            raise part_hint(situation, f"it returns {shape}, not {tuple(ours.shape)}.")
        if theirs.dtype != ours.dtype:
            raise part_hint(situation, f"it returns {theirs.dtype}: take the dtype from the inputs.")
        if not close(theirs, ours, 1e-4 if ours.dtype == torch.float32 else 1e-9):
            raise part_hint(situation, "the numbers differ.")
    sources = [item for item in (*case, *module.parameters()) if isinstance(item, Tensor) and item.requires_grad]
    expect_gradients(found[0], right[0], sources, CUT_OFF)
    for path in needed:
        expect(path in called, BYPASSED.format(path=path))


def random_module(name: str, H: int, A: int, dtype: torch.dtype, training: bool) -> nn.Module:
    """Return our module around a part, with random parameters: no bias is 0, and no gain is 1."""
    dropout = 0.0 if training else 0.5
    config = BertConfig(
        **{"hidden_size": H, "num_attention_heads": A, "intermediate_size": 2 * H, "num_hidden_layers": 2},
        **{"vocab_size": 31, "max_position_embeddings": 16, "hidden_dropout_prob": dropout},
        attention_probs_dropout_prob=dropout,
        pad_token_id=None,  # or nn.Embedding would keep gradients from the row of [PAD], which weight[ids] does not
    )
    module = PARTS[name].kind(config).to(dtype).train(training)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, dtype=dtype))
    return module


def masks(B: int, S: int) -> Iterator[tuple[str, Tensor | None]]:
    """Yield no mask, and masks that hide tokens at the end, at the beginning and in the middle."""
    yield "without a mask", None
    for where, hidden in (
        ("at the end", slice(S - 2, S)),
        ("at the beginning", slice(0, 2)),
        ("in the middle", slice(1, 2)),
    ):
        mask = torch.ones(B, S, dtype=torch.long)
        mask[0, hidden] = 0
        yield f"with padding {where}", mask


def inputs(name: str, H: int, A: int, dtype) -> Iterator[tuple[str, tuple]]:
    """Yield inputs for a part, each with a description of the situation."""
    for situation, (B, S) in {"for a batch of three": (3, 5), "for a batch of one": (1, 4)}.items():
        stream = torch.randn(B, S, H, dtype=dtype, requires_grad=True)
        ids, types = torch.randint(1, 31, (B, S)), torch.randint(0, 2, (B, S))
        if name == "attention_weights":
            yield from queries_and_keys(situation, B, S, H // A, A, dtype)
        elif name in ("split_heads", "feed_forward"):
            yield situation, (stream,)
        elif name == "embeddings":
            yield situation, (ids, types)
            yield f"{situation} with padding at the end", (ids * (torch.arange(S) < S - 2), types)
        else:
            for masked, mask in masks(B, S):
                yield f"{situation} {masked}", (ids, mask, types) if name == "encoder" else (stream, mask)


def queries_and_keys(situation: str, B: int, S: int, D: int, A: int, dtype) -> Iterator[tuple[str, tuple]]:
    """Yield queries and keys of one text, two texts and one head, with padding masks and causal masks."""
    query, key = (torch.randn(B, A, S, D, dtype=dtype, requires_grad=True) for _ in range(2))
    other = torch.randn(B, A, S + 2, D, dtype=dtype, requires_grad=True)
    yield f"{situation} without a mask", (query, key, None)
    yield f"{situation} with keys of another text", (query, other, None)
    yield f"{situation} with one matrix of queries and one of keys", (query[0, 0], key[0, 0], None)
    causal = torch.ones(S, S).tril()
    yield f"{situation} with a causal mask of 1.0 and 0.0", (query, key, causal)
    for _, mask in list(masks(B, S))[1:]:
        yield f"{situation} with a mask of padding", (query, key, mask[:, None, None])
        yield f"{situation} with a mask of True and False", (query, key, mask[:, None, None] != 0)


def outputs(name: str, module, case: tuple) -> list[Tensor]:
    """Return all the tensors that the module gives for an input."""
    part = PARTS[name]
    if name in ("attention_weights", "split_heads"):
        return [getattr(module, part.method)(*case)]
    if name in ("multi_head_attention", "encoder_layer"):
        return list(module(*case, output_attentions=True))
    if name == "encoder":
        found = module(*case, output_attentions=True, output_hidden_states=True)
        return [found.last_hidden_state, *found.hidden_states, *found.attentions]
    return [module(*case)]
