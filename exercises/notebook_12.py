"""Checks for the exercises of notebook 12."""

from functools import cache
from types import SimpleNamespace

import torch
from torch import Tensor
from transformers import BertConfig, BertLMHeadModel, MinPLogitsWarper

from exercises import (
    Hint,
    as_shape,
    as_tensor,
    call,
    climb,
    close,
    exercise,
    expect,
    expect_function,
    expect_tensor,
)
from exercises.arrays import run_on_copies
from exercises.notebook_04 import Parts, returned_pair

B, T, S, H, A = 2, 5, 7, 48, 6


@exercise("12.1")
def shapes_across(answer):
    """Shapes of query, key, weights and output of cross-attention."""
    expect(isinstance(answer, (tuple, list)) and len(answer) == 4, "Give four shapes.")
    names = ("query_shape", "key_shape", "weights_shape", "output_shape")
    query, key, weights, output = (as_shape(one, name) for one, name in zip(answer, names, strict=True))
    D = H // A
    expect((query, key) != ((B, A, S, D), (B, A, T, D)), "Turned round: who asks, the text or the source?")
    expect(query != (B, T, A, D), "query: exchange tokens and heads, so that each head has a matrix (T, D).")
    expect(query != (B, T, H), "query: that is before the heads are split; (B, A, T, D) after it.")
    expect(query == (B, A, T, D), "query: the text asks, T tokens of it, in A heads of D = H / A numbers.")
    expect(key != (B, A, T, D), "key: the source is asked, and it has S tokens.")
    expect(key == (B, A, S, D), "key: like the query, but with a vector for each token of the source.")
    expect(weights != (B, A, T, T), "weights: these would be the text's own; here the keys are the source's.")
    expect(weights != (B, A, S, T), "weights: a row for each query, a column for each key.")
    expect(weights == (B, A, T, S), "weights: in each head a row for each query and a column for each key.")
    expect(output != (B, S, H), "output: the source gives the values, but there is one sum for each query.")
    expect(output == (B, T, H), "output: a vector of H numbers for each token of the text.")
    return "Only the weights know both lengths."


@cache
def official_across(seed: int, heads: int, sizes: tuple[int, int]) -> list[tuple]:
    """Of each layer of a random official decoder: its parts, what asks, the source, its mask, weights and output."""
    torch.manual_seed(seed)
    size = {"hidden_size": 8 * heads, "num_attention_heads": heads, "num_hidden_layers": 2, "vocab_size": 20}
    config = BertConfig(
        **size, intermediate_size=16, is_decoder=True, add_cross_attention=True, initializer_range=0.5
    )
    config._attn_implementation = "eager"
    model, seen = BertLMHeadModel(config).eval(), []
    for layer in model.bert.encoder.layer:
        layer.crossattention.self.query.register_forward_hook(lambda _, given, __: seen.append(given[0]))
        layer.crossattention.output.dense.register_forward_hook(lambda _, __, made: seen.append(made))
    text, source = torch.randint(20, (2, sizes[0])), torch.randn(2, sizes[1], 8 * heads)
    mask = torch.ones(2, sizes[1]).long()
    mask[1, 2:] = 0
    with torch.no_grad():
        given = {"encoder_hidden_states": source, "encoder_attention_mask": mask}
        weights = model(text, **given, output_attentions=True, use_cache=False).cross_attentions
    return [
        (
            parts_of(layer.crossattention, heads),
            seen[2 * number],
            source,
            mask,
            weights[number],
            seen[2 * number + 1],
        )
        for number, layer in enumerate(model.bert.encoder.layer)
    ]


def parts_of(across, heads: int) -> Parts:
    """The weights of an official layer's cross-attention, in the parts that exercise 4.5 uses."""
    parts = Parts(8 * heads, heads)
    parts.load(SimpleNamespace(attention=across))
    return parts


ACROSS_HINTS = {
    "weights": "They are softmax(query · keyᵀ / √D) in each head: view(B, length, A, D), then transpose(1, 2); the "
    "mask (B, S) hides keys, from every head and query, as (B, 1, 1, S).",
    "output": "The weights are right. The values come from the source; multiply, exchange heads and tokens, join the "
    "heads with reshape, and apply attention.output.",
}


@exercise("12.2", points=3)
def write_cross_attention(answer):
    """Queries from the text, keys and values from the source, as in every layer of an official decoder."""
    expect_function(answer)
    for number, heads, sizes in ((0, 3, (4, 6)), (1, 2, (5, 5))):
        for layer, across in enumerate(official_across(number, heads, sizes)):
            parts, text, source, mask, weights, output = across
            copies = text.clone(), source.clone(), mask.clone()
            found = returned_pair(call(answer, parts, *copies))
            unaltered = all(torch.equal(*pair) for pair in zip(copies, (text, source, mask), strict=True))
            expect(unaltered, "It alters what it is given: work on new tensors.")
            expect(
                isinstance(found, (tuple, list)) and len(found) == 2,
                "Return two: the output and the weights.",
            )
            sizes = [tuple(getattr(one, "shape", ())) for one in found]
            expect(
                sizes != [tuple(weights.shape), tuple(output.shape)],
                "The two results are turned round: the output first, then the weights.",
            )
            name_the_mistake(found[1], across)
            rungs = [("weights", found[1], weights), ("output", found[0], output)]
            climb([(f"{name} of layer {layer}", *pair) for name, *pair in rungs], hints_for(layer))
    parts, text, source, _, _, _ = across
    _, unmasked = returned_pair(call(answer, parts, text, source))
    wanted = weights_of(parts, text, source)
    expect(close(unmasked, wanted, 1e-4), "Without a mask every token of the source can be seen.")
    return "The official one, in both layers, padding of the source included."


def hints_for(layer: int) -> dict[str, str]:
    """The hints under the names of a layer's rungs."""
    return {f"{name} of layer {layer}": hint for name, hint in ACROSS_HINTS.items()}


def weights_of(
    parts: Parts, asks: Tensor, asked: Tensor, mask: Tensor | None = None, divisor: float | None = None
):
    """Attention weights (B, A, S, T) between two texts, of all heads."""
    query, key = (
        part(states).unflatten(-1, (parts.num_heads, -1)).transpose(1, 2)
        for part, states in ((parts.query, asks), (parts.key, asked))
    )
    scores = query @ key.mT / (divisor or query.size(-1) ** 0.5)
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, None] == 0, -torch.inf)
    return scores.softmax(dim=-1)


def name_the_mistake(found, across: tuple) -> None:
    """`Hint` for weights of a usual kind of mistake."""
    parts, text, source, mask, right, _ = across
    if not isinstance(found, Tensor):
        raise Hint(f"The weights, returned second, should be a torch tensor, not a {type(found).__name__}.")
    swapped = found.shape == right.mT.shape != right.shape
    expect(
        not swapped, "The weights are turned round: the text asks, so there is a row for each of its tokens."
    )
    itself = (*right.shape[:2], text.size(1), text.size(1))
    expect(
        found.shape == right.shape or found.shape != itself,
        "The text looks at itself: the keys come from the source.",
    )
    expect(
        found.shape != right[:, 0].shape,
        "The weights of all heads in one: each head has its own, (B, A, T, S).",
    )
    expect(
        found.shape != right.shape or not close(found.sum(-2), torch.ones(right.mean(-2).shape), 1e-4),
        "The softmax runs over the queries: each query shares out 1 among the keys, dim=-1.",
    )
    expect(
        found.shape != right.shape
        or close(right, weights_of(parts, text, source), 1e-4)
        or not close(found, weights_of(parts, text, source) * mask[:, None, None], 1e-4),
        "The mask comes too late: hide the scores before the softmax, so that the rows sum to 1.",
    )
    wrong = {
        "The text looks at itself: the keys come from the source.": (text, text, None, None),
        "The source asks: the queries come from the text.": (source, text, None, None),
        "The mask is not used: it hides the padding of the source.": (text, source, None, None),
        "The scores are not divided by √D.": (text, source, mask, 1.0),
        "The scores are divided by √H: a head has D = H / A numbers.": (
            text,
            source,
            mask,
            text.size(-1) ** 0.5,
        ),
    }
    for hint, given in wrong.items():
        expect(not close(found, weights_of(parts, *given), 1e-4), hint)


END = 2
LESSONS = (  # start, padding, texts
    (1, 0, [[7, 8, 9, END], [5, END, 0, 0]]),
    (6, 1, [[3, END, 1], [0, 4, END], [END, 1, 1]]),
    (1, 0, [[9, 8, 7, 6, 5, END]]),
)


@exercise("12.3", points=2)
def lessons(answer):
    """What the decoder is given, and what it is asked for: the text a place later, and the text."""
    expect_function(answer)
    for start, pad, rows in LESSONS:
        texts = torch.tensor(rows)
        found = run_on_copies(answer, texts, start, pad)
        expect(
            isinstance(found, (tuple, list)) and len(found) == 2, "Return two: decoder_input_ids and labels."
        )
        given, labels = (
            expect_tensor(as_tensor(one), texts.shape, name)
            for one, name in zip(found, ("The input", "The labels"), strict=True)
        )
        expect(not given.is_floating_point(), "The input holds ids: an embedding takes whole numbers only.")
        kept = labels.dtype == texts.dtype
        expect(
            kept,
            f"The labels should be {texts.dtype}, as the texts are: F.cross_entropy takes no {labels.dtype}.",
        )
        real = texts != pad
        wanted = torch.cat([torch.full_like(texts[:, :1], start), texts[:, :-1]], dim=1)
        expect((given != -100).all(), "The input holds −100: return the input first, the labels second.")
        expect(
            not torch.equal(given[real], texts[real]),
            "The input is the text itself: each token sees its own answer.",
        )
        expect((given[:, 0] == start).all(), "The first thing the decoder sees is the start token.")
        later = real[:, 1:]
        ahead = torch.equal(labels[:, :-1][later], texts[:, 1:][later])
        expect(
            not ahead or torch.equal(texts[:, :-1][later], texts[:, 1:][later]),
            "The labels are shifted too: one shift is enough, in the input.",
        )
        expect(
            torch.equal(given[real], wanted[real]),
            "The input is the start token, then the text without its last place.",
        )
        expect(
            (labels[real] != -100).all(),
            "A real token is not asked for: only `pad` is padding, and the end token is to be learned too.",
        )
        expect(
            (labels[~real] == -100).all(), "Padding is asked for: −100 there tells the loss to pass over it."
        )
        expect(
            torch.equal(labels[real], texts[real]), "The labels are the text, with −100 in place of padding."
        )
    return "Every token of the text is a lesson, and one pass gives them all."


@exercise("12.4", points=2)
def best_continuations(answer):
    """The K best continuations over all beams: their scores, the beams they continue, and the tokens."""
    expect_function(answer)
    for spread, K, V in ((2.0, 2, 5), (0.1, 3, 7), (1.0, 4, 6)):  # one beam far ahead, none, some
        draw = torch.Generator().manual_seed(K)
        scores = -spread * torch.arange(K) - torch.rand(K, generator=draw)
        steps = (torch.randn(K, V, generator=draw) * 2).log_softmax(dim=-1)
        found = run_on_copies(answer, scores, steps)
        expect(isinstance(found, (tuple, list)) and len(found) == 3, "Return three: scores, beams, tokens.")
        found = [
            expect_tensor(as_tensor(one), (K,), name)
            for one, name in zip(found, ("The scores", "The beams", "The tokens"), strict=True)
        ]
        total = scores[:, None] + steps
        right, places = total.flatten().topk(K)
        if not close(found[0].sort(descending=True).values, right, 1e-4):
            for hint, wrong in wrong_continuations(scores, steps).items():
                expect(not close(found[0], wrong, 1e-4), hint)
        expect(
            close(found[0].sort(descending=True).values, right, 1e-4),
            f"Of all {K} · {V} sums of a beam's score and a token's log-probability the largest is {right[0]:.3f}, and "
            f"the number {K} is {right[-1]:.3f}. Yours go from {found[0].max():.3f} to {found[0].min():.3f}.",
        )
        expect(close(found[0], right, 1e-4), "The best comes first: sort them.")
        whole = not any(one.is_floating_point() for one in found[1:])
        expect(
            whole,
            f"Beams and tokens are whole numbers, to be used as an index: place // {V}, not place / {V}.",
        )
        expect(
            torch.equal(found[1].double(), (places // V).double()),
            f"The beams: a place in the flattened (K, V) is in row place // V, here V = {V}.",
        )
        expect(
            torch.equal(found[2].double(), (places % V).double()),
            f"The tokens: a place in the flattened (K, V) is in column place % V, here V = {V}.",
        )
    return "Beam search is this step, again and again, with the texts that have ended put aside."


def wrong_continuations(scores: Tensor, steps: Tensor) -> dict[str, Tensor]:
    """The scores that usual mistakes give, each with its hint."""
    K = len(scores)
    total = scores[:, None] + steps
    return {
        "Each beam has been continued once: two continuations of one beam may both be among the best.": total.amax(
            dim=1
        ),
        "The scores so far are left out: a beam brings its own score.": steps.flatten().topk(K).values,
        "Log-probabilities are added, not multiplied.": (scores[:, None] * steps).flatten().topk(K).values,
        "These are probabilities: return the log-probabilities that were added.": total.flatten()
        .topk(K)
        .values.exp(),
        "That is the last token's own log-probability: a continuation's score is the sum.": steps.flatten()[
            total.flatten().topk(K).indices
        ],
        "These are the least likely: take the largest.": total.flatten().topk(K, largest=False).values,
        "Only the best beam is continued: the others may have better continuations.": total[scores.argmax()]
        .topk(K)
        .values,
    }


@exercise("12.5", points=2)
def keep_by_share_of_the_best(answer):
    """Min-p sampling: the tokens with at least p times the best one's share, as transformers' MinPLogitsWarper."""
    expect_function(answer)
    tried = []
    for seed, V, p in ((0, 5, 0.3), (1, 12, 0.1), (2, 40, 0.02)):
        logits = 2 * torch.randn(V, generator=torch.Generator().manual_seed(seed))
        found = expect_tensor(as_tensor(run_on_copies(answer, logits, p)), (V,))
        shares = logits.softmax(dim=0)
        official = MinPLogitsWarper(p)(None, logits[None].clone())[0]
        tried.append((found, official.softmax(dim=0), wrong_shares(logits, shares, official, p)))
    if not all(close(found, right, 1e-4) for found, right, _ in tried):
        for hint in tried[0][2]:  # a mistake explains all three, not one by coincidence
            expect(not all(close(found, wrong[hint], 1e-4) for found, _, wrong in tried), hint)
    for found, right, _ in tried:
        expect(
            close(found.sum(), 1.0, 1e-4),
            "The shares that remain should sum to 1: divide them by their sum, or set the other logits to −∞ "
            "before the softmax.",
        )
        expect(
            close(found, right, 1e-4),
            "Keep a token if its share is at least p times the largest share, and no other.",
        )
    return (
        "The same as transformers' MinPLogitsWarper. Sure of itself, it keeps few tokens, and in doubt many."
    )


def wrong_shares(logits: Tensor, shares: Tensor, official: Tensor, p: float) -> dict[str, Tensor]:
    """What usual mistakes give, each with its hint."""
    kept = official.isfinite()
    return {
        "Nothing has been left out: these are the shares of all tokens.": shares,
        "These are logits: return the shares, after a softmax.": official,
        "The limit is p times the largest share, not p itself.": logits.masked_fill(
            shares < p, -torch.inf
        ).softmax(dim=0),
        "The limit is meant for the shares: compare them, not the logits.": logits.masked_fill(
            logits < p * logits.max(), -torch.inf
        ).softmax(dim=0),
        "The limit is p *times* the largest share, not the largest share minus p.": logits.masked_fill(
            shares < shares.max() - p, -torch.inf
        ).softmax(dim=0),
        "Turned round: these are the tokens below the limit.": logits.masked_fill(kept, -torch.inf).softmax(
            dim=0
        ),
        "Divide by the sum: a second softmax, of shares, makes them nearly alike.": shares.masked_fill(
            ~kept, -torch.inf
        ).softmax(dim=0),
        "The shares that remain should sum to 1: divide them by their sum.": shares * kept,
    }
