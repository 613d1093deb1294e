"""Memory that is short is an error that a notebook survives."""

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT, TINY

TOO_MUCH = """\
import resource, torch
from pathlib import Path
from transformers import BertConfig
from utils.encoder import TransformerEncoder
encoder = TransformerEncoder(BertConfig(**{config})).eval()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, used + 10**9))
ids = torch.ones(1000, 512, dtype=torch.long)
with torch.no_grad():
    try:
        encoder(ids, output_attentions=True)
    except RuntimeError as error:
        print(error)
    print(len(encoder(ids[:1], output_attentions=True).attentions), "layers")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_too_large_a_batch_under_a_memory_limit_is_an_error_and_the_kernel_goes_on():
    program = TOO_MUCH.format(config=TINY | {"max_position_embeddings": 512})
    variables = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", program]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    scores = 1000 * 3 * 512 * 512 * 4
    assert f"you tried to allocate {scores} bytes" in run.stdout
    assert run.stdout.endswith("2 layers\n")
