#!/usr/bin/env bash
# tokenizers: training a WordPiece vocabulary twice on one text gives different vocabularies.
#
# Guess (85 %): no random numbers are involved, so the same text and settings give the same vocabulary.
# What happens: the order of the pieces that begin with ## is arbitrary, and ties between equally frequent pairs are
#   broken by that order. Two trainings in one process can differ in the ids, in the pieces, and in how they cut a word.
#   There is no seed to set. What helps is to list the alphabet, ## pieces included, in special_tokens.
# Seen with: tokenizers 0.15.2 and 0.23.3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tokenizers==0.23.3
cd "$folder"
venv/bin/python - <<'PY'
import sys

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXT = ["cat can cap car cab"]
ALPHABET = ["[UNK]", *"abcnprt", *(f"##{letter}" for letter in "abcnprt")]


def train(size, special_tokens):
    """Return a tokenizer after training on the five words."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special_tokens, show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


trained = [train(17, ["[UNK]"]) for _ in range(20)]
fixed = [train(18, ALPHABET) for _ in range(20)]


def count_different(candidates):
    """Return how many different vocabularies, sets of pieces and ways to cut the word "cat" there are."""
    vocabularies = [tokenizer.get_vocab() for tokenizer in candidates]
    return (
        len({tuple(sorted(vocabulary.items())) for vocabulary in vocabularies}),
        len({tuple(sorted(vocabulary)) for vocabulary in vocabularies}),
        len({tuple(tokenizer.encode("cat").tokens) for tokenizer in candidates}),
    )


print(f"tokenizers {tokenizers.__version__}")
print("Twenty trainings on the same five words, with the same settings, give different pieces and different ids.")
print("three examples, last four pieces:")
for tokenizer in trained[:3]:
    vocabulary = tokenizer.get_vocab()
    print("  ", *sorted(vocabulary, key=vocabulary.get)[-4:], "| cat is cut into", *tokenizer.encode("cat").tokens)
print("different (vocabularies, sets of pieces, ways to cut \"cat\"):", count_different(trained))
print("the same with the alphabet in a fixed order among special_tokens:", count_different(fixed))
expected = min(count_different(trained)) > 1 and count_different(fixed) == (1, 1, 1)
print("as expected" if expected else "DIFFERS from what is expected")
sys.exit(not expected)
PY
