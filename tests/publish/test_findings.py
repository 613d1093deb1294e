"""Each script in `findings` pins what it installs, names no machine or package index, and states what was guessed."""

import ast
import re

import pytest

from tests.helpers import ROOT

SCRIPTS = sorted((ROOT / "findings").glob("*.sh"))
HEAD = (r"^# Guess \(\d+ %\): ", "^# What happens: ", "^# Seen with: ")
ELSEWHERE = re.compile(r"\w+://\S*|--(?:extra-)?index-url|--find-links|[\s'\"=]/(?:\w[\w.-]*/)+\w*|\b[A-Z]:\\")
OURS = re.compile(r"^\s*(?:from|import) (?:utils|views|exercises|explorer|publish|scripts|records|tests)\b", re.M)


def faults(script: str) -> list[str]:
    """Return the packages of a script that are not pinned, and what ties it to a machine, an index or this project."""
    installs = re.findall(r"\bpip3?\"? install\b(.*)", script.replace("\\\n", " "))
    packages = [word for line in installs for word in line.split() if not word.startswith("-")]
    loose = [name for name in packages if not re.fullmatch(r"[\w.-]+==\d[\w.]*", name)]
    return ([] if packages else ["installs nothing"]) + loose + ELSEWHERE.findall(script) + OURS.findall(script)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_finding_is_pinned_and_independent(path):
    script = path.read_text("utf-8")
    assert faults(script) == []
    assert [pattern for pattern in HEAD if not re.search(pattern, script, re.M)] == []
    (program,) = re.findall(r"<<'PY'\n(.*?)^PY$", script, re.M | re.S)
    ast.parse(program)


@pytest.mark.parametrize(
    "line",
    [
        "pip install numpy",
        "pip install numpy==2.4.6 \\\n    'onnx>=1.20'",
        "pip install --index-url https://example.org/simple numpy==2.4.6",
        "pip install numpy==2.4.6\ncd /home/me",
        "pip install numpy==2.4.6\nfrom utils.attention import MultiHeadAttention",
        "python -c 'print(1)'",
    ],
)
def test_faults_of_a_finding_are_detected(line):
    assert faults(line) != []


def test_findings_are_listed():
    table = (ROOT / "findings" / "README.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == [path.stem for path in SCRIPTS]
