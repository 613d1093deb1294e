"""The calls of type_bert.html to Python: check lines, run one head, run the whole model. JSON goes in and out."""

import builtins
import json
import math
from array import array
from base64 import b64decode
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from time import perf_counter

from publish.type_bert import checks, gaps

LONGEST = 1000, 64  # characters and tokens of a text: more would take minutes
state = {"models": []}  # the checkpoint, once it has been read


def answer(call: str, inputs: str, linear=None) -> str:
    """Call a function of this file by its name; `linear` multiplies by a weight matrix of the model, in JavaScript."""
    given = json.loads(inputs) | ({"linear": linear} if call in ("embed", "look") else {})
    with redirect_stdout(checks.Printed()), redirect_stderr(checks.Printed()):  # what `check` returns is enough
        found = {"prepare": prepare, "check": check, "embed": embed, "look": look}[call](**given)
    return json.dumps(found)


def guard() -> Callable[[], bool]:
    """Return a function that returns whether Python, and what judges lines, are what they are now."""
    return checks.guard(vars(math), vars(builtins), vars(checks), vars(gaps), globals(), state)


def prepare(source: str, head: dict) -> None:
    """Take microbert.py and the numbers of one head."""
    state["source"] = checks.split(source)
    for name, (size, text) in head.items():
        numbers = array("f", b64decode(text)).tolist()
        state[name] = [numbers[i : i + size] for i in range(0, len(numbers), size)]


def check(gap: str, body: str, mine: dict[str, str]) -> dict:
    """Judge lines and, if they can run, return the attention weights of one head with them and the reader's others."""
    found = checks.judge(state["source"], gap, body)
    if found.get("runs"):
        try:
            found["weights"] = weights({**mine, gap: body})
        except BaseException as error:
            found["error"] = f"{type(error).__name__}: {error}"
    return found


class Head:
    """The weights of one head, as a checkpoint returns them."""

    def rows(self, name: str, chosen=None) -> list[list[float]]:
        """Return a weight matrix or a bias."""
        return state[name]


def functions(bodies: dict[str, str]) -> dict:
    """Return the functions of microbert.py, with a reader's lines in place of ours."""
    variables = {"__name__": "microbert", "print": checks.show}
    exec(compile(checks.with_bodies(state["source"], bodies), "microbert.py", "exec"), variables)
    return variables


def as_row(weights, keys) -> list[float]:
    """Return what `weights_of` has returned as numbers; ValueError unless they are finite, one per key."""
    row = [float(weight) for weight in weights]
    if len(row) != len(keys) or not all(map(math.isfinite, row)):
        raise ValueError("this is not one finite number for each token")
    return row


def weights(bodies: dict[str, str]) -> list[list[list[float]]]:
    """Return the attention weights of one head, for both sentences; ValueError unless they are numbers, one per key."""
    made, found = functions(bodies), []
    for sentence in ("tired", "narrow"):
        queries, keys = (made["linear"](state[sentence], Head(), part) for part in ("query", "key"))
        found.append([as_row(made["weights_of"](query, keys), keys) for query in queries])
    return found


def in_model(run: Callable, bodies: dict[str, str], texts: list[str], linear) -> dict:
    """Return what `run(functions, model, texts)` returns and the seconds it took, or an `error`.

    `cut` are the texts of which only the beginning is read.
    """
    start = perf_counter()
    try:
        made = functions(bodies)
        if linear:
            made["linear"] = partial(multiply, linear)
        if not state["models"]:
            state["models"].append(made["Checkpoint"]("/model"))
        [model], (characters, tokens) = state["models"], LONGEST
        model.max_length = tokens + 1
        begun = [text[:characters] for text in texts]
        cut = [text for text, own in zip(texts, begun, strict=True) if own != text or is_long(made, model, own)]
        model.max_length = tokens
        return run(made, model, begun) | {"cut": cut, "seconds": perf_counter() - start}
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"}


def is_long(made: dict, model, text: str) -> bool:
    """Return whether a text has as many tokens as the model would read."""
    return len(made["token_ids"](text, model)) == model.max_length


def embed(bodies: dict[str, str], texts: list[str], linear=None) -> dict:
    """Return the cosine of the first text with each other one, or an `error`: see `in_model`."""

    def run(made: dict, model, texts: list[str]) -> dict:
        first, *others = (made["embed"](text, model) for text in texts)
        cosines = [made["dot"](first, other) for other in others]
        if not all(map(math.isfinite, cosines)):
            raise ValueError(f"the cosine is {cosines[0]}")
        return {"cosines": cosines}

    return in_model(run, bodies, texts, linear)


def look(bodies: dict[str, str], text: str, linear=None) -> dict:
    """Return the tokens of a text, and the attention weights of each layer, head and token, or an `error`."""

    def run(made: dict, model, texts: list[str]) -> dict:
        rows, weights_of = [], made["weights_of"]

        def keep(query, keys):
            rows.append(as_row(weights_of(query, keys), keys))
            return rows[-1]

        made["weights_of"] = keep
        ids = made["token_ids"](texts[0], model)
        made["encode"](ids, model)
        if len(rows) != model.config["num_hidden_layers"] * model.config["num_attention_heads"] * len(ids):
            raise ValueError("weights_of must run once for each token in each head")
        names = list(model.vocab)
        return {"tokens": [names[i] for i in ids], "weights": rows}

    return in_model(run, bodies, [text], linear)


def multiply(linear, x, model, name: str) -> list[list[float]]:
    """Multiply each vector by a weight matrix in JavaScript, and add a bias."""
    return [list(vector) for vector in linear([array("d", vector) for vector in x], name).to_py()]
