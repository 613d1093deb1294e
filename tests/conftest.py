"""What several tests share: the embedded checkpoint in our implementation and in the official one.

Imports stand in the fixtures: the process that shares the tests out needs none of them, and so begins seconds sooner.
"""

import os
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["MINE"] = "off"  # what is checked is the series, not what its maintainer has written as a reader

import pytest
from hypothesis import HealthCheck, settings

# no example has a time limit, since processes share the machine; fixtures that hypothesis meets are never altered
settings.register_profile("series", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.load_profile("series")


@pytest.fixture(scope="session", autouse=True)
def quiet_transformers() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


@pytest.fixture(scope="session")
def tokenizer():
    from utils.support.checkpoint import DEFAULT_CHECKPOINT
    from utils.tokenization import WordPieceTokenizer

    return WordPieceTokenizer.from_checkpoint(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="session")
def official_tokenizer():
    from utils.support.checkpoint import DEFAULT_CHECKPOINT, load_tokenizer

    return load_tokenizer(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="session")
def encoder():
    from utils.encoder import TransformerEncoder
    from utils.support.checkpoint import DEFAULT_CHECKPOINT

    return TransformerEncoder.from_checkpoint(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="session")
def reference():
    from utils.support.checkpoint import DEFAULT_CHECKPOINT, load_reference_model

    return load_reference_model(DEFAULT_CHECKPOINT)


@pytest.fixture(scope="session")
def batches(tokenizer) -> dict:
    """A single sentence, a sentence pair and a padded batch, tokenized."""
    from tests.helpers import SENTENCE

    return {
        "single sentence": tokenizer(SENTENCE),
        "sentence pair": tokenizer("time flies like an arrow", "fruit flies like a banana"),
        "padded batch": tokenizer([SENTENCE, "Hi!", "the bark of a palm tree is very rough"]),
    }


@pytest.fixture
def cased(tmp_path) -> Path:
    """The folder of a BERT with the vocabulary CASED."""
    from transformers import BertConfig

    from tests.helpers import CASED, write_vocabulary

    BertConfig(vocab_size=len(CASED)).save_pretrained(tmp_path)
    write_vocabulary(tmp_path, CASED, lowercase=False)
    return tmp_path
