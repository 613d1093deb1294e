"""Words masked and guessed: the model, what is hidden, and how text is packed for it. Built in notebook 11."""

from collections.abc import Sequence
from string import ascii_lowercase, digits

import numpy as np
import torch
from scipy.sparse import csr_array
from tokenizers.implementations import BertWordPieceTokenizer
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig

from utils.batches import device_of, evaluation_mode
from utils.checkpoint import SavedModel
from utils.checks import SPECIAL_TOKENS, check_activation, check_between, check_size, check_texts
from utils.encoder import TransformerEncoder, initialize
from utils.encoder_layer import ACTIVATIONS
from utils.tokenization import WordPieceTokenizer, drop_surrogates
from utils.training import Evaluation, summarize, summed

MOST_PIECES = 10**6  # the library takes memory for all of them at once
ASKED = 0.15  # of the words are asked for when a model is judged, whatever it was trained with


class LanguageModelHead(nn.Module):
    """Transform, LayerNorm, product with the word embeddings, bias (Devlin et al. 2019, section 3.1).

    The product's matrix is handed over at every call, so nothing can untie it.
    """

    def __init__(self, config):
        super().__init__()
        H = config.hidden_size
        check_activation(config.hidden_act, ACTIVATIONS)
        self.transform = nn.Linear(H, H)
        self.activation = ACTIVATIONS[config.hidden_act]()
        self.layer_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden_states: Tensor, word_embeddings: Tensor) -> Tensor:
        """hidden_states (…, H) and the word embeddings (V, H) to logits (…, V)."""
        transformed = self.layer_norm(self.activation(self.transform(hidden_states)))
        return F.linear(transformed, word_embeddings, self.bias)


class TransformerForMaskedLM(SavedModel):
    """BERT guessing masked words: encoder, and a head that ends with the encoder's word embeddings."""

    architecture = "BertForMaskedLM"
    without_head = "use one that was saved as a BertForMaskedLM, such as bert-base-uncased"

    def __init__(self, config: BertConfig):
        """Random weights, in training mode. ValueError for a configuration that this series does not build."""
        super().__init__()
        if not getattr(config, "tie_word_embeddings", True):
            raise ValueError("tie_word_embeddings=False is not built here: use True, as BERT does")
        self.config = config
        self.encoder = TransformerEncoder(config)
        self.head = LanguageModelHead(config)
        initialize(self.head, config.initializer_range)

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


def mask_tokens(
    input_ids: Tensor, tokenizer, probability: float = 0.15, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Ids (B, S) with words hidden, and labels (B, S): the words asked for, -100 elsewhere.

    Each word is asked for with this probability, and one at least; then 80 % show [MASK], 10 % another word, 10 %
    themselves (Devlin et al. 2019, section 3.1). Special tokens stay. The generator is a CPU's. ValueError for a
    probability outside (0, 1), and for rows without a word.
    """
    check_between("probability", probability, 0, 1, "BERT's is 0.15")
    special = torch.tensor([tokenizer.vocab[token] for token in SPECIAL_TOKENS], device=input_ids.device)
    words = torch.tensor(sorted(set(tokenizer.vocab.values()) - set(special.tolist())))
    chance, fate = torch.rand(2, *input_ids.shape, generator=generator).to(input_ids.device)
    random_words = words[torch.randint(len(words), input_ids.shape, generator=generator)].to(input_ids.device)
    chance = chance.masked_fill(torch.isin(input_ids, special), 1.0)  # above all
    if not (chance < 1).any():
        raise ValueError("no word to ask for among special tokens: use rows of text")
    asked = (chance < probability) | (chance == chance.min())  # one word at least
    hidden = torch.where(asked & (fate < 0.8), tokenizer.vocab["[MASK]"], input_ids)
    hidden = torch.where(asked & (fate >= 0.9), random_words, hidden)
    return hidden, input_ids.masked_fill(~asked, -100)


def train_vocabulary(texts: Sequence[str], size: int = 2000) -> WordPieceTokenizer:
    """A tokenizer of up to `size` pieces, learned by the library `tokenizers`, whose merges are those of notebook 01.

    The letters within words are handed to it as special tokens: it would number them by chance otherwise, and of two
    merges that are as frequent it takes the one of the lower number.
    """
    check_texts(texts)
    letters = [f"##{letter}" for letter in ascii_lowercase + digits]
    first = [*SPECIAL_TOKENS, *letters]
    check_size("size", size, least=len(first), most=MOST_PIECES)
    fast = BertWordPieceTokenizer()
    options = {"special_tokens": first, "limit_alphabet": 100, "show_progress": False}
    fast.train_from_iterator(map(drop_surrogates, texts), vocab_size=size, **options)
    pieces = [*SPECIAL_TOKENS, *sorted(fast.get_vocab().keys() - set(SPECIAL_TOKENS))]
    return WordPieceTokenizer({piece: number for number, piece in enumerate(pieces)})


def pack(texts: Sequence[str], tokenizer: WordPieceTokenizer, length: int) -> Tensor:
    """Texts as rows of ids without padding, (N, length): [CLS] and [SEP] around text that runs on from row to row.

    A [SEP] also stands between two texts. What fills no row at the end is left out; ValueError if that is all.
    """
    check_texts(texts)
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
