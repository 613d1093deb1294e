"""Every row of `bad_input` behaves as listed, and the remedy that its error offers works."""

import shutil
from types import SimpleNamespace

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from transformers import BertConfig

from tests.helpers import TINY, tiny_tokenizer
from tests.reference.bad_input import Good, checkpoints, models, tables, texts, vectors, views
from utils.support import checks

GROUPS = {
    "settings": checkpoints.SETTINGS,
    "weights": checkpoints.WEIGHTS,
    "tokenizer": checkpoints.TOKENIZER,
    "vocabulary": texts.VOCABULARY,
    "input": models.INPUT,
    "writing": models.WRITING,
    "training": models.TRAINING,
    "vectors": vectors.VECTORS,
    "view": views.VIEW,
    "table": tables.TABLE,
    "labelled texts": tables.TEXTS_FILE,
    "labelled words": tables.WORDS_FILE,
}
CASES = [pytest.param(row, id=f"{group}: {row.name}"[:90]) for group, rows in GROUPS.items() for row in rows]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return checkpoints.write_checkpoint(tmp_path_factory.mktemp("whole") / "checkpoint")


@pytest.fixture
def folder(checkpoint, tmp_path, monkeypatch):
    """Copy the tiny checkpoint, so that a case can damage it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(plt, "show", lambda: None)
    with mpl.rc_context({"backend": "agg"}):
        yield shutil.copytree(checkpoint, tmp_path / "checkpoint")
        plt.close("all")


@pytest.mark.long
@pytest.mark.parametrize("row", CASES)
def test_case_succeeds_or_raises_clear_error(row, folder):
    if isinstance(row, Good):
        assert row.call(folder) is True
        return
    with pytest.raises(row.error) as caught:
        row.call(folder)
    assert row.message in str(caught.value)
    assert caught.type in (ValueError, TypeError, OSError, FileNotFoundError, MemoryError, FloatingPointError)
    assert row.remedy(folder) is not False


def test_vocabulary_is_checked_once_per_tokenizer_and_model(monkeypatch):
    compared, compare = [], checks.check_vocabulary_size
    monkeypatch.setattr(checks, "check_vocabulary_size", lambda *given: (compared.append(given), compare(*given)))
    one, other = tiny_tokenizer(6), tiny_tokenizer(6)
    for tokenizer in (one, other, one, other):
        checks.check_tokenizer(tokenizer, 6)
    assert len(compared) == 2
    for _ in range(2):  # what was refused once is refused again
        with pytest.raises(ValueError, match="load both from the same checkpoint"):
            checks.check_tokenizer(one, 7)


def test_config_without_decoder_fields_is_accepted():
    config = SimpleNamespace(**BertConfig(**TINY).to_dict())
    for field in ("is_decoder", "add_cross_attention", "classifier_dropout"):
        vars(config).pop(field, None)
    checks.check_config(config)
