"""LoRA: fine-tune a frozen matrix through two thin ones (Hu et al. 2022). Built in notebook 15."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from utils.support.checks import check_settings


class LoRA(nn.Module):
    """A frozen linear layer plus a learned product of two thin matrices (Hu et al. 2022, section 4.1).

    Built in notebook 15, exercise 15.4.
    """

    def __init__(self, linear: nn.Linear, rank: int = 8, alpha: float = 16.0):
        """Draw the first matrix, of `rank` rows, and set the second to 0, so that nothing changes at first."""
        super().__init__()
        check_settings(rank=rank, alpha=alpha)
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """Map x (…, in) to (…, out)."""
        return self.linear(x) + self.scale * (x @ self.down.T) @ self.up.T

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """Return a plain linear layer with the same output: the product is added to the matrix."""
        linear = deepcopy(self.linear)
        linear.weight += self.scale * self.up @ self.down
        return linear


def add_lora(model: nn.Module, rank: int = 8, alpha=16.0, kind=LoRA) -> None:
    """Freeze a model's encoder, and wrap each linear layer of its layers in a LoRA; the head stays trainable.

    The model is a `TransformerEncoder`, has one, or is a BERT of transformers. `kind` is a class with the methods of
    `LoRA`. TypeError for another model, ValueError for one that has LoRA.
    Built in notebook 15, section “A LoRA that learns”.
    """
    frozen = getattr(model, "base_model", getattr(model, "encoder", model))
    stack = getattr(frozen, "encoder", frozen)
    layers = getattr(stack, "layers", getattr(stack, "layer", None))
    if not isinstance(layers, nn.ModuleList):
        raise TypeError(
            f"add_lora does not know the layers of a {type(model).__name__}: use a TransformerEncoder, a model with "
            "one, or a BERT of transformers"
        )
    if any(hasattr(module, "merged") for module in model.modules()):
        raise ValueError("the model has LoRA already: call merge_lora(model) first, or load the model again")
    frozen.requires_grad_(False)
    for name, module in [*layers.named_modules()]:
        if isinstance(module, nn.Linear):
            layers.set_submodule(name, kind(module, rank, alpha).to(module.weight))


def merge_lora(model: nn.Module) -> None:
    """Replace every LoRA by its merged linear layer, so that the model can be saved as usual.

    Built in notebook 15, section “A LoRA that learns”.
    """
    for name, module in [*model.named_modules()]:
        if callable(getattr(module, "merged", None)):
            model.set_submodule(name, module.merged())
