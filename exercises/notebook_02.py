"""Checks for the exercises of notebook 02."""

import torch
from torch.nn import functional as F
from transformers import BertConfig

from exercises.comparison import comparison
from exercises.framework import (
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
from exercises.prediction import prediction
from utils.embeddings import Embeddings
from utils.support.checkpoint import load_config

prediction(
    "2.1",
    as_shape,
    """
    = (4, 9, H)
    (4, 9) | That is the shape of the ids. What does each id become?
    (9, H)
    (36, H) | The batch axis is missing: (B, S, H).
    (9, 4, H) | The batch comes first here: (B, S, H).
    (4, 9, V) | V is the length of a one-hot vector, but the look-up gives dense vectors of length H.
    (4, 9, 3 * H) | The three vectors are added, not concatenated.
    if len(answer) != 3
    (4, 9, 9, H) | The shape has three sizes, (B, S, H).
    if answer[:2] != (4, 9)
    (4, 11, H) | The first two sizes are the same as for the ids: B sentences of S tokens, including padding.
    (4, 9, H + 1) | The last size is the length of a vector: config.hidden_size.
    """,
    names=lambda: {"H": load_config().hidden_size, "V": load_config().vocab_size},
)


TABLES = {  # B, S, P, H
    "B = 3, S = 5 and P = 8": (3, 5, 8, 4),
    "B = 1, S = 6 and P = 6": (1, 6, 6, 3),
    "B = 4, S = 2 and P = 9": (4, 2, 9, 5),
}


def words_and_table(B: int, S: int, P: int, H: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return word vectors (B, S, H) and a table (P, H)."""
    return torch.randn(B, S, H), torch.randn(P, H)


comparison(
    "2.2",
    "words, table",
    "words + table[: words.size(1)]",
    """
    table[: words.size(1)]
    table[: words.size(1)].expand_as(words) | These are only the position vectors. Add them to the word vectors.
    words | The positions are missing: your result equals the input.
    words + table[1 : words.size(1) + 1] | The first position is 0, but yours starts with 1.
    words + table[: words.size(1)].flip(0) | The rows are in reverse order.
    words + table[-words.size(1) :] | These are the last rows of the table. Take the first S.
    words + table[: len(words), None] | This uses the index in the batch, but positions count tokens.
    if (answer - words - (answer - words)[:, :1]).abs().max() < 1e-5
    words + table[words.size(1)]
    words + table.mean(0) | Every token gets the same vector. Token s should get row s.
    words * table[: words.size(1)] | Token s of every sentence should get row s of the table.
    """,
    inputs=words_and_table,
    sizes=TABLES,
    errors={"must match": "{error}: take the rows of the table that S tokens need."},
    remark="Broadcasting over the batch is all it takes.",
    points=1,
)


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


def variance(x, **options):
    """Return the variance of each vector."""
    return x.var(-1, keepdim=True, **({"unbiased": False} | options))


comparison(
    "2.3",
    "x, gamma, beta, eps",
    "layer_norm(x, gamma, beta, eps)",
    """
    x - x.mean(-1) | The mean has lost its last dimension: keepdim=True makes it (B, S, 1), which fits (B, S, H).
    layer_norm(x, 1, 0, eps) | γ and β are missing: multiply by gamma, then add beta.
    layer_norm(x, 1, beta, eps) | γ is missing: multiply by gamma before you add beta.
    layer_norm(x, gamma, 0, eps) | β is missing: add beta at the end.
    layer_norm(x, 1, beta, eps) * gamma | γ comes before β: multiply by gamma, then add beta.
    deviations(x) / (variance(x) + eps) * gamma + beta | This divides by the variance. Divide by its root.
    deviations(x) / (variance(x).sqrt() + eps) * gamma + beta | eps is outside the root. Add it to the variance, inside
        the root.
    layer_norm(x, gamma, beta, 0) | eps is missing: add it to the variance, inside the root.
    layer_norm(x, gamma, beta, 1e-5) | eps is fixed. Use the argument eps.
    deviations(x) / (variance(x, unbiased=True) + eps).sqrt() * gamma + beta | The variance is divided by H − 1 here,
        and LayerNorm divides by H: pass unbiased=False.
    x / (variance(x) + eps).sqrt() * gamma + beta | The mean is still in it: subtract it before you divide.
    deviations(x) / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gamma + beta | This divides by the root of the
        mean of the squares. The variance is the mean square of x minus its mean.
    layer_norm(x, gamma, beta, eps, dim=1) | This normalises over the tokens; normalise each token separately, over
        dim=-1.
    layer_norm(x, gamma, beta, eps, dim=0) | This normalises over the batch; normalise each token separately, over
        dim=-1.
    layer_norm(x, gamma, beta, eps, (0, 1, 2)) | This takes one mean for the whole tensor; normalise each token
        separately, over dim=-1.
    deviations(x) / x.std(-1, keepdim=True) * gamma + beta
    x.softmax(-1) | Subtract each token's mean, divide by the root of (variance + eps), then multiply by gamma and add
        beta.
    """,
    inputs=layer_norm_inputs,
    sizes={
        "H = 4 and eps = 1e-5": ((2, 3, 4), 1e-5),
        "H = 7 and eps = 1e-2": ((1, 5, 7), 1e-2),
        "H = 6 and eps = 1e-12": ((3, 1, 6), 1e-12),
    },
    forbidden=(
        "This calls torch's own norm. Write it yourself, with means, variances and roots.",
        *("layer_norm", "group_norm", "batch_norm"),
    ),
    remark="BERT does this to every token, once here and twice in each layer.",
)


BATCHES = {  # B, S, H
    "2 texts of 5 tokens and H = 8": (2, 5, 8),
    "3 texts of 4 tokens and H = 6": (3, 4, 6),
    "1 text of 1 token and H = 4": (1, 1, 4),
}


@exercise("2.4", points=2, sizes=BATCHES, part="embeddings")
def write_embeddings(answer, B: int, S: int, H: int):
    """Check that the answer is the forward of `Embeddings`: three rows added, then LayerNorm, then dropout."""
    expect_function(answer)
    config = BertConfig(vocab_size=31, hidden_size=H, num_attention_heads=1, max_position_embeddings=40)
    config.hidden_dropout_prob, config.pad_token_id = 0.5, None  # the row of [PAD] gets gradients like the others
    generator = torch.Generator().manual_seed(3)
    module = Embeddings(config).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    ids = torch.randint(1, 31, (B, S), generator=generator)
    ids[0, 2:] = 0  # the first text is short
    types = (torch.arange(S) >= (S // 2 + torch.arange(B)[:, None]) % S).long()
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
        "[PAD] has a position like every other token: token s gets row s, whatever its id.": norm(
            word + kind + table[torch.arange(S) * (ids != 0)]
        ),
        "This looks up positions by id. Token s should get row s.": norm(word + kind + table[ids % len(table)]),
        "This uses the index in the batch, but positions count tokens.": norm(word + kind + table[:B, None]),
        "All token types are treated as 0. Pass token_type_ids to their table.": norm(
            word + place + module.token_type_embeddings.weight[0]
        ),
        "All texts get the token types of the first.": norm(word + place + module.token_type_embeddings(types[:1])),
        "This is normalised twice.": norm(norm(whole)),
    }


ROWS = 30_522 + 512 + 2 + 2  # of the three tables, and two for LayerNorm
prediction(
    "2.5",
    as_number,
    """
    = ROWS * 768
    (ROWS - 2) * 768 | 2 · 768 parameters are missing: either LayerNorm's scale and shift, or the two rows of token
        types.
    (ROWS - 1) * 768 | 768 parameters, one row, are missing. LayerNorm has two vectors, a scale and a shift; there are
        two token types; and [PAD] has a row like every other token.
    ROWS * 384 | That is half of the answer: our checkpoint has H = 384, but bert-base-uncased has H = 768.
    30_522 * 768 | These are the word vectors. The other two tables and LayerNorm are missing.
    (ROWS - 512) * 768 | The position table is missing.
    (ROWS - 512 - 2) * 768 | The position table is missing, and LayerNorm.
    (ROWS - 4) * 768 | The token-type table is missing, and LayerNorm.
    (ROWS - 2) * 768 + 2 | LayerNorm scales and shifts each of the H numbers, so it has 2 · H parameters, not 2.
    23.837184 | Write the whole number, not millions.
    109_482_240 | Three tables and a LayerNorm have parameters. How many rows does each table have, and how long is a
        row?
    """,
    later="Add the rows of the three tables, times H, and two vectors of H numbers for LayerNorm.",
    names=lambda: {"ROWS": ROWS},
    remark="That is a fifth of bert-base's 110 million parameters.",
)
