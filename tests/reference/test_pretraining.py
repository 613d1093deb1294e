"""Pretraining learns, resumes after a stop as if there had been none, and loses nothing."""

import errno
import json
import os
import re
import signal
import sys
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from tokenizers.implementations import BertWordPieceTokenizer
from transformers import BertConfig

import pretrain
from pretrain import CHECKPOINT, STATE_FILE, Run
from tests.helpers import TINY, at_work_in, names, unix_only, weights_of
from utils import pretraining
from utils.masked_lm import TransformerForMaskedLM
from utils.pretraining import Settings, endless_batches, fill_rows, learn_vocabulary, train_vocabulary, write_rows
from utils.support.tables import read_texts

TEXTS = ["a good film, a very good film", "a bad film", "the bad actor and the good actor"] * 20
SETTINGS = Settings(steps=8, batch_size=4, learning_rate=1e-2, probability=0.3)
DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(pretrain, "ROUND", 3)


def new_run(settings: Settings = SETTINGS, **options) -> Run:
    tokenizer = train_vocabulary(TEXTS, 80)
    rows = fill_rows(TEXTS, tokenizer, 16)
    torch.manual_seed(0)
    config = TINY | DROPOUT | {"vocab_size": len(tokenizer.vocab), "initializer_range": 0.1} | options
    model = TransformerForMaskedLM(BertConfig(**config))
    return Run(model, tokenizer, rows, rows, settings, Accelerator(cpu=True))


@pytest.mark.long
def test_pretrain_learns(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrain, "ROUND", 20)
    run = new_run(Settings(steps=60, batch_size=8, learning_rate=2e-2, probability=0.3))
    run.learn(60, tmp_path, quiet=True)
    assert run.done == len(run.history.step_losses) == 60
    assert [point["step"] for point in run.curve] == [20, 40, 60]
    first, last = run.curve[0], run.curve[-1]
    assert last["loss"] < 0.8 * first["loss"]
    assert last["accuracy"] > first["accuracy"]
    assert last["cpu_minutes"] > first["cpu_minutes"] > 0


def same(state):
    return state


FOREIGN = {  # what is done to the facts, and to the tensors
    "no facts": (lambda facts: None, same, r"cannot be read .*: download or save it again"),
    "a loss less": (lambda facts: facts | {"losses": facts["losses"][1:]}, same, r"the number of losses differs"),
    "other texts": (lambda facts: facts | {"ids": "ab"}, same, r"from a run with ids='ab'"),
    "no optimizer": (
        same,
        lambda tensors: {name: t for name, t in tensors.items() if not name.startswith("exp_avg.")},
        r"from a run with exp_avg\..*=None, but this run",
    ),
    "half weights": (
        same,
        lambda tensors: tensors | {"model.head.bias": tensors["model.head.bias"].half()},
        r"model\.head\.bias='\(\d+,\) torch\.float16', but",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_state_raises(tmp_path, name):
    of_facts, of_tensors, message = FOREIGN[name]
    new_run().learn(3, tmp_path, quiet=True)
    path = tmp_path / STATE_FILE
    facts, tensors = pretrain.read_state(path)
    facts = of_facts(facts)
    save_file(of_tensors(tensors), path, metadata=facts and {"facts": json.dumps(facts)})
    other = new_run()
    before = weights_of(other.model)
    with pytest.raises(ValueError, match=message):
        other.resume(tmp_path)
    assert torch.equal(weights_of(other.model), before)


def test_pretrain_stops_at_a_loss_that_is_not_finite(tmp_path):
    run = new_run(Settings(steps=8, batch_size=4, learning_rate=1e-2))
    run.learn(3, tmp_path, quiet=True)
    with torch.no_grad():
        run.model.head.bias.fill_(torch.inf)
    with pytest.raises(FloatingPointError, match=r"the loss is nan at step 4, .*: use a lower one"):
        run.learn(8, tmp_path, quiet=True)
    resumed = new_run(run.settings)
    resumed.resume(tmp_path)
    assert resumed.done == 3


def test_endless_batches_shuffle_each_epoch(monkeypatch):
    monkeypatch.setattr(pretraining, "WINDOW", 6)
    settings = Settings(batch_size=2)
    batches = list(islice(endless_batches(12, settings), 12))
    rows = torch.tensor(batches).view(2, 12).tolist()
    assert sorted(rows[0]) == sorted(rows[1]) == list(range(12))
    assert rows[0] != rows[1]
    assert set(rows[0][:6]) == set(range(6))  # a window stays together
    assert list(islice(endless_batches(6, settings), 3)) == batches[:3]  # and needs no later rows


# The command

FINISHED = 7  # of a process that was not ended
FULL = OSError(errno.ENOSPC, "No space left on device")
MKDIR = Path.mkdir
STEPS = [(os, "fsync"), (Path, "replace"), (Path, "rename"), (Path, "unlink"), (Path, "mkdir"), (Path, "rmdir")]


def command(folder: Path, texts: list[str], monkeypatch) -> None:
    """Run the program for two rounds of two steps, on these texts and with a tiny model."""
    monkeypatch.setattr(pretrain, "ROUND", 2)
    monkeypatch.setattr(pretrain, "imdb_reviews", lambda part: texts)
    monkeypatch.setattr(pretrain, "TINY", TINY | {"vocab_size": len(train_vocabulary(texts, 80).vocab)})
    options = ["--cpu", "--steps", "4", "--batch-size", "4"]
    monkeypatch.setattr(sys, "argv", ["pretrain.py", str(folder), *options])
    pretrain.main()


@unix_only
@pytest.mark.long
@pytest.mark.parametrize("end", ["killed", "interrupted", "full"])
def test_run_killed_at_any_file_operation_resumes(tmp_path, monkeypatch, end):
    """The same command runs again after each end; kills happen in a forked process."""
    step = 1 if "STATES" in os.environ else 16 if end == "killed" else 32  # `make test-all`: at every operation
    texts = [f"{text} {number}" for number, text in enumerate(TEXTS)]
    command(tmp_path / "whole", texts, monkeypatch)
    wanted = load_file(tmp_path / "whole" / STATE_FILE)
    for moment in range(1, 200, step):
        folder = tmp_path / f"{moment}"
        if end == "killed":
            process = os.fork()
            if not process:
                os._exit(until_moment(moment, end, folder, texts))
            finished = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == FINISHED
        else:
            finished = until_moment(moment, end, folder, texts) == FINISHED
        command(folder, texts, monkeypatch)
        found = load_file(folder / STATE_FILE)
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], tensor) for name, tensor in wanted.items()), moment
        loaded = TransformerForMaskedLM.from_checkpoint(str(folder / CHECKPOINT))
        assert torch.equal(loaded.head.bias, wanted["model.head.bias"]), moment
        if finished:
            break
    assert moment > 40


def until_moment(moment: int, end: str, folder: Path, texts: list[str]) -> int:
    """Run the command, and end it before one of its file operations; return FINISHED if it has fewer."""
    counted = []

    def counting(real):
        def stand_in(path, *arguments, **options):
            if not (real is MKDIR and path.exists()):  # which changes nothing
                counted.append(real)
                if len(counted) == moment:
                    if end == "killed":
                        os.kill(os.getpid(), signal.SIGKILL)
                    raise KeyboardInterrupt if end == "interrupted" else FULL
            return real(path, *arguments, **options)

        return stand_in

    try:
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in STEPS:
                patch.setattr(owner, name, counting(getattr(owner, name)))
            command(folder, texts, patch)
    except (Exception, KeyboardInterrupt, SystemExit):
        return 1
    return FINISHED if len(counted) < moment else 1


# Texts of one's own

SCRIPTS = {  # a text, whether it is read without capitals and accents, and its words
    "Greek": ("Η γλώσσα είναι Δύσκολη.", True, ["η", "γλωσσα", "ειναι", "δυσκολη", "."]),
    "Greek, cased": ("Η γλώσσα είναι Δύσκολη.", False, ["Η", "γλώσσα", "είναι", "Δύσκολη", "."]),
    "Hindi without its vowel signs": ("यह सुन्दर है।", True, ["यह", "सनदर", "ह", "।"]),
    "Chinese": ("我爱语言。", True, ["我", "爱", "语", "言", "。"]),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_learn_vocabulary_takes_any_script(name):
    """Two runs agree, frequent words are single pieces, and all pieces are those of the library."""
    text, lowercase, words = SCRIPTS[name]
    first, second = (learn_vocabulary(lambda: iter([text] * 30), 150, lowercase) for _ in range(2))
    assert first.vocab == second.vocab
    assert first.tokenize(text) == words
    fast = BertWordPieceTokenizer(first.vocab, lowercase=lowercase)
    assert fast.encode(text, add_special_tokens=False).tokens == words


def test_learn_vocabulary_drops_rare_characters():
    tokenizer = learn_vocabulary(lambda: iter(["a good film"] * 9 + ["Ω"]), 100)
    assert tokenizer.tokenize("a Ω film") == ["a", "[UNK]", "film"]


def test_write_rows_equals_fill_rows(tmp_path):
    tokenizer = train_vocabulary(TEXTS, 80)
    fill = partial(fill_rows, tokenizer=tokenizer, length=16)
    with (tmp_path / "rows").open("w+b") as file:
        rows = write_rows(iter(TEXTS), fill, 16, file)
    assert torch.equal(rows, fill_rows(TEXTS, tokenizer, 16).int())
    with (
        (tmp_path / "few").open("w+b") as file,
        pytest.raises(ValueError, match="fill no row of 16 tokens: use more, or shorter rows"),
    ):
        write_rows(iter(["a film"]), fill, 16, file)


def own_command(folder: Path, data: list[Path], monkeypatch, *options: str) -> None:
    """Run the program with rounds of two steps on text files."""
    monkeypatch.setattr(pretrain, "ROUND", 2)
    sizes = ["--layers", "1", "--heads", "2", "--hidden", "8", "--positions", "16"]
    sizes += ["--vocabulary", "80"] * ("--vocabulary" not in options)
    command = ["pretrain.py", str(folder), "--cpu", *sizes, "--steps", "4", "--batch-size", "4", *options]
    monkeypatch.setattr(sys, "argv", [*command, "--data", *map(str, data)])
    pretrain.main()


@pytest.fixture
def corpus(tmp_path) -> Path:
    (tmp_path / "texts.txt").write_text("\n".join(f"{text} {n}" for n, text in enumerate(TEXTS * 4)), "utf-8")
    return tmp_path / "texts.txt"


def test_pretrain_script_learns_own_texts_and_resumes(tmp_path, corpus, monkeypatch, capsys):
    own_command(tmp_path / "whole", [corpus], monkeypatch)
    printed = capsys.readouterr().out
    assert printed.startswith("Some cells of the notebooks need a larger model (num_hidden_layers=1, not 6;")
    assert "Read 240 texts," in printed
    assert "both neighbours, counted" in printed
    assert f"make lab CHECKPOINT={tmp_path / 'whole' / CHECKPOINT}" in printed
    own_command(tmp_path / "stopped", [corpus], monkeypatch, "--until", "2")
    assert "Accuracy" not in capsys.readouterr().out
    own_command(tmp_path / "stopped", [corpus], monkeypatch)
    whole, stopped = (load_file(tmp_path / name / STATE_FILE) for name in ("whole", "stopped"))
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)
    assert names(tmp_path / "whole") == [CHECKPOINT, STATE_FILE]
    with pytest.raises(SystemExit, match=r"is from a run with .*: use its settings, or choose another folder"):
        own_command(tmp_path / "whole", [corpus], monkeypatch, "--cased", "--vocabulary", "70")


def test_pretrain_sizes_meet_the_notebooks_needs():
    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    assert pretrain.requirements(config, "all-MiniLM-L6-v2") == "The notebooks will run on this model."
    assert "its first piece" in pretrain.requirements(config, None)


def test_pretrain_script_takes_column_of_table(tmp_path, monkeypatch, capsys):
    """The labels and the header of a table are not texts; a table by another name is refused."""
    rows = [f'"{text} {n}, it is",zz{n % 2}' for n, text in enumerate(TEXTS * 2)]
    for name in ("own.csv", "own.txt"):
        (tmp_path / name).write_text("\n".join(["review,topic", *rows]), "utf-8")
    with pytest.raises(SystemExit, match=r"the column 'text' is missing from \['review', 'topic'\]\): name .*--text"):
        own_command(tmp_path / "run", [tmp_path / "own.csv"], monkeypatch)
    with pytest.raises(SystemExit, match=r"own.txt looks like a table with 2 columns, 'review, topic': let its name"):
        own_command(tmp_path / "run", [tmp_path / "own.txt"], monkeypatch)
    own_command(tmp_path / "run", [tmp_path / "own.csv"], monkeypatch, "--text", "review", "--vocabulary", "300")
    assert f"Read {len(rows)} texts," in capsys.readouterr().out
    vocab = (tmp_path / "run" / CHECKPOINT / "vocab.txt").read_text("utf-8")
    assert "zz" not in vocab
    assert "topic" not in vocab


@pytest.mark.long
def test_pretrain_script_reports_unknown_tokens(tmp_path, corpus, monkeypatch, capsys):
    own_command(tmp_path / "own", [corpus], monkeypatch, "--vocabulary", "300")
    assert "Unknown tokens ([UNK]): 0.0%\n" in capsys.readouterr().out
    amharic = [f"ሰላም ለዓለም ቁጥር {number}" for number in range(200)]
    for name, texts in (("some", [f"{text} {n}" for n, text in enumerate(TEXTS * 6)] + amharic[:20]), ("all", amharic)):
        (tmp_path / f"{name}.txt").write_text("\n".join(texts), "utf-8")
    common = ["--tokenizer", "all-MiniLM-L6-v2"]
    own_command(tmp_path / "some", [tmp_path / "some.txt"], monkeypatch, *common)
    line = r"Unknown tokens \(\[UNK\]\): \d\.\d%\. Use a larger --vocabulary, and no --tokenizer of another"
    assert re.search(line, capsys.readouterr().out)
    words = r"the vocabulary lacks \d\d% of the tokens in .*all.txt \(\[UNK\]\): use a larger --vocabulary"
    with pytest.raises(SystemExit, match=words):
        own_command(tmp_path / "all", [tmp_path / "all.txt"], monkeypatch, *common)


@pytest.mark.parametrize("split", ["\n", "\n\n", "\r\n\r\n"])
def test_read_texts_takes_lines_or_blocks(tmp_path, split):
    (tmp_path / "a.txt").write_text("\ufeff" + split.join(["one", "two", "three"]) + split, "utf-8", newline="")
    (tmp_path / "b.txt").write_text("four\nfive\n\nsix", "utf-8")
    found = [*read_texts([tmp_path / "a.txt", tmp_path / "b.txt"])]
    assert found == ["one", "two", "three", "four five", "six"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty: write a text in each line"),
        ("Café\n".encode("latin-1"), r"cannot be read \(line 1: .*\): save it as UTF-8"),
        ("a film".encode("utf-16-le"), "has a NUL byte in line 1, as UTF-16 has: save it as UTF-8"),
        (b"one text of many words", "too few different texts in .*, among 1: use 100"),
        (None, "give the path of a text file"),
    ],
)
def test_invalid_text_files_end_with_message(tmp_path, monkeypatch, content, words):
    path = tmp_path / "own.txt"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(SystemExit, match=words):
        own_command(tmp_path / "run", [path], monkeypatch)


def test_usage_names_the_folder_before_the_files(monkeypatch, capsys):
    """The last of the files after --data would be it: the usage that the error prints is a command that works."""
    monkeypatch.setattr("sys.argv", ["pretrain.py", "--data", "texts.txt", "my_run"])
    with pytest.raises(SystemExit):
        pretrain.build_parser().parse_args()
    assert "usage: pretrain.py FOLDER [--data FILE ...] [options]" in capsys.readouterr().err
    options = pretrain.build_parser().parse_args(["my_run", "--data", "texts.txt"])
    assert (str(options.folder), options.data) == ("my_run", ["texts.txt"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--until", "0"], "--until must be a positive integer, got 0"),
        (["--layers", "0"], "--layers must be a positive integer, got 0"),
        (["--positions", "2"], "--positions must be an integer of at least 3, got 2"),
        (["--hidden", "10", "--heads", "4"], "hidden_size=10 is not divisible by num_attention_heads=4"),
        (["--cased"], "--cased and --tokenizer need --data"),
        (["--data", "nowhere.txt"], "there is no file nowhere.txt"),
    ],
)
def test_invalid_options_end_before_anything_is_written(tmp_path, monkeypatch, options, words):
    monkeypatch.setattr(pretrain, "imdb_reviews", lambda part: pytest.fail("it was read"))
    monkeypatch.setattr(sys, "argv", ["pretrain.py", str(tmp_path / "run"), "--cpu", *options])
    with pytest.raises(SystemExit, match=re.escape(words)):
        pretrain.main()
    assert names(tmp_path) == []


@unix_only
def test_pretrain_script_refuses_foreign_files_early(tmp_path, monkeypatch):
    texts = [f"{text} {number}" for number, text in enumerate(TEXTS * 2)]
    command(tmp_path, texts, monkeypatch)
    (tmp_path / CHECKPOINT / "notes.txt").write_text("mine")
    with pytest.raises(SystemExit, match=r"contains notes.txt, which is not a file of a model: save into a new folder"):
        command(tmp_path, texts, monkeypatch)
    assert names(tmp_path) == [CHECKPOINT, STATE_FILE]


@pytest.mark.long
def test_lock_excludes_second_run_and_survives_kill(tmp_path, monkeypatch):
    """The first run continues meanwhile."""
    corpus, folder = tmp_path / "texts.txt", tmp_path / "run"
    corpus.write_text("\n".join(f"text {number} of a few words" for number in range(100)), "utf-8")
    with at_work_in(folder) as first:
        with pytest.raises(SystemExit, match=r"another run is using .*run: wait for it to finish"):
            own_command(folder, [corpus], monkeypatch, "--until", "1")
        assert first.poll() is None
        assert not (folder / STATE_FILE).exists()
    own_command(folder, [corpus], monkeypatch, "--until", "1")
    assert (folder / STATE_FILE).is_file()
