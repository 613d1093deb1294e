"""A broken BERT by a number, for exercise 6.4: its numbers alone, with which the reader finds the mistake.

Of each four numbers, beginning with 1, one is right, and the others have a mistake in another part each.
"""

from random import Random

import torch
from torch import Tensor, nn

from exercises.diagnosis.bugs import with_bugs
from exercises.diagnosis.matching import distance
from exercises.diagnosis.patches import wrap
from exercises.diagnosis.reference import Reference, default_reference
from exercises.diagnosis.texts import Batch, padded_rows
from utils.support.batches import device_of
from utils.support.checkpoint import checkpoint_name

RIGHT = "right"
SUSPECTS = (  # of the embeddings, of attention, of the rest of a layer
    ("types ignored", "no types", "positions from 1", "words times √H"),
    ("no √D", "by √H", "no mask", "mask 0, not −∞", "mask after softmax", "causal", "query, key exchanged"),
    ("ReLU", "activation twice", "first norm twice", "no first residual", "second residual from the input"),
)
FIRST = 22  # of the first four, each mistake shows in some texts more than in others
AGREE = 1e-4  # what rungs may differ by
MARK = 1e-6  # far below: it tells `diagnose` that numbers are those of the exercise


def suspects() -> list[str]:
    """Return the names that a BERT of the exercise can have."""
    return [*(name for names in SUSPECTS for name in names), RIGHT]


def kind_of(number: int) -> str:
    """Return what is wrong with a BERT."""
    group, place = divmod(number - 1, len(SUSPECTS) + 1)
    draw = Random(f"broken {FIRST + group}")
    names = [*map(draw.choice, SUSPECTS), RIGHT]
    draw.shuffle(names)
    return names[place]


def model_of(name: str, reference: Reference) -> nn.Module:
    """Return the reference's encoder, with a mistake unless it is right."""
    return with_bugs(reference.encoder, *[name] * (name != RIGHT))


def mark(shape: tuple[int, ...]) -> Tensor:
    """Return what is added to all last vectors."""
    return MARK * torch.randn(shape, generator=torch.Generator().manual_seed(64))


def broken(number: int) -> dict[str, Tensor]:
    """Return the inputs of a BERT and its numbers, by rung: five rows of padded pairs of texts, see `probe_batch`."""
    reference = default_reference(checkpoint_name())
    found = inside(model_of(kind_of(number), reference), reference.batch)
    last = [*found][-1]
    found[last] = found[last] + mark(found[last].shape)
    return dict(zip(("ids", "mask", "types"), reference.batch, strict=True)) | found


@torch.no_grad()
def inside(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Return a model's embeddings (B, S, H), and of each layer its attention weights and vectors at three places.

    Use the model no more: its layers keep what they compute.
    """
    kept = {}
    for number, layer in enumerate(model.layers):

        def attention(earlier, *inputs, number=number):
            attended, weights = earlier(*inputs)
            kept[f"layer {number}, attention weights"] = weights
            kept[f"layer {number}, attention vectors"] = attended
            return attended, weights

        def feed_forward(earlier, x, number=number):
            kept[f"layer {number}, halfway vectors"] = x
            return earlier(x)

        wrap(layer.attention, "forward", attention)
        wrap(layer.feed_forward, "forward", feed_forward)
    states = model(*batch, output_attentions=True, output_hidden_states=True).hidden_states
    found = {"embeddings": states[0]}
    for number, vectors in enumerate(states[1:]):
        found |= {name: kept[name] for name in kept if name.startswith(f"layer {number},")}
        found[f"layer {number}, vectors"] = vectors
    return found


@torch.no_grad()
def climb_inside(encoder: nn.Module, theirs: dict[str, Tensor]) -> None:
    """Print where an encoder's parts return other numbers, each fed with THEIR numbers of the rung below."""
    theirs = {name: part.to(device_of(encoder)) for name, part in theirs.items()}
    mask, x = theirs["mask"], theirs["embeddings"]
    lines = {"embeddings": {"": encoder.embeddings(theirs["ids"], theirs["types"])}}
    for number, layer in enumerate(encoder.layers):
        at = {name.partition(", ")[2]: part for name, part in theirs.items() if name.startswith(f"layer {number},")}
        attended, weights = layer.attention(x, mask, True)
        middle = at["halfway vectors"]
        lines[f"layer {number}"] = {
            "attention weights": weights,
            "attention vectors": attended,
            "halfway vectors": layer.attention_norm(x + at["attention vectors"]),
            "vectors": layer.feed_forward_norm(middle + layer.feed_forward(middle)),
        }
        x = at["vectors"]
    for place, rungs in lines.items():
        shown = []
        for rung, ours in rungs.items():
            pair = ours, theirs[f"{place}, {rung}".removesuffix(", ")]
            one, other = ((each.transpose(1, 2) if each.ndim == 4 else each)[mask == 1] for each in pair)
            gap = (one - other).abs().max().item()
            shown.append(f"{rung} {'agree' if gap <= AGREE else f'DIFFER by {gap:.2g}'}".strip())
        print(f"{place:<10}", *shown, sep="  ")


def numbers_of(name: str) -> Tensor:
    """Return the last vectors of real tokens, (N,), with a mistake."""
    reference = default_reference(checkpoint_name())
    return reference.last(*[name] * (name != RIGHT))[reference.real].flatten()


def gap_between(name: str, number: int) -> float:
    """Return how far the numbers of a mistake are from those of a BERT, as a share of their size."""
    return distance(numbers_of(name), numbers_of(kind_of(number)))


@torch.no_grad()
def shown_by(name: str, *texts: str) -> list[float]:
    """Return how much a mistake changes the last vectors of each text of a batch; `a | b` is a pair."""
    reference = default_reference(checkpoint_name())
    pairs = [tuple(part.strip() for part in text.split("|", 1)) for text in texts]
    batch = padded_rows(reference.tokenizer, pairs)
    right, wrong = (model_of(each, reference)(*batch, output_attentions=True)[0] for each in (RIGHT, name))
    return [distance(a[m == 1].flatten(), b[m == 1].flatten()) for a, b, m in zip(right, wrong, batch[1], strict=True)]
