"""Fixtures and helpers for tests of explorer.html in a real browser.

SITE=site tests the page of a built site with the pretrained model, as tests/slow does; otherwise a page is built with
a small random model, which exports faster.
"""

import functools
import os
import re
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from playwright.sync_api import expect
from transformers import BertConfig

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")

from explorer import explorer, npm
from publish.server import serve
from publish.website import BUILD
from utils.encoder import TransformerEncoder

AXE = npm.Package(
    "axe-core", "4.14.1", "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)
BUILT = os.environ.get("SITE")
WIDTHS = (390, 736, 1300)
SMALL = {"num_hidden_layers": 3, "hidden_size": 96, "num_attention_heads": 12, "intermediate_size": 384}
SMALL |= {"initializer_range": 0.2}  # so that attention differs from token to token
PATIENCE = 120_000  # milliseconds, for a busy machine


def at_first(address: str) -> list[str]:
    """Return what is fetched when the page opens: itself and the picture at its top."""
    return [address, f"{address.removesuffix('explorer.html')}{explorer.ASSETS}/{explorer.PICTURE}"]


def fetch_or_skip(package: npm.Package):
    """Return an npm package, or skip the test with the reason."""
    try:
        return npm.fetch(package, BUILD / "npm")
    except OSError as error:
        pytest.skip(f"{error}: install Node.js to test explorer.html")


@functools.cache
def small_encoder() -> TransformerEncoder:
    torch.manual_seed(0)
    return TransformerEncoder(BertConfig(**SMALL)).eval()


@pytest.fixture(scope="module")
def encoder():
    """Return the encoder in the page."""
    return TransformerEncoder.from_checkpoint() if BUILT else small_encoder()


@pytest.fixture(scope="module")
def last(encoder) -> tuple[int, int]:
    """Return the last layer and its last head."""
    return encoder.config.num_hidden_layers - 1, encoder.config.num_attention_heads - 1


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the page once for all modules and processes of a run, so a test that changes a file copies the folder."""
    if BUILT:
        return Path(BUILT).resolve()
    fetch_or_skip(explorer.RUNTIME)
    shared = tmp_path_factory.getbasetemp()
    folder = (shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) / "explorer"
    with FileLock(f"{folder}.lock"), pytest.MonkeyPatch.context() as patch:
        if not (folder / "explorer.html").exists():  # it is written last
            patch.setattr(TransformerEncoder, "from_checkpoint", small_encoder)
            explorer.build(folder, BUILD / "npm", {"03": "notebooks/03_self_attention.html"})
    return folder


@pytest.fixture(scope="module")
def address(site):
    """Serve the page locally, and yield its address."""
    with serve(site) as origin:
        yield f"{origin}/explorer.html"


@pytest.fixture(scope="module")
def running(window, address):
    """Return a page with the model loaded, and the addresses that it requested."""
    asked = []
    window.on("request", lambda request: asked.append(request.url))
    window.goto(address)
    send(window, "the bark of a palm tree is very rough")
    return window, asked


def send(page, first: str, second: str = "") -> str:
    """Type a text, press Enter, and return the page's status message."""
    page.locator("#second").fill(second)
    page.locator("#first").fill(first)
    page.locator("#status").evaluate("(e) => { e.textContent = ''; }")
    page.locator("#first").press("Enter")
    answered = re.compile("computed|shorten|type a|could not")
    expect(page.locator("#status")).to_have_text(answered, timeout=PATIENCE)
    return page.locator("#status").inner_text()


def cells(page, name: str) -> torch.Tensor:
    """Return the numbers in a table of the page."""
    return torch.tensor(
        [float(text.replace("−", "-")) for text in page.locator(f"#{name} tbody td").all_text_contents()]
    )


def drawn(page, name: str) -> torch.Tensor:
    """Return the numbers of a drawing."""
    return torch.tensor(page.evaluate(f"[...drawings.{name}.values]"))


def follow(page, **choices: int) -> None:
    for name, value in choices.items():
        page.locator(f"#{name}").select_option(str(value))


def assert_numbers(page, encoder, tokenizer, texts, layer: int, head: int, tolerance: float) -> None:
    """Check that all drawings have torch's numbers, with a tolerance relative to the largest, and tables two digits."""
    follow(page, layer=layer, head=head)
    batch = tokenizer(*texts)
    tokens = [tokenizer.tokens[number] for number in batch["input_ids"][0].tolist()]
    assert page.locator("#tokens b").all_text_contents() == tokens
    assert page.locator("#tokens span").all_text_contents() == [str(i) for i in batch["input_ids"][0].tolist()]
    with torch.inference_mode():
        out = encoder(**batch, output_attentions=True, output_hidden_states=True, output_queries_keys=True)
        states = out.hidden_states
        value = encoder.layers[layer].attention.project(states[layer])[2][0, head]
        weights, query, key = (x[layer][0, head] for x in (out.attentions, out.queries, out.keys))
        attended = encoder.layers[layer].attention_norm(
            states[layer] + encoder.layers[layer].attention(states[layer])[0]
        )
    wanted = {
        "embeddings": states[0],
        "scores": query @ key.T / query.size(-1) ** 0.5,
        "weights": weights,
        "values": value,
        "context": weights @ value,
        "attended": attended,
        "output": states[layer + 1],
        "final": states[-1],
    }
    for name, values in wanted.items():
        largest = max(1, values.abs().max())
        assert (drawn(page, name) - values.flatten()).abs().max() <= tolerance * largest, name
    for name in ("scores", "weights"):
        assert (cells(page, name) - drawn(page, name)).abs().max() <= 0.0051, name


def run_timers(page) -> None:
    """Wait until every timer of up to 400 ms that the page has set by now has run.

    A page runs its timers in order, so this holds on a busy machine too; typing sets one of 300 ms.
    """
    page.evaluate("new Promise((done) => setTimeout(done, 400))")


def axe_violations(page) -> list:
    """Return the rules of axe-core that the page violates, with the elements that violate them."""
    page.evaluate(npm.read_member(fetch_or_skip(AXE), "axe.min.js").decode())
    return page.evaluate("axe.run().then((found) => found.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")
