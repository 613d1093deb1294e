"""Processes killed while saving: the old or the new model is complete, and the next save leaves nothing else."""

import json
import subprocess
import sys
from pathlib import Path

from tests.helpers import ONE_THREAD, filled, names, saved_number, tiny_tokenizer, unix_only
from utils.support.files import write_file

WHOLE = ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]

# One process forks for each moment, so that torch is imported once.
COMMON = """\
import json, os, signal, sys, time
from pathlib import Path
from tests.helpers import filled, tiny_tokenizer
from utils.classifier import TransformerForSequenceClassification
from utils.support.files import write_file

place, tokenizer = Path(sys.argv[1]), tiny_tokenizer()

def save(folder, number, **options):
    filled(number).save(folder, tokenizer, [f"{number} no", f"{number} yes"], **options)
    write_file(folder.with_name("table.csv"), str(number), **options)

def load(folder):
    "Return the number of the model; a mixture ends the program."
    model = TransformerForSequenceClassification.from_checkpoint(folder)
    (number,) = {value for weight in model.parameters() for value in weight.unique().tolist()}
    assert model.config.id2label == {0: f"{number:.0f} no", 1: f"{number:.0f} yes"}, (number, model.config.id2label)
    return int(number)

def child(function, *arguments):
    "Return the number of a process that runs a function, and ends with status 1 if that raises."
    number = os.fork()
    if number:
        return number
    try:
        function(*arguments)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)

def status(number):
    return os.waitpid(number, 0)[1]
"""
# kills a dry run and a save at their first step that changes a file, at their second, and so on until none is killed
EVERY_STEP = """
STEPS = [(os, "fsync"), (Path, "rename"), (Path, "replace"), (Path, "mkdir"), (os, "unlink"), (os, "rmdir")]

def save_until(step, folder):
    taken = []
    def counting(name, real):
        def stand_in(*arguments, **options):
            taken.append(name)
            if len(taken) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return stand_in
    for owner, name in STEPS:
        setattr(owner, name, counting(name, getattr(owner, name)))
    save(folder, 2, dry_run=True)
    save(folder, 2)

found = []
for step in range(1, 200):
    folder = place / str(step) / "model"
    save(folder, 1)
    ended = status(child(save_until, step, folder))
    (left,) = [folder] if folder.is_dir() else folder.parent.glob(".saving-*/old")
    found.append(load(left) if left == folder else -load(left))
    assert int(folder.with_name("table.csv").read_text()) in (1, 2)
    if not ended:
        break
    assert ended == signal.SIGKILL
print(json.dumps(found))
"""
# two save again and again
TOGETHER = """
def save_often(numbers, end):
    while time.monotonic() < end:
        for number in numbers:
            save(folder, number, dry_run=True)
            save(folder, number)

folder, found = place / "model", []
for _ in range(10):
    savers = [child(save_often, numbers, time.monotonic() + 2) for numbers in ([1, 2], [3, 4])]
    assert [status(saver) for saver in savers] == [0, 0]
    found.append(load(folder))
print(json.dumps(found))
"""


def run(program: str, folder: Path) -> list[int]:
    """Return what the program found each time that it loaded a model."""
    command = [sys.executable, "-W", "ignore", "-c", COMMON + program, str(folder)]
    done = subprocess.run(command, env=ONE_THREAD, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@unix_only
def test_save_killed_at_any_step_leaves_old_or_new_model(tmp_path):
    """Between two renames the old model is in a hidden folder, and the dry run moves nothing."""
    found = run(EVERY_STEP, tmp_path)
    assert {1, -1, 2} == set(found)
    assert found == sorted(found, key=lambda number: {1: 0, -1: 1, 2: 2}[number])
    for step in range(1, len(found) + 1):
        folder = tmp_path / str(step)
        write_file(folder / "table.csv", "3")
        filled(3.0).save(folder / "model", tiny_tokenizer(), dry_run=True)
        assert saved_number(folder / "model") == abs(found[step - 1])  # restored
        assert names(folder) == ["model", "table.csv"]
        filled(3.0).save(folder / "model", tiny_tokenizer())
        assert (saved_number(folder / "model"), names(folder / "model")) == (3, WHOLE)


@unix_only
def test_two_programs_save_into_one_folder(tmp_path):
    """Neither save fails, and the model at the end is one of those that were saved."""
    assert set(run(TOGETHER, tmp_path)) <= {1, 2, 3, 4}
    assert names(tmp_path) == ["model", "table.csv"]
    assert names(tmp_path / "model") == WHOLE
