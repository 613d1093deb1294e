"""No download is executed as code, and every version is pinned."""

import ast
import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.helpers import ROOT
from tests.repository import canonical, project, requirements

PROGRAMS = ("explorer", "scripts", "publish", "benchmarks")
READER = ["utils", "views", "exercises", "notebooks"]
FOLDERS = (*READER, *PROGRAMS)
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9e]*.ipynb"))
# which may unpickle, and so run any code; ruff forbids pickle, exec, eval and shells
UNPICKLES = re.compile(r"torch\.load\(|joblib\.load|(trust_remote_code|allow_pickle)\W{1,3}(?!False)\w")


def programs(path: Path) -> list[str]:
    """Return the source of a module, or of each code cell of a notebook."""
    if path.suffix == ".py":
        return [path.read_text("utf-8")]
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", SOURCES + NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_never_unpickles_its_input(path):
    assert [found[0] for program in programs(path) for found in UNPICKLES.finditer(program)] == []


def pins(name: str) -> dict[str, str]:
    """Return the package and version of each requirement in a requirements file."""
    lines = [line.partition("#")[0].strip() for line in (ROOT / name).read_text("utf-8").splitlines()]
    return versions(line for line in lines if line and not line.startswith("-"))


def versions(requirements: Iterable[str]) -> dict[str, str]:
    """Return the version of each requirement such as "torch==2.13.0", or an empty string without one."""
    return dict(re.match(r"([\w.-]+)(?:==)?(.*)", requirement).groups() for requirement in requirements)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_pins_match_the_constraints(name):
    """Constraints pin indirect dependencies too, so that the series can be installed years from now."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    locked = {line.partition(" ")[0] for line in lines}
    wanted = {f"{canonical(package)}=={version}" for package, version in pins(name).items()}
    assert sorted(wanted - locked) == [], "run `make lock`"
    assert len(locked) > 150


def test_pyproject_pins_match_requirements():
    """This covers dependencies and build requirements."""
    readers, settings = pins("requirements.txt"), project()
    needed = versions(requirements() + settings["build-system"]["requires"])
    exact = {name: version for name, version in needed.items() if version and not version.startswith((">=", "<"))}
    assert len(exact) > 3
    assert {name: readers[name] for name in exact} == exact
    assert needed.keys() <= readers.keys()
    needed = map(Requirement, settings["project"]["dependencies"])  # the extra is bounded for Colab
    assert [str(one) for one in needed if not one.specifier.contains(readers[one.name])] == []


def imported(program: str) -> set[str]:
    """Return the packages that a source imports, also inside functions."""
    nodes = list(ast.walk(ast.parse(program)))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize(("folders", "files"), [
    (READER, ["requirements.txt"]),
    (READER, ["pyproject.toml"]),
    ([*PROGRAMS, "tests"], ["requirements.txt", "requirements-dev.txt"]),
])  # fmt: skip
def test_imported_packages_are_installed(folders, files):
    """Readers get all imports of notebooks and utils, on Colab too, and contributors all other imports."""
    needed = versions(requirements()) if files == ["pyproject.toml"] else {}
    installed = {canonical(name) for file in files for name in needed or pins(file)}
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if "." not in path.parent.name]
    sources = [text for path in paths if path.suffix in (".py", ".ipynb") for text in programs(path)]
    ours = {path.stem for folder in (ROOT, ROOT / "scripts") for path in folder.iterdir()}
    names = set().union(*map(imported, sources)) - sys.stdlib_module_names - ours
    packages = packages_distributions()
    assert len(names) > 10
    assert [name for name in names if not installed & set(map(canonical, packages.get(name, [])))] == []


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflow_actions_are_pinned_to_commits():
    for path in WORKFLOWS:
        used = re.findall(r"uses: (\S+)", path.read_text("utf-8"))
        ours = {f"./.github/workflows/{path.name}" for path in WORKFLOWS}
        assert [name for name in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) and name not in ours] == []


def test_self_hosted_runner_runs_no_pull_requests():
    jobs = [job for path in WORKFLOWS for job in re.split(r"\n  (?=\w+:\n)", path.read_text("utf-8"))]
    (own,) = (job for job in jobs if re.search(r"runs-on: .*vars\.", job))
    assert "\n    if: vars.GPU_RUNNER != '' && github.event_name != 'pull_request'\n" in own
