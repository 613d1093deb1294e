"""What to feed to a BERT that is diagnosed, and the numbers that come back."""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exercises.diagnosis.texts import INPUTS, TEXTS, Batch
from utils.support.batches import device_of
from utils.support.checkpoint import wrap_read_errors

LONG, SHORT = ("time flies like an unaffable café", "so it goes"), ("fruit flies", "so")
EXCHANGED = (4, 6)  # the positions of the two tokens that change places in row 2
HELP = (
    "Feed the ids, mask and types, and save all hidden states {states} with the embeddings first, or the last ones "
    "{last}; or save the vectors of the texts {vectors}, of which one is a pair. Then run: "
    "python -m exercises diagnose FILE, a .npy file or a .json file. A .json file may be a list of lists, or "
    'an object with it under "numbers" and with these sums, computed from your weights.'
)


def probe_batch(tokenizer) -> Batch:
    """Return ids, mask and types (5, S) of pairs of texts, all padded.

    Row 1 is row 0 again, row 2 has two tokens exchanged, and row 4 is row 3 with other ids under the padding.
    """
    pairs = [LONG] * 3 + [SHORT] * 2
    first, second = zip(*pairs, strict=True)
    rows = tokenizer(list(first), list(second), padding=True, padding_side="right", return_token_type_ids=True)
    ids, mask, types = (F.pad(torch.tensor(rows[name]), (0, 2)) for name in INPUTS)
    ids[2, list(EXCHANGED)] = ids[0, list(EXCHANGED[::-1])]
    ids[4] = torch.where(mask[4] == 1, ids[4], ids[0].roll(3))
    return ids, mask, types


def weight_sums(encoder: nn.Module) -> dict[str, float]:
    """Return the sums of the absolute values of three weights, by their official names."""
    embeddings, first, last = encoder.embeddings, encoder.layers[0], encoder.layers[-1]
    weights = {
        "embeddings.word_embeddings.weight": embeddings.word_embeddings.weight,
        "encoder.layer.0.attention.self.query.weight": first.attention.query.weight,
        f"encoder.layer.{len(encoder.layers) - 1}.output.LayerNorm.weight": last.feed_forward_norm.weight,
    }
    return {name: weight.float().abs().sum().item() for name, weight in weights.items()}


def probe(encoder: nn.Module, tokenizer) -> dict:
    """Return what `--probe` writes: inputs, texts, and what to do with them."""
    batch = probe_batch(tokenizer)
    rows, S = batch[0].shape
    L, H = encoder.config.num_hidden_layers, encoder.config.hidden_size
    text = HELP.format(states=(L + 1, rows, S, H), last=(rows, S, H), vectors=(len(TEXTS), H))
    inputs = {name: values.tolist() for name, values in zip(INPUTS, batch, strict=True)}
    return {"help": text, **inputs, "texts": TEXTS, "sums_of_absolute_values": weight_sums(encoder)}


def read_numbers(path: Path) -> tuple[Tensor, dict[str, float]]:
    """Read a .npy or a .json file, and the sums of weights, if it has them; ValueError if it holds no numbers."""
    with wrap_read_errors(path, ": save an array of numbers with numpy.save, or nested lists as JSON"):
        if path.suffix != ".json":
            if not path.read_bytes().startswith(np.lib.format.MAGIC_PREFIX):
                raise ValueError("it is not a .npy file")
            return as_tensor(np.load(path)), {}
        content = json.loads(path.read_text("utf-8"))
        if isinstance(content, list):
            return as_tensor(content), {}
        if "numbers" not in content:
            raise ValueError(f'it has no "numbers", but {", ".join(content) or "nothing"}')
        return as_tensor(content["numbers"]), content.get("sums_of_absolute_values", {})


def as_tensor(numbers) -> Tensor:
    """Return an array, nested lists or a sequence of tensors as a tensor of float32 on the CPU."""
    if isinstance(numbers, tuple | list) and len(numbers) and hasattr(numbers[0], "shape"):
        numbers = torch.stack([torch.as_tensor(each) for each in numbers])
    return torch.as_tensor(numbers).detach().cpu().float()


@torch.no_grad()
def call(model, batch: Batch) -> Tensor:
    """Return the states of a model or function, all if it offers them, in its own mode and on its device."""
    if isinstance(model, nn.Module):
        batch = [part.to(device_of(model)) for part in batch]
    output = model(*batch, **({"output_hidden_states": True} if hasattr(model, "config") else {}))
    states = getattr(output, "hidden_states", None)
    return as_tensor(getattr(output, "last_hidden_state", output) if states is None else states)


def missing_weights(model, encoder: nn.Module) -> list[str]:
    """Return the names of our weights that a module does not have, transposed or not."""
    if not isinstance(model, nn.Module):
        return []
    theirs = [(weight.numel(), weight.detach().float().abs().sum().item()) for weight in model.state_dict().values()]
    ours = {name: (weight.numel(), weight.abs().sum().item()) for name, weight in encoder.state_dict().items()}
    return [
        name
        for name, (size, total) in ours.items()
        if not any(number == size and abs(other - total) <= 0.001 * total for number, other in theirs)
    ]
