"""The tasks that are timed: forward passes, embedding, predicting, fine-tuning and tokenizing."""

import logging
import tempfile
from collections.abc import Callable, Iterator

import torch
import transformers
from sentence_transformers import SentenceTransformer
from torch import Tensor
from transformers import BertForSequenceClassification, BertModel, DataCollatorWithPadding, Trainer, TrainingArguments

from benchmarks.baselines import forward_contestants, limit, random_bert, require_agreement
from benchmarks.timing import OURS, Work
from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder
from utils.packing import encode_packed
from utils.search import embed, mean_pooling
from utils.support.batches import collate, sorted_batches, token_ids
from utils.support.checkpoint import load_reference_model, load_tokenizer
from utils.support.datasets import Examples, reviews
from utils.tokenization import WordPieceTokenizer
from utils.training import fine_tune

TRAINER, SENTENCE_TRANSFORMERS = "transformers, Trainer's defaults", "sentence-transformers"
SORTED, UNSORTED = "transformers, sorted by length", "transformers, as they come"
PADDED = "transformers, padded to 128"
OFFICIAL_TOKENIZER = "transformers (Rust)"
SHAPES = {(8, 128): 15, (1, 8): 60, (1, 16): 60, (1, 512): 15}  # (B, S): rounds
MIXED = "forward, 32 reviews of mixed length"
WITH_PADDING, SIMILAR = f"{OURS}, padded", f"{OURS}, padded batches of similar length"


def forward_works() -> Iterator[Work]:
    """Yield forward passes at BERT-base's size, with random weights that all contestants share."""
    encoder, official = random_bert("cpu", torch.float32)
    generator = torch.Generator().manual_seed(0)
    for (B, S), rounds in SHAPES.items():
        rows = torch.randint(1000, encoder.config.vocab_size, (B, S), generator=generator).tolist()
        contestants = forward_contestants(encoder, official, collate(rows))
        yield Work(f"forward, {B} × {S}", contestants, rounds)
    rows = token_ids(reviews().test.texts[:32], load_tokenizer(), 512)
    batch = collate(rows)
    groups = [collate(group) for group in in_batches(rows)]
    contestants = forward_contestants(encoder, official, batch)
    ours = {
        OURS: lambda: forward_packed(encoder, batch),
        SIMILAR: lambda: forward_groups(encoder, groups),
        WITH_PADDING: contestants.pop(OURS),
    }
    require_agreement({name: ours[name] for name in (OURS, WITH_PADDING)}, batch["attention_mask"])
    yield Work(MIXED, ours | contestants, 9)


@torch.inference_mode()
def forward_packed(encoder: TransformerEncoder, batch: dict[str, Tensor]) -> Tensor:
    """Encode texts of different lengths as `embed` does."""
    return encode_packed(encoder, **batch)


@torch.inference_mode()
def forward_groups(encoder: TransformerEncoder, groups: list[dict[str, Tensor]]) -> None:
    """Encode texts of different lengths as `predict` does, in padded batches of similar length."""
    for batch in groups:
        encoder(**batch)


def embed_works() -> Iterator[Work]:
    """Yield embedding 256 reviews with the embedded checkpoint, with one tokenizer, in each way's default batches."""
    texts, tokenizer = list(reviews().train.texts[:256]), load_tokenizer()
    encoder = TransformerEncoder.from_checkpoint()
    folder = load_reference_model().name_or_path
    official = BertModel.from_pretrained(folder).eval()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    peer = SentenceTransformer(folder, device="cpu", local_files_only=True)
    batches = [[len(rows) for rows in group] for group in in_batches(token_ids(texts, tokenizer, 512), max_padding=1)]
    by_length = sorted(texts, key=len, reverse=True)
    contestants = {
        OURS: lambda: embed(texts, encoder, tokenizer),
        SENTENCE_TRANSFORMERS: lambda: peer.encode(texts, show_progress_bar=False),
        SORTED: lambda: embed_with_transformers(by_length, official, tokenizer, padding=True),
        UNSORTED: lambda: embed_with_transformers(texts, official, tokenizer, padding=True),
        PADDED: lambda: embed_with_transformers(texts, official, tokenizer, padding="max_length"),
    }
    contestants |= limit(encoder, *batches)
    total = sum(map(sum, batches))
    yield Work(f"embed {len(texts):,} reviews ({total:,} tokens)", contestants, 15)


def in_batches(rows: list[list[int]], **options) -> list[list[list[int]]]:
    """Return the rows in batches of up to 32, longest first, with the options of `sorted_batches`."""
    return [[rows[number] for number in numbers] for numbers in sorted_batches(rows, 32, **options)]


@torch.inference_mode()
def embed_with_transformers(texts: list[str], model: BertModel, tokenizer, padding: bool | str) -> None:
    """Embed texts the usual way: batches in the given order, and the mean of the real tokens."""
    for start in range(0, len(texts), 32):
        options = {"truncation": True, "max_length": 128, "return_tensors": "pt"}
        batch = tokenizer(texts[start : start + 32], padding=padding, **options).to(model.device)
        mean_pooling(model(**batch).last_hidden_state, batch["attention_mask"])


def fine_tuning_works() -> Iterator[Work]:
    """An epoch over 480 reviews in batches of 32, tokenizing included; the embedded checkpoint."""
    transformers.utils.logging.set_verbosity_error()
    train, few, tokenizer = reviews().train[:480], reviews().validation[:2], load_tokenizer()
    model = TransformerForSequenceClassification.from_checkpoint(num_labels=2)
    folder = load_reference_model().name_or_path
    official = BertForSequenceClassification.from_pretrained(folder, num_labels=2)
    contestants = {
        OURS: lambda: fine_tune(model, tokenizer, train, few, epochs=1, learning_rate=5e-5, quiet=True),
        TRAINER: lambda: train_with_trainer(official, tokenizer, train),
    }
    yield Work("fine-tuning, an epoch of 15 steps", contestants, 5)


def train_with_trainer(model: BertForSequenceClassification, tokenizer, train: Examples) -> None:
    """Train an epoch with Trainer's defaults, except for the batch size, which is ours."""
    rows = token_ids(train.texts, tokenizer, 512)
    data = [{"input_ids": row, "labels": label} for row, label in zip(rows, train.labels, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=1,
            per_device_train_batch_size=32,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            logging_strategy="no",
            dataloader_pin_memory=False,
        )
        Trainer(model, arguments, DataCollatorWithPadding(tokenizer), data).train()


def tokenizer_works() -> Iterator[Work]:
    """Yield tokenizing 2,000 reviews."""
    ours, official = WordPieceTokenizer.from_checkpoint(), load_tokenizer()
    texts = list(reviews().train.texts[:2000])
    contestants: dict[str, Callable] = {
        OURS: lambda: token_ids(texts, ours, 512),
        OFFICIAL_TOKENIZER: lambda: token_ids(texts, official, 512),
    }
    yield Work("tokenize 2,000 reviews", contestants, 9)
