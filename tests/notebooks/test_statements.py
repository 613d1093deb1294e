"""Measure the numbers and generalisations in prose, drawings and help texts that no cell prints."""

import functools
import json
import math
import re
from itertools import combinations

import nbformat
import pytest
import torch
from torch.nn import functional as F

from exercises.parts import DRAWING
from tests.helpers import ROOT
from utils.encoder import TransformerEncoder
from utils.support.datasets import DATA, imdb_reviews
from utils.support.formatting import opening_passages
from utils.tokenization import WordPieceTokenizer

IAN = "I called Ian. I got his answering machine."
CAT = "The hungry cat chased a small mouse."


@functools.cache
def prose(name: str) -> str:
    """Return the text cells of a notebook and of its proofs."""
    paths = (f"{name}.ipynb", f"proofs/{name[:2]}_proofs.ipynb")
    found = [nbformat.read(path, as_version=4) for path in map((ROOT / "notebooks").joinpath, paths) if path.exists()]
    return "\n".join(cell.source for notebook in found for cell in notebook.cells if cell.cell_type == "markdown")


@functools.cache
def drawn(name: str) -> list[str]:
    """Return the texts of a drawing in file order."""
    drawing = DRAWING if name == "encoder" else ROOT / "notebooks" / "images" / f"{name}.svg"
    return re.findall(r">([^<>\n]+)<", drawing.read_text("utf-8"))


def check_sentences(name: str, *sentences: str) -> None:
    for sentence in sentences:
        assert sentence in prose(name), f"{name} does not contain “{sentence}”"


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer.from_checkpoint()


@pytest.fixture(scope="module")
def encoder():
    return TransformerEncoder.from_checkpoint()


@pytest.fixture(scope="module")
def look(tokenizer, encoder):
    """Return a function from a text or pair to its tokens and the attention weights (S, S) of a head."""

    @torch.inference_mode()
    def weights(*texts: str, layer: int, head: int) -> tuple[list[str], torch.Tensor]:
        batch = tokenizer(*texts)
        tokens = [tokenizer.tokens[number] for number in batch["input_ids"][0].tolist()]
        return tokens, encoder(**batch, output_attentions=True).attentions[layer][0, head]

    return weights


def test_00_first_picture(look):
    given = {}
    for last in ("tired", "hungry", "wide", "narrow"):
        text = f"The animal didn't cross the street because it was too {last}."
        tokens, weights = look(text, layer=3, head=1)
        given[last] = [f"{weights[tokens.index('it'), tokens.index(word)]:.2f}" for word in ("animal", "street")]
    (tired, street), (hungry, _), (wide, wide_street), (narrow, narrow_street) = given.values()
    check_sentences(
        "00_overview",
        f'"it" gives "animal" {tired} of its attention, and "street" {street}.',
        f'With "hungry" it still gives "animal" {hungry}.',
        f'to {wide_street} and {narrow_street}, but the one to "animal" stays wider: {wide} and {narrow}',
    )


def test_00_similarities_of_bank_and_tree():
    notebook = nbformat.read(ROOT / "notebooks" / "00_overview.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    scope = {"device": "cpu"}
    for cell in cells[1:2] + [cell for cell in cells if re.search("def (to_batch|vector_of)|^banks = ", cell)]:
        exec(cell.split("\n\n\nian = ")[0], scope)

    def within_and_across(similarity, group):
        group, rest = list(group), [row for row in range(6) if row not in group]
        pairs = ~torch.eye(3, dtype=torch.bool)
        within = torch.cat([similarity[part][:, part][pairs] for part in (group, rest)]).mean().item()
        return within, similarity[group][:, rest].mean().item()

    bank, across = within_and_across(scope["similarities"]("bank", scope["banks"]), range(3))
    check_sentences("00_overview", f"the similarity is {bank:.2f} on average, and across the groups it is {across:.2f}")
    trees = scope["similarities"]("tree", scope["trees"])
    splits = [within_and_across(trees, (0, *two)) for two in combinations(range(1, 6), 2)]
    largest = max(abs(within - across) for within, across in splits)
    assert len(splits) == 10
    check_sentences("00_overview", f"do the two averages differ by more than {math.ceil(100 * largest) / 100}.")


def test_00_first_head(look):
    tokens, weights = look(IAN, layer=2, head=4)
    his, ian, called = map(tokens.index, ("his", "ian", "called"))
    shares = f'{weights[his, ian]:.2f} of its information from "ian", {weights[his, 0]:.2f} from [CLS]'
    check_sentences("00_overview", f'"his" takes {shares} and {weights[his, called]:.2f} from "called"')
    others = torch.cat([weights[:his, ian], weights[his + 1 :, ian]])
    check_sentences("00_overview", f'None of them takes more than {math.ceil(100 * others.max()) / 100} from "ian"')
    rests = [row for row in range(len(tokens)) if weights[row].argmax() == 0]
    assert len(rests) > len(tokens) / 2, "Most of them look at [CLS]"


@pytest.mark.parametrize(
    ("text", "word", "found", "said"),
    [
        ("My sister lost her keys in the park.", "her", "sister", '"her" finds "sister"'),
        ("The boss fired the clerk. He lost his job.", "his", "boss", '"his" looks at "boss"'),
    ],
)
def test_00_pronouns_find_their_noun(look, text, word, found, said):
    check_sentences("00_overview", text, said)
    tokens, weights = look(text, layer=2, head=4)
    assert tokens[1 + weights[tokens.index(word), 1:].argmax()] == found  # ignoring [CLS]


def test_04_heads_of_the_cat_sentence(look):
    tokens, adjective = look(CAT, layer=2, head=11)
    check_sentences("04_multi_head_attention", f'Hover over "a": it takes {adjective[5, 4]:.2f} from "chased"')
    check_sentences("04_multi_head_attention", 'Hover over "mouse": neither head finds "small" or "chased"')
    mouse, found = tokens.index("mouse"), [tokens.index(word) for word in ("small", "chased")]
    assert all(look(CAT, layer=2, head=head)[1][mouse, found].max() < 0.1 for head in (3, 11))
    tokens_of_black, weights = look("The hungry black cat chased a small mouse.", layer=2, head=11)
    hungry, black, cat = map(tokens_of_black.index, ("hungry", "black", "cat"))
    check_sentences("04_multi_head_attention", 'In "the hungry black cat" it leads to "black" and hardly to "hungry"')
    assert weights[cat, black] > 5 * weights[cat, hungry]
    rows = {head: look(CAT, layer=2, head=head)[1][tokens.index("cat")] for head in range(12)}
    elsewhere = [head for head, row in rows.items() if row.argmax() != 0]
    assert elsewhere == [3, 11], 'For "cat", only heads 3 and 11 give a word more than they give [CLS]'


def test_04_head_8_on_the_pair(look):
    tokens, weights = look("time flies like an arrow", "fruit flies like a banana", layer=2, head=8)
    first, second = [i for i, token in enumerate(tokens) if token == "like"]
    arrow, banana = map(tokens.index, ("arrow", "banana"))
    like = f'at "arrow" with {weights[first, arrow]:.2f} and at "banana" with {weights[second, banana]:.2f}'
    articles = f'"an" {weights[first + 1, arrow]:.2f}, "a" {weights[second + 1, banana]:.2f}'
    check_sentences("04_multi_head_attention", like, articles)
    assert [tokens[weights[tokens.index(word)].argmax()] for word in ("time", "fruit")] == ["flies"] * 2
    middle = tokens.index("[SEP]")
    across = weights[1:middle, middle + 1 : -1].sum(dim=-1).mean()
    assert across < 0.05, "from sentence A to sentence B hardly anything is left"
    assert [tokens[weights[position].argmax()] for position in (arrow, banana)] == ["[CLS]"] * 2


def test_02_spread_of_the_embedding_sums(tokenizer, encoder):
    tables, ids = encoder.embeddings, tokenizer("time flies like an arrow")["input_ids"][0]
    with torch.inference_mode():
        sums = tables.word_embeddings.weight[ids] + tables.position_embeddings.weight[: len(ids)]
        sums += tables.token_type_embeddings.weight[0]
        spread = sums.std(dim=-1, unbiased=False)
        trained = tables.layer_norm(sums)
    low, high = spread[1:].min(), spread[1:].max()
    words = f"[CLS] has a spread of {spread[0]:.2f}, and the other tokens have {low:.2f} to {high:.2f}"
    check_sentences("02_embeddings", words, f"the spread becomes {trained[1].std(unbiased=False):.2f}")
    largest, second, *_ = trained[0].abs().sort(descending=True).values
    assert largest > 5 * second, "One coordinate of [CLS] is far larger than the others"


def test_02_period_of_the_position_embeddings(encoder):
    steps = torch.arange(1, 128)
    learned = encoder.embeddings.position_embeddings.weight.detach()[steps]
    three = learned[:, learned.var(dim=0).topk(3).indices]
    strength = torch.fft.rfft(three - three.mean(dim=0), dim=0).abs()
    periods = len(steps) / strength.argmax(dim=0)
    assert round(periods.min().item()) == 14
    check_sentences("02_embeddings", "the fastest one about every fourteen positions")


def test_03_first_figure():
    """Drag the query straight to the key of "time": "time" gains weight and "arrow" loses it."""
    keys, query = torch.tensor([[2.0, 2.5], [-2.5, 1.0], [1.5, -2.5]]), torch.tensor([1.0, -0.8])
    check_sentences("03_self_attention", 'the bar of "time" grows, the bar of "arrow" shrinks')
    code = nbformat.read(ROOT / "notebooks" / "03_self_attention.ipynb", as_version=4).cells[5].source
    assert f"keys = {keys.tolist()}" in code
    assert "attention_in_the_plane([1.0, -0.8], keys" in code
    assert query @ keys[0] == 0  # the query begins at right angles to the key of "time"
    dragged = torch.lerp(query, keys[0], torch.linspace(0, 1, 50)[:, None])
    weights = (dragged @ keys.T / 2**0.5).softmax(dim=-1)
    assert weights[0].argmax() == 2
    assert (weights[:, 0].diff() > 0).all()
    assert (weights[:, 2].diff() < 0).all()


def test_03_gradients():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 64, generator=generator) @ torch.randn(64, generator=generator)
    largest = [(scores * factor).softmax(dim=0).max().item() for factor in (64**-0.5, 1, 64)]
    left = [weight * (1 - weight) for weight in largest]
    check_sentences(
        "03_self_attention", f"a *gradient* of {left[0]:.2f} is left", f"the gradient falls to {left[1]:.2f}"
    )
    assert f"{left[2]:.3f}" == "0.000"  # the figure shows three decimal places
    check_sentences("03_self_attention", "the gradient is too small to see")


def test_06_numbers_of_the_comparison(tokenizer):
    first = ["I called Ian.", "time flies like an arrow", "an unaffable café"]
    second = ["I got his answering machine.", "fruit flies like a banana", "so do seals"]
    real = int(tokenizer(first, second)["attention_mask"].sum())
    counted = (f"Our three pairs have {real} real tokens", f"{real} × 384 numbers", f"{real * 384:,} numbers in each")
    check_sentences("06_encoder", *counted)


def test_ids_in_drawings_are_right(tokenizer):
    text = "José can't tokenize!"
    ids = list(map(str, tokenizer.encode(text)))
    assert [word for word in drawn("01_steps") if word.isdecimal()] == ids
    assert text in drawn("01_steps")
    assert all(token in drawn("01_steps") for token in tokenizer.tokenize(text))
    names = [word for word in drawn("02_sum") if word in tokenizer.vocab]
    for name in set(names) & {"[CLS]", "[SEP]", "time", "flies"}:
        assert str(tokenizer.vocab[name]) in drawn("02_sum"), f"{name} has another id in 02_sum.svg"
    first, second, third, *_, last = map(str, tokenizer.encode("time flies like an arrow"))
    assert f"“time flies like an arrow” → {first} {second} {third} … {last}" in drawn("encoder")


def test_05_layer_norm_rescales_the_stream(tokenizer, encoder):
    """05_stream.svg says "added to, and rescaled": LayerNorm changes the length of the sum."""
    assert any("it is added to, and rescaled" in words for words in drawn("05_stream"))
    with torch.inference_mode():
        x = encoder.embeddings(tokenizer("time flies like an arrow")["input_ids"])
        layer = encoder.layers[0]
        total = x + layer.attention(x)[0]
        assert (layer.attention_norm(total).norm(dim=-1) / total.norm(dim=-1) - 1).abs().max() > 0.1


def test_06_vectors_of_flies_are_most_similar(tokenizer, encoder):
    texts = ["time flies like an arrow", "time flies when you have fun"]
    texts += ["fruit flies like a banana", "house flies like sugar"]
    with torch.inference_mode():
        rows = [F.normalize(encoder(**tokenizer(text)).last_hidden_state[0, 1:-1], dim=-1) for text in texts]
    tokens, unlike = [tokenizer.tokenize(text) for text in texts], []
    for i in range(4):
        for j in range(i):
            differ = torch.tensor([[one != other for other in tokens[j]] for one in tokens[i]])
            unlike.append((rows[i] @ rows[j].T)[differ])
    flies = (rows[0][1] @ rows[2][1]).item()
    assert torch.cat(unlike).max() < flies
    check_sentences(
        "06_encoder", f"It is {flies:.2f}.", f"have only {torch.cat(unlike).mean():.2f} on average at the end"
    )


def test_15_what_the_passages_contain():
    passages = opening_passages(imdb_reviews("train")[:1200])  # enough for 500 without control characters
    learn = [passage for passage in passages if "".join(passage.words).isprintable()][:500]
    known = {word for words, _ in learn for word in words}
    assert known & {"robert", "de", "niro", "york"} == {"york"}


def test_13_table_is_the_record():
    ways = json.loads((DATA / "fast_inference.json").read_text("utf-8"))["ways"]
    for name, way in ways.items():
        changed = way["changed queries"] + way["changed reviews"] if "changed reviews" in way else "–"
        counts = f"{way['right']} | {changed} | {way['time']:.2g} | {way['megabytes']}"
        check_sentences("13_fast_inference", f"| {name} | {counts} |")
    one, rows = (ways[f"a file, 8 bits, a scale per {kind}"] for kind in ("matrix", "row"))
    one, rows = (way["changed queries"] + way["changed reviews"] for way in (one, rows))
    check_sentences(
        "13_fast_inference",
        f"In the batches of the record below it was {one} and {rows}.",
        f"{ways['bfloat16']['time'] / ways['packed']['time']:.0f} times as slow as float32",
        f"{ways['word vectors alone']['right']} of 49, in {ways['word vectors alone']['time']:.1%}".replace("%", " %"),
    )


NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_claim_no_readers_mind(path):
    found = re.findall(r"(?:Many|Most|Some) (?:people|readers) \w+|Many (?:expect|guess|answer)\b", prose(path.stem))
    assert not set(found) - {"Most people who"}
    assert len(re.findall(r"You may have (?:expected|guessed|written)", prose(path.stem))) <= 2
