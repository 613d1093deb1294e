"""`explore`: text boxes for your own sentences, and views of their attention. Used in notebook 07."""

import html
from collections.abc import Iterable

import ipywidgets as widgets
from IPython.display import display

from utils.support.colours import LIGHT
from views.draw import head_view, model_view, neuron_view
from views.inputs import check_indices
from views.models import check_model, tokenize_for_view
from views.page import View
from views.path import path_view
from views.sentence import sentence_view

WIDGET = "application/vnd.jupyter.widget-view+json"
SENTENCE = "The animal didn't cross the street because it was too tired."
LAYER, HEAD = 3, 1  # of the embedded checkpoint, where "it" looks at "animal"
VIEWS = {
    "head view": head_view,
    "sentence view": sentence_view,
    "model view": model_view,
    "neuron view": neuron_view,
    "path view": path_view,
}
WIDE_ENOUGH = {"style": {"description_width": "initial"}, "layout": {"width": "auto"}}
BELOW = "In a running notebook, boxes for your own sentences appear here."


def explore(
    encoder,
    tokenizer,
    sentence_a: str = SENTENCE,
    sentence_b: str | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
) -> "SentenceBoxes":
    """Show boxes for one or two sentences and a choice of views, which are drawn again after each Enter.

    The path view takes one sentence. Choices made in a view carry over to the next. Errors in a typed
    sentence are shown under the boxes, and the last view remains. `.view` is the current view, with a `.save(path)`.

    Parameters:
        encoder, tokenizer: as for `neuron_view`, whose errors it raises.
        sentence_a, sentence_b: what the boxes contain at first.
        layer, head: what is selected at first, 3 and 1 if the model has them.
    """
    check_model(encoder)
    L, A = encoder.config.num_hidden_layers, encoder.config.num_attention_heads
    [layer] = check_indices("layer", [min(LAYER, L - 1) if layer is None else layer], L)
    [head] = check_indices("head", [min(HEAD, A - 1) if head is None else head], A)
    return SentenceBoxes(encoder, tokenizer, sentence_a, sentence_b, layer, head)


class SentenceBoxes:
    """The boxes and the view of `explore`; Jupyter displays widgets if it can, else the view alone."""

    def __init__(self, encoder, tokenizer, sentence_a: str, sentence_b: str | None, layer: int, head: int):
        self.model = encoder, tokenizer
        self.layer, self.head = layer, head
        self.kind = widgets.Dropdown(options=list(VIEWS), description="View:", **WIDE_ENOUGH)
        self.message, self.tokens, self.frame = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self.frame.add_class("keeps-choices")  # reader.js stores choices made in a view there
        self.draw(sentence_a, sentence_b)  # first, so that errors reach the caller of `explore`
        self.sentence_a = sentence_box("Sentence A:", sentence_a, "type, and press Enter")
        self.sentence_b = sentence_box("Sentence B:", sentence_b or "", "empty for one sentence alone")
        controls = [self.sentence_a, self.sentence_b, self.kind]
        for control in controls:
            control.observe(self.redraw, "value")
        self.box = widgets.VBox([*controls, self.message, self.tokens, self.frame])

    def draw(self, sentence_a: str, sentence_b: str | None) -> None:
        """Show the chosen view of a text; ValueError, without any change, if it cannot be drawn."""
        text = (*self.model, sentence_a, sentence_b or None)
        read = tokenize_for_view(*text)
        if len(read.tokens) == len(tokenize_for_view(*self.model, "", sentence_b or None).tokens):
            raise ValueError("sentence A is empty: type a word or more")
        view, options = VIEWS[self.kind.value], {}
        if view is path_view:
            if sentence_b:
                raise ValueError("the path view shows one text: empty sentence B")
            text = text[:3]
        elif view is not model_view:
            options = {"layer": self.layer, "heads" if view is head_view else "head": self.head}
        self.view: View = view(*text, **options)
        self.tokens.value = token_list(read.tokens, read.inputs["input_ids"][0].tolist())
        self.frame.value = self.view._repr_html_()

    def redraw(self, _) -> None:
        """Draw the current choice, or show why that failed."""
        self.message.value = '<p role="status">drawing …</p>'
        try:
            self.draw(self.sentence_a.value, self.sentence_b.value.strip())
        except Exception as error:  # of any kind, because a widget's traceback would only go to a log
            reason = str(error) if isinstance(error, ValueError) else repr(error)
            self.message.value = alert(f"Not drawn: {reason}. The last view is still shown below.")
        else:
            self.message.value = ""

    def __repr__(self) -> str:
        return f"Boxes for your own sentences, and the attention in them. {self.view!r}"

    def _ipython_display_(self) -> None:
        # Two outputs, because pages made from a saved notebook prefer widgets even if they cannot show them. The first
        # output is hidden where the second one works
        name = f"explore-{self.box.model_id}"
        self.box.add_class(name)
        hidden = f"<style>body:has(.{name}) .without-{name} {{ display: none; }}</style>"
        instead = f'<div class="without-{name}"><p>{BELOW}</p>{self.view._repr_html_()}</div>'
        display({"text/plain": repr(self), "text/html": hidden + instead}, raw=True)
        # Written out because releases of ipywidgets display themselves differently
        widget = {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}
        display({WIDGET: widget}, raw=True)


def sentence_box(name: str, text: str, placeholder: str) -> widgets.Text:
    """Make a text box that reports changes when Enter is pressed or the box loses focus."""
    options = {"placeholder": placeholder, "continuous_update": False}
    return widgets.Text(text, description=name, **WIDE_ENOUGH, **options)


def alert(text: str) -> str:
    """Return a paragraph that screen readers announce when it appears."""
    style = f"line-height: 1.4; margin: 4px 0; color: var(--jp-error-color1, {LIGHT['mark']})"
    return f'<p role="alert" style="{style}">{html.escape(text)}</p>'


def token_list(tokens: Iterable[str], ids: Iterable[int]) -> str:
    """Return each token with its id below it, in rows that fit the width."""
    items = (
        f"<span>{html.escape(token)}<br><small>{number}</small></span>"
        for token, number in zip(tokens, ids, strict=True)
    )
    style = "display: flex; flex-wrap: wrap; gap: 4px 12px; line-height: 1.3; text-align: center"
    return f'<div role="group" aria-label="Tokens and their ids" style="{style}">{"".join(items)}</div>'
