"""microbert.py needs only Python's own modules, stays short, and gives the official ids and vectors."""

import json
import re

import pytest
import torch
from tokenizers import BertWordPieceTokenizer
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

import microbert
from tests.helpers import ROOT, TINY, run_python, tiny_tokenizer
from tests.texts import SPECIAL, WORDS, generated_strings
from utils.encoder import TransformerEncoder
from utils.masked_lm import TransformerForMaskedLM
from utils.search import embed
from utils.support.characters import EARLIER_CATEGORY, LATER_CHARACTERS, in_ranges
from utils.support.checkpoint import embedded_folder
from utils.tokenization import WordPieceTokenizer

SOURCE = (ROOT / "microbert.py").read_text("utf-8")


@pytest.fixture(scope="module")
def model() -> microbert.Checkpoint:
    return microbert.Checkpoint(embedded_folder())


def is_of_unicode_8(text: str) -> bool:
    """Return whether the official tokenizer, which knows Unicode 8, has the category that Python has."""
    return not any(in_ranges(character, LATER_CHARACTERS) or character in EARLIER_CATEGORY for character in text)


def test_microbert_has_at_most_160_lines_of_code():
    code = re.sub(r'"""[\s\S]*?"""', "", SOURCE)
    assert len([line for line in code.splitlines() if line.strip()]) <= 160


def test_microbert_gives_the_official_ids(model, official_tokenizer):
    texts = [text for text in [*SPECIAL, *WORDS, *generated_strings(2_000), "a b " * 300] if is_of_unicode_8(text)]
    assert len(texts) > 1_000
    official = official_tokenizer(texts, truncation=True, max_length=model.max_length)["input_ids"]
    assert model.max_length == 256  # of sentence_bert_config.json
    assert [text for text, ids in zip(texts, official, strict=True) if microbert.token_ids(text, model) != ids] == []


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("saver", ["this project", "transformers"])
def test_microbert_reads_saved_checkpoints(tmp_path, saver, dtype):
    """Check names with "bert.", a vocabulary in tokenizer.json, three precisions, and another epsilon."""
    torch.manual_seed(0)
    model = TransformerForMaskedLM(BertConfig(**TINY, layer_norm_eps=0.01)).eval()
    model.save(tmp_path, tiny_tokenizer(), dtype=getattr(torch, dtype))
    if saver == "transformers":
        official = BertForMaskedLM.from_pretrained(tmp_path, dtype=getattr(torch, dtype))
        tokenizer = AutoTokenizer.from_pretrained(tmp_path)
        (tmp_path / "vocab.txt").unlink()
        official.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        assert not (tmp_path / "vocab.txt").exists()
    found = microbert.Checkpoint(tmp_path)
    ids = microbert.token_ids("a bd 7", found)
    assert ids == tiny_tokenizer().encode("a bd 7")
    with torch.no_grad():
        encoder = TransformerEncoder.from_checkpoint(tmp_path)
        expected = encoder(torch.tensor([ids])).last_hidden_state[0]
    torch.testing.assert_close(torch.tensor(microbert.encode(ids, found)), expected, atol=1e-5, rtol=0)


def own_tokenizer(**parts) -> dict:
    """A tokenizer.json with other parts than BERT's."""
    whole = json.loads(BertWordPieceTokenizer(tiny_tokenizer().vocab).to_str())
    return whole | {name: value and (whole[name] | value) for name, value in parts.items()}


def modules(*kinds: str) -> list[dict]:
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds[1:], start=1))]
    return [{"type": f"sentence_transformers.models.{k}", "path": p} for k, p in zip(kinds, paths, strict=True)]


@pytest.mark.parametrize(
    ("file", "changes", "words"),
    [
        ("config.json", {"model_type": "roberta"}, "has {'model_type': 'roberta'}: microbert.py reads a BERT with"),
        ("tokenizer.json", own_tokenizer(normalizer={"lowercase": False}), "{'lowercase': False}"),
        ("tokenizer.json", own_tokenizer(pre_tokenizer={"type": "Whitespace"}), "{'type': 'Whitespace'}}"),
        ("tokenizer.json", own_tokenizer(model={"max_input_chars_per_word": 9}), "{'max_input_chars_per_word': 9}"),
        ("1_Pooling/config.json", {"pooling_mode": "cls"}, "{'pooling_mode': 'cls'}"),
        (
            "modules.json",
            modules("Transformer", "Pooling", "Dense", "Normalize"),
            "{'kinds': 'TransformerPoolingDense'",
        ),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}, "{'default_prompt_name': 'query'}"),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "{'sparse': True}"),
        ("adapter_config.json", {"peft_type": "LORA"}, "{'peft_type': 'LORA'}"),
        # what `embed` refuses, too
        ("config.json", {"hidden_size": 6}, "'embeddings.token_type_embeddings.weight'"),
        ("config.json", {"num_attention_heads": 5}, "{'misfits': ['num_attention_heads']}"),
        ("config.json", {"vocab_size": 48}, "'ids_fit': False"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"50": {"content": "<x>"}}}, "{'other_tokens': ['<x>']}"),
        ("tokenizer_config.json", {"truncation_side": "left"}, "{'truncation_side': 'left'}"),
        ("special_tokens_map.json", {"unk_token": {"content": "[PAD]"}}, "{'unk_token': '[PAD]'}"),
        ("special_tokens_map.json", {"additional_special_tokens": ["<x>"]}, "{'other_tokens': ['<x>']}"),
        ("model.safetensors.index.json", {"weight_map": {}}, "{'shards': 'model.safetensors.index.json'}"),
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1", "or a pointer of git-lfs"),
        ("model.safetensors", -8, "model.safetensors is cut"),
        ("dtype", torch.float64, "embeddings.word_embeddings.weight is in F64"),
    ],
)
def test_microbert_refuses_other_models_in_one_sentence(tmp_path, file, changes, words):
    dtype = changes if file == "dtype" else torch.float32
    TransformerForMaskedLM(BertConfig(**TINY)).save(tmp_path / "saved", tiny_tokenizer(), dtype=dtype)
    path = tmp_path / "saved" / file
    if file == "model.safetensors":
        path.write_bytes(path.read_bytes()[:changes] if isinstance(changes, int) else changes)
    elif file != "dtype":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(json.loads(path.read_text()) | changes if path.exists() else changes))
    with pytest.raises(SystemExit) as stopped:
        microbert.embed("a b", microbert.Checkpoint(tmp_path / "saved"))
    assert words in str(stopped.value)
    assert "\n" not in str(stopped.value)


@pytest.mark.parametrize("limit", ["", "sentence_bert_config max_seq_length", "tokenizer_config model_max_length"])
@pytest.mark.filterwarnings("ignore:.* the rest of them is not read")
def test_microbert_cuts_texts_as_embed(tmp_path, limit):
    torch.manual_seed(0)
    encoder = TransformerForMaskedLM(BertConfig(**TINY, initializer_range=0.3)).eval()
    encoder.save(tmp_path, tiny_tokenizer())
    if limit:
        file, name = limit.split()
        (tmp_path / f"{file}.json").write_text(json.dumps({name: 8}))
        (tmp_path / "modules.json").write_text(json.dumps(modules("Transformer", "Pooling")))
    found, encoder = microbert.Checkpoint(tmp_path), TransformerEncoder.from_checkpoint(tmp_path)
    texts = ["a b c " * 9, "b c a d e f a"]
    assert len(microbert.token_ids(texts[0], found)) == (8 if limit else TINY["max_position_embeddings"])
    ours = torch.tensor([microbert.embed(text, found) for text in texts])
    theirs = embed(texts, encoder, WordPieceTokenizer.from_checkpoint(tmp_path))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.long
def test_microbert_agrees_with_the_encoder_to_within_1e_6(model, encoder, tokenizer):
    text = "naïve: 北京 [MASK]"
    ours = torch.tensor([microbert.embed(text, model)])
    torch.testing.assert_close(ours, embed([text], encoder, tokenizer), atol=1e-6, rtol=0)


@pytest.mark.long
def test_microbert_runs_without_packages(encoder, tokenizer):
    """-S hides all installed packages, and -I the rest of this project."""
    texts = ["time flies", "a fly has wings"]
    done = run_python("-S", "-I", "microbert.py", *texts, CHECKPOINT=str(embedded_folder()))
    first, second = embed(texts, encoder, tokenizer)
    assert done.stdout == f"{first @ second:.2f} {texts[1]}\n"


@pytest.mark.parametrize("arguments", [[], ["one text"]])
def test_microbert_explains_its_use(arguments):
    done = run_python("microbert.py", *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith('usage: python microbert.py "a text" "another text"')
