"""What students hand in for notebooks 03 and 09: odd answers that are right, and cheats, by exercise.

Each is the source of one exercise cell without its last line, `check(…)`.
"""

import json
from itertools import zip_longest
from pathlib import Path

from exercises.grading import grade
from exercises.grading.cells import Cell
from tests.helpers import ROOT

HEAD = """\
class MyHead(nn.Module):
    def __init__(self, hidden_size, head_size):
        super().__init__()
        self.query = nn.Linear(hidden_size, head_size)
        self.key = nn.Linear(hidden_size, head_size)
        self.value = nn.Linear(hidden_size, head_size)

    def forward(self, hidden_states, attention_mask=None):
        mask = None if attention_mask is None else attention_mask[:, None, :]
        return scaled_dot_product_attention(
            self.query(hidden_states), self.key(hidden_states), self.value(hidden_states), mask
        )
"""
SOFTMAX = """\
def softmax_by_hand(scores):
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)
"""
WINDOW = """\
def window_attention(query, key, value, attention_mask, reach):
    places = torch.arange(query.size(1), device=query.device)
    near = (places[:, None] - places).abs() <= reach
    return scaled_dot_product_attention(query, key, value, (attention_mask[:, None, :] != 0) & near)
"""
SPREAD = "before_scaling, after_scaling = 8, 1\n"
SHAPES = "weights_shape, context_shape = (2, 7, 5), (2, 7, 32)\n"

HONEST = {
    "3.2": {
        "import sys": f"import sys\nprint(sys.version, sys.maxsize)\n{SHAPES}",
        "import os": f"import os\nprint(os.getcwd(), os.path.join('a', 'b'), os.cpu_count())\n{SHAPES}",
        "a note kept": f"with open('notes.txt', 'w') as file:\n    file.write('7 × 5')\n{SHAPES}",
        "a namedtuple": "from collections import namedtuple\nPair = namedtuple('Pair', 'w c')\n"
        "weights_shape, context_shape = Pair((2, 7, 5), (2, 7, 32))\n",
        "measured": "given = [torch.zeros(2, n, d) for n, d in [(7, 64), (5, 64), (5, 32)]]\n"
        "context_shape = F.scaled_dot_product_attention(*given).shape\n"
        "weights_shape = (given[0] @ given[1].mT).shape\n",
        "a reference imported, not used": f"from utils.attention import AttentionHead\n{SHAPES}",
        "an error looked at": "import traceback\ntry:\n    torch.zeros(2) @ torch.zeros(3)\nexcept RuntimeError:\n"
        f"    traceback.print_exc()\n{SHAPES}",
    },
    "3.3": {
        "another default dtype": f"torch.set_default_dtype(torch.float64)\n{SPREAD}",
        "measured": "torch.manual_seed(0)\nq, k = torch.randn(2, 4000, 64)\nprint((q * k).sum(-1).std())\n"
        f"torch.set_grad_enabled(False)\n{SPREAD}",
        "logging": f"import logging, warnings\nwarnings.filterwarnings('ignore')\nlogging.warning('now')\n{SPREAD}",
        "%matplotlib": "%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\nplt.plot([1, 2])\n"
        f"plt.show()\n{SPREAD}",
        "pairs of dtypes": f"%%capture shown\nprint(torch.get_default_dtype())\n{SPREAD}",
        "numpy": "import numpy as np\nnp.random.seed(0)\nbefore_scaling = np.sqrt(64)\n"
        "after_scaling = before_scaling / np.sqrt(64)\n",
        "a timer": f"import time, timeit\nprint(timeit.timeit(lambda: 8 * 8, number=10), time.time())\n{SPREAD}",
    },
    "3.5": {
        "%%time": f"%%time\n{HEAD}",
        "inspect": f"import inspect\n{HEAD}\nprint(inspect.signature(MyHead), inspect.getsource(MyHead.forward))\n",
        "__dict__": f"{HEAD}\nprint(MyHead(4, 2).__dict__, vars(MyHead(4, 2)), MyHead.__name__)\n",
        "renamed": HEAD.replace("MyHead", "Kopf") + "\nMyHead = Kopf\n",
        "own base class": HEAD.replace("MyHead", "Base") + "\nclass MyHead(Base):\n    pass\n",
        "annotated": f"from __future__ import annotations\n{HEAD}".replace(
            "attention_mask=None)", "attention_mask: Tensor | None = None) -> tuple[Tensor, Tensor]"
        ),
        "tried out": f"{HEAD}\nhead = MyHead(4, 2).eval()\nwith torch.no_grad():\n"
        "    print(head(torch.zeros(1, 3, 4)))\n",
        "a dataclass": "from dataclasses import dataclass\n@dataclass\nclass Sizes:\n    H: int\n    D: int\n"
        + HEAD.replace("nn.Linear(hidden_size, head_size)", "nn.Linear(Sizes(hidden_size, 0).H, head_size)"),
        "compiled for speed": f"import re\nre.compile('x')\n{HEAD}\nMyHead.forward.author = 'me'\n",
    },
    "3.1": {
        "%time": f"{SOFTMAX}\n%time softmax_by_hand(torch.zeros(2, 2))\n",
        "%timeit": f"{SOFTMAX}\n%timeit -n 2 -r 2 softmax_by_hand(torch.zeros(2, 2))\n",
        "decorated": f"import functools\n@functools.wraps(abs)\n{SOFTMAX}",
        "a partial": "from functools import partial\n"
        + SOFTMAX.replace("(scores)", "(scores, dim=-1)").replace("softmax_by_hand", "over", 1)
        + "softmax_by_hand = partial(over, dim=-1)\n",
        "umlauts": SOFTMAX.replace("exponentials", "größe") + "# ungefähr “so”\n",
        "with gradients": f"@torch.enable_grad()\n{SOFTMAX}",
        "solved": f"from exercises import solved\n{SOFTMAX}\nassert solved('3.1', softmax_by_hand)\n",
    },
    "3.6": {
        "%%time": f"%%time\n{WINDOW}",
        "in float64": WINDOW.replace("window_attention", "inner")
        + "def window_attention(*all_of_them):\n    return inner(*all_of_them)\n",
        "a class with __call__": "class Window:\n    def __call__(self, query, key, value, attention_mask, reach):\n"
        "        near = torch.ones(query.size(1), query.size(1)).tril(reach).triu(-reach) > 0\n"
        "        mask = (attention_mask[:, None, :] != 0) & near\n"
        "        return scaled_dot_product_attention(query, key, value, mask)\n\nwindow_attention = Window()\n",
        "a named pair": "from typing import NamedTuple\nclass Both(NamedTuple):\n"
        "    context: Tensor\n    weights: Tensor\n"
        + WINDOW.replace("return scaled_dot", "return Both(*scaled_dot").replace("& near)", "& near))"),
        "the given one, imported": f"from utils.attention import scaled_dot_product_attention\n{WINDOW}",
        "globals": f"{WINDOW}\nprint('window_attention' in globals(), help)\n",
    },
}

TAKE_SAY = """\
    while frame:
        if "say" in frame.f_locals:
            say = frame.f_locals["say"]
            for number in ("3.2", "3.3", "3.5", "3.1", "3.6"):
                say(number=number, words="correct.", noted=[], claims=False)
            say(ends=True)
        frame = frame.f_back
"""
BORROWED_HEAD = """
class MyHead(nn.Module):
    def __init__(self, H, D):
        super().__init__()
        self.head = theirs()(H, D)
        self.query, self.key, self.value = self.head.query, self.head.key, self.head.value

    def forward(self, states, mask=None):
        return self.head(states, mask)
"""
BY_NAME = '"utils." + "attention"'
FRAME_OF = """\
class MyHead(nn.Module):
    def __init__(self, H, D):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(H, D) for _ in range(3))

    def forward(self, states, mask=None):
        frame = {}
        while frame.f_code.co_name != "head_rungs":
            frame = frame.f_back
        return frame.f_locals["context"], frame.f_locals["weights"]
"""
RAISE = "def raised():\n    try:\n        1 / 0\n    except ZeroDivisionError as e:\n        return e\n\n"

CHEATS = {
    "3.5": {
        "star": "from utils.attention import *\nMyHead = AttentionHead\n",
        "star, inherited": "from utils.attention import *\nclass MyHead(AttentionHead):\n    pass\n",
        "pickle": 'import pickle\nMyHead = pickle.loads(b"cutils.attention\\nAttentionHead\\n.")\n',
        "pkgutil": 'import pkgutil\nMyHead = pkgutil.resolve_name("utils.attention:AttentionHead")\n',
        "read and run": "import code, utils\nfrom pathlib import Path\nnames = {}\n"
        "text = (Path(utils.__file__).parent / 'attention.py').read_text()\n"
        "code.InteractiveInterpreter(names).runcode(code.compile_command(text, symbol='exec') or "
        "compile(text, 'x', 'exec'))\nMyHead = names['AttentionHead']\n",
        "a frame of the check": RAISE + FRAME_OF.format("raised().__traceback__.tb_frame"),
        "aliased": "from utils import attention as weights\nMyHead = weights.AttentionHead\n",
        "__import__": f"MyHead = __import__({BY_NAME}, fromlist=['x']).AttentionHead\n",
        "sys.modules": f"import sys\nMyHead = sys.modules[{BY_NAME}].AttentionHead\n",
        # those below were thought of later
        "modules of torch.sys": f"MyHead = torch.sys.modules[{BY_NAME}].AttentionHead\n",
        "modules by getattr": f"import sys\nMyHead = getattr(sys, 'mod' 'ules')[{BY_NAME}].AttentionHead\n",
        "pydoc": f"import pydoc\nMyHead = pydoc.locate({BY_NAME} + '.AttentionHead')\n",
        "mock": f"from unittest import mock\nMyHead = mock._importer({BY_NAME}).AttentionHead\n",
        "torch.load": 'import io\nMyHead = torch.serialization.pickle.loads(b"cutils.attention\\nAttentionHead\\n.")\n',
        "when it is called": f"import pydoc\ndef theirs():\n    return pydoc.locate({BY_NAME} + '.AttentionHead')\n"
        + BORROWED_HEAD,
        "its methods": "import pydoc\nMyHead = type('MyHead', (nn.Module,), "
        f"dict(vars(pydoc.locate({BY_NAME} + '.AttentionHead'))))\n",
        "one method": HEAD + f"\nimport pydoc\nMyHead.forward = pydoc.locate({BY_NAME}).AttentionHead.forward\n",
        "frame by attrgetter": "import operator\n"
        + RAISE
        + FRAME_OF.format("operator.attrgetter('__trace' 'back__.tb_fr' 'ame')(raised())"),
        "frame of a generator": FRAME_OF.format("None").replace(
            "frame = None", "frame = list(g := (getattr(g, 'gi_fr' 'ame').f_back.f_back for _ in [1]))[0]"
        ),
        "frame by logging": "import logging\n" + FRAME_OF.format("logging.currentframe()"),
        "frame by inspect": "import inspect\n" + FRAME_OF.format("inspect.currentframe()"),
        "frame by traceback": "import traceback\n" + FRAME_OF.format("next(traceback.walk_stack(None))[0]"),
        "frame by a signal": "import signal\n"
        + FRAME_OF.format("caught[-1]").replace(
            "        frame =",
            "        caught = []\n        signal.signal(signal.SIGUSR1, lambda number, f: caught.append(f))\n"
            "        signal.raise_signal(signal.SIGUSR1)\n        frame =",
        ),
        "frame by a profiler": "import sys\n"
        + FRAME_OF.format("caught[-1]").replace(
            "        frame =",
            "        caught = []\n        sys.setprofile(lambda f, event, x: caught.append(f))\n"
            "        len([])\n        sys.setprofile(None)\n        frame =",
        ),
        "text, run by timeit": "import timeit, utils\nfrom pathlib import Path\nkept = []\n"
        "text = (Path(utils.__file__).parent / 'attention.py').read_text()\n"
        "timeit.timeit('kept.append(AttentionHead)', text, number=1, globals={'kept': kept})\nMyHead = kept[0]\n",
    },
    "3.1": {
        "forged by frames": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n"
        f"    frame = e.__traceback__.tb_frame\n{TAKE_SAY}\nsoftmax_by_hand = abs\n",
        "a lying tensor": "class Liar(Tensor):\n    @classmethod\n"
        "    def __torch_function__(cls, f, types, a=(), k=None):\n"
        "        return torch.ones(1) == 1 if 'close' in f.__name__ else super().__torch_function__(f, types, a, k)\n\n"
        f"{SOFTMAX}\nexact = softmax_by_hand\nsoftmax_by_hand = lambda scores: exact(scores).as_subclass(Liar)\n",
        "an alias of IPython": "from IPython import get_ipython as g\n"
        "g().run_cell('softmax_by_hand = lambda s: s.softmax(-1)')\n" + SOFTMAX,
        # those below were thought of later
        "a tensor that detaches": "class Liar(Tensor):\n    def detach(self):\n"
        "        return Tensor.softmax(self.kept, -1).detach()\n\ndef softmax_by_hand(scores):\n"
        "    made = scores.clone().as_subclass(Liar)\n    made.kept = scores.clone()\n    return made\n",
        "without the mode": "def softmax_by_hand(scores):\n    with torch._C.DisableTorchFunction():\n"
        "        return scores.softmax(-1)\n",
        "the mode popped": "from torch.overrides import _pop_mode_temporarily\ndef softmax_by_hand(scores):\n"
        "    with _pop_mode_temporarily():\n        return scores.softmax(-1)\n",
        "a looser comparison": "there = torch.sys.modules['exer' 'cises']\n"
        "there.close.__defaults__ = (1e9,)\nsoftmax_by_hand = lambda s: s * 0 + 1 / s.size(-1)\n",
        "forged from the process": "import multiprocessing\nsecret, pipe = None, None\n"
        "for item in multiprocessing.current_process()._args:\n"
        "    secret = item if isinstance(item, str) and len(item) == 64 else secret\n"
        "    pipe = item if hasattr(item, 'send_bytes') else pipe\n"
        "if pipe:\n    import json, os\n"
        "    for n in ('3.2', '3.3', '3.5', '3.1', '3.6'):\n"
        "        pipe.send_bytes(json.dumps(dict(secret=secret, number=n, words='correct.', noted=[], "
        "claims=False)).encode())\n"
        "    pipe.send_bytes(json.dumps(dict(secret=secret, ends=True)).encode())\n"
        "    os._exit(0)\nsoftmax_by_hand = abs\n",
    },
    "3.6": {
        "its check's own": "theirs = torch.sys.modules['exer' 'cises.notebook_03']\n"
        + WINDOW.replace("near = (places[:, None] - places).abs() <= reach", "near = theirs.window(len(places), reach)")
    },
}
TELLING = (  # of those for 3.5, whose check takes seconds; tests/slow has all
    *("star, inherited", "pickle", "read and run", "a frame of the check", "when it is called"),
    *("one method", "frame of a generator", "frame by a signal"),
)


def number_of(cell: dict) -> str:
    return Cell("", "".join(cell["source"])).number if cell["cell_type"] == "code" else ""


def original(chapter: str) -> Path:
    return next((ROOT / "notebooks").glob(f"{chapter}_*.ipynb"))


def hand_in(path: Path, answers: dict[str, str], chapter: str = "03", below: str = "") -> Path:
    """The notebook with these answers, each above its line that checks it; a cell of one's own at the end."""
    content = json.loads(original(chapter).read_text("utf-8"))
    for cell in content["cells"]:
        if (number := number_of(cell)) in answers:
            check = "".join(cell["source"]).splitlines()[-1]
            cell["source"] = f"{answers[number]}\n\n{check}"
    if below:
        content["cells"].append({"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "source": below})
    path.write_text(json.dumps(content), "utf-8")
    return path


def mistakes(folder: Path, honest: dict[str, dict], cheats: dict[str, dict]) -> list[str]:
    """Which odd answers are not correct, and which cheats have no mark; a notebook holds one for each exercise."""
    answers = {}
    for kind, cases in (("honest", honest), ("cheat", cheats)):
        columns = [[(number, name) for name in cases[number]] for number in cases]
        for place, row in enumerate(zip_longest(*columns)):
            answers[f"{kind} {place}"] = dict(filter(None, row))
    every = {number: HONEST.get(number, {}) | CHEATS.get(number, {}) for number in HONEST}
    paths = [
        hand_in(folder / f"{row}.ipynb", {number: every[number][name] for number, name in names.items()})
        for row, names in answers.items()
    ]
    right = {"honest": ("correct",), "cheat": ("look", "stopped", "not yet")}
    return [
        f"{number} {name}: {row.verdicts[number].kind}: {row.verdicts[number].words}"
        for row in grade(original("03"), paths, processes=2)
        for number, name in answers[row.name].items()
        if row.verdicts[number].kind not in right[row.name.split()[0]]
    ]
