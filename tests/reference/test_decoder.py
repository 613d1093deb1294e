"""Decoder and encoder–decoder equal those of transformers: logits, both kinds of attention weights, texts."""

import copy
from contextlib import nullcontext

import pytest
import torch
from transformers import BertConfig, BertLMHeadModel, EncoderDecoderConfig, EncoderDecoderModel

from tests.helpers import SMALL, ragged_batch, random_sizes, shaken
from utils.decoder import EncoderDecoder, TransformerDecoder
from utils.generation import greedy_search

START, END, PAD = 1, 2, 0
WRITES = {"is_decoder": True, "bos_token_id": START, "eos_token_id": END}
READS = WRITES | {"add_cross_attention": True}
LENGTHS = [3, 5, 4, 7]
TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}
BOTH = pytest.mark.parametrize("precision", TOLERANCES)
SEEDS = [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 6))]


def official_pair(encoder_sizes: dict, decoder_sizes: dict) -> EncoderDecoderModel:
    """Return transformers' encoder–decoder with distinct random weights and eager attention."""
    configs = BertConfig(**encoder_sizes), BertConfig(**decoder_sizes, **READS)
    config = EncoderDecoderConfig.from_encoder_decoder_configs(*configs)
    config.pad_token_id = PAD
    for part in (config, config.encoder, config.decoder):
        part._attn_implementation = "eager"
    return shaken(EncoderDecoderModel(config))


def our_pair(official: EncoderDecoderModel) -> EncoderDecoder:
    ours = EncoderDecoder(official.config.encoder, official.config.decoder).eval()
    ours.load_bert_weights(official.state_dict())
    return ours.to(official.dtype)


def padded(lengths: list[int], vocab_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return random ids and their mask, of four texts with padding at different sides."""
    batch, room = ragged_batch(lengths, vocab_size), [max(lengths) - length for length in lengths]
    assert room[3] == 0 < min(room[0], room[1] - 1, room[2])

    def moved(rows: torch.Tensor) -> torch.Tensor:
        shifts = [number * free // 2 for number, free in enumerate(room)]
        return torch.stack([row.roll(shift) for row, shift in zip(rows, shifts, strict=True)])

    return moved(batch["input_ids"]), moved(batch["attention_mask"])


def two_texts(vocab_size: int) -> dict[str, torch.Tensor]:
    """Return sources and a text for each, with padding on both sides of both."""
    names = ("input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask")
    return dict(zip(names, padded(LENGTHS, vocab_size) + padded([4, 2, 3, 6], vocab_size), strict=True))


def positions(mask: torch.Tensor) -> torch.Tensor:
    """Return positions (B, T) counted from a mask, as transformers' `generate` counts them for a decoder."""
    return (mask.cumsum(dim=1) - 1).clamp(min=0)


def worst(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    assert ours.shape == theirs.shape
    return (ours - theirs).abs().max().item()


def until_end(texts: torch.Tensor) -> list[list[int]]:
    """Return each text up to its end token; transformers' beams pad with that token if the pad id is 0."""
    rows = texts.tolist()
    return [row[: row.index(END, 1) + 1] if END in row[1:] else row for row in rows]


@BOTH
@pytest.mark.parametrize("seed", SEEDS)
@torch.no_grad()
def test_encoder_decoder_equals_the_official_model(seed, precision):
    torch.manual_seed(seed)
    sizes, tolerance = random_sizes(seed), TOLERANCES[precision]
    official = official_pair(sizes, sizes | {"num_hidden_layers": 1 + seed % 3, "vocab_size": 25}).to(precision)
    ours, batch = our_pair(official), two_texts(20)
    counted = positions(batch["decoder_attention_mask"])
    theirs = official(**batch, decoder_position_ids=counted, output_attentions=True)
    real = batch["decoder_attention_mask"] != 0
    assert worst(ours(**batch)[real], theirs.logits[real]) <= tolerance
    states = ours.encoder(batch["input_ids"], batch["attention_mask"]).last_hidden_state
    text = batch["decoder_input_ids"], batch["decoder_attention_mask"]
    output = ours.decoder(*text, states, batch["attention_mask"], output_attentions=True)
    assert len(output.attentions) == len(output.cross_attentions) == official.config.decoder.num_hidden_layers
    found = output.attentions + output.cross_attentions
    for mine, wanted in zip(found, theirs.decoder_attentions + theirs.cross_attentions, strict=True):
        assert worst(mine.transpose(1, 2)[real], wanted.transpose(1, 2)[real]) <= tolerance


@BOTH
@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
@torch.no_grad()
def test_decoder_alone_equals_bert_lm_head_model(seed, across, precision):
    """The decoder is half of a pair, or a decoder-only model."""
    torch.manual_seed(seed)
    config, tolerance = (BertConfig(**random_sizes(seed), **WRITES, add_cross_attention=across), TOLERANCES[precision])
    config._attn_implementation = "eager"
    official, ours = shaken(BertLMHeadModel(config)).to(precision), TransformerDecoder(config).eval()
    ours.load_bert_weights(official.state_dict())
    ids, mask = text = padded([4, 2, 3, 6], 20)
    states = torch.randn(4, 7, config.hidden_size, dtype=precision)
    source = {"encoder_hidden_states": states, "encoder_attention_mask": padded(LENGTHS, 20)[1]}
    theirs = official(*text, **source if across else {}, position_ids=positions(mask), output_attentions=True)
    mine = ours.to(precision)(*text, **source if across else {}, output_attentions=True)
    real = mask != 0
    assert worst(mine.logits[real], theirs.logits[real]) <= tolerance
    pairs = [*zip(mine.attentions, theirs.attentions, strict=True)]
    pairs += zip(mine.cross_attentions, theirs.cross_attentions, strict=True) if across else []
    assert len(pairs) == config.num_hidden_layers * (1 + across)
    for found, wanted in pairs:
        assert worst(found.transpose(1, 2)[real], wanted.transpose(1, 2)[real]) <= tolerance
    without = ours(ids, **source if across else {})
    assert without.attentions is without.cross_attentions is None
    assert (mine.cross_attentions is not None) == across


@pytest.mark.parametrize("num_beams", [1, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_generate_equals_the_official_texts(seed, num_beams):
    """With and without a cache; the end token is likely enough that some texts end before the limit."""
    official = official_writer(seed)
    ours = our_pair(official)
    batch = {name: two_texts(20)[name] for name in ("input_ids", "attention_mask")}
    tokens = {"decoder_start_token_id": START, "eos_token_id": END, "pad_token_id": PAD}
    theirs = official.generate(**batch, max_length=12, num_beams=num_beams, do_sample=False, **tokens)
    for use_cache in (True, False):
        mine = ours.generate(**batch, max_length=12, num_beams=num_beams, use_cache=use_cache)
        assert until_end(mine) == until_end(theirs)


def official_writer(seed: int) -> EncoderDecoderModel:
    """Return a random pair that writes different tokens at different positions, and may end anywhere."""
    torch.manual_seed(seed)
    sizes = random_sizes(seed)
    official = official_pair(sizes, sizes)
    with torch.no_grad():
        official.decoder.bert.embeddings.position_embeddings.weight.mul_(4)
        official.decoder.cls.predictions.bias[END] += 1
    return official


@pytest.fixture(scope="module")
def pair() -> EncoderDecoder:
    torch.manual_seed(0)
    return shaken(EncoderDecoder(BertConfig(**SMALL), BertConfig(**SMALL, **READS)))


@torch.no_grad()
def test_cache_gives_the_same_logits_for_new_tokens_only(pair):
    batch, cache = two_texts(20), pair.decoder.new_cache()
    states = pair.encoder(batch["input_ids"], batch["attention_mask"]).last_hidden_state
    source, text = (states, batch["attention_mask"]), batch["decoder_input_ids"]
    whole = pair.decoder(text, None, *source).logits
    parts = [pair.decoder(text[:, :T], None, *source, cache=cache).logits for T in (1, 2, 5, 6)]
    assert [part.size(1) for part in parts] == [1, 1, 3, 1]
    assert worst(torch.cat(parts, dim=1), whole) <= 1e-5
    with pytest.raises(ValueError, match=r"^6 tokens are cached, and the text has 6: pass the whole text so far, or"):
        pair.decoder(text, None, *source, cache=cache)


@torch.no_grad()
@pytest.mark.parametrize("changed", ["nothing", "text", "source", "mask", "decoder"])
def test_cache_refuses_what_it_was_not_computed_from(pair, changed):
    batch, cache = two_texts(20), pair.decoder.new_cache()
    text, mask = batch["decoder_input_ids"], batch["attention_mask"]
    states = pair.encoder(batch["input_ids"], mask).last_hidden_state
    pair.decoder(text[:, :2], None, states, mask, cache=cache)
    decoder = copy.deepcopy(pair.decoder) if changed == "decoder" else pair.decoder
    text = text + (text == text[0, 1]) * (changed == "text")
    states = states + (changed == "source")
    mask = torch.ones_like(mask) if changed == "mask" else mask
    words = r"^the cache was filled with another text, source or decoder: pass the same ones, or call new_cache\(\)$"
    refused = pytest.raises(ValueError, match=words)
    with nullcontext() if changed == "nothing" else refused:
        decoder(text[:, :3], None, states, mask, cache=cache)


@torch.no_grad()
@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_generate_refuses_weights_that_are_not_finite(part, num_beams):
    model = shaken(EncoderDecoder(BertConfig(**SMALL), BertConfig(**SMALL, **READS)))
    getattr(model, part).layers[1].feed_forward.output.bias[3] = torch.nan
    with pytest.raises(
        ValueError, match=r"^(the scores of the next token|encoder_hidden_states) contain NaN or inf: (use|look)"
    ):
        model.generate(IDS, max_length=6, num_beams=num_beams)


@torch.no_grad()
def test_padding_before_a_text_moves_no_position(pair):
    """A learned position table would give a text moved by padding other logits, without any error."""
    alone, states = torch.tensor([[5, 6, 7]]), torch.randn(1, 4, 8)
    ids, mask = torch.tensor([[0, 0, 5, 6, 7]]), torch.tensor([[0, 0, 1, 1, 1]])
    wanted, cache = pair.decoder(alone, None, states).logits, pair.decoder.new_cache()
    pair.decoder(ids[:, :-1], mask[:, :-1], states, cache=cache)
    assert worst(pair.decoder(ids, mask, states, cache=cache).logits, wanted[:, -1:]) <= 1e-5
    assert worst(pair.decoder(ids, mask, states).logits[:, 2:], wanted) <= 1e-5


@torch.no_grad()
def test_generate_restores_training_mode(pair):
    model = EncoderDecoder(BertConfig(**SMALL), BertConfig(**SMALL, **READS)).train()
    ids = torch.tensor([[3, 4, 5]])
    texts = [model.generate(ids, max_length=9).tolist() for _ in range(5)]
    assert all(text == texts[0] for text in texts)
    assert all(module.training for module in model.modules())


IDS = torch.tensor([[3, 4, 5]])


DAMAGED = "decoder.bert.encoder.layer.1.crossattention.self.key.weight"


@pytest.mark.parametrize(
    ("name", "tensor", "words"),
    [
        (DAMAGED, None, "missing"),
        ("decoder.cls.predictions.decoder.weight", torch.zeros(30, 8), "decoder.weight must equal the word embeddings"),
        ("decoder.cls.predictions.decoder.bias", torch.full((30,), 7.0), "decoder.bias must equal the word embeddings"),
    ],
)
def test_encoder_decoder_refuses_damaged_weights(pair, name, tensor, words):
    weights = official_pair(SMALL, SMALL).state_dict() | {name: tensor}
    with pytest.raises(ValueError, match=words):
        pair.load_bert_weights({name: weight for name, weight in weights.items() if weight is not None})


def test_greedy_search_ends_a_text_at_its_first_written_token():
    def next_scores(ids):  # row 0 would write the end, and then 1
        return torch.eye(6)[[1 if ids.size(1) > 1 else 5, 2]]

    texts = greedy_search(next_scores, torch.tensor([[4], [4]]), end=5, max_length=4)
    assert texts.tolist() == [[4, 5, 5, 5], [4, 2, 2, 2]]
