"""The house: small, mostly the model that the notebooks build, and each room stands on those before it."""

import ast
import io
import tokenize
from functools import cache
from pathlib import Path

import pytest

from tests.helpers import ROOT

UTILS = ROOT / "utils"
# A module imports only those before it; the number is that of the notebook that builds it.
ORDER = (
    *("checking", "saving", "statistics", "datasets", "plots", "files", "checkpoints", "notebook"),
    "tokenization",  # 01
    "embeddings",  # 02
    "attention",  # 03, 04
    "encoder_layer",  # 05
    "encoder",  # 06
    "batches",
    *("views.inputs", "views.page", "views.models", "views.still"),  # 07
    *("views.draw", "views.explore", "views"),
    *("classifier", "evaluation", "training"),  # 08
    *("inference", "search"),  # 13, 09
    *("language_model_head", "masked_lm", "pretraining"),  # 11
    *("checking_decoder", "generation", "decoder"),  # 12
)
DOOR = ("checking", "checking_decoder", "files")  # what comes from outside is looked at here
LINES, LINES_OF_THE_DOOR, LINES_OF_A_FILE, SHARE = 1880, 385, 250, 1 / 3
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def module_name(path: Path, folder: Path) -> str:
    """A file's name as a module of the folder: "views.page", and "views" for its __init__.py."""
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(folder: Path) -> dict[str, str]:
    """The source of each module in a folder, by name, but for the folder itself."""
    found = {module_name(path, folder): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}
    return {name: source for name, source in found.items() if name}


def imported(source: str) -> set[str]:
    """What a source imports anywhere, with the names that it takes from there: "utils.views", "utils.views.page"."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import of {node.module}: name the package"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def code_lines(source: str) -> set[int]:
    """The numbers of the lines that hold code: no blank ones, comments and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for t in tokens if t.type not in NOT_CODE for line in range(t.start[0], t.end[0] + 1)}
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


@cache
def counted() -> dict[str, str]:
    """The modules that are held to the limit: without the door, the views with their pages, and fast inference."""
    return {
        name: source
        for name, source in modules(UTILS).items()
        if not name.startswith("views") and name not in ("inference", *DOOR)
    }


COUNTED = '''"""Text
and more."""

X = """4
5"""  # why
# a comment
def f():  # 7
    """Doc."""
    return (  # 9
        1

    )  # 12
'''


def test_code_lines_are_counted_without_blanks_comments_and_docstrings():
    assert code_lines(COUNTED) == {4, 5, 7, 9, 10, 12}


def test_every_module_has_its_place():
    assert sorted(modules(UTILS)) == sorted(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_a_module_imports_only_those_before_it(name):
    before = {f"utils.{other}" for other in ORDER[: ORDER.index(name)]}
    wanted = {item for item in imported(modules(UTILS)[name]) if item.startswith("utils")}
    known = {f"utils.{other}" for other in ORDER}
    assert "utils" not in wanted  # from utils import attention would hide which
    assert wanted & known <= before


@pytest.mark.parametrize("name", ORDER)
def test_utils_stands_alone(name):
    roots = {item.split(".")[0] for item in imported(modules(UTILS)[name])}
    assert not roots & {"exercises", "tools", "tests", "benchmarks"}


def test_exercises_stand_on_utils_alone():
    for name, source in modules(ROOT / "exercises").items():
        roots = {item.split(".")[0] for item in imported(source)}
        assert not roots & {"tools", "tests", "benchmarks"}, name


def test_tests_stand_alone():
    """They share helpers, not each other, and pass without the benchmarks."""
    for name, source in modules(ROOT / "tests").items():
        for item in imported(source):
            parts = item.split(".")
            assert parts[0] != "benchmarks", f"tests/{name} imports {item}"
            if parts[0] == "tests":
                assert not [part for part in parts if part.startswith(("test_", "conftest"))], (
                    f"{name}: {item}"
                )


def test_utils_is_small():
    lengths = {name: len(code_lines(source)) for name, source in counted().items()}
    assert sum(lengths.values()) <= LINES, lengths
    assert sum(len(code_lines(modules(UTILS)[name])) for name in DOOR) <= LINES_OF_THE_DOOR


@pytest.mark.parametrize("name", ORDER)
def test_a_file_is_short(name):
    assert len(code_lines(modules(UTILS)[name])) <= LINES_OF_A_FILE


def test_a_third_of_utils_is_the_model():
    """The rooms that notebooks 01 to 06, 08, 11 and 12 build, from text to logits, and back to text."""
    rooms = ("tokenization", "embeddings", "attention", "encoder_layer", "encoder", "classifier")
    rooms += ("language_model_head", "masked_lm", "decoder")
    lengths = {name: len(code_lines(source)) for name, source in counted().items()}
    assert sum(lengths[name] for name in rooms) >= SHARE * sum(lengths.values()), lengths
