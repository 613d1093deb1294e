"""Nothing that a reader or a download brings is run as code, and every version is pinned."""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.helpers import ROOT

PROGRAMS = ("explorer", "scripts", "publish", "records", "benchmarks")
READER = ["utils", "views", "exercises", "notebooks"]
FOLDERS = (*READER, *PROGRAMS)
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("[0-9]*.ipynb"))
# torch.load and joblib unpickle, and a pickle is a program; a shell reads more into a text than its author meant
FORBIDDEN_CALLS = {"torch.load", "pickle.load", "pickle.loads", "joblib.load", "os.system", "os.popen", "eval", "exec"}
FORBIDDEN_OPTIONS = {"shell", "trust_remote_code", "allow_pickle"}


# what a reader has typed on this machine, and `check` has kept in their own folder
ALLOWED = {"exercises/parts.py": ["exec"]}


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
    found = [violation for program in programs(path) for violation in violations(program)]
    assert found == ALLOWED.get(path.relative_to(ROOT).as_posix(), [])


@pytest.mark.parametrize(
    "program", ["torch.load(path)", "run(command, shell=True)", "f(trust_remote_code=answer)", "eval(text)"]
)
def test_the_check_sees_what_it_forbids(program):
    assert len(violations(program)) == 1


def pins(name: str) -> dict[str, str]:
    """Package and version of each line of a requirements file that asks for a package."""
    lines = [line.partition("#")[0].strip() for line in (ROOT / name).read_text("utf-8").splitlines()]
    return versions(line for line in lines if line and not line.startswith("-"))


def versions(requirements: Iterable[str]) -> dict[str, str]:
    """The version, or "" where any will do, of each package that is required, such as "torch==2.13.0"."""
    return dict(re.match(r"([\w.-]+)(?:==)?(.*)", requirement).groups() for requirement in requirements)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_requirement_is_pinned(name):
    found = pins(name)
    assert len(found) > 10
    assert [package for package, version in found.items() if not re.fullmatch(r"[\w.]+", version)] == []


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_pin_is_that_of_the_constraints(name):
    """They pin what the requirements bring along, too, so that the series can be installed in years to come."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    locked = {line.partition(" ")[0] for line in lines}
    wanted = {f"{canonical(package)}=={version}" for package, version in pins(name).items()}
    assert sorted(wanted - locked) == [], "run `make lock`"
    assert len(locked) > 150


def test_the_constraints_are_versions_alone():
    """No address and no path of the machine that wrote them."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"#.*|[a-z0-9-]+==[\w.]+( ; [^/]*)?", line)] == []


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_colab_gets_no_other_version_than_everybody():
    """Neither of what the project needs, nor of what builds it."""
    readers, settings = pins("requirements.txt"), project()
    needed = versions(settings["project"]["dependencies"] + settings["build-system"]["requires"])
    exact = {name: version for name, version in needed.items() if version and not version.startswith(">=")}
    assert len(exact) > 4
    assert {name: readers[name] for name in exact} == exact
    assert needed.keys() <= readers.keys() | {"ipython"}


def test_the_project_is_installed_with_what_it_needs():
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert "-e ." in lines


def canonical(name: str) -> str:
    """A package's name as the index writes it."""
    return re.sub(r"[-_.]+", "-", name.lower())


def imported(program: str) -> set[str]:
    """The packages that a source imports, at its top or inside a function."""
    nodes = list(ast.walk(ast.parse(program)))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize(
    ("folders", "files"),
    [
        (READER, ["requirements.txt"]),
        (READER, ["pyproject.toml"]),
        ([*PROGRAMS, "tests"], ["requirements.txt", "requirements-dev.txt"]),
    ],
)
def test_what_is_imported_is_installed(folders, files):
    """A reader gets all that notebooks and utils import, on Colab too, and a contributor all that the rest imports."""
    needed = versions(project()["project"]["dependencies"]) if files == ["pyproject.toml"] else {}
    installed = {canonical(name) for file in files for name in needed or pins(file)}
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if "." not in path.parent.name]
    sources = [text for path in paths if path.suffix in (".py", ".ipynb") for text in programs(path)]
    ours = {path.name for path in ROOT.iterdir()} | {path.stem for path in (ROOT / "scripts").glob("*.py")}
    names = set().union(*map(imported, sources)) - sys.stdlib_module_names - ours
    packages = packages_distributions()
    assert len(names) > 10
    assert [name for name in names if not installed & set(map(canonical, packages.get(name, [])))] == []


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_every_action_is_pinned_to_a_commit():
    for path in WORKFLOWS:
        used = re.findall(r"uses: (\S+)", path.read_text("utf-8"))
        assert [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []


def test_a_runner_of_ones_own_runs_no_pull_request():
    jobs = [job for path in WORKFLOWS for job in re.split(r"\n  (?=\w+:\n)", path.read_text("utf-8"))]
    own = [job for job in jobs if "runs-on: ${{ vars." in job]
    assert len(own) == 1
    assert "\n    if: vars.GPU_RUNNER != '' && github.event_name != 'pull_request'\n" in own[0]


def test_what_may_write_to_the_repository_is_started_by_who_may_write_to_it():
    writing = [path for path in WORKFLOWS if "contents: write" in path.read_text("utf-8")]
    assert [path.name for path in writing] == ["badges.yml", "release.yml"]
    assert "\non:\n  workflow_dispatch:\n  push:\n    branches: [main]\n\n" in writing[0].read_text("utf-8")
    assert "\non:\n  release:\n    types: [published]\n\n" in writing[1].read_text("utf-8")
