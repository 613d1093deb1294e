"""What readers may write for the nine parts of BERT: plain and right, and wrong ones that a check may overlook."""

import math

import torch


def word_pieces(word, vocab):
    pieces, rest = [], word
    while rest:
        for end in range(len(rest), 0, -1):
            piece = rest[:end] if not pieces else "##" + rest[:end]
            if piece in vocab:
                pieces.append(piece)
                rest = rest[end:]
                break
        else:
            return ["[UNK]"]
    return pieces


def embeddings(self, input_ids, token_type_ids):
    places = torch.arange(input_ids.shape[1], device=input_ids.device)
    x = self.word_embeddings(input_ids) + self.position_embeddings(places)
    return self.dropout(self.layer_norm(x + self.token_type_embeddings(token_type_ids)))


def attention_weights(query, key, attention_mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if attention_mask is not None:
        scores = scores.masked_fill(attention_mask == 0, float("-inf"))
    return torch.softmax(scores, dim=-1)


def split_heads(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def multi_head_attention(self, hidden_states, attention_mask=None):
    query, key, value = self.query(hidden_states), self.key(hidden_states), self.value(hidden_states)
    mask = None if attention_mask is None else attention_mask[:, None, :]
    heads, weights = [], []
    for q, k, v in zip(*(x.chunk(self.num_heads, dim=-1) for x in (query, key, value)), strict=True):
        weights.append(attention_weights(q, k, mask))
        heads.append(weights[-1] @ v)
    return self.output(torch.cat(heads, dim=-1)), torch.stack(weights, dim=1)


def feed_forward(self, hidden_states):
    return self.output(self.activation(self.intermediate(hidden_states)))


def encoder_layer(self, hidden_states, attention_mask=None):
    change, weights = self.attention(hidden_states, attention_mask, True)
    hidden_states = self.attention_norm(hidden_states + self.dropout(change))
    change = self.feed_forward(hidden_states)
    return self.feed_forward_norm(hidden_states + self.dropout(change)), weights


def encoder(self, input_ids, attention_mask, token_type_ids):
    states, attentions = [self.embeddings(input_ids, token_type_ids)], []
    for layer in self.layers:
        state, weights = layer(states[-1], attention_mask, True)
        states.append(state)
        attentions.append(weights)
    return states, attentions


NAMES = [
    ("attention.self", "attention"),
    ("attention.output.LayerNorm", "attention_norm"),
    ("attention.output.dense", "attention.output"),
    ("intermediate.dense", "feed_forward.intermediate"),
    ("output.dense", "feed_forward.output"),
    ("output.LayerNorm", "feed_forward_norm"),
    ("embeddings.LayerNorm", "embeddings.layer_norm"),
    ("encoder.layer.", "layers."),
]


def rename_weight(name):
    if name.startswith("pooler") or name.endswith(("position_ids", ".token_type_ids")):
        return None
    for official, ours in NAMES:
        name = name.replace(official, ours)
    return name


RIGHT = {
    part.__name__: part
    for part in (
        *(word_pieces, embeddings, attention_weights, split_heads, multi_head_attention),
        *(feed_forward, encoder_layer, encoder, rename_weight),
    )
}


def takes_any_beginning(word, vocab):
    pieces = word_pieces(word, vocab)
    return [piece for piece in pieces if piece != "[UNK]"] or ["[UNK]"] if pieces != ["[UNK]"] else [word]


def forgets_the_types(self, input_ids, token_type_ids):
    return embeddings(self, input_ids, torch.zeros_like(token_type_ids))


def computes_in_float32(query, key, attention_mask=None):
    return attention_weights(query.float(), key.float(), attention_mask)


def multiplies_by_the_mask(query, key, attention_mask=None):
    weights = attention_weights(query, key)
    return weights if attention_mask is None else weights * attention_mask


def asks_for_a_mask_of_padding(query, key, attention_mask=None):
    if attention_mask is not None and attention_mask.dim() < 4:
        attention_mask = None
    return attention_weights(query, key, attention_mask)


def mixes_tokens(x, num_heads):
    return x.reshape(x.size(0), num_heads, x.size(1), -1)


def hides_only_the_end(self, hidden_states, attention_mask=None):
    if attention_mask is not None:
        S = hidden_states.size(1)
        attention_mask = (torch.arange(S) < attention_mask.sum(1, keepdim=True)).long()
    return multi_head_attention(self, hidden_states, attention_mask)


def one_per_cent_too_large(self, hidden_states, attention_mask=None):
    output, weights = multi_head_attention(self, hidden_states, attention_mask)
    return 1.01 * output, weights


def cuts_gradients(self, hidden_states):
    return feed_forward(self, hidden_states.detach())


def drops_the_mask(self, hidden_states, attention_mask=None):
    return encoder_layer(self, hidden_states)


def adds_in_place(self, hidden_states, attention_mask=None):
    hidden_states = hidden_states.detach()
    hidden_states += 1
    return encoder_layer(self, hidden_states - 1, attention_mask)


def repeats_the_first_layer(self, input_ids, attention_mask, token_type_ids):
    states, attentions = [self.embeddings(input_ids, token_type_ids)], []
    for _ in self.layers:
        state, weights = self.layers[0](states[-1], attention_mask, True)
        states.append(state)
        attentions.append(weights)
    return states, attentions


def knows_ten_layers(name):
    return None if "layer.11" in name else rename_weight(name)


WRONG = [
    ("word_pieces", takes_any_beginning),
    ("embeddings", forgets_the_types),
    ("attention_weights", computes_in_float32),
    ("attention_weights", multiplies_by_the_mask),
    ("attention_weights", asks_for_a_mask_of_padding),
    ("split_heads", mixes_tokens),
    ("multi_head_attention", hides_only_the_end),
    ("multi_head_attention", one_per_cent_too_large),
    ("feed_forward", cuts_gradients),
    ("encoder_layer", drops_the_mask),
    ("encoder_layer", adds_in_place),
    ("encoder", repeats_the_first_layer),
    ("rename_weight", knows_ten_layers),
]
