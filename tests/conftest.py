"""Shared fixtures: the embedded checkpoint in our implementation and in the official one.

The fixtures import what they need themselves: the process that distributes the tests needs none of it, and so starts
seconds earlier.
"""

import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["MINE"] = "off"  # test the series, not the parts that its maintainer has written as a reader

import pytest
from hypothesis import HealthCheck, settings

# No time limit, because processes share the machine. Fixtures used with hypothesis are never changed.
settings.register_profile("series", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.load_profile("series")


def pytest_terminal_summary(terminalreporter) -> None:
    """Print one line per reason for skipping, with the number of tests."""
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason.removeprefix('Skipped: ')}")


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
    """Return a single sentence, a sentence pair and a padded batch, tokenized."""
    from tests.helpers import SENTENCE

    return {
        "single sentence": tokenizer(SENTENCE),
        "sentence pair": tokenizer("time flies like an arrow", "fruit flies like a banana"),
        "padded batch": tokenizer([SENTENCE, "Hi!", "the bark of a palm tree is very rough"]),
    }


@pytest.fixture
def cased(tmp_path) -> Path:
    """Return the folder of a BERT with the vocabulary CASED."""
    from transformers import BertConfig

    from tests.helpers import CASED, write_vocabulary

    BertConfig(vocab_size=len(CASED)).save_pretrained(tmp_path)
    write_vocabulary(tmp_path, CASED, lowercase=False)
    return tmp_path


@pytest.fixture
def fresh_compiler():
    """Nothing compiled before a test, and nothing left behind."""
    import torch

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture(scope="session")
def pair(tokenizer, encoder) -> SimpleNamespace:
    """Return a sentence pair: 13 tokens, the start of sentence B, and attention, queries and keys of all layers."""
    import torch

    from tests.helpers import PAIR

    batch = tokenizer(*PAIR)
    with torch.no_grad():
        output = encoder(**batch, output_attentions=True, output_queries_keys=True)
    return SimpleNamespace(
        sentences=PAIR,
        tokens=[tokenizer.tokens[int(token_id)] for token_id in batch["input_ids"][0]],
        start=int((batch["token_type_ids"] == 0).sum()),
        attentions=output.attentions,
        attention=torch.cat(output.attentions),
        queries=torch.cat(output.queries),
        keys=torch.cat(output.keys),
    )
