"""Words masked and guessed: the model, what is hidden, and how text is packed for it. Built in notebook 11."""

from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase, digits

import numpy as np
import torch
from safetensors.torch import save as to_bytes
from scipy.sparse import csr_array
from tokenizers.implementations import BertWordPieceTokenizer
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from utils.batches import device_of, evaluation_mode
from utils.checking import (
    SPECIAL_TOKENS,
    require_finite_weights,
    require_probability,
    require_size,
    require_texts,
    require_words,
)
from utils.checkpoints import (
    BUFFERS,
    checkpoint_folder,
    is_encoder_weight,
    make_config,
    modern_name,
    read_config,
)
from utils.classifier import config_file, require_own_folder, vocabulary_files
from utils.encoder import TransformerEncoder, initialize, rename_weight
from utils.files import WEIGHTS_FILE, open_weights, read_weights, weight_files
from utils.language_model_head import HEAD, LanguageModelHead, rename_head, rename_tied
from utils.saving import write_folder
from utils.tokenization import WordPieceTokenizer, drop_surrogates
from utils.training import Evaluation, summarize, summed

ASKED = 0.15  # of the words are asked for when a model is judged, whatever it was trained with


class StoredMaskedLM(nn.Module):
    """A masked-LM that comes from a checkpoint's folder, and is saved in one."""

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None):
        """Pretrained weights, head included, in evaluation mode; ValueError for a checkpoint without that head."""
        folder = checkpoint_folder(checkpoint)
        stored = [name for path in weight_files(folder) for name in open_weights(path).keys()]  # noqa: SIM118
        if not any(name.startswith(HEAD) for name in stored):
            remedy = "use bert-base-uncased, or a folder that scripts/pretrain.py wrote"
            raise ValueError(f"{folder} holds an encoder without masked-LM head ({HEAD}*): {remedy}")
        model = cls(make_config(read_config(folder), folder))
        model.load_state_dict(read_weights(folder, model.state_dict(), stored_name))
        return model.eval()

    def save(self, folder: str | Path, tokenizer, dtype: torch.dtype = torch.float32) -> None:
        """Write configuration, weights and vocabulary for every `from_checkpoint` and for transformers.

        Written whole or not at all; errors as in a classifier's `save`.
        """
        folder, state_dict = require_own_folder(Path(folder).expanduser().resolve()), self.state_dict()
        names = {name: stored_name(name) for name in official_names(self.config)}
        weights = {
            name: state_dict[ours].to("cpu", dtype).contiguous() for name, ours in names.items() if ours
        }
        require_finite_weights(weights)
        contents = config_file(self.config, None, "BertForMaskedLM")
        contents |= {WEIGHTS_FILE: to_bytes(weights, metadata={"format": "pt"})}
        write_folder(folder, contents | vocabulary_files(tokenizer, None, self.config))


class TransformerForMaskedLM(StoredMaskedLM):
    """BERT guessing masked words: encoder, and a head that ends with the encoder's word embeddings."""

    def __init__(self, config: BertConfig):
        """Random weights, in training mode. ValueError for a configuration that this series does not build."""
        super().__init__()
        self.config = require_tied(config)
        self.encoder = TransformerEncoder(config)
        self.head = LanguageModelHead(config)
        initialize(self.head, config.initializer_range)

    def load_bert_weights(self, state_dict: dict[str, Tensor]) -> None:
        """Copy a `BertForMaskedLM`'s weights; ValueError lists those that do not fit."""
        self.load_state_dict(rename_tied(state_dict, own_name, self.state_dict()))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        where: Tensor | None = None,
    ) -> Tensor:
        """input_ids, attention_mask, token_type_ids (B, S) to logits (B, S, V); only where `where` is True: (N, V)."""
        hidden_states = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        if where is not None:
            hidden_states = hidden_states[where]  # (N, H)
        return self.head(hidden_states, self.encoder.embeddings.word_embeddings.weight)


def require_tied(config):
    """Return the configuration; ValueError if its masked-LM head has a decoder of its own."""
    if not getattr(config, "tie_word_embeddings", True):
        raise ValueError("tie_word_embeddings=False is not built here: use True, as BERT does")
    return config


def own_name(name: str) -> str | None:
    """Our name for a `BertForMaskedLM`'s weight; None for what it does without."""
    name = rename_head(modern_name(name))
    if name.startswith(("cls.seq_relationship.", "pooler.")) or name.endswith(BUFFERS):
        return None
    return f"encoder.{rename_weight(name)}" if is_encoder_weight(name) else name


def stored_name(name: str) -> str | None:
    """The same for a weight in a file, where what is tied stands once."""
    return None if name.startswith(HEAD + "decoder.") else own_name(name)


def official_names(config: BertConfig) -> list[str]:
    """The names of a `BertForMaskedLM`'s weights, without memory for them."""
    with torch.device("meta"):
        return list(BertForMaskedLM(config).state_dict())


def mask_tokens(
    input_ids: Tensor, tokenizer, probability: float = 0.15, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Ids (B, S) with words hidden, and labels (B, S): the words asked for, -100 elsewhere.

    Each word is asked for with this probability, and one at least; then 80 % show [MASK], 10 % another word, 10 %
    themselves (Devlin et al. 2019, section 3.1). Special tokens stay. The generator is a CPU's. ValueError for a
    probability outside (0, 1), and for rows without a word.
    """
    require_probability(probability)
    special = torch.tensor([tokenizer.vocab[token] for token in SPECIAL_TOKENS], device=input_ids.device)
    words = torch.tensor(sorted(set(tokenizer.vocab.values()) - set(special.tolist())))
    chance, fate = torch.rand(2, *input_ids.shape, generator=generator).to(input_ids.device)
    random_words = words[torch.randint(len(words), input_ids.shape, generator=generator)].to(input_ids.device)
    chance = chance.masked_fill(torch.isin(input_ids, special), 1.0)  # above every probability
    require_words(chance < 1)
    asked = (chance < probability) | (chance == chance.min())  # one word at least
    hidden = torch.where(asked & (fate < 0.8), tokenizer.vocab["[MASK]"], input_ids)
    hidden = torch.where(asked & (fate >= 0.9), random_words, hidden)
    return hidden, input_ids.masked_fill(~asked, -100)


def train_vocabulary(texts: Sequence[str], size: int = 2000) -> WordPieceTokenizer:
    """A tokenizer of up to `size` pieces, learned by the library `tokenizers`, whose merges are those of notebook 01.

    The letters within words are handed to it as special tokens: it would number them by chance otherwise, and of two
    merges that are as frequent it takes the one of the lower number.
    """
    require_texts(texts)
    letters = [f"##{letter}" for letter in ascii_lowercase + digits]
    first = [*SPECIAL_TOKENS, *letters]
    require_size("size", size, most=10_000_000, least=len(first))
    fast = BertWordPieceTokenizer()
    options = {"special_tokens": first, "limit_alphabet": 100, "show_progress": False}
    fast.train_from_iterator(map(drop_surrogates, texts), vocab_size=size, **options)
    pieces = [*SPECIAL_TOKENS, *sorted(fast.get_vocab().keys() - set(SPECIAL_TOKENS))]
    return WordPieceTokenizer({piece: number for number, piece in enumerate(pieces)})


def pack(texts: Sequence[str], tokenizer: WordPieceTokenizer, length: int) -> Tensor:
    """Texts as rows of ids without padding, (N, length): [CLS] and [SEP] around text that runs on from row to row.

    A [SEP] also stands between two texts. What fills no row at the end is left out; ValueError if that is all.
    """
    require_texts(texts)
    fast = BertWordPieceTokenizer(tokenizer.vocab, lowercase=tokenizer.lowercase)
    cls_id, sep_id, room = tokenizer.vocab["[CLS]"], tokenizer.vocab["[SEP]"], length - 2
    encoded = fast.encode_batch([*map(drop_surrogates, texts)], add_special_tokens=False)
    stream = torch.tensor([token_id for text in encoded for token_id in (*text.ids, sep_id)])
    if room < 1 or len(stream) < room:
        sizes = f"the texts have {len(stream)} tokens, and a row takes {room}"
        raise ValueError(f"{sizes}: use more, or shorter rows")
    rows = stream[: len(stream) // room * room].view(-1, room)
    return F.pad(F.pad(rows, (1, 0), value=cls_id), (0, 1), value=sep_id)


class NeighbourGuess:
    """Guesses a hidden word from the words left and right of it, by counting: what a model has to beat.

    The counts of both together count most; where they are few those of each neighbour alone, then those of the word.
    """

    ALONE, TOGETHER = 20, 5  # how many counts what stands behind them weighs

    def __init__(self, rows: Tensor, vocab_size: int):
        """Count in rows (N, S) of ids."""
        left, word, right = (
            rows[:, start : rows.size(1) - 2 + start].flatten().numpy() for start in range(3)
        )
        self.size = vocab_size
        self.word = self.smooth(np.bincount(word, minlength=vocab_size), 1 / vocab_size, 1)  # (V,)
        self.after, self.before = self.count(left, word), self.count(right, word)
        self.between = self.count(left * vocab_size + right, word)  # a number for each pair of neighbours

    @staticmethod
    def smooth(counts: np.ndarray, expected: np.ndarray | float, weight: float) -> np.ndarray:
        """Shares of counts (…, V) to which the expected shares were added, as if counted `weight` times."""
        return (counts + weight * expected) / (counts.sum(axis=-1, keepdims=True) + weight)

    def count(self, given: np.ndarray, word: np.ndarray) -> tuple[np.ndarray, csr_array]:
        """What is given, each once and sorted (K,), and how often each word goes with it (K + 1, V), last nothing."""
        known, rows = np.unique(given, return_inverse=True)
        counts = (np.ones(len(word), np.float32), (rows, word))
        return known, csr_array(counts, shape=(len(known) + 1, self.size))

    @staticmethod
    def look_up(known: np.ndarray, counts: csr_array, given: np.ndarray) -> np.ndarray:
        """How often each word went with what is given (N,), by `count`'s result: (N, V), 0 for what it never saw."""
        rows = np.searchsorted(known, given)
        seen = np.append(known, -1)[rows] == given
        return counts[np.where(seen, rows, len(known))].toarray()

    def probabilities(self, hidden: Tensor, where: Tensor) -> Tensor:
        """Ids with words hidden (B, S) to probabilities (N, V) of the words where `where` (B, S) is True."""
        left, right = (hidden.roll(shift, dims=1)[where].numpy() for shift in (1, -1))
        after, before = (
            self.smooth(self.look_up(*counts, given), self.word, self.ALONE)
            for counts, given in ((self.after, left), (self.before, right))
        )
        each = after * before / self.word  # as if the two were independent, given the word
        each /= each.sum(axis=1, keepdims=True)
        both = self.look_up(*self.between, left * self.size + right)
        return torch.from_numpy(self.smooth(both, each, self.TOGETHER))


@torch.no_grad()
def evaluate_masked(model: TransformerForMaskedLM, tokenizer, rows: Tensor, seed: int = 0) -> Evaluation:
    """Loss and share of right guesses at one word in seven or so of rows (N, S) of ids, in evaluation mode.

    ValueError for rows without a word.
    """
    hidden, labels = mask_tokens(rows, tokenizer, ASKED, torch.Generator().manual_seed(seed))
    total = torch.zeros(3)
    with evaluation_mode(model):
        for ids, wanted in zip(hidden.split(64), labels.to(device_of(model)).split(64), strict=True):
            logits = model(ids.to(device_of(model)), where=wanted != -100)
            total += summed(logits, wanted[wanted != -100]).cpu()
    return summarize(total)
