"""Nothing that a reader or a download brings is run as code, and every version is pinned."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("utils", "tools", "benchmarks", "notebooks")
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb"))
# torch.load and joblib unpickle, and a pickle is a program; a shell reads more into a text than its author meant
FORBIDDEN_CALLS = {
    "torch.load",
    "pickle.load",
    "pickle.loads",
    "joblib.load",
    "os.system",
    "os.popen",
    "eval",
    "exec",
}
FORBIDDEN_OPTIONS = {"shell", "trust_remote_code", "allow_pickle"}


def programs(path: Path) -> list[str]:
    """The source of a module, or of each code cell of a notebook."""
    if path.suffix == ".py":
        return [path.read_text("utf-8")]
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def violations(program: str) -> list[str]:
    """Forbidden calls, and forbidden options that are not switched off, in a source."""
    calls = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Call)]
    options = [f"{keyword.arg}=" for call in calls for keyword in call.keywords if is_on(keyword)]
    return [name for call in calls if (name := ast.unparse(call.func)) in FORBIDDEN_CALLS] + options


def is_on(keyword: ast.keyword) -> bool:
    off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
    return keyword.arg in FORBIDDEN_OPTIONS and not off


@pytest.mark.parametrize("path", SOURCES + NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_unpickles_or_runs_what_it_is_given(path):
    assert [found for program in programs(path) for found in violations(program)] == []


@pytest.mark.parametrize(
    "program",
    ["torch.load(path)", "run(command, shell=True)", "f(trust_remote_code=answer)", "eval(text)"],
)
def test_the_check_sees_what_it_forbids(program):
    assert len(violations(program)) == 1


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-site.txt"])
def test_every_requirement_is_pinned(name):
    lines = [line.partition("#")[0].strip() for line in (ROOT / name).read_text("utf-8").splitlines()]
    assert [line for line in lines if line and not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_every_action_is_pinned_to_a_commit():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        used = re.findall(r"uses: (\S+)", path.read_text("utf-8"))
        assert [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []
