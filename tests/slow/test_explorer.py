"""explorer.html with the pretrained model: in half precision, small enough to download, in a browser."""

import gzip

import pytest
import torch

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")
pytest.importorskip("onnxruntime", reason="make site installs what this needs: requirements-dev.txt")

from onnxruntime import InferenceSession

from explorer import explorer
from publish.website import BUILD
from tests.helpers import run_python
from utils.support.comparisons import largest_difference
from utils.support.datasets import reviews

PAIRS = [("I called Ian.", "I got his answering machine."), ("fruit flies like a banana", "time flies like an arrow")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    try:
        explorer.build(folder, BUILD / "npm", {"03": "notebooks/03_self_attention.html"})
    except OSError as error:
        pytest.skip(f"{error}: install Node.js to test explorer.html")
    return folder


@pytest.fixture(scope="module")
def model(site) -> bytes:
    """Return the ONNX model of the page."""
    return gzip.decompress((site / explorer.ASSETS / explorer.FILES["encoder"]).read_bytes())


def test_half_precision_changes_attention_by_at_most_a_hundredth(encoder, tokenizer, model):
    """On 40 review sentences and two pairs; a difference above 0 shows that the file is the smaller one."""
    session, parts = InferenceSession(model, providers=["CPUExecutionProvider"]), explorer.EncoderParts(encoder)
    worst = dict.fromkeys(explorer.OUTPUTS, 0.0)
    for texts in [*((sentence,) for sentence in reviews().test.texts[:40]), *PAIRS]:
        batch = tokenizer(*texts)
        found = session.run(None, {name: tensor.numpy() for name, tensor in batch.items()})
        with torch.inference_mode():
            wanted = parts(**batch)
        for name, stored, exact in zip(explorer.OUTPUTS, found, wanted, strict=True):
            difference = largest_difference(torch.tensor(stored), exact) / max(1, float(exact.abs().max()))
            worst[name] = max(worst[name], difference)
    assert 0 < worst["attentions"] <= 0.01
    assert max(worst.values()) <= 0.02


def test_a_reader_uses_the_page(site):
    """Run the browser tests of the page, which use a small random model, on this page."""
    done = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/browser/test_explorer.py", SITE=str(site))
    assert done.returncode == 0, done.stdout
