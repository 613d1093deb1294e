"""Fine-tune the classifier of notebook 08 from five random starts, and measure its cheaper rivals.

`python -m benchmarks.records.classifier` writes utils/data/classifier.json, which notebook 08 and its proofs read, in
about five minutes on one core. Every start has its own head, order of the sentences and dropout. For each, the file has
the probability of "positive" for every sentence of the validation and test parts, so that every score can be
recomputed.
"""

import json

import torch
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn import functional as F

from utils.classifier import TransformerForSequenceClassification
from utils.encoder import TransformerEncoder
from utils.search import mean_pooling
from utils.support.batches import collate, shuffled_batches, sorted_batches, token_ids
from utils.support.datasets import DATA, reviews
from utils.support.files import write_file
from utils.tokenization import WordPieceTokenizer
from utils.training import predict

RESULTS = DATA / "classifier.json"
SEEDS, FROZEN_LAYERS, EPOCHS, BATCH, RATE = 5, 3, 2, 16, 1e-4  # as in notebook 08, but for the second epoch
LEARNED, LONGEST = 1000, 64  # training sentences; tokens of a sentence
ALL_LAYERS = "all layers"
PENALTIES = (0.1, 1, 10)  # C of the logistic regressions; the validation part selects one


def trained(tokenizer: WordPieceTokenizer, seed: int) -> TransformerForSequenceClassification:
    """Return the classifier of notebook 08, trained by its plain loop."""
    train = reviews().train[:LEARNED]
    rows, labels = token_ids(train.texts, tokenizer, max_length=LONGEST), torch.tensor(train.labels)
    torch.manual_seed(seed)
    model = TransformerForSequenceClassification.from_checkpoint(num_labels=2)
    for module in [model.encoder.embeddings, *model.encoder.layers[:FROZEN_LAYERS]]:
        module.requires_grad_(False)
    learning = [values for values in model.parameters() if values.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=RATE, fused=True)
    torch.manual_seed(seed)
    model.train()
    for epoch in range(EPOCHS):
        for batch in shuffled_batches(rows, BATCH, seed=100 * seed + epoch):
            loss = F.cross_entropy(model(**collate([rows[index] for index in batch], "cpu")), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


@torch.no_grad()
def frozen_vectors(texts: list[str], tokenizer: WordPieceTokenizer, encoder: TransformerEncoder) -> dict[str, Tensor]:
    """Return each text's last vector of [CLS] and last mean, (N, H), and its means before and after each layer."""
    rows, H = token_ids(texts, tokenizer, max_length=LONGEST), encoder.config.hidden_size
    cls, means = torch.empty(len(rows), H), torch.empty(len(rows), encoder.config.num_hidden_layers + 1, H)
    for batch in sorted_batches(rows, 32):
        inputs = collate([rows[index] for index in batch], "cpu")
        states = encoder(**inputs, output_hidden_states=True).hidden_states
        cls[batch] = states[-1][:, 0]
        means[batch] = torch.stack([mean_pooling(each, inputs["attention_mask"]) for each in states], dim=1)
    return {"frozen, [CLS]": cls, "frozen, mean": means[:, -1].contiguous(), ALL_LAYERS: means.flatten(1)}


def rivals(tokenizer: WordPieceTokenizer) -> dict[str, str]:
    """Return which test sentences (1 or 0) each cheaper method gets right."""
    parts = reviews()
    train, validation, test = parts.train[:LEARNED], parts.validation, parts.test
    encoder = TransformerEncoder.from_checkpoint()
    vectors = [frozen_vectors(part.texts, tokenizer, encoder) for part in (train, validation, test)]
    features = {name: [each[name] for each in vectors] for name in vectors[0]}
    counter = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit(train.texts)
    features["counted words"] = [counter.transform(part.texts) for part in (train, validation, test)]
    pairs = zip(features.pop(ALL_LAYERS), features["counted words"], strict=True)
    features["all layers and counted words"] = [hstack([means, counts]).tocsr() for means, counts in pairs]
    found = {}
    for name, (to_learn, to_choose, to_test) in features.items():
        fitted = [LogisticRegression(C=C, max_iter=5000).fit(to_learn, train.labels) for C in PENALTIES]
        best = max(fitted, key=lambda each: each.score(to_choose, validation.labels))
        found[name] = "".join(str(int(hit)) for hit in best.predict(to_test) == test.labels)
    return found


def main() -> None:
    """Run all measurements and write the results."""
    tokenizer, parts = WordPieceTokenizer.from_checkpoint(), reviews()
    results = {"command": "python -m benchmarks.records.classifier", "rivals": rivals(tokenizer), "seeds": []}
    for seed in range(SEEDS):
        model, run = trained(tokenizer, seed), {}
        for name, part in {"validation": parts.validation, "test": parts.test}.items():
            positive = predict(model, tokenizer, part.texts, max_length=LONGEST).probabilities[:, 1]
            run[name] = [round(share, 4) for share in positive.tolist()]
        results["seeds"].append(run)
        hits = [(share > 0.5) == label for share, label in zip(run["test"], parts.test.labels, strict=True)]
        print(f"seed {seed}: {sum(hits)} of {len(hits)} test sentences right", flush=True)
    write_file(RESULTS, json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
