"""The commands, exercises, numbers and versions in README and the other documents are right."""

import importlib
import json
import re
import shlex
import tomllib

import pytest

from exercises.framework import CHECKS
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


def missing(command: str) -> list[str]:
    """Return what a command names that does not exist: a target, variable, file, program of ours or its option."""
    words = shlex.split(command.replace("\\", "/"), comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words.pop(0)
    if words[:1] == ["make"]:
        return [word for word in words[1:] if word.split("=")[0] not in (VARIABLES if "=" in word else TARGETS)]
    if not words or not PYTHON.fullmatch(words[0]):
        return [
            word for word in words if words[0].endswith("pip") and word.endswith(".txt") and not (ROOT / word).exists()
        ]
    lost = [word for word in words if word.startswith("tests/") and not (ROOT / word).exists()]
    program = (
        words[words.index("-m") + 1].replace(".", "/") if "-m" in words else "".join(words[1:2]).removesuffix(".py")
    )
    if not program or not [*ROOT.glob(f"{program.split('/')[0]}*")]:
        return lost  # a program of others
    files = [path for path in (ROOT / f"{program}.py", ROOT / program / "__main__.py") if path.exists()]
    options = [word.split("=")[0] for word in words if word.startswith("--")]
    source = "".join(path.read_text("utf-8") for path in files)
    return lost + [program] * (not files) + [option for option in options if f'"{option}"' not in source]


@every_document
def test_commands_in_documents_exist(path):
    found = {command: missing(command) for command in commands(path.read_text("utf-8"))}
    assert {command: what for command, what in found.items() if what} == {}
    for wrong in ("make laboratory", "make lab PORT=1", "python scripts/fine_tune.py --csv a", "py -m publish.badge"):
        assert missing(wrong)


@every_document
def test_exercises_named_in_documents_exist(path):
    for notebook in NOTEBOOKS:
        importlib.import_module(f"exercises.notebook_{notebook.name[:2]}")
    named = re.findall(r"\b[Ee]xercises? (\d+\.\d+)", path.read_text("utf-8"))
    assert [number for number in named if number not in CHECKS] == []
    if path.name == "README.md":
        assert set(re.findall(r"\b(\d+) exercises", README)) == {str(len(CHECKS))}
        assert set(re.findall(r"\b(\d+) notebooks", README)) == {str(len(NOTEBOOKS))}


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


def test_paths_are_short_enough_for_windows():
    """In a folder of 60 characters, none exceeds 259 characters."""
    assert "a folder whose path has at most 60 characters" in README
    assert 60 + 1 + max(map(len, project_paths())) <= 259
