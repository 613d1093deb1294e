"""No input or download is executed as code, and every version is pinned."""

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
# torch.load and joblib unpickle, which can run any code; a shell may execute parts of its input
FORBIDDEN_CALLS = {"torch.load", "pickle.load", "pickle.loads", "joblib.load", "os.system", "os.popen", "eval", "exec"}
FORBIDDEN_OPTIONS = {"shell", "trust_remote_code", "allow_pickle"}


# parts.py runs code that the reader wrote on this machine and `check` saved; type_bert runs in the reader's browser;
# child.py runs the published solutions; the other three evaluate the tables of this repository
ALLOWED = {
    "exercises/parts.py": ["exec"],
    "publish/type_bert/checks.py": ["exec", "exec"],
    "publish/type_bert/runner.py": ["exec"],
    "exercises/grading/child.py": ["exec"],
    "exercises/comparison.py": ["eval"],
    "exercises/diagnosis/bugs.py": ["eval"],
    "exercises/mistakes.py": ["eval", "eval"],
    "exercises/prediction.py": ["eval"],
}


def programs(path: Path) -> list[str]:
    """Return the source of a module, or of each code cell of a notebook."""
    if path.suffix == ".py":
        return [path.read_text("utf-8")]
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def violations(program: str) -> list[str]:
    """Return the forbidden calls in a source, and the forbidden options that are not false."""
    calls = [node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Call)]
    options = [f"{keyword.arg}=" for call in calls for keyword in call.keywords if is_on(keyword)]
    return [name for call in calls if (name := ast.unparse(call.func)) in FORBIDDEN_CALLS] + options


def is_on(keyword: ast.keyword) -> bool:
    off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
    return keyword.arg in FORBIDDEN_OPTIONS and not off


@pytest.mark.parametrize("path", SOURCES + NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_never_unpickles_or_executes_its_input(path):
    found = [violation for program in programs(path) for violation in violations(program)]
    assert found == ALLOWED.get(path.relative_to(ROOT).as_posix(), [])


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
    """A label and a list of labels both work, and the weekly run has the job, too."""
    jobs = [job for path in WORKFLOWS for job in re.split(r"\n  (?=\w+:\n)", path.read_text("utf-8"))]
    (own,) = (job for job in jobs if "runs-on: ${{ " in job and "vars." in job.partition("runs-on:")[2].splitlines()[0])
    assert "\n    if: vars.GPU_RUNNER != '' && github.event_name != 'pull_request'\n" in own
    assert "startsWith(vars.GPU_RUNNER, '[') && fromJSON(vars.GPU_RUNNER) || vars.GPU_RUNNER }}" in own
    callers = [path.name for path in WORKFLOWS if "uses: ./.github/workflows/gpu.yml" in path.read_text("utf-8")]
    assert callers == ["validate.yml", "weekly.yml"]


def test_workflows_with_write_access_need_write_access():
    writing = [path for path in WORKFLOWS if "contents: write" in path.read_text("utf-8")]
    assert [path.name for path in writing] == ["badges.yml", "release.yml"]
    assert "\non:\n  workflow_dispatch:\n  push:\n    branches: [main]\n\n" in writing[0].read_text("utf-8")
    assert "\non:\n  release:\n    types: [published]\n\n" in writing[1].read_text("utf-8")
