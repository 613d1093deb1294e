"""Checks for the exercises of notebook 07."""

from functools import cache

import torch

from exercises import Hint, close, exercise, expect, expect_function, expect_tensor
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer


def random_weights(L: int, A: int, S: int) -> torch.Tensor:
    """Seeded attention weights, (L, A, S, S)."""
    scores = torch.randn(L, A, S, S, generator=torch.Generator().manual_seed(7))
    return (2 * scores).softmax(dim=-1)


@exercise("7.1")
def entropy_of_a_row(answer):
    """The entropy of (1/2, 1/4, 1/8, 1/8) in bits."""
    try:
        number = float(answer)
    except (TypeError, ValueError, RuntimeError):
        raise Hint(f"The entropy is a number, but this is of type {type(answer).__name__}.") from None
    expect(not close(number, -1.75, 1e-3), "Almost: the logarithms are negative, so the sum needs a minus.")
    expect(not close(number, 2.0, 1e-3), "2 bits is the entropy of an even row; this one is narrower.")
    expect(not close(number, 1.2130, 1e-3), "That is in nats: use the logarithm to base 2 for bits.")
    expect(not close(number, 1.375, 1e-3), "There are two tokens with an eighth: count both.")
    expect(
        close(number, 1.75, 1e-3), "Add −w · log2(w) over the four weights; log2(1/2) = −1, log2(1/4) = −2."
    )
    return "An even row of four would have 2 bits."


@exercise("7.2")
def score_of_the_token_before(answer):
    """The mean of the diagonal below the main one, for each head."""
    expect_function(answer)
    weights = random_weights(2, 3, 5)
    result = expect_tensor(answer(weights.clone()), (2, 3))
    below = weights.diagonal(offset=-1, dim1=-2, dim2=-1)
    hints = {
        "That is the token after: a row belongs to the token that looks.": weights.diagonal(1, -2, -1),
        "That is what each token gives to itself: go one to the left of the diagonal.": weights.diagonal(
            0, -2, -1
        ),
    }
    for hint, wrong in hints.items():
        expect(not close(result, wrong.mean(-1)), hint)
        expect(not close(result, wrong.sum(-1) / 5), hint)
    expect(not close(result, below.sum(-1)), "This is the sum: take the mean.")
    expect(not close(result, below.sum(-1) / 5), "Divide by S − 1: the first token has none before it.")
    right = close(result, below.mean(-1))
    expect(right, "Average weights[..., i, i - 1] over i from 1 to S - 1, for each head alone.")
    return ""


@exercise("7.3")
def attention_rollout(answer):
    """Heads averaged, half identity mixed in, layers multiplied with the later one on the left."""
    expect_function(answer)
    weights = random_weights(3, 2, 4)
    result = expect_tensor(answer(weights.clone()), (4, 4))
    layers, eye = weights.mean(dim=1), torch.eye(4)
    mixed = [(layer + eye) / 2 for layer in layers]
    hints = {
        "The order is turned: each later layer multiplies from the left.": mixed[0] @ mixed[1] @ mixed[2],
        "The residual connection is missing: mix each matrix with the identity.": layers[2]
        @ layers[1]
        @ layers[0],
        "The layers are averaged: multiply their matrices.": sum(mixed) / 3,
        "Use matrix products (@), not products of entries (*).": mixed[0] * mixed[1] * mixed[2],
        "Half weights, half identity: divide by 2, so that rows sum to 1.": (layers[2] + eye)
        @ (layers[1] + eye)
        @ (layers[0] + eye),
        "This is the last layer alone: multiply with those below.": mixed[2],
    }
    for hint, wrong in hints.items():
        expect(not close(result, wrong), hint)
    rows = close(result.sum(-1), torch.ones(4))
    expect(rows, "The rows should sum to 1, since those of each layer's mixed matrix do.")
    right = close(result, mixed[2] @ mixed[1] @ mixed[0])
    expect(
        right,
        "Average the heads, take (weights + identity) / 2, and multiply from the first layer to the last.",
    )
    return "Rows sum to 1 in each factor, and so in the product."


@cache
def possessive_accuracy() -> torch.Tensor:
    """How often each head of the checkpoint takes "his" to its noun in the exercise's sentences, (L, A)."""
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()
    found = []
    for place in ("We saw {} yesterday.", "I often think of {} now."):
        for between in ("", "old ", "small red ", "very beautiful "):
            for noun in ("king", "house", "river", "garden", "teacher", "city"):
                found.append(takes_his_to(encoder, tokenizer, place.format(f"his {between}{noun}"), noun))
    return torch.stack(found).double().mean(dim=0)


@torch.inference_mode()
def takes_his_to(encoder, tokenizer, text: str, noun: str) -> torch.Tensor:
    """Whether "his" looks most at the noun, of all tokens but [CLS], [SEP] and itself, (L, A)."""
    ids = tokenizer(text)["input_ids"]
    his, key = (ids[0].tolist().index(tokenizer.vocab[word]) for word in ("his", noun))
    row = torch.cat(encoder(ids, output_attentions=True).attentions)[:, :, his].clone()
    row[..., [0, his, -1]] = -1
    return row.argmax(dim=-1) == key


@exercise("7.4")
def head_for_possessives(answer):
    """Layer and head that take "his" to its noun most often."""
    try:
        layer, head = (int(number) for number in answer)
    except (TypeError, ValueError, RuntimeError):
        raise Hint("Give two numbers, such as (3, 7): the layer and the head.") from None
    accuracy = possessive_accuracy()
    L, A = accuracy.shape
    exists = 0 <= layer < L and 0 <= head < A
    expect(exists, f"There are {L} layers and {A} heads, both counted from 0: {layer}-{head} is not there.")
    best, share = accuracy.max(), accuracy[layer, head]
    turned = layer < A and head < L and accuracy[head % L, layer % A] >= best - 0.015
    expect(not turned or share >= best - 0.015, "Turn it round: the layer first, then the head.")
    expect(
        share >= best - 0.015,
        f"Head {layer}-{head} is right in {share:.0%}, and there is a better one: take the mean of "
        "hits(possessives) over the sentences, and its largest entry.",
    )
    return f"Head {layer}-{head} is right in {share:.0%}."
