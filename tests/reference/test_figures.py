"""The figures that can be dragged, from Python: bad input is refused in words, and pictures are the same again."""

import faiss
import pytest
import torch

from utils.search import hnsw_index
from utils.views import figures

# attention_in_the_plane


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [[1, 2]]), {}, r"keys has the shape \(1, 2\): this figure draws 2 to 6 × 2 numbers"),
        (([1, 2], [[1, 2]] * 40), {}, r"keys has the shape \(40, 2\)"),
        (([1, 2, 3], [[1, 2]] * 3), {}, r"query has the shape \(3,\): this figure draws 2 numbers"),
        (([1, float("nan")], [[1, 2]] * 3), {}, "query holds nan or inf"),
        (([1, 2], [[1, 2]] * 3, [[1, 2]] * 2), {}, r"values has the shape \(2, 2\)"),
        (([1, 2], [[1, 2]] * 3), {"tokens": ["one"]}, "there are 1 tokens, but 3 to be named"),
        (([1, 2], [[1, 2]] * 3), {"asking": 3}, "asking=3 must be a whole number from 0 to 2"),
    ],
)
def test_attention_in_the_plane_refuses(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        figures.attention_in_the_plane(*arguments, **options)


def test_a_still_picture_is_the_same_each_time():
    first, second = (figures.attention_in_the_plane([1, 2], torch.eye(2)).still for _ in range(2))
    assert first == second


# graph_walk


def test_graph_walk_refuses():
    vectors = torch.eye(12)
    names = [str(number) for number in range(12)]
    index = hnsw_index(vectors, M=2)
    for arguments, message in [
        ((index, vectors[:5], vectors[0], names[:5]), "no HNSW graph of these 5 vectors"),
        ((faiss.IndexFlatIP(12), vectors, vectors[0], names), "no HNSW graph of these 12 vectors"),
        ((index, vectors, vectors[0, :3], names), r"query has the shape \(3,\)"),
        ((index, vectors, vectors[0], names[:3]), "there are 3 names, but 12 to be named"),
    ]:
        with pytest.raises(ValueError, match=message):
            figures.graph_walk(*arguments)
    with pytest.raises(ValueError, match="k=11 must be a whole number from 1 to 10"):
        figures.graph_walk(index, vectors, vectors[0], names, k=11)
