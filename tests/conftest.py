"""What several tests share: the embedded checkpoint in our implementation and in the official one."""

import os
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
import transformers
from filelock import FileLock
from hypothesis import HealthCheck, settings
from transformers import BertConfig

from tests.helpers import CASED, SENTENCE, write_vocabulary
from utils.checkpoints import DEFAULT_CHECKPOINT, load_reference_model, load_tokenizer
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

# no example has a time limit, since two processes share the machine; fixtures that hypothesis meets are never altered
settings.register_profile(
    "series", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("series")


@pytest.fixture(scope="session")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer.from_checkpoint(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="session")
def official_tokenizer():
    return load_tokenizer(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="session")
def encoder() -> TransformerEncoder:
    return TransformerEncoder.from_checkpoint(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="session")
def reference():
    return load_reference_model(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="session")
def model_of_the_page(encoder, tmp_path_factory, worker_id) -> bytes:
    """What explorer.html runs, exported by the process that asks first: it takes twenty seconds."""
    from tools import explorer  # needs packages of requirements-dev.txt

    folder = tmp_path_factory.getbasetemp()
    path = (folder if worker_id == "master" else folder.parent) / "explorer.onnx"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            path.write_bytes(explorer.export(encoder))
    return path.read_bytes()


@pytest.fixture(scope="session")
def batches(tokenizer) -> dict[str, dict[str, torch.Tensor]]:
    """A single sentence, a sentence pair and a padded batch, tokenized."""
    return {
        "single sentence": tokenizer(SENTENCE),
        "sentence pair": tokenizer("time flies like an arrow", "fruit flies like a banana"),
        "padded batch": tokenizer([SENTENCE, "Hi!", "the bark of a palm tree is very rough"]),
    }


@pytest.fixture
def cased(tmp_path) -> Path:
    """The folder of a BERT with the vocabulary CASED."""
    BertConfig(vocab_size=len(CASED)).save_pretrained(tmp_path)
    write_vocabulary(tmp_path, CASED, lowercase=False)
    return tmp_path
