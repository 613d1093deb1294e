"""The notebooks themselves: saved whole, clean, executed in order, and one definition with one home."""

import ast
import re
import shutil
import statistics
from pathlib import Path

import nbformat
import pytest

from tools import notebooks

ROOT = Path(__file__).resolve().parents[1]
SERIES = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
SOLUTIONS = sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
FINISHED = {  # the classes and functions that a notebook must finish
    "01": ["WordPieceTokenizer", "normalize", "pre_tokenize", "word_pieces", "pad_batch"],
    "02": ["Embeddings"],
    "03": ["scaled_dot_product_attention", "AttentionHead"],
    "04": ["MultiHeadAttention"],
    "05": ["FeedForward", "TransformerEncoderLayer"],
    "06": ["TransformerEncoder"],
    "08": ["TransformerForSequenceClassification"],
    "09": ["mean_pooling", "TextBoundaries", "encode_packed", "embed", "search"],
}
EXEMPT = {"nbval-ignore-output"}  # progress bars, timings and interactive views
TAGS = {"exercise", "raises-exception"} | EXEMPT
every_notebook = pytest.mark.parametrize("path", SERIES + SOLUTIONS, ids=lambda path: path.stem)
every_chapter = pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)


def read(path: Path):
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def outputs(path: Path) -> list:
    return [output for cell in code_cells(path) for output in cell.outputs]


def top_level(source: str) -> dict[str, ast.stmt]:
    """Functions and classes of a source by name, parsed without docstrings."""
    definitions = notebooks.definitions(source)
    return {name: ast.parse(text).body[0] for name, text in definitions.items()}


def homes(modules=None) -> dict[str, ast.stmt]:
    """Every definition of utils by name."""
    modules = modules or sorted(ROOT.glob("utils/*.py"))
    return {name: node for path in modules for name, node in top_level(path.read_text("utf-8")).items()}


def test_series_is_complete():
    numbers = [path.name[:2] for path in SERIES]
    assert set(FINISHED) <= set(numbers)
    assert [path.name for path in SOLUTIONS] == [f"{number}_solutions.ipynb" for number in numbers]


@every_notebook
def test_saved_executed_from_top_to_bottom(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


@every_notebook
def test_saved_without_errors_warnings_and_traces_of_the_machine(path):
    for output in outputs(path):
        assert output.output_type != "error"
        assert output.get("name") != "stderr"
        text = "".join(output.get("data", {}).get("text/plain", "")) + output.get("text", "")
        assert not re.search(r"Warning|site-packages|ipykernel_\d+|0x[0-9a-f]{8,}|/home/|/root/", text)


@every_notebook
def test_small(path):
    assert path.stat().st_size <= 1_000_000
    assert not any("text/html" in output.get("data", {}) for output in outputs(path))


@every_notebook
def test_cells_are_short(path):
    lengths = [len(cell.source.splitlines()) for cell in code_cells(path)]
    assert max(lengths) <= 40
    assert statistics.median(lengths) <= 8


@every_notebook
def test_only_known_tags(path):
    assert {tag for cell in read(path).cells for tag in cell.metadata.get("tags", [])} <= TAGS


@every_notebook
def test_metadata_is_normalised(path):
    notebook = read(path)
    assert notebook.metadata == notebooks.METADATA
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)


def test_one_setup_cell():
    assert len({code_cells(path)[0].source for path in SERIES + SOLUTIONS}) == 1


@every_chapter
def test_finished_definitions_are_those_of_utils(path):
    modules = [ROOT / "utils" / f"{module}.py" for module in notebooks.MODULES.get(path.name[:2], ())]
    wanted = homes(modules) if modules else {}
    found = [item for cell in code_cells(path) for item in top_level(cell.source).items()]
    for name in FINISHED.get(path.name[:2], []):
        copies = [node for found_name, node in found if found_name == name]
        assert len(copies) == 1, f"{name} must stand once in {path.name}"
        assert ast.dump(copies[0]) == ast.dump(wanted[name]), f"{name} differs from utils: run `make sync`"


@every_notebook
def test_no_notebook_redefines_what_utils_holds(path):
    own = homes([ROOT / "utils" / f"{module}.py" for module in notebooks.MODULES.get(path.name[:2], ())])
    for cell in code_cells(path):
        for name, node in top_level(cell.source).items():
            if name in homes():
                assert name in own, f"{path.name} defines {name}, which another notebook finished: import it"
                assert ast.dump(node) == ast.dump(own[name]), (
                    f"{name} is another algorithm: give it another name"
                )


@every_chapter
def test_every_pitfall_is_measured(path):
    """Below each heading with ☠ code runs, and an assert or a finding pins its damage."""
    section, code = None, {}
    for cell in read(path).cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else []:
            if line.startswith("#"):
                section = line
        if cell.cell_type == "code" and section and "☠" in section:
            code[section] = code.get(section, "") + cell.source
    headings = {
        line
        for cell in read(path).cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("###") and "☠" in line
    }
    assert headings or path.name[:2] == "00"
    for heading in headings:
        assert re.search(r"\bassert\b|finding\(", code.get(heading, "")), heading


@every_notebook
def test_links_between_files_resolve(path):
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", cell.source):
                assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_executing_twice_changes_no_byte(tmp_path):
    shutil.copytree(ROOT / "utils", tmp_path / "utils")
    (tmp_path / "notebooks").mkdir()
    path = tmp_path / "notebooks" / "02_embeddings.ipynb"
    shutil.copy(ROOT / "notebooks" / path.name, path)
    contents = []
    for _ in range(2):
        notebooks.execute(path)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


def test_a_failing_notebook_is_left_as_it_was(tmp_path):
    path = tmp_path / "broken.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")]), path)
    content = path.read_bytes()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        notebooks.execute(path)
    assert path.read_bytes() == content
    assert [item.name for item in tmp_path.iterdir()] == ["broken.ipynb"]


def test_sync_copies_a_definition_without_its_docstrings(tmp_path):
    path = tmp_path / "02_embeddings.ipynb"
    wrong = "class Embeddings(nn.Module):\n    def forward(self):\n        return 1\n\n\nkept = 2"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(wrong)]), path)
    assert notebooks.sync(path, write=False)
    assert read(path).cells[0].source == wrong
    assert notebooks.sync(path)
    source = read(path).cells[0].source
    assert source.endswith("kept = 2")
    assert '"""' not in source
    assert ast.dump(top_level(source)["Embeddings"]) == ast.dump(homes()["Embeddings"])
    assert not notebooks.sync(path)
