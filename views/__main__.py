"""Draw the attention of any model on a text as an HTML page: `python -m views sentence "a text" --save page.html`."""

import argparse
import sys

from transformers import AutoModel
from transformers.utils import logging

from utils.support.characters import replace_unprintable
from utils.support.checkpoint import checkpoint_folder, load_official, load_official_tokenizer
from utils.support.command_line import Parser
from utils.support.files import write_file
from views.any_model import family_of, has_two_sides
from views.draw import head_view, model_view, neuron_view
from views.models import embedding_count
from views.path import path_view
from views.sentence import sentence_view

VIEWS = {"head": head_view, "model": model_view, "neuron": neuron_view, "sentence": sentence_view, "path": path_view}
# the options of each view, with the argument that they become
PAIR, LAYER, HEAD, WORDS = {"--pair": "sentence_b"}, {"--layer": "layer"}, {"--head": "head"}, {"--words": "words"}
OPTIONS = {
    "head": PAIR | LAYER | {"--head": "heads"} | WORDS,
    "model": PAIR | WORDS,
    "neuron": PAIR | LAYER | HEAD,
    "sentence": PAIR | LAYER | HEAD | WORDS | {"--token": "token", "--other": "other", "--other-model": "other_model"},
    "path": {"--word": "word"},
}
SETTINGS = {
    "--pair": {"help": "second text; for an encoder–decoder, its output"},
    "--layer": {"type": int, "help": "layer shown first"},
    "--head": {"type": int, "help": "head shown first"},
    "--words": {"action": "store_const", "const": True, "help": "show whole words at first, not their pieces"},
    "--token": {"help": "token that looks first"},
    "--other": {"action": "append", "help": "second text, below the first; several are shown one at a time"},
    "--other-model": {"help": "second model, whose attention to the same text is shown below the first"},
    "--word": {"help": "word that is followed"},
}


def build_parser() -> argparse.ArgumentParser:
    """Build the parser, with a sub-command for each view."""
    parser = Parser("python -m views", description="Draw the attention of a model on a text.")
    commands = parser.add_subparsers(dest="view", metavar="VIEW", help=f"{', '.join(VIEWS)}; default: head")
    for view, options in OPTIONS.items():
        command = commands.add_parser(view, description=f"Draw the {view} view.")
        command.add_argument("text", help="text to draw")
        command.add_argument("--model", help="local folder or name on the Hub (default: the embedded checkpoint)")
        command.add_argument("--save", default="view.html", metavar="FILE", help="page to write (default: %(default)s)")
        for option, argument in options.items():
            command.add_argument(option, dest=argument, **SETTINGS[option])
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Draw a view from the command line, and print the path of the page; invalid arguments print an error."""
    replace_unprintable()
    parser, arguments = build_parser(), sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] not in (*VIEWS, "-h", "--help"):
        arguments = ["head", *arguments]
    given, unknown = parser.parse_known_args(arguments or ["--help"])
    given = vars(given)
    view, text, name, page = (given.pop(key) for key in ("view", "text", "model", "save"))
    if unknown:
        parser.error(
            f"the {view} view does not take {' '.join(unknown)}: see python -m views {view} --help, or name another "
            f"view first, {', '.join(VIEWS)}"
        )
    options = {argument: value for argument, value in given.items() if value is not None}
    if not text.strip() or not options.get("sentence_b", text).strip():
        parser.error("text and --pair must not be empty: type at least one word")
    logging.disable_progress_bar()
    try:
        write_file(page, "", dry_run=True)
        model, tokenizer = load(name)
        embedding_count(model)  # ValueError if it reads no text
        if has_two_sides(model) and "sentence_b" not in options:
            parser.error(f"a {family_of(model)} reads one text and writes another: pass the second with --pair")
        if "other_model" in options:
            if "other" in options:
                parser.error("--other and --other-model compare with one thing each: leave one of them out")
            options["other"] = load(options.pop("other_model"))
        elif len(options.get("other", ())) == 1:
            [options["other"]] = options["other"]
        print(VIEWS[view](model, tokenizer, text, **options).save(page))
    except (OSError, TypeError, ValueError) as error:
        parser.error(str(error))


def load(name: str | None) -> tuple:
    """Return a model of transformers and its tokenizer."""
    folder = checkpoint_folder(name)
    return load_official(folder, AutoModel), load_official_tokenizer(folder)


if __name__ == "__main__":
    main()
