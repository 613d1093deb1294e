"""Figures that can be dragged: one function each, plain numbers in, a `View` out, which shows itself without a kernel.

The numbers that a figure draws are worked out in its page and equal torch's. Used from notebook 00 on.
"""

import base64
import html
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from string import Template

import torch
from torch import Tensor

from utils.support.checks import SPECIAL_TOKENS, check_between, check_size, check_texts
from utils.support.colours import css
from utils.support.vocabulary import read_vocabulary
from utils.tokenization import (
    CJK_RANGES,
    EARLIER_CATEGORY,
    LATER_CHARACTERS,
    MAX_CHARACTERS_PER_WORD,
    WordPieceTokenizer,
    normalize,
    pre_tokenize,
    split_special_tokens,
)
from views.page import FOLDER as VIEWS
from views.page import POLICY, View, json_for_html, own_text, writable

FOLDER = VIEWS / "draggable"  # a page, a style sheet, what the figures share, and a file per figure
MOST_CHARACTERS = 200  # of a text that a reader types


def attention_in_the_plane(
    query: Sequence[float],
    keys: Sequence[Sequence[float]],
    values: Sequence[Sequence[float]] | None = None,
    tokens: Sequence[str] | None = None,
    *,
    asking: int = 0,
) -> View:
    """Draw attention in two dimensions: a query, keys and values as arrows to be dragged, and the values' average.

    `query` is (2,), `keys` and `values` are (N, 2) for 2 to 6 `tokens`; without values, the keys are averaged. `asking`
    is the index of the token whose query it is. ValueError for other shapes, nan and inf.
    """
    query, keys = as_numbers("query", query, 2), as_numbers("keys", keys, range(2, 7), 2)
    values = None if values is None else as_numbers("values", values, len(keys), 2)
    names = as_names(tokens, len(keys))
    check_size("asking", asking, 0, len(names) - 1)

    return make_figure(
        "attention_in_the_plane",
        {"query": query, "keys": keys, "values": values, "names": names, "asking": asking},
        summary=f"Attention in the plane: the query of “{names[asking]}” and the keys of {told(names)}",
    )


def sharpness(scores: Sequence[float], *, head_size: int = 64, tokens: Sequence[str] | None = None) -> View:
    """Draw softmax of one query's scores, which are multiplied by a factor: attention weights and gradients left.

    `scores` (N,) are the products q · k of 2 to 12 `tokens`; the factor goes from 1/√D to D, the `head_size`, which is
    2 to 1,024. ValueError for other shapes, nan and inf.
    """
    scores = as_numbers("scores", scores, range(2, 13))
    names = as_names(tokens, len(scores))
    check_size("head_size", head_size, 2, 1024)

    return make_figure(
        "sharpness",
        {"scores": scores, "names": names, "size": head_size},
        summary=f"Sharpness: what a factor does to the softmax of {len(names)} scores",
    )


def next_token(logits: Sequence[float], tokens: Sequence[str]) -> View:
    """Draw the shares of the next token, from which to draw: with a temperature, top-k and top-p to be moved.

    `logits` (V,) are a decoder's for 2 to 500 `tokens`; the 12 most likely get a bar each. ValueError for other shapes,
    nan and inf, and for more tokens: shares among the best 500 are a little larger than among all.
    """
    logits = torch.as_tensor(logits)
    if logits.dim() == 1 and len(logits) > 500:
        remedy = "pass the largest and their tokens, best = logits.topk(500)"
        raise ValueError(f"logits of {len(logits):,} tokens: this figure draws at most 500; {remedy}")
    logits = as_numbers("logits", logits, range(2, 501))
    names = as_names(tokens, len(logits))

    return make_figure(
        "next_token",
        {"logits": logits, "names": names},
        summary=f"The next token: its shares among {len(names)}, with temperature, top-k and top-p",
    )


def sum_and_scale(
    word: Tensor,
    position: Tensor,
    token_type: Tensor,
    names: Sequence[str] | None = None,
    *,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-12,
    number: int | None = None,
) -> View:
    """Draw how word, position and token-type vectors are added, and what LayerNorm makes of their sum.

    `word` (W, H) are the vectors of 1 to 20 words with `names`, `position` (P, H) those of up to 512 positions,
    `token_type` (T, H) of up to 4; H is 2 to 1,024. `weight` and `bias` (H,), both or none, are LayerNorm's trained γ
    and β. `number` is the index of the number that is marked first, by default one whose positions differ much.
    ValueError for other shapes, nan and inf.
    """
    word = as_numbers("word", word, range(1, 21), range(2, 1025))
    H = word.size(1)
    position = as_numbers("position", position, range(1, 513), H)
    token_type = as_numbers("token_type", token_type, range(1, 5), H)
    if (weight is None) != (bias is None):
        raise ValueError("weight and bias, the trained γ and β, belong together: pass both or none")
    trained = None if weight is None else (as_numbers("weight", weight, H), as_numbers("bias", bias, H))
    names = as_names(names, len(word), "names")
    if number is None:  # the first position is [CLS]'s, and often unlike all others
        others = position[1:] if len(position) > 1 else position
        number = int(others.var(dim=0, correction=0).argmax())
    check_size("number", number, 0, H - 1)
    check_between("eps", eps, 0, 1, "BERT's is 1e-12")
    reach = float(torch.cat([word, token_type]).abs().quantile(0.99)) or 1.0

    tables = {"word": word, "position": position, "type": token_type}
    tables |= {"weight": trained[0], "bias": trained[1]} if trained else {}
    return make_figure(
        "sum_and_scale",
        {"tables": {key: packed(table) for key, table in tables.items()}, "names": names, "size": H}
        | {"reach": reach, "first": number, "eps": eps},
        summary=f"Word + position + token type, {H} numbers each, and LayerNorm of their sum",
    )


def mask_painter(
    tokens: Sequence[str],
    values: Sequence[float] | None = None,
    rows: Sequence[str] | None = None,
    mask: str = "bidirectional",
) -> View:
    """Draw a mask as a grid to be painted: which token (row) may see which (column), and the average of what it sees.

    `tokens` are 2 to 12, `values` one number for each (1, 3, 5 … if not given). `rows` are the tokens of a second text,
    1 to 12, which look at `tokens` in cross attention. `mask` is the one to begin with: bidirectional, causal, padding,
    window or, with `rows`, cross. ValueError for another, for other sizes, nan and inf.
    """
    names = as_tokens("tokens", tokens, 2, 12)
    odd = torch.arange(len(names)) * 2 + 1
    values = as_numbers("values", odd if values is None else values, len(names))
    if values.abs().max() > 1000:
        raise ValueError(f"values reach {values.abs().max():g}, which is too large to be drawn: use -1000 to 1000")
    masks = masks_of(names)
    if rows is not None:
        rows = as_tokens("rows", rows, 1, 12)
        masks["cross"] = torch.ones(len(rows), len(names))
    if mask not in masks:
        remedy = "pass rows, the tokens that look" if mask == "cross" else f"use one of {', '.join(masks)}"
        raise ValueError(f"mask={mask!r:.60} cannot be drawn: {remedy}")

    return make_figure(
        "mask_painter",
        {
            "names": names,
            "rows": rows,
            "values": values,
            "mask": mask,
            "masks": {name: one.int().tolist() for name, one in masks.items()},
        },
        summary=f"Who may see whom among {told(names)}",
    )


def masks_of(names: Sequence[str]) -> dict[str, Tensor]:
    """Make masks (T, T) of these tokens, 1 where a row may see a column. Without [PAD], the last one is the padding."""
    T, is_real = len(names), torch.tensor([name != "[PAD]" for name in names])
    is_real[-1] &= not is_real.all()
    ones, position = torch.ones(T, T), torch.arange(T)
    return {
        "bidirectional": ones,
        "causal": ones.tril(),
        "padding": ones * is_real,
        "window": ones * ((position[:, None] - position).abs() <= 1),
    }


def split_and_merge(sequence: int | Sequence[str], heads: int, head_size: int) -> View:
    """Draw how a matrix (S, H) is split into heads (A, S, D) and merged again, step by step, and what goes wrong.

    `sequence` is the number of tokens S or a list of them, 2 to 6; `heads` A and `head_size` D are 1 to 6 each, with
    H = A · D up to 24. Each number says where it belongs: 213 is token 2,
    head 1, place 3. ValueError for other sizes.
    """
    if not isinstance(sequence, Sequence):  # a count
        check_size("sequence", sequence, 2, 6)
        sequence = as_names(None, sequence)
    names = as_tokens("tokens", sequence, 2, 6)
    check_size("heads", heads, 1, 6)
    check_size("head_size", head_size, 1, 6)
    H = heads * head_size
    if H > 24:
        raise ValueError(
            f"heads={heads} of head_size={head_size} are {H} numbers per token: this figure draws up to 24"
        )

    return make_figure(
        "split_and_merge",
        {"names": names, "heads": int(heads), "size": int(head_size)},
        summary=f"Split into {heads} heads and merge: the vectors of {told(names)}, {H} numbers each",
    )


def longest_match(tokenizer, text: str) -> View:
    """Cut a word into WordPiece's pieces, one try after the other; the reader types any text.

    `tokenizer` is a WordPieceTokenizer or transformers' own for BERT, whose whole vocabulary goes into the page; `text`
    stands in the box at first, and its first word is cut. ValueError for a text without words or of more than 200
    characters; TypeError for what is no text or no tokenizer.
    """
    if not isinstance(tokenizer, WordPieceTokenizer):
        if not hasattr(tokenizer, "backend_tokenizer"):
            kind = type(tokenizer).__name__
            raise TypeError(f"tokenizer must be a WordPieceTokenizer or transformers' own, got {kind}")
        tokenizer = WordPieceTokenizer(*read_vocabulary(tokenizer))
    words = words_of(text, tokenizer.lowercase)
    if not words or len(text) > MOST_CHARACTERS:
        raise ValueError(f"text={text!r:.60} must hold a word, and at most {MOST_CHARACTERS} characters")

    return make_figure(
        "longest_match",
        {
            "text": text,
            "most": MOST_CHARACTERS,
            "vocabulary": vocabulary_lines(tokenizer.vocab),
            "rules": splitting_rules(tokenizer.lowercase),
        },
        summary=f"Longest match, try by try, beginning with “{words[0]:.40}”",
        before=["tokenizer"],
    )


def merges(texts: Sequence[str], steps: int = 12) -> View:
    """Learn a vocabulary from texts, merge by merge: the most frequent pair of neighbouring pieces becomes one piece.

    `texts` stand in a box, where the reader changes them; their words of letters are counted, lower-cased. At most
    `steps` merges are made. ValueError for texts without such words or of more than 2,000 characters together, and for
    `steps` outside 1 to 60; TypeError for what is no list of strings.
    """
    check_texts(texts)
    check_size("steps", steps, 1, 60)
    text = "\n".join(texts)
    if len(text) > 2000:
        raise ValueError(f"the texts have {len(text):,} characters: pass some of them, 2,000 characters at most")
    counts = Counter(word for word in words_of(text) if word.isalpha())
    if not counts:
        raise ValueError(f"the texts {text!r:.60} hold no word of letters: pass one at least")

    return make_figure(
        "merges",
        {"text": text, "most": 2000, "steps": steps, "rules": splitting_rules(lowercase=True)},
        summary="Merges: how a vocabulary is learned from texts, pair by pair",
        before=["tokenizer"],
    )


def graph_walk(
    index, vectors: Tensor, query: Tensor, names: Sequence[str], *, query_name: str = "the query", k: int = 3
) -> View:
    """Draw a search in a faiss HNSW index as a walk from text to text, for any number of candidates kept in view.

    `index` is an IndexHNSWFlat of unit `vectors` (N, H) with 2 to 1,000 `names`, and `query` is (H,). The plane shows
    the vectors' two principal components, so what is near there is not always near. ValueError for what does not fit.
    """
    vectors = as_numbers("vectors", vectors, range(2, 1001), range(1, 10_000))
    N, H = vectors.shape
    query, names = as_numbers("query", query, H), as_names(names, N, "names")
    check_size("k", k, maximum=min(N, 10))
    if not hasattr(index, "hnsw") or index.ntotal != N or index.d != H:
        raise ValueError(
            f"index {index!r:.60} is no HNSW graph of these {N} vectors of {H} numbers: hnsw_index(vectors)"
        )
    scores = vectors @ query
    centred = vectors - vectors.mean(dim=0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    places = centred @ directions[:2].T
    edge = torch.tensor([104, 66], dtype=places.dtype)
    scale = edge / places.abs().amax(dim=0)
    star = ((query - vectors.mean(dim=0)) @ directions[:2].T * scale).clamp(-edge, edge)
    places = places * scale
    ef = max(k, min(index.hnsw.efSearch, N, 64))

    return make_figure(
        "graph_walk",
        {
            "names": names,
            "places": places.mul(torch.tensor([1, -1])).round(decimals=2),
            "star": star.mul(torch.tensor([1, -1])).round(decimals=2),  # of the query; far away, at the edge
            "scores": scores,
            "links": layers_of(index.hnsw, N),
            "entry": index.hnsw.entry_point,
            "query": query_name,
            "k": k,
            "ef": ef,
        },
        summary=f"A search for {query_name} in a graph of {N} texts",
    )


def layers_of(hnsw, count: int) -> list[list[list[int]]]:
    """Read each layer's links out of faiss's arrays: for every node the nodes that it is linked to."""
    import faiss

    arrays = hnsw.neighbors, hnsw.offsets, hnsw.cum_nneighbor_per_level, hnsw.levels
    neighbours, offsets, starts, levels = (faiss.vector_to_array(array).astype(int) for array in arrays)
    layers = []
    for layer in range(hnsw.max_level + 1):
        rows = [
            neighbours[offsets[node] + starts[layer] : offsets[node] + starts[layer + 1]]
            if levels[node] > layer  # else it is not in this layer
            else neighbours[:0]
            for node in range(count)
        ]
        layers.append([[int(other) for other in row if other >= 0] for row in rows])
    return layers


def rotary_turn(
    query: Sequence[float] = (1.0, 0.3),
    key: Sequence[float] = (0.7, 0.21),  # the same direction
    tokens: Sequence[str] | None = None,
    *,
    pair: int = 4,
    pairs: int = 32,
    base: float = 10_000,
) -> View:
    """Draw rotary positions: a query and a key turn by their positions, and their product depends on the distance only.

    `query` and `key` (2,) are one pair of a head's dimensions; `tokens` are 2 to 16, or 12 positions without words. A
    position turns pair `pair` of `pairs`, half the head size, by `base` ** (-`pair` / `pairs`) radians (Su et al. 2021,
    section 3.2). ValueError for other shapes, nan and inf.
    """
    arrows = torch.stack([as_numbers("query", query, 2), as_numbers("key", key, 2)])
    names = [""] * 12 if tokens is None else as_tokens("tokens", tokens, 2, 16)
    check_size("pairs", pairs, 1, 512)
    check_size("pair", pair, 0, pairs - 1)
    check_between("base", base, 1, 1e9, "it is 10,000 in the paper")

    return make_figure(
        "rotary_turn",
        {"query": arrows[0], "key": arrows[1], "names": names, "at": [len(names) // 2, len(names) // 4]}
        | {"pair": pair, "pairs": pairs, "base": base},
        summary="Two positions turn a query and a key: their product depends on the distance only",
    )


def make_figure(name: str, data: dict, *, summary: str, before: Sequence[str] = ()) -> View:
    """Make the page of draggable/NAME.js with this data; `before` names other files that the drawing builds on."""
    title = writable(summary)
    page = Template(own_text("draggable/figure.html")).substitute(
        policy=POLICY,
        title=html.escape(title),
        css=css() + own_text("draggable/figure.css"),
        data=json_for_html({key: plain_numbers(value) for key, value in data.items()}),
        frame=own_text("frame.js"),
        shared=own_text("draggable/figure.js"),
        drawing="\n".join(own_text(f"draggable/{part}.js") for part in (*before, name)),
    )
    return View(title, page)


def as_numbers(argument: str, values, *sizes: int | range) -> Tensor:
    """Turn tensors, arrays or lists into float64 of these sizes; ValueError, naming the argument, if they are not."""
    numbers = torch.as_tensor(values).detach().cpu().double()
    allowed = [size if isinstance(size, range) else range(size, size + 1) for size in sizes]
    if numbers.dim() != len(sizes) or any(n not in ns for n, ns in zip(numbers.shape, allowed, strict=True)):
        wanted = " × ".join(f"{ns[0]}" if len(ns) == 1 else f"{ns[0]} to {ns[-1]}" for ns in allowed)
        raise ValueError(f"{argument} has the shape {tuple(numbers.shape)}: this figure draws {wanted} numbers")
    if not numbers.isfinite().all():
        raise ValueError(f"{argument} holds nan or inf, which cannot be drawn: {numbers.flatten()[:8].tolist()}")
    return numbers


def as_names(names: Sequence[str] | None, count: int, argument: str = "tokens") -> list[str]:
    """Return the names as texts, or 0, 1, 2 … for none; ValueError if they are not as many as what they name."""
    if isinstance(names, str):
        raise TypeError(f"{argument}={names!r:.60} is one text: pass a list of {count}")
    names = [f"token {index}" for index in range(count)] if names is None else list(map(str, names))
    if len(names) != count:
        raise ValueError(f"there are {len(names)} {argument}, but {count} to be named: pass as many")
    return [writable(name) for name in names]


def as_tokens(argument: str, tokens: Sequence[str], least: int, most: int) -> list[str]:
    """Turn a list of tokens into texts; TypeError for what is no list, ValueError for too few or too many."""
    if isinstance(tokens, str) or not isinstance(tokens, Sequence):
        raise TypeError(f"{argument}={tokens!r:.60} is no list of tokens: pass a list of texts")
    check_size(f"the number of {argument}", len(tokens), least, most)
    return as_names(tokens, len(tokens), argument)


def words_of(text: str, lowercase: bool = True) -> list[str]:
    """Split a text into BERT's words, special tokens and punctuation among them. TypeError if it is no string."""
    parts = split_special_tokens(text)
    words = ([part] if part in SPECIAL_TOKENS else pre_tokenize(normalize(part, lowercase)) for part in parts)
    return list(chain.from_iterable(words))


def splitting_rules(lowercase: bool) -> dict:
    """Return what tokenizer.js needs to split a text into BERT's words, from where Python's tokenizer has it."""
    return {
        "lowercase": lowercase,
        "later": LATER_CHARACTERS,
        "earlier": EARLIER_CATEGORY,
        "ideographs": CJK_RANGES,
        "longest": MAX_CHARACTERS_PER_WORD,
    }


def vocabulary_lines(vocab: Mapping[str, int]) -> str:
    """Write the tokens in the order of their ids, a line each; ValueError for ids with gaps, or a line break."""
    if set(vocab.values()) != set(range(len(vocab))):
        raise ValueError(f"{len(vocab)} tokens have ids up to {max(vocab.values())}: number them from 0, without gaps")
    if broken := [token for token in vocab if "\n" in token]:
        raise ValueError(f"the token {broken[0]!r:.60} holds a line break, which no vocab.txt can: remove it")
    return "\n".join(sorted(vocab, key=vocab.get))


def plain_numbers(value):
    """Turn a tensor into lists, which JSON can hold, and leave everything else as it is."""
    return value.tolist() if isinstance(value, Tensor) else value


def packed(numbers: Tensor) -> str:
    """Write numbers as base64 of float32, a quarter of the length that JSON takes; `unpack` in figure.js reads them."""
    return base64.b64encode(numbers.float().numpy().astype("<f4").tobytes()).decode()


def told(names: Sequence[str]) -> str:
    """Write names one after the other, each in quotation marks."""
    return ", ".join(f"“{name}”" for name in names)
