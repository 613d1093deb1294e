"""The finished reference implementations that notebooks build; `support` holds what they rely on.

`BUILT` lists the definitions that each notebook builds, by module, with the section that shows the finished one.
"""

BUILT = {
    "01": {
        "tokenization": {
            "normalize": "Step 1: clean the text",
            "is_punctuation": "Step 2: split into words",
            "pre_tokenize": "Step 2: split into words",
            "word_pieces": "Exercise 1.1: cut a word (part 1 of your BERT)",
            "pad_batch": "Assemble: the tokenizer",
            "split_special_tokens": "Assemble: the tokenizer",
            "truncate": "Assemble: the tokenizer",
            "join_pieces": "Assemble: the tokenizer",
            "WordPieceTokenizer": "Assemble: the tokenizer",
        },
        "exchanges": {
            "exchange": "What can tokens know? The exchange test",
            "answers": "What can tokens know? The exchange test",
            "score": "What can tokens know? The exchange test",
        },
    },
    "02": {
        "embeddings": {"Embeddings": "Exercise 2.4: write the forward of the embeddings (part 2 of your BERT)"},
        "exchanges": {"mean_of": "Will positions be enough?"},
    },
    "03": {
        "attention": {
            "compute_attention_weights": "Exercise 3.2: write the attention weights",
            "scaled_dot_product_attention": "The complete formula",
            "AttentionHead": "Exercise 3.3: write the head",
        }
    },
    "04": {
        "attention": dict.fromkeys(
            ("extend_attention_mask", "MultiHeadAttention"), "Exercise 4.5: write the forward pass"
        )
    },
    "05": {
        "encoder_layer": {
            "FeedForward": "Exercise 5.3: write the feed-forward network",
            "TransformerEncoderLayer": "Exercise 5.5: write the layer",
        }
    },
    "06": {
        "encoder": {
            "EncoderOutput": "Exercise 6.1: write the stack",
            "TransformerEncoder": "Exercise 6.1: write the stack",
            "initialize": "Exercise 6.1: write the stack",
        },
        "weights": {
            "rename_weight": "Exercise 6.3: translate the names",
            "rename_weights": "A strict load",
            "rename_headed_weight": "A strict load",
            "rename_decoder_weight": "A strict load",
            "HeadedModel": "A strict load",
        },
    },
    "07": {
        "heads": {
            "previous_token_score": "Exercise 7.1: score the token before",
            "finds": "Exercise 7.3: write the rule",
        }
    },
    "08": {
        "classifier": {
            "TransformerForSequenceClassification": "Exercise 8.1: the head is yours",
            "head_dropout": "Exercise 8.1: the head is yours",
            "leave_one_out": "Exercise 8.3: leave one out",
        },
        "training": {
            "freeze_lowest": "Exercise 8.2: freeze the first layers",
            "Evaluation": "Exercise 8.4: find the bug",
            "loss_sums": "Exercise 8.4: find the bug",
            "summarize": "Exercise 8.4: find the bug",
        },
        "statistics": {"wilson_interval": "How far can you trust such a number?"},
    },
    "09": {
        "search": {
            "mean_pooling": "Exercise 9.2: the masked mean",
            "Neighbours": "Exercise 9.3: exact search",
            "search": "Exercise 9.3: exact search",
            "bm25": "How often does it find the right one?",
            "late_interaction": "Other ways, other prices",
            "hnsw_index": "HNSW, in five lines of faiss",
            "search_index": "HNSW, in five lines of faiss",
            "recall": "Exercise 9.4: find the bug",
            "embed": "Build the search",
        }
    },
    "10": {
        "heads": {
            "silence": "Exercise 10.3: silence a head",
            "rank_agreement": "How far does attention explain?",
            "rollout": "Exercise 10.4: rollout",
        }
    },
    "11": {
        "masked_lm": {
            "LanguageModelHead": "Exercise 11.2: write the head",
            "TransformerForMaskedLM": "The whole model",
            "mask_tokens": "Exercise 11.1: hide words",
        },
        "pretraining": {"fill_rows": "Hide words"},
    },
    "12": {
        "attention": {"causal_mask": "The whole decoder"},
        "decoder": {
            "DecoderEmbeddings": "The whole decoder",
            "DecoderOutput": "The whole decoder",
            "EncodedText": "The decoder layer",
            "LayerCache": "The cache: compute nothing twice",
            "TransformerDecoder": "The whole decoder",
            "TransformerDecoderLayer": "The decoder layer",
        },
        "generation": {
            "greedy_search": "Exercise 12.3: one greedy step",
            "greedy_step": "Exercise 12.3: one greedy step",
        },
    },
    "13": {"packing": {"attend_packed": "The whole encoder, packed"}},
    "14": {
        "modernbert": {
            "rotary": "Exercise 14.2: rotary positions",
            "bert_config": "Into your attention",
            "drop_biases": "Into your attention",
            "RotaryAttention": "Into your attention",
            "Gate": "Change 2: a gate",
            "GatedFeedForward": "Change 2: a gate",
            "local_mask": "Change 4: windows",
            "WindowAttention": "Change 4: windows",
            "ModernEncoderLayer": "Assemble: the layer and the model",
            "make_norm": "Assemble: the layer and the model",
            "local_attention": "Proof 14.2",
        }
    },
    "15": {
        "token_labels": {
            "token_classification_loss": "Train one first",
            "align": "Exercise 15.2: align",
            "TransformerForTokenClassification": "The head: one linear layer, everywhere",
        },
        "lora": {"LoRA": "Exercise 15.4: LoRA in fifteen lines"},
    },
}
