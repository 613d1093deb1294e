"""Choose the sentences of the exchange test of notebooks 01 to 06, and record the answers of each step.

`python -m benchmarks.records.exchanges` writes utils/data/exchanges.json in about half a minute. Two words around "and"
or "or" may change places ("time, effort and money"), and so may two around another small word ("a waste of time"), as
the lists below decide. A program that counts which words follow each other in all reviews, without the sentence itself,
is wrong on every sentence. The two words around "and" are the more alike pair in half of the sentences (by the cosine
of their rows in the word table), and come later in half of them. No layer of an encoder takes part in the choice.

So what would such a program get where it was not chosen against? The part "unchosen" has 200 sentences that only the
lists decide on, with the program's answers and those of six layers.

A random half of the 200 is held: the notebooks choose nothing on it, such as the best of twelve heads. While the
rule was written, its numbers were seen on both halves.
"""

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from utils.encoder import TransformerEncoder
from utils.exchanges import RECORD, RUNGS, answers, exchange, mean_of, split_words, write_answers
from utils.search import embed
from utils.support.checkpoint import load_tokenizer
from utils.support.datasets import review_sentences
from utils.support.files import write_file

COUNT, HEAD = 200, 2  # sentences; the head of layer 0 that notebook 03 builds with: it looks at the token before
SMALL, DETERMINERS, LINKS, BEFORE, AFTER, CLIPPED = map(
    str.split,
    (  # never exchanged; before a noun; the other small words; before a pair around "and"; after it; inside a word
        """about after again all also and any are back because been before being both but came come comes coming could
        did does each either else even every for from gave get gets getting give given gives goes going got had has have
        her here hers him his how instead its just keep keeps kept let like look looked looking looks made make makes
        making many may more most much neither nor not now off one only onto other others our out over own per really
        same saw say says see seen she should some something such take taken takes taking than that the their them then
        there these they this those through too took two under very via was way well went were what when where which
        while who whom whose why will with would yes yet you your yours""",
        "a an any her his its my our the their this your",
        """a about an are as at between by can could for from had has have her his in into is its like of on over than
        that the their through to was were who will with without would""",
        """all are as be between both by extremely for from how in is like more most not of quite rather really so that
        these those to truly very was were with , . ( : ;""",
        ". , ; ! ? : )",
        "- ' / &",
    ),
)


def positions(words: list[str], nouns: set[str]) -> list[tuple[int, int]]:
    """Return the pairs of positions whose neighbours may be exchanged: of "and" or "or", and of another small word."""

    def is_word(word):
        return word.isalpha() and len(word) > 2 and word not in SMALL

    inner = [i for i in range(2, len(words) - 2) if is_word(words[i - 1]) and is_word(words[i + 1])]
    inner = [i for i in inner if words[i - 1] != words[i + 1] and words[i - 2] not in CLIPPED]
    ands = [i for i in inner if words[i] in ("and", "or") and words[i + 2] in AFTER]
    ands = [i for i in ands if words[i - 2] in BEFORE or {words[i - 1], words[i + 1]} <= nouns]
    links = [i for i in inner if words[i] in LINKS and words[i + 2] not in CLIPPED]
    return [(i, j) for i in ands for j in links if abs(i - j) > 2]


def pairs_of(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with the one before it; the text begins and ends with a full stop."""
    return zip([".", *words], [*words, "."], strict=True)


def candidates(sentences: list[str]) -> tuple[dict[tuple[bool, bool], list[list[int]]], list[list[int]]]:
    """Return rows and positions on which the counts are wrong; then those of all sentences, with 1 if they are right.

    The keys state whether the pair around "and" is the more alike one, and whether it is the later one.
    """
    tokenizer, embeddings = load_tokenizer(), TransformerEncoder.from_checkpoint().embeddings
    rows = list(map(split_words, sentences))
    singles, pairs = Counter(), Counter()
    for words in rows:
        singles.update(words)
        pairs.update(pairs_of(words))

    def log_likelihood(words, own):  # of all words, each after the one before; the sentence itself does not count
        smooth = 0.1 * len(singles)
        return sum(math.log((pairs[pair] - own[pair] + 0.1) / (singles[pair[0]] + smooth)) for pair in pairs_of(words))

    def similarity(words, position):
        ids = [tokenizer(words[position + k], add_special_tokens=False)["input_ids"] for k in (-1, 1)]
        one, other = (embeddings.word_embeddings.weight[pieces].mean(dim=0) for pieces in ids)
        return F.cosine_similarity(one, other, dim=0).item()

    after = Counter(pair[1] for pair in pairs.elements() if pair[0] in DETERMINERS)
    nouns = {word for word, count in after.items() if count >= 0.1 * singles[word]}  # often after "the" and the like
    draw, cells, seen = random.Random(0), defaultdict(list), set()
    unchosen, any_pair = [], random.Random(1)
    for row, words in enumerate(rows):
        if not 6 <= len(words) <= 40 or tuple(words) in seen or not (found := positions(words, nouns)):
            continue
        seen.add(tuple(words))
        own = Counter(pairs_of(words))
        chance = {i: log_likelihood(exchange(words, i).split(), own) for pair in found for i in pair}
        i, j = any_pair.choice(found)
        unchosen.append([row, i, j, int(chance[i] > chance[j])])
        wrong = [(i, j) for i, j in found if chance[i] <= chance[j]]
        cell_of = {(i, j): (similarity(words, i) > similarity(words, j), i > j) for i, j in wrong}
        if wrong:
            draw.shuffle(wrong)
            i, j = min(wrong, key=cell_of.get)  # the rarer kinds first
            cells[cell_of[i, j]].append([row, i, j])
    return cells, unchosen


def compare_neighbours(rows: list[list[str]], places: list[list[int]]) -> list[float]:
    """Return the answers of a second baseline: the pair of words with more similar neighbours is the harmless one.

    Of each word, it counts the words before and after it in all sentences but the one in question, takes logarithms,
    and compares two words by the cosine. It was fixed before its first answer, and was not part of the choice.
    """

    def neighbours(words):
        padded = [".", *words, "."]
        for before, word, after in zip(padded, padded[1:], padded[2:], strict=False):
            yield word, ("before", before)
            yield word, ("after", after)

    counts = defaultdict(Counter)
    for words in rows:
        for word, neighbour in neighbours(words):
            counts[word][neighbour] += 1

    def similarity(words, position):
        own = Counter(neighbours(words))
        one, other = (
            {n: math.log1p(count - own[word, n]) for n, count in counts[word].items() if count > own[word, n]}
            for word in (words[position - 1], words[position + 1])
        )
        length = math.sqrt(sum(x * x for x in one.values()) * sum(x * x for x in other.values()))
        return sum(x * other.get(n, 0) for n, x in one.items()) / length if length else 0

    leads = [similarity(rows[row], i) - similarity(rows[row], j) for row, i, j in places]
    return [0.5 if lead == 0 else float(lead > 0) for lead in leads]


def choose(sentences: list[str]) -> dict:
    """Return the rows and positions of each part, the shortest first, and the counts' answers to the unchosen ones.

    "The more alike pair" and "the later pair" are right for half of the sentences in each half.
    """
    draw, (cells, unchosen) = random.Random(0), candidates(sentences)
    print({cell: len(rows) for cell, rows in cells.items()})
    few = min(len(cells[True, True]), len(cells[False, False]), COUNT // 2) // 2 * 2
    sizes = {(True, True): few, (False, False): few, (True, False): COUNT // 2 - few, (False, True): COUNT // 2 - few}
    chosen = [draw.sample(cells[cell], size) for cell, size in sizes.items()]
    halves = {name: [row for rows in chosen for row in rows[begin::2]] for begin, name in enumerate(("open", "held"))}
    halves["unchosen"] = random.Random(2).sample(unchosen, COUNT)
    ordered = {  # for batches of similar length
        name: sorted(rows, key=lambda row: (len(split_words(sentences[row[0]])), row)) for name, rows in halves.items()
    }
    counted = "".join(str(right) for *_, right in ordered["unchosen"])
    return ordered | {"unchosen": [row[:3] for row in ordered["unchosen"]], "counted pairs": counted}


def steps() -> dict[str, Callable[[list[str]], Tensor]]:
    """Return our own part of each notebook, as an embedder."""
    tokenizer, encoder = load_tokenizer(), TransformerEncoder.from_checkpoint().eval()
    embeddings, layer = encoder.embeddings, encoder.layers[0]

    def count_tokens(texts):
        counts = [Counter(tokenizer(text)["input_ids"]) for text in texts]
        return torch.tensor([[row[token] for token in set().union(*counts)] for row in counts]).float()

    def one_head(ids, mask):
        query, key, value = layer.attention.project(embeddings(ids))
        weights = layer.attention.compute_attention_weights(query, key, (mask != 0)[:, None, None, :])
        return (weights @ value)[:, HEAD]

    states = {
        "02": lambda ids, mask: embeddings(ids),
        "03": one_head,
        "04": lambda ids, mask: layer.attention(embeddings(ids), mask)[0],
        "05": lambda ids, mask: layer(embeddings(ids), mask)[0],
    }
    embedders = {"01": count_tokens} | {name: mean_of(states[name], tokenizer) for name in states}
    return embedders | {"06": lambda texts: embed(texts, encoder, tokenizer)}


if __name__ == "__main__":
    chosen = choose(review_sentences())
    write_file(RECORD, json.dumps(chosen))  # the steps read it
    rows = list(map(split_words, review_sentences()))
    chosen["compared neighbours"] = write_answers(compare_neighbours(rows, chosen["open"] + chosen["held"]))
    parts = steps()
    chosen["answers"] = {name: write_answers(answers(part)) for name, part in parts.items()}
    chosen["six layers, unchosen"] = write_answers(answers(parts["06"], "unchosen"))
    write_file(RECORD, json.dumps(chosen) + "\n")
    for name, found in chosen["answers"].items():
        print(f"{RUNGS[name]}: {found.count('1') + found.count('h') / 2:g} of {len(found)}")
    print(f"compared neighbours: {chosen['compared neighbours'].count('1')} of {COUNT}")
    for name in ("counted pairs", "six layers, unchosen"):
        print(f"{name}: {chosen[name].count('1')} of {COUNT}")
