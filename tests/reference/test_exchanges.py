"""The exchange test gives known answers for embedders whose answer is known, in both directions."""

from math import cos, sin

import pytest
import torch

from utils import exchanges
from utils.encoder import TransformerEncoder
from utils.statistics import wilson_interval
from utils.support.checkpoint import load_tokenizer


def knows(column):
    """Return an embedder that maps one column of the triples to the vector of the sentence, and the other away."""
    triples = [triple for part in ("all", "unchosen") for triple in exchanges.exchanges(part)]
    vectors = {triple[0]: [1.0, 0.0] for triple in triples} | {triple[column]: [1.0, 0.1] for triple in triples}
    return lambda texts: torch.tensor([vectors.get(text, [0.0, 1.0]) for text in texts])


SIZES = {"all": 200, "open": 100, "held": 100, "unchosen": 200}


@pytest.mark.parametrize(("part", "count"), SIZES.items())
def test_score_of_known_embedders(part, count):
    assert exchanges.score(knows(1), part) == (count, count)
    assert exchanges.score(knows(2), part) == (0, count)
    assert exchanges.score(lambda texts: torch.ones(len(texts), 3), part) == (count / 2, count)


@pytest.mark.parametrize(("angle", "right"), [(0.0063, 200), (0.002, 100)])
def test_score_counts_a_small_lead_as_a_tie(angle, right):
    """A lead of 0.00002 decides, and one of 0.000002 does not: the cosine is about 1 − angle² / 2."""
    angles = {text: angle * (column == 2) for triple in exchanges.exchanges() for column, text in enumerate(triple)}
    assert exchanges.score(lambda texts: torch.tensor([[cos(angles[text]), sin(angles[text])] for text in texts])) == (
        right,
        200,
    )


@pytest.mark.parametrize("part", SIZES)
def test_exchanges_move_two_words(part):
    triples = exchanges.exchanges(part)
    assert len({sentence for sentence, _, _ in triples}) == SIZES[part]
    for sentence, *copies in triples:
        words = sentence.split()
        assert exchanges.split_words(sentence) == words
        middles = []
        for changed in copies:
            moved = [i for i, (one, other) in enumerate(zip(words, changed.split(), strict=True)) if one != other]
            assert moved == [moved[0], moved[0] + 2]
            assert exchanges.exchange(words, moved[0] + 1) == changed
            middles.append(words[moved[0] + 1])
        assert [middle in ("and", "or") for middle in middles] == [True, False]


def test_all_exchanges_are_the_two_halves():
    assert exchanges.exchanges() == exchanges.exchanges("open") + exchanges.exchanges("held")


def test_recorded_answers_are_those_of_our_parts():
    encoder, tokenizer = TransformerEncoder.from_checkpoint(), load_tokenizer()
    found = exchanges.answers(exchanges.mean_of(lambda ids, mask: encoder.embeddings(ids), tokenizer))
    assert found == exchanges.read_answers(exchanges.record()["answers"]["02"])
    layer = exchanges.mean_of(lambda ids, mask: encoder.layers[0](encoder.embeddings(ids), mask)[0], tokenizer)
    assert exchanges.answers(layer) == exchanges.read_answers(exchanges.record()["answers"]["05"])


def test_counted_pairs_are_right_on_many_unchosen_sentences():
    found = exchanges.read_answers(exchanges.record()["counted pairs"])
    assert exchanges.write_answers(found) == exchanges.record()["counted pairs"]
    assert len(found) == len(exchanges.exchanges("unchosen"))
    assert sum(found) > 150


def test_rungs_end_with_the_given_result_and_the_next_step():
    found = exchanges.rungs("05", 150.0)
    assert list(found) == [*exchanges.RUNGS.values()]
    assert found["counted tokens"][0] == 100
    assert found["one layer"] == (150.0, *(200 * end for end in wilson_interval(150, 200)))
    assert found["six layers"] is None
    assert None not in exchanges.rungs("06", 179).values()


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (lambda texts: torch.zeros(len(texts), 2, 2), r"a tensor \(N, H\) for N = 30 texts, got \(30, 2, 2\)"),
        (lambda texts: torch.zeros(1, 2), r"got \(1, 2\)"),
        (lambda texts: [[1.0]] * len(texts), "got list"),
        (lambda texts: torch.full((len(texts), 2), torch.nan), "nan or inf"),
    ],
)
def test_score_refuses_bad_vectors(vectors, message):
    with pytest.raises(ValueError, match=message):
        exchanges.score(vectors)


def test_unknown_parts_and_notebooks_are_refused():
    with pytest.raises(ValueError, match="part must be one of all, open, held, unchosen, got 'test'"):
        exchanges.score(torch.ones, "test")
    with pytest.raises(ValueError, match=r"notebook must be one of 01, .*, got '07'"):
        exchanges.rungs("07", 1)
    with pytest.raises(ValueError, match="last_hidden_state"):
        exchanges.score(exchanges.mean_of(lambda ids, mask: torch.zeros(3, 3, 3), load_tokenizer()))
