"""Checks for the exercises of notebook 02."""

import torch
from torch.nn import functional as F
from transformers import BertConfig

from exercises import (
    CUT_OFF,
    as_number,
    as_shape,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
)
from exercises.arrays import expect_trainable
from exercises.comparison import comparison
from utils.embeddings import Embeddings
from utils.support.checkpoint import load_config


@exercise("2.1")
def shape_of_hidden_states(answer):
    """Check that the answer is the shape of the embeddings of 4 sentences of 9 tokens."""
    config, shape = load_config(), as_shape(answer)
    H, V = config.hidden_size, config.vocab_size
    expect(shape != (4, 9), "That is the shape of the ids. What does each id become?")
    expect(shape not in ((9, H), (36, H)), "The batch axis is missing: (B, S, H).")
    expect(shape != (9, 4, H), "The batch comes first here: (B, S, H).")
    expect(shape != (4, 9, V), "V is the length of a one-hot vector, but the look-up gives dense vectors of length H.")
    expect(shape != (4, 9, 3 * H), "The three vectors are added, not concatenated.")
    expect(len(shape) == 3, f"The shape has three sizes, (B, S, H), but yours has {len(shape)}.")
    expect(
        shape[:2] == (4, 9),
        "The first two sizes are the same as for the ids: B sentences of S tokens, including padding.",
    )
    expect(shape[2] == H, "The last size is the length of a vector: config.hidden_size.")


TABLES = {  # B, S, P, H
    "B = 3, S = 5 and P = 8": (3, 5, 8, 4),
    "B = 1, S = 6 and P = 6": (1, 6, 6, 3),
    "B = 4, S = 2 and P = 9": (4, 2, 9, 5),
}


@exercise("2.2", points=2, sizes=TABLES)
def add_position_vectors(answer, B: int, S: int, P: int, H: int):
    """Check that the answer adds row s of the table to token s of every sentence."""
    expect_function(answer)
    generator = torch.Generator().manual_seed(3)
    words, table = (torch.randn(*shape, generator=generator) for shape in ((B, S, H), (P, H)))
    given = words.clone(), table.clone()
    try:
        result = answer(*given)
    except RuntimeError as error:
        expect("must match" not in str(error), f"{error}: take the rows of the table that S tokens need.")
        raise
    check_sum(words, table, result)
    unchanged = given[0].equal(words) and given[1].equal(table)
    expect(unchanged, "Your function changes its input in place. a + b makes a new tensor, but a += b does not.")
    expect_trainable(answer, lambda words, table: words + table[:S], words, table)
    return "Broadcasting over the batch is all it takes."


def check_sum(words: torch.Tensor, table: torch.Tensor, result) -> None:
    """Raise `Hint` unless row s of the table was added to token s of every sentence."""
    B, S, H = words.shape
    alone = "These are only the position vectors. Add them to the word vectors."
    expect(not close(result, table[:S]), alone)
    result = expect_tensor(result, (B, S, H), dtype=words.dtype)
    expect(not close(result, words), "The positions are missing: your result equals the input.")
    expect(not close(result, table[:S].expand(B, S, H)), alone)
    wrong = {"The first position is 0, but yours starts with 1.": table[1 : S + 1]}
    wrong |= {"The rows are in reverse order.": table[:S].flip(0)}
    wrong |= {"These are the last rows of the table. Take the first S.": table[-S:]}
    wrong |= {"This uses the index in the batch, but positions count tokens.": table[:B, None]}
    for hint, rows in wrong.items():
        fits = rows.shape[0] in (1, S) or rows.dim() == 3
        expect(not fits or close(words + rows, words + table[:S]) or not close(result, words + rows), hint)
    same = result - words
    each = (same - same[:, :1]).abs().max() > 1e-5
    expect(each, "Every token gets the same vector. Token s should get row s.")
    expect(close(result, words + table[:S]), "Token s of every sentence should get row s of the table.")


def layer_norm(x, gamma, beta, eps, dim=-1):
    """Return LayerNorm of x (B, S, H); with another `dim`, over other values."""
    mean, variance = x.mean(dim, keepdim=True), x.var(dim, unbiased=False, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * gamma + beta


def layer_norm_inputs(shape: tuple[int, int, int], eps: float) -> tuple:
    """Return x of this shape, with a small spread and a mean that is not 0, and γ, β and eps."""
    gamma = torch.arange(1.0, shape[-1] + 1)
    return 0.01 * (1 + torch.randn(shape)), gamma, gamma.flip(0) / 2, eps


def deviations(x):
    """Return the values without the mean of their vector."""
    return x - x.mean(-1, keepdim=True)


OVER = "normalise each token separately, over dim=-1."
comparison(
    "2.3",
    right=layer_norm,
    inputs=layer_norm_inputs,
    sizes={
        "H = 4 and eps = 1e-5": ((2, 3, 4), 1e-5),
        "H = 7 and eps = 1e-2": ((1, 5, 7), 1e-2),
        "H = 6 and eps = 1e-12": ((3, 1, 6), 1e-12),
    },
    hint="Subtract each token's mean, divide by the root of (variance + eps), then multiply by gamma and add beta.",
    forbidden=("This calls torch's own norm. Write it yourself, with means, variances and roots.", "layer_norm"),
    remark="BERT does this to every token, once here and twice in each layer.",
    mistakes=(
        (
            "The mean has lost its last dimension: keepdim=True makes it (B, S, 1), which fits (B, S, H).",
            lambda x, g, b, eps: x - x.mean(-1),
        ),
        ("γ and β are missing: multiply by gamma, then add beta.", lambda x, g, b, eps: layer_norm(x, 1, 0, eps)),
        ("γ is missing: multiply by gamma before you add beta.", lambda x, g, b, eps: layer_norm(x, 1, b, eps)),
        ("β is missing: add beta at the end.", lambda x, g, b, eps: layer_norm(x, g, 0, eps)),
        ("γ comes before β: multiply by gamma, then add beta.", lambda x, g, b, eps: layer_norm(x, 1, b, eps) * g),
        (
            "This divides by the variance. Divide by its root.",
            lambda x, g, b, eps: deviations(x) / (x.var(-1, unbiased=False, keepdim=True) + eps) * g + b,
        ),
        (
            "eps is outside the root. Add it to the variance, inside the root.",
            lambda x, g, b, eps: deviations(x) / (x.std(-1, unbiased=False, keepdim=True) + eps) * g + b,
        ),
        ("eps is missing: add it to the variance, inside the root.", lambda x, g, b, eps: layer_norm(x, g, b, 0)),
        ("eps is fixed. Use the argument eps.", lambda x, g, b, eps: layer_norm(x, g, b, 1e-5)),
        (
            "The variance is divided by H − 1 here, and LayerNorm divides by H: pass unbiased=False.",
            lambda x, g, b, eps: deviations(x) / (x.var(-1, keepdim=True) + eps).sqrt() * g + b,
        ),
        (
            "The mean is still in it: subtract it before you divide.",
            lambda x, g, b, eps: x / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt() * g + b,
        ),
        (
            "This divides by the root of the mean of the squares. The variance is the mean square of x minus its mean.",
            lambda x, g, b, eps: deviations(x) / (x.square().mean(-1, keepdim=True) + eps).sqrt() * g + b,
        ),
        (f"This normalises over the tokens; {OVER}", lambda x, g, b, eps: layer_norm(x, g, b, eps, dim=1)),
        (f"This normalises over the batch; {OVER}", lambda x, g, b, eps: layer_norm(x, g, b, eps, dim=0)),
        (f"This takes one mean for the whole tensor; {OVER}", lambda x, g, b, eps: layer_norm(x, g, b, eps, (0, 1, 2))),
    ),
)


BATCHES = {  # B, S, H
    "2 texts of 5 tokens and H = 8": (2, 5, 8),
    "3 texts of 4 tokens and H = 6": (3, 4, 6),
    "1 text of 1 token and H = 4": (1, 1, 4),
}


@exercise("2.4", points=3, sizes=BATCHES, part="embeddings")
def write_embeddings(answer, B: int, S: int, H: int):
    """Check that the answer is the forward of `Embeddings`: three rows added, then LayerNorm, then dropout."""
    expect_function(answer)
    config = BertConfig(vocab_size=31, hidden_size=H, num_attention_heads=1, max_position_embeddings=40)
    config.hidden_dropout_prob = 0.5
    generator = torch.Generator().manual_seed(3)
    module = Embeddings(config).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    ids = torch.randint(1, 31, (B, S), generator=generator)
    types = (torch.arange(S) >= S // 2).long().repeat(B, 1)
    given = ids.clone(), types.clone()
    try:
        result = answer(module, *given)
    except RuntimeError as error:
        expect("must match" not in str(error), f"{error}: take the position rows of the first S tokens only.")
        raise
    result = expect_tensor(result, (B, S, H), dtype=torch.float32)
    right = module(ids, types)
    for hint, wrong in wrong_embeddings(module, ids, types).items():
        expect(close(wrong, right) or not close(result, wrong, 1e-4), hint)
    expect(
        right.count_nonzero() == result.count_nonzero(),
        "Some numbers are 0 in evaluation mode. Call self.dropout, which knows the mode.",
    )
    expect(close(result, right, 1e-4), "Add three rows for each token, then self.layer_norm, then self.dropout.")
    unchanged = given[0].equal(ids) and given[1].equal(types)
    expect(unchanged, "Your function changes the ids or types in place. Make new tensors instead.")
    expect_gradients(result, right, list(module.parameters()), CUT_OFF)
    trained = answer(module.train(), ids.repeat(4, 1), types.repeat(4, 1))
    kept = trained != 0
    quiet = close(trained, right.repeat(4, 1, 1), 1e-4)
    expect(not quiet, "Nothing is dropped in training. Dropout is the last step, after LayerNorm.")
    expect(not kept.all(), "Dropout comes before LayerNorm here: it is the last step, after LayerNorm.")
    expect(
        close(trained[kept], 2 * right.repeat(4, 1, 1)[kept], 1e-4),
        "In training, self.dropout comes last, and only once.",
    )
    return "It is the first thing that BERT does with your text."


def wrong_embeddings(module, ids, types) -> dict[str, torch.Tensor]:
    """Return the results of common mistakes in evaluation mode, by hint."""
    word, kind = module.word_embeddings(ids), module.token_type_embeddings(types)
    table, norm, (B, S) = module.position_embeddings.weight, module.layer_norm, ids.shape
    place, whole = table[:S], word + kind + table[:S]
    norms = norm(word) + norm(place) + norm(kind)
    return {
        "The positions are missing: row 0 for the first token, row 1 for the second, and so on.": norm(word + kind),
        "The token types are missing. Their table is self.token_type_embeddings.": norm(word + place),
        "The words are missing: self.word_embeddings(input_ids).": norm(place + kind),
        "These are only the words. Add the position and the token type.": norm(word),
        "LayerNorm is missing: your result is the sum.": whole,
        "This normalises without γ and β. Call self.layer_norm, which has them.": F.layer_norm(whole, [whole.size(-1)]),
        "Each table is normalised separately. Add first, then normalise the sum.": norms,
        "LayerNorm comes after all three are added.": norm(word + place) + kind,
        "The first position is 0, but yours starts with 1.": norm(word + kind + table[1 : S + 1]),
        "Every token gets position 0. Token s should get row s.": norm(word + kind + table[0]),
        "This looks up positions by id. Token s should get row s.": norm(word + kind + table[ids % len(table)]),
        "This uses the index in the batch, but positions count tokens.": norm(word + kind + table[:B, None]),
        "All token types are treated as 0. Pass token_type_ids to their table.": norm(
            word + place + module.token_type_embeddings.weight[0]
        ),
        "This is normalised twice.": norm(norm(whole)),
    }


@exercise("2.5")
def parameters_of_embeddings(answer):
    """Check that the answer counts the parameters in the embeddings of bert-base-uncased."""
    H, words, positions, types = 768, 30_522 * 768, 512 * 768, 2 * 768
    count, wanted = as_number(answer), words + positions + types + 2 * H
    hints = {
        wanted
        - 2 * H: "2 · 768 parameters are missing: either LayerNorm's scale and shift, or the two rows of token types.",
        wanted - H: "768 parameters, one row, are missing. LayerNorm has two vectors, a scale and a shift; there are "
        "two token types; and [PAD] has a row like every other token.",
        wanted / 2: "That is half of the answer: our checkpoint has H = 384, but bert-base-uncased has H = 768.",
        words: "These are the word vectors. The other two tables and LayerNorm are missing.",
        wanted - positions: "The position table is missing.",
        wanted - positions - 2 * H: "The position table is missing, and LayerNorm.",
        wanted - types - 2 * H: "The token-type table is missing, and LayerNorm.",
        wanted - 2 * H + 2: "LayerNorm scales and shifts each of the H numbers, so it has 2 · H parameters, not 2.",
        wanted / 1e6: "Write the whole number, not millions.",
    }
    for wrong, hint in hints.items():
        expect(abs(count - wrong) > 0.01, hint)
    expect(
        count == wanted,
        "Three tables and a LayerNorm have parameters. How many rows does each table have, and how long is a row?",
        "Add the rows of the three tables, times H, and two vectors of H numbers for LayerNorm.",
    )
    return "That is a fifth of bert-base's 110 million parameters."
