"""Checks for the exercises of notebook 12."""

import inspect
from copy import deepcopy
from functools import cache
from types import SimpleNamespace

import torch
from torch import Tensor
from transformers import BertConfig, BertLMHeadModel, MinPLogitsWarper

from exercises.arrays import run_on_copies
from exercises.attention import Parts, returned_pair
from exercises.comparison import expect_own, name_the_mistake
from exercises.framework import (
    CHANGES_INPUT,
    Hint,
    as_tensor,
    call,
    close,
    compare_stages,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
)
from exercises.mistakes import functions


@exercise("12.1", points=1)
def write_the_causal_mask(answer):
    """Check who may see whom in a text of T tokens, (T, T): True up to a token's own place."""
    expect_function(answer)
    expect_own(answer, "causal_mask", "compare the positions yourself.")
    own = getattr(inspect.unwrap(getattr(answer, "itself", answer)), "__code__", None)
    borrowed = own and "generate_square_subsequent_mask" in own.co_names
    expect(not borrowed, "This calls PyTorch's own mask. Instead, compare the positions yourself.")
    for T in (4, 7, 1, 600):
        mask = call(answer, T)
        kind = type(mask).__name__
        expect(isinstance(mask, Tensor), f"The mask should be a torch tensor, but it is a {kind}.")
        mask = expect_tensor(mask, (T, T), "The mask")
        expect(
            not mask.isinf().any(), "A mask with −∞ is meant to be added to the scores. Here a mask has True and False."
        )
        expect(((mask == 0) | (mask == 1)).all(), "A mask contains only True (may look) and False (may not).")
        seen, right = mask == 1, torch.ones(T, T).tril() == 1
        name_the_mistake(seen, right, WRONG_MASKS, (T,))
        expect(
            seen.equal(right), "Each row should be True from the first column up to the token's own, and no further."
        )
        numbers = (
            "The positions are right, but the mask has numbers. The next cell uses ~, which needs booleans. "
            "Compare the numbers with 1, using ==."
        )
        expect(mask.dtype == torch.bool, numbers)
    return "One mask serves every text of this length. From here on, the decoder is masked by yours."


WRONG_MASKS = functions(
    "12.1",
    "T",
    """
    torch.ones(T, T).triu(1).bool() | The mask is inverted: True is where a token may look, and False where it may not.
    torch.ones(T, T).triu().bool() | Here a token sees those after it. A row is a token that looks, a column one that is
        seen.
    torch.ones(T, T).tril(-1).bool() | A token may see itself, too: the diagonal is True.
    torch.ones(T, T).bool() | Every token sees every other. Hide the tokens that come later.
    torch.eye(T).bool() | Each token sees only itself. It may see all tokens before it, too.
    torch.ones(T, T).tril(1).bool() | Each token also sees the next one, which is the very token that it has to predict.
    """,
    globals(),
)


@cache
def official_across(seed: int, heads: int, D: int, sizes: tuple[int, int]) -> list[tuple]:
    """Return each official layer's parts, input, source, mask, weights and output, for a random decoder."""
    torch.manual_seed(seed)
    size = {"hidden_size": D * heads, "num_attention_heads": heads, "num_hidden_layers": 2, "vocab_size": 20}
    config = BertConfig(**size, intermediate_size=16, is_decoder=True, add_cross_attention=True, initializer_range=0.5)
    config._attn_implementation = "eager"
    model, seen = BertLMHeadModel(config).eval(), []
    for layer in model.bert.encoder.layer:
        layer.crossattention.self.query.register_forward_hook(lambda _, given, __: seen.append(given[0]))
        layer.crossattention.output.dense.register_forward_hook(lambda _, __, made: seen.append(made))
    text, source = torch.randint(20, (2, sizes[0])), torch.randn(2, sizes[1], D * heads)
    mask = torch.ones(2, sizes[1]).long()
    mask[0, : 2 * seed] = 0  # padding in front, for seed 1
    mask[1, 2:] = 0
    with torch.no_grad():
        given = {"encoder_hidden_states": source, "encoder_attention_mask": mask}
        weights = model(text, **given, output_attentions=True, use_cache=False).cross_attentions
    return [
        (parts_of(layer.crossattention, heads), seen[2 * number], source, mask, weights[number], seen[2 * number + 1])
        for number, layer in enumerate(model.bert.encoder.layer)
    ]


def parts_of(across, heads: int) -> Parts:
    """Return the weights of an official layer's cross-attention, in the parts that exercise 4.5 uses."""
    parts = Parts(across.self.query.in_features, heads)
    parts.load(SimpleNamespace(attention=across))
    return parts


ACROSS_HINTS = {
    "weights": "The weights are softmax(query · keyᵀ / √D) in each head: view(B, length, A, D), then "
    "transpose(1, 2). The "
    "mask (B, S) hides keys, from every head and query, as (B, 1, 1, S).",
    "output": "The weights are right. The values come from the source. Multiply, swap heads and tokens, join the "
    "heads with reshape, and apply attention.output.",
}


@exercise("12.2", points=4)
def write_cross_attention(answer):
    """Check cross-attention against every layer of an official decoder."""
    expect_function(answer)
    for setting in ((0, 3, 8, (4, 6)), (1, 2, 5, (5, 5))):
        for layer, across in enumerate(official_across(*setting)):
            parts, text, source, mask, weights, output = across
            copies = text.clone(), source.clone(), mask.clone()
            found = returned_pair(call(answer, parts, *copies))
            unaltered = all(torch.equal(*pair) for pair in zip(copies, (text, source, mask), strict=True))
            expect(unaltered, CHANGES_INPUT)
            expect(
                isinstance(found, (tuple, list)) and len(found) == 2, "Return two tensors: the output and the weights."
            )
            sizes = [tuple(getattr(one, "shape", ())) for one in found]
            expect(
                sizes != [tuple(weights.shape), tuple(output.shape)],
                "The two results are swapped: the output comes first, then the weights.",
            )
            name_the_mistake_across(found[1], across)
            stages = [("weights", found[1], weights), ("output", found[0], output)]
            compare_stages([(f"{name} of layer {layer}", *pair) for name, *pair in stages], hints_for(layer))
    parts, text, source, mask, _, _ = across
    for factor in (200, -200):  # scores from about -1,000 to 1,000
        _, found = returned_pair(call(answer, parts, text, factor * source, mask))
        hidden = found.masked_select(mask[:, None, None] == 0)
        hint = "Where all other scores are very low, padding gets weight. Hide its scores with −∞."
        expect(hidden.max() < 1e-6, hint)
    _, unmasked = returned_pair(call(answer, parts, text, source))
    wanted = weights_of(parts, text, source)
    expect(close(unmasked, wanted, 1e-4), "Without a mask, every token of the source is visible.")
    expect_both_learn(answer, parts, text, source)
    return "The official one, padding of the source included. From here on, the decoder looks across with yours."


def expect_both_learn(answer, parts: Parts, *texts: Tensor) -> None:
    """Raise `Hint` unless gradients reach the text, the source and all layers, so that decoder and encoder learn."""
    parts = deepcopy(parts).requires_grad_()
    given = [states.clone().requires_grad_() for states in texts]
    weights = weights_of(parts, *given)
    value = parts.value(given[1]).unflatten(-1, (parts.num_heads, -1)).transpose(1, 2)
    wanted = parts.output((weights @ value).transpose(1, 2).flatten(2))
    found, _ = returned_pair(call(answer, parts, *given))
    sources = {"hidden_states": given[:1], "source": given[1:]}
    sources |= {f"attention.{name}": [layer.weight] for name, layer in parts.named_children()}
    for name, tensors in sources.items():
        hint = f"The values are right, but the gradient of {name} is missing or incomplete, so it would not learn. "
        expect_gradients(found, wanted, tensors, f"{hint}Remove any detach, .data or torch.no_grad().")


def hints_for(layer: int) -> dict[str, str]:
    """Return the hints under the names of a layer's stages."""
    return {f"{name} of layer {layer}": hint for name, hint in ACROSS_HINTS.items()}


def weights_of(parts: Parts, asks: Tensor, asked: Tensor, mask: Tensor | None = None, divisor: float | None = None):
    """Return the attention weights (B, A, S, T) of all heads between two texts."""
    query, key = (
        part(states).unflatten(-1, (parts.num_heads, -1)).transpose(1, 2)
        for part, states in ((parts.query, asks), (parts.key, asked))
    )
    scores = query @ key.mT / (divisor or query.size(-1) ** 0.5)
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, None] == 0, -torch.inf)
    return scores.softmax(dim=-1)


def name_the_mistake_across(found, across: tuple) -> None:
    """Raise `Hint` for weights that a common mistake gives."""
    parts, text, source, mask, right, _ = across
    if not isinstance(found, Tensor):
        raise Hint(f"The weights, returned second, should be a torch tensor, not a {type(found).__name__}.")
    swapped = found.shape == right.mT.shape != right.shape
    expect(not swapped, "The weights are transposed. The queries come from the text, so each of its tokens has a row.")
    itself = (*right.shape[:2], text.size(1), text.size(1))
    expect(
        found.shape == right.shape or found.shape != itself, "The text looks at itself. The keys come from the source."
    )
    expect(found.shape != right[:, 0].shape, "The heads share their weights. Each head has its own, (B, A, T, S).")
    expect(
        found.shape != right.shape or not close(found.sum(-2), torch.ones(right.mean(-2).shape), 1e-4),
        "The softmax runs over the queries. The keys are the last dimension, dim=-1.",
    )
    expect(
        found.shape != right.shape
        or close(right, weights_of(parts, text, source), 1e-4)
        or not close(found, weights_of(parts, text, source) * mask[:, None, None], 1e-4),
        "The mask comes too late. Hide the scores before the softmax, so that the rows sum to 1.",
    )
    wrong = {
        "The text looks at itself. The keys come from the source.": (text, text, None, None),
        "The queries come from the source. They should come from the text.": (source, text, None, None),
        "The mask is not used. It hides the padding of the source.": (text, source, None, None),
        "The scores are not scaled. Divide them by √D.": (text, source, mask, 1.0),
        "The scores are divided by √H. A head has D = H / A numbers, so divide by √D.": (
            text,
            source,
            mask,
            text.size(-1) ** 0.5,
        ),
    }
    for hint, given in wrong.items():
        expect(not close(found, weights_of(parts, *given), 1e-4), hint)


STEPS = (  # texts so far, and the end token: rows that have ended, that end now, that go on
    ([[5, 4], [2, 3]], 0),
    ([[3, 1, 2], [2, 5, 5], [1, 1, 0]], 5),
    ([[5, 2], [3, 3]], 2),
    ([[1]], 2),
)


class NextScores:
    """A decoder made by hand: scores of the next token (B, V) that depend on the whole row of ids (B, T) so far."""

    def __init__(self, length: int):
        """Store the length of the texts so far."""
        self.length, self.calls = length, 0

    def __call__(self, ids):
        """Return the scores, all below 0; a `Hint` for ids that are no batch, or not the texts so far."""
        self.calls += 1
        batch = isinstance(ids, Tensor) and ids.dim() == 2
        expect(batch, "next_scores takes the ids of all rows together, a tensor (B, T).")
        whole = ids.size(1) >= self.length
        expect(whole, "Only part of the text is passed on. The next token depends on everything before it.")
        expect(ids.size(1) == self.length, "One step writes one token. The loop around it is ours.")
        best = (ids * torch.arange(1, ids.size(1) + 1)).sum(dim=1) % 6
        return torch.nn.functional.one_hot(best, 6) * 0.01 - torch.arange(6) * 0.001 - 5.0  # near ties: no draw finds


@exercise("12.3", points=2)
def one_greedy_step(answer):
    """Check that each text gets the token with the highest score, or `end` once it has ended."""
    expect_function(answer)
    alone = True
    for rows, end in STEPS:
        ids = torch.tensor(rows)
        given = ids.clone()
        model = NextScores(ids.size(1))
        found = answer(model, given, end)
        alone &= model.calls == 1
        kind = type(found).__name__
        expect(isinstance(found, Tensor), f"Return the texts as one torch tensor, not as a {kind}.")
        only = found.numel() == len(ids)
        expect(not only, "These are only the new tokens. Append them to the texts, with torch.cat.")
        found = expect_tensor(found, (len(ids), ids.size(1) + 1), "The texts")
        expect(found.dtype == ids.dtype, f"Ids are integers, so the texts should be {ids.dtype}.")
        expect(given.equal(ids), "Your function changes the ids in place. Make a new tensor, with torch.cat.")
        wanted = one_step(ids, end)
        name_the_mistake(found, wanted, WRONG_STEPS, (None, ids, end))
        shown = f"From {rows}, with end {end}, it should make {wanted.tolist()}"
        again = answer(NextScores(ids.size(1)), ids.clone(), end)
        drawn = (
            "Two calls give different results. A greedy step draws nothing: it takes the token with the highest score."
        )
        expect(found.equal(again), drawn)
        expect(found.equal(wanted), f"{shown}, not {found.tolist()}.")
    runs = "One run of the model serves all rows." if alone else "One run of the model could serve all rows at once."
    return f"{runs} From here on, the decoder writes with your step."


def one_step(ids: Tensor, end: int, fill: int | None = None, ended=None, sign: int = 1) -> Tensor:
    """Return one greedy step, and its usual mistakes: filled up with another token, other rows, other scores."""
    best = (sign * NextScores(ids.size(1))(ids)).argmax(dim=-1)
    ended = (ids == end).any(dim=1) if ended is None else ended
    return torch.cat([ids, best.masked_fill(ended, end if fill is None else fill)[:, None]], dim=1)


WRONG_STEPS = functions(
    "12.3",
    "next_scores, ids, end",
    """
    one_step(ids, end, ended=torch.zeros(len(ids)).bool()) | Rows that have ended keep writing. Fill them up with `end`.
    one_step(ids, end, ended=(ids == end).any().expand(len(ids))) | One row has ended, and the others are filled up,
        too. Each row ends separately.
    one_step(ids, end, fill=0)
    one_step(ids, 0) | The end token is fixed at 0. Use the argument `end`.
    one_step(ids, end, sign=-1) | This takes the token with the lowest score. Take the highest.
    one_step(ids, end).roll(1, dims=1) | The new token comes first. Append it to the text.
    """,
    globals(),
)


END = 2
LESSONS = (  # start, padding, texts
    (1, 0, [[7, 8, 9, END], [5, END, 0, 0]]),
    (6, 1, [[3, END, 1], [0, 4, END], [END, 1, 1]]),
    (1, 0, [[9, 8, 7, 6, 5, END]]),
)


@exercise("12.4", points=2)
def lessons(answer):
    """Check the decoder's input, the text shifted by one, and its labels, the text."""
    expect_function(answer)
    for start, pad, rows in LESSONS:
        texts = torch.tensor(rows)
        found = run_on_copies(answer, texts, start, pad)
        expect(
            isinstance(found, (tuple, list)) and len(found) == 2, "Return two tensors: decoder_input_ids and labels."
        )
        for one, name in zip(found, ("The input", "The labels"), strict=True):
            kind = type(one).__name__
            expect(isinstance(one, Tensor), f"{name} should be a torch tensor, but it is a {kind}.")
            expect_tensor(one, texts.shape, name)
        given, labels = found
        expect(not given.is_floating_point(), "The input should be ids, which are integers.")
        kept = labels.dtype == texts.dtype
        expect(kept, f"The labels should be {texts.dtype}, as the texts are: F.cross_entropy takes no {labels.dtype}.")
        real = texts != pad
        wanted = torch.cat([torch.full_like(texts[:, :1], start), texts[:, :-1]], dim=1)
        expect((given != -100).all(), "The input contains −100. Return the input first, then the labels.")
        expect(
            not torch.equal(given[real], texts[real]),
            "The input is the text itself, so each token sees its own answer. Shift it by one.",
        )
        expect((given[:, 0] == start).all(), "The input should begin with the start token.")
        expect(
            not torch.equal(labels[given != pad], given[given != pad]),
            "Look at each position: what is its input, and what is its label?",
            "The label of each position is its own input, so the model learns to copy. The labels have to "
            "come from the texts.",
        )
        ids = torch.tensor([start, pad, *texts.unique()])
        strange = given[~torch.isin(given, ids)].unique().tolist()
        expect(not strange, f"The input contains {strange}, but the texts have no such id. At padding, give {pad}.")
        later = real[:, 1:]
        ahead = torch.equal(labels[:, :-1][later], texts[:, 1:][later])
        expect(
            not ahead or torch.equal(texts[:, :-1][later], texts[:, 1:][later]),
            "The labels are shifted, too. Shift only the input.",
        )
        expect(
            torch.equal(given[real], wanted[real]),
            "The input is the start token, then the text without its last token.",
        )
        expect(
            (labels[real] != -100).all(),
            "A real token has no label. Only `pad` is padding; the end token has to be learned, too.",
        )
        expect((labels[~real] == -100).all(), "Padding has a label. Use −100 there, which the loss ignores.")
        expect(torch.equal(labels[real], texts[real]), "The labels should be the text, with −100 instead of padding.")
    return "Every token of the text is a lesson. From here on, the models learn from your lessons."


@exercise("12.5", points=1)
def keep_by_share_of_the_best(answer):
    """Check min-p sampling against transformers' MinPLogitsWarper."""
    expect_function(answer)
    tried = []
    drawn = [2 * torch.randn(V, generator=torch.Generator().manual_seed(seed)) for seed, V in enumerate((5, 12, 40))]
    for logits, p in zip(drawn, (0.3, 0.1, 0.02), strict=True):
        found = expect_tensor(as_tensor(run_on_copies(answer, logits, p)), logits.shape)
        official = MinPLogitsWarper(p)(None, logits[None].clone())[0]
        tried.append((found, official.softmax(dim=0), (logits, p)))
    if not all(close(found, right, 1e-4) for found, right, _ in tried):
        for hint, wrong in WRONG_SHARES:  # a mistake explains all three, not one by coincidence
            expect(not all(close(found, wrong(*given), 1e-4) for found, _, given in tried), hint)
    for found, right, _ in tried:
        expect(
            close(found.sum(), 1.0, 1e-4),
            "The remaining shares should sum to 1. Divide them by their sum, or set the other logits to −∞ "
            "before the softmax.",
        )
        expect(close(found, right, 1e-4), "Keep exactly the tokens whose share is at least p times the largest share.")
    found = as_tensor(run_on_copies(answer, torch.tensor([1.0, 3.0, 3.0]), 1.0))
    hint = "For the logits 1, 3, 3 and p = 1 the last two remain, with 0.5 each: *at least* p times the largest share."
    expect(close(found, [0.0, 0.5, 0.5], 1e-4), hint)
    return "The same as transformers' MinPLogitsWarper. Sure of itself, it keeps few tokens, and in doubt many."


def kept_where(logits: Tensor, keep: Tensor) -> Tensor:
    """Return the shares of the tokens that are kept."""
    return logits.masked_fill(~keep, -torch.inf).softmax(0)


def large(shares: Tensor, p: float) -> Tensor:
    """Return whether each share is at least p times the largest."""
    return shares >= p * shares.max()


WRONG_SHARES = functions(
    "12.5",
    "logits, p",
    """
    logits.softmax(0) | These are the shares of all tokens. Leave out the small ones.
    logits.masked_fill(~large(logits.softmax(0), p), -torch.inf) | These are logits. Return the shares, after a softmax.
    kept_where(logits, logits.softmax(0) >= p) | The limit is p times the largest share, not p itself.
    kept_where(logits, logits >= p * logits.max()) | The limit applies to the shares. Compare them, not the logits.
    kept_where(logits, logits.softmax(0) >= logits.softmax(0).max() - p) | The limit is p *times* the largest share, not
        the largest share minus p.
    kept_where(logits, ~large(logits.softmax(0), p)) | These are the tokens below the limit. Keep the others.
    kept_where(logits.softmax(0), large(logits.softmax(0), p)) | A second softmax, of the shares, makes them nearly
        equal. Divide by their sum.
    logits.softmax(0) * large(logits.softmax(0), p) | The remaining shares should sum to 1. Divide them by their sum.
    """,
    globals(),
)
