"""Measure the numbers in prose and drawings that no cell prints: mostly weights that a view shows under the pointer."""

import functools
import json
import re

import nbformat
import pytest
import torch
from torch.nn import functional as F

from exercises.parts import DRAWING
from tests.helpers import ROOT
from utils.encoder import TransformerEncoder
from utils.search import embed
from utils.support.datasets import DATA
from utils.tokenization import WordPieceTokenizer

IAN = ("I called Ian. I got his answering machine.",)
STREET = "The animal didn't cross the street because it was too {}."
TIRED, WIDE, NARROW = ((STREET.format(last),) for last in ("tired", "wide", "narrow"))
PASSIVE = ("The street wasn't crossed by the animal because it was too tired.",)
PAIR = ("time flies like an arrow", "fruit flies like a banana")
# a text; the weights in a sentence of it, each with its texts, layer, head and two words; and that sentence
WEIGHTS = [
    ("00", [(TIRED, 3, 1, "it", "animal")], '"it" gives "animal" {} of its attention.'),
    ("00", [(NARROW, 3, 1, "it", noun) for noun in ("street", "animal")],
     'to {}, but the one to "animal" stays wider: {}.'),
    ("00", [(PASSIVE, 3, 1, "it", noun) for noun in ("street", "animal")], 'gives "street" {}, and "animal" {}.'),
    ("00", [(IAN, 2, 4, "his", "ian"), (IAN, 2, 4, "his", "[CLS]"), (IAN, 2, 4, "his", "called")],
     '"his" takes {} of its information from "ian", {} from [CLS] and {} from "called"'),
    ("04", [(PAIR, 2, 8, "like", "arrow"), (PAIR, 2, 8, "like, again", "banana")],
     'at "arrow" with {} and at "banana" with {}'),
    ("04", [(PAIR, 2, 8, "an", "arrow"), (PAIR, 2, 8, "a", "banana")], '"an" {}, "a" {}'),
    ("evening", [(text, 3, 1, "it", word) for text in (TIRED, WIDE) for word in ("animal", "street", "[CLS]")],
     "| … too tired | {} | {} | {} | | … too wide | {} | {} | {} |"),
]  # fmt: skip


@functools.cache
def prose(name: str) -> str:
    """Return the text cells of a notebook and its proofs, in one line."""
    paths = [*(ROOT / "notebooks").glob(f"{name}*.ipynb"), ROOT / "notebooks" / "proofs" / f"{name}_proofs.ipynb"]
    cells = [cell for path in paths if path.exists() for cell in nbformat.read(path, as_version=4).cells]
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return " ".join(text.split())


def drawn(name: str) -> list[str]:
    """Return the texts of a drawing in file order."""
    drawing = DRAWING if name == "encoder" else ROOT / "notebooks" / "images" / f"{name}.svg"
    return re.findall(r">([^<>\n]+)<", drawing.read_text("utf-8"))


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer.from_checkpoint()


@pytest.fixture(scope="module")
def encoder():
    return TransformerEncoder.from_checkpoint()


@pytest.fixture(scope="module")
def weight(tokenizer, encoder):
    """Return a function from texts, a head and two words to the attention weight that one gives the other."""

    @functools.cache
    def weights(texts: tuple[str, ...], layer: int, head: int) -> tuple[list[str], torch.Tensor]:
        batch = tokenizer(*texts)
        with torch.inference_mode():
            found = encoder(**batch, output_attentions=True).attentions[layer][0, head]
        return [tokenizer.tokens[number] for number in batch["input_ids"][0].tolist()], found

    def weight(texts: tuple[str, ...], layer: int, head: int, row: str, column: str) -> float:
        tokens, found = weights(texts, layer, head)
        word, _, again = row.partition(", ")
        first = tokens.index(word)
        return found[tokens.index(word, first + 1) if again else first, tokens.index(column)].item()

    return weight


@pytest.mark.parametrize(("name", "looks", "sentence"), WEIGHTS)
def test_attention_weights_in_sentences(weight, name, looks, sentence):
    assert sentence.format(*(f"{weight(*look):.2f}" for look in looks)) in prose(name)


def test_spread_of_the_embedding_sums(tokenizer, encoder):
    tables, ids = encoder.embeddings, tokenizer(PAIR[0])["input_ids"][0]
    with torch.inference_mode():
        sums = tables.word_embeddings.weight[ids] + tables.position_embeddings.weight[: len(ids)]
        sums += tables.token_type_embeddings.weight[0]
        spread = sums.std(dim=-1, unbiased=False)
    others = f"{spread[1:].min():.2f} to {spread[1:].max():.2f}"
    assert f"[CLS] has a spread of {spread[0]:.2f}, and the other tokens have {others}" in prose("02")


def test_first_shares_in_the_plane():
    keys, query = torch.tensor([[2.0, 2.5], [-2.5, 1.0], [1.5, -2.5]]), torch.tensor([-1.0, 2.6])
    time, flies, _ = (query @ keys.T / 2**0.5).softmax(dim=-1).tolist()
    assert f"share the attention: {time:.2f} and {flies:.2f}" in prose("03")


def test_gradients_of_large_scores():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 64, generator=generator) @ torch.randn(64, generator=generator)
    largest = [(scores * factor).softmax(dim=0).max().item() for factor in (64**-0.5, 1)]
    scaled, plain = (weight * (1 - weight) for weight in largest)
    assert f"a *gradient* of {scaled:.2f} is left" in prose("03")
    assert f"the gradient falls to {plain:.2f}" in prose("03")


def test_vectors_of_flies_are_most_similar(tokenizer, encoder):
    texts = [PAIR[0], "time flies when you have fun", PAIR[1], "house flies like sugar"]
    with torch.inference_mode():
        rows = [F.normalize(encoder(**tokenizer(text)).last_hidden_state[0, 1:-1], dim=-1) for text in texts]
    tokens, unlike = [tokenizer.tokenize(text) for text in texts], []
    for i in range(4):
        for j in range(i):
            differ = torch.tensor([[one != other for other in tokens[j]] for one in tokens[i]])
            unlike.append((rows[i] @ rows[j].T)[differ])
    flies, unlike = (rows[0][1] @ rows[2][1]).item(), torch.cat(unlike)
    assert unlike.max() < flies
    assert f"It is {flies:.2f}." in prose("06")
    assert f"have only {unlike.mean():.2f} on average." in prose("06")


def test_numbers_of_the_evening(tokenizer, encoder):
    text = prose("evening")
    batch = tokenizer(TIRED[0])
    tokens = [tokenizer.tokens[number] for number in batch["input_ids"][0].tolist()]
    with torch.inference_mode():
        given = torch.stack(encoder(**batch, output_attentions=True).attentions)[:, 0, :, tokens.index("it")]
        verbs = [encoder(**tokenizer(one)).last_hidden_state[0, 2] for one in (PAIR[0], "he flies like a bird")]
    to_animal = given[:, :, tokens.index("animal")].flatten()
    assert to_animal.argmax() == 3 * 12 + 1
    first, second = to_animal.topk(2).values
    assert first - second < 0.005
    assert to_animal.median() < 0.04
    assert "One other gives as much, half of them less than 0.04." in text
    assert f"its similarity with the first one is only {F.cosine_similarity(*verbs, dim=0):.2f}" in text
    for numbers in ((1, 3, 5), (1, 6, 5)):
        normal = [f"{x:.2f}".replace("-", "−") for x in F.layer_norm(torch.tensor(numbers).float(), (3,)).tolist()]
        assert f"({', '.join(normal)})".replace("0.00", "0") in text
    vectors = embed(["the film was not good", "I hated the movie", "the film was good"], encoder, tokenizer)
    same, opposite = (f"{vectors[0] @ vector:.2f}" for vector in vectors[1:])
    assert f'"I hated the movie" {same}, and its opposite, "the film was good", **{opposite}**' in text


def test_statements_from_the_record_of_attention():
    models = json.loads((DATA / "attention.json").read_text("utf-8"))["models"]
    ours, tiny = models["checkpoint"], models["tiny BERT"]
    for measured in ("word", "[MASK]"):  # the statement that was fixed before the run
        minus = {way: each["minus another"] for way, each in ours[measured].items()}
        for way in ("mean of all heads", "weighted by norms", "flow"):
            assert -0.05 < minus[way][1] < minus[way][2] < 0.05
        assert max(minus["last layer"][2], minus["rollout 0.5"][2]) < -0.1
        assert tiny[measured]["rollout 0.5"]["minus the mean"][1] > 0
    untrained = [each for name, each in models.items() if "untrained" in name]
    reached = [each["word"]["mean of all heads"]["agreement"][0] for each in untrained]
    assert f"reach {sum(reached) / 3:.2f} with the mean" in prose("10")
    given = ours["word"]["mean of all heads, given distance"]["agreement"][0]
    assert f"in the checkpoint {given:.2f} is left" in prose("10")
    assert round(ours["norms"]["words, median"] / ours["norms"]["[MASK]"], 1) == 4.9  # "a fifth as long"


def test_ids_in_drawings_are_right(tokenizer):
    text, steps, total = "José can't tokenize!", drawn("01_steps"), drawn("02_sum")
    assert [word for word in steps if word.isdecimal()] == list(map(str, tokenizer.encode(text)))
    assert {text, *tokenizer.tokenize(text)} <= {*steps}
    for name in {*total} & {"[CLS]", "[SEP]", "time", "flies"}:
        assert str(tokenizer.vocab[name]) in total, f"{name} has another id in 02_sum.svg"
    first, second, third, *_, last = map(str, tokenizer.encode(PAIR[0]))
    assert f"“{PAIR[0]}” → {first} {second} {third} … {last}" in drawn("encoder")


def test_table_of_fast_inference_is_the_record():
    ways = json.loads((DATA / "fast_inference.json").read_text("utf-8"))["ways"]
    for name, way in ways.items():
        changed = way["changed queries"] + way["changed reviews"] if "changed reviews" in way else "–"
        assert f"| {name} | {way['right']} | {changed} | {way['time']:.2g} | {way['megabytes']} |" in prose("13")
    assert f"{ways['bfloat16']['time'] / ways['packed']['time']:.0f} times as slow as float32" in prose("13")
