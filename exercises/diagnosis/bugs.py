"""The table of classic bugs in a BERT: a name, the exercise that teaches it, how to make it, and a sentence.

Numbers that equal those of an encoder with a bug show that bug. `with_bugs` makes one, or several together. Two bugs of
one group change the same thing, so they are never searched together.
"""

import textwrap
from collections.abc import Callable
from typing import NamedTuple

from torch import nn
from torch.nn import functional as F

from exercises.diagnosis import patches, texts


class Bug(NamedTuple):
    """A bug: its stage and group, the exercise that teaches it, a function that makes it, and a sentence.

    The function changes an encoder in place; for the last two stages, see `texts.py`.
    """

    stage: str
    group: str
    exercise: str
    patch: Callable
    sentence: str


BUGS: dict[str, Bug] = {}
EMBEDDINGS, ATTENTION, LAYER, STACK = "embeddings", "attention", "layer", "stack"
TEXT_TO_IDS, POOLING = "text to ids", "states to vector"
ORDER = "order of layers"


def add(stage: str, group: str, table: str) -> None:
    """Add the bugs of a group: a line `name | exercise`, an indented line of Python, and a sentence below it."""
    names = {**vars(texts if stage in (TEXT_TO_IDS, POOLING) else patches), "F": F}
    rows = textwrap.dedent(table).strip().splitlines()
    for row, source, sentence in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        name, exercise = row.split(" | ")
        BUGS[name] = Bug(stage, group, exercise, eval(source.strip(), names), sentence.strip())


# What replaces a part comes before what wraps or changes it: `with_bugs` applies patches in this order.
add(
    EMBEDDINGS,
    "token types",
    """
    types ignored | 2.4
        type_vectors(lambda look_up, types: look_up(types * 0))
        Token types are not used, all count as 0: only pairs of texts differ.
    types all 1 | 2.4
        type_vectors(lambda look_up, types: look_up(types * 0 + 1))
        All token types count as 1: every vector is shifted, most of all those of the first text.
    no types | 2.4
        type_vectors(lambda look_up, types: 0)
        Token-type embeddings are not added: type 0 has a vector, too, so single texts differ as well.
    """,
)
add(
    EMBEDDINGS,
    "positions",
    """
    no positions | 2.2
        position_table(torch.zeros_like)
        Position embeddings are not added: order does not matter any more.
    positions from 1 | 2.2
        position_table(lambda table: table.roll(-1, 0))
        Positions begin at 1, not at 0: each token gets the vector of the next position.
    positions from 2 | 2.2
        position_table(lambda table: table.roll(-2, 0))
        Positions begin at 2, as in RoBERTa: each token gets the vector of another position.
    positions all 0 | 2.2
        position_table(lambda table: table[:1].expand_as(table))
        Every token has position 0: order does not matter any more.
    types as positions | 2.4
        types_as_positions
        Token types are passed as positions: there are only two positions.
    sinusoids | 2.2
        position_table(sinusoids)
        Sinusoids are used in place of the trained positions: the layers were trained with other vectors.
    positions after the norm | 2.4
        embedded(lambda norm, w, t, p: norm(w + t) + p)
        Positions are added after the embeddings' LayerNorm: they count more or less than in training.
    """,
)
add(
    EMBEDDINGS,
    "embeddings",
    """
    words times √H | 2.4
        embedded(lambda norm, w, t, p: norm(w * w.size(-1) ** 0.5 + t + p))
        Word vectors are multiplied by √H, as in the Transformer of 2017: positions and types hardly count.
    no embedding norm | 2.4
        embedded(lambda norm, w, t, p: w + t + p)
        The LayerNorm after the embeddings is missing: the first layer gets vectors of another length.
    untrained embedding norm | 6.3
        norms(lambda norm, x: F.layer_norm(x, x.shape[-1:], eps=norm.eps), "embeddings")
        The embeddings' LayerNorm lacks its trained scale and shift: look for gamma and beta, their old names.
    embedded twice | 2.4
        embedded(lambda norm, w, t, p: norm(norm(w + t + p) + t + p))
        Finished embeddings go through the embeddings again: positions and types are added twice.
    """,
)
add(
    EMBEDDINGS,
    "call",
    """
    mask and types exchanged | 6.1
        mask_and_types_exchanged
        The attention mask and the token types are passed in each other's place: call your model by keyword.
    """,
)
add(
    ATTENTION,
    "attention weights",
    """
    softmax over queries | 3.2
        scored(lambda x, mask: hide(x, mask).softmax(dim=-2))
        Softmax runs over the queries (dim=-2), not over the keys: the weights of a query do not sum to 1.
    softmax over queries, no effect of the mask | 3.2
        scored(lambda x, mask: x.softmax(dim=-2))
        Softmax runs over the queries (dim=-2), not over the keys: the weights of a query do not sum to 1.
    softmax over heads | 3.2
        scored(lambda x, mask: hide(x, mask).softmax(dim=1))
        Softmax runs over the heads (dim=1), not over the keys: the weights of a query do not sum to 1.
    softmax over heads, no effect of the mask | 3.2
        scored(lambda x, mask: x.softmax(dim=1))
        Softmax runs over the heads (dim=1), not over the keys: the weights of a query do not sum to 1.
    no softmax | 3.2
        scored(lambda x, mask: x * mask)
        There is no softmax: the scores are used as weights, and can be negative.
    no softmax, no mask | 3.2
        scored(lambda x, mask: x)
        There is neither softmax nor mask: weights can be negative, and padding counts.
    mask added as it is | 4.5
        scored(lambda x, mask: (x + mask.float()).softmax(dim=-1))
        The mask of 1 and 0 is added to the scores as it is: padding is hardly hidden.
    mask 0, not −∞ | 3.2
        scored(lambda x, mask: (x * mask).softmax(dim=-1))
        Hidden scores are set to 0, not to −∞: exp(0) is 1, so padding gets attention.
    no mask | 4.5
        scored(lambda x, mask: x.softmax(dim=-1))
        The mask is not used: padding gets attention.
    mask upside down | 4.5
        scored(lambda x, mask: hide(x, ~mask).softmax(dim=-1))
        The mask is upside down: only padding gets attention.
    mask of queries | 4.5
        scored(lambda x, mask: hide(x, mask.mT).softmax(dim=-1))
        The mask hides queries in place of keys: padding gets attention.
    another row's mask | 4.5
        scored(lambda x, mask: hide(x, of_another_row(mask, x.size(1))).softmax(dim=-1))
        Heads get another row's mask, repeated along the wrong dimension: only batches of several lengths differ.
    mask after softmax | 3.2
        scored(lambda x, mask: x.softmax(dim=-1) * mask)
        The mask is multiplied in after softmax: the weights of a query do not sum to 1.
    softmax twice | 3.2
        scored(lambda x, mask: hide(x, mask).softmax(dim=-1).softmax(dim=-1))
        Softmax runs twice: the weights are nearly equal, and padding gets attention.
    causal | 12.1
        scored(lambda x, mask: hide(x, mask & torch.ones_like(mask[0, 0]).tril()).softmax(dim=-1))
        Tokens do not see what comes after them: this is the causal mask of a decoder.
    """,
)
add(
    ATTENTION,
    "scale",
    """
    no √D | 3.2
        scaled(lambda A, D: D**0.5)
        Scores are not divided by √D: softmax is too sharp.
    by D | 3.2
        scaled(lambda A, D: D**-0.5)
        Scores are divided by D, not by √D: softmax is too flat.
    by √H | 4.5
        scaled(lambda A, D: A**-0.5)
        Scores are divided by √H, with the size of all heads together: softmax is too flat.
    by √A | 4.5
        scaled(lambda A, D: (D / A) ** 0.5)
        Scores are divided by √A, with the number of heads: softmax is too sharp or too flat.
    """,
)
add(
    ATTENTION,
    "linear maps",
    """
    query, key exchanged | 3.3
        attentions(exchange("query", "key"))
        Query and key are exchanged: attention runs in the other direction.
    key, value exchanged | 3.3
        attentions(exchange("key", "value"))
        Key and value are exchanged: scores and context come from the wrong vectors.
    query, value exchanged | 3.3
        attentions(exchange("query", "value"))
        Query and value are exchanged: scores and context come from the wrong vectors.
    key from the query | 3.3
        attentions(replace(key=lambda attention: attention.query))
        The key is computed with the query's weights: each token attends to tokens like itself.
    no query bias | 3.3
        linear_maps(lambda linear, x: F.linear(x, linear.weight), "query")
        The query has no bias: every score lacks what the bias adds to its key.
    no value bias | 3.3
        linear_maps(lambda linear, x: F.linear(x, linear.weight), "value")
        The value has no bias: every context lacks the same vector.
    no attention output bias | 4.5
        linear_maps(lambda linear, x: F.linear(x, linear.weight), "output")
        Attention's output layer has no bias: every vector lacks the same vector.
    transposed query, key, value | 6.3
        linear_maps(lambda linear, x: F.linear(x, linear.weight.T, linear.bias), "query", "key", "value")
        The weights of query, key and value are used transposed: TensorFlow stores (in, out), PyTorch (out, in).
    transposed query, key, value, output | 6.3
        linear_maps(lambda linear, x: F.linear(x, linear.weight.T, linear.bias), "query", "key", "value", "output")
        All square weights are used transposed: TensorFlow stores (in, out), PyTorch (out, in).
    transposed output | 6.3
        linear_maps(lambda linear, x: F.linear(x, linear.weight.T, linear.bias), "output")
        The weights of attention's output layer are used transposed: TensorFlow stores (in, out), PyTorch (out, in).
    no output layer | 4.5
        linear_maps(lambda linear, x: x, "output")
        Attention's output layer is missing: the heads are never mixed.
    """,
)
add(
    ATTENTION,
    "heads",
    """
    split without transpose | 4.2
        heads_split(lambda x, A: x.reshape(x.size(0), A, x.size(1), -1))
        Heads are split without a transpose, view(B, A, S, D): each head gets numbers of several tokens.
    batch and heads mixed | 4.2
        heads_split(lambda x, A: x.unflatten(-1, (A, -1)).permute(2, 0, 1, 3).reshape(len(x), A, x.size(1), -1))
        Batch and heads are mixed in a reshape: texts of a batch see each other.
    merged without transpose | 4.3
        attentions(merged_without_transpose)
        Heads are merged without transposing back: the shape fits, and tokens are mixed.
    size and number of heads exchanged | 4.5
        heads_split(lambda x, A: x.unflatten(-1, (-1, A)).transpose(1, 2))
        The size and the number of heads are exchanged: view(B, S, D, A) in place of view(B, S, A, D).
    heads interleaved | 4.5
        heads_split(lambda x, A: x.unflatten(-1, (-1, A)).permute(0, 3, 1, 2))
        A head gets every A-th number, not D numbers in a row: view(B, S, D, A) and its last axis as heads.
    half as many heads | 4.5
        number_of_heads(lambda A: A // 2)
        There are half as many heads, twice as large: the number of heads is in the checkpoint's configuration.
    twice as many heads | 4.5
        number_of_heads(lambda A: 2 * A)
        There are twice as many heads, half as large: the number of heads is in the checkpoint's configuration.
    """,
)
add(
    LAYER,
    "residuals",
    """
    second residual from the input | 5.5
        recomputed(lambda layer, x, a: layer.feed_forward_norm(x + layer.feed_forward(layer.attention_norm(x + a))))
        The second residual connection adds the layer's input, not the result of its first half.
    norm before adding | 5.5
        recomputed(lambda part, x, a: part.feed_forward_norm(part.feed_forward(y := x + part.attention_norm(a))) + y)
        LayerNorm is applied to the change, before it is added: the stream itself is never normalized.
    no first residual | 5.1
        recomputed(lambda layer, x, a: layer.feed_forward_norm((y := layer.attention_norm(a)) + layer.feed_forward(y)))
        The residual connection around attention is missing: the token's own vector is lost.
    no second residual | 5.5
        recomputed(lambda layer, x, a: layer.feed_forward_norm(layer.feed_forward(layer.attention_norm(x + a))))
        The residual connection around the feed-forward network is missing: what attention found is lost.
    """,
)
add(
    LAYER,
    "order of norms",
    """
    pre-norm | 5.5
        layers(replace(norm_first=lambda layer: True))
        LayerNorm comes before each half (pre-LN), as in GPT-2: these weights were trained with post-LN.
    no first norm | 5.5
        layers(replace(attention_norm=lambda layer: nn.Identity()))
        The LayerNorm after attention is missing: the feed-forward network gets vectors of another length.
    no second norm | 5.5
        layers(replace(feed_forward_norm=lambda layer: nn.Identity()))
        The LayerNorm after the feed-forward network is missing: the next layer gets vectors of another length.
    norms exchanged | 5.5
        layers(exchange("attention_norm", "feed_forward_norm"))
        The two LayerNorms of a layer are exchanged: each has its own scale and shift.
    first norm twice | 5.5
        layers(replace(feed_forward_norm=lambda layer: layer.attention_norm))
        The first LayerNorm of a layer is used twice: the second has its own scale and shift.
    second norm twice | 5.5
        layers(replace(attention_norm=lambda layer: layer.feed_forward_norm))
        The second LayerNorm of a layer is used twice: the first has its own scale and shift.
    no last norm | 5.5
        lambda encoder: replace(feed_forward_norm=lambda layer: nn.Identity())(encoder.layers[-1])
        The last layer lacks its last LayerNorm: only the last vectors differ.
    """,
)
add(
    LAYER,
    "feed-forward network",
    """
    GELU tanh | 5.2
        activation(nn.GELU("tanh").forward)
        GELU's tanh approximation is used in place of the exact GELU. Harmless: Google's own later code has it.
    quick GELU | 5.2
        activation(lambda x: x * torch.sigmoid(1.702 * x))
        x · sigmoid(1.702 x) is used in place of GELU: it is a coarser approximation.
    ReLU | 5.3
        activation(F.relu)
        ReLU is used in place of GELU: negative numbers become 0.
    SiLU | 5.3
        activation(F.silu)
        SiLU is used in place of GELU: it lets more of negative numbers through.
    no activation | 5.3
        activation(lambda x: x)
        There is no activation between the two matrices: both together are one linear map.
    activation twice | 5.3
        layers(lambda layer: wrap(layer.feed_forward, "forward", lambda transform, x: F.gelu(transform(x))))
        There is an activation after the second matrix, too: the network can hardly subtract.
    no feed-forward | 5.3
        layers(replace(feed_forward=lambda layer: Do(torch.zeros_like)))
        The feed-forward network is missing: only attention changes a vector.
    no intermediate bias | 5.3
        layers(lambda layer: wrap(layer.feed_forward.intermediate, "forward", lambda run, x: run(x) - run(0 * x)))
        The feed-forward network's first matrix has no bias: each neuron begins at another place.
    no feed-forward output bias | 5.3
        layers(lambda layer: wrap(layer.feed_forward.output, "forward", lambda run, x: run(x) - run(0 * x)))
        The feed-forward network's second matrix has no bias: every vector lacks the same vector.
    """,
)
add(
    STACK,
    "LayerNorm",
    """
    RMSNorm | 2.3
        norms(lambda norm, x: norm.weight * F.rms_norm(x, x.shape[-1:], None, norm.eps) + norm.bias)
        LayerNorm does not subtract the mean (RMSNorm): the weights were trained with LayerNorm.
    norm along the text | 2.3
        norms(lambda norm, x: norm.weight * F.layer_norm(x.mT, x.shape[1:2], eps=norm.eps).mT + norm.bias)
        LayerNorm runs along the text, not over the numbers of a vector: tokens are mixed, and padding counts.
    norm of all vectors | 2.3
        norms(lambda norm, x: norm.weight * F.layer_norm(x, x.shape[1:], eps=norm.eps) + norm.bias)
        LayerNorm runs over all vectors of a text together, not over each alone: padding counts.
    norm by n − 1 | 2.3
        norms(lambda norm, x: norm.weight * (x - x.mean(-1, True)) / x.std(-1, keepdim=True) + norm.bias)
        LayerNorm divides by the deviation with n − 1. Harmless: it hardly shows.
    untrained norms | 6.3
        norms(lambda norm, x: F.layer_norm(x, x.shape[-1:], eps=norm.eps))
        All LayerNorms lack their trained scale and shift: look for gamma and beta, their old names.
    untrained norms of layers | 6.3
        norms(lambda norm, x: F.layer_norm(x, x.shape[-1:], eps=norm.eps), "layers")
        The LayerNorms of the layers lack their trained scale and shift: look for gamma and beta, their old names.
    eps 1e-5 | 2.3
        norms(lambda norm, x: F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, 1e-5))
        LayerNorm has eps 1e-5, PyTorch's default, not 1e-12. Harmless: it hardly shows.
    eps 1e-5 in layers | 2.3
        norms(lambda norm, x: F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, 1e-5), "layers")
        The LayerNorms of the layers have eps 1e-5, not 1e-12; the embeddings' is right. Harmless: it hardly shows.
    eps 1e-6 | 2.3
        norms(lambda norm, x: F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, 1e-6))
        LayerNorm has eps 1e-6, Flax's default, not 1e-12. Harmless: it hardly shows.
    """,
)
add(
    STACK,
    ORDER,
    """
    layers reversed | 6.1
        stack(lambda layers: layers[::-1])
        The layers come in reversed order: each gets vectors that it was not trained for.
    last layer missing | 6.1
        stack(lambda layers: layers[:-1])
        The last layer is missing, or its input was returned: hidden_states[-1] is the last.
    first layer missing | 6.1
        stack(lambda layers: layers[1:])
        The first layer is missing: there are L + 1 states and L layers, so count from 0.
    last layer twice | 6.1
        stack(lambda layers: [*layers, layers[-1]])
        The last layer runs twice.
    one layer for all | 6.1
        stack(lambda layers: layers[:1] * len(layers))
        Every layer has the weights of layer 0: all layers share one object, as in ALBERT.
    last layer for all | 6.1
        stack(lambda layers: layers[-1:] * len(layers))
        Every layer has the weights of the last one: all layers share one object.
    last layer alone | 6.1
        stack(lambda layers: layers[-1:])
        Only the last layer runs, or each gets the embeddings, not what the layer before it returned.
    """,
)
ENCODER_BUGS = tuple(BUGS)
add(
    TEXT_TO_IDS,
    "text to ids",
    """
    no lower case | 1.1
        normalized(lowercase=False, strip_accents=True)
        The text is not put into lower case: words with capitals fall into pieces or become [UNK].
    no lower case, accents kept | 1.1
        normalized(lowercase=False, strip_accents=False)
        The text is not put into lower case, and accents are kept, as with do_lower_case=False.
    accents kept | 1.1
        normalized(strip_accents=False)
        Accents are kept: words with accents fall into other pieces.
    punctuation not split | 1.1
        split_at_spaces
        Punctuation is not split off words: the last word of a sentence falls into other pieces.
    no [CLS], [SEP] | 1.1
        lambda tokenizer: encode(tokenizer, first=1, last=1)
        [CLS] and the last [SEP] are not added: each word has another position.
    no [CLS] | 1.1
        lambda tokenizer: encode(tokenizer, first=1)
        [CLS] is not added: each word has another position.
    no [SEP] | 1.1
        lambda tokenizer: encode(tokenizer, last=1)
        The last [SEP] is not added: many heads attend to it.
    no special tokens | 1.1
        lambda tokenizer: encode(tokenizer, add_special_tokens=False)
        No special token is added, not even between two texts, as with add_special_tokens=False.
    a pair as one text | 1.1
        lambda tokenizer: padded_rows(tokenizer, [t if isinstance(t, str) else " ".join(t) for t in TEXTS])
        A pair is joined by a space: it lacks a [SEP], and its second text has type 0.
    no mask at all | 9.2
        lambda tokenizer: unmasked(encode(tokenizer))
        The mask is not used at all: padding gets attention and counts in the mean.
    """,
)
add(
    POOLING,
    "pooling",
    """
    [CLS] for mean | 9.2
        lambda states, mask: states[:, 0]
        The vector of [CLS] was taken, not the mean: your states may be right.
    padding in the mean | 9.2
        lambda states, mask: states.mean(1)
        The mean runs over padding, too: a vector depends on the longest text of its batch.
    padding in the count | 9.2
        lambda states, mask: total(states, mask) / mask.size(1)
        The sum of the real tokens is divided by the padded length. Harmless once vectors are normalized.
    specials left out | 9.2
        lambda states, mask: mean(states[:, 1:-1], mask[:, 2:])
        [CLS] and the last [SEP] are left out of the mean: this checkpoint was trained with them.
    sum | 9.1
        total
        The sum was taken, not the mean. Harmless once vectors are normalized.
    max | 9.1
        lambda states, mask: states.masked_fill(mask[..., None] == 0, -1e9).amax(1)
        The largest number of each coordinate was taken, not the mean.
    last token | 9.1
        lambda states, mask: states[torch.arange(len(states)), mask.sum(1) - 1]
        The last token's vector was taken, not the mean.
    normalized before the mean | 9.2
        lambda states, mask: mean(F.normalize(states, dim=-1), mask)
        Token vectors were normalized before the mean: long vectors count less.
    """,
)


def with_bugs(encoder: nn.Module, *names: str) -> nn.Module:
    """Return a copy of an encoder with these bugs, in evaluation mode; it shares the weights. ValueError for others."""
    changed = patches.light_copy(encoder).eval()
    for name in sorted(names, key=ENCODER_BUGS.index):
        BUGS[name].patch(changed)
    return changed
