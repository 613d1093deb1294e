"""The house: each room stands on those before it."""

import ast
from pathlib import Path

import pytest

from tests.helpers import ROOT

UTILS = ROOT / "utils"
# A module imports only those before it; the number is that of the notebook that builds it.
ORDER = (
    *("checks", "files", "checkpoint", "weight_names", "vocabulary", "saving", "batches"),
    *("datasets", "colours", "plots", "notebook", "onnx"),
    *("statistics", "weights"),  # 07, 06
    "tokenization",  # 01
    "embeddings",  # 02
    "attention",  # 03, 04
    "encoder_layer",  # 05
    "encoder",  # 06
    *("classifier", "training"),  # 08
    *("packing", "search"),  # 13, 09
    *("masked_lm", "pretraining"),  # 11
    *("generation", "decoder"),  # 12
    "eight_bits",  # 13
    "modernbert",  # 14
    *("lora", "token_labels"),  # 15
)


# What each package may import of the others; nobody imports tests.
ALLOWED_IMPORTS = {
    "utils": (),
    "views": ("utils",),
    "exercises": ("utils",),
    "explorer": ("utils", "views"),
    "scripts": ("utils",),
    "publish": ("utils", "views", "explorer", "exercises", "tests"),  # the wrong answers of the tests, for a page
    "benchmarks": ("utils", "views", "explorer", "publish"),
    "records": ("utils", "benchmarks"),
}

# on utils, which knows nothing of them
VIEWS = ("inputs", "page", "any_model", "models", "figures", "why_near", "draw", "explore", "__main__")


def module_name(path: Path, folder: Path) -> str:
    """A file's name as a module of the folder: "views.page", and "views" for its __init__.py."""
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(folder: Path) -> dict[str, str]:
    """The source of each module in a folder, by name, but for the folder itself."""
    found = {module_name(path, folder): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}
    return {name: source for name, source in found.items() if name}


def imported(source: str) -> set[str]:
    """What a source imports anywhere, with the names that it takes from there: "views", "views.page"."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import of {node.module}: name the package"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


MODULES = [("utils", name, ORDER) for name in ORDER] + [("views", name, VIEWS) for name in VIEWS]


def test_every_module_has_its_place():
    for package, order in (("utils", ORDER), ("views", VIEWS)):
        assert sorted(modules(ROOT / package)) == sorted(order)


@pytest.mark.parametrize(("package", "name", "order"), MODULES)
def test_a_module_imports_only_those_before_it(package, name, order):
    before = {f"{package}.{other}" for other in order[: order.index(name)]}
    wanted = {item for item in imported(modules(ROOT / package)[name]) if item.startswith(f"{package}.")}
    assert wanted & {f"{package}.{other}" for other in order} <= before


@pytest.mark.parametrize("package", ALLOWED_IMPORTS)
def test_a_package_stands_on_those_below_it_alone(package):
    for name, source in modules(ROOT / package).items():
        roots = {item.split(".")[0] for item in imported(source)} & {*ALLOWED_IMPORTS, "tests"}
        assert roots <= {package, *ALLOWED_IMPORTS[package]}, f"{package}.{name}"


def test_tests_stand_alone():
    """They share helpers, not each other, and pass without the benchmarks and the records."""
    for name, source in modules(ROOT / "tests").items():
        for item in imported(source):
            parts = item.split(".")
            assert parts[0] not in ("benchmarks", "records"), f"tests/{name} imports {item}"
            if parts[0] == "tests":
                assert not [part for part in parts if part.startswith(("test_", "conftest"))], f"{name}: {item}"
