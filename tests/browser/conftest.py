"""A real browser without access to the network, and the example that most of the tests draw.

The tests need Chromium or Chrome, and some of them Firefox. Without these they are skipped; with CI=true they fail.
"""

import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from publish.browser import find_browser
from tests.browser.firefox import Firefox
from tests.helpers import PAIR, WINDOW, skip_or_fail
from views import head_view, model_view, neuron_view

PROGRAMS = {"Chromium": find_browser(), "Firefox": shutil.which("firefox-esr") or shutil.which("firefox")}
MISSING = f"install {' and '.join(name for name, path in PROGRAMS.items() if not path)} for the browser tests"
PATIENCE = 60_000  # milliseconds, for a busy machine
expect.set_options(timeout=PATIENCE)
LOCAL = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "ws://127.0.0.1:")


@pytest.fixture(scope="session")
def browser():
    path = PROGRAMS["Chromium"] or skip_or_fail(MISSING)
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def window(browser):
    """Return a page shared by the tests of a module, because opening one takes longer than most of them."""
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.heard = []

    def refuse(route):
        page.heard.append(("request", route.request.url, route.request.frame.url))
        route.abort()

    def answer(dialog):
        if dialog.type == "beforeunload":  # from JupyterLab, when the next test begins
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
    """Return an empty page, 1300 pixels wide, on which nothing moves.

    `page.heard` lists errors, dialogs and requests to other servers.
    """
    window.goto("about:blank")
    window.set_viewport_size(WINDOW)
    window.emulate_media(color_scheme="light", reduced_motion="reduce")
    window.heard.clear()
    return window


@pytest.fixture(scope="session")
def phone(browser):
    """Return a page of a phone, with fingers, that all tests share."""
    with browser.new_page(viewport={"width": 390, "height": 700}, has_touch=True, is_mobile=True) as page:
        yield page


@pytest.fixture(scope="session")
def slow_page(browser):
    """Return a page whose clock its tests stop, move and resume."""
    with browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        page.clock.install()
        yield page


@pytest.fixture
def timed(slow_page):
    """Return the page with a clock, which runs."""
    slow_page.clock.resume()
    slow_page.emulate_media(reduced_motion="no-preference")
    return slow_page


@pytest.fixture(scope="session")
def firefox_process(tmp_path_factory):
    program = PROGRAMS["Firefox"] or skip_or_fail(MISSING)
    browser = Firefox(program, tmp_path_factory.mktemp("firefox"))
    yield browser
    browser.close()


@pytest.fixture
def firefox(firefox_process):
    """Return a Firefox that shows an empty window and has recorded no error."""
    firefox_process.open("about:blank")
    firefox_process.resize(*WINDOW.values())
    firefox_process.heard.clear()
    return firefox_process


@pytest.fixture(scope="session")
def draw(encoder, tokenizer, pair):
    """Return functions that draw the three views of the pair, by name."""
    return {
        "head": lambda **options: head_view(pair.attentions, pair.tokens, pair.start, **options),
        "model": lambda **options: model_view(pair.attentions, pair.tokens, pair.start, **options),
        "neuron": lambda **options: neuron_view(encoder, tokenizer, *PAIR, **options),
    }
