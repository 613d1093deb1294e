"""Imports run one way: support, then what notebooks build, then views, exercises and the rest."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers import ROOT

# The packages that each package may import; none imports tests.
ALLOWED_IMPORTS = {
    "utils": (),
    "views": ("utils",),
    "exercises": ("utils", "views"),
    "explorer": ("utils", "views"),
    "scripts": ("utils",),
    "publish": ("utils", "views", "explorer", "exercises"),
    "benchmarks": ("utils", "views", "explorer", "publish"),
}


def module_name(path: Path, folder: Path) -> str:
    """Return a file's module name in its folder: "page" for page.py, "" for __init__.py."""
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(folder: Path) -> dict[str, str]:
    """Return the source of each module in a folder, by name, without the __init__.py of utils and its support."""
    found = {module_name(path, folder): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}
    return {name: source for name, source in found.items() if name and name != "support"}


def imported(source: str) -> set[str]:
    """Return what a source imports, anywhere in it, with the imported names: "views", "views.page"."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import of {node.module}: name the package"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def imports_within(package: str) -> dict[str, set[str]]:
    """Return the modules of a package that each of its modules imports."""
    found = modules(ROOT / package)
    used = {name: imported(source) for name, source in found.items()}
    return {name: {other for other in found if f"{package}.{other}" in used[name]} for name in found}


@pytest.mark.parametrize("package", ["utils", "views"])
def test_imports_run_in_no_circle(package):
    assert list(TopologicalSorter(imports_within(package)).static_order())  # CycleError names a circle


def test_support_imports_nothing_that_a_notebook_builds():
    found = imports_within("utils")
    used = [(name, other) for name in found if name.startswith("support.") for other in found[name]]
    assert len(used) > 10
    assert [pair for pair in used if not pair[1].startswith("support.")] == []


@pytest.mark.parametrize("package", ALLOWED_IMPORTS)
def test_package_imports_only_allowed_ones(package):
    for name, source in modules(ROOT / package).items():
        roots = {item.split(".")[0] for item in imported(source)} & {*ALLOWED_IMPORTS, "tests"}
        assert roots <= {package, *ALLOWED_IMPORTS[package]}, f"{package}.{name}"
