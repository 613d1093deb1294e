"""The commands, exercises, numbers and versions in README and the other documents are right."""

import importlib
import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from exercises.framework import CHECKS
from publish import badges
from publish.bad_input import END, START
from tests.helpers import ROOT, project_paths

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
README = (ROOT / "README.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(" ".join(re.findall(r"^([a-z][a-z -]*):", MAKEFILE, re.M)).split())
# variables of the Makefile, and those that its recipes pass on to the notebooks
VARIABLES = set(re.findall(r"^([A-Z_]+) *[?:]?=", MAKEFILE, re.M)) | {"CHECKPOINT", "DEVICE", "MINE"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PYTHON = re.compile(r"(?:\.venv[/\\](?:bin|Scripts)[/\\])?(?:python3?|py)(?:\.exe)?")
every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)


def commands(text: str) -> list[str]:
    """Return the commands in a document: lines of shell blocks, and text in backquotes."""
    blocks = [block for language, block in FENCE.findall(text) if language in ("sh", "bat")]
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return lines + CODE.findall(FENCE.sub("", text))


def wrong(command: str) -> list[str]:
    """Return what a command names that does not exist; nothing for commands of other programs."""
    words = shlex.split(command.replace("\\", "/"), comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words.pop(0)
    if not words:
        return []
    files = [word for word in words if re.fullmatch(r"\.{0,2}/?[\w./-]+\.(?:txt|py|md|toml)", word)]
    written = {words[number + 1] for number, word in enumerate(words[:-1]) if word == "--output-file"}
    missing = [f"no file {name}" for name in files if name not in written and not (ROOT / name).exists()]
    if words[0] == "make":
        return missing + wrong_targets(words[1:])
    if len(words) > 1 and re.fullmatch(r"-3\.\d+", words[1]):
        del words[1]  # as in py -3.13
    if PYTHON.fullmatch(words[0]) and len(words) > 1:
        return [line for line in missing if "tests/" in line] + wrong_program(words[1:])
    return missing if words[0].endswith("pip") else []


def wrong_targets(words: list[str]) -> list[str]:
    """Return the targets and variables of a `make` command that the Makefile lacks."""
    variables = [word.split("=")[0] for word in words if "=" in word]
    targets = [word for word in words if "=" not in word]
    return [f"no target {name}" for name in targets if name not in TARGETS] + [
        f"no variable {name}" for name in variables if name not in VARIABLES
    ]


def wrong_program(words: list[str]) -> list[str]:
    """Return the module, script or options of a `python` command that do not exist; other programs are skipped."""
    if words[0] == "-m":
        module = words[1].replace(".", "/")
        found = [path for path in (ROOT / f"{module}.py", ROOT / module / "__main__.py") if path.exists()]
        ours = (ROOT / words[1].split(".")[0]).is_dir()
        if not ours:
            return []
    else:
        found, ours = [path for path in [ROOT / words[0]] if path.exists()], True
    if not found:
        return [f"no program {words[1] if words[0] == '-m' else words[0]}"]
    source = found[0].read_text("utf-8")
    options = [word.split("=")[0] for word in words if word.startswith("--")]
    return [f"no option {name}" for name in options if f'"{name}"' not in source]


@every_document
def test_commands_in_documents_exist(path):
    found = {command: wrong(command) for command in commands(path.read_text("utf-8"))}
    assert {command: what for command, what in found.items() if what} == {}


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("make laboratory", "no target laboratory"),
        ("make lab PORT=8901", "no variable PORT"),
        ("python scripts/fine_tune.py --csv a.csv", "no option --csv"),
        ("python scripts/finetune.py", "no program scripts/finetune.py"),
        (".venv/bin/python -m publish.badge --ref v1", "no program publish.badge"),
        (r".venv\Scripts\pip install -r requirement.txt", "no file requirement.txt"),
        ("py -3.13 -m publish.badge", "no program publish.badge"),
    ],
)
def test_wrong_commands_are_detected(command, what):
    assert what in wrong(command)


@every_document
def test_exercises_named_in_documents_exist(path):
    for notebook in NOTEBOOKS:
        importlib.import_module(f"exercises.notebook_{notebook.name[:2]}")
    named = re.findall(r"\b[Ee]xercises? (\d+\.\d+)", path.read_text("utf-8"))
    assert [number for number in named if number not in CHECKS] == []
    if path.name == "README.md":
        assert set(re.findall(r"\b(\d+) exercises", README)) == {str(len(CHECKS))}
        assert set(re.findall(r"\b(\d+) notebooks", README)) == {str(len(NOTEBOOKS))}


@pytest.mark.parametrize(("name", "limit"), [("README.md", 900), ("CONTRIBUTING.md", 850)])
def test_document_length(name, limit):
    """As `wc -w` counts words, without a repository address and without the generated table of bad input."""
    text = (ROOT / name).read_text("utf-8")
    text = badges.set_address(name, text, badges.ADDRESS_PATTERNS.get(name, []), None)
    assert len(re.sub(f"{START}.*{END}|<!--.*?-->", "", text, flags=re.S).split()) <= limit


def test_version_is_consistent():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    newest = re.search(r"^## \[(\d\S*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert {cited, newest[1]} == {version}
    assert f'date-released: "{newest[2]}"' in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"This is version {version};" in README


def test_python_versions_are_consistent():
    """pyproject.toml, README, Makefile and CI name the same versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lowest, above = map(int, re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups())
    assert f"You need Python 3.{lowest} to 3.{above - 1};" in README
    assert f"(3, {lowest}) <= v < (3, {above})" in MAKEFILE
    assert f"Python 3.{lowest} to 3.{above - 1} is needed" in MAKEFILE
    matrix = (ROOT / ".github" / "workflows" / "validate.yml").read_text("utf-8")
    versions = re.search(r"python: (\[.*\])", matrix)[1]
    assert json.loads(versions) == [f"3.{minor}" for minor in range(lowest, above)]


def for_windows(name: str) -> list[tuple[str, str]]:
    """Return the rows of a document's Windows table: the command here, and the one on Windows."""
    *_, table = (ROOT / name).read_text("utf-8").partition("| here | on Windows |\n|---|---|\n")
    rows = [row.strip("| ").split(" | ") for row in table.split("\n\n")[0].splitlines()]
    return [(here, there) for here, there in rows]


FOR_WINDOWS = for_windows("docs/WINDOWS.md")


def test_windows_commands_match_make_targets():
    """The table of WINDOWS runs the same modules as the Makefile."""
    recipes = dict(re.findall(r"^([a-z]+):.*\n((?:\t.*\n)+)", MAKEFILE, re.M))
    found = set()
    for here, there in FOR_WINDOWS:
        targets, modules = re.findall(r"make ([a-z]+)", here), re.findall(r"-m ([\w.]+)", there)
        for target, module in zip(targets, modules, strict=False):  # grading has no target
            assert f"-m {module}" in recipes[target].replace("$(PYTEST)", "-m pytest"), target
            found.add(target)
        assert [option for option in re.findall(r"ARGS=([^\s`]+)", here) if option not in there] == []
    assert found == {"test", "slides", "site", "student", "rehearse"}


@pytest.mark.parametrize("name", ["README.md", "docs/TEACHING.md", "docs/COURSE.md", "docs/GRADING.md"])
def test_commands_have_a_form_for_windows(name):
    """This includes variables; for programs of the project, a form of `.venv/bin/python` is enough."""
    here = " ".join(here for here, _ in FOR_WINDOWS)
    text = (ROOT / name).read_text("utf-8").replace("make cpu-torch lab", "")  # for Linux alone
    missing = []
    for command in commands(text):
        program, *words = command.split(" #")[0].split()
        if program == "make":
            wanted = [f"make {word}" if "=" not in word else word for word in words]
            missing += [word for word in wanted if word not in here]
        elif PYTHON.fullmatch(program) and words and "Scripts" not in program and program != "py":
            missing += [command] * (".venv/bin/python" not in here)
        elif program.startswith("docker"):
            missing += [command] * ("docker" not in here)
    assert missing == []
    assert name != "README.md" or r".venv\Scripts\jupyter lab notebooks\00_overview.ipynb" in text


def test_paths_are_short_enough_for_windows():
    """In a folder of 60 characters, no path of the project or of PyTorch exceeds 259 characters."""
    assert "a folder whose path has at most 60 characters" in README
    longest = max(map(len, project_paths()))
    assert 60 + 1 + longest <= 259
    (stated,) = re.findall(r"needs (\d+) below the folder", (ROOT / "docs" / "WINDOWS.md").read_text("utf-8"))
    package = next(folder for folder in map(Path, sys.path) if (folder / "torch").is_dir())
    files = [path.relative_to(package).as_posix() for path in package.glob("torch*/**/*")]
    installed = max(len(name.replace("+cpu", "")) for name in files)  # wheels for Windows have no +cpu suffix
    assert len(r".venv\Lib\site-packages") + 1 + installed <= int(stated)
    assert 60 + 1 + int(stated) <= 259


@pytest.mark.parametrize("name", [".binder/requirements.txt", "docs/ROOMS.md"])
def test_uv_version_is_consistent(name):
    (version,) = re.findall(r"^UV := (\S+)$", MAKEFILE, re.M)
    assert set(re.findall(r"uv==[\d.]+", (ROOT / name).read_text("utf-8"))) == {version}


def test_project_layout_names_every_folder():
    table = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Project layout")[1].split("\n## ")[0]
    named = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    folders = {path.split("/")[0] for path in project_paths() if "/" in path}
    assert named == {folder for folder in folders if not folder.startswith(".")}
