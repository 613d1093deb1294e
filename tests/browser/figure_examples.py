"""An example of each draggable figure: how it is made, random states of it and what torch computes from them.

`compute` returns a figure's numbers for any state and needs no page (draggable/compute), but for a sentence view.
`check` compares what it returns for one state with torch, or with the library that the figure imitates.
"""

import functools
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch
from playwright.sync_api import expect
from tokenizers import Tokenizer
from tokenizers.models import WordLevel, WordPiece
from tokenizers.pre_tokenizers import Split, WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from tests.helpers import SMALL
from tests.texts import SPECIAL, WORDS
from utils.attention import compute_attention_weights
from utils.support.checkpoint import load_tokenizer
from utils.support.datasets import reviews
from utils.tokenization import WordPieceTokenizer
from views import figures, path_view, sentence_view
from views.page import View

NAMES = ["time", "flies", "arrow"]
# the numbers that a page shows, and those of them that `compute` does not return for the state that is shown
SHOWN = """(root) => [...root.querySelectorAll("[data-value]")].map((e) => +e.dataset.value)"""
UNCOMPUTED = """(root) => {
  const flat = (all) => (typeof all === "object" && all !== null ? Object.values(all).flatMap(flat) : [all]);
  const numbers = flat((COMPUTE)(STATE)).filter((one) => typeof one === "number");
  return [...root.querySelectorAll("[data-value]")].map((e) => +e.dataset.value).filter((shown) =>
    !numbers.some((one) => Object.is(one, shown) || Math.abs(one - shown) <= 1e-9 * Math.max(1, Math.abs(one))));
}"""


def open_figure(page, view, folder: Path) -> None:
    """Open the saved page of a figure in the browser."""
    page.goto(view.save(folder / "figure.html").as_uri())


def stop_clock(page) -> None:
    """Stop a page's clock an hour from now, which a busy machine does not pass between the two calls."""
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 3600"))


def settle(page) -> None:
    """Wait until every number, bar and arrow has arrived where its last change sends it."""
    page.locator("html.moving").wait_for(state="detached")


def numbers(page, selector: str) -> torch.Tensor:
    """Return the unrounded numbers of these elements."""
    values = page.locator(selector).evaluate_all("(all) => all.map((e) => e.dataset.value)")
    return torch.tensor([float(value) for value in values], dtype=torch.float64)


def texts_of(page, selector: str) -> list[str]:
    """Return the texts of these elements."""
    return page.locator(selector).all_text_contents()


def close(found, wanted) -> bool:
    """Return whether the numbers of a page agree with torch's to within 1e-5 of their size; nan equals nan."""
    found, wanted = (torch.as_tensor(one, dtype=torch.float64).flatten() for one in (found, wanted))
    return found.shape == wanted.shape and torch.allclose(found, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


class Finger:
    """A finger on the screen of a page; `scrolled` is how far it has moved the page, in pixels."""

    def __init__(self, page):
        self.page, self.session, self.scrolled = page, page.context.new_cdp_session(page), 0

    def send(self, kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": x, "y": y} for x, y in points]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Put the finger down, move it in small steps, as a hand does, and lift it."""
        before = self.page.evaluate("scrollY")
        self.send("touchStart", start)
        for share in torch.linspace(0.1, 1, 10).tolist():
            self.send("touchMove", tuple(a + share * (b - a) for a, b in zip(start, end, strict=True)))
        assert start == end or self.page.locator("html.moving").count() == 0  # nothing lags behind the finger
        self.send("touchEnd")
        after = self.page.evaluate(
            "new Promise((drawn) => setTimeout(() => requestAnimationFrame(() => drawn(scrollY))))"
        )
        self.scrolled += abs(after - before)

    def tap(self, at: tuple[float, float]) -> None:
        self.drag(at, at)


def middle(element) -> tuple[float, float]:
    """Return the middle of an element in the window, after scrolling to it."""
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def pull(selector: str, along: float = 0.0, up: float = 0.0, number: int = 0) -> Callable:
    """Return a touch that drags an element by shares of its figure's width and height, and follows it."""

    def touch(page, finger: Finger) -> None:
        one, whole = page.locator(selector).nth(number), page.locator("#figure").bounding_box()
        start, before = middle(one), page.locator("#figure").evaluate(SHOWN)
        finger.drag(start, (start[0] + along * whole["width"], start[1] - up * whole["height"]))
        assert page.locator("#figure").evaluate(SHOWN) != before

    return touch


def tap(selector: str, number: int, wanted: str) -> Callable:
    """Return a touch that taps an element, which then matches the selector `wanted`."""

    def touch(page, finger: Finger) -> None:
        finger.tap(middle(page.locator(selector).nth(number)))
        expect(page.locator(selector).nth(number).and_(page.locator(wanted))).to_have_count(1)

    return touch


class Example(NamedTuple):
    """How to make a figure from three names, random states of it, and how its numbers are compared and changed."""

    make: Callable[[list[str]], View]
    state: Callable[[random.Random], dict]
    check: Callable[[dict, dict], None]  # (state, what `compute` returns for it)
    change: tuple[str, str]  # an element, and the key that changes its figure
    touch: Callable  # (page, finger): change it with a finger
    shown: str = "state"  # JavaScript: what a page shows
    compute: str = "compute"  # JavaScript: the function of a state

    def use(self, page) -> None:
        """Change the figure, on a page or in a frame, by keyboard and compare what it shows with `compute`."""
        page.locator(self.change[0]).first.press(self.change[1])
        settle(page)
        assert page.locator("#figure [data-value]").count() > 0
        assert self.uncomputed(page) == []

    def uncomputed(self, page) -> list[float]:
        """Return the numbers that the page shows and `compute` does not return."""
        return page.locator("#figure").evaluate(self.script)

    @property
    def script(self) -> str:
        """Return the JavaScript of `uncomputed`."""
        return UNCOMPUTED.replace("COMPUTE", self.compute).replace("STATE", self.shown)


def normal(chance: random.Random, *shape: int, spread: float = 1.0) -> list:
    """Return random numbers as lists of this shape."""
    if not shape:
        return chance.gauss(0, spread)
    return [normal(chance, *shape[1:], spread=spread) for _ in range(shape[0])]


def make_plane(names: list[str]) -> View:
    values = [[1, 4], [-4, -1], [3, 0]]
    return figures.attention_in_the_plane([0.6, 0.9], [[2, 2.5], [-2.5, 1], [1.5, -2.5]], values, names, asking=1)


def plane_state(chance: random.Random) -> dict:
    arrows = {"query": normal(chance, 2), "keys": normal(chance, 3, 2, spread=2), "values": normal(chance, 3, 2)}
    return arrows | {"scaled": chance.random() < 0.7, "simple": chance.random() < 0.3}


def check_plane(state: dict, found: dict) -> None:
    query, keys, values = (torch.tensor(state[name]).double() for name in ("query", "keys", "values"))
    if state["simple"]:
        query, values = keys[1], keys
    products = keys @ query
    scores = products / 2**0.5 if state["scaled"] else products
    weights = scores.softmax(dim=0)
    if state["scaled"]:
        assert close(weights, compute_attention_weights(query[None], keys))
    for name, wanted in {"products": products, "scores": scores, "powers": scores.exp(), "weights": weights}.items():
        assert close(found[name], wanted), name
    assert close(found["mean"], weights @ values)


def check_sharpness(state: dict, found: dict) -> None:
    scaled = torch.tensor(state["scores"]).double() * 64 ** state["at"]
    assert close(found["scaled"], scaled)
    assert close(found["weights"], scaled.softmax(dim=0))
    nudges = 0.5 * torch.eye(3, dtype=torch.float64)[state["nudged"]]
    assert close(found["ends"], [(scaled + by * nudges).softmax(dim=0)[state["nudged"]] for by in (-1, 1)])


LOGITS = torch.randn(20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
LOGITS = 2 * LOGITS.sort(descending=True).values
LOGITS[5] = LOGITS[4]  # a tie


def next_token_state(chance: random.Random) -> dict:
    state = {"temperature": 10 ** chance.uniform(-1, 0.4), "k": chance.randint(1, 20), "p": chance.randint(1, 20) / 20}
    return state | {"darts": [chance.random() for _ in range(chance.randint(0, 50))]}


def check_next_token(state: dict, found: dict) -> None:
    scores = LOGITS[None]
    warpers = TemperatureLogitsWarper(state["temperature"]), TopKLogitsWarper(state["k"]), TopPLogitsWarper(state["p"])
    given, *_, shares = [(scores := warper(None, scores)).softmax(dim=-1)[0] for warper in warpers]
    assert close(found["given"], given)
    assert found["shares"][4] >= found["shares"][5]  # of a tie torch drops either for top-p; here the first one stays
    assert close(found["shares"], shares.sort(descending=True).values)
    ends = torch.tensor(found["shares"]).double().cumsum(dim=0)
    hits = torch.bucketize(torch.tensor(state["darts"]).double(), ends, right=True).clamp(max=19)
    assert found["drawn"] == hits.bincount(minlength=20).tolist()


EMBEDDED = torch.randn(9, 8, generator=torch.Generator().manual_seed(2)).split([3, 4, 2])
GAMMA, BETA = torch.linspace(0.5, 1.5, 8), torch.linspace(-1, 1, 8)


def make_sum_and_scale(names: list[str]) -> View:
    return figures.sum_and_scale(*EMBEDDED, names, weight=GAMMA, bias=BETA)


def sum_state(chance: random.Random) -> dict:
    state = {"size": 8, "name": chance.randrange(3), "at": chance.randrange(4), "kind": chance.randrange(2)}
    return state | {"trained": chance.random() < 0.5}


def check_sum_and_scale(state: dict, found: dict) -> None:
    rows = [table[state[key]].double() for table, key in zip(EMBEDDED, ("name", "at", "kind"), strict=True)]
    total, scale = torch.stack(rows).sum(dim=0), (GAMMA.double(), BETA.double()) if state["trained"] else ()
    normed = torch.nn.functional.layer_norm(total, [8], *scale, eps=1e-12)
    assert close(found["parts"], torch.stack(rows))
    assert close(found["total"], total)
    assert close(found["normed"], normed)
    moments = [moment for row in (total, normed) for moment in (row.mean(), row.std(correction=0))]
    assert close([found["mean"], found["deviation"], *found["moments"]], moments)


def mask_state(chance: random.Random) -> dict:
    cells = [[int(chance.random() < 0.6) for _ in range(4)] for _ in range(chance.choice([2, 4]))]
    return {"open": cells, "values": normal(chance, 4)}


def check_mask(state: dict, found: dict) -> None:
    mask, values = torch.tensor(state["open"]).bool(), torch.tensor(state["values"]).double()
    query, key = torch.zeros(len(mask), 1).double(), torch.zeros(len(values), 1).double()
    weights = compute_attention_weights(query, key, mask)  # nan in a row that may see nothing, as the figure
    assert close(found["weights"], weights)
    assert close(found["averages"], weights @ values)


def split_state(chance: random.Random) -> dict:
    sizes = {"S": chance.randint(2, 6), "A": chance.randint(1, 4), "D": chance.randint(1, 6)}
    path = chance.choice(["the right order", "split without transpose", "merge without transpose"])
    return {"path": path, "at": chance.randint(0, 3), "sizes": sizes | {"H": sizes["A"] * sizes["D"]}}


def check_split(state: dict, found: dict) -> None:
    S, A, D, H = (state["sizes"][name] for name in "SADH")
    x = torch.arange(S * H).view(S, H)
    right, cut = x.view(S, A, D), x.view(A, S, D)
    paths = {
        "the right order": [x, right, right.transpose(0, 1), right, x],
        "split without transpose": [x, cut, cut.transpose(0, 1), cut.transpose(0, 1).reshape(S, H)],
        "merge without transpose": [x, right, right.transpose(0, 1), right.transpose(0, 1).reshape(S, H)],
    }
    assert found["numbers"] == paths[state["path"]][state["at"]].flatten().tolist()
    wanted = {"SH": x, "SAD": right, "ASD": right.transpose(0, 1)}[found["shape"]]
    assert found["wanted"] == wanted.flatten().tolist()


@functools.cache
def official_tokenizer():
    return load_tokenizer()


@functools.cache
def some_reviews() -> list[str]:
    return reviews().test.texts[:500]


def make_longest_match(names: list[str]) -> View:
    return figures.longest_match(WordPieceTokenizer.from_checkpoint(), " ".join(["unaffable", *names]))


def text_of_words(chance: random.Random) -> str:
    """Return a few words of the reviews and others, sometimes joined."""
    review = chance.choice(some_reviews()).split()[:6]
    glued = "".join(chance.choices(review, k=3))[:30]
    return " ".join(chance.sample([*review, glued, *chance.sample(WORDS + SPECIAL, 3)], 3))[:150]


def word_state(chance: random.Random) -> dict:
    return {"word": chance.choice(figures.split_words(text_of_words(chance)) or ["time"])}


def check_longest_match(state: dict, found: dict) -> None:
    official, word = official_tokenizer(), state["word"]
    pieces, tries, vocabulary = official.tokenize(word), found["tries"], official.get_vocab()
    assert found["kept"] == pieces
    assert found["ids"][len(tries) :] == official.convert_tokens_to_ids(pieces)
    known = [one for one in tries if one["piece"] in vocabulary]
    assert known == [one for one in tries if one.get("id") is not None]
    if tries and pieces != ["[UNK]"]:
        assert [one["piece"] for one in known] == pieces
    for one, after in pairwise(tries):  # one character less, or on with the rest
        again = (one["end"], len(word)) if one in known else (one["start"], one["end"] - 1)
        assert (after["start"], after["end"]) == again


def merges_state(chance: random.Random) -> dict:
    few = "".join(chance.choices("aab b ", k=40))  # many ties, and pieces that overlap
    return {"text": chance.choice([few, f"{text_of_words(chance)} {text_of_words(chance)}"])}


def check_merges(state: dict, found: list) -> None:
    """The library's trainer joins the same pairs: in a tie it prefers older pieces, in the order that it is given."""
    counts = Counter(word for word in figures.split_words(state["text"]) if word.isalpha())
    begin, last = found[0]["vocabulary"], found[-1]
    assert begin == sorted(begin)  # which decides ties; pieces that continue a word are first
    single = [*begin, *sorted(set("".join(counts)) - set(begin))]  # the trainer also adds each character without ##
    trained = Tokenizer(WordPiece())
    trained.pre_tokenizer = WhitespaceSplit()
    trainer = WordPieceTrainer(
        vocab_size=len(single) + len(found) - 1, special_tokens=single, show_progress=False, limit_alphabet=0
    )
    trained.train_from_iterator([" ".join([word] * count) for word, count in counts.items()], trainer=trainer)
    pieces = sorted(trained.get_vocab(), key=trained.get_vocab().get)
    assert last["vocabulary"][len(begin) :] == pieces[len(single) :]
    spelled = {"".join(piece.removeprefix("##") for piece in word["pieces"]): word["count"] for word in last["words"]}
    assert spelled == counts
    pairs = Counter()
    for word in last["words"]:
        for pair in pairwise(word["pieces"]):
            pairs[pair] += word["count"]
    assert {(pair["left"], pair["right"]): pair["count"] for pair in last["pairs"]} == pairs


def turn_state(chance: random.Random) -> dict:
    at = [chance.randrange(12), chance.randrange(12)]
    return {"angle": 10_000 ** (-chance.randrange(32) / 32), "at": at, "vectors": normal(chance, 2, 2)}


def check_turn(state: dict, found: dict) -> None:
    vectors, angle = torch.tensor(state["vectors"]).double(), state["angle"]
    turned = rotate(vectors, torch.tensor(state["at"]) * angle)
    assert close(found["turned"], turned)
    assert close(found["product"], turned[0] @ turned[1])
    assert close(found["products"], rotate(vectors[0].expand(23, 2), torch.arange(-11, 12) * angle) @ vectors[1])
    assert close(found["product"], found["products"][11 + state["at"][0] - state["at"][1]])


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Turn each row (N, 2) by its angle, as ModernBERT turns a pair of dimensions."""
    cos, sin = angles.cos(), angles.sin()
    return (torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2).double() @ x[:, :, None])[:, :, 0]


@functools.cache
def words_and_model(names: tuple[str, ...]):
    """Return a BERT with random weights, and a tokenizer with each name as a word."""
    lines = Tokenizer(WordLevel({name: number for number, name in enumerate(names)}))
    lines.pre_tokenizer = Split("\n", "removed")
    torch.manual_seed(0)
    config = BertConfig(**SMALL | {"vocab_size": len(names)})
    return BertModel(config).eval(), PreTrainedTokenizerFast(tokenizer_object=lines)


SENTENCES = (3 * torch.randn(2, 2, 4, 3, 3, generator=torch.Generator().manual_seed(4)).double()).softmax(dim=-1)


def make_sentence(names: list[str]) -> View:
    one, other = ([layer[None] for layer in weights] for weights in SENTENCES)
    return sentence_view(one, names, token=1, layer=1, other=(other, [*names[:2], "again"]))


SENTENCE = """(chosen) => {
  Object.assign(state, chosen);
  const given = (layer) => Array.from({ length: heads + 1 }, (_, head) => {
    if (layer === L && head < heads) return 0;
    if (!state.both) return row(state.text, { ...state, layer, head })[state.target];
    return state.all ? movedOnAverage(layer, head) : moved({ ...state, layer, head });
  });
  const all = [...layers, L].map((_, layer) => given(layer));
  return { none: 0, sides: shown().map((text) => row(text, chosen)), given: all };
}"""


def with_means(weights: torch.Tensor) -> torch.Tensor:
    """Return weights (…, L + 1, A + 1, S, S) with the mean of each layer's heads and, last, of all; 0 elsewhere."""
    heads = torch.cat([weights, weights.mean(dim=-3, keepdim=True)], dim=-3)
    rest = torch.zeros_like(heads[..., :1, :, :, :])
    rest[..., -1, :, :] = weights.mean(dim=(-4, -3))[..., None, :, :]
    return torch.cat([heads, rest], dim=-4)


def sentence_state(chance: random.Random) -> dict:
    state = {"text": chance.randrange(2), "layer": chance.randrange(2), "head": chance.randrange(5)}
    state |= {"layer": 2, "head": 4} if chance.random() < 0.2 else {}
    state |= {"token": chance.randrange(3), "target": chance.randrange(3)}
    return state | (
        {"both": True, "text": 1, "all": chance.random() < 0.5} if chance.random() < 0.5 else {"both": False}
    )


def check_sentence(state: dict, found: dict) -> None:
    both, token = state["both"], state["token"]
    weights = with_means(SENTENCES)
    sides = weights if both else weights[state["text"], None]
    assert close(found["sides"], sides[:, state["layer"], state["head"], token])
    moved = (weights[0] - weights[1]).abs().sum(dim=-1) / 2  # (L, A, S)
    moved = moved.mean(dim=-1) if state.get("all") else moved[:, :, token]
    assert close(found["given"], moved if both else sides[0, :, :, token, state["target"]])


@functools.cache
def masked_bert(names: tuple[str, ...]):
    model, tokenizer = words_and_model((*names, "[MASK]"))
    tokenizer.mask_token = "[MASK]"
    return model, tokenizer


def make_path(names: list[str]) -> View:
    return path_view(*masked_bert(tuple(names)), "\n".join(names), word=1)


GOES = "where it goes (measured)"


def path_state(chance: random.Random) -> dict:
    return {"mode": chance.choice([GOES, "where it comes from (an estimate)"]), "word": chance.randrange(3)}


def check_path(state: dict, found: dict) -> None:
    """Take each word away in BERT itself, and split each layer with its own modules, token by token."""
    model, tokenizer = masked_bert(tuple(NAMES))
    model.set_attn_implementation("eager")
    ids = tokenizer("\n".join(NAMES), return_tensors="pt")["input_ids"]
    with torch.no_grad():
        output = model(ids, output_hidden_states=True, output_attentions=True)
        turns = torch.empty(3, len(output.hidden_states), 3)
        for word in range(3):
            others = model(ids.index_fill(1, torch.tensor([word]), 3), output_hidden_states=True).hidden_states
            for depth, (one, other) in enumerate(zip(output.hidden_states, others, strict=True)):
                turns[word, depth] = 1 - torch.cosine_similarity(one[0], other[0], dim=-1)
        share = torch.eye(3)[state["word"]]
        rows = [share]
        for layer, before, weights in reversed(
            [*zip(model.encoder.layer, output.hidden_states, output.attentions, strict=False)]
        ):
            share = share @ split_layer(layer.attention, before[0], weights[0])
            rows.insert(0, share)
    goes = state["mode"] == GOES
    assert close(found["widths"], turns[state["word"]] if goes else torch.stack(rows))
    assert close(found["tests"], turns[state["word"], -1] if goes else turns[:, -1, state["word"]])


def split_layer(attention, before: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the share (S, S) of each token's sum of attention and residual that each token gives it."""
    S = len(before)
    values, dense = attention.self.value(before), attention.output.dense
    shares = torch.zeros(S, S)
    for i in range(S):
        whole = dense(mix(weights[:, i], values)) + before[i]
        for j in range(S):
            alone = torch.zeros_like(weights[:, i]).index_copy(1, torch.tensor([j]), weights[:, i, j : j + 1])
            part = dense(mix(alone, values)) - dense.bias + (before[i] if i == j else 0)
            shares[i, j] = max(0, float(whole.abs().sum() - (whole - part).abs().sum()))
    return shares / shares.sum(dim=1, keepdim=True)


def mix(weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return the average (H,) of values (S, H) by the weights (A, S) of each head."""
    return torch.cat([row @ own for row, own in zip(weights, values.chunk(len(weights), dim=1), strict=True)])


def ribbon_widths(page, ribbons: str = ".ribbon:not(.below)") -> torch.Tensor:
    """Return the widths of a sentence's ribbons, as shares of the widest possible."""
    widths = page.locator(ribbons).evaluate_all(
        "(all) => all.map((e) => e.getAttribute('stroke-width') / e.closest('svg').dataset.whole)"
    )
    return torch.tensor(widths, dtype=torch.float64)


def score_state(chance: random.Random) -> dict:
    return {"at": chance.uniform(-0.5, 1), "scores": normal(chance, 3, spread=5), "nudged": chance.randrange(3)}


NEXT, RANGE = ".steps button:enabled >> nth=1", "[type=range]"
FIGURES = {
    "attention_in_the_plane": Example(
        make_plane, plane_state, check_plane, ("[type=checkbox]", "Space"), pull(".handle", -0.1, 0.1, 6)
    ),
    "sharpness": Example(
        lambda names: figures.sharpness([3.5, 12.6, -4.2], tokens=names),
        score_state,
        check_sharpness,
        ("button:text('× 1')", "Enter"),
        tap(".nudgeable", 2, "[aria-checked=true]"),
    ),
    "next_token": Example(
        lambda names: figures.next_token(LOGITS, [*names, *(f"word {number}" for number in range(17))]),
        next_token_state,
        check_next_token,
        (RANGE, "ArrowRight"),
        pull(".curtain rect", -0.4),
    ),
    "sum_and_scale": Example(
        make_sum_and_scale,
        sum_state,
        check_sum_and_scale,
        (RANGE, "ArrowRight"),
        tap("button", 0, "[aria-pressed=true]"),
    ),
    "mask_painter": Example(
        lambda names: figures.mask_painter([*names, "[PAD]"], rows=names[:2], mask="causal"),
        mask_state,
        check_mask,
        ("[value=padding]", "Space"),
        tap(".cell", 1, "[aria-pressed=true]"),
    ),
    "split_and_merge": Example(
        lambda names: figures.split_and_merge(names, heads=2, head_size=4),
        split_state,
        check_split,
        (NEXT, "Enter"),
        tap("td[data-value]", 5, ".followed"),
    ),
    "rotary_turn": Example(
        lambda names: figures.rotary_turn(tokens=[*names, *(f"word {number}" for number in range(3, 12))]),
        turn_state,
        check_turn,
        (RANGE, "ArrowRight"),
        pull(".handle", -0.1, 0.1),
        "state()",
    ),
    "longest_match": Example(
        make_longest_match,
        word_state,
        check_longest_match,
        (".steps input", "End"),
        tap(".gap", 1, "[aria-pressed=true]"),
    ),
    "merges": Example(
        lambda names: figures.merges([*names, "flies flies tries fly pie"]),
        merges_state,
        check_merges,
        (NEXT, "Enter"),
        pull(".steps input", 0),
    ),
    "sentence_view": Example(
        make_sentence,
        sentence_state,
        check_sentence,
        ("[value=again]", "Space"),
        tap(".word", 2, "[aria-checked=true]"),
        compute=SENTENCE,
    ),
    "path_view": Example(
        make_path, path_state, check_path, (".word[tabindex='0']", "ArrowDown"), tap(".word", 2, "[aria-checked=true]")
    ),
}
