"""The parts of microbert.py that a reader types in type_bert.html, with the cases and mistakes that check each.

Python in the page runs this file, so it needs the standard library only. What is right comes from microbert.py itself:
its own function answers the cases. A mistake is `answer | hint`, as in exercises/mistakes.py: an answer that agrees
with it in every case gets its hint. The answer is the body of the function, or edits `old => new` of our lines, with
`;;` between.
"""

import random
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from exercises.mistakes import read_table


class Gap(NamedTuple):
    """One part: the cases for its function, and what is given.

    `given` counts the statements that stay above the gap, `blank` edits our lines into those that the box begins with,
    `others` replaces other functions of the file in the cases, and `remark` is one more case, with what to say to a
    right answer that fails there.
    """

    cases: list[tuple]
    given: int = 0
    blank: str = ""
    others: Mapping = MappingProxyType({})
    remark: tuple | None = None


class Tiny:
    """The weights of a model that is so small that a case fits in the head."""

    def __init__(self, epsilon: float = 0.01):
        self.config = {"num_hidden_layers": 3, "num_attention_heads": 2, "layer_norm_eps": epsilon}

    def rows(self, name: str, chosen=None) -> list[list[float]]:
        """Return the number itself for a word, zeros for its position, and for LayerNorm 1 and 0, or random numbers."""
        if chosen is not None:
            return [[float(i) if "word" in name else 0.0] for i in chosen]
        if name.startswith("plain"):
            return [[float(name.endswith("weight"))] * 2]
        return vectors(1, 4, name)


def vectors(count: int, size: int, seed) -> list[list[float]]:
    """Return random vectors."""
    chance = random.Random(seed)
    return [[round(chance.uniform(-3, 3), 1) for _ in range(size)] for _ in range(count)]


def layer(x, model, name: str):
    """Double each number and add the layer's: so `encode` shows which layers ran, in which order."""
    number = name.removeprefix("encoder.layer.")
    if not number.isdigit():
        raise KeyError(name)
    return [[2 * a + int(number) for a in vector] for vector in x]


PIECES = re.findall(r"\S+", "play ##ing ##er un ##play ##able a ##b ##c ab ##ab token ##ization ##s i")
VOCAB = dict(zip(PIECES, range(len(PIECES)), strict=True))
SHORT = {"play": 0, "##ing": 1}

GAPS = {
    "dot": Gap(
        [([1, 2, 3], [4, 5, 6]), ([0.5], [-4.0]), ([3.0, 0.0, -1.0, 2.0], [1.5, 9.0, 2.0, 0.5]), ([1.0] * 7, [0.1] * 7)]
    ),
    "softmax": Gap(
        [([0.0, 0.0],), ([1.0, 2.0, 3.0],), ([-1.5, 0.5, 2.5, 0.5],), ([7.0],), ([-3.0, -4.0],)],
        remark=(
            ([1000.0, 999.0],),
            "One remark: with a score of 1000 your powers overflow. Ours first subtracts the largest score, which "
            "leaves all weights as they are.",
        ),
    ),
    "weights_of": Gap(
        [
            ([2.0, 0.0, 0.0, 0.0], [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]),
            ([1.0, 2.0, 0.0, 1.0], vectors(3, 4, 1)),
            ([-0.4, 2.7], vectors(5, 2, 3)),
            ([1.0, -1.0, 0.5], [[1.0, 0.0, 2.0]] * 2 + vectors(2, 3, 4)),
        ]
    ),
    "average": Gap(
        [
            ([0.25, 0.75], [[4.0, 0.0], [0.0, 4.0]]),
            ([0.7, 0.1, 0.2], vectors(3, 3, 5)),
            ([0.0, 1.0, 0.0], vectors(3, 2, 6)),
            ([1.0], vectors(1, 2, 7)),
        ]
    ),
    "add": Gap([([[1, 2]], [[10, 20]]), (vectors(3, 2, 8), vectors(3, 2, 9)), (vectors(2, 4, 10), vectors(2, 4, 11))]),
    "norm": Gap(
        [
            ([[1.0, 3.0]], Tiny(0.0), "plain"),
            (vectors(2, 4, 12), Tiny(), "a.LayerNorm"),
            ([[3.0, 3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 1.0], [0.1, 0.1, 0.1, 0.2]], Tiny(), "b.LayerNorm"),
        ],
        given=1,
        blank="math.sqrt(sum((a - mean) ** 2 for a in vector) / len(vector) + "
        'model.config.get("layer_norm_eps", 1e-12)) => ... ;; [(a - mean) / std * s + b => [...',
    ),
    "encode": Gap(
        [([1], Tiny()), ([3, 1], Tiny()), ([2, 2, 5], Tiny())],
        given=3,
        blank='x = encoder_layer(x, model, f"encoder.layer.{layer}") => ...',
        others={"encoder_layer": layer, "norm": lambda x, model, name: x},
    ),
    "pieces_of": Gap(
        [
            ("playing", SHORT),
            *(
                (word, VOCAB)
                for word in ("play", "playable", "unplayable", "abc", "abab", "tokenizations", "xyz", "playx")
            ),
            ("ab" * 51, VOCAB),
        ],
        blank="next((end for end in range(len(word), start, -1) if prefix + word[start:end] in vocab), None) => ...",
    ),
}

MISTAKES = {
    "dot": """
        return [x * y for x, y in zip(a, b)] | These are the products. Add them up: the answer is one number.
        return sum(a) * sum(b)
        return sum(x * y for x in a for y in b) | Here every number meets every other one. Pair the first with the
            first, the second with the second: zip(a, b).
        return sum(x + y for x, y in zip(a, b))
        return sum(a) + sum(b) | You add the two numbers of each pair. Multiply them.
        return a[0] * b[0]
        for x, y in zip(a, b):\\n    return x * y | Only the first pair counts here. Go through all pairs, and return
            after the loop.
        return a[-1] * b[-1] | Only the last pair counts here: each pass replaces the one before. Add to the total: +=.
        return sum(x * y for x, y in zip(a, b)) / len(a) | This is the mean of the products. Do not divide.
        return max(x * y for x, y in zip(a, b)) | This is the largest product. Add all of them up.
        return math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b)) | This is the product of the two
            lengths. Multiply number by number.
        return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b)) | This is the
            cosine. The dot product is not divided by the lengths.
        return sum(x * x for x in a) | The second vector has no effect.
        return sum(x * y for x, y in zip(a[1:], b[1:])) | Indices begin at 0: the first pair is missing.
        return sum(x * y for x, y in zip(a[:-1], b[:-1])) | The last pair is missing: range(len(a)) already stops before
            len(a).
        return 1 + sum(x * y for x, y in zip(a, b)) | Your answer is too large by 1: begin the sum at 0.
        return int(sum(x * y for x, y in zip(a, b)))
        return round(sum(x * y for x, y in zip(a, b))) | Keep the decimals.
    """,
    "softmax": """
        return [s / sum(scores) for s in scores] | Scores can be negative, so a share of their sum is not enough. Take
            math.exp of each score first.
        return [math.exp(s) for s in scores]
        return [math.exp(s - max(scores)) for s in scores]
        return [math.exp(s) / max(math.exp(t) for t in scores) for s in scores] | These are positive, but they must also
            sum to 1. Divide each power by the sum of all.
        return [s / max(scores) for s in scores] | Take math.exp of each score first, and divide by the sum of all.
        return [math.exp(s) / math.exp(scores[-1]) for s in scores] | You divide by the last power only: each pass
            replaces the one before. Add up all of them: +=.
        return [math.exp(s) / len(scores) for s in scores] | Divide by the sum of the powers, not by their number.
        return [math.exp(s) / sum(scores) for s in scores] | Divide by the sum of the powers, not by that of the scores.
        return [math.exp(s) / math.exp(sum(scores)) for s in scores] | The power of the sum is not the sum of the
            powers: add up the powers.
        return [2 ** s / sum(2 ** t for t in scores) for s in scores] | The base is e = 2.718…: math.exp(score).
        return [math.exp(-s) / sum(math.exp(-t) for t in scores) for s in scores] | A larger score must get a larger
            weight. There is a minus too many.
        return [s * s / sum(t * t for t in scores) for s in scores]
        return [abs(s) / sum(map(abs, scores)) for s in scores] | This makes −2 as large as 2. Take math.exp of each
            score.
        return [math.exp(s / sum(scores)) for s in scores] | Divide after math.exp, not inside it.
        return [math.exp(s) // sum(math.exp(t) for t in scores) for s in scores] | The decimals are lost. Divide with /.
        return [float(s == max(scores)) for s in scores] | The largest score takes everything here. Softmax leaves each
            score a share.
        return [1 / len(scores) for s in scores] | All weights are equal here: the scores have no effect.
        return [1 / (1 + math.exp(-s)) for s in scores] | This is the sigmoid of each score alone. The weights of
            softmax sum to 1.
        return sum(math.exp(s) for s in scores) | This is the sum of the powers. Return a list: each power divided by
            it.
        total = sum(math.exp(s) for s in scores)\\nfor s in scores:\\n    return [math.exp(s) / total] | The loop ends
            at its first return. Collect all weights in a list, and return that.
        return [round(math.exp(s) / sum(math.exp(t) for t in scores), 2) for s in scores] | Do not round: the weights
            would no longer sum to 1.
    """,
    "weights_of": """
        return softmax([dot(query, key) for key in keys]) | Almost. Divide each score by √D, where D = len(query):
            without it, attention is too sharp.
        return softmax([dot(query, key) / len(query) for key in keys]) | Divide by the square root of D, not by D:
            math.sqrt(len(query)).
        return softmax([dot(query, key) / math.sqrt(len(keys)) for key in keys]) | len(keys) is the number of tokens. D
            is the number of coordinates of a query: len(query).
        return softmax([dot(query, key) * math.sqrt(len(query)) for key in keys]) | Divide by √D instead of multiplying:
            the scores must become smaller.
        return [dot(query, key) / math.sqrt(len(query)) for key in keys] | These are the scores. Softmax turns them into
            weights that sum to 1.
        return [dot(query, key) for key in keys] | These are the scores, not yet divided by √D. Then softmax turns them
            into weights.
        s = [dot(query, key) / math.sqrt(len(query)) for key in keys]\\nreturn [a / sum(s) for a in s] | A share of the
            sum is not softmax: scores can be negative. Use softmax(scores).
        return [w / math.sqrt(len(query)) for w in softmax([dot(query, key) for key in keys])] | Divide the scores
            before softmax, not the weights after it: weights must sum to 1.
        return softmax(dot(query, key) for key in keys) | softmax reads its scores several times, so it needs a list:
            softmax([…]), with brackets.
        for key in keys:\\n    return dot(query, key)
        for key in keys:\\n    return dot(query, key) / math.sqrt(len(query))
        return [dot(query, keys[0]) / math.sqrt(len(query))]
        return softmax([dot(query, keys[0])]) | The loop ends at its first return. Collect the scores of all keys in a
            list, and put `return softmax(…)` below the loop, further left.
        return softmax([1.0, 0.0]) | These are the weights of the example only. Compute them from query and keys.
        return [softmax([dot(query, key)])[0] for key in keys]
        return [softmax([dot(query, key)]) for key in keys] | Softmax of a single score is always 1. Give softmax the
            list of all scores.
        return softmax([dot(key, key) / math.sqrt(len(query)) for key in keys]) | The query has no effect. Compare it
            with each key.
        return softmax([dot(key, keys[0]) / math.sqrt(len(query)) for key in keys]) | This compares the keys with the
            first key. Compare them with the query.
        return softmax([dot(query, query) / math.sqrt(len(query)) for key in keys]) | The keys have no effect. Compare
            the query with each of them.
        return softmax([dot(query, key) // math.sqrt(len(query)) for key in keys]) | // drops the decimals. Divide with
            /.
        return softmax([-math.dist(query, key) for key in keys]) | A distance is another measure. BERT takes the dot
            product of query and key.
        return softmax([dot(query, key) / math.sqrt((dot(query, query) * dot(key, key)) or 1) for key in keys]) | This
            is the cosine. BERT keeps the lengths: divide by √D only.
        return softmax([dot(query, key) / 8 for key in keys])
        return softmax([dot(query, key) / 2 for key in keys])
        return softmax([dot(query, key) / math.sqrt(32) for key in keys])
        return softmax([dot(query, key) / 32 for key in keys])
        return softmax([dot(query, key) / math.sqrt(384) for key in keys]) | A fixed number fits heads of one size only.
            D is the size of this head's query: math.sqrt(len(query)).
        return softmax([sum(query) * sum(key) / math.sqrt(len(query)) for key in keys]) | The score is dot(query, key),
            number by number.
    """,
    "average": """
        return [sum(column) / len(column) for column in zip(*values)]
        return [sum(column) for column in zip(*values)] | The weights have no effect. Multiply each vector by its
            weight.
        return [w * sum(value) for w, value in zip(weights, values)]
        return [dot(weights, value) for value in values] | This goes along each vector. Go down the columns:
            zip(*values) takes one number from every vector.
        return [sum(value) / len(value) for value in values] | This is the mean inside each vector. Average across the
            vectors, with the weights.
        return [dot(weights, column) / len(values) for column in zip(*values)] | The weights already sum to 1, so do not
            divide.
        return [[w * a for a in value] for w, value in zip(weights, values)] | Each vector is multiplied by its weight
            now. Add these vectors up.
        result = []\\nfor w, value in zip(weights, values):\\n    result += [w * a for a in value]\\nreturn result | The
            vectors are one after the other now. Add them number by number.
        return list(values[weights.index(max(weights))]) | This is the vector with the largest weight. Mix all of them.
        return [max(weights) * sum(column) for column in zip(*values)] | Each vector has its own weight.
        return sum(w * sum(value) for w, value in zip(weights, values)) | This is one number. The answer is a vector, as
            long as each value.
        return list(values[0]) | Only the first vector counts here.
        return [weights[0] * a for a in values[0]] | The loop ends after the first vector: is `return` too far to the
            right?
    """,
    "add": """
        return x + y
        return [a + b for a, b in zip(x, y)] | With lists, + appends one to the other. Add the numbers of both vectors.
        return [[a * b for a, b in zip(u, v)] for u, v in zip(x, y)] | Add the numbers instead of multiplying them.
        return [a + b for u, v in zip(x, y) for a, b in zip(u, v)] | All numbers are in one list now. Keep a list for
            each vector.
        return [[a + b for a, b in zip(x[0], y[0])]] | Only the first vector is left. Go through all of them.
        return [[a + b for a in u for b in v] for u, v in zip(x, y)] | Two loops pair every number with every other. zip
            pairs the first with the first.
        return [[(a + b) / 2 for a, b in zip(u, v)] for u, v in zip(x, y)] | This is the mean. Do not divide.
        return [sum(u) + sum(v) for u, v in zip(x, y)] | Keep the numbers of each vector apart.
        return x | y has no effect.
        return y | x has no effect. Adding it keeps what a token already knows.
        return [[a - b for a, b in zip(u, v)] for u, v in zip(x, y)] | Add the numbers instead of subtracting them.
    """,
    "norm": """
        for a in vector) / len(vector) => for a in vector) / max(1, len(vector) - 1) | Divide the squares by the number
            of coordinates, not by one fewer: this is not a sample.
        for a in vector) / len(vector) => for a in vector) | The variance is the mean of the squares: divide their sum
            by how many there are.
        (a - mean) ** 2 for => a ** 2 for | Subtract the mean before you square.
        (a - mean) ** 2 for => abs(a - mean) for | Square the differences instead of dropping their signs.
        std = math.sqrt( => std = ( | Divide by the square root of the variance.
        math.sqrt( => (math.sqrt( ;; len(vector) + model => len(vector)) + model | The small number belongs under the
            root, added to the variance.
        model.config.get("layer_norm_eps", 1e-12) => 1e-12
        model.config.get("layer_norm_eps", 1e-12) => 1e-5
        + model.config.get("layer_norm_eps", 1e-12) => + 0.0
        + model.config.get("layer_norm_eps", 1e-12) => + 0.0 ;; / std => / (std or 1) | The small number is
            the model's: model.config["layer_norm_eps"].
        * s + b for => * s for | The learned shift is missing: + b.
        * s + b for => + b for | The learned scale is missing: * s.
        * s + b for => for | The learned scale and shift are missing: * s + b.
        * s + b for => * (s + b) for | The shift is added after the scale: * s + b, without parentheses.
        [(a - mean) / => [a - mean / | Without parentheses, only the mean is divided: (a - mean) / …
        (a - mean) ** 2 for a in vector) => a - mean for a in vector) ** 2 | Square each difference before you add them
            up: the differences alone add up to 0.
        [(a - mean) / => [a / | Subtract the mean first.
        mean = sum(vector) / len(vector) => mean = sum(map(sum, x)) / len(x) / len(vector) | Each vector has its own
            mean: do not mix the tokens.
        \\nreturn result => \\n    return result | The loop ends after the first vector: `return` is too far to the
            right.
    """,
    "encode": """
        x = encoder_layer => encoder_layer | What the layer returns is lost: write x = encoder_layer(…).
        x = encoder_layer => x += encoder_layer | += appends the new vectors to the
            old ones: write x = encoder_layer(…).
        f"encoder.layer.{layer}" => "encoder.layer.0" | Every layer has its own weights, but layer 0 runs each time
            here.
        range( => range(1,
        range(model.config["num_hidden_layers"]) => range(1, model.config["num_hidden_layers"] + 1) | Layers are
            numbered from 0.
        "num_hidden_layers"] => "num_hidden_layers"] - 1 | The last layer is missing: range(3) already gives 0, 1, 2.
        range(model.config["num_hidden_layers"]) => range(6) | This fits a model of six layers only. The number of
            layers is model.config["num_hidden_layers"].
        range(model.config["num_hidden_layers"]) => range(model.config["num_hidden_layers"])[::-1] | The layers run in
            the wrong order: begin with 0.
        \\nreturn x => \\n    return x | Only the first layer runs. Go through all of them, and put `return` below the
            loop, further left.
        x = encoder_layer(x => y = encoder_layer(x ;; return x => return y | Each layer must read what the one before it
            has returned: x = encoder_layer(x, …).
        encoder_layer(x => add(x, encoder_layer(x ;; {layer}") => {layer}")) | A layer adds its input itself. Do not add
            it once more.
    """,
    "pieces_of": """
        range(len(word), start, -1) => range(start + 1, len(word) + 1) | You take the shortest piece. Begin with the
            longest, the whole rest of the word.
        range(len(word), start, -1) => range(len(word) - 1, start, -1) | The whole rest of the word may be a piece, too:
            range(len(word), …).
        prefix + word[start:end] in => word[start:end] in | Inside a word, the vocabulary has ##ing, not ing.
        "##" if start else "" => "" | Inside a word, the vocabulary has ##ing, not ing.
        "##" if start else "" => "##" | The first piece of a word is written without ##.
        pieces.append(prefix + word[start:end]) => pieces.append(word[start:end]) | The piece must keep its ##.
        return ["[UNK]"] => return pieces
        return ["[UNK]"] => return pieces + ["[UNK]"] | A word with an unknown part becomes [UNK] as a whole.
        len(word) > 100 => False | Only words of at most 100 letters are split. A longer one is [UNK].
        return [word] if word in vocab else ["[UNK]"] | A word that is not in the vocabulary is split into pieces that
            are.
        return list(word) | Letters are the smallest pieces. Take the longest that the vocabulary has.
    """,
}


def edited(body: str, edits: str) -> str:
    """Return our lines after edits `old => new`; ValueError unless each `old` occurs once."""
    for old, new in (re.split(" => ?", edit) for edit in edits.replace("\\n", "\n").split(" ;; ")):
        if body.count(old) != 1:
            raise ValueError(f"{old!r} occurs {body.count(old)} times in our lines")
        body = body.replace(old, new)
    return body


def mistakes_of(gap: str, ours: str) -> list[tuple[str, str]]:
    """Return the wrong bodies of a gap, each with its hint."""
    return [
        (edited(ours, answer) if " =>" in answer else answer.replace("\\n", "\n"), mistake.hint)
        for mistake in read_table(MISTAKES[gap])
        for answer in mistake.answers
    ]
