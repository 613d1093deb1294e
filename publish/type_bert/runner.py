"""The calls of type_bert.html to Python: check lines, run one head, run the whole model. JSON goes in and out."""

import json
import math
from array import array
from base64 import b64decode
from functools import partial
from time import perf_counter

from publish.type_bert import checks

state = {}


def answer(call: str, inputs: str, linear=None) -> str:
    """Call a function of this file by its name; `linear` multiplies by a weight matrix of the model, in JavaScript."""
    given = json.loads(inputs) | ({"linear": linear} if call == "embed" else {})
    return json.dumps({"prepare": prepare, "check": check, "embed": embed}[call](**given))


def prepare(source: str, head: dict) -> None:
    """Take microbert.py and the numbers of one head."""
    state.update(source=checks.split(source), model=None)
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
    return found | {"intact": checks.is_intact()}


class Head:
    """The weights of one head, as a checkpoint returns them."""

    def rows(self, name: str, chosen=None) -> list[list[float]]:
        """Return a weight matrix or a bias."""
        return state[name]


def functions(bodies: dict[str, str]) -> dict:
    """Return the functions of microbert.py, with a reader's lines in place of ours."""
    variables = {"__name__": "microbert"}
    exec(compile(checks.with_bodies(state["source"], bodies), "microbert.py", "exec"), variables)
    return variables


def weights(bodies: dict[str, str]) -> list[list[list[float]]]:
    """Return the attention weights of one head, for both sentences; ValueError unless they are numbers, one per key."""
    made, found = functions(bodies), []
    for sentence in ("tired", "wide"):
        x = state[sentence]
        queries, keys = (made["linear"](x, Head(), part) for part in ("query", "key"))
        rows = [[float(weight) for weight in made["weights_of"](query, keys)] for query in queries]
        if not all(len(row) == len(x) and all(map(math.isfinite, row)) for row in rows):
            raise ValueError("this is not one finite number for each token")
        found.append(rows)
    return found


def embed(bodies: dict[str, str], texts: list[str], linear=None) -> dict:
    """Return the cosine of the first text with each other one and the seconds that this took, or an `error`."""
    start = perf_counter()
    try:
        made = functions(bodies)
        if linear:
            made["linear"] = partial(multiply, linear)
        state["model"] = model = state["model"] or made["Checkpoint"]("/model")
        first, *others = (made["embed"](text, model) for text in texts)
        cosines = [made["dot"](first, other) for other in others]
        if not all(map(math.isfinite, cosines)):
            raise ValueError(f"the cosine is {cosines[0]}")
        found = {"cosines": cosines, "seconds": perf_counter() - start}
    except BaseException as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    return found | {"intact": checks.is_intact()}


def multiply(linear, x, model, name: str) -> list[list[float]]:
    """Multiply each vector by a weight matrix in JavaScript, and add a bias."""
    return [list(vector) for vector in linear([array("d", vector) for vector in x], name).to_py()]
