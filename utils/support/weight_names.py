"""The names of weights: Hugging Face's, torch's and ours."""

from collections.abc import Mapping

from torch import Tensor

# parts of names, Hugging Face's to ours: applied in this order, and reversed for ours to theirs
RENAMES = {
    "embeddings.LayerNorm": "embeddings.layer_norm",
    "encoder.layer.": "layers.",
    "attention.self.query": "attention.query",
    "attention.self.key": "attention.key",
    "attention.self.value": "attention.value",
    "attention.output.LayerNorm": "attention_norm",
    "attention.output.dense": "attention.output",
    "intermediate.dense": "feed_forward.intermediate",
    "output.dense": "feed_forward.output",
    "output.LayerNorm": "feed_forward_norm",
}
MODERN_RENAMES = {  # the same for ModernBERT
    "embeddings.tok_embeddings": "word_embeddings",
    "embeddings.norm": "embedding_norm",
    "attn_norm": "attention_norm",
    "attn.Wo": "attention.output",
    "attn.": "attention.",
    "mlp_norm": "feed_forward_norm",
    "mlp.Wi": "feed_forward.intermediate",
    "mlp.Wo": "feed_forward.output",
}
# the weights of transformers' heads; the last two are tied, and stored a second time
HEADS = {
    "BertForSequenceClassification": {"bert.pooler.dense": "pooler", "classifier": "classifier"},
    "BertForTokenClassification": {"classifier": "classifier"},
    "BertForMaskedLM": {
        "cls.predictions.transform.dense": "head.transform",
        "cls.predictions.transform.LayerNorm": "head.layer_norm",
        "cls.predictions.bias": "head.bias",
        "cls.predictions.decoder.bias": "head.bias",
        "cls.predictions.decoder.weight": "encoder.embeddings.word_embeddings.weight",
    },
}


def official_name(name: str) -> str:
    """Return Hugging Face's name for one of our encoder's weights, such as encoder.layer.0.output.dense.bias."""
    for theirs, ours in reversed(RENAMES.items()):
        name = name.replace(ours, theirs)
    return name


def official_headed_name(name: str, architecture: str) -> str:
    """Return the name under which transformers stores a weight of our model with a head."""
    if name.startswith("encoder."):
        return f"bert.{official_name(name.removeprefix('encoder.'))}"
    theirs, ours = next(pair for pair in HEADS[architecture].items() if name.startswith(pair[1]))
    return name.replace(ours, theirs)


def split_modern_weights(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights of a `ModernBertModel` in which query, key and value have a matrix each, as BERT's have."""
    found = {}
    for name, weight in state_dict.items():
        parts = ("query", "key", "value") if "attn.Wqkv." in name else ("",)
        for part, each in zip(parts, weight.chunk(len(parts)), strict=True):
            found[name.replace("Wqkv", part)] = each
    return found


def rename_modern_weight(name: str) -> str | None:
    """Return our name for a weight of a `ModernBertModel`, with or without a head; None for the head's own weights."""
    name = name.removeprefix("model.")
    if not name.startswith(("embeddings.", "layers.", "final_norm.")):
        return None
    for theirs, ours in MODERN_RENAMES.items():
        name = name.replace(theirs, ours)
    return name
