"""Answers to the exercises of notebook 11 that its checks do not declare."""

import numpy as np
import torch


def hide_in_numpy(ids, special, mask_id, words, probability):
    generator, ids = np.random.default_rng(), ids.numpy().copy()
    labels = np.full_like(ids, -100)
    for place, token_id in np.ndenumerate(ids):
        if token_id not in special.tolist() and generator.random() < probability:
            labels[place] = token_id
            other = int(generator.choice(words.numpy()))
            ids[place] = generator.choice([mask_id, other, token_id], p=[0.8, 0.1, 0.1])
    return ids, labels


def in_each_row(words, probability, pick):
    """Of each row's words those at the places that `pick` draws from their number and how many are wanted."""
    selected = torch.zeros_like(words)
    for row, places in zip(selected, words, strict=True):
        places = places.nonzero()[:, 0]
        row[places[pick(len(places), round(probability * len(places)))]] = True
    return selected


def a_stretch(count, wanted):
    return torch.arange(count).roll(int(torch.randint(count, ())))[:wanted]


def as_many(count, wanted):
    return torch.randperm(count)[:wanted]


def every_few(words, probability):
    step = round(1 / probability)
    return (torch.arange(words.numel()).view(words.shape) % step == int(torch.randint(step, ()))) & words


def one_half(words, probability):
    return (torch.rand(words.shape) < 2 * probability) & words & (torch.arange(words.size(1)) <= 20)


def without_transform(head):
    def init(self, config, word_embeddings):
        head.__init__(self, config, word_embeddings)
        del self.transform

    return type("Head", (head,), {"__init__": init})


RIGHT = r"""
    11.1 | hide_in_numpy
    11.1 | (torch.rand(ids.shape) < probability) & ~torch.isin(ids, special) => in_each_row(~torch.isin(ids, special), probability, as_many)
    11.1 | return shown, ids.masked_fill(~selected, -100) => return [shown, ids.masked_fill(~selected, -100)]
    11.1 | selected = (torch.rand(ids.shape) => draw = torch.rand(ids.shape); selected = (draw ;; fate = torch.rand(ids.shape) => fate = draw / probability
    11.2 | H = config.hidden_size => H = config.hidden_size; self.decoder = nn.Linear(H, config.vocab_size, bias=False); self.decoder.weight = word_embeddings.weight ;; transformed @ self.word_embeddings.weight.T => self.decoder(transformed)
    11.3 | 5.84
    11.3 | np.float64(5.83)
"""
WRONG = r"""
    11.1 | & ~torch.isin(ids, special) => | special token
    11.1 | & ~torch.isin(ids, special) => & (ids >= 5) | special token
    11.1 | fate < 0.8 => fate < 0.78 | show [MASK]
    11.1 | fate >= 0.9 => fate >= 0.88 | of the selected words are unchanged
    11.1 | torch.randint(len(words), ids.shape) => (torch.rand(ids.shape) ** 2 * len(words)).long() | far more often than others
    11.1 | return shown, ids.masked_fill(~selected, -100) => return shown, ids.masked_fill(~selected, -100).int() | labels that you return have the dtype torch.int32
    11.1 | return shown, ids.masked_fill(~selected, -100) => return shown.short(), ids.masked_fill(~selected, -100) | ids that you return have the dtype torch.int16
    11.1 | random_words = words[torch.randint(len(words), ids.shape)] => random_words = words[7] | same few
    11.1 | torch.randint(len(words), => torch.randint(len(words) - 1, | are never drawn as the random
    11.1 | words[torch.randint(len(words), ids.shape)] => torch.randint(3, ids.shape) | A random word is not in
    11.1 | < probability) => < 2 * probability) | of the words are selected, but
    11.1 | selected = (torch.rand => torch.manual_seed(0); selected = (torch.rand | Two calls select the same words
    11.1 | ids.masked_fill(~selected, -100) => ids.clone() | -100
    11.1 | ids.masked_fill(~selected, -100) => shown.masked_fill(~selected, -100) | before it was hidden
    11.1 | return shown, => shown[0, 0] += 1; return shown, | A word that is not selected
    11.1 | (torch.rand(ids.shape) < probability) & ~torch.isin(ids, special) => one_half(~torch.isin(ids, special), probability) | columns
    11.1 | torch.rand(ids.shape) < probability => torch.rand(len(ids), 1) < probability | Nearly whole rows are selected
    11.1 | (torch.rand(ids.shape) < probability) & ~torch.isin(ids, special) => in_each_row(~torch.isin(ids, special), probability, a_stretch) | The selected words are next to
    11.1 | (torch.rand(ids.shape) < probability) & ~torch.isin(ids, special) => every_few(~torch.isin(ids, special), probability) | The selected words avoid each other
    11.1 | torch.rand(ids.shape) < probability => torch.rand(100)[ids] < probability | A word is selected everywhere or
    11.1 | fate = torch.rand(ids.shape) => fate = torch.rand(len(ids), 1) | of a row share one fate
    11.1 | fate = torch.rand(ids.shape) => fate = torch.rand(1, ids.size(1)) | of a column share one fate
    11.1 | selected = (torch.rand(ids.shape) => draw = torch.rand(ids.shape); selected = (draw ;; fate = torch.rand(ids.shape) => fate = draw | show [MASK]
    11.1 | ids.masked_fill(~selected, -100) => ids.masked_fill(shown != mask_id, -100) | Only [MASK] has labels here. Replaced
    11.1 | < probability) => < 0.15) | of the words are selected, but
    11.1 | torch.randint(len(words), ids.shape) => torch.randint(len(words), (len(ids), 1)) | row or a column
    11.1 | torch.randint(len(words), => torch.randint(12, | same few
    11.1 | return shown, ids.masked_fill(~selected, -100) => return shown.double(), ids.masked_fill(~selected, -100).double() | Ids and labels have to be
    11.1 | (~selected, -100) => (~selected, 0) | Where no word is selected, the
    11.1 | ids.masked_fill(~selected, -100) => ids.masked_fill(shown == ids, -100) | A selected word that is shown
    11.2 | H = config.hidden_size => H = config.hidden_size; self.decoder = nn.Linear(H, config.vocab_size, bias=False) | The decoder has its own weights
    11.2 | self.word_embeddings = word_embeddings => self.table = [word_embeddings.weight.detach().clone()] ;; self.word_embeddings.weight.T => self.table[0].T | The logits should change with them
    11.2 | self.word_embeddings.weight.T => self.word_embeddings.weight.detach().T | No gradient
    11.2 | (self.transform(hidden_states))) => (self.transform(hidden_states.detach()))) | below them can learn
    11.2 | H = config.hidden_size => H = 192 | sizes from the configuration
    11.2 | eps=config.layer_norm_eps => eps=config.layer_norm_eps, elementwise_affine=False | should have a weight
    11.2 | nn.Linear(H, H) => nn.Linear(H, H, bias=False) | should have a bias
    11.2 | return transformed @ self.word_embeddings.weight.T + self.bias => return (transformed @ self.word_embeddings.weight.T + self.bias).log_softmax(-1) | log-probabilities
    11.2 | + self.bias => + 2 * self.bias | added twice
    11.2 | F.gelu => F.relu | ReLU
    11.2 | F.gelu(self.transform(hidden_states)) => F.gelu(self.transform(hidden_states), approximate="tanh") | exact
    11.2 | F.gelu(self.transform(hidden_states)) => self.transform(hidden_states) | activation
    11.2 | self.layer_norm(F.gelu(self.transform => F.gelu(self.layer_norm(self.transform | after the activation
    11.2 | self.layer_norm(F.gelu(self.transform(hidden_states))) => F.gelu(self.transform(hidden_states)) | LayerNorm is missing
    11.2 | + self.bias => | bias is missing
    11.2 | return transformed @ self.word_embeddings.weight.T + self.bias => return (transformed @ self.word_embeddings.weight.T + self.bias).softmax(-1) | probabilities
    11.2 | , eps=config.layer_norm_eps => | eps
    11.2 | without_transform(right) | self.transform
    11.2 | torch.zeros(config.vocab_size) => torch.zeros(config.hidden_size) | one number for each word
    11.2 | torch.zeros(config.vocab_size) => torch.zeros(config.vocab_size), requires_grad=False | bias cannot learn
    11.2 | nn.Linear(2, 2) | class itself
    11.3 | "low" | should be a number
    11.3 | 5.79 | trusting "the" more
"""
