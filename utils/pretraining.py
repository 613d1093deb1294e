"""Pretrain a tiny BERT on film reviews with masked words. Used in notebook 11.

`scripts/pretrain.py` runs this from the command line, and resumes a run that was stopped.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, islice
from string import ascii_lowercase, digits
from typing import BinaryIO

import numpy as np
import torch
from tokenizers.implementations import BertWordPieceTokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from utils.masked_lm import TransformerForMaskedLM, mask_tokens
from utils.support.batches import device_of, evaluation_mode, split_into_chunks
from utils.support.characters import CJK_RANGES, drop_surrogates, in_ranges
from utils.support.checks import SPECIAL_TOKENS, as_texts, check_settings, check_size, each_text
from utils.tokenization import WordPieceTokenizer, pre_tokenize
from utils.training import Evaluation, loss_sums, summarize

TINY = {
    "vocab_size": 2000,
    "hidden_size": 192,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 768,
    "max_position_embeddings": 64,
    "initializer_range": 0.05,
    "hidden_dropout_prob": 0.0,  # texts are repeated too rarely for dropout to help
    "attention_probs_dropout_prob": 0.0,
}
MAX_VOCAB_SIZE = 10**6  # the library allocates memory for all of them
EVAL_MASKING_RATE = 0.15  # of the words are selected in evaluation, independent of training
WINDOW = 8192  # rows are shuffled within windows, so the first batches need only the first texts
# Text as rows


def train_vocabulary(
    texts: Iterable[str],
    size: int = 2000,
    lowercase: bool = True,
    alphabet: str = ascii_lowercase + digits,
    characters: int = 100,
) -> WordPieceTokenizer:
    """Learn a tokenizer of up to `size` pieces with the library `tokenizers`, whose merges are those of notebook 01.

    The pieces for letters inside a word, `alphabet`, are passed as special tokens. Otherwise their order, and with it
    the choice between equally frequent merges, would be nondeterministic. At most `characters` characters are kept.
    """
    first = [*SPECIAL_TOKENS, *(f"##{letter}" for letter in alphabet)]
    check_size("size", size, minimum=len(first), maximum=MAX_VOCAB_SIZE)
    fast = BertWordPieceTokenizer(lowercase=lowercase)
    options = {"special_tokens": first, "limit_alphabet": characters, "show_progress": False}
    fast.train_from_iterator(map(drop_surrogates, each_text(texts)), vocab_size=size, **options)
    pieces = [*SPECIAL_TOKENS, *sorted(fast.get_vocab().keys() - set(SPECIAL_TOKENS))]
    return WordPieceTokenizer({piece: number for number, piece in enumerate(pieces)}, lowercase)


def learn_vocabulary(texts: Callable[[], Iterable[str]], size: int, lowercase: bool = True) -> WordPieceTokenizer:
    """Learn a tokenizer for texts in any script; `texts()` starts a pass over them, and there are two passes.

    Characters that occur once are left out, and also the rarest ones, if all of them would fill over two thirds of the
    vocabulary: a word that contains one becomes [UNK]. As in BERT, a Chinese character is a word, and lowercasing drops
    accents.
    """
    check_size("size", size, maximum=MAX_VOCAB_SIZE)
    fast, counts = BertWordPieceTokenizer(lowercase=lowercase), Counter()
    for text in each_text(texts()):
        counts.update(fast.normalizer.normalize_str(drop_surrogates(text)))
    often = sorted((-count, letter) for letter, count in counts.items() if count > 1 and not letter.isspace())
    kept, within, room = set(), [], 2 * size // 3
    for _, letter in often:
        inside = pre_tokenize(f"a{letter}") == [f"a{letter}"] and not in_ranges(letter, CJK_RANGES)
        room -= 1 + inside  # one piece at the start of a word, and one inside
        if room < 0:
            break
        kept.add(letter)
        within += [letter] * inside
    rare = {ord(letter): None for letter in counts.keys() - kept if not letter.isspace()}
    clean = (fast.normalizer.normalize_str(drop_surrogates(text)).translate(rare) for text in each_text(texts()))
    return train_vocabulary(clean, size, lowercase, "".join(sorted(within)), size)


def fill_rows(texts: Sequence[str], tokenizer: WordPieceTokenizer, length: int) -> Tensor:
    """Return texts as rows of ids (N, length) without padding: [CLS], text that continues in the next row, [SEP].

    A [SEP] also separates two texts. The incomplete row at the end is dropped. ValueError if there is no complete row.
    Built in notebook 11, section “Hide words”.
    """
    texts = as_texts(texts)
    check_size("length", length, minimum=3)
    fast = BertWordPieceTokenizer(tokenizer.vocab, lowercase=tokenizer.lowercase)
    cls_id, sep_id, room = tokenizer.vocab["[CLS]"], tokenizer.vocab["[SEP]"], length - 2
    encoded = fast.encode_batch([*map(drop_surrogates, texts)], add_special_tokens=False)
    stream = torch.tensor([token_id for text in encoded for token_id in (*text.ids, sep_id)])  # all texts in one row
    if len(stream) < room:
        raise ValueError(f"the texts have {len(stream)} tokens, and a row takes {room}: use more, or shorter rows")
    rows = stream[: len(stream) // room * room].view(-1, room)  # (N, length - 2)
    return F.pad(F.pad(rows, (1, 0), value=cls_id), (0, 1), value=sep_id)


def write_rows(texts: Iterable[str], fill: Callable[[list[str]], Tensor], length: int, file: BinaryIO) -> Tensor:
    """Write the rows of a stream of texts to an open file, and return them as a tensor on it, (N, length).

    `fill`, such as `fill_rows`, turns a list of texts into rows (n, length), and raises ValueError if they fill none.
    It is called with about a million characters at a time, whose incomplete last row is dropped. ValueError if there
    are no rows.
    """
    for chunk in split_into_chunks(texts):
        with suppress(ValueError):  # too short for a row
            file.write(fill(chunk).int().numpy().tobytes())
    file.flush()
    if not (size := file.tell()):
        raise ValueError(f"the texts fill no row of {length} tokens: use more, or shorter rows")
    return torch.from_numpy(np.memmap(file, np.int32, "r+", shape=(size // 4 // length, length)))


# Masked words


@dataclass(frozen=True)
class Settings:
    """What decides a run's weights, apart from model and texts. `steps` is the length of the complete schedule."""

    steps: int = 12_000
    batch_size: int = 32  # rows
    learning_rate: float = 1e-3
    probability: float = 0.2  # of a word to be selected
    seed: int = 0

    def __post_init__(self):
        check_settings(**vars(self))


def endless_batches(total: int, settings: Settings) -> Iterator[list[int]]:
    """Yield batches of row indices without end, each epoch in another order, shuffled within windows."""
    for epoch in count(1000 * settings.seed):
        generator = torch.Generator().manual_seed(epoch)
        windows = torch.arange(total).split(WINDOW)
        order = [window[torch.randperm(len(window), generator=generator)] for window in windows]
        yield from (batch.tolist() for batch in torch.cat(order).split(settings.batch_size))


def masked_batches(rows: Tensor, tokenizer, settings: Settings, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of rows with words masked, and their labels, (B, S) each, without end, from a step on.

    Random numbers depend only on seed and step, so an interrupted run can resume as if it had never stopped.
    """
    batches = islice(endless_batches(len(rows), settings), start, None)
    for step, batch in enumerate(batches, start):
        seed = 10_000_000 * settings.seed + step
        torch.manual_seed(seed)  # for dropout
        generator = torch.Generator().manual_seed(seed)
        yield mask_tokens(rows[batch].long(), tokenizer, settings.probability, generator)


def masked_lm_loss(model: nn.Module, hidden: Tensor, labels: Tensor) -> Tensor:
    """Return the `loss_sums` of a model's predictions at the selected positions of labels (B, S), (3,)."""
    hidden, labels = hidden.to(device_of(model)), labels.to(device_of(model))
    selected = labels != -100
    return loss_sums(model(hidden, where=selected), labels[selected])


@torch.no_grad()
def evaluate_masked(model: TransformerForMaskedLM, tokenizer, rows: Tensor) -> Evaluation:
    """Return loss and accuracy on a masked part of rows (N, S) of ids, in evaluation mode.

    Masks 15 % of the words, whatever the model was trained with. ValueError for rows without a word.
    """
    hidden, labels = mask_tokens(rows, tokenizer, EVAL_MASKING_RATE, torch.Generator().manual_seed(0))
    total = torch.zeros(3)
    with evaluation_mode(model):
        for ids, wanted in zip(hidden.split(64), labels.to(device_of(model)).split(64), strict=True):
            logits = model(ids.to(device_of(model)), where=wanted != -100)
            total += loss_sums(logits, wanted[wanted != -100]).cpu()
    return summarize(total)
