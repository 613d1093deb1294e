"""Answers to the exercises of notebook 06 that its checks do not declare."""

import re

import torch

from utils.encoder import TransformerEncoder


def rename_by_parts(names):
    def rename(name):
        match = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)", name)
        if not match:
            known = name.startswith("embeddings") and not name.endswith("_ids")
            return name.replace("LayerNorm", "layer_norm") if known else None
        layer, part, kind = match.groups()
        table = {theirs: ours for theirs, ours in names.items() if "self" not in theirs}
        return f"layers.{layer}.{table.get(part, part.replace('.self', ''))}.{kind}"

    return rename


def stack_of_the_class(self, *given):
    found = self.forward(*given, output_hidden_states=True, output_attentions=True)
    return found.hidden_states, found.attentions


def thaw_by_name(encoder, number):
    count = 0
    for name, parameter in encoder.named_parameters():
        kept = name.startswith("layers.") and int(name.split(".")[1]) >= len(encoder.layers) - number
        parameter.requires_grad_(kept)
        count += parameter.numel() * kept
    return torch.tensor(count)


def thaw_by_prefix(encoder, number):
    frozen = [f"layers.{layer}" for layer in range(len(encoder.layers) - number)]
    for name, parameter in encoder.named_parameters():
        parameter.requires_grad_(name.startswith("layers.") and not any(map(name.startswith, frozen)))
    return sum(parameter.numel() for parameter in encoder.parameters() if parameter.requires_grad)


@torch.no_grad()
def zero_the_last(encoder, number):
    for parameter in encoder.layers[len(encoder.layers) - number :].parameters():
        parameter.zero_()


RIGHT = r"""
    6.1 | return states, attentions => return tuple(states), tuple(attentions)
    6.1 | return states, attentions => return torch.stack(states), torch.stack(attentions)
    6.1 | for layer in self.layers: => for number in range(len(self.layers)): ;; layer(states[-1] => self.layers[number](states[-1]
    6.2 | '4600 parameters'
    6.3 | rename_by_parts(right.__globals__['NAMES'])
    6.4 | right | {1: ["mask after softmax", "no", "a much longer sentence, which fills the batch"]}
    6.5 | thaw_by_name
"""
WRONG = r"""
    6.1 | return states, attentions => return states[-1], attentions | Return two lists
    6.1 | return states, attentions => return states | Return two lists
    6.1 | return states, attentions => return attentions, states | The two are swapped: the hidden
    6.1 | = layer( => = layer.forward( | self.layers[0] is never called
    6.1 | attention_mask, True => None, True | not masked
    6.1 | (input_ids, token_type_ids)], => (input_ids)], | token types are missing
    6.1 | attention_mask, True => attention_mask | weights are None
    6.1 | return states, attentions => return states[1:], attentions | The embeddings come first
    6.1 | return states, attentions => return states[:-1], attentions | last round's result is missing
    6.1 | return states, attentions => return states[::-1], attentions | The order is reversed: the embeddings
    6.1 | return states, attentions => return states[:1], attentions | 3 layers give 4
    6.1 | states.append(state) => states.append(state.detach()) | gradients do not flow back
    6.1 | return states, attentions => return states, attentions[-1:] | 1 tensors of attention weights for 3 layers
    6.1 | return states, attentions => return states, attentions[::-1] | weights of layer 0 are wrong
    6.1 | attentions.append(weights) => attentions.append(weights.mean(1)) | should have the shape
    6.1 | = layer( => = self.layers[0]( | This uses the first layer in
    6.1 | = layer( => = self.layers[-1]( | This uses the last layer in
    6.1 | for layer in self.layers => for layer in self.layers[::-1] | The layers are in the wrong
    6.1 | layer(states[-1] => layer(states[0] | Every round got the embeddings
    6.1 | for layer in self.layers: => for number in range(3): ;; layer(states[-1] => self.layers[number](states[-1] | but 25 layers give 26
    6.1 | self.embeddings(input_ids, token_type_ids) => self.embeddings.word_embeddings(input_ids) | These are only word vectors. Call
    6.1 | state, weights = layer => state = weights = layer | A layer returns a pair, hidden
    6.1 | stack_of_the_class | calls the finished encoder
    6.2 | "many" | a number
    6.3 | lambda name: name | unchanged
    6.3 | str.split | type list
    6.3 | if name.startswith("pooler") or name.endswith("_ids"): => if False: | , but our encoder has no
    6.3 | name.startswith("pooler") => name.startswith(("pooler", "encoder.layer.1.")) | your function returns None. Does it
    6.3 | NAMES = { => NAMES = {"output.dense": "feed_forward.output", | longer ones first
    6.3 | NAMES = { => NAMES = {"output.LayerNorm": "feed_forward_norm", | longer ones first
    6.3 | NAMES = { => NAMES = {"LayerNorm": "layer_norm", | no such weight
    6.3 | NAMES = { => NAMES = {"encoder.layer": "layer", | no such weight
    6.3 | NAMES = { => NAMES = {"layer.11.": "layer.1.", | which is the name of another
    6.3 | "attention_norm" => "feed_forward_norm" | which is the name of another
    6.3 | name.endswith("_ids"): => name.endswith("_ids"):\n        return None\n    if "intermediate" in name:\n        return name\n    if False: | unchanged
    6.4 | [] | a dictionary with an entry
    6.4 | right | {5: "right"} | a dictionary with an entry
    6.4 | right | {3: "broken"} | BERT 3: 'broken' is not a name
    6.4 | right | {3: []} | BERT 3: [] is not a name
    6.4 | right | {2: "right"} | BERT 2 is not “right”: with that, numbers would differ
    6.4 | right | {1: "no mask"} | with another change
    6.4 | right | {2: "ReLU"} | BERT 2 is named. Now give two
    6.4 | right | {1: (right[1][0], right[1][2], right[1][1])} | What does a text need
    6.4 | right | {4: (right[4][0], "yes", "yes")} | BERT 4 is named. Now give two
    6.5 | thaw_by_prefix | the beginning of layers.10
    6.5 | encoder.layers[first:] => encoder.layers[-number:] | layers[-0:]
    6.5 | encoder.layers[first:] => encoder.layers[:number] | wrong layers
    6.5 | encoder.requires_grad_(False) => encoder.layers.requires_grad_(False); encoder.embeddings.requires_grad_(True) | embeddings can still learn
    6.5 | sum(p.numel() for p => sum(1 for p | counts tensors
    6.5 | encoder.layers[first:].requires_grad_(True) => pass | Every layer is frozen
    6.5 | encoder.requires_grad_(False) => encoder.embeddings.requires_grad_(False) | Every layer can learn
    6.5 | in encoder.parameters() if p.requires_grad => in encoder.parameters() | Count only the parameters that can
    6.5 | first = => encoder.eval(); first = | eval() or train()
    6.5 | lambda encoder, number: (right(encoder, number), zero_the_last(encoder, number))[0] | changes the encoder's parameters
    6.5 | lambda encoder, number: f"{right(encoder, number)} parameters" | Your function returns text. Return only
    6.5 | lambda encoder, number: (right(encoder, number), 172 * number)[1] | parameters can learn
"""
