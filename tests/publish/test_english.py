"""Documents avoid the habits that made the project read like a translation."""

import re

import pytest

from tests.helpers import ROOT

# habit: what to write instead
HABITS = {
    r"\b(?:is|are|was|were) told\b|\btells (?:its|that|the|which|what|how|whether)\b": "reports, shows, explains",
    r"(?<!word )(?<!other )(?<!\" )(?<!not )\bin words\b": "as a clear error",
    r"\banew\b": "again",
    r"\bmended?\b": "fix",
    r"\bwho(?:so)?ever\b": "anyone who, or the passive",
    r"(?<!there )\bis no (?:file|folder|token|tensor|number|model|word|text|list|advice|law)\b": "is not a",
    r"\bequal (?:up )?to 1e-": "agree to within 1e-",
    r"\basked for\b": "requested, masked",
    r"\bst(?:ands?|ood) (?:in(?! for)|behind|beside|on|under|among)\b": "is in, goes after, depends on",
    r"\bbeside\b": "next to, compared with",
    r"\bsooner\b": "faster, earlier",
}
# Add test modules as they are rewritten.
TESTED = "attention classifier compiled decoder embeddings encoder encoder_layer evaluation masked_lm modernbert"
TESTED += " packing pretraining search statistics token_labels tokenization training"
SCANNED = ["*.md", "docs/*.md", "views/*.md", "utils/data/*.md", "*.toml", "Makefile", ".github/**/*.yml", "*.cff"]
PACKAGES = ("utils", "views", "explorer", "exercises", "scripts", "publish", "benchmarks")
SCANNED += [f"{folder}/**/*.py" for folder in PACKAGES]
SCANNED += [f"{place}/*.{kind}" for place in ("explorer/**", "publish/web/**") for kind in ("js", "css", "html", "j2")]
SCANNED += ["views/*.toml", *(f"tests/reference/test_{name}.py" for name in TESTED.split())]
SCANNED += [f"tests/{name}.py" for name in ("conftest", "helpers", "texts", "slow/*", "browser/[!t]*")]
FILES = sorted({path for pattern in SCANNED for path in ROOT.glob(pattern)})
# Quotations: headings, sentences, goals and open questions of notebooks, messages, and the sentences of an exercise.
QUOTED = re.compile(
    r"“[^”\n]*”|\n  1\. [^\n]*|\n## Goals and the exercises[\s\S]*"
    r"|\nPLACES = [^\n]*"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_are_plain_english(path):
    text = QUOTED.sub("", path.read_text("utf-8"))
    found = {habit[0]: better for pattern, better in HABITS.items() if (habit := re.search(pattern, text, re.I))}
    assert found == {}
