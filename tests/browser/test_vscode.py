"""Views work where VS Code shows the outputs of a notebook: in its sandbox, under its content security policy.

VS Code itself is not run. The sandbox is that of its webviews (webviewElement.ts). The policy is that of its notebooks
(backLayerWebView.ts), which applies where notebook.experimental.enableCsp is on. Outputs are set as innerHTML.
"""

import html
import json

import pytest

from tests.browser import reader

SANDBOX = "allow-scripts allow-same-origin allow-forms allow-pointer-lock allow-downloads"
SOURCES = "'self' https://*.vscode-cdn.net"
POLICY = (
    f"default-src 'none'; script-src {SOURCES} 'unsafe-inline' 'unsafe-eval'; style-src {SOURCES} 'unsafe-inline'; "
    f"img-src {SOURCES} https: http: data:; font-src {SOURCES} https:; connect-src https:; child-src https: data:;"
)
THEMES = {"light": ("#3b3b3b", "#ffffff"), "dark": ("#cccccc", "#1f1f1f")}


def write_page(path, theme: str, outputs: list[str]) -> str:
    """Write a page with a webview that shows these outputs, and return its address."""
    letters, ground = THEMES[theme]
    shown = json.dumps(outputs).replace("<", "\\u003c")
    webview = f"""<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">
        <body style="color: {letters}; background: {ground}"><script>
        for (const output of {shown}) document.body.appendChild(document.createElement("div")).innerHTML = output;
        </script>"""
    size = "width: 1200px; height: 2400px"
    frame = f'<iframe sandbox="{SANDBOX}" srcdoc="{html.escape(webview)}" style="{size}"></iframe>'
    path.write_text(f'<!doctype html><meta charset="utf-8">{frame}', "utf-8")
    return path.as_uri()


def test_shift_enter_reaches_the_webview_after_a_click(page, draw, tmp_path):
    """There VS Code hears it each time, and a head that was reached by the keyboard is not added."""
    page.goto(write_page(tmp_path / "vscode.html", "light", [draw["head"]()._repr_html_()]))
    webview = page.frame_locator("iframe")
    webview.locator("body").evaluate("body => { body.heard = []; onkeydown = (event) => body.heard.push(event.key); }")
    head = webview.frame_locator("iframe")
    tile = head.locator("[role=checkbox]").nth(2)
    tile.click()
    page.keyboard.press("Shift+Enter")
    assert webview.locator("body").evaluate("body => body.heard") == ["Enter"]
    tile.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+Enter")
    assert head.locator("[role=checkbox][aria-checked=true]").count() == 1
    assert webview.locator("body").evaluate("body => body.heard") == ["Enter", "Enter"]


@pytest.mark.parametrize("theme", THEMES)
def test_views_are_drawn_and_answer(page, draw, pair, tmp_path, theme):
    views = [draw["head"](), draw["neuron"](layer=1, head=3)]
    page.goto(write_page(tmp_path / "vscode.html", theme, [view._repr_html_() for view in views]))
    webview = page.frame_locator("iframe")
    head, neuron = (webview.frame_locator("iframe").nth(index) for index in range(2))
    reader.click_a_head(head, pair)
    reader.check_neuron_lines(neuron, pair.attention[1, 3])
    reader.open_query(neuron, 8)
    reader.check_computation(neuron, pair, 1, 3, 8)
    for view in (head, neuron):
        view.locator(f"html.{theme}").wait_for(state="attached")
        assert reader.cropped(view) == []
    assert page.heard == []
