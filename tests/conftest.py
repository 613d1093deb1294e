"""What several tests share: the embedded checkpoint in our implementation and in the official one."""

import os
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
import transformers
from transformers import BertConfig

from utils.checkpoints import DEFAULT_CHECKPOINT, load_reference_model, load_tokenizer
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

SENTENCE = "I called Ian. I got his answering machine."
CASED = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "É", "A", "##b"]


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
def batches(tokenizer) -> dict[str, dict[str, torch.Tensor]]:
    """A single sentence, a sentence pair and a padded batch, tokenized."""
    return {
        "single sentence": tokenizer(SENTENCE),
        "sentence pair": tokenizer("time flies like an arrow", "fruit flies like a banana"),
        "padded batch": tokenizer([SENTENCE, "Hi!", "the bark of a palm tree is very rough"]),
    }


@pytest.fixture
def cased(tmp_path) -> Path:
    """The folder of a BERT with the vocabulary CASED, in files that every release of transformers reads."""
    BertConfig(vocab_size=len(CASED)).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(CASED), "utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', "utf-8")
    return tmp_path
