"""Shared helpers: small models, the project's folder, commands in a separate process."""

import base64
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig

from utils.classifier import TransformerForSequenceClassification
from utils.tokenization import WordPieceTokenizer

ROOT = Path(__file__).resolve().parents[1]
WINDOW = {"width": 1300, "height": 900}  # of the tests in a browser
PAIR = ("I called Ian.", "I got his answering machine.")
SENTENCE = " ".join(PAIR)
CASED = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "É", "A", "##b"]
TINY = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 20}
TINY |= {"vocab_size": 50, "max_position_embeddings": 16}
SMALL = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16}
SMALL |= {"vocab_size": 30, "max_position_embeddings": 10}
unix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals, limits and users")


def tiny_tokenizer(size: int = TINY["vocab_size"]) -> WordPieceTokenizer:
    """Return a tokenizer of the special tokens, letters and numbers, with a vocabulary of this size."""
    words = [*"abcdefghijklmnopqrstuvwxyz", *(str(number) for number in range(size))]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words][:size]
    return WordPieceTokenizer({token: number for number, token in enumerate(tokens)})


def write_vocabulary(folder: Path, tokens: Sequence[str], lowercase: bool = True) -> None:
    """Write a tokenizer with these tokens, in files that every release of transformers reads."""
    (folder / "vocab.txt").write_text("\n".join(tokens), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase}), "utf-8")


def filled(number: float) -> TransformerForSequenceClassification:
    """Return a model whose weights are all this number."""
    model = TransformerForSequenceClassification(BertConfig(**TINY))
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(number)
    return model


def saved_number(folder: Path) -> float:
    """Return the number that all weights of a saved model are; fail for a mixture of two models."""
    weights = TransformerForSequenceClassification.from_checkpoint(folder).state_dict().values()
    (number,) = {value for weight in weights for value in weight.unique().tolist()}
    return number


def names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": str(ROOT)}


def run_python(*arguments, folder: Path = ROOT, typed: str = "", **variables: str) -> subprocess.CompletedProcess:
    """Run Python in a folder, with this project's packages, one thread and these variables."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env=ONE_THREAD | variables, input=typed, capture_output=True, encoding="utf-8", check=False
    )


def weights_of(model: torch.nn.Module) -> torch.Tensor:
    """Return a copy of all weights of a model in one row."""
    return torch.cat([weight.detach().flatten() for weight in model.parameters()]).clone()


# Two processes on a machine without a GPU.
LAUNCH = ["-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision", "no"]
LAUNCH += ["--dynamo_backend", "no", "--main_process_port", "0", "--num_cpu_threads_per_process", "1"]
LAUNCH += ["--multi_gpu", "--num_processes", "2"]


def random_sizes(seed: int) -> dict:
    """Draw a small configuration: sizes, activation, epsilon of LayerNorm, and initializer range."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*choices):
        return choices[torch.randint(len(choices), (), generator=generator)]

    heads = draw(1, 2, 3, 4)
    sizes = {"num_attention_heads": heads, "hidden_size": heads * draw(2, 4, 7), "num_hidden_layers": draw(1, 2, 3)}
    sizes |= {"intermediate_size": draw(5, 16, 33), "vocab_size": draw(20, 31, 50), "type_vocab_size": draw(2, 3)}
    sizes |= {"max_position_embeddings": draw(16, 24), "hidden_act": draw("gelu", "gelu_new", "relu")}
    return sizes | {"layer_norm_eps": draw(1e-12, 1e-5), "initializer_range": draw(0.02, 0.2)}


def shaken(model: torch.nn.Module, std: float = 0.3) -> torch.nn.Module:
    """Add noise to every weight, so that no bias is 0 and no two LayerNorms are equal; evaluation mode."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * std)
    return model.eval()


def official_and_ours(official_class: type, our_class: type, **options) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Return an official model with a head, with weights large enough to tell models apart, and ours with the same."""
    torch.manual_seed(0)
    official = official_class(BertConfig(**TINY, **options)).eval()
    for weight in official.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    ours = our_class(official.config).eval()
    ours.load_bert_weights(official.state_dict())
    return official, ours


def ragged_batch(lengths: list[int], vocab_size: int = 30) -> dict[str, torch.Tensor]:
    """Return a padded batch of random ids with these lengths; the second half of each row has token type 1."""
    generator = torch.Generator().manual_seed(sum(lengths))
    column, length = torch.arange(max(lengths)), torch.tensor(lengths)[:, None]
    mask = (column < length).long()
    ids = torch.randint(1, vocab_size, mask.shape, generator=generator)
    types = (column >= length // 2).long()
    return {"input_ids": ids * mask, "token_type_ids": types * mask, "attention_mask": mask}


def skip_or_fail(reason: str) -> None:
    """Skip a test that needs a program that is not installed; fail in CI, where every program is installed."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def project_paths() -> list[str]:
    """Return the paths of the project's files, also in a copy downloaded without git: all that .gitignore leaves."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text("utf-8").split()] + [".git"]
    found = []
    for folder, folders, files in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        folders[:] = [name for name in folders if not any((here / name).match(pattern) for pattern in ignored)]
        names = (here / name for name in files)
        found += [path.as_posix() for path in names if not any(path.match(pattern) for pattern in ignored)]
    return sorted(found)


needs_make = pytest.mark.skipif(not shutil.which("make"), reason="install make to test the Makefile")


def enable_ctrl_c():
    """Let Ctrl-C interrupt this process, which a shell disables in the background; return the previous handler."""
    return signal.signal(signal.SIGINT, signal.default_int_handler)


def data_of(view) -> dict:
    """Return the data in a view's page, with numbers divided as the page does."""
    params = json.loads(re.search(r'id="data">(.*?)</script>', view.page, re.DOTALL)[1])
    for panel in params["attention"].values():
        for name in {"attn", "queries", "keys"} & panel.keys():
            planes = np.frombuffer(zlib.decompress(base64.b64decode(panel[name]["data"])), np.uint8)
            planes = planes.reshape(-1, math.prod(shape := panel[name]["shape"])).astype(np.int64)  # low bytes first
            codes = 256 ** np.arange(len(planes)) @ planes
            numbers = torch.from_numpy(np.where(codes % 2, -(codes + 1) // 2, codes // 2) / 10**4).view(shape)
            panel[name] = torch.where(numbers < 0, -0.0, numbers) if name == "attn" else numbers
    return params


HOLD = """\
import sys, time
from pathlib import Path
from utils.support.files import locked
folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
with locked(folder / ".run.lock", "held"):
    print("locked", flush=True)
    time.sleep(600)
"""


@contextmanager
def at_work_in(folder: Path) -> Iterator[subprocess.Popen]:
    """Let another process lock a folder, as a run of our programs does, until it is killed at the end."""
    command = [sys.executable, "-W", "ignore", "-c", HOLD, str(folder.resolve())]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "locked\n"
            yield process
        finally:
            process.kill()


STARTS = {"slide", "subslide"}  # kinds of cells that begin a slide


def kind_of(cell) -> str | None:
    return cell.metadata.get("slideshow", {}).get("slide_type")
