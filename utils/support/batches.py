"""Turn texts into ids and padded batches of similar length. Used from 08 on."""

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import RLock

import torch
from torch import Tensor, nn

from utils.support.checks import as_list, as_pairs, as_texts, check_max_length, check_settings, check_tokenizer

CHANGING = RLock()  # held by the thread that changes models for a while, such as their mode


Texts = Iterable[str] | Iterable[tuple[str, str]]  # single texts or pairs of texts


class PairIds(list):
    """The ids of a pair, [CLS] first [SEP] second [SEP], of which the first `boundary` belong to segment 0."""

    def __init__(self, ids: Iterable[int], boundary: int):
        super().__init__(ids)
        self.boundary = boundary


def token_ids(texts: Texts, tokenizer, max_length: int) -> list[list[int]]:
    """Return each text or pair as ids from [CLS] to [SEP], cut to `max_length`, by our tokenizer or an official one."""
    texts = as_list("texts", texts)
    if not any(isinstance(text, tuple) for text in texts):
        check_max_length(max_length, special=2, text=1)
        texts = as_texts(texts)
        if hasattr(tokenizer, "segments"):  # a WordPieceTokenizer
            return [tokenizer.segments(text, None, max_length)[0] for text in texts]
        return tokenizer(texts, padding=False, truncation=True, max_length=max_length)["input_ids"]
    check_max_length(max_length, special=3, text=2)
    for number, pair in enumerate(texts):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"text {number} must be a pair of strings, as others are, got {pair!r:.80}")
    columns = [as_texts(column) for column in zip(*texts, strict=True)]
    if hasattr(tokenizer, "segments"):
        segments = (tokenizer.segments(*pair, max_length) for pair in as_pairs(*columns))
        return [PairIds([*first, *second], len(first)) for first, second in segments]
    found = tokenizer(*columns, padding=False, truncation=True, max_length=max_length)
    rows = zip(found["input_ids"], found["token_type_ids"], strict=True)
    return [PairIds(ids, segments.count(0)) for ids, segments in rows]


def model_ids(
    texts: Texts, model: nn.Module, tokenizer, max_length: int | None = None, *, report: bool = False
) -> list[list[int]]:
    """Return each text or pair as ids, cut to `max_length` and to the number of positions of the model.

    With `report`, a warning says how many texts were cut. ValueError for a `max_length` without room for a word, for a
    tokenizer of another model, and for pairs that the model cannot tell apart.
    """
    texts = as_list("texts", texts)
    check_tokenizer(tokenizer, model.config.vocab_size)
    positions = model.config.max_position_embeddings
    max_length = positions if max_length is None else max_length
    check_max_length(max_length, special=2, text=1)
    limit = min(max_length, positions)
    rows = token_ids(texts, tokenizer, limit)
    full = (text for text, row in zip(texts, rows, strict=True) if report and len(row) == limit)
    if cut := sum(len(tokenizer.encode(text)) > limit for text in full):
        message = f"{cut} of {len(texts)} texts have more than {limit} tokens, and the rest of them is not read"
        warnings.warn(f"{message}: split these texts", stacklevel=4)
    if isinstance(rows[0], PairIds) and model.config.type_vocab_size < 2:
        raise ValueError("pairs of texts need two segments, but type_vocab_size=1: use a checkpoint that has both")
    return rows


def collate(rows: Sequence[list[int]], device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Return rows of ids as a padded batch: input_ids, token_type_ids and attention_mask, each (B, S)."""
    S = max(map(len, rows))
    ids = torch.tensor([row + [0] * (S - len(row)) for row in rows], device=device)  # any id works: it is masked
    mask = torch.tensor([[1] * len(row) + [0] * (S - len(row)) for row in rows], device=device)
    types = torch.zeros_like(ids)
    if isinstance(rows[0], PairIds):
        segments = ([0] * row.boundary + [1] * (len(row) - row.boundary) + [0] * (S - len(row)) for row in rows)
        types = torch.tensor([*segments], device=device)
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}


def sorted_batches(
    rows: Sequence[list[int]], batch_size: int, max_padding: float = 0.25, max_tokens: float = math.inf
) -> Iterator[list[int]]:
    """Yield batches of row indices, longest rows first; at most `max_padding` of a row becomes padding.

    A batch of more than one row has at most `max_tokens` tokens, padding included.
    """
    check_settings(batch_size=batch_size)
    batch = []
    for index in sorted(range(len(rows)), key=lambda index: -len(rows[index])):
        longest = len(rows[batch[0]]) if batch else 0
        full = len(batch) >= min(batch_size, max_tokens // max(longest, 1))
        if batch and (full or len(rows[index]) < (1 - max_padding) * longest):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def full_batches(rows: Sequence[list[int]], batch_size: int | None, device: torch.device) -> Iterator[list[int]]:
    """Yield batches of row indices for `encode_packed`, longest rows first.

    By default, a batch has 32 rows on the processor, and on a GPU as many as fit into 16,384 tokens.
    """
    if batch_size is None and device.type != "cpu":
        return sorted_batches(rows, len(rows), max_padding=1, max_tokens=16_384)
    return sorted_batches(rows, 32 if batch_size is None else batch_size, max_padding=1)


def shuffled_batches(rows: Sequence[list[int]], batch_size: int, seed: int) -> list[list[int]]:
    """Return each row index once, in batches of about the same size and of rows of similar length, in random order.

    Lengths are jittered by up to four tokens before sorting, so another seed also combines other rows.
    """
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([len(row) for row in rows]) + 4 * torch.rand(len(rows), generator=generator)
    batches = lengths.argsort().tensor_split(math.ceil(len(rows) / batch_size))
    return [batches[index].tolist() for index in torch.randperm(len(batches), generator=generator)]


def split_into_chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield lists of texts of at least a million characters in total; the last list may be shorter."""
    chunk, length = [], 0
    for text in texts:
        chunk.append(text)
        length += len(text)
        if length >= 1_000_000:
            yield chunk
            chunk, length = [], 0
    if chunk:
        yield chunk


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Turn dropout off in the block, and restore the mode of every module after it.

    Other threads wait until the block ends, unless dropout was off before. ValueError for a model that cannot compute
    because its weights have several types.
    """
    with ExitStack() as changing:
        changing.enter_context(CHANGING)
        modes = [(module, module.training) for module in model.modules()]
        if not any(mode for _, mode in modes):
            changing.close()
        model.eval()
        try:
            yield
        except RuntimeError as error:
            types = sorted({str(weight.dtype).removeprefix("torch.") for weight in model.parameters()})
            if len(types) == 1 or "type" not in str(error):
                raise
            raise ValueError(
                f"the model has weights of several types, {', '.join(types)}: call model.float()"
            ) from error
        finally:
            for module, mode in modes:
                module.training = mode


def device_of(model: nn.Module) -> torch.device:
    """Return the device of the model's weights."""
    return next(model.parameters()).device
