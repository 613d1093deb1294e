"""Count what only a GPU shows: waits of the processor, peak memory, one text compiled, and where torch.compile stops.

    python -m benchmarks.gpu

Prints Markdown lines for benchmarks/gpu.md. The first count is a control: one `.item()` must count as one wait.
"""

import copy
import statistics
import subprocess
import warnings
from collections.abc import Callable

import torch

from benchmarks.baselines import TORCH, TorchEncoder, forward_contestants, random_bert, runner
from benchmarks.report import markdown, versions
from benchmarks.timing import OURS, Work, take_turns
from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.search import embed
from utils.support.batches import collate
from utils.support.checkpoint import load_tokenizer

PACKAGES = ("torch", "transformers", "sentence-transformers")
ONE_TEXT = (OURS, TORCH, f"{OURS}, compiled with reduce-overhead")
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
    half, tokenizer = copy.deepcopy(encoder).bfloat16(), load_tokenizer()
    on_cpu = {name: x.cpu() for name, x in padded.items()}
    rows = [
        ["a control: one `.item()`", waits(lambda: full["input_ids"].sum().item())],
        ["a forward pass of a batch without padding", waits(lambda: encoder(**full))],
        ["of a padded batch", waits(lambda: encoder(**padded))],
        ["of a padded batch, packed", waits(lambda: encode_packed(encoder, **padded))],
        ["of a padded batch on the processor, packed in 16 bits", waits(lambda: encode_packed(half, **on_cpu))],
        ["`embed` of 256 texts in 16 bits", waits(lambda: embed(["one text", "two"] * 128, half, tokenizer))],
    ]
    print(markdown([["", "waits for the GPU"], *([name, str(count)] for name, count in rows)]))
    found = torch._dynamo.explain(encoder)(**padded)
    print(f"\ntorch.compile: {found.graph_count} graph, {found.graph_break_count} breaks\n")
    print(markdown([["64 × 512, bfloat16", "MB on top of the weights"], *memory()]) + "\n")
    print(markdown([["one text", *ONE_TEXT], *map(one_text, (8, 512))]))


def memory() -> list[list[str]]:
    """Return the peak memory of ours and the peers' forward passes, in addition to what is in use."""
    encoder, official = random_bert("cuda", torch.bfloat16)
    batch = collate(torch.randint(1000, 30000, (64, 512)).tolist(), "cuda")
    rows = []
    for name, run in forward_contestants(encoder, official, batch).items():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        rows.append([name, f"{(torch.cuda.max_memory_allocated() - before) / 1e6:,.0f}"])
    return rows


def one_text(length: int) -> list[str]:
    """Return the milliseconds of one text in bfloat16: ours, the peer's, and ours compiled for its shape."""
    encoder, _ = random_bert("cuda", torch.bfloat16)
    batch = collate([[1000] * length], "cuda")
    compiled = torch.compile(copy.deepcopy(encoder), mode="reduce-overhead", dynamic=False)
    models = zip(ONE_TEXT, (encoder, TorchEncoder(encoder).eval().to("cuda", torch.bfloat16), compiled), strict=True)
    seconds = take_turns(Work(f"1 × {length}", {name: runner(model, batch) for name, model in models}, 30), "cuda")
    return [f"1 × {length}", *(f"{1000 * statistics.median(times):.2f} ms" for times in seconds.values())]


if __name__ == "__main__":
    main()
