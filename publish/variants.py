"""Print a question on paper for each student, with numbers of their own, and the answers on a page for the lecturer.

    python -m publish.variants students.txt "a secret of yours" > questions.md

The file has a name in each line. With the same secret, a name always gets the same numbers, so a lost page can be
printed again; without it, no student can compute them, or their answers, beforehand.
"""

import math
import random
import sys
from pathlib import Path

MIN_SECRET = 12  # characters, so that nobody finds the secret by trial from a page
QUESTIONS = {
    "3.1": "A query has the shape ({B}, {S}, {D}), a key ({B}, {T}, {D}) and a value ({B}, {T}, {W}). "
    "Which shapes do the attention weights and the contexts have?",
    "2.5": "An embedding layer has {V} tokens, {P} positions, 2 token types, vectors of {H} numbers, and a LayerNorm. "
    "How many parameters does it have?",
    "8.5": "A classifier is right in about {percent} % of cases. How many sentences are needed so that the 95 % "
    "interval of its accuracy is at most {points} percentage points wide on each side?",
    "13.2": "Three texts have {lengths} tokens. How many scores does a head compute for them padded in one batch, "
    "packed into one row, and packed and limited to the same text?",
}


def numbers(name: str, secret: str) -> dict[str, object]:
    """Return a student's numbers: sizes, a percentage, a width and three lengths."""
    draw = random.Random(f"{secret}\n{name}")
    sizes = {letter: draw.randint(2, 9) for letter in "BST"} | {
        letter: draw.choice((16, 24, 32, 48)) for letter in "DW"
    }
    tables = {"V": 1000 * draw.randint(5, 40), "P": draw.choice((128, 256, 512)), "H": draw.choice((64, 128, 256))}
    return (
        sizes
        | tables
        | {"percent": draw.randint(70, 95), "points": draw.randint(1, 4), "lengths": draw.sample(range(4, 20), 3)}
    )


def answers(of: dict) -> dict[str, str]:
    """Return the answers for a student's numbers."""
    p, h, lengths = of["percent"] / 100, of["points"] / 100, of["lengths"]
    scores = (3 * max(lengths) ** 2, sum(lengths) ** 2, sum(length**2 for length in lengths))
    return {
        "3.1": "({B}, {S}, {T}) and ({B}, {S}, {W})".format(**of),
        "2.5": f"{of['H'] * (of['V'] + of['P'] + 2 + 2):,}",
        "8.5": f"{math.ceil(1.96**2 * p * (1 - p) / h**2):,}",
        "13.2": ", ".join(map(str, scores)),
    }


def page(names: list[str], secret: str) -> str:
    """Return the questions of all students, then a table of their answers, in Markdown."""
    lines = []
    for name in names:
        of = numbers(name, secret)
        asked = {
            key: text.format(**of | {"lengths": "{}, {} and {}".format(*of["lengths"])})
            for key, text in QUESTIONS.items()
        }
        lines += [f"## {name}", *(f"{number}. {text}" for number, text in enumerate(asked.values(), 1))]
    lines += ["## Answers, for the lecturer", "\n".join(table(names, secret))]
    return "\n\n".join(lines) + "\n"


def table(names: list[str], secret: str) -> list[str]:
    """Return the lines of the table of answers."""
    rows = [["name", *(f"like {key}" for key in QUESTIONS)], ["---"] * (len(QUESTIONS) + 1)]
    rows += [[name, *answers(numbers(name, secret)).values()] for name in names]
    return [f"| {' | '.join(row)} |" for row in rows]


def main() -> None:
    """Print the page for the names in a file."""
    if len(sys.argv) != 3 or not Path(sys.argv[1]).is_file() or len(sys.argv[2]) < MIN_SECRET:
        sys.exit(
            "usage: python -m publish.variants FILE SECRET, where FILE has the name of a student in each line, and "
            f"SECRET at least {MIN_SECRET} characters that only you know"
        )
    names = [line.strip() for line in Path(sys.argv[1]).read_text("utf-8").splitlines() if line.strip()]
    print(page(names, sys.argv[2]), end="")


if __name__ == "__main__":
    main()
