"""The classifier equals BertForSequenceClassification, and is saved and loaded whole or not at all."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification

from utils import classifier
from utils.checkpoints import DEFAULT_CHECKPOINT
from utils.checks import largest_difference
from utils.classifier import TransformerForSequenceClassification

TINY = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 20}
TINY |= {"vocab_size": 50, "max_position_embeddings": 16}


def batch_with_padding(vocab_size: int = 50) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1, vocab_size, (4, 9), generator=generator)
    mask = (torch.arange(9) < torch.tensor([9, 2, 6, 1])[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": (torch.arange(9) > 4) * mask}


def official_and_ours(**options):
    torch.manual_seed(0)
    official = BertForSequenceClassification(BertConfig(**TINY, **options)).eval()
    for weight in official.parameters():  # BERT starts with weights too small to tell models apart
        torch.nn.init.normal_(weight, std=0.3)
    ours = TransformerForSequenceClassification(official.config).eval()
    ours.load_bert_weights(official.state_dict())
    return official, ours


@pytest.fixture
def tiny() -> TransformerForSequenceClassification:
    return official_and_ours()[1]


def same(ours: TransformerForSequenceClassification, official) -> float:
    batch = batch_with_padding()
    with torch.no_grad():
        return largest_difference(ours(**batch), official(**batch).logits)


@pytest.mark.parametrize("num_labels", [2, 3, 7])
def test_logits_and_loss_equal_the_official_ones(num_labels):
    official, ours = official_and_ours(num_labels=num_labels)
    batch, labels = batch_with_padding(), torch.tensor([0, 1, num_labels - 1, 0])
    expected = official(**batch, labels=labels)
    logits = ours(**batch)
    assert logits.shape == (4, num_labels)
    assert largest_difference(logits, expected.logits) <= 1e-5
    assert largest_difference(F.cross_entropy(logits, labels), expected.loss) <= 1e-5


def test_gradients_equal_the_official_ones():
    official, ours = official_and_ours()
    batch, labels = batch_with_padding(), torch.tensor([0, 1, 1, 0])
    official(**batch, labels=labels).loss.backward()
    F.cross_entropy(ours(**batch), labels).backward()
    assert largest_difference(ours.pooler.weight.grad, official.bert.pooler.dense.weight.grad) <= 1e-5
    word_grads = [model.embeddings.word_embeddings.weight.grad for model in (ours.encoder, official.bert)]
    assert largest_difference(*word_grads) <= 1e-5


def test_pretrained_body_equals_the_official_one(tokenizer, reference):
    torch.manual_seed(0)
    ours = TransformerForSequenceClassification.from_checkpoint(DEFAULT_CHECKPOINT, num_labels=3)
    official = BertForSequenceClassification(ours.config)
    official.bert.load_state_dict(reference.state_dict())
    official.classifier.load_state_dict(ours.classifier.state_dict())
    batch, labels = (
        tokenizer(["A film to remember.", "Dull", "what a long sentence !"]),
        torch.tensor([0, 1, 2]),
    )
    with torch.no_grad():
        expected = official.eval()(**batch, labels=labels)
        logits = ours(**batch)
    assert not ours.training
    assert largest_difference(logits, expected.logits) <= 1e-5
    assert largest_difference(F.cross_entropy(logits, labels), expected.loss) <= 1e-5


@pytest.mark.parametrize(("own", "used"), [(None, 0.4), (0.0, 0.0), (0.2, 0.2)])
def test_dropout_before_the_head(own, used):
    config = BertConfig(**TINY, hidden_dropout_prob=0.4, classifier_dropout=own)
    assert TransformerForSequenceClassification(config).dropout.p == used


@pytest.mark.parametrize("num_labels", [0, 1])
def test_too_few_classes(num_labels):
    with pytest.raises(ValueError, match=rf"num_labels={num_labels}: a classifier needs two classes or more"):
        TransformerForSequenceClassification(BertConfig(**TINY, num_labels=num_labels))


def test_config_is_not_changed():
    config = BertConfig(**TINY)
    before = config.to_dict()
    TransformerForSequenceClassification(config)
    assert config.to_dict() == before


def test_an_encoder_without_a_head(tiny):
    weights = {name: w for name, w in official_and_ours()[0].state_dict().items() if "classifier" not in name}
    with pytest.raises(ValueError, match=r"missing: classifier\.bias, classifier\.weight"):
        tiny.load_bert_weights(weights)


def test_head_with_another_number_of_labels(tiny):
    other = official_and_ours(num_labels=3)[0]
    with pytest.raises(ValueError, match=r"stored head has 3 labels, and 2 are wanted: ask for num_labels=3"):
        tiny.load_bert_weights(other.state_dict())


def test_weights_that_do_not_fit(tiny):
    weights = official_and_ours()[0].state_dict()
    del weights["bert.pooler.dense.bias"]
    with pytest.raises(ValueError, match=r"missing: pooler.bias"):
        tiny.load_bert_weights(weights)
    with pytest.raises(ValueError, match=r"unexpected: surplus"):
        tiny.load_bert_weights(official_and_ours()[0].state_dict() | {"surplus": torch.zeros(1)})


def test_id_buffers_of_old_checkpoints_are_left_out(tiny):
    weights = official_and_ours()[0].state_dict()
    tiny.load_bert_weights(weights | {"bert.embeddings.position_ids": torch.arange(16)[None]})


def test_a_saved_model_comes_back_and_loads_into_transformers(tiny, tmp_path):
    tiny.save(tmp_path / "new" / "model")
    loaded = TransformerForSequenceClassification.load(tmp_path / "new" / "model")
    assert not loaded.training
    assert all(torch.equal(weight, tiny.state_dict()[name]) for name, weight in loaded.state_dict().items())
    official, report = BertForSequenceClassification.from_pretrained(
        tmp_path / "new" / "model", output_loading_info=True
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert same(tiny, official.eval()) <= 1e-5
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["model"]


def test_what_transformers_saved_loads_here(tmp_path):
    official, _ = official_and_ours(num_labels=4)
    official.save_pretrained(tmp_path)
    ours = TransformerForSequenceClassification.load(tmp_path, num_labels=4)
    assert same(ours, official) <= 1e-5
    with pytest.raises(ValueError, match=r"stored head has 4 labels, and 2 are wanted"):
        TransformerForSequenceClassification.load(tmp_path, num_labels=2)


def test_a_half_precision_config_does_not_reach_the_saved_model(tmp_path):
    config = BertConfig(**TINY, torch_dtype=torch.float16)  # the name that transformers 4 and 5 both take
    TransformerForSequenceClassification(config).save(tmp_path / "model")
    assert BertForSequenceClassification.from_pretrained(tmp_path / "model").dtype == torch.float32


def test_saving_again_replaces_the_model_and_keeps_other_files(tiny, tmp_path):
    folder = tmp_path / "model"
    tiny.save(folder)
    (folder / "vocab.txt").write_text("[PAD]\n")
    with torch.no_grad():
        tiny.classifier.bias.add_(1)
    tiny.save(folder)
    loaded = TransformerForSequenceClassification.load(folder)
    assert torch.equal(loaded.classifier.bias, tiny.classifier.bias)
    assert (folder / "vocab.txt").read_text() == "[PAD]\n"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_of_something_else_is_left_alone(tiny, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds other files than a model's: save into a folder of its own"):
        tiny.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def break_off(error):
    def fail(*arguments, **options):
        raise error

    return fail


@pytest.mark.parametrize("error", [OSError("No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["save_file", "replace_folder"])
def test_a_failed_save_loses_nothing(tiny, tmp_path, monkeypatch, error, step):
    folder = tmp_path / "model"
    tiny.save(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(classifier, step, break_off(error))
    with torch.no_grad():
        tiny.classifier.bias.add_(1)
    with pytest.raises(type(error)):
        tiny.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("breaks_at", [1, 2])
def test_a_failed_rename_loses_nothing(tiny, tmp_path, monkeypatch, breaks_at):
    folder, rename, calls = tmp_path / "model", Path.rename, []
    tiny.save(folder)

    def failing(self, target):
        calls.append(target)
        if len(calls) == breaks_at:
            raise OSError("input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(
        OSError, match=r"could not be saved in .*model \(input/output error\): choose a folder"
    ):
        tiny.save(folder)
    TransformerForSequenceClassification.load(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_save_cut_off_between_its_renames_is_read_from_the_old_copy(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    (tmp_path / "model").rename(tmp_path / ".model.previous")
    loaded = TransformerForSequenceClassification.load(tmp_path / "model")
    assert torch.equal(loaded.classifier.bias, tiny.classifier.bias)
    tiny.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_unwritable_folder(tiny, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(OSError, match=r"could not be saved in .*choose a folder that you may write"):
            tiny.save(folder)
    assert (tmp_path / "file").read_text() == "not a folder"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is no folder: pass one that save\(\) has written"):
        TransformerForSequenceClassification.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_half_written_folder(tiny, tmp_path, name):
    folder = tmp_path / "model"
    tiny.save(folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"is half-written or altered .*: save the model again"):
        TransformerForSequenceClassification.load(folder)
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"lacks {name}, so it holds no whole model: save it again"):
        TransformerForSequenceClassification.load(folder)


def test_a_folder_whose_parts_disagree(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    content = json.loads(config.read_text())
    config.write_text(json.dumps(content | {"model_type": "gpt2"}))
    with pytest.raises(ValueError, match=r'holds model_type="gpt2", and this series builds "bert"'):
        TransformerForSequenceClassification.load(tmp_path / "model")
    config.write_text(json.dumps(content | {"num_hidden_layers": 3}))
    with pytest.raises(ValueError, match=r"missing: encoder.layers.2"):
        TransformerForSequenceClassification.load(tmp_path / "model")
    config.write_text(json.dumps(content))
    weights = load_file(tmp_path / "model" / "model.safetensors")
    save_file(weights | {"classifier.weight": torch.zeros(5, 12)}, tmp_path / "model" / "model.safetensors")
    with pytest.raises(ValueError, match=r"stored head has 5 labels, and 2 are wanted"):
        TransformerForSequenceClassification.load(tmp_path / "model")
