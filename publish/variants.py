"""Print questions with numbers of their own for each student, and what a lecturer needs to mark them.

    python -m publish.variants written "a secret of yours" students.txt > questions.md

`written` has five questions to answer at home for each name in the file, and `defence`, for the lecturer only, two
changes of parts for each and an attention that may be broken. `exam` prints two versions of a written exam on units 1
to 11, and needs no names. With the same secret, a name always gets the same numbers, so a lost page can be printed
again; without it, no student can compute them, or their answers, beforehand.
"""

import argparse
import hashlib
import math
import re
import sys
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

import torch
from torch.nn.functional import cosine_similarity
from transformers import BertConfig

from exercises.diagnosis.bugs import BUGS, with_bugs
from utils.encoder import EncoderOutput, TransformerEncoder
from utils.support.command_line import Parser
from utils.tokenization import WordPieceTokenizer

MIN_SECRET = 12  # characters; and scrypt makes a guess slow, so that nobody finds the secret by trial from a page
TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
TOKENS = ("the", "cat", "saw", "it", ".", "[SEP]")  # of the figure
RULES = {  # of a head, by the row: which column
    "the token before": lambda row: max(row - 1, 0),
    "the token after": lambda row: min(row + 1, len(TOKENS) - 1),
    "the token itself": lambda row: row,
    "the last token": lambda row: len(TOKENS) - 1,
}
SYLLABLES = ("mo", "ta", "ki", "ru", "le", "so")
EXAM = tuple(TEXTS["questions"])
SUBLAYERS = ("attention", "the feed-forward network")


def different(draw: Random, letters: str, values: Sequence[int]) -> dict[str, int]:
    """Return a value for each letter, no two of them equal."""
    return dict(zip(letters, draw.sample(values, len(letters)), strict=True))


def draw_pieces(draw: Random) -> dict[str, str]:
    """Return a vocabulary, a word of three syllables in which a longer token leads nowhere, and another word."""
    a, b, c = draw.sample(SYLLABLES, 3)
    vocab = sorted([a, a + b, f"##{b}", f"##{c}", f"##{b}{c[0]}", f"##{c[1]}"])
    other = draw.choice((a + c + b[0], a + c + b, a + c[1] + b, b + a))  # two of four are cut
    return {"vocab": ", ".join(vocab), "word": a + b + c, "other": other}


MASKS = {  # and the first and the last output that can change with the token at position p
    "no mask": lambda last, p, r: (0, last),
    "a causal mask": lambda last, p, r: (p, last),
    "a causal mask that is transposed by mistake": lambda last, p, r: (0, p),
    "a window, in which each token sees itself and {r} on either side": lambda last, p, r: (p - r, p + r),
    "a window of {r} on either side, in two layers": lambda last, p, r: (max(0, p - 2 * r), min(last, p + 2 * r)),
    "a mask that hides position {p} from all": lambda last, p, r: (p, p),  # whose own query changes
}


def draw_mask(draw: Random) -> dict[str, int | str]:
    """Return a position, three kinds of mask, and which outputs can change."""
    numbers = {"last": draw.randint(8, 12), "p": draw.randint(3, 5), "r": draw.choice((1, 2))}
    masks = draw.sample([*MASKS], 3)
    ranges = [MASKS[mask](**numbers) for mask in masks]
    answer = "; ".join(f"{low} to {high}" if low < high else f"{low} only" for low, high in ranges)
    named = dict(zip(("first", "second", "third"), [mask.format(**numbers) for mask in masks], strict=True))
    return numbers | named | {"answer": answer}


def draw_figure(draw: Random) -> dict[str, str]:
    """Return a table of attention weights of a head that follows a rule, but for one row."""
    rule, odd, size = draw.choice([*RULES]), draw.choice((2, 3)), len(TOKENS)
    target = draw.choice([column for column in range(size) if column != RULES[rule](odd)])
    lines = [f"| from ↓ to → | {' | '.join(TOKENS)} |", f"|---|{'---:|' * size}"]
    sums = Counter()
    for row, token in enumerate(TOKENS):
        shares = [draw.randint(2, 6) for _ in TOKENS]
        shares[target if row == odd else RULES[rule](row)] += 100 - sum(shares)
        sums += Counter(dict(enumerate(shares)))
        lines.append(f"| **{token}** | {' | '.join(f'{share / 100:.2f}' for share in shares)} |")
    asked = draw.randrange(size)
    found = {"odd": TOKENS[odd], "target": TOKENS[target], "sum": f"{sums[asked] / 100:.2f}"}
    return {"figure": "\n".join(lines), "case": rule, "asked": TOKENS[asked]} | found


def draw_search(draw: Random) -> dict[str, str]:
    """Return a query and three texts as vectors, whose order by dot product may differ from that by cosine."""
    query = draw.choice([(3, 4), (4, 3)])
    texts = draw.sample([(3, 4), (4, 3), (6, 8), (5, 12), (12, 5), (8, 15), (15, 8), (1, 0), (0, 2)], 3)
    dots = [query[0] * x + query[1] * y for x, y in texts]
    cosines = [dot / (5 * math.hypot(*text)) for dot, text in zip(dots, texts, strict=True)]
    if len(set(dots)) < 3 or len({round(cosine, 9) for cosine in cosines}) < 3:
        return draw_search(draw)
    found = {"dots": order(dots), "cosines": order(cosines), "best": f"{max(cosines):.2f}"}
    return {"query": str(query), "texts": ", ".join(map(str, texts))} | found


def order(values: Sequence[float]) -> str:
    """Return the numbers of texts from the largest value to the smallest."""
    return ", ".join(str(index + 1) for index in sorted(range(len(values)), key=lambda index: -values[index]))


def from_pool(pool: str) -> Callable[[Random], dict]:
    """Return a draw of an entry of a pool, with a count and a number of cases in it."""

    def draw_entry(draw: Random) -> dict:
        n = draw.randint(20, 60)
        numbers = {"n": n, "a": round(n * draw.uniform(0.8, 0.95))}
        case, good = draw.choice(list(TEXTS[pool].items()))
        return {"asked": case.format(**numbers), "good": good.format(**numbers), "case": case}

    return draw_entry


@cache
def attention_with(name: str) -> torch.nn.Module:
    """Return the attention of a small encoder with a bug, or right."""
    encoder = TransformerEncoder(BertConfig(hidden_size=4, num_attention_heads=1, num_hidden_layers=1, vocab_size=8))
    return with_bugs(encoder, *[name] * (name != "right")).layers[0].attention


def weights_with(name: str, dots: Sequence[float]) -> str:
    """Return the attention weights of a query that has these dot products, the last one hidden, with a bug or right."""
    query, keys = torch.eye(1, 4), torch.tensor(dots)[:, None] * torch.eye(1, 4)
    mask = torch.arange(len(dots)) < len(dots) - 1
    weights = attention_with(name).compute_attention_weights(
        query[None, None], keys[None, None], mask[None, None, None]
    )
    return ", ".join(f"{weight:.2f}" for weight in weights.flatten().tolist())


def draw_broken(draw: Random) -> dict[str, int | str]:
    """Return dot products, a program's weights, what they show, and the right ones."""
    letters, case = different(draw, "abcd", range(2, 9)), draw.choice([*TEXTS["broken"]])
    dots = [2 * math.log(letter) for letter in letters.values()]
    sentence = BUGS[case].sentence if case in BUGS else ""
    good = f"{TEXTS['broken'][case].format(**letters)} {sentence}".strip()
    return (
        letters
        | {"case": case, "found": weights_with(case, dots), "good": good}
        | {"right": f"Right: {weights_with('right', dots)}."}
    )


def draw_norm(draw: Random) -> dict[str, int]:
    """Return equal numbers and another one, which is above or below them: n - 1 has a whole root."""
    return {"n": draw.choice((2, 5, 10)), "m": draw.randint(3, 9), "s": draw.choice((-2, -1, 1, 2))} | different(
        draw, "gb", range(2, 7)
    )


def draw_luck(draw: Random) -> dict[str, int]:
    """Return how many sentences only a head, and only a rule, gets right: sometimes few are enough."""
    return {"n": draw.randint(60, 90), "k": draw.randint(5, 9), "j": draw.randint(0, 2)}


DRAWS = {  # of numbers, by question
    "broken": draw_broken,
    "weights": lambda draw: different(draw, "abcd", range(1, 9)) | different(draw, "wxyz", range(1, 10)),
    "mask": draw_mask,
    "norm": draw_norm,
    "layer": lambda draw: (
        {"A": draw.choice((4, 6, 8)), "D": 16, "F": draw.choice((2, 3, 4))} | {"case": draw.choice([*LAYERS])}
    ),
    "pieces": draw_pieces,
    "figure": draw_figure,
    "search": draw_search,
    "luck": draw_luck,
    "flaw": from_pool("flaws"),
    "why": from_pool("whys"),
    "why, applied": from_pool("whys_applied"),
    "after unit 3": lambda draw: different(draw, "abcd", range(1, 9)) | {"f": draw.choice((2, 3, 8, 16))},
    "after unit 5": lambda draw: {"layer": draw.randint(1, 6), "around": draw.choice(SUBLAYERS)},
    "after unit 7": lambda draw: {"layer": draw.randint(0, 5), "head": draw.randint(0, 11)},
    "after unit 9": lambda draw: {"n": draw.randint(40, 60), "k": draw.randint(6, 14), "j": draw.randint(0, 5)},
    "after unit 11": lambda draw: {"V": 1000 * draw.randint(8, 40), "loss": draw.randint(30, 50) / 10},
}


def average(weights: Sequence[int], values: Sequence[int]) -> Fraction:
    """Return the average of values with these weights, divided by their sum."""
    return Fraction(sum(map(int.__mul__, weights, values)), sum(weights))


def cut(vocab: str, *words: str) -> str:
    """Return the pieces of words."""
    ids = {token: number for number, token in enumerate(vocab.split(", "))}
    return "; ".join(" ".join(WordPieceTokenizer.word_pieces(word, ids)) for word in words)


def sharpened(scores: Sequence[int], factor: int) -> tuple[float, float]:
    """Return the largest weight of scores multiplied by a factor, and its gradient with respect to its own score."""
    weight = 1 / sum(math.exp(factor * (score - max(scores))) for score in scores)
    return weight, factor * weight * (1 - weight)


def after_unit_3(a: int, b: int, c: int, d: int, f: int) -> str:
    """Return what a factor does to the largest weight and to the gradient that is left."""
    (before, slope), (after, left) = (sharpened((a, b, c, d), factor) for factor in (1, f))
    verdict = "hardly anything is learned any more" if left < slope / 10 else "there is still something to learn"
    return (
        f"{before:.2f} and {after:.2f}. The gradient with respect to its own score is f · w (1 − w): {slope:.3f} and "
        f"{left:.3f}, so {verdict}."
    )


@cache
def read_sentences() -> tuple[TransformerEncoder, list[EncoderOutput]]:
    """Return the embedded checkpoint, and its states and attention weights for the sentences of units 5 and 7."""
    tokenizer, encoder = WordPieceTokenizer.from_checkpoint(), TransformerEncoder.from_checkpoint()
    with torch.inference_mode():
        return encoder, [
            encoder(**tokenizer(text), output_attentions=True, output_hidden_states=True) for text in TEXTS["sentences"]
        ]


def after_unit_5(layer: int, around: str) -> str:
    """Return how similar tokens stay to themselves in a layer, with its sums and without the one around a sublayer."""
    encoder, outputs = read_sentences()
    module, kept = encoder.layers[layer - 1], [sublayer != around for sublayer in SUBLAYERS]
    similar = []
    with torch.inference_mode():
        for before in (output.hidden_states[layer - 1] for output in outputs):
            attended, _ = module.attention(before)
            for first, second in ((True, True), kept):
                middle = module.attention_norm(first * before + attended)
                after = module.feed_forward_norm(second * middle + module.feed_forward(middle))
                similar.append(cosine_similarity(before, after, dim=-1)[0, 1:-1])
    whole, without = (torch.cat(similar[which::2]).mean() for which in (0, 1))
    return (
        f"On sentences of ours, {whole:.2f} with the sum, and {without:.2f} without: {around} proposes a change in a "
        "direction of its own, which says little of the token. A good answer explains its own numbers."
    )


def after_unit_7(layer: int, head: int) -> str:
    """Return the rule by position that a head follows most often between words, and how often."""
    _, outputs = read_sentences()
    columns = [output.attentions[layer][0, head, 1:-1, 1:-1].argmax(dim=-1).tolist() for output in outputs]
    away = Counter(column - row for found in columns for row, column in enumerate(found))
    (best, hits), total = away.most_common(1)[0], away.total()
    rule = f"{abs(best)} {'ahead' if best > 0 else 'back'}" if best else "the token itself"
    return (
        f"On sentences of ours, [CLS] and [SEP] left out, the best rule is “{rule}”: there {hits} of {total} tokens "
        "look most. A good answer names a rule that is as strong on its sentences, and counts both where they differ."
    )


def layer_sizes(A: int, D: int, F: int, case: str) -> str:
    """Return the parameters of an encoder layer, before and after a change."""
    H, I = A * D, F * A * D  # noqa: E741
    before = 4 * (H * H + H) + 2 * H * I + I + H + 4 * H
    return f"{before:,}; {before - LAYERS[case](H, I, D):,}"


LAYERS = {  # changes of a layer, and how many parameters they save
    "twice as many heads, each half as large": lambda H, I, D: 0,  # noqa: E741
    "linear layers without biases": lambda H, I, D: 5 * H + I,  # noqa: E741
    "a single key and a single value that all heads share": lambda H, I, D: 2 * (H + 1) * (H - D),  # noqa: E741
    "half as many heads, as large as before, in tokens as wide as before": lambda H, I, D: 4 * H * H // 2 + 3 * H // 2,  # noqa: E741
}


def norm(n: int, m: int, s: int, g: int, b: int) -> str:
    """Return the equal numbers and the other one, normalised, then scaled and shifted."""
    root, sign = math.isqrt(n - 1), s // abs(s)
    pair = Fraction(-sign, root), Fraction(sign * root)
    return "; ".join(f"{equal} and {other}" for equal, other in (pair, [g * x + b for x in pair]))


def luck(k: int, j: int) -> str:
    """Return whether k against j tosses of a coin are more than luck."""
    p = min(1, 2 * sum(math.comb(k + j, i) for i in range(j + 1)) / 2 ** (k + j))
    return f"{k} against {j}: p = {p:.3f}, {'more than luck' if p < 0.05 else 'may be luck'}"


ANSWERS = {
    "broken": lambda good, right, **numbers: f"{good} {right}",
    "weights": lambda a, b, c, d, w, x, y, z: f"{average((a, b, c, d), (w, x, y, z))}; {average((a, b, c), (w, x, y))}",
    "mask": lambda answer, **numbers: answer,
    "norm": norm,
    "layer": layer_sizes,
    "pieces": lambda vocab, word, other: cut(vocab, word, other),
    "figure": lambda figure, case, asked, odd, target, sum: f"{case}; “{odd}” looks at “{target}”; {sum}",
    "search": lambda query, texts, dots, cosines, best: f"{dots}; {cosines}; {best}",
    "luck": lambda n, k, j: f"{luck(k, j)}; of {k + j}",
    "flaw": lambda asked, good, case: good,
    "why": lambda asked, good, case: good,
    "why, applied": lambda asked, good, case: good,
    "after unit 3": after_unit_3,
    "after unit 5": after_unit_5,
    "after unit 7": after_unit_7,
    "after unit 9": lambda n, k, j: f"Only the {k + j} queries that one of them alone finds decide. {luck(k, j)}.",
    "after unit 11": lambda V, loss: (
        f"ln {V} = {math.log(V):.2f}; frequencies of words, and counts of neighbours; the loss with the neighbours "
        "exchanged for those of other sentences."
    ),
}


def stretch(secret: str) -> str:
    """Return a secret that takes a tenth of a second to compute, which makes guessing slow."""
    return hashlib.scrypt(secret.encode(), salt=b"anatomy", n=2**15, r=8, p=1, maxmem=2**26).hex()


def ask(names: Sequence[str], secret: str, kind: str, keys: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Return each name's questions and answers; no two versions of an exam share a part of an answer, or a case."""
    rows, taken, secret = [], set(), stretch(secret)
    for name in names:
        rows.append([])
        for key in keys:
            draw, parts = Random(f"{secret}\n{name}\n{key}"), set()
            while not parts or (kind == "exam" and not taken.isdisjoint(parts)):
                numbers = DRAWS[key](draw)
                text = (TEXTS["questions"] | TEXTS["written"])[key].strip().format(**numbers)
                answer = ANSWERS[key](**numbers)
                parts = {(key, *part) for part in enumerate([numbers.get("case", text), *answer.split("; ")])}
            taken |= parts
            rows[-1].append((text, answer))
    return rows


def page(names: Sequence[str], secret: str, kind: str) -> str:
    """Return the questions of all names, then a table of their answers, in Markdown."""
    keys = EXAM if kind == "exam" else tuple(TEXTS["written"])
    rows, lines = ask(names, secret, kind, keys), []
    for name, row in zip(names, rows, strict=True):
        lines += [f"## {name}", *[TEXTS["rules"]["exam"].strip()] * (kind == "exam")]
        lines += [f"{number}. {text}" for number, (text, _) in enumerate(row, 1)]
    table = [["question", "", "answer"], ["---"] * 3]  # by question, as one marks
    for number, key in enumerate(keys):
        table += [[f"{number + 1}. {key}", name, row[number][1]] for name, row in zip(names, rows, strict=True)]
    lines += ["## Answers, for the lecturer", *[TEXTS["rules"]["marking"].strip()] * (kind == "exam")]
    lines.append("\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in table))
    return "\n\n".join(lines) + "\n"


def changes() -> list[list[str]]:
    """Return the changes of parts: exercise, code, words, what differs, and why."""
    return [line.split(" | ") for line in TEXTS["defence"]["changes"].strip().splitlines()]


def defences(names: Sequence[str], secret: str) -> str:
    """Return a page for the lecturer: for each name changes of two parts and numbers, with good answers."""
    lines, secret = ["# Defences, for the lecturer"], stretch(secret)
    for name in names:
        draw = Random(f"{secret}\n{name}\ndefence")
        first = draw.choice(changes())
        second = draw.choice([change for change in changes() if change[0] != first[0]])
        asked = [
            f"- **{n}: {what}.** {TEXTS['effects'][kind]} Why: {why}." for n, _, what, kind, why in (first, second)
        ]
        numbers = DRAWS["broken"](Random(f"{secret}\n{name}\nbroken"))
        question = re.sub(r" \(\d\)", "", TEXTS["questions"]["broken"].format(**numbers))
        asked.append(f"- **Numbers.** {question} {ANSWERS['broken'](**numbers)}")
        lines += [f"## {name}", "\n".join(asked)]
    return "\n\n".join(lines) + "\n"


def read_names(path: Path) -> list[str]:
    """Return the names in a file, one in each line, as Excel or an editor saves it; ValueError for a name twice."""
    content = path.read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        lines = unicodedata.normalize("NFC", content.decode(encoding)).splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read ({error}): save it as UTF-8") from error
    names = [" ".join(line.split()) for line in lines if line.strip()]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise ValueError(f"{path} has {', '.join(twice)} more than once: add a second name or a number")
    return names


def main() -> None:
    """Print a page."""
    parser = Parser(
        prog="python -m publish.variants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=["written", "defence", "exam"])
    parser.add_argument("secret", help=f"at least {MIN_SECRET} characters that only you know")
    parser.add_argument("students", nargs="?", type=Path, help="a file with a name in each line")
    options = parser.parse_args()
    if len(options.secret.strip()) < MIN_SECRET:
        parser.error(f"the secret needs at least {MIN_SECRET} characters that only you know")
    names = ["Version A", "Version B"]
    if options.kind != "exam":
        if not (options.students and options.students.is_file()):
            parser.error(f"{options.kind} needs a file with the name of a student in each line, not {options.students}")
        try:
            names = read_names(options.students)
        except ValueError as error:
            parser.error(str(error))
    made = defences(names, options.secret) if options.kind == "defence" else page(names, options.secret, options.kind)
    print(made, end="")


if __name__ == "__main__":
    sys.exit(main())
