"""Embeddings equal those of sentence-transformers, search is exact, and bad input is refused."""

import json
import math
import sys
import warnings

import pytest
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertModel

from tests.helpers import TINY, tiny_tokenizer
from utils.encoder import TransformerEncoder
from utils.search import bm25, embed, hnsw_index, late_interaction, mean_pooling, recall, search, search_index
from utils.support.checkpoint import DEFAULT_CHECKPOINT, load_reference_model
from utils.support.comparisons import largest_difference
from utils.support.datasets import reviews
from views import head_view

TEXTS = ["The movie was great !", "time flies like an arrow", "Crème brûlée in 東京 :-)", "no", "word " * 100]


@pytest.fixture(scope="module")
def peer():
    from sentence_transformers import SentenceTransformer  # here, since it takes a second

    folder = load_reference_model(DEFAULT_CHECKPOINT).name_or_path
    return SentenceTransformer(folder, device="cpu")


@pytest.fixture(scope="module")
def unit_vectors() -> torch.Tensor:
    return F.normalize(torch.randn(600, 16, generator=torch.Generator().manual_seed(0)), dim=1)


@pytest.mark.long
def test_embed_equals_sentence_transformers(peer, encoder, tokenizer, official_tokenizer):
    texts = TEXTS + reviews().test.texts[:15]
    expected = torch.from_numpy(peer.encode(texts, normalize_embeddings=True))
    for its_tokenizer in (tokenizer, official_tokenizer):
        vectors = embed(texts, encoder, its_tokenizer)
        assert vectors.shape == (20, 384)
        assert largest_difference(vectors, expected) <= 1e-5
    assert largest_difference(vectors.norm(dim=1), torch.ones(20)) <= 1e-5


@pytest.mark.long
def test_a_view_of_sentence_transformers_names_the_model_in_it(peer, tokenizer):
    with pytest.raises(ValueError, match=r"a SentenceTransformer contains .*: pass model\[0\]\.auto_model"):
        head_view(peer, tokenizer, "time flies")


@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_embed_is_independent_of_order_and_batches(encoder, tokenizer, batch_size):
    together = embed(TEXTS, encoder, tokenizer)
    assert largest_difference(embed(TEXTS, encoder, tokenizer, batch_size), together) <= 1e-5
    assert largest_difference(embed(TEXTS[::-1], encoder, tokenizer).flip(0), together) <= 1e-5


def test_mean_pooling_ignores_padding():
    states = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [99.0, 99.0]], [[5.0, 6.0], [99.0, 99.0], [99.0, 99.0]]])
    pooled = mean_pooling(states, torch.tensor([[1, 1, 0], [1, 0, 0]]))
    assert torch.equal(pooled, torch.tensor([[2.0, 3.0], [5.0, 6.0]]))


def test_mean_pooling_refuses_bad_masks():
    states = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match=r"masks every token of a row: leave at least one 1 in each"):
        mean_pooling(states, torch.tensor([[1, 1, 0], [0, 0, 0]]))
    with pytest.raises(
        ValueError, match=r"attention_mask has the shape \(2, 2\), last_hidden_state \(2, 3, 4\): it must be \(B, S\)"
    ):
        mean_pooling(states, torch.ones(2, 2))


def test_search_compares_with_every_vector(unit_vectors):
    scores, indices = search(unit_vectors[:5], unit_vectors, k=4)
    cosines = unit_vectors[:5] @ unit_vectors.T
    assert indices[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert torch.equal(scores, cosines.sort(dim=1, descending=True).values[:, :4])
    assert torch.equal(cosines.gather(1, indices), scores)


def test_bm25_is_the_published_formula(tokenizer):
    texts = ["the cat sat on the mat", "a dog and a dog and a cat", "birds sing", "the dog"]
    queries = ["the dog", "cat cat", "unicorn"]
    rows = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    mean = sum(map(len, rows)) / len(rows)
    found = bm25(queries, texts, tokenizer)
    for scores, query in zip(found, queries, strict=True):
        for score, row in zip(scores, rows, strict=True):
            expected = 0.0
            for token in tokenizer.encode(query, add_special_tokens=False):
                having = sum(token in other for other in rows)
                rarity = math.log(1 + (len(rows) - having + 0.5) / (having + 0.5))
                count = row.count(token)
                expected += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(row) / mean))
            assert abs(score.item() - expected) < 1e-5
    assert found[0].argmax() == 3
    assert not found[2].any()


def test_bm25_refuses_texts_without_a_word(tokenizer):
    with pytest.raises(ValueError, match="text 0 is empty: leave it out"):
        bm25(["a"], ["", " "], tokenizer)


def test_late_interaction_adds_each_tokens_best_match():
    query = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    texts = [torch.tensor([[0.6, 0.8], [1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[-0.8, 0.6]])]
    assert late_interaction(query, texts).tolist() == pytest.approx([1.8, -0.2])


def test_hnsw_index_finds_nearly_all_and_is_deterministic(unit_vectors):
    exact = search(unit_vectors[:50], unit_vectors, k=10)
    found = search_index(unit_vectors[:50], hnsw_index(unit_vectors), k=10)
    hits = (found.indices[:, :, None] == exact.indices[:, None, :]).any(dim=2)
    assert hits.float().mean() >= 0.95
    assert largest_difference(found.scores[hits], exact.scores[hits]) <= 1e-5
    again = search_index(unit_vectors[:50], hnsw_index(unit_vectors), k=10)
    assert torch.equal(found.indices, again.indices)


def test_recall_counts_each_querys_own_neighbours():
    found, exact = torch.tensor([[7, 2, 5], [5, 3, -1]]), torch.tensor([[2, 7, 1], [3, 4, 7]])
    assert recall(found, exact) == pytest.approx(3 / 6)
    assert recall(exact.flip(1), exact) == 1


@pytest.mark.parametrize("noise", [0, 1e-7])
def test_hnsw_index_refuses_more_copies_than_links(unit_vectors, noise):
    copies = unit_vectors[:1] + noise * torch.randn(33, 16, generator=torch.Generator().manual_seed(1))
    hnsw_index(torch.cat([copies[1:], unit_vectors[1:]]))
    with pytest.raises(ValueError, match=r"33 of the 632 vectors are equal: with M=32 .* each distinct text once"):
        hnsw_index(torch.cat([copies, unit_vectors[1:]]))
    found = search(unit_vectors[1:50], torch.cat([copies, unit_vectors[1:]]), k=1)  # exact search stays exact
    assert found.indices[:, 0].tolist() == [*range(33, 82)]


def test_search_refuses_an_empty_index(unit_vectors):
    for build in (hnsw_index, lambda vectors: search(unit_vectors[:1], vectors)):
        with pytest.raises(
            ValueError, match=r"vectors must be \(N, H\) with one or more, got \(0, 16\): take them from embed"
        ):
            build(torch.empty(0, 16))
        with pytest.raises(
            ValueError, match=r"vectors must have length 1, so that products are cosines: take them from embed"
        ):
            build(unit_vectors * 3)
    empty = hnsw_index(unit_vectors[:1])
    empty.reset()
    with pytest.raises(ValueError, match=r"k=10, but there are 0 vectors to search: use k from"):
        search_index(unit_vectors[:1], empty)


def test_hnsw_index_names_the_missing_package(monkeypatch, unit_vectors):
    index = hnsw_index(unit_vectors)
    monkeypatch.setitem(sys.modules, "faiss", None)
    for use in (lambda: hnsw_index(unit_vectors), lambda: search_index(unit_vectors[:1], index)):
        with pytest.raises(ImportError, match=r"^an index needs the package faiss: pip install faiss-cpu$"):
            use()
    assert search(unit_vectors[:1], unit_vectors, k=1).indices.tolist() == [[0]]


def modules_json(*names: str) -> str:
    path, type = {"Transformer": "", "Pooling": "1_Pooling"}, "sentence_transformers.models.{}".format
    return json.dumps([{"type": type(name), "path": path.get(name, name)} for name in names])


@pytest.mark.parametrize(
    ("pooling", "modules", "refused"),
    [
        ({"pooling_mode": "mean"}, ["Transformer", "Pooling", "Normalize"], None),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "include_prompt": True}, [], None),
        ({"pooling_mode": "cls"}, ["Transformer", "Pooling"], "cls"),
        ({"pooling_mode_max_tokens": True, "pooling_mode_mean_tokens": True}, [], "max\\+mean"),
        ({"pooling_mode": "mean"}, ["Transformer", "Pooling", "Dense", "Normalize"], "Dense"),
    ],
)
def test_embed_refuses_other_pooling_than_the_mean(tmp_path, pooling, modules, refused):
    BertModel(BertConfig(**TINY)).save_pretrained(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if modules:
        (tmp_path / "modules.json").write_text(modules_json(*modules))
    encoder = TransformerEncoder.from_checkpoint(str(tmp_path))
    if refused is None:
        embed(["a b"], encoder, tiny_tokenizer())
    else:
        with pytest.raises(ValueError, match=rf"does not average its token vectors .*: {refused}\): use a check"):
            embed(["a b"], encoder, tiny_tokenizer())


@pytest.mark.parametrize(
    ("file", "settings", "found"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 8, "do_lower_case": False}, 8),
        ("tokenizer_config.json", {"model_max_length": 7, "do_lower_case": True}, 7),  # as release 6 writes it
        ("config_sentence_transformers.json", {"__version__": {"a": "1"}, "prompts": {"query": "q: "}}, None),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}, "default_prompt_name='query'"),
        ("config_sentence_transformers.json", {"truncate_dim": 6}, "truncate_dim=6"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case=True"),
        ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, "transformer_task='fill-mask'"),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "new_setting": 3}, "new_setting=3"),
    ],
)
@pytest.mark.filterwarnings("ignore:.* the rest of them is not read")
def test_settings_of_sentence_transformers_are_obeyed_or_refused(tmp_path, file, settings, found):
    BertModel(BertConfig(**TINY)).save_pretrained(tmp_path)
    (tmp_path / "modules.json").write_text(modules_json("Transformer", "Pooling", "Normalize"))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / file).write_text(json.dumps(settings))
    encoder, long = TransformerEncoder.from_checkpoint(str(tmp_path)), "a b c d " * 20
    if isinstance(found, str):
        with pytest.raises(
            ValueError,
            match=rf"sets {found} \({file.split('/')[-1]}\), which is not supported here: use a checkpoint without it",
        ):
            embed([long], encoder, tiny_tokenizer())
        return
    cut = long if found is None else " ".join(long.split()[: found - 2])
    torch.testing.assert_close(*(embed([text], encoder, tiny_tokenizer()) for text in (long, cut)))
    assert not torch.allclose(embed(["a b c d"], encoder, tiny_tokenizer()), embed([cut], encoder, tiny_tokenizer()))


def test_embed_reports_how_many_texts_are_cut(encoder, tokenizer):
    texts = ["a " * 254, "b " * 255, "c " * 900]
    with pytest.warns(UserWarning, match="2 of 3 texts have more than 256 tokens"):
        vectors = embed(iter(texts), encoder, tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = embed([texts[0], "b " * 254, "c " * 254], encoder, tokenizer)
    torch.testing.assert_close(vectors, parts, atol=1e-5, rtol=0)
