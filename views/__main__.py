"""`python -m views "a text" --save page.html`: a view of a text, of any model, as a page that any browser opens."""

import argparse

from transformers import AutoModel
from transformers.utils import logging

from utils.support.checkpoint import checkpoint_folder, load_official, load_official_tokenizer
from utils.support.files import write_file
from views.any_model import family_of, has_two_sides
from views.draw import head_view, model_view, neuron_view
from views.models import rows_of

VIEWS = {"head": head_view, "model": model_view, "neuron": neuron_view}


def main(arguments: list[str] | None = None) -> None:
    """Draw a text as the command line says, and tell where the page lies; what is wrong ends the program in words."""
    parser = argparse.ArgumentParser("python -m views", description="Draw the attention of a text as a page.")
    parser.add_argument("text")
    parser.add_argument("--pair", help="a second text; what an encoder–decoder writes")
    parser.add_argument("--model", help="a folder, or a name on the Hub; by default the series' checkpoint")
    parser.add_argument("--view", choices=VIEWS, default="head")
    parser.add_argument("--layer", type=int, help="that is shown first, in the head and the neuron view")
    parser.add_argument("--head", type=int, help="that is shown first, in the head and the neuron view")
    parser.add_argument("--save", default="view.html", metavar="page.html")
    given = parser.parse_args(arguments)
    first = {"layer": given.layer, "head": given.head}
    if given.view == "head":
        first["heads"] = first.pop("head")
    chosen = {name: number for name, number in first.items() if number is not None}
    if given.view == "model" and chosen:
        parser.error("the model view shows all layers and heads: leave out --layer and --head")
    if not given.text.strip() or (given.pair is not None and not given.pair.strip()):
        parser.error("a text is empty: type a word or more")
    logging.disable_progress_bar()
    try:
        write_file(given.save, "", dry_run=True)
        folder = checkpoint_folder(given.model)
        model = load_official(folder, AutoModel)
        rows_of(model)  # ValueError for one that reads no text
        if has_two_sides(model) and given.pair is None:
            parser.error(f"a {family_of(model)} reads one text and writes another: pass what it writes with --pair")
        view = VIEWS[given.view](model, load_official_tokenizer(folder), given.text, given.pair, **chosen)
        print(view.save(given.save))
    except (OSError, TypeError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
