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


RIGHT = {
    "11.1": """
        hide_in_numpy
        (torch.rand(ids.shape) < probability) & ~torch.isin(ids, special) => in_each_row(~torch.isin(ids, special), probability, as_many)
        return shown, ids.masked_fill(~selected, -100) => return [shown, ids.masked_fill(~selected, -100)]
        selected = (torch.rand(ids.shape) => draw = torch.rand(ids.shape); selected = (draw ;; fate = torch.rand(ids.shape) => fate = draw / probability
    """,
    "11.2": "H = config.hidden_size => H = config.hidden_size; self.decoder = nn.Linear(H, config.vocab_size, bias=False); self.decoder.weight = word_embeddings.weight ;; transformed @ self.word_embeddings.weight.T => self.decoder(transformed)",
    "11.3": """
        5.84
        np.float64(5.83)
    """,
}
CHOOSE = "(torch.rand(ids.shape) < probability) & ~torch.isin(ids, special)"
WRONG = {
    "11.1": f"""
        & ~torch.isin(ids, special) => | special token
        & ~torch.isin(ids, special) => & (ids >= 5) | special token
        & ~torch.isin(ids, special) => & ~torch.isin(ids, special[[0, 2, 3]]) | special token
        fate < 0.8 => fate < 0.78 | show [MASK]
        fate >= 0.9 => fate >= 0.88 | of the selected words are unchanged
        torch.randint(len(words), ids.shape) => (torch.rand(ids.shape) ** 2 * len(words)).long() | far more often than others
        return shown, ids.masked_fill(~selected, -100) => return shown, ids.masked_fill(~selected, -100).int() | labels that you return have the dtype torch.int32
        return shown, ids.masked_fill(~selected, -100) => return shown.short(), ids.masked_fill(~selected, -100) | ids that you return have the dtype torch.int16
        selected & (fate < 0.8) => selected | show [MASK]
        fate >= 0.9 => fate >= 0.8 | of the selected words are unchanged
        random_words = words[torch.randint(len(words), ids.shape)] => random_words = words[7] | same few
        torch.randint(len(words), => torch.randint(len(words) - 1, | are never drawn as the random
        words[torch.randint(len(words), ids.shape)] => torch.randint(3, ids.shape) | A random word is not in
        < probability) => < 2 * probability) | of the words are selected, but
        selected = (torch.rand => torch.manual_seed(0); selected = (torch.rand | Two calls select the same words
        return shown, ids.masked_fill(~selected, -100) => return shown, (ids.masked_fill(~selected, -100), ids.copy_(shown))[0] | clone
        ids.masked_fill(~selected, -100) => ids.clone() | -100
        ids.masked_fill(~selected, -100) => shown.masked_fill(~selected, -100) | before it was hidden
        return shown, => shown[0, 0] += 1; return shown, | A word that is not selected
        {CHOOSE} => one_half(~torch.isin(ids, special), probability) | columns
        torch.rand(ids.shape) < probability => torch.rand(len(ids), 1) < probability | Nearly whole rows are selected
        torch.rand(ids.shape) < probability => torch.rand(1, ids.size(1)) < probability | columns
        {CHOOSE} => in_each_row(~torch.isin(ids, special), probability, a_stretch) | The selected words are next to
        {CHOOSE} => every_few(~torch.isin(ids, special), probability) | The selected words avoid each other
        torch.rand(ids.shape) < probability => torch.rand(100)[ids] < probability | A word is selected everywhere or
        fate = torch.rand(ids.shape) => fate = torch.rand(len(ids), 1) | of a row share one fate
        fate = torch.rand(ids.shape) => fate = torch.rand(1, ids.size(1)) | of a column share one fate
        selected = (torch.rand(ids.shape) => draw = torch.rand(ids.shape); selected = (draw ;; fate = torch.rand(ids.shape) => fate = draw | show [MASK]
        ids.masked_fill(~selected, -100) => ids.masked_fill(shown != mask_id, -100) | Only [MASK] has labels here. Replaced
        < probability) => < 0.15) | of the words are selected, but
        torch.randint(len(words), ids.shape) => torch.randint(len(words), (len(ids), 1)) | row or a column
        torch.randint(len(words), ids.shape) => torch.randint(len(words), (1, ids.size(1))) | The random words are always the
        words[torch.randint(len(words), ids.shape)] => ids.roll(1, dims=0) | A random word is not in
        torch.randint(len(words), => torch.randint(12, | same few
        return shown, ids.masked_fill(~selected, -100) => return shown.double(), ids.masked_fill(~selected, -100).double() | Ids and labels have to be
        (~selected, -100) => (~selected, 0) | Where no word is selected, the
        ids.masked_fill(~selected, -100) => ids.masked_fill(shown == ids, -100) | A selected word that is shown
    """,
    "11.2": """
        H = config.hidden_size => H = config.hidden_size; self.decoder = nn.Linear(H, config.vocab_size, bias=False) | The decoder has its own weights
        self.word_embeddings = word_embeddings => self.table = [word_embeddings.weight.detach().clone()] ;; self.word_embeddings.weight.T => self.table[0].T | The logits should change with them
        self.word_embeddings.weight.T => self.word_embeddings.weight.detach().T | No gradient
        (self.transform(hidden_states))) => (self.transform(hidden_states.detach()))) | below them can learn
        H = config.hidden_size => H = 192 | sizes from the configuration
        eps=config.layer_norm_eps => eps=config.layer_norm_eps, elementwise_affine=False | should have a weight
        nn.Linear(H, H) => nn.Linear(H, H, bias=False) | should have a bias
        return transformed @ self.word_embeddings.weight.T + self.bias => return (transformed @ self.word_embeddings.weight.T + self.bias).log_softmax(-1) | log-probabilities
        + self.bias => + 2 * self.bias | added twice
        F.gelu => F.relu | ReLU
        F.gelu(self.transform(hidden_states)) => F.gelu(self.transform(hidden_states), approximate="tanh") | exact
        F.gelu(self.transform(hidden_states)) => self.transform(hidden_states) | activation
        self.layer_norm(F.gelu(self.transform => F.gelu(self.layer_norm(self.transform | after the activation
        self.layer_norm(F.gelu(self.transform(hidden_states))) => F.gelu(self.transform(hidden_states)) | LayerNorm is missing
        + self.bias => | bias is missing
        return transformed @ self.word_embeddings.weight.T + self.bias => return (transformed @ self.word_embeddings.weight.T + self.bias).softmax(-1) | probabilities
        , eps=config.layer_norm_eps => | eps
        without_transform(right) | self.transform
        torch.zeros(config.vocab_size) => torch.zeros(config.hidden_size) | one number for each word
        torch.zeros(config.vocab_size) => torch.zeros(config.vocab_size), requires_grad=False | bias cannot learn
        nn.Linear(2, 2) | class itself
    """,
    "11.3": """
        "low" | should be a number
        5.79 | trusting "the" more
    """,
}
