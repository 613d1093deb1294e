"""Fixtures and helpers for tests of explorer.html in a real browser.

SITE=site tests the page of a built site with the pretrained model, as tests/slow does; otherwise a page is built with
a small random model, which exports faster.
"""

import functools
import os
import random
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from filelock import FileLock
from playwright.sync_api import expect
from transformers import BertConfig

pytest.importorskip("onnxscript", reason="make site installs what this needs: requirements-dev.txt")

from explorer import explorer, npm
from publish.server import serve
from publish.website import BUILD
from tests.helpers import WINDOW
from utils.encoder import TransformerEncoder

AXE = npm.Package(
    "axe-core", "4.14.1", "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)
BUILT = os.environ.get("SITE")
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


def in_page() -> TransformerEncoder:
    """Return the encoder in the page."""
    return TransformerEncoder.from_checkpoint() if BUILT else small_encoder()


encoder = pytest.fixture(scope="module")(in_page)


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
def loaded(browser, address):
    """Return a page with the model loaded, which the tests of a module share."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    page.asked, page.heard = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.heard.append(str(error)))
    page.on("dialog", lambda dialog: page.heard.append(dialog.message) or dialog.dismiss())
    page.goto(address)
    page.locator("#first").press("End")
    page.locator("#first").press_sequentially(" so", delay=20)
    run_timers(page)
    page.asked_by_typing, page.offer = [*page.asked], page.locator("#send").inner_text()
    page.evaluate("""() => {
      window.steps = [];
      new MutationObserver(() => steps.push(by("send").textContent)).observe(by("send"), { childList: true });
    }""")
    send(page, "the bark of a palm tree is very rough")
    yield page
    context.close()


@pytest.fixture
def running(loaded):
    """Return the page with the model loaded, and its first window."""
    loaded.set_viewport_size(WINDOW)
    loaded.emulate_media(color_scheme="light", media="screen")
    loaded.heard.clear()
    return loaded


def send(page, first: str, second: str = "") -> str:
    """Type a text, press Enter, and return the page's status message."""
    page.locator("#second").fill(second)
    page.locator("#first").fill(first)
    page.locator("#status").evaluate("(e) => { e.textContent = ''; }")
    page.locator("#first").press("Enter")
    answered = re.compile("computed|shorten|type a|could not")
    expect(page.locator("#status")).to_have_text(answered, timeout=PATIENCE)
    return page.locator("#status").inner_text()


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def cells(page, name: str) -> torch.Tensor:
    """Return the numbers in a table of the page."""
    return torch.tensor([number(text) for text in page.locator(f"#{name} tbody td").all_text_contents()])


def follow(page, **choices: int) -> None:
    for name, value in choices.items():
        page.locator(f"#{name}").select_option(str(value))


# The numbers of many states of the text that is shown, by the functions that draw them
NUMBERS = """(states) => states.map(({ layer, head, token }) => {
  const found = {
    scores: scoresOf(layer, head), weights: ofHead("attentions", layer, head), values: ofHead("values", layer, head),
    context: contextOf(layer, head), attended: ofLayer("attended", layer), output: ofLayer("hidden_states", layer + 1),
    embeddings: ofLayer("hidden_states", 0), rows: rowsOfEmbedding(token).flatMap((row) => [...row]),
    turned: turned(token),
  };
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, [...value]]));
})"""


def results(encoder, tokenizer, *texts) -> SimpleNamespace:
    """Return torch's results for one or two texts, layers first."""
    batch, table = tokenizer(*texts), encoder.embeddings
    with torch.inference_mode():
        out = encoder(**batch, output_attentions=True, output_hidden_states=True, output_queries_keys=True)
        attended, values = [], []
        for layer, states in zip(encoder.layers, out.hidden_states[:-1], strict=True):
            attended.append(layer.attention_norm(states + layer.attention(states)[0]))
            values.append(layer.attention.project(states)[2])
        ids, types = batch["input_ids"][0], batch["token_type_ids"][0]
        rows = [table.word_embeddings(ids), table.position_embeddings.weight[: len(ids)]]
        rows.append(table.token_type_embeddings(types))
    lists = {"states": out.hidden_states, "weights": out.attentions, "queries": out.queries, "keys": out.keys}
    lists |= {"attended": attended, "values": values}
    return SimpleNamespace(
        tokens=[tokenizer.tokens[number] for number in ids.tolist()],
        ids=ids.tolist(),
        rows=torch.stack([*rows, sum(rows)], dim=1),  # (S, 4, H)
        **{name: torch.cat(tuple(tensors)) for name, tensors in lists.items()},
    )


def numbers(torchs: SimpleNamespace, layer: int, head: int, token: int) -> dict:
    """Return what the functions of `NUMBERS` should return for a state."""
    queries, keys, weights = (part[layer, head] for part in (torchs.queries, torchs.keys, torchs.weights))
    root, states = keys.size(-1) ** 0.5, torchs.states
    found = {"scores": queries @ keys.T / root, "weights": weights, "values": torchs.values[layer, head]}
    found |= {"context": weights @ torchs.values[layer, head], "attended": torchs.attended[layer]}
    found |= {"embeddings": states[0], "output": states[layer + 1], "rows": torchs.rows[token]}
    return found | {"turned": torch.cosine_similarity(states[:, token], states[:1, token], dim=-1)}


def close(found, wanted, tolerance: float) -> bool:
    """Compare relative to the largest number, or to 1."""
    wanted = torch.as_tensor(wanted).flatten()
    return bool((torch.tensor(found) - wanted).abs().max() <= tolerance * max(1, wanted.abs().max()))


def run_timers(page) -> None:
    """Wait until every timer of up to 400 ms that the page has set by now has run.

    A page runs its timers in order, so this holds on a busy machine too; typing sets one of 300 ms.
    """
    page.evaluate("new Promise((done) => setTimeout(done, 400))")


def axe_violations(page) -> list:
    """Return the rules of axe-core that the page violates, with the elements that violate them."""
    page.evaluate(npm.read_member(fetch_or_skip(AXE), "axe.min.js").decode())
    return page.evaluate("axe.run().then((found) => found.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")


def states(torchs, count: int = 50) -> list[dict]:
    """Return random states of the page: a head and a token."""
    chance, (layers, heads, size, _) = random.Random(0), torchs.weights.shape
    limits = {"layer": layers, "head": heads, "token": size}
    return [{name: chance.randrange(limit) for name, limit in limits.items()} for _ in range(count)]
