"""Two processes save into one folder: the model there is always one of theirs, and nothing else is left."""

import json
from pathlib import Path

from tests.helpers import names, run_python, unix_only

WHOLE = ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]

# One process forks for each saver, so that torch is imported once.
TOGETHER = """\
import json, os, sys, time
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


def run(folder: Path) -> list[int]:
    """Return what the program found each time that it loaded a model."""
    done = run_python("-W", "ignore", "-c", TOGETHER, folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@unix_only
def test_two_programs_save_into_one_folder(tmp_path):
    """Neither save fails, and the model at the end is one of those that were saved."""
    assert set(run(tmp_path)) <= {1, 2, 3, 4}
    assert names(tmp_path) == ["model", "table.csv"]
    assert names(tmp_path / "model") == WHOLE
