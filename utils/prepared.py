"""An encoder prepared for reading many texts on a CPU: its matrices laid out as products want them. Notebook 13."""

import copy

import torch
from torch import Tensor, nn

from utils.encoder import TransformerEncoder
from utils.packing import has_exchanged_methods

# activations that a product applies to its result while that is still in the cache, and their names there
IN_THE_PRODUCT = {nn.GELU: "gelu", nn.ReLU: "relu"}


class PackedLinear(nn.Module):
    """What a linear map gives, and an activation after it, with the weights in the order in which oneDNN reads them.

    The order depends on the processor, so it is neither saved nor trained. torch.compile's `freezing` calls the same
    functions of torch.
    """

    def __init__(self, linear: nn.Linear, activation: nn.Module | None = None):
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        self.bias = linear.bias.detach()
        self.after = "none" if activation is None else IN_THE_PRODUCT[type(activation)]
        self.approximation = getattr(activation, "approximate", "")

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) to (…, out)."""
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, self.after, [], self.approximation)


@torch.no_grad()
def prepare(encoder: TransformerEncoder) -> TransformerEncoder:
    """A copy of an encoder that gives the same vectors sooner on a CPU, for reading only: it cannot learn or be saved.

    Its products with weights find these in the order in which they read them, and apply the activation at once. Any
    batch may follow, padded or packed. Where PyTorch has no oneDNN, as on a Mac, and on a GPU the copy is an ordinary
    one; a prepared encoder comes back as it is. TypeError for what is no TransformerEncoder; ValueError for one with
    parts of a reader's, which may use the weights in other ways.
    """
    if not isinstance(encoder, TransformerEncoder):
        raise TypeError(f"a {type(encoder).__name__} cannot be prepared: pass a TransformerEncoder")
    if has_exchanged_methods(encoder):
        raise ValueError(
            "this encoder has parts of your own: prepare the finished one, TransformerEncoder.from_checkpoint()"
        )
    if any(isinstance(part, PackedLinear) for part in encoder.modules()):
        return encoder
    prepared = copy.deepcopy(encoder).eval().requires_grad_(False)
    weight = next(prepared.parameters())
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not torch.backends.mkldnn.is_available():
        return prepared
    for layer in prepared.layers:
        for name in ("query", "key", "value", "output"):
            setattr(layer.attention, name, PackedLinear(getattr(layer.attention, name)))
        network = layer.feed_forward
        network.intermediate = PackedLinear(network.intermediate, network.activation)
        network.activation = nn.Identity()
        network.output = PackedLinear(network.output)
    return prepared
