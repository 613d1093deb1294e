"""Print questions with numbers of their own for each student, and what a lecturer needs to mark them.

    python -m publish.variants paper "a secret of yours" students.txt > questions.md

`paper` has four short questions for each name in the file, `written` five to answer at home, and `defence` two changes
of parts for each, for the lecturer only. `exam` prints two versions of a written exam, and needs no names. With the
same secret, a name always gets the same numbers, so a lost page can be printed again; without it, no student can
compute them, or their answers, beforehand.
"""

import argparse
import math
import sys
import tomllib
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

from utils.support.command_line import Parser
from utils.tokenization import WordPieceTokenizer

MIN_SECRET = 12  # characters, so that nobody finds the secret by trial from a page
TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
TOKENS = ("the", "cat", "saw", "it", ".", "[SEP]")  # of the figure
SYLLABLES = ("mo", "ta", "ki", "ru", "le", "so")
PAPER = ("shapes", "embeddings", "interval", "packing")
EXAM = tuple(name for name in TEXTS["questions"] if name not in ("interval", "packing"))


def different(draw: Random, letters: str, values: Sequence[int]) -> dict[str, int]:
    """Return a value for each letter, no two of them equal."""
    return dict(zip(letters, draw.sample(values, len(letters)), strict=True))


def draw_pieces(draw: Random) -> dict[str, str]:
    """Return a vocabulary, a word of three syllables in which a longer token leads nowhere, and another word."""
    a, b, c = draw.sample(SYLLABLES, 3)
    vocab = sorted([a, a + b, f"##{b}", f"##{c}", f"##{b}{c[0]}", f"##{c[1]}"])
    return {"vocab": ", ".join(vocab), "word": a + b + c, "other": a + c + b[0]}


def draw_figure(draw: Random) -> dict[str, str]:
    """Return a table of attention weights of a head that looks at the token before, but for one row."""
    odd, target, size = draw.choice((3, 4)), draw.choice((0, 1)), len(TOKENS)
    lines = [f"| from ↓ to → | {' | '.join(TOKENS)} |", f"|---|{'---:|' * size}"]
    for row, token in enumerate(TOKENS):
        shares = [draw.randint(2, 6) for _ in TOKENS]
        best = target if row == odd else max(row - 1, 0)
        shares[best] += 100 - sum(shares)
        lines.append(f"| **{token}** | {' | '.join(f'{share / 100:.2f}' for share in shares)} |")
    return {"figure": "\n".join(lines), "odd": TOKENS[odd], "target": TOKENS[target]}


def from_pool(pool: str) -> Callable[[Random], dict]:
    """Return a draw of an entry of a pool, with a count and a number of cases in it."""

    def draw_entry(draw: Random) -> dict:
        n = draw.randint(20, 60)
        numbers = {"n": n, "a": round(n * draw.uniform(0.8, 0.95))}
        asked, good = draw.choice(list(TEXTS[pool].items()))
        return {"asked": asked.format(**numbers), "good": good.format(**numbers)}

    return draw_entry


DRAWS = {  # of numbers, by question
    "shapes": lambda draw: different(draw, "BST", range(2, 10)) | different(draw, "DW", (16, 24, 32, 48)),
    "embeddings": lambda draw: (
        {"V": 1000 * draw.randint(5, 40), "P": 128 * draw.randint(1, 4)} | {"H": draw.choice((64, 128))}
    ),
    "interval": lambda draw: {"percent": draw.randint(70, 95), "points": draw.randint(1, 4)},
    "packing": lambda draw: different(draw, "klm", range(4, 20)),
    "weights": lambda draw: different(draw, "abcd", range(1, 9)) | different(draw, "wxyz", range(1, 10)),
    "mask": lambda draw: {"last": draw.randint(6, 12), "p": draw.randint(2, 4)},
    "norm": lambda draw: {"m": draw.randint(7, 9), "s": draw.randint(2, 6)} | different(draw, "gb", range(2, 6)),
    "layer": lambda draw: {"H": (H := draw.choice((64, 96, 128, 192))), "A": H // 16, "I": draw.choice((2, 3, 4)) * H},
    "pieces": draw_pieces,
    "perplexity": lambda draw: {"i": draw.randint(1, 3), "j": draw.randint(4, 5), "k": draw.randint(6, 9)},
    "names": lambda draw: {"r": (r := draw.randint(6, 12)), "p": r + draw.randint(1, 6), "g": r + draw.randint(7, 12)},
    "figure": draw_figure,
    "flaw": from_pool("flaws"),
    "baseline": from_pool("baselines"),
    "after unit 3": lambda draw: different(draw, "abcd", range(1, 9)) | {"f": draw.choice((3, 5, 8, 16))},
    "after unit 5": lambda draw: {
        "layer": draw.randint(1, 4),
        "part": draw.choice(("attention", "the feed-forward part")),
    },
    "after unit 7": lambda draw: {"layer": draw.randint(0, 5), "head": draw.randint(0, 11)},
    "after unit 9": lambda draw: {"n": (n := draw.randint(40, 60)), "a": n - draw.randint(5, 6), "b": n - 12},
    "after unit 11": lambda draw: {"V": 1000 * draw.randint(8, 40), "loss": draw.randint(30, 50) / 10},
}


def average(weights: Sequence[int], values: Sequence[int]) -> Fraction:
    """Return the average of values with these weights, divided by their sum."""
    return Fraction(sum(map(int.__mul__, weights, values)), sum(weights))


def cut(vocab: str, *words: str) -> str:
    """Return the pieces of words."""
    ids = {token: number for number, token in enumerate(vocab.split(", "))}
    return "; ".join(" ".join(WordPieceTokenizer.word_pieces(word, ids)) for word in words)


def largest(scores: Sequence[int], factor: int) -> str:
    """Return the largest attention weight of scores multiplied by a factor."""
    return f"{1 / sum(math.exp(factor * (score - max(scores))) for score in scores):.2f}"


ANSWERS = {
    "shapes": lambda B, S, T, D, W: f"({B}, {S}, {T}) and ({B}, {S}, {W})",
    "embeddings": lambda V, P, H: f"{H * (V + P + 2 + 2):,}",
    "interval": lambda percent, points: f"{math.ceil(1.96**2 * percent * (100 - percent) / points**2):,}",
    "packing": lambda k, l, m: f"{3 * max(k, l, m) ** 2}, {(k + l + m) ** 2}, {k**2 + l**2 + m**2}",  # noqa: E741
    "weights": lambda a, b, c, d, w, x, y, z: f"{average((a, b, c, d), (w, x, y, z))}; {average((a, b, c), (w, x, y))}",
    "mask": lambda last, p: f"all, 0 to {last}; {p} to {last}; none",
    "norm": lambda m, s, g, b: f"-1 and 1; {b - g} and {b + g}",
    "layer": lambda H, A, I: f"{4 * (H * H + H) + 2 * H * I + I + H + 4 * H:,}; as many",  # noqa: E741
    "pieces": lambda vocab, word, other: cut(vocab, word, other),
    "perplexity": lambda i, j, k: f"{Fraction(i + j + k, 3)} · ln 2; 2^({Fraction(i + j + k, 3)})",
    "names": lambda r, p, g: f"{Fraction(r, p)}, {Fraction(r, g)}, {Fraction(2 * r, p + g)}",
    "figure": lambda figure, odd, target: (
        f"The token before; “{odd}” looks at “{target}”. No, only the rows do. Other sentences, chosen beforehand, in "
        "which this rule and the story differ."
    ),
    "flaw": lambda asked, good: good,
    "baseline": lambda asked, good: good,
    "after unit 3": lambda a, b, c, d, f: (
        f"{largest((a, b, c, d), 1)} and {largest((a, b, c, d), f)}. The gradient of a weight w with respect to its "
        "score is w (1 − w): where one weight is nearly 1, nothing is learned."
    ),
    "after unit 5": lambda layer, part: (
        "On average about 0.9 with the sum, 0 to 0.2 without: the part proposes a change in a direction of its own."
    ),
    "after unit 7": lambda layer, head: "A claim that can be refuted, a rule that is a fair rival, and both counts.",
    "after unit 9": lambda n, a, b: (
        f"Only queries that one of them alone finds decide (McNemar): {a - b} against 0 is more than luck (p < 0.05), "
        f"and {n - b} against {n - a} may be luck."
    ),
    "after unit 11": lambda V, loss: (
        f"ln {V} = {math.log(V):.2f}; frequencies of words, and counts of neighbours; the loss with the neighbours "
        "exchanged for those of other sentences."
    ),
}


def ask(names: Sequence[str], secret: str, kind: str, keys: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Return each name's questions and answers; in an exam, no two versions share a question."""
    rows, taken = [], set()
    for name in names:
        rows.append([])
        for key in keys:
            draw, text = Random(f"{secret}\n{name}\n{key}"), ""
            while not text or (kind == "exam" and text in taken):
                numbers = DRAWS[key](draw)
                text = (TEXTS["questions"] | TEXTS["written"])[key].strip().format(**numbers)
            taken.add(text)
            rows[-1].append((text, ANSWERS[key](**numbers)))
    return rows


def page(names: Sequence[str], secret: str, kind: str) -> str:
    """Return the questions of all names, then a table of their answers, in Markdown."""
    keys = {"paper": PAPER, "exam": EXAM, "written": tuple(TEXTS["written"])}[kind]
    rows, lines = ask(names, secret, kind, keys), []
    for name, row in zip(names, rows, strict=True):
        lines += [f"## {name}", *(f"{number}. {text}" for number, (text, _) in enumerate(row, 1))]
    table = [["", *names], ["---"] * (len(names) + 1)]
    table += [[f"{number}. {key}", *(row[number - 1][1] for row in rows)] for number, key in enumerate(keys, 1)]
    lines += ["## Answers, for the lecturer", "\n".join(f"| {' | '.join(row)} |" for row in table)]
    return "\n\n".join(lines) + "\n"


def changes() -> list[list[str]]:
    """Return the changes of parts: exercise, code, words, what differs, and why."""
    return [line.split(" | ") for line in TEXTS["defence"]["changes"].strip().splitlines()]


def defences(names: Sequence[str], secret: str) -> str:
    """Return a page for the lecturer: for each name changes of two parts, with good answers."""
    lines = ["# Defences, for the lecturer"]
    for name in names:
        draw = Random(f"{secret}\n{name}\ndefence")
        first = draw.choice(changes())
        second = draw.choice([change for change in changes() if change[0] != first[0]])
        asked = [
            f"- **{n}: {what}.** {TEXTS['effects'][kind]} Why: {why}." for n, _, what, kind, why in (first, second)
        ]
        lines += [f"## {name}", "\n".join(asked)]
    return "\n\n".join(lines) + "\n"


def main() -> None:
    """Print a page."""
    parser = Parser(
        prog="python -m publish.variants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=["paper", "written", "defence", "exam"])
    parser.add_argument("secret", help=f"at least {MIN_SECRET} characters that only you know")
    parser.add_argument("students", nargs="?", type=Path, help="a file with a name in each line")
    options = parser.parse_args()
    if len(options.secret) < MIN_SECRET:
        parser.error(f"the secret needs at least {MIN_SECRET} characters that only you know")
    names = ["Version A", "Version B"]
    if options.kind != "exam":
        if not (options.students and options.students.is_file()):
            parser.error(f"{options.kind} needs a file with the name of a student in each line, not {options.students}")
        names = [line.strip() for line in options.students.read_text("utf-8").splitlines() if line.strip()]
    made = defences(names, options.secret) if options.kind == "defence" else page(names, options.secret, options.kind)
    print(made, end="")


if __name__ == "__main__":
    sys.exit(main())
