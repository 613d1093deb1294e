"""Alternatives to this repository's encoder with the same weights, and the lower limit of their time.

Every peer is a function of a batch (input_ids, attention_mask and token_type_ids, (B, S) each) that returns the last
hidden state (B, S, H).
"""

from collections.abc import Callable, Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from benchmarks.timing import LIMIT, OURS
from utils.encoder import TransformerEncoder

Batch = dict[str, Tensor]
EAGER, SDPA = "transformers, eager", "transformers, sdpa"
TORCH = "torch.nn.TransformerEncoder"


def torch_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename a layer's weights for nn.TransformerEncoderLayer.

    It stacks query, key and value, (H, H) each, into a single (3H, H).
    """
    renamed = {
        "self_attn.out_proj": "attention.output",
        "linear1": "feed_forward.intermediate",
        "linear2": "feed_forward.output",
        "norm1": "attention_norm",
        "norm2": "feed_forward_norm",
    }
    kinds = ("weight", "bias")
    found = {f"{new}.{kind}": weights[f"{old}.{kind}"] for new, old in renamed.items() for kind in kinds}
    for kind in kinds:
        parts = [weights[f"attention.{name}.{kind}"] for name in ("query", "key", "value")]
        found[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
    return found


class TorchEncoder(nn.Module):
    """Our embeddings followed by torch.nn.TransformerEncoder, whose fast path skips padding."""

    def __init__(self, encoder: TransformerEncoder):
        super().__init__()
        config = encoder.config
        sizes = (config.hidden_size, config.num_attention_heads, config.intermediate_size)
        options = {"activation": "gelu", "batch_first": True, "layer_norm_eps": config.layer_norm_eps}
        layer = nn.TransformerEncoderLayer(*sizes, **options)
        self.embeddings = encoder.embeddings
        self.stack = nn.TransformerEncoder(layer, config.num_hidden_layers)
        for theirs, ours in zip(self.stack.layers, encoder.layers, strict=True):
            theirs.load_state_dict(torch_names(ours.state_dict()))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Map a batch to its last hidden state (B, S, H)."""
        padding = None if attention_mask.all() else attention_mask == 0
        return self.stack(self.embeddings(input_ids, token_type_ids), src_key_padding_mask=padding)


def random_bert(device: str, dtype: torch.dtype) -> tuple[TransformerEncoder, BertModel]:
    """Return an encoder of BERT-base's size with random weights, and the official model with the same weights."""
    torch.manual_seed(0)
    config = BertConfig()
    config._attn_implementation = "eager"
    official = BertModel(config).eval()
    encoder = TransformerEncoder(config)
    encoder.load_bert_weights(official.state_dict())
    return encoder.eval().to(device, dtype), official


def forward_contestants(
    encoder: TransformerEncoder, official: BertModel, batch: Batch
) -> dict[str, Callable[[], Tensor]]:
    """Return ours, the peers and a processor's limit on one batch, after checking that they agree on real tokens."""
    sdpa = deepcopy(official)  # including its config, which the next line changes
    sdpa.set_attn_implementation("sdpa")
    device = batch["input_ids"].device
    models = {OURS: encoder, EAGER: official, SDPA: sdpa, TORCH: TorchEncoder(encoder).eval()}
    models = {name: model.to(device, next(encoder.parameters()).dtype) for name, model in models.items()}

    contestants = {name: runner(model, batch) for name, model in models.items()}
    require_agreement(contestants, batch["attention_mask"])
    return contestants | limit(encoder, batch["attention_mask"].sum(dim=1).tolist())


def runner(model: nn.Module, batch: dict[str, Tensor]) -> Callable[[], Tensor]:
    """Return a function that computes the last hidden state of a batch."""

    @torch.inference_mode()
    def run() -> Tensor:
        output = model(**batch)
        return output if isinstance(output, Tensor) else output.last_hidden_state

    return run


def require_agreement(contestants: dict[str, Callable[[], Tensor]], attention_mask: Tensor) -> None:
    """Raise AssertionError unless all contestants agree at real tokens."""
    real = attention_mask.bool()
    ours = contestants[OURS]()[real]
    for name, run in contestants.items():
        tolerance = 1e-4 if ours.dtype == torch.float32 else 0.2
        if name == TORCH and ours.is_cuda:  # its fast path approximates GELU by tanh there
            tolerance = max(tolerance, 1e-2)
        difference = (run()[real] - ours).abs().max()
        assert difference < tolerance, f"{name} differs by {difference:.1e}"


def limit(encoder: TransformerEncoder, *batches: list[int]) -> dict[str, Callable[[], object]]:
    """Return the products of batches of texts of these lengths as a contestant, on the processor.

    On a GPU, many products with small matrices are no limit.
    """
    if next(encoder.parameters()).is_cuda:
        return {}
    products = [matrix_products(encoder, lengths) for lengths in batches]
    return {LIMIT: lambda: [run() for run in products]}


def matrix_products(encoder: TransformerEncoder, lengths: list[int]) -> Callable[[], None]:
    """Return a function that computes only the encoder's matrix products on real tokens, which no encoder can avoid.

    Products with weights use all tokens of the batch together; products between tokens go text by text, or use all
    texts together if they have the same length.
    """
    config = encoder.config
    H, A = config.hidden_size, config.num_attention_heads
    like = next(encoder.parameters())
    tokens = sum(lengths)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, device=like.device, dtype=like.dtype)

    narrow, wide = numbers(tokens, H), numbers(tokens, config.intermediate_size)
    stacked, square = numbers(3 * H, H), numbers(H, H)
    up, down = numbers(config.intermediate_size, H), numbers(H, config.intermediate_size)
    same = len(set(lengths)) == 1
    groups = [(len(lengths), lengths[0])] if same else [(1, length) for length in lengths]
    heads = [(numbers(B * A, S, H // A), numbers(B * A, S, S)) for B, S in groups]
    linear, bmm = nn.functional.linear, torch.bmm

    @torch.inference_mode()
    def run() -> None:
        for _ in range(config.num_hidden_layers):
            linear(narrow, stacked)
            for query, weights in heads:
                bmm(query, query.transpose(1, 2))
                bmm(weights, query)
            linear(narrow, square)
            linear(narrow, up)
            linear(wide, down)

    return run
