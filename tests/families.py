"""Small models of many families of transformers, with sharp random weights, and a tokenizer of bytes."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast, logging

logging.set_verbosity_error()  # small configurations have ids of special tokens beyond their vocabulary
ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
ENCODER |= {"vocab_size": 100}
GROUPED = ENCODER | {"num_key_value_heads": 2}
WIDER = GROUPED | {"head_dim": 16}
TWO_SIDES = {
    "t5": {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_kv": 8, "d_ff": 64, "vocab_size": 100},
    "bart": {"d_model": 32, "vocab_size": 100}
    | {f"{side}_layers": 2 for side in ("encoder", "decoder")}
    | {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    | {f"{side}_ffn_dim": 64 for side in ("encoder", "decoder")},
}
FAMILIES = {
    "bert": ENCODER,
    "roberta": ENCODER | {"pad_token_id": 1},
    "xlm-roberta": ENCODER,
    "electra": ENCODER | {"embedding_size": 32},
    "albert": ENCODER | {"embedding_size": 16},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 100},
    "nomic_bert": ENCODER,
    "modernbert": ENCODER | {"pad_token_id": 0, "local_attention": 4, "global_attn_every_n_layers": 2},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 100},
    "llama": GROUPED,
    "mistral": GROUPED | {"sliding_window": 3},
    "qwen2": GROUPED,
    "qwen3": WIDER,
    "gemma3_text": WIDER,
    "phi3": GROUPED | {"pad_token_id": 0},
    "gpt_neox": ENCODER,
    "opt": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64}
    | {"vocab_size": 100, "word_embed_proj_dim": 32},
}
SCORED = ("query", "key", "q_proj", "k_proj", "q_lin", "k_lin", "qkv", "Wqkv", "c_attn", ".q.", ".k.")


def sharp_model(family: str, settings: dict):
    """A model whose random weights attend to few tokens, so that a scale or a mask forgotten would be seen."""
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(family, **settings)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and any(part in name for part in SCORED):
                parameter.normal_(std=0.3)
    return model


def word_level(words: dict[str, int], **special: str) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words between spaces; the first one is for unknown words."""
    first = next(iter(words))
    plain = Tokenizer(models.WordLevel(words, unk_token=first))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=plain, unk_token=first, **special)


def byte_level(texts: list[str]) -> PreTrainedTokenizerFast:
    """A tokenizer as GPT-2 has one, with pieces of bytes."""
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer, plain.decoder = (pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel())
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    plain.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet))
    return PreTrainedTokenizerFast(tokenizer_object=plain)
