"""A real browser that reaches nothing outside, and the example every test here draws.

It needs Chromium or Chrome. Where there is none the tests are skipped with a reason; with CI=true they fail instead.
"""

import shutil
from types import SimpleNamespace

import pytest
import torch
from playwright.sync_api import sync_playwright

from publish.browser import BROWSERS, find_browser
from tests.browser.firefox import Firefox
from tests.helpers import skip_or_fail
from views import head_view, model_view, neuron_view

PAIR = ("I called Ian.", "I got his answering machine.")
WINDOW = {"width": 1300, "height": 900}
LOCAL = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "ws://127.0.0.1:")


@pytest.fixture(scope="session")
def browser():
    path = find_browser()
    if path is None:
        skip_or_fail(f"no browser found among {', '.join(BROWSERS)}: install Chromium to run these tests")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def window(browser):
    """A page that the tests of a module share, since a new one takes longer than most of them."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.heard = []

    def refuse(route):
        page.heard.append(("request", route.request.url, route.request.frame.url))
        route.abort()

    def answer(dialog):
        if dialog.type == "beforeunload":  # of JupyterLab, on the way to the next test
            dialog.accept()
        else:
            page.heard.append(("dialog", dialog.message, ""))
            dialog.dismiss()

    def listen(message):
        if message.type == "error":
            page.heard.append(("console", message.text, message.location["url"]))

    context.route(lambda url: not url.startswith(LOCAL), refuse)
    page.on("dialog", answer)
    page.on("console", listen)
    page.on("pageerror", lambda error: page.heard.append(("error", str(error), "")))
    yield page
    context.close()


@pytest.fixture
def page(window):
    """An empty page in a 1300-pixel window; `page.heard` lists its errors, dialogs and requests that would leave it."""
    window.goto("about:blank")
    window.set_viewport_size(WINDOW)
    window.emulate_media(color_scheme="light")
    window.heard.clear()
    return window


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        skip_or_fail("no Firefox found: install it (Debian: firefox-esr) to run these tests")
    browser = Firefox(program, tmp_path_factory.mktemp("firefox"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def pair(tokenizer, encoder) -> SimpleNamespace:
    """A sentence pair: its 13 tokens, where sentence B starts, and attention, queries and keys, stacked by layer."""
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


@pytest.fixture(scope="session")
def draw(encoder, tokenizer, pair):
    """The three views of the pair, by name."""
    return {
        "head": lambda **options: head_view(pair.attentions, pair.tokens, pair.start, **options),
        "model": lambda **options: model_view(pair.attentions, pair.tokens, pair.start, **options),
        "neuron": lambda **options: neuron_view(encoder, tokenizer, *PAIR, **options),
    }


@pytest.fixture(scope="session")
def many() -> tuple[torch.Tensor, list[str]]:
    """Weights (12, 1, 12, 64, 64) of which most are small, as in a trained model."""
    scores = 4 * torch.randn(12, 1, 12, 64, 64, generator=torch.Generator().manual_seed(0))
    return scores.softmax(dim=-1), [f"t{number}" for number in range(64)]
