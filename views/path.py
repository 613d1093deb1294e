"""`path_view`: where a word goes in an encoder, measured, and where a vector comes from, an estimate next to that."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from utils.encoder import TransformerEncoder
from views.any_model import Layers, NotPlainSoftmax, has_two_sides, is_official
from views.arguments import act
from views.figures import make_figure, pack
from views.models import (
    check_model,
    hidden_states,
    inference,
    kind_of,
    name_of,
    on_device,
    read_layers,
    require_tokens,
    tokenize_for_view,
    unwrap,
)
from views.page import View, writable
from views.sentence import index_of_token, quoted
from views.words import marks_among, merge, words_of

MAX_WORDS = 64  # each is taken away once
CHUNK = 16  # texts that are run at a time


class Path(NamedTuple):
    """What happens to a text of W words in L layers."""

    names: list[str]
    turns: Tensor  # (W, L + 1, W): how far each word's vector turns after each layer without a word, 1 - cosine
    flows: Tensor | None  # (L, W, W): the share of each word's vector that comes from each; None if it cannot be read
    unsplit: str  # the reason for that
    mask: str  # the token that takes a word's place


def path_view(
    model: nn.Module,
    tokenizer: Callable,
    text: str,
    *,
    word: str | int | None = None,
    name: str | None = None,
    html_action: str | None = None,
) -> View | None:
    """Draw where a word goes through the layers of an encoder, and where a word's vector comes from.

    For example:  path_view(model, tokenizer, "The animal didn't cross because it was too tired.", word="tired")

    Where it goes is measured: the word is replaced by the mask token, and each lane is as wide as the root of the turn,
    1 - cosine, of that word's vector after each layer. Where a vector comes from is an estimate: attention and residual
    are split exactly by source, and a part's share is how much nearer it brings one to the whole (the idea of ALTI,
    Ferrando et al. 2022); next to each share is the measurement. ValueError for a model or tokenizer without a mask
    token, an encoder–decoder, a text of more than 64 words and a word that the text does not have.

    Parameters:
        model: an encoder of this series or of transformers.
        tokenizer: its tokenizer.
        text: the text; the pieces of a word are taken together.
        word: the word that is followed at first, or its index; by default the first word.
        name, html_action: as for `head_view`.
    """
    model = unwrap(model)
    path = read_path(model, tokenizer, text)
    start = index_of_token(word, path.names)
    last = path.turns[start, -1]
    marks = marks_among(path.names)
    most = max(set(range(len(path.names))) - {start}, key=lambda other: (path.names[other] not in marks, last[other]))
    title = f"With {path.mask} for {quoted(path.names[start])}, no word turns more than {quoted(path.names[most])}"
    layers = path.turns.size(1) - 1
    size = f"{layers} layer{'s' * (layers > 1)} on {len(path.names)} words, “{text}”"
    unsplit = path.unsplit and f"where a vector comes from is not drawn: {path.unsplit}"
    view = make_figure(
        "path_view",
        {
            "names": path.names,
            "marks": marks,
            "mask": path.mask,
            "layers": layers,
            "turns": pack(path.turns.contiguous()),
            "flows": None if path.flows is None else pack(path.flows.contiguous()),
            "first": start,
        },
        title=f"{title}: {last[most]:.2f} (1 − cosine)",
        details=", ".join(filter(None, [name or name_of(model), size, unsplit])),
    )
    return act(view, html_action)


def read_path(model: nn.Module, tokenizer: Callable, text: str) -> Path:
    """Measure and split what happens to a text; see `path_view` for the errors."""
    check_model(model)
    if has_two_sides(model) or not (is_official(model) or isinstance(model, TransformerEncoder)):
        raise ValueError(f"path_view draws one encoder, not a {kind_of(model)}: pass the encoder, model.get_encoder()")
    mask = mask_token_id(tokenizer)
    read = require_tokens("text", tokenize_for_view(model, tokenizer, text, None))
    ids, names = words_of(read.tokens, read.words)
    if not 2 <= len(names) <= MAX_WORDS:
        raise ValueError(f"path_view draws 2 to {MAX_WORDS} words, but the text has {len(names)}: shorten the text")
    inputs = on_device(model, read.inputs)
    with inference(model):
        states = hidden_states(model, inputs)  # (L + 1, 1, S, H)
        turned = []
        masked = torch.stack([mask_word(inputs["input_ids"][0], ids, word, mask) for word in range(len(names))])
        for chunk in masked.split(CHUNK):
            others = {name: tensor.expand(len(chunk), *tensor.shape[1:]) for name, tensor in inputs.items()}
            changed = hidden_states(model, others | {"input_ids": chunk})
            turned.append(1 - torch.cosine_similarity(changed, states, dim=-1))  # (L + 1, chunk, S)
        try:
            flows, unsplit = split_layers(read_layers(model, inputs), states[:, 0]), ""
        except NotPlainSoftmax as reason:
            flows, unsplit = None, str(reason)
    turns = torch.cat(turned, dim=1).transpose(0, 1).double().clamp(min=0)  # (W, L + 1, S)
    pieces = torch.nn.functional.one_hot(torch.tensor(ids)).double()  # (S, W)
    turns = turns @ (pieces / pieces.sum(dim=0))
    flows = None if flows is None else merge(flows.double(), ids, ids)
    name = (
        tokenizer.convert_ids_to_tokens(mask) if hasattr(tokenizer, "convert_ids_to_tokens") else tokenizer.tokens[mask]
    )
    return Path([writable(one) for one in names], turns, flows, unsplit, writable(name))


def mask_token_id(tokenizer: Callable) -> int:
    """Return the id of the mask token; ValueError if the tokenizer has none."""
    own = getattr(tokenizer, "mask_token_id", None)
    if own is None and not hasattr(tokenizer, "convert_ids_to_tokens"):
        own = tokenizer.vocab.get("[MASK]")
    if own is None:
        raise ValueError(
            "path_view replaces a word by the mask token, and this tokenizer has none (tokenizer.mask_token): use a "
            "model that was trained with masks, such as BERT, or sentence_view"
        )
    return own


def mask_word(input_ids: Tensor, ids: Sequence[int], word: int, mask: int) -> Tensor:
    """Return the ids (S,) with the mask token in place of each piece of a word."""
    return torch.where(torch.tensor(ids, device=input_ids.device) == word, mask, input_ids)


def split_layers(layers: Layers, states: Tensor) -> Tensor:
    """Return the share (L, S, S) of each token's vector that each token gives it.

    `states` (L + 1, S, H) are the vectors between the layers. The sum of attention and residual is split: what a token
    gives is its values, weighted and projected; the token itself also gives its residual. NotPlainSoftmax if a layer
    cannot be split.
    """
    shares = []
    if len(layers.outputs) != len(layers.weights):
        raise NotPlainSoftmax("no linear layer follows its attention")
    parts_of_layers = zip(layers.weights.cpu(), layers.values.cpu(), layers.outputs, states[:-1], strict=True)
    for weights, values, output, before in parts_of_layers:
        A, S, D = values.shape
        projection = output.weight.float().cpu().view(-1, A, D)
        if projection.size(0) != before.size(-1):
            raise NotPlainSoftmax("its attention has another size than its residual")
        parts = torch.einsum("aij,jah->ijh", weights, torch.einsum("ajd,had->jah", values, projection))
        whole = parts.sum(dim=1) + before + (0 if output.bias is None else output.bias.float().cpu())
        parts[range(S), range(S)] += before
        nearer = whole.abs().sum(dim=-1)[:, None] - (whole[:, None] - parts).abs().sum(dim=-1)
        nearer = nearer.clamp(min=0)
        shares.append(nearer / nearer.sum(dim=-1, keepdim=True))
    return torch.stack(shares)
