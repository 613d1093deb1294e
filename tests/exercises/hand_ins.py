"""What students hand in for notebook 03: right answers, odd but right ones, and what tries to end the grading.

`HONEST` holds the sources of exercise cells without their last line, `check(…)`; `CHANGES` what may happen to a whole
notebook; `HOSTILE` what 3.4 may do besides; `FILES` what may lie in the folder in a notebook's place.
"""

import json
import os
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

from exercises.grading.cells import Cell, read_cells
from tests.helpers import ROOT

HEAD = """\
class MyHead(nn.Module):
    def __init__(self, hidden_size, head_size):
        super().__init__()
        self.query = nn.Linear(hidden_size, head_size)
        self.key = nn.Linear(hidden_size, head_size)
        self.value = nn.Linear(hidden_size, head_size)

    def forward(self, hidden_states, attention_mask=None):
        query, key = self.query(hidden_states), self.key(hidden_states)
        mask = 0 if attention_mask is None else (attention_mask[:, None, :] - 1) * 1e9
        weights = (query @ key.transpose(1, 2) / query.size(-1) ** 0.5 + mask).softmax(dim=-1)
        return weights @ self.value(hidden_states), weights
"""
SOFTMAX = """\
def softmax_by_hand(scores):
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)
"""
SHAPES = "weights_shape, context_shape = (2, 7, 5), (2, 7, 32)\n"

HONEST = {
    "3.1": {
        "a reference imported, not used": f"from utils.attention import AttentionHead\n{SHAPES}",
        "another default dtype": f"torch.set_default_dtype(torch.float64)\n{SHAPES}",
        "%matplotlib": "%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\nplt.plot([1, 2])\n"
        f"plt.show()\n{SHAPES}",
        "pairs of dtypes": f"%%capture shown\nprint(torch.get_default_dtype())\n{SHAPES}",
        "numpy": "import numpy as np\nnp.random.seed(0)\nweights_shape = np.array([2, 7, 5])\n"
        "context_shape = (*weights_shape[:2], np.sqrt(1024))\n",
    },
    "3.3": {
        "%%time": f"%%time\n{HEAD}",
        "inspect": f"import inspect\n{HEAD}\nprint(inspect.signature(MyHead), inspect.getsource(MyHead.forward))\n",
        "__dict__": f"{HEAD}\nprint(MyHead(4, 2).__dict__, vars(MyHead(4, 2)), MyHead.__name__)\n",
        "renamed": HEAD.replace("MyHead", "Kopf") + "\nMyHead = Kopf\n",
        "annotated": f"from __future__ import annotations\n{HEAD}".replace(
            "attention_mask=None)", "attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]"
        ),
        "tried out": f"{HEAD}\nhead = MyHead(4, 2).eval()\nwith torch.no_grad():\n"
        "    print(head(torch.zeros(1, 3, 4)))\n",
        "a dataclass": "from dataclasses import dataclass\n@dataclass\nclass Sizes:\n    H: int\n    D: int\n"
        + HEAD.replace("nn.Linear(hidden_size, head_size)", "nn.Linear(Sizes(hidden_size, 0).H, head_size)"),
    },
    "3.4": {
        "%timeit": f"{SOFTMAX}\n%timeit -n 2 -r 2 softmax_by_hand(torch.zeros(2, 2))\n",
        "a partial": "from functools import partial\n"
        + SOFTMAX.replace("(scores)", "(scores, dim=-1)").replace("softmax_by_hand", "over", 1)
        + "softmax_by_hand = partial(over, dim=-1)\n",
        "umlauts": SOFTMAX.replace("exponentials", "größe") + "# ungefähr “so”\n",
        "with gradients": f"@torch.enable_grad()\n{SOFTMAX}",
        "solved": f"from exercises import solved\n{SOFTMAX}\nassert solved('3.4', softmax_by_hand)\n",
        "in float64": SOFTMAX.replace("softmax_by_hand", "inner")
        + "def softmax_by_hand(*all_of_them):\n    return inner(*[x.double() for x in all_of_them]).float()\n",
        "a class with __call__": f"{SOFTMAX}class Softmax:\n    def __call__(self, scores):\n"
        "        return by_hand(scores)\n\nby_hand, softmax_by_hand = softmax_by_hand, Softmax()\n",
    },
}


NUMBERS = ["3.1", "3.4"]  # without the two whose checks take seconds
NOTEBOOK = next((ROOT / "notebooks").glob("03_*.ipynb"))
CONTENT = json.loads(NOTEBOOK.read_text("utf-8"))
SOLVED = {cell.number: cell.source for cell in read_cells(ROOT / "notebooks/solutions/03_solutions.ipynb")}
RIGHT = {number: SOLVED[number] for number in NUMBERS}
CHECKED = 'check("3.4", softmax_by_hand)'


def number_of(cell: dict) -> str:
    return Cell("", "".join(cell["source"])).number if cell["cell_type"] == "code" else ""


def code(source: str) -> dict:
    return {"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "execution_count": None, "source": source}


def answered_below(cells: list[dict]) -> list[dict]:
    """The exercises as handed out, each answer in a new cell below."""
    content = {number_of(cell): cell for cell in CONTENT["cells"]}
    added = [[content[number], cell] if (number := number_of(cell)) in NUMBERS else [cell] for cell in cells]
    return [cell for pair in added for cell in pair]


def around(cells: list[dict], above: str = "", below: str = "", replace: tuple[str, str] = ("", "")) -> list[dict]:
    """The cell of 3.4 with others above and below all, and something replaced in it."""
    place = next(place for place, cell in enumerate(cells) if number_of(cell) == "3.4")
    answer = cells[place] | {"source": "".join(cells[place]["source"]).replace(*replace)}
    return [*cells[:place], *([code(above)] * bool(above)), answer, *cells[place + 1 :], *([code(below)] * bool(below))]


def from_colab(cells: list[dict]) -> list[dict]:
    """Without ids of cells, with metadata and outputs of Colab's, sources as lists of lines."""
    metadata = {"id": "x1", "colab": {"base_uri": "https://localhost:8080/"}, "outputId": "7f", "executionInfo": {}}
    lines = ["".join(cell["source"]).splitlines(keepends=True) for cell in cells]
    added = [{"source": source, "metadata": metadata} for source in lines]
    return [{k: v for k, v in (cell | new).items() if k != "id"} for cell, new in zip(cells, added, strict=True)]


LARGEST = "def largest(x):\n    return x.amax(dim=-1, keepdim=True)"
BY_LARGEST = ("scores.amax(dim=-1, keepdim=True)", "largest(scores)")
IMPORTS = "import numpy as np\nfrom math import *\n\nROOT_OF_TWO = np.sqrt(2)"
CHANGES: dict[str, Callable[[list[dict]], list[dict]]] = {
    "as it is": lambda cells: cells,
    "reversed, new ids": lambda cells: [cell | {"id": f"new-{place}"} for place, cell in enumerate(cells[::-1])],
    "answered below": answered_below,
    "a helper above": lambda cells: around(cells, LARGEST, replace=BY_LARGEST),
    "a helper below": lambda cells: around(cells, below=LARGEST, replace=BY_LARGEST),
    "an error above": lambda cells: around(cells, "1 / 0"),
    "a syntax error above": lambda cells: around(cells, "def my_first_try(:"),
    "a module of their own": lambda cells: around(cells, IMPORTS, replace=("def ", "ROOT_OF_TWO\ndef ")),
    "a plot": lambda cells: around(cells, replace=("def ", "plt.plot([1, 2])\nplt.show()\ndef ")),
    "checked in a cell below": lambda cells: around(cells, replace=(CHECKED, "print(1)"), below=CHECKED),
    "another name": lambda cells: around(cells, replace=("softmax_by_hand", "meins")),
    "a long sum": lambda cells: around(cells, replace=("def ", f"total = {' + '.join(['1'] * 400)}\ndef ")),
    "many branches": lambda cells: around(cells, replace=("def ", "if 0: 0\n" + "elif 0: 0\n" * 250 + "def ")),
    "of Colab": from_colab,
    "its other cells gone": lambda cells: [cell for cell in cells if number_of(cell) in NUMBERS],
}
ENDS = "it ends its process"
HOSTILE = {  # what 3.4 does, and what its verdict says; all other answers are right
    "loops": ("while True: pass", "does not end within 5 seconds"),
    "needs memory": ("kept = []\nwhile True: kept.append(b'1' * 10**8)", "more than 1.5 GB of memory"),
    "forks": ("import os\nwhile True: os.fork()", "stopped: "),
    "exits": ("import os\nos._exit(0)", ENDS),
    "kills its parent": ("import os, time\nos.kill(os.getppid(), 9); time.sleep(5)", ENDS),
    "recurses": ("import sys\nsys.setrecursionlimit(10**9)\ndef f(): return [f() for _ in 'x']\nf()", "stopped: "),
    "quits": ("import sys\nsys.exit(1)", "SystemExit"),
    "raises oddly": (
        'raise ValueError("a\\nb\\x1b[2J \\ud800" + "x" * 10**7)',
        "your code raised ValueError: a b [2J x",
    ),
    "prints much": ("for _ in range(100): print('x' * 10**7)", "not attempted yet"),
    "writes much": ("open('much', 'wb').write(bytes(3 * 10**8))", "File too large"),
    "closes its outputs": ("import os, sys\nsys.stdout.close(); sys.stderr.close()\nprint(1)", "closed file"),
    "leaves threads": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=[99]).start()",
        "not attempted yet",
    ),
    "removes its folder": ("import os, shutil\nshutil.rmtree('..')", "stopped: "),
    "writes results": (
        "for text in ('[]', '{', '[1]', '7', '[' * 10**5): open('../results', 'a').write(text + '\\n')",
        "not attempted yet",
    ),
    "replaces results": (
        "import os\nos.remove('../results'); os.mkfifo('../results')",
        "does not end within 5 seconds",
    ),
    "is no Python": ("def softmax_by_hand(scores:", "does not parse"),
}
ENDLESS = {"loops", "forks", "replaces results"}  # the others end by themselves, on a busy machine too
HARMLESS = {"leaves threads", "prints much", "writes results"}  # whose process goes on


def original(chapter: str) -> Path:
    return next((ROOT / "notebooks").glob(f"{chapter}_*.ipynb"))


def hand_in(path: Path, answers: dict[str, str], change: Callable = lambda cells: cells, short: bool = True) -> Path:
    """Write notebook 03, short or whole, with these sources of exercise cells, then changed."""
    cells = [dict(cell) for cell in CONTENT["cells"] if not short or number_of(cell) in ("", *NUMBERS)]
    for cell in cells:
        cell["source"] = answers.get(number_of(cell), cell["source"])
    path.write_text(json.dumps(CONTENT | {"cells": change(cells)}), "utf-8")
    return path


def honest(folder: Path, numbers: list[str], short: bool = True) -> list[Path]:
    """Write hand-ins with the odd but right answers to these exercises, one of each in a notebook."""
    endings = {number: f"\n\n{SOLVED[number].splitlines()[-1]}" for number in numbers}
    columns = [[source + endings[number] for source in HONEST[number].values()] for number in numbers]
    rows = [{n: s for n, s in zip(numbers, row, strict=True) if s} for row in zip_longest(*columns)]
    return [hand_in(folder / f"odd {place}.ipynb", row, short=short) for place, row in enumerate(rows)]


def write_files(folder: Path) -> dict[str, str]:
    """Put into a folder what is no notebook, and return a word of the verdict on each, by its name."""
    right = hand_in(folder / "right.ipynb", RIGHT).read_text("utf-8")
    texts = {
        "empty file": b"",
        "no JSON": b"My notebook",
        "a list": b"[]",
        "a number": b"7",
        "no cells": b"{}",
        "version 3": b'{"worksheets": [], "nbformat": 3}',
        "no source": b'{"cells": [{"cell_type": "code"}]}',
        "a number as source": b'{"cells": [{"cell_type": "code", "source": 7}]}',
        "cells of numbers": b'{"cells": [1, 2]}',
        "deep": b"[" * 10**6,
        "Latin 1": right.replace("softmax", "gr\u00f6\u00dfe").encode("latin-1", "ignore"),
        "UTF-16": right.encode("utf-16"),
        "a part of it": right[: len(right) // 2].encode(),
    }
    for name, content in texts.items():
        (folder / f"{name}.ipynb").write_bytes(content)
    (folder / "a folder.ipynb").mkdir()
    os.mkfifo(folder / "a pipe.ipynb")
    (folder / "nowhere.ipynb").symlink_to(folder / "gone")
    (folder / "a device.ipynb").symlink_to("/dev/zero")
    irregular = dict.fromkeys(["a folder", "a pipe", "a device"], "is not a regular file")
    return dict.fromkeys([*texts, "nowhere"], "is not a notebook") | irregular
