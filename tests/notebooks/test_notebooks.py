"""The saved notebooks are complete, clean and executed in order, and share their definitions with utils."""

import ast
import builtins
import itertools
import re
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from publish import notebooks
from publish.notebooks import BUILT
from tests.helpers import ROOT
from tests.notebooks import pictures

SERIES = sorted((ROOT / "notebooks").glob("[0-9e]*.ipynb"))
PROOFS = sorted((ROOT / "notebooks" / "proofs").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
EXEMPT = {"nbval-ignore-output"}  # progress bars, timings and interactive views
TAGS = {"exercise", "raises-exception", notebooks.REMOVE_INPUT, notebooks.VARIES} | EXEMPT
every_notebook = pytest.mark.parametrize("path", SERIES + PROOFS + SOLUTIONS, ids=lambda path: path.stem)
every_chapter = pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
every_proof_notebook = pytest.mark.parametrize("path", PROOFS, ids=lambda path: path.stem)


def read(path: Path):
    return nbformat.read(path, as_version=4)


def code_cells(path: Path) -> list:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def sources(path: Path) -> list[str]:
    return [cell.source for cell in code_cells(path)]


def finished(path: Path) -> list[str]:
    return list(itertools.chain.from_iterable(map(finished_code, read(path).cells)))


def finished_code(cell) -> list[str]:
    """Return the sources in a cell that `sync` compares with utils."""
    found = []
    notebooks.convert_finished_code(cell, lambda code: found.append(code) or code)
    return found


def notebook_of(folder: Path, *cells: str, name: str = "02_embeddings.ipynb") -> Path:
    """Write a notebook with code cells of these sources."""
    path = folder / name
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    return path


def opening(path: Path) -> str:
    """Return the text above the first code cell."""
    texts = itertools.takewhile(lambda cell: cell.cell_type == "markdown", read(path).cells)
    return "\n\n".join(cell.source for cell in texts)


def outputs(path: Path) -> list:
    return [output for cell in code_cells(path) for output in cell.outputs]


def top_level(source: str) -> list[tuple[str, str]]:
    """Return the functions, classes and constants of a source with their AST dumps, without docstrings."""
    return [(name, ast.dump(undocumented(node))) for name, node in notebooks.definitions(source)]


def undocumented(node: ast.stmt) -> ast.stmt:
    """Remove the docstrings of a statement from its AST; the tool under test removes lines of text."""
    for part in ast.walk(node):
        if notebooks.has_docstring(part):
            del part.body[0]
    return node


def count_lines(node: ast.stmt, source: str) -> int:
    """Return the lines of code of a statement, without blank lines, comments and docstrings."""
    lines = (line.strip() for line in notebooks.strip_docstrings(node, source.split("\n")))
    return sum(bool(line) and not line.startswith("#") for line in lines)


def own(path: Path) -> dict[str, str]:
    """Return the definitions in the utils modules of a notebook, by name."""
    modules = BUILT.get(notebooks.number_of(path), {})
    return {name: code for module in modules for name, code in top_level(notebooks.read_module(module))}


def built(path: Path) -> dict[str, dict[str, str]]:
    """Return the definitions of utils in a notebook and its proofs, by module, each with its section."""
    found, section = {}, ""
    proofs = [proof for proof in PROOFS if proof.name[:2] == path.name[:2]]
    modules = {file.stem: dict(top_level(file.read_text("utf-8"))) for file in (ROOT / "utils").glob("*.py")}
    for cell in itertools.chain.from_iterable(read(part).cells for part in [path, *proofs]):
        if cell.cell_type == "markdown":
            section = next(reversed(re.findall(r"(?m)^#+ (.*)", cell.source)), section)
        for name, code in itertools.chain.from_iterable(map(top_level, finished_code(cell))):
            for module in (module for module in modules if modules[module].get(name) == code and not name.isupper()):
                place = re.match(r"exercise [\d.]*\d|proof .*", section.lower())
                found.setdefault(module, {})[name] = place[0] if place else f"section “{section}”"
    return found


def proof_sections(path: Path) -> dict[str, list]:
    """Return the cells of each proof by its heading, such as "Proof 3.1"."""
    sections = {}
    for cell in read(path).cells:
        if heading := re.match(r"## (Proof [\d.]+)$", cell.source, re.M):
            sections[heading[1]] = []
        if sections:
            sections[next(reversed(sections))].append(cell)
    return sections


def names_in(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a source loads, and those that it defines anywhere."""
    nodes = list(ast.walk(ast.parse(source)))
    named = [node for node in nodes if isinstance(node, ast.Name)]
    loaded = {node.id for node in named if isinstance(node.ctx, ast.Load)}
    defined = {node.id for node in named if isinstance(node.ctx, ast.Store)}
    defined |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    defined |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    aliases = [alias for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
    return loaded, defined | {(alias.asname or alias.name).partition(".")[0] for alias in aliases}


def test_series_is_complete():
    numbers = [notebooks.number_of(path) for path in SERIES]
    assert set(BUILT) <= set(numbers)
    assert [path.name for path in SOLUTIONS] == [f"{number}_solutions.ipynb" for number in numbers]


@pytest.mark.parametrize("path", [path for path in SERIES if path.stem != "evening"], ids=lambda path: path.stem)
def test_built_lists_what_the_notebook_shows(path):
    assert built(path) == BUILT.get(notebooks.number_of(path), {})


def test_notebooks_show_the_code_that_they_build():
    """Main pages show all of BERT itself, constants apart, and 70 % of the lines of utils, imports included."""
    core = {"attention", "embeddings", "encoder_layer", "encoder", "classifier", "weights", "tokenization", "search"}
    lines = shown = 0
    for file in (ROOT / "utils").glob("*.py"):
        source = file.read_text("utf-8")
        places = itertools.chain.from_iterable(modules.get(file.stem, {}).items() for modules in BUILT.values())
        on_page = {name for name, place in places if not place.startswith("proof")}
        for node in ast.parse(source).body[1:]:
            size, name = count_lines(node, source), notebooks.defined_name(node)
            lines += size
            shown += size * (name in on_page)
            if file.stem in core and isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                assert name in on_page
    assert lines <= 1500
    assert shown / lines >= 0.7


@every_notebook
def test_cells_were_executed_in_order(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


@every_notebook
def test_outputs_have_no_errors_warnings_or_local_paths(path):
    for output in outputs(path):
        assert output.output_type != "error"
        assert output.get("name") != "stderr"
        text = "".join(output.get("data", {}).get("text/plain", "")) + output.get("text", "")
        assert not re.search(r"Warning|site-packages|ipykernel_\d+|0x[0-9a-f]{8,}|/home/|/root/", text)


@every_notebook
def test_notebook_is_small(path):
    assert path.stat().st_size <= 1_200_000
    assert not any({"text/html", notebooks.WIDGET} & output.get("data", {}).keys() for output in outputs(path))


@every_notebook
def test_metadata_is_normalised(path):
    notebook = read(path)
    assert notebook.metadata == notebooks.METADATA
    for cell in notebook.cells:
        folded = {name: value for name, value in cell.metadata.items() if name not in notebooks.KEPT_METADATA}
        proofs = notebooks.COLLAPSED if cell.source.startswith(notebooks.PROOF) else {}
        assert folded == (notebooks.FOLDED if notebooks.is_folded(cell) else proofs)


@every_proof_notebook
def test_each_proof_runs_after_the_first_two_cells(path):
    """Every name that a section uses is defined in it, or in the first two code cells."""
    shared = set().union({*dir(builtins), "display"}, *(defined for _, defined in map(names_in, sources(path)[:2])))
    for heading, section in proof_sections(path).items():
        used, defined = set(), set(shared)
        for cell in section:
            if cell.cell_type == "code":
                used, defined = (old | new for old, new in zip((used, defined), names_in(cell.source), strict=True))
        assert used <= defined, f"{heading} needs {sorted(used - defined)} of another section"


@every_chapter
def test_answers_to_predictions_are_in_their_boxes(path):
    """Closed below the cell, with its figures and what it prints; nbval compares them with a run."""
    cells, names = read(path).cells, []
    for cell, box in notebooks.answers(cells):
        assert not cell.outputs
        shown = notebooks.BOX.search(box.source)[2]
        assert re.search(r"^\|The answer\|.+\|$", shown, re.M), f"{cell.id}: make notebooks NB={path.name[:2]}"
        names += re.findall(r"\]\(images/answers/(.*)\)", shown)
    assert len(notebooks.answers(cells)) == sum(cell.source.startswith(notebooks.NO_GUESS) for cell in cells)
    folder = path.parent / notebooks.ANSWERS
    assert sorted(names) == sorted(file.name for file in folder.glob(f"{path.name[:2]}_*"))


@pytest.mark.parametrize("path", [path for path in SERIES if path.stem != "evening"], ids=lambda path: path.stem)
def test_decimals_in_the_box_of_an_answer_are_printed(path):
    """By a cell of the notebook or of its proofs, or they are in its code; test_statements has the evening's."""
    number, shown = notebooks.number_of(path), ""
    for file in [path, *(proof for proof in PROOFS if notebooks.number_of(proof) == number)]:
        shown += "".join(notebooks.BOX.search(box.source)[2] for _, box in notebooks.answers(read(file).cells))
        for cell in code_cells(file):
            shown += cell.source + "".join(output.get("text", "") for output in cell.outputs)
    for cell, box in notebooks.answers(read(path).cells):
        text = box.source.partition("<!--/answer-->")[2].partition("</details>")[0]
        decimals = set(re.findall(r"(?<![\w.])\d+\.\d+(?! %)", text))
        assert decimals <= set(re.findall(r"\d+\.\d+", shown)), cell.id


@pytest.mark.parametrize(("line", "row"), [
    ("The answer: 0.76", "The answer|0.76"), ("errors of one head:  0.5 0.5", "errors of one head|0.5 0.5"),
    ("a  b  c", "a|b|c"), ("only words", "only words|"),
    ("without <br /> or a|b: 3 * 4 `_`", r"without &lt;br /> or a\|b|3 \* 4 \`\_\`"),
    ("one: two: three", "one|two: three"),
])  # fmt: skip
def test_printed_lines_become_rows(line, row):
    outputs = [nbformat.v4.new_output("stream", text=f"{line[:5]}"), nbformat.v4.new_output("stream", text=line[5:])]
    assert notebooks.table(outputs).splitlines()[0] == f"|{row}|"


ANSWERED = """from utils.support.comparisons import reveal
import matplotlib.pyplot as plt
if reveal(prediction, {answer}, "the answer to everything"):
    print("its half: {half}")
    plt.plot([0, {answer}])
    plt.show()"""


def asking(path: Path, *between, summary: str = "<summary>See</summary>", old: str = "") -> None:
    """Write a notebook that asks for a prediction, and explains it after the cells between."""
    make, number = nbformat.v4, path.stem
    cells = [make.new_code_cell(f"{notebooks.NO_GUESS}  # {number}")]
    cells += [make.new_code_cell(ANSWERED.format(answer=42, half=21.0)), *between]
    cells += [make.new_markdown_cell(f"Before\n\n<details>{summary}\n\n{old}Why.\n\n</details>\n\nAfter")]
    cells[1].metadata.tags, cells[1].id = [notebooks.EXEMPT], "two"
    nbformat.write(make.new_notebook(cells=cells), path)


def test_execute_fills_the_box_of_an_answer_and_nbval_reads_it(tmp_path):
    path, between = tmp_path / "03_a.ipynb", nbformat.v4.new_markdown_cell("A remark")
    asking(path, between, old="<!--answer-->\n\nold\n\n<!--/answer-->\n\n")
    notebooks.execute(path)
    box = read(path).cells[-1].source
    table = "|The answer|42|\n|---|---|\n|its half|21.0|"
    picture = "![the answer to everything](images/answers/03_two.png)"
    shown = f"<!--answer-->\n\n{picture}\n\n{table}\n\n<!--/answer-->"
    assert box == f"Before\n\n<details><summary>See</summary>\n\n{shown}\n\nWhy.\n\n</details>\n\nAfter"
    saved = tmp_path / "images" / "answers" / "03_two.png"
    assert [*saved.parent.iterdir()] == [saved]
    assert code_cells(path)[0].source == f"{notebooks.NO_GUESS}  # 03_a"
    figure = {"image/png": b64encode(saved.read_bytes()).decode(), "text/plain": "<Figure>"}
    printed = nbformat.v4.new_output("stream", text="The answer: 42\nits half: 21.0\n")
    outputs, notebook = [printed, nbformat.v4.new_output("display_data", figure)], read(path)
    assert pictures.stale_answer(path, notebook.cells, notebook.cells[1], outputs) is None
    notebook.cells[-1].source = box.replace("03_two.png", "03_two.png) ![](images/answers/03_two.png")
    assert pictures.stale_answer(path, notebook.cells, notebook.cells[1], outputs).startswith("2 figures are saved")
    notebook.cells[-1].source = box.replace("|42|", "|41|")
    parent, errors = SimpleNamespace(path=path, nb=notebook), []
    item = SimpleNamespace(
        cell=notebook.cells[1], test_outputs=outputs, parent=parent, raise_cell_error=errors.append
    )  # as of nbval
    [*pictures.pytest_runtest_call(item)]
    (found,) = errors
    assert re.search(r"A saved answer is stale: .*\|41\|.*is saved, but the cell prints.*\|42\|", found)


@pytest.mark.parametrize("summary", ["", notebooks.OUR_VERSION])
def test_an_answer_without_a_box_is_refused(tmp_path, summary):
    asking(path := tmp_path / "03_a.ipynb", summary=summary)
    with pytest.raises(ValueError, match="cell two reveals an answer: explain it below"):
        notebooks.save_answers(read(path), path)


DETAILS = re.compile(r"<details>.*?</details>", re.DOTALL)


def spoilers(cells: list) -> list[str]:
    """Return where a prediction's answer can be read without opening it, in the ten cells after the box.

    Numbers of one digit are not searched for, because they occur everywhere.
    """
    found = []
    asked = [index for index, cell in enumerate(cells) if cell.source.startswith(notebooks.NO_GUESS)]
    for index, (_, box) in zip(asked, notebooks.answers(cells), strict=True):
        after = cells[index + 1 : index + 11]
        answer = re.search(r"^\|The answer\|(.*)", box.source, re.M)[1]
        for number in re.findall(r"\d+\.\d+|\d{2,}", answer):
            spellings = [number, f"{float(number):.0%}".replace("%", " %"), f"{float(number):,.0f}"]
            wanted = "|".join(re.escape(each) for each in spellings if len(each) > 1)
            pattern = re.compile(rf"(?<![\d.,])(?:{wanted})(?![\d]|[.,]\d)")
            found += [f"{cell.id}: {hit[0]}" for cell in after if (hit := pattern.search(visible_text(cell)))]
    return found


def visible_text(cell) -> str:
    """Return the text of a saved cell that is shown before anything is opened or run."""
    if cell.cell_type == "markdown":
        return re.sub(r"\]\([^)]*\)", "]", DETAILS.sub("", cell.source))  # without the targets of links
    printed = [output.get("text", output.get("data", {}).get("text/plain", "")) for output in cell.outputs]
    return "\n".join([cell.source.splitlines()[0] if notebooks.is_folded(cell) else cell.source, *printed])


@every_chapter
def test_answers_to_predictions_are_not_given_away(path):
    assert not spoilers(read(path).cells)


@every_chapter
def test_stated_reading_times_are_right(path):
    read_only, with_exercises = notebooks.minutes(read(path))
    assert f"Read {read_only} minutes, with exercises {with_exercises}" in opening(path)


def test_execute_leaves_a_failing_notebook_unchanged(tmp_path):
    path = notebook_of(tmp_path, "1 / 0")
    content = path.read_bytes()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        notebooks.execute(path)
    assert path.read_bytes() == content
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_sync_copies_a_definition_without_its_docstrings(tmp_path, monkeypatch):
    monkeypatch.setitem(BUILT, "02", {"embeddings": {"Embeddings": "A section"}})
    wrong = "class Embeddings(nn.Module):\n    def forward(self):\n        return 1\n\n\nkept = 2"
    path = notebook_of(tmp_path, wrong)
    assert notebooks.sync(path, write=False)
    assert sources(path) == [wrong]
    assert notebooks.sync(path)
    [source] = sources(path)
    assert source.endswith("kept = 2")
    assert '"""' not in source
    assert dict(top_level(source))["Embeddings"] == own(path)["Embeddings"]
    assert not notebooks.sync(path)
