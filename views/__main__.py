"""Draw the attention of any model on a text as an HTML page: `python -m views "a text" --save page.html`."""

import argparse
from pathlib import Path

from transformers import AutoModel
from transformers.utils import logging

from utils.support.characters import replace_unprintable
from utils.support.checkpoint import checkpoint_folder, load_official, load_official_tokenizer
from utils.support.files import write_file
from views.any_model import family_of, has_two_sides
from views.draw import head_view, model_view, neuron_view
from views.models import embedding_count
from views.path import path_view
from views.sentence import sentence_view

VIEWS = {"head": head_view, "model": model_view, "neuron": neuron_view, "sentence": sentence_view}
VIEWS |= {"path": path_view}


def main(arguments: list[str] | None = None) -> None:
    """Draw a view from the command line, and print the path of the page; invalid arguments print an error."""
    replace_unprintable()
    parser = argparse.ArgumentParser("python -m views", description="Draw the attention of a model on a text.")
    parser.add_argument("text", help="text to draw")
    parser.add_argument("--pair", help="second text; for an encoder–decoder, its output")
    parser.add_argument("--model", help="local folder or name on the Hub (default: the embedded checkpoint)")
    parser.add_argument("--view", choices=VIEWS, help="default: head, or sentence with --token or --other")
    parser.add_argument("--layer", type=int, help="layer shown first, except in the model and path view")
    parser.add_argument("--head", type=int, help="head shown first, except in the model and path view")
    parser.add_argument(
        "--token", help="token that looks first, in the sentence view, or word that is followed, in the path view"
    )
    parser.add_argument(
        "--other", action="append", help="second model or text, below the first in the sentence view; or several texts"
    )
    parser.add_argument("--words", action="store_true", help="show whole words at first, not their pieces")
    parser.add_argument("--save", default="view.html", metavar="FILE", help="page to write (default: %(default)s)")
    given = parser.parse_args(arguments)
    own = {name: value for name, value in (("token", given.token), ("other", given.other)) if value is not None}
    given.view = given.view or ("sentence" if own else "head")
    first = {"layer": given.layer, "head": given.head}
    if given.view == "head":
        first["heads"] = first.pop("head")
    chosen = {name: number for name, number in first.items() if number is not None}
    if given.view in ("model", "path") and chosen:
        parser.error(f"the {given.view} view shows all layers and heads: leave out --layer and --head")
    if given.view == "path" and given.token is not None:
        own["word"] = own.pop("token")
    if (own.keys() - {"word"}) and given.view != "sentence":
        parser.error(f"only the sentence view takes {' and '.join(f'--{name}' for name in own)}: add --view sentence")
    if given.words and given.view in ("neuron", "path"):
        reason = (
            "shows queries and keys, which belong to pieces" if given.view == "neuron" else "always shows whole words"
        )
        parser.error(f"the {given.view} view {reason}: leave out --words")
    if given.view == "path" and given.pair is not None:
        parser.error("the path view shows one text: leave out --pair")
    if given.words:
        own["words"] = True
    if not given.text.strip() or (given.pair is not None and not given.pair.strip()):
        parser.error("text and --pair must not be empty: type at least one word")
    logging.disable_progress_bar()
    try:
        write_file(given.save, "", dry_run=True)
        folder = checkpoint_folder(given.model)
        model = load_official(folder, AutoModel)
        embedding_count(model)  # ValueError if it reads no text
        if has_two_sides(model) and given.pair is None:
            parser.error(f"a {family_of(model)} reads one text and writes another: pass the second with --pair")
        tokenizer = load_official_tokenizer(folder)
        if given.other is not None:
            own["other"] = read_other(given.other, given.text)
        texts = [given.text] if given.view == "path" else [given.text, given.pair]
        view = VIEWS[given.view](model, tokenizer, *texts, **chosen, **own)
        print(view.save(given.save))
    except (OSError, TypeError, ValueError) as error:
        parser.error(str(error))


def read_other(other: list[str], text: str) -> tuple | str | list[str]:
    """Return a second model with its tokenizer, for a folder or a word next to a longer text, or texts to exchange."""
    if len(other) > 1:
        return other
    [name] = other
    if not Path(name).is_dir() and (len(name.split()) > 1 or len(text.split()) == 1):
        return name
    folder = checkpoint_folder(name)
    return load_official(folder, AutoModel), load_official_tokenizer(folder)


if __name__ == "__main__":
    main()
