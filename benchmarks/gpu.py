"""Count what only a GPU shows: how often a forward pass makes the processor wait for it, and where torch.compile stops.

    python -m benchmarks.gpu

Prints Markdown lines for benchmarks/gpu.md. The first count is a control: one `.item()` must count as one wait.
"""

import subprocess
import warnings
from collections.abc import Callable

import torch

from benchmarks.report import markdown, versions
from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.support.batches import collate

PACKAGES = ("torch", "transformers", "sentence-transformers")
QUERY = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")


def waits(run: Callable[[], object]) -> int:
    """Return how often a function makes the processor wait for the GPU, after a first run that may set things up."""
    run()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(warning.message) for warning in caught)


@torch.inference_mode()
def main() -> None:
    """Print the GPU, the versions, and the counts."""
    card = subprocess.run(QUERY, capture_output=True, text=True, check=True).stdout.strip()
    print(f"{card}; {versions(PACKAGES)}, CUDA {torch.version.cuda}\n")
    encoder = TransformerEncoder.from_checkpoint().eval().to("cuda")
    full, padded = (collate([[101, *[2000] * size, 102] for size in sizes], "cuda") for sizes in ([9, 9], [9, 5]))
    rows = [
        ["a control: one `.item()`", waits(lambda: full["input_ids"].sum().item())],
        ["a forward pass of a batch without padding", waits(lambda: encoder(**full))],
        ["of a padded batch", waits(lambda: encoder(**padded))],
        ["of a padded batch, packed", waits(lambda: encode_packed(encoder, **padded))],
    ]
    print(markdown([["", "waits for the GPU"], *([name, str(count)] for name, count in rows)]))
    found = torch._dynamo.explain(encoder)(**padded)
    print(f"\ntorch.compile: {found.graph_count} graph, {found.graph_break_count} breaks")


if __name__ == "__main__":
    main()
