"""Run the model on the reader's code: `check` saves a right part, and `my_encoder()` installs it.

A part is a function with the name of ours; the class around it, with its parameters, is ours. Each part is a file in
`mine/`, next to the folder of notebooks. MINE=folder chooses another folder, and MINE=off disables all parts.
"""

import functools
import html
import inspect
import os
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from string import Template

from torch import nn

from utils.attention import MultiHeadAttention
from utils.classifier import TransformerForSequenceClassification
from utils.embeddings import Embeddings
from utils.encoder import EncoderOutput, TransformerEncoder
from utils.encoder_layer import FeedForward, TransformerEncoderLayer
from utils.support.checkpoint import checkpoint_name, load_reference_model, load_tokenizer, read_checkpoint
from utils.support.checks import check_shapes, checked_mask
from utils.support.colours import css, variables
from utils.support.comparisons import compare_rungs
from utils.support.files import as_path, write_file
from utils.support.reader_input import index_of, text_or_pair, validated
from utils.tokenization import MAX_CHARACTERS_PER_WORD, WordPieceTokenizer

ROOT = Path(__file__).resolve().parents[1]
DRAWING = Path(__file__).with_name("encoder.svg")
PAGE = Path(__file__).with_name("page.html")
COURSE, DISTRIBUTION = "Anatomy of a Transformer Encoder", "anatomy-of-a-transformer-encoder"
LADDER = (  # pairs of different lengths, with an accent and a word that is cut
    ["I called Ian.", "time flies like an arrow", "an unaffable café"],
    ["I got his answering machine.", "fruit flies like a banana", "so do seals"],
)
MARKER_NOTEBOOK = "01_tokenization.ipynb"  # a folder of notebooks with this file belongs to the series


# Adapters: methods with the signature of ours that call a part


def tokenizers_word_pieces(part: Callable) -> Callable:
    """Return a method that cuts words with the part, except for overlong words, which are [UNK]."""
    return lambda word, vocab: ["[UNK]"] if len(word) > MAX_CHARACTERS_PER_WORD else part(word, vocab)


def embeddings_forward(part: Callable) -> Callable:
    """Return a forward that always passes token types to the part."""

    def forward(self, input_ids, token_type_ids=None):
        if token_type_ids is None:
            token_type_ids = input_ids.new_zeros(input_ids.shape)
        check_shapes(input_ids, token_type_ids, self.position_embeddings.num_embeddings)
        return part(self, input_ids, token_type_ids)

    return forward


def heads_of(part: Callable) -> Callable:
    """Return a method that passes the number of heads to the part."""
    return lambda self, x: part(x, self.num_heads)


def with_weights(part: Callable) -> Callable:
    """Return a forward that drops the part's attention weights unless they are requested."""

    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        hidden_states, weights = part(self, hidden_states, attention_mask)
        return hidden_states, weights if output_attentions else None

    return forward


def encoder_forward(part: Callable) -> Callable:
    """Return a forward around a part that takes a mask and token types and returns all states and weights."""

    def forward(
        self,
        input_ids,
        attention_mask=None,
        token_type_ids=None,
        *,
        output_attentions=False,
        output_hidden_states=False,
        output_queries_keys=False,
    ):
        attention_mask = checked_mask(input_ids, attention_mask, token_type_ids, self.config)
        if attention_mask is None:
            attention_mask = input_ids.new_ones(input_ids.shape)
        if token_type_ids is None:
            token_type_ids = input_ids.new_zeros(input_ids.shape)
        stream, attentions = part(self, input_ids, attention_mask, token_type_ids)
        pairs = ()
        if output_queries_keys:
            pairs = [layer.project(x) for layer, x in zip(self.layers, stream[:-1], strict=True)]
        queries, keys = zip(*pairs, strict=True) if pairs else (None, None)
        return EncoderOutput(
            stream[-1],
            tuple(stream) if output_hidden_states else None,
            tuple(attentions) if output_attentions else None,
            queries,
            keys,
        )

    return forward


def attend_with_weights(self, query, key, value, mask, output_attentions):
    """Call `MultiHeadAttention.attend` with weights, since only this branch uses the reader's weights."""
    output, weights = type(self).attend(self, query, key, value, mask, output_attentions=True)
    return output, weights if output_attentions else None


def as_it_is(part: Callable) -> Callable:
    """Return the part unchanged: it has the signature of our method."""
    return part


@dataclass(frozen=True)
class Part:
    """A piece of BERT that a reader writes: where it belongs, and how it is called there."""

    title: str
    notebook: str
    kind: type
    method: str
    adapt: Callable[[Callable], Callable] = as_it_is


PARTS = {
    "word_pieces": Part(
        "words to pieces", "01_tokenization", WordPieceTokenizer, "word_pieces", tokenizers_word_pieces
    ),
    "embeddings": Part("the embeddings", "02_embeddings", Embeddings, "forward", embeddings_forward),
    "attention_weights": Part(
        "the attention weights", "03_self_attention", MultiHeadAttention, "compute_attention_weights"
    ),
    "split_heads": Part("splitting into heads", "04_multi_head_attention", MultiHeadAttention, "split_heads", heads_of),
    "multi_head_attention": Part(
        "multi-head attention", "04_multi_head_attention", MultiHeadAttention, "forward", with_weights
    ),
    "feed_forward": Part("the feed-forward network", "05_encoder_layer", FeedForward, "forward"),
    "encoder_layer": Part("the layer", "05_encoder_layer", TransformerEncoderLayer, "forward", with_weights),
    "encoder": Part("the stack", "06_encoder", TransformerEncoder, "forward", encoder_forward),
    "rename_weight": Part("the weights' names", "06_encoder", TransformerEncoder, "rename_weight"),
}


INHERITED = ("attention_weights", "split_heads", "feed_forward")  # these also run in ModernBERT's classes, notebook 14


def install(name: str, function: Callable, target) -> bool:
    """Install a part in one model or tokenizer, and return whether it has a place there; others stay unchanged."""
    part = PARTS[name]
    adapted = part.adapt(function)
    gets_self = not isinstance(inspect.getattr_static(part.kind, part.method), staticmethod)
    places = []
    for module in target.modules() if isinstance(target, nn.Module) else [target]:
        if isinstance(module, part.kind) if name in INHERITED else type(module) is part.kind:
            setattr(module, part.method, types.MethodType(adapted, module) if gets_self else adapted)
            if name == "attention_weights":
                module.attend = types.MethodType(attend_with_weights, module)
            places.append(module)
    return bool(places)


# Files of parts


def folder() -> Path | None:
    """Return the folder of the reader's parts, or None for MINE=off.

    It is `mine` in the copy of the series around the kernel's folder (on a hub, all share one installation), or else
    in the copy that runs (for a notebook elsewhere). If neither can be written, it is in the kernel's folder.
    """
    chosen = os.environ.get("MINE", "")
    if chosen.lower() == "off":
        return None
    if chosen:
        return as_path(chosen)
    here = Path.cwd()
    places = [place for place in (here, *here.parents, ROOT) if (place / "notebooks" / MARKER_NOTEBOOK).is_file()]
    return next((place for place in places if os.access(place, os.W_OK)), here) / "mine"


def saved_parts() -> dict[str, Path]:
    """Return the files of the reader's parts, by name, in the order of the notebooks."""
    where = folder()
    return {name: where / f"{name}.py" for name in PARTS if where and (where / f"{name}.py").is_file()}


def load(path: Path, text: str | None = None) -> Callable:
    """Return the part defined in a file, or in its text before it is written."""
    names = {}  # without a __name__, which torch.compile would import
    try:
        exec(compile(path.read_text("utf-8") if text is None else text, str(path), "exec"), names)
        return names["part"]
    except Exception as error:
        add_part_note(error, path)
        raise


def add_part_note(error: Exception, path: Path) -> None:
    """Add a note to an error: the part that raised it, and how to continue without it."""
    if not getattr(error, "__notes__", None):
        lines = [frame for frame in inspect.getinnerframes(error.__traceback__) if frame.filename == str(path)]
        where = f", line {lines[-1].lineno}" if lines else ""
        error.add_note(
            f"This happened in your part {path}{where}. Solve its exercise again, or delete the file to use our "
            "version. MINE=off disables all your parts."
        )


def with_a_note(function: Callable, path: Path) -> Callable:
    """Return the function with a note in its errors that names its file."""

    @functools.wraps(function)
    def run(*arguments, **options):
        try:
            return function(*arguments, **options)
        except Exception as error:
            add_part_note(error, path)
            raise

    return run


ANNOUNCED: set[str] = set()  # what this kernel has already announced


def announce(text: str) -> str:
    """Return a text the first time that a kernel asks for it, and an empty string afterwards."""
    if text in ANNOUNCED:
        return ""
    ANNOUNCED.add(text)
    return text


def with_parts(target):
    """Install the reader's parts in a model or tokenizer, and print once per kernel which they are."""
    of_tokenizer = isinstance(target, WordPieceTokenizer)
    mine = {name: path for name, path in saved_parts().items() if is_cutting(name) == of_tokenizer}
    used = [PARTS[name].title for name, path in mine.items() if install(name, with_a_note(load(path), path), target)]
    if used and (note := announce(f"With your own code in it: {', '.join(used)}.")):
        print(note)
    return target


def is_cutting(name: str) -> bool:
    """Return whether a part belongs to the tokenizer, and not to the encoder."""
    return PARTS[name].kind is WordPieceTokenizer


def my_tokenizer(checkpoint: str | None = None) -> WordPieceTokenizer:
    """Return the tokenizer of a checkpoint, with the reader's `word_pieces` if there is one."""
    return with_parts(WordPieceTokenizer.from_checkpoint(checkpoint))


def my_encoder(checkpoint: str | None = None) -> TransformerEncoder:
    """Return the pretrained encoder in evaluation mode, with all parts that the reader has written."""
    config, weights = read_checkpoint(checkpoint)
    encoder = with_parts(TransformerEncoder(config))
    encoder.load_bert_weights(weights)
    return encoder.eval()


def my_classifier(checkpoint: str | None = None, num_labels: int | None = 2) -> TransformerForSequenceClassification:
    """Return a classifier on the pretrained encoder, its last layer untrained, with the reader's parts in the encoder.

    With `num_labels=None` it is the classifier that was saved in `checkpoint`, whole.
    """
    classifier = TransformerForSequenceClassification.from_checkpoint(checkpoint, num_labels)
    with_parts(classifier.encoder)
    return classifier


# The drawing


class Drawing:
    """The encoder, the reader's parts in colour; each box leads to its notebook."""

    def __init__(self, names: list[str]):
        self.names = names

    def save(self, name: str = "", text: str = LADDER[0][0], texts: tuple[str, ...] = (), word: str = "I") -> "Drawing":
        """Save a page to show, and the drawing, in files of their own: see `save_page`."""
        return save_page(name, text, [*texts], word)

    def __repr__(self) -> str:
        lines = [f"{len(self.names)} of the {len(PARTS)} parts of this BERT are your own code"]
        for number, (name, part) in enumerate(PARTS.items(), start=1):
            whose = "yours" if name in self.names else "ours"
            lines.append(f"{number}  {part.title:<26}{whose:<7}{part.notebook}")
        return "\n".join(lines + ["To show it to others: show_parts().save()"] * bool(self.names))

    def svg(self) -> str:
        """Return the drawing of the README, in which only the reader's parts have a colour."""
        text = DRAWING.read_text("utf-8")
        for name in PARTS:
            if name not in self.names:
                blank = rf'(<rect id="{name}"[^>]*?) fill="[^"]*"'
                text = re.sub(blank, r'\1 fill="#ffffff" stroke-dasharray="4 4"', text)
        return text

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        svg, links = self.svg(), []
        width, height = (int(number) for number in re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
        boxes = re.findall(r'<rect id="(\w+)" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', svg)
        boxes.sort(key=lambda box: -int(box[3]) * int(box[4]))  # a box inside a box comes on top
        for name, *sizes in boxes:
            part, (x, y, w, h) = PARTS[name], map(int, sizes)
            place = f"left:{100 * x / width:.2f}%;top:{100 * y / height:.2f}%;"
            place += f"width:{100 * w / width:.2f}%;height:{100 * h / height:.2f}%"
            whose = "your code" if name in self.names else "not yet yours"
            label = html.escape(f"{part.title}, {whose}: notebook {part.notebook}")
            links.append(
                f'<a href="{part.notebook}.ipynb" title="{label}" aria-label="{label}" '
                f'style="position:absolute;{place}"></a>'
            )
        page = f'<div style="position:relative;max-width:{width}px">{svg}{"".join(links)}</div>'
        page = page.replace(f'width="{width}" height="{height}"', 'style="width:100%;height:auto"', 1)
        return {"text/plain": repr(self), "text/html": page, "image/svg+xml": svg}


def show_parts() -> Drawing:
    """Return a drawing of the encoder, with the reader's parts in colour and links to the notebooks."""
    return Drawing(list(saved_parts()))


# The page to show


def save_page(name: str, text: str, texts: list[str], word: str = "it") -> Drawing:
    """Save a page about the reader's BERT, my_bert.html, and its first picture, my_bert.png, next to the parts.

    The page shows the `name`, if there is one, the ribbons of `text` from `word`, how far the model is from the
    official one, which model that is, the date, how similar `texts` are to the first of them, and the reader's code.
    Prints where it is, and returns the drawing.
    """
    # here: notebooks that show no page start faster
    from pygments.formatters import HtmlFormatter

    from exercises.picture import can_draw, draw_png
    from views import sentence_view

    drawing, parts = show_parts(), saved_parts()
    if not parts:
        remedy = "MINE=off saves none" if folder() is None else "solve exercise 3.2 or 5.3, and run this cell again"
        print(f"None of the parts is yours yet: {remedy}.")
        return drawing
    model, name = my_encoder().requires_grad_(False), str(name or "").strip()[:60]
    text = " ".join(text_or_pair(text))
    texts = validated("texts", texts, [text])
    count = f"{len(parts)} of the {len(PARTS)} parts of this BERT"
    nameless = f"{count} {'are' if len(parts) > 1 else 'is'} my own code"
    headline = f"{name} wrote {count}" if name else nameless
    verdict, config, tokenizer = measure(model), model.config, my_tokenizer()
    batch = tokenizer(text)
    tokens = [tokenizer.tokens[number] for number in batch["input_ids"][0].tolist()]
    place = index_of(word, tokens)
    layer, head = min(3, config.num_hidden_layers - 1), min(1, config.num_attention_heads - 1)
    sources = {part: own_source(path) for part, path in parts.items()}
    lines = sum(bool(line.strip()) for source in sources.values() for line in source.splitlines())
    lines = f"{lines} line{'s' * (lines > 1)}"
    fields = {"title": headline, "owner": f"{name}’s" if name else "my", "text": texts[0], "word": tokens[place]}
    fields |= {
        "lines": lines,
        "verdict": f"{verdict} The model is {Path(checkpoint_name()).name}, on {date.today():%d %B %Y}.",
    }
    path = write_file(
        folder() / "my_bert.html",
        Template(PAGE.read_text("utf-8")).substitute(
            {field: html.escape(value) for field, value in fields.items()},
            course=course_link(),
            drawing=drawing.svg(),
            code="".join(map(show_source, sources, sources.values())),
            view=sentence_view(model, tokenizer, text, token=place, layer=layer, head=head)._repr_html_(),
            rows=show_similarities(model, tokenizer, texts),
            colours=css(dark=None),
            dim=variables("dark"),
            light=HtmlFormatter(style="default").get_style_defs("pre"),
            dark=HtmlFormatter(style="github-dark").get_style_defs("pre"),
            **{"H": config.hidden_size, "L": config.num_hidden_layers, "A": config.num_attention_heads},
        ),
    )
    headline = headline if can_draw(headline) else nameless
    weights = model(**batch, output_attentions=True).attentions[layer][0, head, place].tolist()
    says = f"Where “{tokens[place]}” looks, in head {head} of layer {layer}: computed with {lines} of my own code. "
    says = says if can_draw(says) else ""
    png = draw_png(tokens, weights, place, headline, says + fields["verdict"])
    picture = write_file(path.with_suffix(".png"), png)
    print(f"{verdict}\nYour page: {path.resolve()}\nIts first picture, to share: {picture.resolve()}")
    return drawing


def measure(model: TransformerEncoder) -> str:
    """Return a sentence on how far a model is from the official one on three padded pairs of texts."""
    theirs = load_tokenizer()(*LADDER, padding=True, return_tensors="pt")
    rungs = compare_rungs(model, load_reference_model().requires_grad_(False), my_tokenizer()(*LADDER), theirs)
    wrong = [rung for rung, difference in rungs.items() if not difference <= 1e-5]
    if not wrong:
        where = f"in the embeddings and in all {model.config.num_hidden_layers} layers"
        return f"On three pairs of texts, {where}, no number differs from the official BERT’s by more than 0.00001."
    worst = max(rungs[rung] for rung in wrong)
    return f"No: it differs by {worst:.2g} from the official BERT. The first difference is here: {wrong[0]}."


def course_link() -> str:
    """Return the name of the course, with a link if this copy has an address."""
    try:
        urls = metadata(DISTRIBUTION).get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    return f'<a href="{html.escape(urls[0].split(", ")[-1])}">{COURSE}</a>' if urls else f"<i>{COURSE}</i>"


DOES = {  # for a friend who knows nothing of it
    "word_pieces": "Cuts a word into pieces that the model has vectors for.",
    "embeddings": "Gives each piece its first numbers: those of the piece and those of its place.",
    "attention_weights": "Decides how much each word collects from every other.",
    "split_heads": "Deals the numbers of each word out to the heads.",
    "multi_head_attention": "Lets every head collect, and mixes what they found.",
    "feed_forward": "Changes the numbers of each word without looking at the others.",
    "encoder_layer": "Adds to each word what it collected, and then what the feed-forward network makes of it.",
    "encoder": "Runs the layers, one after the other.",
    "rename_weight": "Finds the trained numbers of BERT by their official names.",
}


def own_source(path: Path) -> str:
    """Return the reader's source of a part, without what `check` added."""
    return path.read_text("utf-8").partition("annotations\n")[2].rpartition("\npart =")[0].strip()


def show_source(name: str, source: str) -> str:
    """Return a part's title, what it does and its source, in colours, as HTML."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    coloured = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return f"<h3>{html.escape(PARTS[name].title)}</h3><p>{DOES[name]}</p><pre>{coloured}</pre>"


def show_similarities(model: TransformerEncoder, tokenizer: WordPieceTokenizer, texts: list[str]) -> str:
    """Return the rows of a table: the cosine similarity of the first text with each, as a bar and a number."""
    from utils.search import embed

    vectors = embed(texts, model, tokenizer)
    rows = zip((vectors @ vectors[0]).tolist(), texts, strict=True)
    return "".join(
        f'<tr><td><meter value="{cosine:.4f}"></meter> {cosine:.2f}<td>{html.escape(text)}' for cosine, text in rows
    )
